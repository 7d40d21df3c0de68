"""The way to a language model: requests, replies, errors by kind, and the litellm adapter (its only importer).

A model is any `async` function from `ModelRequest` to `ModelReply` that raises `ModelError`; tests use plain
functions. litellm takes seconds to import, so it is imported at the first use (`warm` does it ahead).
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cache, wraps
from typing import Any, Literal, Protocol

from tracejury.ingest.trace import Json
from tracejury.judging.judges.prompt import Prompt
from tracejury.judging.judges.reply import Form
from tracejury.judging.judges.trace_text import estimate_tokens
from tracejury.judging.judges.wrapping import refusal_of_parts, text_of_parts

ErrorKind = Literal[
    "rate_limit",
    "transient",
    "timeout",
    "auth",
    "no_model",
    "too_long",
    "refused",
    "rejected_form",
    "rejected_parameter",
    "bad_request",
    "unanswered",
]
RETRIED: frozenset[ErrorKind] = frozenset({"rate_limit", "transient", "timeout"})
FATAL: frozenset[ErrorKind] = frozenset({"auth", "no_model"})
"""Kinds that no further call of the run could escape: the run stops."""

DEFAULT_TIMEOUT_S = 600.0
TOOL_NAME = "give_verdict"
_REJECTS = re.compile(
    r"unsupported|not support|does not accept|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|"
    r"extra inputs|deprecated|only the default",
    re.IGNORECASE,
)
_FORM_WORDS = re.compile(
    r"response_format|json_schema|json schema|structured output|output_format|output_config|grammar|tool_choice|"
    r"\btools?\b|function call",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)|maximum context|too many (?:input )?tokens|(?:prompt|input) is too long|"
    r"exceeds? the (?:model's )?(?:maximum|context)",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"missing [\w ]{0,40}(?:credentials|api[ _]key)", re.IGNORECASE)
_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "InvalidURL"})
_STATUS_ERRORS = frozenset({"HTTPStatusError", "MaskedHTTPStatusError", "APIStatusError"})
_BY_A_GATEWAY = frozenset({499, 502, 504, 520, 524})  # it gave up on a model that may still have answered
_OPENAI_BATCHES = ("openai", "azure", "hosted_vllm", "litellm_proxy")


class ModelError(Exception):
    """A call that gave no reply. `retry_after_s` as the provider said; `parameter` is the one it rejected.

    `is_unknown`: the request went out and no answer came that could be read, so the provider may have answered it, and
    charged for it.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after_s: float | None = None,
        parameter: str | None = None,
        is_unknown: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.is_unknown = is_unknown or kind == "timeout"
        self.message, self.retry_after_s, self.parameter = message, retry_after_s, parameter


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """A further turn after the prompt: the judge's unreadable reply, and what is asked of it."""

    role: Literal["assistant", "user"]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """One call. `parameters` holds only what the user set; `share_prefix` says that further calls share it."""

    prompt: Prompt
    form: Form
    schema: Mapping[str, Any]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    share_prefix: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelReply:
    """What came back. Token counts and cost (US dollars) are None where unknown, never 0 for unknown.

    `reasoning`: the thoughts that the provider sent beside the answer.
    """

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    attempts: int = 1


class Model(Protocol):
    """What judges need of a model."""

    async def __call__(self, request: ModelRequest, /) -> ModelReply: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """US dollars per token. Without cache or batch prices those tokens cost as uncached, unbatched ones do."""

    prompt: float
    completion: float
    cache_read: float | None = None
    cache_write: float | None = None
    batch_prompt: float | None = None
    batch_completion: float | None = None

    def __post_init__(self) -> None:
        prices = {"prompt": self.prompt, "completion": self.completion, "cache_read": self.cache_read}
        for name, price in prices.items():
            if price is not None and not 0 <= price < float("inf"):
                raise ValueError(f"the price of {name} tokens must be 0 or more, not {price}")

    def cost(
        self, *, prompt: int, completion: int, cached: int = 0, cache_write: int = 0, batch: bool = False
    ) -> float:
        """The cost of one call; `prompt` counts all prompt tokens, cached and written ones included."""
        if batch:
            each, per_answer = self.batch_prompt, self.batch_completion
            half = (self.prompt if each is None else each, self.completion if per_answer is None else per_answer)
            return prompt * half[0] + completion * half[1]
        read = self.prompt if self.cache_read is None else self.cache_read
        written = self.prompt if self.cache_write is None else self.cache_write
        plain = max(prompt - cached - cache_write, 0)
        return plain * self.prompt + cached * read + cache_write * written + completion * self.completion

    def cost_of(self, reply: ModelReply, *, batch: bool = False) -> float | None:
        """The cost of a reply by its recorded usage; None where the provider reported none."""
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return None
        return self.cost(
            prompt=reply.prompt_tokens,
            completion=reply.completion_tokens,
            cached=reply.cached_tokens or 0,
            cache_write=reply.cache_write_tokens or 0,
            batch=batch,
        )


def read_prices(text: str) -> Prices:
    """`INPUT,OUTPUT[,CACHED]` in US dollars per million tokens, as price lists give them. Raises ValueError."""
    try:
        prices = [float(part) for part in text.split(",")]
    except ValueError:
        prices = []
    if len(prices) not in {2, 3}:
        raise ValueError(f"a price is INPUT,OUTPUT or INPUT,OUTPUT,CACHED in US$ per million tokens, not {text!r}")
    prompt, completion, *cached = (price / 1e6 for price in prices)
    return Prices(prompt=prompt, completion=completion, cache_read=cached[0] if cached else None)


def messages_of(request: ModelRequest, *, marks_cache: bool = False) -> list[dict[str, Any]]:
    """The chat messages of a request; with `marks_cache` the shared prefix is a part of its own, marked as such."""
    prompt = request.prompt
    content: Any = prompt.prefix + prompt.suffix
    if marks_cache and request.share_prefix and prompt.prefix:
        content = [
            {"type": "text", "text": prompt.prefix, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": prompt.suffix},
        ]
    opening = [{"role": "system", "content": prompt.system}, {"role": "user", "content": content}]
    return [*opening, *({"role": turn.role, "content": turn.text} for turn in request.turns)]


def form_arguments(request: ModelRequest) -> dict[str, Any]:
    """How the form of the answer is asked for in OpenAI's terms, which litellm translates."""
    if request.form == "json":
        schema = {"name": "verdict", "strict": True, "schema": dict(request.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    if request.form == "tool":
        function = {"name": TOOL_NAME, "description": "Give the verdict.", "parameters": dict(request.schema)}
        choice = {"type": "function", "function": {"name": TOOL_NAME}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}
    return {}


@dataclass(frozen=True, kw_only=True)
class LitellmModel:
    """A model by litellm's name, e.g. `anthropic/claude-sonnet-4-5`, `ollama/qwen3`, `openai/x` with `api_base`."""

    name: str
    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S
    prices: Prices | None = None

    async def __call__(self, request: ModelRequest) -> ModelReply:
        """One call, never retried here. Raises `ModelError`, whatever the provider or litellm raise."""
        messages = messages_of(request, marks_cache=marks_cache(self.name))
        return await self._complete(messages, form_arguments(request), request.parameters)

    async def chat(self, messages: Sequence[Mapping[str, Json]], parameters: Mapping[str, Json]) -> ModelReply:
        """One call with these very messages, such as an agent's; never retried here. Raises `ModelError`."""
        return await self._complete([dict(message) for message in messages], {}, parameters)

    async def _complete(
        self, messages: Sequence[Mapping[str, Any]], form: Mapping[str, Any], parameters: Mapping[str, Json]
    ) -> ModelReply:
        litellm = await _loaded()
        started = time.monotonic()
        arguments = {
            "model": self.name,
            "messages": messages,
            "timeout": self.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            **self._place(),
            **form,
            **parameters,
        }
        try:
            async with asyncio.timeout(self.timeout_s):  # a body that trickles in never meets the client's own limit
                response = await litellm.acompletion(**arguments)
        except TimeoutError as error:
            raise ModelError("timeout", f"no answer within {self.timeout_s:g} s") from error
        except Exception as error:
            raise classify(error, parameters) from error
        reply = read_response(response, latency_s=time.monotonic() - started)
        return _with_cost(reply, self._cost(litellm, response, reply))

    def _place(self) -> dict[str, Any]:
        return {
            **({} if self.api_base is None else {"api_base": self.api_base}),
            **({} if self.api_key is None else {"api_key": self.api_key}),
        }

    def _cost(self, litellm: Any, response: Any, reply: ModelReply) -> float | None:
        if self.prices is not None:
            return self.prices.cost_of(reply)
        if reply.prompt_tokens is None or not _facts(self.name):
            return None
        try:
            return float(litellm.completion_cost(completion_response=response, model=self.name))
        except Exception:  # litellm raises various types for a model whose price it does not know
            return None

    # batches ----------------------------------------------------------------------------------------------------

    async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str:
        """Hand over requests by name as one provider batch; returns the batch's id. Raises `ModelError`."""
        litellm = await _loaded()
        bare, provider = self._batch_provider(litellm)
        lines = [batch_line(name, bare, request) for name, request in requests.items()]
        content = b"\n".join(lines) + b"\n"
        try:
            file = await litellm.acreate_file(
                file=("requests.jsonl", content), purpose="batch", custom_llm_provider=provider, **self._place()
            )
            batch = await litellm.acreate_batch(
                completion_window="24h",
                endpoint="/v1/chat/completions",
                input_file_id=file.id,
                custom_llm_provider=provider,
                **self._place(),
            )
        except Exception as error:
            raise classify(error, {}) from error
        return str(batch.id)

    async def poll_batch(self, batch_id: str) -> dict[str, ModelReply | ModelError] | None:
        """Replies by name once the batch has ended, else None.

        Raises `ModelError` if the batch as a whole failed, and (`is_unknown`) if it could not be asked for.
        """
        litellm = await _loaded()
        _, provider = self._batch_provider(litellm)
        try:
            batch = await litellm.aretrieve_batch(batch_id=batch_id, custom_llm_provider=provider, **self._place())
            if batch.status in {"validating", "in_progress", "finalizing", "cancelling"}:
                return None
            files = [getattr(batch, name, None) for name in ("output_file_id", "error_file_id")]
            contents = [
                await litellm.afile_content(file_id=file, custom_llm_provider=provider, **self._place())
                for file in files
                if file
            ]
        except Exception as error:
            failure = classify(error, {})
            failure.is_unknown = True
            raise failure from error
        if not contents:
            raise ModelError("bad_request", f"the batch {batch_id} ended as {batch.status!r} without any answer")
        results: dict[str, ModelReply | ModelError] = {}
        for content in contents:
            results |= self._batch_results(bytes(content.content))
        return results

    def _batch_provider(self, litellm: Any) -> tuple[str, str]:
        bare, provider, _, _ = litellm.get_llm_provider(self.name)
        if provider not in _OPENAI_BATCHES:
            raise ModelError(
                "bad_request",
                f"no batch interface for {self.name!r} ({provider}); run without batch, or through one of "
                + ", ".join(_OPENAI_BATCHES),
            )
        return bare, provider

    def _batch_results(self, content: bytes) -> dict[str, ModelReply | ModelError]:
        import orjson

        results: dict[str, ModelReply | ModelError] = {}
        for line in filter(None, content.splitlines()):
            row = orjson.loads(line)
            results[row["custom_id"]] = self._batch_reply(row)
        return results

    def _batch_reply(self, row: Mapping[str, Any]) -> ModelReply | ModelError:
        response = row.get("response") or {}
        if row.get("error") or response.get("status_code") != 200:
            detail = row.get("error") or (response.get("body") or {}).get("error") or {}
            return _by_status(int(response.get("status_code") or 0), str(detail.get("message") or detail), None)
        litellm = _litellm()
        reply = read_response(litellm.ModelResponse(**response["body"]), latency_s=None)
        prices = self.prices or known_prices(self.name)
        return _with_cost(reply, None if prices is None else prices.cost_of(reply, batch=True))


def batch_line(name: str, model: str, request: ModelRequest) -> bytes:
    """One request of a batch file in OpenAI's form."""
    import orjson

    body = {"model": model, "messages": messages_of(request), **form_arguments(request), **request.parameters}
    return orjson.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})


def read_response(response: Any, *, latency_s: float | None) -> ModelReply:
    """A reply from litellm's response object; one without choices is an empty reply, paid like any other."""
    choice = response.choices[0] if response.choices else None
    message = getattr(choice, "message", None)
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return ModelReply(
        text=_answer_of(message),
        finish_reason=getattr(choice, "finish_reason", None),
        refusal=getattr(message, "refusal", None),
        reasoning=getattr(message, "reasoning_content", None) or None,
        prompt_tokens=_count(getattr(usage, "prompt_tokens", None)),
        completion_tokens=_known(usage, "completion_tokens"),
        cached_tokens=getattr(details, "cached_tokens", None),
        cache_write_tokens=getattr(usage, "cache_creation_input_tokens", None),
        latency_s=latency_s,
    )


def _answer_of(message: Any) -> str:
    """The words of a message, then the arguments of each call of the tool: a second verdict must not go unseen."""
    calls = getattr(message, "tool_calls", None) or ()
    arguments = (getattr(getattr(call, "function", None), "arguments", None) for call in calls)
    return "\n".join(filter(None, (getattr(message, "content", None), *arguments)))


def classify(error: Exception, parameters: Mapping[str, Json]) -> ModelError:
    """The kind of an error that litellm raised."""
    if isinstance(error, ModelError):
        return error
    litellm = _litellm()
    text = str(error)
    if isinstance(error, litellm.ContextWindowExceededError):
        return ModelError("too_long", text)
    if isinstance(error, litellm.ContentPolicyViolationError):
        return ModelError("refused", text)
    if isinstance(error, litellm.UnsupportedParamsError):
        return _rejection(text, None, parameters) or ModelError("bad_request", text)
    if isinstance(error, litellm.Timeout):
        return ModelError("timeout", text)
    chain = _chain(error)
    answered = _http_status(chain)
    status = getattr(error, "status_code", None) if answered is None else answered
    if answered is None and not _is_plain_refusal(status):
        return _without_status(chain, text)
    if status in {400, 422}:
        if _is_refusal(error):
            return ModelError("refused", text)
        if _TOO_LONG.search(f"{getattr(error, 'code', None)} {text}"):
            return ModelError("too_long", text)
        rejection = _rejection(text, getattr(error, "param", None), parameters)
        return rejection or ModelError("bad_request", text)
    assert isinstance(status, int)
    return _by_status(status, text, _retry_after(error))


def _without_status(chain: Sequence[BaseException], text: str) -> ModelError:
    """Of an error that no status of the provider explains: never sent, or sent and answered with what is no answer.

    A page, half a body, a connection that ended: whichever it was, the model may have done its work and be paid for.
    """
    if _names(chain) & _NOT_SENT:
        return ModelError("transient", text)
    if _NO_KEY.search(text):
        return ModelError("auth", text)
    if not any(hasattr(error, "status_code") for error in chain):  # neither litellm's nor a provider's: ours
        return ModelError("bad_request", f"{type(chain[0]).__name__}: {text}")
    return ModelError("transient", f"sent, and no answer came that can be read: {text}", is_unknown=True)


def _is_plain_refusal(status: object) -> bool:
    """Whether litellm's own status says that nothing was answered: no key, no such model, a limit, a bad request.

    422 and all from 500 on it also gives to a body that it could not read.
    """
    return isinstance(status, int) and 400 <= status < 500 and status != 422


def _by_status(status: int, text: str, retry_after_s: float | None) -> ModelError:
    kinds: dict[int, ErrorKind] = {
        401: "auth", 402: "auth", 403: "auth", 404: "no_model", 408: "timeout", 409: "transient",
        413: "too_long", 429: "rate_limit", 499: "transient", 504: "timeout",
    }  # fmt: skip
    kind: ErrorKind = kinds.get(status, "transient" if status >= 500 else "bad_request")
    if status == 429 and re.search(r"insufficient_quota|exceeded your current quota|billing", text):
        kind = "auth"  # waiting does not bring credit back
    return ModelError(kind, text, retry_after_s=retry_after_s, is_unknown=status in _BY_A_GATEWAY)


def _rejection(text: str, param: object, parameters: Mapping[str, Json]) -> ModelError | None:
    """The form or the parameter that the provider will not take; None where the error is about something else."""
    named = [
        name
        for name in sorted(parameters, key=lambda name: name != param)
        if name == param or re.search(rf"\b{re.escape(name)}\b", text)
    ]
    if named and _REJECTS.search(text):
        return ModelError("rejected_parameter", text, parameter=named[0])
    if param in {"response_format", "tools", "tool_choice"} or _FORM_WORDS.search(text):
        return ModelError("rejected_form", text)
    return None


def _chain(error: BaseException) -> list[BaseException]:
    """An error and what led to it, the first last."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < 20:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _names(chain: Iterable[BaseException]) -> set[str]:
    return {type(error).__name__ for error in chain}


def _http_status(chain: Iterable[BaseException]) -> int | None:
    """The error status that the provider answered with; None where it answered with none.

    By the name of the error, since litellm brings several HTTP clients.
    """
    for error in chain:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if type(error).__name__ in _STATUS_ERRORS and isinstance(status, int) and status >= 400:
            return status
    return None


def _is_refusal(error: Exception) -> bool:
    code = str(getattr(error, "code", None) or "")
    return "content_filter" in code or "content_policy" in code or "content management policy" in str(error)


def _retry_after(error: Exception) -> float | None:
    """Seconds from `Retry-After` (a number or a date) or `retry-after-ms`."""
    response = getattr(error, "response", None)
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(float(milliseconds) / 1000, 0.0)
        return None if value is None else max(float(value), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(str(value)).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return None


def _with_cost(reply: ModelReply, cost_usd: float | None) -> ModelReply:
    return replace(reply, cost_usd=cost_usd)


def _count(value: object) -> int | None:
    """A prompt always has tokens: 0 means that the provider did not count."""
    return value if isinstance(value, int) and value > 0 else None


def _known(usage: Any, name: str) -> int | None:
    return None if _count(getattr(usage, "prompt_tokens", None)) is None else int(getattr(usage, name, 0) or 0)


# what is known of a model, offline ------------------------------------------------------------------------------


def warm() -> None:
    """Import litellm ahead of the first call (it takes seconds); safe to run in a thread."""
    _litellm()


def marks_cache(name: str) -> bool:
    """Whether the provider caches only what is marked (Anthropic's models); others cache prefixes by themselves."""
    return "claude" in name.lower() or name.startswith("anthropic/")


def first_forms(name: str) -> tuple[Form, ...]:
    """The forms to ask for, best first: what the model rejects is not asked for again.

    Raises ValueError for a name that names no provider.
    """
    litellm = _litellm()
    try:
        bare, provider, _, _ = litellm.get_llm_provider(name)
    except litellm.BadRequestError as error:
        hint = f"name it as PROVIDER/MODEL, such as openai/{name} with the address of a server"
        raise ValueError(f"no provider is known for the model {name!r}: {hint}") from error
    known = bare in litellm.model_cost or name in litellm.model_cost
    if not known or litellm.supports_response_schema(name):
        return ("json", "tool", "template")
    parameters = litellm.get_supported_openai_params(bare, custom_llm_provider=provider) or []
    if "response_format" in parameters:
        return ("json", "tool", "template")
    return ("tool", "template") if "tools" in parameters else ("template",)


def context_limit(name: str) -> int | None:
    """Prompt tokens that the model takes; None where litellm's table does not know it."""
    info = _facts(name)
    limit = info.get("max_input_tokens") or info.get("max_tokens")
    return int(limit) if limit else None


def known_prices(name: str) -> Prices | None:
    """Public prices from litellm's own table; None for a model that it does not know."""
    info = _facts(name)
    prompt, completion = info.get("input_cost_per_token"), info.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return Prices(
        prompt=float(prompt),
        completion=float(completion),
        cache_read=_optional(info, "cache_read_input_token_cost"),
        cache_write=_optional(info, "cache_creation_input_token_cost"),
        batch_prompt=_optional(info, "input_cost_per_token_batches"),
        batch_completion=_optional(info, "output_cost_per_token_batches"),
    )


def count_tokens(name: str, text: str) -> int:
    """Tokens of a text by litellm's tokenizer for the model; our safe estimate where that fails."""
    try:
        return int(_litellm().token_counter(model=name, text=text))
    except Exception:  # a tokenizer that is not at hand, or text that it cannot take
        return estimate_tokens(text)


@cache
def _facts(name: str) -> Mapping[str, Any]:
    """What litellm's table says of a model; empty for one that it does not know."""
    litellm = _litellm()
    try:
        bare, provider, _, _ = litellm.get_llm_provider(name)
    except litellm.BadRequestError:
        return {}
    for key in (name, f"{provider}/{bare}", bare):
        info = litellm.model_cost.get(key)
        if info is not None and info.get("litellm_provider", provider) == provider:
            return dict(info)
    return {}


def _optional(info: Mapping[str, Any], key: str) -> float | None:
    value = info.get(key)
    return None if value is None else float(value)


async def _loaded() -> Any:
    """litellm, imported in a thread the first time so that the loop goes on."""
    return _litellm() if _litellm.cache_info().currsize else await asyncio.to_thread(_litellm)


@cache
def _litellm() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches prices from the network
    with _uncollected():
        import litellm
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    _take_content_lists(litellm.Message)
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)  # of such lists
    return litellm


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is made here stays: the collector would look through it again and again, a quarter of the time."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _take_content_lists(message: Any) -> None:
    """Let litellm's message take a content that is a list of parts: some servers send one, and litellm refuses it."""
    plain_init = message.__init__

    @wraps(plain_init)
    def init(self: Any, content: Any = None, *args: Any, **fields: Any) -> None:
        if isinstance(parts := content, list):
            content, thoughts = text_of_parts(parts)
            if thoughts is not None and not fields.get("reasoning_content"):
                fields["reasoning_content"] = thoughts
            if (refusal := refusal_of_parts(parts)) is not None:
                fields["refusal"] = refusal
        plain_init(self, content, *args, **fields)

    message.__init__ = init


def repair_turns(reply: str, request: str) -> tuple[Turn, ...]:
    """The turns of a repair call. An empty reply is left out: providers refuse empty messages."""
    answer_turns = (Turn(role="assistant", text=reply),) if reply.strip() else ()
    return (*answer_turns, Turn(role="user", text=request))
