"""The tables of the Agent GPA paper, digit for digit, from frames rebuilt out of its published counts.

`paper_counts.json` holds the counts behind the paper's tables and what it printed; frames are rebuilt from
them row by row and go through the same functions as a workspace's own.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.rounding import half_up, percent
from tracejury.judging.agreement.tables import TABLES, printed, tables_from_frames

COUNTS = json.loads((Path(__file__).parent / "paper_counts.json").read_text(encoding="utf-8"))
TABLE = {table.name: table for table in TABLES}
BY_PAPER = {table.paper: table for table in TABLES}
RATES = ("precision", "recall", "f1", "f2", "accuracy")


class Cell(NamedTuple):
    kind: str
    split: str
    impact: str
    dimension: str
    tp: int
    fp: int
    fn: int
    tn: int
    printed: tuple[str, ...]
    coverage: str
    table: int


def read_cells() -> Iterator[Cell]:
    for line in COUNTS["cells"]:
        kind, split, impact, dimension, tp, fp, fn, tn, *rates, coverage, table = line.split(" ")
        blanks = tuple("" if rate == "-" else rate for rate in rates)
        yield Cell(kind, split, impact, dimension, int(tp), int(fp), int(fn), int(tn), blanks, coverage, int(table))


CELLS = tuple(read_cells())


def rebuilt_error_pairs() -> pd.DataFrame:
    """Rows that have the paper's counts: per judge, split and impact the relevant errors come first."""
    at = {(c.kind, c.split, c.impact, c.dimension): c for c in CELLS}
    rows = []
    for (kind, split, impact, dimension), caught in at.items():
        if kind != "caught" or impact == "all":
            continue
        localized = at["localized", split, impact, dimension]
        positives = caught.tp + caught.fn
        for i in range(caught.tp + caught.fp + caught.fn + caught.tn):
            relevant = i < positives
            place = i if relevant else i - positives
            rows.append(
                {
                    "trace_id": f"{split}-{i % 59}",
                    "error_id": f"{impact}-{i}",
                    "impact": impact,
                    "split": split,
                    "dimension": dimension,
                    "relevant": relevant,
                    "caught": place < (caught.tp if relevant else caught.fp),
                    "localized": place < (localized.tp if relevant else localized.fp),
                }
            )
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def paper_tables() -> dict[str, pd.DataFrame]:
    made = tables_from_frames(Inputs(error_pairs=rebuilt_error_pairs(), draws=50))
    return {name: printed(frame, TABLE[name]) for name, frame in made.items()}


def only(frame: pd.DataFrame, **where: str) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"table{c.table}-{c.split}-{c.dimension}")
def test_rate_cell_prints_as_in_the_paper(cell: Cell, paper_tables: dict[str, pd.DataFrame]) -> None:
    table = BY_PAPER[f"Table {cell.table}"]
    row = only(paper_tables[table.name], split=cell.split, dimension=cell.dimension)
    assert tuple(row[rate] for rate in RATES) == cell.printed
    assert [row[c] for c in ("tp", "fp", "fn", "tn")] == [str(c) for c in (cell.tp, cell.fp, cell.fn, cell.tn)]
    assert (row["kind"], row["impact"]) == (cell.kind, cell.impact)


@pytest.mark.parametrize("cell", CELLS, ids=lambda c: f"{c.kind}-{c.split}-{c.impact}-{c.dimension}")
def test_coverage_estimate_prints_as_in_tables_9_and_10(cell: Cell, paper_tables: dict[str, pd.DataFrame]) -> None:
    name = BY_PAPER["Table 9" if cell.kind == "caught" else "Table 10"].name
    row = only(paper_tables[name], split=cell.split, dimension=cell.dimension, impact=cell.impact)
    assert row["coverage_pct"] == cell.coverage
    assert (row["hits"], row["n"]) == (str(cell.tp), str(cell.tp + cell.fn))


def test_there_are_96_cells_and_every_table_is_reached() -> None:
    assert len(CELLS) == 96
    assert {cell.table for cell in CELLS} == {3, 6, *range(11, 17)}


@pytest.mark.parametrize("cell", [c for c in CELLS if c.kind == "caught"], ids=str)
def test_table_1_maps_the_papers_errors(cell: Cell, paper_tables: dict[str, pd.DataFrame]) -> None:
    row = only(paper_tables["table_01_error_map"], split=cell.split, dimension=cell.dimension, impact=cell.impact)
    assert row["mapped"] == str(cell.tp + cell.fn)
    assert row["errors"] == str(cell.tp + cell.fp + cell.fn + cell.tn)


def suite_pairs() -> pd.DataFrame:
    """The systems of Tables 2 and 5, one judge each: the hits of each impact caught, then localized.

    Table 2 counts caught and Table 5 localized errors of the same systems; in every cell localized <= caught.
    """
    caught = {tuple(line.split(" ")[:2]): line.split(" ") for line in COUNTS["table2"]}
    localized = {tuple(line.split(" ")[:2]): line.split(" ") for line in COUNTS["table5"]}
    rows = []
    for (impact, judge_model), (_, _, hits, n, _) in caught.items():
        if impact == "all":
            continue
        for i in range(int(n)):
            rows.append(
                {
                    "trace_id": f"t{i % 59}",
                    "error_id": f"{impact}-{i}",
                    "impact": impact,
                    "judge_model": judge_model,
                    "dimension": "any",
                    "relevant": True,
                    "caught": i < int(hits),
                    "localized": i < int(localized[impact, judge_model][2]),
                }
            )
    return pd.DataFrame(rows)


# The paper's slips, as its golden page lists them: (table, impact, system) -> what ours must show.
RIGHT = {
    (2, "all", "gpa_dev"): (270, 289, "93.43"),  # printed 93.94
    (2, "high", "baseline_test_no_control_flow"): (92, 129, "71.32"),  # printed 71.31
    (5, "high", "baseline_test_control_flow"): (92, 129, "71.32"),  # printed 71.31
    (5, "all", "gpa_dev"): (244, 289, "84.43"),  # 46 + 69 + 129; printed 243 (84.08)
    (5, "all", "gpa_test"): (240, 281, "85.41"),  # 39 + 83 + 118; printed 241 (85.77)
}


@pytest.mark.parametrize("number", [2, 5])
def test_suite_coverage_prints_as_in_the_paper_and_its_slips_are_right(number: int) -> None:
    table = BY_PAPER[f"Table {number}"]
    made = printed(table.build(Inputs(error_pairs=suite_pairs())), table)
    seen = 0
    for line in COUNTS[f"table{number}"]:
        impact, judge_model, hits, n, share = line.split(" ")
        row = only(made, impact=impact, judge_model=judge_model)
        right = RIGHT.get((number, impact, judge_model), (int(hits), int(n), share))
        assert row["printed"] == f"{right[0]}/{right[1]} ({right[2]}%)"
        seen += 1
    assert seen == 16


def test_the_average_alpha_of_table_7_is_not_what_the_introduction_says() -> None:
    alphas = [Fraction(row[2]) for row in COUNTS["table7"]]
    assert half_up(sum(alphas) / len(alphas), 2) == "0.82"  # the paper's text says 0.77
    assert len(COUNTS["slips"]) == len(RIGHT) + 1 == 6


def pairs_of(dimension: str, judge_model: str, counts: dict[tuple[int, int], int], split: str = "test") -> pd.DataFrame:
    """Score pairs with the given number of each (human, model)."""
    scores = [pair for pair, count in counts.items() for _ in range(count)]
    return pd.DataFrame(
        {
            "trace_id": [f"t{i}" for i in range(len(scores))],
            "dimension": dimension,
            "judge_model": judge_model,
            "split": split,
            "reference_score": [reference for reference, _ in scores],
            "judge_score": [model for _, model in scores],
        }
    )


TABLE_4 = [(split, dimension, *rest, fit) for split, dimension, *rest, fits in COUNTS["table4"] for fit in fits]


@pytest.mark.parametrize(("split", "dimension", "off_by_one", "bucketed", "_correl", "fit"), TABLE_4)
def test_table_4_prints_as_in_the_paper(
    split: str, dimension: str, off_by_one: str, bucketed: str, _correl: str, fit: list[int]
) -> None:
    n, hits_ob1, hits_3pt = fit
    # (1, 2) agrees in buckets and within one; (0, 1) within one only; (0, 2) in neither.
    counts = {(1, 2): hits_3pt, (0, 1): hits_ob1 - hits_3pt, (0, 2): n - hits_ob1}
    table = BY_PAPER["Table 4"]
    made = printed(table.build(Inputs(score_pairs=pairs_of(dimension, "", counts, split), draws=20)), table)
    row = only(made, dimension=dimension, split=split)
    assert (row["off_by_one"], row["bucketed"], row["n"]) == (off_by_one, bucketed, str(n))


@pytest.mark.parametrize(
    ("model", "dimension", "n", "bucketed", "two_point", "nmae", "_correl", "hits_3pt", "hits_2pt", "error_sum"),
    COUNTS["table17"],
)
def test_tables_8_and_17_print_as_in_the_paper(
    model: str,
    dimension: str,
    n: int,
    bucketed: str,
    two_point: str,
    nmae: str,
    _correl: str | None,
    hits_3pt: int,
    hits_2pt: int,
    error_sum: int,
) -> None:
    # Misses of three buckets: `twos` by two buckets, the rest by one; misses of two points involve a 0.
    misses, crossing = n - hits_3pt, n - hits_2pt
    twos = error_sum - misses
    counts = {(2, 2): hits_3pt, (0, 3): twos, (0, 1): crossing - twos, (1, 3): misses - crossing}
    assert min(counts.values()) >= 0
    pairs = pairs_of(dimension, model, counts)
    for number, columns in (8, ("bucketed", "nmae")), (17, ("bucketed", "two_point", "nmae")):
        table = BY_PAPER[f"Table {number}"]
        row = only(
            printed(table.build(Inputs(score_pairs=pairs, draws=20)), table), dimension=dimension, judge_model=model
        )
        expected = {"bucketed": bucketed, "two_point": two_point, "nmae": nmae}
        assert {c: row[c] for c in columns} == {c: expected[c] for c in columns}


def counts_of(cells: list[str]) -> dict[tuple[int, int], int]:
    """`01x3`: three traces that the human scored 0 and the judge 1."""
    return {(int(cell[0]), int(cell[1])): int(cell[3:]) for cell in cells}


@pytest.mark.parametrize("line", COUNTS["constructed_table4"])
def test_every_estimate_of_a_row_of_table_4_prints_from_one_set_of_pairs(line: str) -> None:
    split, dimension, off_by_one, bucketed, correl, *cells = line.split(" ")
    table = BY_PAPER["Table 4"]
    pairs = pairs_of(dimension, "", counts_of(cells), split)
    row = only(printed(table.build(Inputs(score_pairs=pairs, draws=20)), table), dimension=dimension, split=split)
    assert (row["off_by_one"], row["bucketed"], row["pearson"]) == (off_by_one, bucketed, correl)
    assert [split, dimension, off_by_one, bucketed, correl] in [known[:5] for known in COUNTS["table4"]]


@pytest.mark.parametrize("line", COUNTS["constructed_table17"])
def test_every_estimate_of_a_row_of_table_17_prints_from_one_set_of_pairs(line: str) -> None:
    model, dimension, *estimates = line.split(" ")
    bucketed, two_point, correl, nmae = estimates[:4]
    table = BY_PAPER["Table 17"]
    pairs = pairs_of(dimension, model, counts_of(estimates[4:]))
    row = only(printed(table.build(Inputs(score_pairs=pairs, draws=20)), table), dimension=dimension, judge_model=model)
    blank = "" if correl == "-" else correl
    assert [row[c] for c in ("bucketed", "two_point", "pearson", "nmae")] == [bucketed, two_point, blank, nmae]
    known = [[*row[:2], row[3], row[4], row[6] or "-", row[5]] for row in COUNTS["table17"]]
    assert [model, dimension, bucketed, two_point, correl, nmae] in known


def test_table_8_is_the_first_model_of_table_17() -> None:
    first = {row[1]: (row[2], row[3], row[6], row[5]) for row in COUNTS["table17"] if row[0] == "Claude-4-Sonnet"}
    assert {row[0]: tuple(row[1:]) for row in COUNTS["table8"]} == first


@pytest.mark.parametrize(
    ("hits", "n", "half_up_text", "float_text"),
    [(52, 128, "0.4063", "0.4062"), (25, 32, "0.7813", "0.7812")],
)
def test_a_tie_that_floats_misprint_is_rounded_up(hits: int, n: int, half_up_text: str, float_text: str) -> None:
    assert half_up(hits / n, 4) == half_up(Fraction(hits, n), 4) == half_up_text
    assert f"{hits / n:.4f}" == float_text
    assert percent(52 / 128) == "40.63"


@pytest.mark.shared
def test_the_fixture_is_the_golden_file(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "paper_tables.json").read_text(encoding="utf-8"))
    theirs = {
        (c["kind"], c["split"], c["impact"].replace("med", "medium"), c["judge"]): (
            *(c[k] for k in ("TP", "FP", "FN", "TN")),
            tuple(c["printed"][k] or "" for k in ("P", "R", "F1", "F2", "Acc")),
            c["printed_coverage_pct"],
            c["table"],
        )
        for c in golden["cells"]
    }
    assert theirs == {(c.kind, c.split, c.impact, c.dimension): tuple(c[4:]) for c in CELLS}
    for number in ("table2", "table5"):
        rows = {tuple(line.split(" ")[:2]): line.split(" ")[2:] for line in COUNTS[number]}
        for impact, judge_models in golden[number].items():
            for judge_model, cell in judge_models.items():
                ours = rows[impact.replace("med", "medium"), judge_model]
                assert ours == [str(cell["hit"]), str(cell["n"]), cell["pct"]]
    assert COUNTS["slips"] == golden["known_paper_typos"]
