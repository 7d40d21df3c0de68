"""Makes data/samples/phoenix: runs are sent to a Phoenix on loopback and read back as its spans dataframe.

Usage: `python run_phoenix.py FOLDER PORT`, where FOLDER holds what `run_smolagents.py FOLDER` wrote and a
Phoenix listens on PORT.
"""

from __future__ import annotations

import sys
import time
import urllib.request
from pathlib import Path

from paths import SAMPLES
from phoenix.client import Client


def send(address: str, request: bytes) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(f"{address}/v1/traces", request, headers)) as reply:
        reply.read()


def main() -> None:
    feed, address = Path(sys.argv[1]), f"http://127.0.0.1:{sys.argv[2]}"
    client = Client(base_url=address)
    (SAMPLES / "phoenix").mkdir(parents=True, exist_ok=True)
    for form in ("parquet", "csv", "jsonl"):
        send(address, (feed / f"{form}.pb").read_bytes())
    time.sleep(5)  # Phoenix stores in the background
    frame = client.spans.get_spans_dataframe(project_identifier="default")
    traces = frame.groupby("context.trace_id")["start_time"].min().sort_values().index
    for form, trace_id in zip(("parquet", "csv", "jsonl"), traces, strict=True):
        spans = frame[frame["context.trace_id"] == trace_id].dropna(axis="columns", how="all")
        path = SAMPLES / "phoenix" / f"ferry.{form}"
        if form == "parquet":
            spans.to_parquet(path)
        elif form == "csv":
            spans.to_csv(path)
        else:
            spans.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us")
        print(path.name, len(spans), path.stat().st_size, list(spans.columns))


if __name__ == "__main__":
    main()
