"""Estimates made by the worker: the same as here, of the revision they say, and named when they fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.workspaces import DATA, now_of

from tracejury.app import datasets, estimates, options
from tracejury.app.estimates import (
    ENDED,
    EstimateQueue,
    FailedEstimateError,
    Lane,
    NoEstimateError,
    PendingEstimateError,
    Renewal,
    Task,
    estimate,
    shown_revision,
)
from tracejury.ingest.batch import ingest
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.tables import TABLES, can_build
from tracejury.judging.matching.deciding import decide
from tracejury.judging.matching.standing import decisions
from tracejury.judging.reports import estimate_files, estimate_worker
from tracejury.judging.reports.estimate_files import MARK, EstimateFiles, EstimateKey, read_frame, write_frame
from tracejury.judging.reports.estimate_worker import Estimator, StaleRevisionError, files_of
from tracejury.judging.reports.estimates import ESTIMATES, Sources, build
from tracejury.judging.reports.export import inputs_of, opinions_of
from tracejury.judging.reports.filters import Filters, Split
from tracejury.judging.reports.frames import load_frames, weight
from tracejury.judging.reports.pilots import load_pilot, pilot_frame
from tracejury.judging.runs.verdicts import JudgeVersion, ensure_judge_version
from tracejury.judging.store import Workspace
from tracejury.judging.store.revisions import Revision

ARMS = ("careful-judge", "hasty-judge")
ARGUMENTS = {
    "rater_pairs": ("LC",),
    "differences": ARMS,
    "found_by_one": ARMS,
    "flips": ARMS,
    "item_marks": ("LC",),
    "repeat_marks": ("careful-judge", "LC"),
    "repeat_spread": ("careful-judge", "LC"),
    "strip_marks": ("own",),
    "strip_counts": ("every",),
    "rows_for_errors": ("careful-judge", "", "", "all", "LC", "caught", "recall"),
    "rows_for_scores": ("", "", "", "1", "2,3", "exact"),
    "rows_for_raters": ("LC", "ada", "ben"),
    "rater_pair": ("LC", "ada", "ben"),
    "pilot": ("careful-judge",),
    "rows_for_people": ("LC", "all"),
    "rows_for_people_errors": ("LC", "all", "caught", "recall"),
    "errors_by_slice": ("length",),
    "scores_by_slice": ("length",),
    "tests_by_slice": ("length",),
    "consistency_by_slice": ("length",),
    "people_by_slice": ("length",),
    "people_errors_by_slice": ("length",),
    "differences_by_slice": ("length", *ARMS),
    "traces_in_slice": ("agent", "unknown"),
    "flips_in_slice": ("kind", "LLM", *ARMS),
    "errors_in_slice": ("kind", "LLM", "careful-judge", "LC", "", "caught", "recall"),
    "scores_in_slice": ("agent", "unknown", "careful-judge", "LC", "", "exact"),
}
OTHERS: dict[str, object] = {
    "reference": "ben",
    "judge_models": ("careful-judge",),
    "dimensions": ("LC",),
    "matches": "confirmed",
    "missing": "disagree",
    "repeat": 1,
    "blind_only": False,
    "guideline": "2",
    "same_traces": False,
    "tolerance": "span",
    "slices": ("length",),
    "trace_formats": ("trail",),
    "split": Split(name="s", parts=(("no trace", "dev"),)),
}
OLD, NEW, OTHER = (1,) * 6, (2,) * 6, (3,) * 6


def sources_of(space: Workspace, filters: Filters) -> Sources:
    """What estimates are made from, read at once."""
    with read_transaction(space.engine) as connection:
        frames = load_frames(connection, filters)
        opinions = opinions_of(connection, filters, frames)

    def pilot(*judge_models: str) -> pd.DataFrame:
        with read_transaction(space.engine) as connection:
            return pilot_frame(load_pilot(connection, filters, judge_models))

    return Sources(frames=frames, inputs=inputs_of(frames, filters, opinions), pilot=pilot)


def names_of(sources: Sources) -> list[str]:
    """Every estimate that this workspace allows."""
    tables = {f"table.{table.name}" for table in TABLES if can_build(table, sources.inputs)}
    return [name for name in ESTIMATES if not name.startswith("table.") or name in tables]


def key_of(name: str, filters: Filters = Filters(), revision: Revision = OLD, *arguments: str) -> EstimateKey:  # noqa: B008
    return EstimateKey(name=name, filters=filters, revision=revision, arguments=arguments)


def confirm_one(space: Workspace) -> None:
    """A person's word on a proposed pair: the data is of another revision then."""
    with write_transaction(space.engine) as connection:
        pair = next(d for d in decisions(connection) if d.status == "proposed")
        decide(connection, label_id=pair.label_id, finding_key=pair.finding_key, status="confirmed", author="ruth")


def summary_of(page: AppTest) -> str:
    """What the page says it compares, and of which revision."""
    return next(text.value for text in page.caption if text.value.startswith("Reference:"))


class TestEstimator:
    @pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
    def test_what_is_read_from_disk_equals_what_is_made_of_all_inputs_at_once(
        self, full: Workspace, every: int
    ) -> None:
        filters = Filters(draws=10, missing="disagree")
        sources, files, at = sources_of(full, filters), files_of(full.home), now_of(full)
        estimator = Estimator(full.engine, files)
        names = names_of(sources)
        assert len(names) > 60
        for name in names[::every]:
            key = key_of(name, filters, at, *ARGUMENTS.get(name, ()))
            estimator.make(key)
            kept = files.get(key)
            assert kept is not None
            pd.testing.assert_frame_equal(build(sources, name, *key.arguments), kept, obj=name)

    @pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
    def test_it_is_the_same_whatever_filter_it_ignores(self, full: Workspace, every: int) -> None:
        """Else some filters would show what others had asked for."""
        usual, compared = Filters(draws=5), 0
        sources = sources_of(full, usual)
        chosen = names_of(sources)[::every]
        kept = {name: build(sources, name, *ARGUMENTS.get(name, ())) for name in chosen}
        assert {*OTHERS, "versions", "draws", "seed", "revision"} == {each.name for each in fields(Filters)}
        for changed, value in OTHERS.items():
            filters = replace(usual, **{changed: value})  # type: ignore[arg-type]
            others = sources_of(full, filters)
            for name in names_of(others):
                is_same = key_of(name, filters).file() == key_of(name, usual).file()
                assert is_same == (changed in ESTIMATES[name].ignores), (name, changed)
                if is_same and name in kept:
                    made = build(others, name, *ARGUMENTS.get(name, ()))
                    pd.testing.assert_frame_equal(made, kept[name], obj=f"{name} {changed}")
                    compared += 1
        assert compared > 80 / every

    def test_estimates_of_people_and_of_repeats_are_made_once_whatever_the_reference(self) -> None:
        """Every pair of people's errors takes minutes where there are many."""
        for name in ("person_pairs", "error_ceiling", "human_ceiling", "consistency", "ratings"):
            references = (None, "ben", "majority", "single")
            assert len({key_of(name, Filters(reference=one)).file() for one in references}) == 1, name

    def test_a_decision_makes_another_revision_and_the_older_estimate_stays(self, full: Workspace) -> None:
        estimator, before = Estimator(full.engine, files_of(full.home)), now_of(full)
        assert estimator.estimate(Filters(), "match_decisions").empty
        confirm_one(full)
        assert now_of(full) != before
        assert len(estimator.estimate(Filters(), "match_decisions")) == 1
        assert estimator.estimate(Filters(revision=before), "match_decisions").empty

    def test_an_older_revision_is_finished_from_memory_until_a_newer_one_is_read(self, full: Workspace) -> None:
        estimator, before = Estimator(full.engine), now_of(full)
        estimator.estimate(Filters(), "error_pairs")
        confirm_one(full)
        estimator.estimate(Filters(revision=before), "error_rates")
        estimator.estimate(Filters(), "error_rates")
        with pytest.raises(StaleRevisionError):
            estimator.estimate(Filters(revision=before), "suite")

    def test_what_is_made_together_is_of_one_revision(self, full: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        """People who label all the time must not keep a file from being made of one state."""
        files = files_of(full.home)
        estimator, matched, changes = Estimator(full.engine, files), estimate_worker.person_revision, iter([True])

        def changed_meanwhile(connection: object) -> Revision:
            if estimator.words and next(changes, False):
                return (0,)
            return matched(connection)  # type: ignore[arg-type]

        monkeypatch.setattr(estimate_worker, "person_revision", changed_meanwhile)
        at = estimator.make_all(Filters(), ("suite", "person_pairs"))
        assert at == now_of(full)
        assert files.has(key_of("suite", revision=at))
        assert files.has(key_of("person_pairs", revision=at))

    def test_what_has_arguments_is_made_after_the_rest_unless_the_data_have_it_no_more(self, full: Workspace) -> None:
        files, more = files_of(full.home), (("strip_counts", "own"), ("differences", "nobody", "checks"))
        at = Estimator(full.engine, files).make_all(Filters(), ("suite",), more)
        made = [files.has(EstimateKey(name=n, filters=Filters(), revision=at, arguments=(*args,))) for n, *args in more]
        assert made == [True, False]

    def test_a_name_that_is_none_is_an_error(self, full: Workspace) -> None:
        with pytest.raises(KeyError, match="no_such_estimate"):
            Estimator(full.engine).estimate(Filters(), "no_such_estimate")


class TestFiles:
    def test_none_and_nan_come_back_as_they_were(self, tmp_path: Path) -> None:
        mixed = pd.Series([True, None, float("nan")], dtype="object")
        frame = pd.DataFrame({"mixed": mixed, "text": ["a", None, "b"]})
        write_frame(tmp_path / "x.arrow", frame, (1, 2))
        kept, revision = read_frame(tmp_path / "x.arrow")
        pd.testing.assert_frame_equal(frame, kept)
        assert [value is None for value in kept["mixed"]] == [False, True, False]
        assert revision == (1, 2)

    def test_other_filters_and_other_code_are_other_files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        every = [Filters(), *(Filters(**{name: value}) for name, value in OTHERS.items())]  # type: ignore[arg-type]
        assert len({key_of("suite", filters).file() for filters in every}) == len(every)
        before = key_of("suite", Filters(draws=7)).file()
        estimate_files._filters_hash.cache_clear()
        monkeypatch.setattr(estimate_files, "_code", lambda: "another")
        assert key_of("suite", Filters(draws=7)).file() != before
        estimate_files._filters_hash.cache_clear()

    def test_an_estimate_under_another_revision_than_its_own_is_never_shown(self, tmp_path: Path) -> None:
        files, key = EstimateFiles(folder=tmp_path), key_of("suite", revision=NEW)
        files.put(key, pd.DataFrame({"a": [1]}))
        write_frame(tmp_path / key.file(), pd.DataFrame({"a": [1]}), OLD)
        with pytest.raises(AssertionError, match="another revision"):
            files.get(key)

    def test_what_was_read_longest_ago_goes_first(self, tmp_path: Path) -> None:
        files, keys = EstimateFiles(folder=tmp_path), [key_of(name) for name in ("suite", "coverage", "votes")]
        for age, key in enumerate(keys):
            files.put(key, pd.DataFrame({"a": [1]}))
            os.utime(tmp_path / key.file(), ns=(age, age))
        assert files.get(keys[0]) is not None  # read now
        files.prune((tmp_path / keys[0].file()).stat().st_size * 2)
        assert [files.has(key) for key in keys] == [True, False, True]
        files.prune(0)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_that_another_process_takes_away_is_made_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        files, key = EstimateFiles(folder=tmp_path), key_of("suite")
        files.put(key, pd.DataFrame({"a": [1]}))
        queue, asked = Noting(home=tmp_path, files=files), list[Task]()
        monkeypatch.setattr(queue, "ask", asked.append)
        monkeypatch.setattr(EstimateFiles, "has", lambda *_: True)
        (tmp_path / key.file()).unlink()
        with pytest.raises(PendingEstimateError):
            queue.get(key, patience_s=0)


@dataclass(kw_only=True)
class Noting(EstimateQueue):
    """A queue that notes what it would have a worker do, once it may."""

    may: threading.Event = field(default_factory=threading.Event)
    done: list[str] = field(default_factory=list)

    def _result(self, task: Task) -> Revision | Exception | None:
        self.may.wait(30)
        self.done.append(task.title())
        return NoEstimateError("noted")

    def _running_pool(self, lane: Lane) -> None:  # type: ignore[override]
        return None


@dataclass(kw_only=True)
class Weighing(Noting):
    """A queue whose slow estimates are not made before they may."""

    began: threading.Event = field(default_factory=threading.Event)

    def _result(self, task: Task) -> Revision | Exception | None:
        if isinstance(task, EstimateKey) and task.is_slow():
            self.began.set()
            return super()._result(task)
        self.done.append(task.title())
        return NoEstimateError("noted")


@dataclass(kw_only=True)
class Overtaken(Noting):
    """A queue whose data always changes before anything is made."""

    def _result(self, task: Task) -> Revision | Exception | None:
        if isinstance(task, Renewal):
            self.may.wait(30)
            return FailedEstimateError(task, "the data changed meanwhile")
        return StaleRevisionError()


def is_done(queue: EstimateQueue, task: Task) -> bool:
    return not queue.is_pending(task)


def wait_until_done(queue: EstimateQueue, *tasks: Task) -> None:
    """Wait for an event of the queue, however slow the machine is."""
    with queue._changed:
        assert queue._changed.wait_for(lambda: all(is_done(queue, task) for task in tasks), timeout=60)


class TestQueue:
    def test_quick_estimates_come_before_a_renewal_and_that_before_slow_ones(self, tmp_path: Path) -> None:
        queue = Noting(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        slow, renewal, last = (
            key_of("error_ceiling"),
            Renewal(filters=Filters(), names=(), revision=NEW),
            key_of("suite"),
        )
        for task in (key_of("votes"), slow, renewal, key_of("coverage"), last):
            queue.ask(task)
        queue.may.set()
        wait_until_done(queue, slow, renewal, last)
        assert queue.done[-4:] == ["coverage", "suite", renewal.title(), "error ceiling"]

    def test_what_is_asked_for_while_a_slow_one_is_made_need_not_wait(self, tmp_path: Path) -> None:
        queue = Weighing(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        queue.ask(key_of("error_ceiling"))
        assert queue.began.wait(60)
        queue.ask(key_of("suite"))
        wait_until_done(queue, key_of("suite"))
        assert queue.done == ["suite"]
        queue.may.set()
        wait_until_done(queue, key_of("error_ceiling"))
        assert queue.done == ["suite", "error ceiling"]

    def test_what_nobody_asks_for_any_more_is_not_made(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(estimates, "WANTED_S", -1.0)
        queue = Noting(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        queue.may.set()
        queue.ask(key_of("suite"))
        monkeypatch.setattr(estimates, "WANTED_S", 60.0)
        queue.ask(key_of("coverage"))
        wait_until_done(queue, key_of("coverage"))
        assert queue.done in (["coverage"], ["suite", "coverage"])  # the thread may have looked in between

    def test_what_a_page_still_waits_for_comes_before_what_was_asked_for_by_one_that_was_left(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(estimates, "WANTED_S", 600.0)
        monkeypatch.setattr(estimates, "FRESH_S", 300.0)
        queue = Noting(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        first, left, waiting = key_of("votes"), key_of("coverage"), (key_of("suite"), key_of("error_pairs"))
        for task in (first, left, *waiting):  # the first may be taken before the others are asked for
            queue.ask(task)
        with queue._changed:
            queue._asked[left] -= 301.0
        queue.may.set()
        wait_until_done(queue, first, left, *waiting)
        assert [name for name in queue.done if name != first.title()] == ["suite", "error pairs", "coverage"]

    def test_a_page_gets_its_estimates_of_the_older_data_before_newer_are_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(estimates, "WANTED_S", 600.0)
        monkeypatch.setattr(estimates, "RENEWED_AFTER_S", 600.0)
        queue = Noting(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        queue.may.set()
        renewal = Renewal(filters=Filters(), names=(), revision=NEW)
        queue.ask(renewal)
        queue.ask(key_of("suite"))
        wait_until_done(queue, key_of("suite"))
        assert queue.done == ["suite"]
        queue._settled_at = 0.0
        wait_until_done(queue, renewal)
        assert queue.done == ["suite", renewal.title()]

    def test_an_estimate_that_filters_do_not_have_says_why(self, tmp_path: Path) -> None:
        queue = Noting(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        queue.may.set()
        with pytest.raises(NoEstimateError, match=r"^noted$"):
            queue.get(key_of("suite"), patience_s=60)

    def test_what_can_no_longer_be_read_is_not_made_and_waits_for_a_newer_revision(self, tmp_path: Path) -> None:
        queue = Overtaken(home=tmp_path, files=EstimateFiles(folder=tmp_path))
        with pytest.raises(PendingEstimateError):
            queue.get(key_of("suite"), patience_s=60)
        assert queue.is_stale(key_of("suite"))
        assert not queue.is_pending(key_of("suite"))
        assert not queue.is_renewing()
        newer = Renewal(filters=Filters(), names=(), revision=NEW)
        queue.ask(newer)
        assert queue.is_renewing()
        queue.may.set()
        with pytest.raises(FailedEstimateError, match="could not be computed: the data changed meanwhile"):
            queue.renewed(newer)

    def test_a_worker_that_ends_is_named_and_another_answers_on_retry(
        self, full: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = full.home.resolve()
        queue, key = EstimateQueue(home=home, files=files_of(home)), key_of("suite", Filters(draws=0), now_of(full))
        monkeypatch.setattr(estimate_worker, "make", end)
        try:
            with pytest.raises(FailedEstimateError, match=f"suite could not be computed: {ENDED}"):
                queue.get(key, patience_s=120)
            monkeypatch.undo()
            queue.ask_again(key)
            made = queue.get(key, patience_s=120)
            pd.testing.assert_frame_equal(made, build(sources_of(full, Filters(draws=0)), "suite"))
            pool = queue._running_pool("quick")
            os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)  # while it has nothing to do
            with pytest.raises(BrokenProcessPool):
                pool.submit(time.sleep, 60).result()
            assert queue.get(replace(key, name="coverage"), patience_s=120) is not None
        finally:
            queue.close()


def end(_key: EstimateKey) -> None:
    """End the process that is to make an estimate."""
    os._exit(3)


class TestRevisions:
    """Which revision is shown while another is made."""

    @pytest.fixture
    def files(self, heavy: Workspace, monkeypatch: pytest.MonkeyPatch) -> EstimateFiles:
        monkeypatch.setattr(estimates, "now_revision", lambda: NEW)
        monkeypatch.setattr(EstimateQueue, "ask", lambda *_: None)  # it stays under way
        return estimates.queue().files

    def put(self, files: EstimateFiles, revision: Revision, *names: str) -> None:
        for name in names:
            files.put(key_of(name, revision=revision), pd.DataFrame({"reference": ["ada"]}))

    def test_the_newest_where_nothing_was_shown_before(self, files: EstimateFiles) -> None:
        assert estimates.revisions(Filters()) == estimates.Revisions(shown=NEW)

    def test_an_older_one_until_all_that_was_shown_of_it_is_made_anew(self, files: EstimateFiles) -> None:
        self.put(files, OLD, "suite", "error_ceiling", MARK)
        self.put(files, NEW, MARK)
        found = estimates.revisions(Filters())
        assert found.shown == OLD
        assert found.pending == Renewal(filters=Filters(), names=("suite", MARK), revision=NEW)  # no slow ones
        self.put(files, NEW, "suite")
        assert estimates.revisions(Filters()) == estimates.Revisions(shown=NEW)

    def test_what_was_shown_with_arguments_is_made_anew_too(
        self, files: EstimateFiles, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.put(files, OLD, MARK)
        shown = [("strip_marks", "own"), ("differences", "a", "b"), ("differences", "a", "person=ben")]
        for name, *arguments in shown:
            key = EstimateKey(name=name, filters=Filters(), revision=OLD, arguments=tuple(arguments))
            files.put(key, pd.DataFrame({"n": [1]}))
            estimates.estimate(Filters(revision=OLD), name, *arguments)
        pending = estimates.revisions(Filters()).pending
        assert pending is not None
        assert pending.more == (("strip_marks", "own"), ("differences", "a", "b"))  # no slow ones
        assert estimates.queue().shown_lately(Filters(reference="ben")) == ()
        monkeypatch.setattr(estimates, "LATELY_S", -1.0)
        assert estimates.queue().shown_lately(Filters()) == ()

    def test_of_several_older_ones_the_one_made_last(self, files: EstimateFiles) -> None:
        for age, revision in enumerate([OTHER, OLD]):
            self.put(files, revision, MARK)
            os.utime(files.folder / key_of(MARK, revision=revision).file(), ns=(9, age))
        assert estimates.revisions(Filters()).shown == OLD

    def test_that_of_other_filters_is_none(self, files: EstimateFiles) -> None:
        files.put(key_of(MARK, Filters(reference="ben"), OLD), pd.DataFrame({"reference": ["ben"]}))
        assert estimates.revisions(Filters()).shown == NEW


@pytest.fixture
def heavy(full: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose estimates the worker makes, however little it holds."""
    monkeypatch.setattr(estimates, "SMALL", -1)
    yield full
    estimates.queue().close()


def test_the_weight_of_a_workspace_counts_labels_scores_and_judgements(full: Workspace) -> None:
    """A few thousand of them are left to the worker; the samples are not."""
    with read_transaction(full.engine) as connection:
        counted = [
            connection.exec_driver_sql(query).scalar_one()
            for query in ("select count(*) from error_label", "select count(*) from score_label",
                          "select count(*) from cell where finished_at is not null")
        ]  # fmt: skip
    assert weight(now_of(full)) == sum(counted)
    assert estimates.is_small(now_of(full))


def test_the_page_waits_then_shows_what_it_would_compute_itself(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = summary_of(open_page("agreement"))
    monkeypatch.setattr(estimates, "SMALL", -1)
    monkeypatch.setattr("tracejury.app.placeholders.PATIENCE_S", 0.0)
    try:
        waiting, at = open_page("agreement"), shown_revision(now_of(full))
        assert any(text.value.startswith("Computing") and at in text.value for text in waiting.caption)
        estimates.with_all(Filters(), "summary", "overlap", "repeated")
        there = open_page("agreement")
        assert summary_of(there) == here
        assert here.endswith(at)
    finally:
        estimates.queue().close()


def test_a_page_shows_an_older_revision_by_name_while_the_new_one_is_made(
    heavy: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = now_of(heavy)
    Estimator(heavy.engine, estimates.queue().files).make_all(
        Filters(), ("votes", "summary", "overlap", "repeated", "suite", MARK)
    )
    monkeypatch.setattr(EstimateQueue, "ask", lambda *_: None)  # it stays under way
    confirm_one(heavy)
    page = open_page("agreement")
    told = [text.value for text in page.caption]
    shown, pending = shown_revision(before), shown_revision(now_of(heavy))
    assert any(f"Shown: {shown}" in text and pending in text for text in told)
    assert summary_of(page).endswith(shown)


def test_a_manifest_tells_of_the_data_that_its_estimates_are_made_of(heavy: Workspace) -> None:
    """Estimates of an older revision stay on a page while a new trace or judge comes in."""
    filters = estimates.with_all(Filters())
    before = datasets.manifest(filters)
    ingest(heavy.engine, [DATA / "samples" / "otlp"])
    with write_transaction(heavy.engine) as connection:
        ensure_judge_version(connection, JudgeVersion(rubric="LC", model="newer", rubric_version="1", mode="trace"))
    after = datasets.manifest(filters)
    told = ("data_hash", "judge_versions", "store_revision")
    assert [after[name] for name in told] == [before[name] for name in told]
    renewed = datasets.manifest(estimates.with_all(Filters()))
    assert not [name for name in told if renewed[name] == before[name]]
    assert renewed["store_revision"] == list(now_of(heavy))
    assert "newer" in str(renewed["judge_versions"])


def test_an_arm_that_cannot_be_compared_says_why_and_offers_no_other_try(
    heavy: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = options.ArmOption("judge_model=nobody", "nobody")
    known = options.ArmOption("careful-judge", "careful-judge", "careful-judge")
    monkeypatch.setattr(options, "arms", lambda *_: [known, nobody])
    filters = estimates.with_all(Filters(), "compared")
    key = EstimateKey(name="differences", filters=filters, revision=now_of(heavy), arguments=(known.text, nobody.text))
    with pytest.raises(NoEstimateError, match=r"^no judge is called 'nobody'; there are "):
        estimates.queue().get(key, patience_s=60)
    at = open_page("agreement", view="A against B", side_a="careful-judge", side_b="nobody")
    assert any("no judge is called" in text.value for text in at.info)
    assert "Compute again" not in [button.label for button in at.button]


def test_estimates_of_the_same_filters_are_told_apart(full: Workspace) -> None:
    prevalence, confusion = (estimate(Filters(), f"table.score_{name}") for name in ("prevalence", "confusion"))
    assert {"reference_score", "judge_score", "count"} <= set(confusion.columns)
    assert list(prevalence.columns) != list(confusion.columns)


def test_a_worker_ends_with_the_process_that_asked_it(full: Workspace) -> None:
    """Else a killed app would leave one behind, which holds the data in memory."""
    script = (
        "import os, sys\nfrom pathlib import Path\n"
        "from tracejury.app.estimates import EstimateQueue\n"
        "from tracejury.judging.reports.estimate_worker import files_of\n"
        "if __name__ == '__main__':\n"
        "    home = Path(sys.argv[1])\n"
        "    pool = EstimateQueue(home=home, files=files_of(home))._running_pool('quick')\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n    os._exit(1)\n"
    )
    file = full.home / "killed.py"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run([sys.executable, "-P", file, str(full.home)], capture_output=True, text=True, check=False)
    worker = int(done.stdout)
    give_up = time.monotonic() + 60
    while is_running(worker) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not is_running(worker)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
