"""The filters of the researcher's pages: what is compared, kept in the address so that it can be shared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from tracejury.app.components.estimate_text import plain
from tracejury.app.session import FILTERS
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.records import Tolerance
from tracejury.judging.reports.filters import FilterOptions, Filters

# Streamlit writes an option's shown text into the address, so the words below are both.
ALL = "all traces"
BEST = "gold or most reviews"
LATEST = "newest version of each judge"
ANY_GUIDELINE = "any version"
MORE = FILTERS[4:]  # those behind *More filters*

MATCHES: dict[str, Literal["proposed", "confirmed"]] = {"proposed": "proposed", "confirmed": "confirmed"}
MISSING: dict[str, Missing] = {"left out": "drop", "misses": "disagree"}
TOLERANCES: dict[str, Tolerance] = {
    "exact span": "exact",
    "parent or same step": "step",
    "one span away": "span",
}
WIDE = 280  # pixels, of a filter in the popover


def choose_filters(options: FilterOptions, keep_split: Callable[[bytes, str], str]) -> Filters:
    """Draw the filters in one row and give what they say. `keep_split` stores an uploaded split file."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        reference = _reference(options.reviewers)
        chosen = _judge_models(options.judge_models)
        matches = _select("Matches", "matches", list(MATCHES), _MATCHES_HELP, 140)
        split = _split(list(options.splits), keep_split)
        narrowed = sum(bool(st.query_params.get(name)) for name in MORE)
        with st.popover(f"More filters ({narrowed})" if narrowed else "More filters", icon=":material/tune:"):
            more = _more(options)
    return replace(
        more,
        reference=reference,
        judge_models=chosen,
        matches=MATCHES[matches],
        split=None if split is None else options.splits[split],
    )


def _more(options: FilterOptions) -> Filters:
    """The filters that are seldom moved; each shows where there is something to choose."""
    missing = _select("Failures", "missing", list(MISSING), _MISSING_HELP, WIDE)
    blind_only = _toggle("Blind labels only", "blind_only", _BLIND_ONLY_HELP)
    chosen = _several("Judge versions", "versions", list(options.versions), LATEST, _VERSIONS_HELP, WIDE)
    repeat = _select("Repeat", "repeat", [f"repeat {number}" for number in options.repeats or (0,)], _REPEAT_HELP, WIDE)
    same_traces = _toggle("Same traces for all judges", "same_traces", _SAME_TRACES_HELP)
    formats = _several(
        "Trace formats", "trace_formats", list(options.trace_formats), "every format", _TRACE_FORMATS_HELP, WIDE
    )
    guideline = _select("Guideline", "guideline", [ANY_GUIDELINE, *options.guidelines], _GUIDELINE_HELP, WIDE)
    tolerance = _select("Localized", "tolerance", list(TOLERANCES), _TOLERANCE_HELP, WIDE)
    return Filters(
        missing=MISSING[missing],
        blind_only=blind_only,
        versions=tuple(options.versions[name] for name in chosen),
        repeat=int(repeat.removeprefix("repeat ")),
        trace_formats=formats,
        guideline=None if guideline == ANY_GUIDELINE else guideline,
        tolerance=TOLERANCES[tolerance],
        same_traces=same_traces,
    )


def shared_filters() -> dict[str, list[str]]:
    """The filters that stand in the address, each with all that is chosen: several judges stand there one by one."""
    return {key: st.query_params.get_all(key) for key in FILTERS if key in st.query_params}


_REFERENCE_HELP = (
    "The labels that judges are measured against. Gold or most reviews: the adjudicated gold where there is one, else "
    "the annotator with the most reviews. Majority: on traces that two or more annotators submitted, the scores that "
    "more than half gave and the errors that more than half marked; ties are left out and counted."
)
_MATCHES_HELP = (
    "Proposed: matches that the rule or a model suggests count like confirmed ones until a person decides on the "
    "Compare page. Confirmed: only matches that a person confirmed count."
)
_MISSING_HELP = (
    "How failures (unparsable, refused, too long, error) count. Left out: they enter no estimate and are counted "
    "beside it. Misses: their errors count as missed and their scores as wrong."
)
_BLIND_ONLY_HELP = (
    "On: only labels stored before their author could see judges or others; only these measure agreement. Off: "
    "also labels stored after the reveal."
)
_VERSIONS_HELP = (
    "A change of rubric, prompt, model parameters or agent description makes a new version. Choose versions to "
    "compare them; the page then shows only those, each under its own name."
)
_REPEAT_HELP = "Repeat of each judge that is compared with the reference. Consistency always uses all repeats."
_SAME_TRACES_HELP = (
    "On: where judges answered different traces, errors are compared on those that all of them answered, and "
    "scores on those that all judges of the dimension scored; so every judge is measured on the same traces. Off: "
    "each judge is measured on all traces that it answered. Corpus rates always use all answers; A against B uses "
    "the traces that both sides answered."
)
_TRACE_FORMATS_HELP = "Source format of the traces."
_GUIDELINE_HELP = "Only traces whose newest review was submitted under this version of the guideline."
_TOLERANCE_HELP = (
    "What a caught error's finding must cite to count as localized. Exact span: a span of the error. Parent or same "
    "step: also its parent, a child, or a span of the same step of the agent. One span away: also the span before or "
    "after it in reading order. People are compared with each other by the same rule."
)


def _reference(names: Sequence[str]) -> str | None:
    options = [BEST, *([MAJORITY] if len(names) > 1 else []), *names]
    return reference_of(_select("Reference", "reference", options, _REFERENCE_HELP, 180))


def reference_of(word: str | None) -> str | None:
    """Turn the word of this filter into `Filters.reference`."""
    return None if word in {None, "", BEST} else word


def _judge_models(names: Sequence[str]) -> tuple[str, ...]:
    about = "Models, offline checks and imported judges. Each may judge several dimensions."
    return _several("Judge models", "judge_models", names, "all judge models", about, 220)


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
    st.caption('JSON: {"dev": [trace ids], "test": [trace ids]}. The workspace stores the file under its name.')
    file = st.file_uploader("Split file", type="json", key="split_file", label_visibility="collapsed")
    if file is None:
        return
    try:
        name = keep(file.getvalue(), file.name)
    except ValueError as error:
        st.error(plain(str(error)))
        return
    st.success(f"Stored as {name}. Choose it in the list.")


def _toggle(label: str, key: str, about: str) -> bool:
    return st.toggle(label, True, key=key, help=about, bind="query-params", persist_state="session")


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
