"""A conversation with a model by itself: a list of messages, a message a line, or an object that holds them.

Requests and saved chats of providers and frameworks, states of LangGraph, sessions of Gemini CLI, Qwen Code, Copilot
CLI, Cursor, Goose, OpenCode, Cline and ADK, runs of tau-bench, rows of training data. Of several in a file each is a
trace; a record that is no message is kept as an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple, cast

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.otel import take_documents
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.trajectory import Session, one_answer, session_trace
from tracejury.ingest.formats.turns import Record, Turn, read_record
from tracejury.ingest.leftovers import holds_text
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, Trace

NAME = "conversation"

_LISTS = (
    "messages", "traj", "trajectory", "conversations", "conversation", "chat_messages", "history", "events", "values",
    "simulations", "data", "state", "channel_values", "prompt",
)  # fmt: skip
"""Where an object holds a conversation, or what holds one."""
_IDS = ("sessionid", "threadid", "conversationid", "trajid", "id", "uuid", "instanceid", "taskid", "requestid")
_REQUESTS = ("request", "request_body", "requestBody", "req", "input", "inputs", "body", "payload")
_RESPONSES = ("response", "response_body", "responseBody", "res", "output", "outputs", "completion")
_NOT_ASKED = re.compile(
    r"<(environment_details|environment_context|environment_info|system-reminder|user_info|system_info)>.*?</\1>", re.S
)
"""What coding agents put beside the words of a user."""
_TASK = re.compile(r"<(task|user_query|user_message)>(.*)</\1>", re.S)
_MOST_LEVELS = 5


class Conversation(NamedTuple):
    """Records in order, and the fields of the objects that hold them, the innermost first."""

    records: Sequence[Record]
    above: tuple[Record, ...] = ()


def sniff(sample: FileSample) -> bool:
    """Messages of both a user and a model, wherever the document, or the lines together, hold them."""
    if not sample.whole or sample.start[:1] not in (b"{", b"["):
        return False
    documents = [document.value for document in parse_documents(sample.data) if document.error is None]
    return any(True for _ in _conversations(documents))


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each conversation of the file."""
    documents: list[Json] = []
    warnings: list[str] = []
    yield from take_documents((source,), lambda value, _: documents.append(value), warnings)
    found = list(_conversations(documents))
    if not found:
        raise IngestError("holds no conversation of a user and a model", remedy="export it again")
    names = [_trace_id(one, source.file) for one in found]
    for number, (one, name) in enumerate(zip(found, names, strict=True)):
        own = name if names.count(name) == 1 else f"{name}-{number + 1}"
        yield _trace(one, own, source, warnings)


def _conversations(documents: list[Json]) -> Iterator[Conversation]:
    """Those of a file: of each document, else of its lines together."""
    inner = [one for document in documents for one in _within(document, (), 0)]
    if inner or len(documents) < 2:
        yield from inner
    else:
        yield from _within(documents, (), 0)


def _within(value: Json, above: tuple[Record, ...], level: int) -> Iterator[Conversation]:
    value = opened(value)
    if level > _MOST_LEVELS:
        return
    if isinstance(value, list):
        records = [cast("Record", one) for one in value if isinstance(one, dict)]
        if len(records) == len(value) and _is_conversation(records):
            yield Conversation(_in_order(records), above)
        else:
            for one in records:
                yield from _within(cast("Json", one), above, level + 1)
    elif isinstance(value, dict):
        exchange = _exchange(value)
        if exchange and _is_conversation(exchange):
            yield Conversation(exchange, (value, *above))
            return
        for key in _LISTS:
            inner = list(_within(value[key], (value, *above), level + 1)) if key in value else []
            if inner:
                yield from inner
                return


def _exchange(value: Record) -> list[Record]:
    """The messages of a request and of its answer that a gateway kept beside each other; none of any other object."""
    request = next((held for key in _REQUESTS if isinstance(held := opened(value.get(key)), dict)), {})
    response = next((held for key in _RESPONSES if isinstance(held := opened(value.get(key)), dict)), {})
    asked = next(
        (held for key in ("messages", "input", "contents") if isinstance(held := request.get(key), list)), None
    )
    if asked is None:
        return []
    system = request.get("system", request.get("instructions"))
    answers = (
        [
            inner
            for one in _objects(response.get("choices", response.get("candidates")))
            if isinstance(inner := one.get("message", one.get("content")), dict)
        ]
        or _objects(response.get("output"))
        or [response]
    )
    first = [{"role": "system", "content": system}] if isinstance(system, (str, list)) and system else []
    return [cast("Record", one) for one in (*first, *_objects(asked), *answers)]


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _is_conversation(records: Sequence[Record]) -> bool:
    roles = {
        message.role for record in records if (turn := read_record(record)) is not None for message in turn.messages
    }
    return "assistant" in roles and not roles.isdisjoint({"user", "tool"})


def _in_order(records: Sequence[Record]) -> Sequence[Record]:
    """The records, the newest last: the API of OpenAI's threads lists them the other way."""
    times = [turn.time for record in records if (turn := read_record(record)) is not None and turn.time is not None]
    is_reversed = len(times) == len(records) > 1 and all(a >= b for a, b in pairwise(times))
    return records[::-1] if is_reversed and times[0] != times[-1] else records


def _trace_id(conversation: Conversation, file: str) -> str:
    """The id that the conversation, its records or what holds it names; else the names of the folder and the file."""
    first = Fields({**(conversation.records[0] if conversation.records else {})})
    own = first.text("sessionid", "threadid") or _copilot_id(conversation.records)
    for holder in conversation.above:
        fields = Fields(dict(holder))
        configurable = Fields(Fields(fields.nested("config")).nested("configurable"))
        info = Fields(fields.nested("info"))
        own = own or configurable.text("threadid") or fields.text(*_IDS) or info.text(*_IDS)
    return own or _name_of(PurePath(file.replace("\\", "/"))) or NAME


def _name_of(path: PurePath) -> str:
    """What tells the file from others: many tools call it the same in the folder of each task."""
    return "-".join(filter(None, (path.parent.name, path.name.partition(".")[0])))


def _copilot_id(records: Sequence[Record]) -> str | None:
    data = records[0].get("data") if records else None
    return as_text(data.get("sessionId")) if isinstance(data, dict) else None


@dataclass(slots=True)
class _Reading:
    """The state of one conversation while its records are read in order."""

    session: Session
    answers: list[Message] = field(default_factory=list)
    last: Turn | None = None
    since: int | None = None


def _trace(conversation: Conversation, trace_id: str, source: Source, warnings: Sequence[str]) -> Trace:
    reading = _Reading(Session(span_id=trace_id, agent=_agent(conversation)))
    for record in conversation.records:
        turn = read_record(record)
        if turn is None:
            _close(reading)
            reading.session.event(as_text(record.get("type")) or "record", dict(record))
            continue
        for message in turn.messages:
            _take(reading, message, turn)
        if turn.rest is not None and any(holds_text(key, item) for key, item in turn.rest.items()):
            reading.session.event("beside the message", turn.rest, turn.time)
    _close(reading)
    return session_trace(
        [reading.session], trace_id=trace_id, format=NAME, source=source, warnings=warnings,
        final_answer=_final_answer(conversation.records),
    )  # fmt: skip


def _final_answer(records: Sequence[Record]) -> str | None:
    """What the last step of smolagents or browser-use handed in; None where no step says so."""
    last = records[-1]
    if last.get("is_final_answer") is True:
        return as_text(last.get("action_output"))
    results = _objects(last.get("result"))
    return as_text(results[-1].get("extracted_content")) if results and results[-1].get("is_done") is True else None


def _agent(conversation: Conversation) -> str:
    named = (holder.get(key) for holder in conversation.above for key in ("app_name", "agent", "agent_name"))
    return next((one for one in named if isinstance(one, str) and one), "agent")


def _take(reading: _Reading, message: Message, turn: Turn) -> None:
    """Add a message: what the model says is one answer until something else is said."""
    if message.role == "assistant":
        if turn.is_delta and reading.answers and not message.tool_calls:
            before = reading.answers.pop()
            message = Message("assistant", (before.content or "") + (message.content or ""), before.tool_calls)
        elif message.content and any(one.content for one in reading.answers):
            _close(reading)
        reading.answers.append(message)
        reading.last = turn
        return
    _close(reading)
    if message.role == "tool":
        reading.session.result(message.tool_call_id, message.content, time=turn.time, name=message.name)
    else:
        reading.session.say(message, time=turn.time)
        if message.role == "user" and reading.session.root.input is None:
            reading.session.root.input = _asked(message.content or "")
    reading.since = turn.time


def _asked(words: str) -> str | None:
    """What the user wrote of a message; None where all of it is the agent's own."""
    own = _NOT_ASKED.sub("", words).strip()
    task = _TASK.fullmatch(own)
    return (task[2].strip() if task else own) or None


def _close(reading: _Reading) -> None:
    """Make one call of the model of what it said."""
    if not reading.answers:
        return
    turn = reading.last or Turn([])
    reading.session.answer(
        one_answer(reading.answers), start=reading.since, time=turn.time, model=turn.model, usage=turn.usage
    )
    reading.answers, reading.last, reading.since = [], None, turn.time
