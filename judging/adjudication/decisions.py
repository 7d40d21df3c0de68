"""Adjudication: decisions on what people disagree about, and the gold that follows from them, version by version.

Decisions are rows that are only ever appended. The state of a trace is their fold; gold is written when a
trace is closed, all of it in one transaction, so that no estimate is made from a half-decided trace.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import orjson
import pandas as pd
from sqlalchemy import Connection, Engine, Row, Select, Table, func, insert, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.trace import Json
from tracejury.judging.adjudication.disputes import Dispute, ErrorGroup, Opinion, dispute, worst_first
from tracejury.judging.adjudication.judge_column import JUDGE, finding_labels, judge_opinion, judge_shown
from tracejury.judging.labels.label_store import error_labels, newest, put_labels, reviews
from tracejury.judging.records import DIMENSIONS, SCORES, Dimension, ErrorLabel, Evidence, Impact, Review, ScoreLabel
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import labels_of
from tracejury.judging.store.people import ensure_annotator, gold_names
from tracejury.judging.store.revisions import Revision, largest, newest_rows, read_revision
from tracejury.judging.store.spans import named_spans

GOLD = "gold"
ADJUDICATED = "adjudicated"
AGREED = "all raters agree"
Action = Literal["keep", "merge", "edit", "reject", "add"]
Status = Literal["open", "closed", "changed"]
LabelOutcome = Literal["gold", "rejected", "undecided"]
_table = tables.adjudication
FEW = 200  # traces that are asked for by name; of more, all that two people submitted are read


class AdjudicationError(ValueError):
    """A decision that is not taken; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldError:
    """An error of the gold to be: the people's labels it comes from and what it says.

    One that no rater saw comes from itself.
    """

    label_id: str
    sources: frozenset[str]
    label: ErrorLabel
    action: Action
    reason: str

    @property
    def is_added(self) -> bool:
        return self.label_id in self.sources


@dataclass(frozen=True, kw_only=True)
class TraceDecisions:
    """What has been decided on a trace. `version` is that of the gold written last, 0 before the first.

    `scores` maps a dimension to its final score, None for not applicable. `is_open`: something was decided
    since the gold was written. `judges` were shown beside the people when something was decided.
    """

    trace_id: str
    version: int = 0
    closed_at: int | None = None
    errors: Mapping[str, GoldError] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float | None] = field(default_factory=dict)
    judges: frozenset[str] = frozenset()
    is_open: bool = False
    last: int = 0
    """The row of the newest decision."""

    def outcome_of(self, label_id: str) -> LabelOutcome:
        """What became of a person's label."""
        if any(label_id in one.sources for one in self.errors.values()):
            return "gold"
        return "rejected" if label_id in self.rejected else "undecided"


ItemRevision = tuple[int, int]
"""The newest decision on a trace, and when a rater last changed what they said: what a page was drawn from."""


@dataclass(frozen=True, kw_only=True)
class AdjudicationItem:
    """A trace on the adjudicator's desk. `said_at`: when people last changed what they said of it."""

    dispute: Dispute
    decided: TraceDecisions
    said_at: int = 0

    @cached_property
    def open_points(self) -> tuple[str, ...]:
        """What is still to be decided, in words."""
        points = [
            f"{len(group.labels)} {'label' if len(group.labels) == 1 else 'labels'} of one error ({_title(group)})"
            for group in self.dispute.groups
            if "undecided" in _outcomes(self.decided, group)
        ]
        points += [
            f"the score of {dimension}" for dimension in self.dispute.scores if dimension not in self.decided.scores
        ]
        return tuple(points)

    @cached_property
    def status(self) -> Status:
        if self.decided.closed_at is None or self.decided.is_open:
            return "open"
        return "changed" if self.said_at > self.decided.closed_at or self.open_points else "closed"

    @property
    def revision(self) -> ItemRevision:
        return self.decided.last, self.said_at

    @property
    def apart(self) -> tuple[GoldError, ...]:
        """The gold's errors that no label on the desk speaks for: they were added, come from a judge that is not
        shown now, or from a label taken back. They stand in the gold all the same.
        """
        shown = self._shown
        return tuple(one for one in self.decided.errors.values() if one.sources.isdisjoint(shown))

    @property
    def scores_apart(self) -> dict[str, float | None]:
        """Final scores of dimensions that no rater on the desk scored."""
        return {key: value for key, value in self.decided.scores.items() if key not in self.dispute.scores}

    def behind(self, group: ErrorGroup) -> tuple[str, ...]:
        """Labels that are not on the desk and were taken for the same error as this group: decided with it."""
        source_sets = (
            one.sources for one in self.decided.errors.values() if not one.sources.isdisjoint(group.label_ids)
        )
        return tuple(sorted({label_id for sources in source_sets for label_id in sources} - self._shown))

    @property
    def _shown(self) -> set[str]:
        return {label_id for group in self.dispute.groups for label_id in group.label_ids}


# ---- what is to be decided -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Opinions:
    """What people said of every trace that two or more submitted, when, and the state of each trace's rows it is of."""

    disputes: Mapping[str, Dispute]
    said_at: Mapping[str, int]
    states: Mapping[str, tuple[int, ...]]
    nobody: frozenset[str]
    """The names that gold stands under."""


def all_opinions(connection: Connection, *, seed: str, before: Opinions | None = None) -> Opinions:
    """What people said; decisions change nothing of it.

    Of `before` (of the same seed) all is kept but the traces that changed since.
    """
    states, nobody = _states(connection), gold_names(connection)
    empty = Opinions(disputes={}, said_at={}, states={}, nobody=nobody)
    known = before if before is not None and before.nobody == nobody else empty
    changed = {trace_id for trace_id, state in states.items() if known.states.get(trace_id) != state}
    unchanged = {key: one for key, one in known.disputes.items() if key in states and key not in changed}
    disputes = unchanged | _disputes_of(connection, changed, seed)
    return Opinions(
        disputes={key: disputes[key] for key in sorted(disputes)},
        said_at=_said_at(connection),
        states=states,
        nobody=nobody,
    )


def _disputes_of(connection: Connection, trace_ids: Set[str], seed: str) -> dict[str, Dispute]:
    if not trace_ids:
        return {}
    opinions = {
        trace_id: by_rater for trace_id, by_rater in _opinions(connection, trace_ids).items() if len(by_rater) > 1
    }
    parents, order = _spans(connection, opinions)
    return {
        trace_id: dispute(trace_id, by_rater, parents=parents[trace_id], order=order[trace_id], seed=seed)
        for trace_id, by_rater in opinions.items()
    }


def _states(connection: Connection) -> dict[str, tuple[int, ...]]:
    """By trace: changes whenever anything that people said of it may have, or its spans. Rows are only appended."""
    newest = [_newest_rows(connection, table) for table in _TABLES]
    traces = connection.execute(select(schema.trace.c.trace_id, schema.trace.c.trace_key, schema.trace.c.ingested_at))
    return {
        trace_id: (key, at, *(part for rows in newest for part in rows.get(trace_id, (0, 0))))
        for trace_id, key, at in traces.all()
    }


def _newest_rows(connection: Connection, table: Table) -> dict[str, tuple[int, int]]:
    """By trace; the time too, for a restored backup that goes another way."""
    query = select(table.c.trace_id, func.max(table.c.row_key), func.max(table.c.created_at))
    return {trace_id: (key, at) for trace_id, key, at in connection.execute(query.group_by(table.c.trace_id)).all()}


def opinions_revision(connection: Connection) -> Revision:
    """Changes whenever `all_opinions` may."""
    newest = newest_rows(schema.trace, tables.error_label, tables.score_label, tables.review)
    return read_revision(connection, [*newest, largest(schema.trace.c.ingested_at)])


def decisions_revision(connection: Connection) -> Revision:
    """Changes whenever `rulings` may."""
    return read_revision(connection, newest_rows(_table))


def items(
    connection: Connection,
    *,
    seed: str,
    everything: bool = False,
    known: Opinions | None = None,
    ruled: Mapping[str, TraceDecisions] | None = None,
) -> list[AdjudicationItem]:
    """The traces where people differ and that are not settled, worst first; with `everything` the settled too.

    Two people or more must have submitted. A settled trace comes back when a rater changes what they said.
    `known` is what `all_opinions` gave, `ruled` the `rulings`, where they are at hand.
    """
    opinions = all_opinions(connection, seed=seed) if known is None else known
    sorted_items = _items(connection, worst_first(opinions.disputes.values()), opinions.said_at, ruled)
    return sorted_items if everything else [one for one in sorted_items if one.status != "closed"]


def item(connection: Connection, trace_id: str, *, seed: str, judge: str | None = None) -> AdjudicationItem | None:
    """One trace, disputed or not; None where fewer than two people have submitted.

    With `judge` that judge model is one more rater of the case; whether people differ is asked of people alone.
    """
    opinions = _opinions(connection, {trace_id})
    if len(opinions.get(trace_id, {})) < 2:
        return None
    opinion = None if judge is None else judge_opinion(connection, trace_id, judge)
    if opinion is not None:
        opinions[trace_id][JUDGE] = opinion
    parents, order = _spans(connection, opinions)
    one = dispute(trace_id, opinions[trace_id], parents=parents[trace_id], order=order[trace_id], seed=seed)
    decided = decisions_by_trace(connection, trace_id).get(trace_id, TraceDecisions(trace_id=trace_id))
    return AdjudicationItem(dispute=one, decided=decided, said_at=_said_at(connection, trace_id).get(trace_id, 0))


def undisputed(
    connection: Connection,
    *,
    seed: str,
    known: Opinions | None = None,
    ruled: Mapping[str, TraceDecisions] | None = None,
) -> list[AdjudicationItem]:
    """Traces that two people or more submitted, that nobody differs on, and whose gold is not written."""
    every = all_opinions(connection, seed=seed) if known is None else known
    candidates = _items(
        connection, (one for one in every.disputes.values() if not one.is_disputed), every.said_at, ruled
    )
    return [one for one in candidates if one.status != "closed"]


def _items(
    connection: Connection,
    disputes: Iterable[Dispute],
    said_at: Mapping[str, int],
    ruled: Mapping[str, TraceDecisions] | None,
) -> list[AdjudicationItem]:
    ruled = decisions_by_trace(connection) if ruled is None else ruled
    return [
        AdjudicationItem(
            dispute=one,
            decided=ruled.get(one.trace_id) or TraceDecisions(trace_id=one.trace_id),
            said_at=said_at.get(one.trace_id, 0),
        )
        for one in disputes
    ]


def decisions_by_trace(connection: Connection, trace_id: str | None = None) -> dict[str, TraceDecisions]:
    """What has been decided, by trace: the fold of all rows."""
    query = select(_table).order_by(_table.c.row_key)
    rows = connection.execute(query if trace_id is None else query.where(_table.c.trace_id == trace_id))
    decisions: dict[str, TraceDecisions] = {}
    for row in rows:
        decisions[row.trace_id] = _after(decisions.get(row.trace_id, TraceDecisions(trace_id=row.trace_id)), row)
    return decisions


# ---- decisions -------------------------------------------------------------------------------------------------


def item_revision(connection: Connection, trace_id: str) -> ItemRevision:
    """That of the trace's `Case` as it is now."""
    decided = decisions_by_trace(connection, trace_id).get(trace_id, TraceDecisions(trace_id=trace_id))
    return decided.last, _said_at(connection, trace_id).get(trace_id, 0)


def refuse_if_changed(connection: Connection, trace_id: str, drawn: ItemRevision) -> None:
    """Raises `AdjudicationError` where somebody decided on the trace, or changed what they said of it, since."""
    if item_revision(connection, trace_id) != drawn:
        raise AdjudicationError(
            "somebody decided on this trace, or a rater changed a label, after this page was drawn. Try: read the "
            "updated page and decide again"
        )


def keep(connection: Connection, label_id: str, *, by: str, reason: str = "") -> str:
    """A rater's error goes into the gold as it is; gives the gold's label id."""
    (source,) = _sources(connection, [label_id])
    _must_be_complete(connection, source)
    return _decide_error(connection, "keep", [source], source, by=by, reason=reason)


def merge(
    connection: Connection, label_ids: Sequence[str], *, by: str, main: str | None = None, reason: str = ""
) -> str:
    """Several errors are one. Words and impact are those of `main` (default: the first), else of the first that has
    them (a judge's finding may have none); spans, dimensions and evidence are those of all.
    """
    sources = _sources(connection, label_ids)
    if len(sources) < 2:
        raise AdjudicationError("merging needs two labels or more: keep a single one")
    first = next((one for one in sources if one.label_id == main), sources[0])
    rest = [one for one in sources if one is not first]
    merged = replace(
        first,
        span_ids=_once(span for one in (first, *rest) for span in one.span_ids),
        dimensions=tuple(sorted({d for one in sources for d in one.dimensions}, key=DIMENSIONS.index)),
        evidence=_once(piece for one in (first, *rest) for piece in one.evidence),
        impact=first.impact or next((one.impact for one in rest if one.impact), None),
        category=first.category or next((one.category for one in rest if one.category), None),
        description=first.description or next((one.description for one in rest if one.description), ""),
    )
    return _decide_error(connection, "merge", sources, merged, by=by, reason=reason)


def edit(
    connection: Connection,
    label_ids: Sequence[str],
    *,
    by: str,
    reason: str,
    span_ids: Sequence[str] | None = None,
    dimensions: Sequence[Dimension] | None = None,
    impact: Impact | None = None,
    category: str | None = None,
    description: str | None = None,
) -> str:
    """One or several labels, put right; what is not given stays as the first has it. The reason is required."""
    _must_reason(reason, "an edit")
    sources = _sources(connection, label_ids)
    first = sources[0]
    changed = replace(
        first,
        span_ids=first.span_ids if span_ids is None else _once(span_ids),
        dimensions=first.dimensions if dimensions is None else tuple(sorted(set(dimensions), key=DIMENSIONS.index)),
        impact=first.impact if impact is None else impact,
        category=first.category if category is None else category or None,
        description=first.description if description is None else description,
    )
    _must_be_complete(connection, changed)
    return _decide_error(connection, "edit", sources, changed, by=by, reason=reason)


def add(
    connection: Connection,
    trace_id: str,
    *,
    by: str,
    reason: str,
    span_ids: Sequence[str],
    dimensions: Sequence[Dimension],
    impact: Impact | None,
    category: str | None = None,
    description: str = "",
    quote: str = "",
) -> str:
    """An error that no rater saw; gives the gold's label id, by which it is edited and rejected. Needs a reason."""
    _must_reason(reason, "an error that no rater marked")
    if len(_opinions(connection, {trace_id}).get(trace_id, {})) < 2:
        raise AdjudicationError(f"fewer than two people have submitted trace {trace_id}")
    spans = _once(span_ids)
    label = ErrorLabel(
        label_id=f"gold-{uuid.uuid4().hex}",
        trace_id=trace_id,
        annotator=GOLD,
        span_ids=spans,
        dimensions=tuple(sorted(set(dimensions), key=DIMENSIONS.index)),
        impact=impact,
        category=category or None,
        description=description.strip(),
        evidence=(Evidence(quote=quote, span_id=spans[0]),) if quote.strip() and spans else (),
    )
    _must_be_complete(connection, label)
    payload = {"labels": [label.label_id], "error": _body_of(label)}
    _append(connection, trace_id, "error", "add", payload, by, reason)
    return label.label_id


def reject(connection: Connection, label_ids: Sequence[str], *, by: str, reason: str) -> None:
    """These labels are no errors. The reason is required."""
    _must_reason(reason, "a rejection")
    sources = _sources(connection, label_ids)
    _append(
        connection, sources[0].trace_id, "error", "reject", {"labels": [one.label_id for one in sources]}, by, reason
    )


def set_score(
    connection: Connection, trace_id: str, dimension: str, value: float | None, *, by: str, reason: str = ""
) -> None:
    """The final score of a dimension, None for not applicable. Where raters differ the reason is required."""
    if dimension not in DIMENSIONS:
        raise AdjudicationError(f"{dimension!r} is not a dimension: use one of {', '.join(DIMENSIONS)}")
    if value is not None and value not in SCORES:
        raise AdjudicationError(f"{value!r} is not a score: use 0, 1, 2, 3 or not applicable")
    values = {opinion.scores[dimension] for opinion in _opinions(connection, {trace_id}).get(trace_id, {}).values()
             if dimension in opinion.scores}  # fmt: skip
    if values != {value}:
        _must_reason(reason, f"a score of {dimension} that not all raters gave")
    payload = {"dimension": dimension, "value": value, "not_applicable": value is None}
    _append(connection, trace_id, "score", "score", payload, by, reason)


def settle_agreed(connection: Connection, trace_id: str, *, by: str, seed: str, judge: str | None = None) -> int:
    """Decide what needs no deciding: errors that all raters saw, scores that all gave alike. How many it were."""
    shown = item(connection, trace_id, seed=seed, judge=judge)
    if shown is None:
        raise AdjudicationError(f"fewer than two people have submitted trace {trace_id}")
    settled = 0
    for group in shown.dispute.groups:
        if not group.missing and _outcomes(shown.decided, group) == {"undecided"}:
            merge(connection, group.label_ids, by=by, reason=AGREED)
            settled += 1
    for dimension, by_rater in shown.dispute.scores.items():
        values = set(by_rater.values())
        if dimension not in shown.decided.scores and len(values) == 1 and len(by_rater) == len(shown.dispute.raters):
            set_score(connection, trace_id, dimension, values.pop(), by=by, reason=AGREED)
            settled += 1
    return settled


def close(
    connection: Connection, trace_id: str, *, by: str, seed: str, note: str = "", judge: str | None = None
) -> int:
    """Write the gold of a trace and return its version. Raises `AdjudicationError` while something is undecided.

    `judge` is the judge model that is shown beside the people, if any; every gold label names it, and those that were
    shown when something was decided.
    """
    decided_item = item(connection, trace_id, seed=seed, judge=judge)
    if decided_item is None:
        raise AdjudicationError(f"fewer than two people have submitted trace {trace_id}")
    if decided_item.open_points:
        raise AdjudicationError(f"still to be decided: {'; '.join(decided_item.open_points)}")
    version = decided_item.decided.version + 1
    shown = ", ".join(sorted(decided_item.decided.judges | ({judge} if judge else set()))) or None
    _append(connection, trace_id, "done", "close", {"version": version, "judge_shown": shown}, by, note)
    _write_gold(connection, decided_item.decided, version, by, shown)
    record(connection, who=by, what="gold written", subject=trace_id, detail={"version": version})
    return version


def accept_undisputed(engine: Engine, *, by: str, seed: str) -> list[str]:
    """Write the gold of every trace on which nobody differs in anything, each by itself; gives their ids.

    Traces with small differences (a point, a low error that one did not see) are left for a person.
    """
    with read_transaction(engine) as connection:
        alike = [one.dispute for one in undisputed(connection, seed=seed)]
    unanimous = [one.trace_id for one in alike if _is_unanimous(one)]
    return [trace_id for trace_id in unanimous if _accept(engine, trace_id, by=by, seed=seed)]


def _accept(engine: Engine, trace_id: str, *, by: str, seed: str) -> bool:
    """Write the gold of a trace; False where it was decided, or people differ on it, since it was listed."""
    with write_transaction(engine, labels_of(trace_id)) as connection:
        now = item(connection, trace_id, seed=seed)
        if now is None or now.status == "closed" or not _is_unanimous(now.dispute):
            return False
        settle_agreed(connection, trace_id, by=by, seed=seed)
        close(connection, trace_id, by=by, seed=seed, note=AGREED)
    return True


def gold_name(connection: Connection) -> str:
    """The annotator under whose name the gold stands; made where there is none."""
    kind, name = tables.annotator.c.kind, tables.annotator.c.annotator
    known = connection.scalar(select(name).where(kind == ADJUDICATED).order_by(name).limit(1))
    if known is not None:
        return str(known)
    person = connection.scalar(select(name).where(name == GOLD))
    new_name = GOLD if person is None else f"{GOLD} ({ADJUDICATED})"
    ensure_annotator(connection, new_name, kind=ADJUDICATED)
    return new_name


def log_of(connection: Connection, trace_id: str) -> pd.DataFrame:
    """Every decision on a trace: at (UTC), version, author, action, what, reason."""
    rows = connection.execute(select(_table).where(_table.c.trace_id == trace_id).order_by(_table.c.row_key))
    entries = [
        (row.created_at, row.version, row.author, row.action, _subject(orjson.loads(row.payload)), row.reason)
        for row in rows
    ]
    frame = pd.DataFrame(entries, columns=["at", "version", "author", "action", "what", "reason"])
    return frame.assign(at=pd.to_datetime(frame["at"].astype("int64"), unit="us", utc=True))


def _subject(payload: Mapping[str, Any]) -> str:
    if "dimension" in payload:
        return f"{payload['dimension']} {'n/a' if payload['not_applicable'] else payload['value']}"
    labels = len(payload.get("labels", ()))
    return "" if not labels else f"{labels} label{'s' if labels > 1 else ''}"


# ---- the fold --------------------------------------------------------------------------------------------------


def _after(decided: TraceDecisions, row: Row[Any]) -> TraceDecisions:
    payload = orjson.loads(row.payload)
    decided = replace(decided, last=row.row_key)
    if row.subject != "done" and payload.get("judge_shown") is not None:
        decided = replace(decided, judges=decided.judges | {payload["judge_shown"]})
    match row.subject:
        case "done":
            return replace(decided, version=row.version, closed_at=row.created_at, is_open=False)
        case "score":
            value = None if payload["not_applicable"] else payload["value"]
            return replace(decided, scores={**decided.scores, payload["dimension"]: value}, is_open=True)
    label_ids = frozenset(payload["labels"])
    errors = {key: replace(one, sources=one.sources - label_ids) for key, one in decided.errors.items()}
    errors = {key: one for key, one in errors.items() if one.sources}
    rejected = {key: reason for key, reason in decided.rejected.items() if key not in label_ids}
    if row.action == "reject":
        rejected |= dict.fromkeys(sorted(label_ids), row.reason)
    else:
        label = _label_from(payload["error"], row.trace_id)
        errors[label.label_id] = GoldError(
            label_id=label.label_id, sources=label_ids, label=label, action=row.action, reason=row.reason
        )
    return replace(decided, errors=errors, rejected=rejected, is_open=True)


def _outcomes(decided: TraceDecisions, group: ErrorGroup) -> set[str]:
    return {decided.outcome_of(label_id) for label_id in group.label_ids}


def _title(group: ErrorGroup) -> str:
    label = group.labels[0][1]
    return f"{'+'.join(label.dimensions)} {group.impact}"


def _is_unanimous(one: Dispute) -> bool:
    everywhere = all(
        len(scores) == len(one.raters) and len(set(scores.values())) == 1 for scores in one.scores.values()
    )
    return everywhere and all(not group.missing for group in one.groups)


# ---- reading what people said ----------------------------------------------------------------------------------


def _opinions(connection: Connection, trace_ids: Set[str]) -> dict[str, dict[str, Opinion]]:
    """What people submitted blind, by trace (those in the workspace) and person; the gold itself is none of them."""
    nobody = gold_names(connection)
    present = trace_ids & set(connection.scalars(select(schema.trace.c.trace_id)))
    traces = list(present) if len(present) <= FEW else _read_by_two()
    of = [[table.c.trace_id.in_(traces)] for table in _TABLES]
    done = [(r.trace_id, r.annotator) for r in reviews(connection, *of[0]) if r.status == "submitted"]
    errors: dict[tuple[str, str], list[ErrorLabel]] = defaultdict(list)
    first = (tables.error_label.c.occasion == 0, tables.error_label.c.phase == "blind")
    for label in error_labels(connection, *first, *of[1]):
        if label.is_complete:
            errors[label.trace_id, label.annotator].append(label)
    scores = _scores(connection, *of[2])
    opinions: dict[str, dict[str, Opinion]] = defaultdict(dict)
    for key in sorted(done):
        if key[0] in present and key[1] not in nobody:
            opinions[key[0]][key[1]] = Opinion(errors=errors[key], scores=scores[key])
    return dict(opinions)


def _scores(
    connection: Connection, *conditions: ColumnElement[bool]
) -> Mapping[tuple[str, str], Mapping[str, float | None]]:
    """By trace and person: the current blind scores of the dimensions, as `scores_of` gives them."""
    table = tables.score_label
    blind = (table.c.occasion == 0, table.c.phase == "blind", *conditions)
    keys = ("annotator", "trace_id", "occasion", "dimension", "phase")
    rows = connection.execute(
        select(table.c.trace_id, table.c.annotator, table.c.dimension, table.c.value, table.c.not_applicable)
        .where(newest(table, keys, *blind), table.c.dimension.in_(DIMENSIONS), *blind)
        .order_by(table.c.row_key)
    ).all()
    scores: dict[tuple[str, str], dict[str, float | None]] = defaultdict(dict)
    for trace_id, person, dimension, value, not_applicable in rows:
        if not_applicable or value is not None:
            scores[trace_id, person][dimension] = None if not_applicable else value
    return scores


def _read_by_two() -> Select[Any]:
    """The traces that two people or more have submitted at some time: nobody differs on the others."""
    review = tables.review
    return (
        select(review.c.trace_id)
        .where(review.c.occasion == 0, review.c.status == "submitted")
        .group_by(review.c.trace_id)
        .having(func.count(review.c.annotator.distinct()) > 1)
    )


_TABLES = (tables.review, tables.error_label, tables.score_label)


def _said_at(connection: Connection, trace_id: str | None = None) -> dict[str, int]:
    """When people (not the gold) who have submitted a trace last changed something blind on it.

    What somebody still writes is no word of theirs yet: nobody is shown it, and no decision has to wait for it.
    """
    here = [] if trace_id is None else [tables.review.c.trace_id == trace_id]
    done = _submitted(*here).subquery()
    latest: dict[str, int] = {}
    for table in _TABLES[1:]:
        query = (
            select(table.c.trace_id, func.max(table.c.created_at))
            .join(done, (done.c.annotator == table.c.annotator) & (done.c.trace_id == table.c.trace_id))
            .where(table.c.occasion == 0, table.c.phase == "blind")
        )
        if trace_id is not None:
            query = query.where(table.c.trace_id == trace_id)
        for key, at in connection.execute(query.group_by(table.c.trace_id)).all():
            latest[key] = max(latest.get(key, 0), at)
    return latest


def _submitted(*conditions: ColumnElement[bool]) -> Select[Any]:
    """annotator, trace_id: people (not the gold) and the traces that they have submitted now."""
    review = tables.review
    nobody = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)
    first = (review.c.occasion == 0, *conditions)
    return select(review.c.annotator, review.c.trace_id).where(
        newest(review, ("annotator", "trace_id", "occasion"), *first),
        review.c.status == "submitted",
        review.c.annotator.not_in(nobody),
    )


def _spans(
    connection: Connection, opinions: Mapping[str, Mapping[str, Opinion]]
) -> tuple[dict[str, dict[str, str | None]], dict[str, dict[str, int]]]:
    """Parents and reading order of the spans that errors of these traces name."""
    parents: dict[str, dict[str, str | None]] = {trace_id: {} for trace_id in opinions}
    order: dict[str, dict[str, int]] = {trace_id: {} for trace_id in opinions}
    errors = (error for by_rater in opinions.values() for opinion in by_rater.values() for error in opinion.errors)
    named = {span_id for error in errors for span_id in error.span_ids}
    span = schema.span
    for trace_id, span_id, parent, seq in named_spans(connection, named, span.c.parent_span_id, span.c.seq):
        if trace_id in opinions:
            parents[trace_id][span_id] = parent
            order[trace_id][span_id] = seq
    return parents, order


def _sources(connection: Connection, label_ids: Sequence[str]) -> list[ErrorLabel]:
    """What raters said under these ids, in that order; for what nobody says now, the error that it became in the
    gold. Raises `AdjudicationError` for others.
    """
    table = tables.error_label
    ids = list(dict.fromkeys(label_ids))
    if not ids:
        raise AdjudicationError("no label was chosen")
    labels = {
        label.label_id: label for label in error_labels(connection, table.c.label_id.in_(ids), table.c.occasion == 0)
    }
    labels |= {label.label_id: label for label in finding_labels(connection, ids)}
    labels |= _standing(connection, [label_id for label_id in ids if label_id not in labels])
    gone = [label_id for label_id in ids if label_id not in labels]
    if gone:
        raise AdjudicationError(f"label {gone[0]} no longer exists: reload the page")
    sources = [labels[label_id] for label_id in ids]
    if len({label.trace_id for label in sources}) > 1:
        raise AdjudicationError("the labels are of different traces")
    return sources


def _standing(connection: Connection, label_ids: Sequence[str]) -> dict[str, ErrorLabel]:
    """The gold's errors made from these ids, as they stand now, under the ids that were asked for."""
    if not label_ids:
        return {}
    gold = [one for decided in decisions_by_trace(connection).values() for one in decided.errors.values()]
    return {
        label_id: replace(one.label, label_id=label_id)
        for one in gold
        for label_id in one.sources.intersection(label_ids)
    }


# ---- writing ---------------------------------------------------------------------------------------------------


def _decide_error(
    connection: Connection, action: Action, sources: Sequence[ErrorLabel], label: ErrorLabel, *, by: str, reason: str
) -> str:
    trace_id, source_ids = sources[0].trace_id, {one.label_id for one in sources}
    gold_id = _gold_id(decisions_by_trace(connection, trace_id).get(trace_id), source_ids)
    body = _body_of(replace(label, label_id=gold_id))
    _append(connection, trace_id, "error", action, {"labels": sorted(source_ids), "error": body}, by, reason)
    return gold_id


def _gold_id(decided: TraceDecisions | None, source_ids: set[str]) -> str:
    """An error of the gold keeps its id while it is decided anew, so that matches with it stay."""
    for key, one in ({} if decided is None else decided.errors).items():
        if one.sources <= source_ids:
            return key
    return f"gold-{uuid.uuid4().hex}"


def _append(
    connection: Connection,
    trace_id: str,
    subject: str,
    action: str,
    payload: Mapping[str, Any],
    by: str,
    reason: str,
) -> None:
    shown = judge_shown(connection)
    if shown is not None and subject != "done" and reason != AGREED:
        payload = {**payload, "judge_shown": shown}
    done = select(func.coalesce(func.max(_table.c.version), 0)).where(
        _table.c.trace_id == trace_id, _table.c.subject == "done"
    )
    connection.execute(
        insert(_table).values(
            trace_id=trace_id,
            version=int(connection.scalar(done) or 0) + 1,
            author=by,
            subject=subject,
            action=action,
            payload=orjson.dumps(dict(payload)).decode(),
            reason=reason.strip(),
            created_at=time.time_ns() // 1000,
        )
    )
    record(connection, who=by, what=f"adjudication: {action}", subject=trace_id, detail={"reason": reason.strip()})


def _write_gold(connection: Connection, decided: TraceDecisions, version: int, by: str, judge: str | None) -> None:
    gold = gold_name(connection)
    known_errors = {
        label.label_id: label
        for label in error_labels(
            connection, tables.error_label.c.annotator == gold, tables.error_label.c.trace_id == decided.trace_id
        )
    }
    shown: dict[str, Json] = {} if judge is None else {"judge_shown": judge}
    errors = [
        replace(
            one.label,
            annotator=gold,
            phase="blind",
            attributes={
                "gold_version": version,
                "sources": list[Json](sorted(one.sources)),
                "action": one.action,
                **shown,
            },
        )
        for one in decided.errors.values()
    ]
    changed = [label for label in errors if not _says_the_same(known_errors.get(label.label_id), label)]
    scores = [
        ScoreLabel(
            trace_id=decided.trace_id, annotator=gold, dimension=dimension, value=value, not_applicable=value is None
        )
        for dimension, value in decided.scores.items()
    ]
    review = Review(
        trace_id=decided.trace_id,
        annotator=gold,
        status="submitted",
        no_error=not errors,
        reason=f"gold version {version}",
    )
    put_labels(connection, errors=changed, scores=scores, reviews=[review], author=by)
    for label_id in known_errors.keys() - {label.label_id for label in errors}:
        _delete(connection, label_id, by)


def _says_the_same(known: ErrorLabel | None, label: ErrorLabel) -> bool:
    """Whether nothing but the gold's version would change."""
    if known is None:
        return False
    before = {**known.attributes, "gold_version": label.attributes["gold_version"]}
    return replace(known, attributes=before) == label


def _delete(connection: Connection, label_id: str, by: str) -> None:
    table = tables.error_label
    row = connection.execute(
        select(table).where(table.c.label_id == label_id).order_by(table.c.row_key.desc()).limit(1)
    ).one()
    values = {key: value for key, value in row._mapping.items() if key != "row_key"}
    values |= {"deleted": True, "author": by, "op_id": None, "created_at": time.time_ns() // 1000}
    connection.execute(insert(table).values(values))


def _must_reason(reason: str, what: str) -> None:
    if not reason.strip():
        raise AdjudicationError(f"{what} needs a reason: other people read it")


def _must_be_complete(connection: Connection, label: ErrorLabel) -> None:
    known = set(
        connection.scalars(
            select(schema.span.c.span_id)
            .join(schema.trace, schema.trace.c.trace_key == schema.span.c.trace_key)
            .where(schema.trace.c.trace_id == label.trace_id)
        )
    )
    unknown = [span_id for span_id in label.span_ids if span_id not in known]
    if unknown:
        raise AdjudicationError(f"span {unknown[0]!r} is not in trace {label.trace_id}")
    if not label.is_complete:
        raise AdjudicationError("an error needs a span, a dimension and an impact")


def _body_of(label: ErrorLabel) -> dict[str, Any]:
    names = ("label_id", "span_ids", "dimensions", "impact", "category", "description", "evidence")
    return {name: getattr(label, name) for name in names}


def _label_from(body: Mapping[str, Any], trace_id: str) -> ErrorLabel:
    return ErrorLabel(
        label_id=body["label_id"],
        trace_id=trace_id,
        annotator=GOLD,
        span_ids=tuple(body["span_ids"]),
        dimensions=tuple(body["dimensions"]),
        impact=body["impact"],
        category=body["category"],
        description=body["description"],
        evidence=tuple(Evidence(**piece) for piece in body["evidence"]),
    )


def _once(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
