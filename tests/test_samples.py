"""The shipped samples: each is read by its reader, and the shipped labels stand on real spans and real text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Rejected, Trace
from tracejury.judging.judges.trace_text import message_text, render_trace
from tracejury.judging.records import DIMENSIONS

DATA = Path(__file__).resolve().parent.parent / "data"
SAMPLES = DATA / "samples"
LABELS = DATA / "labels"
FILES = sorted(
    path
    for path in SAMPLES.rglob("*")
    if path.is_file() and path.relative_to(SAMPLES).parts[0] != "predictions" and ".logs." not in path.name
)
TRAIL = sorted((SAMPLES / "trail").glob("*.json"))
OWN_LABELS = sorted(LABELS.glob("*.json"))
MACHINE = re.compile(rb"/(?:work|root|home|Users|tmp|usr|opt)/|[\w.+-]+@(?!example\.(?:com|org))[\w-]+\.[a-z]{2,}")


def traces_of(path: Path) -> list[Trace]:
    results = list(read_traces(path))
    assert not [result for result in results if isinstance(result, Rejected)]
    return [result for result in results if isinstance(result, Trace)]


@pytest.fixture(scope="module")
def trail() -> Mapping[str, Trace]:
    return {trace.trace_id: trace for path in TRAIL for trace in traces_of(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SAMPLES).as_posix())
def test_a_sample_is_read_whole(path: Path) -> None:
    results = traces_of(path)
    assert results
    for trace in results:
        assert trace.spans
        assert trace.format == path.relative_to(SAMPLES).parts[0]


def test_log_records_beside_spans_give_the_model_calls_their_messages() -> None:
    (trace,) = traces_of(SAMPLES / "otel_sdk" / "genai")
    calls = [span for span in trace.spans if span.kind == "LLM"]
    assert [[trace.messages[place].role for place in span.input_messages] for span in calls] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
    ]
    (position,) = calls[-1].output_messages
    assert trace.messages[position].content == "Two adults pay 96 crowns for the way there and back."


def test_no_trace_stands_in_two_samples() -> None:
    results = [result for result in read_traces(SAMPLES) if isinstance(result, Trace)]
    ids = [trace.trace_id for trace in results]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SAMPLES).as_posix())
def test_a_sample_names_no_machine_and_no_person(path: Path) -> None:
    assert MACHINE.findall(path.read_bytes()) == []


def test_the_trail_samples_are_agent_runs_of_some_length(trail: Mapping[str, Trace]) -> None:
    assert {len(trace.spans) for trace in trail.values()} == {28, 31, 32, 33, 36, 41}
    assert sum(any(span.agent == "search_agent" for span in trace.spans) for trace in trail.values()) == 5
    assert sum(any(span.status == "ERROR" for span in trace.spans) for trace in trail.values()) == 3


def test_a_trail_sample_holds_a_gold_answer_that_no_reader_sees(trail: Mapping[str, Trace]) -> None:
    lighthouse = next(trace for trace in trail.values() if "Tollan Head" in (trace.goal or ""))
    assert lighthouse.final_answer == "37"
    assert '"true_answer"' in json.dumps([record.body for record in lighthouse.logs])
    assert "true_answer" not in render_trace(lighthouse).text


def text_of(trace: Trace, span_id: str, field: str) -> str:
    span = next(span for span in trace.spans if span.span_id == span_id)
    if field.startswith("message:"):
        position = int(field.removeprefix("message:"))
        assert position in (*span.input_messages, *span.output_messages)
        return message_text(trace.messages[position])
    text = getattr(span, field)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("path", OWN_LABELS, ids=lambda path: path.name)
def test_labels_have_the_form_of_their_schema(path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DATA / "schema" / "labels.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", OWN_LABELS, ids=lambda path: path.name)
def test_labels_stand_on_real_spans_and_quote_them_word_for_word(path: Path, trail: Mapping[str, Trace]) -> None:
    labels: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["labels"]
    traces = {**trail, **{trace.trace_id: trace for trace in traces_of(SAMPLES / "gaia2")}}
    assert {label["trace_id"] for label in labels} == {*trail, "harbour_desk_pair_27c27979"}
    for label in labels:
        trace = traces[label["trace_id"]]
        ids = {span.span_id for span in trace.spans}
        assert {score["dimension"] for score in label["scores"]} == set(DIMENSIONS)
        for error in label["errors"]:
            assert error["span_ids"]
            assert set(error["span_ids"]) <= ids
            for piece in error["evidence"]:
                text = text_of(trace, piece["span_id"], piece["field"])
                start, end = piece["start"], piece["end"]
                assert text[start:end] == piece["quote"]
                assert text[:start].endswith(piece["before"])
                assert text[end:].startswith(piece["after"])


def marked_by(path: Path) -> set[tuple[str, str]]:
    """The span and dimension of every error in a file of labels."""
    labels = json.loads(path.read_text(encoding="utf-8"))["labels"]
    errors = [error for label in labels for error in label["errors"]]
    return {(span, dimension) for error in errors for span in error["span_ids"] for dimension in error["dimensions"]}


def test_the_annotators_agree_on_much_and_differ_on_some() -> None:
    first, second = (marked_by(path) for path in OWN_LABELS)
    assert len(first & second) > len(first ^ second) / 2
    assert first - second
    assert second - first


def test_the_trail_annotations_are_in_order_but_for_one(trail: Mapping[str, Trace]) -> None:
    broken = []
    for path in sorted((LABELS / "trail").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        try:
            document = json.loads(text)
        except json.JSONDecodeError:
            broken.append(path)
            continue
        ids = {span.span_id: span.kind for span in trail[document["trace_id"]].spans}
        assert path.stem == document["trace_id"]
        assert all(ids[error["location"]] in {"LLM", "TOOL"} for error in document["errors"])
    assert len(broken) == 1
    assert re.search(r"\},\s*\]", broken[0].read_text(encoding="utf-8"))


def test_each_recorded_judge_has_one_reply_that_is_no_json() -> None:
    for folder in sorted((SAMPLES / "predictions").iterdir()):
        texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.json"))]
        assert len(texts) == 6
        assert sum(not text.lstrip().startswith("{") for text in texts) == 1
