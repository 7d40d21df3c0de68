"""How far the words that a finding quotes are those that the reference quotes: overlap of their characters."""

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.intervals import DRAWS, share_bounds

EVIDENCE_PAIRS: Final = ("trace_id", "error_id", "dimension", "evidence", "iou")
"""One row per caught error and the finding that it matches. `evidence` says what can be compared (`EVIDENCE`); `iou` is
missing where nothing can."""
COMPARED: Final = "compared"
EVIDENCE: Final = (COMPARED, "no quote in the label", "no quote in the finding", "quote not in the trace")


def character_iou(ours: Iterable[tuple[int, int, int]], theirs: Iterable[tuple[int, int, int]]) -> float:
    """Intersection over union of the characters of two sets of stretches (text, start, end); NaN where both are empty.

    Source: Jaccard 1912; as the overlap of spans in DeYoung et al. 2020 (ERASER), there of tokens.
    """
    first, second = ({(text, at) for text, start, end in side for at in range(start, end)} for side in (ours, theirs))
    return len(first & second) / len(first | second) if first or second else float("nan")


def evidence_table(evidence_pairs: pd.DataFrame, *, draws: int = DRAWS) -> pd.DataFrame:
    """Mean overlap of evidence of each judge: one row per judge_model, dimension and split.

    `evidence_pairs`: `EVIDENCE_PAIRS`, with judge_model and split. Columns: pairs (caught errors), no_label_quote,
    no_finding_quote, not_in_trace (pairs that cannot be compared), n (those that can), traces (of these), iou (the mean
    of `character_iou`) with bounds by trace: `share_bounds` of sums of overlaps over numbers of pairs.
    Raises ValueError for absent columns and another word of `evidence`.
    """
    frames.require(evidence_pairs, "evidence_pairs", EVIDENCE_PAIRS)
    pairs = frames.with_defaults(evidence_pairs, {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT})
    unknown = sorted(set(pairs["evidence"].unique()) - set(EVIDENCE))
    if unknown:
        raise ValueError(f"evidence_pairs.evidence holds {unknown!r}; expected one of {list(EVIDENCE)!r}")
    keys = ["judge_model", "dimension", "split"]
    rows = [
        {**dict(zip(keys, names, strict=True)), **_overlap(part, draws)}
        for names, part in pairs.groupby(keys, sort=True)
    ]
    columns = evidence_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def evidence_columns() -> dict[str, str]:
    """Columns and types of `evidence_table`."""
    counts = ("pairs", "no_label_quote", "no_finding_quote", "not_in_trace", "n", "traces")
    return {
        **dict.fromkeys(("judge_model", "dimension", "split"), "object"),
        **dict.fromkeys(counts, "int64"),
        **dict.fromkeys(("iou", "iou_low", "iou_high"), "float64"),
    }


def _overlap(part: pd.DataFrame, draws: int) -> dict[str, float]:
    compared = part[part["evidence"] == COMPARED]
    by_trace = compared.groupby("trace_id")["iou"].agg(["sum", "size"]).to_numpy(dtype=np.float64)
    low, high = np.nan, np.nan
    if draws and len(compared):
        low, high = map(float, share_bounds(by_trace[:, 0], by_trace[:, 1], capped=False))
    tallies = part["evidence"].value_counts()
    counts = zip(("no_label_quote", "no_finding_quote", "not_in_trace"), EVIDENCE[1:], strict=True)
    return {
        "pairs": len(part),
        **{name: int(tallies.get(word, 0)) for name, word in counts},
        "n": len(compared),
        "traces": len(by_trace),
        "iou": float(compared["iou"].mean()) if len(compared) else np.nan,
        "iou_low": low,
        "iou_high": high,
    }
