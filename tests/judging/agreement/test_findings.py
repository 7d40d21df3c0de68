"""Findings that match no human error, and citations of no span."""

import numpy as np
import pandas as pd
import pytest

from judging.agreement.findings import finding_table


def findings(**more: object) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "trace_id": ["t1", "t1", "t1", "t2", "t2"],
            "judge": "LC",
            "finding_id": ["f1", "f2", "f3", "f1", "f2"],
            "matched": [True, False, False, False, False],
            "verdict": [None, "valid new error", "false alarm", "duplicate", None],
            "citations": [2, 1, 0, 3, 1],
            "invalid_citations": [0, 1, 0, 1, 0],
        }
    )
    return frame.assign(**more)


def test_finding_precision_is_matched_or_valid_among_reviewed() -> None:
    row = finding_table(findings()).iloc[0]
    # reviewed: the match and three verdicts; right: the match and the valid new error
    assert (row["reviewed"], row["finding_precision"]) == (4, 0.5)
    assert (row["findings"], row["matched"], row["unmatched"], row["duplicate"]) == (5, 1, 4, 1)
    assert row["finding_precision_low"] < 0.5 < row["finding_precision_high"]


def test_invalid_citations_are_a_share_of_all_citations() -> None:
    assert finding_table(findings()).iloc[0]["invalid_citation_rate"] == 2 / 7


def test_traces_without_findings_count_in_the_rate_per_trace() -> None:
    judged = pd.DataFrame({"trace_id": ["t1", "t2", "t3", "t4"], "judge": "LC"})
    assert finding_table(findings()).iloc[0]["unmatched_per_trace"] == 2.0
    assert finding_table(findings(), judged).iloc[0]["unmatched_per_trace"] == 1.0


def test_a_judge_that_found_nothing_stands_in_the_table() -> None:
    judged = pd.DataFrame({"trace_id": ["t1", "t2"], "judge": "EE"})
    row = finding_table(findings(), judged).set_index("judge").loc["EE"]
    assert (row["findings"], row["traces"], row["unmatched_per_trace"]) == (0, 2, 0.0)
    assert np.isnan(row["finding_precision"])


def test_nothing_reviewed_and_nothing_cited_are_undefined_not_zero() -> None:
    row = finding_table(findings(matched=False, verdict=None, citations=0, invalid_citations=0)).iloc[0]
    assert np.isnan(row["finding_precision"])
    assert np.isnan(row["invalid_citation_rate"])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("matched", True, "a matched finding has a verdict"),
        ("verdict", "maybe", "expected one of"),
        ("invalid_citations", 9, "more invalid citations"),
        ("matched", None, "matched is missing"),
        ("finding_id", "f1", "doubled rows"),
    ],
)
def test_a_contradiction_is_named(column: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finding_table(findings(**{column: value}))
