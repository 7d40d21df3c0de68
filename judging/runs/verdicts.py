"""What judges say: judge versions, runs, and the outcome of each cell with its findings and citations."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson
from sqlalchemy import Connection, Row, bindparam, insert, select, update

from tracejury.ingest.parse import clean_text, json_text
from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_in_list, is_one_of
from tracejury.ingest.texts import compress, decompress
from tracejury.ingest.trace import Json
from tracejury.judging.records import ANSWERED_STATES, FAILED_STATES, Call, Citation, Failure, Finding, Verdict
from tracejury.judging.store import tables

_cell, _finding, _citation = tables.cell, tables.finding, tables.citation

# statements of every finished cell, built once: building them costs more than running them
_FIRST_FINDING = select(_finding.c.cell_key).where(is_in_list(_finding.c.cell_key, "of_cells")).limit(1)
_SET_CELL = update(_cell).where(_cell.c.cell_key == bindparam("of_cell"))
_ADD_FINDINGS = insert(_finding).returning(_finding.c.finding_key, sort_by_parameter_order=True)
_ADD_CITATIONS = insert(_citation)


@dataclass(frozen=True, kw_only=True)
class JudgeVersion:
    """Everything that could change what a judge says; `version` is the hash of it all."""

    rubric: str
    model: str
    rubric_version: str
    mode: str
    rubric_body: Json = None
    prompt_order: str = ""
    agent_text: str = ""
    parameters: Mapping[str, Json] = field(default_factory=dict)

    @property
    def version(self) -> str:
        parts = [self.rubric, self.model, self.rubric_version, self.mode, self.prompt_order, self.agent_text]
        content = orjson.dumps([*parts, dict(self.parameters)], option=orjson.OPT_SORT_KEYS)
        return blake2b(content, digest_size=8).hexdigest()


def ensure_judge_version(connection: Connection, judge: JudgeVersion) -> str:
    """The version's hash, its row made where it is not there."""
    table = tables.judge_version
    known = connection.scalar(select(table.c.judge_version).where(table.c.judge_version == judge.version))
    if known is None:
        connection.execute(
            insert(table).values(
                judge_version=judge.version,
                rubric=judge.rubric,
                model=judge.model,
                rubric_version=judge.rubric_version,
                rubric_body=json_text(judge.rubric_body),
                prompt_order=judge.prompt_order,
                agent_text=judge.agent_text,
                parameters=json_text(dict(judge.parameters)),
                mode=judge.mode,
                created_at=now(),
            )
        )
    return judge.version


def add_run(
    connection: Connection,
    *,
    name: str,
    spec: Mapping[str, Json],
    author: str,
    status: str = "queued",
    budget_usd: float | None = None,
) -> int:
    """A new run; returns its key."""
    result = connection.execute(
        insert(tables.run).values(
            name=name,
            status=status,
            spec=json_text(dict(spec)),
            author=author,
            budget_usd=budget_usd,
            message="",
            created_at=now(),
        )
    )
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


def set_run_status(connection: Connection, run_key: int, status: str, message: str = "") -> None:
    ended = now() if status in {"done", "cancelled"} else None
    connection.execute(
        update(tables.run).where(tables.run.c.run_key == run_key).values(status=status, message=message, ended_at=ended)
    )


def add_cells(connection: Connection, run_key: int, cells: Iterable[tuple[str, str, str, int]]) -> int:
    """Cells `(judge_version, rubric, trace_id, repeat)` that are not there yet; returns how many were new."""
    digests = trace_digests(connection)
    there = set(
        connection.execute(
            select(_cell.c.judge_version, _cell.c.trace_id, _cell.c.repeat).where(_cell.c.run_key == run_key)
        ).all()
    )
    rows = [
        {
            "run_key": run_key,
            "judge_version": version,
            "rubric": rubric,
            "trace_id": trace_id,
            "trace_digest": digests.get(trace_id),
            "repeat": repeat,
            "state": "pending",
            "attempts": 0,
        }
        for version, rubric, trace_id, repeat in cells
        if (version, trace_id, repeat) not in there
    ]
    if rows:
        connection.execute(insert(_cell), rows)
    return len(rows)


def trace_digests(connection: Connection) -> dict[str, str]:
    return dict(connection.execute(select(schema.trace.c.trace_id, schema.trace.c.digest)).all())


def finish_cell(connection: Connection, cell_key: int, outcome: Verdict | Failure) -> None:
    """Store the outcome of a cell and its findings, in place of what the cell held before."""
    finish_cells(connection, [(cell_key, outcome)])


def finish_cells(connection: Connection, outcomes: Sequence[tuple[int, Verdict | Failure]]) -> None:
    """`finish_cell` of many, in a handful of statements. Raises ValueError for a cell that has findings already."""
    if not outcomes:
        return
    final = connection.scalar(_FIRST_FINDING, {"of_cells": [key for key, _ in outcomes]})
    if final is not None:
        raise ValueError(f"cell {final} has findings already: its outcome is final")
    connection.execute(_SET_CELL, [{"of_cell": key, **_outcome_row(outcome)} for key, outcome in outcomes])
    _add_findings(
        connection,
        [
            (key, position, finding)
            for key, outcome in outcomes
            if isinstance(outcome, Verdict)
            for position, finding in enumerate(outcome.findings)
        ],
    )


def outcome(connection: Connection, cell_key: int) -> Verdict | Failure | None:
    """The outcome of a cell as it was stored; None while it has none. Raises `KeyError` without such a cell."""
    row = connection.execute(select(_cell).where(_cell.c.cell_key == cell_key)).one_or_none()
    if row is None:
        raise KeyError(f"no cell {cell_key}")
    return to_outcome(row, findings_of(connection, [cell_key]).get(cell_key, ()))


def to_outcome(row: Row[Any], findings: Iterable[tuple[int, Finding]]) -> Verdict | Failure | None:
    """A cell's row and its findings as a record."""
    call = Call(
        model=row.model or "",
        parameters=orjson.loads(row.parameters or "{}"),
        prompt_hash=row.prompt_hash or "",
        raw_reply=_text(row.raw_reply),
        repair_reply=_text(row.repair_reply),
        reasoning=_text(row.reasoning),
        finish_reason=row.finish_reason,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        cached_tokens=row.cached_tokens,
        cost_usd=row.cost_usd,
        latency_s=row.latency_s,
        attempts=row.attempts,
    )
    if row.state in ANSWERED_STATES:
        return Verdict(
            rubric=row.rubric,
            trace_id=row.trace_id,
            state=row.state,
            score=row.score,
            criteria=row.criteria or "",
            rationale=row.rationale or "",
            findings=tuple(finding for _, finding in findings),
            call=call,
            reason=row.reason,
            notes=tuple(orjson.loads(row.notes or "[]")),
        )
    if row.state in FAILED_STATES:
        return Failure(rubric=row.rubric, trace_id=row.trace_id, state=row.state, reason=row.reason or "", call=call)
    return None


def findings_of(connection: Connection, cell_keys: Iterable[int]) -> dict[int, list[tuple[int, Finding]]]:
    """Findings with their keys, by cell, in the judge's order."""
    keys = list(cell_keys)
    by_cell: dict[int, list[tuple[int, Finding]]] = {}
    for at in range(0, len(keys), 5000):
        of_cells = is_one_of(_finding.c.cell_key, keys[at : at + 5000])
        citations: dict[int, list[Citation]] = {}
        rows = connection.execute(
            select(_citation)
            .join(_finding, _finding.c.finding_key == _citation.c.finding_key)
            .where(of_cells)
            .order_by(_citation.c.finding_key, _citation.c.position)
        )
        for row in rows:
            citations.setdefault(row.finding_key, []).append(Citation(cite=row.cite, span_id=row.span_id))
        rows = connection.execute(select(_finding).where(of_cells).order_by(_finding.c.cell_key, _finding.c.position))
        for row in rows:
            finding = Finding(
                description=row.description,
                evidence=row.evidence,
                citations=tuple(citations.get(row.finding_key, ())),
                dimension=row.dimension,
                impact=row.impact,
                category=row.category,
                evidence_place=row.evidence_place,
                evidence_span_id=row.evidence_span_id,
                check=row.check_name,
            )
            by_cell.setdefault(row.cell_key, []).append((row.finding_key, finding))
    return by_cell


def cited_spans(connection: Connection, finding_keys: Sequence[int]) -> dict[int, frozenset[str]]:
    """The spans that each finding cites."""
    citation = tables.citation
    spans: dict[int, set[str]] = defaultdict(set)
    query = select(citation.c.finding_key, citation.c.span_id).where(
        is_one_of(citation.c.finding_key, finding_keys), citation.c.span_id.is_not(None)
    )
    for finding_key, span_id in connection.execute(query).all():
        spans[finding_key].add(span_id)
    return {key: frozenset(span_ids) for key, span_ids in spans.items()}


def now() -> int:
    """UTC microseconds since 1970."""
    return time.time_ns() // 1000


def _outcome_row(outcome: Verdict | Failure) -> dict[str, Any]:
    call = outcome.call
    row: dict[str, Any] = {
        "state": outcome.state,
        "reason": outcome.reason,
        "model": call.model,
        "parameters": json_text(dict(call.parameters)),
        "prompt_hash": call.prompt_hash,
        "raw_reply": _body(call.raw_reply),
        "repair_reply": _body(call.repair_reply),
        "reasoning": _body(call.reasoning),
        "finish_reason": call.finish_reason,
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "cached_tokens": call.cached_tokens,
        "cost_usd": call.cost_usd,
        "latency_s": call.latency_s,
        "attempts": call.attempts,
        "finished_at": now(),
        "score": None,
        "criteria": None,
        "rationale": None,
        "notes": "[]",
    }
    if isinstance(outcome, Verdict):
        row |= {
            "score": outcome.score,
            "criteria": outcome.criteria,
            "rationale": outcome.rationale,
            "notes": json_text([clean_text(note) for note in outcome.notes]),
        }
    return _storable(row)


def _storable(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose texts every database takes: NUL and lone surrogates of a model's answer as readable escapes."""
    return {name: clean_text(value) if isinstance(value, str) else value for name, value in row.items()}


def _add_findings(connection: Connection, findings: Sequence[tuple[int, int, Finding]]) -> None:
    """Findings of cells, each with its cell's key and its position there."""
    if not findings:
        return
    keys = connection.scalars(
        _ADD_FINDINGS,
        [
            _storable(
                {
                    "cell_key": cell_key,
                    "position": position,
                    "description": finding.description,
                    "evidence": finding.evidence,
                    "dimension": finding.dimension,
                    "impact": finding.impact,
                    "category": finding.category,
                    "check_name": finding.check,
                    "evidence_place": finding.evidence_place,
                    "evidence_span_id": finding.evidence_span_id,
                }
            )
            for cell_key, position, finding in findings
        ],
    ).all()
    citations = [
        {"finding_key": key, "position": number, "cite": clean_text(citation.cite), "span_id": citation.span_id}
        for key, (_, _, finding) in zip(keys, findings, strict=True)
        for number, citation in enumerate(finding.citations)
    ]
    if citations:
        connection.execute(_ADD_CITATIONS, citations)


def _body(text: str | None) -> bytes | None:
    return None if text is None else compress(text.encode("utf-8", "surrogatepass"), level=3)


def _text(body: bytes | None) -> str | None:
    return None if body is None else decompress(body).decode("utf-8", "surrogatepass")
