"""What the cards of several views share: their chart settings, the human ceiling's line, counts and reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec

import plotly.graph_objects as go
import streamlit as st

from tracejury.app import estimates
from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted
from tracejury.app.components.headline import coverage, headline
from tracejury.app.estimates import estimate
from tracejury.app.placeholders import watch, with_placeholder
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.reports.estimate_files import EstimateKey
from tracejury.judging.reports.filters import Filters

CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d"]}
P = ParamSpec("P")


def card(key: str, title: str, about: str = "", *, height: int) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate what draws a card below its title: drawn again alone, `height` pixels are its own while it waits."""

    def decorated(draw: Callable[P, None]) -> Callable[P, None]:
        @wraps(draw)
        def titled(*args: P.args, **kwargs: P.kwargs) -> None:
            layout.title(title, about)
            draw(*args, **kwargs)

        return st.fragment(with_placeholder(height=height)(titled), key=f"card-{key}")

    return decorated


def plot(figure: go.Figure, *, key: str, alt: str) -> Any:
    """Draw a chart whose marks can be clicked; returns the event for `chosen_point`."""
    return st.plotly_chart(
        figure, key=key, config=CONFIG, on_select="rerun", selection_mode="points", alt=alt
    )  # fmt: skip


SPLIT_MAY = " The filter Split may exclude the traces that have them."


def why_no_errors(filters: Filters) -> str:
    """Why no error can be shown under a judge."""
    counts = counts_of(filters)
    if counts["not_matched"]:
        waiting = counted(counts["not_matched"], "error pair")
        return f"n/a: no matches are proposed yet for {waiting}. Try: Propose matches by rule, above."
    if counts["error_pairs"]:
        return (
            f"None of {counted(counts['error_pairs'], 'error pair')} counts here: "
            f"{counted(counts['failed_cells'], 'cell')} failed, or no error is of a judge's dimension. Failures "
            "count as misses if the filter Failures says so."
        )
    reason = "Under these filters, these judges have judged no trace with a reference error."
    return reason + SPLIT_MAY * bool(filters.split)


def counts_of(filters: Filters) -> dict[str, int]:
    """How much is compared, by the name of the columns of the estimate `summary`."""
    return {str(name): int(count) for name, count in estimate(filters, "summary").iloc[0].items()}


COVERED = (
    "Share of all reference errors that any judge of the suite caught or localized. In brackets: the 95 % "
    "interval (Wilson's, by trace), the number of errors, and the human ceiling."
)


def errors_found(filters: Filters, inputs: Inputs) -> None:
    suite = inputs.suite  # before the ceiling is asked for, which takes longer
    reached = None if estimates.pending(filters, "error_ceiling") else inputs.error_ceiling
    headline(coverage(suite, reached), title="Reference errors caught, best judge model first", about=COVERED)


def ceiling_line(late: EstimateKey | None, *, has_ceiling: bool, name: str) -> None:
    """What the human ceiling is; `late`: it is being made, and the page is drawn again once it is there."""
    if has_ceiling:
        st.caption("Human ceiling: the same metric between people who labelled the same traces blind.")
    if late is not None:
        st.caption("The human ceiling is being computed: every pair of people's errors is matched.")
        watch(late, name=name)


def few_names(labels: Iterable[str], most: int = 6) -> str:
    """The first names, and how many more there are."""
    names = list(dict.fromkeys(labels))
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
