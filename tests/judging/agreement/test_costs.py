"""What a judge model costs beside what it catches."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tracejury.judging.agreement.costs import cost_agreement
from tracejury.judging.agreement.errors import NOT_MATCHED

CAUGHT = {"cheap": [1, 0, 0, 0], "good": [1, 1, 1, 0], "dear": [1, 1, 0, 0], "unpriced": [1, 1, 1, 1]}


def pairs_of(caught: dict[str, list[int]], **more: object) -> pd.DataFrame:
    """One error a trace, each the judge's own."""
    rows = [
        {"trace_id": f"t{t}", "error_id": "e", "impact": "high", "dimension": "TC", "judge_model": name,
         "relevant": True, "caught": bool(hit), "localized": False, **more}
        for name, hits in caught.items() for t, hit in enumerate(hits)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def costs_of(dollars: dict[str, list[float]]) -> pd.DataFrame:
    rows = [(f"t{t}", name, cost, 1000 * cost) for name, each in dollars.items() for t, cost in enumerate(each)]
    return pd.DataFrame(rows, columns=["trace_id", "judge_model", "cost_usd", "tokens"])


DOLLARS = {"cheap": [0.0] * 4, "good": [0.1, 0.2, 0.3, 0.4], "dear": [0.5] * 4, "unpriced": [np.nan] * 4}


def test_the_front_is_what_nobody_beats_in_both() -> None:
    """Dear costs more than good and catches less; nobody knows what the best one costs."""
    table = cost_agreement(pairs_of(CAUGHT), costs_of(DOLLARS)).set_index(["metric", "judge_model"]).loc["recall"]
    assert table["on_front"].to_dict() == {"cheap": True, "good": True, "dear": False, "unpriced": None}
    assert table["value"].to_dict() == {"cheap": 0.25, "good": 0.75, "dear": 0.5, "unpriced": 1.0}
    assert table.loc["unpriced", "reason"] == "cost_usd: no cost recorded; tokens: no tokens recorded"
    assert table[["n", "traces", "cost_usd_n"]].to_numpy().tolist() == [[4, 4, 4]] * 3 + [[4, 4, 0]]


def test_dollars_a_trace_have_their_interval_over_the_traces_with_a_record() -> None:
    """Without skew it is Student's, and no dollars are below 0."""
    costs = costs_of(DOLLARS | {"good": [0.1, 0.2, 0.3, np.nan]})
    row = cost_agreement(pairs_of(CAUGHT), costs).set_index(["metric", "judge_model"]).loc[("recall", "good")]
    low, high = stats.t.interval(0.95, 2, loc=0.2, scale=stats.sem([0.1, 0.2, 0.3]))
    assert low < 0
    assert row[["cost_usd", "cost_usd_low", "cost_usd_high"]].tolist() == pytest.approx([0.2, 0, high])
    assert (row["traces"], row["cost_usd_n"], row["tokens"]) == (4, 3, pytest.approx(200))


def test_f1_is_of_all_judges_of_a_model_together() -> None:
    """Of two judges, TP 3 + 1, FP 1 + 0, FN 1 + 2: 8 / 12."""
    own = pairs_of({"m": [1, 1, 1, 0, 1]}).assign(relevant=[True, True, True, True, False])
    other = pairs_of({"m": [1, 0, 0, 0, 0]}).assign(dimension="LC", relevant=[True, True, True, False, False])
    table = cost_agreement(pd.concat([own, other]), costs_of({"m": [0.1] * 5})).set_index("metric")
    assert table.loc["f1", ["value", "n"]].tolist() == [pytest.approx(8 / 12), 8]
    general = cost_agreement(pairs_of(CAUGHT).assign(dimension="trail"), costs_of(DOLLARS)).set_index("metric")
    assert set(general.loc["f1", "value"].isna()) == {True}
    assert general.loc["f1", "reason"].str.startswith("value: no negatives").all()


def test_without_matches_or_costs_nothing_is_a_number() -> None:
    waiting = pairs_of(CAUGHT, state="not_matched").assign(caught=None, localized=None)
    table = cost_agreement(waiting, costs_of(DOLLARS))
    assert table["value"].isna().all()
    assert table["reason"].str.startswith(f"value: {NOT_MATCHED}").all()
    assert table["on_front"].isna().all()
    nothing = cost_agreement(pairs_of(CAUGHT), costs_of({}))
    assert (nothing["traces"].tolist(), nothing["on_front"].notna().any()) == ([0] * 8, False)
    assert cost_agreement(pairs_of({}).reindex(columns=waiting.columns), costs_of({})).empty
