"""Who answers the questions of an execution: a model through litellm or a script, within pace, budget and retries."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.values import sequence, whole
from tracejury.ingest.parse import json_text
from tracejury.ingest.trace import Json
from tracejury.judging.gaia2.environment import Gaia2Error
from tracejury.judging.judges.model import FATAL, RETRIED, LitellmModel, ModelError, ModelReply, Prices
from tracejury.judging.judges.trace_text import estimate_tokens

SCRIPT = "script:"
ATTEMPTS = 5
_ANSWER_TOKENS = 4_000  # what an answer may take where max_tokens is not set: for the budget

Messages = Sequence[Mapping[str, Json]]


class Chat(Protocol):
    """A model that answers messages. Raises `ModelError`."""

    def __call__(self, messages: Messages, parameters: Mapping[str, Json]) -> ModelReply: ...


@dataclass(kw_only=True)
class Spending:
    """What all executions together have spent, and how much they may. Used by the threads of all executions.

    A call under way counts with the most that it can cost, so that executions side by side stay within the limit too.
    """

    limit_usd: float | None = None
    spent_usd: float = 0.0
    _under_way_usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reserve(self, most_usd: float) -> bool:
        """Whether a call that costs at most so much may be made; if so, it counts from now on."""
        with self._lock:
            if self.limit_usd is not None and self.spent_usd + self._under_way_usd + most_usd > self.limit_usd:
                return False
            self._under_way_usd += most_usd
            return True

    def settle(self, most_usd: float, usd: float | None) -> None:
        """The call is over and cost so much (None: not known, or nothing)."""
        with self._lock:
            self._under_way_usd -= most_usd
            self.spent_usd += usd or 0.0


@dataclass(kw_only=True)
class Answerer:
    """Answers the questions of one execution as JSON documents, and counts tokens, cost and dropped parameters."""

    agent: Chat
    judge: Chat | None
    parameters: Mapping[str, Json]
    judge_parameters: Mapping[str, Json] = field(default_factory=lambda: {"temperature": 0.0})
    prices: Prices | None = None
    judge_prices: Prices | None = None
    spending: Spending = field(default_factory=Spending)
    sleep: Callable[[float], None] = time.sleep
    tokens: int = 0
    judge_tokens: int = 0
    cost_usd: float = 0.0
    dropped: set[str] = field(default_factory=set)
    judge_dropped: set[str] = field(default_factory=set)
    calls: int = 0
    errors: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self, question: Mapping[str, Json]) -> dict[str, Json]:
        """The answer to a question of the worker; `end` tells it to end the execution, with a status."""
        is_judge = question.get("ask") == "judge"
        chat = self.judge if is_judge else self.agent
        if chat is None:
            return {"end": "judge_failed", "error": "no judge was named"}
        messages = [object_in(item) for item in sequence(question.get("messages"))]
        parameters = dict(self.judge_parameters if is_judge else self.parameters)
        if stop := question.get("stop"):
            parameters["stop"] = stop
        most = self._most_usd(messages, is_judge=is_judge)
        if not self.spending.reserve(most):
            problem = f"the budget of ${self.spending.limit_usd:.4f} does not cover another call"
            return {"end": "stopped", "error": problem}
        self.calls += not is_judge
        cost: float | None = None
        try:
            reply = self._ask(chat, messages, parameters, self.judge_dropped if is_judge else self.dropped)
            cost = self._cost_of(reply, is_judge=is_judge)
        except ModelError as error:
            if not is_judge:
                self.errors.append(error.message)
            fatal = "judge_failed" if is_judge else "setup_failed"
            return {"error": error.message, **({"end": fatal} if error.kind in FATAL else {})}
        finally:
            self.spending.settle(most, cost)
        return self._counted(reply, cost, is_judge=is_judge)

    def _ask(self, chat: Chat, messages: Messages, parameters: dict[str, Json], dropped: set[str]) -> ModelReply:
        """The reply, asked for again after errors that pass; a parameter that the provider refuses is left out."""
        attempt = 0
        while True:
            try:
                return chat(messages, {name: value for name, value in parameters.items() if name not in dropped})
            except ModelError as error:
                if error.kind == "rejected_parameter" and error.parameter and error.parameter not in dropped:
                    dropped.add(error.parameter)
                    continue
                attempt += 1
                if error.kind not in RETRIED or attempt >= ATTEMPTS:
                    raise
                self.sleep(min(60.0, 2.0**attempt) if error.retry_after_s is None else error.retry_after_s)

    def _most_usd(self, messages: Messages, *, is_judge: bool) -> float:
        """The most that a call can cost, 0 where there is no budget to hold."""
        prices = self.judge_prices if is_judge else self.prices
        if self.spending.limit_usd is None or prices is None:
            return 0.0
        limit = None if is_judge else self.parameters.get("max_tokens")
        answer = limit if isinstance(limit, int) else _ANSWER_TOKENS
        sent = sum(estimate_tokens(json_text(dict(message)) or "") for message in messages)
        return prices.cost(prompt=sent, completion=answer)

    def _cost_of(self, reply: ModelReply, *, is_judge: bool) -> float | None:
        prices = self.judge_prices if is_judge else self.prices
        return reply.cost_usd if prices is None or reply.cost_usd is not None else prices.cost_of(reply)

    def _counted(self, reply: ModelReply, cost: float | None, *, is_judge: bool) -> dict[str, Json]:
        total = (reply.prompt_tokens or 0) + (reply.completion_tokens or 0)
        with self._lock:
            self.cost_usd += cost or 0.0
            if is_judge:
                self.judge_tokens += total
            else:
                self.tokens += total
        usage: dict[str, Json] = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
        }
        return {"text": reply.text, "usage": usage, "seconds": reply.latency_s, "cost_usd": cost}


class LitellmChat:
    """A model through litellm; its coroutines run on one loop of one thread, since clients belong to a loop."""

    def __init__(self, model: LitellmModel) -> None:
        self._model = model

    def __call__(self, messages: Messages, parameters: Mapping[str, Json]) -> ModelReply:
        return _wait_for(self._model.chat(messages, parameters))


class ScriptChat:
    """Replies from a JSON list, in order and the last again and again; each execution has its own place in it.

    An item is a text, or an object: `text` with `usage`, or `error` with `kind`, or `hang` (seconds before an error).
    `{{name}}` in a text is the last value of that name in the messages, such as an id that the environment gave.
    """

    def __init__(self, replies: Sequence[Json]) -> None:
        self._replies = list(replies)
        self._next = 0
        self._lock = threading.Lock()

    def __call__(self, messages: Messages, parameters: Mapping[str, Json]) -> ModelReply:
        with self._lock:
            item = self._replies[min(self._next, len(self._replies) - 1)]
            self._next += 1
        if isinstance(item, str):
            item = _filled(item, messages)
            size = sum(len(str(message.get("content"))) for message in messages)
            return ModelReply(
                text=item, prompt_tokens=size // 4 + 1, completion_tokens=len(item) // 4 + 1, latency_s=1.0
            )
        content = object_in(item)
        if "hang" in content:
            time.sleep(float(str(content["hang"])))
            raise ModelError("timeout", "the script hung")
        if "error" in content:
            kind: Any = content.get("kind") or "bad_request"
            raise ModelError(kind, str(content["error"]))
        usage = object_in(content.get("usage"))
        return ModelReply(
            text=str(content.get("text", "")),
            prompt_tokens=whole(usage.get("prompt_tokens")),
            completion_tokens=whole(usage.get("completion_tokens")),
            latency_s=1.0,
        )


def _filled(text: str, messages: Messages) -> str:
    """The text with each `{{name}}` as the messages last gave it: `name='value'` or `"name": "value"`."""
    prompt = "\n".join(str(message.get("content")) for message in messages)

    def value(hole: re.Match[str]) -> str:
        values = re.findall(rf"\b{re.escape(hole[1])}[\"']?\s*[=:]\s*[\"']([^\"']+)[\"']", prompt)
        return values[-1] if values else hole[0]

    return re.sub(r"\{\{(\w+)\}\}", value, text)


def is_script(model: str) -> bool:
    return model.startswith(SCRIPT)


def script_replies(model: str) -> list[Json]:
    """The replies of a script. Raises `Gaia2Error` for a file that holds none."""
    file = Path(model.removeprefix(SCRIPT))
    try:
        replies = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Gaia2Error(f"{file} cannot be read as a script: {error}. Try: a JSON list of replies") from error
    if not isinstance(replies, list) or not replies:
        raise Gaia2Error(f"{file} holds no replies. Try: a JSON list of texts")
    return replies


def model_label(model: str) -> str:
    """The model's name in traces: of a script its file's name, no path."""
    return f"{SCRIPT}{Path(model.removeprefix(SCRIPT)).stem}" if is_script(model) else model


def script_digest(*models: str | None) -> str:
    """A digest of the replies of those models that are scripts; empty without any."""
    replies = [script_replies(model) for model in models if model is not None and is_script(model)]
    return hashlib.sha256(json.dumps(replies).encode()).hexdigest()[:16] if replies else ""


def make_chat(model: str, *, api_base: str | None, timeout_s: float) -> Callable[[], Chat]:
    """How to get the model for one execution: a script starts anew in each."""
    if is_script(model):
        replies = script_replies(model)
        return lambda: ScriptChat(replies)
    chat = LitellmChat(LitellmModel(name=model, api_base=api_base, timeout_s=timeout_s))
    return lambda: chat


_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _wait_for(call: Coroutine[Any, Any, ModelReply]) -> ModelReply:
    global _loop
    with _loop_lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="models", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(call, _loop).result()
