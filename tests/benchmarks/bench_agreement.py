"""Speed of the agreement intervals, side by side with loops over the libraries, in one run.

A loop that would take minutes is timed on a few iterations and extrapolated; the line says so.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import error_rates, errors
from tracejury.judging.agreement.reliability import alpha_bootstrap, continuous_alpha


@dataclass(frozen=True, kw_only=True)
class Race:
    """One comparison: CPU milliseconds of ours and of the loop, and the target that issue 6 sets."""

    name: str
    ours_ms: float
    loop_ms: float
    note: str
    least_ratio: float | None = None
    most_ms: float | None = None

    @property
    def ratio(self) -> float:
        return self.loop_ms / self.ours_ms

    @property
    def met(self) -> bool:
        fast = self.least_ratio is None or self.ratio >= self.least_ratio
        return fast and (self.most_ms is None or self.ours_ms <= self.most_ms)


def cpu_ms(work: Callable[[], object], repeats: int = 5) -> float:
    """Least CPU time of a call over some repeats, in milliseconds; all threads count."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1000 * min(times)


def repeats_of_a_judge(units: int, seed: int = 7) -> NDArray[np.float64]:
    """Five runs of a fairly consistent judge on a scale of 0 to 3 (5, units)."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, units)
    noise = rng.choice([-1, 0, 0, 0, 0, 1], size=(5, units))
    return np.asarray(np.clip(truth + noise, 0, 3), dtype=np.float64)


def alpha_race(units: int, draws: int, timed: int, least_ratio: float, most_ms: float | None) -> Race:
    """Our alpha bootstrap beside a loop that resamples units and calls `krippendorff`."""
    matrix = repeats_of_a_judge(units)
    rng = np.random.default_rng(1)

    def loop() -> None:
        for _ in range(timed):
            drawn = matrix[:, rng.integers(0, units, units)]
            krippendorff.alpha(reliability_data=drawn, level_of_measurement="interval")

    ours = cpu_ms(lambda: alpha_bootstrap(matrix, "interval", draws=draws))
    theirs = cpu_ms(loop, repeats=1) * draws / timed
    note = f"loop timed on {timed} of {draws} resamples" if timed < draws else "loop timed in full"
    return Race(
        name=f"alpha, 5 x {units:,} units, {draws:,} resamples",
        ours_ms=ours,
        loop_ms=theirs,
        note=note,
        least_ratio=least_ratio,
        most_ms=most_ms,
    )


def error_pairs(traces: int = 59, judges: int = 6, seed: int = 3) -> pd.DataFrame:
    """About 280 errors, each with a verdict of every judge: the size of the paper's test split."""
    rng = np.random.default_rng(seed)
    rows = []
    for trace in range(traces):
        for error in range(int(rng.integers(3, 8))):
            impact = str(rng.choice(["low", "medium", "high"]))
            for judge in range(judges):
                caught = bool(rng.random() < 0.5)
                rows.append(
                    {
                        "trace_id": f"t{trace}",
                        "error_id": f"e{error}",
                        "impact": impact,
                        "dimension": f"J{judge}",
                        "relevant": bool(rng.random() < 0.4),
                        "caught": caught,
                        "localized": caught and bool(rng.random() < 0.7),
                    }
                )
    return pd.DataFrame(rows)


def rates_race(draws: int = 10_000, timed: int = 5) -> Race:
    """All 24 cells (6 judges x 4 impacts) of five rates beside a loop over scikit-learn."""
    from sklearn.metrics import accuracy_score, fbeta_score, precision_recall_fscore_support

    pairs = errors.checked_pairs(error_pairs())
    cells = errors.trace_cells(pairs)
    caught = errors.Cells(
        traces=cells.traces,
        dimensions=cells.dimensions,
        counts=cells.counts[:, :, :, :1, :],
        failed=cells.failed,
        not_applicable=cells.not_applicable,
        not_matched=cells.not_matched,
    )
    places = list(pairs.groupby("trace_id").indices.values())
    columns = {name: pairs[name].to_numpy() for name in ("dimension", "impact", "relevant", "caught")}
    rng = np.random.default_rng(1)

    def loop() -> None:
        for _ in range(timed):
            drawn = np.concatenate([places[i] for i in rng.integers(0, len(places), len(places))])
            for judge in cells.dimensions:
                for impact in ("low", "medium", "high", "all"):
                    at = drawn[columns["dimension"][drawn] == judge]
                    at = at if impact == "all" else at[columns["impact"][at] == impact]
                    truth, said = columns["relevant"][at], columns["caught"][at]
                    precision_recall_fscore_support(truth, said, average="binary", zero_division=np.nan)
                    fbeta_score(truth, said, beta=2, zero_division=np.nan)
                    accuracy_score(truth, said)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cpu_ms(loop, repeats=1) * draws / timed
    ours = cpu_ms(lambda: error_rates.rate_bounds(caught.counts))
    return Race(
        name=f"intervals of 24 cells of P, R, F1, F2, Acc, against {draws:,} resamples",
        ours_ms=ours,
        loop_ms=theirs,
        note=f"loop timed on {timed} of {draws} resamples",
        most_ms=300,
    )


def continuous_race() -> Race:
    """One interval alpha of 5 x 200 distinct scores beside the library, which holds units x values x values."""
    matrix = np.random.default_rng(2).random((5, 60))
    ours = cpu_ms(lambda: continuous_alpha(matrix))
    theirs = cpu_ms(lambda: krippendorff.alpha(reliability_data=matrix), repeats=1)
    return Race(
        name="one alpha of 5 x 60 distinct scores (the library needs GBs at 5 x 200)",
        ours_ms=max(ours, 0.01),
        loop_ms=theirs,
        note="library called once",
    )


def main() -> int:
    """Print every race with its ratio; the number of missed targets is the result."""
    races = (
        alpha_race(59, 10_000, 2_000, least_ratio=40, most_ms=40),
        alpha_race(100_000, 1_000, 3, least_ratio=500, most_ms=None),
        rates_race(),
        continuous_race(),
    )
    print(f"{'agreement (CPU time)':<70}{'ours':>12}{'loop':>14}{'ratio':>10}  target")
    for race in races:
        goals = [f">= {race.least_ratio:g}x"] if race.least_ratio is not None else []
        goals += [f"<= {race.most_ms:g} ms"] if race.most_ms is not None else []
        verdict = f"{', '.join(goals)}: {'met' if race.met else 'MISSED'}" if goals else "none"
        print(
            f"{race.name:<70}{race.ours_ms:>9.1f} ms{race.loop_ms:>11.0f} ms{race.ratio:>9.0f}x  {verdict}; {race.note}"
        )
    return sum(not race.met for race in races)


if __name__ == "__main__":
    raise SystemExit(main())
