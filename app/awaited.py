"""A card whose figures another process makes: it holds its place until they are there, and names what failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from tracejury.app import loading
from tracejury.app.components.figures import plain
from tracejury.app.computing import Asked, NotComputedError, Waiting, patient, shown_revision

P = ParamSpec("P")
LOOK_AGAIN_S = 0.5
PATIENCE_S = 1.5  # most figures of a new choice take less: no place-holder comes and goes


def awaited(height: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorates what draws a card: `height` pixels stay its own while it waits."""

    def decorated(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def card(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                with patient(PATIENCE_S):
                    draw(*args, **kwargs)
            except Waiting as waiting:
                st.skeleton(height=height)
                asked = waiting.asked
                st.caption(plain(f"Computing {asked.question.title()}, {shown_revision(asked.now)}."))
                watch(asked, name=draw.__name__)
            except NotComputedError as error:
                failed(error, name=draw.__name__)

        return card

    return decorated


def failed(error: NotComputedError, *, name: str) -> None:
    st.error(plain(str(error)), icon=":material/error:")
    st.button(
        "Compute again", key=f"again-{name}", icon=":material/refresh:", on_click=loading.desk().ask_again,
        args=(error.asked,),
    )  # fmt: skip


def watch(asked: Asked, *, name: str) -> None:
    """Draw the page again once the figure is there (or cannot be)."""

    def look() -> None:
        desk = loading.desk()
        if desk.state(asked) == "waiting":
            desk.ask(asked)  # still wanted
        else:
            st.rerun()

    st.fragment(look, key=f"watch-{name}", run_every=LOOK_AGAIN_S)()


def of_one_revision(choice: loading.Choice) -> tuple[loading.Choice, loading.Standing] | None:
    """The choice held at the revision that the page shows; None, with the reason there, for a split that fails."""
    try:
        held = loading.pinned(choice)
        at = loading.standing(held)
    except loading.SplitError as error:
        st.error(str(error))
        return None
    _renewing(at, held)
    return held, at


def _renewing(at: loading.Standing, choice: loading.Choice) -> None:
    """Says that what is shown is older than the data, and follows what is being computed."""
    if not at.is_stale:
        return
    st.caption(
        f":material/update: Shown: {shown_revision(at.shown)}. Labels or answers came in since; "
        f"{shown_revision(at.coming)} is being computed."
    )

    broken = loading.desk().failure(loading.chosen(choice), at.coming)
    if broken is not None:
        failed(broken, name="renewal")
        return

    def look() -> None:
        desk, asked = loading.desk(), loading.chosen(choice)
        waits = desk.ask_whole(asked, at.coming)
        if desk.state(waits) != "waiting":
            st.rerun()

    st.fragment(look, key="watch-renewal", run_every=LOOK_AGAIN_S * 2)()
