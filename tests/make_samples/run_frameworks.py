"""Makes tests/ingest/dialects/NAME.otlp.jsonl: the ticket desk as an agent of a framework, as that traces it.

`run_frameworks.py NAME` in the environment of that framework, NAME a key of RUNS.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

os.environ.update({
    "OPENAI_API_KEY": "none", "CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_DISABLE_TRACKING": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGFUSE_PUBLIC_KEY": "pk-lf-none", "LANGFUSE_SECRET_KEY": "none",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true", "HAYSTACK_TELEMETRY_ENABLED": "False",
})  # fmt: skip

from desk import INSTRUCTIONS, QUESTION, REPLIES, TOOL, converse
from desk import ticket_price as price
from exporting import loggers_to, tracers_to
from langchain_desk import ask
from loopback import MODEL, provider, receiver
from paths import DIALECTS, write
from received import logs_jsonl, spans_jsonl


def ticket_price(harbour: str) -> str:
    """The price of a single ticket in crowns.

    Args:
        harbour: the harbour to go to
    """
    return price(harbour)


def pydantic_ai(base_url: str, tracers: Any) -> None:
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    Agent.instrument_all(InstrumentationSettings(tracer_provider=tracers))
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent = Agent(model, name="ticket_desk", instructions=INSTRUCTIONS, retries=2)

    @agent.tool_plain(name="ticket_price")
    def told(harbour: str) -> str:
        """The price of a single ticket in crowns."""
        try:
            return price(harbour)
        except ValueError as error:
            raise ModelRetry(str(error)) from error

    agent.run_sync(QUESTION)


def strands(base_url: str, tracers: Any) -> None:
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"base_url": base_url, "api_key": "none"}, model_id=MODEL)
    Agent(
        model=model, tools=[tool(ticket_price)], system_prompt=INSTRUCTIONS, name="ticket desk", callback_handler=None
    )(QUESTION)


def adk(base_url: str, tracers: Any) -> None:
    from google.adk.agents import LlmAgent
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    def told(harbour: str) -> dict[str, str]:
        """The price of a single ticket in crowns."""
        try:
            return {"price": price(harbour)}
        except ValueError as error:
            return {"error": str(error)}

    told.__name__ = "ticket_price"
    model = LiteLlm(model=f"openai/{MODEL}", api_base=base_url, api_key="none")
    runner = InMemoryRunner(
        agent=LlmAgent(name="ticket_desk", model=model, instruction=INSTRUCTIONS, tools=[told]), app_name="desk"
    )

    async def converse_once() -> None:
        session = await runner.session_service.create_session(app_name="desk", user_id="ada")
        asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
        async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=asked):
            pass

    asyncio.run(converse_once())


def autogen(base_url: str, tracers: Any) -> None:
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info: Any = {
        "vision": False, "function_calling": True, "json_output": False, "family": "unknown",
        "structured_output": False,
    }  # fmt: skip
    client = OpenAIChatCompletionClient(model=MODEL, base_url=base_url, api_key="none", model_info=info)
    agent = AssistantAgent(
        "ticket_desk", client, tools=[ticket_price], system_message=INSTRUCTIONS, max_tool_iterations=4
    )
    asyncio.run(agent.run(task=QUESTION))


def crewai(base_url: str, tracers: Any) -> None:
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool
    from openinference.instrumentation.crewai import CrewAIInstrumentor

    CrewAIInstrumentor().instrument(tracer_provider=tracers)
    llm = LLM(model=f"openai/{MODEL}", base_url=base_url, api_key="none")
    agent = Agent(
        role="ticket desk",
        goal="Sell tickets.",
        backstory=INSTRUCTIONS,
        llm=llm,
        tools=[tool("ticket_price")(ticket_price)],
    )
    task = Task(description=QUESTION, expected_output="A price in crowns.", agent=agent)
    Crew(agents=[agent], tasks=[task]).kickoff()


def langfuse(base_url: str, tracers: Any) -> None:
    from langfuse import get_client, observe
    from langfuse.openai import OpenAI

    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)
    tool = observe(name="ticket_price", as_type="tool")(price)

    @observe(name="ticket desk", as_type="agent")
    def desk(question: str) -> str:
        return converse(
            lambda messages: client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]),  # type: ignore[call-overload]
            tool,
        )

    desk(QUESTION)
    get_client().flush()


def langgraph(base_url: str, tracers: Any) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=tracers)
    ask(base_url, ticket_price)


def haystack(base_url: str, tracers: Any) -> None:
    from haystack import tracing
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret
    from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

    tracing.tracer.is_content_tracing_enabled = True
    tracing.enable_tracing(OpenTelemetryTracer(tracers.get_tracer("haystack")))
    generator = OpenAIChatGenerator(model=MODEL, api_base_url=base_url, api_key=Secret.from_token("none"))
    tool = create_tool_from_function(ticket_price)
    agent = Agent(chat_generator=generator, tools=[tool], system_prompt=INSTRUCTIONS)
    agent.run(messages=[ChatMessage.from_user(QUESTION)])


RUNS = {
    "langfuse": langfuse, "langgraph": langgraph, "pydantic-ai": pydantic_ai, "strands": strands,
    "strands-latest": strands, "adk": adk, "adk-latest": adk, "autogen": autogen, "crewai": crewai,
    "haystack": haystack,
}  # fmt: skip


def main() -> None:
    from opentelemetry import trace
    from opentelemetry._logs import set_logger_provider

    name = sys.argv[1]
    if name.endswith("-latest"):
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    with provider(REPLIES) as base_url, receiver() as (address, got):
        os.environ["LANGFUSE_HOST"] = os.environ["LANGFUSE_BASE_URL"] = address
        tracers = tracers_to(None if name == "langfuse" else address)  # Langfuse sends itself
        loggers = loggers_to(address)
        set_logger_provider(loggers)
        trace.set_tracer_provider(tracers)
        RUNS[name](base_url, tracers)
        tracers.force_flush()
        loggers.force_flush()
    write(DIALECTS / f"{name}.otlp.jsonl", spans_jsonl(got) + logs_jsonl(got))


if __name__ == "__main__":
    main()
