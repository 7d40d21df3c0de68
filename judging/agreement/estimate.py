"""One estimate: a value or the reason why there is none, with its n and what was left out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Reason = Literal[
    "no units",
    "no variation",
    "fewer than two pairable units",
    "fewer than two units",
    "fewer than two repeats",
    "no positive predicted",
    "no positives",
    "no negatives",
    "precision and recall are both 0",
    "no matches proposed yet",
    "no finding reviewed",
    "no citations",
    "no informative judge",
    "fewer than three raters",
    "no discordant pairs",
    "no pairs",
    "traces do not vary",
    "too many distinct ratings",
    "ratings are not on the scale 0 to 3",
]

TOO_FEW: Final = 10
"""Below this n an estimate is shown greyed: intervals are wider than any conclusion, and the first cease to cover.

At ten traces the lowest coverage of a nominal 95 % was .92, at five .87 (AC1), in populations of
tests/judging/agreement/test_coverage.py."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A statistic as it is shown: exactly one of `value` and `reason` is present.

    `n` counts the units behind the value; `failed` and `not_applicable` the judgements left out of it.
    `low` and `high` bound its 95 % interval, None where none was asked for or none exists.
    `agreement` is the share of agreeing pairs: given beside a chance-corrected estimate, above all when that
    is undefined. `undefined_draws` counts the resamples in which the statistic did not exist.
    """

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: Reason | None = None
    failed: int = 0
    not_applicable: int = 0
    agreement: float | None = None
    undefined_draws: int = 0

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"an estimate has a value or a reason, not {self.value!r} and {self.reason!r}")
        if any(x is not None and not math.isfinite(x) for x in (self.value, self.low, self.high)):
            raise ValueError(f"an estimate is finite or undefined: {self.value!r} [{self.low!r}, {self.high!r}]")

    def row(self) -> dict[str, float | int | str | None]:
        """The estimate as columns of a long table; an undefined value is NaN there."""
        return {
            "value": _nan(self.value),
            "low": _nan(self.low),
            "high": _nan(self.high),
            "n": self.n,
            "reason": self.reason,
            "failed": self.failed,
            "not_applicable": self.not_applicable,
            "agreement": _nan(self.agreement),
            "undefined_draws": self.undefined_draws,
        }


def present(value: float) -> float | None:
    """`value`, or None where it is NaN: arrays say NaN, estimates say None."""
    return None if math.isnan(value) else float(value)


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def joined_reasons(reasons: Mapping[str, str]) -> str | None:
    """Names with one reason stand together; None where nothing is undefined."""
    named: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        named.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in named.items()) or None


def reason_of(reason: object, name: str) -> str | None:
    """Return what a reason that `joined_reasons` wrote says of one estimate; None where it says nothing of it."""
    parts = (part.partition(": ") for part in str(reason).split("; "))
    return next((why for names, _, why in parts if name in names.split(", ")), None)
