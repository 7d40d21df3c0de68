"""How well a rule matches errors and findings, on pairs that people labelled, and how far estimates move for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.error_rates import BY_RATE, COUNTS
from tracejury.judging.agreement.errors import (
    KEYS,
    LEFT_OUT,
    NOT_MATCHED,
    checked_pairs,
    suite_coverage,
)
from tracejury.judging.agreement.estimate import Estimate, Reason
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS, SEED, Floats, divide, effective_units, share_bounds
from tracejury.judging.agreement.prevalence import Calibration, corrected_rate, rogan_gladen

ANSWERS: Final = ("yes", "no", "unclear")
"""Whether an error and a finding describe one error."""


@dataclass(frozen=True, kw_only=True)
class RuleRates:
    """What a rule reached on labelled pairs; `rule` names its version.

    `precision`: of proposed pairs, those that are the same error; `recall`: of pairs that are the same error, those
    proposed; `recall_one_to_one` leaves out pairs whose error or finding a right proposal has. `of_errors` counts
    errors with all their pairs labelled: described by the judge or not, caught or not; `effective` are the same counts,
    divided by what clustering by trace costs.
    """

    precision: Estimate
    recall: Estimate
    recall_one_to_one: Estimate
    of_errors: Calibration
    effective: Calibration
    unclear: int


def rule_rates(pairs: pd.DataFrame, sizes: Mapping[tuple[int, str], int]) -> RuleRates:
    """Compute what a rule reached on labelled pairs, one row each.

    `pairs`: trace_id, cell_key, label_id, finding_id, proposed (boolean), same_error (yes, no or unclear), inclusion
    (the probability with which the pair was drawn, above 0 and up to 1). `sizes`: how many pairs each error has in each
    cell, by (cell_key, label_id). Pairs are weighted by 1 / inclusion (Hajek); intervals are Wilson's with the
    effective number of pairs by trace (`share_bounds`), at most Kish's number of weighted pairs. Unclear pairs are
    counted and left out. n counts pairs.
    """
    clear = pairs[pairs["same_error"] != "unclear"]
    same, proposed = (clear["same_error"] == "yes").to_numpy(), clear["proposed"].to_numpy(dtype=bool)
    open_to_it = same & (proposed | ~_is_taken(clear, same & proposed))
    by_trace = _of_errors(pairs, sizes)
    return RuleRates(
        precision=_share(clear, same & proposed, proposed, "no positive predicted"),
        recall=_share(clear, same & proposed, same, "no positives"),
        recall_one_to_one=_share(clear, same & proposed, open_to_it, "no positives"),
        of_errors=_summed(by_trace),
        effective=_effective(by_trace),
        unclear=len(pairs) - len(clear),
    )


def _is_taken(rows: pd.DataFrame, right: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows have an error or a finding that a right proposal of the same cell has."""
    is_taken = np.zeros(len(rows), dtype=bool)
    for name in ("label_id", "finding_id"):
        keys = pd.MultiIndex.from_frame(rows[["cell_key", name]])
        is_taken |= keys.isin(keys[right])
    return is_taken


def _share(rows: pd.DataFrame, hit: NDArray[np.bool_], unit: NDArray[np.bool_], reason: Reason) -> Estimate:
    part = rows.assign(hit=hit)[unit]
    if part.empty:
        return Estimate(value=None, n=0, reason=reason)
    weights = 1 / part["inclusion"].to_numpy(dtype=np.float64)
    weights *= weights.sum() / (weights**2).sum()  # they add up to Kish's number
    sums = pd.DataFrame({"hits": weights * part["hit"].to_numpy(), "units": weights}).groupby(
        part["trace_id"].to_numpy()
    )
    hits, units = (sums[name].sum().to_numpy() for name in ("hits", "units"))
    low, high = share_bounds(hits, units)
    return Estimate(value=float(hits.sum() / units.sum()), n=len(part), low=_known(low), high=_known(high))


def _known(bound: Floats) -> float | None:
    return None if np.isnan(bound) else float(bound)


def _of_errors(pairs: pd.DataFrame, sizes: Mapping[tuple[int, str], int]) -> dict[str, dict[str, int]]:
    """By trace the errors of cells whose pairs are all labelled; one with unclear pairs and no same one is left out."""
    by_trace: dict[str, dict[str, int]] = {}
    for key, rows in pairs.groupby(["cell_key", "label_id"]):
        answers = set(rows["same_error"])
        if len(rows) != sizes.get(cast("tuple[int, str]", key)) or ("yes" not in answers and "unclear" in answers):
            continue
        is_caught = bool(rows["proposed"].any())
        counts = by_trace.setdefault(str(rows["trace_id"].iloc[0]), dict.fromkeys(("tp", "fp", "fn", "tn"), 0))
        counts[("tp" if is_caught else "fn") if "yes" in answers else ("fp" if is_caught else "tn")] += 1
    return by_trace


def _summed(by_trace: Mapping[str, Mapping[str, int]]) -> Calibration:
    return Calibration(**{name: sum(counts[name] for counts in by_trace.values()) for name in ("tp", "fp", "fn", "tn")})


def _effective(by_trace: Mapping[str, Mapping[str, int]]) -> Calibration:
    """The counts, divided by what clustering by trace costs (`intervals.effective_units`)."""
    names = ("tp", "fn", "fp", "tn")
    counts = np.array([[one[name] for name in names] for one in by_trace.values()], dtype=np.float64).reshape(-1, 4)
    parts: list[float] = []
    for hits, misses in (counts[:, :2].T, counts[:, 2:].T):
        size, units = float((hits + misses).sum()), float(effective_units(hits, hits + misses))
        effective = units if np.isfinite(units) else size
        caught = effective * float(hits.sum()) / size if size else 0.0
        parts += [caught, effective - caught]
    return Calibration(**dict(zip(names, parts, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a version of the rule reached on traces that it was not made on: its errors, described and caught or not.

    `calibration` holds effective counts: those of errors, divided by what clustering by trace costs. `precision` and
    `recall` are of pairs, recall one to one. `measured_on` and `corrected_by` say whose pairs they come from.
    """

    rule: str
    calibration: Calibration
    precision: Estimate | None = None
    recall: Estimate | None = None
    measured_on: str = "shipped pairs"
    corrected_by: str = "shipped pairs"


MEASURED: Final = Measured(
    rule="2",
    calibration=Calibration(tp=40, fn=24, fp=6, tn=67),
    precision=Estimate(value=55 / 66, n=66, low=0.714, high=0.909),
    recall=Estimate(value=55 / 86, n=86, low=0.481, high=0.772),
)
"""Of the rule that ships: it caught 58 of 93 described errors (64 effective) and 6 of 73 others; see the researchers'
help."""
LEAST_ERRORS: Final = 20
"""Fewer described errors, or fewer others, with all their pairs labelled are too few to correct by."""
_PAIR_RATES: Final = ("precision", "recall")
_RULE_ESTIMATES: Final = {
    f"rule_{name}{end}": "Int64" if end == "_n" else "float64"
    for name in _PAIR_RATES
    for end in ("", "_low", "_high", "_n")
}
RULE_RATES: Final = {"rule": "object", **_RULE_ESTIMATES, **dict.fromkeys(("tp", "fn", "fp", "tn"), "float64")}
"""Columns and types of what a rule reached on a workspace's own pairs; tp to tn are effective counts of errors."""


def rule_row(rule: str, rates: RuleRates) -> dict[str, Any]:
    """Return what a rule reached as a row of `RULE_RATES`."""
    return {"rule": rule, **_rule_estimates(rates.precision, rates.recall_one_to_one), **asdict(rates.effective)}


def _rule_estimates(precision: Estimate | None, recall: Estimate | None) -> dict[str, Any]:
    """The columns `_RULE_ESTIMATES`."""
    ends = {"": "value", "_low": "low", "_high": "high", "_n": "n"}
    return {
        f"rule_{name}{end}": None if one is None else getattr(one, field)
        for name, one in zip(_PAIR_RATES, (precision, recall), strict=True)
        for end, field in ends.items()
    }


def measured_of(rule_rates: pd.DataFrame) -> Measured:
    """Return what corrects caught errors: a workspace's own pairs where there are any, else `MEASURED`.

    Own errors correct where `LEAST_ERRORS` of both kinds have all their pairs labelled; else those that ship do, beside
    precision and recall of the own pairs.
    """
    if rule_rates.empty:
        return MEASURED
    row = rule_rates.iloc[0]
    counts = Calibration(**{name: float(row[name]) for name in ("tp", "fn", "fp", "tn")})
    has_enough = min(counts.tp + counts.fn, counts.fp + counts.tn) >= LEAST_ERRORS
    pairs = {name: _estimate_of(row, f"rule_{name}") for name in _PAIR_RATES}
    return Measured(
        rule=str(row["rule"]),
        calibration=counts if has_enough else MEASURED.calibration,
        **pairs,
        measured_on="own pairs",
        corrected_by="own pairs" if has_enough else MEASURED.corrected_by,
    )


def _estimate_of(row: pd.Series, name: str) -> Estimate:
    value, low, high = (
        None if pd.isna(row[f"{name}{end}"]) else float(row[f"{name}{end}"]) for end in ("", "_low", "_high")
    )
    n = 0 if pd.isna(row[f"{name}_n"]) else int(row[f"{name}_n"])
    return Estimate(value=value, n=n, low=low, high=high, reason="no pairs" if value is None else None)


SENSITIVITY: Final = ("recall", "precision", "f1")
_ENDS: Final = ("", "_corrected", "_lowest", "_highest")
PLAIN: Final = tuple(f"{name}{end}" for name in SENSITIVITY for end in _ENDS if (name, end) != ("recall", "_corrected"))
"""Estimates of `match_sensitivity` without bounds."""


def sensitivity_columns() -> dict[str, str]:
    """Columns and types of `match_sensitivity`."""
    estimates = dict.fromkeys((f"{name}{end}" for name in SENSITIVITY for end in _ENDS), "float64")
    bounds = dict.fromkeys(("recall_corrected_low", "recall_corrected_high"), "float64")
    keys = {name: kind for name, kind in KEYS.items() if name != "kind"}
    counts = dict.fromkeys(("n", "positives", *COUNTS, *LEFT_OUT), "int64")
    rule = {**dict.fromkeys(("measured_on", "corrected_by"), "object"), **_RULE_ESTIMATES}
    return {**keys, **counts, **estimates, **bounds, **rule, "reason": "object"}


def match_sensitivity(
    error_rates: pd.DataFrame, confirmed: set[str], measured: Measured = MEASURED, *, draws: int, seed: int = SEED
) -> pd.DataFrame:
    """Recall, precision and F1 of caught errors as they would be without the mistakes of the matching rule.

    `error_rates`: `errors.error_table`; `confirmed`: judge models some of whose matches are people's, of which it is
    not known how many mistakes of the rule are left. `_corrected`: the rates of caught among relevant and among other
    errors, each corrected by Rogan and Gladen 1978 for how often the rule catches an error that the judge described
    (sensitivity) and leaves one that it did not (1 - false matches). `_lowest`: for false matches alone, `_highest`:
    for missed matches alone; of precision the lower and the higher of the two. The interval of the corrected recall
    draws both samples (`prevalence.corrected_rate`); none with `draws=0`. NaN where the rate itself is
    (`why_undefined`), and of a judge model some of whose matches are confirmed. measured_on and corrected_by say whose
    pairs rule_precision and rule_recall (of pairs, recall one to one), and the correction, come from.
    """
    rows = error_rates[error_rates["kind"] == "caught"].to_dict("records")
    table = pd.DataFrame([_sensitivity_row(row, confirmed, measured.calibration, draws, seed) for row in rows])
    columns = sensitivity_columns()
    estimates = _rule_estimates(measured.precision, measured.recall)
    table = table.assign(measured_on=measured.measured_on, corrected_by=measured.corrected_by, **estimates)
    table = table.reindex(columns=list(columns)).astype(columns)
    return table.assign(reason=table["reason"].where(table["reason"].notna(), None))


CONFIRMED: Final = "some matches were confirmed by people: how many of the rule's mistakes remain is unknown"


def why_undefined(row: Mapping[Any, Any], name: str) -> str:
    """Return why an estimate of a row of `match_sensitivity` is undefined."""
    if name.startswith("rule_"):
        return "no labelled pair of its kind"
    metric = name.partition("_")[0]
    if pd.isna(row[metric]):
        if not any(row[count] for count in COUNTS) and row["not_matched"]:
            return NOT_MATCHED
        counts = np.array([[int(row[count]) for count in COUNTS]])
        return BY_RATE[metric].reasons(counts)[0] or "no negatives"
    return str(row["reason"] or "no positive predicted")


def _sensitivity_row(
    row: Mapping[Any, Any], confirmed: set[str], rule: Calibration, draws: int, seed: int
) -> dict[str, Any]:
    cells = {name: row[name] for name in sensitivity_columns() if name in row}
    if row["judge_model"] in confirmed:
        return {**cells, "reason": CONFIRMED}
    sensitivity, specificity = rule.tp / (rule.tp + rule.fn), rule.tn / (rule.tn + rule.fp)
    estimates = {
        **_rates(row, "_corrected", sensitivity, specificity),
        **_rates(row, "_lowest", 1.0, specificity),
        **_rates(row, "_highest", sensitivity, 1.0),
    }
    ends = ("precision_lowest", "precision_highest")
    ordered = dict(zip(ends, np.sort([estimates[end] for end in ends]).tolist(), strict=True))
    bounds = _bounds(row, rule, seed) if draws and row["positives"] else {}
    return {**cells, **estimates, **ordered, **bounds}


def _rates(row: Mapping[Any, Any], end: str, sensitivity: float, specificity: float) -> dict[str, float]:
    """Recall, precision and F1 of corrected counts; NaN where they are undefined, or the uncorrected ones are."""
    powers = np.array(sensitivity), np.array(specificity)
    relevant, others = row["tp"] + row["fn"], row["fp"] + row["tn"]
    recall = float(rogan_gladen(divide(row["tp"], relevant), *powers))
    caught = relevant * recall
    false = others * float(rogan_gladen(divide(row["fp"], others), *powers)) if others else 0.0
    precision = float(divide(caught, caught + false))
    values = {
        "recall": recall, "precision": precision, "f1": float(divide(2 * precision * recall, precision + recall))
    }  # fmt: skip
    return {f"{name}{end}": np.nan if np.isnan(row[name]) else value for name, value in values.items()}


def _bounds(row: Mapping[Any, Any], rule: Calibration, seed: int) -> dict[str, float | None]:
    estimate = corrected_rate(int(row["tp"]), int(row["tp"] + row["fn"]), rule, seed=seed)
    return {"recall_corrected_low": estimate.low, "recall_corrected_high": estimate.high}


THRESHOLDS: Final = tuple(percent / 100 for percent in range(45, 100, 5))
"""Confidences from which proposals count in `match_thresholds`, from the rule's own on."""
NO_CONFIDENCE: Final = "the confidence of some proposed matches is unknown"
NONE_CONFIRMED: Final = "no match is confirmed by a person"


def match_thresholds(error_pairs: pd.DataFrame, *, missing: Missing = "drop", draws: int = DRAWS) -> pd.DataFrame:
    """Recall of any judge of a judge model, where proposed matches count from a higher confidence on.

    One row per judge_model, split and threshold: n (errors), recall with bounds (`errors.suite_coverage`), of matches
    that people confirmed and of proposals whose confidence reaches the threshold; confirmed (errors) and
    confirmed_recall with bounds: of confirmed matches alone, whatever the threshold. Proposals are dropped, not
    assigned anew: matching again from a higher threshold may give an error another finding, and more hits, never
    fewer. Optional columns of `error_pairs`: match_status and match_confidence (0 to 1), both of caught errors.
    """
    pairs = frames.with_defaults(checked_pairs(error_pairs), {"match_status": "proposed"})
    pairs["confidence"] = frames.numbers(pairs.get("match_confidence", pd.Series(np.nan, pairs.index)), "confidence")
    is_confirmed = (pairs["match_status"] == "confirmed") & pairs["caught"]
    kept = {least: is_confirmed | (pairs["confidence"] >= least) for least in THRESHOLDS}
    rows = _recall_where(pairs, {_CONFIRMED: is_confirmed, **kept}, missing, draws)
    is_of_confirmed = rows["threshold"] == _CONFIRMED
    confirmed = rows[is_of_confirmed].drop(columns=["n", "not_matched", "threshold"])
    confirmed = confirmed.rename(columns={"hits": "confirmed", **{name: f"confirmed_{name}" for name in _RECALL}})
    table = rows[~is_of_confirmed].merge(confirmed, on=["judge_model", "split"])
    unknown = pairs[pairs["caught"] & pairs["confidence"].isna() & ~is_confirmed]
    table = _without(table, unknown)
    return table.astype(threshold_columns())[list(threshold_columns())]


def threshold_columns() -> dict[str, str]:
    """Columns and types of `match_thresholds`."""
    counts = dict.fromkeys(("n", "not_matched", "confirmed"), "int64")
    names = (*_RECALL, *(f"confirmed_{name}" for name in _RECALL))
    keys = {"judge_model": "object", "split": "object", "threshold": "float64"}
    return {**keys, **counts, **dict.fromkeys(names, "float64")}


_RECALL: Final = ("recall", "recall_low", "recall_high")


_CONFIRMED: Final = 2.0
"""The threshold that no proposal reaches."""


def _recall_where(pairs: pd.DataFrame, kept: Mapping[float, pd.Series], missing: Missing, draws: int) -> pd.DataFrame:
    """judge_model, split, threshold, n, not_matched, hits, recall of the suites, of the matches kept from each on."""
    parts = [
        pairs.assign(
            caught=pairs["caught"] & counts, localized=pairs["localized"] & pairs["caught"] & counts, part=str(least)
        )
        for least, counts in kept.items()
    ]
    every = pd.concat(parts, ignore_index=True)
    suites = frames.made_in_parts(
        every.drop(columns="part"), every["part"], lambda own: suite_coverage(own, missing=missing, draws=draws)
    )
    rows = suites[(suites["kind"] == "caught") & (suites["impact"] == "all")]
    rows = rows.assign(threshold=rows["part"].astype("float64")).sort_values("threshold", kind="stable")
    columns = dict(zip(("coverage", "coverage_low", "coverage_high"), _RECALL, strict=True))
    return rows.rename(columns=columns)[["judge_model", "split", "threshold", "n", "not_matched", "hits", *_RECALL]]


def _without(table: pd.DataFrame, unknown: pd.DataFrame) -> pd.DataFrame:
    """The table without what is not known: recall of judge models with an `unknown` pair, of no confirmed match."""
    keys = ["judge_model", "split"]
    is_unknown = pd.MultiIndex.from_frame(table[keys]).isin(pd.MultiIndex.from_frame(unknown[keys]))
    table.loc[is_unknown, list(_RECALL)] = np.nan
    table.loc[table["confirmed"] == 0, [f"confirmed_{name}" for name in _RECALL]] = np.nan
    return table


def why_no_recall(row: Mapping[Any, Any], name: str) -> str:
    """Return why a recall of a row of `match_thresholds` is undefined."""
    if row["n"] == 0:
        return NOT_MATCHED if row["not_matched"] else "no units"
    return NONE_CONFIRMED if name == "confirmed_recall" else NO_CONFIDENCE
