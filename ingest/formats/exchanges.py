"""A request to a model with its answer, as providers' batches and gateways' logs keep them, as messages in order.

OpenAI (chat, Responses, batches), Anthropic, Gemini and Vertex batches, Bedrock batches and its log of invocations,
Ollama; logs of LiteLLM, Portkey, Helicone, OpenRouter and others that put both beside each other. An answer without its
request is one too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import objects_in
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.streamed import streamed_answers
from tracejury.ingest.trace import Json

Record = Mapping[str, Json]

_REQUESTS = (
    "request", "request_body", "requestBody", "req", "input", "inputs", "body", "payload", "modelInput",
    "proxy_server_request", "full_request",
)  # fmt: skip
_RESPONSES = (
    "response", "response_body", "responseBody", "res", "output", "outputs", "completion", "modelOutput", "result",
    "full_response", "response_obj", "generated_text",
)  # fmt: skip
_ASKED = ("messages", "input", "contents", "input_messages", "request_messages", "RequestMessages")
_ANSWERED = ("output", "completion", "output_messages", "response_messages", "ResponseMessages")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_BODIES = ("body", "inputBodyJson", "outputBodyJson", "postData", "content")
"""Where a request over HTTP, Bedrock's log of invocations, or a browser's HAR file holds what was sent."""
_ABOUT = {
    "model": "model", "modelVersion": "model", "usage": "usage", "usageMetadata": "usageMetadata", "created": "created",
    "created_at": "created", "createTime": "created",
}  # fmt: skip
"""What an answer tells of the call, and the names under which a message is read with it."""


_SPOKEN = (
    ("prompt", "question", "query", "user_input", "user_message", "user"),
    ("response", "completion", "generated_text", "assistant", "assistant_message", "model_response", "reply"),
)
_MAYBE_SPOKEN = (("input", "request"), ("output", "response"))
"""Columns of a plain log: these words say that a model answered, or may be of any call."""
_OF_MODEL = frozenset({"model", "model_name", "model_id", "modelId", "usage", "prompt_tokens", "completion_tokens"})


def exchange(value: Record) -> list[Record]:
    """The messages of a request and of its answer that stand beside each other; none of any other object."""
    return _told_apart(value) or _spoken(value)


def _spoken(value: Record) -> list[Record]:
    """A question and its answer, both words, in a row of a plain log."""
    pairs = (_SPOKEN, *([_MAYBE_SPOKEN] if not _OF_MODEL.isdisjoint(value) else []))
    for sides in pairs:
        asked, answer = (
            next((text for name in names if isinstance(text := value.get(name), str) and text.strip()), None)
            for names in sides
        )
        if asked is not None and answer is not None:
            model = next((name for key in ("model", "model_name", "model_id") if (name := value.get(key))), None)
            about = {"model": model} if model else {}
            return [{"role": "user", "content": asked}, {"role": "assistant", "content": answer, **about}]
    return []


def _told_apart(value: Record) -> list[Record]:
    """A request and its answer, where one of them is an object or a list of messages."""
    request, response = _object(value, _REQUESTS), _object(value, _RESPONSES) or _beside(value)
    words = next((text for name in _RESPONSES if isinstance(text := value.get(name), str) and text), None)
    named = next((rows for name in (*_ASKED, "prompt") if (rows := _listed(value, name))), [])
    prompts = _asked(request) or ((named or _prompt(value)) if response or words is not None else [])
    if not prompts:
        return []
    alone: Record = {"role": "assistant", "content": words}
    answers = _answers(response) if response or words is None else [alone]
    if answers and answers[-1].get("model") is None and (model := value.get("modelId")) is not None:
        named_last: Record = {**answers[-1], "model": model}
        answers = [*answers[:-1], named_last]
    return [*instructions(request or value), *prompts, *answers]


def _beside(value: Record) -> Record:
    """The answer in a record whose own fields are its request: a stored completion, or a list of messages."""
    if _is_answer(value):
        return value
    listed = next((rows for name in _ANSWERED if (rows := _listed(value, name))), None)
    return {"output": cast("Json", listed)} if listed else {}


def _prompt(value: Record) -> list[Record]:
    """The one text that a model without messages was sent."""
    beside = value.get("input") if _is_answer(value) else value.get("inputs") if "generated_text" in value else None
    words = value.get("prompt", beside)
    return [{"role": "user", "content": words}] if isinstance(words, str) and words else []


def lone_answer(value: Record) -> list[Record]:
    """The messages of a model's answer whose request is not there; none of any other object."""
    response = value if _is_answer(value) else _object(value, _RESPONSES)
    inner = response.get("message")  # a batch of Anthropic
    response = inner if isinstance(inner, dict) and _is_answer(inner) else response
    return _answers(response) if _is_answer(response) else []


def _is_answer(value: Record) -> bool:
    """Whether an object is the answer of a provider, told by its own mark."""
    is_message = value.get("type") == "message" and value.get("role") == "assistant" and "model" in value
    is_gemini = isinstance(value.get("candidates"), list)
    is_ollama = isinstance(value.get("done"), bool) and isinstance(value.get("message"), dict)
    return is_message or is_gemini or is_ollama or value.get("object") in ("response", "chat.completion")


def _object(value: Record, names: Sequence[str]) -> Record:
    """The object under the first of these names, or the body in it where it is a request over HTTP."""
    listed = (opened(value.get(name)) for name in names)
    first = next(
        (inner for one in listed if isinstance(inner := _whole(one) if names is _RESPONSES else one, dict)), {}
    )
    bodies = (body for name in _BODIES if isinstance(body := opened(first.get(name)), dict))
    return next((_sent(body) for body in bodies if "parts" not in body), first)


def _sent(body: dict[str, Json]) -> Record:
    """The JSON in the text of a body, as HAR files and cassettes of VCR keep it; any other body as it is."""
    texts = (opened(body.get(name)) for name in ("text", "string"))
    return next((text for text in texts if isinstance(text, dict)), body)


def _whole(value: Json) -> Json:
    """The one answer that a list holds, whole or in pieces; any other value as it is."""
    rows = objects_in(value)
    answers = streamed_answers(rows) or [one for one in rows if _is_answer(one)]
    return dict(answers[0]) if len(answers) == 1 else value


def _asked(request: Record) -> list[Record]:
    prompts = next((rows for name in _ASKED if (rows := _listed(request, name))), [])
    words = request.get("input")
    return [{"role": "user", "content": words}] if not prompts and isinstance(words, str) and words else prompts


def _listed(value: Record, name: str) -> list[Record]:
    rows = opened(value.get(name))
    return [cast("Record", one) for one in rows if isinstance(one, dict)] if isinstance(rows, list) else []


def instructions(request: Record) -> list[Record]:
    """What a request tells the model beside its messages, as a message; none where it tells nothing."""
    system = next((words for name in _SYSTEM if (words := request.get(name))), None)
    inner = system.get("parts", system.get("content")) if isinstance(system, dict) else system
    words = inner if isinstance(inner, (str, list)) else as_text(system)
    return [{"role": "system", "content": words}] if words else []


def _answers(response: Record) -> list[Record]:
    """The messages of an answer, the last of them with the model, the tokens and the time that the answer tells."""
    choices = [*_listed(response, "choices"), *_listed(response, "candidates")]
    inner = [one.get("message", one.get("content", one.get("text"))) for one in choices[:1]]
    messages: list[Record] = [
        one if isinstance(one, dict) else {"role": "assistant", "content": one} for one in inner if one is not None
    ]
    outputs = messages or _listed(response, "output") or _listed(response, "messages") or _converse(response)
    about = {own: response[name] for name, own in _ABOUT.items() if response.get(name) is not None}
    if "eval_count" in response:  # Ollama counts beside the message
        counts: Json = {
            "prompt_tokens": response.get("prompt_eval_count"), "completion_tokens": response["eval_count"]
        }  # fmt: skip
        about["usage"] = counts
    return [*outputs[:-1], *({**about, **one} for one in outputs[-1:])]


def _converse(response: Record) -> list[Record]:
    """The message in an answer of Bedrock's Converse or Ollama, else the answer itself where it says something."""
    output = response.get("output")
    inner = output.get("message") if isinstance(output, dict) else response.get("message")
    if isinstance(inner, dict):
        return [inner]
    if response.get("content") or response.get("role"):
        return [response]
    is_known = not response or "error" in response or _is_answer(response)
    return [] if is_known else [{"role": "assistant", "content": as_text(cast("Json", response))}]
