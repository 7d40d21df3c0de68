"""What the Explore page asks: who labelled and judged each trace, where errors start, which tools fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import orjson
import pandas as pd
from rapidfuzz import fuzz, process, utils
from sqlalchemy import Connection, Select, Subquery, case, func, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import schema, search
from tracejury.ingest.table import query_frame
from tracejury.judging.labels.submissions import submitted
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import is_own_word, judge_model_names
from tracejury.judging.store.revisions import Revision, newest_rows, read_revision, traces_parts
from tracejury.judging.store.spans import named_spans

HITS = 500
ALIKE = 12  # similar errors shown
COMPARED = 1_000  # errors whose words are weighed for it


class Opinions(NamedTuple):
    """By trace id: who submitted a review, the worst score a judge gave, the states of its judgements, errors named."""

    labelled_by: Mapping[str, str]
    lowest_score: Mapping[str, int]
    judge_states: Mapping[str, str]
    errors: Mapping[str, int]


def opinions(connection: Connection) -> Opinions:
    """What people and judges said of each trace, the errors counted that are `complete_errors`."""
    cell = tables.cell
    review = tables.review.c
    done = query_frame(connection, submitted(review.trace_id, review.annotator))
    lowest = func.min(cell.c.score).label("lowest")
    judged = query_frame(
        connection,
        select(cell.c.trace_id, cell.c.state, lowest).where(is_own_word()).group_by(cell.c.trace_id, cell.c.state),
    )
    scored = judged[(judged["state"] == "scored") & judged["lowest"].notna()]
    return Opinions(
        labelled_by=_joined(done["trace_id"], done["annotator"]),
        lowest_score={str(row.trace_id): int(row.lowest) for row in scored.itertuples()},  # type: ignore[arg-type]
        judge_states=_joined(judged["trace_id"], judged["state"].str.replace("_", " ")),
        errors=_error_counts(connection),
    )


def _joined(keys: pd.Series, words: pd.Series) -> dict[str, str]:
    """By key: its words in order."""
    names: dict[str, list[str]] = {}
    for key, word in zip(keys, words, strict=True):
        names.setdefault(key, []).append(word)
    return {key: ", ".join(sorted(name_list)) for key, name_list in names.items()}


def with_opinions(traces: pd.DataFrame, by_trace: Opinions) -> pd.DataFrame:
    """The trace list with labelled_by, errors, judge_states, lowest_score."""
    ids = traces["trace_id"]
    return traces.assign(
        labelled_by=[by_trace.labelled_by.get(trace_id, "") for trace_id in ids],
        errors=[by_trace.errors.get(trace_id, 0) for trace_id in ids],
        judge_states=[by_trace.judge_states.get(trace_id, "not judged") for trace_id in ids],
        lowest_score=pd.array([by_trace.lowest_score.get(trace_id) for trace_id in ids], dtype="Int64"),
    )


HIDDEN = "hidden from you"


def without_opinions(known: pd.DataFrame, trace_ids: Collection[str]) -> pd.DataFrame:
    """The list with what people and judges said of these traces taken out: who labels one blind sees none of it."""
    if not trace_ids:
        return known
    closed = known["trace_id"].isin(list(trace_ids))
    return known.assign(
        errors=known["errors"].astype("Int64").mask(closed),
        judge_states=known["judge_states"].mask(closed, HIDDEN),
        lowest_score=known["lowest_score"].mask(closed),
    )


def hits(connection: Connection, query: str) -> pd.DataFrame:
    """trace_id, ordinal, span_id, name: the spans that hold every word, in order of ingestion, at most `HITS`."""
    rows = [(h.trace_id, f"S{h.seq + 1}", h.span_id, h.name) for h in search(connection, query, limit=HITS)]
    return pd.DataFrame(rows, columns=["trace_id", "ordinal", "span_id", "name"])


ERRORS = ("label_id", "trace_id", "annotator", "span_ids", "dimensions", "impact", "description")


def complete_errors(connection: Connection) -> pd.DataFrame:
    """`ERRORS` of every complete error label of first occasions whose trace is here, in the order they were made.

    What `labels.error_labels` gives, without what nobody asks for here. A label is of one occasion for good.
    """
    revisions = _revisions()
    query = _complete([tables.error_label.c[name] for name in ERRORS], revisions).order_by(revisions.c.first)
    errors = query_frame(connection, query, dtype="object")
    return errors.assign(**{name: _texts(errors[name]) for name in ("span_ids", "dimensions")})


def _error_counts(connection: Connection) -> dict[str, int]:
    """How many `complete_errors` each trace has."""
    trace_id = tables.error_label.c.trace_id
    query = _complete([trace_id, func.count()], _revisions()).group_by(trace_id)
    return {str(one): int(count) for one, count in connection.execute(query)}


def _revisions() -> Subquery:
    """newest, first: the rows of each error label."""
    error = tables.error_label.c
    rows = select(func.max(error.row_key).label("newest"), func.min(error.row_key).label("first"))
    return rows.group_by(error.label_id).subquery()


def _complete(columns: Sequence[ColumnElement[Any]], revisions: Subquery) -> Select[Any]:
    """These columns of the complete error labels: a span, a dimension, an impact."""
    error, trace = tables.error_label.c, schema.trace
    return (
        select(*columns)
        .select_from(tables.error_label)
        .join(revisions, revisions.c.newest == error.row_key)
        .join(trace, trace.c.trace_id == error.trace_id)
        .where(
            error.occasion == 0,
            error.deleted.is_(False),
            error.impact.is_not(None),
            error.span_ids != "[]",
            error.dimensions != "[]",
        )
    )


def _texts(values: pd.Series) -> pd.Series:
    """JSON lists as tuples; the same list is read once."""
    known = {value: tuple(orjson.loads(value)) for value in set(values)}
    return pd.Series([known[value] for value in values], index=values.index, dtype="object")


def _sharing_words(errors: pd.DataFrame, label_id: str) -> pd.DataFrame:
    """The error and those that may be like it; none where it is not among them."""
    is_it = errors["label_id"] == label_id
    if not is_it.any():
        return errors[:0]
    if len(errors) <= COMPARED:
        return errors
    chosen, others = errors[is_it][:1], errors[~is_it]
    nearest = process.extract(
        chosen["description"].iloc[0],
        others["description"],
        scorer=fuzz.token_set_ratio,
        processor=utils.default_process,
        limit=COMPARED - 1,
    )
    return pd.concat([chosen, others.loc[[place for _, _, place in nearest]]])


PLACES = 10  # equal parts of a trace that positions are counted in
PLACED = ("trace_id", "side", "place", "count")


def finding_places(connection: Connection) -> pd.DataFrame:
    """trace_id, side, place 0..`PLACES`-1, count: in which part of the trace judges' findings have their first span."""
    first = _first_cited()
    place = _place(first.c.seq, first.c.spans)
    rows = connection.execute(select(first.c.trace_id, place, func.count()).group_by(first.c.trace_id, place)).all()
    return _placed("judge", rows)


def _first_cited() -> Subquery:
    """finding_key, trace_key, trace_id, spans, seq: the first span that each finding of a judge's own cites."""
    cell, finding, citation = tables.cell, tables.finding, tables.citation
    trace, span = schema.trace, schema.span
    of = (finding.c.finding_key, trace.c.trace_key, trace.c.trace_id, trace.c.spans)
    return (
        select(*of, func.min(span.c.seq).label("seq"))
        .select_from(finding)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .join(citation, citation.c.finding_key == finding.c.finding_key)
        .join(trace, trace.c.trace_id == cell.c.trace_id)
        .join(span, (span.c.span_id == citation.c.span_id) & (span.c.trace_key == trace.c.trace_key))
        .where(is_own_word())
        .group_by(*of)
        .subquery()
    )


def placed_findings(connection: Connection, place: int) -> pd.DataFrame:
    """The findings that `finding_places` counts in a part of the trace.

    trace_id, judge_model (its version named where it is no more the newest), judge, repeat, dimension, impact,
    description, finding_key, seq, span_id: of the first span that it cites.
    """
    first, cell, finding, span = _first_cited(), tables.cell, tables.finding, schema.span
    judged = (cell.c.judge_version, cell.c.rubric, cell.c.repeat)
    finding_columns = (finding.c.dimension, finding.c.impact, finding.c.description, finding.c.finding_key)
    query = (
        select(first.c.trace_id, *judged, *finding_columns, first.c.seq, span.c.span_id)
        .join(finding, finding.c.finding_key == first.c.finding_key)
        .join(cell, cell.c.cell_key == finding.c.cell_key)
        .join(span, (span.c.trace_key == first.c.trace_key) & (span.c.seq == first.c.seq))
        .where(_place(first.c.seq, first.c.spans) == place)
        .order_by(finding.c.finding_key)
    )
    findings = query_frame(connection, query)
    return findings.assign(judge_model=findings["judge_version"].map(judge_model_names(connection)))[list(FOUND)]


FOUND = (
    "trace_id", "judge_model", "rubric", "repeat", "dimension", "impact", "description", "finding_key", "seq",
    "span_id",
)  # fmt: skip


def error_places(connection: Connection, errors: pd.DataFrame, known: dict[str, SpanPlaces]) -> pd.DataFrame:
    """The same of people's errors (`ERRORS`). `known` keeps the places of spans, the same until traces change."""
    starts = zip(errors["trace_id"], _first_spans(connection, errors, known), strict=True)
    counts = Counter((trace_id, first.place) for trace_id, first in starts if first is not None)
    return _placed("annotator", ((trace_id, place, count) for (trace_id, place), count in counts.items()))


def started(connection: Connection, errors: pd.DataFrame) -> pd.DataFrame:
    """The errors with the place that `error_places` counts each in, and the seq and span_id of its first span.

    Missing where an error names no span of its trace.
    """
    starts = [first or _First(None, None, None) for first in _first_spans(connection, errors, {})]
    positions = pd.DataFrame(starts, columns=["seq", "place", "span_id"], index=errors.index)
    return errors.join(positions.astype({"seq": "Int64", "place": "Int64", "span_id": "object"}))


def carrying(errors: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """The errors that `together` counts: those that carry both dimensions."""
    return errors[[one in dimensions and other in dimensions for dimensions in errors["dimensions"]]]


class _First(NamedTuple):
    """The first span of an error, and in which part of the trace it is."""

    seq: int | None
    place: int | None
    span_id: str | None


SpanPlaces = dict[str, _First]
"""By trace: where the span of one id is."""


def _first_spans(connection: Connection, errors: pd.DataFrame, known: dict[str, SpanPlaces]) -> list[_First | None]:
    """The first span of each error in reading order, None where it names none of its trace."""
    span, trace = schema.span, schema.trace
    named_ids = {span_id for span_ids in errors["span_ids"] for span_id in span_ids} - known.keys()
    for trace_id, span_id, seq, place in named_spans(
        connection, named_ids, span.c.seq, _place(span.c.seq, trace.c.spans)
    ):
        known.setdefault(span_id, {})[trace_id] = _First(seq, place, span_id)
    return [
        min((known[one][trace_id] for one in span_ids if trace_id in known.get(one, ())), default=None)
        for trace_id, span_ids in zip(errors["trace_id"], errors["span_ids"], strict=True)
    ]


def _place(seq: ColumnElement[int], spans: ColumnElement[int]) -> ColumnElement[int]:
    """The part of the trace: the last span belongs to the last part."""
    return case((spans <= 1, 0), (seq >= spans - 1, PLACES - 1), else_=seq * PLACES // (spans - 1))


def _placed(side: str, rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    places = [(trace_id, side, int(place), int(count)) for trace_id, place, count in rows]
    return pd.DataFrame(places, columns=list(PLACED)).astype({"place": "int64", "count": "int64"})


def findings_revision(connection: Connection) -> Revision:
    """Changes whenever a finding does, or the spans that it may cite."""
    return read_revision(connection, [*traces_parts(), *newest_rows(tables.finding)])


def labels_revision(connection: Connection) -> Revision:
    """Changes whenever an error label does, or the spans that it may name. Rows are only appended."""
    return read_revision(connection, [*traces_parts(), *newest_rows(tables.error_label)])


def tools(connection: Connection) -> pd.DataFrame:
    """trace_id, tool, calls, failed: tool spans of each trace by name."""
    span, trace = schema.span, schema.trace
    tool = func.coalesce(span.c.tool_name, span.c.name)
    failed = func.sum(case((span.c.status == "ERROR", 1), else_=0))
    query = (
        select(trace.c.trace_id, tool.label("tool"), func.count().label("calls"), failed.label("failed"))
        .join(trace, trace.c.trace_key == span.c.trace_key)
        .where(span.c.kind == "TOOL")
        .group_by(trace.c.trace_id, tool)
    )
    return query_frame(connection, query)


def tool_calls(connection: Connection, tool: str) -> pd.DataFrame:
    """trace_id, seq, span_id, status: the calls that `tools` counts of one tool, failed ones first."""
    span, trace = schema.span, schema.trace
    query = (
        select(trace.c.trace_id, span.c.seq, span.c.span_id, span.c.status)
        .join(trace, trace.c.trace_key == span.c.trace_key)
        .where(span.c.kind == "TOOL", func.coalesce(span.c.tool_name, span.c.name) == tool)
        .order_by(case((span.c.status == "ERROR", 0), else_=1), trace.c.trace_key, span.c.seq)
    )
    return query_frame(connection, query)


def worst_tools(calls: pd.DataFrame) -> pd.DataFrame:
    """tool, calls, failed, share: those that failed most first."""
    table = calls.groupby("tool")[["calls", "failed"]].sum().astype("int64").reset_index()
    table["share"] = table["failed"] / table["calls"]
    return table.sort_values(["failed", "calls"], ascending=False, kind="stable", ignore_index=True)


def together(errors: pd.DataFrame) -> pd.DataFrame:
    """a, b, count: errors that carry both dimensions; on the diagonal, errors that carry the dimension."""
    counts = Counter[tuple[str, str]]()
    for dimensions, count in Counter(errors["dimensions"]).items():
        for pair in [(one, one) for one in dimensions] + list(permutations(dimensions, 2)):
            counts[pair] += count
    rows = [(a, b, counts[a, b]) for a in DIMENSIONS for b in DIMENSIONS if counts[a, b]]
    return pd.DataFrame(rows, columns=["a", "b", "count"])


LIKE = ("likeness", "trace_id", "label_id", "annotator", "dimensions", "impact", "description")


def alike(errors: pd.DataFrame, label_id: str) -> pd.DataFrame:
    """The errors most like one of them by the words of their descriptions: likeness 0..1, trace_id, label_id, ...

    Of more than `COMPARED` errors, those that share most words are compared: the idf is theirs.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    errors = _sharing_words(errors, label_id).reset_index(drop=True)
    texts = [description or " " for description in errors["description"]]
    if not any(text.strip() for text in texts):
        return pd.DataFrame(columns=list(LIKE))
    chosen = errors["label_id"].tolist().index(label_id)
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True).fit_transform(texts)
    likeness = (vectors @ vectors[chosen].T).toarray().ravel()
    order = [place for place in likeness.argsort()[::-1] if place != chosen][:ALIKE]
    similar = errors.iloc[order]
    return similar.assign(
        likeness=likeness[order].round(3), dimensions=similar["dimensions"].map("+".join)
    ).reset_index(drop=True)[list(LIKE)]
