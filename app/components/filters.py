"""The filters of the researcher's pages: what is compared, kept in the address so that it can be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from tracejury.app.components.figures import plain
from tracejury.app.loading import Choice, Options
from tracejury.app.session import FILTERS
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.majority import MAJORITY, Gold

# Streamlit writes an option's shown text into the address, so the words below are both.
ALL = "all traces"
BEST = "gold or most reviews"
LATEST = "newest version of each judge"
ANY_GUIDELINE = "any version"
MORE = FILTERS[4:]  # those behind *More filters*

MATCHES: dict[str, Literal["proposed", "confirmed"]] = {"proposed": "proposed", "confirmed": "confirmed"}
MISSING: dict[str, Missing] = {"left out": "drop", "misses": "disagree"}
WIDE = 280  # pixels, of a filter in the popover
BLIND = {"blind": True, "revealed too": False}


def choose(options: Options, keep_split: Callable[[bytes, str], str]) -> Choice:
    """Draw the filters in one row and give what they say. `keep_split` stores an uploaded split file."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        human, gold = _human(options.people)
        chosen = _systems(options.systems)
        matches = _select("Matches", "matches", list(MATCHES), _MATCHES_HELP, 140)
        split = _split(options.splits, keep_split)
        narrowed = sum(bool(st.query_params.get(name)) for name in MORE)
        with st.popover(f"More filters ({narrowed})" if narrowed else "More filters", icon=":material/tune:"):
            more = _more(options)
    return replace(more, human=human, gold=gold, systems=chosen, matches=MATCHES[matches], split=split)


def _more(options: Options) -> Choice:
    """The filters that are seldom moved; each shows where there is something to choose."""
    missing = _select("Failures", "missing", list(MISSING), _MISSING_HELP, WIDE)
    phase = _select("Labels", "phase", list(BLIND), _PHASE_HELP, WIDE)
    chosen = _several("Judge versions", "versions", list(options.versions), LATEST, _VERSIONS_HELP, WIDE)
    run = _select("Run", "run", [f"run {number}" for number in options.repeats or (0,)], _RUN_HELP, WIDE)
    formats = _several("Data", "data", list(options.formats), "every format", _DATA_HELP, WIDE)
    guideline = _select("Guideline", "guideline", [ANY_GUIDELINE, *options.guidelines], _GUIDELINE_HELP, WIDE)
    return Choice(
        missing=MISSING[missing],
        blind_only=BLIND[phase],
        versions=tuple(options.versions[name] for name in chosen),
        repeat=int(run.removeprefix("run ")),
        formats=formats,
        guideline=None if guideline == ANY_GUIDELINE else guideline,
    )


def shared() -> dict[str, list[str]]:
    """The filters that stand in the address, each with all that is chosen: several judges stand there one by one."""
    return {key: st.query_params.get_all(key) for key in FILTERS if key in st.query_params}


_HUMAN_HELP = (
    "Whose labels are the truth. Gold or most reviews: the adjudicated gold where there is one, else the person with "
    "most reviews. Majority of people: on traces that two or more submitted, the scores that more than half gave and "
    "the errors that more than half saw; a tie is no majority and stays out, counted."
)
_MATCHES_HELP = (
    "Proposed: the machine's matches count beside confirmed ones until a person decides on the Compare page. "
    "Confirmed: nothing counts that no person has confirmed."
)
_MISSING_HELP = (
    "What a judgement that failed (unparsable, refused, too long, error) counts as. Left out: it is counted beside "
    "each figure. Misses: its errors count as missed and its scores as wrong."
)
_PHASE_HELP = "Blind labels were made before the judge's answer was shown; only they measure agreement."
_VERSIONS_HELP = (
    "A change of rubric, prompt, model parameters or agent description makes a new version. Choose versions to set "
    "them beside each other; only the chosen ones are then shown, each under its own name."
)
_RUN_HELP = "Which of a judge's repeated runs is compared with people. Consistency always looks at all of them."
_DATA_HELP = "The format that a trace came in."
_GUIDELINE_HELP = "Only traces whose newest review was made under this version of the guideline."


def _human(names: Sequence[str]) -> tuple[str | None, Gold | None]:
    chosen = _select("Human", "human", [BEST, *([MAJORITY] if len(names) > 1 else []), *names], _HUMAN_HELP, 180)
    return truth_of(chosen)


def truth_of(human: str | None) -> tuple[str | None, Gold | None]:
    """The person and the kind of gold that the words of this filter mean."""
    if human == MAJORITY:
        return None, "majority"
    return (None if human in {None, "", BEST} else human), None


def _systems(names: Sequence[str]) -> tuple[str, ...]:
    about = "Models and imported judges. Each may hold several dimensions."
    return _several("Judges", "judges", names, "all judges", about, 220)


def _several(label: str, key: str, options: Sequence[str], none: str, about: str, width: int) -> tuple[str, ...]:
    chosen = st.multiselect(
        label,
        options,
        key=key,
        placeholder=none,
        help=about,
        width=width,
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
        st.error(plain(str(error)))
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
