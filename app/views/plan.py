"""A study planned: how many traces, people and repeats, from a pilot of this workspace or from assumed rates."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from tracejury.app import options
from tracejury.app.components import charts, layout
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.filters import choose_filters
from tracejury.app.estimates import estimate
from tracejury.app.placeholders import of_one_revision, with_placeholder
from tracejury.app.session import must
from tracejury.judging.planning import design
from tracejury.judging.planning.design import Spread
from tracejury.judging.planning.pilot import NO_BOUNDS
from tracejury.judging.planning.study import Assumptions, Goal, UnitCosts, study_curves, study_table
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.pilots import WorkspacePilot, pilot_in

ASSUMED = "assumed rates"
ALONE = "no other judge"
REPEATS, PEOPLE = (1, 2, 3, 5, 10), (1, 2, 3, 4, 5)
MOST_DRAWN = 5_000  # traces


def page() -> None:
    must("researcher")
    layout.heading("Plan")
    filters, _ = of_one_revision(choose_filters(options.options(), options.keep_split))
    plan(filters)


@with_placeholder(height=760)
def plan(filters: Filters) -> None:
    """The pilot, the goals and what they need; waits for the pilot."""
    measured = pilot_card(filters)
    with st.container(border=True):
        difference, width, power = goal_inputs()
    with st.expander("Assumptions", expanded=measured is None or measured.pilot.spread is None, key="assumptions"):
        rates = assumptions(measured, difference, power)
    if rates is None:
        st.info("Nothing to plan from. Try: assume a rate above, or choose a judge model with matched errors.")
        return
    plan_cards(rates, difference=difference, width=width)


def pilot_card(filters: Filters) -> WorkspacePilot | None:
    """Choose whose errors are the pilot, and what it says; None where rates are assumed."""
    with st.container(border=True):
        layout.title("Pilot", "One judge model plans its rate of caught errors; two plan their difference.")
        names = options.judge_models()
        with st.container(horizontal=True):
            first = str(st.selectbox("Judge model", [*names, ASSUMED], key="plan-judge", width=280))
            others = [ALONE, *(name for name in names if name != first)]
            other = str(st.selectbox("Compared with", others, key="plan-other", width=280, disabled=first == ASSUMED))
        if first == ASSUMED:
            return None
        chosen = (first,) if other == ALONE else (first, other)
        try:
            measured = pilot_in(estimate(filters, "pilot", *chosen))
        except ValueError as error:
            st.warning(plain(str(error)))
            return None
        pilot_tiles(measured)
        return measured


def pilot_tiles(measured: WorkspacePilot) -> None:
    pilot = measured.pilot
    on = f"{counted(pilot.traces, 'trace')} with {counted(pilot.errors, 'error')}, against {measured.reference}"
    if pilot.spread is None:
        st.warning(plain(f"Nothing can be planned from {on}: {pilot.reason}."))
        return
    unit = "%" if pilot.discordant is None else "points"
    title = "Caught errors" if pilot.discordant is None else "Difference of caught errors"
    among = pilot.spread.repeat_icc
    with st.container(horizontal=True):
        st.metric(title, f"{100 * (pilot.mean or 0.0):.1f} {unit}", width="content")
        if pilot.discordant is not None:
            st.metric("Caught by one alone", f"{100 * pilot.discordant:.1f} %", width="content")
        st.metric("Design effect", _value(pilot.effect), width="content", help=_EFFECT)
        st.metric("ICC", _value(pilot.spread.icc), width="content", help=_ICC)
        st.metric(
            "Correlation of repeats", "unknown" if among is None else f"{among:.2f}", width="content", help=_REPEATS
        )
    left = f" · {counted(measured.not_matched, 'error pair')} without matches left out" * bool(measured.not_matched)
    st.caption(plain(f"{on}{left}") + f" · design effect and ICC: {NO_BOUNDS}")


_EFFECT = "Variance of the estimate divided by that with independent errors: errors of one trace resemble one another."
_ICC = "How alike two errors of one trace are, from 0 (not at all) to 1 (equal)."
_REPEATS = (
    "How alike two repeats are on one error. Unknown if the judge has only one repeat; then one repeat is planned."
)


def goal_inputs() -> tuple[float, float, float]:
    """The difference and the width as shares, and the power."""
    layout.title("Goals")
    with st.container(horizontal=True):
        difference = st.number_input("Difference to detect, points", 0.5, 100.0, 5.0, 0.5, key="plan-difference")
        width = st.number_input("Width of the 95 % interval, points", 0.5, 100.0, 10.0, 0.5, key="plan-width")
        power = st.number_input("Power, %", 50, 99, 80, 5, key="plan-power")
    return difference / 100, width / 100, power / 100


def assumptions(measured: WorkspacePilot | None, difference: float, power: float) -> Assumptions | None:
    """The pilot's values, each of which may be replaced; None where nothing is known or assumed."""
    known = None if measured is None else measured.pilot.spread
    costs = UnitCosts() if measured is None else measured.costs
    with st.container(horizontal=True):
        rate = _assumed("Rate of caught errors, %", None, "plan-rate", most=100.0)
        discordant = _assumed("Caught by one alone, %", None, "plan-discordant", most=100.0)
        size = _assumed("Errors per trace", None if known is None else known.errors_per_trace, "plan-errors")
        icc = _assumed("ICC", None if known is None else known.icc, "plan-icc", most=1.0)
        among = _assumed(
            "Correlation of repeats", None if known is None else known.repeat_icc, "plan-repeat-icc", most=1.0
        )
    with st.container(horizontal=True):
        people = None if measured is None else measured.reliability
        reliability = _assumed("Reliability of one person (ICC)", people, "plan-agreement", most=1.0)
        minutes = _assumed("Active minutes per trace", costs.minutes, "plan-minutes")
        dollars = _assumed("Dollars for one repeat of all judges", costs.dollars, "plan-dollars")
    try:
        variance = _variance(rate, discordant, difference) or (None if known is None else known.variance)
        if not variance:
            return None
        spread = Spread(
            variance=variance,
            errors_per_trace=size or 1.0,
            size_cv=0.0 if known is None else known.size_cv,
            icc=icc or 0.0,
            repeat_icc=among,
        )
    except ValueError as error:
        st.warning(plain(str(error)))
        return None
    return Assumptions(
        spread=spread, reliability=reliability, costs=UnitCosts(minutes=minutes, dollars=dollars), power=power
    )


def plan_cards(assumptions: Assumptions, *, difference: float, width: float) -> None:
    assert assumptions.spread is not None
    several = assumptions.spread.repeat_icc is not None
    with st.container(horizontal=True):
        repeats = _numbers("Repeats", REPEATS if several else (1,), (1, 3, 5) if several else (1,), "plan-repeats")
        people = _numbers("People per trace", PEOPLE, (1, 2), "plan-people")
    goals = [Goal(kind="difference", size=difference), Goal(kind="width", size=width)]
    goals += [Goal(kind="agreement", size=width)] if assumptions.reliability is not None else []
    table = study_table(assumptions, goals, repeats=repeats, people=people)
    with st.container(border=True):
        layout.title("Traces, hours and dollars", "Hours: active time of all people. Dollars: all repeats.")
        st.dataframe(shown_plan(table), hide_index=True, width="content", key="plan-table", alt="Plan")
        st.caption(
            "See: traces needed to detect the difference with the chosen power (for one judge model: the "
            "difference of its rate from a given rate). Width: traces needed for an interval no wider than this. "
            "Agreement: traces needed for an interval of people's reliability no wider than this, where 100 "
            "points are a reliability of 1 (Bonett 2002)."
        )
    curves = study_curves(
        assumptions.spread, difference=difference, repeats=repeats, most=MOST_DRAWN, power=assumptions.power
    )
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        layout.title("Power", f"The chance of detecting {100 * difference:g} points.")
        st.plotly_chart(charts.power_curve(curves, goal=assumptions.power), key="plan-power-chart", alt="Power")
    with right, st.container(border=True):
        layout.title("Width")
        st.plotly_chart(charts.width_curve(curves, goal=width), key="plan-width-chart", alt="Width")


_GOALS = {"difference": "see", "width": "width", "agreement": "agreement"}


def shown_plan(table: pd.DataFrame) -> pd.DataFrame:
    """The plan in words; what is not known says so."""
    return pd.DataFrame(
        {
            "Goal": table["goal"].map(_GOALS),
            "Points": [f"{100 * size:g}" for size in table["size"]],
            "Repeats": table["repeats"],
            "People": table["people"],
            "Traces": ["n/a" if pd.isna(traces) else f"{traces:,}" for traces in table["traces"]],
            "Hours": _or_unknown(table, "hours", "{:,.0f}"),
            "Dollars": _or_unknown(table, "dollars", "{:,.2f}"),
            "Reason": table["reason"].fillna(""),
        }
    )


def _or_unknown(table: pd.DataFrame, column: str, form: str) -> list[str]:
    is_planned = table["traces"].notna()
    return [
        "" if not planned else "unknown" if pd.isna(value) else form.format(value)
        for value, planned in zip(table[column], is_planned, strict=True)
    ]


def _numbers(label: str, offered: Sequence[int], chosen: Sequence[int], key: str) -> tuple[int, ...]:
    picked = st.pills(label, offered, default=chosen, selection_mode="multi", key=key)
    return tuple(sorted(picked)) or (1,)


def _assumed(label: str, known: float | None, key: str, *, most: float | None = None) -> float | None:
    """A number that begins as measured; empty where it is unknown."""
    number = st.number_input(label, 0.0, most, known, key=f"{key}-{known}", format="%.4g", placeholder="unknown")
    return None if number is None else float(number)


def _variance(rate: float | None, discordant: float | None, difference: float) -> float | None:
    if rate is not None:
        return design.rate_variance(rate / 100)
    return None if discordant is None else design.difference_variance(discordant / 100, difference)


def _value(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


page()
