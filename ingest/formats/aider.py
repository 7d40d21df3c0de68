"""Aider: the chat of a folder (`.aider.chat.history.md`) and the log of its model calls (`--llm-history-file`).

In the chat each start of aider is a trace: lines behind `####` are the user's, lines behind `>` are aider's own output,
all others the model's (aider/io.py). The log holds each call whole, a word for the speaker before every line
(aider/utils.py); it is one trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePath

from tracejury.ingest.formats.fields import time_of_any
from tracejury.ingest.formats.trajectory import Session, Usage, session_trace
from tracejury.ingest.parse import clean_text, to_utf8
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Message, Rejected, Source, Trace

NAME = "aider"

_STARTED = "# aider chat started at "
_CALL = re.compile(r"^(TO LLM|LLM RESPONSE) (\d{4}-\d\d-\d\dT[\d:]+)$", re.MULTILINE)
_ROLES = ("system", "user", "assistant")
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_TOKENS = re.compile(r"Tokens: ([\d,]+) sent, (?:.*? )?([\d,]+) received")
"""The tokens of an answer where aider counts them to the last one; `2.1k` is no count."""


def sniff(sample: FileSample) -> bool:
    """The line that begins a chat, or the first call of the log."""
    start = sample.start.removeprefix(b"\xef\xbb\xbf")
    return start.startswith(_STARTED.encode()) or re.match(rb"TO LLM \d{4}-\d\d-\d\dT", start) is not None


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each start of aider, or of the log."""
    data, warnings = to_utf8(source.data)
    text = clean_text(data.decode("utf-8", "surrogateescape"))
    if _CALL.search(text.lstrip().split("\n", 1)[0]):
        yield _log(text, source, warnings)
        return
    empty = 0
    for started, lines in _chats(text):
        session = _chat(lines, f"{_folder(source.file)}-{started}", started)
        empty += session is None
        if session is not None:
            yield session_trace([session], trace_id=session.span_id, format=NAME, source=source, warnings=warnings)
    if empty and not any(True for _, lines in _chats(text) if _chat(lines, "", "") is not None):
        raise IngestError("nobody asked anything in this chat", remedy="leave it out")


def _folder(file: str) -> str:
    """The folder of the chat, which aider calls the same in each."""
    path = PurePath(file.replace("\\", "/"))
    return path.parent.name or path.name.strip(".").partition(".")[0]


def _chats(text: str) -> Iterator[tuple[str, list[str]]]:
    for part in text.split(f"\n{_STARTED}".lstrip("\n"))[1:]:
        started, *lines = part.split("\n")
        yield started.strip(), lines


@dataclass(slots=True)
class _Chat:
    """The state of one chat while its lines are read in order."""

    session: Session
    model: str | None = None
    usage: Usage | None = None
    answers: list[tuple[str, Usage | None]] = field(default_factory=list)


def _kind(line: str) -> str:
    return "user" if line.startswith("#### ") or line == "####" else "aider" if line.startswith(">") else "model"


def _chat(lines: Sequence[str], name: str, started: str) -> Session | None:
    """The session of one start; None where nobody asked anything."""
    chat = _Chat(Session(span_id=name, agent="aider"))
    is_asked = False
    for kind, some in groupby(lines, key=_kind):
        words = "\n".join(_bare(line, kind) for line in some).strip("\n")
        if kind == "user":
            _flush(chat)
            chat.session.say(Message("user", words.strip()), is_goal=True)
            is_asked = True
        elif kind == "aider":
            _told(chat, words)
        elif words.strip():
            _flush(chat)
            chat.answers.append((words.strip(), None))
    _flush(chat)
    chat.session.root.start_time = time_of_any(f"{started.replace(' ', 'T')}Z") if started else None
    return chat.session if is_asked else None


def _bare(line: str, kind: str) -> str:
    """A line without the sign of its speaker, and without the two blanks that break a line in Markdown."""
    return line if kind == "model" else line.lstrip(">#").removeprefix(" ").removesuffix("  ")


def _told(chat: _Chat, words: str) -> None:
    """Keep what aider printed as an event; its counts belong to the answer before."""
    model, counted = _MODEL.search(words), _TOKENS.search(words)
    chat.model = model[1] if model else chat.model
    if counted is not None and chat.answers:
        prompt, completion = (int(number.replace(",", "")) for number in counted.groups())
        chat.answers[-1] = (chat.answers[-1][0], Usage(prompt=prompt, completion=completion))
    _flush(chat)
    if words.strip():
        chat.session.event("aider", {"output": words.strip()})


def _flush(chat: _Chat) -> None:
    for words, usage in chat.answers:
        chat.session.answer(Message("assistant", words), model=chat.model, usage=usage)
    chat.answers = []


def _log(text: str, source: Source, warnings: Sequence[str]) -> Trace:
    """The trace of a log: a call of the model for each request with its answer."""
    name = _folder(source.file)
    session = Session(span_id=name, agent="aider")
    pieces = _CALL.split(text)[1:]
    since: int | None = None
    for kind, moment, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        time = time_of_any(f"{moment}Z")
        if kind == "TO LLM":
            since = time
            session.forget()
            prompts = _messages(body)
            session.say(*prompts, time=time)
            own = [one.content for one in prompts if one.role == "user"]
            session.root.input = session.root.input or (own[-1] if own else None)
        else:
            words = "\n".join(one.content or "" for one in _messages(body))
            session.answer(Message("assistant", words), start=since, time=time)
    return session_trace([session], trace_id=name, format=NAME, source=source, warnings=warnings)


def _messages(body: str) -> list[Message]:
    """The messages of a call: between rules of dashes, each line behind its speaker in capitals."""
    messages: list[Message] = []
    for part in re.split(r"^-------$", body, flags=re.MULTILINE):
        lines = [line for line in part.strip("\n").split("\n") if line]
        role = next((word for line in lines if (word := line.partition(" ")[0].lower()) in _ROLES), None)
        if role is not None:
            messages.append(Message(role, "\n".join(_without_role(line, role) for line in lines).strip("\n")))
    return messages


def _without_role(line: str, role: str) -> str:
    return line.removeprefix(role.upper()).removeprefix(" ")
