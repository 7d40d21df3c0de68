"""Errors that judges caught and localized: confusion counts, their rates by judge, coverage."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.error_rates import COUNTS, ERROR_METRICS, RATES, rate_bounds, rates
from tracejury.judging.agreement.estimate import Reason, joined_reasons
from tracejury.judging.agreement.frames import IMPACTS, KINDS, Missing
from tracejury.judging.agreement.intervals import DRAWS, Floats, divide, share_bounds
from tracejury.judging.agreement.reasons import Why

LEFT_OUT: Final = ("failed", "not_applicable", "not_matched")
NOT_MATCHED: Final[Reason] = "no matches proposed yet"
"""Why nothing is known of an error and a judge that no matching has covered. Try: tracejury match."""

KEYS: Final = {"judge_model": "object", "dimension": "object", "impact": "object", "split": "object", "kind": "object"}
COUNT_COLUMNS: Final = dict.fromkeys(("n", "positives", *COUNTS, "traces", *LEFT_OUT), "int64")


def checked_pairs(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """The frame with `judge_model`, `split`, `state` filled in and its logic checked.

    One row per (reference error, judge): trace_id, error_id, impact (low, medium, high, or missing: counts under
    `all` only), dimension (the judge's), relevant, caught, localized (booleans). Optional: split (default `all`),
    judge_model (default empty; a model or a baseline), state (scored, failed,
    not_applicable, not_matched: no matching has covered this error and this judgement).
    Raises ValueError for absent columns, duplicate rows, unknown states or impacts, a localized error that is
    not caught, a scored row without caught or localized.
    """
    frames.require(error_pairs, "error_pairs", frames.ERROR_PAIRS)
    pairs = frames.with_defaults(
        error_pairs,
        {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT, "state": "scored", "impact": "unknown"},
    )
    pairs["impact"] = pairs["impact"].str.lower().replace({"med": "medium"})
    for column in ("trace_id", "error_id", "dimension"):
        pairs[column] = pairs[column].astype(str)
    unknown = sorted(set(pairs["impact"].unique()) - {*IMPACTS[:3], "unknown"})
    if unknown:
        raise ValueError(f"error_pairs has the impacts {unknown!r}; expected low, medium, high or missing")
    frames.check_states(pairs, "error_pairs")
    frames.require_unique(pairs, "error_pairs", ["judge_model", "dimension", "trace_id", "error_id"])
    scored = (pairs["state"] == "scored").to_numpy()
    for column in ("relevant", "caught", "localized"):
        true, known = frames.flags(pairs[column], f"error_pairs.{column}")
        needed = np.ones(len(pairs), dtype=bool) if column == "relevant" else scored
        if (needed & ~known).any():
            row = pairs.loc[needed & ~known, ["trace_id", "error_id", "dimension"]].iloc[0].to_dict()
            raise ValueError(f"error_pairs.{column} is missing for {row!r}; give the row a state or a value")
        pairs[column] = true & needed
    loose = (pairs["localized"] & ~pairs["caught"]).to_numpy() & scored
    if loose.any():
        row = pairs.loc[loose, ["trace_id", "error_id", "dimension"]].iloc[0].to_dict()
        raise ValueError(f"error_pairs calls {row!r} localized but not caught; a localized error is caught")
    return pairs


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Confusion counts of one judge model and one split by trace.

    `counts` is (traces, judges, impacts, kinds, 4) over `IMPACTS`, `KINDS` and tp, fp, fn, tn; `failed`,
    `not_applicable` and `not_matched` are (judges, impacts): rows left out; failed ones count as not caught in the
    case of `disagree`.
    """

    traces: tuple[str, ...]
    dimensions: tuple[str, ...]
    counts: NDArray[np.int64]
    failed: NDArray[np.int64]
    not_applicable: NDArray[np.int64]
    not_matched: NDArray[np.int64]


def trace_cells(pairs: pd.DataFrame, missing: Missing = "drop") -> Cells:
    """Confusion counts by trace of checked pairs of one judge model and split.

    `missing="disagree"` keeps the rows of failed judgements: the judge caught nothing there, so a relevant
    error is missed. Not-applicable rows, and those that no matching has covered, are always left out.
    """
    dimensions = frames.in_order(pairs["dimension"], frames.DIMENSION_ORDER)
    trace, names = pd.factorize(pairs["trace_id"].astype(object), sort=True)
    traces = tuple(map(str, names))
    places = trace, frames.codes(pairs["dimension"], dimensions), frames.codes(pairs["impact"], (*IMPACTS, "unknown"))
    shape = (len(traces), len(dimensions), len(IMPACTS), len(KINDS), 4)
    failed = (pairs["state"] == "failed").to_numpy()
    skipped = (pairs["state"] == "not_applicable").to_numpy()
    unknown = (pairs["state"] == "not_matched").to_numpy()
    counted = ~skipped & ~unknown & (~failed | (missing == "disagree"))
    counts = np.zeros(shape, dtype=np.int64)
    for k, kind in enumerate(KINDS):
        truth, predicted = pairs["relevant"].to_numpy()[counted], pairs[kind].to_numpy()[counted]
        at = tuple(place[counted] for place in places)
        counts[:, :, :, k, :] = _kind_counts(truth, predicted, at, (len(traces), len(dimensions)))
    return Cells(
        traces=traces,
        dimensions=dimensions,
        counts=counts,
        failed=_tally(pairs[failed], dimensions),
        not_applicable=_tally(pairs[skipped], dimensions),
        not_matched=_tally(pairs[unknown], dimensions),
    )


def error_table(
    error_pairs: pd.DataFrame,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
) -> pd.DataFrame:
    """The core table of caught and localized: one row per judge_model, dimension, impact, split and kind.

    Columns: judge_model, dimension, impact (low, medium, high, all), split, kind (caught, localized), n, positives,
    tp, fp, fn, tn, traces, failed, not_applicable, not_matched, then precision, recall, f1, f2, accuracy, each
    followed by its `_low` and `_high`. Intervals: `rate_bounds`, by trace (`draws=0`: none). NaN where undefined.
    Of a judge that looks for every kind of error only recall is defined (`says_nothing`).
    Source: Agent GPA Tables 3, 6, 9 to 16.
    """
    parts = [
        _rate_rows(judge_model, split, trace_cells(part, missing), draws)
        for (judge_model, split), part in _groups(error_pairs)
    ]
    rows = [row for part in parts for row in part]
    if not rows:
        return _no_errors()
    return pd.DataFrame(rows, columns=list(error_columns())).astype(error_columns())


def says_nothing(dimensions: Sequence[str], totals: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rates (judges, impacts, kinds, rates) say nothing, of counts (judges, impacts, kinds, 4).

    All but the recall of a judge that looks for every kind of error (`trail` and the like): every reference error is
    its own, so none can be called by mistake. A precision of 1 would say nothing about it, and neither would F1,
    F2 and accuracy. Its false alarms are counted by `finding_table`.
    """
    outside = totals[..., 1] + totals[..., 3]
    general = np.array([dimension not in frames.DIMENSION_ORDER for dimension in dimensions])[:, None] & (
        outside.max(axis=1) == 0
    )
    needs = np.array([metric.needs_negatives for metric in ERROR_METRICS])
    return np.broadcast_to(general[:, None, :, None] & needs, (*totals.shape[:-1], len(RATES)))


def error_estimates(table: pd.DataFrame) -> pd.DataFrame:
    """`error_table` with one row per rate: its value, bounds, own n and the reason when it is undefined.

    Columns: judge_model, dimension, impact, split, kind, metric, value, low, high, n (units behind this rate), tp, fp,
    fn, tn, failed, not_applicable, not_matched, reason.
    """
    carried = [*KEYS, *COUNTS, *LEFT_OUT]
    counts = table[list(COUNTS)].to_numpy(dtype=np.int64)
    parts = []
    for metric in ERROR_METRICS:
        rate = metric.name
        part = table[carried].assign(metric=rate, value=table[rate])
        part = part.assign(low=table[f"{rate}_low"], high=table[f"{rate}_high"])
        part["n"] = metric.n(*counts.T)
        part["reason"] = pd.Series(metric.reasons(counts), part.index, dtype=object)
        part.loc[part["value"].isna() & part["reason"].isna(), "reason"] = "no negatives"  # see `says_nothing`
        part.loc[is_unmatched(part), "reason"] = NOT_MATCHED
        parts.append(part)
    order = [*KEYS, "metric", "value", "low", "high", "n", *COUNTS, *LEFT_OUT, "reason"]
    return pd.concat(parts, ignore_index=True)[order]


def is_unmatched(table: pd.DataFrame) -> pd.Series:
    """Rows of which nothing is known since matches were proposed for none of their errors."""
    return (table[list(COUNTS)].sum(axis=1) == 0) & (table["not_matched"] > 0)


def error_columns() -> dict[str, str]:
    """Columns and types of `error_table`."""
    bounds = {f"{rate}{end}": "float64" for rate in RATES for end in ("", "_low", "_high")}
    return {**KEYS, **COUNT_COLUMNS, **bounds}


def coverage_of(table: pd.DataFrame) -> pd.DataFrame:
    """Coverage of each judge by impact, from an `error_table`: the recall of Tables 9 and 10, its interval by trace.

    Columns: judge_model, dimension, impact, split, kind, hits (tp), n (positives), failed, not_applicable, not_matched,
    coverage, coverage_low, coverage_high, printed (`124/128 (96.88%)`). NaN without positives.
    """
    rates = {f"recall{end}": f"coverage{end}" for end in ("", "_low", "_high")}
    rates_table = table[[*KEYS, "tp", "positives", *LEFT_OUT, *rates]]
    return _printed(rates_table.rename(columns={"tp": "hits", "positives": "n"} | rates))


def suite_coverage(
    error_pairs: pd.DataFrame,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
) -> pd.DataFrame:
    """Share of all reference errors that any judge of a judge model caught or localized (Tables 2 and 5).

    One row per judge model, impact, split and kind: hits, n, failed, not_applicable, not_matched, coverage with its
    interval (`share_bounds`, since the errors of a trace depend on each other), printed. An error counts as
    long as one judge of the judge model answered (`missing="drop"`) or always (`disagree`), and each that answered was
    matched; `failed` counts the errors for which some judge failed and none caught it.
    A baseline is a judge model with one judge, so it stands in the same table. Source: Agent GPA Tables 2 and 5.
    """
    rows: list[dict[str, object]] = []
    for (judge_model, split), part in _groups(error_pairs):
        errors = _suite_errors(part, missing)
        bounds = _suite_bounds(errors, draws)
        for i, impact in enumerate(IMPACTS):
            at = errors if impact == "all" else errors[errors["impact"] == impact]
            counted = at[at["counted"]]
            for k, kind in enumerate(KINDS):
                lost = at["failed"] & ~at[kind]
                rows.append(
                    {
                        "judge_model": judge_model,
                        "impact": impact,
                        "split": split,
                        "kind": kind,
                        "hits": int(counted[kind].sum()),
                        "n": len(counted),
                        "failed": int(lost.sum()),
                        "not_applicable": int((~at["applicable"]).sum()),
                        "not_matched": int(at["not_matched"].sum()),
                        "coverage_low": bounds[0, i, k],
                        "coverage_high": bounds[1, i, k],
                    }
                )
    keys = {name: kind for name, kind in KEYS.items() if name != "dimension"}
    counts = dict.fromkeys(("hits", "n", *LEFT_OUT), "int64")
    columns = {**keys, **counts, "coverage": "float64", "coverage_low": "float64", "coverage_high": "float64"}
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return _printed(table.assign(coverage=divide(table["hits"].to_numpy(), table["n"].to_numpy())))


def why_no_coverage(reason: Reason) -> Why:
    """Why a coverage of `suite_coverage` or `coverage_of` is undefined: this, unless no matches were proposed."""
    return lambda row, name: NOT_MATCHED if row["not_matched"] else reason


def _suite_bounds(errors: pd.DataFrame, draws: int) -> Floats:
    """Bounds (2, impacts, kinds) of the coverage."""
    counted = errors[errors["counted"]]
    trace, names = pd.factorize(counted["trace_id"])
    sums = np.zeros((len(names), len(IMPACTS), len(KINDS), 2))
    for i, impact in enumerate(IMPACTS):
        at = np.ones(len(counted), dtype=bool) if impact == "all" else (counted["impact"] == impact).to_numpy()
        for k, kind in enumerate(KINDS):
            np.add.at(sums[:, i, k, 0], trace[at], counted[kind].to_numpy(dtype=np.float64)[at])
            np.add.at(sums[:, i, k, 1], trace[at], 1.0)
    if draws == 0 or not len(names):
        return np.full((2, len(IMPACTS), len(KINDS)), np.nan)
    return np.stack(share_bounds(sums[..., 0], sums[..., 1]))


def error_map(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """Count the errors that each dimension's judge should catch (Table 1), whatever the judge model.

    Columns: dimension, impact, split, mapped, errors, share. An error may be mapped to several dimensions or to none.
    """
    pairs = checked_pairs(error_pairs)
    rows: list[dict[str, object]] = []
    for split in frames.in_order(pairs["split"], ("dev", "test")):
        part = pairs[pairs["split"] == split]
        for dimension in frames.in_order(part["dimension"], frames.DIMENSION_ORDER):
            rows_of_dimension = part[part["dimension"] == dimension].drop_duplicates(["trace_id", "error_id"])
            for impact in IMPACTS:
                at = rows_of_dimension if impact == "all" else rows_of_dimension[rows_of_dimension["impact"] == impact]
                rows.append(
                    {
                        "dimension": dimension,
                        "impact": impact,
                        "split": split,
                        "mapped": int(at["relevant"].sum()),
                        "errors": len(at),
                    }
                )
    columns = {"dimension": "object", "impact": "object", "split": "object", "mapped": "int64", "errors": "int64"}
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return table.assign(share=divide(table["mapped"].to_numpy(), table["errors"].to_numpy()))


def coverage_grid(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """Errors by judges (Figures 3 and 4): 0 missed, 1 caught, 2 localized, missing where not judged.

    Columns: judge_model, split, trace_id, error_id, impact, then one Int8 column per judge.
    """
    pairs = checked_pairs(error_pairs)
    level = pairs["caught"].astype("Int8") + pairs["localized"].astype("Int8")
    pairs = pairs.assign(level=level.where(pairs["state"] == "scored"))
    keys = ["judge_model", "split", "trace_id", "error_id", "impact"]
    dimensions = frames.in_order(pairs["dimension"], frames.DIMENSION_ORDER)
    if pairs.empty:
        return frames.empty(dict.fromkeys(keys, "object"))
    grid = pairs.set_index([*keys, "dimension"])["level"].unstack("dimension")
    return grid[list(dimensions)].astype("Int8").reset_index().rename_axis(columns=None)


def reasoned_grid(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """`coverage_grid` of these pairs with `reason` last: which judges say nothing of an error, and why."""
    grid = coverage_grid(error_pairs)
    if grid.empty:
        return grid
    keys = ["judge_model", "split", "trace_id", "error_id", "impact"]
    pairs = checked_pairs(error_pairs)
    states = (
        pairs.set_index([*keys, "dimension"])["state"]
        .unstack("dimension")
        .reindex(pd.MultiIndex.from_frame(grid[keys]))
    )
    unsaid = (
        states.astype(object)
        .where(states.notna(), "not asked")
        .replace({"not_applicable": "not applicable", "not_matched": NOT_MATCHED})
    )
    rows = [
        joined_reasons({str(dimension): str(state) for dimension, state in row.items() if state != "scored"})
        for row in unsaid[[name for name in grid.columns if name not in keys]].to_dict("records")
    ]
    return grid.assign(reason=pd.Series(rows, index=grid.index, dtype="object"))


def dimension_grid(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """Errors caught, by the error's dimension and the judge's dimension: with counts.

    One row per judge_model, split, error_dimension and dimension: errors (mapped to the dimension and judged), caught,
    localized, share (caught / errors). The diagonal is each judge's recall.
    """
    parts = [_dimension_counts(part, judge_model, split) for (judge_model, split), part in _groups(error_pairs)]
    columns = dict.fromkeys(("judge_model", "split", "error_dimension", "dimension"), "object")
    columns |= dict.fromkeys(("errors", "caught", "localized"), "int64")
    table = pd.concat(parts, ignore_index=True) if parts else frames.empty(columns)
    table = table[list(columns)].astype(columns)
    return table.assign(share=divide(table["caught"].to_numpy(), table["errors"].to_numpy()))


def all_splits(grid: pd.DataFrame) -> pd.DataFrame:
    """A `dimension_grid` without its splits: one row per judge model, error_dimension and dimension, over the traces
    of all.
    """
    sums = grid.groupby(["judge_model", "error_dimension", "dimension"], sort=False)[
        ["errors", "caught", "localized"]
    ].sum()
    table = sums.reset_index()
    return table.assign(share=divide(table["caught"].to_numpy(), table["errors"].to_numpy()))


def _dimension_counts(part: pd.DataFrame, judge_model: str, split: str) -> pd.DataFrame:
    judged = part.loc[part["state"] == "scored", ["trace_id", "error_id", "dimension", "caught", "localized"]]
    relevant = part.loc[part["relevant"], ["trace_id", "error_id", "dimension"]]
    joined = relevant.rename(columns={"dimension": "error_dimension"}).merge(judged, on=["trace_id", "error_id"])
    joined = joined.astype({"caught": "int64", "localized": "int64"}).assign(errors=1)
    sums = joined.groupby(["error_dimension", "dimension"])[["errors", "caught", "localized"]].sum()
    order = frames.in_order(part["dimension"], frames.DIMENSION_ORDER)
    every = pd.MultiIndex.from_product([order, order], names=["error_dimension", "dimension"])
    return sums.reindex(every, fill_value=0).reset_index().assign(judge_model=judge_model, split=split)


def _groups(error_pairs: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    pairs = checked_pairs(error_pairs)
    order = [
        (judge_model, split)
        for judge_model in frames.in_order(pairs["judge_model"], ())
        for split in frames.in_order(pairs["split"], ("dev", "test"))
    ]
    places = pairs.groupby(["judge_model", "split"], sort=False).indices
    return [(key, pairs.iloc[places[key]]) for key in order if key in places]


def _kind_counts(
    truth: NDArray[np.bool_], predicted: NDArray[np.bool_], at: tuple[NDArray[np.int64], ...], size: tuple[int, int]
) -> NDArray[np.int64]:
    """Confusion counts (traces, judges, impacts, 4) of rows that stand `at` a trace, a judge and an impact."""
    cell = np.where(truth, np.where(predicted, 0, 2), np.where(predicted, 1, 3))
    shape = (*size, len(IMPACTS) + 1, 4)
    counted = np.bincount(np.ravel_multi_index((*at, cell), shape), minlength=int(np.prod(shape))).reshape(shape)
    every = counted.sum(axis=2, keepdims=True)
    return np.concatenate([counted[:, :, :3], every], axis=2)


def _tally(pairs: pd.DataFrame, dimensions: tuple[str, ...]) -> NDArray[np.int64]:
    """Rows by judge and impact, `all` last."""
    tally = np.zeros((len(dimensions), len(IMPACTS)), dtype=np.int64)
    dimension = frames.codes(pairs["dimension"], dimensions)
    for i, impact in enumerate(IMPACTS):
        at = np.ones(len(pairs), dtype=bool) if impact == "all" else (pairs["impact"] == impact).to_numpy()
        tally[:, i] = np.bincount(dimension[at], minlength=len(dimensions))
    return tally


def _rate_rows(judge_model: str, split: str, cells: Cells, draws: int) -> list[dict[str, object]]:
    totals = cells.counts.sum(axis=0)
    values = rates(totals)
    low = np.full(values.shape, np.nan)
    high = np.full(values.shape, np.nan)
    if draws > 0:
        low, high = rate_bounds(cells.counts)
    blank = says_nothing(cells.dimensions, totals)
    values, low, high = (np.where(blank, np.nan, each) for each in (values, low, high))
    seen = (cells.counts.sum(axis=(3, 4)) > 0).sum(axis=0)
    rows: list[dict[str, object]] = []
    for k, kind in enumerate(KINDS):
        for j, dimension in enumerate(cells.dimensions):
            for i, impact in enumerate(IMPACTS):
                tp, fp, fn, tn = (int(count) for count in totals[j, i, k])
                row: dict[str, object] = {
                    "judge_model": judge_model,
                    "dimension": dimension,
                    "impact": impact,
                    "split": split,
                    "kind": kind,
                    "n": tp + fp + fn + tn,
                    "positives": tp + fn,
                    "tp": tp,
                    "fp": fp,
                    "fn": fn,
                    "tn": tn,
                    "traces": int(seen[j, i]),
                    "failed": int(cells.failed[j, i]),
                    "not_applicable": int(cells.not_applicable[j, i]),
                    "not_matched": int(cells.not_matched[j, i]),
                }
                for r, rate in enumerate(RATES):
                    row[rate] = values[j, i, k, r]
                    row[f"{rate}_low"] = low[j, i, k, r]
                    row[f"{rate}_high"] = high[j, i, k, r]
                rows.append(row)
    return rows


def _no_errors() -> pd.DataFrame:
    return frames.empty(error_columns())


def _printed(table: pd.DataFrame) -> pd.DataFrame:
    """Add the share as the paper prints it, last."""
    from tracejury.judging.agreement.rounding import share_text

    printed = [share_text(int(h), int(m)) for h, m in zip(table["hits"], table["n"], strict=True)]
    return table.assign(printed=pd.Series(printed, index=table.index, dtype="object"))


def _suite_errors(part: pd.DataFrame, missing: Missing) -> pd.DataFrame:
    """One row per error: whether any judge caught or localized it, failed on it, and whether it counts."""
    state = part["state"]
    marks = pd.DataFrame(
        {
            "trace_id": part["trace_id"],
            "error_id": part["error_id"],
            "impact": part["impact"],
            "caught": part["caught"] & (state == "scored"),
            "localized": part["localized"] & (state == "scored"),
            "scored": state == "scored",
            "failed": state == "failed",
            "not_matched": state == "not_matched",
        }
    )
    errors = marks.groupby(["trace_id", "error_id"], as_index=False).agg(
        {
            "impact": "first",
            **dict.fromkeys(("caught", "localized", "scored", "failed", "not_matched"), "any"),
        }
    )
    applicable = errors["scored"] | errors["failed"] | errors["not_matched"]
    counted = errors["scored"] | (errors["failed"] & (missing == "disagree"))
    counted &= ~errors["not_matched"]  # an error that a judge perhaps caught is not missed by all
    return errors.assign(applicable=applicable, counted=counted)
