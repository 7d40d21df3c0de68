"""Adjudication: who differs where, worst first and unnamed; decisions kept, gold written whole and in versions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from tests.benchmarks.large import Size, build
from tests.build import error_label, span_id
from tests.judging.team import many_traces, op, send, submit, trace_id

from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.adjudication import adjudication_items, judge_column
from tracejury.judging.adjudication import decisions as desk
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem, Opinions
from tracejury.judging.adjudication.decisions import AdjudicationError
from tracejury.judging.adjudication.disputes import Opinion, anonymous, dispute, groups
from tracejury.judging.agreement.reliability import alpha
from tracejury.judging.labels.label_store import error_labels, reviews, score_labels
from tracejury.judging.records import DIMENSIONS, Call, Citation, ErrorLabel, Evidence, Finding, Verdict
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import default_reference, load_frames
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store import spans as store_spans

SEED = "a secret"
PARENTS: dict[str, str | None] = {span_id(n): span_id(1) if n > 1 else None for n in range(1, 9)}


def label(number: int, *spans: int, who: str = "ada", **more: Any) -> ErrorLabel:
    bare: dict[str, Any] = {"description": "", "evidence": (), "annotator": who}
    return error_label(number, spans=spans, **(bare | more))


def paired(one: list[ErrorLabel], other: list[ErrorLabel]) -> list[tuple[str, ...]]:
    joined = groups({"R1": one, "R2": other}, parents=PARENTS)
    return sorted(group.label_ids for group in joined)


class TestSameError:
    def test_the_same_span_and_dimension_is_the_same_error_without_a_word(self) -> None:
        assert paired([label(1, 4)], [label(2, 4, 5)]) == [("label-1", "label-2")]

    def test_another_dimension_on_the_same_span_is_another_error(self) -> None:
        assert paired([label(1, 4)], [label(2, 4, dimensions=("LC",))]) == [("label-1",), ("label-2",)]

    def test_another_dimension_is_the_same_error_where_both_quote_the_same(self) -> None:
        piece = Evidence(quote="kept", span_id=span_id(4), field="output", start=10, end=40)
        other = Evidence(quote="kept too", span_id=span_id(4), field="output", start=30, end=60)
        apart = Evidence(quote="else", span_id=span_id(4), field="output", start=40, end=60)
        first = label(1, 4, evidence=(piece,))
        assert paired([first], [label(2, 4, dimensions=("LC",), evidence=(other,))]) == [("label-1", "label-2")]
        assert len(paired([first], [label(2, 4, dimensions=("LC",), evidence=(apart,))])) == 2

    def test_the_parent_span_counts_and_a_far_span_does_not(self) -> None:
        assert paired([label(1, 4)], [label(2, 1)]) == [("label-1", "label-2")]
        assert len(paired([label(1, 4)], [label(2, 6)])) == 2

    def test_words_alone_join_errors_of_one_dimension_and_few_or_other_words_do_not(self) -> None:
        description = "The timetable tool was called with a day that it does not know."
        again = "Called the timetable tool with a day it does not know"
        other = "The final answer names a ferry that does not run in winter."
        assert len(paired([label(1, 4, description=description)], [label(2, 6, description=again)])) == 1
        assert len(paired([label(1, 4, description=description)], [label(2, 6, description=other)])) == 2
        assert len(paired([label(1, 4, description="wrong tool")], [label(2, 6, description="wrong tool")])) == 2

    def test_pairs_are_one_to_one_and_the_surest_wins(self) -> None:
        words = "The timetable tool is called with a day that it does not know."
        labels = [label(1, 4), label(2, 4, description=words)]
        assert paired(labels, [label(3, 4, description=words)]) == [("label-1",), ("label-2", "label-3")]

    def test_three_raters_make_one_group_with_at_most_one_error_of_each(self) -> None:
        joined = groups({"R1": [label(1, 4)], "R2": [label(2, 4)], "R3": [label(3, 4), label(4, 4)]}, parents=PARENTS)
        assert sorted(len(group.labels) for group in joined) == [1, 3]
        (alone,) = [group for group in joined if len(group.labels) == 1]
        assert alone.missing == ("R1", "R2")


class TestDisputes:
    def test_scores_two_apart_differ_and_one_apart_do_not(self) -> None:
        opinions = {"a": Opinion(errors=[], scores={"LC": 3, "TC": 1, "PQ": None}),
                 "b": Opinion(errors=[], scores={"LC": 1, "TC": 2, "PQ": 0})}  # fmt: skip
        conflict = dispute("t", opinions, parents={}, seed=SEED)
        assert dict(conflict.gaps) == {"LC": 2}
        assert conflict.weight == 2

    @pytest.mark.parametrize(("impact", "weight"), [("low", 0), ("medium", 2), ("high", 3)])
    def test_an_error_that_one_did_not_see_differs_from_medium_on(self, impact: str, weight: int) -> None:
        opinions = {"a": Opinion(errors=[label(1, 4, impact=impact)], scores={}), "b": Opinion(errors=[], scores={})}
        conflict = dispute("t", opinions, parents=PARENTS, seed=SEED)
        assert conflict.weight == weight
        assert conflict.is_disputed == (weight > 0)

    def test_names_are_hidden_in_an_order_of_each_trace_that_only_the_seed_knows(self) -> None:
        people = ["ada", "ben", "cyd"]
        named = [anonymous(people, trace_id=f"t{n}", seed=SEED) for n in range(60)]
        orders = {tuple(names[person] for person in people) for names in named}
        assert len(orders) == 6
        assert anonymous(people, trace_id="t1", seed=SEED) == anonymous(people[::-1], trace_id="t1", seed=SEED)
        assert any(
            anonymous(people, trace_id=f"t{n}", seed=SEED) != anonymous(people, trace_id=f"t{n}", seed="other")
            for n in range(10)
        )


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """Ada and Ben: trace 0 worst (all scores 3 apart), 1 a missed high error, 2 alike, 3 only by Ada."""
    opened = many_traces(tmp_path / "home", 4)
    error = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high", "description": "Wrong tool."}
    submit(opened, "ada", trace_id(0), scores=dict.fromkeys(DIMENSIONS, 3), errors=[error | {"label_id": "ada-0"}])
    submit(opened, "ben", trace_id(0), scores=dict.fromkeys(DIMENSIONS, 0))
    submit(opened, "ada", trace_id(1), scores={"LC": 2}, errors=[error | {"label_id": "ada-1"}])
    submit(opened, "ben", trace_id(1), scores={"LC": 2})
    submit(opened, "ada", trace_id(2), scores={"LC": 2}, errors=[error | {"label_id": "ada-2", "description": ""}])
    wider = error | {"label_id": "ben-2", "span_ids": [span_id(1), span_id(2)]}
    submit(opened, "ben", trace_id(2), scores={"LC": 2}, errors=[wider])
    submit(opened, "ada", trace_id(3), scores={"LC": 0})
    return opened


def open_cases(space: Workspace, **more: Any) -> list[AdjudicationItem]:
    with read_transaction(space.engine) as connection:
        return adjudication_items.items(connection, seed=SEED, **more)


def opinions_now(space: Workspace, before: Opinions | None = None) -> Opinions:
    with read_transaction(space.engine) as connection:
        return adjudication_items.all_opinions(connection, seed=SEED, before=before)


def ids(items: list[AdjudicationItem]) -> list[str]:
    return [one.dispute.trace_id for one in items]


def gold(space: Workspace) -> tuple[dict[str, ErrorLabel], dict[tuple[str, str], float | None], list[str]]:
    with read_transaction(space.engine) as connection:
        name = default_reference(connection)
        errors = error_labels(connection, tables.error_label.c.annotator == name)
        scores = score_labels(connection, tables.score_label.c.annotator == name)
        done = [r.trace_id for r in reviews(connection) if r.annotator == name and r.status == "submitted"]
    assert name == "gold"
    return (
        {one.label_id: one for one in errors},
        {(s.trace_id, s.dimension): None if s.not_applicable else s.value for s in scores},
        done,
    )


def decide(space: Workspace, action: str, *args: Any, **more: Any) -> Any:
    with write_transaction(space.engine) as connection:
        return getattr(desk, action)(connection, *args, by="judy", **more)


def one_case(space: Workspace, trace: str) -> AdjudicationItem:
    with read_transaction(space.engine) as connection:
        item = adjudication_items.item(connection, trace, seed=SEED)
    assert item is not None
    return item


def settle_trace_1(space: Workspace) -> str:
    label_id: str = decide(space, "keep", "ada-1")
    decide(space, "set_score", trace_id(1), "LC", 2)
    decide(space, "close", trace_id(1), seed=SEED)
    return label_id


class TestTheDesk:
    def test_only_what_two_people_differ_on_is_there_worst_first(self, space: Workspace) -> None:
        items = open_cases(space)
        assert ids(items) == [trace_id(0), trace_id(1)]
        assert items[0].dispute.weight == 7 * 3 + 3
        assert items[1].dispute.weight == 3

    def test_no_name_of_a_rater_stands_in_what_identifies_them(self, space: Workspace) -> None:
        for one in open_cases(space):
            assert set(one.dispute.raters) == {"R1", "R2"}
            assert all(rater in {"R1", "R2"} for group in one.dispute.groups for rater, _ in group.labels)

    def test_drafts_are_not_compared(self, space: Workspace) -> None:
        send(space, "ben", trace_id(1), op("review.put", status="open"))
        assert ids(open_cases(space)) == [trace_id(0)]

    def test_of_what_was_read_only_the_traces_that_changed_are_read_again(self, space: Workspace) -> None:
        before = opinions_now(space)
        submit(space, "ben", trace_id(3), scores={"LC": 3})  # a second person: now disputed
        send(space, "ben", trace_id(1), op("review.put", status="open"))  # no longer submitted
        send(space, "ada", trace_id(0), op("score.put", dimension="TC", value=1))
        after = opinions_now(space, before)
        assert after == opinions_now(space)
        assert set(after.disputes) == {trace_id(0), trace_id(2), trace_id(3)}
        assert "TC" in before.disputes[trace_id(0)].gaps
        assert "TC" not in after.disputes[trace_id(0)].gaps
        assert after.disputes[trace_id(2)] is before.disputes[trace_id(2)]

    @pytest.mark.parametrize("few", [0, adjudication_items.FEW])
    def test_all_at_once_is_what_each_trace_says_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
    ) -> None:
        monkeypatch.setattr(adjudication_items, "FEW", few)
        monkeypatch.setattr(store_spans, "AT_ONCE", 7)
        size = Size(traces=12, spans=12, repeats=1, readers=(("ada", 0.9), ("ben", 0.7), ("cleo", 0.6)))
        built = build(tmp_path / "random", size)
        with read_transaction(built.engine) as connection:
            every = adjudication_items.all_opinions(connection, seed=SEED)
            alone = {key: adjudication_items.item(connection, key, seed=SEED) for key in trace_ids(connection)}
        found, items = every.disputes, {key: one for key, one in alone.items() if one is not None}
        assert len(found) > 5
        assert {key: one.dispute for key, one in items.items()} == found
        assert {key: one.changed_at for key, one in items.items()} == {key: every.changed_at[key] for key in items}
        assert any(group.missing for one in found.values() for group in one.groups)
        assert any(len(group.labels) > 1 for one in found.values() for group in one.groups)

    def test_gold_that_is_written_is_nobodys_opinion_of_what_was_read(self, space: Workspace) -> None:
        before = opinions_now(space)
        settle_trace_1(space)
        after = opinions_now(space, before)
        assert after == opinions_now(space)
        assert after.disputes == before.disputes

    def test_what_somebody_still_writes_refuses_no_decision_and_reopens_no_gold(self, space: Workspace) -> None:
        """Cyd is at work on trace 1, blind: nothing of theirs is on the desk before they submit."""
        shown = one_case(space, trace_id(1)).revision
        send(space, "cyd", trace_id(1), op("score.put", dimension="TC", value=1))
        with read_transaction(space.engine) as connection:
            desk.refuse_if_changed(connection, trace_id(1), shown)
        settle_trace_1(space)
        send(space, "cyd", trace_id(1), op("score.put", dimension="TC", value=2))
        assert one_case(space, trace_id(1)).status == "closed"
        shown = one_case(space, trace_id(1)).revision
        send(space, "cyd", trace_id(1), op("review.put", status="submitted", no_error=True))
        with (
            read_transaction(space.engine) as connection,
            pytest.raises(AdjudicationError, match="after this page was drawn"),
        ):
            desk.refuse_if_changed(connection, trace_id(1), shown)
        assert one_case(space, trace_id(1)).status == "changed"

    def test_a_kept_error_becomes_gold_when_the_trace_is_closed_and_not_before(self, space: Workspace) -> None:
        label_id = decide(space, "keep", "ada-1")
        with read_transaction(space.engine) as connection:
            assert default_reference(connection) == "ada"
        with pytest.raises(AdjudicationError, match="the score of LC"):
            decide(space, "close", trace_id(1), seed=SEED)
        decide(space, "set_score", trace_id(1), "LC", 2)
        assert decide(space, "close", trace_id(1), seed=SEED) == 1
        errors, scores, done = gold(space)
        assert set(errors) == {label_id}
        assert (errors[label_id].span_ids, errors[label_id].impact, errors[label_id].description) == (
            (span_id(2),),
            "high",
            "Wrong tool.",
        )
        assert errors[label_id].attributes == {"gold_version": 1, "sources": ["ada-1"], "action": "keep"}
        assert scores == {(trace_id(1), "LC"): 2}
        assert done == [trace_id(1)]
        assert ids(open_cases(space)) == [trace_id(0)]
        assert ids(open_cases(space, everything=True)) == [trace_id(0), trace_id(1)]

    def test_the_peoples_own_labels_stay_as_they_were(self, space: Workspace) -> None:
        def own() -> list[ErrorLabel]:
            with read_transaction(space.engine) as connection:
                return error_labels(connection, tables.error_label.c.annotator.in_(("ada", "ben")))

        before = own()
        settle_trace_1(space)
        assert own() == before

    def test_merging_joins_spans_dimensions_and_words(self, space: Workspace) -> None:
        merged = decide(space, "merge", ["ada-2", "ben-2"])
        decide(space, "set_score", trace_id(2), "LC", 2)
        decide(space, "close", trace_id(2), seed=SEED)
        errors, _, _ = gold(space)
        assert errors[merged].span_ids == (span_id(2), span_id(1))
        assert errors[merged].description == "Wrong tool."  # the first had no words

    def test_an_edit_is_checked_and_needs_a_reason(self, space: Workspace) -> None:
        with pytest.raises(AdjudicationError, match="needs a reason"):
            decide(space, "edit", ["ada-1"], reason=" ", impact="low")
        with pytest.raises(AdjudicationError, match="not in trace"):
            decide(space, "edit", ["ada-1"], reason="r", span_ids=["nowhere"])
        with pytest.raises(AdjudicationError, match="needs a span"):
            decide(space, "edit", ["ada-1"], reason="r", dimensions=[])
        edited = decide(space, "edit", ["ada-1"], reason="No harm came of it.", impact="low", dimensions=["TS", "LC"])
        decide(space, "set_score", trace_id(1), "LC", 2)
        decide(space, "close", trace_id(1), seed=SEED)
        errors, _, _ = gold(space)
        assert (errors[edited].impact, errors[edited].dimensions) == ("low", ("LC", "TS"))
        assert errors[edited].description == "Wrong tool."

    def test_a_rejection_needs_a_reason_and_leaves_a_gold_without_errors(self, space: Workspace) -> None:
        with pytest.raises(AdjudicationError, match="needs a reason"):
            decide(space, "reject", ["ada-1"], reason="")
        decide(space, "reject", ["ada-1"], reason="The tool was right.")
        decide(space, "set_score", trace_id(1), "LC", 2)
        decide(space, "close", trace_id(1), seed=SEED)
        errors, _, done = gold(space)
        assert errors == {}
        assert done == [trace_id(1)]
        with read_transaction(space.engine) as connection:
            (review,) = [r for r in reviews(connection) if r.annotator == "gold"]
        assert review.no_error

    def test_a_score_where_raters_differ_needs_a_reason_and_must_be_one(self, space: Workspace) -> None:
        with pytest.raises(AdjudicationError, match="needs a reason"):
            decide(space, "set_score", trace_id(0), "LC", 3)
        with pytest.raises(AdjudicationError, match="not a score"):
            decide(space, "set_score", trace_id(0), "LC", 5, reason="r")
        with pytest.raises(AdjudicationError, match="not a dimension"):
            decide(space, "set_score", trace_id(0), "XX", 1, reason="r")
        decide(space, "set_score", trace_id(0), "LC", None, reason="Nothing to check.")
        with read_transaction(space.engine) as connection:
            assert adjudication_items.decisions_by_trace(connection)[trace_id(0)].scores == {"LC": None}

    def test_foreign_and_gone_labels_are_refused(self, space: Workspace) -> None:
        for labels, message in (
            (["ada-1", "ada-2"], "different traces"),
            (["none"], "no longer exists"),
            ([], "no label"),
        ):
            with pytest.raises(AdjudicationError, match=message):
                decide(space, "reject", labels, reason="r")
        with pytest.raises(AdjudicationError, match="fewer than two"):
            decide(space, "close", trace_id(3), seed=SEED)


class TestVersions:
    def test_deciding_again_makes_a_second_version_and_keeps_the_id_of_the_error(self, space: Workspace) -> None:
        first = settle_trace_1(space)
        again = decide(space, "edit", ["ada-1"], reason="Less grave.", impact="medium")
        assert again == first
        errors, _, _ = gold(space)
        assert errors[first].impact == "high"  # until the trace is closed again
        assert [one.status for one in open_cases(space)] == ["open", "open"]
        assert decide(space, "close", trace_id(1), seed=SEED) == 2
        errors, _, _ = gold(space)
        assert errors[first].impact == "medium"
        assert errors[first].attributes["gold_version"] == 2
        with read_transaction(space.engine) as connection:
            rows = [(row.version, row.action) for row in connection.execute(select(tables.adjudication))]
        assert rows == [(1, "keep"), (1, "score"), (1, "close"), (2, "edit"), (2, "close")]

    def test_a_later_rejection_takes_the_error_out_of_the_gold(self, space: Workspace) -> None:
        settle_trace_1(space)
        decide(space, "reject", ["ada-1"], reason="On second thought.")
        decide(space, "close", trace_id(1), seed=SEED)
        assert gold(space)[0] == {}

    def test_rejecting_one_of_two_merged_labels_leaves_the_error_of_the_other(self, space: Workspace) -> None:
        merged = decide(space, "merge", ["ada-2", "ben-2"])
        decide(space, "reject", ["ben-2"], reason="Another matter.")
        with read_transaction(space.engine) as connection:
            decided = adjudication_items.decisions_by_trace(connection)[trace_id(2)]
        assert decided.errors[merged].sources == {"ada-2"}
        assert (decided.outcome_of("ada-2"), decided.outcome_of("ben-2")) == ("gold", "rejected")

    def test_a_settled_trace_comes_back_when_a_rater_changes_their_mind(self, space: Workspace) -> None:
        settle_trace_1(space)
        send(space, "ben", trace_id(1), op("score.put", dimension="LC", value=0))
        assert {one.dispute.trace_id: one.status for one in open_cases(space)}[trace_id(1)] == "changed"

    def test_the_audit_log_names_the_adjudicator(self, space: Workspace) -> None:
        settle_trace_1(space)
        with read_transaction(space.engine) as connection:
            rows = [(row.who, row.what) for row in connection.execute(select(tables.audit))]
        assert ("judy", "adjudication: keep") in rows
        assert ("judy", "gold written") in rows


class TestAgreed:
    def test_what_all_say_is_settled_at_once(self, space: Workspace) -> None:
        assert decide(space, "settle_agreed", trace_id(2), seed=SEED) == 2  # one error, one score
        assert decide(space, "settle_agreed", trace_id(2), seed=SEED) == 0
        assert decide(space, "settle_agreed", trace_id(0), seed=SEED) == 0

    def test_unanimous_traces_become_gold_in_one_go_and_others_wait(self, space: Workspace) -> None:
        assert desk.accept_undisputed(space.engine, by="judy", seed=SEED) == [trace_id(2)]
        assert desk.accept_undisputed(space.engine, by="judy", seed=SEED) == []
        errors, scores, done = gold(space)
        assert len(errors) == 1
        assert done == [trace_id(2)]
        assert scores == {(trace_id(2), "LC"): 2}

    def test_a_name_that_is_taken_by_an_import_is_not_used_for_the_gold(self, space: Workspace) -> None:
        submit(space, "x", trace_id(3))
        with write_transaction(space.engine) as connection:
            from tracejury.judging.store.people import ensure_annotator

            ensure_annotator(connection, "gold")
            assert adjudication_items.gold_name(connection) == "gold (adjudicated)"
            assert adjudication_items.gold_name(connection) == "gold (adjudicated)"

    def test_the_gold_is_no_rater_of_the_next_round(self, space: Workspace) -> None:
        settle_trace_1(space)
        with read_transaction(space.engine) as connection:
            item = adjudication_items.item(connection, trace_id(1), seed=SEED)
        assert item is not None
        assert item.dispute.raters == ("R1", "R2")


def test_people_who_disagree_on_everything_give_alpha_below_zero_and_a_full_queue(tmp_path: Path) -> None:
    count = 10
    space = many_traces(tmp_path / "home", count)
    for number in range(count):
        high = {"span_ids": [span_id(2)], "dimensions": ["LC"], "impact": "high"}
        one, other = (3, 0) if number % 2 else (0, 3)
        submit(space, "ada", trace_id(number), scores=dict.fromkeys(DIMENSIONS, one), errors=[high])
        elsewhere = high | {"dimensions": ["PQ"]}
        submit(space, "ben", trace_id(number), scores=dict.fromkeys(DIMENSIONS, other), errors=[elsewhere])
    items = open_cases(space)
    assert len(items) == count
    assert {one.dispute.weight for one in items} == {7 * 3 + 3 + 3}
    with read_transaction(space.engine) as connection:
        ratings = load_frames(connection, Filters(reference="ada")).ratings
    wide = ratings[ratings["dimension"] == "LC"].pivot(index="unit", columns="rater", values="value")
    found = alpha(wide.to_numpy(dtype=np.float64).T)
    # interval alpha of ten opposite pairs: D_o = 9; values 10 x 0 and 10 x 3: D_e = 2*10*10*9 / (20*19) = 4.74
    assert found.value == pytest.approx(1 - 9 / (1800 / 380))
    assert found.value is not None
    assert found.value < 0


class TestAnErrorNobodySaw:
    def added(self, space: Workspace, trace: str = trace_id(2), **more: Any) -> str:
        content: dict[str, Any] = {
            "reason": "The answer names no source.", "span_ids": [span_id(2)], "dimensions": ["LC"], "impact": "medium",
            "description": "Made up.", "quote": "An answer.",
        }  # fmt: skip
        with write_transaction(space.engine) as connection:
            return desk.add(connection, trace, by="judy", **(content | more))

    def decided(self, space: Workspace, trace: str = trace_id(2)) -> adjudication_items.TraceDecisions:
        with read_transaction(space.engine) as connection:
            return adjudication_items.decisions_by_trace(connection)[trace]

    def gold(self, space: Workspace, trace: str = trace_id(2)) -> list[ErrorLabel]:
        table = tables.error_label
        with read_transaction(space.engine) as connection:
            return error_labels(connection, table.c.annotator == "gold", table.c.trace_id == trace)

    def write(self, space: Workspace) -> int:
        with write_transaction(space.engine) as connection:
            desk.settle_agreed(connection, trace_id(2), by="judy", seed=SEED)
            return desk.close(connection, trace_id(2), by="judy", seed=SEED)

    def test_it_stands_in_the_gold_and_is_edited_and_taken_back_in_later_versions(self, space: Workspace) -> None:
        key = self.added(space)
        assert self.write(space) == 1
        (mine,) = [one for one in self.gold(space) if one.label_id == key]
        assert (mine.dimensions, mine.impact, mine.evidence[0].quote) == (("LC",), "medium", "An answer.")
        assert (mine.attributes["action"], mine.attributes["gold_version"]) == ("add", 1)
        assert "judge_shown" not in mine.attributes
        with write_transaction(space.engine) as connection:
            assert desk.edit(connection, [key], by="judy", reason="worse than I thought", impact="high") == key
        assert self.decided(space).errors[key].is_added
        assert self.write(space) == 2
        assert {one.label_id: one.impact for one in self.gold(space)}[key] == "high"
        with write_transaction(space.engine) as connection:
            desk.reject(connection, [key], by="judy", reason="it is in the goal")
        assert self.write(space) == 3
        assert key not in {one.label_id for one in self.gold(space)}
        assert len(self.gold(space)) == 1  # what Ada and Ben both saw

    @pytest.mark.parametrize(
        ("more", "says"),
        [({"reason": " "}, "needs a reason"), ({"span_ids": ["nowhere"]}, "is not in trace"),
         ({"dimensions": []}, "needs a span, a dimension and an impact"), ({"trace": trace_id(3)}, "fewer than two")],
    )  # fmt: skip
    def test_what_is_not_whole_is_refused(self, space: Workspace, more: dict[str, Any], says: str) -> None:
        with pytest.raises(AdjudicationError, match=says):
            self.added(space, **more)


class TestAJudgeAmongTheRaters:
    JUDGE_MODEL = "model-x"

    @pytest.fixture
    def judged(self, space: Workspace) -> Workspace:
        """The judge of TC gave trace 1 a 0 with two findings: the one Ada saw, and one of its own."""
        findings = [
            Finding(description=words, evidence=quote, citations=(Citation(cite="S", span_id=span_id(span)),),
                    dimension="TC", impact=impact)
            for words, quote, span, impact in (("Wrong tool.", "An answer.", 2, "high"), ("Slow.", "", 1, None))
        ]  # fmt: skip
        verdict = Verdict(
            rubric="TC", trace_id=trace_id(1), state="scored", score=0, criteria="", rationale="",
            findings=tuple(findings), call=Call(model=self.JUDGE_MODEL),
        )  # fmt: skip
        import_outcomes(space.engine, [verdict], model=self.JUDGE_MODEL, author="test")
        return space

    def item(self, space: Workspace, judge: str | None) -> AdjudicationItem:
        with read_transaction(space.engine) as connection:
            outcome = adjudication_items.item(connection, trace_id(1), seed=SEED, judge=judge)
        assert outcome is not None
        return outcome

    def test_it_is_off_until_a_judge_model_is_chosen_that_has_judged(self, judged: Workspace) -> None:
        with write_transaction(judged.engine) as connection:
            assert judge_column.judge_shown(connection) is None
            with pytest.raises(judge_column.JudgeColumnError, match="has judged no trace"):
                judge_column.show_judge(connection, "nobody", by="ruth")
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
            assert judge_column.judge_shown(connection) == self.JUDGE_MODEL
            judge_column.show_judge(connection, None, by="ruth")
            assert judge_column.judge_shown(connection) is None
            whats = connection.scalars(select(tables.audit.c.what)).all()
        assert whats == ["judge shown to adjudicators"] * 2

    def test_it_is_one_more_rater_whose_number_the_seed_decides(self, judged: Workspace) -> None:
        assert self.item(judged, None).dispute.raters == ("R1", "R2")
        shown = self.item(judged, self.JUDGE_MODEL).dispute
        assert shown.raters == ("R1", "R2", "R3")
        (only,) = shown.scores["TC"].items()  # nobody else scored it
        assert only[1] == 0
        assert [len(group.labels) for group in shown.groups] == [1, 2]  # its own; the one that Ada saw too
        places = set()
        for n in range(20):
            with read_transaction(judged.engine) as connection:
                item = adjudication_items.item(connection, trace_id(1), seed=f"seed {n}", judge=self.JUDGE_MODEL)
            assert item is not None
            places |= item.dispute.scores["TC"].keys()
        assert places == {"R1", "R2", "R3"}

    def test_whether_people_differ_is_not_the_judges_business(self, judged: Workspace) -> None:
        with read_transaction(judged.engine) as connection:
            before = [one.dispute.weight for one in adjudication_items.items(connection, seed=SEED)]
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
        with read_transaction(judged.engine) as connection:
            assert [one.dispute.weight for one in adjudication_items.items(connection, seed=SEED)] == before

    def test_its_finding_is_kept_or_rejected_like_a_label_and_the_gold_says_that_it_was_shown(
        self, judged: Workspace
    ) -> None:
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
        groups_of = self.item(judged, self.JUDGE_MODEL).dispute.groups
        own, both = groups_of[0].label_ids[0], list(groups_of[1].label_ids)
        with write_transaction(judged.engine) as connection:
            with pytest.raises(AdjudicationError, match="an impact"):
                desk.keep(connection, own, by="judy")  # the judge gave none
            desk.merge(connection, both, by="judy")
            desk.set_score(connection, trace_id(1), "LC", 2, by="judy")
            desk.set_score(connection, trace_id(1), "TC", 0, by="judy", reason="as one said")
            with pytest.raises(AdjudicationError, match="still undecided"):
                desk.close(connection, trace_id(1), by="judy", seed=SEED, judge=self.JUDGE_MODEL)
            desk.reject(connection, [own], by="judy", reason="slowness is no error here")
            assert desk.close(connection, trace_id(1), by="judy", seed=SEED, judge=self.JUDGE_MODEL) == 1
        table = tables.error_label
        with read_transaction(judged.engine) as connection:
            (gold,) = error_labels(connection, table.c.annotator == "gold", table.c.trace_id == trace_id(1))
        assert gold.attributes["judge_shown"] == self.JUDGE_MODEL
        assert gold.attributes["sources"] == sorted(both)

    def test_a_finding_without_an_impact_takes_none_from_what_it_is_merged_with(self, judged: Workspace) -> None:
        own, both = (group.label_ids for group in self.item(judged, self.JUDGE_MODEL).dispute.groups)
        people = next(label_id for label_id in both if not label_id.startswith(judge_column.PREFIX))
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
            desk.merge(connection, [*own, people], by="judy")
        (made,) = self.item(judged, self.JUDGE_MODEL).decided.errors.values()
        assert made.label.impact == "high"
        assert made.label.is_complete

    def test_gold_decided_beside_a_judge_says_so_when_it_is_hidden_before_the_gold_is_written(
        self, judged: Workspace
    ) -> None:
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
        own, both = (list(group.label_ids) for group in self.item(judged, self.JUDGE_MODEL).dispute.groups)
        with write_transaction(judged.engine) as connection:
            desk.reject(connection, own, by="judy", reason="slowness is no error here")
            desk.merge(connection, both, by="judy")
            desk.set_score(connection, trace_id(1), "LC", 2, by="judy")
            judge_column.show_judge(connection, None, by="ruth")
            desk.close(connection, trace_id(1), by="judy", seed=SEED)
        table = tables.error_label
        with read_transaction(judged.engine) as connection:
            (gold,) = error_labels(connection, table.c.annotator == "gold", table.c.trace_id == trace_id(1))
        assert gold.attributes["judge_shown"] == self.JUDGE_MODEL

    def test_gold_made_of_a_finding_stands_and_is_changed_while_the_judge_is_not_shown(self, judged: Workspace) -> None:
        own, _ = (list(group.label_ids) for group in self.item(judged, self.JUDGE_MODEL).dispute.groups)
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
            key = desk.edit(connection, own, by="judy", reason="slow indeed", impact="low")
            desk.set_score(connection, trace_id(1), "TC", 0, by="judy", reason="as one said")
            judge_column.show_judge(connection, None, by="ruth")
        now = self.item(judged, None)
        assert [(one.label_id, one.is_added) for one in now.apart] == [(key, False)]
        assert now.scores_apart == {"TC": 0}
        with write_transaction(judged.engine) as connection:
            assert desk.edit(connection, own, by="judy", reason="worse", impact="high") == key
        (made,) = self.item(judged, None).apart
        assert (made.label.description, made.label.impact, made.label.label_id) == ("Slow.", "high", key)
        with write_transaction(judged.engine) as connection:
            desk.reject(connection, own, by="judy", reason="no error here")
        assert self.item(judged, None).decided.errors == {}

    def test_a_label_takes_the_finding_it_was_merged_with_along_while_the_judge_is_not_shown(
        self, judged: Workspace
    ) -> None:
        _, both = (list(group.label_ids) for group in self.item(judged, self.JUDGE_MODEL).dispute.groups)
        with write_transaction(judged.engine) as connection:
            judge_column.show_judge(connection, self.JUDGE_MODEL, by="ruth")
            desk.merge(connection, both, by="judy")
            judge_column.show_judge(connection, None, by="ruth")
        now = self.item(judged, None)
        (group,) = now.dispute.groups
        assert now.apart == ()
        assert {*group.label_ids, *now.behind(group)} == set(both)
        with write_transaction(judged.engine) as connection:
            desk.reject(connection, [*group.label_ids, *now.behind(group)], by="judy", reason="no error")
        assert self.item(judged, None).decided.errors == {}

    def test_gold_made_of_a_label_that_its_person_took_back_stays_on_the_desk(self, judged: Workspace) -> None:
        (group,) = self.item(judged, None).dispute.groups
        with write_transaction(judged.engine) as connection:
            key = desk.keep(connection, group.label_ids[0], by="judy")
        taken_back = [op("review.put", status="open"), op("error.delete", label_id=group.label_ids[0])]
        send(judged, "ada", trace_id(1), *taken_back, op("review.put", status="submitted", no_error=True))
        now = self.item(judged, None)
        assert now.dispute.groups == ()
        assert [one.label_id for one in now.apart] == [key]
        with write_transaction(judged.engine) as connection:
            desk.edit(connection, sorted(now.apart[0].sources), by="judy", reason="less than I thought", impact="low")
        assert self.item(judged, None).apart[0].label.impact == "low"
