"""Whether judges are alike in all slices of the traces, and beside each other (judge x slice)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import compare, errors, frames, raters, reasons, reliability, scores
from tracejury.judging.agreement.compare import holm
from tracejury.judging.agreement.estimate import joined_reasons
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.interaction import LEAST_TRACES, equal_means
from tracejury.judging.agreement.intervals import DRAWS, SEED, Floats
from tracejury.judging.agreement.slices import (
    AMONG_PEOPLE,
    checked_slices,
    placed_by,
    slice_order,
    stacked,
    with_traces,
)

SCORED: Final = "bucketed"
"""The kind of a test of scores: the shares of traces whose scores fall into the same bucket."""
REPEATED: Final = "mean_sd"
"""The kind of a test of repeats: the standard deviation of a trace's scores over repeats, scaled to 0 to 1."""


def compared_slices(
    left: pd.DataFrame, right: pd.DataFrame, slices: pd.DataFrame, *, draws: int = DRAWS, seed: int = SEED
) -> pd.DataFrame:
    """Differences of recall of two sides by slice (`compare.compare_errors`), and whether they differ between slices.

    One row per by, slice, dimension and kind: left, right, difference, low, high, n (relevant errors that both sides
    answered), significant. `p`: the test of one difference in all slices (`equal_means`, slices of `LEAST_TRACES`
    traces or more), the same in each row of a by, dimension and kind; `p_holm` over the dimensions and kinds of a by.
    `reason`: why a cell is empty.
    """
    left, right = errors.checked_pairs(left), errors.checked_pairs(right)
    known, both = checked_slices(slices), compare.paired_errors(left, right)
    parts = [
        _compared_by(placed, left, right, draws, seed).assign(by=by)
        for by, placed in placed_by(both, known, by_error=True)
        if len(placed)
    ]
    return stacked(parts, compared_columns())


def compared_columns() -> dict[str, str]:
    """Columns and types of `compared_slices`."""
    return {
        **dict.fromkeys(("by", "slice", "dimension", "kind"), "object"),
        **dict.fromkeys(("left", "right", "difference", "low", "high"), "float64"),
        "n": "int64",
        "significant": "bool",
        **dict.fromkeys(("p", "p_holm"), "float64"),
        "reason": "object",
    }


def _compared_by(placed: pd.DataFrame, left: pd.DataFrame, right: pd.DataFrame, draws: int, seed: int) -> pd.DataFrame:
    parts = []
    for name in slice_order(list(placed["slice"])):
        own = placed.loc[placed["slice"] == name, ["dimension", "trace_id", "error_id"]]
        sides = (side.merge(own, on=list(own.columns)) for side in (left, right))
        table = compare.compare_errors(*sides, draws=draws)
        parts.append(table[(table["impact"] == "all") & (table["metric"] == "recall")].assign(slice=name))
    rows = pd.concat(parts, ignore_index=True).drop(columns=["n", "p", "p_holm"])
    relevant = placed[placed["relevant"]]
    rows = rows.merge(_relevant_counts(relevant), on=["slice", "dimension"], how="left").fillna({"n": 0})
    tests = pd.DataFrame([_difference_test(relevant, *at, draws, seed) for at in _tested_pairs(rows)])
    tests["p_holm"] = holm(tests["p"].to_numpy(dtype=np.float64))
    rows = rows.merge(tests, on=["dimension", "kind"])
    rows["reason"] = [_why_empty(row, draws) for row in rows.to_dict("records")]
    return rows


def _relevant_counts(relevant: pd.DataFrame) -> pd.DataFrame:
    return relevant.groupby(["slice", "dimension"]).size().rename("n").reset_index()


def _tested_pairs(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    yield from rows[["dimension", "kind"]].drop_duplicates().itertuples(index=False, name=None)


def _difference_test(relevant: pd.DataFrame, dimension: str, kind: str, draws: int, seed: int) -> dict[str, Any]:
    own = relevant[relevant["dimension"] == dimension]
    own = own.assign(value=own[f"{kind}_left"].astype("float64") - own[f"{kind}_right"].astype("float64"))
    cells = _by_trace(own, "value")
    p = equal_means(*cells, draws=draws, seed=seed)
    return {"dimension": dimension, "kind": kind, "p": p, "why": _why_untested(cells)}


def _why_empty(row: Mapping[Any, Any], draws: int) -> str | None:
    gaps = {} if row["n"] else dict.fromkeys(("left", "right", "difference"), "no positives")
    if row["n"] and draws and pd.isna(row["low"]):
        gaps = {f"difference {reasons.INTERVAL}": reasons.FLAT}
    return joined_reasons(gaps | (dict.fromkeys(("p", "p_holm"), row["why"]) if pd.isna(row["p"]) else {}))


def slice_tests(
    error_pairs: pd.DataFrame,
    score_pairs: pd.DataFrame,
    slices: pd.DataFrame,
    ratings: pd.DataFrame | None = None,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Tests whether a judge is alike in all slices, and whether it is so beside the other judges (judge x slice).

    One row per by, kind (caught and localized: recall; bucketed: accuracy of scores; where `ratings` are given, of
    judges and people as `Inputs` takes them, `REPEATED` and `AMONG_PEOPLE` too), judge_model, dimension and split:
    `slices` that are tested (of `LEAST_TRACES` traces or more), left_out (the others), traces, n (errors or traces).
    `p` is that of one value in all slices, `p_interaction` that of one difference in all slices between the judge and
    the mean of the other judge models on the same errors or traces; `n_interaction` of these are shared. Both by
    `equal_means`; `p_holm` and `p_interaction_holm` over the judges of a by, kind and split. `reason`: why a p-value is
    missing.
    """
    known, pairs = checked_slices(slices), errors.checked_pairs(error_pairs)
    units: dict[str, pd.DataFrame] = {kind: _error_units(pairs, kind, missing) for kind in frames.KINDS}
    units[SCORED] = _score_units(score_pairs, missing)
    judges: dict[str, dict[tuple[str, ...], str]] = dict.fromkeys(frames.KINDS, _judges_of_errors(pairs))
    judges[SCORED] = _judges_of_scores(score_pairs)
    if ratings is not None:
        units |= _rating_units(ratings)
        judges |= {kind: _judges_of_ratings(units[kind]) for kind in (REPEATED, AMONG_PEOPLE)}
    rows = [
        {"by": by, "kind": kind, **row}
        for by in dict.fromkeys(known["by"])
        for kind, values in units.items()
        for _, placed in placed_by(values, known[known["by"] == by], by_error=kind in frames.KINDS)
        for row in _test_rows(placed, judges[kind], draws, seed)
    ]
    columns = slice_test_columns()
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    if table.empty:
        return table
    groups = table.groupby(["by", "kind", "split"], sort=False)
    for name in ("p", "p_interaction"):
        table[f"{name}_holm"] = groups[name].transform(lambda values: holm(values.to_numpy(dtype=np.float64)))
    return table


def recall_differences(
    error_pairs: pd.DataFrame,
    slices: pd.DataFrame,
    *,
    missing: Missing = "drop",
    draws: int = DRAWS,
    seed: int = SEED,
) -> pd.DataFrame:
    """Return where each judge catches least and most, and whether its recall differs between slices at all.

    One row per by, judge_model, dimension and split that can be tested (`equal_means`, slices of `LEAST_TRACES` traces
    or more): low_slice, low (recall), low_n (errors) of the slice with the lowest recall, high_slice, high, high_n of
    that with the highest; p of one recall in all slices, p_holm over all rows of the table.
    """
    units = _error_units(errors.checked_pairs(error_pairs), "caught", missing)
    rows = [
        {"by": by, **dict(zip(_JUDGE, judge, strict=True)), **row}
        for by, placed in placed_by(units, checked_slices(slices), by_error=True)
        for judge, part in placed.groupby(_JUDGE)
        if (row := _apart(part, draws, seed)) is not None
    ]
    columns = recall_difference_columns()
    table = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return table.assign(p_holm=holm(table["p"].to_numpy(dtype=np.float64)))


def recall_difference_columns() -> dict[str, str]:
    """Columns and types of `recall_differences`."""
    ends = {
        f"{end}{of}": kind for end in ("low", "high") for of, kind in
        (("_slice", "object"), ("", "float64"), ("_n", "int64"))
    }  # fmt: skip
    return {**dict.fromkeys(("by", *_JUDGE), "object"), **ends, "p": "float64", "p_holm": "float64"}


def _apart(part: pd.DataFrame, draws: int, seed: int) -> dict[str, Any] | None:
    """The extremes of the tested slices and their test; None where there is no test."""
    p = equal_means(*_by_trace(part, "value"), draws=draws, seed=seed)
    if np.isnan(p):
        return None
    by_slice = part.groupby("slice").agg(traces=("trace_id", "nunique"), n=("value", "size"), recall=("value", "mean"))
    tested = by_slice[by_slice["traces"] >= LEAST_TRACES]
    ends = {"low": str(tested["recall"].idxmin()), "high": str(tested["recall"].idxmax())}
    row = {
        f"{end}{of}": value for end, name in ends.items() for of, value in
        (("_slice", name), ("", tested.loc[name, "recall"]), ("_n", tested.loc[name, "n"]))
    }  # fmt: skip
    return {**row, "p": p}


def slice_test_columns() -> dict[str, str]:
    """Columns and types of `slice_tests`."""
    return {
        **dict.fromkeys(("by", "kind", "judge_model", "dimension", "split"), "object"),
        **dict.fromkeys(("slices", "left_out", "traces", "n"), "int64"),
        **dict.fromkeys(("p", "p_holm"), "float64"),
        "n_interaction": "int64",
        **dict.fromkeys(("p_interaction", "p_interaction_holm"), "float64"),
        "reason": "object",
    }


_JUDGE: Final = ["judge_model", "dimension", "split"]


def _judges_of_errors(pairs: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """The judges of checked pairs, each with the reason that holds where none of its errors is known."""
    waiting = pairs["relevant"] & (pairs["state"] == "not_matched")
    is_waiting = waiting.groupby([pairs[name] for name in _JUDGE], sort=True).any()
    return {judge: errors.NOT_MATCHED if is_open else "no positives" for judge, is_open in is_waiting.items()}  # type: ignore[misc]


def _judges_of_scores(score_pairs: pd.DataFrame) -> dict[tuple[str, ...], str]:
    judges = scores.checked_scores(score_pairs)[_JUDGE].drop_duplicates().sort_values(_JUDGE)
    return dict.fromkeys(judges.itertuples(index=False, name=None), "no units")


def _error_units(pairs: pd.DataFrame, kind: str, missing: Missing) -> pd.DataFrame:
    """judge_model, dimension, split, trace_id, error_id, value: whether each error of a judge was caught."""
    states = ["scored"] if missing == "drop" else ["scored", "failed"]
    pairs = pairs[pairs["relevant"] & pairs["state"].isin(states)]
    return pairs[["judge_model", "dimension", "split", "trace_id", "error_id"]].assign(
        value=pairs[kind].to_numpy(dtype=np.float64)
    )


def _score_units(score_pairs: pd.DataFrame, missing: Missing) -> pd.DataFrame:
    """The same of scores: whether both fall into the same bucket; a failure is a miss where failures count."""
    pairs = scores.checked_scores(score_pairs)
    scored, buckets = scores.scored_rows(pairs), {0.0: 0, 1.0: 1, 2.0: 1, 3.0: 2}
    same = scored["reference_score"].map(buckets) == scored["judge_score"].map(buckets)
    failed = pairs[(pairs["state"] == "failed") & pairs["reference_score"].notna()]
    parts = [
        scored.assign(value=same.astype("float64")),
        *([failed.assign(value=0.0)] if missing == "disagree" else []),
    ]
    columns = ["judge_model", "dimension", "split", "trace_id", "value"]
    return pd.concat([part[columns] for part in parts], ignore_index=True).assign(error_id="")


def _rating_units(ratings: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The spread of each trace over a judge's repeats, and the pairs of people in the same bucket of each trace."""
    kinds = frames.with_defaults(with_traces(ratings), {"rater_kind": "judge"})
    judged, people = (kinds[kinds["rater_kind"] == kind] for kind in ("judge", "annotator"))
    values = {
        REPEATED: (judged, reliability.repeat_spread),
        AMONG_PEOPLE: (people.assign(judge_model=AMONG_PEOPLE), raters.same_bucket),
    }
    return {kind: _unit_values(rows, function) for kind, (rows, function) in values.items()}


def _unit_values(ratings: pd.DataFrame, function: Callable[[Floats], Floats]) -> pd.DataFrame:
    columns = [*_JUDGE, "trace_id", "error_id", "value"]
    parts = [frames.empty(dict.fromkeys(columns, "object") | {"value": "float64"})]
    for (judge_model, dimension, split), part in reliability.rating_groups(ratings):
        matrix = reliability.rating_matrix(part)
        traces = part.drop_duplicates("unit").set_index("unit")["trace_id"].reindex(matrix.units).to_numpy()
        rows = pd.DataFrame({"trace_id": traces, "error_id": "", "value": function(matrix.values)})
        parts.append(rows.assign(judge_model=judge_model, dimension=dimension, split=split)[columns])
    return pd.concat(parts, ignore_index=True).dropna(subset=["value"])


def _judges_of_ratings(units: pd.DataFrame) -> dict[tuple[str, ...], str]:
    judges = units[_JUDGE].drop_duplicates().sort_values(_JUDGE)
    return dict.fromkeys(judges.itertuples(index=False, name=None), "no units")


def _test_rows(
    placed: pd.DataFrame, judges: dict[tuple[str, ...], str], draws: int, seed: int
) -> Iterator[dict[str, Any]]:
    units = _beside_others(placed)
    places = {name: pd.factorize(units[name], sort=True)[0] for name in ("trace_id", "slice")}
    parts = dict(iter(units.assign(**places).groupby(_JUDGE, sort=False)))
    for names, why in judges.items():
        part = parts.get(names)
        tested = _untested(why) if part is None else _tested(part, draws, seed)
        yield {**dict(zip(_JUDGE, names, strict=True)), **tested}


def _untested(why: str) -> dict[str, Any]:
    counts = dict.fromkeys(("slices", "left_out", "traces", "n", "n_interaction"), 0)
    return {
        **counts,
        "p": np.nan,
        "p_interaction": np.nan,
        "reason": f"p, p_holm, p_interaction, p_interaction_holm: {why}",
    }


def _beside_others(placed: pd.DataFrame) -> pd.DataFrame:
    """The units with `lead`: the value less the mean of the other judge models on the same unit, NaN without any."""
    unit = placed.groupby(["dimension", "split", "trace_id", "error_id", "slice"], sort=False)["value"]
    number, total = unit.transform("size"), unit.transform("sum")
    mean = (total - placed["value"]) / (number - 1).where(number > 1)
    return placed.assign(lead=placed["value"] - mean)


def _tested(part: pd.DataFrame, draws: int, seed: int) -> dict[str, Any]:
    shared = part[part["lead"].notna()]
    own, beside = _by_trace(part, "value"), _by_trace(shared, "lead")
    p, p_interaction = (equal_means(*cells, draws=draws, seed=seed) for cells in (own, beside))
    gaps = {"p": (p, _why_untested(own)), "p_interaction": (p_interaction, _why_untested(beside))}
    if shared.empty:
        gaps["p_interaction"] = p_interaction, "no other judge model"
    enough = own[0].shape[1]
    return {
        "slices": enough,
        "left_out": part["slice"].nunique() - enough,
        "traces": part["trace_id"].nunique(),
        "n": len(part),
        "p": p,
        "n_interaction": len(shared),
        "p_interaction": p_interaction,
        "reason": joined_reasons(
            {one: why for name, (value, why) in gaps.items() if np.isnan(value) for one in (name, f"{name}_holm")}
        ),
    }


def _by_trace(units: pd.DataFrame, column: str) -> tuple[Floats, Floats]:
    """Sums and numbers of units by trace and slice (traces, slices), of slices with traces enough."""
    (trace, traces), (part, parts) = (_codes(units[name]) for name in ("trace_id", "slice"))
    place, shape = trace * parts + part, (traces, parts)
    counts = np.bincount(place, minlength=traces * parts).reshape(shape).astype(np.float64)
    sums = np.bincount(place, units[column].to_numpy(), minlength=traces * parts).reshape(shape)
    tested = (counts > 0).sum(axis=0) >= LEAST_TRACES
    rows = counts[:, tested].any(axis=1)
    return sums[np.ix_(rows, tested)], counts[np.ix_(rows, tested)]


def _codes(values: pd.Series) -> tuple[NDArray[np.int64], int]:
    """The place of each value among the sorted ones, and how many these are."""
    unique, codes = np.unique(values.to_numpy(), return_inverse=True)
    return codes, len(unique)


def _why_untested(cells: tuple[Floats, Floats]) -> str:
    return f"fewer than two slices of {LEAST_TRACES} traces" if cells[0].shape[1] < 2 else "traces do not vary"
