"""Findings that match no human error, and citations of no span."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.findings import finding_table
from tracejury.judging.agreement.intervals import wilson


def findings(**more: object) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "trace_id": ["t1", "t1", "t1", "t2", "t2"],
            "dimension": "LC",
            "finding_id": ["f1", "f2", "f3", "f1", "f2"],
            "matched": [True, False, False, False, False],
            "review": [None, "valid new error", "false alarm", "duplicate", None],
            "citations": [2, 1, 0, 3, 1],
            "invalid_citations": [0, 1, 0, 1, 0],
        }
    )
    return frame.assign(**more)


def test_finding_precision_is_matched_or_valid_among_reviewed() -> None:
    row = finding_table(findings()).iloc[0]
    # reviewed: the match and three reviews; right: the match and the valid new error
    assert (row["reviewed"], row["finding_precision"]) == (4, 0.5)
    assert (row["findings"], row["matched"], row["unmatched"], row["duplicate"]) == (5, 1, 4, 1)
    assert row["finding_precision_low"] < 0.5 < row["finding_precision_high"]


def test_a_proposed_match_is_nobodys_review_and_bounds_the_precision() -> None:
    row = finding_table(findings(match_status=["proposed", None, None, None, None])).iloc[0]
    # reviewed: three reviews, one of them valid; of five findings two are open
    assert (row["reviewed"], row["finding_precision"]) == (3, 1 / 3)
    assert (row["finding_precision_lowest"], row["finding_precision_highest"]) == (1 / 5, 3 / 5)
    nobody = finding_table(findings(match_status="proposed", review=None)).iloc[0]
    assert np.isnan(nobody["finding_precision"])
    assert (nobody["finding_precision_lowest"], nobody["finding_precision_highest"]) == (0, 1)
    assert nobody["reason"] == "no finding reviewed"


def test_findings_that_no_matching_has_compared_are_not_unmatched() -> None:
    row = finding_table(findings(state=["scored"] * 3 + ["not_matched"] * 2, review=None)).iloc[0]
    assert (row["matched"], row["unmatched"], row["not_matched"]) == (1, 2, 2)
    assert row["unmatched_per_trace"] == 2  # of the first trace alone
    never = finding_table(findings(state="not_matched", matched=False, review=None)).iloc[0]
    assert np.isnan(never["unmatched_per_trace"])
    assert never["reason"].startswith("no matches proposed yet")


def test_invalid_citations_are_a_share_of_all_citations() -> None:
    assert finding_table(findings()).iloc[0]["invalid_citation_rate"] == 2 / 7


def test_traces_without_findings_count_in_the_rate_per_trace() -> None:
    judged = pd.DataFrame({"trace_id": ["t1", "t2", "t3", "t4"], "dimension": "LC"})
    assert finding_table(findings()).iloc[0]["unmatched_per_trace"] == 2.0
    assert finding_table(findings(), judged).iloc[0]["unmatched_per_trace"] == 1.0


def test_a_judge_that_found_nothing_stands_in_the_table() -> None:
    judged = pd.DataFrame({"trace_id": ["t1", "t2"], "dimension": "EE"})
    row = finding_table(findings(), judged).set_index("dimension").loc["EE"]
    assert (row["findings"], row["traces"], row["unmatched_per_trace"]) == (0, 2, 0.0)
    assert np.isnan(row["finding_precision"])


def test_findings_of_one_trace_are_drawn_together() -> None:
    """Ten findings a trace, all right or all wrong: 20 traces tell as much as 20 findings, not as 200."""
    rows = [
        {"trace_id": f"t{t}", "dimension": "LC", "finding_id": f"f{f}", "matched": t % 2 == 0,
         "review": None if t % 2 == 0 else "false alarm", "citations": 1, "invalid_citations": t % 2}
        for t in range(20) for f in range(10)
    ]  # fmt: skip
    row = finding_table(pd.DataFrame(rows), draws=1000).iloc[0]
    low, high = wilson(100, 200) or (0, 0)
    for name in ("finding_precision", "invalid_citation_rate"):
        assert row[name] == 0.5
        assert row[f"{name}_high"] - row[f"{name}_low"] > 2 * (high - low)
    assert row["unmatched_per_trace"] == 5
    assert row["unmatched_per_trace_low"] < 5 < row["unmatched_per_trace_high"]


def test_a_share_of_exactly_0_or_1_is_as_sure_as_its_traces() -> None:
    given = findings(matched=True, review=None, invalid_citations=0)
    row, traces = finding_table(given).iloc[0], given["trace_id"].nunique()
    assert (row["finding_precision"], row["finding_precision_high"]) == (1, 1)
    assert row["finding_precision_low"] == pytest.approx((wilson(traces, traces) or (0, 0))[0])
    assert row["invalid_citation_rate_high"] == pytest.approx((wilson(0, traces) or (0, 0))[1])


def test_nothing_reviewed_and_nothing_cited_are_undefined_not_zero() -> None:
    row = finding_table(findings(matched=False, review=None, citations=0, invalid_citations=0)).iloc[0]
    assert np.isnan(row["finding_precision"])
    assert np.isnan(row["invalid_citation_rate"])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("matched", True, "a matched finding has a review"),
        ("review", "maybe", "expected one of"),
        ("invalid_citations", 9, "more invalid citations"),
        ("matched", None, "matched is missing"),
        ("finding_id", "f1", "duplicate rows"),
    ],
)
def test_a_contradiction_is_named(column: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        finding_table(findings(**{column: value}))


def test_an_undefined_rate_says_why() -> None:
    rows = findings()
    assert finding_table(rows).iloc[0]["reason"] is None
    bare = rows.assign(matched=False, review=None, citations=0, invalid_citations=0)
    row = finding_table(bare).iloc[0]
    assert np.isnan([row["finding_precision"], row["invalid_citation_rate"]]).all()
    assert row["reason"] == "no finding reviewed; no citations"
