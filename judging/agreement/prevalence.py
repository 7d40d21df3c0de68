"""How common an error is in a corpus that only a judge has read, corrected for the judge's own mistakes."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.figure import Figure, Reason
from tracejury.judging.agreement.intervals import LEVEL, SEED, Floats, divide

POSTERIOR_DRAWS: Final = 20_000
KEYS: Final = {"judge_model": "object", "dimension": "object"}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A judge on units that people labelled: confusion counts of `has the error`."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def reason(self) -> Reason | None:
        """Why no correction is possible, None when one is: both kinds of units and a judge better than chance."""
        if self.tp + self.fn == 0:
            return "no positives"
        if self.tn + self.fp == 0:
            return "no negatives"
        informative = self.tp / (self.tp + self.fn) + self.tn / (self.tn + self.fp) > 1
        return None if informative else "no informative judge"


def corrected_rate(positive: int, judged: int, calibration: Calibration, *, seed: int = SEED) -> Figure:
    """True rate of an error in a corpus, from a judge's labels and its sensitivity and specificity.

    Source: Rogan and Gladen 1978: (apparent + Sp - 1) / (Se + Sp - 1), cut to [0, 1]. `positive` of `judged`
    units are the judge's own; `calibration` comes from other units, labelled by people too. Interval from both
    sets: the three proportions are drawn from their Jeffreys posteriors and corrected draw by draw, so it widens
    when either set is small. Edge: undefined without units, without positives or negatives to calibrate on, and
    for a judge no better than chance (Se + Sp <= 1). Units are taken as independent: let them be traces, or spans of
    different traces. `undefined_draws` counts draws where it was no better.
    """
    if judged == 0:
        return Figure(value=None, n=0, reason="no units")
    if calibration.reason is not None:
        return Figure(value=None, n=judged, reason=calibration.reason)
    c = calibration
    sensitivity, specificity = c.tp / (c.tp + c.fn), c.tn / (c.tn + c.fp)
    value = rogan_gladen(np.array(positive / judged), np.array(sensitivity), np.array(specificity))
    rng = np.random.default_rng(seed)
    draws = rogan_gladen(
        _jeffreys(positive, judged - positive, rng), _jeffreys(c.tp, c.fn, rng), _jeffreys(c.tn, c.fp, rng)
    )
    known = draws[~np.isnan(draws)]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Figure(
        value=float(value),
        n=judged,
        low=min(float(low), float(value)),
        high=max(float(high), float(value)),
        undefined_draws=len(draws) - len(known),
    )


def rogan_gladen(apparent: Floats, sensitivity: Floats, specificity: Floats) -> Floats:
    """The corrected rate for arrays of one shape, cut to [0, 1]; NaN where sensitivity + specificity <= 1."""
    power = sensitivity + specificity - 1
    raw = divide(apparent + specificity - 1, np.where(power > 0, power, 0.0))
    return np.clip(raw, 0.0, 1.0)


def corpus_table(unit_labels: pd.DataFrame, *, seed: int = SEED) -> pd.DataFrame:
    """Corrected rate of each judge: units with a human label calibrate, the others are the corpus.

    `unit_labels`: judge, unit, model (boolean: the judge says the error is there; missing where it failed), human
    (boolean, missing where no person looked). Optional: judge model. Columns: judge_model, dimension, judged, positive,
    apparent, tp, fp, fn, tn, sensitivity, specificity, rate with bounds, failed, reason.
    """
    frames.require(unit_labels, "unit_labels", ("dimension", "unit", "judge_label", "reference_label"))
    labels = frames.with_defaults(unit_labels, {"judge_model": frames.NO_JUDGE_MODEL})
    labels["dimension"] = labels["dimension"].astype(str)
    frames.require_unique(labels, "unit_labels", ["judge_model", "dimension", "unit"])
    model, judged = frames.flags(labels["judge_label"], "unit_labels.judge_label")
    reference, labelled = frames.flags(labels["reference_label"], "unit_labels.reference_label")
    labels = labels.assign(judge_label=model, judged=judged, reference_label=reference, labelled=labelled)
    rows = []
    for judge_model in frames.in_order(labels["judge_model"], ()):
        for dimension in frames.in_order(
            labels.loc[labels["judge_model"] == judge_model, "dimension"], frames.DIMENSION_ORDER
        ):
            part = labels[(labels["judge_model"] == judge_model) & (labels["dimension"] == dimension)]
            rows.append({"judge_model": judge_model, "dimension": dimension, **_corpus_row(part, seed)})
    columns = corpus_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def corpus_columns() -> dict[str, str]:
    """Columns and types of `corpus_table`."""
    counts = dict.fromkeys(("judged", "positive", "tp", "fp", "fn", "tn", "failed"), "int64")
    rates = ("apparent", "sensitivity", "specificity", "rate", "rate_low", "rate_high")
    return {**KEYS, **counts, **dict.fromkeys(rates, "float64"), "reason": "object"}


def _corpus_row(part: pd.DataFrame, seed: int) -> dict[str, object]:
    predicted, truth = part["judge_label"].to_numpy(), part["reference_label"].to_numpy()
    known = (part["judged"] & part["labelled"]).to_numpy()
    corpus = (part["judged"] & ~part["labelled"]).to_numpy()
    calibration = Calibration(
        tp=int((known & truth & predicted).sum()),
        fp=int((known & ~truth & predicted).sum()),
        fn=int((known & truth & ~predicted).sum()),
        tn=int((known & ~truth & ~predicted).sum()),
    )
    positive, judged = int((corpus & predicted).sum()), int(corpus.sum())
    figure = corrected_rate(positive, judged, calibration, seed=seed)
    c = calibration
    return {
        "judged": judged,
        "positive": positive,
        "tp": c.tp,
        "fp": c.fp,
        "fn": c.fn,
        "tn": c.tn,
        "failed": int((~part["judged"]).sum()),
        "apparent": float(divide(positive, judged)),
        "sensitivity": float(divide(c.tp, c.tp + c.fn)),
        "specificity": float(divide(c.tn, c.tn + c.fp)),
        "rate": figure.value,
        "rate_low": figure.low,
        "rate_high": figure.high,
        "reason": figure.reason,
    }


def _jeffreys(hits: int, misses: int, rng: np.random.Generator) -> Floats:
    return rng.beta(hits + 0.5, misses + 0.5, size=POSTERIOR_DRAWS)
