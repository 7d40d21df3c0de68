"""What the user asked and what the agent answered, in words, where the source does not say it in so many words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tracejury.ingest.conventions.message_json import read_message, read_turn
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.leftovers import decisions_of
from tracejury.ingest.parse import closed_json, json_text, unquoted
from tracejury.ingest.trace import Json, Message, Span

_TASK_KEYS = (
    "task", "query", "question", "input", "prompt", "instruction", "user_prompt", "user_input", "user_message",
    "new_message", "message", "request", "text", "content", "q", "topic", "input_value", "chat_input", "inputs",
    "kwargs", "args",
)  # fmt: skip
_ANSWER_KEYS = (
    "final_answer", "final_output", "answer", "output", "response", "result", "message", "text", "content", "reply",
    "replies", "raw", "outputs", "choices", "candidates", "generations", "return_values", "completion", "summary",
    "data", "value",
)  # fmt: skip
_FINAL_TOOLS = frozenset({"final_answer", "FinalAnswerTool"})
_DEEPEST = 8
_MARKED = re.compile(r"\[\[ ## (\w+) ## \]\]\n(.+?)(?=\n\n(?:\[\[ ##|Respond with)|\Z)", re.DOTALL)
"""A field in a message of DSPy."""
_MEDIA = re.compile(
    r"\n?\[(?:image|audio|video|file|document)\b[^\]\n]*(?:sha256 [0-9a-f]{64}|, at [^\]\n]+)\]", re.ASCII
)
"""What stands for a picture or a file among words."""


class Words(NamedTuple):
    """A goal or an answer in words; without them the reason why there are none, where one can be told."""

    text: str | None
    reason: str | None = None


def without_media(text: str | None) -> str | None:
    """Words without what stands for pictures and files among them; as they are where nothing else is left."""
    words, count = _MEDIA.subn("", text or "")
    return words.strip("\n") if count and words.strip() else text


def derive_goal(spans: Sequence[Span], messages: Sequence[Message]) -> Words:
    """What the user asked, in words without the files that came with it."""
    words = _goal(spans, messages)
    return words._replace(text=without_media(words.text))


def _goal(spans: Sequence[Span], messages: Sequence[Message]) -> Words:
    """The task of the topmost agent, else the first thing a user words to a model, else the input of the root."""
    agents = topmost_agents(spans)
    for agent in agents[:1]:
        task = _task(agent.input) or _said_by_user(agent, messages)
        if task is not None:
            return Words(task)
    for span in spans:
        if span.kind == "LLM" and (words := _said_by_user(span, messages)) is not None:
            return Words(words)
    root = spans[0] if spans else None
    for span in (*agents[:1], *spans[:1]):
        if (question := _question_within(opened(span.output or ""))) is not None:
            return Words(question)
    text = root.input if root is not None and root.input else agents[0].input if agents else None
    task = _task(text)
    if task is None and text and text.strip():
        return Words(None, "the first input is data in which no known field holds the user's request")
    return Words(task)


_HELPERS = frozenset({"TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR"})
"""Kinds of a first span that answers a program and not the user, where a model is called after it."""


def derive_final_answer(spans: Sequence[Span], messages: Sequence[Message]) -> Words:
    """The output of the topmost agent, else the argument of its last final-answer tool, else of the last model call.

    An agent that failed has no output: then what it handed to the tool is the answer. The last words of a
    model count only where the execution ended well and its root is in the trace; else there are none.
    """
    agents = topmost_agents(spans)
    agent = agents[0] if len(agents) == 1 else None
    if agent is not None and (words := _output(agent, messages)) is not None:
        return Words(words)
    for span in reversed(spans):
        of_agent = agent is None or span.agent in (agent.agent, None)
        if span.kind == "TOOL" and span.tool_name in _FINAL_TOOLS and of_agent:
            answer = _final_argument(span.tool_arguments)
            if answer is not None:
                return Words(answer)
    if not spans or spans[0].parent_span_id is not None or "ERROR" in (spans[0].status, agent and agent.status):
        return Words(None)
    of_agents = _output(agents[-1], messages) if agents else None
    is_helper = spans[0].kind in _HELPERS and any(span.kind == "LLM" for span in spans)
    own = None if is_helper else _output(spans[0], messages)
    answer = own or of_agents or _last_words(spans, messages)
    if answer is None and not is_helper and spans[0].output and spans[0].output.strip():
        return Words(None, "the last output is data in which no known field holds the answer")
    return Words(answer)


def topmost_agents(spans: Sequence[Span]) -> list[Span]:
    """The AGENT spans of the least depth, in reading order: one as a rule, several where a graph has agent nodes."""
    agents = [span for span in spans if span.kind == "AGENT"]
    least = min((span.depth for span in agents), default=0)
    return [span for span in agents if span.depth == least]


def _task(text: str | None) -> str | None:
    if text is None or not text.strip():
        return None
    return _words(text, _TASK_KEYS, last=False)


def _question_within(value: Json, depth: int = 0) -> str | None:
    """The first words of a user in messages that stand anywhere in an output, as a crew's result holds them."""
    if depth > _DEEPEST or not isinstance(value, (dict, list)):
        return None
    messages = value.get("messages") if isinstance(value, dict) else None
    if isinstance(messages, list):
        return _of_list(messages, _TASK_KEYS, last=False, depth=depth)
    inner = value.values() if isinstance(value, dict) else value
    return next((question for item in inner if (question := _question_within(item, depth + 1)) is not None), None)


def _words(value: Json, keys: Sequence[str], *, last: bool, depth: int = 0) -> str | None:
    """The words in a value that may wrap them in JSON: of a user's first message, or of the last one (`last`)."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, str):
        content = opened(unquoted(value))
        cut = closed_json(content) if isinstance(content, str) else None
        if not isinstance(content, str) or cut is not None:
            return _words(content if cut is None else cut, keys, last=last, depth=depth + 1)
        marked = _MARKED.match(content)
        return (marked[2].strip() if marked and marked[1] in keys else content) if content.strip() else None
    if isinstance(value, list):
        return _of_list(value, keys, last=last, depth=depth)
    return _of_object(value, keys, last=last, depth=depth) if isinstance(value, dict) else None


def _of_list(values: list[Json], keys: Sequence[str], *, last: bool, depth: int) -> str | None:
    """Of a list of messages the user's first or the last with words; of a list of one, that one's words."""
    turns = [read_turn(item) for item in values]
    conversation = [parsed.message for turn in turns if turn is not None for parsed in turn]
    if conversation:
        messages = [message for message in conversation if _counts(message, last=last)]
        message = None if not messages else messages[-1] if last else messages[0]
        return None if message is None else message.content
    if len(values) == 1 or (last and values and isinstance(values[-1], dict)):
        return _words(values[-1], keys, last=last, depth=depth + 1)
    texts = [text for value in values if isinstance(value, dict) and isinstance(text := value.get("text"), str)]
    return "\n".join(texts) if texts and len(texts) == len(values) else None


def _counts(message: Message, *, last: bool) -> bool:
    if not message.content or message.tool_call_id is not None:
        return False
    return message.role not in ("user", "system", "developer", "tool") if last else message.role == "user"


def _of_object(value: dict[str, Json], keys: Sequence[str], *, last: bool, depth: int) -> str | None:
    parsed = read_message(value)
    if parsed is not None and parsed.message.content is not None:
        content = parsed.message.content
        return _words(content, keys, last=last, depth=depth + 1) or content
    for key in (*keys[:6], "messages", "contents", *keys[6:]):
        if value.get(key) not in (None, "", [], {}) and (words := _words(value[key], keys, last=last, depth=depth + 1)):
            return words
    return (_lines(value) if last else None) or _only_text(value)


def _only_text(value: dict[str, Json]) -> str | None:
    """The words of an object that holds one text in all, ids and the like aside."""
    texts = list(decisions_of(value))
    return texts[0] if len(texts) == 1 else None


def _lines(value: dict[str, Json]) -> str | None:
    """An answer of named facts (a structured output), a line each."""
    if len(value) < 2 or any(isinstance(item, (dict, list)) for item in value.values()):
        return None
    return "\n".join(f"{key}: {item if isinstance(item, str) else json_text(item)}" for key, item in value.items())


def _said_by_user(span: Span, messages: Sequence[Message]) -> str | None:
    for position in span.input_messages:
        message = messages[position]
        if message.role in ("user", "human") and message.content and message.tool_call_id is None:
            return _words(message.content, _TASK_KEYS, last=False) or message.content
    return None


def _output(span: Span, messages: Sequence[Message]) -> str | None:
    if span.output is not None and not (span.output_messages and span.kind == "LLM"):
        return _words(span.output, _ANSWER_KEYS, last=True)
    for position in reversed(span.output_messages):
        content = messages[position].content
        if content:
            return _words(content, _ANSWER_KEYS, last=True) or content
    return None


def _last_words(spans: Sequence[Span], messages: Sequence[Message]) -> str | None:
    """The text of the last model call, unless it ends by calling a tool."""
    calls = [span for span in spans if span.kind == "LLM"]
    if not calls:
        return None
    last = max(calls, key=lambda span: (span.start_time or 0, span.seq))
    answers = [messages[position] for position in last.output_messages]
    return None if any(message.tool_calls for message in answers) else _output(last, messages)


def _final_argument(arguments: str | None) -> str | None:
    """The answer in `{"args": [answer], "kwargs": {"answer": answer}}` or in the bare arguments."""
    content = opened(arguments or "")
    if not isinstance(content, dict):
        return arguments
    args, named = content.get("args"), content.get("kwargs")
    if isinstance(named, dict) and "answer" in named:
        return _as_text(named["answer"])
    if isinstance(args, list) and args:
        return _as_text(args[0])
    return _as_text(content["answer"]) if "answer" in content else None


def _as_text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
