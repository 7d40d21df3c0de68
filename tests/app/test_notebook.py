"""The way in from Python, and the example notebook, cell by cell."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import func, select

import tracejury as tj
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import Message
from tracejury.judging.records import Verdict
from tracejury.judging.reports import rows
from tracejury.judging.store import WorkspaceError, tables

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples"
NOTEBOOK = ROOT / ".github" / "examples" / "agreement.ipynb"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tj.Workspace:
    study = tj.open(tmp_path_factory.mktemp("study"), create=True)
    study.ingest(SAMPLES / "trail")
    study.judge()
    command = ("labels", "import", ROOT / "data" / "labels" / "ada.json", "--home", study.store.home)
    subprocess.run([sys.executable, "-m", "tracejury", *map(str, command)], check=True, capture_output=True)
    study.match()
    return study


@pytest.mark.parametrize(
    ("name", "types"),
    [("labels", rows.LABELS), ("scores", rows.SCORES), ("reviews", rows.REVIEWS), ("verdicts", rows.VERDICTS),
     ("findings", rows.FINDINGS), ("matches", rows.MATCHES), ("messages", rows.MESSAGES)],
)  # fmt: skip
def test_every_table_has_rows_and_the_documented_types(opened: tj.Workspace, name: str, types: rows.Types) -> None:
    frame = getattr(opened, name)()
    assert len(frame) > 0
    assert {column: str(kind) for column, kind in frame.dtypes.items()} == {
        column: str(pd.Series(dtype=kind).dtype) for column, kind in types.items()
    }


def test_a_mistyped_path_makes_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"no workspace at .*/typo\. Try: correct the path, or create=True"):
        tj.open(tmp_path / "typo")
    assert list(tmp_path.iterdir()) == []


def test_a_message_has_every_field_of_the_trace_format() -> None:
    trace = tj.read(SAMPLES / "trail")[0].trace
    frame = rows.messages_frame([replace(trace, messages=(Message("assistant", "Six.", reasoning="Look it up."),))])
    assert list(frame.columns) == ["trace_id", "message", *(one.name for one in fields(Message))]
    assert frame["reasoning"].tolist() == ["Look it up."]


def test_spans_come_as_pandas_and_as_arrow(opened: tj.Workspace) -> None:
    frame = opened.spans()
    assert opened.to_arrow().column_names == list(frame.columns)
    assert opened.to_arrow().num_rows == len(frame) == opened.traces()["spans"].sum()


def test_a_table_under_filters_is_the_one_of_the_report(opened: tj.Workspace, tmp_path: Path) -> None:
    made = opened.table("table_04_scores", reference="ada")
    files = opened.report(tmp_path / "tables", reference="ada", draws=2000)
    written = pd.read_csv(tmp_path / "tables" / "table_04_scores.csv")
    assert tmp_path / "tables" / "table_04_scores.csv" in files
    assert list(made["n"]) == list(written["n"])


@pytest.mark.parametrize(
    ("filters", "remedy"),
    [
        ({"human": "ada"}, "Try: reference"),
        ({"reference": "nobody"}, "Try: ada"),
        ({"matches": "all"}, "Try: proposed; confirmed"),
        ({"missing": "zero"}, "Try: drop; disagree"),
    ],
)
def test_a_wrong_filter_names_those_that_exist(opened: tj.Workspace, filters: dict[str, str], remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        opened.table("table_04_scores", **filters)


def test_a_wrong_table_names_those_that_exist(opened: tj.Workspace) -> None:
    with pytest.raises(ValueError, match="table_03_caught"):
        opened.table("table_99")


def test_files_are_read_without_a_workspace_and_what_is_rejected_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    read = tj.read(SAMPLES / "otlp", tmp_path)
    assert len(read) > 0
    assert [Path(one.file).name for one in read.rejected] == ["bad.json"]
    assert set(read.spans()["trace_id"]) == {trace.trace_id for trace in read}


def test_one_trace_is_judged_and_nothing_is_stored(opened: tj.Workspace) -> None:
    before = len(opened.verdicts())
    verdict = tj.judge(opened.trace(str(opened.traces()["trace_id"].iloc[0])), "TC")
    assert isinstance(verdict, Verdict)
    assert verdict.rubric == "TC"
    assert len(opened.verdicts()) == before


@pytest.mark.parametrize(
    ("model", "settings", "problem"),
    [
        ("checks", {"traces": ["nope"]}, "no trace nope"),
        ("checks", {"repeats": 5}, "do not take repeats"),
        ("gpt-nosuch-9", {}, "no provider is known"),
    ],
)
def test_what_cannot_be_judged_leaves_no_run_behind(
    opened: tj.Workspace, model: str, settings: dict[str, object], problem: str
) -> None:
    with read_transaction(opened.store.engine) as connection:
        before = connection.scalar(select(func.count()).select_from(tables.run))
    with pytest.raises((KeyError, ValueError), match=problem):
        opened.judge(model, dimensions=["TC"], **settings)  # type: ignore[arg-type]
    with read_transaction(opened.store.engine) as connection:
        assert connection.scalar(select(func.count()).select_from(tables.run)) == before


def test_a_trace_shows_its_tree_as_text_only(opened: tj.Workspace) -> None:
    trace = opened.trace(str(opened.traces()["trace_id"].iloc[0]))
    shown = trace._repr_html_()
    assert shown.count("<") == shown.count("<p>") + shown.count("</p>") + shown.count("<pre>") + shown.count("</pre>")
    assert f"S0 {trace.spans()['kind'].iloc[0]}" in shown


def test_alpha_is_that_of_the_published_example() -> None:
    ratings = [[1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None], [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
               [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None], [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None]]  # fmt: skip
    long = pd.DataFrame(
        [
            {"unit": f"u{unit}", "rater": f"r{rater}", "value": value}
            for rater, row in enumerate(ratings)
            for unit, value in enumerate(row)
        ]
    )
    assert tj.alpha(long, "nominal")["value"] == pytest.approx(0.743, abs=0.001)  # Krippendorff 2011, example D
    assert tj.alpha(long)["value"] == pytest.approx(0.849, abs=0.001)
    for level in ("nominal", "interval", "ratio"):
        low, value, high = tj.alpha(long, level)[["low", "value", "high"]]
        assert low < value < high
    constant = tj.alpha(long.assign(value=1.0))
    assert (constant["reason"], np.isnan(constant["value"])) == ("no variation", True)


def test_a_frame_without_the_columns_is_refused_with_those_it_needs() -> None:
    with pytest.raises(ValueError, match="Try: a pandas data frame with unit, rater, value"):
        tj.alpha([[1, 2], [1, 2]])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="error_pairs lacks relevant, caught, localized"):
        tj.precision_recall(pd.DataFrame(columns=["trace_id", "error_id", "impact", "dimension"]))


def test_the_names_are_offered_before_they_are_loaded() -> None:
    assert {"open", "read", "judge", "alpha"} <= set(dir(tj))


def test_a_split_is_the_file_that_the_command_takes(opened: tj.Workspace, tmp_path: Path) -> None:
    ids = sorted(opened.traces()["trace_id"])
    (tmp_path / "halves.json").write_text(json.dumps({"dev": ids[::2], "test": ids[1::2]}), encoding="utf-8")
    made = opened.table("table_03_caught", reference="ada", split=str(tmp_path / "halves.json"))
    assert {"dev", "test"} <= set(made["split"])


def test_precision_and_recall_come_from_error_pairs(opened: tj.Workspace) -> None:
    pairs = opened.inputs().error_pairs
    assert pairs is not None
    table = tj.precision_recall(pairs)
    assert set(table["kind"]) == {"caught", "localized"}


def test_the_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, tracejury; "
        "print([n for n in ('pandas', 'streamlit', 'sqlalchemy', 'litellm') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_notebook_goes_from_files_to_a_table_and_a_chart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert 8 <= len(code) <= 20
    names: dict[str, object] = {}
    for cell in code:
        exec(compile(cell, "cell", "exec"), names)  # our own notebook
    assert len(names["scores"]) > 0  # type: ignore[arg-type]
    assert type(names["chart"]).__module__.startswith("plotly")
