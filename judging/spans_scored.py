"""Scores of spans: kept under the dimension's name with the span's id, so that none passes for a score of the trace."""

from __future__ import annotations

MARK = " @ span "


def of_span(dimension: str, span_ids: tuple[str, ...]) -> str:
    """The name under which a score of these spans is kept; of no span, the dimension's own."""
    return f"{dimension}{MARK}{' '.join(span_ids)}" if span_ids else dimension


def dimension_and_spans(name: str) -> tuple[str, tuple[str, ...]]:
    """The dimension and the spans that `of_span` made `name` of."""
    dimension, mark, spans = name.partition(MARK)
    return dimension, tuple(spans.split()) if mark else ()
