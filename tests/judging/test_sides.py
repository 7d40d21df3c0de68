"""People against people, and two arms of a comparison: judge models, versions, repeats, persons."""

from dataclasses import fields
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.benchmarks.large import Size, build
from tests.build import finding, small_trace, span_id, workspace
from tests.judging.team import submit, trace_id

from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication import decisions as desk
from tracejury.judging.agreement.ceiling import ANY, error_ceiling
from tracejury.judging.agreement.compare import compare_errors, compare_scores
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.matching.rule import Candidate, TextLikeness, propose
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import DIMENSIONS, Call, ErrorLabel, Finding, Match, Verdict
from tracejury.judging.reports.arms import Arm, arm_pairs, read_arm
from tracejury.judging.reports.columns import Columns, load_columns
from tracejury.judging.reports.export import inputs_of, opinions_of
from tracejury.judging.reports.filters import Filters, Split
from tracejury.judging.reports.frames import load_frames, submitted
from tracejury.judging.reports.person_pairs import as_finding, person_pairs, person_revision
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace
from tracejury.judging.store.spans import parents_of

WRONG_TOOL = "The timetable tool is called with a day that it does not know."
NO_CHECK = "The final answer is given without checking the winter timetable."


def error(label_id: str, description: str, *spans: int, dimension: str = "TC") -> dict[str, Any]:
    return {
        "label_id": label_id, "description": description, "span_ids": [span_id(n) for n in spans],
        "dimensions": [dimension], "impact": "high",
    }  # fmt: skip


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """Ada and Ben on traces 0 and 1: one error alike (in the same span), one near, one that only Ada saw."""
    opened = workspace(tmp_path / "home", *(small_trace(trace_id(number)) for number in range(3)))
    submit(opened, "ada", trace_id(0), scores={"TC": 1},
           errors=[error("a1", WRONG_TOOL, 4), error("a2", NO_CHECK, 5, dimension="PA")])  # fmt: skip
    submit(opened, "ben", trace_id(0), scores={"TC": 2}, errors=[error("b1", f"{WRONG_TOOL} It fails.", 4)])
    submit(opened, "ada", trace_id(1), scores={"TC": 3}, errors=[error("a3", WRONG_TOOL, 4)])
    submit(opened, "ben", trace_id(1), scores={"TC": 3}, errors=[error("b3", WRONG_TOOL, 1, dimension="TS")])
    submit(opened, "ada", trace_id(2), scores={"TC": 0}, errors=[error("a4", WRONG_TOOL, 4)])
    return opened


def judged(opened: Workspace, *findings: Finding, score: int, trace: int = 0, repeat: int | None = None) -> None:
    verdict = Verdict(
        rubric="TC", trace_id=trace_id(trace), state="scored", score=score, criteria="", rationale="",
        findings=findings, call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(opened.engine, [verdict], model="m", author="test", repeat=repeat)


def pairs_of(opened: Workspace, **more: Any) -> pd.DataFrame:
    with read_transaction(opened.engine) as connection:
        return person_pairs(connection, Filters(**more))


def test_columns_read_again_after_more_labels_are_those_read_anew(space: Workspace) -> None:
    with read_transaction(space.engine) as connection:
        before = load_columns(connection)
    submit(space, "cara", trace_id(2), scores={"TC": 1}, errors=[error("c1", NO_CHECK, 2), error("c2", NO_CHECK, 4)])
    with read_transaction(space.engine) as connection:
        again, anew = load_columns(connection, before), load_columns(connection)
    assert len(again.error_spans) > len(before.error_spans)
    for each in fields(Columns):
        one, other = getattr(again, each.name), getattr(anew, each.name)
        if isinstance(one, pd.DataFrame):
            names = list(one.columns)
            sorted_one, sorted_other = (
                frame.sort_values(names, key=lambda values: values.astype(str), ignore_index=True)
                for frame in (one, other)
            )
            pd.testing.assert_frame_equal(sorted_one, sorted_other, check_dtype=False)
        else:
            assert one == other


def test_columns_of_other_traces_are_read_anew(space: Workspace, tmp_path: Path) -> None:
    with read_transaction(space.engine) as connection:
        before = load_columns(connection)
    other = workspace(tmp_path / "other", small_trace(trace_id(0)))
    with read_transaction(other.engine) as connection:
        assert load_columns(connection, before).error_spans.empty


def recall_rows(pairs: pd.DataFrame, dimension: str) -> list[tuple[str, bool, bool, bool]]:
    rows = pairs[pairs["dimension"] == dimension].sort_values("error_id")
    return list(rows[["error_id", "relevant", "caught", "localized"]].itertuples(index=False, name=None))


def each_anew(opened: Workspace) -> pd.DataFrame:
    """The pairs of people as those of a judge are proposed: anew for each dimension."""
    rows: list[tuple[Any, ...]] = []
    with read_transaction(opened.engine) as connection:
        labels, likeness = error_labels(connection), TextLikeness()
        for (author, trace), (other, same) in permutations(sorted(submitted(connection, None)), 2):
            ours = [label for label in labels if (label.annotator, label.trace_id) == (author, trace)]
            theirs = [label for label in labels if (label.annotator, label.trace_id) == (other, trace)]
            parents = parents_of(connection, trace)
            for judge in (*DIMENSIONS, ANY) if same == trace else ():
                findings = as_judge(theirs, judge)
                met = {match.label_id: match for match in propose(ours, findings, parents=parents, likeness=likeness)}
                rows += [(author, other, e.label_id, judge, e.label_id in met, localized(met, e)) for e in ours]
    return pd.DataFrame(rows, columns=["author", "other", "error_id", "dimension", "caught", "localized"])


def as_judge(errors: list[ErrorLabel], judge: str) -> list[Candidate]:
    return [
        Candidate(
            finding_id=number,
            finding=as_finding(label),
            dimensions=frozenset(d for d in label.dimensions if judge in (ANY, d)),
        )
        for number, label in enumerate(errors)
        if judge == ANY or judge in label.dimensions
    ]


def localized(met: dict[str, Match], label: ErrorLabel) -> bool:
    return label.label_id in met and met[label.label_id].localized


class TestPersonPairs:
    def test_judged_once_for_all_dimensions_they_are_those_of_each_judged_anew(self, tmp_path: Path) -> None:
        small = Size(traces=6, spans=6, repeats=1, errors=4, readers=(("ada", 1.0), ("ben", 0.9), ("cleo", 0.5)))
        opened = build(tmp_path, small)
        ours, plain = pairs_of(opened), each_anew(opened)
        keys = ["author", "other", "error_id", "dimension"]
        pd.testing.assert_frame_equal(
            ours[list(plain.columns)].sort_values(keys, ignore_index=True), plain.sort_values(keys, ignore_index=True)
        )
        by_judge = plain.groupby("dimension")["caught"].sum()
        assert by_judge.gt(0).all()
        assert by_judge[ANY] > by_judge.drop(ANY).max()  # a dimension in common matters

    def test_one_persons_errors_are_matched_with_anothers_as_with_a_judges(self, space: Workspace) -> None:
        pairs = pairs_of(space)
        assert recall_rows(pairs, "TC") == [
            ("a1", True, True, True), ("a2", False, False, False), ("a3", True, False, False),
            ("b1", True, True, True), ("b3", False, True, False),
        ]  # fmt: skip
        assert recall_rows(pairs, ANY)[2] == ("a3", True, True, False)  # ben saw it, in another span and dimension
        assert set(pairs["trace_id"]) == {trace_id(0), trace_id(1)}  # nobody else submitted the third
        assert set(pairs["reviewers"]) == {2}

    def test_the_ceiling_of_recall_is_pooled_over_both_directions(self, space: Workspace) -> None:
        table = error_ceiling(pairs_of(space), draws=0)
        row = table[(table["dimension"] == ANY) & (table["impact"] == "all") & (table["kind"] == "caught")].iloc[0]
        assert (row["value"], row["n"]) == (pytest.approx(4 / 5), 5)  # all but a2

    def test_labels_made_after_the_reveal_and_the_gold_are_no_further_person(self, space: Workspace) -> None:
        before = pairs_of(space)
        with space.engine.begin() as connection:
            desk.merge(connection, ("a1", "b1"), by="judy", reason="the same")
            desk.keep(connection, "a2", by="judy", reason="right")
            desk.set_score(connection, trace_id(0), "TC", 1, by="judy", reason="ada is right")
            desk.close(connection, trace_id(0), by="judy", seed="s")
        with read_transaction(space.engine) as connection:
            frames = load_frames(connection, Filters(reference="ada"))
        pd.testing.assert_frame_equal(pairs_of(space), before)
        kinds = dict(frames.ratings.groupby("rater")["rater_kind"].first())
        assert kinds == {"ada": "annotator", "ben": "annotator", "gold": "gold"}
        ceiling = Inputs(ratings=frames.ratings, draws=0).human_ceiling
        assert ceiling.set_index("dimension").loc["TC", ["raters", "n"]].tolist() == [2, 2]

    def test_a_split_narrows_it(self, space: Workspace) -> None:
        pairs = pairs_of(space, split=Split(name="s", parts=tuple({trace_id(1): "dev"}.items())))
        assert set(zip(pairs["trace_id"], pairs["split"], strict=True)) == {(trace_id(1), "dev")}

    def test_its_revision_changes_with_labels(self, space: Workspace) -> None:
        with read_transaction(space.engine) as connection:
            before = person_revision(connection)
        submit(space, "ben", trace_id(2), scores={"TC": 0})
        with read_transaction(space.engine) as connection:
            assert person_revision(connection) != before

    def test_it_stands_beside_every_judge_in_the_tables(self, space: Workspace) -> None:
        judged(space, finding(WRONG_TOOL, 4), score=1)
        with read_transaction(space.engine) as connection:
            selection = Filters(reference="ada", draws=0)
            frames = load_frames(connection, selection)
            inputs = inputs_of(frames, selection, opinions_of(connection, selection, frames))
        estimates = inputs.error_estimates.set_index(["dimension", "impact", "kind", "metric"])
        assert estimates.loc[("TC", "all", "caught", "recall"), "ceiling"] == pytest.approx(2 / 3)
        scores = inputs.scores_beside_people.set_index(["dimension", "metric"])
        assert scores.loc[("TC", "exact"), "ceiling"] == 0.5


class TestSides:
    @pytest.mark.parametrize(
        ("text", "side"),
        [
            ("gpt-5, mini", Arm(judge_model="gpt-5, mini")),
            ("judge_model=a,b,repeat=2", Arm(judge_model="a,b", repeat=2)),
            ("version=ab12,version=cd34", Arm(versions=("ab12", "cd34"))),
            ("person=Ada, Countess", Arm(person="Ada, Countess")),
        ],
    )
    def test_an_arm_is_read_from_the_command_line(self, text: str, side: Arm) -> None:
        assert read_arm(text) == side

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("judge_model=a,repeat=-1", "repeat is"),
            ("person=a,judge_model=b", "a side is"),
            ("repeat=1", "a side is"),
            ("person=a,person=b", "person appears twice"),
        ],
    )
    def test_an_arm_that_means_nothing_is_refused(self, text: str, reason: str) -> None:
        with pytest.raises(ValueError, match=reason):
            read_arm(text)

    def test_a_judge_and_a_person_stand_in_either_arm(self, space: Workspace) -> None:
        judged(space, score=3)
        judged(space, finding(WRONG_TOOL, 4), score=3, trace=1)
        propose_matches(space.engine)
        with read_transaction(space.engine) as connection:
            left, right = (arm_pairs(connection, Filters(reference="ada"), read_arm(t)) for t in ("m", "person=ben"))
        errors = compare_errors(left.error_pairs, right.error_pairs, draws=0).set_index(
            ["dimension", "impact", "kind", "metric"]
        )
        row = errors.loc[("TC", "all", "caught", "recall")]
        assert (row["left"], row["right"], row["n"]) == (0.5, 0.5, 3)  # a1 and a3 are TC's; ben caught a1, m a3
        scores = compare_scores(left.score_pairs, right.score_pairs, draws=0).set_index(["dimension", "metric"])
        assert scores.loc[("TC", "bias"), ["left", "right"]].tolist() == [1.0, 0.5]

    def test_repeats_and_versions_of_one_judge(self, space: Workspace) -> None:
        judged(space, score=1, repeat=0)
        judged(space, score=3, repeat=1)
        with read_transaction(space.engine) as connection:
            chosen = Filters(reference="ada")
            sides = [arm_pairs(connection, chosen, Arm(judge_model="m", repeat=repeat)) for repeat in (0, 1)]
            assert [side.score_pairs["judge_score"].tolist() for side in sides] == [[1.0], [3.0]]
            assert [set(side.score_pairs["judge_model"]) for side in sides] == [{"m"}, {"m repeat 1"}]
            with pytest.raises(ValueError, match=r"Try: [0-9a-f]{12} \(TC · m @"):
                arm_pairs(connection, chosen, Arm(versions=("nothing",)))

    @pytest.mark.parametrize(
        ("side", "message"),
        [
            (Arm(judge_model="x"), "no judge is called 'x'; there are m"),
            (Arm(person="zoe"), "'zoe' submitted no review; there are ada, ben"),
            (Arm(person="ada"), "is the reference; choose another person"),
            (Arm(judge_model="m", repeat=5), "has no answer"),
        ],
    )
    def test_what_is_not_there_is_named_with_what_is(self, space: Workspace, side: Arm, message: str) -> None:
        judged(space, score=1)
        with read_transaction(space.engine) as connection, pytest.raises(ValueError, match=message):
            arm_pairs(connection, Filters(reference="ada"), side)
