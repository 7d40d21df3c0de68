"""What models put around an answer: thoughts, channel and chat tokens, prose, full-width and zero-width characters.

Nothing here decides what a verdict is: `reply` does. Text inside a JSON object is never touched, so a quote of a
trace that holds a tag or a token stays as the judge wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_THOUGHT = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis"
_OPEN = re.compile(
    rf"<(?:\w+:)?(?:{_THOUGHT})>|\[(?:think|thinking)\]|◁think▷|<\|(?:start_thinking|begin_of_thought)\|>"
    r"|<\|channel>\s*(?:thought|analysis)s?",
    re.I,
)
_CLOSE = re.compile(
    rf"</(?:\w+:)?(?:{_THOUGHT})>|\[/(?:think|thinking)\]|◁/think▷|<\|(?:end_thinking|end_of_thought)\|>"
    r"|<channel\|>",
    re.I,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<name>\w+)(?:(?!<\|message\|>).){0,200}<\|message\|>", re.DOTALL)
_THOUGHT_CHANNELS = frozenset({"analysis", "commentary", "thought", "thoughts", "thinking", "think", "reasoning"})
_CHANNELS_WITHOUT_TOKENS = re.compile(r"\A\s*analysis(?P<thoughts>.*?)assistantfinal(?P<answer>.*)\Z", re.DOTALL)
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_TOKEN = re.compile(
    r"""(?ix)
      <\|(?:im_start|start_header_id|start|header_start)\|>\s*(?:assistant|model)?
    | <[|｜][\w▁ -]{1,40}[|｜]>
    | <start_of_turn>\s*(?:model|assistant)?
    | <(?:end_of_turn|bos|eos|pad|s|/s|eot)>
    | \[/?(?:INST|ANSWER|RESPONSE)\]
    """
)
_TAG_AROUND = re.compile(
    r"\A<(?P<name>tool_call|function_call|answer|final|final_answer|output|response|result|verdict|json|judge?ment)>(?P<text>.*)</(?P=name)>\Z",
    re.DOTALL | re.I,
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LAST_COMMA = re.compile(r",(?=\s*[}\]])")
_OPENING_BRACE = re.compile("[{｛]")
_START = re.compile(r"\{|\[\s*\{")
_VERDICT_KEYS = frozenset({"score", "findings", "not_applicable"})
_NAMES = ("name", "tool", "tool_name", "action", "recipient_name")
_GIVEN = ("arguments", "args", "input", "parameters", "tool_input", "action_input")
"""Where a call of a function holds what it is given: OpenAI, Gemini, Anthropic and Bedrock, Llama, LangChain."""
_THOUGHT_KEYS = ("thinking", "reasoning", "reasoning_content")
_WORDS = ("content", "text", *_THOUGHT_KEYS)
_WRAPPERS = (
    "choices", "candidates", "output", "message", "content", "parts", "tool_calls", "toolCalls", "function",
    "function_call", "functionCall", "toolUse", "tool_use", "tool_call",
)  # fmt: skip
"""The keys under which a response holds messages, a message its parts and calls, a call its function."""
_MESSAGE_KEYS = frozenset({"role", "choices", "candidates", "output"})
_MOST_LEVELS = 8
_MOST_STARTS = 200  # places at which a JSON object is looked for in one answer
_ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
_ASCII: dict[int, str | None] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if code != 0xFF02},  # not ＂: it may stand in a text
    **dict.fromkeys(map(ord, "︓﹕∶꞉"), ":"),
    **dict.fromkeys((0x3000, 0xA0), " "),
    **dict.fromkeys(map(ord, _ZERO_WIDTH)),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Unwrapped:
    """An answer without what stood around it, and the thoughts among that (None where there were none)."""

    answer: str
    thoughts: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonObject:
    """A JSON object in a text: where it begins and ends, and its own text."""

    start: int
    end: int
    text: str


def unwrap(text: str) -> Unwrapped:
    """Take the answer out of channels, thoughts (also closed but never opened), chat tokens and a tag around all."""
    answer, channels = _final_channel(text)
    answer, thoughts = _without_thoughts(answer)
    answer = _without_tokens(answer)
    around = _TAG_AROUND.match(answer)
    words = "\n\n".join(piece for piece in (*channels, *thoughts) if piece)
    return Unwrapped(answer=answer if around is None else around["text"].strip(), thoughts=words or None)


def json_objects(text: str) -> Iterator[JsonObject]:
    """Each outermost JSON object of a text; one that stands in a JSON list is passed over with it."""
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(_MOST_STARTS):
        start = _next_start(text, at)
        if start is None:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        if isinstance(value, dict):
            yield JsonObject(start=start, end=end, text=text[start:end])
        at = end


def plain_structure(text: str) -> str:
    """The text with full-width and zero-width characters of its JSON made plain and without the commas that nothing
    follows; what stands in quotes stays.
    """
    first, last = _OPENING_BRACE.search(text), max(text.rfind("}"), text.rfind("｝"))
    if first is None or last < first.start():
        return text
    return text[: first.start()] + _plain_outside_strings(text[first.start() : last + 1]) + text[last + 1 :]


def plain(text: str) -> str:
    """The text without zero-width characters, its full-width letters, digits and signs as ASCII."""
    return text.translate(_ASCII)


def plain_with_places(text: str) -> tuple[str, tuple[int, ...]]:
    """`plain(text)` and the place in `text` of each of its characters, then of the end."""
    pairs = [(letter, at) for at, old in enumerate(text) for letter in old.translate(_ASCII)]
    return "".join(letter for letter, _ in pairs), (*(at for _, at in pairs), len(text))


def text_of_parts(parts: list[Any]) -> tuple[str, str | None]:
    """The text of a content list as providers send it, and the thoughts among its parts (None without any)."""
    texts: list[str] = []
    thoughts: list[str] = []
    for part in parts:
        kind = str(part.get("type", "")) if isinstance(part, dict) else ""
        is_thought = "think" in kind or "reason" in kind or (isinstance(part, dict) and part.get("thought") is True)
        (thoughts if is_thought else texts).append(_text_of_part(part))
    return "".join(texts), "\n\n".join(filter(None, thoughts)) or None


def with_calls_opened(text: str) -> str:
    """The text with each JSON object or list that is a message or calls a function replaced by what it says.

    Only arguments in the form of a verdict count; what a message says beside its calls goes before them.
    """
    pieces, at = [], 0
    for one in _wholes(text):
        if (opened := _opened_call(json.loads(one.text, strict=False))) is not None:
            pieces += [text[at : one.start], opened]
            at = one.end
    return "".join([*pieces, text[at:]])


def _wholes(text: str) -> Iterator[JsonObject]:
    """The list that the whole text is, else each object in it."""
    body = text.strip()
    if body.startswith("["):
        try:
            json.loads(body, strict=False)
        except (ValueError, RecursionError):
            return
        yield JsonObject(start=0, end=len(text), text=body)
    else:
        yield from json_objects(text)


def _opened_call(value: Any) -> str | None:
    """The thoughts, the words and the fitting arguments of a message or a call of a function; None for any other."""
    texts: dict[str, list[str]] = {"thought": [], "text": [], "call": []}
    for kind, item in _said_in(value, 0):
        texts[kind].append(item)
    thoughts, words, calls = texts.values()
    is_message = isinstance(value, dict) and bool(_MESSAGE_KEYS & value.keys())
    if not calls and not (is_message and words):
        return None
    return "\n".join([*(f"<think>{thought}</think>" for thought in thoughts), *words, *calls])


def _said_in(value: Any, level: int) -> Iterator[tuple[str, str]]:
    """Each thought, text and fitting call of a response, message or part, whatever the provider's form."""
    if isinstance(value, list):
        for item in value:
            yield from _said_in(item, level)
    if not isinstance(value, dict) or _VERDICT_KEYS & value.keys() or level > _MOST_LEVELS:
        return
    inputs = next((value[key] for key in _GIVEN if value.get(key)), None)
    if inputs is not None and any(isinstance(value.get(key), str) for key in _NAMES):
        if (arguments := _fitting(inputs)) is not None:
            yield "call", arguments
        return
    is_thought = value.get("thought") is True or "think" in str(value.get("type", ""))
    for key in _WORDS:
        if isinstance(value.get(key), str):
            yield "thought" if is_thought or key in _THOUGHT_KEYS else "text", value[key]
    for key in _WRAPPERS:
        yield from _said_in(value.get(key), level + 1)


def _fitting(arguments: Any) -> str | None:
    """The arguments as JSON text where they are an object with the keys of a verdict."""
    try:
        value = json.loads(arguments, strict=False) if isinstance(arguments, str) else arguments
        value = json.loads(value, strict=False) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not _VERDICT_KEYS & value.keys():
        return None
    is_text = isinstance(arguments, str) and arguments.lstrip().startswith("{")
    return arguments if is_text else json.dumps(value, ensure_ascii=False)


def refusal_of_parts(parts: list[Any]) -> str | None:
    """Why the model would not answer, where a part of its content list says so."""
    return next((str(part["refusal"]) for part in parts if isinstance(part, dict) and part.get("refusal")), None)


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, list):
        return "".join(_text_of_part(piece) for piece in part)
    if not isinstance(part, dict):
        return ""
    known = ("text", "thinking", "reasoning", "content", "value", "summary", "output_text")
    words = next((_text_of_part(part[key]) for key in known if part.get(key)), "")
    arguments = part.get("input", part.get("json"))
    return json.dumps(arguments, ensure_ascii=False) if not words and isinstance(arguments, dict) else words


def _next_start(text: str, at: int) -> int | None:
    """Where the next object, or list of objects, may begin."""
    mark = _START.search(text, at)
    return None if mark is None else mark.start()


def _plain_outside_strings(text: str) -> str:
    pieces, at = [], 0
    for string in _STRING.finditer(text):
        pieces += [_plain_json(text[at : string.start()]), string[0]]
        at = string.end()
    return "".join([*pieces, _plain_json(text[at:])])


def _plain_json(signs: str) -> str:
    return _LAST_COMMA.sub("", signs.translate(_ASCII))


def _final_channel(text: str) -> tuple[str, list[str]]:
    """The text of the final channel and of tool calls, and that of the others; the whole where there are none."""
    objects = tuple(json_objects(text))
    marks = [mark for mark in _CHANNEL.finditer(text) if not _is_inside(mark.start(), objects)]
    if not marks:
        bare = _CHANNELS_WITHOUT_TOKENS.match(text)
        return (text, []) if bare is None else (bare["answer"], [bare["thoughts"].strip()])
    answers: list[str] = []
    others = [_without_tokens(text[: marks[0].start()])]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        content = _message(text, mark.end(), len(text) if following is None else following.start(), objects)
        is_answer = mark["name"].lower() not in _THOUGHT_CHANNELS or "to=" in mark[0]
        (answers if is_answer else others).append(_without_tokens(content))
    return "\n".join(answers), others


def _message(text: str, start: int, end: int, objects: tuple[JsonObject, ...]) -> str:
    """A channel's message: up to the token that ends it, or the next channel."""
    ends = (
        mark.start() for mark in _END_OF_MESSAGE.finditer(text, start, end) if not _is_inside(mark.start(), objects)
    )
    return text[start : next(ends, end)]


def _without_thoughts(text: str) -> tuple[str, list[str]]:
    """The text without its thoughts: what stands between two tags, all before one that closes what none opened, and
    all after one that none closes.
    """
    objects = tuple(json_objects(text))
    thoughts: list[str] = []
    answer, at, is_open = "", 0, False
    tags = [*((m.start(), m.end(), True) for m in _OPEN.finditer(text)),
            *((m.start(), m.end(), False) for m in _CLOSE.finditer(text))]  # fmt: skip
    for start, end, opens in sorted(tag for tag in tags if not _is_inside(tag[0], objects)):
        if opens and not is_open:
            answer, at, is_open = answer + text[at:start], end, True
        elif not opens:
            thoughts.append((text[at:start] if is_open else answer + text[at:start]).strip())
            answer, at, is_open = answer if is_open else "", end, False
    if is_open:
        return answer, [*thoughts, text[at:].strip()]
    return answer + text[at:], thoughts


def _is_inside(place: int, objects: tuple[JsonObject, ...]) -> bool:
    return any(one.start < place < one.end for one in objects)


def _without_tokens(text: str) -> str:
    """The text without the tokens of a chat template at its beginning and end."""
    body = text.strip()
    while (token := _TOKEN.match(body)) is not None:
        body = body[token.end() :].lstrip()
    return _tokens_at_end(body)


def _tokens_at_end(body: str) -> str:
    tail = body[-200:]
    for token in _TOKEN.finditer(tail):
        if not _TOKEN.sub("", tail[token.start() :]).strip():
            return body[: len(body) - len(tail) + token.start()].rstrip()
    return body
