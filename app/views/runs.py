"""Judge runs: what was asked, how far they are, what they cost, which failed; started, paused and resumed here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import Connection, Engine, func, select

from tracejury.app import listings
from tracejury.app.components import charts, layout
from tracejury.app.components.data_table import chosen_cell, data_table
from tracejury.app.components.drilldown import MOST_ROWS, chosen_point, kept_point, listing, open_in_compare
from tracejury.app.components.estimate_text import cell_text, counted, definition, greyed, plain
from tracejury.app.components.glossary import meanings
from tracejury.app.datasets import open_to_me
from tracejury.app.estimating import EstimateError, estimate
from tracejury.app.painting import paint
from tracejury.app.run_processes import RUNS
from tracejury.app.session import link_params, must, user, workspace
from tracejury.app.views.benchmark_executions import benchmark_card
from tracejury.ingest.gaps import NOTHING_TO_READ
from tracejury.ingest.store import marked_traces, read_transaction, trace_ids
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.table import query_frame
from tracejury.judging.agreement.estimate import TOO_FEW
from tracejury.judging.agreement.juries import jury_table
from tracejury.judging.judges.jury import RULES, Rule
from tracejury.judging.judges.model import Prices, read_prices
from tracejury.judging.judges.rubric import agent_descriptions, broken_files, rubrics
from tracejury.judging.juries.jury_outcomes import JuryOutcome, jury_name, jury_outcomes, votes_of
from tracejury.judging.records import CELL_STATES, DIMENSIONS, FAILED_STATES
from tracejury.judging.runs.run_control import (
    asks_models,
    last_run_of,
    plan_run,
    request_status,
    want_failed_again,
    watch,
)
from tracejury.judging.runs.run_spec import Mode, RunSpec, model_names
from tracejury.judging.runs.run_store import OPEN_STATES
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import judge_model_names

CONFIG = {"displaylogo": False, "displayModeBar": False}
REFRESH_S = 2.0
LISTED = {
    "name": st.column_config.TextColumn("name", width=300),
    "cells": st.column_config.NumberColumn(
        "cells", format="localized", help="Dimensions × judge models × traces × repeats"
    ),
    "scored": st.column_config.NumberColumn("scored", format="localized", help="Verdicts with a score of 0 to 3"),
    "not_applicable": st.column_config.NumberColumn(
        "not applicable", format="localized", help="Verdicts that the dimension does not apply to the trace"
    ),
    "errors_only": st.column_config.NumberColumn(
        "errors only", format="localized", help="Answered by a judge that reports errors and gives no score"
    ),
    "tied": st.column_config.NumberColumn("tied", format="localized", help="The models of a jury share the vote"),
    "failed": st.column_config.NumberColumn(
        "failed", format="localized", help="Failures: the judge did not answer, or its answer could not be read"
    ),
    "waiting": st.column_config.NumberColumn("waiting", format="localized", help="Not judged yet"),
    "cost_usd": st.column_config.NumberColumn("cost, US$", format="%.4f", help="n/a: the price is not known"),
}
FAILED_SHOWN = 500  # failed cells in the browser at once


def page() -> None:
    must("researcher")
    layout.heading("Runs")
    with st.expander("Start a run", icon=":material/play_arrow:", key="start"):
        start()
    benchmark_card()
    runs = listed()
    if runs.empty:
        st.info(
            "This workspace holds no runs. Try: start a run above, or `tracejury judge` (offline), or `tracejury "
            "verdicts import`."
        )
        return
    run_key = choose(runs)
    is_open = bool(runs.loc[runs["run"] == run_key, "waiting"].iloc[0])
    st.fragment(one_run, key="one-run", run_every=REFRESH_S if is_open else None)(run_key)


def listed() -> pd.DataFrame:
    """Every run, newest first: `_RUN_COLUMNS`."""
    run, cell = tables.run, tables.cell
    with read_transaction(workspace().engine) as connection:
        rows = connection.execute(select(run).order_by(run.c.run_key.desc())).all()
        counts = connection.execute(
            select(cell.c.run_key, cell.c.state, func.count(), func.sum(cell.c.cost_usd)).group_by(
                cell.c.run_key, cell.c.state
            )
        ).all()
    by_run: dict[int, dict[str, int]] = {}
    cost: dict[int, float | None] = {}
    for key, state, count, paid in counts:
        by_run.setdefault(key, {})[state] = count
        if paid is not None:
            cost[key] = (cost.get(key) or 0.0) + float(paid)
    return pd.DataFrame(
        [
            {
                "run": row.run_key,
                "name": row.name,
                "status": row.status,
                "cells": sum(by_run.get(row.run_key, {}).values()),
                "scored": by_run.get(row.run_key, {}).get("scored", 0),
                **{state: by_run.get(row.run_key, {}).get(state, 0) for state in _UNSCORED},
                "failed": sum(by_run.get(row.run_key, {}).get(state, 0) for state in FAILED_STATES),
                "waiting": sum(by_run.get(row.run_key, {}).get(state, 0) for state in OPEN_STATES),
                "cost_usd": cost.get(row.run_key),
                "by": row.author,
                "at": pd.Timestamp(row.created_at, unit="us", tz="UTC"),
            }
            for row in rows
        ],
        columns=_RUN_COLUMNS,
    )


_UNSCORED = ("not_applicable", "errors_only", "tied")
_RUN_COLUMNS = ["run", "name", "status", "cells", "scored", *_UNSCORED, "failed", "waiting", "cost_usd", "by", "at"]


def choose(runs: pd.DataFrame) -> int:
    with st.container(border=True):
        layout.title(counted(len(runs), "run"), "Newest first.")
        data_table(runs, most=6, columns=LISTED)
    names = {f"{row.run} · {row.name}": int(row.run) for row in runs.itertuples()}  # type: ignore[arg-type]
    chosen = st.selectbox("Run", list(names), key="run", width=760, bind="query-params")
    return names[str(chosen)]


def one_run(run_key: int) -> None:
    engine = workspace().engine
    progress = watch(engine, run_key)
    states: dict[str, int] = {str(k): int(v) for k, v in dict(progress["states"]).items()}  # type: ignore[arg-type]
    total = max(sum(states.values()), 1)
    waiting = sum(states.get(state, 0) for state in OPEN_STATES)
    st.progress((total - waiting) / total, text=f"{total - waiting:,} of {total:,} cells · {progress['status']}")
    if progress["message"]:
        st.text(str(progress["message"]))
    is_owned = has_owner(run_key, is_alive=bool(progress["owner_alive"]))
    perhaps_paid(progress["unanswered"], progress["unanswered_usd"])
    if asks_models(progress["spec"]):
        steer(run_key, str(progress["status"]), states, is_owned=is_owned)
    shown = shown_of(listings.place(), run_key, tuple(sorted(states.items())), last_finished(run_key))
    if shown.outcomes.empty:
        return
    paint("runs")
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True, height="stretch"):
        outcomes_card(run_key, shown)
    with right, st.container(border=True, height="stretch"):
        cost_and_time(
            run_key, shown, unpriced=int(str(progress["unpriced"])), is_called=not is_offline(progress["spec"])
        )
    spec = progress["spec"]
    if isinstance(spec, dict) and spec.get("mode") == "jury":
        with st.container(border=True):
            jury(run_key, "mean" if spec.get("jury_rule") == "mean" else "majority")
    with st.container(border=True):
        failures(run_key, shown)


@st.fragment(key="card-outcomes")
def outcomes_card(run_key: int, shown: Shown) -> None:
    layout.title(
        "Outcomes by judge",
        "Scores are 0 to 3; n/a means not applicable; other verdicts without a score, and failures, have "
        "their own names.  \n" + meanings((*DIMENSIONS, "verdict", "failure")),
    )
    event = st.plotly_chart(
        charts.score_bars(shown.outcomes), key="chart-outcomes", config=CONFIG, on_select="rerun",
        selection_mode="points", alt="Outcomes by judge",
    )  # fmt: skip
    point = chosen_point(event)
    if point is None:
        st.caption("Click a part of a bar to list its cells.")
        return
    cells = finished_cells(run_key, str(point[0]), str(point[1]))
    row = listing(open_to_me(cells), key="rows-outcomes")
    if row is not None:
        open_in_compare(compare_link(row), key="outcomes-open")


def finished_cells(run_key: int, judge: str, outcome: str) -> pd.DataFrame:
    """trace_id, repeat, judge, outcome, reason, seconds, judge_model of the cells that a part of a bar counts."""
    cell = tables.cell
    state = {"n/a": "not_applicable"}.get(outcome, "scored" if outcome.isdigit() else outcome)
    of = (cell.c.run_key == run_key, cell.c.rubric == judge, cell.c.state == state)
    score = (cell.c.score == int(outcome),) if outcome.isdigit() else ()
    columns = (
        cell.c.trace_id, cell.c.repeat, cell.c.rubric.label("dimension"), cell.c.reason,
        cell.c.latency_s.label("seconds"),
    )  # fmt: skip
    with read_transaction(workspace().engine) as connection:
        query = select(*columns, cell.c.judge_version).where(*of, *score).order_by(cell.c.cell_key)
        cells = query_frame(connection, query)
        names = judge_model_names(connection)
    return cells.assign(outcome=outcome.replace("_", " "), judge_model=cells["judge_version"].map(names))[
        ["trace_id", "repeat", "dimension", "outcome", "reason", "seconds", "judge_model"]
    ]


def compare_link(row: Mapping[Any, Any]) -> dict[str, str]:
    """The address of a cell on the Compare page."""
    repeat = str(row["repeat"]) if row["repeat"] else None
    named = str(row["dimension"]) if row["dimension"] in DIMENSIONS else None
    judge_model = str(row["judge_model"])
    return link_params(trace=str(row["trace_id"]), judge_model=judge_model, repeat_no=repeat, dimension=named)


def last_finished(run_key: int) -> int:
    """When the last cell of the run was finished, 0 before the first."""
    cell = tables.cell
    with read_transaction(workspace().engine) as connection:
        return int(connection.scalar(select(func.max(cell.c.finished_at)).where(cell.c.run_key == run_key)) or 0)


class Shown(NamedTuple):
    """The finished cells of a run, added up.

    `outcomes`: judge, outcome, count; `seconds`: `charts.box_numbers` of what a cell took; `failed`: the first
    `FAILED_SHOWN` that failed, with the judge model of each. `paid` and `tokens` are None where nothing is known.
    """

    outcomes: pd.DataFrame
    seconds: pd.DataFrame
    failed: pd.DataFrame
    paid: float | None
    tokens: int | None

    @property
    def finished(self) -> int:
        return int(self.outcomes["count"].sum())

    @property
    def failures(self) -> int:
        return int(self.outcomes.loc[self.outcomes["outcome"].isin(FAILED_STATES), "count"].sum())


@st.cache_resource(show_spinner=False, max_entries=16)
def shown_of(place: str, run_key: int, states: tuple[tuple[str, int], ...], last: int) -> Shown:
    """Made again once another cell is finished, or one is wanted again."""
    cell = tables.cell
    of_run = (cell.c.run_key == run_key, cell.c.finished_at.is_not(None))
    failed = (
        *(
            cell.c.rubric.label("dimension"),
            cell.c.trace_id,
            cell.c.repeat,
            cell.c.state,
            cell.c.reason,
            cell.c.attempts,
        ),
        cell.c.judge_version,
    )
    with read_transaction(workspace().engine) as connection:
        paid, tokens = connection.execute(
            select(func.sum(cell.c.cost_usd), func.sum(cell.c.prompt_tokens)).where(*of_run)
        ).one()
        return Shown(
            outcomes=outcome_counts(connection, run_key),
            seconds=charts.box_numbers(
                query_frame(
                    connection,
                    select(cell.c.rubric.label("label"), cell.c.latency_s.label("value"))
                    .where(*of_run, cell.c.latency_s.is_not(None))
                    .order_by(cell.c.cell_key),
                )
            ),
            failed=query_frame(
                connection,
                select(*failed)
                .where(cell.c.run_key == run_key, cell.c.state.in_(FAILED_STATES))
                .order_by(cell.c.cell_key)
                .limit(FAILED_SHOWN),
            )
            .replace({"judge_version": judge_model_names(connection)})
            .rename(columns={"judge_version": "judge_model"}),
            paid=None if paid is None else float(paid),
            tokens=None if tokens is None else int(tokens),
        )


def perhaps_paid(requests: object, most_usd: object) -> None:
    """Requests whose answer is unknown, and what they may have cost beside the known cost."""
    if not isinstance(requests, int) or requests == 0:
        return
    most = f"US$ {most_usd:,.4f} at most" if isinstance(most_usd, float) else "at a price unknown"
    st.caption(
        f"{counted(requests, 'request')} sent without a known answer (the process or the connection ended, or the "
        f"request timed out); the provider may charge for them, {plain(most)}, in addition to the cost below."
    )


def jury(run_key: int, current_rule: Rule) -> None:
    """The joint scores of a jury's models, how they voted, ties said; `current_rule` is the rule of the tables."""
    layout.title(
        "The jury",
        "The jury combines the scores of its models into one score. Ties are reported, not resolved; a failed model "
        "has no vote.",
    )
    rule = st.segmented_control("Rule", RULES, default=current_rule, key="jury_rule", required=True)
    st.caption(f"All agreement tables use this run's jury rule: {current_rule}.")
    with read_transaction(workspace().engine) as connection:
        outcomes, judge_model = jury_outcomes(connection, run_key, rule), jury_name(connection, run_key)
    if not outcomes:
        st.caption("No trace has been judged by all models of the jury yet.")
        return
    chosen = votes_table(outcomes)
    tied = sum(bool(outcome.joint.tied) for outcome in outcomes)
    st.caption(f"{counted(len(outcomes), 'cell')}, {tied:,} tied. Click a share to list its votes.")
    rows = rows_for_share(outcomes, *chosen) if chosen else pd.DataFrame([outcome.row() for outcome in outcomes])
    row = listing(open_to_me(rows), key="rows-votes")
    if row is not None and judge_model is not None:
        open_in_compare(compare_link({**row, "judge_model": judge_model}), key="votes-open")


VOTE_SHARES = {"unanimous": "several", "tied": "n", "absent": "members"}
"""The shares of `jury_table` and what the n of each is."""


def votes_table(outcomes: list[JuryOutcome]) -> tuple[str, str] | None:
    """How the models voted, one row per judge; the judge and the share whose cell is chosen."""
    table = jury_table(votes_of(outcomes, "the jury"))
    text, few = table[["dimension", "n"]], pd.DataFrame(index=table.index)
    for name, of in VOTE_SHARES.items():
        shares = table[[f"{name}_share", f"{name}_low", f"{name}_high", of]].itertuples(index=False, name=None)
        text = text.assign(**{name: [cell_text(dict(zip(_CELL, share, strict=True))) for share in shares]})
        few[name] = table[of] < TOO_FEW
    event = st.dataframe(
        greyed(text, few), hide_index=True, height=38 + 35 * len(text), key="votes", on_select="rerun",
        selection_mode="single-cell", alt="Votes of the jury",
        column_config={
            "n": st.column_config.NumberColumn("cells", help="Cells that all models of the jury have judged"),
            **{
                name: st.column_config.TextColumn(words, alignment="right", help=definition(f"jury_{metric}"))
                for name, words, metric in _VOTE_COLUMNS
            },
        },
    )  # fmt: skip
    cell = chosen_cell(event, len(table))
    return None if cell is None or cell[1] not in VOTE_SHARES else (str(table["dimension"].iloc[cell[0]]), cell[1])


_CELL = ("value", "low", "high", "n")
_VOTE_COLUMNS = (
    ("unanimous", "unanimous [95 %]", "unanimous"),
    ("tied", "tied [95 %]", "ties"),
    ("absent", "missing votes [95 %]", "absent"),
)


def rows_for_share(outcomes: list[JuryOutcome], judge: str, share: str) -> pd.DataFrame:
    """What a share counts: cells with several votes, all cells, or every vote that was asked for."""
    of_judge = [one for one in outcomes if one.dimension == judge]
    if share == "absent":
        return pd.DataFrame(
            [
                {"dimension": judge, "trace_id": one.trace_id, "repeat": one.repeat, "model": model, "score": score}
                for one in of_judge
                for model, score in one.members.items()
            ]
        )
    is_all = share == "tied"
    return pd.DataFrame([one.row() for one in of_judge if is_all or sum(one.joint.votes.values()) > 1])


def has_owner(run_key: int, *, is_alive: bool) -> bool:
    """Whether a process works on the run or is about to; says how the one that was started here ended."""
    home = workspace().home
    ended = RUNS.end_of(home, run_key)
    if ended is not None and not is_alive:
        st.warning(plain(ended))
    return is_alive or bool(RUNS.is_at_work(home, run_key))


def steer(run_key: int, status: str, states: dict[str, int], *, is_owned: bool) -> None:
    """The buttons that fit where the run stands; one that wants to go on and has no process is resumed here too."""
    engine = workspace().engine
    is_open = status in {"queued", "running"}
    waits = is_open and not is_owned
    if waits:
        st.caption("No process works on this run. Its judged cells stay stored. Try: Resume.")
    with st.container(horizontal=True):
        if is_open and is_owned:
            st.button(
                "Pause", key="pause", icon=":material/pause:", on_click=request_status, args=(engine, run_key, "paused")
            )
        if waits or status in {"paused", "out of budget"}:
            st.button("Resume", key="resume", icon=":material/play_arrow:", on_click=go_on, args=(engine, run_key))
        if is_open or status in {"paused", "out of budget"}:
            st.button(
                "Cancel",
                key="cancel",
                icon=":material/stop:",
                on_click=request_status,
                args=(engine, run_key, "cancelled"),
            )
        failed = sum(states.get(state, 0) for state in FAILED_STATES)
        if failed and not is_open:
            st.button(
                f"Retry {failed:,} failed", key="again", icon=":material/replay:", on_click=judge_again,
                args=(engine, run_key),
            )  # fmt: skip


def go_on(engine: Engine, run_key: int) -> None:
    """Start run again, and have a process of its own work on it."""
    request_status(engine, run_key, "queued")
    RUNS.start(workspace().home, run_key)


def judge_again(engine: Engine, run_key: int) -> None:
    want_failed_again(engine, run_key)
    RUNS.start(workspace().home, run_key)


def is_offline(spec: object) -> bool:
    """Whether no model was asked."""
    return isinstance(spec, dict) and spec.get("mode") == "checks"


def outcome_counts(connection: Connection, run_key: int) -> pd.DataFrame:
    """judge, outcome, count of the finished cells."""
    cell = tables.cell
    rows = connection.execute(
        select(cell.c.rubric, cell.c.state, cell.c.score, func.count())
        .where(cell.c.run_key == run_key, cell.c.state.in_(CELL_STATES))
        .group_by(cell.c.rubric, cell.c.state, cell.c.score)
        .order_by(cell.c.rubric, cell.c.state, cell.c.score)
    ).all()
    counts = [
        (judge, str(score) if state == "scored" else "n/a" if state == "not_applicable" else state, count)
        for judge, state, score, count in rows
    ]
    return pd.DataFrame(counts, columns=["dimension", "outcome", "count"])


COSTLY = {"dearest": "cost_usd", "longest prompts": "prompt_tokens"}
"""The lists behind the tiles, and what each is ordered by."""


@st.fragment(key="card-cost")
def cost_and_time(run_key: int, shown: Shown, *, unpriced: int, is_called: bool) -> None:
    """`is_called`: models answered, here or elsewhere; of offline checks only what is known is shown."""
    layout.title("Cost and latency", "Cost and latency are per cell; offline checks and imported verdicts have none.")
    facts = {
        "Cost, US$": None if shown.paid is None else f"{shown.paid:,.4f}",
        "Prompt tokens": None if shown.tokens is None else f"{shown.tokens:,}",
    }
    with st.container(horizontal=True):
        for name, value in facts.items():
            if is_called or value is not None:
                st.metric(name, value or "unknown", border=True)
    if unpriced and shown.paid is not None:
        st.caption(f"Without {counted(unpriced, 'answer')} whose cost is unknown.")
    drill_into_tiles(run_key, shown)
    if shown.seconds.empty:
        st.caption("This run holds no timed cells.")
        return
    event = st.plotly_chart(
        charts.boxes(shown.seconds, y_title="seconds per cell", noun="cells"), key="chart-latency",
        config=CONFIG, on_select="rerun", selection_mode="points", alt="Latency by judge",
    )  # fmt: skip
    point = kept_point(event, key="latency", of=run_key, drawn=shown.finished)
    if point is None:
        st.caption("Click a box to list its cells, slowest first; click a dot to open one cell.")
        return
    drill_into_measure(run_key, "seconds", str(point[0]), float(point[1]) if len(point) == 2 else None)


def drill_into_tiles(run_key: int, shown: Shown) -> None:
    """The cells that cost most, or whose prompts were longest, where that is known."""
    known = {"dearest": shown.paid, "longest prompts": shown.tokens}
    offered = [words for words in COSTLY if known[words] is not None]
    if not offered:
        return
    chosen = st.segmented_control("Cells", offered, key="costly", help=_COSTLY_HELP)
    if chosen is not None:
        drill_into_measure(run_key, COSTLY[str(chosen)])


_COSTLY_HELP = "Only cells whose cost is known, like the sum above."


def drill_into_measure(run_key: int, measure: str, judge: str | None = None, value: float | None = None) -> None:
    cells, number = measured(run_key, measure, judge, value)
    row = listing(cells, key=f"rows-{measure}", of=number, columns={"cost_usd": LISTED["cost_usd"]})
    if row is not None:
        open_in_compare(compare_link(row), key=f"{measure}-open")


MEASURES = {
    "cost_usd": tables.cell.c.cost_usd,
    "prompt_tokens": tables.cell.c.prompt_tokens,
    "completion_tokens": tables.cell.c.completion_tokens,
    "seconds": tables.cell.c.latency_s,
}


def measured(run_key: int, measure: str, judge: str | None, value: float | None) -> tuple[pd.DataFrame, int]:
    """The first `MOST_ROWS` cells of which one of `MEASURES` is known, most first, and how many there are.

    `judge`: of this one alone; `value`: where it is exactly that.
    """
    cell, by = tables.cell, MEASURES[measure]
    of = [cell.c.run_key == run_key, cell.c.finished_at.is_not(None), by.is_not(None)]
    of += [~is_one_of(cell.c.trace_id, listings.blind_to_me())]
    of += [] if judge is None else [cell.c.rubric == judge]
    of += [] if value is None else [by == value]
    order = [measure, *(name for name in MEASURES if name != measure)]
    stored = (cell.c.trace_id, cell.c.repeat, cell.c.state, cell.c.score, cell.c.judge_version)
    columns = (*stored, cell.c.rubric.label("dimension"), *(MEASURES[name].label(name) for name in order))
    with read_transaction(workspace().engine) as connection:
        query = select(*columns).where(*of).order_by(by.desc(), cell.c.cell_key).limit(MOST_ROWS)
        cells = query_frame(connection, query)
        is_all = len(cells) < MOST_ROWS
        number = len(cells) if is_all else connection.scalar(select(func.count()).where(*of)) or 0
        names = judge_model_names(connection)
    outcomes = [outcome_of(*row) for row in cells[["state", "score"]].itertuples(index=False, name=None)]
    rows = cells.assign(outcome=outcomes, judge_model=cells["judge_version"].map(names))
    return rows[["trace_id", "dimension", "repeat", "outcome", *order, "judge_model"]], int(number)


def outcome_of(state: str, score: float | None) -> str:
    """A score, or in words why there is none."""
    return f"{score:.0f}" if state == "scored" and score is not None else state.replace("_", " ")


def failures(run_key: int, shown: Shown) -> None:
    layout.title(
        f"{shown.failures:,} failed of {counted(shown.finished, 'cell')}", "A failure never counts as a score."
    )
    if shown.failed.empty:
        st.caption("No cell failed.")
        return
    rows = open_to_me(shown.failed)
    chosen = data_table(
        rows.assign(state=rows["state"].str.replace("_", " ")), most=8, key=f"failed-{run_key}", is_chosen=True
    )
    if shown.failures > len(shown.failed):
        st.caption(f"The first {len(shown.failed):,} are listed.")
    if chosen is None:
        st.caption("Select a row to open it.")
    else:
        open_in_compare(compare_link(rows.to_dict("records")[chosen]), key="failed-open")


def start() -> None:
    known, agents = rubrics(workspace().home), agent_descriptions(workspace().home)
    for error in broken_files(workspace().home):
        st.warning(plain(f"Left out: {error}"))
    with st.form("new-run", border=False):
        left, right = st.columns(2)
        model = left.text_input(
            "Model", key="new_model", placeholder="gpt-4.1, anthropic/claude-…, ollama/…", help=_MODEL_HELP
        )
        chosen = right.multiselect(
            "Dimensions",
            list(known),
            default=[d for d in DIMENSIONS if d in known],
            key="new_dimensions",
            help=meanings(DIMENSIONS),
        )
        with st.container(horizontal=True):
            repeats = st.number_input("Repeats", 1, 100, 1, key="new_repeats", width=120)
            mode = st.selectbox("Mode", list(MODES), key="new_mode", width=140, help=_MODE_HELP)
            rule = st.selectbox("Jury's score", RULES, key="new_jury_rule", width=140, help=_RULE_HELP)
            budget = st.number_input("Budget, US$ (0: no limit)", 0.0, None, 0.0, key="new_budget", width=180)
            agent = st.selectbox("Agent description", ["auto", "none", *agents], key="new_agent", width=220)
        base = st.text_input(
            "URL of an OpenAI-compatible server", key="new_base", placeholder="empty: the provider's URL"
        )
        limits = limits_form()
        is_asked = st.form_submit_button("Estimate cost", type="primary", icon=":material/calculate:")
    if is_asked:
        st.session_state.pop(PROPOSED, None)
        try:
            models = model_names(model)
            spec = RunSpec(
                rubrics=tuple(chosen),
                models=models,
                repeats=int(repeats),
                mode=MODES[str(mode)],
                jury_rule=rule,
                agent=str(agent),
                api_base=base.strip() or None,
                budget_usd=float(budget) or None,
                concurrency=limits.concurrency,
                rpm=limits.rpm,
                tpm=limits.tpm,
                batch=limits.batch,
                use_cache=limits.use_cache,
                ask_again=limits.ask_again,
                prices=dict.fromkeys(models, limits.prices()) if limits.price else {},
            )
        except ValueError as error:
            st.error(plain(str(error)))
            return
        propose(spec)
    proposed: Proposal | None = st.session_state.get(PROPOSED)
    if proposed is not None:
        confirm(proposed)
    if STARTED in st.session_state:
        st.success(st.session_state.pop(STARTED))


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A run that may be started: what it asks, of which traces, and what it would cost (or why nobody knows)."""

    spec: RunSpec
    traces: tuple[str, ...]
    left_out: int
    costs: pd.DataFrame | None
    problem: str = ""

    @property
    def name(self) -> str:
        return f"{', '.join(self.spec.rubrics)} by {', '.join(self.spec.models)}"

    @property
    def cells(self) -> int:
        return len(self.traces) * len(self.spec.models) * len(self.spec.rubrics) * self.spec.repeats


PROPOSED, STARTED = "proposed_run", "started_run"


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
    st.text(f"{proposed.name}: {counted(proposed.cells, 'cell')} on {counted(len(proposed.traces), 'trace')}, {limit}")
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
        name=proposed.name, author=user().name,
    )  # fmt: skip
    st.session_state["run"] = f"{key} · {proposed.name}"  # the new run is the one to look at
    RUNS.start(home, key)
    st.session_state[STARTED] = f"Run {key} starts: {counted(proposed.cells, 'cell')}."


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How fast a run may go and what it may pay for; `price` as typed, empty for public prices."""

    concurrency: int
    rpm: int | None
    tpm: int | None
    price: str
    batch: bool
    use_cache: bool
    ask_again: bool

    def prices(self) -> Prices:
        """Raises ValueError on what is no price."""
        return read_prices(self.price)


def limits_form() -> Limits:
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
    return Limits(
        concurrency=int(concurrency),
        rpm=int(rpm) or None,
        tpm=int(tpm) or None,
        price=price.strip(),
        batch=batch,
        use_cache=use_cache,
        ask_again=ask_again,
    )


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
MODES: Mapping[str, Mode] = {"trace": "trace", "span": "span", "jury": "jury"}
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

page()
