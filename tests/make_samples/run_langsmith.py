"""Makes tests/ingest/dialects/langsmith.otlp.jsonl: a LangGraph agent traced by LangSmith as OpenTelemetry.

LangSmith's client would also send to its own service; LANGSMITH_OTEL_ONLY keeps it to OpenTelemetry.
"""

from __future__ import annotations

import os

from desk import REPLIES, WRONG_MODEL
from exporting import tracers_to
from langchain_desk import ask, chat_model
from loopback import provider, receiver
from paths import DIALECTS, write
from received import spans_jsonl

os.environ.update({
    "LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true",
    "LANGSMITH_API_KEY": "none", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_PROJECT": "ticket-desk",
})  # fmt: skip


def run(base_url: str) -> None:
    ask(base_url)
    try:
        chat_model(base_url, WRONG_MODEL).invoke("Are you there?")
    except Exception as error:
        print(type(error).__name__)


def main() -> None:
    with provider(REPLIES) as base_url, receiver() as (address, got):
        from langchain_core.tracers.langchain import wait_for_all_tracers
        from opentelemetry import trace

        tracers = tracers_to(address)
        trace.set_tracer_provider(tracers)
        run(base_url)
        wait_for_all_tracers()
        tracers.force_flush()
    write(DIALECTS / "langsmith.otlp.jsonl", spans_jsonl(got))


if __name__ == "__main__":
    main()
