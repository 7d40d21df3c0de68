"""The events that `codex exec --json` prints, one a line: a thread, its turns, the items that begin and end in them.

`thread.started`, `turn.*`, `item.started`, `item.updated`, `item.completed`, `error` (openai/codex,
`codex-rs/exec/src/exec_events.rs`). They hold neither what was asked nor the model's name nor times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tracejury.ingest.conventions.message_json import content_text
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.trajectory import Session, Usage, one_answer, session_trace
from tracejury.ingest.times import integer
from tracejury.ingest.trace import Json, Message, Source, ToolCall, Trace

_ARGUMENTS = {
    "command_execution": ("command",), "file_change": ("changes",), "web_search": ("query", "action"),
    "todo_list": ("items",), "mcp_tool_call": ("arguments",),
    "collab_tool_call": ("prompt", "sender_thread_id", "receiver_thread_ids"),
}  # fmt: skip
"""The items that are calls of a tool, and the fields of each that the model chose."""
_FAILED = frozenset({"failed", "declined"})
NO_PROMPT = "no_prompt: codex exec does not print the prompt; the file holds only what the agent did"

Record = dict[str, Json]


@dataclass(slots=True)
class _Thread:
    """The state of one thread while its events are read in order."""

    session: Session
    answers: list[Message] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)  # begun, not yet part of an answer
    running: set[str] = field(default_factory=set)  # part of an answer, without a result
    plans: dict[str, Json] = field(default_factory=dict)
    runs: int = 0
    model: str | None = None
    usage: Usage | None = None


def is_event(record: Json) -> bool:
    """Whether this is an event of `codex exec`, not a record of a rollout."""
    return isinstance(record, dict) and record.get("type") == "thread.started" and "thread_id" in record


def read_events(records: list[Record], source: Source, warnings: list[str]) -> Iterator[Trace]:
    """The trace of each thread; a thread that is resumed in the file goes on."""
    threads: dict[str, _Thread] = {}
    thread = None
    for record in records:
        if is_event(record):
            thread_id = as_text(record["thread_id"]) or "unnamed"
            thread = threads.setdefault(thread_id, _Thread(Session(span_id=thread_id, agent="codex")))
            thread.runs += 1
            thread.model = as_text(record.get("model"))
            if (prompt := as_text(record.get("prompt"))) is not None:
                thread.session.say(Message("user", prompt), is_goal=True)
        elif thread is not None:
            _tell(thread, record)
    for thread_id, thread in threads.items():
        _close(thread)
        Session.count(thread.session.root, thread.usage)
        all_warnings = warnings if thread.session.root.input is not None else [*warnings, NO_PROMPT]
        yield session_trace([thread.session], trace_id=thread_id, format="codex", source=source, warnings=all_warnings)


def _tell(thread: _Thread, record: Record) -> None:
    kind, item = as_text(record.get("type")) or "event", record.get("item")
    if isinstance(item, dict) and kind.startswith("item."):
        _item(thread, kind, {**item, "type": item.get("type", item.get("item_type"))})
    elif kind == "turn.completed":
        _close(thread)
        _add_usage(thread, record.get("usage"))
        thread.session.event(kind, record)
    elif kind in ("turn.failed", "error"):
        _close(thread)
        error = record.get("error")
        message = as_text(error.get("message") if isinstance(error, dict) else record.get("message"))
        thread.session.root.status, thread.session.root.status_message = "ERROR", message
        thread.session.event(kind, record)
    elif kind != "turn.started":
        thread.session.event(kind, record)


def _item(thread: _Thread, event: str, item: Record) -> None:
    kind, text = as_text(item["type"]) or "item", as_text(item.get("text"))
    if kind in ("agent_message", "assistant_message", "reasoning"):
        if event == "item.completed":
            is_thought = kind == "reasoning"
            thread.answers.append(
                Message("assistant", None if is_thought else text, reasoning=text if is_thought else None)
            )
    elif kind == "todo_list":
        _plan(thread, item)
    elif kind in _ARGUMENTS:
        _call(thread, event, kind, item)
    else:
        thread.session.event(kind, item)


def _plan(thread: _Thread, item: Record) -> None:
    """A call each time the list of things to do changes; it gives nothing back."""
    own = _own_id(thread, item)
    if thread.plans.get(own) != item.get("items"):
        thread.plans[own] = item.get("items")
        call_id = f"{own}-{len(thread.calls)}-{len(thread.session.spans)}"
        thread.calls[call_id] = ToolCall("todo_list", arguments_text({"items": item.get("items")}), call_id)


def _call(thread: _Thread, event: str, kind: str, item: Record) -> None:
    """A call begins an answer's list of calls; its end is its result, after that answer."""
    own = _own_id(thread, item)
    if own not in thread.running:
        thread.calls[own] = _tool_call(kind, item, own)
    if event != "item.completed":
        return
    _close(thread)
    text, failed = _result(kind, item)
    if text is not None or failed:
        left: Record = {key: one for key, one in item.items() if key not in ("id", "type", *_ARGUMENTS[kind])}
        code = integer(item.get("exit_code"))
        status = f"exit code {code}" if code else text
        thread.session.result(own, text, failed=failed, status_message=status, attributes=left)
    thread.running.discard(own)


def _tool_call(kind: str, item: Record, own: str) -> ToolCall:
    arguments: Record = {name: item[name] for name in _ARGUMENTS[kind] if item.get(name) is not None}
    is_named = kind in ("mcp_tool_call", "collab_tool_call")
    name = as_text(item.get("tool")) if is_named else kind
    if kind == "mcp_tool_call":
        name = ".".join(filter(None, (as_text(item.get("server")), name)))
    return ToolCall(name, arguments_text(arguments.get("arguments") if kind == "mcp_tool_call" else arguments), own)


def _result(kind: str, item: Record) -> tuple[str | None, bool]:
    """What an ended call gave back, as far as it is printed, and whether it failed."""
    error, result = item.get("error"), item.get("result")
    words = error.get("message") if isinstance(error, dict) else error
    failed = words is not None or item.get("status") in _FAILED or bool(integer(item.get("exit_code")))
    match kind:
        case "command_execution":
            return as_text(item.get("aggregated_output")), failed
        case "mcp_tool_call":
            content = result.get("content", result) if isinstance(result, dict) else result
            return as_text(words) if words is not None else content_text(content), failed
        case "collab_tool_call":
            return as_text(item.get("agents_states")), failed
        case "web_search":
            return as_text(item.get("results")), failed
        case _:
            return as_text(item.get("status")), failed


def _close(thread: _Thread) -> None:
    """Make one call of the model of what it wrote and what it called since the last result."""
    if not thread.answers and not thread.calls:
        return
    thread.session.answer(one_answer(thread.answers, tuple(thread.calls.values())), model=thread.model)
    thread.running.update(thread.calls)
    thread.answers, thread.calls = [], {}


def _own_id(thread: _Thread, item: Record) -> str:
    """An item's id, which each run of a thread counts from 0."""
    own = as_text(item.get("id")) or "item"
    return own if thread.runs == 1 else f"run{thread.runs}-{own}"


def _add_usage(thread: _Thread, usage: Json) -> None:
    """The tokens of a turn, which are those of several calls, to those of the thread."""
    before, counts = thread.usage or Usage(), Fields({} if usage is None else usage, "usage", thread.session.warnings)
    prompt, completion, reasoning = (
        counts.count(name) for name in ("inputtokens", "outputtokens", "reasoningoutputtokens")
    )
    thread.usage = Usage(
        prompt=_sum(before.prompt, prompt), completion=_sum(before.completion, completion),
        reasoning=_sum(before.reasoning, reasoning),
    )  # fmt: skip


def _sum(before: int | None, more: int | None) -> int | None:
    return before if more is None else (before or 0) + more
