"""The guideline: read and acknowledged before work, compared between versions, practised, written by administrators."""

from __future__ import annotations

import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.figures import counted, plain
from tracejury.app.components.glossary import meanings
from tracejury.app.components.markdown import without_images
from tracejury.app.components.rater_charts import calibration_bars
from tracejury.app.session import link_params, user, workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication import practice
from tracejury.judging.judges.rubric import rubrics
from tracejury.judging.labels import guidelines
from tracejury.judging.labels.guidelines import GENERAL, PARTS, Guideline, GuidelineError
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.records import DIMENSIONS, ErrorLabel

VIEWS = ("Read", "Changes", "Practice")
WRITE = "Write"


def page() -> None:
    layout.heading("Guideline")
    with read_transaction(workspace().engine) as connection:
        known = guidelines.guidelines(connection)
        wanted = asked_version(known)
        waiting = guidelines.to_acknowledge(connection, user().name, pinned=wanted)
    views = (*VIEWS, WRITE) if user().may("admin") else VIEWS
    view = st.segmented_control(
        "View", views, default=VIEWS[0], required=True, key="guideline_view", label_visibility="collapsed"
    )
    if view == "Read":
        read(known, wanted, waiting)
    elif view == "Changes":
        changes(known)
    elif view == "Practice":
        practise()
    else:
        write(known)


# ---- reading ---------------------------------------------------------------------------------------------------


def asked_version(known: list[Guideline]) -> int | None:
    """The version that the address names: a queue may ask for another than the newest."""
    asked = st.query_params.get("version", "")
    return int(asked) if asked.isdecimal() and int(asked) in {one.version for one in known} else None


def read(known: list[Guideline], wanted: int | None, waiting: int | None) -> None:
    if not known:
        st.info("No guideline has been published. The rubric beside each score explains the dimension.")
        return
    shown = next((one for one in known if one.version == wanted), known[0])
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
        with write_transaction(workspace().engine) as connection:
            guidelines.acknowledge(connection, user().name, shown.version)
        st.rerun()


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
    found = guidelines.diff(by_version[old], by_version[new])
    if not found:
        st.caption("The two versions are identical.")
    signs = {"same": " ", "added": "+", "removed": "-"}
    for part, lines in found.items():
        layout.title(title_of(part))
        st.code("\n".join(f"{signs[kind]} {line}" for kind, line in lines), language="diff", wrap_lines=True)


# ---- practice --------------------------------------------------------------------------------------------------


def practise() -> None:
    with read_transaction(workspace().engine) as connection:
        sets = [row for row in queue.queues_for(connection, user().name) if row.is_practice]
        states = {row.queue_key: queue.progress(connection, row.queue_key, user().name) for row in sets}
        found = practice.practised(connection, user().name)
    if not sets:
        st.info("There is no practice queue. Try: ask an administrator to create a queue marked “Practice”.")
        return
    for row in sets:
        state = states[row.queue_key]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{row.name}: {state.done} of {state.total} done")
            if state.done < state.total and st.button("Start practice", key=f"practise-{row.queue_key}"):
                st.switch_page("views/work.py", query_params=link_params(queue=str(row.queue_key)))
    if not found:
        st.caption("After you submit a practice trace, this page shows the correct answers beside yours.")
        return
    table = practice.calibration(found)
    if not table.empty:
        layout.title(
            "Your scores and the correct scores",
            "Mean scores over the practice traces that you submitted.  \n" + meanings(DIMENSIONS),
        )
        st.plotly_chart(
            calibration_bars(table), key="calibration", alt="Your mean score and the correct mean score by dimension"
        )
        st.dataframe(
            table.rename(columns={"own": "your mean", "gold": "correct mean", "exact": "exact matches"}),
            hide_index=True,
        )
    note_seen(
        workspace().engine, annotator=user().name, trace_ids=[one.trace_id for one in found], what="Practice answers"
    )
    for one in found:
        feedback(one)


def feedback(found: practice.Feedback) -> None:
    label = (
        f"{found.trace_id[:12]}: {len(found.caught)} caught, {len(found.missed)} missed, "
        f"{len(found.unmatched)} unmatched"
    )
    with st.expander(plain(label)):
        st.caption("Your labels beside the correct labels", help=meanings(("caught", "missed", "unmatched")))
        rows = [
            {"dimension": key, "you": shown(found.own_scores, key), "right": shown(found.gold_scores, key)}
            for key in sorted(found.own_scores.keys() | found.gold_scores.keys())
        ]
        st.dataframe(rows, hide_index=True)
        for own, right in found.caught:
            error("Caught", own)
            if (own.impact, set(own.dimensions)) != (right.impact, set(right.dimensions)):
                error("correct label", right)
        for one in found.missed:
            error("Missed", one)
        for one in found.unmatched:
            error("Unmatched", one)


def shown(scores: object, key: str) -> str:
    given = dict(scores)  # type: ignore[call-overload]
    if key not in given:
        return "–"
    return "n/a" if given[key] is None else f"{given[key]:.0f}"


def error(state: str, label: ErrorLabel) -> None:
    st.text(
        f"{state}: {'+'.join(label.dimensions)} {label.impact or ''} on {counted(len(label.span_ids), 'span')}"
        + (f": {label.description}" if label.description else "")
    )


# ---- writing ---------------------------------------------------------------------------------------------------


def write(known: list[Guideline]) -> None:
    before = known[0].body if known else starting_point()
    st.caption(
        "Write Markdown. Put examples under a heading “Examples”, each with text of a trace as a quotation. Images "
        "are not loaded. Publishing creates a new version, which every annotator must acknowledge before continuing."
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
        with write_transaction(workspace().engine) as connection:
            version = guidelines.publish(connection, body, author=user().name, note=note)
    except GuidelineError as problem:
        st.error(plain(f"Not published: {problem}."))
        return
    st.success(f"Version {version} is published.")


def starting_point() -> dict[str, str]:
    """What a first guideline may begin with: the rubrics' own words."""
    made = {GENERAL: "Read the whole trace before you score it. Label every error that a reader should know about."}
    for key, rubric in rubrics(workspace().home).items():
        if key in PARTS and rubric.anchors is not None:
            anchors = rubric.anchors
            made[key] = (
                f"{rubric.annotator}\n\n- **3**: {anchors.full}\n- **1–2**: {anchors.middle}\n- **0**: {anchors.none}"
                "\n\n### Examples\n\n> (text of a trace)"
            )
    return made


page()
