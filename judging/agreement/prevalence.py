"""How common an error is in a corpus that only a judge has read, corrected for the judge's own mistakes.

Two ways: Rogan and Gladen's correction, and prediction-powered inference, which weighs how labelled units were drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Estimate, Reason
from tracejury.judging.agreement.intervals import LEVEL, SEED, Floats, divide, student_t

POSTERIOR_DRAWS: Final = 20_000
POWERED_LEAST: Final = 60
"""Labelled units (Kish's effective number) below which prediction-powered intervals do not cover: .90 at 20 units."""
POWERED_OF_EACH: Final = 10
"""Labelled units with and without the error below which they do not cover either: .85 at 3 of 60."""
POWERED_SLIPS: Final = 3
"""Misses and false alarms of the judge below which intervals of weighted units do not cover: .90 without the rule."""
Sampling = Literal["assumed random", "random", "weighted", "unknown"]
"""How labelled units were drawn: nobody recorded it, with equal chances, with unequal ones, or some without a chance
that is known."""
KEYS: Final = {"judge_model": "object", "dimension": "object"}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A judge on units that people labelled: confusion counts of `has the error`; effective ones may be fractions."""

    tp: float
    fp: float
    fn: float
    tn: float

    @property
    def reason(self) -> Reason | None:
        """Why no correction is possible, None when one is: both kinds of units and a judge better than chance."""
        if self.tp + self.fn == 0:
            return "no positives"
        if self.tn + self.fp == 0:
            return "no negatives"
        informative = self.tp / (self.tp + self.fn) + self.tn / (self.tn + self.fp) > 1
        return None if informative else "no informative judge"


def corrected_rate(positive: int, judged: int, calibration: Calibration, *, seed: int = SEED) -> Estimate:
    """True rate of an error in a corpus, from a judge's labels and its sensitivity and specificity.

    Source: Rogan and Gladen 1978: (apparent + Sp - 1) / (Se + Sp - 1), cut to [0, 1]. `positive` of `judged`
    units are the judge's own; `calibration` comes from other units, labelled by people too. Interval from both
    sets: the three proportions are drawn from their Jeffreys posteriors and corrected draw by draw, so it widens
    when either set is small. Edge: undefined without units, without positives or negatives to calibrate on, and
    for a judge no better than chance (Se + Sp <= 1). Units are taken as independent: let them be traces, or spans of
    different traces. `undefined_draws` counts draws where it was no better.
    """
    if judged == 0:
        return Estimate(value=None, n=0, reason="no units")
    if calibration.reason is not None:
        return Estimate(value=None, n=judged, reason=calibration.reason)
    c = calibration
    sensitivity, specificity = c.tp / (c.tp + c.fn), c.tn / (c.tn + c.fp)
    value = rogan_gladen(np.array(positive / judged), np.array(sensitivity), np.array(specificity))
    rng = np.random.default_rng(seed)
    draws = rogan_gladen(
        _jeffreys(positive, judged - positive, rng), _jeffreys(c.tp, c.fn, rng), _jeffreys(c.tn, c.fp, rng)
    )
    known = draws[~np.isnan(draws)]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(
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


@dataclass(frozen=True, kw_only=True)
class Powered:
    """A prediction-powered mean: `tuning` is lambda, how far the judge's labels count (0: not at all)."""

    value: float
    standard_error: float
    tuning: float
    n: float
    """Labelled units; Kish's effective number where they are weighted."""

    def bounds(self) -> tuple[float, float]:
        """Return the 95 % interval by Student's t of n - 1 degrees, cut to [0, 1]."""
        reach = float(student_t(max(self.n - 1, 1), LEVEL)) * self.standard_error
        return max(0.0, self.value - reach), min(1.0, self.value + reach)


def prediction_powered(
    truth: Floats, judge: Floats, corpus: Floats, *, weights: Floats | None = None, tuning: float | None = None
) -> Powered:
    """Return the mean of the truth in a corpus from few labels and a judge's labels of many units.

    Source: Angelopoulos et al. 2023 (Science 382): mean of lambda f over the corpus plus mean of Y - lambda f over the
    labelled units; lambda as Angelopoulos, Duchi and Zrnic 2023 (PPI++) tune it, cut to [0, 1], or as `tuning` says.
    `truth` Y and `judge` f (n,) are of labelled units, `corpus` f (N,) of the others; `weights` (n,) the inverse
    inclusion probabilities, scaled to mean 1 (Hajek), where `corpus` must hold all units. Units are taken as
    independent. Raises `ValueError` without labelled units or corpus.
    """
    n, size = len(truth), len(corpus)
    if not n or not size:
        raise ValueError(
            f"{n} labelled units and {size} of the corpus. Try: label some units, and leave others unlabelled"
        )
    w = np.ones(n) if weights is None else weights * n / weights.sum()
    lam = _tuning(truth, judge, corpus, w) if tuning is None else tuning
    residuals = w * (truth - lam * judge)
    error = np.sqrt(lam**2 * corpus.var() / size + residuals.var() / n)
    return Powered(
        value=float(lam * corpus.mean() + residuals.mean()),
        standard_error=float(error),
        tuning=float(lam),
        n=float(w.sum() ** 2 / (w**2).sum()),
    )


def _tuning(truth: Floats, judge: Floats, corpus: Floats, w: Floats) -> float:
    """Lambda of PPI++ for a mean: the covariance of both labels over (1 + n / N) times the judge's variance."""
    mean = corpus.mean() + (w * (truth - judge)).mean()
    own, others = w * (judge - mean), corpus - mean
    spread = np.var(np.concatenate([own, others]), ddof=1)
    if spread <= 0:
        return 0.0
    gradient = w * (truth - mean)
    together = ((gradient - gradient.mean()) * (own - own.mean())).mean()
    return float(np.clip(together / ((1 + len(truth) / len(corpus)) * spread), 0, 1))


def corpus_table(unit_labels: pd.DataFrame, *, seed: int = SEED) -> pd.DataFrame:
    """Corrected rate of each judge: units that people labelled calibrate, the others are the corpus.

    `unit_labels`: dimension, unit, judge_label (whether the judge says that the error is there; missing where it
    failed), reference_label (missing where no person looked). Optional: judge_model; inclusion, the probability with
    which a labelled unit was drawn to be labelled (without the column: assumed alike; missing: unknown); count, how
    many units a row without a label stands for (without the column: one). Columns:
    judge_model, dimension, judged, positive, apparent, tp, fp, fn, tn, sensitivity, specificity (weighted where
    `sampling` is), rate with bounds, ppi with bounds, tuning, sampling, failed, reason. `why_not_powered` says where
    ppi is withheld; the rate is where the chances differ, for its interval knows no weights.
    """
    frames.require(unit_labels, "unit_labels", ("dimension", "unit", "judge_label", "reference_label"))
    labels = frames.with_defaults(unit_labels, {"judge_model": frames.NO_JUDGE_MODEL})
    labels["dimension"] = labels["dimension"].astype(str)
    frames.require_unique(labels, "unit_labels", ["judge_model", "dimension", "unit"])
    model, judged = frames.flags(labels["judge_label"], "unit_labels.judge_label")
    reference, labelled = frames.flags(labels["reference_label"], "unit_labels.reference_label")
    is_recorded = "inclusion" in labels.columns
    count = labels["count"] if "count" in labels.columns else 1
    chances = labels["inclusion"] if is_recorded else pd.Series(1.0, index=labels.index)
    labels = labels.assign(
        judge_label=model,
        judged=judged,
        reference_label=reference,
        labelled=labelled,
        inclusion=_checked(chances),
        count=count,
    )
    rows = []
    for judge_model in frames.in_order(labels["judge_model"], ()):
        for dimension in frames.in_order(
            labels.loc[labels["judge_model"] == judge_model, "dimension"], frames.DIMENSION_ORDER
        ):
            part = labels[(labels["judge_model"] == judge_model) & (labels["dimension"] == dimension)]
            rows.append({"judge_model": judge_model, "dimension": dimension, **_corpus_row(part, seed)})
    if not is_recorded:
        rows = [{**row, "sampling": "assumed random"} for row in rows]
    columns = corpus_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def corpus_columns() -> dict[str, str]:
    """Columns and types of `corpus_table`."""
    counts = dict.fromkeys(("judged", "positive", "tp", "fp", "fn", "tn", "failed"), "int64")
    rates = ("apparent", "sensitivity", "specificity", "rate", "rate_low", "rate_high")
    powered = ("ppi", "ppi_low", "ppi_high", "tuning")
    return {**KEYS, **counts, **dict.fromkeys((*rates, *powered), "float64"), "sampling": "object", "reason": "object"}


def why_not_powered(row: Mapping[str, Any]) -> str | None:
    """Return why a row of `corpus_table` has no prediction-powered rate; None where it has one."""
    labelled = int(row["tp"] + row["fp"] + row["fn"] + row["tn"])
    positives = int(row["tp"] + row["fn"])
    if row["sampling"] == "unknown":
        return UNKNOWN_CHANCES
    if not labelled or not row["judged"]:
        return "no units"
    if labelled < POWERED_LEAST or min(positives, labelled - positives) < POWERED_OF_EACH:
        return (
            f"intervals are unreliable below {POWERED_LEAST} labelled units, {POWERED_OF_EACH} with the error and "
            f"{POWERED_OF_EACH} without"
        )
    if row["sampling"] == "weighted" and min(row["fp"], row["fn"]) < POWERED_SLIPS:
        return (
            f"weighted intervals are unreliable below {POWERED_SLIPS} misses and {POWERED_SLIPS} false alarms of a "
            "judge"
        )
    return None if pd.notna(row["ppi"]) else f"the weights leave fewer than {POWERED_LEAST} effective units"


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why an estimate of `corpus_table` is."""
    if name == "ppi":
        return str(why_not_powered(row))
    if row["sampling"] == "unknown" and name in {"sensitivity", "specificity"}:
        return UNKNOWN_CHANCES
    known: dict[str, Reason] = {
        "apparent": "no units", "sensitivity": "no positives", "specificity": "no negatives",
    }  # fmt: skip
    return known.get(name) or str(row["reason"])


UNKNOWN_CHANCES: Final = "labelled units were drawn with unknown chances"
UNEQUAL_CHANCES: Final = "labelled units were drawn with unequal chances, see ppi"


def _checked(chances: pd.Series) -> pd.Series:
    """Inclusion probabilities. Raises `ValueError` for one that is none."""
    values = pd.to_numeric(chances).astype("float64")
    wrong = values[(values <= 0) | (values > 1)]
    if len(wrong):
        raise ValueError(f"unit_labels.inclusion holds {wrong.iloc[0]:g}. Try: probabilities above 0 and up to 1")
    return values


def sampling_note(unit_labels: pd.DataFrame) -> str | None:
    """Return what estimates of labelled units may not say of all units, in words; None where nothing is known against.

    `unit_labels` as in `corpus_table`.
    """
    if "inclusion" not in unit_labels.columns:
        return None
    labelled = unit_labels[unit_labels["reference_label"].notna()].drop_duplicates("unit")
    match _sampling(labelled["inclusion"].to_numpy(dtype=np.float64)):
        case "weighted":
            return (
                "labelled traces were drawn with unequal chances: corpus_rates weights by them; all other "
                "estimates hold only for these traces"
            )
        case "unknown":
            return "some labelled traces were drawn with unknown chances: estimates hold only for these traces"
        case _:
            return None


def _sampling(chances: Floats) -> Sampling:
    if np.isnan(chances).any():
        return "unknown"
    return "random" if len(chances) == 0 or np.ptp(chances) < 1e-9 else "weighted"


def _corpus_row(part: pd.DataFrame, seed: int) -> dict[str, object]:
    predicted, truth = part["judge_label"].to_numpy(), part["reference_label"].to_numpy()
    known = (part["judged"] & part["labelled"]).to_numpy()
    corpus = (part["judged"] & ~part["labelled"]).to_numpy()
    sampling = _sampling(part["inclusion"].to_numpy()[known])
    count = part["count"].to_numpy()
    calibration = Calibration(
        tp=int((known & truth & predicted).sum()),
        fp=int((known & ~truth & predicted).sum()),
        fn=int((known & truth & ~predicted).sum()),
        tn=int((known & ~truth & ~predicted).sum()),
    )
    positive, judged = int(count[corpus & predicted].sum()), int(count[corpus].sum())
    row = {
        "judged": judged,
        "positive": positive,
        "tp": calibration.tp,
        "fp": calibration.fp,
        "fn": calibration.fn,
        "tn": calibration.tn,
        "failed": int(count[~part["judged"].to_numpy()].sum()),
        "apparent": float(divide(positive, judged)),
        "sampling": sampling,
        **_sensitivity(predicted, truth, known, part["inclusion"].to_numpy(), sampling),
        **_rogan_gladen_cells(positive, judged, calibration, sampling, seed),
    }
    return {**row, **_powered_cells(row, part, known, corpus)}


def _sensitivity(
    predicted: NDArray[np.bool_],
    truth: NDArray[np.bool_],
    known: NDArray[np.bool_],
    chances: Floats,
    sampling: Sampling,
) -> dict[str, object]:
    """Sensitivity and specificity on labelled units, weighted where their chances differ; NaN where unknown."""
    if sampling == "unknown":
        return {"sensitivity": np.nan, "specificity": np.nan}
    weights = 1 / chances if sampling == "weighted" else np.ones(len(truth))
    w = np.where(known, weights, 0.0)
    return {
        "sensitivity": float(divide((w * (truth & predicted)).sum(), (w * truth).sum())),
        "specificity": float(divide((w * (~truth & ~predicted)).sum(), (w * ~truth).sum())),
    }


def _rogan_gladen_cells(
    positive: int, judged: int, calibration: Calibration, sampling: Sampling, seed: int
) -> dict[str, object]:
    if sampling in {"weighted", "unknown"}:
        reason = UNKNOWN_CHANCES if sampling == "unknown" else UNEQUAL_CHANCES
        return {"rate": None, "rate_low": None, "rate_high": None, "reason": reason}
    estimate = corrected_rate(positive, judged, calibration, seed=seed)
    return {"rate": estimate.value, "rate_low": estimate.low, "rate_high": estimate.high, "reason": estimate.reason}


def _powered_cells(
    row: Mapping[str, Any], part: pd.DataFrame, known: NDArray[np.bool_], corpus: NDArray[np.bool_]
) -> dict[str, object]:
    """The prediction-powered rate, NaN where it is withheld (`why_not_powered`)."""
    nothing = dict.fromkeys(("ppi", "ppi_low", "ppi_high", "tuning"), np.nan)
    if why_not_powered({**row, "ppi": 0.0}) is not None:
        return {**nothing}
    judge, truth = (part[name].to_numpy().astype(np.float64) for name in ("judge_label", "reference_label"))
    is_weighted = row["sampling"] == "weighted"
    weights = 1 / part["inclusion"].to_numpy()[known] if is_weighted else None
    others = known | corpus if is_weighted else corpus  # unequally drawn, the others alone are not the corpus
    tuning = 1.0 if is_weighted else None  # tuned on weighted units lambda is biased, by a fifth of a standard error
    every = np.repeat(judge[others], part["count"].to_numpy()[others])
    estimate = prediction_powered(truth[known], judge[known], every, weights=weights, tuning=tuning)
    if estimate.n < POWERED_LEAST:
        return {**nothing}
    low, high = estimate.bounds()
    return {"ppi": min(max(estimate.value, 0.0), 1.0), "ppi_low": low, "ppi_high": high, "tuning": estimate.tuning}


def _jeffreys(hits: float, misses: float, rng: np.random.Generator) -> Floats:
    return rng.beta(hits + 0.5, misses + 0.5, size=POSTERIOR_DRAWS)
