"""How far from a labelled span a citation may stand and still localize the error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import pandas as pd
from sqlalchemy import Connection

from tracejury.ingest.store import schema
from tracejury.judging.records import Tolerance
from tracejury.judging.runs.verdicts import cited_spans
from tracejury.judging.store.spans import rows_by_trace


class SpanPlace(NamedTuple):
    """Where a span stands in its trace: its number in reading order, its parent, and the step that it belongs to."""

    seq: int
    parent: str | None
    step: tuple[object, ...] | None


Places = Mapping[str, SpanPlace]


def places_by_trace(connection: Connection, trace_ids: Collection[str]) -> dict[str, dict[str, SpanPlace]]:
    """The place of each span, by trace.

    A step is that of the nearest of the span and its ancestors with a number of a step: spans of the same parent,
    agent, turn and number are one step. A span below no number belongs to none.
    """
    span = schema.span.c
    columns = (span.seq, span.parent_span_id, span.agent, span.turn, span.step)
    rows: dict[str, dict[str, tuple[int, str | None, tuple[object, ...] | None]]] = defaultdict(dict)
    for trace_id, span_id, seq, parent, agent, turn, step in rows_by_trace(connection, trace_ids, *columns):
        rows[trace_id][span_id] = seq, parent, None if step is None else (parent, agent, turn, step)
    return {trace_id: _with_steps(spans) for trace_id, spans in rows.items()}


def _with_steps(
    spans: Mapping[str, tuple[int, str | None, tuple[object, ...] | None]],
) -> dict[str, SpanPlace]:
    places: dict[str, SpanPlace] = {}
    for span_id, (seq, parent, own) in sorted(spans.items(), key=lambda item: item[1][0]):  # parents come first
        above = places.get(parent) if parent is not None else None
        step = own if own is not None or above is None else above.step
        places[span_id] = SpanPlace(seq, parent, step)
    return places


def is_within(cited: Iterable[str], labelled: Collection[str], places: Places, tolerance: Tolerance) -> bool:
    """Whether a cited span is near enough to a labelled one; one that is not in the trace is near only to itself."""
    return any(one == other or _is_near(one, other, places, tolerance) for one in cited for other in labelled)


def _is_near(one: str, other: str, places: Places, tolerance: Tolerance) -> bool:
    here, there = places.get(one), places.get(other)
    if tolerance == "exact" or here is None or there is None:
        return False
    if tolerance == "span":
        return abs(here.seq - there.seq) <= 1
    return one == there.parent or other == here.parent or (here.step is not None and here.step == there.step)


def localized_within(
    connection: Connection, decided: pd.DataFrame, errors: pd.DataFrame, tolerance: Tolerance
) -> pd.DataFrame:
    """The pairs `decided` (label_id, finding_id, localized) with `localized` under a tolerance.

    `errors`: label_id, trace_id, span_ids of every label of the pairs. `exact` leaves them as they are.
    """
    if tolerance == "exact" or decided.empty:
        return decided
    labels = errors.drop_duplicates("label_id").set_index("label_id")[["trace_id", "span_ids"]]
    own = labels.loc[decided["label_id"]]
    places = places_by_trace(connection, set(own["trace_id"]))
    cited = cited_spans(connection, [int(key) for key in decided["finding_id"]])
    localized = [
        is_within(cited.get(int(key), frozenset()), span_ids, places.get(trace_id, {}), tolerance)
        for key, trace_id, span_ids in zip(decided["finding_id"], own["trace_id"], own["span_ids"], strict=True)
    ]
    return decided.assign(localized=pd.Series(localized, index=decided.index, dtype=bool))
