"""Where people differ, worst first, raters unnamed: decided error by error and score by score, then written as gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from hashlib import blake2b
from typing import Literal, TypeVar, cast

import pandas as pd
import streamlit as st
from sqlalchemy import Connection, select

from tracejury.app import listings
from tracejury.app.adjudicating import decisions_now, opinions_now
from tracejury.app.components import layout
from tracejury.app.components.charts import FINAL, rater_dots
from tracejury.app.components.data_table import cell_table, data_table
from tracejury.app.components.drilldown import WORK, chosen_point, listing, open_in_compare, open_in_work
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.glossary import meaning, meanings
from tracejury.app.datasets import open_to_me
from tracejury.app.painting import paint
from tracejury.app.session import drawn, link_params, must, say, shown_message, user, workspace
from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.judging.adjudication import adjudication_items
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import (
    AdjudicationItem,
    GoldError,
    ItemRevision,
    LabelOutcome,
    TraceDecisions,
)
from tracejury.judging.adjudication.decisions import AdjudicationError
from tracejury.judging.adjudication.disputes import FAR, ErrorGroup, difference_counts
from tracejury.judging.adjudication.judge_column import PREFIX, judge_shown, show_judge
from tracejury.judging.labels.anchoring import anchoring, changed_scores, counted_by, traces_seen
from tracejury.judging.labels.label_store import reviews
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.records import DIMENSIONS, IMPACTS, ErrorLabel, Evidence
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import judge_models
from tracejury.judging.store.locks import SETTINGS, labels_of
from tracejury.judging.taxonomy import categories

Made = TypeVar("Made")
VIEWS = ("To decide", "All disputed", "Undisputed", "Changes after reveal")
MOST_SPANS = 1000  # of a choice list
GRADES = ("0", "1", "2", "3", "n/a")
CONFIG = {"displaylogo": False, "displayModeBar": False}
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

SpanTitles = Mapping[str, str]  # by span id: what the desk calls it


def page() -> None:
    must("adjudicator")
    layout.heading("Adjudicate")
    view = st.segmented_control(
        "View", VIEWS, default=VIEWS[0], required=True, key="adjudicate_view", label_visibility="collapsed"
    )
    if view == "Changes after reveal":
        reveals()
        return
    known, ruled = opinions_now(seed()), decisions_now()
    with read_transaction(workspace().engine) as connection:
        alike = adjudication_items.undisputed(connection, seed=seed(), known=known, ruled=ruled)
        items = (
            alike
            if view == "Undisputed"
            else adjudication_items.items(
                connection, seed=seed(), everything=view == "All disputed", known=known, ruled=ruled
            )
        )
        judge = judge_shown(connection)
        open_to_me = seen_by_me(connection, items)
    names = dict(listings.traces()[["trace_id", "name"]].itertuples(index=False, name=None))
    own = len(items) - len(open_to_me)
    items = open_to_me
    if own:
        st.info(f"{counted(own, 'trace')} left out because you are labelling them blind. Submit them first.")
    layout.done(shown_message())
    judge_choice(judge)
    undisputed_line(alike)
    if not items and view == "Undisputed":
        st.info("Every undisputed trace has gold.")
        return
    if not items:
        st.info(
            "No dispute is open. A trace is disputed when two annotators have submitted it and their scores differ "
            "by two points or more, or one of them missed an error of medium or high impact."
        )
        return
    trace_id = choose(items, names)
    if view == "All disputed":
        why_they_differ(items)
    with read_transaction(workspace().engine) as connection:
        one = adjudication_items.item(connection, trace_id, seed=seed(), judge=judge)
    if one is None:
        st.info("Fewer than two annotators have submitted this trace.")
        return
    note_seen(workspace().engine, annotator=user().name, trace_ids=[trace_id], what="Adjudicate")
    with on_what_was_drawn(one):
        desk(one, judge)


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


def seed() -> str:
    """The secret that mixes the raters' order."""
    return workspace().secret()


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


def undisputed_line(alike: list[AdjudicationItem]) -> None:
    if not alike:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{counted(len(alike), 'trace')} undisputed, without gold.")
        if st.button("Save as gold where all raters agree", key="accept"):
            engine, who = workspace().engine, user().name
            accepted = attempted(lambda: adjudication.accept_undisputed(engine, by=who, seed=seed()))
            if accepted is not False:
                left = len(alike) - len(accepted)
                say(f"Gold saved for {counted(len(accepted), 'trace')}; {left} with small differences left.")


# ---- one trace -------------------------------------------------------------------------------------------------


def desk(one: AdjudicationItem, judge: str | None) -> None:
    trace_id = one.dispute.trace_id
    if is_rater(trace_id):
        st.warning(
            "You labelled this trace: some of these labels are yours. Try: let another adjudicator decide it.",
            icon=":material/warning:",
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Accept unanimous answers", key="settle", shortcut="A"):
            accepted = act(partial(adjudication.settle_agreed, trace_id=trace_id, seed=seed(), judge=judge))
            if accepted is not False:
                say(f"{counted(accepted, 'point')} accepted.")
        if st.button("Open trace", icon=":material/search:", key="to_work"):
            st.switch_page(WORK, query_params=link_params(trace=trace_id))
        if st.button(
            "Save as gold", type="primary", key="close", disabled=bool(one.open_points), shortcut="G",
            help="Available when every error and every score is decided",
        ):  # fmt: skip
            version = act(partial(adjudication.close, trace_id=trace_id, seed=seed(), judge=judge))
            if version is not False:
                say(f"Gold version {version} is saved.")
    if one.open_points:
        st.caption(plain(f"Undecided: {'; '.join(one.open_points)}."))
    paint("adjudicate")
    left, right = st.columns([2, 3], gap="medium")
    with left:
        scores(one)
    with right:
        errors(one)
    history(trace_id)


def is_rater(trace_id: str) -> bool:
    """Whether the adjudicator decides on labels of their own."""
    review = tables.review
    with read_transaction(workspace().engine) as connection:
        own = reviews(connection, review.c.annotator == user().name, review.c.trace_id == trace_id)
    return any(one.status == "submitted" for one in own)


def scores(one: AdjudicationItem) -> None:
    layout.title(
        "Scores",
        "Each dot is a rater's score; a ring is the final score. Not applicable is left of 0. Click a dot to see "
        "that rater's errors.",
    )
    scores_by_rater = {**one.dispute.scores, **{dimension: {} for dimension in one.scores_apart}}
    if not scores_by_rater:
        st.caption("No rater scored a dimension of this trace.")
        return
    dots(one, scores_by_rater)
    with st.form(f"scores-{one.dispute.trace_id}", border=False):
        chosen: dict[str, tuple[str | None, str]] = {
            key: score_fields(one, key, scores_by_rater[key]) for key in DIMENSIONS if key in scores_by_rater
        }
        pressed = st.form_submit_button("Save all scores", type="primary", shortcut="Ctrl+Enter")
    if pressed:
        save_scores(one, chosen)


@st.fragment(key="card-dots")
def dots(one: AdjudicationItem, scores: Mapping[str, Mapping[str, float | None]]) -> None:
    event = st.plotly_chart(
        rater_dots(scores, one.decided.scores), key="rater-dots", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Scores of the raters by dimension",
    )  # fmt: skip
    point = chosen_point(event)
    if point is not None:
        drill_into_dot(one, str(point[0]), str(point[1]))


def drill_into_dot(one: AdjudicationItem, rater: str, dimension: str) -> None:
    """The errors of a dimension that go with a rater's score (or with the final one), each opened at its first span."""
    labels = (
        [gold.label for gold in one.decided.errors.values()]
        if rater == FINAL
        else [label for group in one.dispute.groups for who, label in group.labels if who == rater]
    )
    of_dimension = [label for label in labels if dimension in label.dimensions]
    who = "Gold" if rater == FINAL else rater
    st.caption(f"{who}, {dimension}: {counted(len(of_dimension), 'error')}")
    if not of_dimension:
        return
    titles = span_titles(one.dispute.trace_id)
    spans = [next(iter(label.span_ids), "") for label in of_dimension]
    rows = pd.DataFrame(
        {
            "span": [titles.get(span, span) for span in spans],
            "impact": [label.impact for label in of_dimension],
            "description": [label.description for label in of_dimension],
        }
    )
    row = data_table(rows, most=4, key="rows-dot", is_chosen=True)
    if row is not None:
        open_in_work(link_params(trace=one.dispute.trace_id, span=spans[row]), key="dot-open")


def score_fields(one: AdjudicationItem, dimension: str, by_rater: Mapping[str, float | None]) -> tuple[str | None, str]:
    """The final score as chosen (None: not yet) and the reason for it; what all raters gave is filled in."""
    words = " · ".join(f"{rater} {grade(value)}" for rater, value in by_rater.items()) or "no rater shown"
    values = set(by_rater.values())
    decided = one.decided.scores
    default = grade(decided[dimension]) if dimension in decided else (grade(values.pop()) if len(values) == 1 else None)
    key = f"{one.dispute.trace_id}-{dimension}"
    with st.container(horizontal=True, vertical_alignment="bottom"):
        final = st.segmented_control(
            plain(f"{dimension}: {words}"), GRADES, default=default, key=f"grade-{key}", help=meaning(dimension)
        )
        reason = st.text_input(
            f"Reason for {dimension}", key=f"reason-{key}", placeholder="reason, if the raters differ", width=190,
            label_visibility="collapsed",
        )  # fmt: skip
    return None if final is None else str(final), reason


def save_scores(one: AdjudicationItem, chosen: Mapping[str, tuple[str | None, str]]) -> None:
    """Decide every score that is chosen and not decided so yet; those refused are named, the others stay decided."""
    decided = {key: grade(value) for key, value in one.decided.scores.items()}
    new = {key: pair for key, pair in chosen.items() if pair[0] is not None and pair[0] != decided.get(key)}
    if not new:
        st.error("Choose a score first.")
        return
    decide = partial(adjudication.set_score, trace_id=one.dispute.trace_id)
    done = [
        key
        for key, (final, reason) in new.items()
        if act(partial(decide, dimension=key, value=None if final == "n/a" else float(str(final)), reason=reason))
        is not False
    ]
    if len(done) == len(new):
        say(f"{', '.join(f'{key} is {new[key][0]}' for key in done)}.")


def errors(one: AdjudicationItem) -> None:
    layout.title("Errors", "Each card is one error, with the labels that the app considers the same error.")
    if not one.dispute.groups:
        st.caption("No rater labelled an error.")
    titles = span_titles(one.dispute.trace_id)
    at = group_in_hand(one)
    for place, group in enumerate(one.dispute.groups):
        with st.container(border=True):
            error_group(one, group, titles, in_hand=place == at)
    for gold in one.apart:
        with st.container(border=True):
            error_apart(gold, titles)
    with st.popover("Add an error that no rater marked", icon=":material/add:"):
        add_form(one.dispute.trace_id, titles)


def group_in_hand(one: AdjudicationItem) -> int | None:
    """The error that keys decide: the one that was chosen last, else the first undecided, else the first."""
    groups = one.dispute.groups
    undecided = [place for place, group in enumerate(groups) if not is_decided(one, group)]
    if not groups:
        return None
    name = f"in-hand-{one.dispute.trace_id}"
    at = st.session_state.get(name)
    at = at if isinstance(at, int) and at in undecided else (undecided or [0])[0]
    after = [place for place in undecided if place > at] or undecided
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(undecided)} of {counted(len(groups), 'error')} undecided")
        if st.button("Next undecided", shortcut="N", key="next_error", disabled=len(undecided) < 2):
            st.session_state[name] = at = after[0]
    return at


def is_decided(one: AdjudicationItem, group: ErrorGroup) -> bool:
    return all(one.decided.outcome_of(label_id) != "undecided" for label_id in group.label_ids)


def error_apart(gold: GoldError, titles: SpanTitles) -> None:
    """An error of the gold that none of the labels shown speaks for."""
    st.caption(
        "Added by the adjudicator: no rater marked it."
        if gold.is_added
        else "This error is in the gold; its source labels are not shown here."
    )
    label_card("adjudicator", gold.label, "gold", titles)
    if gold.reason:
        st.caption(plain(f"Reason: {gold.reason}"))
    sources = sorted(gold.sources)
    with st.container(horizontal=True):
        with st.popover("Edit"):
            edit_form(sources, gold.label, titles)
        with st.popover("Reject"):
            reject_form(sources, "Why it is not an error")


def add_form(trace_id: str, titles: SpanTitles) -> None:
    with st.form(f"add-{trace_id}", border=False, clear_on_submit=False):
        dimensions = st.pills(
            "Dimensions", DIMENSIONS, selection_mode="multi", key=f"add-dims-{trace_id}", help=meanings(DIMENSIONS)
        )
        impact = st.segmented_control("Impact", IMPACTS, key=f"add-impact-{trace_id}")
        spans = span_choice(titles, (), f"add-spans-{trace_id}")
        category = category_choice(None, f"add-category-{trace_id}")
        quote = st.text_area("Quote of the trace as evidence", key=f"add-quote-{trace_id}", height=68)
        description = st.text_area("Description", key=f"add-words-{trace_id}", height=68)
        reason = st.text_input("Reason", key=f"add-reason-{trace_id}", placeholder="why it is an error")
        if st.form_submit_button("Add"):
            outcome = act(
                partial(
                    adjudication.add, trace_id=trace_id, reason=reason, span_ids=spans, dimensions=dimensions or (),
                    impact=impact, category=category, description=description, quote=quote,
                )
            )  # fmt: skip
            if outcome is not False:
                say("Added.")


def category_choice(now: str | None, key: str) -> str | None:
    """TRAIL's categories; a category of an import that is none of them stays choosable."""
    names = [one.name for one in categories()]
    options: list[str | None] = [None, *names, *([now] if now and now not in names else [])]
    return st.selectbox(
        "TRAIL category", options, index=options.index(now), key=key, format_func=lambda one: one or "none"
    )


def span_choice(titles: SpanTitles, now: tuple[str, ...], key: str) -> list[str]:
    """Spans by what they are; of a very long trace by their ids."""
    if len(titles) > MOST_SPANS:
        text = st.text_input("Span ids, separated by commas", ", ".join(now), key=key)
        return [one.strip() for one in text.split(",") if one.strip()]
    options = [*titles, *(one for one in now if one not in titles)]
    return st.multiselect("Spans", options, list(now), key=key, format_func=lambda one: titles.get(one) or str(one))


def span_titles(trace_id: str) -> SpanTitles:
    """Each span as the desk calls it: ordinal, kind, name."""
    span, trace = schema.span, schema.trace
    with read_transaction(workspace().engine) as connection:
        rows = connection.execute(
            select(span.c.span_id, span.c.seq, span.c.kind, span.c.name)
            .join(trace, trace.c.trace_key == span.c.trace_key)
            .where(trace.c.trace_id == trace_id)
            .order_by(span.c.seq)
            .limit(MOST_SPANS + 1)
        ).all()
    return {row.span_id: f"S{row.seq + 1} {row.kind} {row.name or ''}".rstrip() for row in rows}


def widget(label_id: str) -> str:
    """A widget's key stands in the page: whose label it is must not be read from it."""
    return blake2b(label_id.encode(), digest_size=8).hexdigest() if label_id.startswith(PREFIX) else label_id


def error_group(one: AdjudicationItem, group: ErrorGroup, titles: SpanTitles, *, in_hand: bool) -> None:
    """One error as the raters describe it; keys decide the one `in_hand`."""
    if in_hand:
        st.markdown("**Keys decide this error**")
    if group.differences:
        missing = f" (not marked by {', '.join(group.missing)})" if group.missing else ""
        mark = "Disputed. " if group.is_disputed else ""
        st.caption(plain(f"{mark}Raters differ in: {', '.join(group.differences)}{missing}"))
    for rater, label in group.labels:
        label_card(rater, label, one.decided.outcome_of(label.label_id), titles)
    key, ids = widget(group.label_ids[0]), [*group.label_ids, *one.behind(group)]
    with st.container(horizontal=True):
        for rater, label in group.labels:
            digit = rater.removeprefix("R")
            shortcut = digit if in_hand and digit.isdecimal() and len(digit) == 1 else None
            if st.button(plain(f"Keep {rater}'s"), key=f"keep-{widget(label.label_id)}", shortcut=shortcut):
                keep(label, [other for other in ids if other != label.label_id])
        if (
            len(group.labels) > 1
            and st.button("Merge", key=f"merge-{key}", shortcut="M" if in_hand else None)
            and act(partial(adjudication.merge, label_ids=ids)) is not False
        ):
            say("Merged.")
        is_writing = in_hand and bool(st.session_state.get(f"write-{key}"))
        if in_hand:
            st.button("Write own", key=f"own-{key}", shortcut="E", on_click=flip, args=(f"write-{key}",))
        else:
            with st.popover("Edit"):
                edit_form(ids, current(one.decided, group), titles)
        with st.popover("Reject"):
            reject_form(ids, "Why it is not an error")
    if is_writing:
        edit_form(ids, current(one.decided, group), titles)


def flip(name: str) -> None:
    st.session_state[name] = not st.session_state.get(name, False)


def reject_form(ids: list[str], question: str) -> None:
    key = widget(ids[0])
    with st.form(f"reject-{key}", border=False):
        reason = st.text_input(question, key=f"why-{key}")
        not_errors = partial(adjudication.reject, label_ids=ids, reason=reason)
        if st.form_submit_button("Reject") and act(not_errors) is not False:
            say("Rejected.")


def keep(label: ErrorLabel, others: list[str]) -> None:
    """The words of one rater stand for the whole group."""
    ids, why = [label.label_id, *others], "this rater's label represents all"
    stand_for_all = partial(adjudication.edit, label_ids=ids, reason=why, impact=label.impact)
    if act(stand_for_all if others else partial(adjudication.keep, label_id=label.label_id)) is not False:
        say("Kept.")


def current(decided: TraceDecisions, group: ErrorGroup) -> ErrorLabel:
    """What the group says now: its error in the gold to be, else its first label."""
    for gold in decided.errors.values():
        if not gold.sources.isdisjoint(group.label_ids):
            return gold.label
    return group.labels[0][1]


def edit_form(ids: list[str], label: ErrorLabel, titles: SpanTitles) -> None:
    key = widget(ids[0])
    with st.form(f"edit-{key}", border=False):
        dimensions = st.pills(
            "Dimensions",
            DIMENSIONS,
            selection_mode="multi",
            default=list(label.dimensions),
            key=f"dims-{key}",
            help=meanings(DIMENSIONS),
        )
        impact = st.segmented_control("Impact", IMPACTS, default=label.impact, key=f"impact-{key}")
        spans = span_choice(titles, label.span_ids, f"spans-{key}")
        category = category_choice(label.category, f"category-{key}")
        description = st.text_area("Description", label.description, key=f"words-{key}")
        reason = st.text_input("Reason", key=f"edit-reason-{key}")
        if st.form_submit_button("Save"):
            changed = act(
                partial(
                    adjudication.edit, label_ids=ids, reason=reason, dimensions=dimensions, impact=impact,
                    category=category or "", description=description, span_ids=spans,
                )
            )  # fmt: skip
            if changed is not False:
                say("Saved.")


def label_card(rater: str, label: ErrorLabel, outcome_of: LabelOutcome, titles: SpanTitles) -> None:
    became = "in the gold" if outcome_of == "gold" else outcome_of
    spans = ", ".join(titles.get(span, span).split(" ")[0] for span in label.span_ids)
    st.text(
        f"{rater} · {'+'.join(label.dimensions) or 'no dimension'} · {label.impact or 'no impact'} · "
        f"{spans or 'no span'}{f' · {label.category}' if label.category else ''} · {became}"
    )
    if label.description:
        st.text(label.description)
    for piece in label.evidence:
        quoted(piece)
    st.caption(plain(", ".join(titles.get(span, span) for span in label.span_ids)))


def quoted(piece: Evidence) -> None:
    """A quote with what stands before and after it in the trace, where that is known."""
    if piece.before:
        st.caption(plain(f"… {piece.before}"))
    st.code(piece.quote, language=None, wrap_lines=True)
    if piece.after:
        st.caption(plain(f"{piece.after} …"))


def history(trace_id: str) -> None:
    with read_transaction(workspace().engine) as connection:
        rows = adjudication_items.log_of(connection, trace_id)
    if rows.empty:
        return
    with st.expander(f"{counted(len(rows), 'decision')} on this trace"):
        data_table(rows)


# ---- the reveal ------------------------------------------------------------------------------------------------


def reveals() -> None:
    must("researcher")
    with read_transaction(workspace().engine) as connection:
        report, scores_after = anchoring(connection), open_to_me(changed_scores(connection))
    if report.empty:
        st.info("No annotator has revealed the judges' findings yet, so no label was changed after a reveal.")
        return
    layout.title(
        "Changes after reveal",
        "Labels made after the reveal count in no estimate unless the filter Labels includes them. “From judge”: a "
        "finding cites one of the label's spans in one of its dimensions. “Nearer”: the new score is closer to the "
        "judges' mean.",
    )
    anchored(report)
    if not scores_after.empty:
        row = data_table(scores_after, key="changed", is_chosen=True)
        if row is not None:
            one = scores_after.iloc[row]
            link = link_params(trace=str(one["trace_id"]), person=str(one["annotator"]))
            open_in_compare(link, key="changed-open")


@st.fragment(key="card-anchoring")
def anchored(report: pd.DataFrame) -> None:
    cell = cell_table(report, key="anchoring")
    if cell is None:
        st.caption(
            "Click a number to see its traces. The interval of the mean change is 95 %, from resampled traces; n/a "
            "where fewer than two traces changed, or all changed equally."
        )
    else:
        drill_into_anchoring(str(report["annotator"].iloc[cell[0]]), cell[1])


def drill_into_anchoring(person: str, column: str) -> None:
    """What a number of the summary counts of this person, each opened on Compare."""
    with read_transaction(workspace().engine) as connection:
        rows = counted_by(connection, person, column)
    row = listing(open_to_me(rows), key="rows-anchoring")
    if row is not None:
        pair = str(row["label_id"]) if "label_id" in row else None
        open_in_compare(link_params(trace=str(row["trace_id"]), person=person, pair=pair), key="anchoring-open")


# ---- acting ----------------------------------------------------------------------------------------------------


_pressed_on: ContextVar[tuple[str, ItemRevision] | None] = ContextVar("pressed_on", default=None)


@contextmanager
def on_what_was_drawn(one: AdjudicationItem) -> Iterator[None]:
    """Decisions taken inside hold only while the trace is as it was when the pressed button was drawn."""
    trace_id = one.dispute.trace_id
    token = _pressed_on.set((trace_id, cast("ItemRevision", drawn(_case(trace_id), one.revision))))
    try:
        yield
    finally:
        _pressed_on.reset(token)


def _case(trace_id: str) -> str:
    return f"case {trace_id}"


def act(decide: Callable[..., Made]) -> Made | Literal[False]:
    """Take one decision on the trace that is shown, in this person's name. False, as `attempted`, where refused.

    `decide` is one of `judging.adjudication.decisions` that lacks its connection and `by` alone.
    """
    pressed_on = _pressed_on.get()
    assert pressed_on is not None, "decisions are taken within `on_what_was_drawn`"

    def work() -> Made:
        with write_transaction(workspace().engine, labels_of(pressed_on[0])) as connection:
            adjudication.refuse_if_changed(connection, *pressed_on)
            done = decide(connection, by=user().name)
            # one's own decision refuses no other that is pressed before it shows
            drawn(_case(pressed_on[0]), adjudication_items.item_revision(connection, pressed_on[0]))
            return done

    return attempted(work)


def attempted(work: Callable[[], Made]) -> Made | Literal[False]:
    """What an adjudicator's `work` gives. False, with the reason on the page, where it is refused."""
    if not user().may("adjudicator"):
        st.error("Only an adjudicator may decide.")
        return False
    try:
        return work()
    except AdjudicationError as problem:
        st.error(plain(f"Not done: {problem}."))
        return False


def grade(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0f}"


page()
