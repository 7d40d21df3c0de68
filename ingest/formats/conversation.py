"""A conversation with a model by itself: a list of messages, one message per line, or an object that holds them.

Requests and saved chats of providers and frameworks, states of LangGraph, sessions of Gemini CLI, Qwen Code, Copilot
CLI, Cursor, Goose, OpenCode, Cline, Strands, ADK, Pi, Amp and Kimi, exports of ChatGPT and Claude, AG-UI's and
LangChain's events, traces of Bedrock's agents, batches of providers and logs of gateways, runs of tau-bench, rows of
training data; what tools keep in a form of their own is for `chat_stores`. Of several in a file each is a trace; a
record that is no message is kept as an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple, cast

from tracejury.ingest.formats.chat_stores import journal, messages_of_pairs, stored_chats
from tracejury.ingest.formats.eval_rows import LM_EVAL, sample_of, samples_of
from tracejury.ingest.formats.event_streams import Told, as_lines, messages_of_events, usage_by_call
from tracejury.ingest.formats.exchanges import exchange, instructions, lone_answer
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, object_in, objects_in, plain_name
from tracejury.ingest.formats.otel import take_documents, together
from tracejury.ingest.formats.rows import columns_of, opened, read_rows, take_rows
from tracejury.ingest.formats.streamed import streamed_answers
from tracejury.ingest.formats.trajectory import Session, one_answer, session_trace
from tracejury.ingest.formats.turns import Record, Turn, path_of_tree, read_record
from tracejury.ingest.formats.wrong_types import no_objects, wrong_types
from tracejury.ingest.leftovers import holds_text
from tracejury.ingest.no_traces import known_other
from tracejury.ingest.parse import parse_documents
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, Trace
from tracejury.ingest.words import counted

NAME = "conversation"

_LISTS = (
    "messages", "traj", "trajectory", "conversations", "conversation", "chatmessages", "history", "events", "values",
    "simulations", "data", "state", "channelvalues", "prompt", "contents", "input", "promptblueprint",
    "prompttemplate", "runs", "agents", "chats", "chatbot", "intermediatesteps", "steps", "output", "result",
    "results", "requeststates", "testcases", "tasksoutput", "chathistory", "properties", "message", "turns",
    "dialogue", "dialog", "dialogs", "transcript", "thread", "threads", "chat", "session", "sessions",
    "conversationhistory", "messagehistory", "allmessages", "response",
    "transcriptobject", "log", "entries", "interactions",
)  # fmt: skip
"""Where an object holds a conversation, or what holds one; names as `plain_name` writes them."""
_COLUMNS = frozenset({
    "messages", "conversations", "conversation", "trajectory", "traj", "history", "chat_history", "prompt", "query",
    "question", "user_input", "input", "input_messages",
})  # fmt: skip
"""Columns by which a table (CSV, Parquet) may hold conversations, one a row."""
_PAIRED = (("conversation_a", "conversation_b"), ("chosen", "rejected"))
"""Where a row holds two answers to one question, of which people or a model chose one."""
_SESSION_IDS = ("sessionid", "threadid", "traceid", "conversationid", "trajid", "instanceid", "taskid", "agentid")
_IDS = (*_SESSION_IDS[:5], "customid", "recordid", "id", "uuid", "instanceid", "taskid", "requestid", "responseid")
_BEGINS = ("session", "session_start")
"""How the first record of a session file is called that names it (Pi, OpenClaw, Droid)."""
_NOT_ASKED = re.compile(
    r"<(environment_details|environment_context|environment_info|system-reminder|user_info|system_info)>.*?</\1>", re.S
)
"""What coding agents put beside the words of a user."""
_TASK = re.compile(r"<(task|user_query|user_message)>(.*)</\1>", re.S)
_CLINE = ("api_conversation_history.json", "ui_messages.json")
"""The files of one task of Cline or Roo Code: what its model was sent and answered, and what its page shows."""
_MESSAGE_FILE = re.compile(r"(?:^|[/\\])messages[/\\]message_(\d+)\.json$")
_SESSION = re.compile(r"session_([^/\\]+)[/\\]agents[/\\]agent_([^/\\]+)[/\\]messages[/\\]")
"""Where Strands keeps each message of an agent in a session."""
_MOST_LEVELS = 5
NO_REQUEST = "no_request: the file holds the model's answers, not its prompts"


class Conversation(NamedTuple):
    """Records in order, and the fields of the objects that hold them, the innermost first."""

    records: Sequence[Record]
    above: tuple[Record, ...] = ()
    warning: str | None = None
    wrong: tuple[str, ...] = ()
    """The fields of a wrong type that the reader of a tool's own form named."""
    is_call: bool = False
    """Whether these are a request and its answer, as a log of calls has them beside each other."""


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The two files that Cline keeps of a task, and the messages of a Strands session, one a file."""
    tasks = [(name, name.removesuffix(_CLINE[0]) + _CLINE[1]) for name in names if name.endswith(_CLINE[0])]
    folders: dict[str, list[str]] = {}
    for name in names:
        if match := _MESSAGE_FILE.search(name):
            folders.setdefault(name[: match.start()], []).append(name)
    sessions = [tuple(sorted(some, key=_number)) for some in folders.values() if len(some) > 1]
    return [*(task for task in tasks if task[1] in names), *sessions]


def _number(name: str) -> int:
    match = _MESSAGE_FILE.search(name)
    return int(match[1]) if match else 0


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """The conversation that these files hold together."""
    yield from read(replace(together(sources), file=sources[0].file))


def sniff(sample: FileSample) -> bool:
    """Messages of both a user and a model, wherever the document, or the lines together, hold them."""
    if _MESSAGE_FILE.search(sample.file) and {"message", "message_id", "role"} <= sample.keys:
        return True
    if not sample.whole:
        return False
    data = as_lines(sample.data)
    if _is_json(data):
        documents = [document.value for document in parse_documents(data) if document.error is None]
        return any(True for _ in _conversations(documents))
    if columns_of(sample).isdisjoint(_COLUMNS):
        return False
    return any(True for row in read_rows(data) for _ in _conversations([row.values]))


def _is_json(data: bytes) -> bool:
    return data.lstrip()[:1] in (b"{", b"[")


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each conversation of the file."""
    places: list[tuple[str, Json]] = []
    warnings: list[str] = []
    lines = replace(source, data=as_lines(source.data))
    if _is_json(lines.data):
        yield from take_documents((lines,), lambda value, place: places.append((place, value)), warnings)
    else:
        yield from take_rows(lines, lambda row: places.append((row.place, row.values)))
    documents = [value for _, value in places]
    for some in (documents, *(one for one in documents if isinstance(one, list))):
        warnings += no_objects(some, "document")
    conversations = _continued(list(_conversations(documents)))
    if conversations:
        is_log = any(one.is_call for one in conversations)
        errors = [_failure(one, is_log=is_log) for one in (_rows(places) if is_log else places)]
        chats = [] if is_log else [*_rows(places)]
        errors += _unanswered(chats, conversations) if len(chats) > len(conversations) else []
        yield from (rejected(source.file, error) for error in errors if error is not None)
    if not conversations:
        raise IngestError("holds no conversation between a user and a model", remedy="export it again")
    names = [_trace_id(one, source.file) for one in conversations]
    for number, (one, name) in enumerate(zip(conversations, names, strict=True)):
        own = name if names.count(name) == 1 else f"{name}-{number + 1}"
        yield _trace(one, own, source, warnings)


def _rows(places: Sequence[tuple[str, Json]]) -> Iterator[tuple[str, Json]]:
    """The records of a log with their places: its documents, or the items of a list."""
    for place, value in places:
        if isinstance(value, list):
            yield from ((f"{place}[{number}]", one) for number, one in enumerate(value))
        else:
            yield place, value


_MESSAGE_LISTS = ("messages", "conversations", "conversation", "chat_messages", "history", "turns")


def _unanswered(rows: Iterable[tuple[str, Json]], conversations: Sequence[Conversation]) -> list[IngestError | None]:
    """An error for each row of chats that holds messages without an answer, and no state of a chat that others hold."""
    said = {repr(_words_of(one.records[0])) for one in conversations if one.records}
    errors: list[IngestError | None] = []
    for place, value in rows:
        held = [opened(value.get(key)) for key in _MESSAGE_LISTS] if isinstance(value, dict) else []
        if place and any(isinstance(one, str) and one.startswith(("[", "{")) for one in held):
            reason, remedy = "its messages are cut off, or no JSON", "export it again"
            errors.append(IngestError(reason, place=place, remedy=remedy))
            continue
        messages = next((some for one in held if (some := objects_in(one)) and read_record(some[0]) is not None), None)
        is_alone = messages is not None and repr(_words_of(messages[0])) not in said
        if place and is_alone and not any(True for _ in _within(value, (), 0)):
            remedy = "leave it out, or export it with what the model answered"
            errors.append(IngestError("holds messages and no answer of a model", place=place, remedy=remedy))
    return errors


def _failure(record: tuple[str, Json], *, is_log: bool) -> IngestError | None:
    """Why a record of a batch or a log of calls holds no answer of a model; None where it holds one."""
    place, value = record
    if not isinstance(value, dict) or any(True for _ in _within(value, (), 0)):
        return None
    result = value.get("result")
    error = value.get("error", result.get("error") if isinstance(result, dict) else None)
    remedy = "send the request again, or delete this record"
    if error:
        return IngestError(f"the request failed: {as_text(error)}", place=place, remedy=remedy)
    if value.keys() >= LM_EVAL and (known := known_other(value)) is not None:
        return IngestError(known.reason, place=place, remedy=known.remedy)
    if is_log and place:
        return IngestError("holds no request with its answer, as the other records do", place=place, remedy=remedy)
    return None


def _conversations(documents: list[Json]) -> Iterator[Conversation]:
    """Those of a file: of its lines as events of one agent, of each document, else of its lines together."""
    records = [cast("Record", one) for one in documents if isinstance(one, dict)]
    if (whole := journal(records)) is not None:
        yield from _within(cast("Json", whole), (), 0)
        return
    if samples := samples_of(records):
        yield from (Conversation(one.records, (one.about,), one.warning) for one in samples)
        return
    if streamed := streamed_answers(records):
        yield from (one for answer in streamed for one in _within(cast("Json", answer), (), 0))
        return
    messages = messages_of_events(records)
    if messages is not None and _is_conversation(messages[0]):
        yield _of_events(messages, (), cast("list[Json]", records))
        return
    pages = [usage for document in documents if (usage := usage_by_call(objects_in(document)))]
    others = [document for document in documents if not usage_by_call(objects_in(document))]
    if pages and others:
        yield from (_with_usage(one, pages[0]) for one in _conversations(others))
        return
    inner = [one for document in documents for one in _within(document, (), 0)]
    is_whole = any(one.warning != NO_REQUEST for one in inner)
    together = list(_within(documents, (), 0)) if len(documents) > 1 and not is_whole else []
    yield from together if any(one.warning != NO_REQUEST for one in together) else inner


def _with_usage(conversation: Conversation, usage: Sequence[Json]) -> Conversation:
    """The conversation with the tokens of each of its calls, where the page shows as many requests as it has."""
    answers = [n for n, record in enumerate(conversation.records) if record.get("role") == "assistant"]
    if len(answers) != len(usage):
        return conversation
    usage_of = dict(zip(answers, usage, strict=True))
    records = [{**one, "usage": usage_of[n]} if usage_of.get(n) else one for n, one in enumerate(conversation.records)]
    return conversation._replace(records=records)


def _within(value: Json, above: tuple[Record, ...], level: int) -> Iterator[Conversation]:
    value = opened(value)
    if level > _MOST_LEVELS:
        return
    if isinstance(value, list):
        records = [cast("Record", one) for one in value if isinstance(one, dict)]
        messages = messages_of_events(records)
        if streamed := streamed_answers(records):
            yield from (one for answer in streamed for one in _within(dict(answer), above, level + 1))
        elif messages is not None and _is_conversation(messages[0]):
            yield _of_events(messages, above, value)
        elif len(records) == len(value) and _is_conversation(records):
            new = [one for one in records if one.get("from_history") is not True]
            yield Conversation(_in_order(new or records), above)
        elif stored := list(_stored({"activities": value}, above)):
            yield from stored
        elif pairs := messages_of_pairs(value):
            yield Conversation(pairs, above)
        else:
            for one in value:
                if isinstance(one, dict | list):
                    yield from _within(one, above, level + 1)
    elif isinstance(value, dict):
        if stored := list(_stored(value, above)):
            yield from stored
            return
        own = _of_object(value, above)
        if own is not None:
            yield own
            return
        if paired := list(_paired(value, above, level)):
            yield from paired
            return
        names = {plain_name(name): name for name in reversed([*value])}
        for key in filter(names.get, _LISTS):
            inner = list(_within(value[names[key]], (value, *above), level + 1))
            if inner:
                yield from (_with_instructions(one, value) for one in inner)
                return


def _paired(value: Record, above: tuple[Record, ...], level: int) -> Iterator[Conversation]:
    """Both conversations of a row that compares two."""
    prompt = value.get("prompt")
    asked: Json = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    for key in next((pair for pair in _PAIRED if value.keys() >= set(pair)), ()):
        side = value[key]
        answers: Json = [{"role": "assistant", "content": side}] if isinstance(side, str) else side
        whole = [*objects_in(asked), *objects_in(answers)]
        is_whole = _is_conversation(objects_in(answers))
        yield from _within(answers if is_whole else cast("Json", whole), above, level + 1)


def _stored(value: Record, above: tuple[Record, ...]) -> Iterator[Conversation]:
    """The chats of a tool that keeps them in a form of its own."""
    warnings: list[str] = []
    for chat in stored_chats(value, warnings):
        if _is_conversation(chat.records):
            warning = f"other_branches: {counted(chat.left_out, 'message')} on other branches of the chat not read"
            own = warning if chat.left_out else None
            wrong = (*warnings, *wrong_types(cast("Json", value)))
            yield Conversation(chat.records, (chat.about, value, *above), own, wrong)


def _of_events(told: Told, above: tuple[Record, ...], events: list[Json]) -> Conversation:
    messages, names, warnings = told
    return Conversation(messages, (*names, *above), wrong=(*warnings, *_wrong_in(events)))


def _wrong_in(items: list[Json]) -> tuple[str, ...]:
    """The fields of a wrong type in a list of records, and the items that are none."""
    return (*no_objects(items, ""), *wrong_types(cast("Json", items)))


def _with_instructions(conversation: Conversation, value: Record) -> Conversation:
    """The messages of a request with what it tells the model beside them, where they tell nothing such themselves."""
    first = instructions(value) if conversation.above[:1] == (value,) else []
    has_own = any(record.get("role") in ("system", "developer") for record in conversation.records)
    return conversation if has_own else conversation._replace(records=[*first, *conversation.records])


def _of_object(value: Record, above: tuple[Record, ...]) -> Conversation | None:
    """The conversation that an object itself is: a request with its answer, an answer alone, a tree of messages."""
    records: Sequence[Record] = sample_of(value)
    if records:
        return Conversation(records)
    records = exchange(value)
    if records and _is_conversation(records):
        return Conversation(records, (value, *above), is_call=True)
    records, left = path_of_tree(value)
    if records:
        warning = f"other_branches: {counted(left, 'message')} on other branches of the chat not read" if left else None
        return Conversation(records, (value, *above), warning)
    records = lone_answer(value)
    if any(turn.messages for record in records if (turn := read_record(record)) is not None):
        return Conversation(records, (value, *above), NO_REQUEST)
    return None


def _continued(conversations: list[Conversation]) -> list[Conversation]:
    """The conversations of a file, a request that goes on with another one joined to it, whichever stands first.

    Logs of gateways and agents hold each call of a model with all that was said before: the calls of one agent become
    one trace, and so do the states of one thread. Requests of different sessions, and rows of messages alone, are
    never joined.
    """
    joined: list[Conversation] = []
    place_of: dict[_Key, int] = {}
    later: dict[_Key, int] = {}  # of what a conversation says, the beginnings that no earlier record told
    for one in conversations:
        session, said = _shared_id(one), _said(one.records)
        keys = [(session, words, number) for number, words in enumerate(said)]
        longest = len(said) - 1 - one.is_call  # a call that says nothing new is one more call
        before = next((n for n in range(longest, 0, -1) if keys[n] in place_of), None)
        if session is not None and before is not None:
            place = place_of.pop(keys[before])
            joined[place] = joined[place]._replace(records=(*joined[place].records, *one.records[before:]))
        elif session is not None and keys[-1] in later:
            place = later.pop(keys[-1])
            joined[place] = joined[place]._replace(records=(*one.records, *joined[place].records[len(one.records) :]))
            continue
        else:
            place = len(joined)
            joined.append(one)
            later.update(dict.fromkeys(keys[1:-1], place))
        if session is not None:
            place_of[keys[-1]] = place
    return joined


_Key = tuple[str | None, int, int]
"""A session, a hash of all that was said in it, and the number of records."""


def _said(records: Sequence[Record]) -> list[int]:
    """A hash of all that was said up to each record, beginning with that of nothing."""
    hashes = [0]
    for record in records:
        hashes.append(hash((hashes[-1], repr(_words_of(record)))))
    return hashes


_Words = list[tuple[str | None, str, tuple[tuple[str | None, str | None], ...]]]
"""The speaker, the words and the calls of each message of a record."""


def _words_of(record: Record) -> _Words:
    turn = read_record(record)
    return [
        (one.role, one.content or "", tuple((call.name, call.arguments) for call in one.tool_calls))
        for one in (turn.messages if turn is not None else ())
    ]


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
    """The own id of a conversation, else the names of the folder and the file."""
    return _own_id(conversation) or _name_of(PurePath(file.replace("\\", "/"))) or NAME


def _shared_id(conversation: Conversation) -> str | None:
    """The id of what the calls of one agent share; that of logged calls which name no session is empty.

    States of a chat are told by the id of its first message.
    """
    session = next((own for one in _holders(conversation) if (own := one.text(*_SESSION_IDS)) is not None), None)
    first = conversation.records[0] if conversation.records else {}
    own = as_text(first.get("id")) if first.get("type") in ("human", "user", "system") else None
    return session or ("" if conversation.is_call else _own_id(conversation) or own)


def _own_id(conversation: Conversation) -> str | None:
    """The id that the conversation, its records or what holds it names; None where none does."""
    first = Fields({**(conversation.records[0] if conversation.records else {})})
    own = first.text("sessionid", "threadid", "conversationid") or _copilot_id(conversation.records)
    own = own or (first.text("id") if first.peek("type") in _BEGINS else None)
    return own or next((own for one in _holders(conversation) if (own := one.text(*_IDS)) is not None), None)


def _holders(conversation: Conversation) -> Iterator[Fields]:
    """What holds a conversation and names its ids, the innermost first; LangGraph names the thread within a state."""
    for holder in conversation.above:
        for name in ("checkpoint", "config", "metadata"):
            inner = object_in(holder.get(name))
            yield Fields({"threadid": (object_in(inner.get("configurable")) or inner).get("thread_id")})
        yield from (Fields(dict(one)) for one in (holder, object_in(holder.get("info"))))


def _name_of(path: PurePath) -> str:
    """What tells the file from others: many tools call it the same in the folder of each task."""
    if session := _SESSION.search(str(path)):
        return f"{session[1]}-{session[2]}"
    if path.name in _CLINE and path.parent.name:
        return path.parent.name
    return "-".join(filter(None, (path.parent.name, path.name.partition(".")[0])))


def _copilot_id(records: Sequence[Record]) -> str | None:
    data = records[0].get("data") if records else None
    return as_text(data.get("sessionId")) if isinstance(data, dict) else None


@dataclass(slots=True)
class _Reading:
    """The state of one conversation while its records are read in order."""

    session: Session
    model: str | None = None
    """The model that the chat names once for all."""
    answers: list[Message] = field(default_factory=list)
    last: Turn | None = None
    counted: Turn | None = None
    """The record whose tokens stand at a call: one that tells what ran on the provider's side makes several."""
    since: int | None = None


def _trace(conversation: Conversation, trace_id: str, source: Source, warnings: Sequence[str]) -> Trace:
    reading = _Reading(Session(span_id=trace_id, agent=_agent(conversation)), _model(conversation))
    reading.session.warnings += [*filter(None, [conversation.warning])]
    wrong = conversation.wrong or _wrong_in(
        [cast("Json", one) for one in conversation.above[-1:] or conversation.records]
    )
    reading.session.warnings += wrong
    for number, record in enumerate(conversation.records):
        turn = read_record(record, f"messages[{number}]")
        told = reading.session.warnings
        told += [one for one in (turn.warnings if turn is not None else ()) if one not in told]
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
    results = objects_in(last.get("result"))
    return as_text(results[-1].get("extracted_content")) if results and results[-1].get("is_done") is True else None


def _agent(conversation: Conversation) -> str:
    named = (holder.get(key) for holder in conversation.above for key in ("app_name", "agent", "agent_name"))
    return next((one for one in named if isinstance(one, str) and one), "agent")


def _model(conversation: Conversation) -> str | None:
    holder = conversation.above[0] if conversation.above else {}
    return next((one for key in ("model", "model_name") if isinstance(one := holder.get(key), str) and one), None)


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
    told = opened(words)
    if isinstance(told, dict) and told.get("type") == "user_message":  # Letta sends what the user wrote as JSON
        words = as_text(told.get("message")) or words
    own = _NOT_ASKED.sub("", words).strip()
    task = _TASK.fullmatch(own)
    return (task[2].strip() if task else own) or None


def _close(reading: _Reading) -> None:
    """Make one call of the model of what it said."""
    if not reading.answers:
        return
    turn = reading.last or Turn([])
    usage = None if turn is reading.counted else turn.usage
    reading.session.answer(
        one_answer(reading.answers), start=reading.since, time=turn.time, model=turn.model or reading.model, usage=usage
    )
    reading.counted = turn
    reading.answers, reading.last, reading.since = [], None, turn.time
