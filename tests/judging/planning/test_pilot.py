"""A pilot is read right: ICC of a published example, components of simulated ones, and what is undefined."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement.intervals import cluster_bootstrap, divide
from tracejury.judging.planning.design import interval_width
from tracejury.judging.planning.pilot import (
    caught_values,
    differences,
    people_reliability,
    pilot_of,
    repeat_correlation,
)

SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
"""Six targets rated by four judges (Shrout and Fleiss 1979, Table 2): ICC(1,1) = .17."""


def test_people_s_reliability_is_shrout_and_fleiss_s() -> None:
    rows = [
        {"unit": str(unit), "rater": str(rater), "dimension": "LC", "value": value}
        for unit, values in enumerate(SHROUT_FLEISS)
        for rater, value in enumerate(values)
    ]
    ratings = pd.DataFrame(rows)
    assert people_reliability(ratings) == pytest.approx(0.166, abs=0.0005)
    assert people_reliability(ratings[ratings["rater"] == "0"]) is None


def test_repeats_correlate_as_the_same_example_does() -> None:
    rows = [
        {"trace_id": "t", "error_id": str(error), "repeat": repeat, "value": float(value)}
        for error, values in enumerate(SHROUT_FLEISS)
        for repeat, value in enumerate(values)
    ]
    assert repeat_correlation(pd.DataFrame(rows)) == pytest.approx(0.166, abs=0.0005)
    assert repeat_correlation(pd.DataFrame(rows).query("repeat == 0")) is None


def simulated(traces: int, repeats: int) -> pd.DataFrame:
    """Errors of components trace .2, error .3, repeat .5 of the variance 1; one to seven errors a trace."""
    rng = np.random.default_rng(5)
    rows = []
    for trace in range(traces):
        own = rng.normal(0, np.sqrt(0.2))
        for error in range(rng.integers(1, 8)):
            each = own + rng.normal(0, np.sqrt(0.3))
            rows += [
                {"trace_id": str(trace), "error_id": f"{trace}-{error}", "repeat": repeat,
                 "value": each + rng.normal(0, np.sqrt(0.5))}
                for repeat in range(repeats)
            ]  # fmt: skip
    return pd.DataFrame(rows)


def test_a_pilot_finds_the_components_that_made_it() -> None:
    pilot = pilot_of(simulated(1_500, 3))
    assert pilot.spread is not None
    assert pilot.spread.icc == pytest.approx(0.2, abs=0.03)
    assert pilot.spread.repeat_icc == pytest.approx(0.5, abs=0.03)
    assert pilot.spread.errors_per_trace == pytest.approx(4, abs=0.15)
    assert pilot.spread.variance == pytest.approx(1, abs=0.05)
    assert pilot.effect is not None


def test_a_width_planned_for_the_pilot_s_own_traces_is_that_of_its_bootstrap() -> None:
    """Also where traces with many errors have other rates than those with few, which no ICC of equal traces knows."""
    rng = np.random.default_rng(8)
    rows = [
        {"trace_id": str(trace), "error_id": f"{trace}-{n}", "repeat": 0, "value": float(rng.random() < size / 10)}
        for trace in range(200)
        for size in [int(rng.integers(1, 10))]
        for n in range(size)
    ]
    frame = pd.DataFrame(rows)
    pilot = pilot_of(frame)
    assert pilot.spread is not None
    by_trace = frame.groupby("trace_id")["value"].agg(["size", "sum"]).to_numpy(dtype=np.float64)
    boot = cluster_bootstrap(by_trace, lambda sums: divide(sums[..., [1]], sums[..., [0]]), draws=0)
    low, high = boot.jackknife_t()
    assert interval_width(pilot.spread, 200) == pytest.approx(float(high[0] - low[0]), rel=0.05)


@pytest.mark.parametrize(
    ("values", "reason"),
    [([], "no units"), ([("t", 1.0), ("t", 0.0)], "fewer than two units"), ([("a", 1.0), ("b", 1.0)], "no variation")],
)
def test_a_pilot_of_which_nothing_can_be_said_says_why(values: list[tuple[str, float]], reason: str) -> None:
    rows = [{"trace_id": t, "error_id": str(n), "repeat": 0, "value": v} for n, (t, v) in enumerate(values)]
    pilot = pilot_of(pd.DataFrame(rows, columns=["trace_id", "error_id", "repeat", "value"]))
    assert (pilot.spread, pilot.reason) == (None, reason)


def test_traces_of_one_error_each_have_no_design_effect() -> None:
    rows = [{"trace_id": str(n), "error_id": str(n), "repeat": 0, "value": float(n % 2)} for n in range(10)]
    pilot = pilot_of(pd.DataFrame(rows))
    assert pilot.effect == pytest.approx(10 / 9)  # n - 1 in place of n
    assert pilot.spread is not None
    assert pilot.spread.icc == 0


def pairs(judge_model: str, caught: list[bool | None]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "trace_id": f"t{n // 2}", "error_id": f"e{n}", "impact": "low", "split": "all", "dimension": "LC",
                "judge_model": judge_model, "relevant": True, "caught": value, "localized": False,
                "state": "failed" if value is None else "scored",
            }
            for n, value in enumerate(caught)
        ]
    )  # fmt: skip


def test_two_judges_are_compared_on_the_errors_that_both_answered() -> None:
    left, right = (caught_values(pairs(name, values)) for name, values in
                   (("a", [True, True, False, None]), ("b", [True, False, False, True])))  # fmt: skip
    values, discordant = differences(left, right)
    assert values["value"].tolist() == [0.0, 1.0, 0.0]
    assert discordant == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="several judge models"):
        caught_values(pd.concat([pairs("a", [True]), pairs("b", [True])]))
