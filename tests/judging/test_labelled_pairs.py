"""Pairs drawn for labels, and the rule measured on what came back."""

from pathlib import Path

import orjson
import pandas as pd
import pytest
from click.testing import CliRunner
from sqlalchemy import update
from tests.build import TRACE, error_label, finding, workspace

from tracejury.app.cli import main
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.labelled_pairs import (
    KEY,
    SHOWN,
    draw_pairs,
    key_of,
    population,
    score_pairs,
    write_pairs,
)
from tracejury.judging.matching.own_rates import own_rates
from tracejury.judging.matching.rule import RULE
from tracejury.judging.records import Call, Verdict
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace, open_workspace, tables

DATA = Path(__file__).resolve().parents[2] / "data"
SAME = "The tool is called with a day it does not know."


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    space = workspace(tmp_path / "home")
    errors = [error_label(1), error_label(2, spans=(2,), description="=The plan repeats a question.", evidence=())]
    with write_transaction(space.engine) as connection:
        put_labels(connection, errors=errors, scores=(), reviews=(), author="ada")
    found = (finding(SAME, 4), finding("A cheerful greeting is missing.", 1), finding("Pears are not sorted.", 2))
    answer = Verdict(
        rubric="TC", trace_id=TRACE, state="scored", score=0, criteria="", rationale="", findings=found,
        call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(space.engine, [answer], model="m", author="test")
    return space


def every_pair(opened: Workspace) -> pd.DataFrame:
    with read_transaction(opened.engine) as connection:
        return population(connection)


def labelled(opened: Workspace, out: Path, n: int = 100) -> pd.DataFrame:
    """A file in which the pair of equal words is the same error and nothing else."""
    drawn = draw_pairs(every_pair(opened), n, seed=1)
    write_pairs(drawn, out)
    return drawn


def fill(out: Path) -> None:
    rows = pd.read_csv(out, dtype=str, keep_default_na=False)
    rows["same_error"] = ["yes" if row.error == row.finding else "no" for row in rows.itertuples()]
    rows.to_csv(out, index=False)


def test_every_error_meets_every_finding_of_its_trace_and_place_and_proposal_are_strata(opened: Workspace) -> None:
    pairs = every_pair(opened)
    assert len(pairs) == 2 * 3
    assert pairs["proposed"].sum() == 1
    assert set(pairs["stratum"]) == {
        "same span, proposed", "same span, not proposed", "neighbouring span, not proposed", "other span, not proposed",
    } & set(pairs["stratum"])  # fmt: skip
    assert "same span, proposed" in set(pairs["stratum"])


def test_inclusion_is_what_was_drawn_of_each_stratum_and_the_seed_repeats_it(opened: Workspace) -> None:
    pairs = every_pair(opened)
    drawn = draw_pairs(pairs, 4, seed=3)
    assert len(drawn) == 4
    for stratum, rows in drawn.groupby("stratum"):
        assert rows["inclusion"].unique().tolist() == [len(rows) / (pairs["stratum"] == stratum).sum()]
    assert drawn.equals(draw_pairs(pairs.sample(frac=1, random_state=0), 4, seed=3))
    assert drawn["pair"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.jsonl"])
def test_the_file_to_label_tells_nothing_of_the_rule(opened: Workspace, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    labelled(opened, out)
    rows = (
        pd.read_csv(out).to_dict("records")
        if name.endswith("csv")
        else [orjson.loads(line) for line in out.read_bytes().splitlines()]
    )
    assert list(rows[0]) == list(SHOWN)
    assert not {"proposed", "stratum", "inclusion"} & set(SHOWN)
    assert pd.read_csv(key_of(out)).columns.tolist() == list(KEY)
    with pytest.raises(FileExistsError, match="may hold labels"):
        write_pairs(draw_pairs(every_pair(opened), 1, seed=1), out)


def test_text_of_a_trace_runs_in_no_spreadsheet(opened: Workspace, tmp_path: Path) -> None:
    labelled(opened, tmp_path / "pairs.csv")
    assert "'=The plan" in (tmp_path / "pairs.csv").read_text(encoding="utf-8")


def test_the_rule_is_measured_on_what_people_wrote(opened: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    labelled(opened, out)
    fill(out)
    with read_transaction(opened.engine) as connection:
        score = score_pairs(connection, out)
    assert (score.labelled, score.unlabelled, score.rejected) == (6, 0, ())
    assert (score.rates.precision.value, score.rates.recall.value) == (1.0, 1.0)
    counts = score.rates.of_errors
    assert (counts.tp, counts.fp, counts.fn, counts.tn) == (1, 0, 0, 1)


def test_a_bad_row_is_named_by_its_line(opened: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    labelled(opened, out)
    fill(out)
    rows = pd.read_csv(out, dtype=str, keep_default_na=False)
    rows.loc[1, "same_error"], rows.loc[2, "pair"], rows.loc[4, "pair"] = "maybe", "99", rows.loc[3, "pair"]
    rows.loc[0, "finding_evidence"], rows.loc[5, "same_error"] = "two\nlines", ""
    rows.to_csv(out, index=False)
    with read_transaction(opened.engine) as connection:
        score = score_pairs(connection, out)
    assert [(one.place, one.reason) for one in score.rejected] == [
        ("line 4", "same_error is 'maybe'"),
        ("line 5", "its pair is not in the key"),
        ("line 7", f"pair {rows.loc[3, 'pair']} is already in an earlier line"),
    ]
    assert (score.labelled, score.unlabelled) == (2, 4)


def test_an_error_that_changed_since_is_no_labelled_pair(opened: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "pairs.csv"
    labelled(opened, out)
    fill(out)
    with write_transaction(opened.engine) as connection:
        label = tables.error_label
        connection.execute(update(label).where(label.c.label_id == "label-2").values(description="Another text."))
    with read_transaction(opened.engine) as connection:
        score = score_pairs(connection, out)
    assert (score.labelled, len(score.rejected)) == (3, 3)
    assert all("was changed since it was drawn" in one.reason for one in score.rejected)


def test_the_commands_draw_and_score_shipped_samples(tmp_path: Path) -> None:
    home, out = ["--home", str(tmp_path / "home")], tmp_path / "pairs.jsonl"
    run = CliRunner().invoke
    for words in (
        ["ingest", str(DATA / "samples")],
        ["labels", "import", *map(str, sorted((DATA / "labels").glob("*.json")))],
        ["judge", "--dimensions", "all"],
        ["match", "sample", "--out", str(out), "--n", "30"],
    ):
        outcome = run(main, [*words, *home])
    assert outcome.exit_code == 0, outcome.output
    rows = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert 0 < len(rows) <= 30
    nothing = run(main, ["match", "score", str(out), *home])
    assert nothing.exit_code == 1
    assert "0 labelled pairs" in nothing.output
    out.write_bytes(b"".join(orjson.dumps({**row, "same_error": "no"}) + b"\n" for row in rows))
    scored = run(main, ["match", "score", str(out), *home])
    assert scored.exit_code == 0, scored.output
    assert "recall: n/a (no positives)" in scored.output
    with read_transaction(open_workspace(tmp_path / "home").engine) as connection:
        (own,) = own_rates(connection).to_dict("records")
        frames = load_frames(connection, Filters())
    assert (own["rule"], own["rule_precision"], own["tp"] + own["fn"]) == (RULE, 0.0, 0)
    assert frames.rule_rates["rule_precision_n"].tolist() == [own["rule_precision_n"]]
    out.write_bytes(b"not JSON\n")
    assert "(line 1): its pair is not in the key" in run(main, ["match", "score", str(out), *home]).output
    key_of(out).unlink()
    assert "keep it beside the pairs" in run(main, ["match", "score", str(out), *home]).output
