"""For administrators: people and roles, queues, who is assigned to what, the audit log, backups, health."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import streamlit as st
from sqlalchemy import Connection

from tracejury.app.api.invitation import PATH
from tracejury.app.components import layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.drilldown import open_in_compare, open_in_explore
from tracejury.app.components.estimate_text import plain
from tracejury.app.config import config
from tracejury.app.listings import blind_to_me
from tracejury.app.session import deferred, link_params, must, say, shown_message, user, workspace
from tracejury.app.views.admin_forms import assignments, queues
from tracejury.app.views.admin_forms.acting import attempt
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels import guidelines
from tracejury.judging.labels.sightings import is_blind_required, require_blind
from tracejury.judging.reports import health
from tracejury.judging.store import people
from tracejury.judging.store.audit import audit_log, record
from tracejury.judging.store.invitations import MOST_DAYS, invitations, invite, revoke
from tracejury.judging.store.locks import SETTINGS
from tracejury.judging.store.people import ROLES, Person

MEBIBYTE = 1 << 20


def page() -> None:
    must("admin")
    layout.heading("Admin")
    view = st.segmented_control(
        "View", list(VIEWS), default="People", required=True, key="admin_view", label_visibility="collapsed"
    )
    layout.done(shown_message())
    VIEWS[str(view)]()


# ---- people ----------------------------------------------------------------------------------------------------


def show_people() -> None:
    with read_transaction(workspace().engine) as connection:
        known = people.people(connection)
        read = guidelines.readers(connection)
    mode = config().sign_in
    st.caption(
        {
            "off": "Sign-in is off: everyone who can open this address has all rights. Try: add an administrator, "
            "then set TRACEJURY_SIGN_IN=password or oidc.",
            "password": "People sign in with the passwords set on this page.",
            "oidc": "People sign in with the identity provider; their e-mail address identifies them.",
        }[mode]
    )
    blind_switch()
    if known:
        st.dataframe(pd.DataFrame([person_row(one, read) for one in known]), hide_index=True)
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        layout.title("Add a person")
        add_form()
        if mode == "password":
            invite_form()
    with right, st.container(border=True):
        layout.title("Change a person")
        if known:
            change_form(known)
        else:
            st.caption("No people are added yet.")


def blind_switch() -> None:
    """Everyone labels blind: pages and exports refuse a trace to whoever has not submitted it."""
    with read_transaction(workspace().engine) as connection:
        required = is_blind_required(connection)
    chosen = st.toggle(
        "Require blind labels", required, key="blind_required",
        help="Compare, Adjudicate, rows and exports show a person only the traces that this person has submitted. "
            "Off: labels are stored as not blind if their author saw judges or others before submitting.",
    )  # fmt: skip
    if chosen != required:
        with write_transaction(workspace().engine, SETTINGS) as connection:
            require_blind(connection, required=chosen, by=user().name)


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
    turn = st.session_state.get("people_added", 0)  # fields of their own for the next person: nothing is left in them
    with st.form("add_person", clear_on_submit=False, border=False):
        name = st.text_input(
            "Name", key=f"new_name_{turn}", help="Every label records this name; it cannot be changed later."
        )
        role = st.selectbox("Role", ROLES, key=f"new_role_{turn}")
        email = st.text_input("E-mail", key=f"new_email_{turn}")
        password = st.text_input("Password", type="password", key=f"new_password_{turn}", autocomplete="new-password")
        if st.form_submit_button("Add", type="primary"):
            done = attempt(
                lambda connection: people.add_person(
                    connection, name, role=role, email=email or None, password=password or None, by=user().name
                )
            )
            if done:
                st.session_state["people_added"] = turn + 1
                say(f"{name.strip()} is added as {role}.")


def invite_form() -> None:
    """A link by which a new person sets a password; it is shown once, and the store keeps a hash of it."""
    layout.title("Invite a person", "The link works once. Whoever opens it chooses a password for this name.")
    secret = None
    with st.form("invite", border=False):
        name = st.text_input("Name", key="invite_name")
        role = st.selectbox("Role", ROLES, key="invite_role")
        days = st.number_input("Expires after days", 1, MOST_DAYS, 7, key="invite_days")
        if st.form_submit_button("Create link"):
            done = attempt(
                lambda connection: invite(
                    connection, name, role=role, days=int(days), by=user().name, now=time.time_ns() // 1000
                )
            )
            secret = done.value if done else None
    if secret is not None:
        parts = urlsplit(st.context.url or "")
        st.code(f"{parts.scheme}://{parts.netloc}{PATH}?code={secret}", language=None, wrap_lines=True)
        st.caption("Send this link to the person. It is not shown again.")
    open_invitations()


def open_invitations() -> None:
    now = time.time_ns() // 1000
    with read_transaction(workspace().engine) as connection:
        known = invitations(connection, now=now)
    for one in known:
        with st.container(horizontal=True, vertical_alignment="center"):
            until = f"{datetime.fromtimestamp(one.expires_at / 1e6, UTC):%Y-%m-%d %H:%M} UTC"
            st.text(f"{one.name}, {one.role}, until {until}")
            if st.button("Revoke", key=f"revoke-{one.key}") and attempt(revoker(one.key, now)):
                say(f"The invitation of {one.name} is revoked.")


def revoker(key: int, now: int) -> Callable[[Connection], bool]:
    def work(connection: Connection) -> bool:
        revoke(connection, key, by=user().name, now=now)
        return True

    return work


def change_form(known: list[Person]) -> None:
    by_name = {one.name: one for one in known}
    name = str(st.selectbox("Person", list(by_name), key="change_name"))
    one = by_name[name]
    with st.form(f"change-{name}", border=False):
        role = st.selectbox("Role", ROLES, index=ROLES.index(one.role), key=f"role-{name}")
        email = st.text_input("E-mail", one.email or "", key=f"email-{name}")
        active = st.checkbox("Active", one.active, key=f"active-{name}", help="Inactive people cannot sign in.")
        turn = st.session_state.get(f"changed-{name}", 0)
        password = st.text_input(
            "New password", type="password", key=f"password-{name}-{turn}", autocomplete="new-password"
        )
        if st.form_submit_button("Save"):
            done = attempt(
                lambda connection: people.change_person(
                    connection, name, by=user().name, role=role, email=email, active=active, password=password or None
                )
            )
            if done:
                st.session_state[f"changed-{name}"] = turn + 1
                say(f"{name} is changed.")


# ---- audit, backup, health -------------------------------------------------------------------------------------


def show_audit() -> None:
    with read_transaction(workspace().engine) as connection:
        log = audit_log(connection, limit=2000)
    if log.empty:
        st.info("The audit log is empty.")
        return
    with st.container(horizontal=True):
        who = st.multiselect("Who", sorted(set(log["who"])), key="audit_who")
        what = st.multiselect("What", sorted(set(log["what"])), key="audit_what")
    rows = log[(log["who"].isin(who) | (not who)) & (log["what"].isin(what) | (not what))]
    st.dataframe(rows, hide_index=True)
    st.caption(f"Entries, newest first: {len(rows):,} shown of {len(log):,}.")


def show_backup() -> None:
    folder = workspace().home / health.FOLDER
    st.caption(
        "A backup is a full copy of the database; people can keep working while it is made. Store a copy on another "
        "machine. Never copy the SQLite file of a running workspace: what was saved last may be missing. Try: "
        "`tracejury backup FILE` and `tracejury restore FILE`."
    )
    if st.button("Back up now", type="primary", key="backup"):
        try:
            path = health.backup(workspace().engine, folder)
        except health.BackupError as problem:
            st.error(plain(f"Not done: {problem}."))
        else:
            with write_transaction(workspace().engine, SETTINGS) as connection:
                record(connection, who=user().name, what="backup", subject=path.name)
            st.success(f"{path.name}: {size(path.stat().st_size)}.")
    for one in health.backups(folder)[:10]:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{one.name} · {size(one.stat().st_size)}")
            st.download_button(
                "Download",
                data=deferred(reader(one), role="admin"),
                file_name=one.name,
                key=f"get-{one.name}",
                on_click="ignore",
            )


def reader(file: Path) -> Callable[[], bytes]:
    return file.read_bytes


def show_health() -> None:
    blind = blind_to_me()
    state = health.health(workspace().engine, hidden=blind)
    with st.container(horizontal=True):
        st.metric("Database", state.database, border=True)
        st.metric("Size", "on the database server" if state.bytes is None else size(state.bytes), border=True)
        st.metric(
            "Write-ahead log", "none" if state.log_bytes is None else size(state.log_bytes), border=True,
            help="Changes that are saved but not yet copied into the database file; SQLite copies them automatically.",
        )  # fmt: skip
        st.metric("Traces", f"{state.traces:,}", border=True)
        st.metric(
            "Not fully readable", f"{state.unread:,}", border=True,
            help="Traces with model calls without messages, tool calls without text, or nothing to read: see Ingest.",
        )  # fmt: skip
        st.metric(
            "Label rows", f"{state.labels:,}", border=True,
            help="Rows of all versions of errors and scores that annotators stored; no version is overwritten.",
        )  # fmt: skip
    open_in_explore(link_params(), key="traces-open", label="All traces in Explore")
    with st.expander("Label rows by person", on_change="rerun", key="label_rows") as opened:
        if opened.open:
            label_rows()
    with st.container(border=True):
        layout.title("Unfinished judge runs")
        if state.runs:
            unfinished(state.runs)
        else:
            st.caption("None.")
    with st.container(border=True):
        newest_failures(state)
        if blind:
            st.caption("Traces that you are labelling blind are left out.")


def newest_failures(state: health.Health) -> None:
    layout.title("Newest judge failures")
    if state.errors:
        failed = pd.DataFrame(state.errors, columns=["dimension", "trace_id", "reason"])
        row = data_table(failed, key="failures", is_chosen=True)
        if row is not None:
            open_in_compare(link_params(trace=str(failed["trace_id"].iloc[row])), key="failure-open")
    else:
        st.caption("None.")


def label_rows() -> None:
    """Whose they are, changes of one label each counted, and the way to the traces of one person."""
    with read_transaction(workspace().engine) as connection:
        table = health.label_rows(connection)
    row = data_table(table, key="label_rows_of", is_chosen=True, width="content")
    if row is None:
        st.caption("Every change of a label adds a row. Select a person to list the traces that the person submitted.")
    else:
        open_in_explore(link_params(facet_labelled_by=str(table["annotator"].iloc[row])), key="label-rows-open")


def unfinished(runs: Sequence[health.RunHealth]) -> None:
    alive = {None: "no process owns it", True: "at work", False: "process gone"}
    table = pd.DataFrame(
        [
            {
                "run": run.run_key,
                "name": run.name,
                "status": run.status,
                "process": alive[run.is_alive],
                "seen": "never" if run.seen_s is None else f"{run.seen_s:.0f} s ago",
            }
            for run in runs
        ]
    )
    row = data_table(table, key="unfinished", is_chosen=True)
    if row is not None and st.button("Open in Runs", key="unfinished-open", icon=":material/gavel:"):
        run = runs[row]
        st.switch_page("views/runs/runs.py", query_params=link_params(run=f"{run.run_key} · {run.name}"))


def size(count: int) -> str:
    return f"{count / MEBIBYTE:,.1f} MiB"


VIEWS: dict[str, Callable[[], None]] = {
    "People": show_people,
    "Queues": queues.show_queues,
    "Assignments": assignments.show_assignments,
    "Audit log": show_audit,
    "Backup": show_backup,
    "Health": show_health,
}

page()
