"""What is to be adjudicated: traces that people disagree about, what they say, and what is decided so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import orjson
import pandas as pd
from sqlalchemy import Connection, Row, Select, Table, func, select
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.adjudication.disputes import Dispute, ErrorGroup, Opinion, dispute, worst_first
from tracejury.judging.adjudication.judge_column import JUDGE, judge_opinion
from tracejury.judging.labels.label_store import error_labels, newest, reviews
from tracejury.judging.labels.submissions import submitted
from tracejury.judging.records import DIMENSIONS, ErrorLabel, Evidence
from tracejury.judging.store import tables
from tracejury.judging.store.people import ensure_annotator, gold_names
from tracejury.judging.store.revisions import Revision, newest_rows, read_revision, traces_parts
from tracejury.judging.store.spans import named_spans

GOLD = "gold"
ADJUDICATED = "adjudicated"
AGREED = "all raters agree"
Action = Literal["keep", "merge", "edit", "reject", "add"]
Status = Literal["open", "closed", "changed"]
LabelOutcome = Literal["gold", "rejected", "undecided"]
_table = tables.adjudication
FEW = 200  # traces that are asked for by name; of more, all that two people submitted are read


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
    """A trace on the adjudicator's desk. `changed_at`: when people last changed what they said of it."""

    dispute: Dispute
    decided: TraceDecisions
    changed_at: int = 0

    @cached_property
    def open_points(self) -> tuple[str, ...]:
        """What is still to be decided, in words."""
        points = [
            f"{len(group.labels)} {'label' if len(group.labels) == 1 else 'labels'} of one error ({_title(group)})"
            for group in self.dispute.groups
            if "undecided" in outcomes_of(self.decided, group)
        ]
        points += [
            f"the score of {dimension}" for dimension in self.dispute.scores if dimension not in self.decided.scores
        ]
        return tuple(points)

    @cached_property
    def status(self) -> Status:
        if self.decided.closed_at is None or self.decided.is_open:
            return "open"
        return "changed" if self.changed_at > self.decided.closed_at or self.open_points else "closed"

    @property
    def revision(self) -> ItemRevision:
        return self.decided.last, self.changed_at

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
    changed_at: Mapping[str, int]
    states: Mapping[str, tuple[int, ...]]
    nobody: frozenset[str]
    """The names that gold stands under."""


def all_opinions(connection: Connection, *, seed: str, before: Opinions | None = None) -> Opinions:
    """What people said; decisions change nothing of it.

    Of `before` (of the same seed) all is kept but the traces that changed since.
    """
    states, nobody = _states(connection), gold_names(connection)
    empty = Opinions(disputes={}, changed_at={}, states={}, nobody=nobody)
    known = before if before is not None and before.nobody == nobody else empty
    changed = {trace_id for trace_id, state in states.items() if known.states.get(trace_id) != state}
    kept = states.keys() - changed
    disputes = {key: one for key, one in known.disputes.items() if key in kept} | _disputes_of(
        connection, changed, seed
    )
    changed_at = {key: at for key, at in known.changed_at.items() if key in kept} | _changed_at(connection, changed)
    return Opinions(
        disputes={key: disputes[key] for key in sorted(disputes)},
        changed_at=changed_at,
        states=states,
        nobody=nobody,
    )


def _disputes_of(connection: Connection, trace_ids: Set[str], seed: str) -> dict[str, Dispute]:
    if not trace_ids:
        return {}
    opinions = {
        trace_id: by_rater
        for trace_id, by_rater in opinions_of_people(connection, trace_ids).items()
        if len(by_rater) > 1
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
    return read_revision(connection, [*traces_parts(), *newest_rows(*_TABLES)])


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
    sorted_items = _items(connection, worst_first(opinions.disputes.values()), opinions.changed_at, ruled)
    return sorted_items if everything else [one for one in sorted_items if one.status != "closed"]


def item(connection: Connection, trace_id: str, *, seed: str, judge: str | None = None) -> AdjudicationItem | None:
    """One trace, disputed or not; None where fewer than two people have submitted.

    With `judge` that judge model is one more rater of the case; whether people differ is asked of people alone.
    """
    opinions = opinions_of_people(connection, {trace_id})
    if len(opinions.get(trace_id, {})) < 2:
        return None
    opinion = None if judge is None else judge_opinion(connection, trace_id, judge)
    if opinion is not None:
        opinions[trace_id][JUDGE] = opinion
    parents, order = _spans(connection, opinions)
    one = dispute(trace_id, opinions[trace_id], parents=parents[trace_id], order=order[trace_id], seed=seed)
    decided = decisions_by_trace(connection, trace_id).get(trace_id, TraceDecisions(trace_id=trace_id))
    return AdjudicationItem(
        dispute=one, decided=decided, changed_at=_changed_at(connection, [trace_id]).get(trace_id, 0)
    )


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
        connection, (one for one in every.disputes.values() if not one.is_disputed), every.changed_at, ruled
    )
    return [one for one in candidates if one.status != "closed"]


def _items(
    connection: Connection,
    disputes: Iterable[Dispute],
    changed_at: Mapping[str, int],
    ruled: Mapping[str, TraceDecisions] | None,
) -> list[AdjudicationItem]:
    ruled = decisions_by_trace(connection) if ruled is None else ruled
    return [
        AdjudicationItem(
            dispute=one,
            decided=ruled.get(one.trace_id) or TraceDecisions(trace_id=one.trace_id),
            changed_at=changed_at.get(one.trace_id, 0),
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
    return decided.last, _changed_at(connection, [trace_id]).get(trace_id, 0)


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
        label = label_from(payload["error"], row.trace_id)
        errors[label.label_id] = GoldError(
            label_id=label.label_id, sources=label_ids, label=label, action=row.action, reason=row.reason
        )
    return replace(decided, errors=errors, rejected=rejected, is_open=True)


def outcomes_of(decided: TraceDecisions, group: ErrorGroup) -> set[str]:
    return {decided.outcome_of(label_id) for label_id in group.label_ids}


def _title(group: ErrorGroup) -> str:
    label = group.labels[0][1]
    return f"{'+'.join(label.dimensions)} {group.impact}"


def is_unanimous(one: Dispute) -> bool:
    everywhere = all(
        len(scores) == len(one.raters) and len(set(scores.values())) == 1 for scores in one.scores.values()
    )
    return everywhere and all(not group.missing for group in one.groups)


# ---- reading what people said ----------------------------------------------------------------------------------


def opinions_of_people(connection: Connection, trace_ids: Set[str]) -> dict[str, dict[str, Opinion]]:
    """What people submitted blind, by trace (those in the workspace) and person; the gold itself is none of them."""
    nobody = gold_names(connection)
    present = trace_ids & set(connection.scalars(select(schema.trace.c.trace_id)))
    of = [
        [is_one_of(table.c.trace_id, present) if len(present) <= FEW else table.c.trace_id.in_(_read_by_two())]
        for table in _TABLES
    ]
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


def _changed_at(connection: Connection, trace_ids: Collection[str]) -> dict[str, int]:
    """When people (not the gold) who have submitted one of these traces last changed something blind on it.

    What somebody still writes is no word of theirs yet: nobody is shown it, and no decision has to wait for it.
    """
    few = len(trace_ids) <= FEW
    done = _submitted(*([is_one_of(tables.review.c.trace_id, trace_ids)] if few else [])).subquery()
    latest: dict[str, int] = {}
    for table in _TABLES[1:]:
        here = [is_one_of(table.c.trace_id, trace_ids)] if few else []
        query = (
            select(table.c.trace_id, func.max(table.c.created_at))
            .join(done, (done.c.annotator == table.c.annotator) & (done.c.trace_id == table.c.trace_id))
            .where(table.c.occasion == 0, table.c.phase == "blind", *here)
        )
        for key, at in connection.execute(query.group_by(table.c.trace_id)).all():
            latest[key] = max(latest.get(key, 0), at)
    return {key: latest[key] for key in trace_ids if key in latest}


def _submitted(*conditions: ColumnElement[bool]) -> Select[Any]:
    """annotator, trace_id: people (not the gold) and the traces that they have submitted now."""
    review = tables.review.c
    nobody = select(tables.annotator.c.annotator).where(tables.annotator.c.kind == ADJUDICATED)
    return submitted(review.annotator, review.trace_id, of=conditions).where(review.annotator.not_in(nobody))


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


def label_from(body: Mapping[str, Any], trace_id: str) -> ErrorLabel:
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
