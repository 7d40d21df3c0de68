"""The ticket desk as an agent of LangChain on LangGraph, for the scripts that trace it in several ways."""

from __future__ import annotations

from typing import Any

from desk import INSTRUCTIONS, QUESTION, ticket_price
from loopback import MODEL


def ask(base_url: str, tool: Any = ticket_price) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    @wrap_tool_call
    def told(request: Any, handler: Any) -> Any:
        """What a tool raises is told to the model."""
        try:
            return handler(request)
        except ValueError as error:
            return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

    agent = create_agent(
        chat_model(base_url), [tool], system_prompt=INSTRUCTIONS, middleware=[told], name="ticket_desk"
    )
    agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})


def chat_model(base_url: str, name: str = MODEL) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=name, base_url=base_url, api_key="none", max_retries=0)  # type: ignore[arg-type]
