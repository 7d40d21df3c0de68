"""Makes tests/ingest/dialects/langsmith.otlp.jsonl: a LangGraph agent traced by LangSmith as OpenTelemetry.

LangSmith's client would also send to its own service; LANGSMITH_OTEL_ONLY keeps it to OpenTelemetry.
"""

from __future__ import annotations

import os
from typing import Any

from desk import INSTRUCTIONS, QUESTION, REPLIES, WRONG_MODEL, ticket_price
from loopback import MODEL, provider, receiver
from paths import DIALECTS, write
from received import spans_jsonl

os.environ.update({
    "LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true",
    "LANGSMITH_API_KEY": "none", "LANGSMITH_ENDPOINT": "http://127.0.0.1:9", "LANGSMITH_PROJECT": "ticket-desk",
})  # fmt: skip


def run(base_url: str) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage
    from langchain_openai import ChatOpenAI

    @wrap_tool_call
    def told(request: Any, handler: Any) -> Any:
        """What a tool raises is told to the model."""
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

    model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="none", max_retries=0)  # type: ignore[arg-type]
    agent = create_agent(model, [ticket_price], system_prompt=INSTRUCTIONS, middleware=[told], name="ticket_desk")
    agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
    try:
        ChatOpenAI(model=WRONG_MODEL, base_url=base_url, api_key="none", max_retries=0).invoke("Are you there?")  # type: ignore[arg-type]
    except Exception as error:
        print(type(error).__name__)


def main() -> None:
    with provider(REPLIES) as base_url, receiver() as (address, got):
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = address
        from langsmith import Client
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(tracers)
        run(base_url)
        from langchain_core.tracers.langchain import wait_for_all_tracers

        wait_for_all_tracers()
        tracers.force_flush()
        del Client
    write(DIALECTS / "langsmith.otlp.jsonl", spans_jsonl(got))


if __name__ == "__main__":
    main()
