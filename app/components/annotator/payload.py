"""What the annotator's island is given: the trace as columns, its texts once each, and the frame around them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

from tracejury.app.components.annotator.masking import Hidden as Hidden
from tracejury.app.components.annotator.masking import Mask
from tracejury.app.components.annotator.rendering import layout
from tracejury.ingest.trace import SPAN_KINDS, Json, Message, Trace
from tracejury.judging.judges.trace_text import Block, Part, Repeat, TraceText, message_text

JsonObject: TypeAlias = "dict[str, Json]"
STATUSES = ("UNSET", "OK", "ERROR")
_KIND_NUMBERS: Mapping[str, int] = {kind: number for number, kind in enumerate(SPAN_KINDS)}
LONG_TEXT = 65_536  # characters: a longer text is sent as its head, the rest when asked for
HEAD = 4_000  # characters of a long text that are sent at once
FIRST_TEXTS = 700_000  # characters of text that travel with the index
BLOCK_COST = 250  # what a block weighs beside its texts
LAYOUT_ROOM = 150_000  # characters of texts whose layouts one answer holds
_VERDICT_WARNINGS = ("outcome_unclear:", "judge_exception:")  # they tell what the benchmark made of the execution


class TraceHead(Protocol):
    """What a trace and its row in the store share."""

    @property
    def trace_id(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def goal(self) -> str | None: ...
    @property
    def final_answer(self) -> str | None: ...
    @property
    def outcome(self) -> object: ...


SPAN_FIELDS = (
    "span_id", "parent_span_id", "depth", "name", "kind", "agent", "start_time", "end_time",
    "clock", "status", "tool_name", "model", "total_tokens",
)  # fmt: skip
SpanRow: TypeAlias = "tuple[Any, ...]"  # the values of SPAN_FIELDS


@dataclass(frozen=True, kw_only=True)
class Document:
    """A trace as the island reads it. `blocks[seq]` names its texts by number; `texts` holds each text once.

    `digest` names the version of the trace that the numbers belong to. `judge_text` is what a judge reads, None
    where names are hidden that stand in it.
    """

    trace_id: str
    index: JsonObject
    blocks: tuple[JsonObject, ...]
    block_texts: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    digest: str
    judge_text: str | None

    def opening(self) -> JsonObject:
        """The index with the first blocks and their texts, up to `FIRST_TEXTS` characters."""
        text_numbers: dict[int, None] = dict.fromkeys(self._index_texts())
        room, count = FIRST_TEXTS - sum(self._sent_length(number) for number in text_numbers), 0
        for numbers in self.block_texts:
            fresh = [number for number in numbers if number not in text_numbers]
            room -= BLOCK_COST + sum(self._sent_length(number) for number in fresh)
            if room < 0 and count > 0:
                break
            text_numbers.update(dict.fromkeys(fresh))
            count += 1
        return {**self.index, "blocks": list(self.blocks[:count]), "texts": self._sent(text_numbers)}

    def stretch(self, first: int, count: int, *, whole: bool = False) -> JsonObject:
        """Blocks `first` to `first + count - 1` and their texts; `whole` sends long texts in full."""
        last = min(first + count, len(self.blocks))
        text_numbers = dict.fromkeys(number for numbers in self.block_texts[first:last] for number in numbers)
        texts = self._sent(text_numbers, whole=whole)
        return {"digest": self.digest, "first": first, "blocks": list(self.blocks[first:last]), "texts": texts}

    def layouts(self, places: Iterable[str]) -> JsonObject:
        """The layouts of texts by their names: a number, with `p` behind it where the text is read as prose.

        As many of them as `LAYOUT_ROOM` allows, one at least; a name that is none is left out.
        """
        laid: dict[str, Any] = {}
        room = LAYOUT_ROOM
        for name in places:
            number = name.removesuffix("p")
            if not number.isdecimal() or int(number) >= len(self.texts):
                continue
            text = self.texts[int(number)]
            room -= len(text)
            if room < 0 and laid:
                break
            laid[name] = layout(text, is_prose=name.endswith("p"))
        return {"digest": self.digest, "layouts": laid}

    def search(self, query: str) -> list[int]:
        """Spans (seq) with a text that holds `query`, whatever its case."""
        needle = query.casefold()
        hits = {number for number, text in enumerate(self.texts) if needle in text.casefold()}
        return [seq for seq, numbers in enumerate(self.block_texts) if not hits.isdisjoint(numbers)]

    def _index_texts(self) -> list[int]:
        return [number for key in ("goal", "answer") if isinstance(number := self.index[key], int)]

    def _sent_length(self, number: int) -> int:
        length = len(self.texts[number])
        return length if length <= LONG_TEXT else HEAD

    def _sent(self, numbers: Iterable[int], *, whole: bool = False) -> JsonObject:
        return {str(number): _sent_text(self.texts[number], whole=whole) for number in numbers}


def document(trace: Trace, reading: TraceText, *, hide: Collection[Hidden] = (), digest: str = "") -> Document:
    """The document of a trace; with `hide` its agents are numbered, its models left out, their names blocked out.

    Nothing of `Trace.logs`, `Trace.outcome` and `Trace.expected_events` enters: they may hold the right answer.
    For the same reason the roots of a trace with an outcome have no status.
    """
    mask = Mask(hide, agents=[span.agent for span in trace.spans], models=[span.model for span in trace.spans])
    texts = _Texts(mask)
    index = _index(trace, map(attrgetter(*SPAN_FIELDS), trace.spans), trace.warnings, texts, hide)
    warnings: dict[str, Json] = {
        str(span.seq): [mask.text(warning) for warning in span.warnings] for span in trace.spans if span.warnings
    }
    plans: list[Json] = [block.seq for block in reading.blocks if any(part.is_plan for part in block.parts)]
    blocks = tuple(_block(block, trace, texts) for block in reading.blocks)
    return Document(
        trace_id=trace.trace_id,
        index=index | {"span_warnings": warnings, "plans": plans, "digest": digest},
        blocks=blocks,
        block_texts=tuple(_text_numbers(block) for block in blocks),
        texts=tuple(texts.numbers),
        digest=digest,
        judge_text=None if hide else reading.text,
    )


def outline(
    head: TraceHead,
    rows: Iterable[SpanRow],
    warnings: Sequence[str],
    *,
    hide: Collection[Hidden] = (),
    digest: str = "",
) -> JsonObject:
    """The opening of a long trace before it has been read: tree and times; `partial` says that texts follow.

    `rows` hold the `SPAN_FIELDS` of each span in reading order.
    """
    rows = list(rows)
    agents, models = ([row[SPAN_FIELDS.index(name)] for row in rows] for name in ("agent", "model"))
    texts = _Texts(Mask(hide, agents=agents, models=models))
    index = _index(head, rows, warnings, texts, hide)
    sent = {str(number): _sent_text(text, whole=False) for text, number in texts.numbers.items()}
    rest: JsonObject = {"span_warnings": {}, "plans": [], "blocks": [], "texts": sent, "partial": True}
    return index | rest | {"digest": digest}


def frame(
    *,
    trace_id: str,
    token: str,
    token_s: int,
    user: str,
    state: Mapping[str, Json],
    dimensions: Sequence[JsonObject],
    categories: Sequence[JsonObject] = (),
    span: str | None = None,
    queue: JsonObject | None = None,
    base: str = "",
    read_only: bool = False,
) -> JsonObject:
    """The small data of the component: everything but the trace.

    The island fetches that by `token`, good for `token_s` seconds: it asks for another in time.

    `state` is `item_state.state`: its `review.revealed` says whether the judges' findings have been shown.
    `dimensions` are `{key, title, about, anchors: [[score text, meaning], ...]}`, `categories` are
    `{group, names}`, `queue` is `{done, total, team_done?, team_total?, has_previous, has_next, due?, left_ms?}`.
    """
    return {
        "trace_id": trace_id,
        "token": token,
        "token_s": token_s,
        "user": user,
        "state": dict(state),
        "dimensions": list(dimensions),
        "categories": list(categories),
        "span": span,
        "queue": queue,
        "base": base.rstrip("/"),
        "read_only": read_only,
    }


class _Texts:
    """Numbers texts, each once, in the order in which they are met, without the names that are hidden."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.numbers.setdefault(self.mask.text(text), len(self.numbers))


class _Words:
    """Numbers short names (agents, tools, span names), -1 for none."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, word: str | None) -> int:
        return -1 if word is None or word == "" else self.numbers.setdefault(word, len(self.numbers))

    def listed(self) -> list[Json]:
        return list(self.numbers)


def _index(
    head: TraceHead, rows: Iterable[SpanRow], warnings: Sequence[str], texts: _Texts, hide: Collection[Hidden]
) -> JsonObject:
    names, agents, tools, models = _Words(), _Words(), _Words(), _Words()
    columns: dict[str, tuple[Any, ...]] = dict(zip(SPAN_FIELDS, zip(*rows, strict=True), strict=True))
    starts, ends, kinds = columns["start_time"], columns["end_time"], columns["kind"]
    first = min((start for start in starts if start is not None), default=None)
    spans: dict[str, Json] = {
        "id": list(columns["span_id"]),
        "parent": _parents(columns),
        "name": [names.number(texts.mask.name(name or "(no name)")) for name in columns["name"]],
        "kind": [_KIND_NUMBERS[kind] for kind in kinds],
        "agent": [agents.number(agent) for agent in columns["agent"]],
        "tool": [
            tools.number(texts.mask.text(tool)) if kind == "TOOL" and tool else -1
            for tool, kind in zip(columns["tool_name"], kinds, strict=True)
        ],
        "status": _statuses(head, columns),
        "start": [_ms(first, start) for start in starts],
        "duration": [_ms(start, end) for start, end in zip(starts, ends, strict=True)],
        "tokens": list(columns["total_tokens"]),
        "model": [-1 if "model" in hide else models.number(model) for model in columns["model"]],
    }
    return {
        "version": 1,
        "trace_id": head.trace_id,
        "format": head.format,
        "goal": None if head.goal is None else texts.number(head.goal),
        "answer": None if head.final_answer is None else texts.number(head.final_answer),
        "warnings": [texts.mask.text(warning) for warning in _open_warnings(head, warnings)],
        "clock": columns["clock"][0],
        "started": first,
        "names": names.listed(),
        "agents": [f"agent {n + 1}" for n in range(len(agents.numbers))] if "agent" in hide else agents.listed(),
        "tools": tools.listed(),
        "models": models.listed(),
        "spans": spans,
    }


def _statuses(head: TraceHead, columns: Mapping[str, tuple[Any, ...]]) -> list[Json]:
    """Each span's status; a root's is the benchmark's verdict where there is an outcome, so it is not told."""
    pairs = zip(columns["status"], columns["depth"], strict=True)
    return [STATUSES.index("UNSET" if depth == 0 and head.outcome is not None else status) for status, depth in pairs]


def _open_warnings(head: TraceHead, warnings: Sequence[str]) -> list[str]:
    return [w for w in warnings if head.outcome is None or not w.startswith(_VERDICT_WARNINGS)]


def _parents(columns: Mapping[str, tuple[Any, ...]]) -> list[Json]:
    """Each parent's place; -1 for a root, an orphan and the head of a cut cycle (their depth is 0)."""
    place = {span_id: seq for seq, span_id in enumerate(columns["span_id"])}
    pairs = zip(columns["parent_span_id"], columns["depth"], strict=True)
    return [-1 if depth == 0 or parent is None else place[parent] for parent, depth in pairs]


def _ms(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else round((end - start) / 1000, 1)


def _block(block: Block, trace: Trace, texts: _Texts) -> JsonObject:
    repeats: list[Json] = [_repeat(repeat, trace.messages[repeat.message], texts) for repeat in block.repeats]
    return {"seq": block.seq, "parts": [_part(part, texts) for part in block.parts], "repeats": repeats}


def _repeat(repeat: Repeat, message: Message, texts: _Texts) -> list[Json]:
    text = message_text(message) or message.reasoning or ""
    return [repeat.message, repeat.ordinal, message.role, texts.number(text)]


def _part(part: Part, texts: _Texts) -> JsonObject:
    is_whole = all(piece.note is None for piece in part.pieces)
    pieces: list[Json] = [[p.start, p.end, None if p.note is None else texts.mask.text(p.note)] for p in part.pieces]
    return {
        "field": part.field,
        "label": texts.mask.text(part.label),
        "text": texts.number(part.text),
        "plan": part.is_plan,
        "pieces": None if is_whole else pieces,
    }


def _text_numbers(block: JsonObject) -> tuple[int, ...]:
    parts, repeats = block["parts"], block["repeats"]
    assert isinstance(parts, list)
    assert isinstance(repeats, list)
    numbers = [part["text"] for part in parts if isinstance(part, dict)]
    numbers += [repeat[3] for repeat in repeats if isinstance(repeat, list)]
    return tuple(number for number in numbers if isinstance(number, int))


def _sent_text(text: str, *, whole: bool) -> Json:
    if whole or len(text) <= LONG_TEXT:
        return text
    return {"head": text[:HEAD], "length": len(text)}
