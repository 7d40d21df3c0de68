"""How far judges and people agree: figures with n and interval, and the traces behind each mark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app import estimates, listings, options
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import cell_table, chosen_cell, chosen_row, data_table, words
from tracejury.app.components.drilldown import (
    MOST_ROWS,
    chosen_point,
    kept_point,
    listing,
    open_in_compare,
    open_in_work,
)
from tracejury.app.components.figures import (
    FEW_NOTE,
    NO_INTERVAL,
    aligned,
    cell_text,
    counted,
    definition,
    figure_text,
    greyed,
    is_dark,
    plain,
    title_of,
    wide_table,
    with_labels,
)
from tracejury.app.components.filters import choose_filters
from tracejury.app.components.headline import coverage, headline
from tracejury.app.components.judges import (
    FIGURES,
    PEOPLE,
    SIGNED,
    TABLE_COLUMNS,
    beside_people,
    between_people,
    every_figure,
    figure_rows,
    split_labels,
)
from tracejury.app.datasets import findings_said, open_to_me
from tracejury.app.estimates import Revisions, estimate, shown_revision
from tracejury.app.options import ArmOption
from tracejury.app.painting import paint
from tracejury.app.placeholders import of_one_revision, watch, with_placeholder
from tracejury.app.session import link_params, must
from tracejury.app.views.benchmark_rates import benchmark_view
from tracejury.app.views.match_offer import offer_matching
from tracejury.judging.agreement import ceiling, errors, majority
from tracejury.judging.agreement.figure import TOO_FEW
from tracejury.judging.agreement.findings import WITHOUT
from tracejury.judging.agreement.frames import DIMENSION_ORDER
from tracejury.judging.agreement.matchers import ALL, decided_by_both
from tracejury.judging.agreement.raters import long_ceiling
from tracejury.judging.agreement.rounding import half_up
from tracejury.judging.agreement.tables import InputName, Inputs
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.estimate_files import EstimateKey
from tracejury.judging.reports.estimates import SUITES, each_once
from tracejury.judging.reports.filters import FilterOptions, Filters
from tracejury.judging.reports.workload import COUNTS

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
    found, first = estimates.inputs(filters), OF_PEOPLE[0] if is_alone else VIEWS[0]
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
        DRAW[str(view)](filters, found)


NO_JUDGE = (
    "No judge has given a verdict yet. Try: `tracejury judge` (offline, no key needed), or start a run on the Runs "
    f"page. Until then {', '.join(OF_PEOPLE)} compare people with each other."
)


def is_judged() -> bool:
    """Whether any judge has answered; without one people can be compared with each other alone."""
    return bool(options.judge_models())


def people_alone(filters: Filters) -> str:
    """What is compared where there is no judge."""
    people = options.people()
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


SPLIT_MAY = " The filter Split may exclude the traces that have them."


def why_no_errors(filters: Filters) -> str:
    """Why no error can be shown under a judge."""
    counts = counts_of(filters)
    if counts["error_pairs"]:
        return (
            f"None of {counted(counts['error_pairs'], 'error pair')} counts here: the judgements failed "
            f"({counted(counts['failed_cells'], 'cell')}), or no error is of a judge's dimension. Failures count as "
            "misses where the filter says so."
        )
    reason = "These judges have judged no trace with a reference error under these filters."
    return reason + SPLIT_MAY * bool(filters.split)


SEEN = ("judges: all", "split: all traces", "failures left out", "failures count as disagreement")
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
    )
    return " · ".join(parts)


def failed_words(counts: Mapping[str, int], *, is_left_out: bool) -> str:
    """How many judgements failed, and what they count as."""
    if not counts["failed_cells"]:
        return "no failed judgement"
    failed = f"{counted(counts['failed_cells'], 'failed judgement')} ({counted(counts['failed_pairs'], 'error pair')})"
    return f"{failed} {'left out' if is_left_out else 'counted as misses'}"


def and_incomplete(number: int) -> str:
    """What is in no figure, in words; nothing where nothing is."""
    return f" ({number:,} more in no estimate, listed under Errors)" if number else ""


def votes_words(votes: pd.DataFrame) -> str:
    """What a majority could not decide, in words; nothing where no majority is asked for."""
    if votes.empty:
        return ""
    table = majority.vote_table(votes).set_index("about")
    scored = table.drop(index=majority.ERRORS, errors="ignore")
    undecided = int((scored["n"] - scored["majority"]).sum())
    tied = int(table["tied"].get(majority.ERRORS, 0))
    return f" ({counted(undecided, 'score')} without a majority, {counted(tied, 'error')} tied: listed under Raters)"


def counts_of(filters: Filters) -> dict[str, int]:
    """How much is compared, by the name of the columns of the estimate `summary`."""
    return {str(name): int(count) for name, count in estimate(filters, "summary").iloc[0].items()}


# overview -------------------------------------------------------------------------------------------------------


COVERED = (
    "Share of all reference errors that any judge of the suite caught or localized. In brackets: Wilson's 95 % "
    "interval, the number of errors, and the human ceiling."
)


def errors_found(filters: Filters, found: Inputs) -> None:
    suite = found.suite  # before the ceiling is asked for, which takes longer
    reached = None if estimates.pending(filters, "error_ceiling") else found.error_ceiling
    headline(coverage(suite, reached), title="Reference errors caught", about=COVERED)


def overview(filters: Filters, found: Inputs) -> None:
    errors_found(filters, found)
    paint("overview")
    left, right = st.columns([1, 1], gap="medium")
    with left, st.container(border=True, height="stretch"):
        forest_card(filters)
    with right, st.container(border=True, height="stretch"):
        impact_card(filters)
    with st.container(border=True):
        table_card(filters)


@st.fragment(key="card-forest")
@with_placeholder(height=520)
def forest_card(filters: Filters) -> None:
    found = estimates.inputs(filters)
    layout.title("Judges at a glance", "Each judge's estimate with its 95 % interval (bootstrap by trace, or Wilson).")
    counts = counts_of(filters)
    kinds = {"scores": counts["score_pairs"], "runs": len(estimate(filters, "repeated"))}
    offered = [figure for figure in FIGURES if kinds.get(figure.kind, counts["error_pairs"])]
    if not offered:
        st.caption("These filters select no errors and no scores.")
        return
    by_title = {figure.title: figure for figure in offered}
    start = FIGURES[1].title if FIGURES[1].title in by_title else offered[0].title
    chosen = st.selectbox(
        "Metric",
        list(by_title),
        index=list(by_title).index(start),
        key="figure",
        label_visibility="collapsed",
        bind="query-params",
        persist_state="session",
    )
    figure = by_title[str(chosen)]
    metric = figure.name.partition(".")[2]
    st.caption(definition(metric))
    late = estimates.pending(filters, "error_ceiling") if figure.kind in {"caught", "localized"} else None
    rows = figure_rows(found, figure, beside_people=late is None)
    low = -1.0 if metric in SIGNED else 0.0
    drawn = charts.forest(rows, metric=figure.title, limits=(-3, 3) if metric == "bias" else (low, 1))
    event = st.plotly_chart(
        drawn, key="chart-forest", config=CONFIG, on_select="rerun", selection_mode="points", alt=figure.title
    )
    point = kept_point(event, key="forest", of=(filters.unpinned(), figure.name), drawn=late is None)
    if point is not None:
        drill_down = drill_into_ceiling if point[-1] == charts.CEILING else drill_into_estimate
        drill_down(filters, figure.name, *map(str, point[:3]), key="behind-forest")
    ceiling_line(late, has_ceiling="ceiling" in rows.columns, name="late-ceiling")


def ceiling_line(late: EstimateKey | None, *, has_ceiling: bool, name: str) -> None:
    """What the human ceiling is; `late`: it is being made, and the page is drawn again once it is there."""
    if has_ceiling:
        st.caption("Human ceiling: the same metric between people who labelled the same traces blind.")
    if late is not None:
        st.caption("The human ceiling is being computed: every pair of people's errors is matched.")
        watch(late, name=name)


@st.fragment(key="card-impact")
@with_placeholder(height=520)
def impact_card(filters: Filters) -> None:
    layout.title(
        "Coverage by impact",
        "Share of the reference errors of the judge's dimension that it caught and localized, by impact; Wilson's "
        "interval.",
    )
    found, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    coverage = split_labels(with_labels(found.coverage))
    suite = split_labels(found.suite.assign(label=found.suite["judge_model"], dimension=SUITES))
    panels = st.segmented_control(
        "Panels", ["whole suites", "each judge"], default="whole suites", required=True, key="panels",
        label_visibility="collapsed", bind="query-params",
    )  # fmt: skip
    shown = suite if panels == "whole suites" else coverage[coverage["label"].isin(_with_errors(coverage))]
    if shown.empty or not int(shown["n"].sum()):
        st.caption(why_no_errors(filters))
        return
    shown = beside_people(shown, None if late is not None else found.error_ceiling)
    event = st.plotly_chart(
        charts.impact_bars(shown), key="chart-impact", config=CONFIG, on_select="rerun", selection_mode="points",
        alt="Coverage by impact",
    )  # fmt: skip
    point = kept_point(event, key="impact", of=(filters.unpinned(), panels), drawn=late is None)
    if point is not None:
        judge_model, dimension, split, impact, kind = map(str, point[:5])
        if point[-1] == charts.CEILING:
            drill_into_ceiling(
                filters, f"{kind}.recall", judge_model, dimension, split, impact=impact, key="behind-impact"
            )
        else:
            drill_into_errors(
                filters,
                judge_model=judge_model,
                dimension=dimension,
                split=split,
                impact=impact,
                kind=kind,
                key="behind-impact",
            )
    else:
        st.caption("Pale: n < 10. Click a bar to list its errors, a line to list people's comparisons.")
    ceiling_line(late, has_ceiling=bool(shown["ceiling"].notna().any()), name="late-impact")


def few_names(labels: Iterable[str], most: int = 6) -> str:
    """The first names, and how many more there are."""
    names = list(dict.fromkeys(labels))
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def _with_errors(coverage: pd.DataFrame) -> list[str]:
    totals = coverage[coverage["impact"] == "all"].groupby("label", sort=False)["n"].max()
    return [str(label) for label in totals[totals > 0].index]


@st.fragment(key="card-table")
@with_placeholder(height=420)
def table_card(filters: Filters) -> None:
    layout.title("Every judge", "Value [95 % interval] and its own n. " + FEW_NOTE)
    found, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    long = every_figure(found, beside_people=late is None)
    if long.empty:
        st.caption("These filters have no errors and no scores.")
        return
    counts = found.error_rates[found.error_rates["impact"] == "all"].drop_duplicates(
        ["judge_model", "dimension", "split"]
    )
    shown, few = wide_table(
        long, [m for m in TABLE_COLUMNS if m in set(long["metric"])], ["judge_model", "dimension", "split"]
    )
    left_out = shown[["judge_model", "dimension", "split"]].merge(
        counts[["judge_model", "dimension", "split", "traces", "n", "failed"]],
        on=["judge_model", "dimension", "split"],
        how="left",
    )
    shown.insert(3, "traces", left_out["traces"])
    shown.insert(4, "errors", left_out["n"])
    shown.insert(5, "failed", left_out["failed"])
    whose = shown[["judge_model", "dimension", "split"]].to_numpy().tolist()
    if shown["split"].nunique() < 2:
        shown = shown.drop(columns="split")
    event = st.dataframe(
        greyed(shown, few),
        hide_index=True,
        placeholder="–",
        column_config=_column_help(),
        height="auto",
        key="every-judge",
        on_select="rerun",
        selection_mode="single-cell",
        alt="Estimates of every judge",
    )
    drill_into_cell(filters, chosen_cell(event, len(whose)), whose)
    if late is not None:
        st.caption("The human ceiling of errors is being computed and is not in the rows yet.")
    with st.expander("Every estimate in long form, with its n and reason", on_change="rerun", key="long") as opened:
        if opened.open:
            data_table(long)


def drill_into_cell(filters: Filters, cell: tuple[int, str] | None, whose: list[list[str]]) -> None:
    """What is behind the cell that was clicked."""
    if cell is None or cell[1] not in TABLE_COLUMNS:
        st.caption("Click an estimate to list its rows.")
        return
    row, name = cell
    judge_model, dimension, split = whose[row]
    drill_down = drill_into_ceiling if judge_model == PEOPLE else drill_into_estimate
    drill_down(filters, name, judge_model, dimension, split, key="behind-cell")


def _column_help() -> dict[str, ColumnConfig]:
    config: dict[str, ColumnConfig] = {
        "judge_model": st.column_config.TextColumn("judge model", pinned=True),
        "dimension": st.column_config.TextColumn("dimension", pinned=True),
        "traces": st.column_config.NumberColumn("traces", format="%d", help="Judged traces with reference errors"),
        "errors": st.column_config.NumberColumn("errors", format="%d", help="Reference errors of the comparison"),
        "failed": st.column_config.NumberColumn("failed", format="%d", help="Error pairs of failed judgements"),
    }
    for figure in FIGURES:
        metric = figure.name.partition(".")[2]
        config[figure.name] = st.column_config.TextColumn(
            figure.title, help=definition(metric) or None, alignment="right", width="medium"
        )
    return config


# errors ---------------------------------------------------------------------------------------------------------


def errors_view(filters: Filters, found: Inputs) -> None:
    if not counts_of(filters)["error_pairs"]:
        st.info(why_no_errors(filters))
        return
    errors_found(filters, found)
    paint("errors")
    with st.container(border=True):
        strip_card(filters)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        grid_card(filters)
    with right, st.container(border=True, height="stretch"):
        map_card(filters)
    with st.container(border=True):
        findings_card(filters)
    if counts_of(filters)["incomplete"]:
        with st.container(border=True):
            incomplete_card(filters)


@st.fragment(key="card-incomplete")
@with_placeholder(height=260)
def incomplete_card(filters: Filters) -> None:
    rows = estimate(filters, "incomplete")
    layout.title(
        f"{counted(len(rows), 'error')} in no estimate",
        "An error without a span, a dimension or an impact can be neither caught nor missed.",
    )
    row = listing(open_to_me(rows), key="behind-incomplete")
    if row is not None:
        open_in_work(link_params(trace=str(row["trace_id"])), key="incomplete-open")


@st.fragment(key="card-strip")
@with_placeholder(height=560)
def strip_card(filters: Filters) -> None:
    layout.title(
        "Reference errors by judge",
        "The paper's Figures 3 and 4: 0 missed, 1 caught, 2 localized. Errors that are the judge's own dimension only.",
    )
    own = st.toggle("Only errors of the judge's dimension", value=True, key="own_dimension")
    pairs = with_labels(open_to_me(estimate(filters, "strip_marks", "own" if own else "every")))
    counts = estimate(filters, "strip_counts", "own" if own else "every")
    event = st.plotly_chart(
        charts.coverage_strip(pairs, counts=[int(count) for count in counts["count"]]), key="chart-strip",
        config=CONFIG, on_select="rerun", selection_mode="points", alt="Errors by judges",
    )  # fmt: skip
    point = chosen_point(event)
    if pairs.empty:
        st.caption(
            why_no_errors(filters) if counts["errors"].iloc[0] == 0 else "All of them are of traces left out here."
        )
        return
    if point is None:
        drawn, every = int(counts["drawn"].iloc[0]), int(counts["errors"].iloc[0])
        some = "" if drawn == every else f"{drawn:,} of {counted(every, 'error')} drawn, evenly spread; counts of all. "
        st.caption(f"{some}Click a mark to open its error.")
        return
    trace_id, error_id, label = str(point[0]), str(point[1]), str(point[2])
    judge_model = str(pairs.loc[pairs["label"] == label, "judge_model"].iloc[0])
    person = str(pairs.loc[pairs["error_id"] == error_id, "annotator"].iloc[0])
    st.caption(plain(f"Trace {trace_id}, error {error_id}, judge {label}"))
    dimension = str(pairs.loc[pairs["label"] == label, "dimension"].iloc[0])
    link = compare_link(
        filters, trace=trace_id, judge_model=judge_model, person=person, pair=error_id, dimension=dimension
    )
    open_trace(link, key="strip-open")


@st.fragment(key="card-grid")
@with_placeholder(height=420)
def grid_card(filters: Filters) -> None:
    layout.title(
        "Errors caught, by the error's dimension and the judge's dimension",
        "Rows: dimension of the reference error; columns: judge. Caught / errors; the diagonal is each judge's recall.",
    )
    table = estimate(filters, "table.dimension_grid")
    table = table[table["dimension"].isin(DIMENSIONS)]
    judge_models = list(dict.fromkeys(table.loc[table["errors"] > 0, "judge_model"]))
    if not judge_models:
        st.caption("Only judges of single dimensions have this grid; none of these filters answered a mapped error.")
        return
    judge_model = st.selectbox("Judge model", judge_models, key="grid_system", width=240)
    drawn = errors.all_splits(table[table["judge_model"] == judge_model])
    event = st.plotly_chart(
        charts.dimension_grid(drawn, is_dark=is_dark()), key="chart-grid", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Dimensions by judges",
    )  # fmt: skip
    point = chosen_point(event)
    if point is None:
        st.caption("Pale: n < 10. Click a cell to list its errors.")
        return
    drill_into_errors(
        filters, error_dimension=str(point[0]), judge_model=str(judge_model), dimension=str(point[1]), key="behind-grid"
    )


@st.fragment(key="card-map")
@with_placeholder(height=420)
def map_card(filters: Filters) -> None:
    layout.title(
        "Precision and recall", "One mark a judge; an arrow leads from caught to localized; curves of equal F1."
    )
    found, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    rates = with_labels(found.error_rates)
    rates = split_labels(rates[(rates["impact"] == "all") & (rates["positives"] > 0)])
    undefined = rates[rates["precision"].isna() | rates["recall"].isna()]
    reached = None if late is not None else between_people(found.error_ceiling, set(rates["dimension"]))
    event = st.plotly_chart(
        charts.precision_recall(rates, reached), key="chart-map", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Precision against recall",
    )  # fmt: skip
    point = kept_point(event, key="map", of=filters.unpinned(), drawn=late is None)
    if point is not None:
        drill_down = drill_into_ceiling if point[-1] == charts.CEILING else drill_into_estimate
        drill_down(filters, f"{point[3]}.f1", *map(str, point[:3]), key="behind-map")
    else:
        st.caption("Pale: n < 10 of one of the two. Click a mark to list its errors; hover for intervals.")
    if len(undefined):
        st.caption(f"Not drawn, precision or recall undefined: {plain(few_names(undefined['label']))}.")
    ceiling_line(late, has_ceiling=reached is not None and len(reached) > 0, name="late-map")


@with_placeholder(height=260)
def findings_card(filters: Filters) -> None:
    layout.title(
        "Unmatched findings",
        "Precision (GPA) never counts a finding that matches no reference error. This table counts such findings, "
        "with people's reviews on the Compare page. " + definition("finding_precision"),
    )
    table = estimate(filters, "table.findings")
    if table.empty:
        st.caption("No judge of these filters has a finding.")
        return
    figures, few = finding_cells(table)
    single = ["split"] if table["split"].nunique() < 2 else []
    hidden = ["reason", *(f"{name}{end}" for name in FINDING_RATES for end in ("", "_low", "_high"))]
    drawn = table.drop(columns=[*hidden, *single]).join(figures)
    event = st.dataframe(
        greyed(drawn, few), hide_index=True, height="auto", width="content", key="findings", on_select="rerun",
        selection_mode="single-row", alt="Unmatched findings",
        column_config=findings_columns(drawn),
    )  # fmt: skip
    row = chosen_row(event, len(table))
    if row is None:
        st.caption("Value [95 % interval] and its own n. Select a row to list its findings. " + FEW_NOTE)
        return
    one = table.iloc[row]
    drill_into_findings(filters, str(one["judge_model"]), str(one["dimension"]), str(one["split"]))


FINDING_RATES = {"unmatched_per_trace": "traces", "finding_precision": "reviewed", "invalid_citation_rate": "citations"}
"""The rates of `findings.finding_table`, and what the n of each is."""


FINDING_COUNTS = {
    "traces": "Traces that the judge answered",
    "matched": "Findings that match a reference error",
    "unmatched": "Findings that match no reference error",
    "confirmed": "Matches that a person confirmed on Compare",
    "not_matched": "Findings for which no matches were proposed yet. Try: tracejury match",
    "reviewed": "Findings of which a person confirmed the match or gave a verdict on Compare",
    "finding_precision_lowest": "If all findings that nobody reviewed were false alarms",
    "finding_precision_highest": "If all findings that nobody reviewed were valid",
    "valid_new_error": "Unmatched findings that a person judged so on Compare",
    "false_alarm": "Unmatched findings that a person judged so on Compare",
    "duplicate": "Unmatched findings that a person judged so on Compare; reviewed, but not valid",
    "citations": "Places that the findings cite",
    "invalid_citations": "Of the citations those that resolve to no span of the trace",
}
"""What the counts of `findings.finding_table` count."""


def findings_columns(drawn: pd.DataFrame) -> dict[str, ColumnConfig]:
    """Counts and rates by their words, with what each counts; figures at the right like numbers."""
    config: dict[str, ColumnConfig] = {
        str(name): st.column_config.Column(words(str(name)), help=FINDING_COUNTS.get(str(name)))
        for name in drawn.columns
    }
    return config | {
        name: st.column_config.TextColumn(words(name), alignment="right", help=definition(name) or None)
        for name in FINDING_RATES
    }


def finding_cells(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rates with their intervals and n, and which of them are grey."""
    text, few = pd.DataFrame(index=table.index), pd.DataFrame(index=table.index)
    for name, of in FINDING_RATES.items():
        cells = table[[name, f"{name}_low", f"{name}_high", of]]
        text[name] = aligned(
            [
                cell_text(
                    {"value": value, "low": low, "high": high, "n": n, "reason": WITHOUT.get(name)}, without=NO_INTERVAL
                )
                for value, low, high, n in cells.itertuples(index=False, name=None)
            ]
        )
        few[name] = (table[of] < TOO_FEW) | table[name].isna()
    return text, few


def drill_into_findings(filters: Filters, judge_model: str, dimension: str, split: str) -> None:
    """The findings of a judge, the unmatched ones first."""
    found = estimate(filters, "findings")
    mine = found[(found["judge_model"] == judge_model) & (found["dimension"] == dimension) & (found["split"] == split)]
    mine = findings_said(open_to_me(mine).sort_values("matched", kind="stable").head(MOST_ROWS))
    words = mine[["trace_id", "finding_id", "judge_model", "matched", "verdict", "impact", "description", "cites"]]
    row = listing(
        words.assign(cites=words["cites"].map(lambda cites: ", ".join(map(str, cites)))), key="behind-findings"
    )
    if row is not None:
        link = compare_link(filters, trace=str(row["trace_id"]), judge_model=judge_model, pair=f"|{row['finding_id']}")
        open_trace(link, key="findings-open")


# scores ---------------------------------------------------------------------------------------------------------


def scores_view(filters: Filters, found: Inputs) -> None:
    if not counts_of(filters)["score_pairs"]:
        st.info(
            f"{plain(str(estimates.reference(filters)))} gave no score of a dimension that a judge also scored. Try: "
            f"score traces from 0 to 3 on the Work page; TRAIL annotations hold errors, not scores of these dimensions."
            + SPLIT_MAY
            * (filters.split is not None)
        )
        return
    exact = with_labels(found.figures_of_scores)
    headline(split_labels(exact[exact["metric"] == "exact"]), title="Exact accuracy", about=definition("exact"))
    paint("scores")
    with st.container(border=True):
        confusion_card(filters)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        bias_card(filters)
    with right, st.container(border=True, height="stretch"):
        prevalence_card(filters)


@st.fragment(key="card-confusion")
@with_placeholder(height=420)
def confusion_card(filters: Filters) -> None:
    layout.title(
        "Reference scores against judge scores", "Counts; the shade is the share of the reference score's row."
    )
    table = with_labels(estimate(filters, "table.score_confusion"))
    labels = list(dict.fromkeys(table["label"]))
    label = st.selectbox("Judge", ["all judges", *labels], key="confusion_judge", width=240)
    kept = each_once(table) if label == "all judges" else table[table["label"] == label]
    summed = kept.groupby(["reference_score", "judge_score"])["count"].sum().reset_index()
    of = summed.groupby("reference_score")["count"].transform("sum")
    summed = summed.assign(share=(summed["count"] / of.where(of > 0)).astype("float64"))
    left, right = st.columns(2)
    with left:
        failed = "" if int(summed["count"].sum()) else ": every judgement failed or was not applicable"
        st.caption(f"Four points, n = {int(summed['count'].sum()):,}{failed}")
        event = st.plotly_chart(
            charts.score_grid(summed, is_dark=is_dark()), key="chart-confusion", config=CONFIG, on_select="rerun",
            selection_mode="points", alt="Confusion of scores",
        )  # fmt: skip
    with right:
        st.caption("Three buckets: 0, 1–2, 3")
        in_buckets = st.plotly_chart(
            charts.score_grid(charts.bucket_confusion(summed), is_dark=is_dark()),
            key="chart-buckets",
            config=CONFIG,
            on_select="rerun",
            selection_mode="points",
            alt="Confusion of buckets",
        )
    of_square, of_bucket = chosen_point(event), chosen_point(in_buckets)
    if of_square is None and of_bucket is None:
        st.caption(f"Pale: fewer than {TOO_FEW} traces with this reference score. Click a square to list its traces.")
    for point, key in ((of_square, "behind-confusion"), (of_bucket, "behind-buckets")):
        if point is not None:
            reference_score, judge_score = (str(score).replace("–", ",") for score in point[:2])
            drill_into_scores(
                filters, reference_score=reference_score, judge_score=judge_score, of=kept["label"], key=key
            )


@st.fragment(key="card-bias")
@with_placeholder(height=420)
def bias_card(filters: Filters) -> None:
    layout.title("Bias", definition("bias") + " Lines: mean and ±1.96 standard deviations (Bland and Altman).")
    table = split_labels(with_labels(estimates.inputs(filters).figures_of_scores))
    means = table[(table["metric"] == "bias") & (table["n"] > 0)].set_index("label")
    label = st.selectbox("Judge", ["all judges", *means.index], key="bias_judge", width=240)
    alone = means.loc[means.index == label] if len(means) > 1 else means
    one = alone.to_dict("records")[0] if len(alone) else None
    asked = () if one is None else tuple(str(one[name]) for name in ("judge_model", "dimension", "split"))
    drawn, lines = estimate(filters, "bias_marks", *asked), estimate(filters, "bias_lines", *asked)
    bounds = lines.iloc[0] if one is None else one
    between = float(bounds["low"]), float(bounds["high"])
    event = st.plotly_chart(
        charts.bias_plot(open_to_me(drawn), lines, between=between), key="chart-bias", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Judge minus reference against their mean",
    )  # fmt: skip
    point = chosen_point(event)
    if point is None:
        every = int(lines["n"].iloc[0])
        some = "" if len(drawn) == every else ", evenly spread ones drawn, the lines are of all"
        by = " In brackets the mean's 95 % interval: traces are resampled, each with all its judges." * (one is None)
        st.caption(f"{counted(every, 'score pair')}{some}. Click a mark to open its trace.{by}")
    else:
        open_trace(compare_link(filters, trace=str(point[0]), judge_model=point[1]), key="bias-open")
    bias_means(filters, means)


def bias_means(filters: Filters, means: pd.DataFrame) -> None:
    """Each judge's mean with its interval and n, and the pairs behind the one that is chosen."""
    if means.empty:
        return
    told = aligned([cell_text(dict(row)) for _, row in means.iterrows()])
    cells = pd.DataFrame({"judge": means.index, "mean bias": told})
    few = pd.DataFrame({"mean bias": (means["n"] < TOO_FEW).to_numpy()})
    event = st.dataframe(
        greyed(cells, few), hide_index=True, width="content", height=min(38 + 35 * len(cells), 213), key="bias-means",
        on_select="rerun", selection_mode="single-row", alt="Mean bias of each judge",
        column_config={"mean bias": st.column_config.TextColumn("mean bias [95 %]", alignment="right")},
    )  # fmt: skip
    row = chosen_row(event, len(means))
    if row is None:
        st.caption(
            "Select a judge to list its pairs. There is no human ceiling: every pair of people counts in both "
            "directions, so their bias is 0. " + FEW_NOTE
        )
        return
    one = means.iloc[row]
    drill_into_scores(
        filters, judge_model=str(one["judge_model"]), dimension=str(one["dimension"]), split=str(one["split"]),
        metric="bias", key="behind-bias",
    )  # fmt: skip


@st.fragment(key="card-prevalence")
@with_placeholder(height=420)
def prevalence_card(filters: Filters) -> None:
    layout.title(
        "Frequency of each score",
        "Where one score prevails, kappa is low whatever the agreement: read AC2.",
    )
    table = split_labels(with_labels(estimate(filters, "table.score_prevalence")))
    event = st.plotly_chart(
        charts.prevalence_bars(table), key="chart-prevalence", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Prevalence of scores",
    )  # fmt: skip
    point = chosen_point(event)
    if point is not None:
        judge_model, dimension, split, side, score = map(str, point[:5])
        reference_score, judge_score = (score, "") if side == "reference" else ("", score)
        drill_into_scores(
            filters,
            judge_model=judge_model,
            dimension=dimension,
            split=split,
            reference_score=reference_score,
            judge_score=judge_score,
            key="behind-prevalence",
        )
    flags = split_labels(with_labels(estimate(filters, "table.score_flags")))
    odd = flags[flags["flags"] != ""]
    if len(odd):
        st.caption("Look at: " + plain("; ".join(f"{r.label} is {r.flags} (n {r.n})" for r in odd.itertuples())))


# consistency ----------------------------------------------------------------------------------------------------


@with_placeholder(height=700)
def consistency_view(filters: Filters, found: Inputs) -> None:
    table = found.consistency
    if table.empty or int(table["runs"].max()) < 2:
        st.info(
            "Consistency needs two or more repeats of the same judge on the same traces. Try: start a run with "
            "repeats on the Runs page, or `tracejury judge --repeats 5`."
        )
        return
    repeated = table[table["runs"] > 1]
    with st.container(border=True):
        consistency_table(filters, repeated)
    paint("consistency")
    with st.container(border=True):
        runs_card(filters, with_labels(repeated))
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        alpha_card(filters)
    with right, st.container(border=True, height="stretch"):
        rationale_card(filters)


@st.fragment(key="card-consistency")
@with_placeholder(height=300)
def consistency_table(filters: Filters, table: pd.DataFrame) -> None:
    layout.title("Consistency over repeats", definition("alpha_interval"))
    several = ["split"] if table["split"].nunique() > 1 else []
    shown, few = consistency_cells(table, several)
    event = st.dataframe(
        greyed(shown, few), hide_index=True, width="content", height=38 + 35 * min(len(shown), 12), key="consistency",
        on_select="rerun", selection_mode="single-row", alt="Consistency over repeats",
        column_config={
            name: st.column_config.TextColumn(words(name), alignment="right", help=definition(name) or None)
            for name in few.columns
        }
        | {name: words(name) for name in ("judge_model", "not_applicable")},
    )  # fmt: skip
    row = chosen_row(event, len(table))
    if row is None:
        st.caption("Value [95 % interval] over n traces. Select a row to list them. " + FEW_NOTE)
        return
    one = table.iloc[row]
    drill_into_repeats(
        filters, str(one["judge_model"]), str(one["dimension"]), str(one["split"]), key="behind-consistency"
    )


CONSISTENCY = {"alpha_interval": "alpha", "mean_sd": "mean_sd", "identical": "identical", "unscored": "unscored"}
"""Figures of `reliability_table` and what their bounds are named by."""


def consistency_cells(table: pd.DataFrame, several: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The figures of consistency with their intervals, and which of them are grey."""
    shown = table[["judge_model", "dimension", *several, "runs", "n", "failed", "not_applicable"]].reset_index(
        drop=True
    )
    for name, bounds in CONSISTENCY.items():
        cells = table[[name, f"{bounds}_low", f"{bounds}_high", "reason"]].itertuples(index=False, name=None)
        shown[name] = [
            _with_bounds(value, low, high, why if name == "alpha_interval" else None) for value, low, high, why in cells
        ]
    for name in ("p_below_667", "p_below_800"):
        shown[name] = ["n/a" if pd.isna(value) else half_up(value, 3) for value in table[name]]
    is_few = (shown["n"] < TOO_FEW).to_numpy()
    return shown, pd.DataFrame(dict.fromkeys([*CONSISTENCY, "p_below_667", "p_below_800"], is_few))


def _with_bounds(value: float | None, low: float | None, high: float | None, reason: object) -> str:
    if value is None or math.isnan(value):
        return f"n/a: {reason}" if isinstance(reason, str) else "n/a"
    return figure_text(value, low, high, without=NO_INTERVAL)


@st.fragment(key="card-runs")
@with_placeholder(height=560)
def runs_card(filters: Filters, table: pd.DataFrame) -> None:
    layout.title(
        "Traces by repeats",
        "Colour: the score of each repeat. Below: the standard deviation over repeats, scores scaled to 0..1.",
    )
    label = st.selectbox("Judge", list(dict.fromkeys(table["label"])), key="runs_judge", width=240)
    judge_model, dimension = table.loc[table["label"] == label, ["judge_model", "dimension"]].iloc[0]
    mine = open_to_me(estimate(filters, "run_marks", str(judge_model), str(dimension)))
    event = st.plotly_chart(
        charts.run_strip(mine, units=int(mine["units"].iloc[0]) if len(mine) else None),
        key="chart-runs",
        config=CONFIG,
        on_select="rerun",
        selection_mode="points",
        alt="Score strip",
    )
    point = chosen_point(event)
    if point is not None:
        opened = compare_link(filters, trace=str(point[0]), judge_model=str(judge_model), repeat=repeat_of(point[1]))
        open_trace(opened, key="runs-open")
    spread = estimate(filters, "run_spread", str(judge_model), str(dimension))
    event = st.plotly_chart(
        charts.spread_histogram(spread["sd"].to_numpy()), key="chart-spread", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Standard deviations",
    )  # fmt: skip
    point = chosen_point(event)
    if point is not None:
        drill_into_repeats(
            filters,
            str(judge_model),
            str(dimension),
            "",
            between=(float(point[0]), float(point[1])),
            key="behind-spread",
        )


@st.fragment(key="card-alpha")
@with_placeholder(height=420)
def alpha_card(filters: Filters) -> None:
    layout.title(
        "Distribution of alpha",
        "Bootstrap by trace; below .667 no conclusion is possible, from .8 on alpha is reliable (Krippendorff).",
    )
    drawn = labelled(filters, estimate(filters, "alpha_samples"))
    table = labelled(filters, estimates.inputs(filters).consistency).set_index("label")
    samples = {str(label): part["alpha"].to_numpy() for label, part in drawn.groupby("label", sort=False)}
    if not samples:
        st.caption("Alpha is undefined for every judge here: no variation, or fewer than two pairable traces.")
        return
    units = {str(label): int(n) for label, n in table["n"].items()}
    event = st.plotly_chart(
        charts.alpha_histogram(samples, order=repeated_labels(filters), units=units), key="chart-alpha", config=CONFIG,
        on_select="rerun", selection_mode="points", alt="Bootstrap distribution of alpha",
    )  # fmt: skip
    point = chosen_point(event)
    if point is None:
        st.caption("n traces each. Click an outline to list its traces.")
        return
    one = table.loc[str(point[0])]
    st.caption(plain(alpha_words(one.to_dict(), draws=len(samples[str(point[0])]))))
    drill_into_repeats(filters, str(one["judge_model"]), str(one["dimension"]), str(one["split"]), key="behind-alpha")


def alpha_words(row: Mapping[Any, Any], *, draws: int) -> str:
    """A judge's alpha with its interval, and how much of its distribution lies below Krippendorff's limits."""
    alpha = cell_text(
        {"value": row["alpha_interval"], "low": row["alpha_low"], "high": row["alpha_high"], "n": row["n"]}
    )
    below = f"P(alpha < .667) {half_up(row['p_below_667'], 3)}, P(alpha < .8) {half_up(row['p_below_800'], 3)}"
    return f"Alpha {alpha} traces; {below}, of {draws:,} defined resamples of these traces"


@st.fragment(key="card-rationale")
@with_placeholder(height=420)
def rationale_card(filters: Filters) -> None:
    layout.title("Rationale consistency", definition("sci"))
    by_trace = labelled(filters, estimate(filters, "trace_rationales"))
    known = open_to_me(by_trace.dropna(subset=["cosine"]))
    if known.empty:
        st.caption("No judge wrote two rationales on one trace.")
        return
    event = st.plotly_chart(
        charts.consistency_violins(known, order=repeated_labels(filters)), key="chart-sci", config=CONFIG,
        on_select="rerun", selection_mode="points", alt="Rationale consistency",
    )  # fmt: skip
    point = chosen_point(event)
    if point is not None:
        open_trace(compare_link(filters, trace=str(point[0]), judge_model=str(point[1])), key="sci-open")
    by = str(known["vectoriser"].iloc[0])
    st.caption(f"Texts compared by {plain(VECTORISERS.get(by, by))}. A dot is a trace; click it to open it.")


VECTORISERS = {"tfidf char_wb 3-5": "their character sequences of 3 to 5, rare ones counting more (TF-IDF)"}


def repeated_labels(filters: Filters) -> list[str]:
    """Every judge with a consistency, in the table's order: each has one colour in all charts of the view."""
    return [str(label) for label in labelled(filters, estimates.inputs(filters).consistency)["label"]]


def labelled(filters: Filters, rows: pd.DataFrame) -> pd.DataFrame:
    """With labels as the table of consistency has them: with the split where it holds several."""
    several = estimates.inputs(filters).consistency["split"].nunique() > 1
    return split_labels(with_labels(rows), is_split=several)


RATER_FIGURES: dict[str, str] = {
    "exact": "Exact accuracy",
    "off_by_one": "Off-by-one accuracy",
    "bucketed": "Bucketed accuracy",
    "quadratic_kappa": "Quadratic weighted kappa",
    "ac1": "Gwet's AC1",
    "ac2": "Gwet's AC2, quadratic",
    "alpha": "Krippendorff's alpha",
}
CEILING_FIGURES = {"pair_alpha" if name == "alpha" else name: title for name, title in RATER_FIGURES.items()}
"""As `long_ceiling` names them: those of a judge and its human."""

# raters ---------------------------------------------------------------------------------------------------------


def raters_view(filters: Filters, found: Inputs) -> None:
    if estimate(filters, "rated")["rater"].nunique() < 2:
        st.info("Two raters or more (people or judges) must score the same dimension before they can be compared.")
    else:
        people = found.human_ceiling.rename(columns={"exact": "value", "exact_low": "low", "exact_high": "high"})
        people = split_labels(people.assign(label=people["dimension"]))
        headline(people, title="Exact accuracy between people", about=definition("exact"))
        paint("raters")
        with st.container(border=True):
            raters_card(filters)
        with st.container(border=True):
            ceiling_card(filters, found)
    with st.container(border=True):
        error_ceiling_card(filters, found)
    if filters.reference == majority.MAJORITY:
        with st.container(border=True):
            majority_card(filters)
    for decided in DECIDERS:
        with st.container(border=True):
            st.fragment(deciders_card, key=f"card-{decided}")(filters, decided=decided)


@st.fragment(key="card-raters")
@with_placeholder(height=520)
def raters_card(filters: Filters) -> None:
    layout.title("Every pair of raters", "People and judges on the traces that both scored; n is the overlap.")
    rated = set(estimate(filters, "rated")["dimension"])
    dimensions = [d for d in DIMENSION_ORDER if d in rated]
    with st.container(horizontal=True):
        dimension = st.selectbox("Dimension", dimensions, key="raters_dimension", width=160)
        metric = st.selectbox(
            "Metric", list(RATER_FIGURES), index=list(RATER_FIGURES).index("ac2"), key="raters_metric", width=240,
            format_func=lambda name: RATER_FIGURES[name],
        )  # fmt: skip
    pairs = estimate(filters, "rater_pairs", str(dimension))
    left, right = st.columns([1, 1])
    with left:
        event = st.plotly_chart(
            charts.rater_grid(pairs, metric=str(metric), title=RATER_FIGURES[str(metric)], is_dark=is_dark()),
            key="chart-raters",
            config=CONFIG,
            on_select="rerun",
            selection_mode="points",
            alt="Raters",
        )
        of_pair = chosen_point(event)
    paint("raters")
    with right:
        items = open_to_me(estimate(filters, "item_marks", str(dimension)))
        event = st.plotly_chart(
            charts.item_strip(items), key="chart-items", config=CONFIG, on_select="rerun", selection_mode="points",
            alt="Raters by items",
        )  # fmt: skip
        point = chosen_point(event)
        if point is None:
            st.caption("Items with the largest differences come first. Click an item to open it.")
        else:
            open_trace(compare_link(filters, trace=str(point[0])), key="items-open")
    if of_pair is not None:
        drill_into_raters(filters, str(dimension), str(metric), str(of_pair[0]), str(of_pair[1]))
    undefined = pairs[pairs["n"] == 0]
    if len(undefined):
        names = few_names(f"{p.rater_a} and {p.rater_b}" for p in undefined.itertuples())
        st.caption(f"No common trace: {plain(names)}.")


@st.fragment(key="card-ceiling")
@with_placeholder(height=320)
def ceiling_card(filters: Filters, found: Inputs) -> None:
    layout.title("Human ceiling", "The judge's metrics between people, on traces that two or more people scored.")
    table = found.human_ceiling
    table = table[table["n"] > 0]
    if table.empty:
        st.caption("No trace was scored by two people, so there is no human ceiling yet. Try: a queue with overlap.")
        return
    figures = long_ceiling(table)
    shown, few = wide_table(figures, list(CEILING_FIGURES), ["dimension", "split"])
    titles: dict[str, ColumnConfig] = {
        name: st.column_config.TextColumn(title, help=definition(name) or None, alignment="right", width="medium")
        for name, title in CEILING_FIGURES.items()
    }
    whose = shown[["dimension", "split"]].to_numpy().tolist()
    people = table.set_index(["dimension", "split"])["raters"]
    shown.insert(2, "raters", [int(people.loc[tuple(key)]) for key in whose])
    shown = shown if shown["split"].nunique() > 1 else shown.drop(columns="split")
    event = st.dataframe(
        greyed(shown, few), hide_index=True, height="auto", key="ceiling", on_select="rerun",
        selection_mode="single-row", column_config={**titles}, alt="Human ceiling",
    )  # fmt: skip
    row = chosen_row(event, len(whose))
    if row is not None:
        listed(filters, estimate(filters, "rows_for_people", *whose[row]), key="behind-ceiling")
    else:
        st.caption("Value [95 % interval] and n traces; choose a row for them. " + FEW_NOTE)


@st.fragment(key="card-error-ceiling")
@with_placeholder(height=320)
def error_ceiling_card(filters: Filters, found: Inputs) -> None:
    layout.title(
        "Human ceiling for errors",
        "One person's errors against another person in the judge's place: same matcher, blind labels, all pairs of "
        "people.",
    )
    table = found.error_ceiling[found.error_ceiling["impact"] == "all"]
    table = table[table.groupby(["dimension", "split", "kind"])["n"].transform("max") > 0]  # undefined ones say why
    if table.empty:
        st.caption("No trace with an error was submitted by two people, so there is no ceiling yet.")
        return
    shown, few = wide_table(table, errors.RATES, ["dimension", "split", "kind"])
    whose = shown[["dimension", "split", "kind"]].to_numpy().tolist()
    shown = shown if shown["split"].nunique() > 1 else shown.drop(columns="split")
    rates: dict[str, ColumnConfig] = {
        name: st.column_config.TextColumn(title_of(name), help=definition(name), alignment="right")
        for name in errors.RATES
    }
    event = st.dataframe(
        greyed(shown, few), hide_index=True, height="auto", width="content",
        column_config={**rates}, key="error-ceiling",
        on_select="rerun", selection_mode="single-cell", alt="Human ceiling for errors",
    )  # fmt: skip
    cell = chosen_cell(event, len(whose))
    if cell is not None and cell[1] in errors.RATES:
        dimension, split, kind = whose[cell[0]]
        drill_into_ceiling(filters, f"{kind}.{cell[1]}", "", dimension, split, key="behind-error-ceiling")
    st.caption(
        "Click an estimate to list its comparisons. any: the other person reported the error under any dimension; "
        "over both directions its recall is its "
        "precision and F1 too. " + FEW_NOTE
    )


@with_placeholder(height=200)
def deciders_card(filters: Filters, *, decided: str) -> None:
    """People who decided the same things, about which `DECIDERS` says its words."""
    title, about, nobody, given = DECIDERS[decided]
    layout.title(title, about)
    found = estimates.inputs(filters)
    table: pd.DataFrame = getattr(found, decided)
    if table.empty:
        st.caption(nobody)
        return
    row = data_table(table, digits=3, key=decided, is_chosen=True)
    if ALL in set(table.iloc[:, 0]):
        st.caption("all: everybody, where there are three or more; its alpha is over all of them.")
    if row is None:
        st.caption("Select a row to list the decisions of both.")
        return
    first, second = map(str, table.iloc[row, :2])
    both = decided_by_both(found.frame(given), first, second)
    chosen = listing(open_to_me(both), key=f"behind-{decided}")
    if chosen is not None:
        open_trace(decided_link(filters, chosen), key=f"{decided}-open")


def decided_link(filters: Filters, row: Mapping[str, Any]) -> dict[str, str]:
    """The address of a pair, or of a finding alone, under the judge whose finding and the person whose error it is."""
    finding, findings, errors = str(row["finding_id"]), estimate(filters, "findings"), estimate(filters, "error_pairs")
    of = findings[findings["finding_id"].astype(str) == finding]["judge_model"]
    label = str(row.get("label_id") or "")
    by = errors[errors["error_id"] == label]["annotator"]
    return link_params(
        trace=str(row["trace_id"]), judge_model=None if of.empty else str(of.iloc[0]), pair=f"{label}|{finding}",
        person=None if by.empty else str(by.iloc[0]),
    )  # fmt: skip


DECIDERS: dict[str, tuple[str, str, str, InputName]] = {
    "matcher_agreement": (
        "Matchers",
        "Agreement beyond chance of people who decided the same matches.",
        "No two people have decided matches yet.",
        "match_decisions",
    ),
    "reviewer_agreement": (
        "Reviews of unmatched findings",
        "Agreement beyond chance of people who reviewed the same finding as valid new error, false alarm or duplicate.",
        "No two people have reviewed the same findings yet.",
        "finding_decisions",
    ),
}


@st.fragment(key="card-majority")
@with_placeholder(height=260)
def majority_card(filters: Filters) -> None:
    layout.title(
        "Votes of the majority",
        "On traces that two people or more submitted. A score counts when more than half of those who answered gave "
        "it, an error when more than half of the trace's people saw it.",
    )
    table = estimate(filters, "table.majority_votes")
    cell = cell_table(table, key="majority")
    if cell is None:
        st.caption("Click a number to list its votes.")
    else:
        votes = rows_for_votes(estimate(filters, "votes"), str(table["about"].iloc[cell[0]]), cell[1])
        row = listing(open_to_me(votes), key="behind-majority")
        if row is not None:
            link = compare_link(filters, trace=str(row["trace_id"]), dimension=str(row["about"]))
            open_trace(link, key="behind-majority-open")
    st.caption(
        "Tied: exactly half; minority: fewer; one person: nobody else answered. None of them enters the gold: such a "
        "score is left out and counted as missing, such an error is no error of the majority, and a finding that "
        "matches no other counts as unmatched. As each person has a vote in the majority, nobody's agreement with it "
        "is a ceiling; the human ceiling compares people in pairs."
    )


def rows_for_votes(votes: pd.DataFrame, about: str, column: str) -> pd.DataFrame:
    """The votes on a dimension, or on errors, that a column of `majority.vote_table` counts."""
    mine = votes[votes["about"] == about]
    several = mine[mine["outcome"] != "one person"]
    outcome = column.replace("_", " ")
    if outcome in majority.OUTCOMES:
        return mine[mine["outcome"] == outcome]
    return several[several["votes"] == several["people"]] if column == "unanimous" else several


# two judges -----------------------------------------------------------------------------------------------------


def versus_view(filters: Filters, found: Inputs) -> None:
    judge_models = [str(name) for name in estimate(filters, "compared")["judge_model"]]
    sides = options.arms(judge_models, estimates.reference(filters))
    if len(sides) < 2:
        st.info(
            "A comparison needs two sides on the same traces besides the reference: two judges, two repeats of one "
            "judge, a judge and a second person, or two other people."
        )
        return
    versus_card(filters, sides)


@st.fragment(key="card-versus")
@with_placeholder(height=700)
def versus_card(filters: Filters, sides: list[ArmOption]) -> None:
    by_words = {side.words: side for side in sides}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "A judge, one of its versions or repeats, or a person in the judge's place."
        left = str(st.selectbox("Side A", list(by_words), key="side_a", bind="query-params", width=260, help=about))
        right = str(st.selectbox("Side B", list(by_words), index=1, key="side_b", bind="query-params", width=260))
        kind = st.segmented_control(
            "Errors", ["caught", "localized"], default="caught", required=True, key="versus_kind"
        )
    if left == right:
        st.info("Choose two different sides.")
        return
    asked = by_words[left].text, by_words[right].text
    try:
        table = estimate(filters, "differences", *asked)
    except ValueError as error:
        st.info(plain(str(error)))
        return
    is_suite = set(table["dimension"]) <= {SUITES}
    table = table[(table["impact"] == "all") & (table["kind"] == kind)]
    table = table[table["metric"] == "recall"] if is_suite else table
    if table.empty or not int(table["n"].max()):
        st.info("These two sides share no error that both judged under the same dimension.")
        return
    table = table.assign(label=table["dimension"].replace({SUITES: "any judge"}))
    recall = table[table["metric"] == "recall"]
    headline(
        recall.assign(value=recall["difference"]),
        title=f"Recall, {kind}: A minus B", about=definition("recall"),
    )  # fmt: skip
    paint("versus")
    with st.container(border=True):
        layout.title("Differences", "Paired cluster bootstrap: both sides are resampled with the same traces.")
        shown = table.assign(label=table["label"] + " " + table["metric"])
        event = st.plotly_chart(
            charts.paired_dots(shown, left=left, right=right),
            key="chart-versus",
            config=CONFIG,
            on_select="rerun",
            selection_mode="points",
            alt="Paired differences",
        )
        point = chosen_point(event)
        st.caption(
            "Red: the 95 % interval of the difference leaves out 0, or six traces or more all differ alike. "
            + (
                "They share no dimension: each counts as one judge, an error as caught when any of it did."
                if is_suite
                else ""
            )
        )
    with st.container(border=True):
        layout.title(
            f"McNemar on {kind} errors", "Errors that only one side caught; exact p, Holm's correction over judges."
        )
        tests = estimate(filters, "found_by_one", *asked, str(kind))
        named = tests.rename(columns={"only_left": "only A", "only_right": "only B"})
        row = data_table(named, columns=MCNEMAR, key="mcnemar", is_chosen=True)
        if row is None:
            st.caption("Select a row to list the errors that only one side caught.")
    flips = estimate(filters, "flips", *asked)
    of = ""
    if row is not None:
        of = f" by {tests['dimension'].iloc[row]}: {kind} by one side alone"
        flips = found_by_one_side(flips[flips["dimension"] == tests["dimension"].iloc[row]], str(kind))
    elif point is not None:
        of = f" by {point[0]}, whose mark is chosen"
        flips = flips[flips["dimension"] == str(point[0])]
    with st.container(border=True):
        layout.title(f"{counted(len(flips), 'error')} treated differently{of}", plain(f"A: {left}; B: {right}"))
        side = (
            by_words[left] if by_words[left].judge_model else by_words[right]
        )  # Compare shows a judge, not two people
        named = flips.rename(columns={"left": "A", "right": "B"}).assign(judge_model=side.judge_model or "")
        listed(filters, named, key="behind-flips", repeat=side.repeat)


MCNEMAR: dict[str, ColumnConfig] = {
    **{
        name: st.column_config.NumberColumn(name, format="localized", help=about)
        for name, about in (
            ("n", "Errors of the judge that both sides answered"),
            ("both", "Errors that both sides found"),
            ("only A", "Errors that side A alone found"),
            ("only B", "Errors that side B alone found"),
            ("neither", "Errors that no side found"),
        )
    },
    "statistic": st.column_config.NumberColumn(
        "chi-square",
        format="%.3f",
        help="Of McNemar, with continuity correction; n/a where no error was found by one side alone",
    ),
    "p_corrected": st.column_config.NumberColumn("p, corrected", format="%.3g", help="Of the chi-square"),
    "p_exact": st.column_config.NumberColumn("p, exact", format="%.3g", help="Of the exact binomial test"),
    "p_holm": st.column_config.NumberColumn(
        "p, Holm", format="%.3g", help="The exact p, corrected for the number of judges"
    ),
}
"""The columns of McNemar's test."""


def found_by_one_side(flips: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Of errors treated differently, those that McNemar's test counts: of the judge's own, found by one side alone."""
    words = ["localized"] if kind == "localized" else ["caught", "localized"]
    return flips[flips["relevant"] & (flips["left"].isin(words) != flips["right"].isin(words))]


# team -----------------------------------------------------------------------------------------------------------


def team_view(filters: Filters, found: Inputs) -> None:
    del found
    with st.container(border=True):
        team_card(filters)
    with st.container(border=True):
        repeats_card(filters)
    if len(listings.skip_reasons()):
        with st.container(border=True):
            skipped_card()


@st.fragment(key="card-team")
def team_card(filters: Filters) -> None:
    layout.title(
        "Work by person",
        "Active minutes exclude pauses of over a minute; imported reviews have none.",
    )
    table = listings.team()
    row = team_table(table)
    paint("team")
    counts = table.rename(columns={"annotator": "label", "submitted": "count"})[["label", "count"]]
    event = st.plotly_chart(
        charts.counted_bars(counts, x_title="submitted traces"), key="chart-team", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Throughput",
    )  # fmt: skip
    point = chosen_point(event)
    person = str(point[0]) if point is not None else None if row is None else str(table["annotator"].iloc[row])
    if person is None:
        st.caption(
            "Click a bar, or select a row, to list the traces that the person submitted. In brackets the 95 % "
            "interval of "
            "a mean (jackknife-t by trace), which one trace has not, nor have equal ones; counts are whole. " + FEW_NOTE
        )
        return
    st.caption(plain(f"Submitted by {person}"))
    listed(filters, listings.submitted_by(person), key="behind-team", person=person)


def team_table(table: pd.DataFrame) -> int | None:
    """A row a person, means with their interval and n; the position of the one that is chosen."""
    text, few = table[["annotator", *COUNTS]], pd.DataFrame(index=table.index)
    for name, unknown in TEAM_MEANS.items():
        rows = table[[name, f"{name}_low", f"{name}_high", f"{name}_n"]].set_axis(["value", "low", "high", "n"], axis=1)
        each = rows.assign(reason=unknown).to_dict("records")
        cells = [cell_text({str(k): v for k, v in one.items()}, digits=1) for one in each]
        text = text.assign(**{name: aligned(cells)})
        few[name] = rows["n"] < TOO_FEW
    event = st.dataframe(
        greyed(text, few), hide_index=True, width="content", height=38 + 35 * min(len(text), 12), key="team",
        on_select="rerun", selection_mode="single-row", alt="Work of each person",
        column_config={
            **{name: st.column_config.NumberColumn(name, format="localized") for name in COUNTS},
            **{name: st.column_config.TextColumn(f"{words(name)} [95 %]", alignment="right") for name in TEAM_MEANS},
        },
    )  # fmt: skip
    return chosen_row(event, len(text))


TEAM_MEANS = {"errors_a_trace": "nothing submitted", "minutes_a_trace": "no trace timed"}


@st.fragment(key="card-skipped")
def skipped_card() -> None:
    layout.title("Reasons for skipped traces", "")
    reasons = open_to_me(listings.skip_reasons())
    row = data_table(reasons, key="skipped", is_chosen=True)
    if row is not None:
        open_in_work(link_params(trace=str(reasons["trace_id"].iloc[row])), key="skipped-open")


@st.fragment(key="card-repeats")
@with_placeholder(height=200)
def repeats_card(filters: Filters) -> None:
    layout.title(
        "Agreement of people with themselves", "The same trace again, hidden among others: both scores of one person."
    )
    table = estimate(filters, "table.self_consistency")
    if table.empty:
        st.caption("No hidden repeat is scored yet. Try: a queue with hidden repeats.")
        return
    row = data_table(table, digits=3, key="repeats", is_chosen=True)
    if row is None:
        st.caption("n traces each. Select a row to list them.")
        return
    person, dimension = str(table["rater"].iloc[row]), str(table["dimension"].iloc[row])
    twice = estimate(filters, "repeats")
    mine = twice[(twice["rater"] == person) & (twice["dimension"] == dimension)].dropna(subset=["first", "second"])
    both = mine[["unit", "first", "second"]].rename(columns={"unit": "trace_id"})
    listed(filters, both, key="behind-repeats", person=person)


# shared ---------------------------------------------------------------------------------------------------------

CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["zoom2d", "pan2d", "select2d", "lasso2d", "autoScale2d"]}


def drill_into_estimate(filters: Filters, name: str, judge_model: str, dimension: str, split: str, *, key: str) -> None:
    """What a figure of `FIGURES` counts: errors, traces with two scores, traces with several runs."""
    kind, _, metric = name.partition(".")
    if kind == "runs":
        drill_into_repeats(filters, judge_model, dimension, split, key=key)
    elif kind == "scores":
        drill_into_scores(filters, judge_model=judge_model, dimension=dimension, split=split, metric=metric, key=key)
    else:
        drill_into_errors(
            filters, judge_model=judge_model, dimension=dimension, split=split, kind=kind, rate=metric, key=key
        )


def drill_into_ceiling(
    filters: Filters, name: str, judge_model: str, dimension: str, split: str, *, key: str, impact: str = "all"
) -> None:
    """What people were compared on where they reach the ceiling of a figure of this judge."""
    del judge_model
    kind, _, metric = name.partition(".")
    if kind == "scores":
        listed(filters, estimate(filters, "rows_for_people", dimension, split), key=key)
        return
    among = dimension if dimension in DIMENSIONS else ceiling.ANY
    pairs = estimate(filters, "rows_for_people_errors", among, split, kind, metric, impact)
    row = listing(open_to_me(pairs), key=key)
    if row is not None:
        author = str(row["author"])
        open_trace(link_params(trace=str(row["trace_id"]), person=author, pair=str(row["error_id"])), key=f"{key}-open")


def drill_into_scores(
    filters: Filters,
    *,
    key: str,
    judge_model: str = "",
    dimension: str = "",
    split: str = "",
    reference_score: str = "",
    judge_score: str = "",
    metric: str = "",
    of: pd.Series | None = None,
) -> None:
    """The traces scored by both behind a mark; `of`: of these judges, by label."""
    pairs = with_labels(
        estimate(filters, "rows_for_scores", judge_model, dimension, split, reference_score, judge_score, metric)
    )
    pairs = pairs if of is None else pairs[pairs["label"].isin(of)]
    listed(filters, pairs[["trace_id", "label", "judge_model", "reference_score", "judge_score"]], key=key)


def drill_into_repeats(
    filters: Filters,
    judge_model: str,
    dimension: str,
    split: str,
    *,
    key: str,
    between: tuple[float, float] | None = None,
) -> None:
    """The traces of a judge's runs; `between`: those whose spread lies there."""
    table = estimate(filters, "table.trace_spread")
    mine = table[
        (table["judge_model"] == judge_model)
        & (table["dimension"] == dimension)
        & ((table["split"] == split) | (not split))
    ]
    mine = mine[mine["ratings"] > 1].sort_values("sd", ascending=False, kind="stable")
    if between is not None:
        mine = mine[charts.in_bar(mine["sd"], between)]
    kept = ["unit", "judge_model", "ratings", "failed", "not_applicable", "mean", "low", "high", "sd"]
    listed(filters, mine[kept].rename(columns={"unit": "trace_id"}), key=key)


def drill_into_raters(filters: Filters, dimension: str, metric: str, first: str, second: str) -> None:
    """The figure of two raters with its interval, and the traces that both scored."""
    for one in estimate(filters, "rater_pair", dimension, first, second).to_dict("records"):
        of = {"value": one[metric], "low": one[f"{metric}_low"], "high": one[f"{metric}_high"]}
        told = cell_text({**of, "n": one["n"], "reason": one["reason"]})
        st.caption(plain(f"{first} and {second}, {RATER_FIGURES[metric]}: {told}"))
    both = estimate(filters, "rows_for_raters", dimension, first, second)
    named = {"first": f"{first} gave", "second": f"{second} gave"}
    row = listing(
        open_to_me(both).drop(columns=["annotator", "judge_model", "repeat"]).rename(columns=named), key="behind-raters"
    )
    if row is not None:
        one = both[both["trace_id"] == row["trace_id"]].iloc[0]
        person, judge_model = (None if pd.isna(one[name]) else str(one[name]) for name in ("annotator", "judge_model"))
        link = compare_link(
            filters,
            trace=str(row["trace_id"]),
            judge_model=judge_model,
            person=person,
            repeat=repeat_of(one["repeat"]),
        )
        open_trace({**link, **({} if person is None else {"person": person})}, key="raters-open")


def drill_into_errors(
    filters: Filters,
    *,
    key: str,
    judge_model: str = "",
    dimension: str = "",
    split: str = "",
    impact: str = "all",
    error_dimension: str = "",
    kind: str = "",
    rate: str = "",
) -> None:
    """The errors behind a mark."""
    wanted = judge_model, dimension, split, impact, error_dimension, kind, rate
    pairs = with_labels(estimate(filters, "rows_for_errors", *wanted))
    columns = [
        "trace_id", "error_id", "impact", "dimensions", "label", "judge_model", "dimension", "caught", "localized",
        "match_status", "annotator",
    ]  # fmt: skip
    listed(filters, pairs[columns], key=key)


def listed(
    filters: Filters, rows: pd.DataFrame, *, key: str, repeat: int | None = None, person: str | None = None
) -> None:
    """The rows, and the way from one to Compare; `person`: whose labels it shows, whatever the filters."""
    row = listing(open_to_me(rows), key=key)
    if row is None:
        return
    said = {name: None if row.get(name) is None else str(row[name]) for name in LINKED}
    link = compare_link(
        filters,
        trace=str(row["trace_id"]),
        judge_model=said["judge_model"],
        person=said["annotator"],
        pair=said["error_id"],
        dimension=said["dimension"],
        repeat=repeat,
    )
    open_trace(link if person is None else {**link, "person": person}, key=f"{key}-open")


def open_trace(link: Mapping[str, str], *, key: str) -> None:
    """A button that leads to Compare; to the first span of the error in Work while there is no judge to compare."""
    if not listings.has_trace(link["trace"]):
        st.caption("This trace is not in the workspace.")
    elif is_judged():
        open_in_compare(link, key=key)
    else:
        open_in_work(link_params(trace=link["trace"], span=listings.first_span(link.get("pair"))), key=key)


LINKED = ("judge_model", "annotator", "error_id", "dimension")
"""The columns of a list that say where Compare shows a row."""


def repeat_of(rater: object) -> int | None:
    """The repeat in a rater's name: `checks repeat 2` is repeat 2."""
    number = str(rater).rpartition("repeat ")[2]
    return int(number) if number.isdigit() else None


def compare_link(
    filters: Filters,
    *,
    trace: str,
    judge_model: str | None = None,
    person: str | None = None,
    pair: str | None = None,
    dimension: str | None = None,
    repeat: int | None = None,
) -> dict[str, str]:
    """The address of a trace on the Compare page, under the judge, run and person that the figure was made of.

    An error of a majority opens under `person`, whose label it goes by.
    """
    run = filters.repeat if repeat is None else repeat
    shown = person if filters.reference in majority.REFERENCE_KINDS else filters.reference
    named = dimension if dimension in DIMENSIONS else None
    return link_params(
        trace=trace,
        judge_model=judge_model,
        person=shown,
        pair=pair,
        dimension=named,
        repeat_no=str(run) if run else None,
    )


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
