"""What waits for the person at the screen, a search over their traces, and messages to and from those who lead."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pandas as pd
import streamlit as st

from tracejury.app.adjudicating import opinions_now
from tracejury.app.api.documents import DOCUMENTS
from tracejury.app.components import layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import open_in_work
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.config import config
from tracejury.app.grants import Grant
from tracejury.app.session import link_params, say, shown_message, user, workspace
from tracejury.ingest.store import read_transaction, trace_ids, write_transaction
from tracejury.ingest.store.search import Hit, search
from tracejury.judging.labels.comments import (
    LEADS,
    LONGEST,
    Comment,
    CommentError,
    mark_read,
    mentioned,
    messages,
    names_without_account,
    put_comment,
)
from tracejury.judging.labels.my_work import MyTrace, disputed, my_traces, returned, unread_comments
from tracejury.judging.queues.places import occasion_of
from tracejury.judging.queues.queue_store import queues
from tracejury.judging.store.locks import COMMENTS
from tracejury.judging.store.people import people
from tracejury.judging.store.spans import ordinals_of

MOST_CANDIDATES = 5_000  # spans that the index gives before the person's own traces are taken of them
MOST_HITS = 100
MOST_MESSAGES = 30  # read ones


def page() -> None:
    layout.heading("My work")
    layout.done(shown_message())
    with read_transaction(workspace().engine) as connection:
        places = {one.trace_id: one for one in my_traces(connection, user().name)}
        back = returned(connection, reader=user().name, role=user().role)
        every = mentioned(connection, reader=user().name, role=user().role)
        new = {one.comment_id for one in unread_comments(connection, reader=user().name, role=user().role)}
        named = [one for one in every if one.kind == "comment"]
        different, unseen = disputed(connection, user().name, disputes())
    search_box(places)
    traces("Open", [one.trace_id for one in places.values() if one.is_open], places, "No trace is open.")
    comments("Returned", back, places, "No trace was returned to you.")
    traces(
        "Disputed", different, places, "None of the traces on which you have seen other people's labels is disputed."
    )
    if unseen:
        st.caption(
            f"{counted(unseen, 'trace')} that you submitted left out: you have not seen other people's labels on them."
        )
    comments("Mentioned", named, places, "No comment that you may read mentions you.")
    message_list(new)
    mark_read(workspace().engine, new, reader=user().name)
    message_form()


def disputes() -> set[str]:
    return {trace_id for trace_id, one in opinions_now(workspace().secret()).disputes.items() if one.is_disputed}


# ---- lists -----------------------------------------------------------------------------------------------------


def traces(title: str, chosen: Sequence[str], places: dict[str, MyTrace], none: str) -> None:
    layout.title(f"{title} ({len(chosen)})")
    if not chosen:
        st.caption(none)
        return
    table = pd.DataFrame(
        [{"trace_id": one, "queue": (places[one].queue if one in places else None) or ""} for one in chosen]
    )
    row = data_table(table, key=f"mine-{title}", is_chosen=True, most=6)
    if row is not None:
        open_in_work(to_trace(chosen[row], places), key=f"mine-{title}-open")


def comments(title: str, chosen: Sequence[Comment], places: dict[str, MyTrace], none: str) -> None:
    """Where, by whom and when; the text is read at the desk, where that is recorded as seen."""
    layout.title(f"{title} ({len(chosen)})")
    if not chosen:
        st.caption(none)
        return
    with read_transaction(workspace().engine) as connection:
        names = {str(one.trace_id): ordinals_of(connection, str(one.trace_id)) for one in chosen}
    table = pd.DataFrame(
        [
            {
                "trace_id": one.trace_id,
                "span": names[str(one.trace_id)].get(one.span_id or "", ""),
                "from": one.author,
                "at (UTC)": time_text(one.written_at),
            }
            for one in chosen
        ]
    )
    row = data_table(table, key=f"mine-{title}", is_chosen=True, most=6)
    if row is not None:
        one = chosen[row]
        open_in_work(to_trace(str(one.trace_id), places, one.span_id), key=f"mine-{title}-open")
    st.caption("Press ⇧D at the desk to read it.")


def to_trace(trace_id: str, places: dict[str, MyTrace], span_id: str | None = None) -> dict[str, str]:
    key = places[trace_id].queue_key if trace_id in places else None
    return link_params(queue=None if key is None else str(key), trace=trace_id, span=span_id)


def time_text(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1e6, UTC):%Y-%m-%d %H:%M}"


# ---- search ----------------------------------------------------------------------------------------------------


def search_box(places: dict[str, MyTrace]) -> None:
    query = st.text_input(
        "Search my traces", key="mine_search", placeholder="A span must contain all words", icon=":material/search:"
    )
    if not query.strip():
        return
    hits = my_hits(query, reachable(places))
    if not hits:
        st.caption(plain(f"No span of your traces contains {query.strip()!r}."))
        return
    table = pd.DataFrame([{"trace_id": one.trace_id, "span": f"S{one.seq + 1}"} for one in hits])
    row = data_table(table, key="mine-hits", is_chosen=True, most=10)
    more = f", the first {MOST_HITS}" if len(hits) == MOST_HITS else ""
    st.caption(f"{counted(len(hits), 'span')}{more}. Select a row to open it.")
    if row is not None:
        open_in_work(to_trace(hits[row].trace_id, places, hits[row].span_id), key="mine-hits-open")


def reachable(places: dict[str, MyTrace]) -> set[str]:
    """The traces that this person can open: their own, and all where no queue stands before them."""
    with read_transaction(workspace().engine) as connection:
        if user().may("adjudicator") or not queues(connection):
            return {*places, *trace_ids(connection, with_steps=True)}
    return set(places)


def my_hits(query: str, open_to_me: set[str]) -> list[Hit]:
    """Spans of these traces that hold all words in the text that the desk shows, hidden names left out."""
    with read_transaction(workspace().engine) as connection:
        readable = [one for one in search(connection, query, limit=MOST_CANDIDATES) if one.trace_id in open_to_me]
        occasions = {one: occasion_of(connection, user().name, one) for one in {hit.trace_id for hit in readable}}
    shown: dict[str, set[int]] = {}
    hits: list[Hit] = []
    for hit in readable:
        if hit.trace_id not in shown:
            document = DOCUMENTS.get(Grant(user().name, hit.trace_id, occasions[hit.trace_id]))
            shown[hit.trace_id] = set.intersection(*(set(document.search(word)) for word in query.split()))
        if hit.seq in shown[hit.trace_id]:
            hits.append(hit)
        if len(hits) == MOST_HITS:
            break
    return hits


# ---- messages --------------------------------------------------------------------------------------------------


def message_list(new: Collection[str]) -> None:
    """The newest messages, and each that was not read before."""
    with read_transaction(workspace().engine) as connection:
        known = messages(connection, user().name)
    layout.title(f"Messages ({len(known)})")
    for one in (one for place, one in enumerate(known) if place < MOST_MESSAGES or one.comment_id in new):
        to = ", ".join(one.mentions) or "everyone"
        with st.container(border=True):
            st.caption(plain(f"{one.author} to {to}, {time_text(one.written_at)} UTC"))
            st.text(one.body)
    if not known:
        st.caption("You have no messages.")


def message_form() -> None:
    """A question or a notice; an annotator writes to those who lead, they to anybody or everyone."""
    leads = user().may("adjudicator")
    with read_transaction(workspace().engine) as connection:
        known = [one.name for one in people(connection) if one.active and (leads or one.role in LEADS)]
        others = names_without_account(connection) if config().sign_in == "off" else set()
    names = sorted({*known, *others} - {user().name})
    if not names and not leads:
        st.caption("There is nobody to write to: no administrator or researcher has an account yet.")
        return
    turn = st.session_state.get("messages_sent", 0)
    with st.form(f"message-{turn}", border=False):
        to = recipients(names, leads, turn)
        body = st.text_area("Message", key=f"message_body_{turn}", max_chars=LONGEST)
        if not st.form_submit_button("Send"):
            return
    if not to and not leads:
        st.error("Not sent: nobody is chosen. Try: choose who should read it.")
        return
    try:
        with write_transaction(workspace().engine, COMMENTS) as connection:
            put_comment(
                connection, comment_id=uuid.uuid4().hex, author=user().name, body=body, kind="message", to=to
            )  # fmt: skip
    except CommentError as error:
        st.error(plain(f"Not sent: {error}."))
        return
    st.session_state["messages_sent"] = turn + 1
    say("Message sent.")


def recipients(names: list[str], leads: bool, turn: int) -> list[str]:
    if not names:
        st.caption("To everyone. Nobody else is known here yet.")
        return []
    return st.multiselect("To (empty: everyone)" if leads else "To", names, key=f"message_to_{turn}")


page()
