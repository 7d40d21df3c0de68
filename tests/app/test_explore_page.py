"""The Explore page: facets, search, and what the charts beside it count."""

from __future__ import annotations

from dataclasses import replace

from ingest.store import reading, writing
from judging.ledger import Workspace, exploring
from judging.ledger.labels import put_labels
from judging.ledger.views import saved_views
from judging.records import ErrorLabel
from tests.app.conftest import OpenPage


def title(at: object) -> list[str]:
    return [element.value for element in at.subheader]  # type: ignore[attr-defined]


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    assert "No trace is here yet" in open_page("explore").info[0].value


def test_all_traces_are_listed_with_who_labelled_and_how_judged(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    assert "6 of 6 traces" in title(at)
    table = at.dataframe[0].value
    assert set(table["labelled_by"]) == {"ada, ben"}
    assert int(table["errors"].sum()) == 45  # 23 of ada's and 22 of ben's
    assert table["lowest_score"].notna().all()


def test_words_find_the_spans_that_hold_them_all(full: Workspace, open_page: OpenPage) -> None:
    with reading(full.engine) as connection:
        found = exploring.hits(connection, "library search")
    at = open_page("explore", q="library search")
    assert title(at)[0].startswith(f"{len(found):,} span")
    assert title(at)[1] == f"{found['trace_id'].nunique()} of 6 traces"


def test_words_that_stand_nowhere_say_so(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", q="zzzznothing")
    assert title(at)[0].startswith("0 spans")
    assert any("No trace fits" in caption.value for caption in at.caption)


def test_a_facet_narrows_the_list(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", facet_score="0")
    table = at.dataframe[0].value
    assert set(table["lowest_score"]) == {0}


def label(name: str, *dimensions: str, text: str = "") -> ErrorLabel:
    return ErrorLabel(
        label_id=name, trace_id="t", annotator="ada", span_ids=("s",), dimensions=dimensions, impact="low",  # type: ignore[arg-type]
        description=text,
    )  # fmt: skip


def test_dimensions_that_occur_together_are_counted_both_ways() -> None:
    table = exploring.together([label("a", "LC", "TC"), label("b", "LC")]).set_index(["a", "b"])["count"]
    assert table.to_dict() == {("LC", "LC"): 2, ("LC", "TC"): 1, ("TC", "LC"): 1, ("TC", "TC"): 1}


def test_the_most_alike_error_comes_first_and_never_itself() -> None:
    errors = [
        label("a", "LC", text="the same search is made twice"),
        label("b", "LC", text="a date is misread"),
        label("c", "TC", text="the same search was made a second time"),
    ]
    table = exploring.alike(errors, "a")
    assert list(table["label_id"]) == ["c", "b"]
    assert exploring.alike(errors, "nobody").empty


def test_of_very_many_errors_those_that_share_most_words_are_compared() -> None:
    like = [label(f"like-{n}", "LC", text=f"the search for ferries is made again, time {n}") for n in range(5)]
    others = [label(f"other-{n}", "LC", text=f"invoice {n} is summed wrongly") for n in range(exploring.COMPARED)]
    chosen = label("a", "LC", text="the search for ferries is made twice")
    table = exploring.alike([*others, chosen, *like], "a")
    assert set(table["label_id"][:5]) == {error.label_id for error in like}
    assert "a" not in set(table["label_id"])
    assert len(table) == exploring.ALIKE


def test_positions_lie_between_the_first_and_the_last_span(full: Workspace) -> None:
    with reading(full.engine) as connection:
        errors = exploring.complete_errors(connection)
        findings, labelled = exploring.finding_positions(connection), exploring.error_positions(connection, errors)
    for side, found in (("judge", findings), ("human", labelled)):
        assert found["position"].between(0, 1).all()
        assert set(found["side"]) == {side}
    assert len(labelled) == len(errors)
    assert not findings.empty


def test_a_new_label_changes_what_labels_make_and_nothing_else(full: Workspace) -> None:
    revisions = (exploring.labels_revision, exploring.findings_revision, exploring.spans_revision)
    with writing(full.engine) as connection:
        before = [of(connection) for of in revisions]
        error = exploring.complete_errors(connection)[0]
        changed = replace(error, description="other words")
        put_labels(connection, errors=[changed], scores=[], reviews=[], author=error.annotator)
        after = [of(connection) for of in revisions]
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, False, False]


def test_failed_tool_calls_come_first(full: Workspace) -> None:
    with reading(full.engine) as connection:
        table = exploring.worst_tools(exploring.tools(connection))
    assert table["failed"].is_monotonic_decreasing
    assert (table["failed"] <= table["calls"]).all()


def test_what_is_shown_is_saved_under_a_name_and_linked(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", facet_score="0")
    at.text_input(key="view-name").input("worst scores")
    at.button(key="view-save").click().run()
    assert not at.exception
    with reading(full.engine) as connection:
        (held,) = saved_views(connection, "explore")
    assert (held.name, dict(held.query)) == ("worst scores", {"facet_score": ["0"]})
    again = open_page("explore")
    link = again.get("link_button")[0].proto
    assert (link.label, link.url) == ("worst scores", "?facet_score=0")


def test_a_view_without_a_name_is_refused_on_the_page(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    at.button(key="view-save").click().run()
    assert "has no name" in at.error[0].value
