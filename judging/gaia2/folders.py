"""The folders of executions: where each execution keeps what it needs, where it stands, and what came of it.

`<home>/gaia2/executions/<settings>/<capability>/<scenario>/repeat_<repeat>[_again_<n>]/` holds the job, the live log
and `trace/`, which is what the workspace takes, `trace/output.jsonl` last. `state.json` says where an execution
stands, and that it has ended once the workspace has it.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.values import name_part, number, text, whole, word
from tracejury.ingest.parse import parse_json
from tracejury.ingest.trace import IngestError, Json

STATE = "state.json"
TRACE = "trace"
OUTPUT = "output.jsonl"
STOP = "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutionState:
    """Where an execution stands. `status` is `running`, `gone` (its process ended without a word) or how it ended."""

    folder: Path
    trace_id: str
    scenario: str
    capability: str
    model: str
    repeat: int
    attempt: int
    status: str
    turn: int | None = None
    step: int | None = None
    clock: float | None = None
    last_tool: str | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    message: str | None = None


def executions_folder(home: Path) -> Path:
    return home / "gaia2" / "executions"


def execution_folder(home: Path, settings: str, capability: str, scenario_id: str, repeat: int, attempt: int) -> Path:
    place = (
        executions_folder(home)
        / settings
        / (name_part(capability) or "unknown")
        / (name_part(scenario_id) or "scenario")
    )
    return place / (f"repeat_{repeat}" if attempt == 1 else f"repeat_{repeat}_again_{attempt - 1}")


def execution_name(settings: str, scenario_id: str, repeat: int, attempt: int) -> str:
    """The trace id of an execution and the name of its files, in the form of ARE, which says `run` for a repeat."""
    again = "" if attempt == 1 else f"_again_{attempt - 1}"
    return f"{name_part(scenario_id) or 'scenario'}_run_{repeat}{again}_{settings}"


def write_state(folder: Path, state: Mapping[str, Json]) -> None:
    unfinished = folder / f"{STATE}.part"
    unfinished.write_text(json.dumps({**state, "written_at": time.time()}), encoding="utf-8")
    unfinished.replace(folder / STATE)


def execution_states(home: Path) -> list[ExecutionState]:
    """Every execution that was started here, the latest start first."""
    files = sorted(executions_folder(home).rglob(STATE), key=_started_at, reverse=True)
    return [state for file in files if (state := read_state(file.parent)) is not None]


def _started_at(state: Path) -> float:
    """When the execution of a state file began: the job is written once, the state again and again."""
    job = state.with_name("job.json")
    return (job if job.exists() else state).stat().st_mtime


def read_state(folder: Path) -> ExecutionState | None:
    """Where the execution of a folder stands; None where it never began."""
    state = _json_of(folder / STATE)
    if not state:
        return None
    status = word(state.get("status")) or "running"
    if status == "running" and not is_held(folder):
        status = "gone"
    return ExecutionState(
        folder=folder,
        trace_id=text(state.get("trace_id")) or folder.name,
        scenario=text(state.get("scenario")) or "",
        capability=text(state.get("capability")) or "",
        model=text(state.get("model")) or "",
        repeat=whole(state.get("repeat")) or 0,
        attempt=whole(state.get("attempt")) or 1,
        status=status,
        turn=whole(state.get("turn")),
        step=whole(state.get("step")),
        clock=number(state.get("clock")),
        last_tool=word(state.get("last_tool")),
        tokens=whole(state.get("tokens")),
        cost_usd=number(state.get("cost_usd")),
        seconds=number(state.get("seconds")),
        message=word(state.get("message")),
    )


def is_done(folder: Path) -> bool:
    """Whether the execution has ended and is in the workspace: the state says so after both."""
    status = _json_of(folder / STATE).get("status")
    return (folder / TRACE / OUTPUT).exists() and status not in {None, "running"}


@contextmanager
def hold_folder(folder: Path) -> Iterator[bool]:
    """Hold the folder as the one process that works on its execution; False where another does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def is_held(folder: Path) -> bool:
    """Whether a process works on the execution now."""
    with hold_folder(folder) as free:
        return not free


def request_stop(folder: Path) -> None:
    """Ask the process that works on an execution to end it."""
    (folder / STOP).touch()


def _json_of(file: Path) -> dict[str, Json]:
    try:
        return object_in(parse_json(file.read_bytes())) if file.exists() else {}
    except (OSError, IngestError):
        return {}
