"""Localized exactly, within the parent or the same step, or within one span; for judges and for people alike."""

from pathlib import Path
from typing import Any

import pytest
from tests.build import finding, span_id, trace_of, workspace
from tests.judging.team import submit, trace_id

from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import SpanDraft
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.matching.tolerance import Places, is_within, places_by_trace
from tracejury.judging.records import TOLERANCES, Call, Tolerance, Verdict
from tracejury.judging.reports.export import facts_of, inputs_of, manifest_of
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.reports.person_pairs import person_pairs
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

WRONG_TOOL = "The timetable tool is called with a day that it does not know."
# a run with two numbered steps; within the second a sub-agent that counts its own steps
TREE = (
    (1, None, "AGENT", None), (2, 1, "CHAIN", 1), (3, 2, "LLM", None), (4, 2, "TOOL", None), (5, 1, "CHAIN", 2),
    (6, 5, "LLM", None), (7, 5, "AGENT", None), (8, 7, "CHAIN", 1), (9, 8, "LLM", None),
)  # fmt: skip


def traces(home: Path) -> Workspace:
    drafts = [
        SpanDraft(
            span_id=span_id(number), parent_span_id=None if parent is None else span_id(parent), name=kind, kind=kind,
            start_time=number * 1_000, end_time=90_000, step=step,
        )
        for number, parent, kind, step in TREE
    ]  # fmt: skip
    return workspace(home, trace_of(drafts, trace_id=trace_id(0)))


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return traces(tmp_path / "home")


@pytest.fixture
def places(space: Workspace) -> Places:
    with read_transaction(space.engine) as connection:
        return places_by_trace(connection, [trace_id(0)])[trace_id(0)]


@pytest.mark.parametrize(
    ("cited", "labelled", "near"),
    [
        (3, 3, {"exact", "step", "span"}),
        (2, 3, {"step", "span"}),  # the parent, which stands right before it
        (4, 3, {"step", "span"}),  # the next span, of the same step
        (5, 4, {"span"}),  # the next span, of the next step
        (3, 1, set()),  # a grandchild, two spans on
        (5, 1, {"step"}),  # a child, four spans on
        (6, 5, {"step", "span"}),
        (7, 5, {"step"}),
        (9, 6, set()),  # step 1 of the sub-agent is not step 2 of the agent
        (9, 3, set()),  # nor is it step 1 of the agent
        (9, 8, {"step", "span"}),
        (99, 3, set()),  # a span that is not in the trace
    ],
)
def test_what_is_near_by_each_tolerance(places: Places, cited: int, labelled: int, near: set[str]) -> None:
    for one, other in ((cited, labelled), (labelled, cited)):
        assert {t for t in TOLERANCES if is_within([span_id(one)], [span_id(other)], places, t)} == near


def test_a_span_outside_the_trace_is_near_to_itself_alone(places: Places) -> None:
    assert is_within(["gone"], ["gone"], places, "span")
    assert not is_within(["gone"], ["lost"], places, "span")


def judged(space: Workspace, span: int) -> None:
    verdict = Verdict(
        rubric="TC", trace_id=trace_id(0), state="scored", score=1, criteria="", rationale="",
        findings=(finding(WRONG_TOOL, span),), call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(space.engine, [verdict], model="m", author="test")
    propose_matches(space.engine)


def label(span: int) -> dict[str, Any]:
    return {"span_ids": [span_id(span)], "dimensions": ["TC"], "impact": "high", "description": WRONG_TOOL}


@pytest.mark.parametrize("reference", ["ada", MAJORITY])
@pytest.mark.parametrize(("tolerance", "localized"), [("exact", False), ("step", False), ("span", True)])
def test_the_frames_and_the_ceiling_follow_the_tolerance(
    space: Workspace, reference: str, tolerance: Tolerance, localized: bool
) -> None:
    submit(space, "ada", trace_id(0), errors=[label(4)])
    submit(space, "ben", trace_id(0), errors=[label(4) if reference == MAJORITY else label(5)])
    judged(space, 5)
    filters = Filters(reference=reference, tolerance=tolerance)
    with read_transaction(space.engine) as connection:
        pairs = load_frames(connection, filters).error_pairs
        people = person_pairs(connection, filters)
    (row,) = pairs.to_dict("records")
    assert (row["caught"], row["localized"]) == (True, localized)
    own = people[people["dimension"] == "TC"]
    assert len(own) == 2
    assert set(own["localized"]) == {localized or reference == MAJORITY}


def test_exact_is_the_default_and_the_manifest_names_the_tolerance(space: Workspace) -> None:
    submit(space, "ada", trace_id(0), errors=[label(4)])
    judged(space, 4)
    with read_transaction(space.engine) as connection:
        usual, near = (load_frames(connection, filters) for filters in (Filters(), Filters(tolerance="step")))
        manifest = manifest_of(facts_of(near), Filters(tolerance="step"), inputs_of(near, Filters(), {}))
    assert usual.error_pairs["localized"].tolist() == [True]
    assert manifest["selection"]["tolerance"] == "step"  # type: ignore[index, call-overload]
    assert Filters().tolerance == "exact"
    assert "localized: " in Filters(tolerance="step").label()
    assert "localized" not in Filters().label()
