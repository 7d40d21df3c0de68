"""A card whose estimates the worker makes: it holds its place until they are there, and names what failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from tracejury.app import estimates
from tracejury.app.components.estimate_text import plain
from tracejury.app.estimates import (
    FailedEstimateError,
    NoEstimateError,
    PendingEstimateError,
    Renewal,
    Revisions,
    Task,
    patient,
    shown_revision,
)
from tracejury.judging.reports.estimate_files import EstimateKey
from tracejury.judging.reports.filters import Filters

P = ParamSpec("P")
LOOK_AGAIN_S = 0.5
PATIENCE_S = 1.5  # most estimates of new filters take less: no placeholder comes and goes


def with_placeholder(height: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate what draws a card: `height` pixels stay its own while it waits."""

    def decorated(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def card(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                with patient(PATIENCE_S):
                    draw(*args, **kwargs)
            except PendingEstimateError as error:
                st.skeleton(height=height)
                st.caption(plain(f"Computing {error.key.title()}, {shown_revision(error.key.revision)}."))
                watch(error.key, name=draw.__name__)
            except FailedEstimateError as error:
                failed(error, error.task, name=draw.__name__)
            except NoEstimateError as error:
                st.info(plain(str(error)))

        return card

    return decorated


def failed(error: Exception, task: Task, *, name: str) -> None:
    """Say what failed, with a button that tries again."""
    st.error(plain(str(error)), icon=":material/error:")
    st.button(
        "Compute again", key=f"again-{name}", icon=":material/refresh:", on_click=estimates.queue().ask_again,
        args=(task,),
    )  # fmt: skip


def watch(task: EstimateKey | Renewal, *, name: str) -> None:
    """Draw the page again once it is made, or cannot be; once a newer revision is made where its own is gone."""

    def look() -> None:
        queue = estimates.queue()
        if queue.is_pending(task):
            queue.ask(task)  # still wanted
        elif not (queue.is_stale(task) and queue.is_renewing()):
            st.rerun()

    st.fragment(look, key=f"watch-{name}", run_every=LOOK_AGAIN_S)()


def of_one_revision(filters: Filters) -> tuple[Filters, Revisions]:
    """The filters held to the revision that the page shows; says so where that is older than the data."""
    pinned, current = estimates.pinned(filters)
    if current.pending is not None:
        _renewing(current.shown, current.pending)
    return pinned, current


def _renewing(shown: tuple[int, ...], pending: Renewal) -> None:
    st.caption(
        f":material/update: Shown: {shown_revision(shown)}. Labels or verdicts changed since; {pending.title()} is "
        f"being computed."
    )
    error = estimates.queue().failure(pending)
    if error is not None:
        failed(error, pending, name="renewal")
    else:
        watch(pending, name="renewal")
