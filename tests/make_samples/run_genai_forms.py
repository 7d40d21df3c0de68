"""Makes tests/ingest/dialects/genai-*.jsonl: the OpenAI client under the newest GenAI conventions.

`run_genai_forms.py span` keeps the text of messages in span attributes, `event` in one log record a call. Each in a
process of its own, for the settings are read once. (The package's default is what `run_genai.py` records.)
"""

from __future__ import annotations

import os
import sys
from typing import Any

from desk import REPLIES, TOOL, WRONG_MODEL, converse, ticket_price
from exporting import loggers_to, tracers_to
from loopback import MODEL, provider, receiver
from paths import DIALECTS, write
from received import logs_jsonl, spans_jsonl


def settings(form: str) -> dict[str, str]:
    kept = {"span": "SPAN_ONLY", "event": "EVENT_ONLY"}[form]
    return {
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": kept,
    }


def run(base_url: str, address: str) -> None:
    from openai import OpenAI
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    tracers, loggers = tracers_to(address), loggers_to(address)
    OpenAIInstrumentor().instrument(tracer_provider=tracers, logger_provider=loggers)
    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)

    def ask(messages: list[Any], model: str = MODEL) -> Any:
        return client.chat.completions.create(model=model, messages=messages, tools=[TOOL])  # type: ignore[call-overload]

    def price(harbour: str) -> str:
        named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ticket_price"}
        with tracers.get_tracer("ticket-desk").start_as_current_span("execute_tool ticket_price", attributes=named):
            return ticket_price(harbour)

    with tracers.get_tracer("ticket-desk").start_as_current_span("ticket desk"):
        converse(ask, price)
    try:
        ask([{"role": "user", "content": "Are you there?"}], WRONG_MODEL)
    except Exception as error:
        print(type(error).__name__)
    tracers.force_flush()
    loggers.force_flush()


def main() -> None:
    form = sys.argv[1]
    os.environ.update(settings(form))
    with provider(REPLIES) as base_url, receiver() as (address, got):
        run(base_url, address)
    write(DIALECTS / f"genai-{form}.otlp.jsonl", spans_jsonl(got) + logs_jsonl(got))


if __name__ == "__main__":
    main()
