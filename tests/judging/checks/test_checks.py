"""Each check on a run that breaks its rule and on one that keeps it; the verdicts; traces of any shape."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import assert_linear
from tests.judging.checks.runs import SYSTEM, Ran, Said, answer, found_in, plan, renamed, run, search

from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import SPAN_KINDS, Source, SpanDraft, ToolCall, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.checks import CHECKS, checks_version, find, judge_offline
from tracejury.judging.checks.view import look_at
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.records import DIMENSIONS, IMPACTS, Finding, Verdict
from tracejury.judging.taxonomy import dimensions_of, normalise

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "samples" / "trail"
TYPE_ERROR = "TypeError: visit_page() got an unexpected keyword argument 'link'"
TAGGED = "Write a plan. After the last step write the '\n<end_plan>' tag and stop there."
LIMITED = f"{SYSTEM}\nWhen you read a file, print at most 500 characters at a time."
PRINTS_TASK = 'Thought: I will ask web_search for it.\nCode:\n```py\ntask = "Find it"\nprint(task)\n```'
LETTERS = "Observation:\n" + "\n".join("Directory:") + "\n"


def visit(arguments: str = '{"url": "a.example"}', *, output: str | None = "A page", error: str | None = None) -> Said:
    back = f"Observation:\n{error or output}"
    return Said(None, (ToolCall("visit_page", arguments),), (Ran("visit_page", arguments, output, error),), back=back)


def code(text: str, *, thought: str = "Now I compute.", error: str | None = None, back: str = "42") -> Said:
    return Said(f"Thought: {thought}\nCode:\n```py\n{text}\n```", step_error=error, back=error or back)


def message_to_user(text: str) -> Said:
    arguments = f'{{"content": "{text}"}}'
    return Said("Thought: I tell the user.", ran=(Ran("App__send_message_to_user", arguments, "None"),))


STOPPED, TOLD = message_to_user("Max iterations (6) reached. Stopping."), message_to_user("The bridge is 310 m long.")


@dataclass(frozen=True)
class Case:
    """A run that breaks the rule, the spans where, and a run that is near to it and keeps the rule."""

    check: str
    broken: Trace
    at: tuple[str, ...]
    kept: Trace


CASES = (
    Case("bad_arguments", run(visit('{"link": 1}', error=TYPE_ERROR), answer("1")), ("llm0",),
         run(visit(error="no page"), answer("1"))),
    Case("unparsable_action",
         run(Said("I just talk.", step_error="Error in code parsing: no code block", back="Error in code parsing"),
             answer("1")), ("llm1",),
         run(code("1 / 0", error="ZeroDivisionError: division by zero"), answer("1"))),
    Case("unparsable_action",  # a format retry inside the call: the complaint is only told
         run(search("x"), Said("Thought: now.", ask="Error: InvalidActionAgentError, no action found"), answer("1")),
         ("llm1",), run(search("x"), answer("1"))),
    Case("failed_action", run(code("1 / 0", error="ZeroDivisionError: division by zero"), answer("1")), ("llm1",),
         run(code("1 / 1"), answer("1"))),
    Case("failed_action",  # what the world outside did to the action has a name of its own
         run(code("1 / 0", error="ZeroDivisionError: division by zero"), answer("1")), ("llm1",),
         run(visit(error="HTTP Error 404"), visit('{"url": "b"}', error="('Connection aborted.')"),
             visit('{"url": "c"}', error="RecursionError: maximum depth"), code("x()", error="MemoryError"),
             answer("1"))),
    Case("failed_action",  # nothing of the agent follows: the action itself is cited
         run(search("x"), code("1 / 0", error="ZeroDivisionError: division by zero")), ("llm1",),
         run(search("x"), answer("1"))),
    Case("unknown_tool",
         run(Said(None, (ToolCall("fly", "{}"),), step_error="Unknown tool fly", back="Unknown tool fly"), answer("1")),
         ("llm0",),
         run(visit(error="page is gone"), answer("1"))),
    Case("missing_file", run(code("open('a.pdf')", error="FileNotFoundError: No such file or directory: 'a.pdf'"),
                             answer("1")), ("llm0",),
         run(code("open('a.pdf')"), answer("1"))),
    Case("missing_file",  # the same lack met twice is one lack
         run(code("open('a')", error="No such file or directory: 'a'"), code("open( 'a')", error="No such file or "
             "directory: 'a'"), answer("1")), ("llm0",),
         run(code("open('a')", error="IsADirectoryError: 'a'"), answer("1"))),
    Case("tool_defect",
         run(visit(error="UnboundLocalError: cannot access local variable 'page'"), answer("1")), ("llm0",),
         run(code("page", error="UnboundLocalError: cannot access local variable 'page'"), answer("1"))),
    Case("model_call_failed", run(Said(None, model_error="overloaded_error"), answer("1")), ("llm0",),
         run(search("x"), answer("1"))),
    Case("model_call_failed",  # the framework's step names the failure, the span of the model says nothing
         run(Said("", step_error="AgentGenerationError: Error in generating model output: overloaded")), ("llm0",),
         run(Said("", step_error="ValueError: bad step"))),
    Case("access_refused", run(visit(output="Title: Error 403\nPlease enable JS"), visit('{"url": "b"}'), answer("1")),
         ("tool0",), run(visit(output="The page tells of 403 bridges"), answer("1"))),
    Case("not_found", run(visit(output="404 Not Found"), answer("1")), ("tool0",),
         run(visit(output="There are 404 islands"), answer("1"))),
    Case("service_failed", run(visit(error="('Connection aborted.', RemoteDisconnected())"), answer("1")), ("tool0",),
         run(visit(error="TypeError: no url"), answer("1"))),
    Case("rate_limited", run(visit(output="HTTP 429: too many requests"), answer("1")), ("tool0",),
         run(visit(output="429 pages in all"), answer("1"))),
    Case("timed_out", run(visit(error="TimeoutError: 30 s"), answer("1")), ("tool0",),
         run(visit(output="The timetable of the ferry"), answer("1"))),
    Case("resource_exhausted",
         run(code("loop()", error="Reached the max number of operations of 10000000"), answer("1")), ("llm1",),
         run(code("loop()", error="ValueError: no loop"), answer("1"))),
    Case("announced_call_missing", run(Said(PRINTS_TASK, back="Find it"), answer("1")), ("llm0",),
         run(Said(PRINTS_TASK.replace("print(task)", "print(web_search(task))"), ran=(Ran("web_search", output="x"),)),
             answer("1"))),
    Case("missing_call_unnoticed",
         run(Said(PRINTS_TASK, back="Find it"), Said(PRINTS_TASK + " ", back="Find it"), answer("1")), ("llm1",),
         run(Said(PRINTS_TASK, back="Find it"), search("it"), answer("1"))),
    Case("repeated_call", run(search("x"), visit(), search("x"), answer("1")), ("tool2",),
         run(search("x"), search("y"), answer("1"))),
    Case("repeated_call",  # the same call that brings the next page is no repetition
         run(visit(output="page 1"), visit(output="page 1"), answer("1")), ("tool1",),
         run(visit(output="page 1"), visit(output="page 2"), answer("1"))),
    Case("repeated_call",  # the same code again
         run(code("print(x)"), code("print(x)"), answer("1")), ("llm1",),
         run(code("print(x)"), code("print(x)", back="43"), answer("1"))),
    Case("repeated_failure",
         run(*(visit(f'{{"page": {n}}}', error="no page") for n in range(3)), answer("1")), ("tool2",),
         run(visit(error="no page"), visit('{"page": 1}', error="no page"), search("x"), visit(error="no page"))),
    Case("repeated_failure",  # one failure, one name: the very same call again is a repeated call
         run(visit(error="no page"), visit('{"page": 1}', error="no page"), visit('{"page": 2}', error="no page")),
         ("tool2",), run(*(visit(error="no page") for _ in range(3)))),
    Case("repeated_search",
         run(search("length of the North Bridge"), search("North Bridge length"), search("the North Bridge length m"),
             answer("1")), ("tool2",),
         run(search("length of the North Bridge"), search("who built it"), search("year of opening"), answer("1"))),
    Case("text_iterated_as_list",
         run(code("for item in tree:\n    print(item)", back=LETTERS), answer("1")), ("llm1",),
         run(code("print(tree)", back="Observation:\nDirectory:\n  a\n  b\n"), answer("1"))),
    Case("skipped_plan", run(plan("Search for the bridge.", "Read its length."), answer("310")), ("llm1",),
         run(plan("Search for the bridge.", "Read its length."), search("bridge"), answer("310"))),
    Case("skipped_plan",  # where handing in takes two attempts the first is cited
         run(plan("Search for it.", "Read it."), Said("final_answer(310)", step_error="no code", back="no code"),
             answer("310")), ("llm1",),
         run(plan("Search for it.", "Read it."), search("it"), Said("final_answer(310)", step_error="no code"),
             answer("310"))),
    Case("skipped_plan",  # a plan of pure thought needs no call
         run(plan("Ask web_search.", "Sum up."), answer("310")), ("llm1",),
         run(plan("Restate the riddle.", "Rule out the liar."), answer("310"))),
    Case("no_tool_chosen", run(plan("Search for the bridge.", "Read its length."), code("x = 310"), answer("310")),
         ("llm1",), run(plan("Search for the bridge.", "Read its length."), code("x = 1"), search("y"), answer("310"))),
    Case("abandoned_plan",
         run(plan("Search for it.", "Answer."), search("x", error="no result"),
             Said("The search failed, so I compute it instead.\n```py\nx = 1\n```"), answer("1")), ("llm2",),
         run(plan("Search for it.", "Answer."), search("x", error="no result"), search("y"), answer("1"))),
    Case("abandoned_plan",  # meeting what the failed call lacked is mending it
         run(plan("Find the word.", "Answer."), search("x", error="no page is open"),
             replace(visit(), text="I try a different approach and open another page."), answer("1")), ("llm2",),
         run(plan("Find the word.", "Answer."), search("x", error="no page is open"),
             replace(visit(), text="The search failed as no page is open: I open it."), search("x"), answer("1"))),
    Case("repeated_plan",
         run(plan("Search for it.", "Answer."), search("x", error="no result"), plan("Search for it.", "Answer."),
             answer("1")), ("llm2",),
         run(plan("Search for it.", "Answer."), search("x"), plan("Visit the page that was found.", "Read and answer."),
             answer("1"))),
    Case("missing_end_tag",
         run(Said("1. Search.\n2. Answer.", ask=TAGGED), search("x"), answer("1")), ("llm0",),
         run(Said("1. Search.\n2. Answer.\n<end_plan>", ask=TAGGED), search("x"), answer("1"))),
    Case("output_over_limit", run(code("print(text[:1000])", back="x" * 1000), answer("1"), system=LIMITED), ("llm0",),
         run(code("print(text[:500])", back="x" * 5000), answer("1"), system=LIMITED)),
    Case("output_over_limit",  # a long slice that is searched and not printed breaks no limit on printing
         run(code("print(text[0:4000])", back="x" * 4000), answer("1"), system=LIMITED), ("llm0",),
         run(code("found = 'x' in text[:4000]\nprint(found)", back="True"), answer("1"), system=LIMITED)),
    Case("output_over_limit",  # no slice at all: the long output is cited where the agent reads it
         run(code("print(text)", back="x" * 5000), answer("1"), system=LIMITED), ("llm1",),
         run(code("print(text)", back="x" * 5000), answer("1"))),
    Case("answer_punctuated",
         run(Said("FINAL ANSWER: twelve.", ask="Don't output any final sentence punctuation such as '.'")), ("llm0",),
         run(Said("FINAL ANSWER: twelve", ask="Don't output any final sentence punctuation such as '.'"))),
    Case("answer_punctuated",  # the rule is about the answer, not about a report with an answer in it
         run(replace(answer("Twelve."), ask="Use no final punctuation.")), ("llm0",),
         run(Said("It has many arches.\nI counted them: twelve.", ask="Use no final punctuation."))),
    Case("unsupported_answer", run(answer("310", "I recall that it is 310 m long.")), ("llm0",),
         run(search("x"), answer("310", "I recall the result: it is 310 m long."))),
    Case("unsupported_answer",  # a made-up result is none, even after calls that worked
         run(search("x"), answer("310", "I will simulate the length.")), ("llm1",),
         run(search("x"), answer("310", "The page says 310 m."))),
    Case("claimed_check", run(answer("310", "Careful research confirmed 310 m.")), ("llm0",),
         run(search("x"), answer("310", "Careful research confirmed 310 m."))),
    Case("claimed_check",  # words of checking that claim no check of this agent's
         run(answer("310", "I have verified the length.")), ("llm0",),
         run(answer("310", "The bridge of the confirmed bishop, according to much research on bridges."))),
    Case("answer_despite_failures", run(search("x", error="no result"), answer("310")), ("llm1",),
         run(search("x", error="no result"), search("y"), answer("310"))),
    Case("answer_despite_failures",  # an answer that owns up to the failure misreads nothing
         run(search("x", error="no result"), answer("310")), ("llm1",),
         run(search("x", error="no result"), answer("The length could not be found."))),
    Case("gives_up", run(search("x"), answer("Unable to determine")), ("llm1",), run(search("x"), answer("310"))),
    Case("gives_up",  # only what is handed in last counts, whatever label it bears
         run(search("x"), Said("RESULT: I could not find it.")), ("llm1",),
         run(search("x"), Said("RESULT: 310, though I could not find a second source."))),
    Case("no_answer", run(search("x"), visit(), final_answer=None), ("llm1",), run(search("x"), visit())),
    Case("empty_model_answer", run(Said(""), answer("1")), ("llm0",), run(search("x"), answer("1"))),
    Case("no_answer",  # the message to the user tells of the stop
         run(search("x"), STOPPED), ("tool1",), run(search("x"), TOLD)),
    Case("out_of_steps",  # nothing says so, but the steps are counted
         run(search("x"), search("y"), Said("I found nothing."), attributes={"smolagents.max_steps": 2}), ("llm2",),
         run(search("x"), search("y"), answer("1"), attributes={"smolagents.max_steps": 2})),
    Case("out_of_steps", run(search("x"), STOPPED), ("tool1",), run(search("x"), TOLD)),
    Case("rate_limited",  # a model is limited too, and that is not told twice
         run(Said(None, model_error="litellm.RateLimitError: slow down"), answer("1")), ("llm0",),
         run(Said(None, model_error="overloaded_error"), answer("1"))),
    Case("out_of_steps", run(search("x"), Said("So far I have nothing.", ask="Reached max steps.")), ("llm1",),
         run(search("max steps of a robot"), answer("1"))),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.check)
def test_check_cites_the_span_that_breaks_its_rule(case: Case) -> None:
    assert _where(case.check, case.broken) == case.at


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.check)
def test_check_is_silent_on_a_run_that_keeps_its_rule(case: Case) -> None:
    assert _where(case.check, case.kept) == ()


def test_every_check_has_a_case_and_states_its_rule() -> None:
    assert {check.name for check in CHECKS} == {case.check for case in CASES}
    assert len({check.name for check in CHECKS}) == len(CHECKS)
    assert all(len(check.rule) > 40 for check in CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_category_and_dimension_of_a_check_agree_with_the_taxonomy(check: object) -> None:
    assert normalise(check.category) == check.category  # type: ignore[attr-defined]
    assert check.dimension in dimensions_of(check.category)  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.check)
def test_evidence_stands_verbatim_in_the_cited_span(case: Case) -> None:
    for finding in find(case.broken):
        _assert_verbatim(case.broken, finding)


def test_a_tag_that_the_call_stops_at_is_cut_off_by_the_provider_and_no_error_of_the_model() -> None:
    asked = Said("1. Search.\n2. Answer.", ask=TAGGED, parameters='{"stop_sequences": ["<end_plan>"]}')
    assert "missing_end_tag" not in {f.check for f in find(run(asked, answer("1")))}


@pytest.mark.parametrize("name", ["final_answer", "deliver", "hand_over_to_customer"])
def test_the_tool_that_hands_in_the_answer_is_known_by_what_it_does_whatever_its_name(name: str) -> None:
    """Its argument is what the agent returns; so an agent that only called it has called nothing to find out."""
    handed_in = Said(None, calls=(ToolCall(name, '{"text": "310 m, I\\nguess"}', "c"),),
                     ran=(Ran(name, '{"text": "310 m, I\\nguess"}'),))  # fmt: skip
    system = f"{SYSTEM}\n- {name}: gives a text to the user"
    steps = plan("Search the web for the bridge.", "Open the page.")
    trace = run(steps, handed_in, system=system, output="310 m, I guess")
    assert "skipped_plan" in {finding.check for finding in find(trace)}


def test_a_tool_that_is_called_last_is_work_unless_its_argument_is_the_answer() -> None:
    steps = plan("Search the web for the bridge.", "Open the page.")
    trace = run(steps, search("North Bridge"), output="310 m")
    assert "skipped_plan" not in {finding.check for finding in find(trace)}


@pytest.mark.parametrize("asks", ["Draft a strategy for the task.", "List the steps to take.", "Outline a roadmap."])
def test_a_plan_may_be_asked_for_in_other_words(asks: str) -> None:
    steps = Said("1. Search the web.\n2. Open the page.", ask=asks)
    assert "skipped_plan" in {finding.check for finding in find(run(steps, answer("310")))}


def test_what_a_tool_asks_a_model_is_no_turn_of_the_agent() -> None:
    said = MessageTable()
    asked, told = said.add("user", "Describe."), said.add("assistant", "")
    drafts = [
        SpanDraft(span_id="agent", name="Agent", kind="AGENT", agent="manager"),
        SpanDraft(span_id="tool", parent_span_id="agent", kind="TOOL", tool_name="look", agent="manager"),
        SpanDraft(span_id="inner", parent_span_id="tool", kind="LLM", agent="manager",
                  input_messages=(asked,), output_messages=(told,)),
    ]  # fmt: skip
    trace = assemble(drafts, trace_id="a", format="test", source=Source(file="t"), messages=said)
    assert "no_answer" not in {finding.check for finding in find(trace)}


def test_clean_run_scores_three_where_checks_can_judge_and_says_why_not_elsewhere() -> None:
    verdicts = _verdicts(run(search("x"), answer("310", "The page says 310 m.")))
    assert {key: verdict.score for key, verdict in verdicts.items()} == {
        "LC": 3, "EE": 3, "PQ": None, "PA": None, "GF": None, "TS": 3, "TC": 3,
    }  # fmt: skip
    assert verdicts["PQ"].reason == verdicts["PA"].reason == "the trace holds no plan"
    assert "right answer" in (verdicts["GF"].reason or "")


@pytest.mark.parametrize(
    ("trace", "dimension", "score"),
    [
        (run(visit(output="404 Not Found"), answer("1")), "TC", 2),  # low
        (run(visit('{"link": 1}', error=TYPE_ERROR), search("x"), answer("1")), "TC", 1),  # medium
        (run(search("x"), answer("310", "I will simulate the length.")), "LC", 0),  # high
        (run(search("x"), answer("Unable to determine")), "GF", 0),
    ],
)
def test_score_follows_the_gravest_finding(trace: Trace, dimension: str, score: int) -> None:
    assert _verdicts(trace)[dimension].score == score


def test_calls_without_the_model_are_judged_for_execution_and_the_outcome_only() -> None:
    drafts = [
        SpanDraft(span_id=f"t{n}", kind="TOOL", tool_name="list_mails", tool_arguments="{}", output="[]", agent="a")
        for n in range(2)
    ]
    drafts.append(SpanDraft(span_id="t2", kind="TOOL", tool_name="send_message_to_user", agent="a",
                            tool_arguments='{"content": "Max iterations (2) reached. Stopping."}'))  # fmt: skip
    trace = assemble(drafts, trace_id="a", format="test", source=Source(file="t"))
    scores = {key: verdict.score for key, verdict in _verdicts(trace).items()}
    assert scores == {"LC": None, "EE": 1, "PQ": None, "PA": None, "GF": 0, "TS": None, "TC": None}


def test_record_without_words_is_not_judged_for_what_was_said_nor_for_a_missing_answer() -> None:
    drafts = [
        SpanDraft(span_id="m", kind="LLM", status="OK"),
        SpanDraft(span_id="t", kind="TOOL", tool_name="search", tool_arguments="{}", output="x"),
    ]
    trace = assemble(drafts, trace_id="a", format="test", source=Source(file="t"))
    assert {key for key, verdict in _verdicts(trace).items() if verdict.score is not None} == {"EE"}


def test_code_in_tags_is_code() -> None:
    tagged = "Thought: I use web_search.\n<code>\ntask = 1\n</code>"
    assert _where("announced_call_missing", run(Said(tagged, back="1"), answer("1"))) == ("llm0",)


@pytest.mark.parametrize(("error", "reason"), [("overloaded", "overloaded"), ("", "no reason is recorded")])
def test_a_failed_call_is_told_with_its_reason_or_that_none_is_recorded(error: str, reason: str) -> None:
    findings = find(run(Said(None, model_error=error), answer("1")))
    told = [finding.description for finding in findings if finding.check == "model_call_failed"]
    assert told == [f"The model gave no answer: {reason}"]


def test_rate_limit_of_a_model_is_told_once() -> None:
    found = find(run(Said(None, model_error="litellm.RateLimitError: slow down"), answer("1")))
    assert [finding.check for finding in found if finding.citations[0].span_id == "llm0"] == ["rate_limited"]


def test_trace_in_pieces_is_not_said_to_lack_its_answer() -> None:
    trace = run(search("x"), visit(), final_answer=None)
    pieces = [replace(span, parent_span_id="gone", warnings=("orphan: x",)) for span in trace.spans]
    assert "no_answer" not in {finding.check for finding in find(replace(trace, spans=tuple(pieces)))}


def test_trace_without_a_model_is_not_applicable_everywhere() -> None:
    trace = assemble([SpanDraft(span_id="a")], trace_id="a", format="test", source=Source(file="t"))
    assert {verdict.state for verdict in judge_offline(trace)} == {"not_applicable"}
    assert all(verdict.reason for verdict in judge_offline(trace))


def test_verdicts_come_one_a_dimension_with_the_version_of_the_checks() -> None:
    verdicts = judge_offline(run(search("x"), answer("1")))
    assert tuple(verdict.rubric for verdict in verdicts) == DIMENSIONS
    assert {verdict.call.model for verdict in verdicts} == {"checks"}
    assert {verdict.call.parameters["version"] for verdict in verdicts} == {checks_version()}


def test_citations_are_ordinals_of_the_reading_and_resolve() -> None:
    trace = run(visit('{"link": 1}', error=TYPE_ERROR), answer("1"))
    reading = render_trace(trace)
    findings = [finding for verdict in judge_offline(trace, reading) for finding in verdict.findings]
    cites = [citation for finding in findings for citation in finding.citations]
    assert cites
    assert all(reading.resolve(citation.cite) == citation.span_id for citation in cites)
    assert all(citation.cite.startswith("S") for citation in cites)


TEXTS = st.sampled_from([
    None, "", "Plan:\n1. Search.\n2. Answer.", PRINTS_TASK, "FINAL ANSWER: x.", "Error 403", LETTERS, TAGGED, LIMITED,
    '{"query": "a b"}', '{"query": ', "```py\nprint(t[:9999])\n```", "I assume it.\n```py\nfinal_answer(1)\n```",
    TYPE_ERROR, "FileNotFoundError", "Reached max steps", "\x00 \ud7ff ünï", "```", "(" * 50,
])  # fmt: skip
ROLES = st.sampled_from([None, "system", "user", "assistant", "tool", "tool-response", "tool-call"])
NAMES = st.sampled_from([None, "", "web_search", "final_answer", "a+b(", "python_interpreter"])


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    said = MessageTable()
    calls = st.lists(st.builds(ToolCall, NAMES, TEXTS), max_size=2).map(tuple)
    positions = [said.add(draw(ROLES), draw(TEXTS), draw(calls)) for _ in range(draw(st.integers(1, 6)))]
    some = st.lists(st.sampled_from(positions), max_size=5).map(tuple)
    drafts = [
        SpanDraft(
            span_id=f"s{number}",
            parent_span_id=draw(st.sampled_from([None, "gone", *(f"s{n}" for n in range(8))])),
            kind=draw(st.sampled_from(SPAN_KINDS)),
            agent=draw(st.sampled_from([None, "a", "b"])),
            status=draw(st.sampled_from(["OK", "ERROR", "UNSET"])),
            status_message=draw(TEXTS),
            output=draw(TEXTS),
            input=draw(TEXTS),
            tool_name=draw(NAMES),
            tool_arguments=draw(TEXTS),
            input_messages=draw(some),
            output_messages=draw(some),
            start_time=draw(st.one_of(st.none(), st.integers(0, 9))),
        )
        for number in range(draw(st.integers(1, 8)))
    ]
    final = draw(TEXTS)
    return assemble(drafts, trace_id="r", format="test", source=Source(file="t"), messages=said, final_answer=final)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traces())
def test_any_trace_is_judged_without_raising_and_cites_only_its_spans_verbatim(trace: Trace) -> None:
    ids = {span.span_id for span in trace.spans}
    for verdict in judge_offline(trace):
        assert (verdict.score is None) == (verdict.state == "not_applicable")
        for finding in verdict.findings:
            assert {citation.span_id for citation in finding.citations} <= ids
            assert finding.impact in IMPACTS
            _assert_verbatim(trace, finding)


def test_no_check_knows_the_tools_of_the_samples_by_name(tmp_path: Path) -> None:
    names = {
        "library_search": "look_abroad", "open_document": "go_to", "find_in_document": "seek_here",
        "convert_length": "stretch", "final_answer": "deliver_result", "python_interpreter": "python_box",
        "search_agent": "scout",
    }  # fmt: skip
    found = found_in(SAMPLES)
    assert len(found) > 10
    assert found_in(renamed(SAMPLES, names, tmp_path)) == found


@pytest.mark.parametrize(
    "strange", ["\n", " ", "a", "[:", "- ", "```\n", "Error", "1. a\n", "<end", '"query": "', "tool ", "I will use "]
)
def test_strange_long_texts_cost_no_more_than_their_length(strange: str) -> None:
    def judge_text_of(size: int) -> None:
        text = f"FINAL ANSWER: x{strange * size}y"
        searched = Said(text, ran=(Ran("web_search", text, text),), step_error=text)
        turns = (Said(text, back=text, ask=text), searched, Said(text))
        judge_offline(run(*turns, system=text))

    assert_linear(judge_text_of, 5_000)


def _where(check: str, trace: Trace) -> tuple[str | None, ...]:
    return tuple(finding.citations[0].span_id for finding in find(trace) if finding.check == check)


def _verdicts(trace: Trace) -> dict[str, Verdict]:
    return {verdict.rubric: verdict for verdict in judge_offline(trace)}


def _assert_verbatim(trace: Trace, finding: Finding) -> None:
    span = next(span for span in trace.spans if span.span_id == finding.evidence_span_id) if finding.evidence else None
    if span is None:
        assert finding.evidence_place is None
        return
    messages = [trace.messages[at] for at in (*span.input_messages, *span.output_messages)]
    texts = [span.input, span.output, span.tool_arguments, span.status_message]
    texts += [message.content for message in messages]
    texts += [call.arguments for message in messages for call in message.tool_calls]
    assert any(finding.evidence in text for text in texts if text), (finding.check, finding.evidence)


def test_a_score_says_on_how_many_rules_that_apply_it_rests() -> None:
    trace = run(search("tides"), answer("six"))
    rules = [check.name for check in CHECKS if check.dimension == "LC" and not check.lacks(look_at(trace))]
    verdicts = {one.rubric: one for one in judge_offline(trace)}
    assert len(rules) > 5
    assert verdicts["LC"].rationale == f"3: none of {len(rules)} applicable rules broken ({', '.join(rules)})"


def test_broken_rules_are_counted_among_those_that_apply() -> None:
    verdicts = {one.rubric: one for one in judge_offline(run(Said("Thought: I guess."), answer("six", "I guess.")))}
    assert re.match(r"\d: \d+ of \d+ applicable rules broken \(", verdicts["LC"].rationale)


def test_where_no_text_is_there_no_rule_applies_and_there_is_no_score() -> None:
    silent = run(Said(None), Said(None))
    verdicts = {one.rubric: one for one in judge_offline(silent)}
    assert {name: one.score for name, one in verdicts.items() if name != "EE"} == dict.fromkeys(
        ("LC", "PQ", "PA", "GF", "TS", "TC")
    )


def test_a_rule_names_what_of_the_trace_it_lacks() -> None:
    view = look_at(run(Said("It is six.")))
    rules = {check.name: check.lacks(view) for check in CHECKS}
    assert (rules["failed_action"], rules["repeated_plan"]) == (("calls", "results"), ("plan",))
    assert rules["unparsable_action"] == ()
