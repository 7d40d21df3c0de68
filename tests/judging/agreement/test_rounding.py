"""Half-up rounding on exact numbers."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.judging.agreement.rounding import half_up, percent, share_text


def rounded_by_integers(k: int, n: int, digits: int) -> str:
    """The definition: floor of the scaled rational plus one half, in whole numbers."""
    units = (2 * k * 10**digits + n) // (2 * n)
    return f"{units // 10**digits}.{units % 10**digits:0{digits}d}"


@given(st.integers(1, 5_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_float_quotient_rounds_as_its_exact_rational(pair: tuple[int, int]) -> None:
    k, n = pair
    assert half_up(k / n, 4) == half_up(Fraction(k, n), 4) == rounded_by_integers(k, n, 4)


def test_every_tie_up_to_four_decimals_rounds_up_from_floats_too() -> None:
    # k / 20000 with odd k is a tie at four decimals; other denominators with ties divide 20000 times an odd part.
    for k in range(1, 20_000, 2):
        assert half_up(k / 20_000, 4) == rounded_by_integers(k, 20_000, 4)
    for n in (32, 64, 160, 320, 800, 4_000):
        for k in range(n + 1):
            assert half_up(k / n, 4) == rounded_by_integers(k, n, 4)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.5, 0, "1"),
        (-0.5, 0, "-1"),  # away from zero
        (-0.00004, 4, "0.0000"),  # no minus before nothing
        (1.005, 2, "1.01"),  # the decimal that a person reads, not 1.00499999...
        (Fraction(1, 3), 3, "0.333"),
        (2, 1, "2.0"),
        (None, 4, ""),
        (math.nan, 4, ""),
        (1e-30, 4, "0.0000"),
    ],
)
def test_half_up(value: float | None, digits: int, text: str) -> None:
    assert half_up(value, digits) == text


def test_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot round inf"):
        half_up(math.inf, 2)


def test_percent_shifts_before_it_rounds() -> None:
    assert percent(Fraction(13, 32)) == percent(13 / 32) == "40.63"
    assert percent(None) == percent(math.nan) == ""
    assert percent(1.0) == "100.00"


def test_share_text_is_what_tables_2_and_5_print() -> None:
    assert share_text(267, 281) == "267/281 (95.02%)"
    assert share_text(129, 129) == "129/129 (100%)"
    assert share_text(0, 2) == "0/2 (0.00%)"
    assert share_text(0, 0) == "0/0"
