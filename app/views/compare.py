"""One trace, a person's errors beside a judge's findings: what was caught, missed, unmatched; decided here."""

from __future__ import annotations

from typing import cast

import pandas as pd
import streamlit as st

from tracejury.app import grants, listings, options
from tracejury.app.api.compare import PURPOSE
from tracejury.app.components import charts, layout
from tracejury.app.components.comparison import comparison
from tracejury.app.components.comparison.payload import pairs_payload
from tracejury.app.components.drilldown import chosen_point
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.components.glossary import meanings
from tracejury.app.painting import is_new, paint
from tracejury.app.session import link_params, must, token, user, workspace
from tracejury.ingest.store import load, read_transaction
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.labels.anchoring import may_see_judges
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.matching.comparison import (
    compare_trace,
    decided_revision,
    judged_and_labelled,
    repeats_of,
    undecided,
)
from tracejury.judging.matching.pairs import Comparison, JudgedCell, PairState
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import DIMENSIONS, Failure, Verdict
from tracejury.judging.store.judge_models import versions_of
from tracejury.judging.store.revisions import Revision

KEY = "comparison"
BIG = 2  # points between two scores from which the difference is marked
CONFIG = {"displaylogo": False, "displayModeBar": False}
LANES = "chart-lanes"
ONLY_BOTH = "Listed are the traces that the annotator submitted and the judge judged. Open any other from Explore."
STATES: tuple[PairState, ...] = ("localized", "caught", "missed", "unmatched")


def page() -> None:
    must("adjudicator")
    layout.heading("Compare")
    traces = listings.traces()
    people = [str(name) for name in options.people()["annotator"]]
    judge_models = options.judge_models()
    if not why_empty(traces, people, judge_models):
        return
    side_by_side(traces, people, judge_models)


def why_empty(traces: pd.DataFrame, people: list[str], judge_models: list[str]) -> bool:
    """Whether two sides are there; says what is missing and what brings it."""
    if traces.empty:
        st.info("This workspace holds no traces. Try: the Ingest page, or `tracejury ingest PATH`.")
    elif not people:
        st.info("No annotator has submitted a trace yet. Try: label a trace on the Work page and submit it.")
    elif not judge_models:
        st.info(
            "No judge has given a verdict yet. Try: `tracejury judge` (offline, no key needed), then `tracejury match`."
        )
    else:
        return True
    return False


@st.fragment(key=f"{KEY}-fragment")
def side_by_side(traces: pd.DataFrame, people: list[str], judge_models: list[str]) -> None:
    trace_id, reference, judge_model, repeat = sides(traces, people, named_too(judge_models))
    with read_transaction(workspace().engine) as connection:
        if not may_see_judges(connection, annotator=user().name, role=user().role, trace_id=trace_id):
            st.info("You are labelling this trace blind. Submit it before you compare it.")
            return
        both_sides = compare_trace(
            connection, trace_id=trace_id, reference=reference, judge_model=judge_model, repeat=repeat
        )
        decided = decided_revision(connection)
    note_seen(workspace().engine, annotator=user().name, trace_ids=[trace_id], what="Compare")
    open_pairs = _undecided(listings.place(), listings.now_revision(), reference, judge_model, repeat)
    if not any(isinstance(cell.outcome, Verdict) for cell in both_sides.cells):
        not_judged(both_sides, list(open_pairs))
        if both_sides.cells:
            scores_and_replies(both_sides)
        return
    text = reading_of(trace_id)
    goal_line(traces, trace_id, both_sides)
    marks = lane_marks(both_sides, text)
    focus = chosen_lane(marks) or asked_pair(both_sides)
    comparison(
        {
            "trace_id": trace_id,
            "token": token(trace_id, purpose=PURPOSE),
            "token_s": grants.MAX_AGE_S,
            "base": st.get_option("server.baseUrlPath").rstrip("/"),
            "reference": reference,
            "judge_model": judge_model,
            "judge_key": f"{reference} {judge_model} {repeat}",
            "repeat": repeat,
            "pairs": pairs_payload(both_sides, text),
            "revision": decided,
            "focus": focus,
            "undecided_elsewhere": sum(count for key, count in open_pairs.items() if key != trace_id),
        },
        key=KEY,
        on_act=lambda: follow(trace_id, open_pairs),
    )
    below = st.empty()
    if is_new("compare") and not marks.empty:
        below.skeleton(height=charts.LANES_HEIGHT)
    paint("compare")
    with below:
        lanes(marks, spans=len(text.blocks))
    st.caption(progress(open_pairs))
    scores_and_replies(both_sides)


def asked_pair(comparison: Comparison) -> str | None:
    """The pair that the address asks for: by its key, by its error (under the judge it names), or by its finding."""
    pair_id, judge = st.query_params.get("pair"), st.query_params.get("dimension")
    if pair_id is None:
        return None
    label, _, finding = pair_id.rpartition("|")
    by_finding = [p.key for p in comparison.pairs if finding.isdigit() and not label and p.finding_key == int(finding)]
    of_error = [p for p in comparison.pairs if p.error is not None and p.error.label_id == pair_id]
    of_judge = [p.key for p in of_error if judge is not None and p.rubric == judge]
    return next(iter([*by_finding, *of_judge, *(p.key for p in of_error)]), pair_id)


def not_judged(comparison: Comparison, judged: list[str]) -> None:
    """Say why this judge has no verdict on the trace: no error counts as missed or caught."""
    failed = sorted({cell.outcome.state for cell in comparison.cells})
    reason = f"failed on this trace ({', '.join(failed)})" if failed else "has not judged this trace"
    st.info(f"{plain(comparison.judge_model)} {reason}. Nothing can be compared.")
    if judged:
        st.caption(
            f"{counted(len(judged), 'trace')} that {plain(comparison.reference)} labelled and this judge has judged."
        )
        st.button(
            "Go to the first trace", key="to_judged", icon=":material/arrow_forward:",
            on_click=_go_to, args=(judged[0],),
        )  # fmt: skip


def named_too(judge_models: list[str]) -> list[str]:
    """The judges, with the older version that the address names (`judge model @hash`)."""
    name = st.query_params.get("judge_model", "")
    if not name or name in judge_models:
        return judge_models
    with read_transaction(workspace().engine) as connection:
        is_version = bool(versions_of(connection, name))
    return [*judge_models, name] if is_version else judge_models


def sides(traces: pd.DataFrame, people: list[str], judge_models: list[str]) -> tuple[str, str, str, int]:
    """The trace, the person, the judge and its repeat; what the address asks for comes first.

    The address says `person`: `reference` is bound to the filter of the Agreement page, and no link may set it.
    """
    names = {str(trace_id): str(name) for trace_id, name in zip(traces["trace_id"], traces["name"], strict=True)}
    usual = options.usual_reference()
    person = _asked("person", people, people.index(usual) if usual in people else 0)
    judge = _asked("judge_model", judge_models, 0)
    ids = offered(list(names), people[person], judge_models[judge])
    both = _undecided(listings.place(), listings.now_revision(), people[person], judge_models[judge], 0)
    first = ids.index(next(iter(both))) if both and next(iter(both)) in ids else 0
    with st.container(horizontal=True, vertical_alignment="bottom", key="sides"):
        trace_id = st.selectbox(
            "Trace", ids, index=_asked("trace", ids, first), format_func=lambda key: f"{key} · {names.get(key, '')}",
            key="compare_trace", width=440, on_change=_follow_widget, args=("compare_trace", "trace"),
            help=None if len(ids) == len(names) else ONLY_BOTH,
        )  # fmt: skip
        reference = st.selectbox(
            "Annotator", people, index=person,
            key="compare_reference", width=170, on_change=_follow_widget, args=("compare_reference", "person"),
        )  # fmt: skip
        judge_model = st.selectbox(
            "Judge model", judge_models, index=judge,
            key="compare_judge_model", width=220,
            on_change=_follow_widget, args=("compare_judge_model", "judge_model"),
        )  # fmt: skip
        repeat = chosen_repeat(str(trace_id), str(judge_model))
        if st.button("Open in Work", icon=":material/edit_note:", key="to_work"):
            st.switch_page("views/work.py", query_params=link_params(trace=str(trace_id)))
    return str(trace_id), str(reference), str(judge_model), repeat


def offered(ids: list[str], reference: str, judge_model: str) -> list[str]:
    """The traces to choose from: of many, those that both sides spoke of, and the one that is shown or asked for."""
    if len(ids) <= listings.MANY:
        return ids
    both = _judged_and_labelled(listings.place(), listings.now_revision(), reference, judge_model)
    shown = {st.query_params.get("trace"), st.session_state.get("compare_trace")}
    return [trace_id for trace_id in ids if trace_id in both or trace_id in shown] or ids[: listings.MANY]


def chosen_repeat(trace_id: str, judge_model: str) -> int:
    """The judge's repeat; offered where it judged this trace several times."""
    with read_transaction(workspace().engine) as connection:
        repeats = [str(repeat) for repeat in repeats_of(connection, trace_id=trace_id, judge_model=judge_model)]
    if len(repeats) < 2:
        return int(repeats[0]) if repeats else 0
    chosen = st.selectbox(
        "Repeat", repeats, index=_asked("repeat_no", repeats, 0), key="compare_repeat", width=90,
        on_change=_follow_widget, args=("compare_repeat", "repeat_no"),
    )  # fmt: skip
    return int(str(chosen))


def goal_line(traces: pd.DataFrame, trace_id: str, comparison: Comparison) -> None:
    row = traces[traces["trace_id"] == trace_id].iloc[0]
    states = pd.Series([pair.state for pair in comparison.pairs], dtype="object").value_counts()
    named = [*STATES, *(["not proposed yet"] if "not proposed yet" in states else [])]
    tally = " · ".join(f"{int(states.get(state, 0))} {state}" for state in named)
    errors = len({pair.error.label_id for pair in comparison.pairs if pair.error is not None})
    st.caption(f"{counted(errors, 'reference error')}: {tally}", help=meanings(("reference", *STATES)))
    if "not proposed yet" in states:
        propose_now()
    if isinstance(row["goal"], str) and row["goal"]:
        with st.expander("Goal and answer", key="goal"):
            st.text(row["goal"])
            st.caption("Final answer")
            st.text(row["final_answer"] if isinstance(row["final_answer"], str) else "none")


def propose_now() -> None:
    """Some errors or findings were never compared: one press compares them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("No matches are proposed yet for some of these.")
        st.button("Propose matches by rule", key="propose-here", icon=":material/join_inner:", on_click=propose)


def propose() -> None:
    """Match by rule in the whole workspace."""
    if user().may("adjudicator"):
        propose_matches(workspace().engine)


def lanes(marks: pd.DataFrame, *, spans: int) -> None:
    """The timeline of both sides."""
    if not marks.empty:
        st.plotly_chart(
            charts.lanes(marks, spans=spans), key=LANES, config=CONFIG, on_select="rerun", selection_mode="points",
            alt="Errors of the annotator and findings of the judge by span",
        )  # fmt: skip


def chosen_lane(marks: pd.DataFrame) -> str | None:
    """The pair whose mark was clicked; a click on a trace that was shown before is none."""
    point = chosen_point(st.session_state.get(LANES))
    return str(point[0]) if point is not None and str(point[0]) in set(marks["key"].astype(str)) else None


def lane_marks(comparison: Comparison, text: TraceText) -> pd.DataFrame:
    """key, lane, seq, state, label, is_valid: a mark for each span of an error and each citation.

    What matches no span of the trace stands at the first one, marked as invalid.
    """
    place = {block.span_id: block.seq for block in text.blocks}
    rows = []
    for pair in comparison.pairs:
        if pair.error is not None:
            label = f"{'+'.join(pair.error.dimensions)} {pair.error.impact}"
            rows += [
                (pair.key, "annotator", place.get(s, 0), pair.state, f"{text.ordinals.get(s, s)} {label}", s in place)
                for s in pair.error.span_ids
            ]
        if pair.finding is not None:
            label = pair.finding.dimension or pair.rubric or ""
            for cited in pair.finding.citations:
                seq, is_valid = place.get(cited.span_id or "", 0), cited.span_id in place
                rows.append((pair.key, "judge", seq, pair.state, f"{label} cites {cited.cite}", is_valid))
    return pd.DataFrame(rows, columns=["key", "lane", "seq", "state", "label", "is_valid"])


def progress(open_pairs: dict[str, int]) -> str:
    total, waiting = len(open_pairs), sum(count > 0 for count in open_pairs.values())
    return (
        f"{counted(sum(open_pairs.values()), 'row')} undecided on {waiting} of {counted(total, 'compared trace')} "
        "with findings. Press ? for the keys."
    )


def scores_and_replies(comparison: Comparison) -> None:
    left, right = st.columns([2, 3], gap="medium")
    with left, st.container(border=True):
        layout.title(
            "Scores", f"0 to 3. Differences of two points or more are bold and vermilion.  \n{meanings(DIMENSIONS)}"
        )
        table = score_table(comparison)
        if table.empty:
            st.caption("Neither the annotator nor the judge scored a dimension of this trace.")
        else:
            st.dataframe(table.style.apply(_mark_big, axis=1).format(precision=0, na_rep="–"), hide_index=True)
    with right, st.container(border=True):
        layout.title("Judge's answers")
        if not comparison.cells:
            st.caption("This judge has no verdict on this trace.")
        for cell in comparison.cells:
            reply(cell)


def score_table(comparison: Comparison) -> pd.DataFrame:
    """dimension, reference, judge, difference, state: one row per dimension that either side spoke of."""
    reference = {score.dimension: score for score in comparison.scores}
    judged = {cell.rubric: cell.outcome for cell in comparison.cells}
    rows = []
    own = [name for name in reference if name not in DIMENSIONS and not name.startswith("trail.")]
    for dimension in (*DIMENSIONS, *own):
        score, outcome = reference.get(dimension), judged.get(dimension)
        if score is None and outcome is None:
            continue
        value = None if score is None or score.not_applicable else score.value
        model = outcome.score if isinstance(outcome, Verdict) else None
        state = "not judged" if outcome is None else outcome.state.replace("_", " ")
        words = "not scored" if score is None else ("not applicable" if score.not_applicable else "scored")
        change = None if value is None or model is None else model - value
        rows.append((dimension, value, model, change, words, state))
    columns = ["dimension", "reference", "judge", "judge − reference", "reference outcome", "judge outcome"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(columns[1:4], "Float64"))


def reply(cell: JudgedCell) -> None:
    outcome = cell.outcome
    score = f"score {outcome.score}" if isinstance(outcome, Verdict) and outcome.score is not None else outcome.state
    label = plain(f"{cell.rubric} · {score.replace('_', ' ')}")
    with st.expander(label, key=f"reply-{cell.cell_key}", on_change="rerun") as box:
        if not box.open:
            return
        if isinstance(outcome, Failure):
            st.text(f"No verdict: {outcome.reason}")
        else:
            for name, text in (
                ("Reason", outcome.reason),
                ("Criteria", outcome.criteria),
                ("Rationale", outcome.rationale),
            ):
                if text:
                    st.caption(name)
                    st.text(text)
            for note in outcome.notes:
                st.text(note)
        call = outcome.call
        st.caption("Raw reply")
        if call.raw_reply is None:
            st.text("no reply stored")
        else:
            st.code(call.raw_reply, language=None, wrap_lines=True, height=280)
        if call.reasoning is not None:
            st.caption("Reasoning of the model")
            st.code(call.reasoning, language=None, wrap_lines=True, height=280)


def follow(trace_id: str, open_pairs: dict[str, int]) -> None:
    """Another trace when the island asks for the next undecided one; `saved` and `renew` only draw the page anew."""
    act = st.session_state[KEY].get("act") or {}
    if act.get("kind") != "next":
        return
    order = list(open_pairs)
    start = order.index(trace_id) + 1 if trace_id in order else 0
    after = [key for key in [*order[start:], *order[:start]] if open_pairs[key] and key != trace_id]
    if after:
        _go_to(after[0])


def _go_to(trace_id: str) -> None:
    st.session_state["compare_trace"] = trace_id
    _leave_pair(trace=trace_id)


def _follow_widget(widget: str, name: str) -> None:
    """The address follows what is chosen, so that it can be shared."""
    _leave_pair(**{name: str(st.session_state[widget])})


def _leave_pair(**changed: str) -> None:
    st.session_state.pop(LANES, None)
    for name in {"pair", "dimension"} & set(st.query_params):
        del st.query_params[name]
    for name, value in changed.items():
        st.query_params[name] = value


def _asked(name: str, options: list[str], otherwise: int) -> int:
    value = st.query_params.get(name)
    return options.index(value) if value in options else otherwise


def _mark_big(row: pd.Series) -> list[str]:
    change = row["judge − reference"]
    is_big = not pd.isna(change) and abs(float(cast("float", change))) >= BIG
    return ["color: #D55E00; font-weight: 600" if is_big and name == "judge − reference" else "" for name in row.index]


@st.cache_resource(show_spinner=False, max_entries=8)
def _judged_and_labelled(place: str, now: Revision, reference: str, judge_model: str) -> set[str]:
    with read_transaction(workspace().engine) as connection:
        return judged_and_labelled(connection, reference=reference, judge_model=judge_model)


@st.cache_data(show_spinner=False, max_entries=8)
def _undecided(place: str, now: Revision, reference: str, judge_model: str, repeat: int) -> dict[str, int]:
    with read_transaction(workspace().engine) as connection:
        return undecided(connection, reference=reference, judge_model=judge_model, repeat=repeat)


@st.cache_resource(show_spinner=False, max_entries=4)
def _reading(place: str, trace_id: str) -> TraceText:
    with read_transaction(workspace().engine) as connection:
        return render_trace(load(connection, trace_id, with_logs=False))


def reading_of(trace_id: str) -> TraceText:
    """The text of a trace; a stored trace never changes."""
    return _reading(listings.place(), trace_id)


page()
