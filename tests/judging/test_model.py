"""The litellm adapter against a scripted provider on loopback: requests as sent, replies as read, errors by kind."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace

import pytest
from tests.fake_provider import Action, Answer, Cut, Hang, Provider, Raw, Reset, Script, Status, in_turn, verdict
from tests.judging.traces import small_reading

from tracejury.ingest.trace import Json
from tracejury.judging.judges.model import (
    RETRIED,
    LitellmModel,
    ModelError,
    ModelReply,
    ModelRequest,
    Prices,
    Turn,
    classify,
    context_limit,
    count_tokens,
    first_forms,
    known_prices,
    messages_of,
    read_prices,
    read_response,
)
from tracejury.judging.judges.prompt import Prompt, build_prompt
from tracejury.judging.judges.reply import Form, reply_schema
from tracejury.judging.judges.rubric import rubrics

LC = rubrics()["LC"]
SONNET = Prices(prompt=3e-6, completion=15e-6, cache_read=0.3e-6, cache_write=3.75e-6)


def request(form: Form = "json", parameters: Mapping[str, Json] | None = None, **changes: object) -> ModelRequest:
    prompt = build_prompt(small_reading().text, LC, form=form)
    return ModelRequest(prompt=prompt, form=form, schema=reply_schema(LC), parameters=parameters or {}, **changes)  # type: ignore[arg-type]


class Setup:
    """A provider that a test scripts, and a model that calls it."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.name = provider, "openai/fake"

    def ask(self, script: Script | Action, wish: ModelRequest | None = None, **options: object) -> ModelReply:
        self.provider.script = script if callable(script) else in_turn(script)
        model = LitellmModel(name=self.name, api_base=self.provider.base_url, api_key="k", **options)  # type: ignore[arg-type]
        return asyncio.run(model(wish or request()))

    def error(self, action: Action, parameters: Mapping[str, Json] | None = None, **options: object) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.ask(action, request(parameters=parameters), **options)
        return caught.value


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(in_turn(Answer(text=verdict()))) as running:
        yield running


@pytest.fixture
def setup(provider: Provider) -> Setup:
    provider.log.requests.clear()
    return Setup(provider)


def test_a_reply_comes_with_usage_and_the_request_holds_only_what_was_set(setup: Setup) -> None:
    reply = setup.ask(Answer(text=verdict(), completion_tokens=77), prices=SONNET)
    body = setup.provider.log.requests[0].body
    assert set(body) == {"model", "messages", "response_format"}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["response_format"]["json_schema"]["schema"] == reply_schema(LC)
    assert (reply.text, reply.finish_reason, reply.completion_tokens) == (verdict(), "stop", 77)
    assert reply.prompt_tokens is not None
    plain = reply.prompt_tokens - (reply.cached_tokens or 0)
    expected = plain * 3e-6 + (reply.cached_tokens or 0) * 0.3e-6 + 77 * 15e-6
    assert reply.cost_usd == pytest.approx(expected)


def test_the_second_call_with_the_same_prefix_is_cached_by_the_provider(setup: Setup) -> None:
    text = "span " * 2000
    prompts = [build_prompt(text, rubrics()[key]) for key in ("LC", "EE")]
    wishes = [ModelRequest(prompt=prompt, form="json", schema=reply_schema(LC)) for prompt in prompts]
    replies = [setup.ask(Answer(text=verdict()), wish) for wish in wishes]
    shared = len(prompts[0].system + "\n" + prompts[0].prefix) // 4
    assert replies[0].cached_tokens == 0
    assert replies[1].cached_tokens == shared // 128 * 128


def test_parameters_are_sent_as_set(setup: Setup) -> None:
    wish = request(parameters={"temperature": 0, "max_tokens": 50, "seed": 7, "reasoning_effort": "low"})
    setup.ask(Answer(text=verdict()), wish)
    body = setup.provider.log.requests[0].body
    assert {name: body[name] for name in wish.parameters} == dict(wish.parameters)


def test_the_tool_form_reads_the_arguments_of_the_call(setup: Setup) -> None:
    reply = setup.ask(Answer(text=verdict(1), finish_reason="tool_calls"), request("tool"))
    assert setup.provider.log.requests[0].body["tool_choice"]["function"]["name"] == "give_verdict"
    assert reply.text == verdict(1)


def test_the_template_form_asks_for_nothing_special(setup: Setup) -> None:
    setup.ask(Answer(text="Score: 2"), request("template"))
    assert set(setup.provider.log.requests[0].body) == {"model", "messages"}


def test_repair_turns_follow_the_prompt(setup: Setup) -> None:
    setup.ask(Answer(text=verdict()), request(turns=(Turn(role="assistant", text="hm"), Turn(role="user", text="so?"))))
    messages = setup.provider.log.requests[0].body["messages"]
    assert [(message["role"]) for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == "so?"


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Status(code=429, headers={"retry-after": "2"}), "rate_limit"),
        (Status(code=429, message="You exceeded your current quota", error_code="insufficient_quota"), "auth"),
        (Status(code=500), "transient"),
        (Status(code=502), "transient"),
        (Status(code=503), "transient"),
        (Status(code=529), "transient"),
        (Reset(), "transient"),
        (Status(code=408), "timeout"),
        (Status(code=401), "auth"),
        (Status(code=403), "auth"),
        (Status(code=404, message="no such model"), "no_model"),
        (Status(code=413), "too_long"),
        (Status(code=400, message="This model's maximum context length is 8192 tokens."), "too_long"),
        (Status(code=400, message="flagged", error_code="content_filter"), "refused"),
        (Status(code=400, message="json_schema is not supported", param="response_format"), "rejected_form"),
        (Status(code=400, message="Failed to parse grammar"), "rejected_form"),
        (Status(code=400, message="messages: at least one message is required"), "bad_request"),
    ],
)  # fmt: skip
def test_each_error_has_its_kind(setup: Setup, action: Action, kind: str) -> None:
    assert setup.error(action).kind == kind
    assert len(setup.provider.log.requests) == 1  # neither litellm nor the client retries behind our back


def test_a_connection_that_ends_after_the_request_leaves_the_answer_unknown(setup: Setup) -> None:
    assert setup.error(Reset()).is_unknown
    assert not setup.error(Status(code=500)).is_unknown
    nobody = LitellmModel(name="openai/fake", api_base="http://127.0.0.1:9/v1", api_key="k")
    with pytest.raises(ModelError) as caught:
        asyncio.run(nobody(request()))
    assert (caught.value.kind, caught.value.is_unknown) == ("transient", False)  # never connected


COMPLETION = b'{"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assist'


@pytest.mark.parametrize(
    "action",
    [
        Raw(b"hello"), Raw(b""), Raw(b"<html>502 Bad Gateway</html>"), Raw(COMPLETION), Raw(b"{}"), Raw(b"null"),
        Raw(b'{"id": "\xff"}'), Raw(b'{"id": "1", "choices": [{"odd": 1}]}'), Raw(b'{"error": "odd"}'),
        Raw(b'{"error": {"message": "the model broke off", "code": 502}}'),
        Cut(text=verdict()), Cut(text=verdict(), in_chunks=True),
        Status(code=502), Status(code=504), Status(code=524), Status(code=499),
    ],
)  # fmt: skip
def test_what_was_answered_but_cannot_be_read_is_perhaps_paid_and_asked_again(setup: Setup, action: Action) -> None:
    error = setup.error(action)
    assert (error.is_unknown, error.kind in RETRIED) == (True, True)


@pytest.mark.parametrize("code", [400, 401, 404, 429, 500, 503, 529])
def test_what_the_provider_says_it_did_not_answer_is_not_paid(setup: Setup, code: int) -> None:
    assert not setup.error(Status(code=code)).is_unknown


@pytest.mark.parametrize("name", ["anthropic/claude-sonnet-4-5", "mistral/x", "hosted_vllm/x", "groq/x", "openai/fake"])
def test_whichever_provider_a_lost_answer_is_perhaps_paid_and_a_refused_one_is_not(setup: Setup, name: str) -> None:
    setup.name = name
    lost = (Reset(), Raw(b"hello"), Raw(COMPLETION), Cut(text=verdict()))
    assert [setup.error(action).is_unknown for action in lost] == [True] * len(lost)
    refused = setup.error(Status(code=429, headers={"retry-after": "2"}))
    assert (refused.kind, refused.is_unknown, refused.retry_after_s) == ("rate_limit", False, 2.0)
    nobody = LitellmModel(name=name, api_base="http://127.0.0.1:9/v1", api_key="k")
    with pytest.raises(ModelError) as caught:
        asyncio.run(nobody(request()))
    assert (caught.value.kind, caught.value.is_unknown) == ("transient", False)


def test_without_a_key_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for model in ("openai/gpt-5", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"):
        with pytest.raises(ModelError) as caught:
            asyncio.run(LitellmModel(name=model, api_base="http://127.0.0.1:9/v1")(request()))
        assert (caught.value.kind, caught.value.is_unknown) == ("auth", False)


def completion(content: object, **message: object) -> Raw:
    """The body of a completion whose message holds this content."""
    message = {"role": "assistant", "content": content, **message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "fake", "usage": usage,
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}  # fmt: skip
    return Raw(json.dumps(body).encode())


def text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize("name", ["openai/fake", "hosted_vllm/fake"])
@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([text_part(verdict())], verdict(), None),
        ([text_part(verdict()[:20]), text_part(verdict()[20:])], verdict(), None),
        ([{"type": "output_text", "text": verdict()}], verdict(), None),
        ([{"type": "thinking", "thinking": "hm"}, text_part(verdict())], verdict(), "hm"),
        ([{"type": "thinking", "thinking": [text_part("hm")]}, text_part(verdict())], verdict(), "hm"),
        ([{"type": "reasoning", "text": "hm"}, text_part(verdict())], verdict(), "hm"),
        ([{"text": "hm", "thought": True}, {"text": verdict()}], verdict(), "hm"),
        ([verdict()], verdict(), None),
        ([], "", None),
    ],
)
def test_a_content_list_of_parts_is_one_reply(
    setup: Setup, name: str, content: object, text: str, reasoning: str | None
) -> None:
    setup.name = name
    reply = setup.ask(completion(content))
    assert (reply.text, reply.reasoning, reply.prompt_tokens) == (text, reasoning, 10)
    assert len(setup.provider.log.requests) == 1


def test_a_refusal_among_the_parts_is_kept(setup: Setup) -> None:
    assert setup.ask(completion([{"type": "refusal", "refusal": "I will not."}])).refusal == "I will not."


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_that_the_provider_sends_beside_the_answer_is_kept(setup: Setup, key: str) -> None:
    reply = setup.ask(completion(verdict(), **{key: "The plan holds."}))
    assert (reply.text, reply.reasoning) == (verdict(), "The plan holds.")


def test_every_call_of_the_verdict_s_tool_is_part_of_the_reply(setup: Setup) -> None:
    """The second of two verdicts must not go unseen."""
    calls = [{"id": f"call_{n}", "type": "function", "function": {"name": "give_verdict", "arguments": verdict(n)}}
             for n in (1, 2)]  # fmt: skip
    assert setup.ask(completion("My verdict:", tool_calls=calls)).text == f"My verdict:\n{verdict(1)}\n{verdict(2)}"


def test_a_completion_without_choices_is_a_reply_that_can_be_kept() -> None:
    usage = SimpleNamespace(prompt_tokens=9, completion_tokens=0, prompt_tokens_details=None)
    reply = read_response(SimpleNamespace(choices=[], usage=usage), latency_s=1.0)
    assert (reply.text, reply.finish_reason, reply.prompt_tokens) == ("", None, 9)


@pytest.mark.parametrize(
    ("text", "prices"),
    [
        ("3,15", Prices(prompt=3e-6, completion=15e-6)),
        ("3, 15, 0.3", Prices(prompt=3e-6, completion=15e-6, cache_read=0.3e-6)),
        ("0,0", Prices(prompt=0.0, completion=0.0)),
    ],
)
def test_prices_are_given_as_price_lists_give_them(text: str, prices: Prices) -> None:
    assert read_prices(text) == prices


@pytest.mark.parametrize("text", ["", "3", "3;15", "a,b", "1,2,3,4", "nan,1", "-1,2", "inf,1"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="price"):
        read_prices(text)


@pytest.mark.parametrize(
    "status",
    [
        Status(code=400, message="Unsupported value: 'temperature' does not support 0", param="temperature"),
        Status(code=422, message="extra inputs are not permitted: temperature"),
    ],
)
def test_a_rejected_parameter_is_named(setup: Setup, status: Status) -> None:
    error = setup.error(status, {"seed": 1, "temperature": 0})
    assert (error.kind, error.parameter) == ("rejected_parameter", "temperature")


def test_a_parameter_with_a_bad_value_is_no_rejected_parameter(setup: Setup) -> None:
    status = Status(code=400, message="max_tokens is too large: 999999", param="max_tokens")
    assert setup.error(status, {"max_tokens": 999_999}).kind == "bad_request"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"retry-after": "2"}, 2.0), ({"retry-after": "0.5"}, 0.5), ({"retry-after-ms": "1500"}, 1.5),
     ({}, None), ({"retry-after": "soon"}, None), ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0)],
)  # fmt: skip
def test_retry_after_is_read_in_its_forms(setup: Setup, headers: dict[str, str], seconds: float | None) -> None:
    assert setup.error(Status(code=429, headers=headers)).retry_after_s == seconds


@pytest.mark.parametrize("action", [Hang(), Answer(text=verdict(), trickle_s=30)])
def test_hanging_and_trickling_answers_end_at_the_time_limit(setup: Setup, action: Action) -> None:
    assert setup.error(action, timeout_s=0.5).kind == "timeout"


def test_a_slow_answer_within_the_limit_is_taken(setup: Setup) -> None:
    assert setup.ask(Answer(text=verdict(), trickle_s=0.2), timeout_s=120).text == verdict()


@pytest.mark.parametrize("text", [None, ""])
def test_an_empty_reply_is_empty_text(setup: Setup, text: str | None) -> None:
    assert setup.ask(Answer(text=text)).text == ""


def test_a_refusal_is_kept(setup: Setup) -> None:
    assert setup.ask(Answer(text=None, refusal="I cannot")).refusal == "I cannot"


def test_the_cost_of_an_unknown_model_is_unknown_and_not_zero(setup: Setup) -> None:
    assert setup.ask(Answer(text=verdict())).cost_usd is None


def test_any_other_exception_becomes_a_model_error_that_names_it() -> None:
    error = classify(RuntimeError("odd"), {})
    assert (error.kind, error.message) == ("bad_request", "RuntimeError: odd")


def test_the_key_never_shows_in_the_model_s_text() -> None:
    assert "hush" not in repr(LitellmModel(name="openai/fake", api_key="hush"))


def test_anthropic_s_prefix_is_marked_for_its_cache_only_when_it_is_shared() -> None:
    prompt = Prompt(system="s", prefix="the trace", suffix="the rubric")
    shared = ModelRequest(prompt=prompt, form="json", schema={}, share_prefix=True)
    parts = messages_of(shared, marks_cache=True)[1]["content"]
    assert parts[0] == {"type": "text", "text": "the trace", "cache_control": {"type": "ephemeral"}}
    assert parts[1]["text"] == "the rubric"
    alone = ModelRequest(prompt=prompt, form="json", schema={})
    assert messages_of(alone, marks_cache=True)[1]["content"] == "the tracethe rubric"


def test_public_prices_and_limits_are_known_offline() -> None:
    prices = known_prices("claude-sonnet-4-5")
    assert prices is not None
    assert (prices.prompt, prices.completion, prices.cache_read) == (3e-6, 15e-6, 0.3e-6)
    assert (prices.batch_prompt, prices.cache_write) == (1.5e-6, 3.75e-6)
    assert context_limit("claude-sonnet-4-5") == 200_000
    assert (known_prices("openai/no-such-model"), context_limit("openai/no-such-model")) == (None, None)
    assert first_forms("claude-sonnet-4-5")[0] == first_forms("openai/no-such-model")[0] == "json"
    assert 2 <= count_tokens("gpt-4o", "hello world") <= 4


def test_a_batch_goes_in_as_a_file_and_comes_back_by_name(setup: Setup) -> None:
    setup.provider.script = lambda r: Status(code=400, message="odd") if r.number == 1 else Answer(text=verdict(3))
    setup.provider.batch_polls_until_done = 2
    prices = Prices(prompt=2e-6, completion=4e-6, batch_prompt=1e-6, batch_completion=2e-6)
    model = LitellmModel(name="openai/fake", api_base=setup.provider.base_url, api_key="k", prices=prices)

    async def whole() -> tuple[object, Mapping[str, ModelReply | ModelError] | None]:
        batch = await model.submit_batch({"cell-1": request(parameters={"temperature": 0}), "cell-2": request()})
        return await model.poll_batch(batch), await model.poll_batch(batch)

    early, results = asyncio.run(whole())
    assert early is None
    assert results is not None
    good, bad = results["cell-1"], results["cell-2"]
    assert isinstance(good, ModelReply)
    assert good.text == verdict(3)
    assert good.prompt_tokens is not None
    assert good.cost_usd == pytest.approx(good.prompt_tokens * 1e-6 + (good.completion_tokens or 0) * 2e-6)
    assert isinstance(bad, ModelError)
    assert bad.kind == "bad_request"
    assert setup.provider.log.requests[0].body["temperature"] == 0
    assert setup.provider.log.requests[0].body["model"] == "fake"


def test_a_provider_without_batches_says_so() -> None:
    with pytest.raises(ModelError, match="no batch interface for 'anthropic/claude-sonnet-4-5'"):
        asyncio.run(LitellmModel(name="anthropic/claude-sonnet-4-5").submit_batch({}))


def test_litellm_is_imported_only_when_a_model_is_asked() -> None:
    code = (
        "import sys, tracejury.judging.judges.model, tracejury.judging.judges.judge; sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
