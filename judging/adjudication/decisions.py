"""Adjudication: decisions on what people disagree about, and the gold that follows from them, version by version.

Decisions are rows that are only ever appended. The state of a trace is their fold; gold is written when a
trace is closed, all of it in one transaction, so that no estimate is made from a half-decided trace.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, func, insert, select

from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Json
from tracejury.judging.adjudication.adjudication_items import (
    AGREED,
    GOLD,
    Action,
    ItemRevision,
    TraceDecisions,
    decisions_by_trace,
    gold_name,
    is_unanimous,
    item,
    item_revision,
    opinions_of_people,
    outcomes_of,
    undisputed,
)
from tracejury.judging.adjudication.judge_column import finding_labels, judge_shown
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.records import DIMENSIONS, SCORES, Dimension, ErrorLabel, Evidence, Impact, Review, ScoreLabel
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import labels_of

_table = tables.adjudication


class AdjudicationError(ValueError):
    """A decision that is not taken; the message says why and what to do."""


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


def merge(connection: Connection, label_ids: Sequence[str], *, by: str, reason: str = "") -> str:
    """Several errors are one. Words and impact are those of the first that has them (a judge's finding may have
    none); spans, dimensions and evidence are those of all.
    """
    sources = _sources(connection, label_ids)
    if len(sources) < 2:
        raise AdjudicationError("merging needs two labels or more. Try: keep the single label")
    first, *rest = sources
    merged = replace(
        first,
        span_ids=_once(span for one in sources for span in one.span_ids),
        dimensions=tuple(sorted({d for one in sources for d in one.dimensions}, key=DIMENSIONS.index)),
        evidence=_once(piece for one in sources for piece in one.evidence),
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
    if len(opinions_of_people(connection, {trace_id}).get(trace_id, {})) < 2:
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
    opinions = opinions_of_people(connection, {trace_id}).get(trace_id, {}).values()
    values = {opinion.scores[dimension] for opinion in opinions if dimension in opinion.scores}
    if values != {value}:
        _must_reason(reason, f"a {dimension} score that not all raters gave")
    payload = {"dimension": dimension, "value": value, "not_applicable": value is None}
    _append(connection, trace_id, "score", "score", payload, by, reason)


def settle_agreed(connection: Connection, trace_id: str, *, by: str, seed: str, judge: str | None = None) -> int:
    """Decide what needs no deciding: errors that all raters saw, scores that all gave alike. How many it were."""
    shown = item(connection, trace_id, seed=seed, judge=judge)
    if shown is None:
        raise AdjudicationError(f"fewer than two people have submitted trace {trace_id}")
    settled = 0
    for group in shown.dispute.groups:
        if not group.missing and outcomes_of(shown.decided, group) == {"undecided"}:
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
        raise AdjudicationError(f"still undecided: {'; '.join(decided_item.open_points)}")
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
    unanimous = [one.trace_id for one in alike if is_unanimous(one)]
    return [trace_id for trace_id in unanimous if _accept(engine, trace_id, by=by, seed=seed)]


def _accept(engine: Engine, trace_id: str, *, by: str, seed: str) -> bool:
    """Write the gold of a trace; False where it was decided, or people differ on it, since it was listed."""
    with write_transaction(engine, labels_of(trace_id)) as connection:
        now = item(connection, trace_id, seed=seed)
        if now is None or now.status == "closed" or not is_unanimous(now.dispute):
            return False
        settle_agreed(connection, trace_id, by=by, seed=seed)
        close(connection, trace_id, by=by, seed=seed, note=AGREED)
    return True


def _sources(connection: Connection, label_ids: Sequence[str]) -> list[ErrorLabel]:
    """What raters said under these ids, in that order; for what nobody says now, the error that it became in the
    gold. Raises `AdjudicationError` for others.
    """
    table = tables.error_label
    ids = list(dict.fromkeys(label_ids))
    if not ids:
        raise AdjudicationError("no label was chosen")
    labels = {
        label.label_id: label
        for label in error_labels(connection, is_one_of(table.c.label_id, ids), table.c.occasion == 0)
    }
    labels |= {label.label_id: label for label in finding_labels(connection, ids)}
    labels |= _standing(connection, [label_id for label_id in ids if label_id not in labels])
    gone = [label_id for label_id in ids if label_id not in labels]
    if gone:
        raise AdjudicationError(f"label {gone[0]} no longer exists: reload the page")
    sources = [labels[label_id] for label_id in ids]
    if len({label.trace_id for label in sources}) > 1:
        raise AdjudicationError("the labels belong to different traces")
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
        raise AdjudicationError(f"{what} needs a reason. Try: write one that the raters understand")


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


def _once(values: Any) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
