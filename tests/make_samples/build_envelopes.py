"""Makes the samples of data/samples that are one story in the envelope of each tool, from tests/ingest/envelope_files.

Usage: `python build_envelopes.py`, from the top of the repository with it on the path.
"""

from __future__ import annotations

import hashlib

from tests.ingest import conversation_files as chats
from tests.ingest import envelope_files as made
from tests.ingest import log_files as logs
from tests.make_samples.paths import SAMPLES

FILES = {
    "jaeger/tide.json": lambda: made.dumped(made.jaeger()),
    "zipkin/tide.json": lambda: made.dumped(made.zipkin()),
    "otel_js/tide.json": made.js_spans,
    "span_table/tide.rows.json": lambda: made.dumped({"rows": made.logfire_rows()}),
    "span_table/tide.jsonl": lambda: made.lines(made.clickhouse_rows()),
    "langsmith/tide.jsonl": lambda: made.lines(made.langsmith_runs()),
    "opik/tide.json": lambda: made.dumped(made.opik_file()),
    "weave/tide.jsonl": lambda: made.lines(made.weave_calls()),
    "claude_code/tide.jsonl": lambda: made.lines(made.claude_code()),
    "codex/tide.jsonl": lambda: made.lines(made.codex()),
    "conversation/tide.json": lambda: made.dumped({"id": made.SESSION, "messages": chats.openai()}),
    "conversation/tide.gemini.json": lambda: made.dumped(chats.gemini_cli()),
    "aider/tide/.aider.chat.history.md": logs.aider_chat,
    "crewai/tide.txt": logs.crewai_text,
    "workflow/tide.json": lambda: made.dumped(logs.n8n()),
    "atif/tide.json": lambda: made.dumped(made.atif()),
    "openhands/tide.jsonl": lambda: made.lines([{"instance_id": "tide-1", "history": made.openhands()}]),
    "swe_agent/tide-2.traj": lambda: made.dumped(made.swe_agent()),
    "swe_agent/tide-3.traj.json": lambda: made.dumped(made.mini_swe_agent()),
}


def main() -> None:
    """Write each file, with a trace id of its own."""
    for name, make in FILES.items():
        own = hashlib.sha256(name.encode()).hexdigest()
        session = f"{own[:8]}-{own[8:12]}-4{own[13:16]}-8{own[17:20]}-{own[20:32]}"
        data = make().replace(made.TRACE.encode(), own[:32].encode()).replace(made.SESSION.encode(), session.encode())
        path = SAMPLES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.rstrip(b"\n") + b"\n")


if __name__ == "__main__":
    main()
