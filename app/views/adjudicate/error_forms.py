"""The forms that add an error, put one right or reject it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from hashlib import blake2b

import streamlit as st
from sqlalchemy import select

from tracejury.app.components.glossary import meanings
from tracejury.app.session import workspace
from tracejury.app.views.adjudicate.acting import act
from tracejury.ingest.store import read_transaction, schema
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.judge_column import PREFIX
from tracejury.judging.records import DIMENSIONS, IMPACTS, Dimension, ErrorLabel, Impact
from tracejury.judging.taxonomy import categories

MOST_SPANS = 1000  # of a choice list
SpanTitles = Mapping[str, str]  # by span id: what the desk calls it


def span_titles(trace_id: str) -> SpanTitles:
    """Each span as the desk calls it: ordinal, kind, name."""
    span, trace = schema.span, schema.trace
    with read_transaction(workspace().engine) as connection:
        rows = connection.execute(
            select(span.c.span_id, span.c.seq, span.c.kind, span.c.name)
            .join(trace, trace.c.trace_key == span.c.trace_key)
            .where(trace.c.trace_id == trace_id)
            .order_by(span.c.seq)
            .limit(MOST_SPANS + 1)
        ).all()
    return {row.span_id: f"S{row.seq + 1} {row.kind} {row.name or ''}".rstrip() for row in rows}


def add_form(trace_id: str, titles: SpanTitles) -> None:
    key = f"add-{trace_id}"
    with st.form(key, border=False, clear_on_submit=False):
        dimensions, impact, spans, category = error_fields(None, titles, key)
        quote = st.text_area("Quote of the trace as evidence", key=f"quote-{key}", height=68)
        description = st.text_area("Description", key=f"words-{key}", height=68)
        reason = st.text_input("Reason", key=f"reason-{key}", placeholder="why it is an error")
        if st.form_submit_button("Add"):
            act(
                partial(
                    adjudication.add, trace_id=trace_id, reason=reason, span_ids=spans, dimensions=dimensions,
                    impact=impact, category=category, description=description, quote=quote,
                ),
                said="Added.",
            )  # fmt: skip


def edit_form(ids: list[str], label: ErrorLabel, titles: SpanTitles) -> None:
    key = f"edit-{widget(ids[0])}"
    with st.form(key, border=False):
        dimensions, impact, spans, category = error_fields(label, titles, key)
        description = st.text_area("Description", label.description, key=f"words-{key}")
        reason = st.text_input("Reason", key=f"reason-{key}")
        if st.form_submit_button("Save"):
            act(
                partial(
                    adjudication.edit, label_ids=ids, reason=reason, dimensions=dimensions, impact=impact,
                    category=category or "", description=description, span_ids=spans,
                ),
                said="Saved.",
            )  # fmt: skip


def error_fields(
    now: ErrorLabel | None, titles: SpanTitles, key: str
) -> tuple[list[Dimension], Impact | None, list[str], str | None]:
    """Dimensions, impact, spans and category as chosen, beginning with those of the label of `now`."""
    dimensions = st.pills(
        "Dimensions", DIMENSIONS, selection_mode="multi", default=list(now.dimensions) if now else None,
        key=f"dims-{key}", help=meanings(DIMENSIONS),
    )  # fmt: skip
    impact = st.segmented_control("Impact", IMPACTS, default=now.impact if now else None, key=f"impact-{key}")
    spans = span_choice(titles, now.span_ids if now else (), f"spans-{key}")
    return dimensions, impact, spans, category_choice(now.category if now else None, f"category-{key}")


def reject_form(ids: list[str]) -> None:
    key = widget(ids[0])
    with st.form(f"reject-{key}", border=False):
        reason = st.text_input("Why it is not an error", key=f"why-{key}")
        if st.form_submit_button("Reject"):
            act(partial(adjudication.reject, label_ids=ids, reason=reason), said="Rejected.")


def widget(label_id: str) -> str:
    """A widget's key stands in the page: whose label it is must not be read from it."""
    return blake2b(label_id.encode(), digest_size=8).hexdigest() if label_id.startswith(PREFIX) else label_id


def category_choice(now: str | None, key: str) -> str | None:
    """TRAIL's categories; a category of an import that is none of them stays choosable."""
    names = [one.name for one in categories()]
    options: list[str | None] = [None, *names, *([now] if now and now not in names else [])]
    return st.selectbox(
        "TRAIL category", options, index=options.index(now), key=key, format_func=lambda one: one or "none"
    )


def span_choice(titles: SpanTitles, now: tuple[str, ...], key: str) -> list[str]:
    """Spans by what they are; of a very long trace by their ids."""
    if len(titles) > MOST_SPANS:
        text = st.text_input("Span ids, separated by commas", ", ".join(now), key=key)
        return [one.strip() for one in text.split(",") if one.strip()]
    options = [*titles, *(one for one in now if one not in titles)]
    return st.multiselect("Spans", options, list(now), key=key, format_func=lambda one: titles.get(one) or str(one))
