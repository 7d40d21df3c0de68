"""What every check looks at, computed once a trace: the turns of each agent with their calls, results and plans."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import orjson

from tracejury.ingest.trace import Message, Span, ToolCall, Trace
from tracejury.judging.judges.trace_text import announces_plan, available_tools

FINAL_TOOLS = frozenset({
    "final_answer", "finalanswer", "submit", "finish", "submit_answer", "finish_task", "send_message_to_user",
})  # fmt: skip
CODE_TOOL = re.compile(
    r"(?:^|_)(?:i?python|bash|shell|terminal|interpreter|repl)(?:_|$)|(?:run|exec|execute)_?(?:code|command)|code_?exec",
    re.IGNORECASE,
)
"""Names of tools that run the agent's own code: what they find out is the agent's own working."""
_OWN_ROLES = frozenset({"assistant", "tool-call", "system"})
_CODE = re.compile(r"(?:```(?:py|python)?|^<code>)[ \t]*\n(.*?)(?:```|</code>|\Z)", re.DOTALL | re.MULTILINE)
_NAMED_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_ACTION_TEXT = re.compile(r"^[ \t]*(?:Code:|Action:|Calling tools:|<action>)", re.MULTILINE)
_LISTED_TOOL = re.compile(r"^-[ \t]+`?([A-Za-z_]\w*)`?[ \t]*:[ \t]*\S?", re.MULTILINE)
_MODEL_FAILED = re.compile(r"Error in generating model output|litellm\.\w*Error|openai\.\w*Error|anthropic\.\w*Error")
_STEP_LIMIT = re.compile(r"max_?(?:steps|iterations|turns)$", re.IGNORECASE)
_PLAN_REQUEST = re.compile(
    r"\b(?:write|develop|make|create|draft|update|revise|give|devise|produce|outline|list)\b[^.\n]{0,80}"
    r"\b(?:plan|strategy|road ?map|to-?do list|(?:list|sequence) of steps|steps (?:to|that|you))\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"^[ \t]*(?:[-*•][ \t]*)?(?:Step[ \t]*)?\d{1,2}[.):][ \t]+\S.*$", re.MULTILINE | re.IGNORECASE)


Need = Literal["steps", "words", "answers", "prompts", "calls", "arguments", "results", "tools", "plan"]
NEEDS: dict[Need, str] = {
    "steps": "step of an agent",
    "words": "answer of a model with words or calls",
    "answers": "answer of a model",
    "prompts": "prompt",
    "calls": "call of a tool",
    "arguments": "arguments of a tool",
    "results": "result of a tool",
    "tools": "tool that the agent was offered",
    "plan": "plan",
}
"""What a rule may look at, in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """An error after a turn: its text, the TOOL span that raised it, or whether the call of the model failed.

    `tool` None and `of_model` False: the agent's code or the framework around it failed.
    """

    text: str
    tool: Span | None
    of_model: bool = False


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One answer of a model within one agent's thread, with what it did and what came back.

    `heard` are the messages this thread had not been told before, `tools` the TOOL spans and `delegates` the
    AGENT spans that ran before the thread's next turn; `results` is what came back as text. `finals` are the tools
    of this trace that hand in an answer.
    """

    span: Span
    number: int
    heard: tuple[Message, ...]
    prompt: tuple[Message, ...]
    answers: tuple[Message, ...]
    tools: tuple[Span, ...]
    delegates: tuple[Span, ...]
    errors: tuple[Failed, ...]
    results: tuple[str, ...]
    finals: frozenset[str]

    @cached_property
    def said(self) -> str:
        return "\n".join(message.content for message in self.answers if message.content) or self.span.output or ""

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(call for message in self.answers for call in message.tool_calls)

    @cached_property
    def code(self) -> str:
        """The code of the answer, in fences or `<code>` tags, "" if none."""
        return "\n".join(_CODE.findall(self.said))

    @cached_property
    def thought(self) -> str:
        """The answer up to its first code block or call."""
        cuts = [m.start() for m in (_CODE.search(self.said), _ACTION_TEXT.search(self.said)) if m is not None]
        return self.said[: min(cuts)] if cuts else self.said

    @cached_property
    def called(self) -> frozenset[str]:
        """Names this turn calls: tool calls, functions in its code, tools and agents that ran."""
        names = {call.name for call in self.calls if call.name}
        names |= set(_NAMED_CALL.findall(self.code))
        names |= {tool.tool_name for tool in self.tools if tool.tool_name}
        names |= {agent.agent for agent in self.delegates if agent.agent}
        return frozenset(names)

    @cached_property
    def acts(self) -> bool:
        return bool(self.calls or self.tools or self.delegates or self.code or _ACTION_TEXT.search(self.said))

    @cached_property
    def is_final(self) -> bool:
        """Hands in the answer by a tool made for that."""
        return any(is_final_tool(name, self.finals) for name in self.called)

    @cached_property
    def hands_in(self) -> bool:
        """Hands in the answer, or writes the call that would, even where the framework cannot read it."""
        return self.is_final or any(is_final_tool(name, self.finals) for name in _NAMED_CALL.findall(self.said))

    @cached_property
    def handed_in(self) -> str:
        """The text handed in: what the tool made for that was given, as it ran, as called or in code; else all said."""
        call_arguments = [tool.tool_arguments for tool in self.tools if is_final_tool(tool.tool_name, self.finals)]
        call_arguments += [call.arguments for call in self.calls if is_final_tool(call.name, self.finals)]
        texts = next((texts for arguments in call_arguments if (texts := _texts(arguments))), ())
        if texts:
            return max(texts, key=len)
        written = [match for match in _NAMED_CALL.finditer(self.said) if is_final_tool(match.group(1), self.finals)]
        return self.said[written[-1].end() :] if written else self.said

    @cached_property
    def worked(self) -> bool:
        """A tool or another agent ran in this turn and did not fail (handing in the answer is no work)."""
        return bool(self.delegates) or any(tool.status != "ERROR" for tool in self._work)

    @cached_property
    def tried(self) -> bool:
        """A tool or another agent was called, whatever came of it."""
        return bool(self.delegates or self._work)

    @cached_property
    def _work(self) -> tuple[Span, ...]:
        return tuple(tool for tool in self.tools if not is_final_tool(tool.tool_name, self.finals))


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One agent at work on one task: its turns in order. `tool_names` are the tools and agents it was offered.

    `span` is the agent's own, None where the source has none; `in_tool` marks a model that a tool asks itself.
    """

    agent: str | None
    span: Span | None
    in_tool: bool
    turns: tuple[Turn, ...]
    tool_names: frozenset[str]
    finals: frozenset[str]

    @cached_property
    def work_tools(self) -> frozenset[str]:
        """What this agent was offered to find things out or to change things with, code and the answer apart."""
        return frozenset(
            name for name in self.tool_names if not is_final_tool(name, self.finals) and CODE_TOOL.search(name) is None
        )

    @cached_property
    def plans(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if is_plan(turn))

    def after(self, turn: Turn) -> Turn | None:
        return self.turns[turn.number + 1] if turn.number + 1 < len(self.turns) else None

    @cached_property
    def most_steps(self) -> int | None:
        """The number of steps that the agent's own span allows it, None where it names none."""
        attributes = self.span.attributes.items() if self.span is not None else ()
        named = [value for key, value in attributes if _STEP_LIMIT.search(key)]
        return next((int(value) for value in named if isinstance(value, int | str) and str(value).isdecimal()), None)

    @cached_property
    def tried(self) -> bool:
        """Whether this agent ever called a tool or another agent."""
        return any(turn.tried for turn in self.turns)

    @cached_property
    def worked(self) -> bool:
        """Whether any call of this agent brought a result."""
        return any(turn.worked for turn in self.turns)

    @cached_property
    def final(self) -> Turn | None:
        """The turn that hands in the answer: by a tool, else the last one when it calls nothing.

        Where handing in took several attempts in a row, the first of them: the later ones say the same again.
        """
        for turn in reversed(self.turns):
            if turn.is_final:
                return self._first_attempt(turn)
        last = self.turns[-1] if self.turns else None
        return last if last is not None and not last.acts and not is_plan(last) and last.said.strip() else None

    def _first_attempt(self, turn: Turn) -> Turn:
        while turn.number > 0 and self.turns[turn.number - 1].hands_in:
            turn = self.turns[turn.number - 1]
        return turn


@dataclass(frozen=True, kw_only=True)
class View:
    """A trace as the checks see it, its threads in reading order; each thread has a turn or more.

    `work` are the tools that each agent ran, in order, also of agents whose model is not recorded; `finals` are the
    tools found to hand in an answer, whatever their name.
    """

    trace: Trace
    threads: tuple[Thread, ...]
    work: tuple[tuple[Span, ...], ...]
    finals: frozenset[str]

    @property
    def turns(self) -> Iterator[tuple[Thread, Turn]]:
        return ((thread, turn) for thread in self.threads for turn in thread.turns)

    @cached_property
    def main(self) -> Thread | None:
        """The outermost agent's thread; without AGENT spans the thread with the most turns."""
        agents = [thread for thread in self.threads if thread.span is not None]
        others = [thread for thread in self.threads if not thread.in_tool]
        return agents[0] if agents else max(others, key=lambda thread: len(thread.turns), default=None)

    @cached_property
    def tool_spans(self) -> tuple[Span, ...]:
        return tuple(span for span in self.trace.spans if is_tool(span))

    @cached_property
    def has_words(self) -> bool:
        """Whether any answer of a model is recorded: some exports keep the calls and leave the content out."""
        return any(turn.said.strip() or turn.calls for _, turn in self.turns)

    @cached_property
    def holds(self) -> frozenset[Need]:
        """What the rules may look at in this trace."""
        turns = [turn for _, turn in self.turns]
        needs: dict[Need, bool] = {
            "steps": bool(turns or self.work),
            "words": self.has_words,
            "answers": any(turn.answers for turn in turns),
            "prompts": any(message.content for turn in turns for message in turn.prompt),
            "calls": self.has_calls,
            "arguments": any(tool.tool_arguments for tool in self.tool_spans),
            "results": any(tool.output or tool.status_message for tool in self.tool_spans)
            or any(turn.results or turn.errors for turn in turns),
            "tools": any(thread.work_tools for thread in self.threads),
            "plan": self.has_plan,
        }
        return frozenset(need for need, is_there in needs.items() if is_there)

    @cached_property
    def has_plan(self) -> bool:
        return any(thread.plans for thread in self.threads)

    @cached_property
    def has_calls(self) -> bool:
        return bool(self.tool_spans) or any(turn.calls or turn.code for _, turn in self.turns)


def is_tool(span: Span) -> bool:
    return span.kind in {"TOOL", "RETRIEVER"}


def is_final_tool(name: str | None, finals: frozenset[str]) -> bool:
    """Whether a tool hands in the answer, by what it was seen to do or by a usual name (`App__tool` in GAIA2)."""
    return name is not None and (name in finals or name.lower().rpartition("__")[2] in FINAL_TOOLS)


def steps(text: str) -> tuple[str, ...]:
    """The numbered steps of a plan, verbatim lines."""
    return tuple(match.group(0).strip() for match in _STEP.finditer(text))


def is_plan(turn: Turn) -> bool:
    """A turn that was asked for a plan or calls itself one, does nothing else, and lists two steps or more."""
    if turn.acts or len(steps(turn.said)) < 2:
        return False
    prompts = (*turn.heard, *turn.prompt[-1:])
    return announces_plan(turn.said) or any(
        _PLAN_REQUEST.search(message.content or "")
        for message in prompts
        if message.role not in _OWN_ROLES - {"system"}
    )


def look_at(trace: Trace) -> View:
    """The view of a trace; never raises on a trace that `assemble` made."""
    walk = _Walk(trace)
    return View(trace=trace, threads=tuple(walk.threads()), work=tuple(walk.work()), finals=walk.finals)


class _Walk:
    """Divides a trace into threads and each thread into turns, in one pass over its spans."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.place = {span.span_id: span for span in trace.spans}
        self.spans_of: dict[str, list[Span]] = {}
        self.delegates_of: dict[str, list[Span]] = {}
        keys: list[str] = []
        for span in trace.spans:
            parent = self._parent(span)
            above = keys[parent.seq] if parent is not None and parent.seq < len(keys) else ""
            key = self._key(span, parent, above)
            keys.append(key)
            self.spans_of.setdefault(key, []).append(span)
            if span.kind == "AGENT" and above:
                self.delegates_of.setdefault(above, []).append(span)
        self.finals = frozenset(name for spans in self.spans_of.values() for name in self._handing_in(spans))

    def _handing_in(self, spans: Sequence[Span]) -> Iterator[str]:
        """Tools that an agent called last, with the very text that became its output as an argument."""
        answer = _plain(spans[0].output) if spans[0].kind == "AGENT" else ""
        if not answer:
            return
        tools = [span for span in spans if is_tool(span) and span.tool_name]
        if tools and answer in _values(tools[-1].tool_arguments):
            yield str(tools[-1].tool_name)
        models = [span for span in spans if span.kind == "LLM"]
        messages = self._messages(models[-1].output_messages) if models else ()
        yield from (
            call.name for m in messages for call in m.tool_calls if call.name and answer in _values(call.arguments)
        )

    def threads(self) -> Iterator[Thread]:
        for key, spans in self.spans_of.items():
            models = [span for span in spans if span.kind == "LLM"]
            if models:
                head = spans[0] if spans[0].kind == "AGENT" else None
                turns = tuple(self._turns(key, spans, models))
                yield Thread(
                    agent=spans[0].agent,
                    span=head,
                    in_tool=key.startswith("tool:"),
                    turns=turns,
                    tool_names=self._offered(spans, models),
                    finals=self.finals,
                )

    def work(self) -> Iterator[tuple[Span, ...]]:
        """TOOL spans by thread; a tool that another tool ran is not the agent's call."""
        for key, spans in self.spans_of.items():
            tools = tuple(span for span in spans if is_tool(span))
            if tools and not key.startswith("tool:"):
                yield tools

    def _parent(self, span: Span) -> Span | None:
        return self.place.get(span.parent_span_id) if span.parent_span_id is not None else None

    @staticmethod
    def _key(span: Span, parent: Span | None, above: str) -> str:
        """The thread of a span: the nearest AGENT span at or above it, else the agent's name.

        What runs inside a tool (a tool that asks a model itself) is a thread of its own, not a turn of the agent.
        """
        if span.kind == "AGENT":
            return f"span:{span.span_id}"
        if parent is not None and parent.kind == "TOOL":
            return f"tool:{parent.span_id}"
        if parent is not None and above and (parent.agent is None or parent.agent == (span.agent or parent.agent)):
            return above
        return f"agent:{span.agent or ''}"

    def _turns(self, key: str, spans: Sequence[Span], models: Sequence[Span]) -> Iterator[Turn]:
        reported: set[int] = set()
        tools = [span for span in spans if is_tool(span)]
        agents = self.delegates_of.get(key, [])
        for number, span in enumerate(models):
            following = models[number + 1] if number + 1 < len(models) else None
            end = following.seq if following is not None else None
            ran = _between(tools, span.seq, end)
            heard = [at for at in span.input_messages if at not in reported]
            reported.update(span.input_messages, span.output_messages)
            yield Turn(
                span=span,
                number=number,
                heard=self._messages(heard),
                prompt=self._messages(span.input_messages),
                answers=self._messages(span.output_messages),
                tools=ran,
                delegates=_between(agents, span.seq, end),
                errors=tuple(self._errors(span, ran)),
                results=self._results(span, following, reported, ran),
                finals=self.finals,
            )

    def _messages(self, positions: Iterable[int]) -> tuple[Message, ...]:
        return tuple(self.trace.messages[at] for at in positions)

    def _errors(self, span: Span, tools: Iterable[Span]) -> Iterator[Failed]:
        """The failed call of the model, the failed tools, else the failed step around them."""
        if span.status == "ERROR":
            yield Failed(text=span.status_message or "", tool=None, of_model=True)
            return
        failed = [tool for tool in tools if tool.status == "ERROR"]
        for tool in failed:
            yield Failed(text=tool.status_message or tool.output or "", tool=tool)
        step = self._parent(span)
        if step is not None and step.kind == "CHAIN" and step.status == "ERROR" and step.status_message and not failed:
            of_model = _MODEL_FAILED.search(step.status_message) is not None
            yield Failed(text=step.status_message, tool=None, of_model=of_model)

    def _results(
        self, span: Span, following: Span | None, seen_messages: set[int], tools: Sequence[Span]
    ) -> tuple[str, ...]:
        """The new messages of the next call that are not the model's own, else the outputs of the tools."""
        if following is not None:
            fresh = [at for at in following.input_messages if at not in seen_messages]
            before = len(span.input_messages)
            if not fresh and following.input_messages[:before] == span.input_messages:
                fresh = list(following.input_messages[before:])  # the same words once more are told all the same
            contents = tuple(m.content for m in self._messages(fresh) if m.content and m.role not in _OWN_ROLES)
            if contents:
                return contents
        return tuple(tool.output for tool in tools if tool.output)

    def _offered(self, spans: Sequence[Span], models: Sequence[Span]) -> frozenset[str]:
        """Tools and agents this thread may call: declared, listed as `- name: what it does`, or seen running."""
        names = {span.tool_name for span in spans if is_tool(span) and span.tool_name}
        for span in (*spans[:1], *models[:1]):
            names |= set(available_tools(span)) | set(_managed(span))
        read = {at for span in models for at in span.input_messages}
        for message in self._messages(sorted(read)):
            if message.role not in _OWN_ROLES - {"system"} and message.content and "tool" in message.content:
                names |= set(_LISTED_TOOL.findall(message.content))
        return frozenset(names)


def _plain(text: object) -> str:
    return " ".join(str(text).split()) if text is not None else ""


def _values(arguments: str | None) -> frozenset[str]:
    """Every text or number in the arguments of a call, on one line each."""
    return frozenset(map(_plain, _leaves(arguments)))


def _texts(arguments: str | None) -> tuple[str, ...]:
    """The texts in the arguments of a call, as they stand."""
    return tuple(item for item in _leaves(arguments) if isinstance(item, str) and item)


def _leaves(arguments: str | None) -> Iterator[object]:
    try:
        todo = [orjson.loads(arguments or "")]
    except orjson.JSONDecodeError:
        yield arguments
        return
    while todo:
        item = todo.pop()
        if isinstance(item, dict | list):
            todo += item.values() if isinstance(item, dict) else item
        else:
            yield item


def _between(spans: Sequence[Span], start: int, end: int | None) -> tuple[Span, ...]:
    """The spans read after `start` and before `end`."""
    first = bisect_left(spans, start + 1, key=_seq)
    return tuple(spans[first : len(spans) if end is None else bisect_left(spans, end, key=_seq)])


def _seq(span: Span) -> int:
    return span.seq


def _managed(span: Span) -> Iterator[str]:
    for key, value in span.attributes.items():
        if key.startswith("smolagents.managed_agents.") and key.endswith(".name") and isinstance(value, str):
            yield value
