"""The annotator's desk: one trace after another, read and labelled."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from statistics import median
from typing import Any

import streamlit as st
from sqlalchemy import Connection, Row, select

from tracejury.app import grants
from tracejury.app.api.documents import DOCUMENTS
from tracejury.app.components.annotator import annotator
from tracejury.app.components.annotator.payload import frame
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.session import link_params, trace_token, user, workspace
from tracejury.ingest.store import read_transaction, trace_ids
from tracejury.ingest.trace import Json
from tracejury.judging.adjudication.practice import standing
from tracejury.judging.judges.rubric import Rubric, rubrics
from tracejury.judging.labels import item_state
from tracejury.judging.labels import label_store as labels
from tracejury.judging.labels.comments import Kind
from tracejury.judging.labels.guidelines import guideline, to_acknowledge
from tracejury.judging.labels.my_work import unread_comments
from tracejury.judging.queues import places
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.queues.places import Assigned
from tracejury.judging.records import DIMENSIONS
from tracejury.judging.store import tables

KEY = "desk"
NEWS_S = 20.0  # seconds between two looks for a new guideline and for what others wrote
IN_HAND = "place_in_hand"
ALL = "all"  # the address's word for all traces, past the queues


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
    with resources.files("tracejury.data").joinpath("taxonomy.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            groups.setdefault(row["group"], []).append(row["category"])
    return [{"group": group, "names": names} for group, names in groups.items()]


def page() -> None:
    unread_line()
    queue_name = st.query_params.get("queue", "")
    with read_transaction(workspace().engine) as connection:
        ids = trace_ids(connection, with_steps=True)
        queues = queue.queues_for(connection, user().name, also=int(queue_name) if queue_name.isdecimal() else None)
        has_queues = bool(queues) or bool(queue.queues(connection))
    if not ids:
        st.info("This workspace holds no traces. Try: the Ingest page, or `tracejury ingest PATH`.")
        return
    if not queues and has_queues and not user().may("adjudicator"):
        st.info("No queue is open to you. Try: ask an administrator to assign you on the Admin page.")
        return
    key = chosen_queue(queues)
    unread = version_to_read(queues, key)
    if unread is not None:
        ask_to_read(unread)
        return
    news(key, known_version())
    if key is None:
        desk(ids)
    else:
        queue_desk(key)


@st.fragment(run_every=NEWS_S)
def unread_line() -> None:
    """Tell in one line what others wrote to the person and they have not read, with the way there."""
    with read_transaction(workspace().engine) as connection:
        new = Counter(one.kind for one in unread_comments(connection, reader=user().name, role=user().role))
    if new:
        st.page_link(
            "views/my_work.py", label=f"New in My work: {', '.join(unread_counts(new))}", icon=":material/mail:",
            query_params=link_params(),
        )  # fmt: skip


def unread_counts(new: Counter[Kind]) -> list[str]:
    names: dict[Kind, str] = {"message": "message", "comment": "mention", "return": "returned trace"}
    return [counted(new[kind], name) for kind, name in names.items() if new[kind]]


@st.fragment(run_every=NEWS_S)
def news(key: int | None, known: int | None) -> None:
    """Tell who is at work of a guideline published meanwhile; `known` was the newest when the page was opened."""
    if known_version() == known:
        return
    with read_transaction(workspace().engine) as connection:
        unread = to_acknowledge(connection, user().name, pinned=pinned_by(connection, key))
    if unread is not None:
        st.info(
            f"Version {unread} of the guideline is published. You can finish this trace; you will be asked to read the "
            "new version before the next one.", icon=":material/menu_book:",
        )  # fmt: skip


def known_version() -> int | None:
    """The newest version of the guideline."""
    with read_transaction(workspace().engine) as connection:
        newest = guideline(connection)
    return None if newest is None else newest.version


def pinned_by(connection: Connection, key: int | None) -> int | None:
    """The version that a queue asks for, None for the newest."""
    queues = tables.queue
    return connection.scalar(select(queues.c.guideline_version).where(queues.c.queue_key == key))


def stop_for_guideline(key: int | None, place: str) -> None:
    """Draw the page anew, which asks to read a guideline published meanwhile; the place in hand may be finished."""
    if st.session_state.get(IN_HAND) == place:
        return
    with read_transaction(workspace().engine) as connection:
        unread = to_acknowledge(connection, user().name, pinned=pinned_by(connection, key))
    if unread is not None:
        st.rerun()


def version_to_read(queues: Sequence[Row[Any]], key: int | None) -> int | None:
    """The guideline that has to be read before work in this queue."""
    pinned = next((row.guideline_version for row in queues if row.queue_key == key), None)
    with read_transaction(workspace().engine) as connection:
        return to_acknowledge(connection, user().name, pinned=pinned)


def ask_to_read(version: int) -> None:
    st.info(f"You have not read version {version} of the guideline yet. Read and acknowledge it, then continue here.")
    if st.button("Open guideline", type="primary", key="to_guideline"):
        st.switch_page("views/guideline.py", query_params=link_params(version=str(version)))


# ---- from a queue ----------------------------------------------------------------------------------------------


def chosen_queue(queues: Sequence[Row[Any]]) -> int | None:
    """The queue to work from: the address's, else the first that has something left; None: all traces in order.

    An address of a trace (from Explore, say) leaves the queue; annotators reach only what a queue gave them.
    """
    if not queues:
        return None
    keys = [row.queue_key for row in queues]
    may_browse = user().may("adjudicator")
    if may_browse and "trace" in st.query_params and "queue" not in st.query_params:
        return None
    name = st.query_params.get("queue", "")
    if name == ALL and may_browse:
        key: int | None = None
    else:
        key = int(name) if name.isdecimal() and int(name) in keys else first_with_work(queues)
    options: list[int | None] = [*keys, None] if may_browse else [*keys]
    if len(options) == 1:
        return key
    names = {row.queue_key: queue_name(row) for row in queues}
    return st.selectbox(
        "Queue", options, index=options.index(key), key="work_queue", label_visibility="collapsed", width=320,
        format_func=lambda one: "All traces, in order" if one is None else names[one], on_change=follow_queue,
    )  # fmt: skip


def queue_name(row: Row[Any]) -> str:
    marks = [mark for mark, holds in (("practice", row.is_practice), ("closed", row.closed_at is not None)) if holds]
    return f"{row.name} ({', '.join(marks)})" if marks else str(row.name)


def first_with_work(queues: Sequence[Row[Any]]) -> int:
    with read_transaction(workspace().engine) as connection:
        for row in queues:
            counts = places.progress(connection, row.queue_key, user().name)
            if counts.done < counts.total:
                return int(row.queue_key)
    return int(queues[0].queue_key)


def follow_queue() -> None:
    key = st.session_state["work_queue"]
    st.query_params.from_dict(link_params(queue=ALL if key is None else str(key)))


@st.fragment(key=KEY + "-queue")
def queue_desk(key: int) -> None:
    stop_for_guideline(key, st.query_params.get("place", ""))
    if is_before_practice(key):
        return
    place = place_in_hand(key)
    if place is None:
        st.info(why_nothing(key))
        to_answers(key)
        return
    st.session_state[IN_HAND] = str(place.lease_key)
    say_if_refused(place)
    hold_on(place)
    annotator(
        desk_frame(place.trace_id, place.occasion, queue_header(place)),
        key=KEY,
        on_span=lambda: follow_place(place),
        on_act=lambda: follow_queue_act(place),
    )


def is_before_practice(key: int) -> bool:
    """Whether the queue opens to this person only after practice that is not passed yet; says so and leads there."""
    with read_transaction(workspace().engine) as connection:
        before = standing(connection, key, user().name)
    if before is None or before.has_passed:
        return False
    percent = before.score.percent
    st.info(
        plain(
            f"This queue opens after the practice queue {before.practice}: {before.done} of "
            f"{counted(before.total, 'trace')} done, pass mark {before.pass_mark} %"
            + ("." if percent is None else f", your score {percent:.0f} %.")
            + ("" if before.done < before.total else " Try: ask an administrator for another practice queue.")
        )
    )
    if before.done < before.total and st.button("Start practice", type="primary", key="to_practice"):
        st.switch_page("views/work.py", query_params=link_params(queue=str(before.practice_key)))
    return True


def to_answers(key: int) -> None:
    """The way from a practice queue that is done to its correct answers."""
    with read_transaction(workspace().engine) as connection:
        is_practice = any(row.queue_key == key and row.is_practice for row in queue.queues(connection))
    if is_practice and st.button("See the correct answers", type="primary", key="to_answers"):
        st.switch_page("views/guideline.py", query_params=link_params(view="Practice"))


def say_if_refused(place: Assigned) -> None:
    """A link to a trace that this person may not open says so, and why; their own next trace is shown."""
    place_text, trace_id = st.query_params.get("place", ""), st.query_params.get("trace")
    if trace_id is not None and trace_id != place.trace_id:
        with read_transaction(workspace().engine) as connection:
            is_here = trace_id in trace_ids(connection, with_steps=True)
        why = "it is not assigned to you in this queue" if is_here else "this workspace holds no such trace"
        st.info(plain(f"You may not open trace {trace_id!r} here: {why}. Your own next trace is shown instead."))
    elif place_text.isdecimal() and int(place_text) != place.lease_key:
        st.toast(
            "This link leads to work that is not, or no longer, assigned to you. Your own next trace is shown instead."
        )


def hold_on(place: Assigned) -> None:
    """The address names the place from the first moment: a page that only renews its pass shows no other trace.

    Not even where the lease has run out meanwhile, or the trace was taken out of the queue.
    """
    if st.query_params.get("place") != str(place.lease_key):
        st.query_params.update({"queue": str(place.queue_key), "place": str(place.lease_key)})


def why_nothing(key: int) -> str:
    """Done, closed, or with other people: the three are not the same to somebody who waits."""
    with read_transaction(workspace().engine) as connection:
        row = next(row for row in queue.queues(connection) if row.queue_key == key)
        practised = len(places.left_out(connection, key, user().name))
    aside = f" {counted(practised, 'trace')} not assigned to you, because you practised on them." if practised else ""
    if row.closed_at is not None:
        return "This queue is closed. Your labels are saved."
    left = row.places - min(row.done, row.places)
    if left and not row.is_practice:
        return (
            f"You have no traces left in this queue. Its last {counted(left, 'assignment')} belong to other "
            f"annotators; a released one may be assigned to you. Check again later.{aside}"
        )
    return f"You have no traces left in this queue. Thank you.{aside}"


def place_in_hand(key: int) -> Assigned | None:
    """The place (or the trace) that the address names, if it is this person's; else the next one."""
    place_key, trace_id = st.query_params.get("place", ""), st.query_params.get("trace")
    place = None
    with read_transaction(workspace().engine) as connection:
        if place_key.isdecimal():
            place = places.place_by_key(connection, int(place_key), user().name)
        elif trace_id is not None:
            place = places.place_of(connection, key, user().name, trace_id)
    if place is not None and place.queue_key == key:
        return place
    return places.next_item(workspace().engine, key, user().name, now=now())


def queue_header(place: Assigned) -> dict[str, Json]:
    with read_transaction(workspace().engine) as connection:
        counts = places.progress(connection, place.queue_key, user().name)
        around = places.neighbours(connection, place)
        due_at = places.due_at(connection, place.queue_key)
        times = places.active_times(connection, place.queue_key, user().name)
    left = counts.total - counts.done - (0 if place.outcome in places.FINISHED else 1)
    return {
        "done": counts.done - counts.skipped,
        "total": counts.total,
        "team_done": counts.team,
        "team_total": counts.team_total,
        "has_previous": around.previous is not None,
        "has_next": around.next is not None or left > 0,
        "due": None if due_at is None else due_at // 1000,
        "left_ms": time_left(times, counts.total - counts.done),
    }


def time_left(times: Sequence[int], traces: int) -> int | None:
    """Milliseconds that so many more take at the median of `times`; None where nothing is known or left."""
    return round(median(times) * traces) if times and traces > 0 else None


def follow_place(place: Assigned) -> None:
    """The address follows place and span, so that a reload opens them again; it does not tell a repeat apart."""
    span = st.session_state[KEY].get("span")
    if span:
        st.query_params.update({"queue": str(place.queue_key), "place": str(place.lease_key), "span": span})


def follow_queue_act(place: Assigned) -> None:
    """On to the neighbour, or to what the queue gives next; an unfinished last place is finished first."""
    act = st.session_state[KEY].get("act") or {}
    kind = str(act.get("kind"))
    if act.get("trace_id") != place.trace_id or kind not in {"previous", "next", "submitted", "skipped"}:
        return
    with read_transaction(workspace().engine) as connection:
        around = places.neighbours(connection, place)
        stored = places.place_by_key(connection, place.lease_key, user().name)
    to = around.previous if kind == "previous" else around.next
    if to is None and (kind == "previous" or (kind == "next" and stored is not None and stored.outcome is None)):
        st.toast("Submit or skip this trace to get the next one." if kind == "next" else "This is the first trace.")
        return
    if kind == "submitted" and place.occasion == queue.PRACTICE:
        st.toast("The correct answers are on the Guideline page, under Practice.")
    st.query_params.from_dict(link_params(queue=str(place.queue_key), place=None if to is None else str(to)))


def now() -> int:
    return time.time_ns() // 1000


# ---- all traces, in order --------------------------------------------------------------------------------------


@st.fragment(key=KEY + "-fragment")
def desk(ids: list[str]) -> None:
    trace_id = chosen(ids)
    stop_for_guideline(None, trace_id)
    st.session_state[IN_HAND] = trace_id
    place = ids.index(trace_id)
    with read_transaction(workspace().engine) as connection:
        occasion = places.occasion_of(connection, user().name, trace_id)
    annotator(
        desk_frame(trace_id, occasion, {"has_previous": place > 0, "has_next": place < len(ids) - 1, **progress(ids)}),
        key=KEY,
        on_span=lambda: follow_span(trace_id),
        on_act=lambda: follow_act(ids),
    )


def desk_frame(trace_id: str, occasion: int, header: dict[str, Json]) -> dict[str, Json]:
    """What the island is given. What it keeps by person and trace (undo, unsent work) it keeps by occasion too."""
    name = user().name
    DOCUMENTS.prepare(grants.Grant(name, trace_id, occasion))
    return frame(
        trace_id=trace_id,
        token=trace_token(trace_id, occasion),
        token_s=grants.MAX_AGE_S,
        user=name if occasion == queue.FIRST else f"{name}#{occasion}",
        state=item_state.state(workspace().engine, annotator=name, trace_id=trace_id, occasion=occasion),
        dimensions=dimension_texts(),
        categories=categories(),
        span=st.query_params.get("span"),
        queue=header,
        base=st.get_option("server.baseUrlPath"),
    )


def chosen(ids: list[str]) -> str:
    """The trace that the address names; else the newest draft, the first that is still open, the first of all."""
    trace_id = st.query_params.get("trace")
    if trace_id in ids:
        return trace_id
    if trace_id is not None:
        st.info(plain(f"This workspace holds no trace {trace_id!r}. Your own next trace is shown instead."))
    with read_transaction(workspace().engine) as connection:
        touched = labels.touched(connection, user().name)
    left = [one for one in ids if touched.get(one, "open") == "open"]
    drafts = [one for one in touched if one in left]
    return next(iter([*reversed(drafts), *left, *ids]))


def progress(ids: list[str]) -> dict[str, Json]:
    """How many traces this person has submitted; a skipped one is not done."""
    with read_transaction(workspace().engine) as connection:
        reviews = labels.reviews(connection, tables.review.c.annotator == user().name)
    done = {review.trace_id for review in reviews if review.status == "submitted"}
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
