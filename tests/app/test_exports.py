"""What leaves the workspace: the rows of the filter, safe for spreadsheets, with their provenance, by token only."""

from __future__ import annotations

import csv
import io
import re
import time
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from sqlalchemy import select, update
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.app.workspaces import hold_blind

from tracejury.app import datasets, estimates, grants
from tracejury.app.api.exports import PURPOSE, export_routes
from tracejury.app.api.scripts import mint_script
from tracejury.app.cli import main
from tracejury.app.components.judges import every_metric
from tracejury.app.components.snapshot import snapshot
from tracejury.app.estimates import estimate
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import Table
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.rule import RULE
from tracejury.judging.records import ScoreLabel
from tracejury.judging.reports.export import ORIGIN, csv_text, markdown_text
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.latex import latex_table
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.people import revoke_script_tokens


@pytest.fixture
def client(request: pytest.FixtureRequest) -> TestClient:
    """Over the workspace that the test has asked for."""
    space = request.getfixturevalue("shown" if "shown" in request.fixturenames else "full")
    return TestClient(Starlette(routes=list(export_routes(lambda: space))))


def get(space: Workspace, client: TestClient, name: str, **query: Any) -> Any:
    return client.get(f"/api/export/{name}", params={"token": token_for(space, name), **query})


def token_for(space: Workspace, name: str) -> str:
    return mint(space.secret(), Grant("ruth", name), purpose=PURPOSE)


@pytest.mark.parametrize("name", list(datasets.BY_NAME))
@pytest.mark.parametrize("form", datasets.FORMATS)
def test_every_data_set_leaves_in_every_format(shown: Workspace, client: TestClient, name: str, form: str) -> None:
    answer = get(shown, client, name, format=form)
    assert answer.status_code == 200, answer.text
    assert f'filename="{name}.{form}"' in answer.headers["content-disposition"]
    rows = len(datasets.BY_NAME[name].frame(Filters()))
    assert rows > 0
    match form:
        case "csv":
            assert len(pd.read_csv(io.BytesIO(answer.content))) == rows
        case "json":
            assert len(orjson.loads(answer.content)["rows"]) == rows
        case "parquet":
            assert len(pd.read_parquet(io.BytesIO(answer.content))) == rows


def test_the_export_holds_the_rows_of_its_filter_and_no_others(shown: Workspace, client: TestClient) -> None:
    everything = pd.read_csv(io.BytesIO(get(shown, client, "pairs").content))
    answer = get(shown, client, "pairs", reference="ben", judge_models="hasty-judge", matches="confirmed")
    some = pd.read_csv(io.BytesIO(answer.content))
    assert set(some["judge_model"]) == {"hasty-judge"}
    assert not some["caught"].any()  # nobody has confirmed anything
    assert set(everything["judge_model"]) == {"checks", "careful-judge", "hasty-judge", "steady-model"}
    ids = set(estimate(Filters(reference="ben"), "error_pairs")["error_id"])
    assert set(some["error_id"]) <= ids


def test_the_majority_of_people_can_be_the_reference(shown: Workspace, client: TestClient) -> None:
    pairs = pd.read_csv(io.BytesIO(get(shown, client, "pairs", reference="majority").content))
    ours = estimate(Filters(reference="majority"), "error_pairs")
    assert len(pairs) == len(ours) > 0
    assert set(pairs["error_id"]) == set(ours["error_id"])
    assert get(shown, client, "pairs", reference="nobody").status_code == 422


def test_several_judges_can_be_asked_for(shown: Workspace, client: TestClient) -> None:
    url = f"/api/export/pairs?token={token_for(shown, 'pairs')}&judge_models=checks&judge_models=hasty-judge"
    frame = pd.read_csv(io.BytesIO(client.get(url).content))
    assert set(frame["judge_model"]) == {"checks", "hasty-judge"}


def test_a_judge_with_a_comma_in_its_name_can_be_asked_for(full: Workspace, client: TestClient) -> None:
    with write_transaction(full.engine) as connection:
        for table in (tables.judge_version, tables.cell):
            connection.execute(update(table).where(table.c.model == "hasty-judge").values(model="hasty, v2"))
    frame = pd.read_csv(io.BytesIO(get(full, client, "pairs", judge_models="hasty, v2").content))
    assert set(frame["judge_model"]) == {"hasty, v2"}


def test_labels_of_one_person(shown: Workspace, client: TestClient) -> None:
    frame = pd.read_csv(io.BytesIO(get(shown, client, "labels", reference="ada").content))
    assert set(frame["annotator"]) == {"ada"}
    assert len(frame) == 26  # 23, and 3 on a trace that is not here yet: they wait
    assert orjson.loads(frame["span_ids"].iloc[0])


def test_a_table_of_the_report_is_the_one_the_command_writes(
    shown: Workspace, client: TestClient, tmp_path: Path
) -> None:
    """Bounds too: one seed, whoever draws."""
    done = CliRunner().invoke(main, ["report", "--home", str(shown.home), "--out", str(tmp_path / "r")])
    assert done.exit_code == 0, done.output
    for table in ("error_estimates", "score_estimates", "table_07_consistency"):
        answer = get(shown, client, "stats", table=table)
        assert answer.content == (tmp_path / "r" / f"{table}.csv").read_bytes(), table


def test_a_cell_that_begins_like_a_formula_is_quoted(shown: Workspace) -> None:
    frame = pd.DataFrame({"text": ["=1+1", "+x", "-x", "@x", "\tx", "plain"], "number": [-1.5, 2, 3, 4, 5, 6]})
    back = pd.read_csv(io.BytesIO(datasets.csv_bytes(frame)))
    assert list(back["text"]) == ["'=1+1", "'+x", "'-x", "'@x", "'\tx", "plain"]
    assert list(back["number"]) == [-1.5, 2, 3, 4, 5, 6]


def test_columns_of_parquet_have_their_type_where_nothing_is_in_them(shown: Workspace) -> None:
    """A review that nobody wrote is text all the same, a confidence a whole number: files of two days can be joined."""
    types = {
        name: {column.name: str(column.type) for column in schema_of(name)} for name in ("scores", "findings", "labels")
    }
    assert types["scores"]["confidence"] == "int64"
    assert types["scores"]["value"] == "double"
    assert types["findings"]["review"] == types["labels"]["description"] == "string"
    assert not [columns for columns in types.values() if "null" in columns.values()]


@pytest.mark.parametrize("name", ["pairs", "stats"])
def test_a_file_names_inside_what_it_was_made_from(shown: Workspace, client: TestClient, name: str) -> None:
    """CSV alone cannot: every reader would take it for a row."""
    files = {form: get(shown, client, name, format=form, judge_models="checks").content for form in datasets.FORMATS}
    schema = pyarrow.parquet.read_schema(io.BytesIO(files["parquet"]))
    assert "columns" in schema.pandas_metadata
    embedded = {
        "parquet": orjson.loads(schema.metadata[ORIGIN]),
        "json": orjson.loads(files["json"])["made_from"],
        "md": orjson.loads(re.findall(r"<!-- Made from: (.*) -->", files["md"].decode())[-1]),
        "tex": orjson.loads(re.findall(r"^% Made from: (.*)$", files["tex"].decode(), re.MULTILINE)[0]),
    }
    manifest = get(shown, client, "manifest", judge_models="checks").json()
    for form, about in embedded.items():
        assert {key: about[key] for key in manifest if key != "made_at"} == {
            key: value for key, value in manifest.items() if key != "made_at"
        }, form
    assert embedded["parquet"]["table"] == ("pairs" if name == "pairs" else "error_estimates")
    assert b"made_with" not in files["csv"]


def test_a_name_cannot_end_the_comment_of_a_markdown_file() -> None:
    dataset = datasets.Dataset("odd", "Odd", "", lambda _: ODD)
    text = datasets.rows_bytes(dataset, ODD, "md", {"reference": "--> <script>"}).decode()
    assert text.count("-->") == 1
    assert text.rstrip().endswith("-->")


def schema_of(name: str) -> Any:
    dataset, filters = datasets.BY_NAME[name], Filters()
    data = datasets.rows_bytes(dataset, dataset.frame(filters), "parquet", datasets.manifest(filters))
    return pyarrow.parquet.read_schema(io.BytesIO(data))


def test_times_in_json_are_written_alike(shown: Workspace, client: TestClient) -> None:
    rows = get(shown, client, "traces", format="json").json()["rows"]
    times = [row["start_time"] for row in rows if row["start_time"] is not None]
    assert times
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", time) for time in times)


def test_a_lone_surrogate_does_not_stop_an_export() -> None:
    frame = pd.DataFrame({"text": ["a\ud800b"], "cites": [["\ud800"]]}, dtype=object)
    assert datasets.csv_bytes(frame).count(b"\\ud800") == 2


@pytest.mark.parametrize(
    ("name", "query", "status", "words"),
    [
        ("nothing", {}, 404, "labels, scores, pairs"),
        ("pairs", {"format": "xls"}, 422, "csv, json, parquet"),
        ("pairs", {"matches": "all"}, 422, "proposed, confirmed"),
        ("pairs", {"blind_only": "blind"}, 422, "true, false"),
        ("pairs", {"split": "nowhere"}, 422, "there is none yet"),
        ("pairs", {"judge_models": "checks,nobody"}, 422, "careful-judge; checks"),
        ("pairs", {"judge": "checks"}, 422, "judge_models; matches"),
        ("pairs", {"reference": "nobody"}, 422, "ada; ben"),
        ("pairs", {"trace_formats": "trial"}, 422, "trail"),
        ("pairs", {"repeat": "99"}, 422, "use one of: 0"),
        ("pairs", {"versions": "ffff"}, 422, "use one of"),
        ("labels", {"guideline": "9"}, 422, "tracejury-guide-1"),
        ("stats", {"table": "nothing"}, 404, "table_03_caught"),
    ],
)
def test_a_wrong_question_is_answered_with_what_there_is(
    shown: Workspace, client: TestClient, name: str, query: dict[str, str], status: int, words: str
) -> None:
    answer = get(shown, client, name, **query)
    assert answer.status_code == status
    assert words in answer.json()["remedy"]


def test_without_the_exports_token_nothing_leaves(shown: Workspace, client: TestClient) -> None:
    assert client.get("/api/export/pairs").status_code == 401
    assert client.get("/api/export/pairs", params={"token": "forged"}).status_code == 401
    for trace_id in ("some-trace", "labels"):  # a trace may call itself what it likes
        for_a_trace = mint(shown.secret(), Grant("ada", trace_id))
        assert client.get("/api/export/labels", params={"token": for_a_trace}).status_code == 401


def test_an_addresses_token_is_for_its_data_set_alone_and_ends_after_minutes(
    full: Workspace, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_for(full, "pairs")
    assert client.get("/api/export/pairs", params={"token": token}).status_code == 200
    assert client.get("/api/export/labels", params={"token": token}).status_code == 403
    later = time.time() + grants.MAX_AGE_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    answer = client.get("/api/export/pairs", params={"token": token})
    assert (answer.status_code, answer.json()["error"]) == (401, "the token has expired")


def test_a_script_reads_every_data_set_with_its_own_token_in_the_header(full: Workspace, client: TestClient) -> None:
    header = {"Authorization": f"Bearer {mint_script(full, 'ruth', use='export', days=1, by='ruth')}"}
    for name in ("pairs", "labels", "manifest"):
        assert client.get(f"/api/export/{name}", headers=header).status_code == 200
    with write_transaction(full.engine) as connection:
        revoke_script_tokens(connection, "ruth", by="ruth")
    answer = client.get("/api/export/pairs", headers=header)
    assert (answer.status_code, answer.json()["error"]) == (401, "the token was revoked")
    assert "tracejury token" in answer.json()["remedy"]


def test_a_script_s_token_is_not_taken_from_an_address(full: Workspace, client: TestClient) -> None:
    token = mint_script(full, "ruth", use="export", days=90, by="ruth")
    answer = client.get("/api/export/pairs", params={"token": token})
    assert answer.status_code == 401
    assert answer.json()["remedy"] == "send it as Authorization: Bearer"


def test_the_manifest_names_filters_seed_draws_hashes_and_rules(shown: Workspace, client: TestClient) -> None:
    manifest = get(shown, client, "manifest", judge_models="checks", missing="misses").json()
    assert manifest["selection"]["judge_models"] == ["checks"]
    assert manifest["missing"] == "disagree"
    assert manifest["bootstrap_draws"] == 2000
    assert manifest["matchers"] == [RULE]
    assert {
        "seed",
        "data_hash",
        "judge_versions",
        "libraries",
        "made_with",
        "reference",
        "judge_models",
        "filters",
    } <= set(manifest)


def test_the_whole_report_holds_tables_rows_and_manifest(shown: Workspace, client: TestClient) -> None:
    archive = zipfile.ZipFile(io.BytesIO(get(shown, client, "report").content))
    names = set(archive.namelist())
    assert {"manifest.json", "tables/table_03_caught.csv", "tables/human_ceiling.csv", "data/pairs.csv"} <= names
    manifest = orjson.loads(archive.read("manifest.json"))
    listed = {entry["file"]: entry["rows"] for entry in manifest["files"]}
    assert listed.keys() == names - {"manifest.json"}
    assert [entry["sha256"] for entry in manifest["files"]] == [
        sha256(archive.read(entry["file"])).hexdigest() for entry in manifest["files"]
    ]
    assert "people" not in manifest["judge_models"]
    for file in ("data/pairs.csv", "tables/table_03_caught.csv"):
        assert len(pd.read_csv(io.BytesIO(archive.read(file)))) == listed[file]


def test_the_snapshot_needs_no_network_and_escapes_names(shown: Workspace) -> None:
    inputs = estimates.inputs(Filters())
    wanted = [t for t in datasets.available(inputs) if t.name in {"table_03_caught", "findings"}]
    tables = [(table, datasets.table_frame(table, Filters())) for table in wanted]
    page = snapshot(inputs, tables, about="<script>alert(1)</script>", manifest={"note": "</pre><img src=x>"}).decode()
    assert "<script>alert(1)" not in page
    assert "<img src=x>" not in page
    assert "careful-judge" in page
    assert 'src="http' not in page
    assert page.count("plotly-graph-div") >= 3


def test_the_snapshot_is_dark_where_the_screen_is_and_light_on_paper(shown: Workspace) -> None:
    """Charts too: they have no ground of their own, and their words take the page's colour."""
    page = snapshot(estimates.inputs(Filters()), [], about="", manifest={}).decode()
    style = page.split("<style>")[1].split("</style>")[0]
    assert "@media screen and (prefers-color-scheme: dark)" in style
    assert "@media print { :root { color-scheme: light; } }" in style
    drawn = page.count("plotly-graph-div")
    assert drawn >= 3
    assert page.count('"paper_bgcolor":"rgba(0,0,0,0)"') == page.count('"plot_bgcolor":"rgba(0,0,0,0)"') == drawn
    assert "fill: var(--ink) !important" in style


def test_the_snapshot_shows_agreement_below_chance() -> None:
    """Two judges of opposite minds: kappa is -1, and the axis reaches it."""
    pairs = pd.DataFrame(
        {"trace_id": list("abcdef"), "dimension": "LC", "reference_score": [0, 3] * 3, "judge_score": [3, 0] * 3}
    )
    page = snapshot(Inputs(score_pairs=pairs, draws=0), [], about="", manifest={}).decode()
    (lowest,) = re.findall(r'"text":"Quadratic weighted kappa \(higher is better\)"[^\[]*"range":\[([-\d.]+)', page)
    assert float(lowest) <= -1


def test_every_estimate_is_there_once_with_its_n_and_reason(shown: Workspace) -> None:
    long = every_metric(estimates.inputs(Filters()))
    assert not long.duplicated(["judge_model", "dimension", "split", "metric"]).any()
    undefined = long[long["value"].isna()]
    assert undefined["reason"].notna().all()
    assert {"caught.recall", "localized.f1", "scores.ac2", "repeats.alpha_interval"} <= set(long["metric"])


def test_rows_of_a_trace_that_one_labels_blind_do_not_leave_and_the_manifest_says_so(
    full: Workspace, client: TestClient
) -> None:
    """The samples' labels of one trace, asked for by somebody who holds that trace in a blind queue."""
    before = pd.read_csv(io.BytesIO(get(full, client, "labels").content))
    trace_id = str(before["trace_id"].iloc[0])
    hold_blind(full, "ruth", trace_id)
    for name in datasets.BY_NAME:
        assert trace_id.encode() not in get(full, client, name).content, name
    spread = get(full, client, "stats", table="trace_spread", format="json").json()["rows"]
    assert spread
    assert trace_id not in {value for row in spread for value in row.values()}
    after = pd.read_csv(io.BytesIO(get(full, client, "labels").content))
    assert len(after) == len(before) - (before["trace_id"] == trace_id).sum()
    assert get(full, client, "manifest").json()["rows_left_out_of_traces"] == [trace_id]
    archive = zipfile.ZipFile(io.BytesIO(get(full, client, "report").content))
    files = [name for name in archive.namelist() if name != "manifest.json"]
    assert len(files) > len(datasets.BY_NAME)
    assert not [name for name in files if trace_id.encode() in archive.read(name)]
    other = mint(full.secret(), Grant("someone else", "labels"), purpose=PURPOSE)
    assert trace_id.encode() in client.get("/api/export/labels", params={"token": other}).content


ODD = pd.DataFrame(
    {
        "trace_id": ["1234e567", "007"],
        "annotator": ["*zoë* ![x](http://example.invalid/x.png)", "a|b_<i>"],
        "text": ["one\n\ntwo", None],
        "n": [1.0, float("nan")],
    }
)


@pytest.mark.parametrize("form", ["md", "tex"])
def test_rows_as_text_hold_one_line_each_no_markup_and_nothing_where_something_is_missing(form: str) -> None:
    dataset = datasets.Dataset("odd", "Odd", "", lambda _: ODD)
    text = datasets.rows_bytes(dataset, ODD, form, {}).decode()
    (first,) = [line for line in text.splitlines() if "1234e567" in line]
    (second,) = [line for line in text.splitlines() if "007" in line]
    assert "one two" in first
    cells = second.removesuffix(r"\\").split("&") if form == "tex" else re.split(r"(?<!\\)\|", second)[1:-1]
    assert [cell.strip() for cell in cells][2:] == ["", ""]
    if form == "md":
        assert r"\*zoë\* !\[x\](http" in first
        assert r"a\|b\_\<i\>" in second
    else:
        assert r"a\textbar{}b\_\textless{}i\textgreater{}" in second


def test_a_name_that_heads_a_column_is_as_safe_as_one_in_a_cell() -> None:
    """Figures 3 and 4 have a column for each judge."""
    frame = pd.DataFrame({'=HYPERLINK("http://x")': [1], "a|b": [2], "two\nlines": [3]})
    table = Table(name="odd", title="Odd", needs=(), build=lambda _: frame)
    assert next(csv.reader(io.StringIO(csv_text(frame, table), newline=""))) == [
        '\'=HYPERLINK("http://x")',
        "a|b",
        "two\nlines",
    ]
    assert next(csv.reader(io.StringIO(datasets.csv_bytes(frame).decode(), newline="")))[0].startswith("'=")
    head, _, row = markdown_text(frame).splitlines()
    assert "two lines" in head
    assert len(re.findall(r"(?<!\\)\|", head)) == len(re.findall(r"(?<!\\)\|", row)) == 4
    assert r"a\textbar{}b & two lines \\" in latex_table(frame, title="Odd")


def test_labels_of_a_filter_of_blind_ones_are_blind(full: Workspace) -> None:
    """As the estimates beside them: a label that was changed when the judge was revealed counts as it was before."""
    with read_transaction(full.engine) as connection:
        one = error_labels(connection, tables.error_label.c.annotator == "ada")[0]
    changed = replace(one, phase="revealed", description="now I see it")
    late = replace(one, phase="revealed", label_id="late")
    score = ScoreLabel(trace_id=one.trace_id, annotator="ada", dimension="LC", value=3, phase="revealed")
    with write_transaction(full.engine) as connection:
        put_labels(connection, errors=[changed, late], scores=[score], reviews=[], author="test")
    blind = datasets.labels(Filters(reference="ada")).set_index("label_id")
    assert set(blind["phase"]) == {"blind"}
    assert blind.loc[one.label_id, "description"] == one.description
    assert set(datasets.score_rows(Filters(reference="ada"))["phase"]) == {"blind"}
    both = datasets.labels(Filters(reference="ada", blind_only=False)).set_index("label_id")
    assert both.loc[one.label_id, "description"] == "now I see it"
    assert len(both) == len(blind) + 1


def test_who_exports_rows_has_seen_the_traces_in_them_and_no_others(full: Workspace, client: TestClient) -> None:
    rows = get(full, client, "labels", format="json").json()["rows"]
    with read_transaction(full.engine) as connection:
        query = select(tables.seen.c.trace_id, tables.seen.c.what).where(tables.seen.c.annotator == "ruth")
        found = {(row.trace_id, row.what) for row in connection.execute(query)}
    assert found == {(row["trace_id"], "Export") for row in rows}
    assert found
