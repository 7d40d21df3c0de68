"""Runs the offline judge over traces and keeps its verdicts; what it judged before is not judged again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, select

from tracejury.ingest.store import load, read_transaction, trace_ids, write_transaction
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.trace import Json, Trace
from tracejury.judging.checks import MODEL, checks_version, judge_offline
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.records import DIMENSIONS, Call, Dimension, Failure, Verdict
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_cells,
    add_run,
    ensure_judge_version,
    finish_cell,
    set_run_status,
    trace_digests,
)
from tracejury.judging.store import tables
from tracejury.judging.store.locks import JUDGES, cells_of

Progress = Callable[[int, int], None]
_log = logging.getLogger(__name__)


def judge_versions(dimensions: Sequence[Dimension] = DIMENSIONS) -> dict[str, JudgeVersion]:
    """The offline judge's version for each dimension."""
    return {
        dimension: JudgeVersion(rubric=dimension, model=MODEL, rubric_version=checks_version(), mode="checks")
        for dimension in dimensions
    }


@dataclass(frozen=True, kw_only=True)
class OfflineRun:
    """What the offline judge did, or would do: `cells` judged with their `states`, `skipped` as judged before.

    `run` is None where there was nothing to judge, and of a dry run.
    """

    run: int | None
    model: str
    traces: int
    to_judge: int
    cells: int
    states: dict[str, int]
    findings: int
    skipped: int
    cost_usd: float = 0.0


def judge_all(
    engine: Engine,
    *,
    traces: Sequence[str] | None = None,
    dimensions: Sequence[Dimension] = DIMENSIONS,
    author: str = "command",
    progress: Progress | None = None,
    is_dry: bool = False,
) -> OfflineRun:
    """Judge `traces` (default: all) offline under `dimensions`; one transaction per trace.

    A cell that this very version of the checks had judged before, on the same content, is skipped. A dry run (`is_dry`)
    counts what is to be judged, and judges and writes nothing. Raises `KeyError` for a trace that is not here, before
    anything is written.
    """
    versions = judge_versions(dimensions)
    with read_transaction(engine) as connection:
        ids = list(traces) if traces is not None else trace_ids(connection, with_steps=True)
        done = _done(connection, versions)
        digests = trace_digests(connection)
    if absent := [trace_id for trace_id in ids if trace_id not in digests]:
        raise KeyError(f"no trace {absent[0]} in this workspace")
    todo = {t: [d for d in dimensions if (versions[d].version, t, digests.get(t)) not in done] for t in ids}
    todo = {trace_id: missing for trace_id, missing in todo.items() if missing}
    to_judge = sum(len(missing) for missing in todo.values())
    states: Counter[str] = Counter()
    findings = 0
    work = {} if is_dry else todo
    run_key = _new_run(engine, versions, author) if work else None
    for number, (trace_id, missing) in enumerate(work.items()):
        with read_transaction(engine) as connection:
            trace = load(connection, trace_id, with_logs=False)
        verdicts = verdicts_of(trace, missing)
        assert run_key is not None
        with write_transaction(engine, cells_of(run_key)) as connection:
            _keep(connection, run_key, verdicts, versions)
        states.update(verdict.state for verdict in verdicts)
        findings += sum(len(verdict.findings) for verdict in verdicts if isinstance(verdict, Verdict))
        if progress is not None:
            progress(number + 1, len(work))
    if run_key is not None:
        with write_transaction(engine, cells_of(run_key)) as connection:
            set_run_status(connection, run_key, "done")
    return OfflineRun(
        run=run_key,
        model=MODEL,
        traces=len(ids),
        to_judge=to_judge,
        cells=sum(states.values()),
        states=dict(states),
        findings=findings,
        skipped=len(ids) * len(dimensions) - to_judge,
    )


def verdicts_of(trace: Trace, dimensions: Sequence[Dimension]) -> list[Verdict | Failure]:
    """Give the verdicts of the wanted dimensions; a check that breaks on a trace is a failure, never a score."""
    try:
        return [verdict for verdict in judge_offline(trace, render_trace(trace)) if verdict.rubric in dimensions]
    except Exception as error:
        _log.exception("the offline checks failed on trace %s", trace.trace_id)
        reason = f"a check failed: {type(error).__name__}: {error}"
        call = Call(model=MODEL, parameters={"version": checks_version()}, cost_usd=0.0)
        return [
            Failure(rubric=name, trace_id=trace.trace_id, state="error", reason=reason, call=call)
            for name in dimensions
        ]


def _done(connection: Connection, versions: dict[str, JudgeVersion]) -> set[tuple[str, str, str | None]]:
    cell = tables.cell
    hashes = [judge.version for judge in versions.values()]
    rows = connection.execute(
        select(cell.c.judge_version, cell.c.trace_id, cell.c.trace_digest).where(
            is_one_of(cell.c.judge_version, hashes), cell.c.state.in_(("scored", "not_applicable"))
        )
    )
    return set(rows.all())


def _new_run(engine: Engine, versions: dict[str, JudgeVersion], author: str) -> int:
    with write_transaction(engine, JUDGES) as connection:
        for judge in versions.values():
            ensure_judge_version(connection, judge)
        spec: dict[str, Json] = {"model": MODEL, "judges": [*versions], "repeats": 1, "mode": "checks"}
        return add_run(connection, name="offline checks", spec=spec, author=author, status="running")


def _keep(
    connection: Connection, run_key: int, verdicts: Sequence[Verdict | Failure], versions: dict[str, JudgeVersion]
) -> None:
    cell = tables.cell
    add_cells(
        connection,
        run_key,
        [(versions[v.rubric].version, v.rubric, v.trace_id, 0) for v in verdicts],
    )
    for verdict in verdicts:
        key = connection.scalar(
            select(cell.c.cell_key).where(
                cell.c.run_key == run_key, cell.c.rubric == verdict.rubric, cell.c.trace_id == verdict.trace_id
            )
        )
        assert key is not None
        finish_cell(connection, key, verdict)
