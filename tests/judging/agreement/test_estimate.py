"""An estimate has a value or a reason."""

import math

import pytest

from tracejury.judging.agreement.estimate import Estimate


def test_an_estimate_without_value_says_why() -> None:
    estimate = Estimate(value=None, n=3, reason="no variation", failed=2, agreement=1.0)
    row = estimate.row()
    assert math.isnan(row["value"])  # type: ignore[arg-type]
    assert (row["n"], row["reason"], row["failed"], row["agreement"]) == (3, "no variation", 2, 1.0)


def test_zero_is_a_value() -> None:
    assert Estimate(value=0.0, n=12).row()["value"] == 0.0


def test_neither_value_nor_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="a value or a reason"):
        Estimate(value=None, n=3)


def test_both_value_and_reason_are_refused() -> None:
    with pytest.raises(ValueError, match="a value or a reason"):
        Estimate(value=1.0, n=3, reason="no variation")


def test_nan_and_infinity_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        Estimate(value=math.nan, n=3)
    with pytest.raises(ValueError, match="finite"):
        Estimate(value=1.0, n=3, high=math.inf)
