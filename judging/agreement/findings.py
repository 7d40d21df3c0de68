"""Judges' findings that the paper's precision never sees: unmatched ones, and citations of no span."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.errors import NOT_MATCHED
from tracejury.judging.agreement.estimate import Reason
from tracejury.judging.agreement.intervals import DRAWS, Floats, divide, mean_bounds, share_bounds

KEYS: Final = {"judge_model": "object", "dimension": "object", "split": "object"}
FINDING_REVIEWS: Final = ("valid new error", "false alarm", "duplicate")
_TALLIES: Final = (
    "findings",
    "matched",
    "confirmed",
    "unmatched",
    "not_matched",
    "reviewed",
    "valid_new_error",
    "false_alarm",
    "duplicate",
)
_SHARES: Final = ("finding_precision", "invalid_citation_rate")
_RATES: Final = ("unmatched_per_trace", *_SHARES)
_SUMS: Final = ("unmatched", "compared", "right", "reviewed", "invalid_citations", "citations")
"""Tops and bottoms of `_RATES`, in turn."""
BOUNDS: Final = ("finding_precision_lowest", "finding_precision_highest")
"""The precision of all findings if those that nobody reviewed were all false alarms, or all valid."""
WITHOUT: Final[dict[str, Reason]] = {
    "unmatched_per_trace": NOT_MATCHED,
    "finding_precision": "no finding reviewed",
    "invalid_citation_rate": "no citations",
}
"""Why a rate is undefined."""
_CITED: Final = ("citations", "invalid_citations")


def finding_columns() -> dict[str, str]:
    """Columns and types of `finding_table`."""
    counts = dict.fromkeys(("traces", *_TALLIES, *_CITED), "int64")
    rates = [f"{name}{end}" for name in _RATES for end in ("", "_low", "_high")]
    return {**KEYS, **counts, **dict.fromkeys((*rates, *BOUNDS), "float64"), "reason": "object"}


def finding_table(
    findings: pd.DataFrame,
    judged: pd.DataFrame | None = None,
    *,
    draws: int = DRAWS,
) -> pd.DataFrame:
    """Findings by judge: how many match no reference error, what people say of those, which citations are invalid.

    `findings`, one row each: trace_id, dimension, finding_id, matched (boolean: with a reference error; an error that
    half of the people or fewer saw is none of the majority, and what matches it alone is unmatched),
    review (`valid new error`, `false alarm`, `duplicate` or missing; of unmatched findings only), citations and
    invalid_citations (counts; invalid: resolves to no span of the trace). Optional: judge_model, split, match_status
    (`confirmed` by a person, or `proposed`; by default a match is confirmed), state (`not_matched`: no matching has
    compared it with the errors, so that it is neither matched nor unmatched). `judged`:
    trace_id, dimension (optional judge_model, split) of every trace that the judge answered, so that traces without
    findings count; by default only traces with a finding are known.

    finding_precision = (confirmed + valid new error) / reviewed. Source: METRICS.md, beyond the paper. Reviewed: a
    person confirmed its match, or said what an unmatched finding is; a proposed match is nobody's word. A duplicate is
    reviewed and neither matched nor valid.
    finding_precision_lowest and _highest bound it over all findings: if the others were all false alarms, or all valid.
    invalid_citation_rate = invalid / all citations; unmatched_per_trace = unmatched / traces answered and compared.
    Intervals: `share_bounds` by trace, since the findings of a trace (and the citations of a finding) are no
    independent units, `mean_bounds` for the findings a trace; none with `draws=0`. NaN without units: `reason` is then
    `no finding reviewed`, `no citations`, `no matches proposed yet` or several.
    Raises ValueError for a review of a matched finding, an unknown review, more invalid citations than all.
    """
    by_trace = _by_trace(_checked(findings), judged)
    parts = [_judge_row(part, draws) | dict(zip(KEYS, key, strict=True)) for key, part in by_trace]
    columns = finding_columns()
    if not parts:
        return frames.empty(columns)
    table = pd.DataFrame(parts).sort_values(list(KEYS), key=_paper_order, kind="stable", ignore_index=True)
    return table[list(columns)].astype(columns)


def why_undefined(row: Mapping[str, Any], name: str) -> str:
    """Why a rate of `finding_table` is."""
    if name == "unmatched_per_trace" and not row["not_matched"]:
        return "no units"
    return WITHOUT.get(name, "no units")


def _by_trace(rows: pd.DataFrame, judged: pd.DataFrame | None) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    """Sums of each trace that a judge answered, by judge_model, dimension and split; zeros where it found nothing."""
    keys = [*KEYS, "trace_id"]
    sums = rows.groupby(keys, sort=False)[[*_TALLIES, *_CITED]].sum()
    answered = pd.MultiIndex.from_frame(_answered(rows, judged)[keys].drop_duplicates())
    whole = sums.reindex(answered, fill_value=0).reset_index()  # of a trace with a finding a judge has answered
    return [((str(a), str(b), str(c)), part) for (a, b, c), part in whole.groupby(list(KEYS), sort=False)]


def _judge_row(part: pd.DataFrame, draws: int) -> dict[str, object]:
    compared = (part["not_matched"] == 0).astype("int64")
    part = part.assign(traces=1, compared=compared, right=part["confirmed"] + part["valid_new_error"])
    part["unmatched"] *= compared
    total = part[[*_TALLIES, *_CITED, "traces", "compared", "right"]].sum()
    sums = part[list(_SUMS)].to_numpy(dtype=np.float64)
    value = _rates(sums.sum(axis=0))
    low, high = _bounds(sums, draws)
    row: dict[str, object] = {str(name): int(count) for name, count in total.items()}
    bottoms = dict(zip(_RATES, _SUMS[1::2], strict=True))
    row["reason"] = "; ".join(reason for name, reason in WITHOUT.items() if total[bottoms[name]] == 0) or None
    for r, name in enumerate(_RATES):
        row |= {name: value[r], f"{name}_low": low[r], f"{name}_high": high[r]}
    right, unreviewed = int(total["right"]), int(total["findings"] - total["reviewed"])
    ends = divide(np.array([right, right + unreviewed]), np.full(2, total["findings"]))
    return row | dict(zip(BOUNDS, ends.tolist(), strict=True))


def _rates(sums: Floats) -> Floats:
    return divide(sums[..., ::2], sums[..., 1::2])


def _bounds(sums: Floats, draws: int) -> tuple[Floats, Floats]:
    """Bounds of the rates of sums by trace (traces, 6); a mean per trace by `mean_bounds`, and never below 0."""
    if draws == 0:
        return np.full(len(_RATES), np.nan), np.full(len(_RATES), np.nan)
    low, high = share_bounds(sums[:, ::2], sums[:, 1::2])
    compared = sums[sums[:, 1] > 0, 0]
    mean_low, mean_high = mean_bounds(*((compared[:, None] ** power).sum(axis=0) for power in range(4)))
    low[0], high[0] = np.maximum(mean_low[0], 0.0), mean_high[0]
    return low, high


def _checked(findings: pd.DataFrame) -> pd.DataFrame:
    frames.require(findings, "findings", frames.FINDINGS)
    rows = frames.with_defaults(
        findings,
        {
            "judge_model": frames.NO_JUDGE_MODEL,
            "split": frames.NO_SPLIT,
            "match_status": "confirmed",
            "state": "scored",
        },
    )
    for column in ("trace_id", "dimension"):
        rows[column] = rows[column].astype(str)
    frames.require_unique(rows, "findings", ["judge_model", "dimension", "trace_id", "finding_id"])
    matched, known = frames.flags(rows["matched"], "findings.matched")
    if not known.all():
        raise ValueError("findings.matched is missing in some rows; a finding is matched or it is not")
    review = rows["review"].astype(object).where(rows["review"].notna(), "").astype(str)
    unknown = sorted(set(review) - {"", *FINDING_REVIEWS})
    if unknown:
        raise ValueError(f"findings.review holds {unknown!r}; expected one of {list(FINDING_REVIEWS)!r} or missing")
    if (matched & (review != "").to_numpy()).any():
        raise ValueError("findings: a matched finding has a review; people review unmatched findings only")
    cited = {column: frames.numbers(rows[column], f"findings.{column}") for column in _CITED}
    if (cited["invalid_citations"] > cited["citations"]).any():
        raise ValueError("findings: more invalid citations than citations; `citations` counts all of them")
    tallies = {name.replace(" ", "_"): (review == name).to_numpy() for name in FINDING_REVIEWS}
    has_review = (review != "").to_numpy()
    confirmed = matched & (rows["match_status"] == "confirmed").to_numpy()
    waiting = (rows["state"] == "not_matched").to_numpy() & ~matched & ~has_review
    rows = rows.assign(
        findings=1,
        matched=matched,
        confirmed=confirmed,
        unmatched=~matched & ~waiting,
        not_matched=waiting,
        reviewed=confirmed | has_review,
        **tallies,
    )
    return rows.assign(**{column: np.nan_to_num(values) for column, values in cited.items()})


def _answered(rows: pd.DataFrame, judged: pd.DataFrame | None) -> pd.DataFrame:
    """Every trace that a judge answered: of `judged`, and those with a finding."""
    if judged is None:
        return rows
    frames.require(judged, "judged", ("trace_id", "dimension"))
    answered = frames.with_defaults(judged, {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT})
    return pd.concat([answered, rows])[[*KEYS, "trace_id"]].astype(str)


def _paper_order(values: pd.Series) -> pd.Series:
    order = frames.in_order(values, (*frames.DIMENSION_ORDER, "dev", "test"))
    return pd.Series(frames.codes(values, order), index=values.index)
