"""From spans in source order to a trace in reading order: duplicates, orphans, cycles, clamped times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields

from tracejury.ingest.gaps import find_gaps
from tracejury.ingest.goal import Words, derive_final_answer, derive_goal
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import (
    ExpectedEvent,
    IngestError,
    Json,
    LogRecord,
    Message,
    Outcome,
    Source,
    Span,
    SpanDraft,
    Trace,
)

_DRAFT_FIELDS = tuple(f.name for f in fields(SpanDraft))
_COPIED = tuple(
    name
    for name in _DRAFT_FIELDS
    if name not in {"input_messages", "output_messages", "events", "links", "warnings", "end_time"}
)

_SENT_AGAIN = (
    "kind", "agent", "status_message", "input", "output", "tool_name", "tool_arguments", "tool_call_id", "model",
    "prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens",
)  # fmt: skip
"""Columns that some readers fill before a translation, so that two versions of a span may tell them."""
_UNTOLD = (None, "UNKNOWN")
PENDING = ("logfire.span_type", "pending_span")
"""How Logfire marks a span that it sends when it begins."""


def assemble(
    drafts: Iterable[SpanDraft],
    *,
    trace_id: str,
    format: str,
    source: Source,
    messages: MessageTable | Sequence[Message] = (),
    goal: str | None = None,
    final_answer: str | None = None,
    attributes: Mapping[str, Json] | None = None,
    logs: Sequence[LogRecord] = (),
    expected_events: Sequence[ExpectedEvent] = (),
    outcome: Outcome | None = None,
    warnings: Sequence[str] = (),
) -> Trace:
    """One trace from the drafts of its spans (in source order).

    Identical duplicates are kept once, different spans of one id are all kept (the later ones renamed
    `<id>#2`), orphans and the first span of a cycle become roots with their `parent_span_id` kept; each of
    these leaves a warning. Raises `IngestError` when there is no span at all.
    """
    trace_warnings = [*source.warnings, *warnings]
    drafts_once = _without_duplicates(drafts, trace_warnings)
    if not drafts_once:
        raise IngestError(
            f"trace {trace_id!r} holds no span", remedy="check that the export is complete and not only a header"
        )
    ordered = _reading_order(drafts_once)
    spans = tuple(_placed(draft, trace_id=trace_id, seq=seq, depth=depth) for seq, (draft, depth) in enumerate(ordered))
    known = messages.messages if isinstance(messages, MessageTable) else tuple(messages)
    if goal is None:
        goal = _told("no_goal", derive_goal(spans, known), trace_warnings)
    if final_answer is None:
        final_answer = _told("no_answer", derive_final_answer(spans, known), trace_warnings)
    trace_warnings += find_gaps(spans, known, format=format).warnings()
    return Trace(
        trace_id=trace_id,
        format=format,
        source=source,
        spans=spans,
        messages=known,
        goal=goal,
        final_answer=final_answer,
        attributes=dict(attributes or {}),
        logs=tuple(logs),
        expected_events=tuple(expected_events),
        outcome=outcome,
        warnings=tuple(trace_warnings),
    )


def _told(code: str, words: Words, warnings: list[str]) -> str | None:
    if words.reason is not None:
        warnings.append(f"{code}: {words.reason}")
    return words.text


def once_each(drafts: Iterable[SpanDraft], warnings: list[str]) -> list[SpanDraft]:
    """The drafts without identical copies, each told in a warning.

    To be done before a translation: of two copies the first takes the log records, and they are identical no more.
    """
    first: dict[str, SpanDraft] = {}
    contents: dict[str, set[str]] = {}  # of ids that stand more than once: what their spans say
    once = []
    for draft in drafts:
        other = first.setdefault(draft.span_id, draft)
        if other is not draft:
            versions = contents.setdefault(draft.span_id, {repr(other)})
            content = repr(draft)
            if content in versions:
                warnings.append(
                    f"duplicate_span: span {draft.span_id} appears twice with the same content; one is kept"
                )
                continue
            versions.add(content)
        once.append(draft)
    return once


def completed(drafts: Sequence[SpanDraft], warnings: list[str]) -> list[SpanDraft]:
    """The drafts with the start and the end of one span, or a span and what was sent of it again, made one.

    The later, complete one holds; where the other says something else that is kept as `tracejury.earlier.*` with a
    warning. To be done before a translation, as `once_each`.
    """
    rest: list[SpanDraft] = []
    of_id: dict[str, list[int]] = {}
    joined = 0
    for draft in drafts:
        places = of_id.setdefault(draft.span_id, [])
        same = next((place for place in places if _is_same_span(rest[place], draft)), None)
        if same is None:
            places.append(len(rest))
            rest.append(draft)
        else:
            rest[same] = _as_one(rest[same], draft)
            joined += 1
    if joined:
        joined_words = "1 span was" if joined == 1 else f"{joined} spans were"
        warnings.append(
            f"span_completed: {joined_words} sent twice, such as at the start and at the end; each is one span now"
        )
    return rest


def _is_same_span(one: SpanDraft, other: SpanDraft) -> bool:
    """Whether two drafts of one id are one span: begun and ended, ended again later, or said again with more alone."""
    if one.name != other.name or not _agree(one.start_time, other.start_time):
        return False
    if not _agree(one.parent_span_id, other.parent_span_id):
        return False
    if _is_unfinished(one) != _is_unfinished(other):
        return True
    if one.start_time is not None and one.start_time == other.start_time and one.end_time != other.end_time:
        return True
    shared = one.attributes.keys() & other.attributes.keys()
    is_equal = all(one.attributes[key] == other.attributes[key] for key in shared)
    says_all = shared in (one.attributes.keys(), other.attributes.keys())
    return one.end_time == other.end_time and one.status == other.status and is_equal and says_all


def _is_unfinished(draft: SpanDraft) -> bool:
    """A span without an end, or one that its tracer sent when it began."""
    return draft.end_time is None or draft.attributes.get(PENDING[0]) == PENDING[1]


def _agree(one: object, other: object) -> bool:
    return one is None or other is None or one == other


def _as_one(first: SpanDraft, second: SpanDraft) -> SpanDraft:
    """Both as one draft: the fields of the complete one, and what the other alone says."""
    early, late = (second, first) if _completeness(second) < _completeness(first) else (first, second)
    differing = _earlier_values(early, late)
    for name, value in differing.items():
        late.attributes[f"tracejury.earlier.{name}"] = value
    if differing:
        late.warnings.append(f"span_differs: sent twice with other values of {', '.join(sorted(differing))}")
    late.parent_span_id = late.parent_span_id or early.parent_span_id
    late.start_time = early.start_time if late.start_time is None else late.start_time
    late.events = [*(event for event in early.events if event not in late.events), *late.events]
    late.links = [*(link for link in early.links if link not in late.links), *late.links]
    late.warnings += [warning for warning in early.warnings if warning not in late.warnings]
    return late


def _completeness(draft: SpanDraft) -> tuple[bool, int]:
    """Sorts the versions of a span: unfinished ones first, then by their end."""
    return not _is_unfinished(draft), draft.end_time or 0


def _earlier_values(early: SpanDraft, late: SpanDraft) -> dict[str, Json]:
    """What the earlier version of a span says otherwise; what it alone says becomes part of the later one."""
    differing: dict[str, Json] = {}
    if not _is_unfinished(early) and early.end_time != late.end_time:
        differing["end_time_us"] = early.end_time
    if early.attributes.get(PENDING[0]) == PENDING[1] and not _is_unfinished(late):
        del early.attributes[PENDING[0]]
    for key, value in early.attributes.items():
        if late.attributes.setdefault(key, value) != value:
            differing[key] = value
    if late.status == "UNSET":
        late.status = early.status
    elif early.status not in ("UNSET", late.status):
        differing["status"] = early.status
    for name in _SENT_AGAIN:
        value, newer = getattr(early, name), getattr(late, name)
        if newer in _UNTOLD and "status" not in differing:
            setattr(late, name, value)
        elif value not in (*_UNTOLD, newer):
            differing[name] = value
    return differing


def _without_duplicates(drafts: Iterable[SpanDraft], warnings: list[str]) -> list[SpanDraft]:
    once = once_each(drafts, warnings)
    by_id: dict[str, list[SpanDraft]] = {}
    for draft in once:
        by_id.setdefault(draft.span_id, []).append(draft)
    for span_id, same_id in by_id.items():
        for number, draft in enumerate(same_id[1:], start=2):
            draft.attributes["tracejury.span_id"] = span_id
            draft.span_id = _free_id(f"{span_id}#{number}", by_id)
            draft.warnings.append(f"span_id_reused: the source gives {span_id} to {len(same_id)} different spans")
    return once


def _free_id(base: str, ids: Mapping[str, object]) -> str:
    while base in ids:
        base += "'"
    return base


def _reading_order(drafts: list[SpanDraft]) -> list[tuple[SpanDraft, int]]:
    """Depth first, parents before children, siblings by start time then source order; no recursion."""
    present = {draft.span_id for draft in drafts}
    rank = {id(draft): number for number, draft in enumerate(drafts)}
    children: dict[str, list[SpanDraft]] = {}
    roots = []
    cut = _cycle_heads(drafts)
    for draft in drafts:
        parent = draft.parent_span_id
        if parent is None:
            roots.append(draft)
        elif parent not in present:
            draft.warnings.append(f"orphan: parent {parent} is not in the trace; shown as a root")
            roots.append(draft)
        elif draft.span_id in cut:
            draft.warnings.append(f"cycle: span {draft.span_id} is its own ancestor; shown as a root")
            roots.append(draft)
        else:
            children.setdefault(parent, []).append(draft)
    ordered: list[tuple[SpanDraft, int]] = []
    stack = [(root, 0) for root in reversed(_in_time(roots, rank))]
    while stack:
        draft, depth = stack.pop()
        ordered.append((draft, depth))
        below = children.get(draft.span_id)
        if below:
            stack.extend((child, depth + 1) for child in reversed(_in_time(below, rank)))
    return ordered


def _in_time(siblings: list[SpanDraft], rank: Mapping[int, int]) -> list[SpanDraft]:
    """By start time (the end where only that is known), undated ones last.

    Siblings on a simulated clock keep the order of the source.
    """
    if any(draft.clock != "wall" for draft in siblings):
        return siblings

    def place(draft: SpanDraft) -> tuple[bool, int, int]:
        time = draft.end_time if draft.start_time is None else draft.start_time
        return time is None, time or 0, rank[id(draft)]

    return sorted(siblings, key=place)


def _cycle_heads(drafts: list[SpanDraft]) -> set[str]:
    """For each cycle of parents, the id of its first span in source order."""
    parent = {draft.span_id: draft.parent_span_id for draft in drafts}
    position = {draft.span_id: number for number, draft in enumerate(drafts)}
    state: dict[str, int] = {}
    heads = set()
    for draft in drafts:
        path = []
        here: str | None = draft.span_id
        while here is not None and here in parent and here not in state:
            state[here] = 1
            path.append(here)
            here = parent[here]
        if here is not None and state.get(here) == 1:
            heads.add(min(path[path.index(here) :], key=position.__getitem__))
        for span_id in path:
            state[span_id] = 2
    return heads


def _placed(draft: SpanDraft, *, trace_id: str, seq: int, depth: int) -> Span:
    end, warnings = draft.end_time, draft.warnings
    if draft.start_time is not None and end is not None and end < draft.start_time:
        warnings.append(f"negative_duration: ends {(draft.start_time - end) / 1e6:g} s before it starts; clamped to 0")
        draft.attributes["tracejury.end_time_us"] = end
        end = draft.start_time
    duration = None if draft.start_time is None or end is None else (end - draft.start_time) / 1e6
    return Span(
        trace_id=trace_id,
        seq=seq,
        depth=depth,
        end_time=end,
        duration_s=duration,
        input_messages=tuple(draft.input_messages),
        output_messages=tuple(draft.output_messages),
        events=tuple(draft.events),
        links=tuple(draft.links),
        warnings=tuple(warnings),
        **{name: getattr(draft, name) for name in _COPIED},
    )
