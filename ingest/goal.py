"""What the user asked and what the system answered, where the source does not say it in so many words."""

from __future__ import annotations

from collections.abc import Sequence

from tracejury.ingest.conventions.message_json import read_message
from tracejury.ingest.parse import inner_json, json_text
from tracejury.ingest.trace import Json, Message, Span

_TASK_KEYS = ("task", "query", "question", "input", "prompt", "instruction")
_FINAL_TOOLS = frozenset({"final_answer", "FinalAnswerTool"})


def derive_goal(spans: Sequence[Span], messages: Sequence[Message]) -> str | None:
    """The task of the topmost agent, else the first thing a user said to a model, else the input of the root."""
    agents = topmost_agents(spans)
    for agent in agents[:1]:
        task = _task(agent.input) or _said_by_user(agent, messages)
        if task is not None:
            return task
    for span in spans:
        if span.kind == "LLM" and (said := _said_by_user(span, messages)) is not None:
            return said
    return _task(spans[0].input) if spans else None


def derive_final_answer(spans: Sequence[Span], messages: Sequence[Message]) -> str | None:
    """The output of the topmost agent, else the argument of its last final-answer tool, else of the last model call.

    An agent that failed has no output: then what it handed to the tool is the answer. The last words of a
    model count only where the run ended well and its root is in the trace; else None.
    """
    agents = topmost_agents(spans)
    agent = agents[0] if len(agents) == 1 else None
    if agent is not None and (said := _output(agent, messages)) is not None:
        return said
    for span in reversed(spans):
        of_agent = agent is None or span.agent in (agent.agent, None)
        if span.kind == "TOOL" and span.tool_name in _FINAL_TOOLS and of_agent:
            answer = _final_argument(span.tool_arguments)
            if answer is not None:
                return answer
    if not spans or spans[0].parent_span_id is not None or "ERROR" in (spans[0].status, agent and agent.status):
        return None
    of_agents = _output(agents[-1], messages) if agents else None
    return _output(spans[0], messages) or of_agents or _last_words(spans, messages)


def topmost_agents(spans: Sequence[Span]) -> list[Span]:
    """The AGENT spans of the least depth, in reading order: one as a rule, several where a graph has agent nodes."""
    agents = [span for span in spans if span.kind == "AGENT"]
    least = min((span.depth for span in agents), default=0)
    return [span for span in agents if span.depth == least]


def _task(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    held = inner_json(text)
    if not isinstance(held, dict):
        return text
    for key in _TASK_KEYS:
        value = held.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return _last_user(held.get("messages"))


def _last_user(messages: Json) -> str | None:
    """The user's text in a `messages` list of an agent's input: `["user", text]` or role and content."""
    if not isinstance(messages, list):
        return None
    for item in messages:
        if isinstance(item, list) and len(item) == 2 and item[0] in ("user", "human") and isinstance(item[1], str):
            return item[1]
        if isinstance(item, dict) and item.get("role", item.get("type")) in ("user", "human"):
            content = item.get("content")
            return content if isinstance(content, str) else None
    return None


def _said_by_user(span: Span, messages: Sequence[Message]) -> str | None:
    for position in span.input_messages:
        message = messages[position]
        if message.role in ("user", "human") and message.content:
            return message.content
    return None


def _output(span: Span, messages: Sequence[Message]) -> str | None:
    if span.output is not None:
        return _last_said(span.output) or span.output
    for position in reversed(span.output_messages):
        if messages[position].content:
            return messages[position].content
    return None


def _last_said(text: str) -> str | None:
    """The last message that an output of messages holds, as a graph's state has it."""
    held = inner_json(text) if '"messages"' in text else None
    messages = held.get("messages") if isinstance(held, dict) else None
    for item in reversed(messages if isinstance(messages, list) else []):
        said = read_message(item)
        if said is not None and said.message.content:
            return said.message.content
    return None


def _last_words(spans: Sequence[Span], messages: Sequence[Message]) -> str | None:
    """The text of the last model call, unless it ends by calling a tool."""
    calls = [span for span in spans if span.kind == "LLM"]
    if not calls:
        return None
    last = max(calls, key=lambda span: (span.start_time or 0, span.seq))
    said = [messages[position] for position in last.output_messages]
    return None if any(message.tool_calls for message in said) else _output(last, messages)


def _final_argument(arguments: str | None) -> str | None:
    """The answer in `{"args": [answer], "kwargs": {"answer": answer}}` or in the bare arguments."""
    held = inner_json(arguments or "")
    if not isinstance(held, dict):
        return arguments
    args, named = held.get("args"), held.get("kwargs")
    if isinstance(named, dict) and "answer" in named:
        return _as_text(named["answer"])
    if isinstance(args, list) and args:
        return _as_text(args[0])
    return _as_text(held["answer"]) if "answer" in held else None


def _as_text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
