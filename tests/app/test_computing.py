"""Figures made by the other process: the same as here, of the revision they say, and named when they fail."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.workspaces import DATA, now_of

from tracejury.app import datasets, loading
from tracejury.app.computing import (
    WHOLE,
    Asked,
    Desk,
    MovedOnError,
    NoFigureError,
    NotComputedError,
    Rank,
    Waiting,
    _Process,
    _Wish,
    shown_revision,
)
from tracejury.app.loading import Choice
from tracejury.ingest.batch import ingest
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.tables import TABLES, can_build
from tracejury.judging.matching.matches import decide, decisions
from tracejury.judging.reports.estimate_worker import KEPT_CHOICES, Maker, Shelf, read_frame, write_frame
from tracejury.judging.reports.estimates import FIGURES, FRAMES, Bench, Chosen, Question, Revision, make, untouched_by
from tracejury.judging.reports.export import inputs_of, opinions_of
from tracejury.judging.reports.frames import load_frames, weight
from tracejury.judging.runs.verdicts import JudgeVersion, ensure_judge_version
from tracejury.judging.store import Workspace

SIDES = ("careful-judge", "hasty-judge")
ARGUMENTS = {
    "rater_pairs": ("LC",),
    "differences": SIDES,
    "found_by_one": (*SIDES, "caught"),
    "flips": SIDES,
    "item_marks": ("LC",),
    "run_marks": ("careful-judge", "LC"),
    "run_spread": ("careful-judge", "LC"),
    "strip_marks": ("own",),
    "strip_counts": ("every",),
    "pairs_behind": ("careful-judge", "", "", "all", "LC", "caught", "recall"),
    "scores_behind": ("", "", "", "1", "2,3", "exact"),
    "raters_behind": ("LC", "ada", "ben"),
    "rater_pair": ("LC", "ada", "ben"),
    "people_behind": ("LC", "all"),
    "people_errors_behind": ("LC", "all", "caught", "recall"),
}
OTHERS: dict[str, object] = {
    "human": "ben",
    "gold": "majority",
    "judge_models": ("careful-judge",),
    "judges": ("LC",),
    "matches": "confirmed",
    "missing": "disagree",
    "repeat": 1,
    "blind_only": False,
    "guideline": "2",
    "formats": ("trail",),
    "splits": {"no trace": "dev"},
    "only_split": True,
}


def bench_of(space: Workspace, chosen: Chosen) -> Bench:
    """The figures' inputs as this process reads them."""
    with read_transaction(space.engine) as connection:
        frames = load_frames(connection, chosen.selection())
        opinions = opinions_of(connection, chosen.selection())
    return Bench(frames=frames, inputs=inputs_of(frames, missing=chosen.missing, draws=chosen.draws, **opinions))


def questions(bench: Bench, chosen: Chosen) -> list[Question]:
    """Every figure that this workspace allows."""
    built = {f"table.{table.name}" for table in TABLES if can_build(table, bench.inputs)}
    names = [name for name in FIGURES if not name.startswith("table.") or name in built]
    return [Question(figure=name, chosen=chosen, arguments=ARGUMENTS.get(name, ())) for name in names]


def test_whoever_is_the_truth_the_figures_of_people_and_of_runs_are_made_once() -> None:
    """Every pair of people's errors takes minutes where there are many."""
    for figure in ("person_pairs", "error_ceiling", "human_ceiling", "consistency", "ratings"):
        places = {
            Question(figure=figure, chosen=chosen).place().key()
            for chosen in (Chosen(), Chosen(reference="ben"), Chosen(reference="majority"), Chosen(reference="single"))
        }
        assert len(places) == 1, figure


def confirm_one(space: Workspace) -> None:
    """A person's word on a proposed pair: the data is of another revision then."""
    with write_transaction(space.engine) as connection:
        pair = next(d for d in decisions(connection) if d.status == "proposed")
        decide(connection, label_id=pair.label_id, finding_key=pair.finding_key, status="confirmed", author="ruth")


def summary_of(page: AppTest) -> str:
    """What the page says it compares, and of which revision."""
    return next(text.value for text in page.caption if text.value.startswith("Human:"))


def test_every_figure_of_the_other_process_equals_the_one_made_here(full: Workspace) -> None:
    chosen = Chosen(draws=50, missing="disagree")
    bench, maker, now = bench_of(full, chosen), Maker(full.engine, full.home), now_of(full)
    every = questions(bench, chosen)
    assert len(every) > 60
    for question in every:
        assert maker.make(Question.from_json(question.to_json())) == now
        kept, made_of = read_frame(maker.shelf.file(question, now))
        assert made_of == now
        pd.testing.assert_frame_equal(make(bench, question), kept, obj=question.figure)


def test_a_figure_is_the_same_whatever_is_chosen_that_it_is_made_without(full: Workspace) -> None:
    """Else one choice would show what another had asked for."""
    usual = Chosen(draws=20)
    bench, compared = bench_of(full, usual), 0
    kept = {question.figure: make(bench, question) for question in questions(bench, usual)}
    for name, other in OTHERS.items():
        chosen = replace(usual, **{name: other})
        for question in questions(here := bench_of(full, chosen), chosen):
            same = question.place() == replace(question, chosen=usual).place()
            assert same == (name in untouched_by(question.figure))
            if same:
                pd.testing.assert_frame_equal(make(here, question), kept[question.figure], obj=f"{question} {name}")
                compared += 1
    assert compared > 80


def test_the_weight_of_a_workspace_counts_labels_scores_and_judgements(full: Workspace) -> None:
    """A few thousand of them are left to the other process; the samples are not."""
    with read_transaction(full.engine) as connection:
        counted = [
            connection.exec_driver_sql(query).scalar_one()
            for query in ("select count(*) from error_label", "select count(*) from score_label",
                          "select count(*) from cell where finished_at is not null")
        ]  # fmt: skip
    assert weight(now_of(full)) == sum(counted)
    assert not loading.is_heavy(now_of(full))


def test_none_and_nan_come_back_as_they_were(tmp_path: Path) -> None:
    frame = pd.DataFrame({"mixed": pd.Series([True, None, float("nan")], dtype="object"), "text": ["a", None, "b"]})
    write_frame(tmp_path / "x.arrow", frame, (1, 2))
    kept, made_of = read_frame(tmp_path / "x.arrow")
    pd.testing.assert_frame_equal(frame, kept)
    assert [value is None for value in kept["mixed"]] == [False, True, False]
    assert made_of == (1, 2)


def test_a_decision_makes_another_revision_and_keeps_the_old_figure_under_its_own(full: Workspace) -> None:
    maker, question = Maker(full.engine, full.home), Question(figure="match_decisions", chosen=Chosen(draws=0))
    before = maker.make(question)
    assert read_frame(maker.shelf.file(question, before))[0].empty
    confirm_one(full)
    after = now_of(full)
    assert after != before
    assert not maker.shelf.file(question, after).exists()
    assert maker.make(question, after) == after
    assert len(read_frame(maker.shelf.file(question, after))[0]) == 1
    assert read_frame(maker.shelf.file(question, before))[0].empty


def test_what_is_under_way_is_finished_at_its_own_revision(full: Workspace) -> None:
    """People who label all the time must not keep figures from ever being made."""
    maker, chosen = Maker(full.engine, full.home), Chosen(draws=0)
    before = maker.make(Question(figure="error_pairs", chosen=chosen))
    confirm_one(full)
    assert maker.make(Question(figure="error_rates", chosen=chosen), before) == before
    assert maker.make(Question(figure="error_rates", chosen=chosen), now_of(full)) == now_of(full)


def test_another_choice_or_other_code_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {Chosen().key(), Chosen(matches="confirmed").key(), Chosen(missing="disagree").key(), Chosen(repeat=1).key(),
            Chosen(only_split=True).key(), Chosen(splits={"a": "dev"}).key()}  # fmt: skip
    assert len(keys) == 6
    before = Chosen().key()
    monkeypatch.setattr("tracejury.judging.reports.estimates._code", lambda: "another")
    assert Chosen().key() != before


@dataclass(kw_only=True)
class Broken(Desk):
    """A desk whose process ends at once, the first time."""

    starts: int = 0

    def _started(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        if self.starts > 1:
            return super()._started()
        return subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_a_process_that_ends_is_named_and_another_answers_on_retry(full: Workspace) -> None:
    desk = Broken(shelf=Shelf(home=full.home))
    asked = Asked(question=Question(figure="suite", chosen=Chosen(draws=0)), now=now_of(full))
    with pytest.raises(Waiting):
        desk.find(asked)
    with pytest.raises(NotComputedError, match="suite could not be computed: the process that computes figures ended"):
        desk.wait(asked, at_most_s=60)
    assert desk.state(asked) == "failed"
    try:
        desk.ask_again(asked)
        pd.testing.assert_frame_equal(
            desk.wait(asked, at_most_s=120), make(bench_of(full, Chosen(draws=0)), asked.question)
        )
    finally:
        desk.close()


def test_a_figure_that_cannot_be_made_is_named_by_its_error(full: Workspace) -> None:
    maker = Maker(full.engine, full.home)
    with pytest.raises(KeyError, match="no_such_figure"):
        maker.make(Question(figure="no_such_figure"))


class TestStanding:
    """Which revision is shown while another is made."""

    CHOSEN = Chosen()
    OLD, NEW, NEWER = (1,), (2,), (3,)

    def desk(self, home: Path, *whole: Revision) -> Desk:
        shelf = Shelf(home=home)
        for now in whole:
            for name in WHOLE:
                shelf.put(Question(figure=name, chosen=self.CHOSEN), now, pd.DataFrame({"reference_score": ["ada"]}))
        return Desk(shelf=shelf)

    def test_the_newest_where_it_is_whole(self, tmp_path: Path) -> None:
        assert self.desk(tmp_path, self.OLD, self.NEW).standing(self.CHOSEN, self.NEW) == (self.NEW, self.NEW)

    def test_an_older_whole_one_while_the_newest_is_made(self, tmp_path: Path) -> None:
        assert self.desk(tmp_path, self.OLD).standing(self.CHOSEN, self.NEW) == (self.OLD, self.NEW)

    def test_the_newest_itself_where_nothing_is_whole(self, tmp_path: Path) -> None:
        assert self.desk(tmp_path).standing(self.CHOSEN, self.NEW) == (self.NEW, self.NEW)

    def test_one_under_way_is_finished_before_a_newer_is_begun(self, tmp_path: Path) -> None:
        desk = self.desk(tmp_path, self.OLD)
        desk.standing(self.CHOSEN, self.NEW)
        assert desk.standing(self.CHOSEN, self.NEWER) == (self.OLD, self.NEW)

    def test_a_choice_that_is_asked_for_outlives_many_that_were_made_after_it(self, tmp_path: Path) -> None:
        desk = self.desk(tmp_path, self.OLD)
        for number in range(KEPT_CHOICES + 2):
            desk.standing(self.CHOSEN, self.OLD)
            other = Question(figure="suite", chosen=Chosen(reference=f"person {number}"))
            desk.shelf.put(other, self.OLD, pd.DataFrame({"a": [1]}))
        assert desk.is_whole(self.CHOSEN, self.OLD)
        assert len(list((tmp_path / "figures").iterdir())) == KEPT_CHOICES

    def test_half_of_the_figures_are_not_the_whole(self, tmp_path: Path) -> None:
        desk = self.desk(tmp_path, self.OLD)
        desk.shelf.put(Question(figure=FRAMES[0], chosen=self.CHOSEN), self.NEW, pd.DataFrame({"a": [1]}))
        assert not desk.is_whole(self.CHOSEN, self.NEW)
        assert desk.standing(self.CHOSEN, self.NEW) == (self.OLD, self.NEW)

    def test_a_figure_under_another_revision_than_its_own_is_never_shown(self, tmp_path: Path) -> None:
        desk = self.desk(tmp_path, self.OLD)
        asked = Asked(question=Question(figure="suite", chosen=self.CHOSEN), now=self.NEW)
        desk.shelf.put(asked.question, self.NEW, pd.DataFrame({"a": [1]}))
        write_frame(desk.shelf.file(asked.question, self.NEW), pd.DataFrame({"a": [1]}), self.OLD)
        with pytest.raises(AssertionError, match="another revision"):
            desk.find(asked)


def test_the_page_waits_then_shows_what_it_would_compute_itself(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = summary_of(open_page("agreement"))
    monkeypatch.setattr(loading, "HEAVY", 0)
    try:
        waiting = open_page("agreement")
        now = now_of(full)
        assert any(text.value.startswith("Computing") and shown_revision(now) in text.value for text in waiting.caption)
        choice = loading.whole(Choice())
        assert loading.standing(choice).shown == now
        assert loading.frames(choice).reference is not None
        there = open_page("agreement")
        assert summary_of(there) == here
        assert shown_revision(now) in here
        assert not [text for text in there.caption if text.value.startswith("Computing")]
    finally:
        loading.desk().close()


def test_a_page_shows_an_older_revision_by_name_while_the_new_one_is_made(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "HEAVY", 0)
    maker, before = Maker(full.engine, full.home.resolve()), now_of(full)
    for name in WHOLE:
        maker.make(Question(figure=name, chosen=loading.chosen(Choice())))
    monkeypatch.setattr(Desk, "ask", lambda *_args, **_more: None)  # it stays under way
    confirm_one(full)
    page = open_page("agreement")
    told = [text.value for text in page.caption]
    assert any(f"Shown: {shown_revision(before)}" in text and shown_revision(now_of(full)) in text for text in told)
    assert summary_of(page).endswith(shown_revision(before))


def test_figures_of_one_choice_made_here_are_told_apart(full: Workspace, clean_caches: None) -> None:
    prevalence, confusion = (loading.figure(Choice(), f"table.score_{name}") for name in ("prevalence", "confusion"))
    assert {"reference_score", "judge_score", "count"} <= set(confusion.columns)
    assert list(prevalence.columns) != list(confusion.columns)


@pytest.fixture
def heavy(full: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A workspace whose figures another process makes, however little it holds."""
    monkeypatch.setattr(loading, "HEAVY", 0)
    yield full
    loading.desk().close()


def test_a_filter_that_is_moved_finds_its_figures_made(heavy: Workspace) -> None:
    choice = loading.pinned(Choice())
    loading.ahead(choice, "summary")
    every = [loading.chosen(each) for each in (choice, *loading.one_step_away(choice))]
    assert len({chosen.key() for chosen in every}) == 4
    for _ in range(600):
        if all(loading.desk().is_whole(chosen, now_of(heavy)) for chosen in every):
            return
        time.sleep(0.1)
    pytest.fail("the figures of the choices one step away were not made")


def test_a_manifest_tells_of_the_data_that_its_figures_are_made_of(heavy: Workspace) -> None:
    """Figures of an older revision stay on a page while a new trace or judge comes in."""
    choice = loading.whole(Choice())
    before = datasets.manifest(choice)
    ingest(heavy.engine, [DATA / "samples" / "otlp"])
    with write_transaction(heavy.engine) as connection:
        new = JudgeVersion(rubric="LC", model="newer", rubric_version="1", mode="trace")
        ensure_judge_version(connection, new)
    after = datasets.manifest(choice)
    told = ("data_hash", "judge_versions", "store_revision")
    assert [after[name] for name in told] == [before[name] for name in told]
    renewed = datasets.manifest(loading.whole(Choice()))
    assert not [name for name in told if renewed[name] == before[name]]
    assert renewed["store_revision"] == list(now_of(heavy))
    assert "newer" in str(renewed["judge_versions"])


def test_a_side_that_cannot_be_compared_says_why_and_offers_no_other_try(
    heavy: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = loading.ArmOption("system=nobody", "nobody")
    known = loading.ArmOption("careful-judge", "careful-judge", "careful-judge")
    monkeypatch.setattr(loading, "sides", lambda *_: [known, nobody])
    choice, desk = loading.whole(Choice()), loading.desk()
    asked = Question(figure="differences", chosen=loading.chosen(choice), arguments=(known.text, nobody.text))
    desk.wait(Asked(question=replace(asked, figure="compared", arguments=()), now=now_of(heavy)))
    with pytest.raises(NoFigureError, match=r"^no judge is called 'nobody'; there are ") as told:
        desk.wait(Asked(question=asked, now=now_of(heavy)))
    assert isinstance(told.value, ValueError)  # as where this process makes it
    at = open_page("agreement", view="A against B", side_a="careful-judge", side_b="nobody")
    assert any("no judge is called" in text.value for text in at.info)
    assert "Compute again" not in [button.label for button in at.button]


def test_a_figure_that_is_pruned_while_it_is_read_is_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, asked = Desk(shelf=Shelf(home=tmp_path)), Asked(question=Question(figure="suite"), now=(1,))
    desk.shelf.put(asked.question, asked.now, pd.DataFrame({"a": [1]}))
    monkeypatch.setattr(Desk, "ask", lambda _, asked: wanted.append(asked))
    wanted: list[Asked] = []

    def pruned(file: Path) -> tuple[pd.DataFrame, Revision]:
        file.unlink()
        return read_frame(file)

    monkeypatch.setattr("tracejury.judging.reports.estimate_worker.read_frame", pruned)
    with pytest.raises(Waiting):
        desk.find(asked)
    assert wanted == [asked]


def test_folders_that_another_process_takes_away_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, chosen = Shelf(home=tmp_path), Chosen()
    for now in ((1,), (2,)):
        shelf.put(Question(figure="suite", chosen=chosen), now, pd.DataFrame({"a": [1]}))
    assert len(shelf.revisions(chosen)) == 2
    gone, stat = shelf.revisions(chosen)[0], Path.stat

    def looked_at(path: Path, **more: bool) -> object:
        if path == gone:
            raise FileNotFoundError
        return stat(path, **more)

    monkeypatch.setattr(Path, "stat", looked_at)
    assert gone not in shelf.revisions(chosen)
    assert len(shelf.revisions(chosen)) == 1


@dataclass(kw_only=True)
class Noting(Desk):
    """A desk that notes what it is asked, and answers once it may."""

    may: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def _answer(self, asked: Asked, late: bool) -> dict[str, object]:
        self.asked.append(asked.question.figure)
        self.may.wait(30)
        return {"reason": "noted"}


def test_what_a_page_waits_for_comes_before_what_it_will_draw_and_that_before_what_nobody_asked_for(
    tmp_path: Path,
) -> None:
    desk = Noting(shelf=Shelf(home=tmp_path))
    ahead, later, soon, first = (
        Asked(question=Question(figure=name), now=(1,)) for name in ("coverage", "suite", "votes", "human")
    )
    desk.ask(first)
    while not desk.asked:
        time.sleep(0.01)
    desk.ask_ahead([ahead])
    desk.ask(later, rank=Rank.NEXT)
    desk.ask(soon, rank=Rank.NEXT)
    desk.ask(soon)  # a page has come to it
    desk.may.set()
    while desk.state(ahead) == "waiting":
        time.sleep(0.01)
    assert desk.asked == ["human", "votes", "suite", "coverage"]


def test_what_is_aside_is_made_by_whichever_process_is_free_and_holds_its_data(tmp_path: Path) -> None:
    desk = Noting(shelf=Shelf(home=tmp_path))
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        for at, rank, expected in (((1,), Rank.NEXT, True), ((2,), Rank.NEXT, False), ((1,), Rank.AHEAD, False)):
            desk._processes[True] = _Process(running=idle, at=at)
            for name, is_aside in (("score_figures", True), ("suite", False)):
                wish = _Wish(asked=Asked(question=Question(figure=name), now=(1,)), until=0.0, rank=rank)
                assert desk._may(wish, late=False)
                assert desk._may(wish, late=True) == (expected and is_aside)
        late = _Wish(asked=Asked(question=Question(figure="error_ceiling"), now=(1,)), until=0.0, rank=Rank.AWAITED)
        assert desk._may(late, late=True)
        assert not desk._may(late, late=False)
        little = replace(desk, is_light=lambda now: now == (1,))
        assert little._may(late, late=False)
    finally:
        idle.kill()
        idle.wait()


def test_no_question_is_answered_by_two(tmp_path: Path) -> None:
    desk = Noting(shelf=Shelf(home=tmp_path))
    idle = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        desk._processes[True] = _Process(running=idle, at=(1,))
        names = ("score_figures", "human_ceiling", "error_ceiling", "suite")
        every = [Asked(question=Question(figure=name), now=(1,)) for name in names]
        desk.may.set()
        for asked in every:
            desk.ask(asked, rank=Rank.NEXT)
        while any(desk.state(asked) == "waiting" for asked in every):
            time.sleep(0.01)
        assert sorted(desk.asked) == sorted(names)
    finally:
        idle.kill()
        idle.wait()


@pytest.fixture
def ready(full: Workspace, clean_caches: None) -> Iterator[Workspace]:
    """A small workspace beside which the process that makes figures has started."""
    desk = loading.desk()
    desk.start()
    give_up = time.monotonic() + 60
    while not desk.is_ready and time.monotonic() < give_up:
        time.sleep(0.05)
    assert desk.is_ready
    yield full
    desk.close()


def test_the_started_process_makes_the_figures_of_a_small_workspace_too_and_never_shows_older_ones(
    ready: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SOON_S", 60.0)  # a busy machine makes them later
    assert loading.standing(Choice()).is_kept
    loading.whole(Choice())
    before = now_of(ready)
    assert summary_of(open_page("agreement")).endswith(shown_revision(before))
    confirm_one(ready)
    told = [text.value for text in open_page("agreement").caption]
    assert any(text.endswith(shown_revision(now_of(ready))) for text in told)
    assert not any(shown_revision(before) in text for text in told)


def test_a_page_that_was_drawn_by_figures_of_this_process_goes_on_with_them(
    full: Workspace, clean_caches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a click on a chart would have it wait for the process that has just started, and be lost."""
    held = loading.pinned(Choice())
    monkeypatch.setattr(Desk, "is_ready", True)
    assert not loading.standing(held).is_kept
    confirm_one(full)
    assert loading.standing(held).shown == now_of(full)  # and shows what is there now
    assert loading.standing(Choice()).is_kept


@dataclass(kw_only=True)
class Overtaken(Desk):
    """A desk whose data always changes before a figure is made."""

    def _answer(self, asked: Asked, late: bool) -> dict[str, object]:
        return {"revision": [*asked.now, 1]}


def test_what_cannot_be_made_any_more_is_not_waited_for(tmp_path: Path) -> None:
    desk = Overtaken(shelf=Shelf(home=tmp_path))
    with pytest.raises(MovedOnError, match="the data changed meanwhile"):
        desk.wait(Asked(question=Question(figure="suite"), now=(1,)), at_most_s=30)


def test_a_file_is_made_of_a_newer_revision_where_the_data_changes_while_it_is_waited_for(
    heavy: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, wait = now_of(heavy), Desk.wait
    changed: list[Revision] = []

    def while_people_work(desk: Desk, asked: Asked, **more: float) -> pd.DataFrame:
        if not changed:
            changed.append(asked.now)
            confirm_one(heavy)
            raise MovedOnError(asked)
        return wait(desk, asked, **more)

    monkeypatch.setattr(Desk, "wait", while_people_work)
    choice = loading.with_frames(Choice(reference="ben"))
    assert changed == [first]
    assert loading.standing(choice).shown == now_of(heavy) != first
    assert datasets.manifest(choice)["store_revision"] == list(now_of(heavy))  # nothing of it is still to come
