"""TRAIL annotations are mended with a warning; judges' answers are whole or a failure that says why."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tracejury.ingest.labels import (
    CATEGORIES,
    Annotation,
    FailedReply,
    JudgeReply,
    normal_category,
    read_annotation,
    read_annotations,
    read_replies,
    read_reply,
)
from tracejury.ingest.trace import Rejected

SPAN = "c09361f7f5e6f534"
ERROR = {
    "category": "Tool-related", "location": SPAN, "evidence": "I looked it up", "description": "it did not",
    "impact": "HIGH",
}  # fmt: skip
SCORES = {
    "reliability_score": 1, "reliability_reasoning": "weak", "security_score": 5, "security_reasoning": "safe",
    "instruction_adherence_score": 2, "instruction_adherence_reasoning": "partly", "plan_opt_score": 2.33,
    "plan_opt_reasoning": "long", "overall": 2.58,
}  # fmt: skip


def annotation(*errors: Any, **more: Any) -> Annotation:
    value = {"trace_id": "t1", "errors": list(errors), "scores": [SCORES], **more}
    (found,) = read_annotation(json.dumps(value).encode(), file="t1.json")
    assert isinstance(found, Annotation), found
    return found


def test_an_error_becomes_a_row_with_low_case_impact() -> None:
    (error,) = annotation(ERROR).errors
    assert (error.trace_id, error.index, error.category, error.impact) == ("t1", 0, "Tool-related", "high")
    assert (error.location, error.span_ids, error.evidence) == (SPAN, (SPAN,), "I looked it up")
    assert error.warnings == ()


def test_scores_keep_their_fractions_and_reasons() -> None:
    scores = {score.name: (score.score, score.reasoning) for score in annotation().scores}
    assert scores == {
        "reliability": (1.0, "weak"), "security": (5.0, "safe"), "instruction_adherence": (2.0, "partly"),
        "plan_opt": (2.33, "long"), "overall": (2.58, None),
    }  # fmt: skip


def test_a_score_of_zero_is_a_score_and_a_missing_one_is_none() -> None:
    found = annotation(scores=[{"reliability_score": 0, "security_reasoning": "no number"}])
    assert {score.name: score.score for score in found.scores} == {"reliability": 0.0, "security": None}


def test_the_categories_are_those_of_the_taxonomy() -> None:
    text = (resources.files("tracejury.data") / "taxonomy.csv").read_text(encoding="utf-8")
    assert {row["category"] for row in csv.DictReader(io.StringIO(text))} == set(CATEGORIES)
    assert len(CATEGORIES) == 21


@pytest.mark.parametrize(
    ("raw", "category"),
    [
        # every off spelling that the real files hold
        ("Context Handling Failure", "Context Handling Failures"),
        (" Incorrect Problem Identification", "Incorrect Problem Identification"),
        ("Tool Selection", "Tool Selection Errors"),
        ("Goal deviation", "Goal Deviation"),
        ("Task Orchestration Errors", "Task Orchestration"),
        ("Task Orchestration Error", "Task Orchestration"),
        ("Language-Only", "Language-only"),
        ("Instruction Non-Compliance", "Instruction Non-compliance"),
        ("Instruction non complience", "Instruction Non-compliance"),
        ("Formatting Error", "Formatting Errors"),
        ("Poor Information retrieval", "Poor Information Retrieval"),
        ("Incorrect Memory Usage", "Incorrect Memory Usage"),
        ("Hallucinations > Language-only", "Language-only"),
        # what the official scorer takes for a category, and is none
        ("tool", None),
        ("error", None),
        (" ", None),
        ("", None),
        ("Hallucinations", None),
    ],
)
def test_spellings_are_normalised_and_nothing_else(raw: str, category: str | None) -> None:
    assert normal_category(raw) == category


def test_an_unknown_category_is_kept_as_written_with_a_warning() -> None:
    (error,) = annotation({**ERROR, "category": "Bad vibes"}).errors
    assert (error.category, error.category_raw) == (None, "Bad vibes")
    assert error.warnings[0].startswith("unknown_category")


def test_a_trailing_comma_is_mended_and_said_with_its_line() -> None:
    text = json.dumps({"trace_id": "t1", "errors": [ERROR], "scores": [SCORES]}, indent=2)
    broken = text.replace("\n  ],\n", ",\n  ],\n", 1)
    (found,) = read_annotation(broken.encode(), file="t1.json")
    assert isinstance(found, Annotation)
    assert len(found.errors) == 1
    assert found.warnings[0].startswith("repaired_json: ")
    assert "line" in found.warnings[0]


def test_a_comma_before_a_bracket_within_a_text_stays() -> None:
    text = json.dumps({"trace_id": "t1", "errors": [{**ERROR, "evidence": "[1, 2, ] and {a, }"}], "scores": []})
    (found,) = read_annotation(text.replace("}]", "},]", 1).encode(), file="t1.json")
    assert isinstance(found, Annotation)
    assert found.errors[0].evidence == "[1, 2, ] and {a, }"


def test_a_file_that_cannot_be_mended_is_rejected_by_name() -> None:
    (found,) = read_annotation(b'{"errors": [', file="bad.json", trace_id="t")
    assert isinstance(found, Rejected)
    assert found.file == "bad.json"


def test_keys_that_are_pieces_of_a_sentence_become_the_description() -> None:
    item = {key: value for key, value in ERROR.items() if key != "description"}
    (error,) = annotation({**item, "Observation: it said ": "yes", "within the same output.": ""}).errors
    assert error.description == "Observation: it said : yes\nwithin the same output."
    assert any(w.startswith("misplaced_keys") for w in error.warnings)


def test_a_missing_trace_id_is_taken_from_the_file_name() -> None:
    data = json.dumps({"errors": [ERROR], "scores": []}).encode()
    (found,) = read_annotation(data, file="x/t9.json", trace_id="t9")
    assert isinstance(found, Annotation)
    assert found.trace_id == "t9"
    assert found.warnings[0].startswith("no_trace_id")


def test_a_location_that_names_no_span_is_kept_with_a_warning() -> None:
    (error,) = annotation({**ERROR, "location": "Span ID not found"}).errors
    assert (error.location, error.span_ids) == ("Span ID not found", ())
    assert error.warnings[0].startswith("dead_location")


def test_an_error_that_is_no_object_is_rejected_and_the_others_stay() -> None:
    value = {"trace_id": "t1", "errors": [ERROR, "oops"], "scores": []}
    bad, found = read_annotation(json.dumps(value).encode(), file="t1.json")
    assert isinstance(bad, Rejected)
    assert bad.place == "errors[1]"
    assert isinstance(found, Annotation)
    assert len(found.errors) == 1


def test_the_hubs_parquet_files_hold_labels_too(tmp_path: Path) -> None:
    row = {
        "trace": json.dumps({"trace_id": "t1", "spans": []}),
        "labels": json.dumps({"errors": [ERROR], "scores": [SCORES]}),
    }
    pd.DataFrame([row]).to_parquet(tmp_path / "gaia.parquet")
    (found,) = read_annotations(tmp_path)
    assert isinstance(found, Annotation)
    assert (found.trace_id, len(found.errors)) == ("t1", 1)


@pytest.mark.shared
def test_the_held_annotations_are_71_files_with_404_errors(shared: Path) -> None:
    found = list(read_annotations(shared / "trail" / "annotations"))
    annotations = [item for item in found if isinstance(item, Annotation)]
    assert len(found) == len(annotations) == 71
    assert sum(len(item.errors) for item in annotations) == 404
    mended = [item for item in annotations if any(w.startswith("repaired_json") for w in item.warnings)]
    assert [(item.trace_id, len(item.errors)) for item in mended] == [("a96c6811716c0473b86a23321db79c34", 5)]
    assert all(error.category in CATEGORIES for item in annotations for error in item.errors)


GOOD = json.dumps({"errors": [ERROR], "scores": [SCORES]}, indent=1)


def reply(text: str) -> JudgeReply | FailedReply:
    return read_reply(text, file="t1.json", trace_id="t1")


@pytest.mark.parametrize(
    "text",
    [GOOD, f"```json\n{GOOD}\n```", f"Let me think {{about}} it.\n\n{GOOD}", f"{GOOD}\nThat is all.", f"\ufeff{GOOD}"],
    ids=["bare", "fenced", "after thoughts", "before words", "bom"],
)
def test_a_whole_answer_is_read_wherever_it_stands(text: str) -> None:
    found = reply(text)
    assert isinstance(found, JudgeReply), found
    assert [error.category for error in found.errors] == ["Tool-related"]
    assert found.raw == text


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("before", ["", "```json\n", "I think:\n"])
def test_an_answer_that_is_cut_off_is_a_failure_and_never_half_an_answer(cut: float, before: str) -> None:
    found = reply(before + GOOD[: int(len(GOOD) * cut)])
    assert isinstance(found, FailedReply)
    assert found.state == "unparsable"
    assert found.raw.startswith(before)


def test_a_draft_followed_by_a_cut_off_answer_is_a_failure() -> None:
    assert isinstance(reply(f"{GOOD}\nNo, better:\n{GOOD[:100]}"), FailedReply)


def test_of_two_whole_answers_the_last_counts_and_it_is_said() -> None:
    later = json.dumps({"errors": [], "scores": [SCORES]})
    found = reply(f"Draft:\n{GOOD}\nFinal:\n{later}")
    assert isinstance(found, JudgeReply)
    assert found.errors == ()
    assert any(w.startswith("several_answers") for w in found.warnings)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("Context window exceeded. No output generated.", "too_long"),
        ("Error processing file. No output generated.", "error"),
        ("No output produced", "unparsable"),
        ("", "unparsable"),
        ("  \n", "unparsable"),
        ("I'm sorry, I can't help with that.", "refused"),
        ("The trace looks fine to me.", "unparsable"),
        ("[1, 2]", "unparsable"),
        ('{"verdict": "fine"}', "unparsable"),
        ('{"errors": ["x"], "scores": []}', "unparsable"),
        ('{"errors": {}, "scores": []}', "unparsable"),
    ],
)
def test_what_is_no_answer_is_a_failure_of_its_kind(text: str, state: str) -> None:
    found = reply(text)
    assert isinstance(found, FailedReply)
    assert found.state == state
    assert found.reason


def test_scores_as_a_bare_object_or_as_text_are_read_with_a_warning() -> None:
    found = reply(json.dumps({"errors": [], "scores": {**SCORES, "reliability_score": "4.75"}}))
    assert isinstance(found, JudgeReply)
    assert found.scores[0].score == 4.75
    assert any(w.startswith("scores_not_listed") for w in found.warnings)


@pytest.mark.shared
def test_each_held_prediction_is_an_answer_or_a_named_failure(shared: Path) -> None:
    counted = {}
    for folder in sorted((shared / "trail" / "predictions").iterdir()):
        found = list(read_replies(folder))
        assert len(found) == 58
        states = Counter(item.state if isinstance(item, FailedReply) else "read" for item in found)  # type: ignore[union-attr]
        counted[folder.name] = dict(states)
    assert counted == {
        "QwenLong-L1-32B_GAIA": {"read": 38, "too_long": 20},
        "gemini-2.5-flash_GAIA": {"read": 52, "error": 4, "too_long": 2},
        "o4-mini_GAIA": {"read": 31, "too_long": 16, "unparsable": 11},
    }


def test_an_answer_wrapped_in_a_list_is_read() -> None:
    wrapped, bare = reply('[{"errors": [], "scores": []}]'), reply('{"errors": [], "scores": []}')
    assert isinstance(wrapped, JudgeReply)
    assert isinstance(bare, JudgeReply)
    assert wrapped.errors == bare.errors
    assert wrapped.warnings == ("wrapped_answer: the answer is a list of one object",)
    assert isinstance(reply('[{"errors": []}, {"errors": []}]'), FailedReply)
