"""The rank of each judge model by what it caught, with confidence sets that hold for all judge models at once."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import compare, errors, frames, reasons
from tracejury.judging.agreement.estimate import joined_reasons
from tracejury.judging.agreement.intervals import DRAWS, LEVEL, SEED, Floats, cluster_bootstrap, divide, share_bounds

NO_RANK: Final = "fewer than two judge models answered and were matched with the same errors"


def rank_table(
    error_pairs: pd.DataFrame, findings: pd.DataFrame | None = None, *, draws: int = DRAWS, seed: int = SEED
) -> pd.DataFrame:
    """Rank judge models by the share of errors that any of their judges caught, of the errors that all answered.

    One row per judge_model and split, the best first: recall with bounds by trace, n (errors answered by all), traces,
    rank (1 is best, equal shares have one rank), rank_low and rank_high: `rank_bounds`. An error that some judge failed
    on, or was not matched with, counts for nobody; not_matched are the model's pairs that no matching has compared.
    Beside it what precision is before anybody reviewed: matched_share, the share of a model's `findings` that match an
    error of the reference, with bounds by trace. `reason` says which are empty and why (`why_undefined`). Takes
    `error_pairs` and `findings`.
    """
    pairs = errors.checked_pairs(error_pairs)
    known = compare.as_one_judge(pairs)
    rows = [
        row
        for split in frames.in_order(pairs["split"], ("dev", "test"))
        for row in _split_rows(
            known[known["split"] == split],
            frames.in_order(pairs.loc[pairs["split"] == split, "judge_model"], ()),
            split,
            draws,
            seed,
        )
    ]
    shares = _matched_shares(frames.empty(dict.fromkeys(frames.FINDINGS, "object")) if findings is None else findings)
    blank = dict(zip(_SHARE, (0, np.nan, np.nan, np.nan), strict=True))
    waiting = pairs[pairs["state"] == "not_matched"].groupby(["judge_model", "split"]).size().to_dict()
    keys = [(str(row["judge_model"]), str(row["split"])) for row in rows]
    full = [
        {**row, "is_bounded": draws > 0, "not_matched": waiting.get(key, 0), **shares.get(key, blank)}
        for row, key in zip(rows, keys, strict=True)
    ]
    table = pd.DataFrame([{**row, "reason": _why(row)} for row in full], columns=list(rank_columns()))
    return table.astype(rank_columns())


_SHARE: Final = ("findings", "matched_share", "matched_share_low", "matched_share_high")


def rank_columns() -> dict[str, str]:
    """Columns and types of `rank_table`."""
    names = ("recall", "recall_low", "recall_high", "rank", "rank_low", "rank_high")
    estimates = dict.fromkeys(names, "float64")
    shares = {"findings": "int64", **dict.fromkeys(_SHARE[1:], "float64")}
    counts = dict.fromkeys(("n", "traces", "not_matched"), "int64")
    return {"judge_model": "object", "split": "object", **counts, **estimates, **shares, "reason": "object"}


def _why(row: Mapping[str, Any]) -> str | None:
    empty = {name: why_undefined(row, name) for name in ("recall", "rank") if pd.isna(row[name])}
    if not pd.isna(row["recall"]) and pd.isna(row["recall_low"]) and row["is_bounded"]:
        empty[f"recall {reasons.INTERVAL}"] = reasons.FLAT
    if pd.isna(row["matched_share"]):
        empty["matched_share"] = why_undefined(row, "matched_share")
    return joined_reasons(empty)


def why_undefined(row: Mapping[Any, Any], name: str) -> str:
    """Return why recall, rank or matched_share of a row of `rank_table` is undefined."""
    if row["not_matched"] and row["n"] == 0:
        return errors.NOT_MATCHED
    return "no findings" if name == "matched_share" else NO_RANK


def _matched_shares(findings: pd.DataFrame) -> dict[tuple[str, str], dict[str, float]]:
    """Of each judge model and split the share of findings that match, of those that were compared with the errors."""
    defaults = {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT, "state": "scored"}
    rows = frames.with_defaults(findings, defaults)
    rows = _compared(rows)
    rows = rows.assign(matched=frames.flags(rows["matched"], "findings.matched")[0])
    return {
        (str(judge_model), str(split)): _matched_share(part)
        for (judge_model, split), part in rows.groupby(["judge_model", "split"])
    }


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """The findings without those that were compared with no error yet.

    Where all that a model has on traces with errors are such, its findings on traces without errors are left out too:
    nothing was compared, and a share of 0 would say that it was.
    """
    waits = rows["state"] == "not_matched"
    matched = pd.Series(frames.flags(rows["matched"], "findings.matched")[0], index=rows.index)
    keys = [rows["judge_model"], rows["split"]]
    some_wait, some_match = (flag.groupby(keys).transform("any") for flag in (waits, matched))
    return rows[~waits & ~(some_wait & ~some_match)]


def _matched_share(part: pd.DataFrame) -> dict[str, float]:
    by_trace = part["matched"].groupby(part["trace_id"].astype(object)).agg(["sum", "size"]).to_numpy(dtype=np.float64)
    low, high = share_bounds(by_trace[:, 0], by_trace[:, 1])
    share = float(by_trace[:, 0].sum() / by_trace[:, 1].sum())
    return dict(zip(_SHARE, (len(part), share, float(low), float(high)), strict=True))


def rank_bounds(
    hits: NDArray[np.generic], units: NDArray[np.generic], *, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Least and greatest rank of each judge, all holding at once with 95 % confidence; (J,), (J,).

    `hits` (traces, J) of the `units` (traces,) that each caught. A judge stands below those whose share is greater by
    an interval that leaves out 0, and above those whose share is less. The intervals of all differences hold at once:
    they reach as far as the 95th percentile of the greatest |d* - d| / se* of a resample of traces.
    Source: Mogstad, Romano, Shaikh and Wilhelm 2024 (Review of Economic Studies 91), simultaneous sets of ranks. Edge:
    judges whose differences do not vary over traces are told apart from `compare.ENOUGH_TRACES` traces on.
    """
    caught, sizes = np.asarray(hits, dtype=np.float64), np.asarray(units, dtype=np.float64)
    judges = caught.shape[1]
    first, second = np.triu_indices(judges, 1)
    gaps = caught[:, first] - caught[:, second]
    several = len(first)
    moments = np.concatenate([gaps, gaps**2, gaps * sizes[:, None], sizes[:, None], sizes[:, None] ** 2], axis=1)

    def statistic(sums: Floats) -> Floats:
        gap, square, cross = (sums[..., k * several : (k + 1) * several] for k in range(3))
        n, squares = sums[..., -2, None], sums[..., -1, None]
        difference = divide(gap, n)
        spread = np.maximum(square - 2 * difference * cross + difference**2 * squares, 0)
        return np.concatenate([difference, divide(np.sqrt(spread), n)], axis=-1)

    boot = cluster_bootstrap(moments, statistic, draws=draws, seed=seed)
    difference, error = boot.estimate[:several], boot.estimate[several:]
    apart = _apart(boot.samples[:several], boot.samples[several:], difference, error, len(caught))
    above, below = np.zeros((2, judges, judges), dtype=bool)
    above[first, second], above[second, first] = apart & (difference > 0), apart & (difference < 0)
    below = above.T
    return 1.0 + below.sum(axis=1), judges - above.sum(axis=1).astype(np.float64)


def _apart(drawn: Floats, drawn_error: Floats, difference: Floats, error: Floats, traces: int) -> NDArray[np.bool_]:
    """Which differences (pairs,) leave out 0, all at once."""
    varies = error > 1e-9
    away = np.abs(drawn - difference[:, None])
    t = np.where(drawn_error > 1e-9, divide(away, drawn_error), np.where(away > 1e-9, np.inf, 0.0))
    greatest = t[varies].max(axis=0) if varies.any() else np.zeros(0)
    reach = float(np.quantile(greatest, LEVEL, method="higher")) if greatest.size else np.inf
    same = (np.abs(difference) > 1e-9) & (traces >= compare.ENOUGH_TRACES)
    return np.where(varies, np.abs(difference) > reach * np.where(varies, error, 1.0), same)


def _split_rows(
    known: pd.DataFrame, judge_models: tuple[str, ...], split: str, draws: int, seed: int
) -> list[dict[str, object]]:
    each = known.pivot_table(index=["trace_id", "error_id"], columns="judge_model", values="caught", aggfunc="max")
    shared = each.reindex(columns=list(judge_models)).dropna().astype("float64")
    if shared.empty:
        blank = {"n": 0, "traces": 0, **dict.fromkeys(("recall", "rank"), np.nan)}
        return [{"judge_model": name, "split": split, **blank} for name in judge_models]
    by_trace = shared.groupby(level="trace_id", sort=True)
    hits, sizes = by_trace.sum().to_numpy(), by_trace.size().to_numpy()
    share = hits.sum(axis=0) / len(shared)
    several = len(judge_models) > 1
    bounds = rank_bounds(hits, sizes, draws=draws, seed=seed) if draws and several else np.full((2, len(share)), np.nan)
    rank = 1.0 + (share[None, :] > share[:, None] + 1e-12).sum(axis=1)
    low, high = (
        share_bounds(hits, np.broadcast_to(sizes[:, None], hits.shape)) if draws else np.full_like(bounds, np.nan)
    )
    ends = {"recall_low": low, "recall_high": high}
    estimates = pd.DataFrame({"recall": share, **ends, "rank": rank, "rank_low": bounds[0], "rank_high": bounds[1]})
    estimates = estimates if several else estimates.assign(rank=np.nan)
    estimates = estimates.assign(judge_model=judge_models, split=split, n=len(shared), traces=len(sizes))
    rows = estimates.to_dict("records")
    return [{str(name): value for name, value in rows[j].items()} for j in np.argsort(rank, kind="stable")]
