"""Parts of messages in the forms of the providers."""

import json
from hashlib import sha256
from typing import Any

import pytest

from tracejury.ingest.conventions.conversation import read_conversation
from tracejury.ingest.conventions.message_json import read_turn
from tracejury.ingest.trace import Message, ToolCall

HASH = sha256(b"\x89PNG\r\n\x1a\n").hexdigest()
PICTURE = "iVBORw0KGgo="
SHOWN = f"[image image/png, 8 bytes, sha256 {HASH}]"
CALL = ToolCall("tide", '{"at":"Orm"}', "c1")


def said(value: Any) -> list[Message]:
    turn = read_turn(value)
    assert turn is not None
    return [item.message for item in turn]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": PICTURE},
        {"type": "image", "image": PICTURE, "mediaType": "image/png"},
        {"inlineData": {"mimeType": "image/png", "data": PICTURE}, "type": "image"},
    ],
)
def test_a_picture_is_a_placeholder_and_its_bytes_stay_beside(part: dict[str, Any]) -> None:
    (item,) = read_turn({"role": "user", "content": [{"type": "text", "text": "What is it?"}, part]}) or []
    assert item.message.content == f"What is it?\n{SHOWN}"
    assert PICTURE in json.dumps(item.rest)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://x.org/a.png"},
         "[image image/png, at https://x.org/a.png]"),
        ({"type": "file", "file": {"file_id": "f-1", "filename": "map.pdf"}}, "[file map.pdf, file f-1]"),
        ({"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v.mp4"}}, "[file video/mp4, at gs://b/v.mp4]"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
         f"[audio wav, 3 bytes, sha256 {sha256(bytes(3)).hexdigest()}]"),
        ({"media": {"url": "https://x.org/a.png", "contentType": "image/png"}},
         "[file image/png, at https://x.org/a.png]"),
    ],
)  # fmt: skip
def test_a_file_is_named_with_its_type_and_where_it_is(part: dict[str, Any], shown: str) -> None:
    assert said({"role": "user", "content": [part]})[0].content == shown


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "Ask first."},
        {"type": "reasoning", "content": "Ask first."},
        {"type": "reasoning", "text": "Ask first."},
        {"type": "reasoning", "reasoning": "Ask first."},
        {"reasoningContent": {"reasoningText": {"text": "Ask first.", "signature": "s"}}},
        {"text": "Ask first.", "thought": True},
        {"reasoning": {"reasoning_text": "Ask first."}},
    ],
)
def test_reasoning_is_kept_apart_from_words(part: dict[str, Any]) -> None:
    (message,) = said({"role": "assistant", "content": [part, {"type": "text", "text": "High at six."}]})
    assert (message.reasoning, message.content) == ("Ask first.", "High at six.")


def test_reasoning_beside_the_content_is_reasoning() -> None:
    (message,) = said({"role": "assistant", "content": "Six.", "reasoning_content": "Ask."})
    assert (message.content, message.reasoning) == ("Six.", "Ask.")


def test_an_item_of_the_responses_api_that_only_thinks_has_no_words() -> None:
    (message,) = said({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "Ask."}]})
    assert (message.role, message.content, message.reasoning) == ("assistant", None, "Ask.")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_call", "id": "c1", "name": "tide", "arguments": {"at": "Orm"}},
        {"type": "tool_use", "id": "c1", "name": "tide", "input": {"at": "Orm"}},
        {"toolUse": {"toolUseId": "c1", "name": "tide", "input": {"at": "Orm"}}},
        {"functionCall": {"id": "c1", "name": "tide", "args": {"at": "Orm"}}},
        {"function_call": {"id": "c1", "name": "tide", "args": {"at": "Orm"}}},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "tide", "input": {"at": "Orm"}},
        {"toolRequest": {"ref": "c1", "name": "tide", "input": {"at": "Orm"}}},
        {"tool_call": {"id": "c1", "tool_name": "tide", "arguments": {"at": "Orm"}}},
        {"type": "function", "id": "c1", "function": {"name": "tide", "arguments": {"at": "Orm"}}},
        {"block_type": "tool_call", "tool_call_id": "c1", "tool_name": "tide", "tool_kwargs": {"at": "Orm"}},
        {"type": "server_tool_call", "id": "c1", "name": "tide", "server_tool_call": {"at": "Orm"}},
    ],
)
def test_a_call_among_the_parts_is_a_tool_call(part: dict[str, Any]) -> None:
    (message,) = said({"role": "model", "parts": [part]})
    assert (message.role, message.content, message.tool_calls) == ("assistant", None, (CALL,))


@pytest.mark.parametrize(
    "results",
    [
        [{"type": "tool_call_response", "id": f"k{n}", "result": f"{n} C"} for n in (1, 2)],
        [{"type": "tool_result", "tool_use_id": f"k{n}", "content": [{"type": "text", "text": f"{n} C"}]}
         for n in (1, 2)],
        [{"toolResult": {"toolUseId": f"k{n}", "content": [{"text": f"{n} C"}]}} for n in (1, 2)],
        [{"type": "tool-result", "toolCallId": f"k{n}", "toolName": "t", "output": {"type": "text", "value": f"{n} C"}}
         for n in (1, 2)],
        [{"type": "tool-result", "toolCallId": f"k{n}", "output": {"type": "error-text", "value": f"{n} C"}}
         for n in (1, 2)],
        [{"type": "server_tool_call_response", "id": f"k{n}", "server_tool_call_response": f"{n} C"} for n in (1, 2)],
        [{"functionResponse": {"id": f"k{n}", "name": "t", "response": f"{n} C"}} for n in (1, 2)],
        [{"toolResponse": {"ref": f"k{n}", "name": "t", "output": f"{n} C"}} for n in (1, 2)],
        [{"tool_call_result": {"result": f"{n} C", "origin": {"id": f"k{n}", "tool_name": "t"}}} for n in (1, 2)],
    ],
)  # fmt: skip
def test_each_result_in_one_message_is_a_message_with_its_calls_id(results: list[dict[str, Any]]) -> None:
    messages = said({"role": "user", "parts": [*results, {"text": "Which is warmer?"}]})
    assert [(m.role, m.tool_call_id, m.content) for m in messages] == [
        ("tool", "k1", "1 C"), ("tool", "k2", "2 C"), ("user", None, "Which is warmer?"),
    ]  # fmt: skip


def test_blocks_of_llamaindex_are_parts() -> None:
    blocks = [{"block_type": "thinking", "content": "Low."}, {"block_type": "text", "text": "4 m"}]
    (message,) = said({"role": "assistant", "additional_kwargs": {}, "blocks": blocks})
    assert (message.content, message.reasoning) == ("4 m", "Low.")


def test_messages_of_autogen_have_the_role_that_the_model_sees() -> None:
    call, result = {"id": "c1", "name": "tide", "arguments": '{"at":"Orm"}'}, {"call_id": "c1", "content": "4 m"}
    messages = [
        message
        for value in (
            {"type": "SystemMessage", "content": "Be exact."},
            {"type": "UserMessage", "content": "How deep?", "source": "critic"},
            {"type": "AssistantMessage", "content": [call], "source": "desk"},
            {"type": "FunctionExecutionResultMessage", "content": [{**result, "is_error": False}]},
            {"type": "ToolCallExecutionEvent", "content": [result], "source": "desk"},
        )
        for message in said(value)
    ]
    assert [(m.role, m.content, m.name) for m in messages] == [
        ("system", "Be exact.", None), ("user", "How deep?", "critic"), ("assistant", None, "desk"),
        ("tool", "4 m", None), ("tool", "4 m", "desk"),
    ]  # fmt: skip
    assert messages[2].tool_calls == (CALL,)
    assert {m.tool_call_id for m in messages[3:]} == {"c1"}


def test_parts_that_stand_as_json_text_are_opened() -> None:
    (message,) = said({"role": "user", "content": '[{"text": "Weather?"}]'})
    assert message.content == "Weather?"


def test_a_users_own_json_stays_as_it_was_written() -> None:
    (message,) = said({"role": "user", "content": '{"city": "Orm"}'})
    assert message.content == '{"city": "Orm"}'


def test_an_unknown_part_is_shown_as_its_json_beside_the_words() -> None:
    (message,) = said({"role": "user", "content": [{"text": "Hi"}, {"type": "hologram", "beam": 3}]})
    assert message.content == 'Hi\n{"type":"hologram","beam":3}'


@pytest.mark.parametrize(
    "content", ["4 m", json.dumps([{"toolResult": {"toolUseId": "c1", "content": [{"text": "4 m"}]}}])]
)
def test_the_id_beside_a_tools_words_in_agentcores_body_is_its_calls(content: str) -> None:
    (message,) = said({"role": "tool", "content": {"content": content, "id": "c1"}})
    assert (message.role, message.content, message.tool_call_id) == ("tool", "4 m", "c1")


def test_agentcores_bodies_are_unwrapped() -> None:
    call = '[{"toolUse": {"toolUseId": "c1", "name": "tide", "input": {"at":"Orm"}}}]'
    value = {"role": "assistant", "content": {"message": call, "finish_reason": "tool_use"}}
    (item,) = read_turn(value) or []
    assert item.message.tool_calls == (CALL,)
    assert item.rest == {"finish_reason": "tool_use"}


@pytest.mark.parametrize(
    "value",
    [
        {"messages": [{"role": "user", "content": "Hi"}], "model": "m"},
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        {"choices": [{"message": {"role": "user", "content": "Hi"}, "finish_reason": "stop"}]},
        {"candidates": [{"content": {"role": "user", "parts": [{"text": "Hi"}]}}]},
        {"output": {"message": {"role": "user", "content": [{"text": "Hi"}]}}},
        {"content": {"role": "user", "parts": [{"text": "Hi"}]}, "usage_metadata": {}},
        {"generations": [[{"text": "Hi"}]]},
        {"replies": ["Hi"]},
        [{"text": "Hi"}],
        ["Hi"],
        "Hi",
    ],
)
def test_messages_are_taken_out_of_what_wraps_them(value: Any) -> None:
    found = read_conversation(value, "user")
    assert found is not None
    assert [(item.message.role, item.message.content) for item in found.messages] == [("user", "Hi")]


def test_instructions_beside_the_messages_come_first() -> None:
    value = {"config": {"system_instruction": "Be exact."}, "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    found = read_conversation(value, "user")
    assert found is not None
    assert [item.message.role for item in found.messages] == ["system", "user"]


def test_json_that_holds_no_message_is_none() -> None:
    assert read_conversation({"city": "Orm", "temp": 4}, "user") is None
