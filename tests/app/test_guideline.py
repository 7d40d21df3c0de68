"""The guideline's page: read, acknowledge, compare, practise, write."""

from __future__ import annotations

from tests.app.conftest import OpenPage
from tests.judging.team import T0, submit

from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.judging.adjudication.practice import SHIPPED_TRACE
from tracejury.judging.labels.guidelines import acknowledged, guideline, publish
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.queues.queue_store import PRACTICE, QueueSpec, make_queue
from tracejury.judging.records import DIMENSIONS, IMPACTS
from tracejury.judging.store import Workspace

IMAGE = "See ![this](https://evil.example/x.png) and **that**."


def published(space: Workspace, *bodies: dict[str, str]) -> None:
    for body in bodies:
        with write_transaction(space.engine) as connection:
            publish(connection, body, author="root")


def test_without_a_guideline_the_shipped_one_is_shown_and_published_with_one_press(
    empty: Workspace, open_page: OpenPage
) -> None:
    at = open_page("guideline")
    assert "This is the shipped one" in at.info[0].value
    shown = [str(one.value) for one in at.markdown]
    assert len(shown) == 1 + len(DIMENSIONS)
    assert all(f"**{impact}**" in shown[0] for impact in IMPACTS)
    assert all("### Examples" in text and "```text" in text and "Score" in text for text in shown[1:])
    at.button(key="publish_shipped").click().run()
    with read_transaction(empty.engine) as connection:
        made = guideline(connection)
    assert made is not None
    assert set(made.body) == {"general", *DIMENSIONS}
    assert "(text of a trace)" not in str(made.body)


def test_the_shipped_practice_is_added_with_one_press(empty: Workspace, open_page: OpenPage) -> None:
    at = open_page("guideline", view="Practice")
    at.button(key="shipped").click().run()
    assert at.text[0].value == "First practice: 0 of 1 done"
    submit(empty, "me", SHIPPED_TRACE, scores={"EE": 2}, occasion=PRACTICE)
    at.run()
    assert (at.metric[0].value, at.metric[0].delta) == ("8 %", "1 of 12 points")
    told = [str(one.value) for one in at.text]
    assert any(text.startswith("Missed: LC high on S") for text in told)
    assert any("Medium impact: the work is delayed" in str(one.value) for one in at.caption)


def test_reading_and_acknowledging(empty: Workspace, open_page: OpenPage) -> None:
    published(empty, {"general": "Read **first**.", "LC": "Facts must hold."})
    at = open_page("guideline")
    assert [markdown.value for markdown in at.markdown] == ["Read **first**.", "Facts must hold."]
    at.button(key="acknowledge").click().run()
    assert [one.value for one in at.success] == ["You have acknowledged version 1."]
    with read_transaction(empty.engine) as connection:
        assert acknowledged(connection, "me") == 1


def test_no_image_is_ever_loaded(empty: Workspace, open_page: OpenPage) -> None:
    published(empty, {"general": IMAGE})
    (shown,) = open_page("guideline").markdown
    assert shown.value == "See !\\[this](https://evil.example/x.png) and **that**."


def test_changes_between_versions_are_shown_line_by_line(empty: Workspace, open_page: OpenPage) -> None:
    published(empty, {"LC": "a\nb"}, {"LC": "a\nc"})
    at = open_page("guideline")
    at.segmented_control(key="guideline_view").set_value("Changes").run()
    assert at.code[0].value == "  a\n- b\n+ c"


def test_an_administrator_publishes_a_new_version_from_the_last_one(empty: Workspace, open_page: OpenPage) -> None:
    published(empty, {"general": "One.", "LC": "Facts."})
    at = open_page("guideline")
    at.segmented_control(key="guideline_view").set_value("Write").run()
    assert at.text_area(key="part-LC").value == "Facts."
    at.text_area(key="part-LC").input("Facts and sources.")
    at.text_input(key="guideline_note").input("sources")
    at.button(key="FormSubmitter:guideline_form-Publish").click().run()
    with read_transaction(empty.engine) as connection:
        made = guideline(connection)
    assert made is not None
    assert (made.version, dict(made.body), made.note) == (2, {"general": "One.", "LC": "Facts and sources."}, "sources")


def test_a_first_guideline_may_begin_with_the_rubrics(empty: Workspace, open_page: OpenPage) -> None:
    at = open_page("guideline")
    at.segmented_control(key="guideline_view").set_value("Write").run()
    assert "Examples" in str(at.text_area(key="part-LC").value)


def test_practice_shows_the_right_answers_after_submitting(full: Workspace, open_page: OpenPage) -> None:
    with read_transaction(full.engine) as connection:
        one = trace_ids(connection)[0]
    with write_transaction(full.engine) as connection:
        make_queue(connection, QueueSpec(name="drill", author="ada", practice=True), [one], now=T0)
    at = open_page("guideline")
    at.segmented_control(key="guideline_view").set_value("Practice").run()
    assert at.text[0].value == "drill: 0 of 1 done"
    submit(full, "me", one, scores={"LC": 3}, occasion=PRACTICE)
    at.run()
    assert at.text[0].value == "drill: 1 of 1 done"
    assert at.dataframe[0].value["dimension"].tolist() == ["LC"]
    with read_transaction(full.engine) as connection:
        assert [s.what for s in sightings(connection, annotator="me", trace_id=one)] == ["Practice answers"]
