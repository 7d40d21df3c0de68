"""What the tests of the team side share: many small traces, people's work sent as the browser sends it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.build import span_id, trace_of, workspace

from tracejury.ingest.store import write_transaction
from tracejury.ingest.trace import SpanDraft
from tracejury.judging.labels.apply_ops import Applied, apply_ops
from tracejury.judging.labels.item_state import state
from tracejury.judging.labels.ops import Op
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import Workspace

T0 = 1_800_000_000_000_000  # a moment in microseconds
HOUR = 3_600_000_000


def trace_id(number: int) -> str:
    return f"{number:032x}"


def many_traces(home: Path, count: int) -> Workspace:
    drafts = [
        SpanDraft(span_id=span_id(1), name="run", kind="AGENT", start_time=1_000, end_time=9_000),
        SpanDraft(span_id=span_id(2), parent_span_id=span_id(1), name="call", kind="LLM", start_time=2_000,
                  end_time=3_000, output="An answer."),
    ]  # fmt: skip
    return workspace(home, *(trace_of(drafts, trace_id=trace_id(number)) for number in range(count)))


def queue_of(space: Workspace, count: int, **more: Any) -> int:
    """A queue over the first `count` traces."""
    spec = QueueSpec(**({"name": f"queue {uuid.uuid4().hex[:6]}", "author": "root"} | more))
    with write_transaction(space.engine) as connection:
        return make_queue(connection, spec, [trace_id(number) for number in range(count)], now=T0)


def op(kind: str, **payload: Any) -> Op:
    return Op(op_id=uuid.uuid4().hex, kind=kind, payload=payload)  # type: ignore[arg-type]


def send(space: Workspace, who: str, trace: str, *ops: Op, occasion: int = 0, version: str | None = None) -> None:
    base = state(space.engine, annotator=who, trace_id=trace, occasion=occasion)["revision"]
    outcome = apply_ops(
        space.engine, annotator=who, trace_id=trace, base_revision=base, ops=ops, occasion=occasion,
        guideline_version=version,
    )  # fmt: skip
    assert isinstance(outcome, Applied)


def submit(
    space: Workspace, who: str, trace: str, *, scores: dict[str, int | None] | None = None,
    errors: Sequence[dict[str, Any]] = (), occasion: int = 0,
) -> None:  # fmt: skip
    """A whole review in one batch: scores (None: not applicable), errors, done."""
    ops = [op("error.put", **({"label_id": uuid.uuid4().hex} | error)) for error in errors]
    for dimension, value in (scores if scores is not None else dict.fromkeys(DIMENSIONS, 2)).items():
        ops.append(op("score.put", dimension=dimension, value=value, not_applicable=value is None))
    send(space, who, trace, *ops, op("review.put", status="submitted", no_error=not errors), occasion=occasion)
