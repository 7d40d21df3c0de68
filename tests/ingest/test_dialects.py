"""What the tools themselves wrote: one conversation as each tells it, read into the same columns with nothing lost.

The files of `dialects` are made by the scripts of `tests/make_samples`: a model asks for a fare with a wrong harbour,
the tool fails, the model asks again, and answers. Tools differ in what they record; the table says how.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.ingest.test_nothing_lost import really_lost
from tests.test_samples import MACHINE

from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Message, Rejected, Span, ToolCall, Trace

FOLDER = Path(__file__).parent / "dialects"
DATA = Path(__file__).parents[2] / "data" / "samples" / "openai_agents"
FILES = {
    path.name.removesuffix(".otlp.jsonl").removesuffix(".jsonl"): path for path in (*FOLDER.iterdir(), *DATA.iterdir())
}
QUESTION = "How much is a return ticket to Orm for two adults?"
ANSWER = "Two adults pay 48 crowns for the way there and back."
MISTAKE, RIGHT = {"harbour": "Ormm"}, {"harbour": "Orm"}
TOLD_OTHERWISE = {"SystemMessage", "HumanMessage", "AIMessage", "ToolMessage", "trace", "trace.span"}
"""LangChain's `id` says what the message's role says; the Agents SDK's `object` says that a span is one.

Texts in quotes are OpenLLMetry's: it writes a text as JSON.
"""


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a file tells: model calls in all (a handoff is one more), with their text; tool spans; the agent."""

    calls: int = 3
    text: bool = True
    call_ids: bool = True
    tools: bool = True
    errors: bool = True
    arguments: bool = True
    results: bool = True
    agent: str | None = "ticket_desk"


AGENTS_SDK = Told(calls=4, agent="ticket desk")
FORMS = {
    "adk": Told(arguments=False, results=False),
    "adk-latest": Told(),
    "autogen": Told(calls=0, text=False, arguments=False, results=False),
    "crewai": Told(calls=0, text=False, agent="ticket desk"),
    "genai-event": Told(arguments=False, results=False, agent=None),
    "genai-span": Told(arguments=False, results=False, agent=None),
    "haystack": Told(agent="haystack.agent"),
    "langfuse": Told(agent="ticket desk"),
    "langgraph": Told(),
    "langsmith": Told(),
    "litellm-latest": Told(tools=False, call_ids=False, agent=None),
    "litellm-parent": Told(tools=False, agent=None),
    "litellm-request": Told(tools=False, call_ids=False, agent=None),
    "openai-agents": AGENTS_SDK,
    "openai-agents-chat": AGENTS_SDK,
    "openai-agents-responses": Told(calls=4, text=False, agent="ticket desk"),
    "openai-agents-text": AGENTS_SDK,
    "openllmetry-langgraph": Told(errors=False),
    "openllmetry-openai": Told(agent="ticket desk"),
    "pydantic-ai": Told(),
    "strands": Told(agent="ticket desk"),
    "strands-latest": Told(agent="ticket desk"),
}


def traces_of(name: str) -> list[Trace]:
    found = list(read_traces(FILES[name]))
    assert [item for item in found if isinstance(item, Rejected)] == []
    return [item for item in found if isinstance(item, Trace)]


def main_trace(name: str) -> Trace:
    """The conversation; beside it a file may hold a call that the provider refused, or the making of the agent."""
    return max(traces_of(name), key=lambda trace: len(trace.spans))


def of_kind(trace: Trace, kind: str) -> list[Span]:
    return sorted((span for span in trace.spans if span.kind == kind), key=lambda span: span.start_time or 0)


def said(trace: Trace, places: tuple[int, ...]) -> list[Message]:
    return [trace.messages[place] for place in places]


def with_text() -> list[str]:
    return [name for name, told in FORMS.items() if told.text]


def test_every_file_is_spoken_of() -> None:
    assert FORMS.keys() == FILES.keys()


@pytest.mark.parametrize("name", FORMS)
def test_no_value_that_the_tool_wrote_is_lost(name: str) -> None:
    missing = really_lost(FILES[name], traces_of(name))
    assert [item for item in missing if item[1] not in TOLD_OTHERWISE and not str(item[1]).startswith('"')] == []


@pytest.mark.parametrize("name", FORMS)
def test_no_doubt_is_left_but_those_named(name: str) -> None:
    told = {warning.partition(":")[0] for trace in traces_of(name) for warning in trace.all_warnings}
    named = {
        "litellm-parent": {"litellm_parent"},
        "openai-agents-responses": {"no_text", "no_messages"},
        "autogen": {"no_tool_text", "nothing_to_read"},  # its span of the agent being made says nothing
        **{name: {"no_tool_text"} for name in ("adk", "genai-event", "genai-span")},
    }
    assert told == named.get(name, set())


@pytest.mark.parametrize("name", FORMS)
def test_a_file_names_no_machine(name: str) -> None:
    assert MACHINE.findall(FILES[name].read_bytes()) == []


@pytest.mark.parametrize("name", with_text())
def test_question_and_answer_are_found(name: str) -> None:
    trace = main_trace(name)
    assert (trace.goal, (trace.final_answer or "").strip()) == (QUESTION, ANSWER)


@pytest.mark.parametrize("name", with_text())
def test_each_model_call_was_given_all_that_was_said_before(name: str) -> None:
    trace = main_trace(name)
    calls = of_kind(trace, "LLM")
    assert len(calls) == FORMS[name].calls
    last = said(trace, calls[-1].input_messages)
    assert [call.arguments and json.loads(call.arguments) for call in asked(last)] == [MISTAKE, RIGHT]
    assert all(call.id for call in asked(last))
    results = [message for message in last if message.tool_call_id and "assistant" not in (message.content or "")]
    assert [message.tool_call_id for message in results] == [call.id for call in asked(last)]
    assert "48" in (results[-1].content or "")
    assert [m.content for m in last if m.role == "user" and not m.tool_call_id] == [QUESTION]
    (answer,) = said(trace, calls[-1].output_messages)
    assert (answer.role, (answer.content or "").strip()) == ("assistant", ANSWER)


def asked(messages: list[Message]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls if call.name == "ticket_price"]


@pytest.mark.parametrize("name", with_text())
def test_each_reply_holds_the_call_that_the_model_made(name: str) -> None:
    trace = main_trace(name)
    made = [call for span in of_kind(trace, "LLM") for call in asked(said(trace, span.output_messages))]
    assert [json.loads(call.arguments or "null") for call in made] == [MISTAKE, RIGHT]
    assert all(call.id for call in made) is FORMS[name].call_ids


@pytest.mark.parametrize("name", FORMS)
def test_model_and_tokens_are_counted_once(name: str) -> None:
    trace = main_trace(name)
    calls = of_kind(trace, "LLM")
    assert len(calls) == FORMS[name].calls
    assert all(call.prompt_tokens and call.completion_tokens and call.total_tokens for call in calls)
    assert all((call.model or "harbour-1").endswith("harbour-1") for call in calls)
    assert sum(call.completion_tokens or 0 for call in calls[-3:]) in (0, 24)


@pytest.mark.parametrize("name", [name for name, told in FORMS.items() if told.tools])
def test_the_tool_failed_once_and_then_gave_the_fare(name: str) -> None:
    trace, told = main_trace(name), FORMS[name]
    first, second = (span for span in of_kind(trace, "TOOL") if "ticket_price" in (span.tool_name or ""))
    assert (first.tool_name, second.tool_name) == ("ticket_price", "ticket_price")
    assert (first.status == "ERROR") is told.errors
    assert second.status != "ERROR"
    assert (re.search(r"\bOrmm\b", first.tool_arguments or "") is not None) is told.arguments
    assert (re.search(r"\bOrm\b", second.tool_arguments or "") is not None) is told.arguments
    assert ("48" in (second.output or "")) is told.results


def test_the_span_that_litellm_writes_its_calls_on_says_none_of_them() -> None:
    outer, *calls = main_trace("litellm-parent").spans
    assert (outer.kind, outer.name, outer.input_messages, outer.output_messages) == ("CHAIN", "ticket desk", (), ())
    assert {call.kind for call in calls} == {"LLM"}


@pytest.mark.parametrize("name", FORMS)
def test_calls_and_tools_work_for_the_agent(name: str) -> None:
    trace = main_trace(name)
    worked = [span for kind in ("LLM", "TOOL") for span in of_kind(trace, kind)][-1:]
    assert [span.agent for span in worked] == [FORMS[name].agent]


@pytest.mark.parametrize(
    "name", ["genai-span", "litellm-parent", "litellm-request", "openllmetry-openai", "langsmith", "openai-agents-chat"]
)
def test_a_call_that_the_provider_refused_says_why(name: str) -> None:
    (refused,) = (trace for trace in traces_of(name) if "harbour-9" in json.dumps([s.model for s in trace.spans]))
    told = "\n".join(f"{span.status_message} {span.events}" for span in refused.spans)
    assert "no such model" in told
    assert not any(span.completion_tokens for span in refused.spans)
