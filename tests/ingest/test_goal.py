"""Goal and final answer in words, whatever wraps them."""

import json
from typing import Any

import pytest
from tests.ingest.spans import span, trace

ASKED, ANSWERED = "How deep is the harbour?", "Nine metres."
USER = {"role": "user", "content": ASKED}
BOT = {"role": "assistant", "content": ANSWERED}


def agent(given: Any, handed: Any) -> dict[str, Any]:
    values = {"input.value": given, "output.value": handed}
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}
    return span("desk", {"openinference.span.kind": "AGENT", **texts})


@pytest.mark.parametrize(
    ("given", "handed"),
    [
        (ASKED, ANSWERED),
        ({"question": ASKED}, {"answer": ANSWERED}),
        ({"messages": [{"role": "system", "content": "Be exact."}, USER]}, {"messages": [USER, BOT]}),
        ([USER], [BOT]),
        (json.dumps(json.dumps({"input": ASKED})), json.dumps(ANSWERED)),
        ({"new_message": {"role": "user", "parts": [{"text": ASKED}]}, "session_id": "s", "state": None},
         {"content": {"role": "model", "parts": [{"text": ANSWERED}]}, "finish_reason": "STOP", "id": "e"}),
        ({"prompt": {"q": ASKED}}, {"llm": {"replies": [ANSWERED]}}),
        ({"kwargs": {"query": ASKED}}, {"response": ANSWERED}),
        ({"messages": [{"type": "human", "content": ASKED}]}, {"output": {"content": ANSWERED, "type": "ai"}}),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": ASKED}]}]},
         {"object": "response", "output": [{"type": "message", "role": "assistant",
                                            "content": [{"type": "output_text", "text": ANSWERED}]}]}),
        ({"user_input": ASKED, "top_k": 4}, f"{{'role': 'assistant', 'text': {ANSWERED!r}}}"),
        ({"user_msg": ASKED}, {"response": {"role": "assistant", "blocks": [{"block_type": "text", "text": ANSWERED}]},
                               "tool_calls": [], "raw": None}),
        (f"{ASKED}\n[image image/png, 8 bytes, sha256 {'a' * 64}]", ANSWERED),
        (f"[image, at file-service://a-b]\n{ASKED}", ANSWERED),
        (f"[[ ## question ## ]]\n{ASKED}\n\nRespond with the field `answer`.", f"[[ ## answer ## ]]\n{ANSWERED}\n"),
        ({"task": ASKED}, {"choices": [{"message": BOT, "finish_reason": "stop"}], "usage": {"total_tokens": 4}}),
    ],
)  # fmt: skip
def test_goal_and_answer_are_the_words_within_what_wraps_them(given: Any, handed: Any) -> None:
    found = trace(agent(given, handed))
    assert (found.goal, found.final_answer) == (ASKED, ANSWERED)


def test_white_space_around_what_a_user_asked_stays() -> None:
    assert trace(agent(f"{ASKED}\n\n", ANSWERED)).goal == f"{ASKED}\n\n"


def test_where_neither_can_be_told_there_is_none_with_a_reason() -> None:
    found = trace(agent({"a": ["x", "y"], "b": {"c": "z"}}, {"rows": [["p", "q"], ["r", "s"]]}))
    assert (found.goal, found.final_answer) == (None, None)
    assert [warning.partition(":")[0] for warning in found.warnings] == ["no_goal", "no_answer"]


def test_an_answer_of_named_facts_is_a_line_each() -> None:
    assert trace(agent(ASKED, {"depth": 9, "unit": "metres"})).final_answer == "depth: 9\nunit: metres"


def test_a_tools_result_is_not_what_the_user_asked() -> None:
    said = [{"role": "user", "parts": [{"type": "tool_call_response", "id": "k", "result": "9 m"}]}, USER]
    assert trace(span("c", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": said})).goal == ASKED


def test_a_run_that_failed_has_no_answer_and_no_doubt_about_it() -> None:
    found = trace({**agent(ASKED, ""), "error": "out of steps"})
    assert (found.final_answer, found.warnings) == (None, ())


def test_an_id_is_no_answer() -> None:
    found = trace(agent(ASKED, {"id": "x-7", "raw": {"object": "thread", "steps": [1, 2]}}))
    assert found.final_answer is None
    assert [warning[:9] for warning in found.all_warnings] == ["no_answer"]
