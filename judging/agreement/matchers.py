"""How far people who decide matches agree: the same pair of a human error and a finding, confirmed or rejected."""

from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from judging.agreement import frames
from judging.agreement.figure import Reason
from judging.agreement.intervals import DRAWS, SEED, Floats, Method, cluster_bootstrap, distinct_rows, wilson_bounds
from judging.agreement.scores import exact_share, gwet, kappa

MATCH_WORDS: Final = ("trace_id", "label_id", "finding_id", "matcher", "status")
WORDS: Final = ("rejected", "confirmed")
_FIGURES: Final = ("agreement", "kappa", "ac1")


def matcher_agreement(
    match_words: pd.DataFrame, *, draws: int = DRAWS, seed: int = SEED, method: Method = "percentile"
) -> pd.DataFrame:
    """Every two people who decided the same pairs: how often, and beyond chance.

    `match_words`, one row per (label_id, finding_id, matcher): trace_id, status (`confirmed` or `rejected`). One row
    per matcher_a and matcher_b (by name): n (pairs that both decided), traces, both_confirmed, both_rejected,
    only_a and only_b (confirmed by one alone), agreement (raw), Cohen's kappa and Gwet's AC1 on the two words, each
    with bounds (bootstrap by trace; Wilson's for an agreement of 0 or 1), reason (of an undefined kappa).
    Source: Cohen 1960; Gwet 2008; METRICS.md, matching. Edge: two people without a common pair stand there with n 0;
    one person alone gives no row. Raises ValueError for absent columns, doubled rows and another status.
    """
    words = _checked(match_words)
    confirmed = words.pivot(index="pair", columns="matcher", values="confirmed")
    trace = words.drop_duplicates("pair").set_index("pair")["trace_id"]
    rows = []
    for a, b in combinations(sorted(map(str, confirmed.columns)), 2):
        both = confirmed[[a, b]].dropna().astype(int)
        clusters = pd.factorize(trace.reindex(both.index))[0]
        tables = _tables(both[a].to_numpy(), both[b].to_numpy(), clusters)
        rows.append({"matcher_a": a, "matcher_b": b, **_row(tables, draws, seed, method)})
    columns = matcher_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def matcher_columns() -> dict[str, str]:
    """Columns and types of `matcher_agreement`."""
    counts = ("n", "traces", "both_confirmed", "only_a", "only_b", "both_rejected")
    figures = [f"{name}{end}" for name in _FIGURES for end in ("", "_low", "_high")]
    return {
        **dict.fromkeys(("matcher_a", "matcher_b"), "object"),
        **dict.fromkeys(counts, "int64"),
        **dict.fromkeys(figures, "float64"),
        "reason": "object",
    }


def _checked(match_words: pd.DataFrame) -> pd.DataFrame:
    frames.require(match_words, "match_words", MATCH_WORDS)
    words = match_words[list(MATCH_WORDS)].astype(str)
    frames.require_unique(words, "match_words", ["label_id", "finding_id", "matcher"])
    unknown = sorted(set(words["status"]) - set(WORDS))
    if unknown:
        raise ValueError(f"match_words.status holds {unknown!r}; expected one of {list(WORDS)!r}")
    pair = pd.MultiIndex.from_frame(words[["label_id", "finding_id"]]).factorize()[0]
    return words.assign(pair=pair, confirmed=words["status"] == "confirmed")


def _tables(a: np.ndarray, b: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Words of a by words of b, counted by trace (traces, 4)."""
    traces = int(clusters.max()) + 1 if len(clusters) else 0
    return np.bincount(clusters * 4 + a * 2 + b, minlength=traces * 4).reshape(traces, 4)


def _statistic(sums: Floats) -> Floats:
    table = sums.reshape(*sums.shape[:-1], 2, 2)
    return np.stack([exact_share(table), kappa(table, "identity"), gwet(table, "identity")], axis=-1)


def _row(tables: np.ndarray, draws: int, seed: int, method: Method) -> dict[str, float | int | str | None]:
    total = tables.sum(axis=0)
    value = _statistic(total.astype(np.float64))
    low = high = np.full(len(value), np.nan)
    if draws > 0 and len(tables):
        patterns, multiplicity = distinct_rows(tables)
        boot = cluster_bootstrap(patterns, _statistic, multiplicity=multiplicity, draws=draws, seed=seed)
        low, high = boot.interval(method)
        if value[0] in (0, 1):
            agreed, n = np.array([total[0] + total[3]]), np.array([total.sum()])
            low[0], high[0] = (bound[0] for bound in wilson_bounds(agreed, n))
    row: dict[str, float | int | str | None] = {
        "n": int(total.sum()),
        "traces": len(tables),
        "both_rejected": int(total[0]),
        "only_b": int(total[1]),
        "only_a": int(total[2]),
        "both_confirmed": int(total[3]),
        "reason": _reason(value[1], int(total.sum())),
    }
    for f, name in enumerate(_FIGURES):
        row |= {name: value[f], f"{name}_low": low[f], f"{name}_high": high[f]}
    return row


def _reason(value: float, n: int) -> Reason | None:
    if not np.isnan(value):
        return None
    return "no pairs" if n == 0 else "no variation"
