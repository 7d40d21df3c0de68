"""The adjudicator's page: what is to decide, decisions through its forms, gold at the end."""

from __future__ import annotations

import time
from hashlib import blake2b
from pathlib import Path

import pytest
from tests.app.conftest import OpenPage
from tests.app.marks import choose, click, texts
from tests.app.marks import drawn as drawn_of
from tests.app.workspaces import hold_blind
from tests.build import span_id
from tests.judging.team import many_traces, op, send, submit, trace_id

from tracejury.app import session
from tracejury.app.views.adjudicate import acting
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication import adjudication_items
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.judge_column import judge_opinion, show_judge
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import Call, Citation, Finding, Verdict
from tracejury.judging.reports.frames import default_reference
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace, open_workspace

HIGH = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high", "description": "The **wrong** tool."}


@pytest.fixture
def space(tmp_path: Path, clean_caches: None) -> Workspace:
    made = many_traces(tmp_path / "home", 3)
    submit(made, "adalyn", trace_id(0), scores={"LC": 3, "PQ": 1}, errors=[HIGH | {"label_id": "one"}])
    submit(made, "benedict", trace_id(0), scores={"LC": 0, "PQ": 1})
    for who in ("adalyn", "benedict"):
        submit(made, who, trace_id(1), scores={"LC": 2})
    return open_workspace(tmp_path / "home")


def test_an_empty_desk_says_when_a_trace_comes(empty: Workspace, open_page: OpenPage) -> None:
    assert "differ by two points or more" in open_page("adjudicate").info[0].value


def test_the_case_is_shown_without_a_name_of_a_rater(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    texts_shown = " ".join(
        [*(str(text.value) for text in at.text), *(str(one.value) for one in at.caption),
         *(str(one.label) for one in at.segmented_control), *(str(one.label) for one in at.button)]
    )  # fmt: skip
    assert "R1" in texts_shown
    assert "R2" in texts_shown
    assert "adalyn" not in texts_shown
    assert "benedict" not in texts_shown
    assert "The **wrong** tool." in [text.value for text in at.text]  # as text, not as Markdown
    assert at.button(key="close").disabled


def test_an_adjudicator_is_warned_before_deciding_on_own_labels(space: Workspace, open_page: OpenPage) -> None:
    assert not open_page("adjudicate").warning
    submit(space, "me", trace_id(0), scores={"LC": 3})
    (warning,) = open_page("adjudicate").warning
    assert "some of these labels are yours" in warning.value


def test_deciding_everything_writes_the_gold(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    at.button(key="settle").click().run()
    assert [one.value for one in at.success] == ["1 point accepted."]  # PQ
    at.button(key="keep-one").click().run()
    key = f"{trace_id(0)}-LC"
    at.segmented_control(key=f"grade-{key}").set_value("0")
    at.button(key=f"FormSubmitter:scores-{trace_id(0)}-Save all scores").click().run()
    assert "needs a reason" in at.error[0].value
    at.text_input(key=f"reason-{key}").input("The tool's answer was ignored.")
    at.button(key=f"FormSubmitter:scores-{trace_id(0)}-Save all scores").click().run()
    at.button(key="close").click().run()
    assert [one.value for one in at.success] == ["Gold version 1 is saved."]
    with read_transaction(space.engine) as connection:
        assert default_reference(connection) == "gold"
        decided = adjudication_items.decisions_by_trace(connection)[trace_id(0)]
    assert dict(decided.scores) == {"PQ": 1, "LC": 0}
    assert [one.sources for one in decided.errors.values()] == [{"one"}]


def test_all_scores_are_saved_in_one_go_and_what_needs_a_reason_is_named(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    at.segmented_control(key=f"grade-{trace_id(0)}-LC").set_value("1")
    save = f"FormSubmitter:scores-{trace_id(0)}-Save all scores"
    at.button(key=save).click().run()
    assert "LC" in at.error[0].value  # PQ, which both scored 1, is saved all the same
    with read_transaction(space.engine) as connection:
        assert dict(adjudication_items.decisions_by_trace(connection)[trace_id(0)].scores) == {"PQ": 1}
    at.text_input(key=f"reason-{trace_id(0)}-LC").input("Half of it holds.")
    at.button(key=save).click().run()
    assert [one.value for one in at.success] == ["LC is 1."]


def test_why_raters_differ_stands_at_each_error_and_in_a_table(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    captions = [str(one.value).replace("\\", "") for one in at.caption]
    assert any(text.startswith("Disputed. Raters differ in: existence (not marked by R") for text in captions)
    at.segmented_control(key="adjudicate_view").set_value("All disputed").run()
    table = next(one.value for one in at.dataframe if "difference" in one.value.columns).set_index("difference")
    assert table["errors"].to_dict() == {"existence": 1, "span": 0, "dimension": 0, "impact": 0}


def test_a_rejection_without_a_reason_is_refused(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    at.button(key="FormSubmitter:reject-one-Reject").click().run()
    assert "needs a reason" in at.error[0].value
    at.text_input(key="why-one").input("The tool was right.")
    at.button(key="FormSubmitter:reject-one-Reject").click().run()
    with read_transaction(space.engine) as connection:
        assert dict(adjudication_items.decisions_by_trace(connection)[trace_id(0)].rejected) == {
            "one": "The tool was right."
        }


def test_a_page_drawn_before_anothers_decision_takes_none_and_shows_it_first(
    space: Workspace, open_page: OpenPage
) -> None:
    """Two adjudicators on one trace: the second presses Keep where the first has rejected meanwhile."""
    at = open_page("adjudicate")
    with write_transaction(space.engine) as connection:
        adjudication.reject(connection, ["one"], by="judy", reason="The tool was right.")
    at.button(key="keep-one").click().run()
    assert "after this page was drawn" in at.error[0].value
    assert any("rejected" in str(text.value) for text in at.text)
    with read_transaction(space.engine) as connection:
        assert dict(adjudication_items.decisions_by_trace(connection)[trace_id(0)].rejected) == {
            "one": "The tool was right."
        }
    at.button(key="keep-one").click().run()  # they have seen it now
    assert [one.value for one in at.success] == ["Kept."]


def test_ones_own_decision_refuses_no_other_that_is_pressed_before_it_shows(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "say", lambda _text: None)  # the page is not drawn anew yet
    at = open_page("adjudicate")
    at.button(key="keep-one").click().run()
    at.button(key="settle").click().run()
    assert list(at.error) == []
    with read_transaction(space.engine) as connection:
        decided = adjudication_items.decisions_by_trace(connection)[trace_id(0)]
    assert (decided.outcome_of("one"), dict(decided.scores)) == ("gold", {"PQ": 1.0})


def test_a_label_that_its_rater_changed_meanwhile_is_not_kept_unseen(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    changed = {**HIGH, "label_id": "one", "impact": "low", "category": None, "evidence": []}
    send(space, "adalyn", trace_id(0), op("review.put", status="open"), op("error.put", **changed),
         op("review.put", status="submitted"))  # fmt: skip
    at.button(key="keep-one").click().run()
    with read_transaction(space.engine) as connection:
        assert trace_id(0) not in adjudication_items.decisions_by_trace(connection)


def test_what_nobody_disputes_becomes_gold_in_one_go(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    at.button(key="accept").click().run()
    assert at.success[0].value == "Gold saved for 1 trace; 0 with small differences left."
    with read_transaction(space.engine) as connection:
        assert adjudication_items.decisions_by_trace(connection)[trace_id(1)].version == 1


def test_the_report_of_the_reveal(space: Workspace, open_page: OpenPage) -> None:
    send(space, "adalyn", trace_id(1), op("reveal"))
    send(space, "adalyn", trace_id(1), op("score.put", dimension="LC", value=3))
    at = open_page("adjudicate")
    at.segmented_control(key="adjudicate_view").set_value("Changes after reveal").run()
    (row,) = at.dataframe[0].value.to_dict("records")
    assert (row["annotator"], row["revealed"], row["scores_changed"], row["mean_change"]) == ("adalyn", 1, 1, 1.0)
    assert list(at.dataframe[1].value["trace_id"]) == [trace_id(1)]
    for column in ("submitted", "revealed", "errors_added", "errors_from_judge", "scores_changed", "scores_nearer"):
        choose(at, "anchoring", (0, column))
        assert not at.exception
        (number,) = [text.split()[0] for text in texts(at.caption) if "this point" in text]
        assert number == (str(row[column]) if row[column] else "No"), column
    choose(at, "anchoring", (0, "scores_changed"))
    choose(at, "rows-anchoring", 0)
    assert at.button(key="anchoring-open").label == "Open in Compare"
    choose(at, "anchoring", (0, "annotator"))
    hold_blind(space, "me", trace_id(1))
    at.run()
    assert len(at.dataframe) == 1


def test_an_error_nobody_saw_is_added_with_a_reason(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    key = trace_id(0)
    spans = at.multiselect(key=f"spans-add-{key}")
    assert spans.options == ["S1 AGENT run", "S2 LLM call"]
    spans.set_value([span_id(2)])
    at.segmented_control(key=f"impact-add-{key}").set_value("high")
    at.selectbox(key=f"category-add-{key}").select("Goal Deviation")
    add = f"FormSubmitter:add-{key}-Add"
    at.button(key=add).click().run()
    assert "needs a reason" in at.error[0].value
    at.pills(key=f"dims-add-{key}").set_value(["GF"])
    at.text_input(key=f"reason-add-{key}").input("The goal was another.")
    at.button(key=add).click().run()
    assert [one.value for one in at.success] == ["Added."]
    assert "Added by the adjudicator: no rater marked it." in [one.value for one in at.caption]
    with read_transaction(space.engine) as connection:
        (made,) = adjudication_items.decisions_by_trace(connection)[key].errors.values()
    assert (made.is_added, made.label.category, made.label.dimensions) == (True, "Goal Deviation", ("GF",))
    assert made.label.span_ids == (span_id(2),)


def test_a_judge_is_shown_only_where_a_researcher_says_so(
    full: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The samples hold two people's labels and the offline judge's findings."""
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="judy", role="adjudicator"))
    at = open_page("adjudicate")
    assert [one for one in at.selectbox if one.key == "judge_shown"] == []
    assert "R3" not in " ".join(str(text.value) for text in at.text)
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="ruth", role="researcher"))
    at = open_page("adjudicate")
    at.selectbox(key="judge_shown").select("checks").run()
    at.button(key="save_judge_shown").click().run()
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="judy", role="adjudicator"))
    at = open_page("adjudicate")
    texts_shown = " ".join([*(str(text.value) for text in at.text), *(str(one.value) for one in at.caption)])
    assert "R3" in texts_shown
    assert "checks" not in texts_shown
    assert not any("finding" in str(button.key) for button in at.button)


def test_gold_that_comes_from_a_judge_alone_is_shown_and_changed_while_the_judge_is_not(
    space: Workspace, open_page: OpenPage
) -> None:
    finding = Finding(
        description="Slow.", evidence="", citations=(Citation(cite="S1", span_id=span_id(1)),), dimension="PQ",
        impact="low",
    )  # fmt: skip
    verdict = Verdict(
        rubric="PA", trace_id=trace_id(0), state="scored", score=2, criteria="", rationale="", findings=(finding,),
        call=Call(model="model-x"),
    )  # fmt: skip
    import_outcomes(space.engine, [verdict], model="model-x", author="test")
    with write_transaction(space.engine) as connection:
        show_judge(connection, "model-x", by="ruth")
        opinion = judge_opinion(connection, trace_id(0), "model-x")
        assert opinion is not None
        own = opinion.errors[0].label_id
        adjudication.keep(connection, own, by="judy")
        adjudication.set_score(connection, trace_id(0), "PA", 2, by="judy", reason="as one said")
        show_judge(connection, None, by="ruth")
    at = open_page("adjudicate")
    shown = " ".join([*(str(text.value) for text in at.text), *(str(one.value) for one in at.caption)])
    assert "This error is in the gold; its source labels are not shown here." in shown
    assert "adjudicator · PQ · low · S1 · in the gold" in shown
    assert "Slow." in shown
    assert at.segmented_control(key=f"grade-{trace_id(0)}-PA").value == "2"
    assert "model-x" not in shown
    key = blake2b(own.encode(), digest_size=8).hexdigest()
    at.segmented_control(key=f"impact-edit-{key}").set_value("high")
    at.text_input(key=f"reason-edit-{key}").input("worse")
    at.button(key=f"FormSubmitter:edit-{key}-Save").click().run()
    assert [one.value for one in at.success] == ["Saved."]
    with read_transaction(space.engine) as connection:
        (made,) = adjudication_items.decisions_by_trace(connection)[trace_id(0)].errors.values()
    assert (made.label.impact, made.label.description) == ("high", "Slow.")


def test_who_labels_a_trace_blind_reads_nobody_elses_labels_of_it(space: Workspace, open_page: OpenPage) -> None:
    with write_transaction(space.engine) as connection:
        key = make_queue(connection, QueueSpec(name="own", author="root", k=3), [trace_id(0)], now=1)
    assert next_item(space.engine, key, "me", now=time.time_ns() // 1000) is not None
    at = open_page("adjudicate")
    assert "1 trace left out" in at.info[0].value
    assert "The **wrong** tool." not in [text.value for text in at.text]
    submit(space, "me", trace_id(0))
    assert "The **wrong** tool." in [text.value for text in open_page("adjudicate").text]


def test_a_dot_of_a_rater_lists_their_errors_of_the_dimension_and_opens_the_span(
    space: Workspace, open_page: OpenPage
) -> None:
    submit(space, "adalyn", trace_id(0), scores={"TC": 0})
    at = open_page("adjudicate")
    dots = {tuple(mark) for trace in drawn_of(at, "rater-dots") for mark in trace["customdata"]}
    (rater,) = {rater for rater, dimension in dots if dimension == "TC"}
    assert dots == {("R1", "LC"), ("R2", "LC"), ("R1", "PQ"), ("R2", "PQ"), (rater, "TC")}
    click(at, "rater-dots", {"customdata": [rater, "LC"]})
    assert f"{rater}, LC: 0 errors" in texts(at.caption)
    click(at, "rater-dots", {"customdata": [rater, "TC"]})
    assert f"{rater}, TC: 1 error" in texts(at.caption)
    choose(at, "rows-dot", 0)
    assert at.button(key="dot-open").label == "Open the span in Work"
    at.button(key="keep-one").click().run()
    click(at, "rater-dots", {"customdata": ["final", "TC"]})
    assert "Gold, TC: 1 error" in texts(at.caption)


def test_an_adjudicator_reads_the_trace_in_work(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("adjudicate")
    at.button(key="to_work").click().run()
    assert not at.exception
    assert at.query_params["trace"] == trace_id(0)
    assert [one.value for one in at.header] != ["Adjudicate"]
