"""TRAIL's official scores, reimplemented, beside the pair-level estimates that flooding cannot win.

The official three are recall measures: nothing punishes a prediction too many, so naming every span with every
category scores 0.973 on GAIA. They are shown for comparison with published numbers, and labelled so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.intervals import DRAWS, Bootstrap, Floats, cluster_bootstrap, divide, share_bounds

CATEGORIES: Final = (
    "Language-only",
    "Tool-related",
    "Poor Information Retrieval",
    "Incorrect Memory Usage",
    "Tool Output Misinterpretation",
    "Incorrect Problem Identification",
    "Tool Selection Errors",
    "Formatting Errors",
    "Instruction Non-compliance",
    "Tool Definition Issues",
    "Environment Setup Errors",
    "Rate Limiting",
    "Authentication Errors",
    "Service Errors",
    "Resource Not Found",
    "Resource Exhaustion",
    "Timeout Issues",
    "Context Handling Failures",
    "Resource Abuse",
    "Goal Deviation",
    "Task Orchestration",
)
"""The 21 labels of the official scorer; its prompt knows all but `Incorrect Memory Usage`."""

OFFICIAL: Final = ("weighted_f1", "location_accuracy", "joint_accuracy")
PAIR: Final = ("pair_precision", "pair_recall", "pair_f1", "predictions_per_error")
AS_EMPTY: Final = "unreadable answers as empty (official)"
LEFT_OUT: Final = "unreadable answers left out"
FAILED_ANSWERS: Final = (AS_EMPTY, LEFT_OUT)
"""What becomes of an answer that is missing or cannot be read; the published scorer counts it as empty."""
MEASURES: Final = (*OFFICIAL, *PAIR)


def normal_category(written: str) -> str:
    """A category as the official scorer reads it: equal but for case and spaces, else the first label that contains
    it, else itself in lower case (and then it matches nothing). An empty one stays empty and counts as no category.

    Its faults are kept, for equality with published numbers: `tool` becomes `Tool-related`, a blank becomes
    `Language-only`, and `Task Orchestration Errors` matches no label.
    """
    if written == "":
        return ""
    lower = written.lower()
    squeezed = lower.replace(" ", "")
    for label in CATEGORIES:
        if lower == label.lower() or squeezed == label.lower().replace(" ", ""):
            return label
    for label in CATEGORIES:
        if lower in label.lower():
            return label
    return lower


@dataclass(frozen=True, kw_only=True)
class TrailTraces:
    """The reference and the predictions of the traces that count, one row of additive sums a trace.

    `reference` and `predicted` (traces, 21): category present. `location` and `joint` (traces,): official recalls.
    `pairs` (traces, 3): matching, predicted and reference (location, category) pairs; `rows` (traces, 2): predictions
    and reference errors as written. `failed` counts the traces whose prediction could not be read.
    """

    reference: NDArray[np.int64]
    predicted: NDArray[np.int64]
    location: Floats
    joint: Floats
    pairs: NDArray[np.int64]
    rows: NDArray[np.int64]
    failed: int


def trail_traces(
    reference: pd.DataFrame, predicted: pd.DataFrame, traces: pd.DataFrame, *, failures_as_zeros: bool = False
) -> TrailTraces:
    """Arrange annotations for scoring.

    `reference` and `predicted`: trace_id, category, location, one row per error. `traces`: trace_id, state (scored or
    failed) of every trace with a readable reference, errors or not. Failed traces are left out, or count as empty
    predictions with `failures_as_zeros`, as in the official scorer. Raises ValueError for rows of unknown traces.
    """
    frames.require(traces, "traces", ("trace_id", "state"))
    known = traces.assign(trace_id=traces["trace_id"].astype(str))
    frames.require_unique(known, "traces", ["trace_id"])
    frames.check_states(known, "traces")
    failed = known["state"] == "failed"
    counted = tuple(known["trace_id"] if failures_as_zeros else known.loc[~failed, "trace_id"])
    sides = [
        _labels(side, name, set(known["trace_id"]))
        for side, name in ((reference, "reference"), (predicted, "predicted"))
    ]
    places = [side.groupby("trace_id").indices for side in sides]
    by_trace = [
        {trace: side.iloc[at] for trace, at in place.items()} for side, place in zip(sides, places, strict=True)
    ]
    if failures_as_zeros:
        for trace in known.loc[failed, "trace_id"]:
            by_trace[1].pop(trace, None)
    rows = [_trace_sums(by_trace[0].get(trace), by_trace[1].get(trace)) for trace in counted]
    return TrailTraces(
        reference=np.array([row[0] for row in rows], dtype=np.int64).reshape(len(rows), len(CATEGORIES)),
        predicted=np.array([row[1] for row in rows], dtype=np.int64).reshape(len(rows), len(CATEGORIES)),
        location=np.array([row[2] for row in rows], dtype=np.float64),
        joint=np.array([row[3] for row in rows], dtype=np.float64),
        pairs=np.array([row[4] for row in rows], dtype=np.int64).reshape(len(rows), 3),
        rows=np.array([row[5] for row in rows], dtype=np.int64).reshape(len(rows), 2),
        failed=int(failed.sum()),
    )


def weighted_f1(reference: NDArray[np.generic], predicted: NDArray[np.generic]) -> float:
    """F1 of each category over traces, averaged by how many reference traces have it.

    Source: TRAIL's official scorer (scikit-learn's `f1_score(average="weighted", zero_division=0)` on 21 bits a
    trace). Shapes: (traces, 21). Locations and counts never enter. Edge: 0 without any reference category, as there.
    """
    return float(_weighted_f1(*_category_sums(reference, predicted)))


def location_accuracy(data: TrailTraces) -> float:
    """Mean over traces of the share of reference locations that were predicted: a recall.

    Source: TRAIL's official scorer. Edge: a trace without reference errors scores 0 for everyone, so the ceiling is
    below 1; NaN without traces.
    """
    return float(divide(data.location.sum(), len(data.location)))


def joint_accuracy(data: TrailTraces) -> float:
    """Mean over traces of the share of reference (location, category) pairs that were predicted: a recall.

    Source: TRAIL's official scorer. Edge: as for the location accuracy.
    """
    return float(divide(data.joint.sum(), len(data.joint)))


def pair_scores(data: TrailTraces) -> tuple[float, float, float]:
    """Precision, recall and F1 over all distinct (location, category) pairs of all traces.

    Source: METRICS.md (beyond the official scorer). Edge: NaN where undefined, as in `errors`.
    """
    rates = _pair_rates(data.pairs.sum(axis=0).astype(np.float64))
    return float(rates[0]), float(rates[1]), float(rates[2])


def predictions_per_error(data: TrailTraces) -> float:
    """Predictions per reference error, as written: 1 is even, 50 is flooding.

    Source: METRICS.md. Edge: NaN without reference errors.
    """
    return float(divide(*data.rows.sum(axis=0)))


def trail_columns() -> dict[str, str]:
    """Columns and types of `trail_table`."""
    estimates = [f"{name}{end}" for name in MEASURES for end in ("", "_low", "_high")]
    counts = dict.fromkeys(("traces", "failed", "reference_errors", "predictions"), "int64")
    return {"judge_model": "object", "failures": "object", **counts, **dict.fromkeys(estimates, "float64")}


def trail_table(
    reference: pd.DataFrame,
    predicted: pd.DataFrame,
    traces: pd.DataFrame,
    *,
    draws: int = DRAWS,
) -> pd.DataFrame:
    """TRAIL's official measures and ours of each judge model, unreadable answers as empty and left out.

    As `trail_traces`, with a column judge_model in `predicted` and `traces`. Two rows per judge model; `failures` says
    which of `FAILED_ANSWERS` it is, the official one first. Columns: traces, failed, reference_errors, predictions,
    then weighted_f1, location_accuracy, joint_accuracy (official; recall measures), pair_precision, pair_recall,
    pair_f1, predictions_per_error, each with bounds by trace: of the weighted F1 and of predictions_per_error
    Student's t on the jackknife, of the others `share_bounds` (`draws=0`: none).
    """
    predictions = frames.with_defaults(predicted, {"judge_model": frames.NO_JUDGE_MODEL})
    states = frames.with_defaults(traces, {"judge_model": frames.NO_JUDGE_MODEL})
    rows = []
    for judge_model in frames.in_order(states["judge_model"], ()):
        own_predictions, own = (
            predictions[predictions["judge_model"] == judge_model],
            states[states["judge_model"] == judge_model],
        )
        used = reference[reference["trace_id"].astype(str).isin(set(own["trace_id"].astype(str)))]
        for name in FAILED_ANSWERS:
            data = trail_traces(used, own_predictions, own, failures_as_zeros=name == AS_EMPTY)
            rows.append({"judge_model": judge_model, "failures": name, **measures(data, draws)})
    columns = trail_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why a measure of `trail_table` is."""
    if row["traces"] == 0:
        return "no units"
    if name == "pair_precision" or (name == "pair_f1" and pd.isna(row["pair_precision"])):
        return "no positive predicted"
    if name == "pair_f1" and row["pair_recall"] == 0:
        return "precision and recall are both 0"
    return "no positives"


def trail_correlations(trail_scores: pd.DataFrame) -> pd.DataFrame:
    """Pearson's r of TRAIL's own scores (reliability, security, ... 1 to 5) of each judge model.

    `trail_scores`: trace_id, scale, reference_score, judge_score (missing: left out), optional judge_model. Source:
    TRAIL's official scorer, which casts predictions to whole numbers and correlates missing ones as -1; here they are
    read as written and left out. One row per judge model and scale: n, pearson, reason. A constant side (the
    reference's `security` is always 5) is undefined.
    """
    frames.require(trail_scores, "trail_scores", ("trace_id", "scale", "reference_score", "judge_score"))
    long = frames.with_defaults(trail_scores, {"judge_model": frames.NO_JUDGE_MODEL})
    frames.require_unique(long, "trail_scores", ["judge_model", "scale", "trace_id"])
    long["reference_score"] = frames.numbers(long["reference_score"], "trail_scores.reference_score")
    long["judge_score"] = frames.numbers(long["judge_score"], "trail_scores.judge_score")
    known = long[long["reference_score"].notna() & long["judge_score"].notna()]
    rows: list[dict[str, object]] = []
    for judge_model in frames.in_order(long["judge_model"], ()):
        for scale in frames.in_order(long.loc[long["judge_model"] == judge_model, "scale"], ()):
            selected = known[(known["judge_model"] == judge_model) & (known["scale"] == scale)]
            reference, model = selected["reference_score"].to_numpy(), selected["judge_score"].to_numpy()
            varied = len(set(reference)) > 1 and len(set(model)) > 1
            value = float(np.corrcoef(reference, model)[0, 1]) if varied else None
            reason = None if varied else ("no variation" if len(selected) else "no units")
            rows.append(
                {"judge_model": judge_model, "scale": scale, "n": len(selected), "pearson": value, "reason": reason}
            )
    columns = {"judge_model": "object", "scale": "object", "n": "int64", "pearson": "float64", "reason": "object"}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def _labels(side: pd.DataFrame, name: str, traces: set[str]) -> pd.DataFrame:
    frames.require(side, name, ("trace_id", "category", "location"))
    rows = pd.DataFrame(
        {
            "trace_id": side["trace_id"].astype(str),
            "category": side["category"].astype(object).where(side["category"].notna(), "").astype(str),
            "location": side["location"].astype(object).where(side["location"].notna(), "").astype(str),
        }
    )
    unknown = sorted(set(rows["trace_id"]) - traces)
    if unknown:
        raise ValueError(
            f"{name} names traces that `traces` lacks ({len(unknown)} in all), the first is {unknown[0]!r}"
        )
    spelled = {written: normal_category(written) for written in set(rows["category"])}
    return rows.assign(category=rows["category"].map(spelled).astype(object))


def _trace_sums(
    reference: pd.DataFrame | None, predicted: pd.DataFrame | None
) -> tuple[list[int], list[int], float, float, list[int], list[int]]:
    target, prediction = _Named.of(reference), _Named.of(predicted)
    same = len(target.pairs & prediction.pairs)
    return (
        [int(label in target.categories) for label in CATEGORIES],
        [int(label in prediction.categories) for label in CATEGORIES],
        len(target.locations & prediction.locations) / max(len(target.locations), 1),
        same / max(len(target.pairs), 1),
        [same, len(prediction.pairs), len(target.pairs)],
        [prediction.rows, target.rows],
    )


@dataclass(frozen=True, kw_only=True)
class _Named:
    """What one side names in one trace, as sets."""

    categories: frozenset[str]
    locations: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    rows: int

    @classmethod
    def of(cls, part: pd.DataFrame | None) -> "_Named":
        if part is None:
            return cls(categories=frozenset(), locations=frozenset(), pairs=frozenset(), rows=0)
        return cls(
            categories=frozenset(part["category"]) - {""},
            locations=frozenset(part["location"]) - {""},
            pairs=frozenset((at, what) for at, what in zip(part["location"], part["category"], strict=True) if what),
            rows=len(part),
        )


def _category_sums(reference: NDArray[np.generic], predicted: NDArray[np.generic]) -> tuple[Floats, Floats, Floats]:
    g, p = np.asarray(reference, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    return (g * p).sum(axis=0), p.sum(axis=0), g.sum(axis=0)


def _weighted_f1(hits: Floats, predicted_counts: Floats, reference_counts: Floats) -> Floats:
    """Sums by category (..., 21) to the weighted F1 (...), with scikit-learn's zeros."""
    each = np.nan_to_num(divide(2 * hits, predicted_counts + reference_counts))
    return np.nan_to_num(divide((each * reference_counts).sum(axis=-1), reference_counts.sum(axis=-1)))


def _pair_rates(sums: Floats) -> Floats:
    """Matching, predicted and reference pairs (..., 3) to precision, recall, F1 (..., 3)."""
    hits, predicted_pairs, reference_pairs = sums[..., 0], sums[..., 1], sums[..., 2]
    both = np.where(hits > 0, predicted_pairs + reference_pairs, 0.0)
    return np.stack([divide(hits, predicted_pairs), divide(hits, reference_pairs), divide(2 * hits, both)], axis=-1)


def measures(data: TrailTraces, draws: int) -> dict[str, float | int]:
    """Compute `MEASURES` of these traces with bounds (`draws=0`: none), and count traces, failures and errors."""
    size, traces = len(CATEGORIES), len(data.location)
    sums = np.concatenate(
        [
            data.reference * data.predicted,
            data.predicted,
            data.reference,
            np.stack([np.ones(traces), data.location, data.joint], axis=1),
            data.pairs,
            data.rows,
        ],
        axis=1,
    )

    def statistic(cells: Floats) -> Floats:
        hits, predicted_counts, reference_counts, rest = np.split(cells, [size, 2 * size, 3 * size], axis=-1)
        n = rest[..., 0]
        return np.stack(
            [
                np.where(n > 0, _weighted_f1(hits, predicted_counts, reference_counts), np.nan),
                divide(rest[..., 1], n),
                divide(rest[..., 2], n),
                *np.moveaxis(_pair_rates(rest[..., 3:6]), -1, 0),
                divide(rest[..., 6], rest[..., 7]),
            ],
            axis=-1,
        )

    boot = cluster_bootstrap(sums, statistic, draws=0)
    low, high = _bounds(boot, data) if draws > 0 and traces else (np.full(len(MEASURES), np.nan),) * 2
    row: dict[str, float | int] = {
        "traces": traces,
        "failed": data.failed,
        "reference_errors": int(data.rows[:, 1].sum()),
        "predictions": int(data.rows[:, 0].sum()),
    }
    for m, name in enumerate(MEASURES):
        row |= {name: boot.estimate[m], f"{name}_low": low[m], f"{name}_high": high[m]}
    return row


JOINT_LEAST: Final = 100
"""Of fewer traces the interval of the joint accuracy is withheld: of rare hits none that was tried holds."""
WITHHELD: Final = f"fewer than {JOINT_LEAST} traces"


def _bounds(boot: Bootstrap, data: TrailTraces) -> tuple[Floats, Floats]:
    low, high = boot.jackknife_t()
    matched, predicted, reference = np.moveaxis(np.asarray(data.pairs, dtype=np.float64), -1, 0)
    one = np.ones(len(data.location))
    shares = {
        "location_accuracy": share_bounds(data.location, one, capped=False),
        "pair_precision": share_bounds(matched, predicted),
        "pair_recall": share_bounds(matched, reference),
        "pair_f1": share_bounds(2 * matched, predicted + reference, capped=False),
    }
    for m, name in enumerate(MEASURES):
        low[m], high[m] = shares.get(name, (np.maximum(low[m], 0.0), high[m]))
        high[m] = high[m] if name == "predictions_per_error" else np.minimum(high[m], 1.0)
    joint = MEASURES.index("joint_accuracy")
    low[joint], high[joint] = share_bounds(data.joint, one, capped=False) if len(one) >= JOINT_LEAST else (np.nan,) * 2
    undefined = np.isnan(boot.estimate)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)
