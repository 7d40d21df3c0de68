"""What each strategy of a queue saves: labels for an equally exact rate, and labels for each error that is met."""

import numpy as np
import pytest

from tracejury.judging.agreement.intervals import Floats
from tracejury.judging.agreement.prevalence import prediction_powered
from tracejury.judging.queues.queueing import chances, draw, stratified_sample, systematic_sample

LABELS, TRACES, RATE = 100, 1_000, 0.2
NAMES = [f"t{number:04d}" for number in range(TRACES)]
STRATEGIES = ("random", "stratified", "disputed", "predicted", "coverage")


def corpus(rng: np.random.Generator) -> dict[str, Floats]:
    """Traces of which 1 in 5 has an error; two judges (Se .8, Sp .9), a check that counts, and a rare tool.

    Errors are three times as common with the rare tool (1 trace in 10).
    """
    rare = rng.random(TRACES) < 0.1
    truth = rng.random(TRACES) < np.where(rare, 0.5, (RATE - 0.05) / 0.9)
    judges = [np.where(truth, rng.random(TRACES) < 0.8, rng.random(TRACES) < 0.1) for _ in range(2)]
    checks = rng.poisson(np.where(truth, 2.0, 0.4))
    return {
        "truth": truth.astype(float), "judge": judges[0].astype(float), "spread": 3.0 * (judges[0] != judges[1]),
        "checks": checks.astype(float), "rarity": np.where(rare, 10.0, 1.0),
    }  # fmt: skip


def drawn(strategy: str, data: dict[str, Floats], seed: int) -> dict[str, float]:
    """The traces that a strategy labels, each with its chance."""
    sizes = {"disputed": "spread", "predicted": "checks", "coverage": "rarity"}
    if strategy == "random":
        chosen = sorted(NAMES, key=lambda name: draw(seed, name))[:LABELS]
        return dict.fromkeys(chosen, LABELS / TRACES)
    if strategy == "stratified":
        return stratified_sample(dict(zip(NAMES, data["rarity"].astype(str), strict=True)), LABELS, seed=seed)
    known = chances(dict(zip(NAMES, data[sizes[strategy]], strict=True)), LABELS)
    return {name: known[name] for name in systematic_sample(known, seed=seed)}


def study(trials: int) -> dict[str, dict[str, float]]:
    """By strategy, over many corpora: bias and standard error of the rate (labels alone, and prediction-powered)
    about that of the corpus, the bias without weights, and the share of labelled traces with an error.
    """
    rng = np.random.default_rng(18)
    off: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in STRATEGIES}
    for trial in range(trials):
        data = corpus(rng)
        for strategy in STRATEGIES:
            sample = drawn(strategy, data, trial)
            places = [NAMES.index(name) for name in sample]
            weights = 1 / np.array(list(sample.values()))
            truth, judge = data["truth"][places], data["judge"][places]
            alone = (weights * truth).sum() / weights.sum()
            tuning = None if np.ptp(weights) < 1e-9 else 1.0  # as `corpus_table` has it
            powered = prediction_powered(truth, judge, data["judge"], weights=weights, tuning=tuning).value
            whole = data["truth"].mean()
            off[strategy].append((alone - whole, powered - whole, truth.mean() - whole, truth.mean()))
    made = {name: np.array(rows) for name, rows in off.items()}
    return {
        name: {
            "bias": rows[:, 0].mean(), "se": rows[:, 0].std(), "powered bias": rows[:, 1].mean(),
            "powered se": rows[:, 1].std(), "unweighted bias": rows[:, 2].mean(), "errors": rows[:, 3].mean(),
        }
        for name, rows in made.items()
    }  # fmt: skip


@pytest.mark.parametrize("trials", [60, pytest.param(1_500, marks=pytest.mark.soak)])
def test_every_strategy_is_unbiased_by_its_chances_and_saves_what_is_printed(
    trials: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = study(trials)
    base = found["random"]
    with capsys.disabled():
        print(f"\n{LABELS} of {TRACES} traces labelled, rate {RATE}; labels saved against random labels alone")
        for name, one in found.items():
            saved, powered = (1 - (one[se] / base["se"]) ** 2 for se in ("se", "powered se"))
            more = 1 - base["errors"] / one["errors"]
            print(
                f"{name:>10}: labels alone {saved:+.0%}, prediction-powered {powered:+.0%}; bias {one['bias']:+.3f} "
                f"({one['unweighted bias']:+.3f} unweighted); labels saved for each error met {more:+.0%}"
            )
    for one in found.values():
        assert abs(one["bias"]) < 4 * one["se"] / np.sqrt(trials) + 0.003  # a ratio of weights is off by 1 / n
        assert abs(one["powered bias"]) < 4 * one["powered se"] / np.sqrt(trials) + 0.003
    assert found["random"]["powered se"] < base["se"]
    assert found["predicted"]["errors"] > 1.5 * base["errors"]
    assert found["predicted"]["unweighted bias"] > 0.1  # what the chances are for
