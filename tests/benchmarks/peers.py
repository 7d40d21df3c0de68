"""Other tools' reading and storing of the same spans; run by an interpreter that has them, never by ours.

`python peers.py REQUESTS SCRATCH`: REQUESTS holds OTLP protobuf requests, each after its length in four bytes.
Prints one JSON object: for each peer its version and what took how many seconds of CPU, or why it could not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("arize-phoenix==10.15.0", "pytz", "pandas<3", "mlflow-skinny==3.17.2", "sqlalchemy", "alembic")


def main(requests: Path, scratch: Path) -> None:
    data = requests.read_bytes()
    told = {}
    for peer, measure in (("arize-phoenix", phoenix), ("mlflow-skinny", mlflow)):
        try:
            told[peer] = {"version": version(peer), **measure(data, scratch)}
        except Exception as error:
            told[peer] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(told))


def phoenix(data: bytes, _scratch: Path) -> dict[str, float]:
    """Its own spans, as its receiver makes them; its database needs its server and is not measured."""
    decode = import_module("phoenix.trace.otel").decode_otlp_span
    return {"decode": seconds(lambda: [decode(span) for span, _, _ in spans(data)])}


def mlflow(data: bytes, scratch: Path) -> dict[str, float]:
    """Its entities from OTLP, then its store over SQLite, a call a trace as its receiver does."""
    Span = import_module("mlflow.entities.span").Span  # noqa: N806
    store = import_module("mlflow.store.tracking.sqlalchemy_store").SqlAlchemyStore(
        f"sqlite:///{scratch}/mlflow.db", f"{scratch}/artifacts"
    )
    experiment = store.create_experiment("bench")
    by_trace: dict[bytes, list[Any]] = {}

    def decode() -> None:
        for span, _, _ in spans(data):
            by_trace.setdefault(span.trace_id, []).append(Span.from_otel_proto(span))

    decoding = seconds(decode)
    storing = seconds(lambda: [store.log_spans(experiment, held) for held in by_trace.values()])
    return {"decode": decoding, "store": storing}


def spans(data: bytes) -> Iterator[tuple[Any, Any, Any]]:
    service = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    position = 0
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big")
        request = service.ExportTraceServiceRequest()
        request.ParseFromString(data[position + 4 : position + 4 + size])
        position += 4 + size
        for group in request.resource_spans:
            for scope in group.scope_spans:
                for span in scope.spans:
                    yield span, scope, group


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
