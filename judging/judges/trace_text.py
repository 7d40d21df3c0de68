"""The one text of a trace that judge and person read: ordinals, real span ids, everything said once.

A header line at column 0 opens each span; all text of the trace stands indented, so that no trace can
write a header of its own. What stands twice is shown once and named where it repeats. Correct answers
(`Trace.logs`, `Trace.outcome`, `Trace.expected_events`) are never part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import orjson

from tracejury.ingest.leftovers import READ_WHOLE, Leftover, decisions_of, leftovers
from tracejury.ingest.trace import Json, Message, Span, ToolCall, Trace

REPEAT_FROM = 256  # characters: shorter texts are shown again, a reference would cost as much
MIN_CUT = 400  # characters: a budget never cuts a text below this
FOUND_FROM = 12  # characters: a leftover's shorter words may stand in another text by chance
_RECENT = 24  # how many long texts back a text is searched for a stretch it repeats
_PLAN = re.compile(
    r"(?im)^[ \t#*>\-\[]*(?:(?:updated|new|revised|initial|my|overall|high[- ]level|the)[ \t]+)*(?:re)?plan(?:ning)?\b"
    r"[ \t]*(?:of action|v?\d+|\(updated\))?[ \t\]*]*:?[ \t*]*$"
    r"|^[ \t#*]*\[(?:re|updated[ \t])?plan\]"
    r"|^[ \t]*<plan>"
    r"|^.{0,40}\b(?:plan of action|step-by-step plan|here is (?:my|the|an?)(?: \w+){0,2} plan)\b[^.\n]{0,80}:[ \t]*$"
)
_PLAN_HEAD = 400  # a plan announces itself near its beginning
_PROMPT_ROLES = frozenset({"system", "user", "developer"})
_CITE_WRAP = re.compile(r"^[\s\[\](){}<>\"'`*#.,;:]+|[\s\[\](){}<>\"'`*#.,;:…]+$")
_ORDINAL = re.compile(r"(?i)^S(\d+)$")


class Piece(NamedTuple):
    """Code points `start` to `end` of a part's text; with a `note` they are left out and the note stands there."""

    start: int
    end: int
    note: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One text of a span. `field` addresses it for evidence, `text` is the stored text, `pieces` what is shown."""

    field: str
    label: str
    text: str
    pieces: tuple[Piece, ...]
    is_plan: bool = False
    must_stay: bool = False

    def shown(self) -> str:
        return "".join(self.text[p.start : p.end] if p.note is None else p.note for p in self.pieces)


class Repeat(NamedTuple):
    """A message this agent has been shown before: its position and the ordinal where it stood first."""

    message: int
    ordinal: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One span as it is read. `start` and `end` are its code points in `Reading.text`.

    `tool_call_ids`: of the call that it ran, and of those that its model asked for.
    """

    seq: int
    ordinal: str
    span_id: str
    header: str
    parts: tuple[Part, ...]
    repeats: tuple[Repeat, ...]
    tool_call_ids: tuple[str, ...] = ()
    start: int = 0
    end: int = 0


@dataclass(frozen=True)
class TraceText:
    """The text of a trace and the way back from a citation to a span."""

    trace_id: str
    text: str
    blocks: tuple[Block, ...]

    @cached_property
    def ordinals(self) -> Mapping[str, str]:
        """Ordinal of each span id."""
        return {block.span_id: block.ordinal for block in self.blocks}

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        return {block.span_id.lower(): block.span_id for block in self.blocks}

    @cached_property
    def _calls(self) -> Mapping[str, str]:
        """The span of each tool call: the one that ran it, else the first whose model asked for it."""
        tools = [block for block in self.blocks if block.header.startswith(f"[{block.ordinal}] TOOL ")]
        spans: dict[str, str] = {}
        for block in (*tools, *self.blocks):
            for call in block.tool_call_ids:
                spans.setdefault(call, block.span_id)
        return spans

    def resolve(self, cite: str) -> str | None:
        """The span id that `S12`, `[S12]`, a full id (also with 0x), a unique id prefix, a quoted id or the id of a
        tool call names; else None."""
        bare = _CITE_WRAP.sub("", re.sub(r"(?i)^\s*span(?:[_ ]?id)?\s*[:=]?\s*", "", cite))
        ordinal = _ORDINAL.match(bare)
        if ordinal:
            number = int(ordinal[1])
            return self.blocks[number - 1].span_id if 1 <= number <= len(self.blocks) else None
        if re.match(r"(?i)0x[0-9a-f]{6,}", bare) and bare.lower() not in self._ids:
            bare = bare[2:]
        known_id = self._ids.get(bare.lower()) or self._calls.get(bare)
        if known_id is not None or len(bare) < 6:
            return known_id
        by_prefix = [span_id for key, span_id in self._ids.items() if key.startswith(bare.lower())]
        return by_prefix[0] if len(by_prefix) == 1 else None


def render_trace(trace: Trace, *, budget: int | None = None, reasoning: bool = True) -> TraceText:
    """The reading of `trace`; with a `budget` (characters) long texts are cut, and each cut says so.

    Without `reasoning` a note stands where a model's thoughts are.

    Every span id stays whatever the budget; plans, tool calls, errors and final answers are never cut, so the
    text can exceed a budget that is too small for them.
    """
    blocks = list(_Reader(trace, reasoning=reasoning).blocks())
    if budget is not None:
        blocks = _cut_to(blocks, budget, _head(trace))
    return _rendered(trace, blocks)


def estimate_tokens(text: str) -> int:
    """A safe (high) estimate where no tokenizer is at hand: 3.2 characters a token, 1 for each non-ASCII one."""
    ascii_length = len(text.encode("ascii", "ignore"))
    return int(ascii_length / 3.2) + (len(text) - ascii_length) + 1


def message_text(message: Message) -> str:
    """A message as read: its content, then each tool call on a line."""
    calls = [tool_call_text(call) for call in message.tool_calls]
    return "\n".join([*([message.content] if message.content else []), *calls])


def tool_call_text(call: ToolCall) -> str:
    arguments = "null" if call.arguments is None else call.arguments
    return f"tool call {call.name or '?'}({arguments})" + (f" [{call.id}]" if call.id else "")


class _Reader:
    """Walks the spans in reading order and remembers what has been shown, and where."""

    def __init__(self, trace: Trace, *, reasoning: bool = True) -> None:
        self.trace = trace
        self.shows_reasoning = reasoning
        self.ordinals = {span.span_id: f"S{span.seq + 1}" for span in trace.spans}
        self.seen_messages: dict[tuple[str | None, int], str] = {}
        self.seen_texts: dict[str, str] = {}
        self.recent: list[tuple[str, str]] = []
        self.tools_listed: set[str | None] = set()
        self.plans = _announced_plans(trace)

    def blocks(self) -> Iterator[Block]:
        for span in self.trace.spans:
            ordinal = self.ordinals[span.span_id]
            repeats: list[Repeat] = []
            parts = tuple(self._parts(span, ordinal, repeats))
            yield Block(
                seq=span.seq,
                ordinal=ordinal,
                span_id=span.span_id,
                header=self._header(span, ordinal),
                parts=parts,
                repeats=tuple(repeats),
                tool_call_ids=tuple(self._tool_call_ids(span)),
            )

    def _tool_call_ids(self, span: Span) -> Iterator[str]:
        if span.tool_call_id:
            yield span.tool_call_id
        for position in span.output_messages:
            yield from (call.id for call in self.trace.messages[position].tool_calls if call.id)

    def _header(self, span: Span, ordinal: str) -> str:
        facts = [f"[{ordinal}] {span.kind} {_one_line(span.name)}", f"span {_one_line(span.span_id)}"]
        if span.parent_span_id is not None:
            parent = self.ordinals.get(span.parent_span_id)
            facts.append(f"in {parent}" if parent else f"in {_one_line(span.parent_span_id)} (not in this trace)")
        if span.agent:
            facts.append(f"agent {_one_line(span.agent)}")
        if span.kind == "TOOL" and span.tool_name and span.tool_name != span.name:
            facts.append(f"tool {_one_line(span.tool_name)}")
        if span.depth > 0 or self.trace.outcome is None:  # else it is the benchmark's verdict on the execution
            facts.append(span.status)
        if span.duration_s is not None:
            facts.append(f"{span.duration_s:.3g} s" + (" simulated" if span.clock == "sim" else ""))
        if span.turn is not None:
            facts.append(f"turn {span.turn}")
        if span.model:
            facts.append(_one_line(span.model))
        return " | ".join(facts)

    def _parts(self, span: Span, ordinal: str, repeats: list[Repeat]) -> Iterator[Part]:
        yield from self._tools(span)
        for position in span.input_messages:
            yield from self._message(span, ordinal, position, repeats)
        yield from self._inputs(span, ordinal)
        for position in span.output_messages:
            yield from self._message(span, ordinal, position, repeats, is_output=True)
        if span.output is not None:
            yield self._part(span, ordinal, "output", "output", span.output, must_stay=span.kind == "AGENT")
        yield from self._errors(span, ordinal)
        yield from self._leftovers(span, ordinal)

    def _tools(self, span: Span) -> Iterator[Part]:
        if span.agent in self.tools_listed:
            return
        tools = available_tools(span)
        if tools:
            self.tools_listed.add(span.agent)
            text = "\n".join(f"{name}: {_one_line(about)}" if about else name for name, about in tools.items())
            yield Part(field="tools", label="tools available", text=text, pieces=_whole(text), must_stay=True)

    def _inputs(self, span: Span, ordinal: str) -> Iterator[Part]:
        if span.tool_arguments is not None:
            arguments = span.tool_arguments
            yield self._part(span, ordinal, "tool_arguments", "tool arguments", arguments, must_stay=True)
        if span.input is None or span.input == span.tool_arguments:
            return
        if span.kind == "CHAIN" and span.input.startswith('{"memory_step":'):
            note = f"(the framework's own memory, {len(span.input):,} characters, not shown)"
            yield Part(field="input", label="input", text=span.input, pieces=(Piece(0, len(span.input), note),))
            return
        label = "parameters" if span.input_messages else "input"
        yield self._part(span, ordinal, "input", label, span.input, must_stay=span.kind == "AGENT")

    def _errors(self, span: Span, ordinal: str) -> Iterator[Part]:
        if span.status_message:
            label = "error" if span.status == "ERROR" else "status"
            yield self._part(span, ordinal, "status_message", label, span.status_message, must_stay=True)
        for number, event in enumerate(span.events):
            text = _exception_text(event)
            if text and text not in (span.status_message or ""):
                yield self._part(span, ordinal, f"event:{number}", "exception", text, must_stay=True)

    def _message(
        self, span: Span, ordinal: str, position: int, repeats: list[Repeat], *, is_output: bool = False
    ) -> Iterator[Part]:
        key = (span.agent, position)
        first = self.seen_messages.setdefault(key, ordinal)
        if first != ordinal or (not is_output and any(r.message == position for r in repeats)):
            repeats.append(Repeat(position, first))
            return
        message = self.trace.messages[position]
        if message.reasoning:
            yield self._reasoning(ordinal, position, message)
            if not message.content and not message.tool_calls:
                return
        dropped = message.role is None and message.content is None and not message.tool_calls
        label = "a message that the tracer dropped" if dropped else message.role or "message"
        if message.name:
            label = f"{label} {message.name}"
        is_plan = self._is_plan(span, message, position, is_output)
        yield self._part(
            span,
            ordinal,
            f"message:{position}",
            label,
            message_text(message),
            is_plan=is_plan,
            must_stay=is_output or bool(message.tool_calls),
        )

    def _reasoning(self, ordinal: str, position: int, message: Message) -> Part:
        """What the model thought, as a part of its own: people fold it, judges may be spared it."""
        text, label = message.reasoning or "", f"{message.role or 'message'} reasoning"
        pieces = self._pieces(text, f"{label} of {ordinal}")
        if not self.shows_reasoning:
            pieces = (Piece(0, len(text), f"(reasoning, {len(text):,} characters, not shown)"),)
        return Part(field=f"message:{position}:reasoning", label=label, text=text, pieces=pieces)

    def _leftovers(self, span: Span, ordinal: str) -> Iterator[Part]:
        """Text that no dialect understood, under its own name, unless it stands in what was understood."""
        for leftover in leftovers(span) if self.trace.format not in READ_WHOLE else ():
            if self._says_more(leftover):
                label = _one_line(leftover.name)
                pieces = self._pieces(leftover.text, f"{label} of {ordinal}")
                yield Part(field=leftover.field, label=label, text=leftover.text, pieces=pieces)

    def _says_more(self, leftover: Leftover) -> bool:
        if leftover.text in self._known:
            return False
        fresh = (leaf.strip() for leaf in leftover.leaves if leaf not in self._known)
        return not leftover.leaves or any(
            leaf not in self._known and (len(leaf) < FOUND_FROM or leaf not in self._all_text) for leaf in fresh
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        """Every text of the trace that was understood, whole and by the texts within its JSON."""
        texts = [text for span in self.trace.spans for text in (span.input, span.output, span.tool_arguments) if text]
        texts += [span.status_message for span in self.trace.spans if span.status_message]
        for message in self.trace.messages:
            texts += [text for text in (message.content, message.reasoning, message.name) if text]
            texts += [text for call in message.tool_calls for text in (call.name, call.arguments, call.id) if text]
        names = [name for span in self.trace.spans for name in (span.name, span.tool_name, span.agent, span.model)]
        return frozenset(
            [*filter(None, names), *(known for text in texts for known in (text, text.strip(), *decisions_of(text)))]
        )

    @cached_property
    def _all_text(self) -> str:
        return "\n".join(self._known)

    def _is_plan(self, span: Span, message: Message, position: int, is_output: bool) -> bool:
        if position in self.plans:
            return True
        by_model = is_output or (message.role or "") not in _PROMPT_ROLES
        return by_model and bool(message.content) and announces_plan(message.content or "")

    def _part(
        self,
        span: Span,
        ordinal: str,
        field: str,
        label: str,
        text: str,
        *,
        is_plan: bool = False,
        must_stay: bool = False,
    ) -> Part:
        is_plan = is_plan or (field == "output" and is_plan_span(span))
        pieces = self._pieces(text, f"{label} of {ordinal}")
        return Part(field=field, label=label, text=text, pieces=pieces, is_plan=is_plan, must_stay=must_stay or is_plan)

    def _pieces(self, text: str, here: str) -> tuple[Piece, ...]:
        """All of the text, or a note in place of the stretches that already stand above."""
        if len(text) < REPEAT_FROM:
            return _whole(text)
        same = self.seen_texts.get(text)
        if same is not None:
            return (Piece(0, len(text), f"(the same {len(text):,} characters as {same})"),)
        pieces = self._without_recent(text)
        self.seen_texts[text] = here
        self.recent.append((text, here))
        del self.recent[:-_RECENT]
        return pieces

    def _without_recent(self, text: str) -> tuple[Piece, ...]:
        for older, where in sorted(self.recent, key=lambda known: -len(known[0])):
            at = text.find(older) if len(older) <= len(text) else -1
            if at >= 0:
                note = f"(here the same {len(older):,} characters as {where})"
                end = at + len(older)
                pieces = (Piece(0, at), Piece(at, end, note), Piece(end, len(text)))
                return tuple(p for p in pieces if p.start < p.end)
        return _whole(text)


def available_tools(span: Span) -> dict[str, str]:
    """Tools offered on this span by name, with their description where the source gives one."""
    tools: dict[str, str] = {}
    for key, value in span.attributes.items():
        if key.endswith(".tool.json_schema") or key in {"gen_ai.tool.definitions", "llm.tools"}:
            for name, about in _schemas(value):
                tools.setdefault(name, about)
    names = span.attributes.get("smolagents.tools_names")
    if isinstance(names, list):
        tools.update({str(name): "" for name in names if str(name) not in tools})
    return tools


def _schemas(value: Json) -> Iterator[tuple[str, str]]:
    parsed: Json = value
    if isinstance(value, str):
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError:
            return
    for schema in parsed if isinstance(parsed, list) else [parsed]:
        if not isinstance(schema, dict):
            continue
        inner = schema.get("function")
        function = inner if isinstance(inner, dict) else schema
        if isinstance(function.get("name"), str):
            about = function.get("description")
            yield str(function["name"]), about if isinstance(about, str) else ""


def announces_plan(text: str) -> bool:
    """Whether a text introduces itself as a plan (a heading, a [PLAN] mark, "here is the plan ...:")."""
    return _PLAN.search(text[:_PLAN_HEAD]) is not None


def is_plan_span(span: Span) -> bool:
    """Whether a span is itself a plan or replan entry of the agent's log."""
    return span.kind in {"CHAIN", "AGENT"} and span.name.lower() in {"plan", "replan", "planning", "llm_output_plan"}


def _announced_plans(trace: Trace) -> frozenset[int]:
    """Messages marked as plans, and the model outputs whose text a marked message carries."""
    marked = [
        (position, message.content)
        for position, message in enumerate(trace.messages)
        if message.content and (message.role or "") not in _PROMPT_ROLES and announces_plan(message.content)
    ]
    plans = {position for position, _ in marked}
    outputs = {position for span in trace.spans for position in span.output_messages} - plans
    for position in outputs:
        content = trace.messages[position].content
        if content and len(content) > 80 and any(content.strip() in text for _, text in marked):
            plans.add(position)
    return frozenset(plans)


def _exception_text(event: Mapping[str, Json]) -> str:
    attributes = event.get("attributes")
    if not isinstance(attributes, dict):
        return ""
    kind, message = attributes.get("exception.type"), attributes.get("exception.message")
    return ": ".join(str(piece) for piece in (kind, message) if piece)


def _cut_to(blocks: list[Block], budget: int, head: str) -> list[Block]:
    fixed = len(head) + sum(_overhead(block) for block in blocks)
    lengths = sorted(len(part.shown()) for block in blocks for part in block.parts if not part.must_stay)
    fixed += sum(len(part.shown()) for block in blocks for part in block.parts if part.must_stay)
    limit = _common_limit(lengths, budget - fixed)
    return [replace(block, parts=tuple(_cut(part, limit) for part in block.parts)) for block in blocks]


def _overhead(block: Block) -> int:
    """Characters of a block beside its texts: header, labels, repeats, indents (an upper bound)."""
    lines = sum(part.text.count("\n") + 2 + len(part.label) + 12 for part in block.parts)
    return len(block.header) + 4 + lines + 24 * min(len(block.repeats), 1) + 6 * len(block.repeats)


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """The length that all longer texts are cut to, so that the whole fits into `room`."""
    left, remaining = room, len(lengths)
    for length in lengths:
        if length * remaining > left:
            return max(MIN_CUT, left // remaining if remaining else 0)
        left -= length
        remaining -= 1
    return max(lengths, default=MIN_CUT)


def _cut(part: Part, limit: int) -> Part:
    shown = part.shown()
    if part.must_stay or len(shown) <= limit or len(part.pieces) != 1 or part.pieces[0].note is not None:
        return part
    note_room = 40
    keep = max(limit - note_room, MIN_CUT // 2)
    head, tail = keep * 2 // 3, keep // 3
    left_out = len(part.text) - head - tail
    if left_out <= note_room:
        return part
    note = f"… {left_out:,} characters left out …"
    last = len(part.text)
    return replace(part, pieces=(Piece(0, head), Piece(head, last - tail, note), Piece(last - tail, last)))


def _head(trace: Trace) -> str:
    agents = list(dict.fromkeys(span.agent for span in trace.spans if span.agent))
    lines = [f"Trace {_one_line(trace.trace_id)}: {len(trace.spans)} spans" + _listed("agents", agents)]
    if trace.goal:
        lines += ["Goal:", _indented(trace.goal)]
    return "\n".join(lines) + "\n"


def _listed(what: str, names: Sequence[str]) -> str:
    return f", {what}: {', '.join(_one_line(name) for name in names)}" if names else ""


def _rendered(trace: Trace, blocks: Sequence[Block]) -> TraceText:
    texts = [_head(trace)]
    at = len(texts[0])
    placed = []
    for block in blocks:
        text = _block_text(block)
        placed.append(replace(block, start=at, end=at + len(text)))
        texts.append(text)
        at += len(text)
    return TraceText(trace_id=trace.trace_id, text="".join(texts), blocks=tuple(placed))


def _block_text(block: Block) -> str:
    lines = ["", block.header]
    if block.repeats:
        lines.append(f" ({_repeats(block.repeats)})")
    for part in block.parts:
        mark = " [PLAN]" if part.is_plan else ""
        lines += [f" {part.label}{mark}:", _indented(part.shown())]
    return "\n".join(lines) + "\n"


def _repeats(repeats: Sequence[Repeat]) -> str:
    first = list(dict.fromkeys(repeat.ordinal for repeat in repeats))
    count = len(repeats)
    return f"{count} message{'s' if count > 1 else ''} seen before: {', '.join(first)}"


def _indented(text: str) -> str:
    """Two spaces before every line, so that no line of a trace can begin at column 0 as our headers do."""
    return "  " + re.sub(r"(\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])", r"\1  ", text)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _whole(text: str) -> tuple[Piece, ...]:
    return (Piece(0, len(text)),)
