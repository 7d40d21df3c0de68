"""Where people differ, worst first, raters unnamed: the list, and the trace that is decided; then written as gold."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from sqlalchemy import Connection

from tracejury.app import listings
from tracejury.app.adjudicating import decisions_now, opinions_now
from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted
from tracejury.app.session import must, say, shown_message, user, workspace
from tracejury.app.views.adjudicate.acting import attempted, on_what_was_drawn
from tracejury.app.views.adjudicate.one_trace import one_trace
from tracejury.app.views.adjudicate.reveals import reveals
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.adjudication import adjudication_items
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem
from tracejury.judging.adjudication.disputes import FAR, difference_counts
from tracejury.judging.adjudication.judge_column import judge_shown, show_judge
from tracejury.judging.labels.anchoring import traces_seen
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.store.judge_models import judge_models
from tracejury.judging.store.locks import SETTINGS

VIEWS = ("To decide", "All disputed", "Undisputed", "Changes after reveal")
LISTED = {
    "weight": st.column_config.NumberColumn(
        "weight",
        format="%.0f",
        help="Sum of the score differences of the disputed dimensions, plus 3 for each unmatched error of high "
        "impact and 2 of medium impact",
    ),
    "raters": st.column_config.NumberColumn("raters", help="Annotators who submitted the trace"),
    "score differences": st.column_config.TextColumn(
        "score differences",
        help=f"Dimensions whose scores by two raters differ by {FAR} points or more, with the difference",
    ),
    "unmatched errors": st.column_config.NumberColumn(
        "unmatched errors", help="Errors of medium or high impact that only some of the raters marked"
    ),
    "state": st.column_config.TextColumn(
        "state",
        help="open: not decided; changed: a rater changed a label after the decision; closed: the gold is saved",
    ),
    "gold": st.column_config.TextColumn("gold", help="Newest gold version"),
}


def page() -> None:
    must("adjudicator")
    layout.heading("Adjudicate")
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="adjudicate_view", label_visibility="collapsed"
    )
    if view == "Changes after reveal":
        reveals()
        return
    seed = workspace().secret()  # mixes the raters' order
    known, ruled = opinions_now(seed), decisions_now()
    with read_transaction(workspace().engine) as connection:
        alike = adjudication_items.undisputed(connection, seed=seed, known=known, ruled=ruled)
        every = (
            alike
            if view == "Undisputed"
            else adjudication_items.items(
                connection, seed=seed, everything=view == "All disputed", known=known, ruled=ruled
            )
        )
        judge = judge_shown(connection)
        items = seen_by_me(connection, every)
    names = dict(listings.traces()[["trace_id", "name"]].itertuples(index=False, name=None))
    if own := len(every) - len(items):
        st.info(f"{counted(own, 'trace')} left out because you are labelling them blind. Submit them first.")
    layout.done(shown_message())
    judge_choice(judge)
    undisputed_line(alike, seed)
    if not items:
        st.info("Every undisputed trace has gold." if view == "Undisputed" else NO_DISPUTE)
        return
    trace_id = choose(items, names)
    if view == "All disputed":
        why_they_differ(items)
    with read_transaction(workspace().engine) as connection:
        one = adjudication_items.item(connection, trace_id, seed=seed, judge=judge)
    if one is None:
        st.info("Fewer than two annotators have submitted this trace.")
        return
    note_seen(workspace().engine, annotator=user().name, trace_ids=[trace_id], what="Adjudicate")
    with on_what_was_drawn(one):
        one_trace(one, judge)


NO_DISPUTE = (
    "No dispute is open. A trace is disputed when two annotators have submitted it and their scores differ by two "
    "points or more, or one of them missed an error of medium or high impact."
)


def judge_choice(shown: str | None) -> None:
    """A researcher decides whether adjudicators see a judge as one more rater; it is off unless they say so."""
    if not user().may("researcher"):
        return
    with st.expander("Judge as an additional rater", expanded=False):
        with read_transaction(workspace().engine) as connection:
            known = judge_models(connection)
        options: list[str | None] = [None, *known]
        chosen = st.selectbox(
            "Judge shown as an unnamed rater", options,
            index=options.index(shown) if shown in known else 0, key="judge_shown",
            format_func=lambda one: "none" if one is None else one, width=360,
        )  # fmt: skip
        st.caption(
            "Adjudicators see the judge's scores and findings under an anonymous name (R1, R2 …). Gold that is "
            "decided beside a judge's answers is not independent of them, so every gold label records which judge "
            "was shown."
        )
        if chosen != shown and st.button("Save", key="save_judge_shown"):
            with write_transaction(workspace().engine, SETTINGS) as connection:
                show_judge(connection, chosen, by=user().name)
            say(
                "Adjudicators now see annotators only."
                if chosen is None
                else "The judge is now shown as an additional rater."
            )


def seen_by_me(connection: Connection, items: list[AdjudicationItem]) -> list[AdjudicationItem]:
    """An adjudicator who labels a trace blind reads nobody else's labels of it before they have submitted."""
    who, ids = user(), [one.dispute.trace_id for one in items]
    seen = traces_seen(connection, annotator=who.name, role=who.role, trace_ids=ids)
    return [one for one in items if one.dispute.trace_id in seen]


def choose(items: list[AdjudicationItem], names: dict[str, str]) -> str:
    """The trace to decide; the list shows what is at stake on each."""
    table = pd.DataFrame(
        [
            {
                "trace": one.dispute.trace_id,
                "name": names.get(one.dispute.trace_id, ""),
                "weight": one.dispute.weight,
                "raters": len(one.dispute.raters),
                "score differences": ", ".join(f"{key} {gap:.0f}" for key, gap in one.dispute.gaps.items()) or "none",
                "unmatched errors": len(one.dispute.unmatched),
                "state": one.status,
                "gold": f"version {one.decided.version}" if one.decided.version else "none",
            }
            for one in items
        ]
    )
    with st.expander(f"{counted(len(items), 'trace')}, worst first", expanded=False):
        st.dataframe(table, hide_index=True, height=min(38 + 35 * len(table), 250), column_config=LISTED)
    ids = [one.dispute.trace_id for one in items]
    trace_id = st.query_params.get("trace")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Trace", ids, index=ids.index(trace_id) if trace_id in ids else 0, key="adjudicate_trace",
            format_func=lambda key: f"{key} · {names.get(key, '')}",
        )  # fmt: skip
        st.button(
            "Next trace", shortcut="T", key="next_trace", disabled=len(ids) < 2, on_click=go_to,
            args=(ids[(ids.index(str(chosen)) + 1) % len(ids)],),
        )  # fmt: skip
    return str(chosen)


def go_to(trace_id: str) -> None:
    st.session_state["adjudicate_trace"] = trace_id


def why_they_differ(items: list[AdjudicationItem]) -> None:
    """What raters differ in, counted over the errors of these traces."""
    with st.expander("Why raters differ"):
        table = difference_counts(one.dispute for one in items)
        st.dataframe(
            table, hide_index=True, placeholder="n/a",
            column_config={"share": st.column_config.NumberColumn("share", format="percent")},
        )  # fmt: skip
        st.caption(
            "existence: not all raters marked the error; span, dimension, impact: those who did name others. share: of "
            "all errors that any rater of these traces marked. One error may count in several rows."
        )


def undisputed_line(alike: list[AdjudicationItem], seed: str) -> None:
    if not alike:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{counted(len(alike), 'trace')} undisputed, without gold.")
        if st.button("Save as gold where all raters agree", key="accept"):
            engine, who = workspace().engine, user().name
            accepted = attempted(lambda: adjudication.accept_undisputed(engine, by=who, seed=seed))
            if accepted is not False:
                left = len(alike) - len(accepted)
                say(f"Gold saved for {counted(len(accepted), 'trace')}; {left} with small differences left.")


page()
