"""A gui file: the agents' own log, replayed in append order and joined with the app events of the execution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.actions import EventLog, OpenTool, arguments_of, joined_event, merge_call
from tracejury.ingest.formats.gaia2.entry import Entry
from tracejury.ingest.formats.gaia2.eventlog import completed_draft, note_asked
from tracejury.ingest.formats.gaia2.export import Event, Export
from tracejury.ingest.formats.gaia2.oracle import matched_ids
from tracejury.ingest.formats.gaia2.rows import Rows, event_draft, tool_draft
from tracejury.ingest.formats.gaia2.values import is_empty, kept, number, sequence, text, tokens, without_empty, word
from tracejury.ingest.trace import Clock, Json, SpanDraft, SpanKind

_A_DAY_S = 86_400.0
TURN_OPENERS = frozenset({"system_prompt", "task", "step", "llm_input", "tool_call"})
_NOTIFICATIONS = {"environment_notifications": "environment", "agent_user_interface": "user"}
_TOKEN_FIELDS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens")
_FORMAT_RETRY = "InvalidActionAgentError"
_MAX_ITERATIONS = "MaxIterationsAgentError"
_UNFINISHED = "unfinished: neither an answer nor an error follows this call in the log"


@dataclass(slots=True)
class Agent:
    """One agent in one turn (a sub-agent: in one call of it), with what it has open."""

    draft: SpanDraft
    name: str
    clock: Clock
    is_main: bool
    step: SpanDraft | None = None
    llm: SpanDraft | None = None
    tool: OpenTool | None = None
    acted: bool = False
    said: dict[str, int] = field(default_factory=dict)

    @property
    def place(self) -> SpanDraft:
        """Where the agent's rows go: its open step, else itself."""
        return self.step or self.draft

    def tool_is_automatic(self) -> None:
        """The open call was made by ARE itself, at the last iteration: no step of the model asked for it."""
        if self.tool is not None:
            self.tool.draft.attributes["automatic"] = True


class WorldLog:
    """The state of the replay. Entries are taken in append order: clocks differ, so times do not order them."""

    def __init__(self, export: Export, rows: Rows) -> None:
        self.export, self.rows = export, rows
        self.matched = matched_ids(export)
        self.events = EventLog(export.completed)
        self.tools: list[OpenTool] = []
        self.main: Agent | None = None
        self.turn_openers = TURN_OPENERS
        self._agents: dict[tuple[str, str], Agent] = {}
        self._latest: dict[str, Agent] = {}
        self._names: dict[str, str] = {}
        self._handlers: dict[str, Callable[[Agent, Entry], SpanDraft]] = {
            "system_prompt": self._system_prompt,
            "task": self._task,
            "step": self._step,
            "llm_input": self._llm_input,
            "llm_output": self._llm_output,
            "llm_output_thought_action": self._llm_output,
            "thought": self._thought,
            "rationale": self._thought,
            "tool_call": self._tool_call,
            "observation": self._observation,
            "error": self._error,
            "final_answer": self._final_answer,
            "stop": self._stop,
            "environment_notifications": self._notification,
            "agent_user_interface": self._notification,
            "plan": self._plan,
            "replan": self._plan,
            "facts": self._plan,
            "refacts": self._plan,
            "llm_output_plan": self._plan,
            "raw_plan": self._plan,
            "llm_output_facts": self._plan,
            "raw_facts": self._plan,
            "hint": self._plan,
            "task_reminder": self._plan,
            "end_task": self._plan,
            "subagent": self._subagent,
        }

    def replay(self) -> None:
        """Every log entry, and every completed event that no entry tells of, becomes a row or goes into one."""
        for position, raw in enumerate(self.export.log):
            self.feed(Entry(position, raw))
        for agent in self._agents.values():
            self._abandon(agent)
        for event in self.events.left:
            draft = completed_draft(event, agent=self.rows.main_agent, matched=self.matched, number=0)
            draft.warnings.append("event_without_log: the event log holds this event, the agents' log does not")
            self.rows.add_late(draft)

    def feed(self, entry: Entry) -> None:
        if entry.kind == "action":
            row = self._action(entry)
        elif entry.kind in self._handlers:
            agent = self._agent_of(entry)
            row = self._handlers[entry.kind](agent, entry)
            self._touch(agent, entry)
        else:
            row = self._unknown(entry)
        row.warnings.extend(entry.warnings)
        if left := entry.left:
            _append(row, "log_rest", {"log_type": entry.kind, "id": entry.id, **left})

    # Which agent

    def _agent_of(self, entry: Entry) -> Agent:
        """The agent that wrote the entry: known, or new in this turn, or new below the open call of an expert agent."""
        known = self._latest.get(entry.agent_id)
        if known is not None and known.is_main:
            return self._main_agent(entry, known)
        call = self._expert_call(known)
        if call is not None:
            return self._agent(entry, call.draft, lambda: self._new_sub_agent(entry, call))
        return known or self._main_agent(entry, None)

    def _main_agent(self, entry: Entry, known: Agent | None) -> Agent:
        if known is not None and self.rows.current_turn is None and entry.kind not in self.turn_openers:
            return known
        turn = self.rows.open_turn()
        self.main = self._agent(entry, turn, lambda: self._new_main_agent(entry, turn))
        return self.main

    def _agent(self, entry: Entry, parent: SpanDraft, new: Callable[[], Agent]) -> Agent:
        key = (entry.agent_id, parent.span_id)
        if key not in self._agents:
            before = self._latest.get(entry.agent_id)
            self._agents[key] = new()
            if before is not None:
                self._abandon(before)
                self._agents[key].said = before.said
        self._latest[entry.agent_id] = self._agents[key]
        return self._agents[key]

    def _expert_call(self, known: Agent | None) -> OpenTool | None:
        """The innermost open call of an expert agent that is not the agent's own call."""
        own = None if known is None else known.tool
        for call in reversed(self.tools):
            if call is not own and (call.draft.tool_name or "").endswith("__expert_agent"):
                return call
        return None

    def _new_main_agent(self, entry: Entry, turn: SpanDraft) -> Agent:
        name = self._name(entry.agent_id, self.rows.main_agent or "agent")
        return self._new_agent(entry, name, "sim", turn, is_main=True)

    def _new_sub_agent(self, entry: Entry, call: OpenTool) -> Agent:
        name = self._name(entry.agent_id, (call.draft.tool_name or "").removesuffix("__expert_agent"))
        return self._new_agent(entry, name, self._clock_below(entry, call.draft), call.draft, is_main=False)

    def _name(self, agent_id: str, base: str) -> str:
        """An agent's name, with a number when another agent has it: a name is one thread of conversation."""
        if agent_id not in self._names:
            names = set(self._names.values())
            numbered = (f"{base} {count}" for count in range(2, len(names) + 3))
            free = (name for name in (base, *numbered) if name not in names)
            self._names[agent_id] = next(free)
        return self._names[agent_id]

    def _clock_below(self, entry: Entry, call: SpanDraft) -> Clock:
        """Sub-agents of ARE 1.2 have a wall clock of their own: times far from the call's are no simulated times."""
        if entry.time is None or call.start_time is None:
            return "wall"
        longest = max(number(self.export.definition.get("duration")) or 0.0, _A_DAY_S)
        return call.clock if abs(entry.time - call.start_time) <= longest * 1e6 else "wall"

    def _new_agent(self, entry: Entry, name: str, clock: Clock, parent: SpanDraft, *, is_main: bool) -> Agent:
        draft = SpanDraft(
            span_id=f"agent-{entry.agent_id}-{parent.span_id}",
            name=name,
            kind="AGENT",
            agent=name,
            start_time=entry.time,
            end_time=entry.time,
            clock=clock,
            attributes={"agent_id": entry.agent_id},
        )
        self.rows.add(draft, parent=parent)
        return Agent(draft=draft, name=name, clock=clock, is_main=is_main)

    def _touch(self, agent: Agent, entry: Entry) -> None:
        """The agent, and its open step, last at least until now."""
        if entry.time is None:
            return
        for span in (agent.draft, agent.step):
            if span is not None:
                span.start_time = entry.time if span.start_time is None else min(span.start_time, entry.time)
                span.end_time = entry.time if span.end_time is None else max(span.end_time, entry.time)
        self.rows.stretch(entry.time, clock=agent.clock, turn=agent.draft.turn)

    def _abandon(self, agent: Agent) -> None:
        """What the agent left open stays without an end."""
        if agent.tool is not None:
            agent.tool.draft.warnings.append(_UNFINISHED)
            self._close_tool(agent, agent.tool)
        if agent.llm is not None:
            agent.llm.warnings.append(_UNFINISHED)
            agent.llm = None

    # What the agent logs

    def _row(self, agent: Agent, entry: Entry, kind: SpanKind, name: str, parent: SpanDraft | None = None) -> SpanDraft:
        draft = SpanDraft(
            span_id=entry.id,
            name=name,
            kind=kind,
            agent=agent.name,
            start_time=entry.time,
            end_time=entry.time,
            clock=agent.clock,
            step=None if agent.step is None else agent.step.step,
        )
        return self.rows.add(draft, parent=parent or agent.place)

    def _system_prompt(self, agent: Agent, entry: Entry) -> SpanDraft:
        return _say_once(agent.draft, "system_prompt", entry)

    def _task(self, agent: Agent, entry: Entry) -> SpanDraft:
        """A task; an empty one follows each wait and is not a new turn."""
        content, row = entry.take_text("content"), agent.draft
        _stamp(row, entry)
        _keep(row, "attachments", entry.take("attachments"))
        if not content:
            _add_one(row, "resumes")
        elif row.input is None:
            row.input = content
        else:
            _append(row, "later_tasks", content)
        if content and agent.is_main:
            self.rows.tasks.append(content)
        return row

    def _step(self, agent: Agent, entry: Entry) -> SpanDraft:
        self._abandon(agent)
        agent.step, agent.acted = None, False
        iteration = entry.take("iteration")
        row = self._row(agent, entry, "CHAIN", f"step {text(iteration)}")
        row.status = "OK"
        row.step = iteration if isinstance(iteration, int) and not isinstance(iteration, bool) else None
        agent.step = row
        return row

    def _llm_input(self, agent: Agent, entry: Entry) -> SpanDraft:
        if agent.llm is not None:
            agent.llm.warnings.append(_UNFINISHED)
        row = agent.llm = self._llm_row(agent, entry)
        content = entry.take("content")
        if isinstance(content, list):
            row.input_messages = [self._message(agent, item) for item in content]
        else:
            row.input = text(content)
        return row

    def _llm_row(self, agent: Agent, entry: Entry) -> SpanDraft:
        row = self._row(agent, entry, "LLM", "llm")
        row.model = self.export.model if agent.is_main else self.export.sub_agent_model
        return row

    def _message(self, agent: Agent, item: Json) -> int:
        """A message sent. ARE ends each with a line break of its own: an answer sent again is still that answer."""
        message = object_in(item)
        role, content = text(message.get("role")), text(message.get("content"))
        if not isinstance(item, dict):
            content = text(item)
        rest = without_empty({key: value for key, value in message.items() if key not in {"role", "content"}})
        call = agent.said.get((content or "").removesuffix("\n")) if role == "assistant" else None
        place = self.rows.messages.add(role, content) if call is None else call
        if rest:
            self.rows.note_message(place, rest)
        return place

    def _llm_output(self, agent: Agent, entry: Entry) -> SpanDraft:
        if agent.llm is None:
            row = self._llm_row(agent, entry)
            row.warnings.append("no_llm_input: the log holds no input of this call")
        else:
            row = agent.llm
            _stamp(row, entry)
        agent.llm, agent.acted = None, False
        row.end_time, row.status = entry.time, "OK"
        content = entry.take_text("content")
        row.output_messages = [self.rows.messages.add("assistant", content)]
        if content is not None:
            agent.said[content] = row.output_messages[0]
        _count(row, entry)
        return row

    def _thought(self, agent: Agent, entry: Entry) -> SpanDraft:
        """The rationale repeats the thought: the same text is kept once."""
        return _say_once(agent.place, "thought", entry)

    def _tool_call(self, agent: Agent, entry: Entry) -> SpanDraft:
        if agent.tool is not None:
            agent.tool.draft.warnings.append(_UNFINISHED)
            self._close_tool(agent, agent.tool)
        name = entry.take_text("tool_name") or "tool"
        # At the last iteration ARE itself writes to the user: no step of the model asked for it.
        automatic = agent.acted and _is_message_to_user(name)
        if automatic:
            agent.step = None
        row = self._row(agent, entry, "TOOL", name)
        row.tool_name, row.tool_arguments = name, text(entry.take("tool_arguments"))
        agent.tool, agent.acted = OpenTool(row), True
        if automatic:
            agent.tool_is_automatic()
        self.tools.append(agent.tool)
        return row

    def _observation(self, agent: Agent, entry: Entry) -> SpanDraft:
        content, call = entry.take_text("content"), agent.tool
        if call is None:
            row = self._row(agent, entry, "EVENT", "observation")
            row.input = content
            row.warnings.append("stray_observation: this result fits no open tool call of the agent")
        else:
            row = call.draft
            row.output, row.status, row.end_time = content, "OK", entry.time
            _stamp(row, entry)
            self._close_tool(agent, call)
        _keep(row, "attachments", entry.take("attachments"))
        return row

    def _error(self, agent: Agent, entry: Entry) -> SpanDraft:
        name, exception = entry.take_text("error") or "error", entry.take_text("exception") or ""
        row = self._where_failed(agent, name)
        _stamp(row, entry)
        if row is agent.llm and name == _FORMAT_RETRY:
            _add_one(row, "format_retries")
            _append(row, "rejected_outputs", exception)
            return row
        message = f"{name}: {exception}" if exception else name
        _fail(row, message)
        if row is agent.llm:
            row.end_time, agent.llm = entry.time, None
            _fail(agent.place, message)
        elif row is agent.draft:
            _append(row, "errors", message)
        elif agent.tool is not None:
            row.end_time = entry.time
            self._close_tool(agent, agent.tool)
        return row

    def _where_failed(self, agent: Agent, error: str) -> SpanDraft:
        if error == _MAX_ITERATIONS:
            return agent.draft
        if agent.tool is not None:
            return agent.tool.draft
        return agent.llm or agent.place

    def _final_answer(self, agent: Agent, entry: Entry) -> SpanDraft:
        row = agent.draft
        row.output, row.status = entry.take_text("content"), "OK"
        _keep(row, "final_attachments", entry.take("attachments"))
        _stamp(row, entry)
        return row

    def _stop(self, agent: Agent, entry: Entry) -> SpanDraft:
        message = entry.take_text("content") or "stopped"
        _append(agent.draft, "errors", message)
        _fail(agent.draft, message)
        _stamp(agent.draft, entry)
        return agent.draft

    def _notification(self, agent: Agent, entry: Entry) -> SpanDraft:
        row = self._row(agent, entry, "EVENT", entry.kind)
        row.agent, row.input = _NOTIFICATIONS[entry.kind], entry.take_text("content")
        return row

    def _plan(self, agent: Agent, entry: Entry) -> SpanDraft:
        row = self._row(agent, entry, "CHAIN", entry.kind)
        row.output = entry.take_text("content")
        _count(row, entry)
        return row

    def _subagent(self, agent: Agent, entry: Entry) -> SpanDraft:
        """A group of entries of other agents: a row of its own, then the entries as if they stood in the log."""
        row = self._row(agent, entry, "CHAIN", word(entry.take("name")) or "subagent")
        _keep(row, "group_id", entry.take("group_id"))
        for child in sequence(entry.take("children")):
            self.feed(Entry(entry.number, child))
        return row

    def _unknown(self, entry: Entry) -> SpanDraft:
        agent = self._latest.get(entry.agent_id) or self.main
        row = SpanDraft(
            span_id=entry.id,
            name=entry.kind or "log entry",
            kind="EVENT",
            agent=None if agent is None else agent.name,
            start_time=entry.time,
            end_time=entry.time,
            clock="sim" if agent is None else agent.clock,
            step=None if agent is None or agent.step is None else agent.step.step,
            input=entry.take_text("unreadable" if "unreadable" in entry.fields else "content"),
        )
        if not entry.warnings or entry.kind:
            row.warnings.append(f"unknown_log_type: {entry.kind[:80]!r} is not a log type of ARE 1.2; kept as an event")
        return self.rows.add(row, parent=self.rows.open_turn() if agent is None else agent.place)

    # What the apps log

    def _action(self, entry: Entry) -> SpanDraft:
        event, extra = joined_event(entry, self.events)
        if event.event_type == "AGENT":
            return self._agent_call(entry, event, extra)
        row = event_draft(event, entry.id)
        row.attributes |= extra
        turn = self.rows.current_turn
        at_work = self.main is not None and turn is not None and self.main.draft.turn == turn.turn
        during = self.main.place if self.main is not None and at_work else None
        row.step = None if during is None else during.step
        self.rows.add_event(row, parent=during, opens=note_asked(event, self.rows))
        return row

    def _agent_call(self, entry: Entry, event: Event, extra: dict[str, Json]) -> SpanDraft:
        call = self.tools[-1] if self.tools else None
        row = tool_draft(event, entry.id, agent=self.rows.main_agent if call is None else call.draft.agent)
        row.attributes |= extra
        if event.event_id in self.matched:
            row.attributes["oracle_match"] = event.event_id
        if call is not None:
            row.attributes["nested"] = True
            row.step = call.draft.step
            call.calls.append((row, event))
            return self.rows.add(row, parent=call.draft)
        self.rows.add(row, parent=self.rows.open_turn())
        if event.is_message_to_user and not event.exception:
            self.rows.end_turn(text(event.args.get("content")))
        return row

    def _close_tool(self, agent: Agent, call: OpenTool) -> None:
        """End a call: the app call of its own name goes into its row, the others stay nested below it."""
        self.tools = [tool for tool in self.tools if tool is not call]
        agent.tool = None
        own = call.own_call()
        if own is not None:
            merge_call(call.draft, *own)
            self.rows.remove(own[0])
        if agent.is_main and call.draft.status == "OK" and _is_message_to_user(call.draft.tool_name or ""):
            arguments = arguments_of(call.draft) if own is None else own[1].args
            if agent.draft.status == "UNSET":
                agent.draft.status = "OK"
            self.rows.end_turn(text(arguments.get("content")))


def _is_message_to_user(tool_name: str) -> bool:
    return tool_name.endswith("__send_message_to_user")


def _fail(row: SpanDraft, message: str) -> None:
    row.status = "ERROR"
    row.status_message = message if row.status_message is None else f"{row.status_message}\n{message}"


def _stamp(row: SpanDraft, entry: Entry) -> None:
    """Remember the type, id and exact seconds of an entry that went into a row of another id."""
    _append(row, "log", entry.stamp)


def _say_once(row: SpanDraft, attribute: str, entry: Entry) -> SpanDraft:
    """Keep a text as an attribute: alone as text, several different ones as a list."""
    content = entry.take_text("content")
    known = row.attributes.get(attribute)
    texts = known if isinstance(known, list) else [] if known is None else [known]
    if content and content not in texts:
        row.attributes[attribute] = [*texts, content] if texts else content
    _stamp(row, entry)
    return row


def _keep(row: SpanDraft, attribute: str, value: Json) -> None:
    if not is_empty(value):
        row.attributes[attribute] = kept(value)


def _append(row: SpanDraft, attribute: str, value: Json) -> None:
    row.attributes[attribute] = [*sequence(row.attributes.get(attribute)), value]


def _add_one(row: SpanDraft, attribute: str) -> None:
    row.attributes[attribute] = int(number(row.attributes.get(attribute)) or 0) + 1


def _count(row: SpanDraft, entry: Entry) -> None:
    """Token counts and the model's seconds; all 0 where the engine cannot count, which is unknown."""
    counts = tokens([entry.take(name) for name in _TOKEN_FIELDS])
    row.prompt_tokens, row.completion_tokens, row.total_tokens, row.reasoning_tokens = counts
    seconds = number(entry.take("completion_duration"))
    if seconds is not None and (seconds or any(count is not None for count in counts)):
        row.attributes["completion_duration"] = seconds
