"""The Reports page as a person sees it."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
from click.testing import CliRunner
from sqlalchemy import delete
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.marks import choose
from tests.app.workspaces import hold_blind

from tracejury.app import datasets
from tracejury.app.api.exports import export_routes
from tracejury.app.cli import main
from tracejury.app.estimates import estimate
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.reports.filters import Filters
from tracejury.judging.store import Workspace, tables


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    assert "This workspace holds no traces" in open_page("reports").info[0].value


def test_the_button_says_how_many_rows_leave_under_the_current_filter(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports", judge_models="checks")
    rows = len(estimate(Filters(judge_models=("checks",)), "error_pairs"))
    labels = labels_of(at)
    assert f"Export {rows:,} rows (current filter)" in labels
    assert {"JSON", "Markdown", "LaTeX", "Parquet", "All tables as ZIP", "Web page with charts", "Manifest"} <= labels


def test_a_table_is_previewed_as_it_prints(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports", table="Table 3: Caught errors by judge")
    table = at.dataframe[0].value
    careful = table[table["judge_model"] == "careful-judge"].iloc[0]
    assert careful["recall"] == "0.6154"  # 8 of 13, on the traces that every judge answered
    assert table.loc[table["dimension"] == "GF", "precision"].iloc[0] == ""


def test_what_was_never_matched_is_counted_and_matched_by_one_button(full: Workspace, open_page: OpenPage) -> None:
    assert not [button for button in open_page("reports").button if button.key == "propose-matches"]
    with write_transaction(full.engine) as connection:
        connection.execute(delete(tables.matching))
    at = open_page("reports")
    assert "No matches are proposed yet for " in at.warning[0].value
    next(button for button in at.button if button.key == "propose-matches").click().run()
    assert "proposed by rule" in at.success[0].value
    assert not at.warning
    assert estimate(Filters(), "summary")["not_matched"].iloc[0] == 0


def test_traces_drawn_with_unequal_chances_are_said_and_weighted(
    full: Workspace, open_page: OpenPage, tmp_path: Path
) -> None:
    with read_transaction(full.engine) as connection:
        ids = trace_ids(connection)
    with write_transaction(full.engine) as connection:
        chances = {one: 0.25 if place else 0.5 for place, one in enumerate(ids)}
        make_queue(connection, QueueSpec(name="drawn", author="root"), ids, now=1, chances=chances)
    labels = estimate(Filters(), "unit_labels")
    assert set(labels["inclusion"]) == {0.25, 0.5}
    assert "drawn with unequal chances" in " ".join(caption.value for caption in open_page("reports").caption)
    words = ["report", "--home", str(full.home), "--out", str(tmp_path / "r"), "--table", "corpus_rates"]
    done = CliRunner().invoke(main, [*words, "--draws", "0"])
    assert "drawn with unequal chances" in done.stderr
    table = pd.read_csv(tmp_path / "r" / "corpus_rates.csv")
    assert set(table["sampling"]) == {"weighted"}
    assert table["rate"].isna().all()
    assert table["reason"].str.contains("rate: labelled units were drawn with unequal chances").all()


def test_a_table_without_rows_says_what_it_is_made_from(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports", table="Table 4: Judge scores against reference scores", judge_models="hasty-judge")
    assert "made from score pairs" in at.info[0].value


def test_the_stable_address_carries_filters_and_token(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports", reference="ben")
    (address,) = [code.value for code in at.code if "/api/export/" in code.value]
    assert address.startswith("/api/export/pairs?format=csv&reference=ben&token=")


def test_the_stable_address_of_several_judges_gives_the_rows_that_the_page_counts(
    full: Workspace, open_page: OpenPage
) -> None:
    at = open_page("reports", judge_models=["checks", "hasty-judge"])
    (address,) = [code.value for code in at.code if "/api/export/" in code.value]
    answer = TestClient(Starlette(routes=list(export_routes(lambda: full)))).get(address)
    rows = len(estimate(Filters(judge_models=("checks", "hasty-judge")), "error_pairs"))
    assert len(pd.read_csv(io.BytesIO(answer.content))) == rows
    assert f"Export {rows:,} rows (current filter)" in labels_of(at)


def test_rows_of_a_trace_that_one_labels_blind_are_not_shown(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports")
    at.segmented_control(key="rows").set_value("Error labels").run()
    trace_id = rows_shown(at)["trace_id"].iloc[0]
    hold_blind(full, "me", trace_id)
    at.run()
    assert "1 trace left out" in " ".join(str(one.value) for one in at.info)
    assert trace_id not in set(rows_shown(at)["trace_id"])


def labels_of(at: AppTest) -> set[str]:
    return {str(button.label) for button in at.get("download_button")}  # type: ignore[union-attr]


def rows_shown(at: AppTest) -> pd.DataFrame:
    return next(table.value for table in at.dataframe if "label_id" in table.value)


def test_each_row_behind_the_tables_leads_to_its_trace(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine) as connection:
        here = set(trace_ids(connection))
    at = open_page("reports", reference="ada", judge_models="checks")
    for dataset in datasets.DATASETS:
        at.segmented_control(key="rows").set_value(dataset.title).run()
        assert not at.exception, dataset.name
        rows = next(each.value for each in at.dataframe if {"trace_id", "unit"} & set(each.value.columns))
        traces = rows["unit" if dataset.name == "ratings" else "trace_id"].tolist()
        choose(at, f"preview-{dataset.name}", next(place for place, one in enumerate(traces) if one in here))
        assert not at.exception, dataset.name
        assert at.button(key="preview-open").label == "Open in Compare", dataset.name
        assert at.button(key="preview-work").label.startswith("Open "), dataset.name


def test_a_row_of_a_table_of_traces_leads_to_it_and_an_aggregate_nowhere(shown: Workspace, open_page: OpenPage) -> None:
    spread = open_page("reports", table="Scores of each trace over repeats")
    choose(spread, "printed-trace_spread", 0)
    assert spread.button(key="printed-open").label == "Open in Compare"
    rates = open_page("reports", table="Table 3: Caught errors by judge")
    choose(rates, "printed-table_03_caught", 0)
    assert not [button for button in rates.button if button.key == "printed-open"]


def test_a_row_of_a_trace_that_is_not_here_says_so(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("reports", reference="ben")
    at.segmented_control(key="rows").set_value("Error labels").run()
    with read_transaction(full.engine) as connection:
        here = set(trace_ids(connection))
    rows = next(frame.value for frame in at.dataframe if "label_id" in frame.value.columns)
    choose(at, "preview-labels", [str(one) in here for one in rows["trace_id"]].index(False))
    assert "The workspace does not hold this trace." in [caption.value for caption in at.caption]
