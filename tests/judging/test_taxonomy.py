"""TRAIL's categories: all 21, in any spelling people used, each under known dimensions."""

import pytest

from tracejury.judging.records import DIMENSIONS
from tracejury.judging.taxonomy import categories, dimensions_of, normalise


def test_there_are_21_categories_each_with_dimensions_and_a_reason() -> None:
    entries = categories()
    assert len({entry.name for entry in entries}) == len(entries) == 21
    for entry in entries:
        assert entry.dimensions
        assert set(entry.dimensions) <= set(DIMENSIONS)
        assert len(set(entry.dimensions)) == len(entry.dimensions)
        assert entry.reason.endswith(".")


def test_every_dimension_is_reached_by_some_category() -> None:
    assert {dimension for entry in categories() for dimension in entry.dimensions} == set(DIMENSIONS)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Formatting Errors", "Formatting Errors"),
        ("Formatting Error", "Formatting Errors"),
        ("Context Handling Failure", "Context Handling Failures"),
        (" Incorrect Problem Identification", "Incorrect Problem Identification"),
        ("Tool Selection", "Tool Selection Errors"),
        ("Goal deviation", "Goal Deviation"),
        ("Task Orchestration Errors", "Task Orchestration"),
        ("Language-Only", "Language-only"),
        ("Instruction Non-Compliance", "Instruction Non-compliance"),
        ("Instruction non complience", "Instruction Non-compliance"),
        ("Poor Information retrieval", "Poor Information Retrieval"),
        ("Tool-related (invented output)", "Tool-related"),
        ("RESOURCE_NOT_FOUND", "Resource Not Found"),
        ("Timeout Issues", "Timeout Issues"),
    ],
)
def test_spelling_is_understood(written: str, meant: str) -> None:
    assert normalise(written) == meant


@pytest.mark.parametrize("written", ["", " ", "error", "Errors", "tool", "Hallucinations", "Something else", "失敗"])
def test_what_names_no_category_is_none_and_has_no_dimension(written: str) -> None:
    assert normalise(written) is None
    assert dimensions_of(written) == ()
