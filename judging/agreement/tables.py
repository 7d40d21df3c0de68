"""Every report table and every metric by name: the paper's Tables 1 to 17 and ours, from frames to frames.

To add a table: one function from `Inputs` to a frame, one line in `TABLES`. A metric: one line in `METRICS`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import pandas as pd

from judging.agreement import errors, frames, reliability, scores
from judging.agreement.frames import Impact, Kind, Missing
from judging.agreement.intervals import DRAWS, SEED, Method
from judging.agreement.rounding import half_up, percent

InputName = Literal["error_pairs", "score_pairs", "ratings"]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The frames that tables are made from, each optional, and how figures are made.

    `missing`: whether failed judgements are left out or count as disagreement. `draws=0` computes no
    bootstrap. Derived tables are computed once and shared by the report tables.
    """

    error_pairs: pd.DataFrame | None = None
    score_pairs: pd.DataFrame | None = None
    ratings: pd.DataFrame | None = None
    missing: Missing = "drop"
    draws: int = DRAWS
    seed: int = SEED
    method: Method = "percentile"

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The error pairs, or an empty frame of their columns."""
        return self._frame(self.error_pairs, frames.ERROR_PAIRS)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The score pairs, or an empty frame of their columns."""
        return self._frame(self.score_pairs, frames.SCORE_PAIRS)

    @cached_property
    def error_rates(self) -> pd.DataFrame:
        """`errors.error_table` of the error pairs."""
        return errors.error_table(
            self.errors, missing=self.missing, draws=self.draws, seed=self.seed, method=self.method
        )

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """`errors.coverage_table` of the error pairs."""
        return errors.coverage_table(self.errors, missing=self.missing)

    @cached_property
    def suite(self) -> pd.DataFrame:
        """`errors.suite_coverage` of the error pairs."""
        return errors.suite_coverage(self.errors, missing=self.missing)

    @cached_property
    def score_rates(self) -> pd.DataFrame:
        """`scores.score_table` of the score pairs."""
        return scores.score_table(
            self.scores, missing=self.missing, draws=self.draws, seed=self.seed, method=self.method
        )

    @cached_property
    def consistency(self) -> pd.DataFrame:
        """`reliability.reliability_table` of the ratings."""
        ratings = self._frame(self.ratings, frames.RATINGS)
        return reliability.reliability_table(ratings, draws=self.draws, seed=self.seed, method=self.method)

    @staticmethod
    def _frame(given: pd.DataFrame | None, columns: tuple[str, ...]) -> pd.DataFrame:
        return frames.empty(dict.fromkeys(columns, "object")) if given is None else given


@dataclass(frozen=True, kw_only=True)
class Table:
    """A report table: `name` is its file name, `build` makes it, `digits` and `percents` print it."""

    name: str
    title: str
    needs: tuple[InputName, ...]
    build: Callable[[Inputs], pd.DataFrame]
    paper: str | None = None
    digits: int = 4
    percents: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A figure of the product: its function (whose docstring defines it) and the table and column that show it."""

    name: str
    title: str
    function: Callable[..., object]
    table: str
    column: str
    best: Literal["high", "low", "zero"] = "high"


def tables_from_frames(inputs: Inputs, names: Iterable[str] | None = None) -> dict[str, pd.DataFrame]:
    """Every table of `names` (default: each whose inputs are given) as a frame, in the order of `TABLES`.

    A table asked for by name whose input is absent comes back empty with its columns and types. Raises
    ValueError for a name that is no table.
    """
    if names is None:
        return {table.name: table.build(inputs) for table in TABLES if can_build(table, inputs)}
    wanted = list(names)
    unknown = sorted(set(wanted) - {table.name for table in TABLES})
    if unknown:
        raise ValueError(f"no such table: {unknown!r}; known are {[table.name for table in TABLES]!r}")
    return {table.name: table.build(inputs) for table in TABLES if table.name in wanted}


def can_build(table: Table, inputs: Inputs) -> bool:
    """Whether every input of the table is given."""
    return all(getattr(inputs, name) is not None for name in table.needs)


def printed(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The frame as text: figures half-up, percentages under `<column>_pct`, empty where undefined or absent."""
    columns: dict[str, list[str]] = {}
    for column in map(str, frame.columns):
        values = frame[column]
        if column in table.percents:
            columns[f"{column}_pct"] = [percent(_number(value), 2) for value in values]
        elif pd.api.types.is_float_dtype(values.dtype):
            columns[column] = [half_up(_number(value), table.digits) for value in values]
        else:
            columns[column] = ["" if pd.isna(value) else str(value) for value in values]
    return pd.DataFrame(columns, columns=list(columns), dtype="object")


def csv_text(frame: pd.DataFrame, table: Table) -> str:
    """`printed` as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    text = printed(frame, table)
    names = [str(c) for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c].dtype)]
    for column in names:
        if column in text.columns:
            text[column] = [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in text[column]]
    return text.to_csv(index=False, lineterminator="\n")


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def _number(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[arg-type, call-overload]


def _rates(kind: Kind, impact: Impact) -> Callable[[Inputs], pd.DataFrame]:
    def build(inputs: Inputs) -> pd.DataFrame:
        table = inputs.error_rates
        return table[(table["kind"] == kind) & (table["impact"] == impact)].reset_index(drop=True)

    return build


def _coverage(kind: Kind) -> Callable[[Inputs], pd.DataFrame]:
    return lambda inputs: inputs.coverage[inputs.coverage["kind"] == kind].reset_index(drop=True)


def _suite(kind: Kind) -> Callable[[Inputs], pd.DataFrame]:
    return lambda inputs: inputs.suite[inputs.suite["kind"] == kind].reset_index(drop=True)


def _score_columns(*metrics: str) -> Callable[[Inputs], pd.DataFrame]:
    columns = [*scores.KEYS, *scores.LEFT_OUT]
    columns += [f"{metric}{end}" for metric in metrics for end in ("", "_low", "_high")]
    return lambda inputs: inputs.score_rates[columns]


_ERRORS: Final[tuple[InputName, ...]] = ("error_pairs",)
_SCORES: Final[tuple[InputName, ...]] = ("score_pairs",)
_RATINGS: Final[tuple[InputName, ...]] = ("ratings",)
_COVERED: Final = ("coverage", "coverage_low", "coverage_high")

TABLES: Final[tuple[Table, ...]] = (
    Table(
        name="table_01_error_map",
        title="Errors mapped to each judge, by impact",
        paper="Table 1",
        needs=_ERRORS,
        build=lambda inputs: errors.error_map(inputs.errors),
        percents=("share",),
    ),
    Table(
        name="table_02_caught_coverage",
        title="Human errors caught by any judge, beside baselines",
        paper="Table 2",
        needs=_ERRORS,
        build=_suite("caught"),
        percents=_COVERED,
    ),
    Table(
        name="table_03_caught",
        title="Caught errors by judge",
        paper="Table 3",
        needs=_ERRORS,
        build=_rates("caught", "all"),
    ),
    Table(
        name="table_04_scores",
        title="Judge scores against human scores",
        paper="Table 4",
        needs=_SCORES,
        build=_score_columns("off_by_one", "bucketed", "pearson", "spearman"),
        digits=3,
    ),
    Table(
        name="table_05_localized_coverage",
        title="Human errors localized by any judge, beside baselines",
        paper="Table 5",
        needs=_ERRORS,
        build=_suite("localized"),
        percents=_COVERED,
    ),
    Table(
        name="table_06_localized",
        title="Localized errors by judge",
        paper="Table 6",
        needs=_ERRORS,
        build=_rates("localized", "all"),
    ),
    Table(
        name="table_07_consistency",
        title="Consistency of judges over runs",
        paper="Table 7",
        needs=_RATINGS,
        build=lambda inputs: inputs.consistency,
        digits=3,
    ),
    Table(
        name="table_08_score_error",
        title="Bucketed agreement and its error",
        paper="Table 8",
        needs=_SCORES,
        build=_score_columns("bucketed", "pearson", "spearman", "nmae", "pair_alpha"),
        digits=3,
    ),
    Table(
        name="table_09_caught_by_impact",
        title="Coverage of caught errors by judge and impact",
        paper="Table 9",
        needs=_ERRORS,
        build=_coverage("caught"),
        percents=_COVERED,
    ),
    Table(
        name="table_10_localized_by_impact",
        title="Coverage of localized errors by judge and impact",
        paper="Table 10",
        needs=_ERRORS,
        build=_coverage("localized"),
        percents=_COVERED,
    ),
    *(
        Table(
            name=f"table_{number}_{kind}_{impact}",
            title=f"{kind.capitalize()} errors of {impact} impact by judge",
            paper=f"Table {number}",
            needs=_ERRORS,
            build=_rates(kind, impact),
        )
        for number, (kind, impact) in enumerate(
            ((kind, impact) for kind in frames.KINDS for impact in frames.IMPACTS[:3]), start=11
        )
    ),
    Table(
        name="table_17_models",
        title="Judge models compared",
        paper="Table 17",
        needs=_SCORES,
        build=_score_columns("bucketed", "two_point", "pearson", "spearman", "nmae"),
        digits=3,
    ),
)
