"""The filters of the researcher's pages: what is compared, kept in the address so that it can be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import streamlit as st

from app.loading import Choice
from judging.agreement.frames import Missing

# Streamlit writes an option's shown text into the address, so the words below are both.
ALL = "all traces"
BEST = "gold or most reviews"
KEYS = ("human", "judges", "matches", "split", "missing", "phase")
"""The names of the filters in the address, the same on every page."""

MATCHES: dict[str, Literal["proposed", "confirmed"]] = {"proposed": "proposed", "confirmed": "confirmed"}
MISSING: dict[str, Missing] = {"left out": "drop", "misses": "disagree"}
BLIND = {"blind": True, "revealed too": False}


class Options(NamedTuple):
    """What can be chosen: people with reviews, judges with outcomes, splits of the workspace."""

    people: Sequence[str]
    systems: Sequence[str]
    splits: Sequence[str]


def choose(options: Options, keep_split: Callable[[bytes, str], str]) -> Choice:
    """Draw the filters in one row and give what they say. `keep_split` stores an uploaded split file."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        human = _human(options.people)
        chosen = _systems(options.systems)
        matches = _select("Matches", "matches", list(MATCHES), _MATCHES_HELP, 140)
        split = _split(options.splits, keep_split)
        missing = _select("Failures", "missing", list(MISSING), _MISSING_HELP, 120)
        phase = _select("Labels", "phase", list(BLIND), _PHASE_HELP, 140)
    return Choice(
        human=human,
        systems=chosen,
        matches=MATCHES[matches],
        split=split,
        missing=MISSING[missing],
        blind_only=BLIND[phase],
    )


def shared() -> dict[str, str]:
    """The filters that stand in the address, for a link to another page."""
    return {key: st.query_params[key] for key in KEYS if key in st.query_params}


_MATCHES_HELP = (
    "Proposed: the machine's matches count beside confirmed ones until a person decides on the Compare page. "
    "Confirmed: nothing counts that no person has confirmed."
)
_MISSING_HELP = (
    "What a judgement that failed (unparsable, refused, too long, error) counts as. Left out: it is counted beside "
    "each figure. Misses: its errors count as missed and its scores as wrong."
)
_PHASE_HELP = "Blind labels were made before the judge's answer was shown; only they measure agreement."


def _human(names: Sequence[str]) -> str | None:
    about = "Whose labels are the truth: the adjudicated gold where there is one, else the person with most reviews."
    chosen = _select("Human", "human", [BEST, *names], about, 180)
    return None if chosen == BEST else chosen


def _systems(names: Sequence[str]) -> tuple[str, ...]:
    chosen = st.multiselect(
        "Judges",
        names,
        key="judges",
        placeholder="all judges",
        help="Models and imported judges. Each may hold several dimensions.",
        width=220,
        bind="query-params",
        persist_state="session",
    )
    return tuple(str(name) for name in chosen)


def _split(names: Sequence[str], keep: Callable[[bytes, str], str]) -> str | None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="xsmall", width="content"):
        about = "A named part of the traces, from a file."
        chosen = _select("Split", "split", [ALL, *names], about, 150)
        with st.popover("", icon=":material/upload_file:", help="Add a split file"):
            _upload(keep)
    return None if chosen == ALL else chosen


def _upload(keep: Callable[[bytes, str], str]) -> None:
    st.caption('JSON: {"dev": [trace ids], "test": [trace ids]}. It is kept in the workspace under its file name.')
    file = st.file_uploader("Split file", type="json", key="split_file", label_visibility="collapsed")
    if file is None:
        return
    try:
        name = keep(file.getvalue(), file.name)
    except ValueError as error:
        st.error(str(error))
        return
    st.success(f"Kept as {name}. Choose it in the list.")


def _select(label: str, key: str, options: Sequence[str], about: str, width: int) -> str:
    return str(
        st.selectbox(
            label,
            options,
            key=key,
            help=about,
            width=width,
            bind="query-params",
            persist_state="session",
        )
    )
