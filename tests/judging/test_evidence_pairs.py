"""Where both quote, the characters that they share in the text of the trace."""

from pathlib import Path
from typing import Any

import pytest
from tests.build import finding, span_id, trace_of, workspace
from tests.judging.team import submit, trace_id

from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import SpanDraft
from tracejury.judging.agreement.evidence_overlap import COMPARED, EVIDENCE
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import Call, Verdict
from tracejury.judging.reports.evidence_pairs import evidence_pairs
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.runs.verdict_imports import import_outcomes

WRONG = "The ferry was booked for the wrong day although the user named it twice."
FIRST = "The ferry to the island leaves on Sunday morning. It was booked for Monday evening by mistake."
SECOND = "Later the clerk repeats: it was booked for Monday evening by mistake."


def overlap(home: Path, ours: str, theirs: str, *cited: int) -> dict[str, Any]:
    """The pair of one error on span 2 and one finding."""
    drafts = [
        SpanDraft(span_id=span_id(1), name="run", kind="AGENT", start_time=1_000, end_time=9_000),
        SpanDraft(span_id=span_id(2), parent_span_id=span_id(1), name="call", kind="LLM", start_time=2_000,
                  end_time=3_000, output=FIRST),
        SpanDraft(span_id=span_id(3), parent_span_id=span_id(1), name="call", kind="LLM", start_time=4_000,
                  end_time=5_000, output=SECOND),
    ]  # fmt: skip
    space = workspace(home, trace_of(drafts, trace_id=trace_id(0)))
    error = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "high", "description": WRONG}
    quote = [{"span_id": span_id(2), "field": "output", "start": 0, "end": len(ours), "quote": ours}] if ours else []
    submit(space, "ada", trace_id(0), errors=[error | {"evidence": quote}])
    verdict = Verdict(
        rubric="TC", trace_id=trace_id(0), state="scored", score=1, criteria="", rationale="",
        findings=(finding(WRONG, *(cited or (2,)), evidence=theirs),), call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(space.engine, [verdict], model="m", author="test")
    propose_matches(space.engine)
    with read_transaction(space.engine) as connection:
        frames = load_frames(connection, Filters())
        (row,) = evidence_pairs(connection, frames.matched).to_dict("records")
    assert len(frames.error_pairs) == 1
    return {str(name): value for name, value in row.items()}


HALF = FIRST[:49]  # the first sentence


@pytest.mark.parametrize(
    ("ours", "theirs", "iou"),
    [
        (FIRST, FIRST, 1.0),
        (FIRST, HALF, len(HALF) / len(FIRST)),
        (HALF, FIRST[50:], 0.0),
        (FIRST, f"“{HALF}”", len(HALF) / len(FIRST)),
        (FIRST, HALF.upper(), len(HALF) / len(FIRST)),
        (FIRST, "The ferry ... Sunday morning", (len("The ferry") + len("Sunday morning")) / len(FIRST)),
        # it stands in span 3 too: the place in the span that both name counts
        ("booked for Monday evening by mistake", "booked for Monday evening by mistake", 1.0),
    ],
)
def test_the_overlap_of_two_quotes(tmp_path: Path, ours: str, theirs: str, iou: float) -> None:
    row = overlap(tmp_path / "home", ours, theirs)
    assert row["evidence"] == COMPARED
    assert row["iou"] == pytest.approx(iou, abs=0.02)


@pytest.mark.parametrize(
    ("ours", "theirs", "word"),
    [
        ("", FIRST, EVIDENCE[1]),
        (FIRST, "", EVIDENCE[2]),
        (FIRST, "A sentence about trains that nobody wrote here.", EVIDENCE[3]),
    ],
)
def test_what_cannot_be_compared_has_its_word_and_no_overlap(tmp_path: Path, ours: str, theirs: str, word: str) -> None:
    row = overlap(tmp_path / "home", ours, theirs)
    assert row["evidence"] == word
    assert row["iou"] != row["iou"]


def test_quotes_of_two_spans_do_not_overlap(tmp_path: Path) -> None:
    row = overlap(tmp_path / "home", HALF, SECOND, 2, 3)
    assert (row["evidence"], row["iou"]) == (COMPARED, 0.0)
