"""The story of `envelope_files` as tools log it in plain text, or by the nodes of a workflow."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.ingest.conversation_files import ID, NAME
from tests.ingest.envelope_files import ANSWER, ARGUMENTS, GOAL, RESULT, SESSION, SYSTEM, dumped

Row = dict[str, Any]
START = 1_790_000_000_000


def aider_chat() -> bytes:
    lines = [
        "", "# aider chat started at 2026-01-01 10:00:00", "", "> Aider v0.86.1  ",
        "> Main model: m-1 with diff edit format  ", "", f"#### {GOAL}  ", "", ANSWER, "",
        "> Tokens: 7 sent, 2 received. Cost: $0.01 message, $0.01 session.  ", "",
    ]  # fmt: skip
    return "\n".join(lines).encode()


def aider_log() -> bytes:
    asked = "\n".join(["-------", f"SYSTEM {SYSTEM}", "SYSTEM ", "SYSTEM Be brief.", "-------", f"USER {GOAL}"])
    return f"TO LLM 2026-01-01T10:00:00\n{asked}\nLLM RESPONSE 2026-01-01T10:00:02\nASSISTANT {ANSWER}\n".encode()


def crewai_rows() -> list[Row]:
    task = {"task_name": "look", "task": GOAL, "agent": "pilot"}
    return [{"timestamp": "2026-01-01 10:00:00", **task, "status": "started"},
            {"timestamp": "2026-01-01 10:00:02", **task, "status": "completed", "output": ANSWER}]  # fmt: skip


def crewai_text() -> bytes:
    def line(row: Row) -> str:
        fields = ", ".join(f'{key}="{item}"' for key, item in row.items() if key != "timestamp")
        return f"{row['timestamp']}: {fields}\n\n"

    return "".join(map(line, crewai_rows())).encode()


def n8n() -> Row:
    def items(value: object, port: str = "main") -> Row:
        return {port: [[{"json": value}]]}

    def ran(second: int, data: Row, **more: object) -> list[Row]:
        return [{"startTime": START + second * 1000, "executionTime": 900, "executionStatus": "success",
                 "data": data, "source": [], **more}]  # fmt: skip

    called = [{"previousNode": "Pilot", "previousNodeRun": 0}]
    answer = {"response": {"generations": [[{"text": ANSWER}]]}, "tokenUsage": {
        "promptTokens": 7, "completionTokens": 2, "totalTokens": 9}}  # fmt: skip
    asked = {"messages": [f"System: {SYSTEM}\nHuman: {GOAL}"], "options": {"model": "m-1"}}
    runs = {
        "Chat": ran(0, items({"chatInput": GOAL})),
        "Model": ran(
            1, items(answer, "ai_languageModel"), source=called, inputOverride=items(asked, "ai_languageModel")
        ),
        NAME: ran(2, items({"response": RESULT}, "ai_tool"), source=called, inputOverride=items(ARGUMENTS, "ai_tool")),
        "Pilot": ran(0, items({"output": ANSWER}), source=[{"previousNode": "Chat"}]),
    }
    nodes = [{"name": "Pilot", "type": "@n8n/n8n-nodes-langchain.agent"}]
    return {"id": SESSION, "finished": True, "mode": "webhook", "startedAt": "2026-09-21T14:13:20.000Z",
            "workflowData": {"name": "Tides", "nodes": nodes},
            "data": {"startData": {}, "resultData": {"runData": runs, "lastNodeExecuted": "Pilot"}}}  # fmt: skip


def dify_nodes() -> Row:
    def node(index: int, kind: str, title: str, inputs: object, outputs: object, **more: object) -> Row:
        return {"id": f"x{index}", "index": index, "node_id": f"n{index}", "node_type": kind, "title": title,
                "inputs": inputs, "outputs": outputs, "status": "succeeded", "error": None, "workflow_run_id": SESSION,
                "created_at": START // 1000 + index, "finished_at": START // 1000 + index + 1, **more}  # fmt: skip

    prompts = [{"role": "system", "text": SYSTEM, "files": []}, {"role": "user", "text": GOAL, "files": []}]
    process = {"model_mode": "chat", "model_name": "m-1", "prompts": prompts, "usage": {
        "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}  # fmt: skip
    return {"data": [
        node(4, "end", "End", {"answer": ANSWER}, {"answer": ANSWER}),
        node(1, "start", "Start", {"sys.query": GOAL}, {"sys.query": GOAL}),
        node(2, "tool", NAME, ARGUMENTS, {"text": RESULT}),
        node(3, "llm", "Model", {}, {"text": ANSWER}, process_data=process),
    ]}  # fmt: skip


def flowise_flow() -> Row:
    def node(kind: str, label: str, given: object, made: object) -> Row:
        return {"nodeId": f"{kind}_0", "nodeLabel": label, "previousNodeIds": [], "status": "FINISHED",
                "data": {"id": f"{kind}_0", "name": kind, "input": given, "output": made}}  # fmt: skip

    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": GOAL}]
    made = {"content": ANSWER, "usageMetadata": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}}
    nodes = [
        node("startAgentflow", "Start", {"question": GOAL}, {"question": GOAL}),
        node("toolAgentflow", NAME, ARGUMENTS, RESULT),
        node("llmAgentflow", "Model", {"messages": messages, "llmModelConfig": {"modelName": "m-1"}}, made),
    ]
    return {"id": SESSION, "executionData": json.dumps(nodes), "state": "FINISHED", "sessionId": "s"}


CHATS: dict[str, tuple[str, str, Callable[[], bytes]]] = {
    "aider": (".aider.chat.history.md", "harbour-2026-01-01 10:00:00", aider_chat),
    "aider log": (".aider.llm.history", "harbour", aider_log),
}
"""By case the file's name in the folder `harbour`, the id of its trace, its bytes."""
CREWS = {"text": ("crew.txt", crewai_text), "json": ("crew.json", lambda: dumped(crewai_rows()))}
WORKFLOWS: dict[str, Callable[[], Row]] = {"n8n": n8n, "dify": dify_nodes, "flowise": flowise_flow}
__all__ = ["CHATS", "CREWS", "ID", "WORKFLOWS"]
