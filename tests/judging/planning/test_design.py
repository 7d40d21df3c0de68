"""Planning held to published examples, and to simulated studies."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.planning import design
from tracejury.judging.planning.design import Spread
from tracejury.judging.planning.study import Assumptions, Goal, UnitCosts, study_curves, study_table


def test_agreement_of_people_is_planned_as_bonett_does() -> None:
    """Bonett 2002: four raters, ICC .85, width .2 need 19.2 subjects; R's statpsych, ICC .70, three raters: 68."""
    assert design.traces_for_agreement(0.85, 4, 0.2) == 20
    assert design.traces_for_agreement(0.70, 3, 0.2) == 68
    assert design.traces_for_agreement(0.85, 2, 0.2) > design.traces_for_agreement(0.85, 3, 0.2)


def test_independent_errors_are_planned_as_connett_does() -> None:
    """psi = .3, difference .1: (1.96 + .8416)² (.3 - .01) / .01 = 227.6 pairs, each a trace of its own."""
    spread = Spread(variance=design.difference_variance(0.3, 0.1))
    assert design.traces_for_difference(spread, 0.1) == 228
    assert design.power(spread, 228, 0.1) == pytest.approx(0.80, abs=0.005)
    assert design.detectable(spread, 228) == pytest.approx(0.1, abs=0.001)


def test_a_rate_is_planned_as_the_textbook_does() -> None:
    """p = .5, width .1: 1.96² .25 / .05² = 384.1 (Cochran 1977)."""
    spread = Spread(variance=design.rate_variance(0.5))
    assert design.traces_for_width(spread, 0.1) == 385
    assert design.interval_width(spread, 385) <= 0.1


def test_the_design_effect_is_kish_s_and_a_mean_over_repeats_has_less_noise() -> None:
    """20 errors a trace, ICC .05: 1 + 19 * .05 = 1.95; perfect repeats change nothing, noisy ones help."""
    of = {"variance": 0.25, "errors_per_trace": 20.0, "icc": 0.05}
    assert design.design_effect(Spread(**of)) == pytest.approx(1.95)
    assert design.design_effect(Spread(**of, repeat_icc=1.0), 5) == pytest.approx(1.95)
    assert design.design_effect(Spread(**of, repeat_icc=0.6), 5) == pytest.approx(1.95 - 0.4 * 4 / 5)
    assert design.design_effect(Spread(**of, size_cv=0.5)) == pytest.approx(1 + (1.25 * 20 - 1) * 0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spread(variance=0.0), "nothing varies"),
        (lambda: Spread(variance=0.2, icc=0.5, repeat_icc=0.3), "from the ICC"),
        (lambda: design.difference_variance(0.05, 0.1), "at least as many"),
        (lambda: design.design_effect(Spread(variance=0.2), 3), "correlation of repeats is unknown"),
        (lambda: design.traces_for_agreement(0.5, 1, 0.2), "agreement needs two"),
        (lambda: design.traces_for_difference(Spread(variance=0.2), 0.0), "cannot be reached"),
    ],
)
def test_what_cannot_be_planned_says_why(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_a_table_tells_traces_hours_and_dollars_and_why_there_are_none() -> None:
    given = Assumptions(spread=Spread(variance=0.25), costs=UnitCosts(minutes=30, dollars=0.02))
    table = study_table(given, [Goal(kind="width", size=0.1), Goal(kind="agreement", size=0.2)], people=(1, 2))
    one, two, *agreement = table.to_dict("records")
    assert (one["traces"], one["hours"], one["dollars"]) == (385, 385 / 2, pytest.approx(7.7))
    assert (two["traces"], two["hours"], two["dollars"]) == (385, 385, pytest.approx(7.7))
    assert [pd.isna(row["traces"]) and np.isnan(row["hours"]) for row in agreement] == [True, True]
    assert "no two people scored" in agreement[0]["reason"]


def test_curves_fall_with_traces_and_power_rises() -> None:
    curves = study_curves(Spread(variance=0.2, repeat_icc=0.5), difference=0.05, repeats=(1, 3))
    for _, part in curves.groupby("repeats"):
        assert part["width"].is_monotonic_decreasing
        assert part["power"].is_monotonic_increasing
    assert len(curves["repeats"].unique()) == 2


def difference_of_study(rng: np.random.Generator, traces: int, shift: float, repeats: int) -> tuple[float, float]:
    """One study of two judges: its mean difference, and the standard error clustered by trace.

    A trace has 1 to 9 errors; its own effect (normal, .15) and the errors' (.25) are the judges' taste, each repeat
    adds noise (.4). Values are continuous so that the true components are known.
    """
    sizes = rng.integers(1, 10, traces)
    trace = np.repeat(np.arange(traces), sizes)
    own, each = rng.normal(0, 0.15, traces)[trace], rng.normal(0, 0.25, len(trace))
    values = shift + own + each + rng.normal(0, 0.4, (repeats, len(trace))).mean(axis=0)
    mean = values.mean()
    residuals = np.bincount(trace, values - mean)
    return float(mean), float(np.sqrt((residuals**2).sum()) / len(trace))


SIMULATED = Spread(
    variance=0.15**2 + 0.25**2 + 0.4**2,
    errors_per_trace=5.0,
    size_cv=float(np.sqrt(np.arange(1, 10).var()) / 5),
    icc=0.15**2 / (0.15**2 + 0.25**2 + 0.4**2),
    repeat_icc=(0.15**2 + 0.25**2) / (0.15**2 + 0.25**2 + 0.4**2),
)


@pytest.mark.parametrize("repeats", [1, 4])
def test_the_planned_power_is_that_of_simulated_studies(repeats: int) -> None:
    """The traces planned for 80 % power see the difference in 80 % of 2,000 studies (± 3 standard errors of it)."""
    rng = np.random.default_rng(18)
    traces = design.traces_for_difference(SIMULATED, 0.1, repeats)
    studies = [difference_of_study(rng, traces, 0.1, repeats) for _ in range(2_000)]
    seen = np.mean([abs(mean) > 1.96 * error for mean, error in studies])
    assert traces > 20
    assert seen == pytest.approx(0.80, abs=3 * np.sqrt(0.8 * 0.2 / 2_000))


def test_the_planned_width_is_that_of_simulated_intervals() -> None:
    rng = np.random.default_rng(19)
    traces = design.traces_for_width(SIMULATED, 0.1)
    widths = [2 * 1.96 * difference_of_study(rng, traces, 0.0, 1)[1] for _ in range(500)]
    assert np.mean(widths) == pytest.approx(0.1, rel=0.03)
