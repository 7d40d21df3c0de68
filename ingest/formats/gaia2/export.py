"""One hf or gui file of ARE (`are_simulation_v1`) as typed values: definition, plan, what happened, the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracejury.ingest.formats.fields import Fields, object_in
from tracejury.ingest.formats.gaia2.values import argument, number, sequence, text, word
from tracejury.ingest.trace import IngestError, Json

VERSION = "are_simulation_v1"
_EVENT_KEYS = frozenset(
    {
        "event_id",
        "event_type",
        "class_name",
        "event_time",
        "event_relative_time",
        "event_time_comparator",
        "dependencies",
        "action",
        "metadata",
    }
)
_ACTION_KEYS = frozenset({"app", "function", "args", "operation_type", "action_id"})
_ARG_KEYS = frozenset({"name", "value", "value_type"})
_METADATA_KEYS = frozenset({"return_value", "return_value_type", "exception", "exception_stack_trace"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A planned or completed event. `event_time` is simulated seconds; `args` are parsed, by name."""

    event_id: str | None
    event_type: str | None
    class_name: str | None
    event_time: float | None
    relative_time: float | None
    comparator: str | None
    depends_on: tuple[str, ...]
    app: str | None
    function: str | None
    operation_type: str | None
    action_id: str | None
    args: Mapping[str, Json]
    arg_types: Mapping[str, Json]
    return_value: str | None
    return_value_type: str | None
    exception: str | None
    stack_trace: str | None
    raw: Mapping[str, Json]
    warnings: tuple[str, ...] = ()
    """The fields of another type than an event has there."""

    @property
    def rest(self) -> dict[str, Json]:
        """What the source says of the event beside these fields."""
        others = {key: value for key, value in self.raw.items() if key not in _EVENT_KEYS}
        for part, known in (("action", _ACTION_KEYS), ("metadata", _METADATA_KEYS)):
            inner = self.raw.get(part)
            if isinstance(inner, dict):
                others |= {f"{part}.{key}": value for key, value in inner.items() if key not in known}
            elif inner is not None:
                others[part] = inner
        written = object_in(self.raw.get("action")).get("args")
        if not _is_plain(written):
            others["action.args"] = written
        return others

    @property
    def is_oracle(self) -> bool:
        return self.class_name == "OracleEvent"

    @property
    def is_condition(self) -> bool:
        return self.event_type == "CONDITION"

    @property
    def is_message_to_user(self) -> bool:
        return self.function == "send_message_to_user"

    @property
    def is_message_to_agent(self) -> bool:
        return self.function == "send_message_to_agent"

    @property
    def tool_name(self) -> str:
        return "__".join(part for part in (self.app, self.function) if part)


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """An ARE export. `log` are the entries of `world_logs` as they stand (JSON texts); empty in hf files."""

    definition: Mapping[str, Json]
    simulation: Mapping[str, Json]
    annotation: Mapping[str, Json]
    runner_config: Mapping[str, Json]
    planned: tuple[Event, ...]
    completed: tuple[Event, ...]
    log: tuple[Json, ...]
    raw: Mapping[str, Json]

    @property
    def is_gui(self) -> bool:
        return bool(self.log)

    @property
    def main_agent(self) -> str | None:
        """The kind of the main agent ("default"); None in oracle executions, where no agent ran."""
        return word(self.simulation.get("agent_id"))

    @property
    def model(self) -> str | None:
        return word(self.simulation.get("model_id"))

    @property
    def sub_agent_model(self) -> str | None:
        return word(self.runner_config.get("a2a_model"))

    @property
    def config(self) -> str | None:
        """The benchmark's config that was executed, in lower case: a capability, or a mix of them such as `mini`."""
        name = word(self.definition.get("config"))
        return name.lower() if name else None

    @property
    def tag(self) -> str | None:
        """The scenario's first tag, in lower case: the capability that it tests."""
        tags = [tag for tag in sequence(self.definition.get("tags")) if isinstance(tag, str)]
        return tags[0].lower() if tags else None

    @property
    def is_oracle_execution(self) -> bool:
        """Whether the scenario's own events were played and no agent ran."""
        value = self.runner_config.get("oracle")
        return value if isinstance(value, bool) else self.main_agent is None and not self.is_gui

    @property
    def never_began(self) -> bool:
        """Whether nothing happened: a plan, and neither an event nor a log entry."""
        return not self.completed and not self.log

    @property
    def judge_model(self) -> str | None:
        """The model that the benchmark's judge asked, where the file names it (ARE 1.2 leaves it out)."""
        return word(object_in(self.runner_config.get("judge_engine_config")).get("model_name"))

    @property
    def phase(self) -> str | None:
        """The benchmark's phase by the augmentations that the file names; None where it says nothing of them."""
        definition, config = self.definition, self.runner_config
        shared = number(config.get("a2a_app_prop"))
        flags = [definition.get(f"has_{name}_augmentation") for name in ("a2a", "tool", "env_events")]
        if not any(isinstance(item, bool) for item in flags) and not config:
            return None
        a2a = flags[0] is True or bool(shared)
        noise = True in flags[1:] or bool(config.get("tool_augmentation_config") or config.get("env_events_config"))
        return "+".join(name for name, on in (("agent2agent", a2a), ("noise", noise)) if on) or "standard"

    @property
    def oracle(self) -> tuple[Event, ...]:
        return tuple(event for event in self.planned if event.is_oracle)


def looks_like_export(value: Json) -> bool:
    return isinstance(value, dict) and "completed_events" in value and "metadata" in value


def read_export(value: Json) -> Export:
    """The export in a parsed JSON object. Raises `IngestError` where it lacks what every export has."""
    top = _object(value, "the file")
    metadata = _object(top.get("metadata"), "metadata")
    definition = _object(metadata.get("definition"), "metadata.definition")
    return Export(
        definition=definition,
        simulation=object_in(metadata.get("simulation")),
        annotation=object_in(metadata.get("annotation")),
        runner_config=object_in(metadata.get("runner_config")),
        planned=tuple(_event(item, f"events[{n}]") for n, item in enumerate(_list(top, "events"))),
        completed=tuple(
            _event(item, f"completed_events[{n}]") for n, item in enumerate(_list(top, "completed_events"))
        ),
        log=tuple(_list(top, "world_logs")),
        raw=top,
    )


def empty_export(scenario: str | None) -> Export:
    """The export of an execution that left none."""
    return Export(
        definition={} if scenario is None else {"scenario_id": scenario},
        simulation={},
        annotation={},
        runner_config={},
        planned=(),
        completed=(),
        log=(),
        raw={},
    )


def refuse_not_executed(export: Export) -> None:
    """A scenario that never ran is no trace; one that raised before its first event is. Raises `IngestError`."""
    if export.never_began and export.definition.get("has_exception") is not True:
        raise IngestError(
            f"scenario {word(export.definition.get('scenario_id'))!r} never ran: a plan, and no completed event",
            place="completed_events",
            remedy="this is a data-set row; run it with are-run or are-benchmark and give the trace files",
        )


def _object(value: Json, place: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise IngestError(
            f"{place} should be an object and is {_kind(value)}",
            place="" if place == "the file" else place,
            remedy="export the execution again with ARE (trace_dump_format hf or both)",
        )
    return value


def _list(top: Mapping[str, Json], key: str) -> list[Json]:
    value = top.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise IngestError(
            f"{key} should be a list and is {_kind(value)}", place=key, remedy="export the execution again with ARE"
        )
    return value


def _event(value: Json, place: str) -> Event:
    fields = Fields(_object(value, place), place)
    action, metadata = fields.inner("action"), fields.inner("metadata")
    args = [object_in(item) for item in sequence(action.peek("args"))]
    return Event(
        event_id=fields.word("eventid") or None,
        event_type=fields.word("eventtype") or None,
        class_name=fields.word("classname") or None,
        event_time=fields.number("eventtime"),
        relative_time=fields.number("eventrelativetime"),
        comparator=fields.word("eventtimecomparator") or None,
        depends_on=tuple(_ids(fields.listed("dependencies"))),
        app=action.word("app") or None,
        function=action.word("function") or None,
        operation_type=action.word("operationtype") or None,
        action_id=action.word("actionid") or None,
        args={text(item.get("name")) or "": argument(item.get("value"), item.get("value_type")) for item in args},
        arg_types={text(item.get("name")) or "": item.get("value_type") for item in args},
        return_value=text(metadata.peek("returnvalue")),
        return_value_type=metadata.word("returnvaluetype") or None,
        exception=text(metadata.peek("exception")),
        stack_trace=text(metadata.peek("exceptionstacktrace")),
        raw=fields.raw,
        warnings=tuple(fields.warnings),
    )


def _is_plain(args: Json) -> bool:
    """Whether arguments are a list of name, value and type with each name once, so that a mapping tells all of it."""
    if args is None:
        return True
    if not isinstance(args, list):
        return False
    names = [item.get("name") for item in args if isinstance(item, dict) and item.keys() <= _ARG_KEYS]
    return len(names) == len(args) and all(isinstance(n, str) for n in names) and len(set(map(str, names))) == len(args)


def _ids(values: Iterable[Json]) -> Iterable[str]:
    return (item for item in values if isinstance(item, str))


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "missing"}
    return names.get(type(value), "a number")
