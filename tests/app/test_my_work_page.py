"""My work: lists that unblind nobody, a search that stays within the person's own traces, messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage
from tests.build import span_id
from tests.judging.team import many_traces, queue_of, submit, trace_id

from tracejury.app import session
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.comments import messages, put_comment
from tracejury.judging.labels.my_work import return_traces
from tracejury.judging.queues.places import next_item
from tracejury.judging.store import Workspace

ONE, TWO = trace_id(0), trace_id(1)


@pytest.fixture
def space(tmp_path: Path, clean_caches: None) -> Workspace:
    return many_traces(tmp_path / "home", 3)


def titles(at: AppTest) -> list[str]:
    return [one.value for one in at.subheader]


def tables_of(at: AppTest) -> str:
    return " ".join(one.value.to_string() for one in at.dataframe)


def test_an_empty_page_says_what_each_list_is_for(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("my_work")
    assert titles(at) == ["Open (0)", "Returned (0)", "Disputed (0)", "Mentioned (0)", "Messages (0)"]
    assert "No trace is open." in [one.value for one in at.caption]


def test_open_returned_and_mentioned_traces_are_listed_without_the_words_of_others(
    space: Workspace, open_page: OpenPage
) -> None:
    place = next_item(space.engine, queue_of(space, 2, name="pilot"), "me", now=1)
    assert place is not None
    done = TWO if place.trace_id == ONE else ONE
    submit(space, "me", done)
    with write_transaction(space.engine) as connection:
        for name, trace in (("c", place.trace_id), ("d", done)):
            put_comment(
                connection, comment_id=name, author="ben", body="LC is wrong", trace_id=trace, span_id=span_id(2),
                to=["me"],
            )  # fmt: skip
        assert return_traces(connection, [done], ["me"], by="lead", reason="the plan again") == 1
    at = open_page("my_work")
    assert titles(at)[:4] == ["Open (1)", "Returned (1)", "Disputed (0)", "Mentioned (1)"]
    shown = tables_of(at) + " ".join(one.value for one in [*at.caption, *at.text, *at.markdown])
    assert "S2" in shown
    assert not any(words in shown for words in ("is wrong", "the plan again"))


def test_an_annotator_finds_only_spans_of_traces_that_a_queue_gave(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = next_item(space.engine, queue_of(space, 3), "ada", now=1)
    assert place is not None
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="ada", role="annotator"))
    at = open_page("my_work")
    at.text_input(key="mine_search").input("answer").run()
    hits = at.dataframe[0].value
    assert [tuple(row) for row in hits.itertuples(index=False)] == [(place.trace_id, "S2")]


def test_the_search_without_roles_finds_spans_of_every_trace(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("my_work")
    at.text_input(key="mine_search").input("answer").run()
    assert [one.value for one in at.caption if "Select a row" in one.value] == ["3 spans. Select a row to open it."]
    assert tables_of(at).count("S2") == 3
    at.text_input(key="mine_search").input("nowhere").run()
    assert "No span of your traces contains 'nowhere'." in [one.value for one in at.caption]


def test_an_annotator_whom_nobody_leads_is_told_that_there_is_nobody_to_write_to(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="ada", role="annotator"))
    at = open_page("my_work")
    assert at.text_area.len == 0
    assert "There is nobody to write to" in at.caption[-1].value


def test_without_sign_in_a_mention_reaches_whoever_does_not_label_and_all_who_worked_here_can_be_written_to(
    space: Workspace, open_page: OpenPage
) -> None:
    submit(space, "ben", ONE)
    with write_transaction(space.engine) as connection:
        put_comment(connection, comment_id="c1", author="ada", body="@me", trace_id=ONE, others=["me"])
    at = open_page("my_work")
    assert "Mentioned (1)" in titles(at)
    assert at.multiselect(key="message_to_0").options == ["ada", "ben"]


def links(at: AppTest) -> list[str]:
    return [one.proto.label for one in at.get("page_link")]


def test_the_work_page_tells_once_what_others_wrote(
    space: Workspace, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "signed_in", lambda: session.User(name="me", role="annotator"))
    submit(space, "me", ONE)
    with write_transaction(space.engine) as connection:
        for name, to in (("m1", ["me"]), ("m2", [])):
            put_comment(connection, comment_id=name, author="lead", body="Version 2 is out", kind="message", to=to)
        put_comment(connection, comment_id="own", author="me", body="When?", kind="message", to=[])
        for name, trace in (("c1", ONE), ("c2", TWO)):
            put_comment(connection, comment_id=name, author="ben", body="see S2", trace_id=trace, to=["me"])
        return_traces(connection, [ONE], ["me"], by="lead", reason="the plan again")
    told = ["New in My work: 2 messages, 1 mention, 1 returned trace"]
    assert links(open_page("work")) == links(open_page("work")) == told
    assert [one.value for one in open_page("my_work").text] == ["When?", "Version 2 is out", "Version 2 is out"]
    assert links(open_page("work")) == []
    submit(space, "me", TWO)
    assert links(open_page("work")) == ["New in My work: 1 mention"]


def test_a_message_that_was_not_read_is_shown_behind_many_that_were(space: Workspace, open_page: OpenPage) -> None:
    with write_transaction(space.engine) as connection:
        for number in range(32):
            put_comment(connection, comment_id=f"m{number}", author="lead", body=f"no. {number}", kind="message", to=[])
    assert len(open_page("my_work").text) == 32
    assert [one.value for one in open_page("my_work").text] == [f"no. {number}" for number in range(31, 1, -1)]


def test_a_message_is_sent_once_and_shown(space: Workspace, open_page: OpenPage) -> None:
    at = open_page("my_work")
    at.button(key="FormSubmitter:message-0-Send").click().run()
    assert "the text is empty" in at.error[0].value
    at.text_area(key="message_body_0").input("Version 2 is out")
    at.button(key="FormSubmitter:message-0-Send").click().run()
    assert [one.value for one in at.success] == ["Message sent."]
    assert at.text_area(key="message_body_1").value == ""
    with read_transaction(space.engine) as connection:
        assert [(one.author, one.body, one.mentions) for one in messages(connection, "ben")] == [
            ("me", "Version 2 is out", ())
        ]
