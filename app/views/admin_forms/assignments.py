"""The administrator's forms of assignments: people by queue with their progress, and people by item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st
from sqlalchemy import Connection

from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted
from tracejury.app.session import say, user, workspace
from tracejury.app.views.admin_forms.acting import attempt
from tracejury.app.views.admin_forms.queues import chosen_rows, items_table, now
from tracejury.ingest.store import read_transaction
from tracejury.judging.labels.my_work import return_traces
from tracejury.judging.queues import places, queue_changes
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.queues.assignment import Assignments, all_assignments
from tracejury.judging.store import people


def show_assignments() -> None:
    with read_transaction(workspace().engine) as connection:
        known = queue.queues(connection)
        names = [one.name for one in people.people(connection) if one.active]
        loads = places.workload(connection, now=now())
        assigned = all_assignments(connection)
    if not known:
        st.info("This workspace holds no queues. Try: create one under Queues.")
        return
    table = people_by_queue(known, names, loads, assigned)
    if not table.empty:
        layout.title(
            "People and queues",
            "Each cell counts the items that the person has done, has open, and is "
            "assigned; – means that the person is not in the queue.",
        )
        st.dataframe(table, hide_index=True)
    by_key = {row.queue_key: row.name for row in known}
    key = int(st.selectbox("Queue", list(by_key), format_func=lambda one: by_key[one], key="assigned_queue") or 0)
    with st.container(border=True):
        layout.title("People in this queue")
        queue_people(key, names, assigned.get(key, Assignments()))
    with st.container(border=True):
        layout.title("Assignments by item")
        item_people(key, names)


def people_by_queue(
    known: list[Any], names: list[str], loads: list[places.Load], assigned: dict[int, Assignments]
) -> pd.DataFrame:
    """One row per person, one column per queue."""
    by_place = {(load.annotator, load.queue_key): load for load in loads}
    everyone = sorted({*names, *(load.annotator for load in loads)})
    rows = []
    for name in everyone:
        cells = {
            row.name: load_text(by_place.get((name, row.queue_key)))
            if assigned.get(row.queue_key, Assignments()).concerns(name) or (name, row.queue_key) in by_place
            else "–"
            for row in known
        }
        rows.append({"person": name} | cells)
    return pd.DataFrame(rows)


def load_text(load: places.Load | None) -> str:
    if load is None:
        return "0 done"
    parts = [f"{load.done} done"]
    parts += [f"{load.at_work} at work"] if load.at_work else []
    parts += [f"{load.waiting} waiting"] if load.waiting else []
    return ", ".join(parts)


def queue_people(key: int, names: list[str], assigned: Assignments) -> None:
    with st.form(f"queue-people-{key}", border=False):
        chosen = st.multiselect(
            "Only these people (empty: everyone)", sorted({*names, *assigned.queue}), sorted(assigned.queue),
            key=f"people-of-{key}", accept_new_options=not names,
        )  # fmt: skip
        if st.form_submit_button("Save") and attempt(
            lambda connection: queue_changes.assign_queue(connection, key, chosen, by=user().name, now=now())
        ):
            say(f"The queue is open to {', '.join(chosen)}." if chosen else "The queue is open to everyone.")


def item_people(key: int, names: list[str]) -> None:
    items = items_table(key)
    traces = chosen_rows(items, f"assign-{key}-{len(items)}")
    st.caption(
        "Each row is a trace, each column a person. counted: within the wanted number of people; extra: submitted "
        "after that number was reached; late: submitted after the lease expired; again: the hidden repeat; assigned: "
        "reserved for the person."
    )
    chosen = st.multiselect("People", names, key=f"assign-people-{key}", accept_new_options=not names)
    reassign(key, names, chosen)
    give_back(traces, chosen)
    with st.container(horizontal=True):
        if st.button("Assign", key="assign", type="primary", disabled=not (traces and chosen)):
            report_change(queue_changes.assign_items, key, traces, chosen, "kept")
        if st.button("Unassign", key="unassign", disabled=not (traces and chosen)):
            report_change(queue_changes.unassign_items, key, traces, chosen, "released")
        if st.button(
            "Distribute unassigned items",
            key="share_out",
            disabled=not chosen,
            help="Assigns all unassigned items evenly, whether or not rows are selected.",
        ):
            done = attempt(
                lambda connection: queue_changes.share_out(connection, key, chosen, by=user().name, now=now())
            )
            if done:
                say(f"Distributed: {', '.join(f'{name} {count}' for name, count in done.value.items())}.")


def reassign(key: int, names: list[str], chosen: list[str]) -> None:
    """Everything that one person has not finished goes to the people chosen, who are asked for once."""
    with st.popover("Reassign open places of a person"):
        leaver = st.selectbox("From", names, index=None, key=f"reassign-from-{key}", accept_new_options=not names)
        heirs = [name for name in chosen if name != leaver]
        st.caption(
            f"To {', '.join(heirs)}." if heirs else "Nobody to reassign to yet. Try: choose people under People."
        )
        if st.button("Reassign", key="reassign", disabled=not (leaver and heirs)):
            done = attempt(
                lambda connection: queue_changes.reassign(
                    connection, key, str(leaver), heirs, by=user().name, now=now()
                )
            )
            if done:
                shares = ", ".join(f"{name} {count}" for name, count in done.value.items())
                say(f"Open places of {leaver} reassigned: {shares}. Drafts of {leaver} stay stored.")


def give_back(chosen_traces: list[str], chosen: list[str]) -> None:
    """Ask people to look again at traces that they submitted; they find the traces under My work, with the reason."""
    with st.popover("Return for another look", disabled=not (chosen_traces and chosen)):
        reason = st.text_area("Reason", key="return_reason", help="The annotator reads it at the desk with ⇧D.")
        while_blind = st.checkbox(
            "May be read while blind",
            key="return_while_blind",
            help="The annotator can still read the reason after reopening the trace. Tick this only if the reason "
            "says nothing about judges' findings or other people's labels.",
        )
        if st.button("Return", key="return", type="primary", disabled=not reason.strip()):
            done = attempt(
                lambda connection: return_traces(
                    connection, chosen_traces, chosen, by=user().name, reason=reason, while_blind=while_blind
                )
            )
            if done:
                say(f"{counted(done.value, 'submitted trace')} returned.")


def report_change(change: Callable[..., int], key: int, traces: list[str], chosen: list[str], word: str) -> None:
    def work(connection: Connection) -> int:
        return change(connection, key, traces, chosen, by=user().name, now=now())

    done = attempt(work)
    if done:
        say(f"{counted(done.value, 'place')} {word}.")
