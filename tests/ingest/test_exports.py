"""Exports of Phoenix, Langfuse, MLflow, TruLens and Inspect become the same table of one question and answer."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.ingest import export_files as made
from tests.ingest.trail_files import read_all

from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.trace import LogRecord, Trace


def phoenix_parquet() -> bytes:
    return pd.DataFrame(made.phoenix_rows()).to_parquet()


def phoenix_csv() -> bytes:
    return pd.DataFrame(made.phoenix_rows()).to_csv().encode()


def trulens_csv() -> bytes:
    text = io.StringIO()
    rows = [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in made.trulens_rows()]
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def trulens_sqlite() -> bytes:
    rows = [{k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in made.trulens_rows()]
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE trulens_events ({', '.join(rows[0])})")
    for row in rows:
        database.execute(f"INSERT INTO trulens_events VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
    database.commit()
    return database.serialize()


FORMS: dict[str, tuple[str, Any]] = {
    "phoenix lines": ("phoenix", lambda: made.lines(made.phoenix_rows())),
    "phoenix parquet": ("phoenix", phoenix_parquet),
    "phoenix csv": ("phoenix", phoenix_csv),
    "langfuse trace": ("langfuse", lambda: json.dumps(made.langfuse_trace()).encode()),
    "langfuse observations": ("langfuse", lambda: json.dumps(made.langfuse_trace()["observations"]).encode()),
    "mlflow 3": ("mlflow", lambda: json.dumps(made.mlflow_trace()).encode()),
    "mlflow 2": ("mlflow", lambda: json.dumps(made.mlflow_trace(2)).encode()),
    "trulens lines": ("trulens", lambda: made.lines(made.trulens_rows())),
    "trulens csv": ("trulens", trulens_csv),
    "trulens sqlite": ("trulens", trulens_sqlite),
}


@pytest.fixture(params=FORMS)
def trace(request: pytest.FixtureRequest) -> Trace:
    format, make = FORMS[request.param]
    (found,) = read_all(make())
    assert isinstance(found, Trace), found
    assert found.format == format
    return found


def test_each_span_stands_once_with_its_kind_and_depth(trace: Trace) -> None:
    assert [(s.span_id, s.depth) for s in trace.spans] == [(made.ROOT, 0), (made.CALL, 1), (made.TOOL, 1)]
    assert [s.kind for s in trace.spans][1:] == ["LLM", "TOOL"]
    assert trace.spans[0].kind in ("AGENT", "CHAIN")


def test_times_are_the_sources_in_microseconds(trace: Trace) -> None:
    assert [s.start_time for s in trace.spans] == [made.START_NS // 1000 + us for us in (0, 500_000, 1_000_000)]
    assert [s.duration_s for s in trace.spans] == [3.0, 0.5, 1.0]


def test_the_call_has_its_model_and_tokens(trace: Trace) -> None:
    call = trace.spans[1]
    assert (call.model, call.prompt_tokens, call.completion_tokens, call.total_tokens) == ("gpt-4o-mini", 11, 7, 18)


def test_the_tool_has_its_arguments_and_result(trace: Trace) -> None:
    tool = trace.spans[2]
    assert (tool.tool_name, tool.output) == ("search", made.FOUND)
    assert json.loads(tool.tool_arguments or "") == {"query": "Solaris"}


def test_question_and_answer_are_found(trace: Trace) -> None:
    assert (trace.goal, trace.final_answer) == (made.QUESTION, made.ANSWER)


def test_the_messages_of_the_call_are_structured(trace: Trace) -> None:
    if trace.format == "trulens":
        pytest.skip("TruLens records calls, not messages")
    call = trace.spans[1]
    (asked,) = (trace.messages[p] for p in call.input_messages)
    (said,) = (trace.messages[p] for p in call.output_messages)
    assert (asked.role, asked.content) == ("user", made.QUESTION)
    assert [(c.name, c.arguments, c.id) for c in said.tool_calls] == [("search", '{"query": "Solaris"}', "call_1")]


@pytest.mark.parametrize("data", [json.dumps(made.inspect_log()).encode(), made.inspect_zip()], ids=["json", "eval"])
def test_an_inspect_sample_is_a_trace_of_its_events(data: bytes) -> None:
    (trace,) = read_all(data, "log.eval")
    assert isinstance(trace, Trace)
    assert (trace.format, trace.trace_id) == ("inspect", "sample-1")
    assert [(s.kind, s.depth) for s in trace.spans] == [
        ("CHAIN", 0), ("AGENT", 1), ("LLM", 2), ("TOOL", 2), ("LLM", 2), ("EVENT", 2),
    ]  # fmt: skip
    assert (trace.goal, trace.final_answer) == (made.QUESTION, made.ANSWER)
    assert trace.spans[3].output == made.FOUND  # the attachment is put back
    assert [len(s.input_messages) for s in trace.spans if s.kind == "LLM"] == [1, 3]


@pytest.mark.parametrize(
    "document",
    [made.inspect_log(), made.langfuse_trace(), made.mlflow_trace(), made.trulens_rows()],
    ids=["inspect", "langfuse", "mlflow", "trulens"],
)
def test_right_answers_and_others_opinions_stand_in_the_logs_alone(document: Any) -> None:
    (trace,) = read_all(document)
    assert isinstance(trace, Trace)
    shown = repr((trace.spans, trace.messages, trace.goal, trace.final_answer, trace.attributes))
    assert trace.logs
    assert all(isinstance(log, LogRecord) and log.holds_answer for log in trace.logs)
    for word in ("gold", "right: Lem", "Lem is right"):
        assert word not in shown


def test_a_langfuse_score_names_its_observation() -> None:
    (trace,) = read_all(made.langfuse_trace())
    assert isinstance(trace, Trace)
    assert [log.span_id for log in trace.logs] == [made.CALL]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_the_frame_of_mlflows_own_search_gives_the_traces_whole(form: str) -> None:
    path = Path(__file__).parent / "exports" / f"mlflow-search.{form}"
    found = [item for item in read_traces(path) if isinstance(item, Trace)]
    assert len(found) == 2
    told = json.loads((path.parent / "mlflow-search.jsonl").read_text(encoding="utf-8").splitlines()[0])
    (alone,) = (item for item in read_bytes(told["trace"].encode(), file="trace.json") if isinstance(item, Trace))
    (same,) = (trace for trace in found if trace.trace_id == alone.trace_id)
    assert (same.spans, same.messages, same.attributes) == (alone.spans, alone.messages, alone.attributes)


def test_a_frame_that_lost_its_traces_is_read_from_its_spans() -> None:
    path = Path(__file__).parent / "exports" / "mlflow-search.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = "\n".join(json.dumps({**row, "trace": "Trace(trace_id=...)"}) for row in rows).encode()
    found = [item for item in read_bytes(lines, file="frame.jsonl") if isinstance(item, Trace)]
    whole = [item for item in read_traces(path) if isinstance(item, Trace)]
    assert [[(s.span_id, s.kind, s.output) for s in trace.spans] for trace in found] == [
        [(s.span_id, s.kind, s.output) for s in trace.spans] for trace in whole
    ]


@pytest.mark.parametrize("name", ["phoenix-spans.json", "phoenix-otlpv1.json"])
def test_what_phoenix_answers_is_what_was_sent_to_it(name: str) -> None:
    def told(path: Path) -> dict[str, object]:
        return {
            trace.trace_id: [
                (
                    span.span_id, span.parent_span_id, span.name, span.kind, span.agent, span.status, span.model,
                    span.tool_arguments, span.output, span.total_tokens,
                    [trace.messages[place] for place in (*span.input_messages, *span.output_messages)],
                )
                for span in trace.spans
            ]
            for trace in read_traces(path)
            if isinstance(trace, Trace)
        }  # fmt: skip

    sent = told(Path(__file__).parent / "dialects" / "openai-agents.otlp.jsonl")
    assert len(sent) == 2
    assert told(Path(__file__).parent / "exports" / name) == sent
