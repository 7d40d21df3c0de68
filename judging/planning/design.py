"""Precision and power of a study of clustered errors: widths, detectable differences, and the traces they need."""

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final

LEVEL: Final = 0.95
POWER: Final = 0.8
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What the uncertainty of a mean over errors comes of; the mean is a rate, or a difference of two rates.

    `variance` is that of one error's value: p (1 - p) of a rate (`rate_variance`), `difference_variance` of a
    difference. `errors_per_trace` is the mean number of errors in a trace, `size_cv` its coefficient of
    variation. `icc` is the correlation of two errors of one trace, `repeat_icc` that of two repeats on the same error:
    None where it is unknown, and then only one repeat can be planned. Raises `ValueError` for values out of range.
    """

    variance: float
    errors_per_trace: float = 1.0
    size_cv: float = 0.0
    icc: float = 0.0
    repeat_icc: float | None = None

    def __post_init__(self) -> None:
        if self.variance <= 0:
            raise ValueError(f"the variance is {self.variance:g}: nothing varies, so nothing can be planned from it")
        if self.errors_per_trace <= 0 or self.size_cv < 0:
            raise ValueError(f"errors per trace: {self.errors_per_trace:g} ± {self.size_cv:g}. Try: a mean above 0")
        if not -1 <= self.icc <= 1:
            raise ValueError(f"the ICC is {self.icc:g}. Try: a value from 0 to 1")
        if self.repeat_icc is not None and not self.icc <= self.repeat_icc <= 1:
            raise ValueError(
                f"the correlation of repeats is {self.repeat_icc:g}. Try: a value from the ICC ({self.icc:g}) to 1"
            )


def rate_variance(rate: float) -> float:
    """Return p (1 - p), the variance of one error's 0 or 1. Raises `ValueError` for a rate outside 0 to 1."""
    if not 0 <= rate <= 1:
        raise ValueError(f"the rate is {rate:g}. Try: a value from 0 to 1")
    return rate * (1 - rate)


def difference_variance(discordant: float, difference: float) -> float:
    """Return the variance of one error's difference between two judges on the same errors.

    `discordant` is the share of errors that one of them alone catches, `difference` the difference of their rates.
    Source: Miettinen 1968; Connett, Smith and McHugh 1987: psi - delta². Raises `ValueError` where the difference is
    larger than the share of discordant errors.
    """
    if not abs(difference) <= discordant <= 1:
        raise ValueError(
            f"a difference of {difference:g} needs at least as many errors that one judge alone catches, not "
            f"{discordant:g}. Try: a share of discordant errors from {abs(difference):g} to 1"
        )
    return discordant - difference**2


def design_effect(spread: Spread, repeats: int = 1) -> float:
    """Return by how much the variance of a mean is that of independent errors in one repeat (1: as if independent).

    Source: Kish 1965, 1 + (b - 1) icc, with b = (1 + cv²) mean errors per trace for traces of unequal size (Eldridge,
    Ashby and Kerry 2006), and a level below for repeats (Teerenstra et al. 2010): (1 - r) / repeats + r - icc + b icc
    for a correlation of repeats r. Never below 0. Raises `ValueError` for several repeats whose correlation is unknown.
    """
    if repeats < 1:
        raise ValueError(f"{repeats} repeats. Try: 1 or more")
    if repeats > 1 and spread.repeat_icc is None:
        raise ValueError(
            "the correlation of repeats is unknown. Try: a judge with two or more repeats, or assume a correlation"
        )
    within = 1.0 if spread.repeat_icc is None else spread.repeat_icc
    size = (1 + spread.size_cv**2) * spread.errors_per_trace
    return max(0.0, (1 - within) / repeats + within - spread.icc + size * spread.icc)


def standard_error(spread: Spread, traces: float, repeats: int = 1) -> float:
    """Return the standard error of the mean over all errors of so many traces (`design_effect`)."""
    errors = traces * spread.errors_per_trace
    return sqrt(spread.variance * design_effect(spread, repeats) / errors)


def interval_width(spread: Spread, traces: float, repeats: int = 1, *, level: float = LEVEL) -> float:
    """Return the whole width of the normal interval, 2 z times `standard_error`."""
    return 2 * _reach(level) * standard_error(spread, traces, repeats)


def power(spread: Spread, traces: float, difference: float, repeats: int = 1, *, level: float = LEVEL) -> float:
    """Return the chance that the interval of `level` excludes 0 when the true mean is `difference` (two-sided)."""
    shift = abs(difference) / standard_error(spread, traces, repeats)
    reach = _reach(level)
    return _NORMAL.cdf(shift - reach) + _NORMAL.cdf(-shift - reach)


def detectable(spread: Spread, traces: float, repeats: int = 1, *, power: float = POWER, level: float = LEVEL) -> float:
    """Return the smallest difference that so many traces see with the power `power`: (z + z') standard errors."""
    return (_reach(level) + _NORMAL.inv_cdf(power)) * standard_error(spread, traces, repeats)


def traces_for_width(spread: Spread, width: float, repeats: int = 1, *, level: float = LEVEL) -> int:
    """Return how many traces give an interval of this whole width. Raises `ValueError` for a width of 0 or less."""
    return _traces(interval_width(spread, 1, repeats, level=level), width)


def traces_for_difference(
    spread: Spread, difference: float, repeats: int = 1, *, power: float = POWER, level: float = LEVEL
) -> int:
    """Return how many traces see this difference with the power `power`.

    Source: (z + z')² variance design effect / difference², Kish 1965 over Miettinen 1968. Raises `ValueError` for a
    difference of 0.
    """
    return _traces(detectable(spread, 1, repeats, power=power, level=level), abs(difference))


def traces_for_agreement(icc: float, people: int, width: float, *, level: float = LEVEL) -> int:
    """Return how many traces give an interval of this whole width for people's reliability, the ICC of one person.

    Source: Bonett 2002, formula 3: 8 z² (1 - icc)² (1 + (k - 1) icc)² / (k (k - 1) w²) + 1, and 5 icc more for two
    people from .7. Raises `ValueError` for fewer than two people, and out of range.
    """
    _check_agreement(icc, people)
    if width <= 0:
        raise ValueError(f"a width of {width:g}. Try: a width above 0")
    more = 5 * icc if people == 2 and icc >= 0.7 else 0.0
    return ceil(_bonett(icc, people, level) / width**2 + 1 + more - 1e-9)


def _check_agreement(icc: float, people: int) -> None:
    if people < 2:
        raise ValueError(f"agreement needs two people, not {people}. Try: --people 2")
    if not 0 <= icc <= 1:
        raise ValueError(f"the reliability of people is {icc:g}. Try: a value from 0 to 1")


def _bonett(icc: float, people: int, level: float) -> float:
    return 8 * _reach(level) ** 2 * ((1 - icc) * (1 + (people - 1) * icc)) ** 2 / (people * (people - 1))


def _traces(of_one: float, goal: float) -> int:
    if goal <= 0:
        raise ValueError(f"{goal:g} cannot be reached by any number of traces. Try: a value above 0")
    return max(1, ceil((of_one / goal) ** 2 - 1e-9))


def _reach(level: float) -> float:
    return _NORMAL.inv_cdf((1 + level) / 2)
