"""Makes tests/ingest/dialects/litellm-*.jsonl: litellm's `otel` callback, spans and log records over OTLP/HTTP.

`run_litellm.py parent` is the default under a span of one's own: litellm writes each call's attributes on that span.
`request` gives each call a span (`USE_OTEL_LITELLM_REQUEST_SPAN`), `latest` does so in the newest GenAI conventions.
Each in a process of its own, for litellm reads its settings once.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from desk import REPLIES, TOOL, WRONG_MODEL, converse
from loopback import MODEL, provider, receiver
from paths import DIALECTS, write
from received import logs_jsonl, spans_jsonl


def run(base_url: str) -> None:
    import litellm
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    litellm.callbacks = ["otel"]

    def ask(messages: list[Any], model: str = MODEL) -> Any:
        name = f"openai/{model}"
        try:
            return litellm.completion(
                model=name, api_base=base_url, api_key="none", messages=messages, tools=[TOOL], num_retries=0
            )
        finally:
            time.sleep(0.7)  # spans are written in a thread of their own

    with trace.get_tracer("ticket-desk").start_as_current_span("ticket desk"):
        converse(ask)
    try:
        ask([{"role": "user", "content": "Are you there?"}], WRONG_MODEL)
    except litellm.NotFoundError as error:
        print(type(error).__name__)
    tracers.force_flush()


def main() -> None:
    form = sys.argv[1]
    if form == "latest":
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    if form != "parent":
        os.environ["USE_OTEL_LITELLM_REQUEST_SPAN"] = "true"
    with provider(REPLIES) as base_url, receiver() as (address, got):
        os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
        os.environ["LITELLM_OTEL_INTEGRATION_ENABLE_EVENTS"] = "true"
        run(base_url)
        time.sleep(6)
    name = f"litellm-{form}"
    write(DIALECTS / f"{name}.otlp.jsonl", spans_jsonl(got) + logs_jsonl(got))


if __name__ == "__main__":
    main()
