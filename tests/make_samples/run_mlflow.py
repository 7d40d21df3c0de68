"""Makes data/samples/mlflow: traces as MLflow's own tracing records and writes them (`Trace.to_json`).

MLflow gives random ids and real times: a second run gives the same text with other ids and times.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import mlflow
from cleaning import clean_json
from mlflow.entities import SpanType
from paths import EXPORTS, SAMPLES, write

PAGES = {"herring": "Herring is landed from August to October.", "cod": "Cod is landed from January to April."}


@mlflow.trace(name="find_page", span_type=SpanType.RETRIEVER)
def find_page(fish: str) -> list[dict[str, Any]]:
    return [{"page_content": text, "metadata": {"title": title}} for title, text in PAGES.items() if title in fish]


@mlflow.trace(name="months_between", span_type=SpanType.TOOL)
def months_between(first: str, last: str) -> int:
    months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"]
    if first not in months or last not in months:
        raise ValueError(f"unknown month: {first!r} or {last!r}")
    return months.index(last) - months.index(first) + 1


@mlflow.trace(name="chat", span_type=SpanType.CHAT_MODEL)
def chat(messages: list[dict[str, Any]], reply: dict[str, Any]) -> dict[str, Any]:
    span = mlflow.get_current_active_span()
    told, written = len(json.dumps(messages)) // 4, len(json.dumps(reply)) // 4
    usage = {"input_tokens": told, "output_tokens": written, "total_tokens": told + written}
    span.set_attribute("mlflow.chat.tokenUsage", usage)
    span.set_attribute("mlflow.llm.model", "scripted/harbour-1")
    return {"choices": [{"index": 0, "message": reply, "finish_reason": "stop"}]}


SCRIPT: list[str] = []
"""What the model will say next: the first month of its tool call, then its answer."""


@mlflow.trace(name="fish_agent", span_type=SpanType.AGENT)
def agent(question: str) -> str:
    page = find_page(question.lower())[0]["page_content"]
    said: list[dict[str, Any]] = [
        {"role": "system", "content": f"Answer from this page only: {page}"},
        {"role": "user", "content": question},
    ]
    arguments = json.dumps({"first": SCRIPT.pop(0), "last": "October"})
    call = {"id": "call_1", "type": "function", "function": {"name": "months_between", "arguments": arguments}}
    said.append(chat(said, {"role": "assistant", "content": None, "tool_calls": [call]})["choices"][0]["message"])
    try:
        result = str(months_between(**json.loads(arguments)))
    except ValueError as error:
        result = f"error: {error}"
    said.append({"role": "tool", "tool_call_id": "call_1", "content": result})
    return str(chat(said, {"role": "assistant", "content": SCRIPT.pop(0)})["choices"][0]["message"]["content"])


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        mlflow.set_tracking_uri("sqlite:///traces.db")
        runs = (("August", "Three months."), ("Augustus", "Three months, from August to October."))
        for number, (month, answer) in enumerate(runs, start=1):
            SCRIPT[:] = [month, answer]
            agent("For how many months is herring landed?")
            mlflow.flush_trace_async_logging()
            trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
            text = json.dumps(clean_json(_without_machine(json.loads(trace.to_json()))), indent=2) + "\n"
            write(SAMPLES / "mlflow" / f"herring-{number}.json", text)
        write_frame(mlflow.search_traces(return_type="pandas"))


def write_frame(frame: Any) -> None:
    """The same traces as `search_traces()` gives them, in the file types that pandas writes of the frame."""
    frame["trace"] = [json.dumps(clean_json(_without_machine(json.loads(trace)))) for trace in frame["trace"]]
    for column in ("trace_metadata", "tags"):
        frame[column] = [_of_no_machine(held) for held in frame[column]]
    frame["spans"] = [[clean_json(span) for span in spans] for spans in frame["spans"]]
    frame["assessments"] = [list(held) for held in frame["assessments"]]
    write(EXPORTS / "mlflow-search.jsonl", frame.to_json(orient="records", lines=True, date_format="iso"))
    write(EXPORTS / "mlflow-search.csv", frame.to_csv(index=False))
    write(EXPORTS / "mlflow-search.parquet", frame.to_parquet())


def _without_machine(trace: dict[str, Any]) -> dict[str, Any]:
    for holder in ("trace_metadata", "tags"):
        trace["info"][holder] = _of_no_machine(trace["info"].get(holder, {}))
    return trace


def _of_no_machine(held: dict[str, str]) -> dict[str, str]:
    own = ("mlflow.source", "mlflow.user", "mlflow.git", "mlflow.artifactLocation")
    return {key: value for key, value in held.items() if not key.startswith(own)}


if __name__ == "__main__":
    main()
