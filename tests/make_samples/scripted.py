"""A model that says what its script says, and the short prompts that the sample agents are given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import smolagents
from smolagents import ChatMessage, Model
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage


@dataclass(frozen=True)
class Call:
    """A reply that is a tool call, with the thought written before it, if any."""

    name: str
    arguments: dict[str, Any]
    thought: str | None = None


Reply = str | Call


class ScriptedModel(Model):
    """Gives its replies in order. It ignores stop sequences, and counts four characters as a token."""

    def __init__(self, replies: Sequence[Reply], *, label: str) -> None:
        super().__init__(model_id="scripted/harbour-1")
        self.replies, self.label, self.said = list(replies), label, 0

    def generate(
        self,
        messages: list[ChatMessage],
        stop_sequences: list[str] | None = None,
        response_format: dict[str, str] | None = None,
        tools_to_call_from: list[Any] | None = None,
        **kwargs: Any,
    ) -> ChatMessage:
        if self.said == len(self.replies):
            raise IndexError(f"the script of {self.label} has only {self.said} replies")
        reply = self.replies[self.said]
        self.said += 1
        content = reply.thought if isinstance(reply, Call) else reply
        calls = [self._tool_call(reply)] if isinstance(reply, Call) else None
        written = f"{content or ''}{calls[0].function.arguments if calls else ''}"
        read = "".join(str(message.content) for message in messages)
        return ChatMessage(
            role=MessageRole.ASSISTANT,
            content=content,
            tool_calls=calls,
            token_usage=TokenUsage(input_tokens=len(read) // 4 + 1, output_tokens=len(written) // 4 + 1),
        )

    def _tool_call(self, reply: Call) -> ChatMessageToolCall:
        return ChatMessageToolCall(
            function=ChatMessageToolCallFunction(
                name=reply.name, arguments=json.dumps(reply.arguments, ensure_ascii=False)
            ),
            id=f"call_{self.label}_{self.said:02d}",
            type="function",
        )

    def assert_all_said(self) -> None:
        if self.said != len(self.replies):
            raise AssertionError(f"{self.label} said {self.said} of {len(self.replies)} replies")


# The instrumentation wraps only models that it finds in the namespace of smolagents.
smolagents.ScriptedModel = ScriptedModel  # type: ignore[attr-defined]

_TOOLS = "{% for tool in tools.values() %}- {{ tool.name }}: {{ tool.description }}\n{% endfor %}"
_TEAM = "{% for agent in managed_agents.values() %}- {{ agent.name }}(task): {{ agent.description }}\n{% endfor %}"
_PLANNING = {
    "initial_plan": (
        "Write down which facts you know and which you must look up, then a plan in numbered steps. "
        f"Use the heading '## Plan'. After the last step write <end_plan>.\nTools:\n{_TOOLS}Team:\n{_TEAM}"
        "Task:\n{{task}}"
    ),
    "update_plan_pre_messages": "You are working on this task:\n{{task}}\nThis is what has happened so far:",
    "update_plan_post_messages": (
        "Write which facts you know by now, then a new plan in numbered steps under the heading '## Plan'. "
        "You have {{remaining_steps}} steps left. After the last step write <end_plan>."
    ),
}
_MANAGED = {
    "task": (
        "You're a helpful agent named '{{name}}'. Your manager gives you this task:\n---\n{{task}}\n---\n"
        "Give your findings with final_answer, and say from which document each comes."
    ),
    "report": "Here is the final answer from your managed agent '{{name}}':\n{{final_answer}}",
}
_FINAL = {
    "pre_messages": "An agent ran out of steps. Give the answer in its place. This is its memory:",
    "post_messages": "From what stands above, answer this task:\n{{task}}",
}
CODE_PROMPTS = {
    "system_prompt": (
        "You solve a task in steps. In each step write a line 'Thought:' and then Python code between "
        "{{code_block_opening_tag}} and {{code_block_closing_tag}}. What the code prints is shown to you. "
        f"End with final_answer(...).\nTools:\n{_TOOLS}"
        f"{{% if managed_agents %}}Team, called like a function:\n{_TEAM}{{% endif %}}"
    ),
    "planning": _PLANNING,
    "managed_agent": _MANAGED,
    "final_answer": _FINAL,
}
CALL_PROMPTS = {
    "system_prompt": (
        "You search the harbour library. In each step make one tool call. Never make a call again that you have "
        f"already made. End with final_answer.\nTools:\n{_TOOLS}"
    ),
    "planning": _PLANNING,
    "managed_agent": _MANAGED,
    "final_answer": _FINAL,
}
