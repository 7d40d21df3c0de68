"""A coding agent's session, told message by message, as spans: the agent, each call of its model, each tool call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tracejury.ingest.conventions.parts import joined
from tracejury.ingest.formats.exports import Shaped, shaped_trace
from tracejury.ingest.formats.spans import kept, kept_dict
from tracejury.ingest.goal import without_media
from tracejury.ingest.trace import Json, Message, Source, SpanDraft, ToolCall, Trace

_POSITIONS = 2_000_000
"""Places of messages that the calls of a session may hold in all; from there on a call holds what is new to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one call; None where the source does not count."""

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    reasoning: int | None = None


def one_answer(messages: Sequence[Message], calls: Sequence[ToolCall] = ()) -> Message:
    """One answer of a model made of its parts in order: what it thought, what it said, what it called."""
    return Message(
        "assistant",
        joined([one.content or None for one in messages]),
        (*(call for one in messages for call in one.tool_calls), *calls),
        reasoning=joined([one.reasoning for one in messages]),
    )


@dataclass(slots=True)
class Session:
    """Collects what happened to one agent, in order. `parent` is the span that called it, where one did."""

    span_id: str
    agent: str
    parent: str | None = None
    spans: list[Shaped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    root: SpanDraft = field(init=False)
    _context: list[Message] = field(default_factory=list)
    _new: int = 0  # messages of the context that no call has held
    _held: int = 0  # messages that all calls hold
    _tools: dict[str, SpanDraft] = field(default_factory=dict)
    _events: list[dict[str, Json]] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _calls: int = 0

    def __post_init__(self) -> None:
        self.root = SpanDraft(span_id=self.span_id, parent_span_id=self.parent, name=self.agent, kind="AGENT")
        self.root.events = self._events
        self.spans.append(Shaped(self.root))

    def say(self, *messages: Message, time: int | None = None, is_goal: bool = False) -> None:
        """Add messages that the model gets; the first that is a goal is the agent's input."""
        self._note(time)
        for message in messages:
            if is_goal and self.root.input is None and message.role == "user":
                self.root.input = message.content
            self._context.append(message)
            self._new += 1

    def forget(self) -> None:
        """Begin the context anew, as compaction does."""
        self._context, self._new = [], 0

    def answer(
        self,
        message: Message,
        *,
        time: int | None = None,
        start: int | None = None,
        model: str | None = None,
        usage: Usage | None = None,
        span_id: str | None = None,
        failed: bool = False,
        attributes: Mapping[str, Json] | None = None,
        step: int | None = None,
    ) -> SpanDraft:
        """Add a call of the model with what it answered, and a span for each tool that the answer calls."""
        self._note(start)
        self._note(time)
        self._calls += 1
        draft = SpanDraft(span_id=self._free(span_id or f"{self.span_id}-call-{self._calls}"), kind="LLM", model=model)
        draft.parent_span_id, draft.name = self.span_id, f"chat {model}" if model else "chat"
        draft.start_time, draft.end_time = time if start is None else start, time
        draft.status = "ERROR" if failed else "UNSET"
        draft.status_message = message.content if failed else None
        draft.attributes, draft.step = kept_dict(dict(attributes or {})), step
        self.count(draft, usage)
        self.spans.append(Shaped(draft, self._shown(draft), [message]))
        for number, call in enumerate(message.tool_calls):
            self._call(call.id, call.name, call.arguments, time, draft, number)
        self._context.append(message)
        self._new = 0
        if message.content and not failed:
            self.root.output = message.content
        return draft

    @staticmethod
    def count(draft: SpanDraft, usage: Usage | None) -> None:
        """Fill the token columns of a call."""
        if usage is None or not (usage.prompt or usage.completion or usage.total):
            return
        draft.prompt_tokens, draft.completion_tokens = usage.prompt, usage.completion
        draft.reasoning_tokens, draft.total_tokens = usage.reasoning, usage.total
        if usage.total is None and usage.prompt is not None and usage.completion is not None:
            draft.total_tokens = usage.prompt + usage.completion

    def result(
        self,
        call_id: str | None,
        text: str | None,
        *,
        time: int | None = None,
        name: str | None = None,
        failed: bool = False,
        status_message: str | None = None,
        attributes: Mapping[str, Json] | None = None,
        role: str = "tool",
    ) -> SpanDraft:
        """Add what a tool gave back, to its span and to what the model gets next."""
        self._note(time)
        draft = self._tools.get(call_id or "") if call_id is not None else self._open_tool()
        if draft is None or draft.output is not None:
            draft = self._call(call_id, name, None, time, None, 0)
            draft.warnings.append("no_call: the file does not hold the tool call of which this is the result")
        draft.output = text or ""
        draft.end_time = time
        draft.status = "ERROR" if failed else "UNSET"
        draft.status_message = status_message if failed else None
        draft.attributes.update(kept_dict(dict(attributes or {})))
        own_id = draft.tool_call_id if role == "tool" else None
        self.say(Message(role, text, (), draft.tool_name if role == "tool" else None, own_id))
        return draft

    def event(self, name: str, record: Json, time: int | None = None) -> None:
        """Keep what is neither message nor call as an event of the agent."""
        self._note(time)
        attributes: Json = record if isinstance(record, dict) else {"value": record}
        self._events.append({"name": name, "time": time, "attributes": kept(attributes)})

    def tool_span(self, call_id: str) -> SpanDraft | None:
        """The span of this tool call."""
        return self._tools.get(call_id)

    def close(self) -> list[Shaped]:
        """All spans, with a warning at each tool call that has no result."""
        for draft in self._tools.values():
            if draft.output is None:
                draft.warnings.append("no_result: the file holds no result of this tool call")
        return self.spans

    def _note(self, time: int | None) -> None:
        if time is not None:
            self.root.start_time = min(time, self.root.start_time or time)
            self.root.end_time = max(time, self.root.end_time or time)

    def _shown(self, draft: SpanDraft) -> list[Message]:
        if self._held + len(self._context) <= _POSITIONS:
            self._held += len(self._context)
            return list(self._context)
        draft.warnings.append("only_new_messages: the session is long; this call shows what is new since the last one")
        return self._context[len(self._context) - self._new :]

    def _call(
        self, call_id: str | None, name: str | None, arguments: str | None, time: int | None, caller: SpanDraft | None,
        number: int,
    ) -> SpanDraft:  # fmt: skip
        own = call_id or (f"{caller.span_id}-tool-{number + 1}" if caller is not None else f"{self.span_id}-tool")
        draft = SpanDraft(span_id=self._free(own), parent_span_id=self.span_id, name=name or "tool", kind="TOOL")
        draft.tool_name, draft.tool_arguments, draft.tool_call_id = name, arguments, call_id
        draft.start_time = time
        self._tools[own if own not in self._tools else draft.span_id] = draft
        self.spans.append(Shaped(draft))
        return draft

    def _open_tool(self) -> SpanDraft | None:
        """The first call of a tool that has no result yet: where results name no call they stand in its order."""
        return next((draft for draft in self._tools.values() if draft.output is None), None)

    def _free(self, span_id: str) -> str:
        free = span_id if span_id not in self._ids else f"{span_id}#{len(self.spans)}"
        self._ids.add(free)
        return free


def session_trace(
    sessions: Sequence[Session],
    *,
    trace_id: str,
    format: str,
    source: Source,
    attributes: Mapping[str, Json] | None = None,
    goal: str | None = None,
    final_answer: str | None = None,
    warnings: Sequence[str] = (),
) -> Trace:
    """The trace of a session and of those that it started."""
    shaped = [item for session in sessions for item in session.close()]
    own = [*warnings, *(warning for session in sessions for warning in session.warnings)]
    trace = shaped_trace(
        shaped, trace_id=trace_id, format=format, source=source, attributes=kept_dict(dict(attributes or {})),
        goal=goal or without_media(sessions[0].root.input), final_answer=final_answer, warnings=own,
    )  # fmt: skip
    return replace(trace, final_answer=trace.final_answer or sessions[0].root.output)
