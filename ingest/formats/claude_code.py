"""Claude Code: a session's transcript (`~/.claude/projects/*/<session>.jsonl`), with the transcripts of its sub-agents.

Sub-agents stand in the same file (`isSidechain`) or in files of their own (`agent-<id>.jsonl`, `subagents/`); a session
that goes on in another file joins the one that it continues. Compaction begins the context anew. What `claude -p
--output-format stream-json` prints is read too; it tells sub-agents by `parent_tool_use_id` and no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from tracejury.ingest.conventions.message_json import content_text, message_of
from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, time_of_any
from tracejury.ingest.formats.otel import take_documents, together
from tracejury.ingest.formats.spans import brief
from tracejury.ingest.formats.trajectory import Session, Usage, session_trace
from tracejury.ingest.parse import inner_json
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

NAME = "claude_code"
MERGES = True

_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$", re.IGNORECASE)
_OF_GEMINI = re.compile(rb'"role"\s*:\s*"model"')
"""How Qwen Code, whose sessions have the same frame, names the speaker of a message."""
_NOT_SAID = ("<command-", "<local-command-", "<bash-", "<system-reminder>", "Caveat: ", "[Request interrupted")
"""How records of the role user begin that no user wrote."""

_FLAGS = ("issidechain", "ismeta", "iscompactsummary", "isapierrormessage")

Record = dict[str, Json]


def sniff(sample: FileSample) -> bool:
    """`sessionId` and `uuid` with `parentUuid` or `isSidechain`, or the summary line that begins a file."""
    keys = sample.keys
    own = {"sessionId", "uuid"} <= keys and not keys.isdisjoint({"parentUuid", "isSidechain"})
    own = own and not ("parts" in keys and _OF_GEMINI.search(sample.data))
    return own or {"leafUuid", "summary", "type"} <= keys or {"session_id", "parent_tool_use_id"} <= keys


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """A session and the files of its sub-agents belong together; where those lie beside sessions, the whole folder."""
    groups: dict[str, list[str]] = {}
    for name in names:
        path = PurePath(name)
        if not path.name.startswith("agent-") or path.suffix != ".jsonl":
            continue
        place = path.parent.parent.with_suffix(".jsonl") if path.parent.name == "subagents" else path.parent
        groups.setdefault(str(place), []).append(name)
    bundles_: list[tuple[str, ...]] = []
    for own, agents in groups.items():
        sessions = [one for one in names if one == own or (str(PurePath(one).parent) == own and _SESSION.search(one))]
        if sessions:
            bundles_.append((*sessions, *agents))
    return bundles_


@dataclass(slots=True)
class _Records:
    """The records of all files by session, each once."""

    sessions: dict[str, list[Record]] = field(default_factory=dict)
    session_of: dict[str, str] = field(default_factory=dict)  # by uuid
    files: dict[str, list[Source]] = field(default_factory=dict)
    titles: list[Record] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every session of the file."""
    yield from read_bundle((source,))


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """The sessions of several files, each with its sub-agents."""
    records = _Records()
    bad = 0
    for source in sources:
        last = [""]

        def take(value: Json, place: str, source: Source = source, last: list[str] = last) -> None:
            for record in value if isinstance(value, list) else [value]:
                _take(record, place, source, records, last)

        bad += yield from take_documents((source,), take, records.warnings)
    if not records.sessions and not bad:
        raise IngestError("holds no message of a session", remedy="leave it out")
    for session_id, items in records.sessions.items():
        if any(item.get("type") in ("user", "assistant") for item in items):
            yield _trace(session_id, items, records)


def _take(value: Json, place: str, source: Source, records: _Records, last: list[str]) -> None:
    if not isinstance(value, dict):
        raise IngestError(f"{brief(value)} is not a record of a session", place=place, remedy="export it again")
    value = _as_transcript(value)
    _name_wrong_types(Fields(value, place, records.warnings))
    uuid, named = as_text(value.get("uuid")), as_text(value.get("sessionId"))
    if named is None and not last[0]:
        records.titles.append(value)
        return
    if uuid is not None and uuid in records.session_of:
        last[0] = records.session_of[uuid]
        return  # a file that goes on repeats what came before
    continued = next(
        (records.session_of[above] for key in ("parentUuid", "logicalParentUuid")
         if (above := as_text(value.get(key))) in records.session_of), None
    )  # fmt: skip
    session_id = continued or named or last[0]
    last[0] = session_id
    if uuid is not None:
        records.session_of[uuid] = session_id
    records.sessions.setdefault(session_id, []).append(value)
    files = records.files.setdefault(session_id, [])
    if not any(one is source for one in files):
        files.append(source)


def _name_wrong_types(record: Fields) -> None:
    """Warn of each field of a record that is read below and holds another type than a transcript writes."""
    record.time("timestamp")
    for name in _FLAGS:
        record.flag(name)
    message = record.inner("message")
    message.word("model")
    usage = message.inner("usage")
    for name in ("inputtokens", "cachecreationinputtokens", "cachereadinputtokens", "outputtokens"):
        usage.count(name)


def _as_transcript(value: Record) -> Record:
    """A record of a stream under the names that a transcript gives."""
    if "session_id" not in value or "sessionId" in value:
        return value
    above = as_text(value.get("parent_tool_use_id"))
    renamed: Record = {**value, "sessionId": value["session_id"], "isSidechain": above is not None}
    return renamed if above is None else {**renamed, "agentId": above}


def _trace(session_id: str, items: list[Record], records: _Records) -> Trace:
    files = records.files[session_id]
    agents = _sidechains(items)
    if all(_is_side(item) for item in items):  # the transcript of a sub-agent alone
        name, only = next(iter(agents.items()))
        session_id, items = f"{session_id}-{name}", [{**item, "isSidechain": False} for item in only]
        del agents[name]
    main = Session(span_id=session_id, agent="claude-code")
    sessions = [main]
    starts: dict[str, str] = {}  # sub-agents by the tool call that started them
    for item in [one for one in items if not _is_side(one)]:
        _note_start(item, starts)
    _tell(main, [one for one in items if not _is_side(one)])
    for name, side in agents.items():
        call = name if main.tool_span(name) is not None else starts.get(name) or _call_of_prompt(main, side)
        tool = main.tool_span(call) if call is not None else None
        parent = tool.span_id if tool is not None else session_id
        sub = Session(
            span_id=f"{session_id}-{name}", agent=_agent_name(tool.tool_arguments if tool else None), parent=parent
        )
        _tell(sub, side)
        sessions.append(sub)
    names = {as_text(item.get("sessionId")) for item in items} - {None, session_id}
    first = next((item for item in items if item.get("version") or item.get("cwd")), {})
    attributes: Record = {key: first[key] for key in ("version", "cwd", "gitBranch", "entrypoint") if first.get(key)}
    if names:
        attributes["session_ids"] = [session_id, *sorted(str(name) for name in names)]
    for number, title in enumerate(records.titles):
        attributes[f"summary.{number}"] = title
    return session_trace(
        sessions, trace_id=session_id, format=NAME, source=together(tuple(files)),
        attributes=attributes, warnings=records.warnings,
    )  # fmt: skip


def _sidechains(items: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each sub-agent: by its id, or by the record that its chain begins with."""
    chains: dict[str, list[Record]] = {}
    chain_of: dict[str, str] = {}
    for item in items:
        if not _is_side(item):
            continue
        uuid, above = as_text(item.get("uuid")) or "", as_text(item.get("parentUuid")) or ""
        name = as_text(item.get("agentId")) or chain_of.get(above) or uuid or f"agent-{len(chains) + 1}"
        chain_of[uuid] = name
        chains.setdefault(name, []).append(item)
    return chains


def _note_start(item: Record, starts: dict[str, str]) -> None:
    """Remember which tool call started the sub-agent that its result names."""
    result = item.get("toolUseResult")
    agent = as_text(result.get("agentId")) if isinstance(result, dict) else None
    if agent is None:
        return
    for block in _blocks(item):
        if block.get("type") == "tool_result" and (call := as_text(block.get("tool_use_id"))) is not None:
            starts[agent] = call


def _call_of_prompt(main: Session, side: Sequence[Record]) -> str | None:
    """The tool call whose prompt is the first message of a sub-agent."""
    prompt = content_text(_message(side[0]).get("content"))
    for item in main.spans:
        arguments = item.draft.tool_arguments
        if prompt and arguments is not None and _argument(arguments, "prompt") == prompt:
            return item.draft.tool_call_id
    return None


def _argument(arguments: str | None, name: str) -> str | None:
    content = inner_json(arguments or "")
    value = content.get(name) if isinstance(content, dict) else None
    return value if isinstance(value, str) else None


def _agent_name(arguments: str | None) -> str:
    return _argument(arguments, "subagent_type") or "sub-agent"


def _tell(session: Session, items: Sequence[Record]) -> None:
    """Tell the records in order; those of one answer, a record a block, become one call of the model."""
    answers: dict[str, list[Record]] = {}
    for item in items:
        if item.get("type") == "assistant" and (key := _answer_id(item)) is not None:
            answers.setdefault(key, []).append(item)
    for item in items:
        match item.get("type"):
            case "assistant":
                same = answers.get(_answer_id(item) or "", [item])
                if same[0] is item:
                    _answer(session, same)
            case "user":
                _user(session, item)
            case _:
                _other(session, item)


def _answer_id(item: Record) -> str | None:
    return as_text(_message(item).get("id")) or as_text(item.get("requestId"))


def _is_side(item: Record) -> bool:
    """Whether a record is of a sub-agent."""
    return item.get("isSidechain") is True


def _message(item: Record) -> Record:
    message = item.get("message")
    return message if isinstance(message, dict) else {}


def _blocks(item: Record) -> list[Record]:
    content = _message(item).get("content")
    return [block for block in (content if isinstance(content, list) else []) if isinstance(block, dict)]


def _answer(session: Session, items: Sequence[Record]) -> None:
    first, last = items[0], _message(items[-1])
    contents = [_message(item).get("content") for item in items]
    whole: Json = contents[0] if len(items) == 1 else [b for c in contents for b in (c if isinstance(c, list) else [c])]
    turn = message_of({"role": "assistant", "content": whole})
    attributes: Record = {f"message.{key}": last[key] for key in ("usage", "stop_reason") if last.get(key) is not None}
    attributes.update(
        {key: first[key] for key in ("requestId", "uuid", "error", "apiErrorStatus") if first.get(key) is not None}
    )
    if turn.rest is not None:
        attributes["message.rest"] = turn.rest
    model = as_text(last.get("model"))
    session.answer(
        turn.message,
        start=time_of_any(first.get("timestamp")),
        time=time_of_any(items[-1].get("timestamp")),
        model=None if model == "<synthetic>" else model,
        usage=_usage(Fields(last.get("usage") or {})),
        span_id=as_text(first.get("uuid")),
        failed=bool(first.get("isApiErrorMessage")),
        attributes=attributes,
    )


def _usage(usage: Fields) -> Usage:
    """Tokens as Anthropic counts them: what was read from a cache or written to it is not in `input_tokens`."""
    parts = [usage.count(name) for name in ("inputtokens", "cachecreationinputtokens", "cachereadinputtokens")]
    known = [part for part in parts if part is not None]
    return Usage(prompt=sum(known) if known else None, completion=usage.count("outputtokens"))


def _user(session: Session, item: Record) -> None:
    time = time_of_any(item.get("timestamp"))
    if item.get("isCompactSummary"):
        session.forget()
    content: Json = _message(item).get("content")
    results = [block for block in _blocks(item) if block.get("type") == "tool_result"]
    others: Json = [block for block in _blocks(item) if block.get("type") != "tool_result"] if results else content
    for block in results:
        text, failed = content_text(block.get("content")), bool(block.get("is_error"))
        more = {"toolUseResult": item["toolUseResult"]} if len(results) == 1 and item.get("toolUseResult") else {}
        session.result(
            as_text(block.get("tool_use_id")), text, time=time, failed=failed, status_message=text, attributes=more
        )
    if others:
        message = message_of({"role": "user", "content": others}).message
        is_said = not (item.get("isMeta") or item.get("isCompactSummary")) and not results
        session.say(message, time=time, is_goal=is_said and not (message.content or "").lstrip().startswith(_NOT_SAID))


def _other(session: Session, item: Record) -> None:
    """A record that is no message: compaction ends the context, the rest is kept as an event."""
    subtype = as_text(item.get("subtype"))
    if subtype == "compact_boundary":
        session.forget()
    if item.get("type") == "result" and isinstance(item.get("result"), str):
        session.root.output = as_text(item["result"])
    name = subtype or as_text(item.get("type")) or "record"
    session.event(name, item, time_of_any(item.get("timestamp")))
