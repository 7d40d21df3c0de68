"""Annotators, judges and ingest write to PostgreSQL at the same time: none waits for another, nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select
from tests.build import small_trace, span_id
from tests.judging.grid import Counting, Grid, plan_more
from tests.judging.team import many_traces, queue_of, submit, trace_id

from tracejury.ingest.batch import store
from tracejury.ingest.store import TRACES, read_transaction, write_transaction
from tracejury.judging.adjudication import adjudication_items, decisions
from tracejury.judging.integrity import check_opinions
from tracejury.judging.juries.joint_verdicts import keep_joint_verdicts
from tracejury.judging.labels import guidelines
from tracejury.judging.labels.apply_ops import Applied, apply_ops
from tracejury.judging.labels.comments import comments
from tracejury.judging.labels.my_work import return_traces
from tracejury.judging.labels.ops import Op
from tracejury.judging.labels.put_labels import import_labels
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.matching.compared import newest_label
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import Call, ErrorLabel, Review, Verdict
from tracejury.judging.removal import remove_traces
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.verdict_imports import import_outcomes, resolve_waiting
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.locks import COMMENTS, GUIDELINE, JUDGES, MATCHES, QUEUES, labels_of
from tracejury.judging.store.locks import PEOPLE as PEOPLE_LOCK
from tracejury.judging.store.people import add_person, sign_out
from tracejury.judging.store.revisions import Revision, revision

ITEMS, PEOPLE, WANTED, EACH, GOLD = 8, 6, 2, 3, 4
PATIENCE_S = 60


@pytest.fixture
def space(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("TRACEJURY_DATABASE", database)
    return many_traces(tmp_path / "home", ITEMS)


def save(space: Workspace, who: str, trace: str, base: int, kind: str = "error.put", **payload: Any) -> int:
    """One operation as a browser sends it; the revision after it."""
    form = {"label_id": f"{who}-{trace}-{base}", "span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high"}
    op = Op(op_id=f"{who}-{trace}-{base}-operation", kind=kind, payload=payload or form)
    done = apply_ops(space.engine, annotator=who, trace_id=trace, base_revision=base, ops=[op])
    assert isinstance(done, Applied)
    return done.revision


@contextmanager
def another() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def label_row(connection: Connection, trace: str) -> None:
    """A label as an operation stores it, in a transaction that is still open."""
    row = {
        "label_id": "slow", "trace_id": trace, "annotator": "slow", "occasion": 0, "span_ids": "[]", "dimensions": "[]",
        "description": "", "evidence": "[]", "phase": "blind", "attributes": "{}", "deleted": False, "author": "slow",
        "created_at": 1,
    }  # fmt: skip
    connection.execute(insert(tables.error_label).values(row))


def test_nobody_waits_for_the_writers_of_another_subject(space: Workspace, tmp_path: Path) -> None:
    queue = queue_of(space, ITEMS)
    grid = plan_more(space.engine, tmp_path)
    run = RunStore(grid.engine, grid.run_key)
    run.take(resumes=True)
    busy = (TRACES, "run 999", labels_of(trace_id(1)))
    with another() as pool, write_transaction(space.engine, *busy):
        save_elsewhere = pool.submit(save, space, "ada", trace_id(0), 0)
        assert save_elsewhere.result(PATIENCE_S) == 1
        assert pool.submit(next_item, space.engine, queue, "ben", now=1).result(PATIENCE_S) is not None
        assert pool.submit(run.heartbeat).result(PATIENCE_S) == "running"
        assert pool.submit(run.claim).result(PATIENCE_S)
        seen = {"annotator": "ada", "trace_ids": [trace_id(2)], "what": "Compare"}
        pool.submit(lambda: note_seen(space.engine, **seen)).result(PATIENCE_S)
        for work in (administer, publish):
            pool.submit(work, space, 2).result(PATIENCE_S)
    run.leave()


@pytest.mark.parametrize("subjects", [(), (labels_of(trace_id(1)),)])
def test_a_save_waits_for_a_writer_of_the_same_trace_and_for_one_of_everything(
    space: Workspace, subjects: tuple[str, ...]
) -> None:
    with another() as pool:
        with write_transaction(space.engine, *subjects):
            saving = pool.submit(save, space, "ada", trace_id(1), 0)
            with pytest.raises(Late):
                saving.result(0.5)
        assert saving.result(PATIENCE_S) == 1


def remove(space: Workspace, _run: int) -> bool:
    gone = remove_traces(space, [trace_id(2)], with_labels=True, by="root")
    return (gone.traces, gone.labels) == ((trace_id(2),), 1)


def resolve(space: Workspace, _run: int) -> bool:
    return resolve_waiting(space.engine) == 1


def join(space: Workspace, run: int) -> bool:
    return keep_joint_verdicts(space.engine, run, "mean") == ITEMS


def number(space: Workspace, _run: int) -> bool:
    return newest_label(space.engine) > 0


@pytest.mark.parametrize(
    ("work", "own"),
    [
        (remove, labels_of(trace_id(2))), (remove, MATCHES), (remove, TRACES), (resolve, TRACES),
        (join, "run 1"), (join, JUDGES), (number, labels_of(trace_id(1))),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)  # fmt: skip
def test_a_rare_write_waits_for_its_own_subjects_and_for_no_others(
    work: Callable[[Workspace, int], bool], own: str, space: Workspace, tmp_path: Path, client_programs: None
) -> None:
    assert save(space, "ada", trace_id(2), 0) == 1
    grid = plan_more(space.engine, tmp_path, rubrics=("LC",), models=("a", "b"), mode="jury")
    assert grid.run(Counting(), Counting()).status == "done"
    call = Call(model="theirs", raw_reply="2")
    early = Verdict(rubric="TC", trace_id=trace_id(ITEMS), state="scored", score=2, criteria="", rationale="so",
                    findings=(), call=call)  # fmt: skip
    import_outcomes(space.engine, [early], model="theirs", author="ada")
    store(space.engine, [small_trace(trace_id(ITEMS))])
    others = ("run 999", PEOPLE_LOCK, GUIDELINE, *(() if work is number else (labels_of(trace_id(1)),)))
    with another() as pool, write_transaction(space.engine, *others):
        with write_transaction(space.engine, own):
            working = pool.submit(work, space, grid.run_key)
            with pytest.raises(Late):
                working.result(0.5)
        assert working.result(PATIENCE_S)


def test_a_review_and_a_hand_out_wait_for_each_other(space: Workspace) -> None:
    """Else two people could both be the last one wanted."""
    queue = queue_of(space, ITEMS)
    with another() as pool, another() as more:
        with write_transaction(space.engine, QUEUES):
            taking = more.submit(next_item, space.engine, queue, "ben", now=1)
            review = {"status": "submitted", "no_error": True, "reason": "", "active_ms": 1}
            submitting = pool.submit(save, space, "ada", trace_id(1), 0, "review.put", **review)
            for waiting in (taking, submitting):
                with pytest.raises(Late):
                    waiting.result(0.5)
        assert submitting.result(PATIENCE_S) == 1
        assert taking.result(PATIENCE_S) is not None


def test_an_earlier_key_that_is_committed_later_makes_another_revision(space: Workspace) -> None:
    with write_transaction(space.engine, labels_of(trace_id(1))) as slow, another() as pool:
        label_row(slow, trace_id(1))
        pool.submit(save, space, "ada", trace_id(0), 0).result(PATIENCE_S)
        with read_transaction(space.engine) as connection:
            before = revision(connection)
    with read_transaction(space.engine) as connection:
        assert revision(connection) != before


def test_the_newest_label_is_read_once_all_before_it_are_there(space: Workspace) -> None:
    """Else a match would pass for compared with a label that nobody could read."""
    with another() as pool:
        with write_transaction(space.engine, labels_of(trace_id(1))) as slow:
            label_row(slow, trace_id(1))
            reading = pool.submit(newest_label, space.engine)
            with pytest.raises(Late):
                reading.result(0.5)
        key = reading.result(PATIENCE_S)
    with read_transaction(space.engine) as connection:
        assert key == connection.scalar(select(func.max(tables.error_label.c.row_key)))


class Watch:
    """Reads the store all the time; what two equal revisions stood for must be the same."""

    def __init__(self, space: Workspace) -> None:
        self.space, self.over = space, threading.Event()
        self.seen: dict[Revision, set[tuple[int, ...]]] = {}

    def __call__(self) -> None:
        counted = (tables.error_label, tables.review, tables.finding, tables.match)
        counts = select(*(select(func.count()).select_from(table).scalar_subquery() for table in counted))
        while not self.over.is_set():
            with read_transaction(self.space.engine) as connection:
                at = revision(connection)
                self.seen.setdefault(at, set()).add(tuple(connection.execute(counts).one()))
            time.sleep(0.005)


def work_off(space: Workspace, queue: int, who: str) -> int:
    """Take items until none is left, put labels on each and submit; how many labels were acknowledged."""
    labels = 0
    while (place := next_item(space.engine, queue, who, now=time.time_ns() // 1000)) is not None:
        for number in range(EACH):
            assert save(space, who, place.trace_id, number) == number + 1
        labels += EACH
        review = {"status": "submitted", "no_error": False, "reason": "", "active_ms": 1}
        save(space, who, place.trace_id, EACH, "review.put", **review)
    return labels


def test_no_label_revision_place_or_verdict_is_lost(space: Workspace, tmp_path: Path) -> None:
    queue, grids = queue_of(space, ITEMS, k=WANTED), [plan_more(space.engine, tmp_path) for _ in range(2)]
    watch = Watch(space)
    watching = threading.Thread(target=watch)
    watching.start()
    with ThreadPoolExecutor(PEOPLE + len(grids) + 2) as pool:
        saving = [pool.submit(work_off, space, queue, f"p{who}") for who in range(PEOPLE)]
        judging = [pool.submit(_run, grid) for grid in grids]
        more = [small_trace(f"{number:032x}") for number in range(1000, 1020)]
        reading = [pool.submit(store, space.engine, more[at::2]) for at in range(2)]
        for _ in range(3):
            propose_matches(space.engine)
        labels = sum(one.result(PATIENCE_S) for one in saving)
        assert [one.result(PATIENCE_S) for one in judging] == [{"scored": 2 * ITEMS}] * 2
        assert sum(one.result(PATIENCE_S).traces for one in reading) == len(more)
    watch.over.set()
    watching.join()

    assert labels == ITEMS * WANTED * EACH
    lease, op = tables.lease, tables.op
    with read_transaction(space.engine) as connection:
        assert connection.scalar(select(func.count(tables.error_label.c.label_id.distinct()))) == labels
        assert connection.scalar(select(func.count()).select_from(op)) == labels + ITEMS * WANTED
        counted = select(func.count()).where(lease.c.outcome == "counted").group_by(lease.c.item_key)
        assert list(connection.scalars(counted)) == [WANTED] * ITEMS
        assert connection.scalar(select(func.count()).where(lease.c.outcome != "counted")) == 0
    assert check_opinions(space.engine) == []
    assert [states for states in watch.seen.values() if len(states) > 1] == []
    assert len(watch.seen) > 5


def imported(number: int) -> dict[str, Any]:
    """One person's labels on the traces without gold, as a file of another tool holds them."""
    who, traces = f"theirs-{number}", [trace_id(at) for at in range(GOLD, ITEMS)]
    common = {"annotator": who, "span_ids": (span_id(2),), "dimensions": ("TC",), "impact": "low"}
    errors = [ErrorLabel(label_id=f"{who}-{one}", trace_id=one, **common) for one in traces]  # type: ignore[arg-type]
    reviews = [Review(trace_id=one, annotator=who, status="submitted") for one in traces]
    return {"errors": errors, "scores": [], "reviews": reviews, "author": "test"}


def adjudicate(space: Workspace, number: int) -> None:
    """Write the gold of a trace, as the page Adjudicate does by one press after the other."""
    trace = trace_id(number)
    for _ in range(2):
        with write_transaction(space.engine, labels_of(trace)) as connection:
            decisions.settle_agreed(connection, trace, by=f"judy-{number}", seed="s")
    with write_transaction(space.engine, labels_of(trace)) as connection:
        decisions.close(connection, trace, by=f"judy-{number}", seed="s")


def administer(space: Workspace, number: int) -> None:
    """A person, a queue and a return, in one transaction as the forms of the page Admin do it."""
    with write_transaction(space.engine, PEOPLE_LOCK, QUEUES, COMMENTS) as connection:
        add_person(connection, f"new-{number}", role="annotator", by="root")
        make_queue(connection, QueueSpec(name=f"queue-{number}", author="root"), [trace_id(number)], now=number + 1)
        return_traces(connection, [trace_id(0)], ["ann"], by="root", reason=f"look again {number}")


def publish(space: Workspace, number: int) -> int:
    with write_transaction(space.engine, GUIDELINE) as connection:
        return guidelines.publish(connection, {"general": f"text {number}"}, author="root", note="")


def test_imports_gold_and_administration_run_beside_annotators_and_nothing_is_lost(
    space: Workspace, client_programs: None
) -> None:
    """Twenty clients and more: what each wrote is there once, and none ends in a deadlock."""
    for who in ("ann", "bob"):
        for at in range(ITEMS):
            submit(space, who, trace_id(at), scores={"LC": 2})
    store(space.engine, [small_trace(trace_id(ITEMS))])
    save(space, "ann", trace_id(ITEMS), 0)
    with ThreadPoolExecutor(22) as pool:
        saving = [pool.submit(work_on, space, f"p{who}") for who in range(6)]
        others = [
            *(pool.submit(import_labels, space.engine, **imported(number // 2)) for number in range(4)),
            *(pool.submit(adjudicate, space, number) for number in range(GOLD)),
            *(pool.submit(administer, space, number) for number in range(4)),
            pool.submit(sign_out, space.engine, "ann"),
            pool.submit(propose_matches, space.engine),
            pool.submit(remove_traces, space, [trace_id(ITEMS)], with_labels=True, by="root"),
        ]
        versions = [pool.submit(publish, space, number) for number in range(3)]
        assert [one.result(PATIENCE_S) for one in saving] == [ITEMS * EACH] * 6
        for one in others:
            one.result(PATIENCE_S)
        assert sorted(one.result(PATIENCE_S) for one in versions) == [1, 2, 3]
    error, annotator = tables.error_label.c, tables.annotator.c.annotator
    with read_transaction(space.engine) as connection:
        by_author = select(error.author, func.count()).group_by(error.author)
        written = {row[0]: row[1] for row in connection.execute(by_author)}
        assert written == {"test": 2 * (ITEMS - GOLD), **{f"p{who}": ITEMS * EACH for who in range(6)}}
        gold = adjudication_items.decisions_by_trace(connection)
        assert {gold[trace_id(number)].version for number in range(GOLD)} == {1}
        new = select(func.count()).where(annotator.startswith("new-"))
        assert connection.scalar(new) == 4
        assert len(comments(connection)) == 4
    assert check_opinions(space.engine) == []


def work_on(space: Workspace, who: str) -> int:
    """Labels on every trace, one after the other; how many were acknowledged."""
    return sum(save(space, who, trace_id(at), number) > 0 for at in range(ITEMS) for number in range(EACH))


def _run(grid: Grid) -> dict[str, int]:
    return dict(grid.run(Counting(delay_s=0.01)).states)
