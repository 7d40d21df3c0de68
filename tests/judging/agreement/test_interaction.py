"""The test of slices: by hand, its level under dependence and unequal slices, and its power.

The long form is `make soak ARGS="-k level_of_slices -s"`.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri

from tracejury.judging.agreement.interaction import equal_means
from tracejury.judging.agreement.intervals import Floats

DESIGNS = ((30, 30), (10, 50), (5, 55), (20, 20, 20), (5, 10, 45), (10, 10, 10, 30))
"""Traces by slice, down to the fewest that are tested."""


def study(
    sizes: tuple[int, ...], rng: np.random.Generator, *, within: bool = False, effect: float = 0.0
) -> tuple[Floats, Floats]:
    """Sums and counts (traces, slices) of a judge's lead over two others; `effect` is its own in the last slice.

    Errors of one trace share a difficulty and what each judge makes of the trace; slices differ by 30 points in what is
    caught, judges by 25: neither is an interaction. `within`: errors of one trace lie in several slices.
    """
    slices, traces = len(sizes), sum(sizes)
    base, judges = np.linspace(0.35, 0.65, slices), np.array([0.15, -0.10, 0.0])
    own = np.repeat(np.arange(slices), sizes)
    sums, counts = np.zeros((traces, slices)), np.zeros((traces, slices))
    for trace in range(traces):
        number = 1 + rng.poisson(3.5)
        place = rng.integers(0, slices, number) if within else np.full(number, own[trace])
        chance = base[place] + judges[:, None]
        chance[0] += effect * (place == slices - 1)
        noise = 0.5 * rng.normal() + 0.4 * rng.normal(size=(3, 1)) + np.sqrt(0.59) * rng.normal(size=(3, number))
        caught = (noise < ndtri(chance)).astype(np.float64)
        np.add.at(sums[trace], place, caught[0] - caught[1:].mean(axis=0))
        np.add.at(counts[trace], place, 1.0)
    return sums, counts


def rejected(studies: int, sizes: tuple[int, ...], *, draws: int = 399, **how: float) -> float:
    rng = np.random.default_rng(20_261_129)
    p = [equal_means(*study(sizes, rng, **how), draws=draws, seed=one) for one in range(studies)]  # type: ignore[arg-type]
    return float(np.mean(np.array(p) <= 0.05))


def test_two_slices_of_one_unit_a_trace_by_hand() -> None:
    """Units 1 1 0 | 0 0 1: means 2/3 and 1/3 around 1/2. Of the 64 choices of signs the statistic is counted here."""
    sums = np.array([[1.0, 0], [1, 0], [0, 0], [0, 0], [0, 0], [0, 1]])
    counts = np.repeat(np.eye(2), 3, axis=0)
    residuals = (sums.sum(axis=1) - 0.5).reshape(2, 3)

    def statistic(signs: Floats) -> float:
        values = residuals * signs
        means = values.mean(axis=1)
        spread = ((values - means[:, None]) ** 2).sum(axis=1) / 9
        return float((means[0] - means[1]) ** 2 / spread.sum()) if spread.sum() else np.inf

    observed = statistic(np.ones((2, 3)))
    every = [statistic(np.array(signs).reshape(2, 3)) for signs in product((-1.0, 1.0), repeat=6)]
    exact = np.mean([one >= observed - 1e-9 for one in every])
    # where all of both slices agree (4 of 64) the variance is 0: the product counts such draws as no evidence
    degenerate = np.mean([one == np.inf for one in every])
    p = equal_means(sums, counts, draws=40_000)
    assert exact - degenerate - 0.01 <= p <= exact + 0.01


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("sizes", DESIGNS, ids=str)
@pytest.mark.parametrize("studies", [150, pytest.param(2_000, marks=[pytest.mark.soak, pytest.mark.timeout(3_000)])])
def test_the_level_of_slices_is_kept(studies: int, sizes: tuple[int, ...], within: bool) -> None:
    share = rejected(studies, sizes, within=within)
    print(f"\n{sizes} within={within}: {share:.3f}")
    assert share <= 0.065 + 3 * (0.05 * 0.95 / studies) ** 0.5


def test_a_fall_of_forty_points_in_one_slice_is_seen() -> None:
    assert rejected(100, (30, 30), effect=-0.4) >= 0.9


@pytest.mark.parametrize(
    ("sums", "counts"),
    [
        (np.zeros((0, 0)), np.zeros((0, 0))),
        (np.ones((6, 1)), np.ones((6, 1))),  # one slice
        (np.repeat(np.eye(2), 3, axis=0), np.repeat(np.eye(2), 3, axis=0)),  # all caught
        (np.array([[1.0, 0]]), np.array([[1.0, 0]])),  # a slice without units
    ],
)
def test_where_no_test_can_be_made_there_is_no_p(sums: Floats, counts: Floats) -> None:
    assert np.isnan(equal_means(sums, counts, draws=99))


def test_the_same_seed_gives_the_same_p() -> None:
    sums, counts = study((10, 20), np.random.default_rng(3))
    assert equal_means(sums, counts, draws=199, seed=7) == equal_means(sums, counts, draws=199, seed=7)
    assert np.isnan(equal_means(sums, counts, draws=0))
