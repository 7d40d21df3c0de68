"""What the island is sent: every text once, long ones as their head, nothing that holds the answer."""

from dataclasses import replace

import orjson
import pytest
from tests.app.desk_traces import EMOJI_CRLF_RTL, desk_trace, huge_trace, long_trace

from tracejury.app.components.annotator import payload
from tracejury.app.components.annotator.payload import LONG_TEXT, SPAN_FIELDS, document, frame, outline
from tracejury.ingest.trace import LogRecord, Message, Outcome, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.judges.trace_text import render_trace


def of(trace: Trace) -> payload.Document:
    return document(trace, render_trace(trace))


def test_columns_hold_every_span_in_reading_order() -> None:
    opening = of(desk_trace()).opening()
    spans = opening["spans"]
    assert spans["id"] == [span.span_id for span in desk_trace().spans]
    assert spans["parent"] == [-1, 0, 0, 0, 0, 0]
    assert spans["start"] == [0, 0, 2000, 4000, 5000, 6000]
    assert spans["duration"] == [9000, 2000, 2000, 1000, 1000, 3000]
    assert [opening["tools"][n] if n >= 0 else None for n in spans["tool"]] == [
        None,
        None,
        None,
        "search",
        "shot",
        None,
    ]
    assert spans["tokens"] == [None, 120, 80, None, None, 200]


def test_each_text_is_sent_once() -> None:
    opening = of(desk_trace()).opening()
    texts = list(opening["texts"].values())
    assert len(texts) == len(set(texts))
    assert EMOJI_CRLF_RTL in texts


def test_stored_text_arrives_unchanged() -> None:
    found = of(desk_trace())
    sent = orjson.loads(orjson.dumps(found.opening()))
    part = next(part for part in sent["blocks"][3]["parts"] if part["field"] == "output")
    assert sent["texts"][str(part["text"])] == EMOJI_CRLF_RTL


def test_repeats_name_where_they_stood_and_carry_their_text() -> None:
    opening = of(desk_trace()).opening()
    repeats = opening["blocks"][2]["repeats"]
    assert [(position, ordinal) for position, ordinal, _, _ in repeats] == [(0, "S2"), (1, "S2"), (2, "S2")]
    assert opening["texts"][str(repeats[1][3])].startswith("How many moons")


def test_plans_are_listed() -> None:
    assert of(desk_trace()).opening()["plans"] == [1]


def test_a_long_text_is_sent_as_its_head_and_whole_when_asked_for() -> None:
    found = of(huge_trace())
    opening = found.opening()
    number = str(opening["blocks"][1]["parts"][0]["text"])
    head = opening["texts"][number]
    assert head["length"] == len(huge_trace().spans[1].output or "") > LONG_TEXT
    assert len(orjson.dumps(opening)) < 20_000
    assert found.stretch(1, 1, whole=True)["texts"][number].endswith("needle")
    assert isinstance(found.stretch(1, 1)["texts"][number], dict)


def test_opening_holds_a_first_part_and_the_rest_comes_by_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "FIRST_TEXTS", 4_000)
    found = of(long_trace(61))
    first = found.opening()["blocks"]
    assert 0 < len(first) < 61
    rest = found.stretch(len(first), 100)
    assert [block["seq"] for block in [*first, *rest["blocks"]]] == list(range(61))
    named = {str(part["text"]) for block in rest["blocks"] for part in block["parts"]}
    assert named == set(rest["texts"])


def test_search_finds_text_that_was_not_sent() -> None:
    assert of(huge_trace()).search("NEEDLE") == [1]
    assert of(desk_trace()).search("שלום") == [3, 5]


def test_outline_has_the_same_index_as_the_document() -> None:
    trace = long_trace(31)
    full = of(trace).opening()
    rows = [tuple(getattr(span, name) for name in SPAN_FIELDS) for span in trace.spans]
    early = outline(trace, rows, trace.warnings)
    assert early["partial"] is True
    for key in ("spans", "names", "agents", "tools", "goal", "answer", "warnings", "clock"):
        assert early[key] == full[key], key
    assert early["texts"][str(early["goal"])] == "Read the book"


def test_nothing_that_may_hold_the_answer_is_sent() -> None:
    secret = "the-gold-answer-is-42"
    trace = replace(
        desk_trace(),
        logs=(LogRecord(span_id=None, body={"true_answer": secret}, holds_answer=True),),
        outcome=Outcome(decision="failed", score=0.0, reason=secret, rationale=secret, source="bench"),
    )
    assert secret not in orjson.dumps(of(trace).opening()).decode()


def test_hidden_agents_are_numbered_and_models_left_out() -> None:
    opening = document(desk_trace(), render_trace(desk_trace()), hide={"agent", "model"}).opening()
    assert opening["agents"] == ["agent 1"]
    assert opening["models"] == []
    assert set(opening["spans"]["model"]) == {-1}


def test_orphans_and_cut_cycles_are_roots() -> None:
    drafts = [
        SpanDraft(span_id="a", parent_span_id="b", name="a"),
        SpanDraft(span_id="b", parent_span_id="a", name="b"),
        SpanDraft(span_id="lost", parent_span_id="nowhere", name="lost"),
    ]
    trace = assemble(drafts, trace_id="odd", format="made", source=Source(file="x"), messages=[Message("user", "x")])
    spans = of(trace).opening()["spans"]
    assert len(spans["id"]) == 3
    assert spans["parent"].count(-1) == 2
    assert all(parent < seq for seq, parent in enumerate(spans["parent"]))


def test_a_part_that_repeats_a_stretch_says_so_with_its_place() -> None:
    long = "The whole story of the harbour, told once. " * 20
    messages = [Message("user", long), Message("assistant", "I quote: " + long + " End.")]
    drafts = [SpanDraft(span_id="m", name="m", kind="LLM", input_messages=(0,), output_messages=(1,))]
    trace = assemble(drafts, trace_id="t", format="made", source=Source(file="x"), messages=messages)
    pieces = of(trace).opening()["blocks"][0]["parts"][1]["pieces"]
    assert [piece[2] is None for piece in pieces] == [True, False, True]
    assert pieces[1][:2] == [9, 9 + len(long)]


def test_frame_carries_no_trace_text() -> None:
    data = frame(trace_id="t", token="k", token_s=60, user="me", state={"revision": 0}, dimensions=[], base="/app/")
    assert data["base"] == "/app"
    assert data["queue"] is None
    assert set(data) == {
        "trace_id", "token", "token_s", "user", "state", "dimensions", "categories", "span", "queue", "base",
        "read_only",
    }  # fmt: skip
