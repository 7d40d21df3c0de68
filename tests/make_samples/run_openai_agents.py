"""Makes the samples of the OpenAI Agents SDK: a team with a handoff, a guardrail and a tool that fails once.

What its tracing processors are given, `export()` of each trace and span a line: with chat completions, with the
responses API, and that again with the text which a processor may add (data/samples/openai_agents, the others in
tests/ingest/dialects). `openai-agents.otlp.jsonl` is the same run through OpenInference.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

os.environ["OPENAI_API_KEY"] = "none"

from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_trace_processors,
)
from agents.tracing import TracingProcessor
from desk import INSTRUCTIONS, QUESTION, REPLIES, WRONG_MODEL
from desk import ticket_price as price
from loopback import MODEL, Reply, provider, receiver
from openai import AsyncOpenAI
from paths import DIALECTS, SAMPLES, write
from received import scrubbed, spans_jsonl

HANDOFF = Reply(tool="transfer_to_ticket_desk")


class Lines(TracingProcessor):
    """Keeps each trace and span as the SDK's own exporter would send it, or with the text that it leaves out."""

    def __init__(self, *, text: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self.text = text

    def on_trace_start(self, trace: Any) -> None:
        self.items.append(trace.export())

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None:
        item, data = span.export(), span.span_data
        if self.text and data.type == "response":
            said = None if data.response is None else data.response.model_dump(mode="json")
            item["span_data"] |= {"input": data.input, "response": said}
        self.items.append(item)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@function_tool
def ticket_price(harbour: str) -> str:
    """The price of a single ticket in crowns."""
    return price(harbour)


async def about_ferries(context: Any, agent: Any, asked: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info="about ferries", tripwire_triggered=False)


def team(model: Any) -> Agent[Any]:
    settings = ModelSettings(temperature=0.0)
    desk = Agent(
        name="ticket desk", instructions=INSTRUCTIONS, model=model, tools=[ticket_price], model_settings=settings
    )
    return Agent(
        name="front door",
        instructions="Send every question about prices to the ticket desk.",
        model=model,
        handoffs=[desk],
        input_guardrails=[InputGuardrail(guardrail_function=about_ferries)],
        model_settings=settings,
    )


def run(kind: Any, base_url: str) -> None:
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    asyncio.run(Runner.run(team(kind(MODEL, client)), QUESTION))  # type: ignore[arg-type]
    try:
        asyncio.run(Runner.run(team(kind(WRONG_MODEL, client)), "Are you there?"))  # type: ignore[arg-type]
    except Exception as error:
        print(type(error).__name__)


def main() -> None:
    forms = (("chat", OpenAIChatCompletionsModel), ("responses", OpenAIResponsesModel), ("text", OpenAIResponsesModel))
    for name, kind in forms:
        with provider((HANDOFF, *REPLIES)) as base_url:
            lines = Lines(text=name == "text")
            set_trace_processors([lines])
            run(kind, base_url)
        text = "".join(json.dumps(scrubbed(item), ensure_ascii=False) + "\n" for item in lines.items)
        folder = SAMPLES / "openai_agents" if name == "text" else DIALECTS
        write(folder / f"openai-agents-{name}.jsonl", text)
    through_openinference()


def through_openinference() -> None:
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with provider((HANDOFF, *REPLIES)) as base_url, receiver() as (address, got):
        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{address}/v1/traces")))
        OpenAIAgentsInstrumentor().instrument(tracer_provider=tracers)
        run(OpenAIResponsesModel, base_url)
        tracers.force_flush()
    write(DIALECTS / "openai-agents.otlp.jsonl", spans_jsonl(got))


if __name__ == "__main__":
    main()
