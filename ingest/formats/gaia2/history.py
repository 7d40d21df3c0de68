"""A lite file, alone or with the hf file of its execution: conversations replayed, app events where they happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.entry import Entry
from tracejury.ingest.formats.gaia2.export import Event, Export
from tracejury.ingest.formats.gaia2.lite import COUNTS, Lite, ParsedMessage, action_of, error_fields, usage_of
from tracejury.ingest.formats.gaia2.rows import Rows
from tracejury.ingest.formats.gaia2.values import sequence, word
from tracejury.ingest.formats.gaia2.worldlog import TURN_OPENERS, Agent, WorldLog
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Clock, Json, SpanDraft
from tracejury.ingest.words import counted

_NO_CALL = frozenset({"JsonParsingAgentError", "InvalidActionAgentError", "FormatError"})
_FORMAT_RETRY = "InvalidActionAgentError"
_MAX_ITERATIONS = "MaxIterationsAgentError"
_MESSAGE_TO_USER = "AgentUserInterface__send_message_to_user"


@dataclass(slots=True)
class Visit:
    """The part of a history from one task to the next: one call of a sub-agent."""

    agent: str
    start: int
    end: int
    used: bool = False


class HistoryLog(WorldLog):
    """Feeds the messages of a lite file to the replay as if they were log entries, with the events of the hf file.

    A lite file has no steps, and its failed model calls are error messages alone.
    """

    def __init__(self, export: Export, rows: Rows, lite: Lite) -> None:
        super().__init__(export, rows)
        self.lite = lite
        self.main_key = next(iter(lite.histories), "")
        self.turn_openers = TURN_OPENERS | {"environment_notifications", "agent_user_interface", "message"}
        self._answered_at: float | None = None
        self._calls: dict[str, int] = {}
        self._detached: dict[str, Agent] = {}
        self._visits = [visit for key in list(lite.histories)[1:] for visit in _visits(key, lite.histories[key])]
        self._coming = [event for event in export.completed if not event.is_condition]

    def replay(self) -> None:
        history = self.lite.histories.get(self.main_key, ())
        self._history(self.main_key, 0, len(history))
        self._feed_events(None, after=None, before=None)
        for visit in self._visits:
            if not visit.used:
                self._detach(visit)
                self._history(visit.agent, visit.start, visit.end)
        super().replay()
        self._check_usage()

    # Messages as entries

    def _history(self, key: str, start: int, end: int) -> None:
        history = self.lite.histories[key]
        for position in range(start, end):
            message = history[position]
            following = history[position + 1] if position + 1 < end else None
            before = history[position - 1] if position > start else None
            if key == self.main_key and not self._is_automatic(key, message, following):
                self._feed_events(message, after=None if before is None else before.second, before=message.second)
            self._say(key, position, message, following, before)

    def _say(
        self,
        key: str,
        position: int,
        message: ParsedMessage,
        following: ParsedMessage | None,
        before: ParsedMessage | None,
    ) -> None:
        if message.rest:
            self.rows.note_message(self._table(message), dict(message.rest))
        self._table(message)
        if message.kind == "llm_output":
            self._answer(key, position, message, following)
        elif message.kind == "error":
            if message.error == _FORMAT_RETRY and following is not None and following.kind == "llm_output":
                self._ask(key, position, message)
            self._put(key, position, message, "error", error_fields(message.body))
        elif self._is_automatic(key, message, following):
            self._put(key, position, message, "tool_call", {"tool_name": _MESSAGE_TO_USER})
            self._latest[_bare(key)].tool_is_automatic()
            if key == self.main_key:
                self._feed_events(message, after=None if before is None else before.second, before=message.second)
            self._put(key, position, message, "observation", {"content": message.body})
        else:
            self._put(key, position, message, message.kind, {"content": message.body})

    def _answer(self, key: str, position: int, message: ParsedMessage, following: ParsedMessage | None) -> None:
        self._ask(key, position, message)
        call = self._calls.get(key, 0)
        self._calls[key] = call + 1
        self._put(key, position, message, "llm_output", {"content": message.body, **usage_of(self.lite, key, call)})
        action = action_of(message.body)
        if action is None or (following is not None and following.error in _NO_CALL):
            return
        arguments = inner_json(action[1])
        shown = action[1] if arguments is None else arguments
        self._put(key, position, message, "tool_call", {"tool_name": action[0], "tool_arguments": shown})
        if action[0].endswith("__expert_agent"):
            self._sub_agent(object_in(arguments), following)
        elif key != self.main_key:
            self._feed_call(action[0], self.lite.histories[key][position + 1 :])

    def _ask(self, key: str, position: int, message: ParsedMessage) -> None:
        """The call of the model begins: it was sent all of the history so far."""
        agent = self._latest.get(_bare(key))
        if agent is not None and agent.llm is not None:
            return
        sent: list[Json] = [{"role": s.role, "content": s.content} for s in self.lite.histories[key][:position]]
        self._put(key, position, message, "llm_input", {"content": sent})
        if (row := self._latest[_bare(key)].llm) is not None:
            row.start_time = None  # when the call began is not recorded

    def _put(self, key: str, position: int, message: ParsedMessage, kind: str, fields: dict[str, Json]) -> None:
        span_id = self._id(key, position) + ("-call" if kind == "tool_call" else "")
        entry = Entry(
            position,
            {"log_type": kind, "id": span_id, "agent_id": _bare(key), "timestamp": message.seconds, **fields},
        )
        entry.warnings = [] if entry.time is not None else [f"no_timestamp: {key}[{position}] has no usable time"]
        self.feed(entry)

    def _id(self, key: str, position: int) -> str:
        return f"{_bare(key)}-{position}"

    def _table(self, message: ParsedMessage) -> int:
        content = message.body if message.kind == "llm_output" else message.content
        return self.rows.messages.add(message.role, content)

    def _is_automatic(self, key: str, message: ParsedMessage, following: ParsedMessage | None) -> bool:
        """At the last iteration ARE writes to the user itself: an observation that no answer asked for."""
        agent = self._latest.get(_bare(key))
        waiting = agent is not None and agent.tool is not None
        at_last = following is not None and following.error == _MAX_ITERATIONS
        return message.kind == "observation" and at_last and not waiting

    # Sub-agents

    def _sub_agent(self, arguments: dict[str, Json], answered: ParsedMessage | None) -> None:
        """The execution of the sub-agent that got this call's task, between the call and its answer."""
        self._answered_at = None if answered is None else answered.second
        task = word(arguments.get("task"))
        for visit in self._visits:
            messages = self.lite.histories[visit.agent][visit.start : visit.end]
            if not visit.used and task and any(message.kind == "task" and task in message.body for message in messages):
                visit.used = True
                self._history(visit.agent, visit.start, visit.end)
                return

    def _detach(self, visit: Visit) -> None:
        message = self.lite.histories[visit.agent][visit.start]
        name = self._name(_bare(visit.agent), "sub-agent")
        entry = Entry(0, {"agent_id": _bare(visit.agent), "timestamp": message.seconds})
        clock: Clock = "sim"
        if self.main is not None:
            clock = self._clock_below(entry, self.main.draft)
        agent = self._new_agent(entry, name, clock, self.rows.root, is_main=False)
        agent.draft.warnings.append("unknown_parent: no call of the main agent has this agent's task")
        self._detached[_bare(visit.agent)] = self._latest[_bare(visit.agent)] = agent

    def _agent_of(self, entry: Entry) -> Agent:
        return self._detached.get(entry.agent_id) or super()._agent_of(entry)

    # Events of the hf file

    def _feed_events(self, message: ParsedMessage | None, *, after: float | None, before: float | None) -> None:
        """What happened on the simulated clock until this message of the main agent (None: all that is left).

        App calls of the agent must also have happened after the message before, which asked for them.
        """
        due = [event for event in self._coming if _until(event, before)]
        answers = message is not None and message.kind in {"observation", "error"} and bool(self.tools)
        # The call of an expert agent is logged when it returns, after all that its agent did.
        for event in sorted(due, key=lambda e: e.function == "expert_agent"):
            if event.event_type != "AGENT" or (answers and _since(event, after)):
                self._feed_event(event)

    def _feed_call(self, tool_name: str, later: tuple[ParsedMessage, ...]) -> None:
        """The events of a sub-agent's call: its clock is another, so their order and their names decide.

        The next event of the call's name is the call; those after it that no later call asks for are nested in it.
        """
        coming = [e for e in self._coming if e.event_type == "AGENT" and _until(e, self._answered_at)]
        places = [place for place, event in enumerate(coming) if event.tool_name == tool_name]
        if not places:
            return
        actions = {
            action[0] for message in later if message.kind == "llm_output" and (action := action_of(message.body))
        }
        for event in coming[places[0] + 1 :]:
            if event.function == "expert_agent" or event.tool_name in actions | {tool_name}:
                break
            self._feed_event(event)
        self._feed_event(coming[places[0]])

    def _feed_event(self, event: Event) -> None:
        self._coming = [other for other in self._coming if other is not event]
        self.feed(
            Entry(
                0,
                {
                    "log_type": "action",
                    "timestamp": event.event_time,
                    "id": event.event_id,
                    "app_name": event.app,
                    "action_name": event.function,
                    "event_type": event.event_type,
                    "content": f"{event.app}: {event.function}",
                    "input": dict(event.args),
                    "output": event.return_value,
                    "exception": event.exception,
                    "exception_stack_trace": event.stack_trace,
                },
            )
        )

    def _observation(self, agent: Agent, entry: Entry) -> SpanDraft:
        """A sub-agent answers by its tool final_answer; the log of it is not in a lite file."""
        row = super()._observation(agent, entry)
        if row.tool_name == "final_answer":
            agent.draft.output, agent.draft.status = row.output, "OK"
        return row

    def _error(self, agent: Agent, entry: Entry) -> SpanDraft:
        """An error of no tool call and of no open model call: an event, since there are no steps to bear it."""
        name = word(entry.fields.get("error")) or "error"
        if agent.tool is not None or agent.llm is not None or name == _MAX_ITERATIONS:
            return super()._error(agent, entry)
        row = self._row(agent, entry, "EVENT", "error")
        exception = entry.take_text("exception")
        entry.take("error")
        row.status, row.status_message = "ERROR", f"{name}: {exception}" if exception else name
        return row

    def _check_usage(self) -> None:
        for key, stats in self.lite.usage.items():
            count = max((len(sequence(stats.get(name))) for name in COUNTS), default=0)
            calls = self._calls.get(key, 0)
            if count != calls:
                self.rows.root.warnings.append(
                    f"usage_mismatch: {key} has {counted(calls, 'answer')} and token counts of {counted(count, 'call')}"
                )
            known = {name: sequence(stats.get(name))[calls:] for name in COUNTS}
            rest = {name: value for name, value in stats.items() if name not in COUNTS and value != calls}
            rest |= {name: values for name, values in known.items() if values}
            if rest:
                self.rows.usage_rest[key] = dict(rest)


def _visits(key: str, history: tuple[ParsedMessage, ...]) -> Iterator[Visit]:
    """A sub-agent begins anew with each system prompt, or with each task where there is none."""
    kinds = [message.kind for message in history]
    mark = "system_prompt" if "system_prompt" in kinds else "task"
    starts = [position for position, kind in enumerate(kinds) if kind == mark] or [0]
    starts[0] = 0
    for start, end in zip(starts, [*starts[1:], len(history)], strict=True):
        if end > start:
            yield Visit(key, start, end)


def _bare(key: str) -> str:
    """An agent's id as the agent's log has it."""
    return key.removeprefix("agent_")


def _until(event: Event, second: float | None) -> bool:
    return second is None or event.event_time is None or event.event_time <= second


def _since(event: Event, second: float | None) -> bool:
    return second is None or event.event_time is None or event.event_time >= second
