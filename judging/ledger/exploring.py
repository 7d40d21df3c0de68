"""What the Explore page asks: who labelled and judged each trace, where errors start, which tools fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd
from rapidfuzz import fuzz, process, utils
from sqlalchemy import Connection, Table, case, func, select
from sqlalchemy.sql.elements import ColumnElement

from ingest.store import schema, search
from judging.ledger import tables
from judging.ledger.labels import error_labels, reviews
from judging.ledger.revisions import Revision, largest, newest_rows, read_revision
from judging.records import DIMENSIONS, ErrorLabel

HITS = 500
ALIKE = 12  # similar errors shown
COMPARED = 1_000  # errors whose words are weighed for it


class Opinions(NamedTuple):
    """By trace id: who submitted a review, the worst score a judge gave, the states of its judgements, errors named."""

    labelled_by: Mapping[str, str]
    lowest_score: Mapping[str, int]
    judge_states: Mapping[str, str]
    errors: Mapping[str, int]


def opinions(connection: Connection, errors: Sequence[ErrorLabel]) -> Opinions:
    cell = tables.cell
    by: dict[str, list[str]] = {}
    for review in reviews(connection):
        if review.status == "submitted":
            by.setdefault(review.trace_id, []).append(review.annotator)
    states: dict[str, set[str]] = {}
    for trace_id, state in connection.execute(select(cell.c.trace_id, cell.c.state).distinct()):
        states.setdefault(trace_id, set()).add(state)
    lowest = connection.execute(
        select(cell.c.trace_id, func.min(cell.c.score)).where(cell.c.state == "scored").group_by(cell.c.trace_id)
    )
    counts = pd.Series([error.trace_id for error in errors], dtype="object").value_counts()
    return Opinions(
        labelled_by={trace_id: ", ".join(sorted(names)) for trace_id, names in by.items()},
        lowest_score={trace_id: int(score) for trace_id, score in lowest if score is not None},
        judge_states={trace_id: ", ".join(sorted(found)) for trace_id, found in states.items()},
        errors={str(trace_id): int(count) for trace_id, count in counts.items()},
    )


def with_opinions(traces: pd.DataFrame, found: Opinions) -> pd.DataFrame:
    """The trace list with labelled_by, errors, judge_states, lowest_score."""
    ids = traces["trace_id"]
    return traces.assign(
        labelled_by=[found.labelled_by.get(trace_id, "") for trace_id in ids],
        errors=[found.errors.get(trace_id, 0) for trace_id in ids],
        judge_states=[found.judge_states.get(trace_id, "not judged") for trace_id in ids],
        lowest_score=pd.array([found.lowest_score.get(trace_id) for trace_id in ids], dtype="Int64"),
    )


def hits(connection: Connection, query: str) -> pd.DataFrame:
    """trace_id, ordinal, span_id, name: the spans that hold every word, in order of ingestion, at most `HITS`."""
    rows = [(h.trace_id, f"S{h.seq + 1}", h.span_id, h.name) for h in search(connection, query, limit=HITS)]
    return pd.DataFrame(rows, columns=["trace_id", "ordinal", "span_id", "name"])


def complete_errors(connection: Connection) -> list[ErrorLabel]:
    """Every complete error label of first occasions whose trace is here."""
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    found = error_labels(connection, tables.error_label.c.occasion == 0)
    return [error for error in found if error.is_complete and error.trace_id in present]


PLACED = ("trace_id", "side", "position", "id")


def _sharing_words(errors: Sequence[ErrorLabel], label_id: str) -> Sequence[ErrorLabel]:
    """The error and those that may be like it; none where it is not among them."""
    chosen = next((error for error in errors if error.label_id == label_id), None)
    if chosen is None or len(errors) <= COMPARED:
        return errors if chosen is not None else ()
    texts = {place: error.description for place, error in enumerate(errors) if error is not chosen}
    nearest = process.extract(
        chosen.description, texts, scorer=fuzz.token_set_ratio, processor=utils.default_process, limit=COMPARED - 1
    )
    return [chosen, *(errors[place] for _, _, place in nearest)]


def finding_positions(connection: Connection) -> pd.DataFrame:
    """trace_id, side, position 0..1, id: where in the run each judge's finding has its first span."""
    cell, finding, citation = tables.cell, tables.finding, tables.citation
    trace, span = schema.trace, schema.span
    judged = connection.execute(
        select(trace.c.trace_id, finding.c.finding_key, func.min(span.c.seq).label("seq"), trace.c.spans)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .join(citation, citation.c.finding_key == finding.c.finding_key)
        .join(trace, trace.c.trace_id == cell.c.trace_id)
        .join(span, (span.c.span_id == citation.c.span_id) & (span.c.trace_key == trace.c.trace_key))
        .group_by(finding.c.finding_key)
    )
    made = [(r.trace_id, "judge", r.seq / max(r.spans - 1, 1), str(r.finding_key)) for r in judged]
    return pd.DataFrame(made, columns=list(PLACED))


def error_positions(connection: Connection, errors: Sequence[ErrorLabel]) -> pd.DataFrame:
    """The same of people's errors."""
    place = _places(connection, {span_id for error in errors for span_id in error.span_ids})
    made = []
    for error in errors:
        known = [place[error.trace_id, s] for s in error.span_ids if (error.trace_id, s) in place]
        if known:
            made.append((error.trace_id, "human", min(known), error.label_id))
    return pd.DataFrame(made, columns=list(PLACED))


def spans_revision(connection: Connection) -> Revision:
    """Changes whenever a trace comes, goes or is read again."""
    return read_revision(connection, _traces())


def findings_revision(connection: Connection) -> Revision:
    """Changes whenever a finding does, or the spans that it may cite."""
    return read_revision(connection, [*_traces(), _count(tables.finding), *newest_rows(tables.finding)])


def labels_revision(connection: Connection) -> Revision:
    """Changes whenever an error label does, or the spans that it may name. Rows are only appended."""
    return read_revision(connection, [*_traces(), *newest_rows(tables.error_label)])


def _traces() -> list[ColumnElement[int]]:
    return [_count(schema.trace), *newest_rows(schema.trace), largest(schema.trace.c.ingested_at)]


def _count(table: Table) -> ColumnElement[int]:
    return select(func.count()).select_from(table).scalar_subquery()


def tools(connection: Connection) -> pd.DataFrame:
    """trace_id, tool, calls, failed: tool spans of each trace by name."""
    span, trace = schema.span, schema.trace
    tool = func.coalesce(span.c.tool_name, span.c.name)
    rows = connection.execute(
        select(trace.c.trace_id, tool, func.count(), func.sum(case((span.c.status == "ERROR", 1), else_=0)))
        .join(trace, trace.c.trace_key == span.c.trace_key)
        .where(span.c.kind == "TOOL")
        .group_by(trace.c.trace_id, tool)
    )
    return pd.DataFrame(rows.all(), columns=["trace_id", "tool", "calls", "failed"])


def worst_tools(found: pd.DataFrame) -> pd.DataFrame:
    """tool, calls, failed, share: those that failed most first."""
    table = found.groupby("tool")[["calls", "failed"]].sum().astype("int64").reset_index()
    table["share"] = table["failed"] / table["calls"]
    return table.sort_values(["failed", "calls"], ascending=False, kind="stable", ignore_index=True)


def together(errors: Sequence[ErrorLabel]) -> pd.DataFrame:
    """a, b, count: errors that carry both dimensions; on the diagonal, errors that carry the dimension."""
    counts = {(a, b): 0 for a in DIMENSIONS for b in DIMENSIONS}
    for error in errors:
        for dimension in error.dimensions:
            counts[dimension, dimension] += 1
        for a, b in combinations(error.dimensions, 2):
            counts[a, b] += 1
            counts[b, a] += 1
    rows = [(a, b, count) for (a, b), count in counts.items() if count]
    return pd.DataFrame(rows, columns=["a", "b", "count"])


def alike(errors: Sequence[ErrorLabel], label_id: str) -> pd.DataFrame:
    """The errors most like one of them by the words of their descriptions: likeness 0..1, trace_id, label_id, ...

    Of more than `COMPARED` errors, those that share most words are compared: the idf is theirs.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    columns = ["likeness", "trace_id", "label_id", "annotator", "dimensions", "impact", "description"]
    errors = _sharing_words(errors, label_id)
    texts = [error.description or " " for error in errors]
    if not any(text.strip() for text in texts):
        return pd.DataFrame(columns=columns)
    chosen = next(place for place, error in enumerate(errors) if error.label_id == label_id)
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True).fit_transform(texts)
    likeness = (vectors @ vectors[chosen].T).toarray().ravel()
    order = [place for place in likeness.argsort()[::-1] if place != chosen][:ALIKE]
    rows = [
        (
            round(float(likeness[p]), 3),
            e.trace_id,
            e.label_id,
            e.annotator,
            "+".join(e.dimensions),
            e.impact,
            e.description,
        )
        for p, e in ((place, errors[place]) for place in order)
    ]
    return pd.DataFrame(rows, columns=columns)


def _places(connection: Connection, span_ids: Iterable[str]) -> dict[tuple[str, str], float]:
    span, trace = schema.span, schema.trace
    wanted = list(span_ids)
    found: dict[tuple[str, str], float] = {}
    for at in range(0, len(wanted), 5000):
        rows = connection.execute(
            select(trace.c.trace_id, trace.c.spans, span.c.span_id, span.c.seq)
            .join(trace, trace.c.trace_key == span.c.trace_key)
            .where(span.c.span_id.in_(wanted[at : at + 5000]))
        )
        found |= {(r.trace_id, r.span_id): r.seq / max(r.spans - 1, 1) for r in rows}
    return found
