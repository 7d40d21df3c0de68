"""The view Errors: which reference errors judges caught, and findings that match none."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from tracejury.app import estimates
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import chosen_row, words
from tracejury.app.components.drilldown import MOST_ROWS, chosen_point, kept_point, listing, open_in_work
from tracejury.app.components.estimate_text import (
    FEW_NOTE,
    NO_INTERVAL,
    aligned,
    cell_text,
    counted,
    definition,
    greyed,
    is_dark,
    plain,
    with_labels,
)
from tracejury.app.components.judges import between_people, split_labels
from tracejury.app.datasets import open_to_me, with_finding_texts
from tracejury.app.estimates import estimate
from tracejury.app.painting import paint
from tracejury.app.placeholders import with_placeholder
from tracejury.app.session import link_params
from tracejury.app.views.agreement.cards import (
    card,
    ceiling_line,
    counts_of,
    errors_found,
    few_names,
    plot,
    why_no_errors,
)
from tracejury.app.views.agreement.drilldowns import (
    compare_link,
    drill_into_ceiling,
    drill_into_errors,
    drill_into_estimate,
    open_trace,
)
from tracejury.app.views.agreement.evidence import evidence_card
from tracejury.app.views.agreement.recall import costs_card, periods_card, sensitivity_card, thresholds_card
from tracejury.app.views.agreement.slices import error_slices_card
from tracejury.judging.agreement import errors
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.findings import WITHOUT
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.reports.filters import Filters


def errors_view(filters: Filters, inputs: Inputs) -> None:
    if not counts_of(filters)["error_pairs"]:
        st.info(why_no_errors(filters))
        return
    errors_found(filters, inputs)
    paint("errors")
    with st.container(border=True):
        strip_card(filters)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        grid_card(filters)
    with right, st.container(border=True, height="stretch"):
        map_card(filters)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        thresholds_card(filters)
    with right, st.container(border=True, height="stretch"):
        periods_card(filters)
    with st.container(border=True):
        sensitivity_card(filters)
    with st.container(border=True):
        costs_card(filters)
    with st.container(border=True):
        error_slices_card(filters)
    with st.container(border=True):
        evidence_card(filters)
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
    row = listing(open_to_me(rows), key="rows-incomplete")
    if row is not None:
        open_in_work(link_params(trace=str(row["trace_id"])), key="incomplete-open")


@card(
    "strip",
    "Reference errors by judge",
    "The paper's Figures 3 and 4: 0 missed, 1 caught, 2 localized. Only errors of the judge's own dimension.",
    height=560,
)
def strip_card(filters: Filters) -> None:
    own = st.toggle("Only errors of the judge's dimension", value=True, key="own_dimension")
    pairs = with_labels(open_to_me(estimate(filters, "strip_marks", "own" if own else "every")))
    counts = estimate(filters, "strip_counts", "own" if own else "every")
    event = plot(
        charts.coverage_strip(pairs, counts=[int(count) for count in counts["count"]]),
        key="chart-strip",
        alt="Errors by judges",
    )
    point = chosen_point(event)
    if pairs.empty:
        st.caption(
            why_no_errors(filters) if counts["errors"].iloc[0] == 0 else "All of them are on traces left out here."
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


@card(
    "grid",
    "Errors caught, by the error's dimension and the judge's dimension",
    "Rows: dimension of the reference error; columns: judge. Caught / errors; the diagonal is each judge's recall.",
    height=420,
)
def grid_card(filters: Filters) -> None:
    table = estimate(filters, "table.dimension_grid")
    table = table[table["dimension"].isin(DIMENSIONS)]
    judge_models = list(dict.fromkeys(table.loc[table["errors"] > 0, "judge_model"]))
    if not judge_models:
        none = (
            "This grid needs judges of a single dimension; none under these filters answered an error of a known "
            "dimension."
        )
        st.caption(why_no_errors(filters) if counts_of(filters)["not_matched"] else none)
        return
    judge_model = st.selectbox("Judge model", judge_models, key="grid_system", width=240)
    drawn = errors.all_splits(table[table["judge_model"] == judge_model])
    event = plot(charts.dimension_grid(drawn, is_dark=is_dark()), key="chart-grid", alt="Dimensions by judges")
    point = chosen_point(event)
    if point is None:
        st.caption("Pale: n < 10. Click a cell to list its errors.")
        return
    drill_into_errors(
        filters, error_dimension=str(point[0]), judge_model=str(judge_model), dimension=str(point[1]), key="rows-grid"
    )


@card(
    "map",
    "Precision and recall",
    "One mark per judge; an arrow leads from caught to localized; curves of equal F1.",
    height=420,
)
def map_card(filters: Filters) -> None:
    inputs, late = estimates.inputs(filters), estimates.pending(filters, "error_ceiling")
    rates = with_labels(inputs.error_rates)
    rates = split_labels(rates[(rates["impact"] == "all") & (rates["positives"] > 0)])
    undefined = rates[rates["precision"].isna() | rates["recall"].isna()]
    reached = None if late is not None else between_people(inputs.error_ceiling, set(rates["dimension"]))
    if rates.empty:
        st.caption(why_no_errors(filters))
        return
    event = plot(charts.precision_recall(rates, reached), key="chart-map", alt="Precision against recall")
    point = kept_point(event, key="map", of=filters.unpinned(), drawn=late is None)
    if point is not None:
        drill_down = drill_into_ceiling if point[-1] == charts.CEILING else drill_into_estimate
        drill_down(filters, f"{point[3]}.f1", *map(str, point[:3]), key="rows-map")
    else:
        st.caption("Pale: n < 10 for precision or recall. Click a mark to list its errors; hover for intervals.")
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
        st.caption("No judge has a finding under these filters.")
        return
    estimates, few = finding_cells(table)
    single = ["split"] if table["split"].nunique() < 2 else []
    hidden = ["reason", *(f"{name}{end}" for name in FINDING_RATES for end in ("", "_low", "_high"))]
    drawn = table.drop(columns=[*hidden, *single]).join(estimates)
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
    "reviewed": "Findings whose match a person confirmed, or that a person reviewed, on Compare",
    "finding_precision_lowest": "The value if all findings that nobody reviewed were false alarms",
    "finding_precision_highest": "The value if all findings that nobody reviewed were valid",
    "valid_new_error": "Unmatched findings that a person marked so on Compare",
    "false_alarm": "Unmatched findings that a person marked so on Compare",
    "duplicate": "Unmatched findings that a person marked so on Compare; reviewed, but not valid",
    "citations": "Places that the findings cite",
    "invalid_citations": "Citations that resolve to no span of the trace",
}
"""What the counts of `findings.finding_table` count."""


def findings_columns(drawn: pd.DataFrame) -> dict[str, ColumnConfig]:
    """Counts and rates by their words, with what each counts; estimates at the right like numbers."""
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
    findings = estimate(filters, "findings")
    rows = findings[
        (findings["judge_model"] == judge_model) & (findings["dimension"] == dimension) & (findings["split"] == split)
    ]
    rows = with_finding_texts(open_to_me(rows).sort_values("matched", kind="stable").head(MOST_ROWS))
    words = rows[["trace_id", "finding_id", "judge_model", "matched", "review", "impact", "description", "cites"]]
    row = listing(words.assign(cites=words["cites"].map(lambda cites: ", ".join(map(str, cites)))), key="rows-findings")
    if row is not None:
        link = compare_link(filters, trace=str(row["trace_id"]), judge_model=judge_model, pair=f"|{row['finding_id']}")
        open_trace(link, key="findings-open")
