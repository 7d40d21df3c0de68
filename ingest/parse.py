"""Bytes in, JSON values out: whatever the encoding, with line and column where it fails, nothing unreadable kept."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, cast

import orjson

from tracejury.ingest.nesting import LEVELS, read_deep, write_deep
from tracejury.ingest.trace import IngestError, Json
from tracejury.ingest.words import counted

MAX_DEPTH = 128
"""Levels of nesting a kept attribute may have; beyond them it is kept as JSON text (orjson writes 254 at most)."""

_NUL_ESCAPE = b"\\u0000"
_NUL_DIGITS = _NUL_ESCAPE[1:]  # found faster: JSON is full of backslashes
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BARE: tuple[tuple[str, int, int], ...] = (
    ("utf-16-le", 2, 0), ("utf-16-be", 2, 1), ("utf-32-le", 4, 0), ("utf-32-be", 4, 3),
)  # fmt: skip
"""Encodings without byte order mark: bytes a character, and which of them an ASCII character fills."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One JSON document of a file: its value or why it could not be read, and what had to be mended."""

    place: str
    value: Json = None
    error: IngestError | None = None
    warnings: tuple[str, ...] = ()


def parse_json(data: bytes) -> Json:
    """The value of one JSON document, text cleaned as `clean_text` does, NaN and infinities as words.

    Accepts UTF-8, UTF-16 and UTF-32, with or without byte order mark. Raises `IngestError` with line and column.
    """
    return parse_document(data).value


def parse_document(data: bytes, place: str = "") -> Document:
    """As `parse_json`, with a warning for everything that had to be mended to read it."""
    text, warnings = to_utf8(data)
    try:
        value = cast("Json", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        return _parse_leniently(text, error, place, warnings)
    if _NUL_DIGITS in text and _NUL_ESCAPE in text:
        value, cleaned = clean(value)
        warnings += _cleaning_warning(cleaned)
    return Document(place=place, value=value, warnings=warnings)


def parse_documents(data: bytes) -> Iterator[Document]:
    """Every JSON document of a file: one, or one per line, or several written one after another.

    A document that cannot be read is yielded with its `error`, and the rest goes on.
    """
    text, warnings = to_utf8(data)
    for part in _parts(text):
        yield replace(part, warnings=warnings + part.warnings) if warnings else part


def _parts(text: bytes) -> Iterable[Document]:
    if has_lines(text):  # before the whole is tried: a long file is then never decoded at once
        return _lines(text)
    try:
        return [parse_document(text)]
    except IngestError as error:
        if first_line_is_cut_off(text):
            return _lines(text)
        parts = list(_concatenated(text))
        found_more = len(parts) > 1 or (len(parts) == 1 and parts[0].error is None)
        return parts if found_more else [Document(place=error.place, error=error)]


def inner_json_as_is(text: str) -> Json:
    """As `inner_json` for the common case, quicker: strings are not cleaned, and None may also mean unusual JSON."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return cast("Json", orjson.loads(text))
    except orjson.JSONDecodeError:
        return None


def inner_json(text: str) -> dict[str, Json] | list[Json] | None:
    """The object or list that a text attribute holds as JSON, encoded once or more; None when it is plain text."""
    if not text or text[0] not in "{[ \n\t\r":
        return _encoded_again(text) if text[:2] in _ENCODED_AGAIN else None
    try:
        value = orjson.loads(text)
        if "\\u0000" in text:
            value, _ = clean(value)
    except orjson.JSONDecodeError:
        try:
            value, _ = clean(json.loads(_with_escapes(text), strict=False, **_hooks([])))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, (dict, list)) else None


def _with_escapes(text: str) -> str:
    """JSON text whose undecodable bytes stand as `clean_text` wrote them (\\xNN), which is no escape in JSON."""
    return _BYTE_ESCAPE.sub(r"\1\\\2", text) if "\\x" in text else text


_BYTE_ESCAPE = re.compile(r"((?:^|[^\\])(?:\\\\)*)(\\x[0-9a-f]{2})")
_ENCODED_AGAIN = ('"{', '"[', '"\\')


def _encoded_again(text: str) -> dict[str, Json] | list[Json] | None:
    """The object or list in JSON text that was written as a JSON text once more."""
    try:
        inner = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return inner_json(clean_text(inner)) if isinstance(inner, str) else None


def closed_json(text: str) -> dict[str, Json] | list[Json] | None:
    """The object or list of JSON text that breaks off, as far as it goes; None where it is no such text.

    The last text keeps what was written at the place of the cut (a tracer's "...[TRUNCATED]").
    """
    if text[:1] not in ("{", "[") or len(text) < 2:
        return None
    ends, is_text, escaped = _open_ends(text)
    if not ends:
        return None
    body = (text[:-1] if escaped else text) + ('"' if is_text else "")
    for tail in (body, *_before_commas(body)):
        content = inner_json(tail + "".join(reversed(_open_ends(tail)[0])))
        if content:
            return content
    return None


def _open_ends(text: str) -> tuple[list[str], bool, bool]:
    """The brackets that are open at the end, whether a text is, and whether it ends within an escape."""
    ends: list[str] = []
    is_text = escaped = False
    for letter in text:
        if escaped:
            escaped = False
        elif letter == "\\" and is_text:
            escaped = True
        elif letter == '"':
            is_text = not is_text
        elif not is_text and letter in "{[":
            ends.append("}" if letter == "{" else "]")
        elif not is_text and letter in "}]" and ends:
            ends.pop()
    return ends, is_text, escaped


def _before_commas(text: str) -> Iterator[str]:
    """The text before its last commas: what follows one may be a name without its value."""
    at = len(text)
    for _ in range(3):
        at = text.rfind(",", 0, at)
        if at <= 0:
            return
        yield text[:at]


def json_text(value: object) -> str:
    """Compact JSON text of a value, of any depth."""
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, RecursionError):
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            return write_deep(cast("Json", value))


def unquoted(text: str) -> str:
    """The text that stands as a JSON text with its quotes; any other as it is."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return clean_text(content) if isinstance(content, str) else text


def clean_text(text: str) -> str:
    """NUL and lone surrogates, which no database takes, as their six-character escapes; undecodable bytes as \\xNN."""
    return _UNREADABLE.sub(_escaped, text)


def clean(value: Json) -> tuple[Json, int]:
    """The value with every string (keys too) cleaned, and how many strings that touched; no recursion."""
    holder: list[Json] = [value]
    stack: list[list[Json] | dict[str, Json]] = [holder]
    cleaned = 0
    while stack:
        node = stack.pop()
        for key, item in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            if isinstance(item, str):
                if _UNREADABLE.search(item):
                    node[key] = clean_text(item)  # type: ignore[index]
                    cleaned += 1
            elif isinstance(item, (dict, list)):
                stack.append(item)
        if isinstance(node, dict) and any(_UNREADABLE.search(key) for key in node):
            renamed = {clean_text(key): item for key, item in node.items()}
            node.clear()
            node.update(renamed)
            cleaned += 1
    return holder[0], cleaned


def is_deep(value: Json, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects stand in one another more than `limit` levels deep; no recursion."""
    level: list[Json] = [value]
    for _ in range(limit):
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def to_utf8(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """The same text in UTF-8 without byte order mark, and a warning where the encoding was another."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            if encoding == "utf-8":
                return data[len(bom) :], ()
            return _decoded(data[len(bom) :], encoding)
    for encoding, width, place in _BARE:
        unit = data[: 2 * width]
        zeros = all(not byte for index, byte in enumerate(unit) if index % width != place)
        if len(unit) == 2 * width and zeros and unit[place] in b'{[" \t\r\n' and unit[width + place]:
            return _decoded(data, encoding)
    return data, ()


def _decoded(data: bytes, encoding: str) -> tuple[bytes, tuple[str, ...]]:
    try:
        text = data.decode(encoding, "surrogatepass")
    except UnicodeDecodeError:
        return data, ()
    return text.encode("utf-8", "surrogatepass"), (f"encoding: the file is not UTF-8; read as {encoding}",)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _parse_leniently(text: bytes, error: orjson.JSONDecodeError, place: str, warnings: tuple[str, ...]) -> Document:
    words: list[str] = []
    hooks = _hooks(words)

    def part(data: bytes) -> Json:
        try:
            return cast("Json", orjson.loads(data))
        except orjson.JSONDecodeError:
            return cast("Json", json.loads(_text(data), strict=False, **hooks))

    try:
        loose = part(text)
    except RecursionError:
        loose = _read_deep(text, part, place)
    except ValueError:
        raise _decode_error(text, error, place) from error
    value, cleaned = clean(loose)
    return Document(place=place, value=value, warnings=warnings + _number_warning(words) + _cleaning_warning(cleaned))


def _hooks(words: list[str]) -> dict[str, Any]:
    """For Python's parser: what is no number in JSON, or none that fits 64 bits, stays text; `words` collects it."""

    def word(written: str) -> str:
        words.append(written)
        return written

    def integer(digits: str) -> int | str:
        return int(digits) if len(digits) <= 20 and -(2**63) <= int(digits) < 2**64 else word(digits)

    def real(digits: str) -> float | str:
        return float(digits) if isfinite(float(digits)) else word(digits)

    return {"parse_constant": word, "parse_int": integer, "parse_float": real}


def _read_deep(text: bytes, loads: Callable[[bytes], Json], place: str) -> Json:
    try:
        return read_deep(text, loads)
    except ValueError as error:
        reason = f"not JSON: {error}, in JSON nested more than {LEVELS} levels deep"
        raise IngestError(reason, place=place, remedy="correct the file or export it again", lost=len(text)) from error


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def _number_warning(words: list[str]) -> tuple[str, ...]:
    return (f"not_a_json_number: {counted(len(words), 'value')} such as {words[0][:40]} kept as text",) if words else ()


def _cleaning_warning(cleaned: int) -> tuple[str, ...]:
    return (
        (f"escaped_text: NUL, undecodable bytes or lone surrogates in {counted(cleaned, 'text')}, kept as escapes",)
        if cleaned
        else ()
    )


def _decode_error(text: bytes, error: orjson.JSONDecodeError, place: str) -> IngestError:
    where = f"line {error.lineno} column {error.colno}"
    at_end = error.pos >= len(_text(text).rstrip()) or "end of data" in error.msg
    if not text.strip():
        return IngestError("the file is empty", place=place, remedy="export it again")
    if at_end:
        reason, remedy = "JSON ends too early: the file is cut off", "export or download it again"
    else:
        reason, remedy = f"not JSON: {error.msg}", "correct the file at this place or export it again"
    return IngestError(reason, place=f"{place}, {where}" if place else where, remedy=remedy, lost=len(text))


def decoded_again(data: bytes) -> bytes | None:
    """The text of a file whose JSON was written as a JSON text once more, whole or a line each; None of any other."""
    start, _ = to_utf8(data[:64])
    if start.lstrip()[:2] not in (b'"{', b'"[', b'"\\'):
        return None
    text, _ = to_utf8(data)
    try:
        texts = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        try:
            texts = [orjson.loads(line) for line in text.splitlines() if line.strip()]
        except orjson.JSONDecodeError:
            return None
    are_texts = all(isinstance(one, str) for one in texts)
    return "\n".join(texts).encode("utf-8", "surrogatepass") if are_texts else None


def is_utf8(data: bytes) -> bool:
    """Whether a file that begins so is UTF-8 without byte order mark, as most are."""
    return to_utf8(data[:64]) == (data[:64], ())


def has_lines(text: bytes) -> bool:
    """Whether the first line is a document of its own and more follows."""
    first, second, _ = _first_lines(text)
    if first[:1] not in (b"{", b"[") or first[-1:] not in (b"}", b"]") or not second:
        return False
    try:
        parse_document(first)
    except IngestError:
        return False
    return True


def first_line_is_cut_off(text: bytes) -> bool:
    """A first line that is no JSON still belongs to JSON lines when the second is whole.

    After one that ends in an open bracket, a comma or a colon, the second may be a part of the same document: then
    the third must be whole too.
    """
    first, second, third = _first_lines(text)
    is_open = first[-1:] in (b"{", b"[", b",", b":")
    return first[:1] in (b"{", b"[") and len(first) > 1 and all(map(_is_object, [second, third][: 1 + is_open]))


def _is_object(line: bytes) -> bool:
    return line[:1] == b"{" and line[-1:] == b"}" and len(line) > 1


def _first_lines(text: bytes) -> tuple[bytes, bytes, bytes]:
    """The first three lines that are not blank, without the white space around them."""
    lines: list[bytes] = []
    start = 0
    while start < len(text) and len(lines) < 3:
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        if line := text[start:end].strip():
            lines.append(line)
        start = end + 1
    first, second, third = [*lines, b"", b"", b""][:3]
    return first, second, third


def _lines(text: bytes) -> Iterator[Document]:
    """One document per line, read as they are asked for: a long file is never held twice."""
    number = position = 0
    while position < len(text):
        end = text.find(b"\n", position)
        end = len(text) if end < 0 else end
        line, position, number = text[position:end], end + 1, number + 1
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            yield parse_document(line, place)
        except IngestError as error:
            yield Document(place=place, error=error)


def _concatenated(data: bytes) -> Iterator[Document]:
    """Objects written one after another, as console exporters do; other text between them is named."""
    text = _text(data)
    words: list[str] = []
    decoder = json.JSONDecoder(strict=False, **_hooks(words))
    position = 0
    while True:
        start = _next_start(text, position)
        if between := text[position : len(text) if start < 0 else start].strip(" \t\r\n,"):
            is_part = _is_part_of_json(between)
            if is_part:  # of a document whose beginning is lost: its other parts are no documents
                start = _after_part(text, position)
                between = text[position : len(text) if start < 0 else start]
            line = text.count("\n", 0, position) + 1
            yield Document(
                place=f"line {line}",
                error=IngestError(
                    f"text that is not JSON: {clean_text(between[:80])!r}",
                    place=f"line {line}",
                    remedy="export it again" if is_part else "delete other output from the file",
                    lost=len(between.encode("utf-8", "surrogatepass")) if is_part else 0,
                ),
            )
        if start < 0:
            return
        place = f"line {text.count(chr(10), 0, start) + 1}"
        try:
            words.clear()
            loose, position = decoder.raw_decode(text, start)
            value, cleaned = clean(loose)
            yield Document(place=place, value=value, warnings=_number_warning(words) + _cleaning_warning(cleaned))
        except (RecursionError, ValueError) as error:
            position = _next_document(text, start)
            reason = "JSON nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
            remedy = "flatten it" if isinstance(error, RecursionError) else "export it again"
            lost = len(text[start:position].encode("utf-8", "surrogatepass"))
            yield Document(place=place, error=IngestError(reason, place=place, remedy=remedy, lost=lost))


_PART = re.compile(r'"\s*[:,}\]]|^[^{\[]*[}\]]')


def _is_part_of_json(text: str) -> bool:
    """Whether text that is no JSON goes on like it: a quote before punctuation, a bracket that nothing opened."""
    return _PART.search(text) is not None


def _after_part(text: str, position: int) -> int:
    """Where a document begins that is no part of the damaged one at `position`; -1 where none does."""
    start = _next_document(text, position)
    return start if start < len(text) else -1


def _next_start(text: str, position: int) -> int:
    """The next `{` or `[` that begins a line; an object may follow another on the same line too."""
    match = re.compile(r"[ \t\r,]*([{\[])").match(text, position)
    if match:
        return match.start(1)
    start = re.compile(r"^[ \t]*([{\[])", re.MULTILINE).search(text, position)
    return start.start(1) if start else -1


_BEGINS_LINE = re.compile(r"^([ \t]*)[{\[]", re.MULTILINE)


def _next_document(text: str, start: int) -> int:
    """Where the document after a damaged one begins, or the end of the text: never at a part of the damaged one.

    A part of an indented document stands deeper than its beginning; of another, after a comma or an open bracket.
    """
    depth = _indentation(text, start)
    is_indented = _indentation(text, _after_line(text, start)) > depth
    for match in _BEGINS_LINE.finditer(text, start + 1):
        is_free = is_indented or _last_character(text, match.start()) not in ",:{["
        if is_free and len(match[1]) <= depth:
            return match.start()
    return len(text)


def _indentation(text: str, position: int) -> int:
    """White space at the beginning of the line of `position`."""
    line = text.rfind("\n", 0, position) + 1
    return len(text[line : _after_line(text, line)]) - len(text[line : _after_line(text, line)].lstrip(" \t"))


def _after_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _last_character(text: str, end: int) -> str:
    """The last character before `end` that is no white space; a comma where there is none."""
    while end > 0 and text[end - 1].isspace():
        end -= 1
    return text[end - 1] if end > 0 else ","
