"""The errors of a trace as cards: what each rater says of one error, and the buttons that decide it."""

from __future__ import annotations

from functools import partial

import streamlit as st

from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.views.adjudicate.acting import act
from tracejury.app.views.adjudicate.error_forms import SpanTitles, add_form, edit_form, reject_form, span_titles, widget
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem, GoldError, LabelOutcome, TraceDecisions
from tracejury.judging.adjudication.disputes import ErrorGroup
from tracejury.judging.records import ErrorLabel, Evidence


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
        if len(group.labels) > 1 and st.button("Merge", key=f"merge-{key}", shortcut="M" if in_hand else None):
            act(partial(adjudication.merge, label_ids=ids), said="Merged.")
        is_writing = in_hand and bool(st.session_state.get(f"write-{key}"))
        if in_hand:
            st.button("Write own", key=f"own-{key}", shortcut="E", on_click=flip, args=(f"write-{key}",))
        else:
            with st.popover("Edit"):
                edit_form(ids, current(one.decided, group), titles)
        with st.popover("Reject"):
            reject_form(ids)
    if is_writing:
        edit_form(ids, current(one.decided, group), titles)


def flip(name: str) -> None:
    st.session_state[name] = not st.session_state.get(name, False)


def keep(label: ErrorLabel, others: list[str]) -> None:
    """The words of one rater stand for the whole group."""
    ids, why = [label.label_id, *others], "this rater's label represents all"
    stand_for_all = partial(adjudication.edit, label_ids=ids, reason=why, impact=label.impact)
    act(stand_for_all if others else partial(adjudication.keep, label_id=label.label_id), said="Kept.")


def current(decided: TraceDecisions, group: ErrorGroup) -> ErrorLabel:
    """What the group says now: its error in the gold to be, else its first label."""
    for gold in decided.errors.values():
        if not gold.sources.isdisjoint(group.label_ids):
            return gold.label
    return group.labels[0][1]


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
            reject_form(sources)


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
