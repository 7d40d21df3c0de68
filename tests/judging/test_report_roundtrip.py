"""A report from a workspace and one from its inputs as plain CSV are the same, estimate by estimate, on random data."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select
from tests.benchmarks.large import Size, build

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.findings import FINDING_REVIEWS
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.majority import ReferenceKind
from tracejury.judging.agreement.match_rates import RULE_RATES
from tracejury.judging.agreement.tables import TABLES, tables_from_frames
from tracejury.judging.matching.deciding import decide
from tracejury.judging.matching.finding_reviews import review_finding
from tracejury.judging.reports.export import csv_text, inputs_of, opinions_of, write_inputs
from tracejury.judging.reports.filters import Filters, Split
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.reports.plain_csv import read_folder
from tracejury.judging.store import Workspace, tables

SMALL = Size(traces=8, spans=5, repeats=2, errors=2.5, readers=(("ada", 1.0), ("ben", 0.8), ("cleo", 0.6)), second=0.7)
OWN_RATES = pd.DataFrame([dict.fromkeys(RULE_RATES, 30) | {"rule": "own", "rule_recall": None}]).astype(RULE_RATES)
"""Where nothing that is the same error was labelled, so that the recall of the rule is unknown."""
BY_NAME = {table.name: table for table in TABLES}


@pytest.fixture(scope="module", params=[3])
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Several people, judges that fail or do not apply, three runs, matches and findings judged by two people."""
    opened = build(tmp_path_factory.mktemp("random"), SMALL, seed=request.param)
    rng = np.random.default_rng(request.param)
    with write_transaction(opened.engine) as connection:
        proposed = connection.execute(select(tables.match.c.label_id, tables.match.c.finding_key)).all()
        keys = list(connection.scalars(select(tables.finding.c.finding_key)))
        for who in ("dora", "emil"):
            for label_id, key in {tuple(row) for row in proposed[:30]}:
                word: Any = rng.choice(["confirmed", "rejected"])
                decide(connection, label_id=label_id, finding_key=key, status=word, author=who)
            for key in keys[-40:]:
                review: Any = rng.choice(FINDING_REVIEWS[1:] if key % 2 else FINDING_REVIEWS)
                review_finding(connection, finding_key=key, review=str(review), author=who)
    return opened


@pytest.fixture(scope="module")
def given(space: Workspace) -> Inputs:
    """What the tables of the majority are made of, with costs that are not all known."""
    frames = inputs(space, "majority", missing="disagree", draws=10)
    some_unknown = frames.frame("costs").assign(cost_usd=lambda rows: rows["cost_usd"].where(rows.index % 5 > 0))
    return replace(frames, costs=some_unknown, rule_rates=OWN_RATES)


@pytest.fixture(scope="module")
def made(given: Inputs) -> dict[str, pd.DataFrame]:
    return tables_from_frames(given)


def inputs(opened: Workspace, gold: ReferenceKind | None, **more: Any) -> Inputs:
    with read_transaction(opened.engine) as connection:
        traces = list(connection.scalars(select(tables.review.c.trace_id).distinct()))
        parts = tuple((trace, "dev" if n % 3 else "test") for n, trace in enumerate(sorted(traces)))
        filters = Filters(reference=gold, split=Split(name="s", parts=parts), **more)
        frames = load_frames(connection, filters)
        return inputs_of(frames, filters, opinions_of(connection, filters, frames))


def test_inputs_written_and_read_again_give_every_table_to_the_last_digit(
    given: Inputs, made: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    write_inputs(tmp_path, given)
    read: dict[str, Any] = {str(name): frame for name, frame in read_folder(tmp_path).frames.items()}
    again = tables_from_frames(Inputs(**read, missing="disagree", draws=10))
    assert list(made) == list(again)
    filled = {name for name, frame in made.items() if len(frame) > 0} | {"jury_votes"}  # no jury sits there
    assert len(filled) >= len(made) - 3, "the random workspace fills the tables"
    states = given.frame("score_pairs")["state"]
    assert {"scored", "failed", "not_applicable"} <= set(states)
    for name, frame in made.items():
        assert csv_text(frame, BY_NAME[name]) == csv_text(again[name], BY_NAME[name]), name


def test_names_and_texts_that_begin_like_formulas_come_back_as_they_were(tmp_path: Path) -> None:
    """An apostrophe more would change the order of rows, and how alike two rationales are."""
    columns: dict[str, list[object]] = {
        "dimension": ["LC", "LC", "LC"],
        "trace_id": ["t", "t", "t"],
        "repeat": ["0", "1", "2"],
        "judge_model": ["=cmd()", "'=cmd()", "A"],
        "text": ["- no plan\n- no result", "'-1' is wrong", None],
    }
    write_inputs(tmp_path, Inputs(rationales=pd.DataFrame(columns, dtype=object)))
    assert b"'=cmd()" in (tmp_path / "rationales.csv").read_bytes()
    assert read_folder(tmp_path).frames["rationales"].to_dict("list") == columns


def test_every_table_read_back_by_pandas_holds_the_estimates(made: dict[str, pd.DataFrame]) -> None:
    for name, frame in made.items():
        table = BY_NAME[name]
        back = pd.read_csv(
            io.StringIO(csv_text(frame, table)), keep_default_na=False, na_values=[""], dtype_backend="pyarrow"
        )
        assert len(back) == len(frame), name
        for column in map(str, frame.columns):
            if not pd.api.types.is_float_dtype(frame[column].dtype):
                continue
            percent = column in table.percents
            read = pd.to_numeric(back[f"{column}_pct" if percent else column]).astype("float64").to_numpy()
            exact = frame[column].to_numpy(dtype=np.float64, na_value=np.nan) * (100 if percent else 1)
            digits = 2 if percent else table.digits
            assert (np.isnan(read) == np.isnan(exact)).all(), f"{name}.{column}: empty where undefined, and only there"
            assert np.nanmax(np.abs(read - exact), initial=0) <= 0.5 * 10**-digits + 1e-9, f"{name}.{column}"
