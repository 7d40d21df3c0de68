"""Judges' findings that the paper's precision never sees: unmatched ones, and citations of no span."""

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judging.agreement import frames
from judging.agreement.intervals import divide, wilson_bounds

KEYS: Final = {"system": "object", "judge": "object", "split": "object"}
VERDICTS: Final = ("valid new error", "false alarm", "duplicate")
_TALLIES: Final = ("findings", "matched", "unmatched", "reviewed", "valid_new_error", "false_alarm", "duplicate")
_SHARES: Final = ("finding_precision", "invalid_citation_rate")
_CITED: Final = ("citations", "invalid_citations")


def finding_columns() -> dict[str, str]:
    """Columns and types of `finding_table`."""
    counts = dict.fromkeys(("traces", *_TALLIES, *_CITED), "int64")
    shares = [f"{name}{end}" for name in _SHARES for end in ("", "_low", "_high")]
    return {**KEYS, **counts, **dict.fromkeys(("unmatched_per_trace", *shares), "float64")}


def finding_table(findings: pd.DataFrame, judged: pd.DataFrame | None = None) -> pd.DataFrame:
    """Findings by judge: how many match no human error, what people say of those, which citations are invalid.

    `findings`, one row each: trace_id, judge, finding_id, matched (boolean), verdict (`valid new error`,
    `false alarm`, `duplicate` or missing; of unmatched findings only), citations and invalid_citations (counts;
    invalid: resolves to no span of the trace). Optional: system, split. `judged`: trace_id, judge (optional
    system, split) of every trace that the judge answered, so that traces without findings count in the rate; by
    default only traces with a finding are known.

    finding_precision = (matched + valid new error) / (matched + unmatched with a verdict), Source:
    METRICS.md, beyond the paper: a duplicate is reviewed and neither matched nor valid. invalid_citation_rate = invalid
    / all citations. Both with Wilson's interval, NaN (`no finding reviewed`, `no citations`) without units.
    Raises ValueError for a verdict on a matched finding, an unknown verdict, more invalid citations than all.
    """
    rows = _checked(findings)
    keys = list(KEYS)
    sums = rows.groupby(keys, sort=False)[[*_TALLIES, *_CITED]].sum()
    traces = _answered(rows, judged)
    table = sums.join(traces, how="outer").fillna(0).reset_index()
    table = table.sort_values(keys, key=_paper_order, kind="stable").reset_index(drop=True)
    table["unmatched_per_trace"] = divide(table["unmatched"].to_numpy(), table["traces"].to_numpy())
    right = (table["matched"] + table["valid_new_error"]).to_numpy()
    table = _share(table, "finding_precision", right, table["reviewed"].to_numpy())
    table = _share(table, "invalid_citation_rate", table["invalid_citations"].to_numpy(), table["citations"].to_numpy())
    columns = finding_columns()
    return table[list(columns)].astype(columns)


def _checked(findings: pd.DataFrame) -> pd.DataFrame:
    frames.require(findings, "findings", frames.FINDINGS)
    rows = frames.with_defaults(findings, {"system": frames.NO_SYSTEM, "split": frames.NO_SPLIT})
    for column in ("trace_id", "judge"):
        rows[column] = rows[column].astype(str)
    frames.require_unique(rows, "findings", ["system", "judge", "trace_id", "finding_id"])
    matched, known = frames.flags(rows["matched"], "findings.matched")
    if not known.all():
        raise ValueError("findings.matched is missing in some rows; a finding is matched or it is not")
    verdict = rows["verdict"].astype(object).where(rows["verdict"].notna(), "").astype(str)
    unknown = sorted(set(verdict) - {"", *VERDICTS})
    if unknown:
        raise ValueError(f"findings.verdict holds {unknown!r}; expected one of {list(VERDICTS)!r} or missing")
    if (matched & (verdict != "").to_numpy()).any():
        raise ValueError("findings: a matched finding has a verdict; verdicts are of unmatched findings only")
    cited = {column: frames.numbers(rows[column], f"findings.{column}") for column in _CITED}
    if (cited["invalid_citations"] > cited["citations"]).any():
        raise ValueError("findings: more invalid citations than citations; `citations` counts all of them")
    tallies = {name.replace(" ", "_"): (verdict == name).to_numpy() for name in VERDICTS}
    rows = rows.assign(
        findings=1, matched=matched, unmatched=~matched, reviewed=matched | (verdict != "").to_numpy(), **tallies
    )
    return rows.assign(**{column: np.nan_to_num(values) for column, values in cited.items()})


def _answered(rows: pd.DataFrame, judged: pd.DataFrame | None) -> pd.DataFrame:
    """Number of traces answered by each judge, as a frame indexed by system, judge, split."""
    source = rows
    if judged is not None:
        frames.require(judged, "judged", ("trace_id", "judge"))
        answered = frames.with_defaults(judged, {"system": frames.NO_SYSTEM, "split": frames.NO_SPLIT})
        source = pd.concat([answered, rows])[[*KEYS, "trace_id"]].astype(str)
    return source.groupby(list(KEYS), sort=False)["trace_id"].nunique().to_frame("traces")


def _paper_order(values: pd.Series) -> pd.Series:
    order = frames.in_order(values, (*frames.JUDGES, "dev", "test"))
    return pd.Series(frames.codes(values, order), index=values.index)


def _share(table: pd.DataFrame, name: str, hits: NDArray[np.generic], n: NDArray[np.generic]) -> pd.DataFrame:
    low, high = wilson_bounds(hits, n)
    return table.assign(**{name: divide(hits, n), f"{name}_low": low, f"{name}_high": high})
