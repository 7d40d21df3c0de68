"""One decision at a time, in a person's name, on the trace as it was drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeVar, cast

import streamlit as st

from tracejury.app.components.estimate_text import plain
from tracejury.app.session import drawn, say, user, workspace
from tracejury.ingest.store import write_transaction
from tracejury.judging.adjudication import adjudication_items
from tracejury.judging.adjudication import decisions as adjudication
from tracejury.judging.adjudication.adjudication_items import AdjudicationItem, ItemRevision
from tracejury.judging.adjudication.decisions import AdjudicationError
from tracejury.judging.store.locks import labels_of

Made = TypeVar("Made")
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


def act(decide: Callable[..., Made], *, said: str | Callable[[Made], str] | None = None) -> Made | Literal[False]:
    """Take one decision on the trace that is shown, in this person's name. False, as `attempted`, where refused.

    `decide` is one of `judging.adjudication.decisions` that lacks its connection and `by` alone. With `said`, the page
    is drawn anew with this word on what was done.
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

    done = attempted(work)
    if done is not False and said is not None:
        say(said if isinstance(said, str) else said(done))
    return done


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
