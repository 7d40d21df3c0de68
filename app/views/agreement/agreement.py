"""How far judges and people agree: estimates with n and interval, and the rows of each mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd
import streamlit as st

from tracejury.app import estimates, listings, options
from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.filters import choose_filters
from tracejury.app.estimates import Revisions, estimate, shown_revision
from tracejury.app.placeholders import of_one_revision, with_placeholder
from tracejury.app.session import must, workspace
from tracejury.app.views.agreement.cards import counts_of
from tracejury.app.views.agreement.consistency import consistency_view
from tracejury.app.views.agreement.drilldowns import is_judged
from tracejury.app.views.agreement.errors import errors_view
from tracejury.app.views.agreement.overview import overview
from tracejury.app.views.agreement.raters import raters_view
from tracejury.app.views.agreement.scores import scores_view
from tracejury.app.views.agreement.team import team_view
from tracejury.app.views.agreement.versus import versus_view
from tracejury.app.views.benchmark_rates import benchmark_view
from tracejury.app.views.match_offer import offer_matching
from tracejury.ingest.store import read_transaction
from tracejury.judging.agreement import majority
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.reports.filters import FilterOptions, Filters
from tracejury.judging.store.people import gold_names

VIEWS = ("Overview", "Errors", "Scores", "Consistency", "Raters", "A against B", "Team", "Benchmark")
OF_PEOPLE = ("Raters", "A against B", "Team")
"""The views that compare people alone where no judge has answered yet."""
WITHOUT_JUDGES = (*OF_PEOPLE, "Benchmark")


def page() -> None:
    must("researcher")
    layout.heading("Agreement", beside=lambda: options.saved_views_menu("agreement"))
    offered = options.options()
    filters = choose_filters(offered, options.keep_split)
    if why_empty(offered):
        view_of(*of_one_revision(filters))


@with_placeholder(height=760)
def view_of(filters: Filters, at: Revisions) -> None:
    is_alone = not is_judged()
    inputs, first = estimates.inputs(filters), OF_PEOPLE[0] if is_alone else VIEWS[0]
    st.caption(f"{people_alone(filters) if is_alone else summary(filters)} · {shown_revision(at.shown)}")
    offer_matching(filters)
    blind = listings.blind_to_me()
    if blind:
        st.caption(f"Rows and marks exclude {counted(len(blind), 'trace')} that you are labelling blind; estimates "
            f"include them.")  # fmt: skip
    view = st.segmented_control(
        "View",
        VIEWS,
        default=first,
        required=True,
        key="view",
        label_visibility="collapsed",
        bind="query-params",
        persist_state="session",
    )
    if is_alone and view not in WITHOUT_JUDGES:
        st.info(NO_JUDGE)
    else:
        DRAW[str(view)](filters, inputs)


NO_JUDGE = (
    "No judge has given a verdict yet. Try: `tracejury judge` (offline, no key needed), or start a run on the Runs "
    f"page. Until then {', '.join(OF_PEOPLE)} compare people with each other."
)


def people_alone(filters: Filters) -> str:
    """What is compared where there is no judge."""
    with read_transaction(workspace().engine) as connection:
        gold = gold_names(connection)
    people = [name for name in options.people()["annotator"] if name not in gold]
    return f"No judge has given a verdict yet: {len(people):,} people compared · {plain(filters.label())}"


def why_empty(offered: FilterOptions) -> bool:
    """Whether there is anything to compare; says what is missing and what brings it."""
    if not listings.has_traces():
        st.info("This workspace holds no traces. Try: the Ingest page, or `tracejury ingest PATH`.")
    elif not offered.reviewers:
        st.info(
            "No annotator has submitted a trace yet. Try: label a trace on the Work page and submit it, or "
            "`tracejury labels import FILE`."
        )
    else:
        return True
    return False


SEEN = (
    "judges: all", "split: all traces", "failures left out", "failures count as disagreement",
    "each judge on its own traces",
)  # fmt: skip
"""What a filters says that the filters above show at a glance, or the summary with its numbers."""


def summary(filters: Filters) -> str:
    """Who is compared, and how much, in words."""
    reference, votes, counts = estimates.reference(filters), estimate(filters, "votes"), counts_of(filters)
    parts = (
        f"Reference: {plain(str(reference))}{votes_words(votes)}",
        f"{counted(counts['errors'], 'error')} on {counted(counts['traces'], 'trace')}"
        + and_incomplete(counts["incomplete"]),
        counted(counts["score_pairs"], "score pair"),
        *(plain(part) for part in filters.label().split(" · ") if part not in SEEN),
        failed_words(counts, is_left_out=filters.missing == "drop"),
        *same_traces_words(filters),
    )
    return " · ".join(parts)


def same_traces_words(filters: Filters) -> list[str]:
    """On which traces judges are compared, where they answered different ones."""
    words = estimates.overlap(filters).words()
    return [] if words is None else [plain(words) + " (More filters: Same traces for all judges)"]


def failed_words(counts: Mapping[str, int], *, is_left_out: bool) -> str:
    """How many cells failed, and what they count as."""
    if not counts["failed_cells"]:
        return "no failed cell"
    failed = f"{counted(counts['failed_cells'], 'failed cell')} ({counted(counts['failed_pairs'], 'error pair')})"
    return f"{failed} {'left out' if is_left_out else 'counted as misses'}"


def and_incomplete(number: int) -> str:
    """What is in no estimate, in words; nothing where nothing is."""
    return f" ({number:,} more in no estimate; see Errors)" if number else ""


def votes_words(votes: pd.DataFrame) -> str:
    """What a majority could not decide, in words; nothing where no majority is asked for."""
    if votes.empty:
        return ""
    table = majority.vote_table(votes).set_index("about")
    scored = table.drop(index=majority.ERRORS, errors="ignore")
    undecided = int((scored["n"] - scored["majority"]).sum())
    tied = int(table["tied"].get(majority.ERRORS, 0))
    return f" ({counted(undecided, 'score')} without a majority, {counted(tied, 'error')} tied; see Raters)"


DRAW: dict[str, Callable[[Filters, Inputs], None]] = {
    "Overview": overview,
    "Errors": errors_view,
    "Scores": scores_view,
    "Consistency": consistency_view,
    "Raters": raters_view,
    "A against B": versus_view,
    "Team": team_view,
    "Benchmark": lambda _choice, _found: benchmark_view(),
}


page()
