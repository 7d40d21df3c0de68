"""Rates of errors caught and localized: each a function of confusion counts and a record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracejury.judging.agreement.estimate import Reason
from tracejury.judging.agreement.intervals import Floats, divide, share_bounds
from tracejury.judging.agreement.metric import Best, Metric

COUNTS: Final = ("tp", "fp", "fn", "tn")
Weights = tuple[int, int, int, int]
"""Of tp, fp, fn and tn."""


def precision(cells: NDArray[np.generic]) -> Floats:
    """Share of the caught errors that are the judge's to catch: TP / (TP + FP).

    Source: Agent GPA, section 4. Shapes: cells (..., 4) as tp, fp, fn, tn; returns (...).
    Edge: NaN when nothing was predicted (TP + FP = 0), where the paper leaves a blank.
    It never sees a finding that matches no reference error: `finding_table` does.
    """
    tp, fp, _, _ = _split(cells)
    return divide(tp, tp + fp)


def recall(cells: NDArray[np.generic]) -> Floats:
    """Share of the judge's errors that it caught, the paper's coverage: TP / (TP + FN).

    Source: Agent GPA, section 4. Shapes: cells (..., 4); returns (...). Edge: NaN without positives.
    """
    tp, _, fn, _ = _split(cells)
    return divide(tp, tp + fn)


def f1(cells: NDArray[np.generic]) -> Floats:
    """Harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN), one division so that it prints exactly.

    Source: van Rijsbergen 1979; Agent GPA, appendix A. Shapes: cells (..., 4); returns (...).
    Edge: NaN when precision is undefined or precision and recall are both 0, as the paper's blanks
    (scikit-learn says 0).
    """
    return _f_beta(cells, 1)


def f2(cells: NDArray[np.generic]) -> Floats:
    """F with recall weighted twice: 5PR / (4P + R) = 5 TP / (5 TP + 4 FN + FP).

    Source: van Rijsbergen 1979; Agent GPA, appendix A. Shapes: cells (..., 4); returns (...).
    Edge: NaN as for F1.
    """
    return _f_beta(cells, 2)


def accuracy(cells: NDArray[np.generic]) -> Floats:
    """Share of errors told apart rightly, relevant or not: (TP + TN) / n.

    Source: Agent GPA, section 4. Shapes: cells (..., 4); returns (...). Edge: NaN without errors.
    """
    tp, fp, fn, tn = _split(cells)
    return divide(tp + tn, tp + fp + fn + tn)


@dataclass(frozen=True, kw_only=True)
class ErrorMetric(Metric):
    """A rate of errors: a function of confusion counts (..., 4) that divides one weighted sum of them by another.

    `above` and `below` the line stand the weights. Which errors it counts, its interval, and whether it says nothing
    without negatives follow from them. `why` says why it is undefined, of counts of which it is.
    """

    function: Callable[[NDArray[np.generic]], Floats]
    above: Weights
    below: Weights
    why: Callable[[int, int, int, int], Reason]
    table: str = "error_estimates"
    column: str = "value"
    best: Best = "high"
    has_ceiling: bool = True

    @property
    def needs_negatives(self) -> bool:
        """Whether it counts errors that are not the judge's: without them it says nothing of a judge of every kind."""
        _, fp, _, tn = self.below
        return fp > 0 or tn > 0

    @property
    def is_share(self) -> bool:
        """Whether it is a share of the errors that it counts, each once."""
        return max(self.below) == 1

    def n(self, tp: int, fp: int, fn: int, tn: int) -> int:
        """Units behind it: predicted errors for precision, relevant ones for recall, either for F, all for accuracy."""
        return sum(count for count, weight in zip((tp, fp, fn, tn), self.below, strict=True) if weight)

    def reasons(self, counts: NDArray[np.int64]) -> list[Reason | None]:
        """Why it is undefined of each of counts (rows, 4), None where it is defined."""
        undefined = np.isnan(self.function(counts)).tolist()
        return [self.why(*row) if gap else None for row, gap in zip(counts.tolist(), undefined, strict=True)]

    def bounds(self, counts: NDArray[np.generic]) -> tuple[Floats, Floats]:
        """Bounds of counts by trace (traces, ..., 4): (...), (...), by `intervals.share_bounds`; NaN where undefined.

        It is a ratio of sums over traces. Of an F of 1 the lower bound follows from that of J = TP / (TP + FP + FN):
        F1 = 2J / (1 + J), F2 >= 5J / (4 + J).
        """
        low, high = share_bounds(_sum(counts, self.above), _sum(counts, self.below), capped=self.is_share)
        if not self.is_share:
            tp, fp, fn, _ = _split(counts)
            union = share_bounds(tp, tp + fp + fn)[0]
            hit, miss = self.below[0], max(self.below[1:])
            low = np.where((fp + fn).sum(axis=0) == 0, hit * union / (miss + (hit - miss) * union), low)
        undefined = np.isnan(self.function(np.asarray(counts).sum(axis=0)))
        return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def _always(reason: Reason) -> Callable[[int, int, int, int], Reason]:
    return lambda tp, fp, fn, tn: reason


def _why_no_f(tp: int, fp: int, fn: int, tn: int) -> Reason:
    return "precision and recall are both 0" if fp else "no positive predicted"


ERROR_METRICS: Final = (
    ErrorMetric(
        name="precision", title="Precision (GPA)", function=precision, above=(1, 0, 0, 0), below=(1, 1, 0, 0),
        why=_always("no positive predicted"),
    ),
    ErrorMetric(
        name="recall", title="Recall (coverage)", short="Recall", function=recall, above=(1, 0, 0, 0),
        below=(1, 0, 1, 0), why=_always("no positives"),
    ),
    ErrorMetric(name="f1", title="F1", function=f1, above=(2, 0, 0, 0), below=(2, 1, 1, 0), why=_why_no_f),
    ErrorMetric(name="f2", title="F2", function=f2, above=(5, 0, 0, 0), below=(5, 1, 4, 0), why=_why_no_f),
    ErrorMetric(
        name="accuracy", title="Accuracy on relevant errors", short="Accuracy", function=accuracy, above=(1, 0, 0, 1),
        below=(1, 1, 1, 1), why=_always("no units"),
    ),
)  # fmt: skip
"""Every rate of errors. One more is a function and a record here: its columns, its chart with direction and limits,
its human ceiling, n, interval, reason and help follow."""
RATES: Final = tuple(metric.name for metric in ERROR_METRICS)
BY_RATE: Final = {metric.name: metric for metric in ERROR_METRICS}


def rates(cells: NDArray[np.generic]) -> Floats:
    """All rates of cells (..., 4) as (..., rates) in the order of `RATES`; NaN where undefined."""
    return np.stack([metric.function(cells) for metric in ERROR_METRICS], axis=-1)


def rate_bounds(counts: NDArray[np.generic]) -> tuple[Floats, Floats]:
    """Bounds of all rates of counts by trace (traces, ..., 4): (..., rates), (..., rates)."""
    low, high = zip(*(metric.bounds(counts) for metric in ERROR_METRICS), strict=True)
    return np.stack(low, axis=-1), np.stack(high, axis=-1)


def _sum(counts: NDArray[np.generic], weights: Weights) -> Floats:
    return np.asarray((np.asarray(counts, dtype=np.float64) * weights).sum(axis=-1), dtype=np.float64)


def _split(cells: NDArray[np.generic]) -> tuple[Floats, Floats, Floats, Floats]:
    numbers = np.asarray(cells, dtype=np.float64)
    return numbers[..., 0], numbers[..., 1], numbers[..., 2], numbers[..., 3]


def _f_beta(cells: NDArray[np.generic], beta: int) -> Floats:
    tp, fp, fn, _ = _split(cells)
    weight = beta * beta
    top = (1 + weight) * tp
    return divide(top, np.where(tp > 0, top + weight * fn + fp, 0.0))
