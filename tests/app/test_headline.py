"""The first numbers of a view: what stands in a tile."""

from __future__ import annotations

import pandas as pd

from tracejury.app.components.headline import beside, coverage
from tracejury.judging.agreement.errors import suite_coverage

PAIRS = pd.DataFrame(
    [
        ("t1", "e1", "high", "LC", True, True, True),
        ("t1", "e2", "low", "LC", True, False, False),
        ("t2", "e1", "high", "LC", False, True, False),
        ("t2", "e2", "medium", "LC", False, False, False),
    ],
    columns=["trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized"],
).assign(judge_model="model-a")


def test_a_tile_holds_interval_n_and_what_people_reach() -> None:
    row = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 1204, "reason": None}
    assert beside(row) == "[0.250, 0.750] · n 1,204"
    assert beside({**row, "ceiling": 0.625}) == "[0.250, 0.750] · n 1,204 · people 0.625"
    assert beside({**row, "low": float("nan")}) == "n 1,204"
    assert beside({**row, "value": float("nan"), "reason": "no positives"}) == "no positives"


def test_the_errors_that_a_suite_found_stand_beside_what_people_find_of_any_dimension() -> None:
    split = suite_coverage(PAIRS)["split"].iloc[0]
    reached = pd.DataFrame(
        {
            "dimension": ["any", "any", "LC", "any"],
            "impact": ["all", "all", "all", "high"],
            "metric": "recall",
            "kind": ["caught", "localized", "caught", "caught"],
            "split": split,
            "value": [0.6, 0.4, 0.1, 0.2],
            "low": 0.0,
            "high": 1.0,
        }
    )
    found = coverage(suite_coverage(PAIRS), reached).set_index("label")
    assert list(found.index) == ["model-a caught", "model-a localized"]
    assert found["value"].to_list() == [0.5, 0.25]
    assert found["n"].to_list() == [4, 4]
    assert found["ceiling"].to_list() == [0.6, 0.4]
    assert "ceiling" not in coverage(suite_coverage(PAIRS), None)
