"""A report table as a paper prints it: an interval beside its estimate, words for names, what never varies above."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from tracejury.ingest.trace import Json
from tracejury.judging.agreement.frames import DIMENSION_ORDER
from tracejury.judging.agreement.tables import COMPARED, Table, numeric_columns, printed
from tracejury.judging.judges.rubric import rubrics

KEYS: Final = ("judge_model", "dimension", "split", "impact", "kind", "failures", "vectoriser", "epsilon")
"""Left out where all rows have the same, and said beside the title."""
WORDS: Final = {
    "judge_model": "judge model", "trace_id": "trace", "error_id": "error", "f1": "F1", "f2": "F2",
    "tp": "TP", "fp": "FP", "fn": "FN", "tn": "TN", "ac1": "AC1", "ac2": "AC2", "nmae": "NMAE", "sci": "SCI",
    "mae": "MAE, points", "gsr": "GSR",
    "pearson": "Pearson r",
    "spearman": "Spearman rho", "quadratic_kappa": "quadratic kappa", "alpha_interval": "alpha (interval)",
    "alpha_ordinal": "alpha (ordinal)", "alpha_nominal": "alpha (nominal)", "pair_alpha": "alpha",
    "p_below_667": "P(alpha < .667)", "p_below_800": "P(alpha < .8)", "mean_sd": "mean SD of 0..1", "sd": "SD of 0..1",
    "off_by_one": "off by one", "two_point": "2-point", "bias": "bias, points",
    "unmatched_per_trace": "unmatched per trace",
    "weighted_f1": "weighted F1", "pair_f1": "pair F1",
    "pass_at_k": "pass@k", "pass_k": "pass^k", "statistic": "chi squared", "p_corrected": "p (corrected)",
    "p_exact": "p (exact)", "p_clustered": "p (by trace)", "p_holm": "p (Holm)", "reason": "empty because",
}  # fmt: skip
_LEFT_OUT: Final = ("failed", "not_applicable", "not_matched", "missing")
_AGAINST_PEOPLE: Final = frozenset({"error_pairs", "score_pairs", "findings", "unit_labels", "trail_reference"})
_P_VALUES: Final = ("p", "p_clustered", "p_corrected", "p_exact", "p_holm")
_REDUNDANT: Final = ("printed", "mean_sd_ci95", "undefined_draws")


@dataclass(frozen=True, kw_only=True)
class Typeset:
    """`cells` of text; `numeric` names columns of numbers; `caption` goes with the title, `notes` below the table."""

    title: str
    cells: pd.DataFrame
    numeric: tuple[str, ...]
    caption: str
    notes: tuple[str, ...]


def typeset(frame: pd.DataFrame, table: Table, made_from: Mapping[str, Json] | None = None) -> Typeset:
    """The table for a reader: as `printed`, in fewer columns."""
    text = _of_least(printed(frame, table), frame)
    joined = _with_intervals(text.drop(columns=[name for name in _REDUNDANT if name in text.columns]))
    has_interval = joined.apply(lambda cells: cells.str.contains(r"\[.*, .*\]")).any(axis=None)
    same = _constant(joined)
    zero = [name for name in _LEFT_OUT if name in joined.columns and len(joined) and (joined[name] == "0").all()]
    shown = joined.drop(columns=[*same, *zero, *_empty(joined)])
    numbers = set(numeric_columns(frame))
    right = [name for name in shown.columns if name.removesuffix("_pct") in numbers or name.endswith(_BOUNDS)]
    if "metric" in shown.columns:
        shown["metric"] = shown["metric"].map(words)
    if "reason" in shown.columns:
        shown["reason"] = shown.pop("reason").map(_reason_in_words)
    heads = {name: words(name) for name in map(str, shown.columns)}
    return Typeset(
        title=table.title,
        cells=shown.rename(columns=heads),
        numeric=tuple(heads[name] for name in right),
        caption="; ".join([*_paper(table), *_compared(made_from or {}, table), *_alike(same)]),
        notes=(
            *([] if len(frame) else ["No row: the filters select nothing for this table."]),
            *_abbreviations(frame),
            *([f"{', '.join(map(words, zero)).capitalize()}: 0 in every row."] if zero else []),
            *_notes(
                made_from or {}, table, has_interval=bool(has_interval), has_gap=len(shown) > 0 and "reason" in shown
            ),
        ),
    )


def words(name: str) -> str:
    """`recall_pct` as `recall, %`."""
    if name.endswith("_pct"):
        return f"{words(name.removesuffix('_pct'))}, %"
    return WORDS.get(name, re.sub("_+", " ", name))


_BOUNDS: Final = "95 % interval"


def _of_least(text: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """No p of 0.0000: it is less than the least that is printed."""
    shown = text.copy()
    for name in (name for name in _P_VALUES if name in text.columns):
        is_small = text[name].str.fullmatch("0[.]0+") & (frame[name] > 0).to_numpy()
        shown[name] = text[name].where(~is_small, "<" + text[name].str.replace("0$", "1", regex=True))
    return shown


def _with_intervals(text: pd.DataFrame) -> pd.DataFrame:
    """Bounds in the cell of their estimate: `0.624 [0.410, 0.802]`; those of none in a column of their own."""
    joined = text.copy()
    for low in [name for name in map(str, text.columns) if name == "low" or re.search("_low(_pct)?$", name)]:
        high = low.replace("low", "high") if low == "low" else re.sub("_low(?=_pct$|$)", "_high", low)
        estimate = _estimate_of(low, text)
        if estimate is None or high not in text.columns:
            continue
        bounds = "[" + text[low] + ", " + text[high] + "]"
        bounds = bounds.where(text[low] != "", "")
        joined[estimate] = (text[estimate] + " " + bounds).str.strip() if estimate in text.columns else bounds
        joined = joined.drop(columns=[low, high])
    return joined


def _estimate_of(low: str, text: pd.DataFrame) -> str | None:
    """The column that the bound is of; a new one for an interval by another way; None for a lowest value."""
    if low == "low":
        return next((name for name in ("value", "difference") if name in text.columns), None)
    base = re.sub("_low(?=_pct$|$)", "", low)
    known = (f"{base}_share", f"{base}_interval", base)
    return next((name for name in known if name in text.columns), f"{base} {_BOUNDS}")


def _paper(table: Table) -> list[str]:
    return [f"as the paper's {table.paper}"] if table.paper else []


def _compared(made_from: Mapping[str, Json], table: Table) -> list[str]:
    """Whose labels the judges are compared with, which sides with each other, and which matches count."""
    selection = made_from.get("selection")
    is_against = bool(made_from.get("reference")) and not _AGAINST_PEOPLE.isdisjoint(table.needs)
    notes = [f"reference: {made_from['reference']}"] if is_against else []
    sides = made_from.get("compared")
    if isinstance(sides, Sequence) and table.name in COMPARED:
        notes.append(f"left: {sides[0]}; right: {sides[1]}")
    if isinstance(selection, Mapping) and {"error_pairs", "findings"} & {*table.needs}:
        notes.append("matches: confirmed" if selection["matches"] == "confirmed" else "matches: proposed and confirmed")
    return notes


def _constant(cells: pd.DataFrame) -> dict[str, str]:
    """Keys that are alike in all rows, with what they are; nothing is said of all splits and all impacts."""
    names = [name for name in KEYS if name in cells.columns and cells[name].nunique() == 1]
    return {name: str(cells[name].iloc[0]) for name in names}


def _alike(same: Mapping[str, str]) -> list[str]:
    return [f"{words(name)}: {value}" for name, value in same.items() if value not in {"", "all"}]


def _reason_in_words(reason: str) -> str:
    """`f1, mean_sd interval: no units` as `F1, mean SD interval: no units`."""
    parts = [part.partition(": ") for part in reason.split("; ")]
    return "; ".join(f"{', '.join(map(_named, names.split(', ')))}{colon}{why}" for names, colon, why in parts)


def _named(estimate: str) -> str:
    """The estimate in words; the kind of gap after it stays."""
    if estimate.endswith("_low"):
        return f"{words(estimate.removesuffix('_low'))} interval"
    name, space, gap = estimate.partition(" ")
    return words(name) + space + gap


def _empty(cells: pd.DataFrame) -> list[str]:
    """Reasons where nothing is empty, and what no row has."""
    return [str(name) for name in cells.columns if len(cells) and (cells[name] == "").all()]


def _abbreviations(frame: pd.DataFrame) -> list[str]:
    """What the dimensions of the table are called in full."""
    known = rubrics()
    named = {
        str(name) for column in ("dimension", "error_dimension") if column in frame.columns for name in frame[column]
    }
    full = [
        f"{name} {known[name].title}" for name in DIMENSION_ORDER if name in known and name in named | {*frame.columns}
    ]
    return [", ".join(full) + "."] if full else []


def _notes(made_from: Mapping[str, Json], table: Table, *, has_interval: bool, has_gap: bool) -> tuple[str, ...]:
    notes = []
    if has_interval:
        notes.append(f"In brackets 95 % intervals: {table.interval}.")
    if has_gap:
        notes.append("An empty cell is undefined; the last column says why.")
    if "missing_rule" in made_from and made_from["missing"] != "drop":
        notes.append(f"Here {made_from['missing_rule']}.")
    return tuple(notes)
