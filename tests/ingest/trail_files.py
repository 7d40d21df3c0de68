"""TRAIL-form documents made here, for tests: never a piece of a real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.trace import Rejected, Trace

TRACE_ID = "00000000000000000000000000000001"


def span(span_id: str, attributes: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A TRAIL span; `children` nests, every other field replaces its default."""
    children = fields.pop("children", [])
    for child in children:
        child["parent_span_id"] = child["parent_span_id"] or span_id
    return {
        "timestamp": "2025-03-19T16:00:00.000000Z",
        "trace_id": TRACE_ID,
        "span_id": span_id,
        "parent_span_id": None,
        "trace_state": "",
        "span_name": "s",
        "span_kind": "Internal",
        "service_name": "x",
        "resource_attributes": {},
        "scope_name": "openinference.instrumentation.smolagents",
        "scope_version": "0.1.6",
        "span_attributes": attributes or {},
        "duration": "PT1S",
        "status_code": "Ok",
        "status_message": "",
        "events": [],
        "links": [],
        "logs": [],
        "child_spans": children,
        **fields,
    }


def document(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"trace_id": TRACE_ID, "spans": list(spans)}


def read_all(data: Any, file: str = "t.json", format: str | None = None) -> list[Trace | Rejected]:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return list(read_bytes(raw, file=file, format=format))


def read_one(data: Any) -> Trace:
    """The only trace of a document; fails on anything else."""
    (found,) = read_all(data)
    assert isinstance(found, Trace), found
    return found


def read_one_path(path: Path) -> Trace:
    (found,) = list(read_traces(path))
    assert isinstance(found, Trace), found
    return found
