"""Workspaces for the tests of pages: filled once with the shipped samples, copied for each test."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from tracejury.data import __file__ as data_file
from tracejury.ingest.batch import ingest
from tracejury.ingest.labels import FailedReply, JudgeReply, read_replies
from tracejury.ingest.store import load, read_transaction, write_transaction
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.labels import trail_answers as trail
from tracejury.judging.labels.exchange import read_tracejury
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import Call, Failure, Verdict
from tracejury.judging.reports.frames import revision
from tracejury.judging.runs.offline import judge_all
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_cells,
    add_run,
    ensure_judge_version,
    finish_cell,
    set_run_status,
)
from tracejury.judging.store import Workspace, open_workspace
from tracejury.judging.store.people import ensure_annotator
from tracejury.judging.store.revisions import Revision

DATA = Path(str(data_file)).parent
TRACES = 6
REPEATED = "steady-model"
"""A judge of LC with three runs; the third run of the first trace failed, other scores are in `RUN_SCORES`."""
RUN_SCORES = ((3, 3, None), (2, 2, 2), (0, 1, 0), (3, 2, 3), (1, 1, 1), (0, 0, 0))


def now_of(space: Workspace) -> Revision:
    with read_transaction(space.engine) as connection:
        return revision(connection)


def filled(home: Path) -> Workspace:
    """Six sample traces with two people's labels, the offline judge, two imported judges and one with three runs."""
    workspace = open_workspace(home)
    engine = workspace.engine
    ingest(engine, [DATA / "samples" / "trail"])
    for name in ("ada", "ben"):
        labels = read_tracejury((DATA / "labels" / f"{name}.json").read_bytes(), name)
        with write_transaction(engine) as connection:
            ensure_annotator(connection, name)
            put_labels(connection, errors=labels.errors, scores=labels.scores, reviews=labels.reviews, author="test")
    judge_all(engine)
    for folder in ("careful-judge", "hasty-judge"):
        import_outcomes(engine, _outcomes(workspace, folder), model=folder, author="test")
    _repeated(workspace)
    propose_matches(engine)
    return workspace


def of_people(home: Path, names: tuple[str, ...] = ("ada", "ben")) -> Workspace:
    """Six sample traces with people's labels and no judge; who has no labels of their own says what ben says."""
    workspace = open_workspace(home)
    ingest(workspace.engine, [DATA / "samples" / "trail"])
    for name in names:
        file = DATA / "labels" / f"{name}.json"
        given = read_tracejury((file if file.exists() else DATA / "labels" / "ben.json").read_bytes(), name)
        own = {"annotator": name}
        errors = [replace(error, label_id=f"{name}-{place}", **own) for place, error in enumerate(given.errors)]
        scores, reviews = [replace(one, **own) for one in given.scores], [replace(one, **own) for one in given.reviews]
        with write_transaction(workspace.engine) as connection:
            ensure_annotator(connection, name)
            put_labels(connection, errors=errors, scores=scores, reviews=reviews, author="test")
    return workspace


def _outcomes(workspace: Workspace, folder: str) -> list[Verdict | Failure]:
    outcomes: list[Verdict | Failure] = []
    for reply in read_replies(DATA / "samples" / "predictions" / folder):
        assert isinstance(reply, (JudgeReply, FailedReply))
        with read_transaction(workspace.engine) as connection:
            text = render_trace(load(connection, reply.trace_id, with_logs=False))
        outcomes.append(trail.to_outcome(reply, model=folder, reading=text))
    return outcomes


def _repeated(workspace: Workspace) -> None:
    from sqlalchemy import select

    from tracejury.ingest.store import trace_ids
    from tracejury.judging.store.tables import cell

    with write_transaction(workspace.engine) as connection:
        version = ensure_judge_version(
            connection, JudgeVersion(rubric="LC", model=REPEATED, rubric_version="1", mode="trace")
        )
        run = add_run(connection, name="three runs", spec={"rubrics": ["LC"], "models": [REPEATED]}, author="test")
        ids = trace_ids(connection)
        add_cells(connection, run, [(version, "LC", t, repeat) for t in ids for repeat in range(3)])
        rows = connection.execute(select(cell).where(cell.c.run_key == run)).all()
        for row in rows:
            score = RUN_SCORES[ids.index(row.trace_id)][row.repeat]
            call = Call(
                model=REPEATED, raw_reply=f'{{"score": {score}}}', cost_usd=0.25, latency_s=1.5, prompt_tokens=1000
            )
            if score is None:
                reason = "the reply is no JSON"
                finish_cell(
                    connection,
                    row.cell_key,
                    Failure(rubric="LC", trace_id=row.trace_id, state="unparsable", reason=reason, call=call),
                )
                continue
            finish_cell(
                connection,
                row.cell_key,
                Verdict(
                    rubric="LC",
                    trace_id=row.trace_id,
                    state="scored",
                    score=score,
                    criteria="read the trace",
                    rationale=f"The agent's steps earn {score} of 3.",
                    findings=(),
                    call=call,
                ),
            )
        set_run_status(connection, run, "done")


def hold_blind(space: Workspace, who: str, trace_id: str) -> None:
    """Put the trace into a blind queue and hand it to this person."""
    with write_transaction(space.engine) as connection:
        key = make_queue(connection, QueueSpec(name=f"{who}'s own", author="root", k=9), [trace_id], now=1)
    assert next_item(space.engine, key, who, now=time.time_ns() // 1000) is not None
