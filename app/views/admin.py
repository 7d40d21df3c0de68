"""For administrators: people and roles, queues and who holds what, the audit log, backups, health."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from app import loading
from app.components import layout
from app.components.figures import counted, plain
from app.config import config
from app.session import user, workspace
from ingest.store import reading, writing
from ingest.table import trace_frame
from judging.ledger import guidelines, health, people, queue
from judging.ledger.audit import audit_log, record
from judging.ledger.people import ROLES, PeopleError, Person
from judging.ledger.queue import QueueError, QueueSpec, TraceFilter

SAID = "admin_said"  # session key: what was done, shown once
SAMPLINGS = {
    "all": "all of them",
    "random": "a random sample",
    "stratified": "a sample with every format",
    "disputed": "where judges disagree most",
}
HIDEABLE: tuple[queue.Hidden, ...] = ("agent", "model")
MEBIBYTE = 1 << 20


def page() -> None:
    loading.must("admin")
    layout.heading("Admin")
    view = st.segmented_control(
        "View", list(VIEWS), default="People", required=True, key="admin_view", label_visibility="collapsed"
    )
    said = st.session_state.pop(SAID, None)
    if said:
        st.success(plain(said))
    VIEWS[str(view)]()


# ---- people ----------------------------------------------------------------------------------------------------


def show_people() -> None:
    with reading(workspace().engine) as connection:
        known = people.people(connection)
        read = guidelines.readers(connection)
    mode = config().sign_in
    st.caption(
        {
            "off": "Sign-in is off: everyone who reaches this address has every right. TRACEJURY_SIGN_IN=password or "
            "oidc turns it on; make an administrator first.",
            "password": "People sign in with the passwords given here.",
            "oidc": "People sign in with the provider; the e-mail address decides who they are here.",
        }[mode]
    )
    if known:
        st.dataframe(pd.DataFrame([person_row(one, read) for one in known]), hide_index=True)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        layout.title("Add a person")
        add_form()
    with right, st.container(border=True):
        layout.title("Change a person")
        if known:
            change_form(known)
        else:
            st.caption("Nobody is here yet.")


def person_row(one: Person, read: dict[str, int]) -> dict[str, Any]:
    return {
        "name": one.name,
        "shown as": one.display_name,
        "role": one.role,
        "e-mail": one.email or "",
        "password": "set" if one.has_password else "none",
        "active": one.active,
        "guideline read": f"version {read[one.name]}" if one.name in read else "none",
    }


def add_form() -> None:
    with st.form("add_person", clear_on_submit=False):
        name = st.text_input("Name", key="new_name", help="It stands at every label; it cannot be changed.")
        role = st.selectbox("Role", ROLES, key="new_role")
        email = st.text_input("E-mail", key="new_email")
        password = st.text_input("Password", type="password", key="new_password", autocomplete="new-password")
        if st.form_submit_button("Add", type="primary"):
            done = attempt(
                lambda connection: people.add_person(
                    connection, name, role=role, email=email or None, password=password or None, by=user().name
                )
            )
            if done:
                say(f"{name.strip()} is added as {role}.")


def change_form(known: list[Person]) -> None:
    by_name = {one.name: one for one in known}
    name = str(st.selectbox("Person", list(by_name), key="change_name"))
    one = by_name[name]
    with st.form(f"change-{name}"):
        role = st.selectbox("Role", ROLES, index=ROLES.index(one.role), key=f"role-{name}")
        email = st.text_input("E-mail", one.email or "", key=f"email-{name}")
        active = st.checkbox("Active", one.active, key=f"active-{name}", help="Who is not active cannot sign in.")
        password = st.text_input("New password", type="password", key=f"password-{name}", autocomplete="new-password")
        if st.form_submit_button("Save"):
            done = attempt(
                lambda connection: people.change_person(
                    connection, name, by=user().name, role=role, email=email, active=active, password=password or None
                )
            )
            if done:
                say(f"{name} is changed.")


# ---- queues ----------------------------------------------------------------------------------------------------


def show_queues() -> None:
    with reading(workspace().engine) as connection:
        known = queue.queues(connection)
    if known:
        st.dataframe(pd.DataFrame([queue_row(row) for row in known]), hide_index=True)
    else:
        st.caption("No queue yet: without one, people go through all traces in order of ingestion.")
    with st.container(border=True):
        layout.title("Make a queue")
        queue_form()


def queue_row(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": "practice" if row.is_practice else "in earnest",
        "traces": row.items,
        "places": row.places,
        "done": row.done,
        "k": row.k,
        "overlap": f"{row.overlap_share:.0%}",
        "repeats": f"{row.repeat_share:.0%}",
        "blind": row.blind,
        "lease (h)": row.lease_s / 3600,
        "seed": row.seed,
        "made by": row.author,
    }


def queue_form() -> None:
    traces = loading.traces()
    if traces.empty:
        st.caption("Bring in traces first.")
        return
    chosen_by, seed = trace_filter(traces)
    with reading(workspace().engine) as connection:
        ids = queue.find_traces(connection, chosen_by, seed=seed)
    st.caption(f"{counted(len(ids), 'trace')} of {len(traces):,} would be in it.")
    with st.form("make_queue"):
        name = st.text_input("Name", key="queue_name")
        with st.container(horizontal=True):
            k = st.number_input("People an overlap item wants (k)", 1, 20, 2, key="queue_k")
            overlap = st.number_input("Overlap, % of items", 0, 100, 100, key="queue_overlap")
            repeats = st.number_input("Hidden repeats, %", 0, 100, 5, key="queue_repeats")
            hours = st.number_input("Lease, hours", 0.1, 240.0, 4.0, key="queue_hours")
        with st.container(horizontal=True):
            blind = st.checkbox("Blind", True, key="queue_blind", help="Judges and others are hidden until submitted.")
            practice = st.checkbox("Practice", False, key="queue_practice", help="Everyone does all, with feedback.")
            hide = st.pills("Hide from people", HIDEABLE, selection_mode="multi", key="queue_hide")
        if st.form_submit_button("Make the queue", type="primary"):
            make_queue(
                ids,
                lambda: QueueSpec(
                    name=name.strip(), author=user().name, k=int(k), overlap_share=overlap / 100,
                    repeat_share=repeats / 100, blind=blind, seed=seed, lease_s=round(hours * 3600),
                    hide=tuple(name for name in HIDEABLE if name in (hide or ())), practice=practice,
                    chosen_by=chosen_by,
                ),
            )  # fmt: skip


def make_queue(ids: list[str], spec: Callable[[], QueueSpec]) -> None:
    """The spec is built here, so that an impossible one is refused in words like any other problem."""
    now = time.time_ns() // 1000
    if attempt(lambda connection: queue.make_queue(connection, spec(), ids, now=now)):
        say(f"The queue is made of {counted(len(ids), 'trace')}.")


def trace_filter(traces: pd.DataFrame) -> tuple[TraceFilter, int]:
    """Which traces, chosen by the person; and the seed of samples and orders."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        formats = st.multiselect("Formats", sorted(set(traces["format"])), key="filter_formats", width=200)
        search = st.text_input("Name or goal holds", key="filter_search", width=220)
        spans = st.number_input("At least so many spans", 0, 1_000_000, 0, key="filter_spans", width=170)
        with_errors = st.checkbox("With error spans", key="filter_errors")
        untouched = st.checkbox("Submitted by nobody", key="filter_untouched")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampling: Any = st.selectbox(
            "Take", list(SAMPLINGS), format_func=lambda key: SAMPLINGS[key], key="filter_sampling", width=240
        )
        count = st.number_input("At most", 1, 1_000_000, None, key="filter_count", width=120)
        seed = st.number_input("Seed", 0, 2**31 - 1, 1, key="filter_seed", width=120)
    chosen_by = TraceFilter(
        formats=tuple(formats), search=search.strip(), min_spans=int(spans), with_errors=with_errors,
        untouched=untouched, sampling=sampling, count=None if count is None else int(count),
    )  # fmt: skip
    return chosen_by, int(seed)


# ---- who holds what --------------------------------------------------------------------------------------------


def show_assignments() -> None:
    with reading(workspace().engine) as connection:
        known = queue.queues(connection)
    if not known:
        st.info("There is no queue. Make one under Queues.")
        return
    names = {row.queue_key: row.name for row in known}
    key = int(st.selectbox("Queue", list(names), format_func=lambda one: names[one], key="assigned_queue") or 0)
    with reading(workspace().engine) as connection:
        rows = queue.assignments(connection, key, now=time.time_ns() // 1000)
        titles = dict(trace_frame(connection)[["trace_id", "name"]].itertuples(index=False, name=None))
    st.dataframe(matrix(rows, titles), hide_index=True)
    st.caption(
        "One row a trace, one column a person. counted: among the people wanted; extra: submitted after enough others; "
        "“late”: after the lease ran out; “again”: the hidden repeat."
    )


def matrix(rows: list[tuple[str, int, str, int, str, bool]], titles: dict[str, str]) -> pd.DataFrame:
    """trace, name, wanted, counted, then a column a person with the state of their work."""
    table: dict[str, dict[str, Any]] = {}
    for trace_id, wanted, who, occasion, state, late in rows:
        line = table.setdefault(
            trace_id, {"trace": trace_id, "name": titles.get(trace_id, ""), "wanted": wanted, "counted": 0}
        )
        if not who:
            continue
        is_again = occasion == queue.REPEAT
        line["counted"] += state == "counted" and not is_again
        text = f"{state}{', late' if late else ''}"
        known = line.get(who)
        line[who] = f"{known}; again {text}" if is_again and known else (f"again {text}" if is_again else text)
    frame = pd.DataFrame(list(table.values()))
    fixed = ["trace", "name", "wanted", "counted"]
    return frame[fixed + sorted(column for column in frame.columns if column not in fixed)].fillna("")


# ---- audit, backup, health -------------------------------------------------------------------------------------


def show_audit() -> None:
    with reading(workspace().engine) as connection:
        log = audit_log(connection, limit=2000)
    if log.empty:
        st.info("Nothing has been written down yet.")
        return
    with st.container(horizontal=True):
        who = st.multiselect("Who", sorted(set(log["who"])), key="audit_who")
        what = st.multiselect("What", sorted(set(log["what"])), key="audit_what")
    kept = log[(log["who"].isin(who) | (not who)) & (log["what"].isin(what) | (not what))]
    st.dataframe(kept, hide_index=True)
    st.caption(f"The newest {len(log):,} entries, {len(kept):,} shown.")


def show_backup() -> None:
    folder = workspace().home / health.FOLDER
    st.caption("A backup is a whole copy of the database, made while people go on working. Keep it elsewhere too.")
    if st.button("Back up now", type="primary", key="backup"):
        try:
            made = health.backup(workspace().engine, folder)
        except health.BackupError as problem:
            st.error(plain(f"Not done: {problem}."))
        else:
            with writing(workspace().engine) as connection:
                record(connection, who=user().name, what="backup", subject=made.name)
            st.success(f"{made.name}: {size(made.stat().st_size)}.")
    for one in health.backups(folder)[:10]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{one.name} · {size(one.stat().st_size)}")
            st.download_button(
                "Download", data=reader(one), file_name=one.name, key=f"get-{one.name}", on_click="ignore"
            )


def reader(file: Path) -> Callable[[], bytes]:
    return file.read_bytes


def show_health() -> None:
    state = health.health(workspace().engine, now=time.time_ns() // 1000)
    with st.container(horizontal=True):
        st.metric("Database", state.database)
        st.metric("Size", "on its server" if state.bytes is None else size(state.bytes))
        st.metric("Write-ahead log", "none" if state.log_bytes is None else size(state.log_bytes))
        st.metric("Traces", f"{state.traces:,}")
        st.metric("Label rows", f"{state.labels:,}")
    layout.title("Judge runs that are not finished")
    if not state.runs:
        st.caption("None.")
    for run in state.runs:
        seen = "never seen" if run.seen_s is None else f"seen {run.seen_s:.0f} s ago"
        alive = {None: "no worker has it", True: "worker alive", False: "worker gone"}[run.is_alive]
        st.text(f"{run.run_key} {run.name}: {run.status}, {alive}, {seen}")
    layout.title("Newest failures of judges")
    if state.errors:
        st.dataframe(pd.DataFrame(state.errors, columns=["judge", "trace", "reason"]), hide_index=True)
    else:
        st.caption("None.")


def size(count: int) -> str:
    return f"{count / MEBIBYTE:,.1f} MiB"


# ---- acting ----------------------------------------------------------------------------------------------------


def attempt(work: Callable[[Any], object]) -> bool:
    """Do it in one write transaction. False, with the reason on the page, where it is refused."""
    if not user().may("admin"):
        st.error("Only an administrator does this.")
        return False
    try:
        with writing(workspace().engine) as connection:
            work(connection)
    except (PeopleError, QueueError) as problem:
        st.error(plain(f"Not done: {problem}."))
        return False
    return True


def say(text: str) -> None:
    """Show the page as it is after the change, with a word on what was done."""
    st.session_state[SAID] = text
    st.rerun()


VIEWS: dict[str, Callable[[], None]] = {
    "People": show_people,
    "Queues": show_queues,
    "Who holds what": show_assignments,
    "Audit log": show_audit,
    "Backup": show_backup,
    "Health": show_health,
}

page()
