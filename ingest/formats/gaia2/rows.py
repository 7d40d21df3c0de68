"""Rows that every form of a GAIA2 execution has: the execution, its turns, events of user, environment and agent."""

from __future__ import annotations

from tracejury.ingest.formats.gaia2.export import Event
from tracejury.ingest.formats.gaia2.values import without_empty
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.parse import json_text
from tracejury.ingest.times import from_seconds
from tracejury.ingest.trace import Clock, Json, SpanDraft

ROOT_ID = "execution"
_AGENT_OF_EVENT = {"USER": "user", "ENV": "environment"}
_PLAIN_TYPES = frozenset({"str", "int", "float", "bool", "list", "dict", "NoneType"})


class Rows:
    """Collects the rows of one execution in append order, and opens and ends its turns.

    A turn begins with the first event or log after the last one ended, and ends with a message to the user
    that succeeded. Events of the environment wait until something else opens the turn they belong to.
    """

    def __init__(self, name: str, main_agent: str | None) -> None:
        self.root = SpanDraft(span_id=ROOT_ID, name=name, kind="CHAIN", clock="sim")
        self.main_agent = main_agent
        self.drafts: list[SpanDraft] = [self.root]
        self.messages = MessageTable()
        self.turns: list[SpanDraft] = []
        self.tasks: list[str] = []
        self.asked: list[str] = []
        self.answers: list[str | None] = []
        self.message_rest: dict[int, list[dict[str, Json]]] = {}
        self.usage_rest: dict[str, Json] = {}
        self._ids: dict[str, int] = {ROOT_ID: 1}
        self._open = False
        self._waiting: list[SpanDraft] = []

    @property
    def current_turn(self) -> SpanDraft | None:
        """The open turn; None between turns."""
        return self.turns[-1] if self._open else None

    @property
    def goal(self) -> str | None:
        """What the user asked: the tasks as the agent got them, else the user's messages."""
        return "\n\n".join(self.tasks or self.asked) or None

    @property
    def final_answer(self) -> str | None:
        return self.answers[-1] if self.answers else None

    def open_turn(self) -> SpanDraft:
        """The open turn, a new one when the last has ended."""
        if not self._open:
            self._open = True
            number = len(self.turns)
            turn = SpanDraft(span_id=f"turn-{number}", name=f"turn {number}", kind="CHAIN", clock="sim", turn=number)
            self.turns.append(turn)
            self.add(turn, parent=self.root)
            waiting, self._waiting = self._waiting, []
            for draft in waiting:
                self.add(draft, parent=turn)
        return self.turns[-1]

    def end_turn(self, answer: str | None) -> None:
        """The agent has answered the user; `answer` is None where the source does not say with what."""
        self.answers.append(answer)
        if self.turns:
            self.turns[-1].status = "OK"
        self._open = False

    def add(self, draft: SpanDraft, *, parent: SpanDraft) -> SpanDraft:
        """Put a row below `parent`; its turn and the execution span its simulated time."""
        draft.parent_span_id = parent.span_id
        if draft.turn is None:
            draft.turn = parent.turn
        self._make_unique(draft)
        self.drafts.append(draft)
        self.stretch(draft.start_time, draft.end_time, clock=draft.clock, turn=draft.turn)
        return draft

    def add_event(self, draft: SpanDraft, *, parent: SpanDraft | None = None, opens: bool) -> None:
        """Put an event into its turn: below `parent` where one is given, else waiting for the turn it opens."""
        if parent is not None:
            self.add(draft, parent=parent)
        elif opens or self._open:
            self.add(draft, parent=self.open_turn())
        else:
            self._waiting.append(draft)

    def note_message(self, position: int, rest: dict[str, Json]) -> None:
        """What the source says of a message beside role and text (attachments), once."""
        known = self.message_rest.setdefault(position, [])
        if rest not in known:
            known.append(rest)

    def add_late(self, draft: SpanDraft) -> None:
        """Put a row that no log told of into the turn of its time; where there is none, below the execution."""
        time = draft.start_time
        turns = [turn for turn in self.turns if _spans(turn, time)]
        self.add(draft, parent=turns[-1] if turns else self.root)

    def remove(self, row: SpanDraft) -> None:
        for position in range(len(self.drafts) - 1, -1, -1):
            if self.drafts[position] is row:
                del self.drafts[position]
                return

    def stretch(self, *times: int | None, clock: Clock, turn: int | None) -> None:
        """Let the execution (and the turn) last from the first to the last simulated time seen in it."""
        if clock != "sim":
            return
        for span in (self.root,) if turn is None else (self.root, self.turns[turn]):
            known = [time for time in (span.start_time, span.end_time, *times) if time is not None]
            if known:
                span.start_time, span.end_time = min(known), max(known)

    def finish(self, start: int | None) -> None:
        """Place the events after the last turn (in their own turn if there is none); execution begins at `start`."""
        if self._waiting and not self.turns:
            self.open_turn()
        waiting, self._waiting = self._waiting, []
        for draft in waiting:
            self.add(draft, parent=self.root)
        self.stretch(start, clock="sim", turn=None)
        self.root.input = next(iter(self.tasks or self.asked), None)
        self.root.output = self.final_answer

    def _make_unique(self, draft: SpanDraft) -> None:
        """Rows are found by id, so an id of the source that stands twice gets a number."""
        base = draft.span_id
        seen = self._ids.get(base, 0)
        self._ids[base] = seen + 1
        if seen:
            draft.attributes["tracejury.span_id"] = base
            draft.warnings.append(f"span_id_reused: the source gives {base} to several rows")
            draft.span_id = f"{base}#{seen + 1}"
            self._ids[draft.span_id] = 1


def event_draft(event: Event, span_id: str) -> SpanDraft:
    """The zero-length row of something the user or the environment did."""
    time = from_seconds(event.event_time)
    attributes = event_attributes(event)
    shown = json_text(dict(event.args)) if event.args else None
    if event.is_message_to_agent and isinstance(content := event.args.get("content"), str):
        rest = {name: value for name, value in event.args.items() if name != "content"}
        shown, attributes = content, attributes | without_empty({"full_args": without_empty(rest)})
    agent = "user" if event.is_message_to_agent else _AGENT_OF_EVENT.get(event.event_type or "", "environment")
    return SpanDraft(
        span_id=span_id,
        name=event.tool_name or event.event_type or "event",
        kind="EVENT",
        agent=agent,
        start_time=time,
        end_time=time,
        clock="sim",
        status="ERROR" if event.exception else "UNSET",
        status_message=event.exception,
        input=shown,
        output=event.return_value,
        attributes=attributes,
    )


def tool_draft(event: Event, span_id: str, *, agent: str | None) -> SpanDraft:
    """The zero-length row of an app call of the agent."""
    time = from_seconds(event.event_time)
    return SpanDraft(
        span_id=span_id,
        name=event.tool_name or "tool",
        kind="TOOL",
        agent=agent,
        start_time=time,
        end_time=time,
        clock="sim",
        status="ERROR" if event.exception else "OK",
        status_message=event.exception,
        output=event.return_value,
        tool_name=event.tool_name or "tool",
        tool_arguments=json_text(dict(event.args)),
        attributes=event_attributes(event),
    )


def event_attributes(event: Event) -> dict[str, Json]:
    """What an event says beside the columns; `event_time` is exact simulated seconds, the join key of ARE."""
    return without_empty(
        {
            "event_id": event.event_id,
            "event_type": event.event_type,
            "event_time": event.event_time,
            "class_name": None if event.class_name == "CompletedEvent" else event.class_name,
            "dependencies": list(event.depends_on),
            "operation_type": event.operation_type,
            "action_id": event.action_id,
            "arg_types": {name: kind for name, kind in event.arg_types.items() if _is_unusual(kind)},
            "return_value_type": event.return_value_type,
            "exception_stack_trace": event.stack_trace,
            **event.rest,
        }
    )


def _is_unusual(kind: Json) -> bool:
    """Whether a type says more of an argument than its JSON does, such as `Email`."""
    return kind is not None and (not isinstance(kind, str) or kind not in _PLAIN_TYPES)


def _spans(turn: SpanDraft, time: int | None) -> bool:
    start, end = turn.start_time, turn.end_time
    return time is not None and start is not None and end is not None and start <= time <= end
