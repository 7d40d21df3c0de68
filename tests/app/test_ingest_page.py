"""The Ingest page: looked at first, stored whole, refusals named."""

from __future__ import annotations

import orjson
from sqlalchemy import func, select
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.marks import choose, click, drawn, numbers, texts
from tests.app.workspaces import DATA

from tracejury.app.preflight import inspect
from tracejury.ingest.batch import ingest
from tracejury.ingest.store import read_transaction, schema, trace_ids
from tracejury.judging.store import Workspace

SAMPLES = sorted((DATA / "samples" / "trail").glob("*.json"))


def stored(space: Workspace) -> int:
    with read_transaction(space.engine) as connection:
        return int(connection.scalar(select(func.count()).select_from(schema.trace)) or 0)


def upload(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader[0].set_value([(name, data, "application/json") for name, data in files])
    return at.run()


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def test_an_empty_workspace_points_at_the_samples(empty: Workspace, open_page: OpenPage) -> None:
    assert "This workspace holds no traces" in open_page("ingest").info[0].value


def test_what_is_here_is_counted_by_format(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("ingest")
    assert any(caption.value.startswith("6 traces, ") for caption in at.caption)


def test_warnings_of_stored_traces_can_be_read_and_lead_to_the_trace(empty: Workspace, open_page: OpenPage) -> None:
    trace = orjson.loads(SAMPLES[0].read_bytes())
    trace["spans"].append(trace["spans"][-1])  # stands twice
    file = empty.home / "twice.json"
    file.write_bytes(orjson.dumps(trace))
    ingest(empty.engine, [file])
    at = open_page("ingest")
    shut = next(one for one in at.expander if one.label.endswith(" on 1 trace"))
    assert len(at.dataframe) == 1
    at.session_state["noted"] = True
    at.run()
    rows = at.dataframe[1].value
    with read_transaction(empty.engine) as connection:
        assert set(rows["trace_id"]) == set(trace_ids(connection))
    assert shut.label == f"{len(rows)} warnings on 1 trace"
    assert any(warning.startswith("duplicate_span: ") for warning in rows["warning"])


def test_each_bar_of_an_upload_lists_its_traces_and_those_stored_open(full: Workspace, open_page: OpenPage) -> None:
    at = upload(open_page("ingest"), *[(file.name, file.read_bytes()) for file in SAMPLES])
    (bars,) = drawn(at, "spans")
    counts = [int(count) for count in numbers(bars["y"])]
    assert sum(counts) == len(SAMPLES)
    for bounds, count in zip(numbers(bars["customdata"]).tolist(), counts, strict=True):
        if count:  # a bar of none cannot be hit
            click(at, "chart-spans", {"customdata": bounds})
            assert any(text.startswith(f"{count} row") for text in texts(at.caption)), bounds
    before, after = drawn(at, "sizes")
    assert before["customdata"] == after["customdata"]
    for mark in before["customdata"]:
        click(at, "chart-sizes", {"customdata": mark})
        rows = next(frame.value for frame in at.dataframe if "judge_text" in frame.value)
        assert list(rows["trace_id"]) == [mark[0]]
    choose(at, "rows-sizes", 0)
    assert at.button(key="rows-sizes-open").label == "Open in Work"


def test_a_bar_of_traces_that_are_not_stored_yet_opens_none(empty: Workspace, open_page: OpenPage) -> None:
    at = upload(open_page("ingest"), (SAMPLES[0].name, SAMPLES[0].read_bytes()))
    click(at, "chart-sizes", {"customdata": drawn(at, "sizes")[0]["customdata"][0]})
    choose(at, "rows-sizes", 0)
    assert "You can open the trace after it is stored." in texts(at.caption)
    assert [button.key for button in at.button] == ["store"]


def test_a_format_leads_to_its_traces(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("ingest")
    choose(at, "formats", 0)
    assert at.button(key="formats-open").label == "Open in Explore"


def test_nothing_is_stored_before_the_button_is_pressed(empty: Workspace, open_page: OpenPage) -> None:
    at = upload(open_page("ingest"), *[(file.name, file.read_bytes()) for file in SAMPLES[:2]])
    assert metrics(at)["New traces"] == "2"
    assert [button.label for button in at.button] == ["Store 2 traces"]
    assert stored(empty) == 0
    at.button(key="store").click().run()
    assert stored(empty) == 2
    assert at.success[0].value.startswith("2 traces stored with ")


def test_what_is_there_already_is_not_offered_again(full: Workspace, open_page: OpenPage) -> None:
    at = upload(open_page("ingest"), (SAMPLES[0].name, SAMPLES[0].read_bytes()))
    assert (metrics(at)["New traces"], metrics(at)["Already stored"]) == ("0", "1")
    assert at.button(key="store").disabled


def test_a_broken_file_is_named_and_the_others_go_on(empty: Workspace, open_page: OpenPage) -> None:
    at = upload(open_page("ingest"), ("broken.json", b'{"spans": ['), (SAMPLES[0].name, SAMPLES[0].read_bytes()))
    assert (metrics(at)["New traces"], metrics(at)["Rejected"]) == ("1", "1")
    refused = at.dataframe[0].value.iloc[0]
    assert refused["file"] == "broken.json"
    assert refused["reason"]
    assert refused["remedy"]


def test_the_same_trace_twice_in_one_upload_counts_once(empty: Workspace) -> None:
    data = SAMPLES[0].read_bytes()
    with read_transaction(empty.engine) as connection:
        found = inspect(connection, {"a.json": data, "b.json": data})
    assert list(found.traces["state"]) == ["new", "twice in this upload"]
    assert found.new == 1


def test_a_changed_trace_is_told_from_one_that_is_there(full: Workspace) -> None:
    with read_transaction(full.engine) as connection:
        first = trace_ids(connection)[0]
        file = next(f for f in SAMPLES if first in f.name)
        changed = file.read_bytes().replace(b"main", b"mian", 1)
        assert changed != file.read_bytes()
        found = inspect(connection, {"a.json": file.read_bytes(), "b.json": changed})
    assert found.traces["state"].iloc[0] == "already stored"
    assert found.traces["state"].iloc[1] in {"changed", "twice in this upload"}


def test_what_a_judge_reads_is_less_than_what_the_spans_repeat(empty: Workspace) -> None:
    with read_transaction(empty.engine) as connection:
        found = inspect(connection, {file.name: file.read_bytes() for file in SAMPLES})
    assert (found.traces["judge_text"] < found.traces["text"]).all()
