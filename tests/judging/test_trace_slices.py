"""To which slice a trace and an error of the store belong; what is not known is `unknown`, and nothing is dropped."""

from pathlib import Path
from typing import Any

import pytest
from tests.build import error_label, finding, small_trace, span_id, workspace
from tests.judging.team import submit, trace_id

from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement.slices import error_slices
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import SLICED_BY, Call, Verdict
from tracejury.judging.reports.filter_options import read_options
from tracejury.judging.reports.filters import Filters, UnknownFilterError
from tracejury.judging.reports.frames import Frames, load_frames
from tracejury.judging.reports.trace_slices import NO_TOOL, task_source
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store import Workspace

WRONG = "The timetable tool is called with a day that it does not know."


def error(label_id: str, *spans: int) -> dict[str, Any]:
    where = [span_id(one) for one in spans]
    return {"label_id": label_id, "span_ids": where, "dimensions": ["TC"], "impact": "high", "description": WRONG}


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    opened = workspace(tmp_path / "home", *(small_trace(trace_id(number)) for number in range(2)))
    submit(
        opened, "ada", trace_id(0), scores={"TC": 1}, errors=[error("model", 3), error("tool", 4), error("both", 4, 3)]
    )
    submit(opened, "ada", trace_id(1), scores={"TC": 2}, errors=[error("lone", 4)])
    verdict = Verdict(
        rubric="TC", trace_id=trace_id(0), state="scored", score=1, criteria="", rationale="",
        findings=(finding(WRONG, 4),), call=Call(model="m"),
    )  # fmt: skip
    import_outcomes(opened.engine, [verdict], model="m", author="test")
    propose_matches(opened.engine)
    return opened


def frames(space: Workspace, **filters: Any) -> Frames:
    with read_transaction(space.engine) as connection:
        return load_frames(connection, Filters(**filters))


def test_errors_belong_to_the_kind_and_the_tool_of_their_spans(space: Workspace) -> None:
    table = frames(space).slices
    own = table[table["error_id"] != ""]
    kinds = own[own["by"] == "kind"].set_index("error_id")["slice"].to_dict()
    tools = own[own["by"] == "tool"].set_index("error_id")["slice"].to_dict()
    trace = small_trace(trace_id(0))
    at = {span.span_id: span for span in trace.spans}
    assert kinds["tool"] == at[span_id(4)].kind == "TOOL"
    assert kinds["model"] == at[span_id(3)].kind != "TOOL"
    assert kinds["both"] == kinds["model"]  # span 3 comes first in reading order
    assert tools["tool"] == tools["both"] == at[span_id(4)].tool_name
    assert tools["model"] == NO_TOOL


def test_each_trace_is_in_one_slice_of_each_kind_but_tools(space: Workspace) -> None:
    table = frames(space).slices
    assert set(table["by"]) == set(SLICED_BY)
    whole = table[(table["error_id"] == "") & (table["by"] != "tool")]
    assert whole.groupby(["by", "trace_id"]).size().eq(1).all()
    assert set(whole["trace_id"]) == {trace_id(0), trace_id(1)}
    length = whole[whole["by"] == "length"]["slice"]
    assert set(length) == {"0-9 spans"}


@pytest.mark.parametrize("by", SLICED_BY)
def test_errors_of_all_slices_are_all_errors(space: Workspace, by: str) -> None:
    made = frames(space, slices=(by,))
    assert set(made.slices["by"]) == {by}
    table = error_slices(made.error_pairs, made.slices, draws=0)
    recall = table[(table["kind"] == "caught") & (table["metric"] == "recall")]
    assert int(recall[["tp", "fp", "fn", "tn"]].to_numpy().sum()) == len(made.error_pairs) == 3
    if by == "outcome":
        assert recall["slice"].tolist() == ["unknown"]


def test_a_label_on_a_span_that_is_not_there_is_of_an_unknown_kind(space: Workspace) -> None:
    label = error_label(9, trace_id=trace_id(0), label_id="astray", annotator="ada", span_ids=("no such span",))
    with space.engine.begin() as connection:
        put_labels(connection, errors=[label], scores=[], reviews=[], author="test")
    made = frames(space)
    own = made.slices[made.slices["error_id"] == "astray"]
    assert own["slice"].isna().all()
    table = error_slices(made.error_pairs, made.slices, draws=0)
    assert "unknown" in set(table.loc[table["by"] == "kind", "slice"])


@pytest.mark.parametrize(
    ("file", "place", "source"),
    [
        ("/data/trail/gaia/one.json", "", "gaia"),
        ("C:\\traces\\swe\\one.json", "", "swe"),
        ("exports/july.jsonl", "line 3", "july"),
        ("one.json", "", None),
    ],
)
def test_the_task_source_is_the_folder_or_the_file_of_several(file: str, place: str, source: str | None) -> None:
    assert task_source(file, place) == source


def test_a_kind_of_slice_that_is_none_is_named(space: Workspace) -> None:
    with read_transaction(space.engine) as connection:
        options = read_options(connection)
    with pytest.raises(UnknownFilterError, match=r"no kind of slice is called 'moon'. Try: agent; source; length"):
        options.checked(Filters(slices=("moon",)))
