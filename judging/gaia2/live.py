"""An execution under way as a trace: its live log read by the same reader as a finished one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracejury.ingest.formats import gaia2
from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.values import text
from tracejury.ingest.parse import parse_json
from tracejury.ingest.trace import IngestError, Json, Source, Trace

LAST_LINES = 20


def partial_export(scenario: Mapping[str, Json], job: Mapping[str, Json], lines: Sequence[bytes]) -> dict[str, Json]:
    """The scenario with the log of its execution so far, in ARE's gui form; a line that is not whole is left out."""
    metadata = object_in(scenario.get("metadata"))
    fields: dict[str, Json] = {"run_number": job.get("repeat"), "config": job.get("capability"), "has_exception": True}
    definition: dict[str, Json] = {**object_in(metadata.get("definition")), **fields}
    simulation: dict[str, Json] = {"agent_id": "default", "model_id": job.get("model")}
    return {
        **scenario,
        "world_logs": [line.decode("utf-8", "replace") for line in lines if _is_whole(line)],
        "metadata": {**metadata, "definition": definition, "simulation": simulation},
    }


def live_trace(folder: Path) -> Trace | None:
    """What an execution has done so far; None where its log holds nothing yet."""
    try:
        scenario, job = (object_in(parse_json((folder / name).read_bytes())) for name in ("scenario.json", "job.json"))
        lines = (folder / "live.jsonl").read_bytes().splitlines()
    except (OSError, IngestError):
        return None
    if not lines:
        return None
    data = json.dumps(partial_export(scenario, job, lines)).encode()
    traces = list(gaia2.read(Source(file=f"{text(job.get('name')) or 'scenario'}.json", data=data)))
    return next((one for one in traces if isinstance(one, Trace)), None)


def last_words(folder: Path) -> str:
    """The end of what the process of an execution wrote to its log."""
    try:
        lines = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])


def _is_whole(line: bytes) -> bool:
    """Whether a line of the live log was written to its end."""
    try:
        return isinstance(parse_json(line), dict)
    except IngestError:
        return False
