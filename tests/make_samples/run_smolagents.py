"""Makes data/samples/trail, otlp and otel_sdk by running smolagents with scripted models (see README.md here)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import opentelemetry.trace as api
from library import CodeBase, ConvertLength, FindInDocument, LibrarySearch, OpenDocument
from opentelemetry.sdk.trace import ReadableSpan
from otlp_form import compact, otlp_base64, otlp_json, otlp_protobuf, sdk_lines
from paths import SAMPLES, write
from recording import Recorder, fixed
from scenarios import FERRIES, ISSUE, REPAIR, REPAIR_GOLD, REPAIR_TASK, RESEARCH, Ferry, Research
from scripted import CALL_PROMPTS, CODE_PROMPTS, ScriptedModel
from smolagents import ChatMessage, CodeAgent, LogLevel, ToolCallingAgent
from smolagents.models import MessageRole
from trail_form import trail_trace

FIRST_RUN_US = 1_772_442_900_000_000  # 2026-03-02 09:15 UTC
RESOURCE = {
    "pat.account.id": "00000000-0000-4000-8000-000000000000",
    "service.name": "tracejury-samples/app:Harbour-Library",
    "telemetry.sdk.language": "python",
    "telemetry.sdk.name": "opentelemetry",
    "telemetry.sdk.version": "1.45.2",
}
PROJECT = {
    "pat.app": "Harbour-Library",
    "pat.project.id": "00000000-0000-4000-8000-000000000001",
    "pat.project.name": "tracejury-samples",
}


def _log(name: str, arguments: dict[str, Any], output: Any) -> dict[str, Any]:
    return {"function.arguments": arguments, "function.name": name, "function.output": output}


def _team(scenario: Research) -> tuple[CodeAgent, tuple[ScriptedModel, ...]]:
    reader = OpenDocument()
    searching = ScriptedModel(scenario.search, label="search")
    managing = ScriptedModel([*scenario.manager, scenario.reworded], label="manager")
    search_agent = ToolCallingAgent(
        tools=[LibrarySearch(), reader, FindInDocument(reader)],
        model=searching,
        name="search_agent",
        description="Searches the harbour library and answers with the text of its documents.",
        prompt_templates=CALL_PROMPTS,
        planning_interval=scenario.search_interval,
        max_steps=scenario.search_steps,
        verbosity_level=LogLevel.OFF,
    )
    manager = CodeAgent(
        tools=[ConvertLength()],
        model=managing,
        managed_agents=[search_agent],
        prompt_templates=CODE_PROMPTS,
        planning_interval=scenario.manager_interval,
        max_steps=8,
        verbosity_level=LogLevel.OFF,
        executor_kwargs={"timeout_seconds": None},
    )
    return manager, (managing, searching)


def _message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role=role, content=[{"type": "text", "text": text}])


def _reword(manager: CodeAgent, question: str) -> None:
    manager.model.generate(
        [
            _message(MessageRole.SYSTEM, f"Earlier you were asked:\n\n{question}\n\nThis is what you did:"),
            *manager.write_memory_to_messages()[1:],
            _message(MessageRole.USER, "Now write the answer in the form: FINAL ANSWER: [answer]"),
        ]
    )


def run_research(scenario: Research) -> tuple[list[ReadableSpan], dict[str, Any]]:
    example = {
        "task_id": f"harbour-{scenario.key}",
        "question": scenario.question,
        "task": scenario.level,
        "true_answer": scenario.true_answer,
        "file_name": "",
        "Annotator Metadata": {"Steps": "Open the document and read it.", "Number of tools": "1"},
    }

    def run(tracer: api.Tracer) -> None:
        with tracer.start_as_current_span("main"):
            with tracer.start_as_current_span("get_examples_to_answer"):
                pass
            with tracer.start_as_current_span("answer_single_question"):
                with tracer.start_as_current_span("create_agent_hierarchy"):
                    manager, models = _team(scenario)
                manager.run(f"Answer the question below from the harbour library.\n\n{scenario.question}")
                _reword(manager, scenario.question)
        for model in models:
            model.assert_all_said()

    logs = {
        "main": _log("main", {}, "<null>"),
        "get_examples_to_answer": _log("get_examples_to_answer", {"answers_file": "answers.jsonl"}, [example]),
        "answer_single_question": _log(
            "answer_single_question", {"answers_file": "answers.jsonl", "example": example}, "<null>"
        ),
        "create_agent_hierarchy": _log("create_agent_hierarchy", {}, "<smolagents.agents.CodeAgent object>"),
    }
    return Recorder(RESOURCE).record(run), logs


def run_repair() -> tuple[list[ReadableSpan], dict[str, Any]]:
    answers: list[Any] = []

    def run(tracer: api.Tracer) -> None:
        base, model = CodeBase(), ScriptedModel(REPAIR, label="repair")
        functions = {name: getattr(base, name) for name in ("read_file", "replace_in_file", "run_tests")}
        with tracer.start_as_current_span("process_item"):
            with tracer.start_as_current_span("create_agent"):
                agent = CodeAgent(
                    tools=[],
                    model=model,
                    prompt_templates=CODE_PROMPTS,
                    max_steps=20,
                    verbosity_level=LogLevel.OFF,
                    executor_kwargs={"additional_functions": functions, "timeout_seconds": None},
                )
            answers.append(agent.run(REPAIR_TASK))
        model.assert_all_said()

    spans = Recorder(RESOURCE).record(run)
    item = {
        "instance_id": "tidecalc-7",
        "repo": "tidecalc",
        "problem_statement": ISSUE,
        "hints_text": "",
        "patch": REPAIR_GOLD,
        "test_patch": "",
        "FAIL_TO_PASS": '["tests/test_height.py::test_slack_water_is_the_mean"]',
        "PASS_TO_PASS": '["tests/test_height.py::test_half_way"]',
    }
    return spans, {
        "process_item": _log("process_item", {"item": item, "item_index": 0}, answers[0]),
        "create_agent": _log("create_agent", {}, "<smolagents.agents.CodeAgent object>"),
    }


def run_ferry(ferry: Ferry) -> list[ReadableSpan]:
    def run(tracer: api.Tracer) -> None:
        model, reader = ScriptedModel(ferry.replies, label="ferry"), OpenDocument()
        agent = ToolCallingAgent(
            tools=[LibrarySearch(), reader],
            model=model,
            prompt_templates=CALL_PROMPTS,
            max_steps=6,
            verbosity_level=LogLevel.OFF,
        )
        agent.run(ferry.question)
        model.assert_all_said()

    return Recorder({"service.name": "ferry-desk", "telemetry.sdk.language": "python"}).record(run)


def write_trail() -> None:
    runs = [(scenario.key, *run_research(scenario)) for scenario in RESEARCH]
    runs.append(("tidecalc", *run_repair()))
    for number, (key, recorded, logs) in enumerate(runs):
        spans = fixed(recorded, seed=key, start_us=FIRST_RUN_US + number * 1_800_000_000)
        trace_id = f"{spans[0].context.trace_id:032x}"
        print(f"{key}: {len(spans)} spans")
        write(SAMPLES / "trail" / f"{trace_id}.json", trail_trace(spans, seed=key, logs=logs, project=PROJECT))


def write_otlp() -> None:
    runs: list[Sequence[ReadableSpan]] = [
        fixed(run_ferry(ferry), seed=ferry.key, start_us=FIRST_RUN_US + 86_400_000_000 + number * 600_000_000)
        for number, ferry in enumerate(FERRIES)
    ]
    write(SAMPLES / "otlp" / "ferry.otlp.json", compact(otlp_json(runs[0])) + "\n")
    write(SAMPLES / "otlp" / "ferry.otlp.jsonl", "".join(compact(otlp_json(run)) + "\n" for run in runs[1:3]))
    write(SAMPLES / "otlp" / "ferry.otlp.pb", otlp_protobuf(runs[3]))
    write(SAMPLES / "otlp" / "ferry.base64.json", compact(otlp_base64(runs[4])) + "\n")
    write(SAMPLES / "otel_sdk" / "ferry.spans.jsonl", sdk_lines(runs[5]))


def write_feed(folder: Path) -> None:
    """The runs that `run_phoenix.py` sends to Phoenix, as protobuf."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, form in enumerate(("parquet", "csv", "jsonl")):
        start = FIRST_RUN_US + 2 * 86_400_000_000 + number * 600_000_000
        spans = fixed(run_ferry(FERRIES[number]), seed=f"phoenix {form}", start_us=start)
        (folder / f"{form}.pb").write_bytes(otlp_protobuf(spans))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    if len(sys.argv) > 1:
        write_feed(Path(sys.argv[1]))
    else:
        write_trail()
        write_otlp()
