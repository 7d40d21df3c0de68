"""Answers of models that were sent in pieces (OpenAI's chunks, Anthropic's events, Gemini's parts), put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import Fields, object_in, objects_in, plain_name
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.trace import Json

Record = Mapping[str, Json]


def function_call(call_id: Json, name: Json, arguments: Json) -> dict[str, Json]:
    """A call of a tool as OpenAI's messages hold it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def streamed_answers(events: Sequence[Record]) -> list[Record]:
    """The answers of models that were sent in pieces (OpenAI's, Gemini's, Anthropic's events), each put together."""
    if any(event.get("object") == "chat.completion.chunk" for event in events[:20]):
        by_id: dict[str | None, list[Fields]] = {}
        for number, event in enumerate(events):
            by_id.setdefault(as_text(event.get("id")), []).append(Fields(dict(event), f"event {number}"))
        return [_of_chunks(own, chunks) for own, chunks in by_id.items()]
    if any(event.get("type") == "message_start" for event in events[:20]):
        return _of_blocks(events)
    if events and all(isinstance(event.get("done"), bool) for event in events):
        return _of_ollama(events)
    are_gemini = all(not _OF_GEMINI.isdisjoint(event) for event in events)
    return _of_candidates(events) if are_gemini and any("candidates" in event for event in events) else []


_OF_GEMINI = frozenset({"candidates", "usageMetadata"})


def _of_chunks(own: str | None, chunks: Sequence[Fields]) -> Record:
    """One answer of OpenAI's chat, of the first choice of its chunks."""
    words: dict[str, str] = {}
    calls: dict[int, dict[str, str]] = {}
    about: dict[str, Json] = {}
    for chunk in chunks:
        for name in ("model", "created", "usage"):
            if (value := chunk.peek(name)) is not None:
                about[name] = value
        for choice in list(chunk.objects("choices"))[:1]:
            delta = choice.inner("delta")
            for name in ("content", "reasoning_content"):
                words[name] = words.get(name, "") + (delta.text(plain_name(name)) or "")
            for call in delta.objects("toolcalls"):
                _add_piece(calls.setdefault(call.count("index") or 0, {}), call)
    made: list[Json] = [function_call(one.get("id"), one.get("name"), one.get("arguments")) for one in calls.values()]
    said: dict[str, Json] = {name: text or None for name, text in words.items()}
    message: Json = {"role": "assistant", **said, **({"tool_calls": made} if made else {})}
    return {"object": "chat.completion", "id": own, **about, "choices": [{"message": message}]}


def _add_piece(whole: dict[str, str], call: Fields) -> None:
    function = call.inner("function")
    for name, piece in (
        ("id", call.text("id")),
        ("name", function.text("name")),
        ("arguments", function.text("arguments")),
    ):
        if piece is not None:
            whole[name] = whole.get(name, "") + piece


def _of_blocks(events: Sequence[Record]) -> list[Record]:
    """The answers of Anthropic: each begins with its message, whose blocks grow by pieces."""
    answers: list[dict[str, Json]] = []
    blocks: dict[int, dict[str, Json]] = {}
    for number, event in enumerate(events):
        fields = Fields(dict(event), f"event {number}")
        match event.get("type"):
            case "message_start":
                blocks = {}
                answers.append(dict(fields.nested("message")))
            case "content_block_start":
                blocks[fields.count("index") or 0] = dict(fields.nested("contentblock"))
            case "content_block_delta":
                _grow(blocks.setdefault(fields.count("index") or 0, {"type": "text"}), fields.inner("delta"))
            case "message_delta" if answers:
                usage = {**object_in(answers[-1].get("usage")), **fields.nested("usage")}
                answers[-1].update({"usage": usage, **fields.nested("delta")})
            case "message_stop" if answers:
                answers[-1]["content"] = [_whole(block) for block in blocks.values()]
    return [*answers]


def _grow(block: dict[str, Json], delta: Fields) -> None:
    for name, into in (("text", "text"), ("thinking", "thinking"), ("partialjson", "partial")):
        if (piece := delta.text(name)) is not None:
            block[into] = f"{block.get(into) or ''}{piece}"


def _whole(block: dict[str, Json]) -> Json:
    """A block with its arguments as JSON, which came as pieces of text."""
    partial = block.pop("partial", None)
    return block if partial is None else {**block, "input": opened(partial)}


def _of_ollama(events: Sequence[Record]) -> list[Record]:
    """The answers of Ollama, each with its last event, which counts the tokens; none where all came whole."""
    answers: list[dict[str, Json]] = [{}]
    for event in events:
        before, message = object_in(answers[-1].get("message")), object_in(event.get("message"))
        said = {key: f"{before.get(key) or ''}{message.get(key) or ''}" for key in ("content", "thinking")}
        said["content"] += as_text(event.get("response")) or ""
        calls: list[Json] = [*objects_in(before.get("tool_calls")), *objects_in(message.get("tool_calls"))]
        whole: Json = {"role": "assistant", **{key: text for key, text in said.items() if text}, "tool_calls": calls}
        answers[-1] = {**{key: item for key, item in event.items() if key != "response"}, "message": whole}
        if event["done"] is True:
            answers.append({})
    whole_answers = [one for one in answers if one]
    return [*whole_answers] if len(whole_answers) < len(events) else []


def _of_candidates(events: Sequence[Record]) -> list[Record]:
    """The answers of Gemini, of the first candidate of their pieces; none where no answer came in several.

    Pieces of one answer name it, or all but the last of them give no reason for their end.
    """
    pieces: list[list[Fields]] = []
    last: tuple[str | None, bool] = (None, True)
    for number, event in enumerate(events):
        fields = Fields(dict(event), f"event {number}")
        own = as_text(fields.peek("responseid"))
        if not pieces or (own != last[0] if own is not None else last[1]):
            pieces.append([])
        pieces[-1].append(fields)
        ended = any(one.peek("finishreason") not in (None, "FINISH_REASON_UNSPECIFIED") for one in _candidates(fields))
        last = (own, ended)
    return [_of_pieces(one) for one in pieces] if any(len(one) > 1 for one in pieces) else []


def _candidates(fields: Fields) -> list[Fields]:
    return [Fields(one) for one in objects_in(fields.peek("candidates"))[:1]]


def _of_pieces(pieces: Sequence[Fields]) -> Record:
    contents = [one.inner("content") for piece in pieces for one in _candidates(piece)]
    parts: list[Json] = []
    for part in [one for content in contents for one in objects_in(content.peek("parts"))]:
        before = parts[-1] if parts else None
        if isinstance(before, dict) and "text" in part and "text" in before and _beside_text(part, before):
            parts[-1] = {**before, **part, "text": f"{before['text']}{part['text']}"}
        else:
            parts.append(part)
    whole: dict[str, Json] = {}
    for piece in pieces:
        whole.update({key: item for key, item in piece.values.items() if item is not None})
    return {**whole, "candidates": [{"content": {"role": "model", "parts": parts}}]}


def _beside_text(part: Record, before: Record) -> bool:
    """Whether two pieces of text are both thoughts, or both none."""
    return (part.get("thought") is True) == (before.get("thought") is True)
