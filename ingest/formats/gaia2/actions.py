"""App calls: the agent's log and the event log each tell half of them; here the halves are joined."""

from __future__ import annotations

from dataclasses import dataclass, field

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.entry import Entry
from tracejury.ingest.formats.gaia2.export import Event
from tracejury.ingest.formats.gaia2.values import kept, number, text, without_empty, word
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json, SpanDraft


@dataclass(slots=True)
class OpenTool:
    """A tool call that waits for its observation, and the agent's app calls logged meanwhile."""

    draft: SpanDraft
    calls: list[tuple[SpanDraft, Event]] = field(default_factory=list)

    def own_call(self) -> tuple[SpanDraft, Event] | None:
        """The app call that is this tool call: the last of its name. A nested call is logged before its caller."""
        name = self.draft.tool_name or ""
        by_name = [call for call in self.calls if call[1].tool_name == name]
        by_function = [call for call in self.calls if call[1].function == name.rsplit("__", 1)[-1]]
        same_call = by_name or by_function
        return same_call[-1] if same_call else None


class EventLog:
    """The completed events, found by exact time, app and function.

    Never by id: ARE renames the id of a matched event in this log and not in the agent's.
    """

    def __init__(self, completed: tuple[Event, ...]) -> None:
        self._waiting: dict[tuple[float | None, str | None, str | None], list[Event]] = {}
        for event in completed:
            if not event.is_condition:
                self._waiting.setdefault((event.event_time, event.app, event.function), []).append(event)

    def take(self, seconds: Json, app: str | None, function: str | None) -> Event | None:
        waiting = self._waiting.get((number(seconds), app, function))
        return waiting.pop(0) if waiting else None

    @property
    def left(self) -> list[Event]:
        """Events that nothing in the agent's log tells of, in the order of the file."""
        return sorted(
            (event for waiting in self._waiting.values() for event in waiting), key=lambda e: e.event_time or 0.0
        )


def joined_event(entry: Entry, log: EventLog) -> tuple[Event, dict[str, Json]]:
    """The event of an action entry, and what the entry says beyond the completed event (which knows more)."""
    logged = _logged_event(entry)
    completed = log.take(entry.seconds, logged.app, logged.function)
    if completed is None:
        return logged, without_empty(_content(entry, logged)) | {"event_id": entry.id}
    return completed, without_empty(_beyond(entry, logged, completed)) | {"event_id": entry.id}


def merge_call(tool: SpanDraft, row: SpanDraft, event: Event) -> None:
    """Let the row of a tool call tell what its app call's row told, each text once."""
    attributes = {key: value for key, value in row.attributes.items() if key != "nested"}
    if tool.tool_arguments is None:
        tool.tool_arguments = row.tool_arguments
    elif dict(event.args) != arguments_of(tool):
        attributes["full_args"] = kept(dict(event.args))
    if event.return_value is not None and event.return_value.strip() != (tool.output or "").strip():
        attributes["return_value"] = event.return_value
    if event.exception and event.exception not in (tool.status_message or ""):
        attributes["exception"] = event.exception
    tool.attributes |= attributes
    tool.warnings.extend(row.warnings)


def arguments_of(tool: SpanDraft) -> dict[str, Json]:
    """The arguments of a tool call when they are a JSON object, else none."""
    arguments = inner_json(tool.tool_arguments or "")
    return arguments if isinstance(arguments, dict) else {}


def _logged_event(entry: Entry) -> Event:
    fields = entry.fields
    arguments = entry.take("input")
    args = object_in(arguments) if isinstance(arguments, dict) or arguments is None else {"input": arguments}
    output = entry.take("output")
    return Event(
        event_id=entry.id,
        event_type=word(entry.take("event_type")),
        class_name=None,
        event_time=number(entry.seconds),
        relative_time=None,
        comparator=None,
        depends_on=(),
        app=word(entry.take("app_name")),
        function=word(entry.take("action_name")),
        operation_type=None,
        action_id=None,
        args=args,
        arg_types={},
        return_value=text(output),
        return_value_type=None,
        exception=entry.take_text("exception"),
        stack_trace=entry.take_text("exception_stack_trace"),
        raw={"output": output, "content": fields.pop("content", None)},
    )


def _beyond(entry: Entry, logged: Event, completed: Event) -> dict[str, Json]:
    content = _content(entry, logged)
    if dict(logged.args) != dict(completed.args):
        content["logged_args"] = dict(logged.args)
    if logged.return_value != completed.return_value:
        content["logged_output"] = logged.raw["output"]
    if logged.event_type != completed.event_type:
        content["logged_event_type"] = logged.event_type
    if logged.exception != completed.exception:
        content["logged_exception"] = logged.exception
    if logged.stack_trace != completed.stack_trace:
        content["logged_stack_trace"] = logged.stack_trace
    if completed.event_id != entry.id:
        content["completed_event_id"] = completed.event_id
    return content


def _content(entry: Entry, logged: Event) -> dict[str, Json]:
    """What the entry calls itself, where that is more than "App: function"."""
    content = logged.raw["content"]
    return {} if content == f"{logged.app}: {logged.function}" else {"content": content}
