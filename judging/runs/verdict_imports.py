"""Judge outputs made elsewhere, into the store; and everything judges said, out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Literal

import orjson
from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from tracejury.ingest.store import TRACES, load, read_transaction, schema, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Json
from tracejury.judging.judges.citations import resolve_citations
from tracejury.judging.judges.evidence import place_evidence
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.records import Failure, Finding, Verdict
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_cells,
    add_run,
    ensure_judge_version,
    findings_of,
    finish_cell,
    set_run_status,
    to_outcome,
)
from tracejury.judging.store import tables
from tracejury.judging.store.locks import JUDGES, cells_of


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What came of outcomes: those stored (`new`), those there already; findings and citations of all given."""

    new: int
    duplicates: int
    findings: int
    citations: int
    unresolved_citations: int


def import_outcomes(
    engine: Engine,
    outcomes: Sequence[Verdict | Failure],
    *,
    model: str,
    author: str,
    repeat: int | None = None,
    mode: Literal["imported", "scores"] = "imported",
) -> Imported:
    """Store outcomes of a judge called `model`; an outcome that is there already, word for word, is not repeated.

    Different outcomes for one trace become repeats 0, 1, ...; `repeat` says which repeat these
    are, so that equal answers of several runs are kept apart. `mode` scores: who gave them was asked for no errors.
    """
    resolve_waiting(engine)
    findings = [one for outcome in outcomes if isinstance(outcome, Verdict) for one in outcome.findings]
    citations = [citation for finding in findings for citation in finding.citations]
    # no trace comes meanwhile: a citation would wait for one that is there
    with write_transaction(engine, JUDGES, TRACES) as connection:
        versions = {
            rubric: ensure_judge_version(
                connection, JudgeVersion(rubric=rubric, model=model, rubric_version="", mode=mode)
            )
            for rubric in dict.fromkeys(outcome.rubric for outcome in outcomes)
        }
        there = _there(connection, list(versions.values()), repeat)
        new = [outcome for outcome in outcomes if _identity(outcome) not in there]
        if new:
            spec: dict[str, Json] = {"model": model, "judges": list(versions), "mode": mode}
            run = add_run(connection, name=f"imported: {model}", spec=spec, author=author, status="running")
            _store(connection, run, new, versions, repeat)
            set_run_status(connection, run, "done")
    return Imported(
        new=len(new),
        duplicates=len(outcomes) - len(new),
        findings=len(findings),
        citations=len(citations),
        unresolved_citations=sum(citation.span_id is None for citation in citations),
    )


def export_outcomes(connection: Connection) -> bytes:
    """Every finished cell as JSON: `{"format", "version", "verdicts": [...]}`; failures are among them."""
    cell, version = tables.cell, tables.judge_version
    rows = connection.execute(
        select(cell, version.c.mode, version.c.rubric_version, version.c.model.label("judge_model"))
        .join(version, version.c.judge_version == cell.c.judge_version)
        .where(cell.c.finished_at.is_not(None))
        .order_by(cell.c.cell_key)
    ).all()
    findings = findings_of(connection, [row.cell_key for row in rows])
    verdicts = []
    for row in rows:
        outcome = to_outcome(row, findings.get(row.cell_key, ()))
        if outcome is not None:
            about = {"run": row.run_key, "repeat": row.repeat, "judge_model": row.judge_model, "mode": row.mode}
            about |= {"judge_version": row.judge_version, "trace_digest": row.trace_digest}
            verdicts.append(about | asdict(outcome))
    document = {"format": "tracejury-verdicts", "version": 1, "verdicts": verdicts}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _identity(outcome: Verdict | Failure) -> tuple[str, str, str, str]:
    return (outcome.rubric, outcome.trace_id, outcome.state, outcome.call.raw_reply or "")


def resolve_waiting(engine: Engine) -> int:
    """Resolve citations of verdicts that were stored before their trace came; returns how many cells that were."""
    cell = tables.cell
    with read_transaction(engine) as connection:
        waiting = connection.execute(
            select(cell.c.cell_key, cell.c.trace_id, cell.c.run_key)
            .join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
            .where(cell.c.trace_digest.is_(None), cell.c.finished_at.is_not(None))
            .order_by(cell.c.trace_id)
        ).all()
    for trace_id, group in groupby(waiting, key=lambda row: row.trace_id):
        rows = list(group)
        with write_transaction(engine, TRACES, *{cells_of(row.run_key) for row in rows}) as connection:
            digest = connection.scalar(select(schema.trace.c.digest).where(schema.trace.c.trace_id == trace_id))
            if digest is None:  # removed again meanwhile
                continue
            text = render_trace(load(connection, trace_id, with_logs=False))
            keys = [row.cell_key for row in rows]
            for findings in findings_of(connection, keys).values():
                for finding_key, finding in findings:
                    _resolve(connection, finding_key, finding, text)
            connection.execute(update(cell).where(is_one_of(cell.c.cell_key, keys)).values(trace_digest=digest))
    return len(waiting)


def _resolve(connection: Connection, finding_key: int, finding: Finding, text: TraceText) -> None:
    citation, table = tables.citation, tables.finding
    cites = resolve_citations((one.cite for one in finding.citations), text)
    spans = [one.span_id for one in cites]
    connection.execute(delete(citation).where(citation.c.finding_key == finding_key))
    for position, one in enumerate(cites):
        row = {"finding_key": finding_key, "position": position, "cite": one.cite, "span_id": one.span_id}
        connection.execute(insert(citation).values(row))
    place = place_evidence(text, finding.evidence, [span_id for span_id in spans if span_id is not None])
    if place is not None:
        connection.execute(
            update(table)
            .where(table.c.finding_key == finding_key)
            .values(evidence_place=place.place, evidence_span_id=place.span_id)
        )


def _there(connection: Connection, versions: Sequence[str], repeat: int | None) -> set[tuple[str, str, str, str]]:
    cell = tables.cell
    conditions: list[ColumnElement[bool]] = [is_one_of(cell.c.judge_version, versions), cell.c.finished_at.is_not(None)]
    if repeat is not None:
        conditions.append(cell.c.repeat == repeat)
    rows = connection.execute(select(cell).where(*conditions))
    outcomes = (to_outcome(row, ()) for row in rows.all())
    return {_identity(outcome) for outcome in outcomes if outcome is not None}


def _store(
    connection: Connection,
    run_key: int,
    outcomes: Sequence[Verdict | Failure],
    versions: dict[str, str],
    repeat: int | None,
) -> None:
    cell = tables.cell
    for outcome in outcomes:
        version = versions[outcome.rubric]
        number = repeat
        if number is None:
            newest = select(func.max(cell.c.repeat)).where(
                cell.c.judge_version == version, cell.c.trace_id == outcome.trace_id
            )
            last = connection.scalar(newest)
            number = 0 if last is None else int(last) + 1
        add_cells(connection, run_key, [(version, outcome.rubric, outcome.trace_id, number)])
        key = connection.scalar(
            select(cell.c.cell_key).where(
                cell.c.run_key == run_key,
                cell.c.judge_version == version,
                cell.c.trace_id == outcome.trace_id,
                cell.c.repeat == number,
            )
        )
        assert key is not None
        finish_cell(connection, key, outcome)
