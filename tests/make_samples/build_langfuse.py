"""Makes data/samples/langfuse: a trace as Langfuse's interface gives it, and observations of its newer interface.

Langfuse's server comes as a container, so these are built by hand and checked against the types of its Python
packages: `python build_langfuse.py check` in an environment with langfuse 3 (trace) or 5 (observations).
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from typing import Any

from paths import SAMPLES, write
from recording_ids import identifier

BEGAN = datetime.fromisoformat("2026-03-07T09:15:00")
FOLDER = SAMPLES / "langfuse"
CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "tide_table", "arguments": '{"harbour": "Ness", "day": "8 March"}'},
}
TOLD = [
    {"role": "system", "content": "Answer from the tide table only."},
    {"role": "user", "content": "When is high water at Ness on 8 March?"},
]
ANSWER = "High water at Ness is at 06:40 and 19:05."


def _time(milliseconds: int) -> str:
    return (BEGAN + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + "Z"


def _observation(
    run: str, key: str, kind: str, parent: str | None, start: int, end: int, **rest: Any
) -> dict[str, Any]:
    return {
        "id": identifier(f"langfuse {run} {key}", 16),
        "traceId": identifier(f"langfuse {run}", 32),
        "type": kind,
        "name": key,
        "startTime": _time(start),
        "endTime": _time(end),
        "parentObservationId": None if parent is None else identifier(f"langfuse {run} {parent}", 16),
        "level": "DEFAULT",
        "statusMessage": None,
        "version": None,
        "environment": "default",
        "metadata": {},
        "latency": (end - start) / 1000,
        **rest,
    }


def _generation(told: list[dict[str, Any]], reply: dict[str, Any], read: int, written: int) -> dict[str, Any]:
    return {
        "model": "harbour-1",
        "modelParameters": {"temperature": 0},
        "input": told,
        "output": reply,
        "usageDetails": {"input": read, "output": written, "total": read + written},
        "costDetails": {},
    }


def _observations(run: str, failing: bool) -> list[dict[str, Any]]:
    asks = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    found = None if failing else "06:40, 19:05"
    result = {"role": "tool", "tool_call_id": "call_1", "content": found or "error: no table for Ness"}
    answer = {"role": "assistant", "content": ANSWER}
    failed = {"level": "ERROR", "statusMessage": "KeyError: no table for Ness"} if failing else {}
    return [
        _observation(run, "tide-agent", "AGENT", None, 0, 3200, input=TOLD[1]["content"], output=ANSWER),
        _observation(run, "ask", "GENERATION", "tide-agent", 20, 1300, **_generation(TOLD, asks, 48, 22)),
        _observation(
            run,
            "tide_table",
            "TOOL",
            "tide-agent",
            1320,
            1350,
            **{"input": {"harbour": "Ness", "day": "8 March"}, "output": found, **failed},
        ),
        _observation(
            run, "reply", "GENERATION", "tide-agent", 1400, 3150, **_generation([*TOLD, asks, result], answer, 81, 14)
        ),
    ]


def _whole(observation: dict[str, Any]) -> dict[str, Any]:
    """With the fields that the older interface always gives."""
    usage = observation.get("usageDetails", {})
    counts = {key: usage.get(key, 0) for key in ("input", "output", "total")}
    return {
        "model": None,
        "modelParameters": {},
        "usageDetails": {},
        "costDetails": {},
        "completionStartTime": None,
        "promptId": None,
        **observation,
        "usage": {**counts, "unit": "TOKENS"},
    }


def trace() -> dict[str, Any]:
    return {
        "id": identifier("langfuse tides", 32),
        "timestamp": _time(0),
        "name": "tide-agent",
        "input": TOLD[1]["content"],
        "output": ANSWER,
        "sessionId": None,
        "release": None,
        "version": None,
        "userId": None,
        "metadata": {"desk": "harbour"},
        "tags": ["tides"],
        "public": False,
        "environment": "default",
        "projectId": "harbour",
        "htmlPath": "/project/harbour/traces/tides",
        "latency": 3.2,
        "totalCost": 0.0,
        "observations": [_whole(item) for item in _observations("tides", failing=False)],
        "scores": [],
    }


def observations() -> dict[str, Any]:
    """A run in which the table is not found and the answer is made up."""
    roots = [{**item, "projectId": "harbour"} for item in _observations("tides-missing", failing=True)]
    return {"data": roots, "meta": {"cursor": None}}


def check() -> None:
    """Raises where a sample does not fit the types of the langfuse package at hand."""
    try:
        from langfuse.api.resources.commons.types import TraceWithFullDetails
    except ImportError:
        from langfuse.api.core.pydantic_utilities import parse_obj_as
        from langfuse.api.observations.types import ObservationsV2Response

        parse_obj_as(ObservationsV2Response, observations())
    else:
        TraceWithFullDetails.parse_obj(trace())


if __name__ == "__main__":
    if sys.argv[1:] == ["check"]:
        check()
    else:
        write(FOLDER / "tides.json", json.dumps(trace(), indent=2) + "\n")
        write(FOLDER / "tides-missing.json", json.dumps(observations(), indent=2) + "\n")
