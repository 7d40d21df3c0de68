"""The Explore page: facets, search, and what the charts beside it count."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd
from sqlalchemy import func, insert, select, update
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.app.marks import choose, click, drawn, marks_of, numbers, texts

from tracejury.app.components.estimate_text import plain
from tracejury.ingest.store import load, read_transaction, trace_ids, write_transaction
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues.places import next_item, submit
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.reports import exploring
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.revisions import traces_revision
from tracejury.judging.store.views import saved_views


def title(at: object) -> list[str]:
    return [element.value for element in at.subheader]  # type: ignore[attr-defined]


def test_an_empty_workspace_says_what_brings_traces(empty: Workspace, open_page: OpenPage) -> None:
    assert "This workspace holds no traces" in open_page("explore").info[0].value


def test_all_traces_are_listed_with_who_labelled_and_how_judged(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    assert "6 of 6 traces" in title(at)
    table = at.dataframe[0].value
    assert set(table["labelled_by"]) == {"ada, ben"}
    assert int(table["errors"].sum()) == 45  # 23 of ada's and 22 of ben's
    assert table["lowest_score"].notna().all()


def test_words_find_the_spans_that_hold_them_all(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine) as connection:
        found = exploring.hits(connection, "library search")
    at = open_page("explore", q="library search")
    assert title(at)[0].startswith(f"{len(found):,} span")
    assert title(at)[1] == f"{found['trace_id'].nunique()} of 6 traces"


def test_the_list_records_as_seen_the_traces_of_which_it_shows_errors_or_scores(
    full: Workspace, open_page: OpenPage
) -> None:
    at = open_page("explore", **{"as": "nora"})  # somebody who has looked at nothing yet
    table = at.dataframe[0].value
    told = table[table["errors"].gt(0) | table["lowest_score"].notna()]
    with read_transaction(full.engine) as connection:
        seen = {
            trace_id
            for trace_id in table["trace_id"]
            if [one.what for one in sightings(connection, annotator="nora", trace_id=trace_id)] == ["Explore"]
        }
    assert seen == set(told["trace_id"]) != set()


def test_words_that_stand_nowhere_say_so(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", q="zzzznothing")
    assert title(at)[0].startswith("0 spans")
    assert any("No trace matches" in caption.value for caption in at.caption)


def test_a_facet_narrows_the_list(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", facet_score="0")
    table = at.dataframe[0].value
    assert set(table["lowest_score"]) == {0}


def test_rows_chosen_by_an_administrator_go_to_the_form_of_a_new_queue(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    ids = at.dataframe[0].value["trace_id"].tolist()
    at.session_state[f"traces-{zlib.crc32(chr(10).join(ids).encode())}"] = {
        "selection": {"rows": [4, 1], "columns": [], "cells": []}
    }
    at.run()
    (button,) = [one for one in at.button if one.label == "Put 2 traces in a new queue"]
    button.click().run()
    at.switch_page("views/admin.py").run()
    assert at.text_area(key="filter_ids").value == f"{ids[4]}\n{ids[1]}"
    assert any("2 traces of 6 chosen by hand." in one.value for one in at.caption)


def label(name: str, *dimensions: str, text: str = "") -> tuple[object, ...]:
    return name, "t", "ada", ("s",), dimensions, "low", text


def frame(labels: Iterable[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(list(labels), columns=list(exploring.ERRORS))


def test_dimensions_that_occur_together_are_counted_both_ways() -> None:
    table = exploring.together(frame([label("a", "LC", "TC"), label("b", "LC")])).set_index(["a", "b"])["count"]
    assert table.to_dict() == {("LC", "LC"): 2, ("LC", "TC"): 1, ("TC", "LC"): 1, ("TC", "TC"): 1}


def test_the_most_alike_error_comes_first_and_never_itself() -> None:
    errors = [
        label("a", "LC", text="the same search is made twice"),
        label("b", "LC", text="a date is misread"),
        label("c", "TC", text="the same search was made a second time"),
    ]
    table = exploring.alike(frame(errors), "a")
    assert list(table["label_id"]) == ["c", "b"]
    assert exploring.alike(frame(errors), "nobody").empty


def test_of_very_many_errors_those_that_share_most_words_are_compared() -> None:
    like = [label(f"like-{n}", "LC", text=f"the search for ferries is made again, time {n}") for n in range(5)]
    others = [label(f"other-{n}", "LC", text=f"invoice {n} is summed wrongly") for n in range(exploring.COMPARED)]
    chosen = label("a", "LC", text="the search for ferries is made twice")
    table = exploring.alike(frame([*others, chosen, *like]), "a")
    assert set(table["label_id"][:5]) == {error[0] for error in like}
    assert "a" not in set(table["label_id"])
    assert len(table) == exploring.ALIKE


def test_the_errors_are_those_of_the_store_in_its_order(full: Workspace) -> None:
    with write_transaction(full.engine) as connection:
        here = trace_ids(connection)
        first, second, third = [error for error in error_labels(connection) if error.trace_id in here][:3]
        changed = [replace(first, description="other words"), replace(second, impact=None)]
        put_labels(connection, errors=changed, scores=[], reviews=[], author="ada")
        connection.execute(update(tables.error_label).where(tables.error_label.c.label_id == third.label_id)
                           .values(deleted=True))  # fmt: skip
        known = [error for error in error_labels(connection) if error.is_complete and error.trace_id in here]
        found = exploring.complete_errors(connection)
    assert len(known) == 43  # 45 less the one that lacks an impact and the one taken back
    assert list(found.itertuples(index=False, name=None)) == [
        tuple(getattr(error, name) for name in exploring.ERRORS) for error in known
    ]


def test_every_error_and_finding_is_counted_at_its_first_span(full: Workspace) -> None:
    with read_transaction(full.engine) as connection:
        errors = exploring.complete_errors(connection)
        known: dict[str, exploring.SpanPlaces] = {}
        findings, labelled = exploring.finding_places(connection), exploring.error_places(connection, errors, known)
        pd.testing.assert_frame_equal(exploring.error_places(connection, errors, known), labelled)
        cited = connection.scalar(
            select(func.count(tables.citation.c.finding_key.distinct())).where(tables.citation.c.span_id.is_not(None))
        )
        (error, *_) = errors.itertuples()
        spans = load(connection, error.trace_id).spans
    assert (int(findings["count"].sum()), int(labelled["count"].sum())) == (cited, len(errors))
    for side, found in (("judge", findings), ("annotator", labelled)):
        assert found["place"].between(0, exploring.PLACES - 1).all()
        assert set(found["side"]) == {side}
    first = min(place for place, span in enumerate(spans) if span.span_id in error.span_ids)
    with read_transaction(full.engine) as connection:
        alone = exploring.error_places(connection, errors[:1], {})
    part = min(int(first / (len(spans) - 1) * exploring.PLACES), exploring.PLACES - 1)
    assert list(alone.itertuples(index=False, name=None)) == [(error.trace_id, "annotator", part, 1)]


def test_what_others_said_of_a_trace_that_one_labels_blind_is_hidden_until_it_is_submitted(
    full: Workspace, open_page: OpenPage
) -> None:
    with write_transaction(full.engine) as connection:
        ids = trace_ids(connection)
        key = make_queue(connection, QueueSpec(name="blind", author="root"), ids[:1], now=1)
    place = next_item(full.engine, key, "ruth", now=2)
    assert place is not None
    at = open_page("explore", **{"as": "ruth"})
    assert "Hidden here" in at.info[0].value
    table = at.dataframe[0].value.set_index("trace_id")
    row = table.loc[ids[0]]
    assert (row["judge_states"], row["labelled_by"]) == (exploring.HIDDEN, "ada, ben")
    assert pd.isna(row["lowest_score"])
    assert pd.isna(row["errors"])
    assert table.drop(ids[0])[["lowest_score", "errors"]].notna().all(axis=None)
    with read_transaction(full.engine) as connection:
        of_others = exploring.complete_errors(connection)["trace_id"] != ids[0]
    (choice,) = [box for box in at.selectbox if box.key == "similar_to"]
    assert len(choice.options) == of_others.sum() < len(of_others)
    assert not open_page("explore", **{"as": "vera"}).info
    assert set(
        open_page("explore", facet_judge_states=exploring.HIDDEN, **{"as": "ruth"}).dataframe[0].value["trace_id"]
    ) == {ids[0]}

    with write_transaction(full.engine) as connection:
        submit(connection, place.item_key, "ruth", 0, now=3)
    at = open_page("explore", **{"as": "ruth"})
    assert not at.info
    assert at.dataframe[0].value["lowest_score"].notna().all()


def test_a_new_label_changes_what_labels_make_and_nothing_else(full: Workspace) -> None:
    revisions = (exploring.labels_revision, exploring.findings_revision, traces_revision)
    with write_transaction(full.engine) as connection:
        before = [of(connection) for of in revisions]
        error = error_labels(connection)[0]
        changed = replace(error, description="other words")
        put_labels(connection, errors=[changed], scores=[], reviews=[], author=error.annotator)
        after = [of(connection) for of in revisions]
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, False, False]


def test_failed_tool_calls_come_first(full: Workspace) -> None:
    with read_transaction(full.engine) as connection:
        table = exploring.worst_tools(exploring.tools(connection))
    assert table["failed"].is_monotonic_decreasing
    assert (table["failed"] <= table["calls"]).all()


def test_what_is_shown_is_saved_under_a_name_and_linked(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", facet_score="0")
    at.text_input(key="view-name").input("worst scores")
    at.button(key="view-save").click().run()
    assert not at.exception
    with read_transaction(full.engine) as connection:
        (held,) = saved_views(connection, "explore")
    assert (held.name, dict(held.query)) == ("worst scores", {"facet_score": ["0"]})
    again = open_page("explore")
    link = again.get("link_button")[0].proto
    assert (link.label, link.url) == ("worst scores", "?facet_score=0")


def test_a_view_without_a_name_is_refused_on_the_page(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    at.button(key="view-save").click().run()
    assert "has no name" in at.error[0].value


def behind(at: AppTest) -> int:
    """How many rows the page says to stand behind the mark that was clicked."""
    (told,) = [text for text in texts(at.caption) if "for this point" in text or "No rows contribute" in text]
    return 0 if told.startswith("No rows") else int(told.split()[0].replace(",", ""))


def test_a_bar_of_where_errors_start_lists_as_many_as_it_counts_and_leads_to_their_spans(
    shown: Workspace, open_page: OpenPage
) -> None:
    at = open_page("explore")
    seen = []
    for bars in drawn(at, "positions"):
        for count, mark in zip(numbers(bars["y"]), bars["customdata"], strict=True):
            click(at, "chart-positions", {"customdata": mark})
            assert not at.exception
            assert behind(at) == count, mark
            of = "Annotators’ errors" if mark[0] == "annotator" else "Findings of judges"
            assert f"{of} that start at {mark[2]} of the trace" in title(at)
            seen.append((mark[0], count))
    totals = {side: sum(count for of, count in seen if of == side) for side in ("annotator", "judge")}
    assert totals["annotator"] == 45  # 23 of ada's errors and 22 of ben's
    assert totals["judge"] > 0


def test_a_bar_lists_only_the_traces_that_the_filters_leave(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore", facet_score="3")
    for bars in drawn(at, "positions"):
        known = [(count, mark) for count, mark in zip(numbers(bars["y"]), bars["customdata"], strict=True) if count]
        for count, mark in known[-1:]:
            click(at, "chart-positions", {"customdata": mark})
            assert behind(at) == count, mark


def test_a_square_of_two_dimensions_lists_the_errors_that_carry_both(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    (squares,) = drawn(at, "together")
    for mark in squares["customdata"]:
        click(at, "chart-together", {"customdata": mark})
        assert not at.exception
        assert behind(at) == mark[2], mark
        assert (f"Errors of {mark[0]}" if mark[0] == mark[1] else f"Errors of both {mark[0]} and {mark[1]}") in title(
            at
        )


def test_what_stands_behind_a_mark_has_the_width_of_the_page(full: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    click(at, "chart-together", {"customdata": marks_of(at, "chart-together")[0]})
    choose(at, "tools", (0, "calls"))
    in_columns = [table.proto.id for column in at.columns for table in column.dataframe]
    below = [table.proto.id for table in at.dataframe if table.proto.id not in in_columns]
    for key in ("rows-together", "rows-tools"):
        assert any(name.endswith(key) for name in below), key
    assert [name for name in in_columns if "behind" in name] == []


def test_a_row_behind_a_mark_opens_in_compare_and_at_its_first_span_in_work(
    full: Workspace, open_page: OpenPage
) -> None:
    at = open_page("explore")
    mark = marks_of(at, "chart-together")[0]
    click(at, "chart-together", {"customdata": mark})
    choose(at, "rows-together", 0)
    assert {"Open in Compare", "Open the span in Work"} <= {button.label for button in at.button}
    row = next(table.value for table in at.dataframe if "span_id" in table.value).iloc[0]
    with read_transaction(full.engine) as connection:
        (error,) = [e for e in exploring.complete_errors(connection).itertuples() if e.label_id == row["label_id"]]
        order = [span.span_id for span in load(connection, error.trace_id).spans]
    assert row["span_id"] == min(error.span_ids, key=order.index)
    assert row["span"] == f"S{order.index(row['span_id']) + 1}"


def test_the_calls_behind_a_tool_are_all_or_those_that_failed(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    tools = next(table.value for table in at.dataframe if "calls" in table.value)
    assert tools["failed"].max() > 0
    assert tools["interval"].str.startswith("[").all()
    for place, row in enumerate(tools.itertuples()):
        for column in ("failed", "calls"):
            choose(at, "tools", (place, column))
            assert behind(at) == getattr(row, column), (row.tool, column)
            assert plain(f"{'Failed calls' if column == 'failed' else 'Calls'} of {row.tool}") in title(at)


def test_a_similar_error_opens_in_compare(shown: Workspace, open_page: OpenPage) -> None:
    at = open_page("explore")
    (box,) = [box for box in at.selectbox if box.key == "similar_to"]
    box.select_index(0).run()
    choose(at, "alike", 0)
    assert at.button(key="alike-open").label == "Open in Compare"


def test_a_finding_of_an_older_version_is_named_as_compare_finds_it(full: Workspace) -> None:
    with write_transaction(full.engine) as connection:
        cell, version = tables.cell, tables.judge_version
        old = connection.execute(
            select(version)
            .join(cell, cell.c.judge_version == version.c.judge_version)
            .join(tables.finding, tables.finding.c.cell_key == cell.c.cell_key)
            .where(version.c.model == "checks")
        ).first()
        assert old is not None
        newer = {**old._asdict(), "judge_version": "f" * 64}
        connection.execute(insert(version).values(newer))
        here = select(cell).where(cell.c.judge_version == old.judge_version)
        rows = [row._asdict() for row in connection.execute(here)]
        last = max(row["finished_at"] for row in rows) + 1
        for row in rows:
            held = {name: value for name, value in row.items() if name != "cell_key"}
            connection.execute(insert(cell).values({**held, "judge_version": "f" * 64, "finished_at": last}))
        every = pd.concat([exploring.placed_findings(connection, part) for part in range(exploring.PLACES)])
        of_old = every[(every["dimension"] == old.rubric) & every["judge_model"].str.startswith("checks")]
        assert set(of_old["judge_model"]) == {f"checks @{old.judge_version[:6]}"}
