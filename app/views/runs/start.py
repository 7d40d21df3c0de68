"""A new run: its form, what it would cost, and the button that starts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from tracejury.app.components.data_table import data_table
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.glossary import meanings
from tracejury.app.estimating import EstimateError, estimate
from tracejury.app.run_processes import RUNS
from tracejury.app.session import user, workspace
from tracejury.ingest.gaps import NOTHING_TO_READ
from tracejury.ingest.store import marked_traces, read_transaction, trace_ids
from tracejury.judging.judges.jury import RULES
from tracejury.judging.judges.model import read_prices
from tracejury.judging.judges.rubric import agent_descriptions, broken_files, rubrics
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.runs.run_control import last_run_of, plan_run
from tracejury.judging.runs.run_spec import Mode, RunSpec, model_names

PROPOSED, STARTED = "proposed_run", "started_run"
MODES: tuple[Mode, ...] = ("trace", "span", "jury")


def start() -> None:
    for error in broken_files(workspace().home):
        st.warning(plain(f"Left out: {error}"))
    try:
        spec = run_form()
    except ValueError as error:
        st.session_state.pop(PROPOSED, None)
        st.error(plain(str(error)))
        return
    if spec is not None:
        st.session_state.pop(PROPOSED, None)
        propose(spec)
    proposed: Proposal | None = st.session_state.get(PROPOSED)
    if proposed is not None:
        confirm(proposed)
    if STARTED in st.session_state:
        st.success(st.session_state.pop(STARTED))


def run_form() -> RunSpec | None:
    """The run as typed, None while nobody asks for its cost. Raises ValueError for one that cannot be."""
    known, agents = rubrics(workspace().home), agent_descriptions(workspace().home)
    with st.form("new-run", border=False):
        left, right = st.columns(2)
        model = left.text_input(
            "Model", key="new_model", placeholder="gpt-4.1, anthropic/claude-…, ollama/…", help=_MODEL_HELP
        )
        chosen = right.multiselect(
            "Dimensions", list(known), default=[key for key in DIMENSIONS if key in known], key="new_dimensions",
            help=meanings(DIMENSIONS),
        )  # fmt: skip
        with st.container(horizontal=True):
            repeats = st.number_input("Repeats", 1, 100, 1, key="new_repeats", width=120)
            mode = st.selectbox("Mode", MODES, key="new_mode", width=140, help=_MODE_HELP)
            rule = st.selectbox("Jury's score", RULES, key="new_jury_rule", width=140, help=_RULE_HELP)
            budget = st.number_input("Budget, US$ (0: no limit)", 0.0, None, 0.0, key="new_budget", width=180)
            agent = st.selectbox("Agent description", ["auto", "none", *agents], key="new_agent", width=220)
        base = st.text_input(
            "URL of an OpenAI-compatible server", key="new_base", placeholder="empty: the provider's URL"
        )
        limited = limits_form()
        is_asked = st.form_submit_button("Estimate cost", type="primary", icon=":material/calculate:")
    if not is_asked:
        return None
    return limited(
        RunSpec(
            rubrics=tuple(chosen),
            models=model_names(model),
            repeats=repeats,
            mode=mode,
            jury_rule=rule,
            agent=agent,
            api_base=base.strip() or None,
            budget_usd=budget or None,
        )
    )


def limits_form() -> Callable[[RunSpec], RunSpec]:
    """How fast a run may go and what it may pay for: gives a run these limits, ValueError for what is no price."""
    with st.container(horizontal=True):
        concurrency = st.number_input("Concurrent calls", 1, 512, 8, key="new_concurrency", width=130)
        rpm = st.number_input(
            "Max. requests per minute (0: no limit)", 0, None, 0, key="new_rpm", width=190, help=_PACE_HELP
        )
        tpm = st.number_input(
            "Max. tokens per minute (0: no limit)", 0, None, 0, key="new_tpm", width=190, help=_PACE_HELP
        )
        price = st.text_input("Price", key="new_price", placeholder="public prices", width=190, help=_PRICE_HELP)
    with st.container(horizontal=True):
        batch = st.checkbox(
            "Provider's batch interface", key="new_batch", help="Costs half the price; answers arrive within hours."
        )
        use_cache = st.checkbox("Reuse stored replies", value=True, key="new_cache", help=_CACHE_HELP)
        ask_again = st.checkbox("Resend unanswered requests", value=True, key="new_ask", help=_ASK_HELP)
    return lambda spec: replace(
        spec,
        concurrency=concurrency,
        rpm=rpm or None,
        tpm=tpm or None,
        batch=batch,
        use_cache=use_cache,
        ask_again=ask_again,
        prices=dict.fromkeys(spec.models, read_prices(price)) if price.strip() else {},
    )


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A run that may be started: what it asks, of which traces, and what it would cost (or why nobody knows)."""

    spec: RunSpec
    traces: tuple[str, ...]
    left_out: int
    costs: pd.DataFrame | None
    problem: str = ""

    @property
    def cells(self) -> int:
        return len(self.traces) * len(self.spec.models) * len(self.spec.rubrics) * self.spec.repeats


def propose(spec: RunSpec) -> None:
    """Estimate the run and keep it until its button is pressed."""
    with read_transaction(workspace().engine) as connection:
        empty = marked_traces(connection, NOTHING_TO_READ)
        traces = tuple(one for one in trace_ids(connection, with_steps=True) if one not in empty)
    if not traces:
        st.error("This workspace holds no traces to judge. Try: the Ingest page.")
        return
    costs, problem = None, ""
    try:
        with st.spinner("Counting tokens"):
            costs = estimate(spec, workspace().home)
    except EstimateError as error:
        problem = str(error)
    st.session_state[PROPOSED] = Proposal(spec=spec, traces=traces, left_out=len(empty), costs=costs, problem=problem)


def confirm(proposed: Proposal) -> None:
    """What the run asks, costs and may spend at most; one press starts it, and a second like it is asked for."""
    if proposed.left_out:
        left_out = counted(proposed.left_out, "trace")
        st.warning(f"{left_out} left out: names and times only, nothing for a judge to read.")
    budget = proposed.spec.budget_usd
    limit = "no budget: no cost limit" if budget is None else f"budget US$ {budget:,.2f}"
    st.text(
        f"{proposed.spec.title}: {counted(proposed.cells, 'cell')} on {counted(len(proposed.traces), 'trace')}, {limit}"
    )
    if proposed.costs is None:
        st.error(plain(f"The cost is not known: {proposed.problem}"))
    else:
        show_estimate(proposed.costs)
    twin = last_run_of(workspace().engine, proposed.spec)
    if twin is not None:
        st.warning(f"Run {twin} asks the same judge models for the same cells.")
    st.button(
        "Start the run" if twin is None else "Start the same run again", key="start_run", icon=":material/play_arrow:",
        type="primary" if twin is None else "secondary", on_click=start_proposed,
    )  # fmt: skip


def start_proposed() -> None:
    """Start the run that was shown, once: pressed twice, there is none to start any more."""
    proposed: Proposal | None = st.session_state.pop(PROPOSED, None)
    if proposed is None or not user().may("researcher"):
        return
    home = workspace().home
    key = plan_run(
        workspace().engine, proposed.spec, proposed.traces, rubrics=rubrics(home), agents=agent_descriptions(home),
        author=user().name,
    )  # fmt: skip
    st.session_state["run"] = f"{key} · {proposed.spec.title}"  # the new run is the one to look at
    RUNS.start(home, key)
    st.session_state[STARTED] = f"Run {key} starts: {counted(proposed.cells, 'cell')}."


def show_estimate(costs: pd.DataFrame) -> None:
    """The cost of the run in four ways, at public prices."""
    price = {
        way: st.column_config.NumberColumn(f"{way}, US$", format="%.2f", help=about) for way, about in _WAYS.items()
    }
    data_table(costs, most=10, columns=price)
    st.caption("n/a: no public price is known for this model. No model was called.")


_WAYS = {
    "naive": "raw trace file in every call",
    "deduplicated": "judge's view in every call, no cache",
    "cached": "judge's view first, read from the provider's cache after the first call of a trace",
    "batch": "judge's view through the provider's batch interface",
}
_MODE_HELP = (
    "trace: one answer per trace; span: one answer per span; jury: several models (a, b, c), combined into one score."
)
_RULE_HELP = (
    "Used by mode jury: the score with the most votes, or the score nearest to the mean. Ties are reported, not "
    "resolved."
)
_PACE_HELP = "The calls of this run are spaced evenly below this limit."
_PRICE_HELP = "US$ per million tokens: INPUT,OUTPUT or INPUT,OUTPUT,CACHED. Empty: the public price, if it is known."
_CACHE_HELP = (
    "Uses the stored reply to an identical request (model, parameters, prefix, rubric, repeat) instead of paying again."
)
_ASK_HELP = (
    "Requests that were sent before a process or connection ended may be charged twice; when off, they end as failures "
    "(error)."
)
_MODEL_HELP = "Any model name that litellm knows. The app reads the API key from its environment and never stores it."
