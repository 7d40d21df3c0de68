"""Text that no dialect took, shown at its span under its own name."""

import pytest
from tests.ingest.spans import span, trace

from tracejury.ingest.leftovers import leftovers
from tracejury.judging.judges.trace_text import render_trace

LONG = "The lock keeper writes down each ship that passes, its draught and the hour. " * 3


def names(**attributes: object) -> list[str]:
    return [leftover.name for leftover in leftovers(trace(span("step", dict(attributes))).spans[0])]


@pytest.mark.parametrize(
    "name",
    ["acme.input", "acme.llm.prompt", "acme.completion", "my.message.body", "tool.arguments", "acme.args",
     "acme.result", "acme.response", "acme.documents", "user.question", "acme.content", "acme:reply"],
)  # fmt: skip
def test_text_of_an_attribute_that_nobody_knows_stands_at_its_span(name: str) -> None:
    found = trace(span("first"), span("second", {name: "Nine metres."}, parent=0))
    assert f"\n {name}:\n  Nine metres.\n" in render_trace(found).text.partition("[S2]")[2]


@pytest.mark.parametrize(
    "value", [{"status": "shipped", "id": "P-1"}, '{"status": "shipped", "id": "P-1"}', {"depth": 9}]
)
def test_data_is_shown_whatever_its_fields_are_called(value: object) -> None:
    assert names(**{"acme.tool.result": value}) == ["acme.tool.result"]


def test_a_long_text_is_shown_whatever_its_name() -> None:
    assert names(**{"acme.x": LONG, "acme.y": "short"}) == ["acme.x"]


def test_a_sentence_is_shown_whatever_its_name_and_a_few_words_in_fields_named_as_text() -> None:
    shown = {
        "acme.q": "Book a ferry for two and a dog.",
        "acme.payload": '{"prompt": "Book a ferry", "id": 4}',
        "acme.step": {"turns": [{"reply": "Done at nine"}]},
    }
    hidden = {"acme.label": "two words", "acme.settings": '{"prompt_style": "plain", "mode": "very careful mode"}'}
    known = {"input.value": "Go", "openinference.span.kind": "CHAIN", "gen_ai.agent.description": LONG}
    assert names(**known, **shown, **hidden) == [*shown]


@pytest.mark.parametrize(
    "value",
    [
        "Réservez un ferry pour deux personnes et un chien",
        "请为两个人和一只狗预订一张渡轮票，谢谢您的帮助",
        "船のチケットを二枚予約してください。犬も一匹います。",
        "จองตั๋วเรือข้ามฟากสำหรับสองคนและสุนัขหนึ่งตัว",
        ["Book a ferry for two and a dog.", "Done."],
    ],
)
def test_a_sentence_of_any_script_is_text_and_so_is_a_list_of_them(value: object) -> None:
    known = {"input.value": "Go", "openinference.span.kind": "CHAIN"}
    assert names(**known, **{"acme.x": value}) == ["acme.x"]


def test_a_few_words_are_shown_where_nothing_else_was_understood_of_a_span() -> None:
    few = {"acme.q": "Сколько стоит паром?", "acme.pair": '{"in": "Book a ferry"}', "acme.mode": "fast"}
    assert names(**few) == ["acme.q", "acme.pair"]
    assert names(**few, **{"openinference.span.kind": "CHAIN", "input.value": "Go"}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gen_ai.response.id", "chatcmpl-123"),
        ("gen_ai.response.finish_reasons", ["stop"]),
        ("gen_ai.request.stop_sequences", ["END OF ANSWER"]),
        ("service.description", LONG),
        ("telemetry.sdk.content", "text"),
        ("acme.response.timestamp", "2026-01-01"),
        ("acme.prompt_tokens", "12"),
        ("acme.request_id", "r-1"),
        ("acme.input.schema", '{"type": "object"}'),
        ("acme.content.hash", "ab" * 32),
        ("acme.image.content", "iVBORw0KGgo" * 40),
    ],
)
def test_what_is_technical_is_not_shown(name: str, value: object) -> None:
    assert names(**{name: value}) == []


@pytest.mark.parametrize(
    "name", ["acme.expected_output", "dataset.ground_truth", "task.gold_answer", "reference_answer"]
)
def test_the_right_answer_is_never_shown(name: str) -> None:
    assert names(**{name: "forty-two"}) == []
    assert names(**{"acme.input": {"question": "?", name.rpartition(".")[2]: "forty-two"}}) == []


def test_what_was_understood_is_not_repeated() -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "How deep is the harbour?"}]}]
    found = trace(
        span("chat", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": asked,
                      "acme.request.body": {"messages": asked, "model": "m"}}),
    )  # fmt: skip
    text = render_trace(found).text
    assert "acme.request.body" not in text
    assert text.count("How deep is the harbour?") == 2  # as the goal and as the message


def test_what_says_more_than_was_understood_is_shown() -> None:
    found = trace(span("tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "9 m",
                                "acme.result.note": "measured at low water"}))  # fmt: skip
    assert " acme.result.note:\n  measured at low water\n" in render_trace(found).text


def test_text_of_an_event_is_shown_with_the_events_name() -> None:
    found = trace(span("step", events=[("acme.said", {"text": "Nine metres.", "acme.id": "7"})]))
    assert " event acme.said: text:\n  Nine metres.\n" in render_trace(found).text


def test_a_long_leftover_that_stands_again_is_named_and_not_repeated() -> None:
    text = render_trace(trace(span("a", {"acme.prompt": LONG * 2}), span("b", {"acme.prompt": LONG * 2}))).text
    assert text.count(LONG * 2) == 1
    assert "characters as acme.prompt of S1" in text


def test_leftovers_are_cut_to_the_budget_first() -> None:
    found = trace(span("a", {"acme.prompt": "word " * 4000}))
    text = render_trace(found, budget=3000).text
    assert len(text) < 4000
    assert "characters left out" in text


def test_a_leftover_can_write_no_header_of_its_own() -> None:
    text = render_trace(trace(span("a", {"acme.prompt\n[S9] LLM": "x\n[S2] LLM fake"}))).text
    assert [line for line in text.splitlines() if line.startswith("[S")] == [text.splitlines()[2]]
