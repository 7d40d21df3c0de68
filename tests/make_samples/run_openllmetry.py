"""Makes tests/ingest/dialects/openllmetry*.jsonl: traceloop-sdk with the OpenAI client, or a LangGraph agent."""

from __future__ import annotations

import os
import sys
from typing import Any

os.environ["TRACELOOP_TELEMETRY"] = "false"
os.environ["TRACELOOP_METRICS_ENABLED"] = "false"

from desk import INSTRUCTIONS, QUESTION, REPLIES, TOOL, WRONG_MODEL, converse
from desk import ticket_price as price
from loopback import MODEL, provider, receiver
from paths import DIALECTS, write
from received import spans_jsonl


def by_hand(base_url: str) -> None:
    from openai import OpenAI
    from traceloop.sdk.decorators import agent, tool, workflow

    client = OpenAI(base_url=base_url, api_key="none", max_retries=0)

    @tool(name="ticket_price")
    def ticket_price(harbour: str) -> str:
        return price(harbour)

    @agent(name="ticket desk")
    def desk(question: str) -> str:
        def ask(messages: list[Any]) -> Any:
            return client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])  # type: ignore[call-overload]

        return converse(ask, ticket_price)

    @workflow(name="sell tickets")
    def sell(question: str) -> str:
        return desk(question)

    sell(QUESTION)
    try:
        client.chat.completions.create(model=WRONG_MODEL, messages=[{"role": "user", "content": "Are you there?"}])
    except Exception as error:
        print(type(error).__name__)


def by_graph(base_url: str) -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    @tool
    def ticket_price(harbour: str) -> str:
        """The price of a single ticket in crowns."""
        try:
            return price(harbour)
        except ValueError as error:
            return f"Error: {error}"

    model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="none", max_retries=0)  # type: ignore[arg-type]
    agent = create_agent(model, [ticket_price], system_prompt=INSTRUCTIONS, name="ticket_desk")
    agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})


def main() -> None:
    form = sys.argv[1]
    with provider(REPLIES) as base_url, receiver() as (address, got):
        from traceloop.sdk import Traceloop

        Traceloop.init(app_name="ticket-desk", api_endpoint=address, disable_batch=True, telemetry_enabled=False)
        (by_hand if form == "openai" else by_graph)(base_url)
    write(DIALECTS / f"openllmetry-{form}.otlp.jsonl", spans_jsonl(got))


if __name__ == "__main__":
    main()
