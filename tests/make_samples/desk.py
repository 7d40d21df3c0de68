"""The ticket desk that the run of each OpenTelemetry dialect plays: one question, one tool, three replies.

The model misspells a harbour, so the tool fails once; then it takes the price of one single for the price of two
returns. The answer is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from loopback import Reply

INSTRUCTIONS = "You sell ferry tickets. Look prices up; never guess them."
QUESTION = "How much is a return ticket to Orm for two adults?"
TOOL_NAME, TOOL_TEXT = "ticket_price", "The price of a single ticket in crowns."
TOOL = {
    "type": "function",
    "function": {
        "name": TOOL_NAME,
        "description": TOOL_TEXT,
        "parameters": {
            "type": "object",
            "properties": {"harbour": {"type": "string"}},
            "required": ["harbour"],
            "additionalProperties": False,
        },
    },
}
REPLIES = (
    Reply(tool=TOOL_NAME, arguments={"harbour": "Ormm"}),
    Reply(tool=TOOL_NAME, arguments={"harbour": "Orm"}),
    Reply(text="Two adults pay 48 crowns for the way there and back."),
)
WRONG_MODEL = "harbour-9"


def ticket_price(harbour: str) -> str:
    """The price of a single ticket in crowns."""
    if harbour != "Orm":
        raise ValueError(f"no harbour is called {harbour!r}")
    return "48"


def converse(ask: Callable[[list[Any]], Any], price: Callable[[str], str] = ticket_price) -> str:
    """The conversation by hand, for tools that trace the client alone: `ask(messages)` is one chat completion."""
    messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": QUESTION}]
    while True:
        message = ask(messages).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        (call,) = message.tool_calls
        try:
            result = price(json.loads(call.function.arguments)["harbour"])
        except ValueError as error:
            result = f"Error: {error}"
        messages += [message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": result}]
