"""A short way to write down a run of an agent for the tests of the checks, made a trace by the real assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tracejury.ingest.messages import MessageTable
from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Json, Source, SpanDraft, ToolCall, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.checks import find

SYSTEM = """You solve tasks with tools:
- web_search: searches the web
- visit_page: opens a page
- final_answer: hands in the answer"""


@dataclass(frozen=True)
class Ran:
    """A tool that ran after an answer."""

    name: str
    arguments: str = "{}"
    output: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Said:
    """One answer of the model: what it was told before (`ask`), what it called, what ran and what came back."""

    text: str | None
    calls: tuple[ToolCall, ...] = ()
    ran: tuple[Ran, ...] = ()
    step_error: str | None = None
    model_error: str | None = None
    back: str | None = None
    ask: str | None = None
    parameters: str | None = None


def plan(*steps: str, text: str | None = None) -> Said:
    """The answer to a request for a plan."""
    numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return Said(text if text is not None else numbered, ask="Now write a step-by-step plan for the task.")


def answer(text: str, thought: str = "I have what I need.") -> Said:
    """An answer handed in by code."""
    return Said(f'Thought: {thought}\nCode:\n```py\nfinal_answer("{text}")\n```', ran=(Ran("final_answer"),))


def search(query: str, *, output: str | None = "Three results", error: str | None = None) -> Said:
    """A web search by a tool call."""
    arguments = f'{{"query": "{query}"}}'
    return Said(
        None,
        calls=(ToolCall("web_search", arguments, f"call_{query}"),),
        ran=(Ran("web_search", arguments, None if error is not None else output, error),),
        back=f"Observation:\n{error or output}",
    )


def run(
    *turns: Said,
    system: str = SYSTEM,
    task: str = "How long is the North Bridge?",
    final_answer: str | None = "310 m",
    attributes: dict[str, Json] | None = None,
    output: str | None = None,
) -> Trace:
    """The trace of one agent: an AGENT span, a CHAIN span for each turn, in it the LLM span and its tools.

    Ids are `agent`, `step0`, `llm0`, `step1`, `llm1` ... by turn and `tool0`, `tool1` ... over the run.
    """
    said = MessageTable()
    history = [said.add("system", system), said.add("user", task)]
    drafts = [SpanDraft(span_id="agent", name="Agent.run", kind="AGENT", agent="manager", status="OK", start_time=0)]
    drafts[0].attributes, drafts[0].output = attributes or {}, output
    clock, tools = count(1), count()
    for number, turn in enumerate(turns):
        if turn.ask is not None:
            history.append(said.add("user", turn.ask))
        _add_step(drafts, number, turn, said, history, clock)
        answered = drafts[-1].output_messages
        for ran in turn.ran:
            drafts.append(_tool(f"tool{next(tools)}", f"step{number}", ran, next(clock)))
        history += answered
        if turn.back is not None:
            history.append(said.add("tool-response", turn.back))
    return assemble(
        drafts, trace_id="f" * 32, format="test", source=Source(file="t"), messages=said, final_answer=final_answer
    )


def _add_step(
    drafts: list[SpanDraft], number: int, turn: Said, said: MessageTable, history: Sequence[int], clock: count[int]
) -> None:
    failed = turn.step_error is not None
    drafts.append(
        SpanDraft(span_id=f"step{number}", parent_span_id="agent", name=f"Step {number}", kind="CHAIN", agent="manager",
                  status="ERROR" if failed else "OK", status_message=turn.step_error, start_time=next(clock))
    )  # fmt: skip
    answered = (said.add("assistant", turn.text, turn.calls),) if turn.model_error is None else ()
    drafts.append(
        SpanDraft(span_id=f"llm{number}", parent_span_id=f"step{number}", name="model", kind="LLM", agent="manager",
                  status="OK" if turn.model_error is None else "ERROR", status_message=turn.model_error,
                  input=turn.parameters, input_messages=tuple(history), output_messages=answered,
                  start_time=next(clock))
    )  # fmt: skip


def _tool(span_id: str, parent: str, ran: Ran, time: int) -> SpanDraft:
    return SpanDraft(
        span_id=span_id, parent_span_id=parent, name=ran.name, kind="TOOL", agent="manager", tool_name=ran.name,
        tool_arguments=ran.arguments, output=ran.output, status="OK" if ran.error is None else "ERROR",
        status_message=ran.error, start_time=time,
    )  # fmt: skip


def renamed(folder: Path, names: Mapping[str, str], out: Path) -> Path:
    """The files of the folder with other words for the tools, wherever they stand."""
    pattern = re.compile(r"\b(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")\b")
    for file in folder.glob("*.json"):
        text = pattern.sub(lambda found: names[found.group()], file.read_text(encoding="utf-8"))
        (out / file.name).write_text(text, encoding="utf-8")
    return out


def found_in(folder: Path) -> set[tuple[str | None, str | None]]:
    """Which check found something, and where."""
    traces = (trace for trace in read_traces(folder) if isinstance(trace, Trace))
    return {(finding.check, finding.citations[0].span_id) for trace in traces for finding in find(trace)}
