"""The guideline: read and acknowledged before work, compared between versions, practised, written by administrators."""

from __future__ import annotations

import time
from collections.abc import Mapping

import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.charts import calibration_bars
from tracejury.app.components.estimate_text import plain
from tracejury.app.components.glossary import meaning, meanings
from tracejury.app.components.markdown import without_images
from tracejury.app.session import link_params, user, workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication import practice
from tracejury.judging.judges.rubric import Anchors, Rubric, rubrics
from tracejury.judging.labels import guidelines
from tracejury.judging.labels.guidelines import GENERAL, PARTS, Guideline, GuidelineError
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.queues import places
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.records import DIMENSIONS, ErrorLabel
from tracejury.judging.store.locks import GUIDELINE
from tracejury.judging.store.spans import ordinals_of

VIEWS = ("Read", "Changes", "Practice")
WRITE = "Write"


def page() -> None:
    layout.heading("Guideline")
    with read_transaction(workspace().engine) as connection:
        known = guidelines.guidelines(connection)
        version = asked_version(known)
        waiting = guidelines.to_acknowledge(connection, user().name, pinned=version)
    views = (*VIEWS, WRITE) if user().may("admin") else VIEWS
    view_name = st.query_params.get("view", "")
    view = st.segmented_control(
        "View",
        views,
        default=view_name if view_name in views else VIEWS[0],
        required=True,
        key="guideline_view",
        label_visibility="collapsed",
    )
    if view == "Read":
        read(known, version, waiting)
    elif view == "Changes":
        changes(known)
    elif view == "Practice":
        practise()
    else:
        write(known)


# ---- reading ---------------------------------------------------------------------------------------------------


def asked_version(known: list[Guideline]) -> int | None:
    """The version that the address names: a queue may ask for another than the newest."""
    text = st.query_params.get("version", "")
    return int(text) if text.isdecimal() and int(text) in {one.version for one in known} else None


def read(known: list[Guideline], version: int | None, waiting: int | None) -> None:
    if not known:
        no_guideline()
        return
    shown = next((one for one in known if one.version == version), known[0])
    older = "" if shown is known[0] else f" The newest is version {known[0].version}."
    st.caption(
        plain(f"Version {shown.version}. {shown.note}{older}" if shown.note else f"Version {shown.version}.{older}")
    )
    for part in PARTS:
        if part in shown.body:
            with st.container(border=True):
                layout.title(title_of(part))
                st.markdown(without_images(shown.body[part]))
    if waiting is None:
        st.success(f"You have acknowledged version {shown.version}.", icon=":material/check:")
        return
    if st.button(f"I have read version {shown.version}", type="primary", key="acknowledge"):
        with write_transaction(workspace().engine, GUIDELINE) as connection:
            guidelines.acknowledge(connection, user().name, shown.version)
        st.rerun()


def no_guideline() -> None:
    """Show the shipped guideline, which an administrator publishes with one press."""
    st.info(
        "No guideline has been published. This is the shipped one: each dimension with a worked example."
        + ("" if user().may("admin") else " Try: ask an administrator to publish it.")
    )
    if user().may("admin") and st.button("Publish the shipped guideline", type="primary", key="publish_shipped"):
        publish(starting_point(), "shipped with Tracejury")
        st.rerun()
    for part, text in starting_point().items():
        with st.expander(title_of(part), expanded=part == GENERAL):
            st.markdown(without_images(text))


def title_of(part: str) -> str:
    if part == GENERAL:
        return "General"
    rubric = rubrics(workspace().home).get(part)
    return part if rubric is None else f"{part} · {rubric.title}"


# ---- changes ---------------------------------------------------------------------------------------------------


def changes(known: list[Guideline]) -> None:
    if len(known) < 2:
        st.info("Only one version is published, so there is nothing to compare.")
        return
    versions = [one.version for one in known]
    with st.container(horizontal=True):
        old = st.selectbox("From", versions, index=1, key="diff_from", format_func=lambda n: f"version {n}")
        new = st.selectbox("To", versions, index=0, key="diff_to", format_func=lambda n: f"version {n}")
    by_version = {one.version: one for one in known}
    differences = guidelines.diff(by_version[old], by_version[new])
    if not differences:
        st.caption("The two versions are identical.")
    signs = {"same": " ", "added": "+", "removed": "-"}
    for part, lines in differences.items():
        layout.title(title_of(part))
        st.code("\n".join(f"{signs[kind]} {line}" for kind, line in lines), language="diff", wrap_lines=True)


# ---- practice --------------------------------------------------------------------------------------------------


def practise() -> None:
    with read_transaction(workspace().engine) as connection:
        sets = [row for row in queue.queues_for(connection, user().name) if row.is_practice]
        states = {row.queue_key: places.progress(connection, row.queue_key, user().name) for row in sets}
        feedbacks = practice.practised(connection, user().name)
    if not sets and not feedbacks:
        no_practice()
        return
    for row in sets:
        state = states[row.queue_key]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{row.name}: {state.done} of {state.total} done")
            if state.done < state.total and st.button("Start practice", key=f"practise-{row.queue_key}"):
                st.switch_page("views/work.py", query_params=link_params(queue=str(row.queue_key)))
    if not feedbacks:
        st.caption(
            "Read the trace, mark its errors, score the dimensions, submit. Then this page shows the correct answers "
            "beside yours, and why."
        )
        return
    your_score(feedbacks)
    note_seen(
        workspace().engine,
        annotator=user().name,
        trace_ids=[one.trace_id for one in feedbacks],
        what="Practice answers",
    )
    for one in feedbacks:
        feedback(one, is_open=len(feedbacks) == 1)


def no_practice() -> None:
    """Say how practice comes to be; who may make it makes it with one press."""
    if not user().may("admin"):
        st.info(
            "There is no practice queue. Try: ask an administrator to press Add the shipped practice on this page; "
            "it takes about five minutes."
        )
        return
    st.info(
        "There is no practice queue. Try: practise on the shipped trace, which takes about five minutes and has known "
        "errors; or create a practice queue of your own traces on the Admin page, under Queues."
    )
    if st.button("Add the shipped practice", key="shipped", type="primary", icon=":material/school:"):
        try:
            practice.make_shipped(workspace().engine, author=user().name, now=time.time_ns() // 1000)
        except queue.QueueError as problem:
            st.error(plain(f"Not added: {problem}."))
            return
        st.rerun()


def your_score(feedbacks: list[practice.Feedback]) -> None:
    score, table = practice.practice_score(feedbacks), practice.calibration(feedbacks)
    if score.percent is not None:
        st.metric(
            "Your score", f"{score.percent:.0f} %", f"{score.points} of {score.of} points", delta_color="off",
            help="You get one point for each error that you caught and for each score equal to the correct one. "
                "The total counts all errors that either side marked and all correct scores.",
        )  # fmt: skip
    if table.empty:
        return
    layout.title(
        "Your scores and the correct scores",
        "Mean scores over the practice traces that you submitted.  \n" + meanings(DIMENSIONS),
    )
    st.plotly_chart(
        calibration_bars(table), key="calibration", alt="Your mean score and the correct mean score by dimension"
    )
    st.dataframe(
        table.rename(columns={"own": "your mean", "correct": "correct mean", "exact": "exact matches"}), hide_index=True
    )


def feedback(practised: practice.Feedback, *, is_open: bool = False) -> None:
    label = (
        f"{practised.trace_id[:12]}: {len(practised.caught)} caught, {len(practised.missed)} missed, "
        f"{len(practised.unmatched)} unmatched"
    )
    with read_transaction(workspace().engine) as connection:
        ordinals = ordinals_of(connection, practised.trace_id)
    with st.expander(plain(label), expanded=is_open):
        st.caption("Your labels beside the correct labels", help=meanings(("caught", "missed", "unmatched")))
        rows = [
            {"dimension": key, "you": shown(practised.own_scores, key), "right": shown(practised.correct_scores, key)}
            for key in sorted(practised.own_scores.keys() | practised.correct_scores.keys())
        ]
        st.dataframe(rows, hide_index=True)
        for own, right in practised.caught:
            error("Caught", own, ordinals)
            error("Correct label", right, ordinals, is_explained=True)
        for one in practised.missed:
            error("Missed", one, ordinals, is_explained=True)
        for one in practised.unmatched:
            error("Unmatched", one, ordinals)
            st.caption("The correct labels have no such error.")


def shown(scores: object, key: str) -> str:
    by_dimension = dict(scores)  # type: ignore[call-overload]
    if key not in by_dimension:
        return "–"
    return "n/a" if by_dimension[key] is None else f"{by_dimension[key]:.0f}"


def error(state: str, label: ErrorLabel, ordinals: Mapping[str, str], *, is_explained: bool = False) -> None:
    """One error; `is_explained`: with the words of the trace that show it, and what its impact means."""
    spans = ", ".join(ordinals.get(span_id, span_id) for span_id in label.span_ids)
    st.text(
        f"{state}: {'+'.join(label.dimensions)} {label.impact or ''} on {spans or 'no span'}"
        + (f": {label.description}" if label.description else "")
    )
    if not is_explained:
        return
    for piece in label.evidence:
        st.code(piece.quote, language=None, wrap_lines=True)
    why = meaning(label.impact) if label.impact else None
    if why:
        st.caption(why)


# ---- writing ---------------------------------------------------------------------------------------------------


def write(known: list[Guideline]) -> None:
    before = known[0].body if known else starting_point()
    st.caption(
        "Write Markdown. Put examples under a heading “Examples”, each with text of a trace as a quotation. Images "
        "are not loaded. Publishing creates a new version: people at work are told at once, and asked to read it "
        "before their next trace."
    )
    with st.form("guideline_form"):
        body = {
            part: st.text_area(title_of(part), before.get(part, ""), height=160, key=f"part-{part}") for part in PARTS
        }
        note = st.text_input("Changes", key="guideline_note")
        if st.form_submit_button("Publish", type="primary"):
            publish(body, note)


def publish(body: dict[str, str], note: str) -> None:
    if not user().may("admin"):
        st.error("Only an administrator may publish a guideline.")
        return
    try:
        with write_transaction(workspace().engine, GUIDELINE) as connection:
            version = guidelines.publish(connection, body, author=user().name, note=note)
    except GuidelineError as problem:
        st.error(plain(f"Not published: {problem}."))
        return
    st.success(f"Version {version} is published.")


def starting_point() -> dict[str, str]:
    """The shipped guideline: how to work, each impact with an example, and the rubrics' own words and examples."""
    texts = {GENERAL: SHIPPED_GENERAL}
    for key, rubric in rubrics(workspace().home).items():
        if key in PARTS and rubric.anchors is not None:
            texts[key] = dimension_text(rubric, rubric.anchors)
    return texts


def dimension_text(rubric: Rubric, anchors: Anchors) -> str:
    """What annotators look for in a dimension, the scores, and the first worked example."""
    parts = [
        rubric.annotator.strip(),
        f"- **3**: {anchors.full}\n- **1–2**: {anchors.middle}\n- **0**: {anchors.none}",
    ]
    if rubric.examples:
        example = rubric.examples[0]
        lines = [f"- {one.description.strip()} Impact: {one.impact}." for one in example.reply.findings]
        parts += [
            "### Examples", f"```text\n{example.trace.strip()}\n```", "\n".join(lines) or "No error.",
            f"Score {example.reply.score}. {example.reply.rationale.strip()}",
        ]  # fmt: skip
    return "\n\n".join(parts)


SHIPPED_GENERAL = """\
Read the whole trace before you score it. Mark every error at the span where it first happens, with the words that \
show it. Two different errors on one span are two errors; one error that shows in several spans is one.

### Impact

- **low**: the goal is reached all the same; only a step or some style is lost. Example: the agent makes the same \
search twice although the first result was complete; the answer is right.
- **medium**: the work is delayed, or the answer is partly wrong. Example: a plan asks for a check in a second \
source, the agent skips the check and says that it was done; the number happens to be right, its support is not.
- **high**: the answer is wrong, missing or made up because of it. Example: a page gives the year of the foundation \
stone, the agent takes it for the year of the opening, and the answer is three years off."""

page()
