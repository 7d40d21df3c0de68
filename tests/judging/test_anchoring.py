"""Blind by construction, and what the reveal changed; practice with the right answers."""

from pathlib import Path
from typing import Any

import pytest
from tests.build import finding, span_id
from tests.judging.team import T0, many_traces, op, queue_of, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication.practice import (
    SHIPPED,
    SHIPPED_TRACE,
    PracticeScore,
    answers_of,
    calibration,
    feedback,
    make_practice,
    make_shipped,
    practice_score,
    practised,
    results,
    standing,
    with_answers,
)
from tracejury.judging.labels.anchoring import (
    REPORT_COLUMNS,
    added_errors,
    anchoring,
    changed_scores,
    counted_by,
    may_see_judges,
    traces_seen,
)
from tracejury.judging.labels.submissions import submissions
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import (
    PRACTICE,
    REPEAT,
    QueueError,
    QueueSpec,
)
from tracejury.judging.records import Call, Verdict
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

ONE = trace_id(0)
ERROR: dict[str, Any] = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high"}


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    opened = many_traces(tmp_path / "home", 3)
    verdict = Verdict(
        rubric="TC", trace_id=ONE, state="scored", score=0, criteria="", rationale="SECRET", call=Call(model="m"),
        findings=(finding("SECRET finding", 2, dimension="TC"),),
    )  # fmt: skip
    import_outcomes(opened.engine, [verdict], model="m", author="root")
    submit(opened, "ben", ONE, scores={"TC": 1}, errors=[ERROR | {"label_id": "ben", "description": "SECRET label"}])
    return opened


def sees(space: Workspace, who: str = "ada", role: Any = "annotator") -> bool:
    with read_transaction(space.engine) as connection:
        allowed = may_see_judges(connection, annotator=who, role=role, trace_id=ONE)
        among = traces_seen(connection, annotator=who, role=role, trace_ids=[ONE])
    assert among == ({ONE} if allowed else set())
    return allowed


class TestBlind:
    def test_before_submitting_nothing_of_others_is_visible_and_after_it_all_is(self, space: Workspace) -> None:
        assert not sees(space)
        send(space, "ada", ONE, op("score.put", dimension="TC", value=2))
        assert not sees(space)
        submit(space, "ada", ONE, scores={})
        assert sees(space)
        send(space, "ada", ONE, op("review.put", status="open"))
        assert not sees(space)

    def test_skipping_shows_nothing(self, space: Workspace) -> None:
        send(space, "ada", ONE, op("review.put", status="skipped", reason="too long"))
        assert not sees(space)

    @pytest.mark.parametrize("role", ["adjudicator", "researcher", "admin"])
    def test_other_roles_see_unless_they_are_at_work_on_the_trace(self, space: Workspace, role: str) -> None:
        assert sees(space, "root", role)
        queue = queue_of(space, 1)
        assert next_item(space.engine, queue, "root", now=T0) is not None
        assert not sees(space, "root", role)

    def test_an_open_hidden_repeat_closes_the_eyes_again(self, space: Workspace) -> None:
        queue = queue_of(space, 1, repeat_share=1)
        submit(space, "ada", ONE)
        assert sees(space)
        place = next_item(space.engine, queue, "ada", now=T0)
        assert place is not None
        assert place.occasion == REPEAT
        assert not sees(space)
        submit(space, "ada", ONE, occasion=REPEAT)
        assert sees(space)

    def test_a_queue_that_is_not_blind_shows_at_once_and_a_blind_one_beside_it_does_not(self, space: Workspace) -> None:
        assert next_item(space.engine, queue_of(space, 1, blind=False), "ada", now=T0) is not None
        assert sees(space)
        assert next_item(space.engine, queue_of(space, 1), "ada", now=T0) is not None
        assert not sees(space)


class TestAnchoring:
    def test_what_the_reveal_changed_is_counted_by_person(self, space: Workspace) -> None:
        # TC: blind 3, then 1; the judge says 0, so nearer. LC: 2 then 3, no judge. PQ: the same again: no change.
        submit(space, "ada", ONE, scores={"TC": 3, "LC": 2, "PQ": 1})
        submit(space, "ada", trace_id(1), scores={"TC": 3})
        send(space, "ada", ONE, op("reveal"))
        for dimension, value in (("TC", 1), ("LC", 3), ("PQ", 1)):
            send(space, "ada", ONE, op("score.put", dimension=dimension, value=value))
        send(space, "ada", ONE, op("error.put", **ERROR, label_id="copied"))
        send(space, "ada", ONE, op("error.put", **(ERROR | {"dimensions": ["LC"]}), label_id="own"))
        submit(space, "cyd", ONE, scores={"TC": 2})
        with read_transaction(space.engine) as connection:
            report, scores, errors = anchoring(connection), changed_scores(connection), added_errors(connection)
        bounds = report[["mean_change_low", "mean_change_high"]]
        assert bounds.isna().all(axis=None)  # both changes are of one trace
        assert report.drop(columns=bounds.columns).to_dict("records") == [
            {
                "annotator": "ada", "submitted": 2, "revealed": 1, "errors_added": 2, "errors_from_judge": 1,
                "scores_changed": 2, "scores_nearer": 1, "mean_change": -0.5,
            }
        ]  # fmt: skip
        assert scores.set_index("dimension")["nearer"].to_dict() == {"LC": None, "TC": True}
        assert errors.set_index("label_id")["from_judge"].to_dict() == {"copied": True, "own": False}

    def test_the_mean_change_is_bounded_by_trace(self, space: Workspace) -> None:
        # one trace changes TC by -2 and LC by 1, the other TC by -1
        for number, blind, revealed in ((0, {"TC": 3, "LC": 2}, {"TC": 1, "LC": 3}), (1, {"TC": 3}, {"TC": 2})):
            submit(space, "ada", trace_id(number), scores=blind)
            send(space, "ada", trace_id(number), op("reveal"))
            changes = [op("score.put", dimension=key, value=value) for key, value in revealed.items()]
            send(space, "ada", trace_id(number), *changes)
        with read_transaction(space.engine) as connection:
            (row,) = anchoring(connection).to_dict("records")
        assert row["mean_change"] == pytest.approx(-2 / 3)
        assert -3 <= row["mean_change_low"] < -1, "two traces tell little: the bounds leave both their means behind"
        assert -0.5 < row["mean_change_high"] <= 3

    @pytest.mark.parametrize("column", REPORT_COLUMNS)
    def test_behind_each_number_of_the_report_stand_as_many_rows(self, space: Workspace, column: str) -> None:
        submit(space, "ada", ONE, scores={"TC": 3, "LC": 2})
        submit(space, "ada", trace_id(1), scores={"TC": 3})
        submit(space, "cyd", trace_id(1), scores={"TC": 3})
        send(space, "ada", ONE, op("reveal"))
        send(space, "ada", ONE, op("score.put", dimension="TC", value=1), op("score.put", dimension="LC", value=3))
        send(space, "ada", ONE, op("error.put", **ERROR, label_id="copied"))
        send(space, "ada", ONE, op("error.put", **(ERROR | {"dimensions": ["LC"]}), label_id="own"))
        with read_transaction(space.engine) as connection:
            (row,) = anchoring(connection).to_dict("records")
            counts = counted_by(connection, "ada", column)
        expected = row["scores_changed"] if column.startswith("mean_change") else row[column]
        assert len(counts) == (0 if column == "annotator" else expected)
        assert "trace_id" in counts

    def test_without_a_reveal_the_report_is_empty_with_its_columns(self, space: Workspace) -> None:
        with read_transaction(space.engine) as connection:
            assert list(anchoring(connection).columns)[:3] == ["annotator", "submitted", "revealed"]
            assert anchoring(connection).empty

    def test_a_reveal_that_changed_nothing_is_a_row_of_zeros(self, space: Workspace) -> None:
        send(space, "ben", ONE, op("reveal"))
        with read_transaction(space.engine) as connection:
            (row,) = anchoring(connection).to_dict("records")
        assert (row["revealed"], row["errors_added"], row["scores_changed"]) == (1, 0, 0)
        assert row["mean_change"] != row["mean_change"]  # NaN: there is no change to take the mean of


class TestPractice:
    def test_feedback_comes_after_submitting_and_compares_with_the_author_of_the_queue(self, space: Workspace) -> None:
        queue_of(space, 1, practice=True, author="ben")
        with read_transaction(space.engine) as connection:
            assert answers_of(connection, ONE) == "ben"
            assert feedback(connection, "ada", ONE) is None
        other = {"span_ids": [span_id(1)], "dimensions": ["PQ"], "impact": "low", "label_id": "extra"}
        submit(
            space,
            "ada",
            ONE,
            scores={"TC": 3, "LC": 1},
            errors=[ERROR | {"label_id": "mine"}, other],
            occasion=PRACTICE,
        )
        with read_transaction(space.engine) as connection:
            answer = feedback(connection, "ada", ONE)
            table = calibration(practised(connection, "ada"))
        assert answer is not None
        assert [(own.label_id, right.label_id) for own, right in answer.caught] == [("mine", "ben")]
        assert [label.label_id for label in answer.unmatched] == ["extra"]
        assert answer.missed == ()
        assert (answer.own_scores, answer.correct_scores) == ({"TC": 3, "LC": 1}, {"TC": 1})
        assert table.to_dict("records") == [{"dimension": "TC", "n": 1, "own": 3.0, "correct": 1.0, "exact": 0.0}]

    def test_the_adjudicated_gold_goes_before_the_author(self, space: Workspace) -> None:
        from tracejury.judging.adjudication import decisions as adjudication

        submit(space, "cyd", ONE, scores={"TC": 1})
        with write_transaction(space.engine) as connection:
            adjudication.reject(connection, ["ben"], by="judy", reason="No error.")
            adjudication.set_score(connection, ONE, "TC", 1, by="judy")
            adjudication.close(connection, ONE, by="judy", seed="s")
        queue_of(space, 1, practice=True, author="ben")
        submit(space, "ada", ONE, scores={"TC": 1}, errors=[ERROR], occasion=PRACTICE)
        with read_transaction(space.engine) as connection:
            assert answers_of(connection, ONE) == "gold"
            answer = feedback(connection, "ada", ONE)
        assert answer is not None
        assert len(answer.unmatched) == 1

    def test_a_queue_may_name_whose_labels_are_right_and_takes_no_trace_without_them(self, space: Workspace) -> None:
        submit(space, "eve", ONE, scores={"TC": 0})
        spec = QueueSpec(name="drill", author="root", practice=True, answers_by="eve")
        with write_transaction(space.engine) as connection:
            assert with_answers(connection, [ONE, trace_id(1)], answers_by="eve", author="root") == [ONE]
            assert with_answers(connection, [ONE], answers_by=None, author="root") == []
            with pytest.raises(QueueError, match="has no correct answers from eve"):
                make_practice(connection, spec, [ONE, trace_id(1)], now=T0)
            make_practice(connection, spec, [ONE], now=T0)
            assert answers_of(connection, ONE) == "eve"

    def test_points_are_errors_caught_and_scores_alike_and_the_mark_opens_the_live_queue(
        self, space: Workspace
    ) -> None:
        drill = queue_of(space, 1, practice=True, answers_by="ben")  # one error, TC 1
        live = queue_of(space, 3, after_key=drill, pass_mark=60, blind=False)
        with read_transaction(space.engine) as connection:
            assert standing(connection, drill, "ada") is None
            before = standing(connection, live, "ada")
        assert before is not None
        assert (before.done, before.total, before.score.percent, before.has_passed) == (0, 1, None, False)
        submit(space, "ada", ONE, scores={"TC": 1}, errors=[ERROR], occasion=PRACTICE)
        other = ERROR | {"span_ids": [span_id(1)], "dimensions": ["PQ"]}
        submit(space, "cyd", ONE, scores={"TC": 1}, errors=[other], occasion=PRACTICE)
        with read_transaction(space.engine) as connection:
            ada, cyd = (standing(connection, live, who) for who in ("ada", "cyd"))
            table = results(connection, drill).set_index("annotator")
        assert ada is not None
        assert cyd is not None
        assert (ada.score, ada.has_passed) == (PracticeScore(points=2, of=2), True)
        assert (cyd.score, cyd.has_passed) == (PracticeScore(points=1, of=3), False)  # one missed, one unmatched
        assert table.loc["cyd"].tolist() == [1, 0, 1, 1, 1, 3, pytest.approx(100 / 3)]

    def test_the_shipped_practice_has_its_answers_and_is_in_no_estimate(self, space: Workspace) -> None:
        key = make_shipped(space.engine, author="root", now=T0)
        with pytest.raises(QueueError, match="exists"):
            make_shipped(space.engine, author="root", now=T0)
        with read_transaction(space.engine) as connection:
            assert answers_of(connection, SHIPPED_TRACE) == SHIPPED
            assert SHIPPED not in set(submissions(connection)["annotator"])
            assert results(connection, key).empty
        submit(space, "ada", SHIPPED_TRACE, scores={"EE": 2, "LC": 3}, occasion=PRACTICE)
        with read_transaction(space.engine) as connection:
            answer = feedback(connection, "ada", SHIPPED_TRACE)
        assert answer is not None
        assert {label.impact for label in answer.missed} == {"low", "medium", "high"}
        assert all(label.description and label.span_ids and label.evidence for label in answer.missed)
        assert practice_score([answer]) == PracticeScore(points=1, of=5 + 7)

    def test_practice_stays_out_of_every_estimate(self, space: Workspace) -> None:
        from tracejury.judging.reports.filters import Filters
        from tracejury.judging.reports.frames import load_frames

        queue_of(space, 1, practice=True, author="ben")
        submit(space, "ada", ONE, scores={"TC": 3}, occasion=PRACTICE)
        with read_transaction(space.engine) as connection:
            frames = load_frames(connection, Filters())
        people = frames.ratings[frames.ratings["judge_model"] == "people"]
        assert set(people["rater"]) == {"ben"}
        assert frames.repeats.empty
