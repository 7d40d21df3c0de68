"""What was executed, as the files say it: scenario, repeat, capability, phase, agent, models, oracle or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.export import Export
from tracejury.ingest.formats.gaia2.values import sequence, text, whole, without_empty, word
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import Json

SETTING = "benchmark"
"""The attribute of a trace that holds its `Setting`."""
CAPABILITIES = ("execution", "search", "adaptability", "time", "ambiguity")
CONFIGS = (*CAPABILITIES, "mini", "demo")
PHASES = ("standard", "agent2agent", "noise")
FORMS = frozenset({"hf", "lite", "gui"})
_REPEAT = re.compile(r"_run_(\d{1,9})(?:_[0-9a-f]{8})?$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What was executed; None where no file says it. `capability` is the config that was executed, such as `mini`.

    `settings` is the hash of all settings of an execution made here, `attempt` counts its starts from 1.
    """

    harness: str
    scenario: str | None = None
    repeat: int | None = None
    capability: str | None = None
    phase: str | None = None
    agent: str | None = None
    agent_model: str | None = None
    judge_model: str | None = None
    is_oracle: bool = False
    settings: str | None = None
    attempt: int | None = None

    def to_json(self) -> dict[str, Json]:
        document = without_empty(asdict(self))
        return document if self.is_oracle else {key: value for key, value in document.items() if key != "is_oracle"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What the folders of a benchmark's file say: `<phase>/<config>/hf/` or `<config>/<phase>/hf/`."""

    config: str | None = None
    phase: str | None = None


def place_of(file: str) -> Place:
    """The config and the phase in the two folders above an execution's file (the folders hf, lite and gui not counted).

    A folder named otherwise is a config only directly below that of a phase, where a benchmark puts nothing else.
    """
    above = [part.lower() for part in re.split(r"[\\/]", file)[:-1] if part not in FORMS and "." not in part[-6:]]
    near = above[-2:]
    config = next((part for part in reversed(near) if part in CONFIGS), None)
    phase = next((part for part in reversed(near) if part in PHASES), None)
    if config is None and len(near) == 2 and near[0] in PHASES:
        config = near[1]
    return Place(config=config, phase=phase)


def are_setting(
    export: Export, row: Mapping[str, Json], around: Mapping[str, Json], *, trace_id: str, file: str
) -> Setting:
    """The setting of an ARE execution: its row before its own file, that before its folders and those `around` it."""
    place, config = place_of(file), object_in(inner_json(text(row.get("run_config")) or ""))
    named = _REPEAT.search(trace_id)
    repeats = (whole(row.get("run_number")), whole(export.definition.get("run_number")))
    capability = word(row.get("config")) or export.config or place.config or word(around.get("config")) or export.tag
    return Setting(
        harness="ARE",
        scenario=word(row.get("scenario_id")) or word(export.definition.get("scenario_id")),
        repeat=next((one for one in repeats if one is not None), int(named[1]) if named else None),
        capability=capability.lower() if capability else None,
        phase=word(row.get("phase_name")) or export.phase or place.phase or word(around.get("phase")) or "standard",
        agent=export.main_agent or word(config.get("agent")) or word(around.get("agent")),
        agent_model=export.model or word(config.get("model")) or word(around.get("agent_model")),
        judge_model=export.judge_model or _judge(config) or word(around.get("judge_model")),
        is_oracle=(bool(export.raw) and export.is_oracle_execution) or row.get("execution_status") == "oracle",
        settings=word(row.get("settings")),
        attempt=whole(row.get("attempt")),
    )


def common_setting(export: Export) -> dict[str, Json]:
    """What the executions of one benchmark share, so that an execution without a trace has it of the others."""
    return without_empty(
        {
            "agent": export.main_agent,
            "agent_model": export.model,
            "judge_model": export.judge_model,
            "config": export.config,
            "phase": export.phase,
        }
    )


def maseval_setting(report: Mapping[str, Json]) -> Setting:
    """The setting of a MASEval report: the models as its traces name them, else as its config does."""
    traces, config = object_in(report.get("traces")), object_in(report.get("config"))
    environment, task = object_in(traces.get("environment")), object_in(object_in(report.get("task")).get("metadata"))
    capability = word(environment.get("capability")) or word(task.get("capability")) or _judged_capability(report)
    return Setting(
        harness="MASEval",
        scenario=word(task.get("scenario_id")) or word(environment.get("scenario_id")) or word(report.get("task_id")),
        repeat=whole(report.get("repeat_idx")),
        capability=capability.lower() if capability else None,
        phase="standard",
        agent=_one([word(object_in(agent).get("agent_type")) for agent in object_in(traces.get("agents")).values()]),
        agent_model=_models(traces) or _models(config),
    )


def _judged_capability(report: Mapping[str, Json]) -> str | None:
    names = (word(object_in(item).get("capability")) for item in sequence(report.get("eval")))
    return next((name for name in names if name), None)


def _models(part: Mapping[str, Json]) -> str | None:
    return _one([word(object_in(model).get("model_id")) for model in object_in(part.get("models")).values()])


def _one(names: list[str | None]) -> str | None:
    """The different names, each once."""
    return ", ".join(dict.fromkeys(name for name in names if name)) or None


def _judge(config: Mapping[str, Json]) -> str | None:
    return word(object_in(config.get("judge_engine_config")).get("model_name"))
