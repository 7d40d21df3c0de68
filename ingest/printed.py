"""What a container printed, out of the log that its engine keeps: Docker's, Kubernetes' (CRI) and Compose's."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from tracejury.ingest.parse import to_utf8
from tracejury.ingest.trace import Json
from tracejury.ingest.words import counted

_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S+ (stdout|stderr) ([FP])(?: (.*))?")
"""A line of a pod's log: when, to which stream, whole or a part, what."""
_COMPOSE = re.compile(r"[\w.-]+ +\| (.*)")
_DOCUMENT = re.compile(r"^[{\[]", re.MULTILINE)
_STREAMS = ("stdout", "stderr")
_LONGEST = 120


class Printed(NamedTuple):
    """The text of one stream, and a warning that counts and quotes the lines of the other."""

    text: bytes
    warnings: tuple[str, ...] = ()


class _Line(NamedTuple):
    stream: str
    text: str


def printed(data: bytes) -> Printed | None:
    """What a container printed to the stream that holds JSON; None of bytes that are no container's log."""
    start, _ = to_utf8(data[:4096])
    read = next((read for begins, read in _FORMS if begins(start.decode("utf-8", "replace"))), None)
    lines = None if read is None else read(to_utf8(data)[0].decode("utf-8", "surrogateescape"))
    if not lines:
        return None
    texts = {name: "".join(line.text for line in lines if line.stream == name) for name in _STREAMS}
    with_json = [name for name in _STREAMS if _DOCUMENT.search(texts[name])]
    chosen = next((name for name in (*with_json, *_STREAMS) if texts[name].strip()), "stdout")
    warnings = (_left_out(other, texts[other]) for other in _STREAMS if other != chosen)
    return Printed(texts[chosen].encode("utf-8", "surrogateescape"), tuple(filter(None, warnings)))


def _left_out(stream: str, text: str) -> str | None:
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    return f"other_output: {counted(len(lines), 'line')} of {stream} left out, the last: {lines[-1][:_LONGEST]!r}"


def _docker(text: str) -> list[_Line] | None:
    """Lines of Docker's log driver and of Fluentd: `{"log": ..., "stream": ...}`."""
    try:
        rows = [orjson.loads(line) for line in text.splitlines() if line.strip()]
    except orjson.JSONDecodeError:
        return None
    return _all(_docker_line(row) if isinstance(row, dict) else None for row in rows)


def _docker_line(row: dict[str, Json]) -> _Line | None:
    stream, text = row.get("stream"), row.get("log")
    return _Line(str(stream), text) if stream in _STREAMS and isinstance(text, str) else None


def _pod(text: str) -> list[_Line] | None:
    matches = [_CRI.fullmatch(line) for line in text.split("\n") if line.strip()]
    return _all(_Line(one[1], (one[3] or "") + ("\n" if one[2] == "F" else "")) if one else None for one in matches)


def _compose(text: str) -> list[_Line] | None:
    matches = [_COMPOSE.fullmatch(line) for line in text.split("\n") if line.strip()]
    return _all(_Line("stdout", f"{one[1]}\n") if one else None for one in matches)


def _all(lines: Iterable[_Line | None]) -> list[_Line] | None:
    every = list(lines)
    whole = [line for line in every if line is not None]
    return whole if len(whole) == len(every) else None


_FORMS = (
    (re.compile(r'\s*\{(?=[^\n]*"log" ?:)(?=[^\n]*"stream" ?:)').match, _docker),
    (_CRI.match, _pod),
    (_COMPOSE.match, _compose),
)
"""How a log begins, and what reads its lines."""
