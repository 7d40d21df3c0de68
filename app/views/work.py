"""The annotator's desk: one trace after another, read and labelled."""

from __future__ import annotations

import csv
from importlib import resources

import streamlit as st

from app.components.annotator import annotator
from app.components.annotator.payload import frame
from app.session import link_params, trace_token, user, workspace
from ingest.store import reading, trace_ids
from ingest.trace import Json
from judging.ledger import labels, tables
from judging.records import DIMENSIONS
from judging.rubric import Rubric, rubrics

KEY = "desk"


@st.cache_data(show_spinner=False)
def dimension_texts() -> list[dict[str, Json]]:
    """The rubrics as the annotator reads them, in the order of the number keys."""
    known = rubrics(workspace().home)
    return [_dimension_text(known[key]) for key in DIMENSIONS if key in known]


def _dimension_text(rubric: Rubric) -> dict[str, Json]:
    anchors = rubric.anchors
    lines: list[Json] = [] if anchors is None else [["3", anchors.full], ["1–2", anchors.middle], ["0", anchors.none]]
    return {"key": rubric.key, "title": rubric.title, "about": rubric.annotator, "anchors": lines}


@st.cache_data(show_spinner=False)
def categories() -> list[dict[str, Json]]:
    """TRAIL's categories by group, as `data/taxonomy.csv` lists them."""
    groups: dict[str, list[Json]] = {}
    with resources.files("data").joinpath("taxonomy.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            groups.setdefault(row["group"], []).append(row["category"])
    return [{"group": group, "names": names} for group, names in groups.items()]


def page() -> None:
    with reading(workspace().engine) as connection:
        ids = trace_ids(connection)
    if not ids:
        st.info("No trace is here yet. The Ingest page, or `tracejury ingest`, brings some in.")
        return
    desk(ids)


@st.fragment(key=KEY + "-fragment")
def desk(ids: list[str]) -> None:
    trace_id = chosen(ids)
    place = ids.index(trace_id)
    annotator(
        frame(
            trace_id=trace_id,
            token=trace_token(trace_id),
            user=user().name,
            state=labels.state(workspace().engine, annotator=user().name, trace_id=trace_id),
            dimensions=dimension_texts(),
            categories=categories(),
            span=st.query_params.get("span"),
            queue={"has_previous": place > 0, "has_next": place < len(ids) - 1, **progress(ids)},
            base=st.get_option("server.baseUrlPath"),
        ),
        key=KEY,
        on_span=lambda: follow_span(trace_id),
        on_act=lambda: follow_act(ids),
    )


def chosen(ids: list[str]) -> str:
    wanted = st.query_params.get("trace")
    return wanted if wanted in ids else ids[0]


def progress(ids: list[str]) -> dict[str, Json]:
    """How many traces this person has finished."""
    with reading(workspace().engine) as connection:
        mine = labels.reviews(connection, tables.review.c.annotator == user().name)
    done = {review.trace_id for review in mine if review.status != "open"}
    return {"done": len(done & set(ids)), "total": len(ids)}


def follow_span(trace_id: str) -> None:
    """The address follows the span in hand, so that a reload opens it again."""
    span = st.session_state[KEY].get("span")
    if span:
        st.query_params.update({"trace": trace_id, "span": span})


def follow_act(ids: list[str]) -> None:
    """Another trace after `submitted`, `skipped`, `previous` or `next`; `renew` only wants a fresh token."""
    act = st.session_state[KEY].get("act") or {}
    trace_id = act.get("trace_id")
    step = {"previous": -1, "next": 1, "submitted": 1, "skipped": 1}.get(str(act.get("kind")), 0)
    if step == 0 or trace_id not in ids:
        return
    place = min(len(ids) - 1, max(0, ids.index(trace_id) + step))
    st.query_params.from_dict(link_params(trace=ids[place]))


page()
