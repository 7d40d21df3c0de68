"""TRAIL's own measures from the store: categories and locations reach the scorer as they were written."""

import json
from pathlib import Path

import pytest
from tests.build import TRACE, span_id, workspace

from tracejury.ingest.labels import Annotation, JudgeReply, read_annotation, read_reply
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.trail import trail_table
from tracejury.judging.labels import trail_answers as trail
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.records import ErrorLabel
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import Frames, load_frames
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

NAMED = ("Task Orchestration Errors", "goal deviation", "tool")


def document(*rows: tuple[str, str]) -> str:
    entries = [
        {"category": category, "location": location, "evidence": "e", "description": "d", "impact": "LOW"}
        for category, location in rows
    ]
    return json.dumps({"trace_id": TRACE, "errors": entries, "scores": []})


BOTH = f"{span_id(2)}, {span_id(3)}"
GOLD = document(*((name, span_id(number)) for number, name in enumerate(NAMED, 2)), ("Timeout Issues", BOTH))
SAID = (("Task Orchestration", span_id(2)), ("Goal Deviations", span_id(3)), ("tools", span_id(4)), ("", span_id(5)))


def frames_of(opened: Workspace) -> Frames:
    with read_transaction(opened.engine) as connection:
        return load_frames(connection, Filters())


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    space = workspace(tmp_path / "home")
    (annotation,) = read_annotation(GOLD.encode(), file="gold.json")
    assert isinstance(annotation, Annotation)
    labels = trail.to_labels([annotation])
    with write_transaction(space.engine) as connection:
        put_labels(connection, errors=labels.errors, scores=(), reviews=labels.reviews, author="test")
    reply = read_reply(document(*SAID), file="said.json", trace_id=TRACE)
    assert isinstance(reply, JudgeReply)
    import_outcomes(space.engine, [trail.to_outcome(reply, model="m", reading=None)], model="m", author="test")
    return space


def test_gold_and_predictions_are_as_written_though_labels_and_findings_are_mended(opened: Workspace) -> None:
    frames = frames_of(opened)
    assert frames.trail_reference["category"].tolist() == [*NAMED, "Timeout Issues"]
    assert frames.trail_reference["location"].tolist()[-1] == BOTH
    assert frames.trail_predictions[["category", "location"]].to_numpy().tolist() == [list(pair) for pair in SAID]


def test_so_the_official_measures_have_the_official_faults(opened: Workspace) -> None:
    """By hand: locations 3 of 4 named ones; of the pairs none, since each spelling matches no label on one side."""
    frames = frames_of(opened)
    row = trail_table(frames.trail_reference, frames.trail_predictions, frames.trail_traces, draws=0).iloc[0]
    assert row["location_accuracy"] == pytest.approx(3 / 4)
    assert row["joint_accuracy"] == 0
    assert row["weighted_f1"] == 0


def test_a_category_that_a_person_changed_since_is_theirs(opened: Workspace) -> None:
    with read_transaction(opened.engine) as connection:
        first = error_labels(connection)[0]
    changed = ErrorLabel(**{name: getattr(first, name) for name in first.__slots__} | {"category": "Resource Abuse"})
    with write_transaction(opened.engine) as connection:
        put_labels(connection, errors=[changed], scores=(), reviews=(), author="test")
    assert frames_of(opened).trail_reference["category"].tolist()[0] == "Resource Abuse"
