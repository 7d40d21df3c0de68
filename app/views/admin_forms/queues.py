"""The administrator's forms of queues: make, change, put traces in and out, close and reopen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from datetime import time as clock
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import Connection

from tracejury.app import listings, options
from tracejury.app.components import layout
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.session import say, user, workspace
from tracejury.app.views.admin_forms.acting import attempt
from tracejury.ingest.store import read_transaction
from tracejury.judging.adjudication.practice import make_practice, results, with_answers
from tracejury.judging.labels import guidelines
from tracejury.judging.queues import places, queue_changes
from tracejury.judging.queues import queue_store as queue
from tracejury.judging.queues.queue_store import QueueSettings, QueueSpec, TraceFilter
from tracejury.judging.queues.strategies import STRATA, is_equal

SAMPLINGS = {
    "all": "all of them",
    "random": "a random sample",
    "stratified": "a stratified sample",
    "disputed": "more where judges disagree",
    "predicted": "more where errors are expected",
    "coverage": "more with rare tools and agents",
    "hand": "traces chosen by hand",
}
HIDEABLE: tuple[queue.Hidden, ...] = ("agent", "model")
PASS_MARK = 60  # percent that a form offers
NEWEST = 0
"""The choice "the newest" of guideline versions."""
PARTS = ("Settings", "Traces", "Close or reopen")
RESULTS = "Results"
"""The part of practice queues alone."""


def show_queues() -> None:
    with read_transaction(workspace().engine) as connection:
        known = queue.queues(connection)
    if known:
        shares = {
            name: st.column_config.TextColumn(name, alignment="right", help=about)
            for name, about in (
                ("overlap", "The share of traces that k people label"),
                ("repeats", "The share of traces that the same person gets a second time"),
            )
        }
        shares["places"] = st.column_config.NumberColumn(
            "places", help="People wanted, summed over traces; a practice queue wants no number of people"
        )
        shares["chances"] = st.column_config.TextColumn(
            "chances", help="Chances of its traces to be drawn from all traces of this workspace. Unknown: some were "
            "chosen by hand, put in later, or drawn elsewhere (a corpus sample keeps its own chances)."
        )  # fmt: skip
        shares["done"] = st.column_config.NumberColumn("done", help="Submissions that count, without hidden repeats")
        st.dataframe(
            pd.DataFrame([queue_row(row) for row in known]), hide_index=True, column_config=shares, placeholder="n/a"
        )
        with st.container(border=True):
            layout.title("Change a queue")
            change_form(known)
    else:
        st.caption(
            "This workspace holds no queues. Without a queue, annotators work through all traces in order of ingestion."
        )
    with st.container(border=True):
        layout.title("Create a queue")
        make_form()


def queue_row(row: Any) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": "practice" if row.is_practice else "live",
        "state": "open" if row.closed_at is None else "closed",
        "traces": row.items,
        "places": None if row.is_practice else row.places,
        "done": row.done,
        "chances": None if row.is_practice else chances_word(row),
        "due": "" if row.due_at is None else day_of(row.due_at).isoformat(),
        "k": row.k,
        "overlap": f"{row.overlap_share:.0%}",
        "repeats": f"{row.repeat_share:.0%}",
        "blind": row.blind,
        "guideline": "newest" if row.guideline_version is None else f"version {row.guideline_version}",
        "lease, h": row.lease_s / 3600,
        "seed": row.seed,
        "made by": row.author,
    }


def chances_word(row: Any) -> str:
    """Whether the traces of a queue had equal chances to be drawn, different ones, or unknown ones."""
    if row.unknown or row.least_chance is None:
        return "unknown"
    return "equal" if math.isclose(row.least_chance, row.most_chance) else "different"


# ---- making ----------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """What stands in the fields of a queue's form."""

    name: str
    k: int
    overlap: int
    repeats: int
    hours: float
    blind: bool
    hide: tuple[str, ...]
    version: int
    due: date | None
    answers_by: str | None
    after: int | None
    pass_mark: int

    @classmethod
    def of(cls, settings: QueueSettings) -> Given:
        return cls(
            name=settings.name,
            k=settings.k,
            overlap=round(settings.overlap_share * 100),
            repeats=round(settings.repeat_share * 100),
            hours=settings.lease_s / 3600,
            blind=settings.blind,
            hide=settings.hide,
            version=settings.guideline_version or NEWEST,
            due=None if settings.due_at is None else day_of(settings.due_at),
            answers_by=settings.answers_by,
            after=settings.after_key,
            pass_mark=PASS_MARK if settings.pass_mark is None else settings.pass_mark,
        )

    def values(self) -> dict[str, Any]:
        """As `QueueSettings` wants them."""
        return {
            "name": self.name.strip(),
            "k": self.k,
            "overlap_share": self.overlap / 100,
            "repeat_share": self.repeats / 100,
            "blind": self.blind,
            "lease_s": round(self.hours * 3600),
            "hide": tuple(name for name in HIDEABLE if name in self.hide),
            "guideline_version": None if self.version == NEWEST else self.version,
            "due_at": None if self.due is None else end_of(self.due),
            "answers_by": self.answers_by,
            "after_key": self.after,
            "pass_mark": None if self.after is None else self.pass_mark,
        }


def make_form() -> None:
    traces = listings.traces()
    if traces.empty:
        st.caption("This workspace holds no traces. Try: the Ingest page.")
        return
    chosen_by, seed = trace_filter(traces, "filter")
    with read_transaction(workspace().engine) as connection:
        chances = queue.draw_traces(connection, chosen_by, seed=seed)
    ids = list(chances)
    how = "chosen by hand" if chosen_by.sampling == "hand" else "match these filters"
    st.caption(f"{counted(len(ids), 'trace')} of {len(traces):,} {how}. {chances_words(chances)}")
    with st.form("make_queue", border=False):
        settings = fields(Given.of(QueueSettings(name="new", k=2, repeat_share=0.05))._replace(name=""), "queue")
        practice = st.checkbox(
            "Practice",
            False,
            key="queue_practice",
            help="Every person labels all items and sees the correct answers afterwards. Left out are traces of an "
            "open blind queue and traces without correct answers.",
        )
        if st.form_submit_button("Create queue", type="primary"):
            make_queue(
                dict.fromkeys(for_practice(ids, settings.answers_by)) if practice else chances,
                lambda: QueueSpec(
                    **settings.values(), author=user().name, seed=seed, practice=practice, chosen_by=chosen_by
                ),
            )


def chances_words(chances: Mapping[str, float | None]) -> str:
    """What estimates may do with traces that were drawn so."""
    if not chances:
        return ""
    if None in chances.values():
        return "Their chance to be drawn is unknown: rates of all traces cannot be estimated from them."
    if is_equal(chances):
        return "All have the same chance to be drawn: every estimate holds for the traces that match."
    return (
        "Their chances to be drawn differ and are stored. The table `corpus_rates` weights by them; other "
        "estimates hold only for the traces of the queue."
    )


def for_practice(ids: list[str], answers_by: str | None) -> list[str]:
    """The traces that may be practised: no open blind queue holds them, and their right answers are known."""
    with read_transaction(workspace().engine) as connection:
        live = queue.live_blind(connection)
        known = with_answers(connection, ids, answers_by=answers_by, author=user().name)
    free = [one for one in known if one not in live]
    if len(free) < len(ids):
        st.info(
            f"{counted(len(ids) - len(free), 'trace')} left out: in an open blind queue, or without correct answers."
        )
    return free


def make_queue(chances: Mapping[str, float | None], spec: Callable[[], QueueSpec]) -> None:
    """The spec is built here, so that an impossible one is refused in words like any other problem."""

    def make(connection: Connection) -> int:
        new_queue = spec()
        if new_queue.practice:
            return make_practice(connection, new_queue, list(chances), now=now())
        return queue.make_queue(connection, new_queue, list(chances), now=now(), chances=chances)

    if attempt(make):
        forget_hand_picked("filter")
        say(f"The queue is created with {counted(len(chances), 'trace')}.")


def fields(start: Given, key: str) -> Given:
    """The fields of a queue, filled with `start`."""
    name = st.text_input("Name", start.name, key=f"{key}_name")
    with st.container(horizontal=True):
        k = st.number_input(
            "People per overlap trace (k)", 1, 20, start.k, key=f"{key}_k",
            help="Number of people who label each overlap trace independently.",
        )  # fmt: skip
        overlap = st.number_input(
            "Overlap, % of traces", 0, 100, start.overlap, key=f"{key}_overlap",
            help="Share of traces that k people label; one person labels each of the other traces.",
        )  # fmt: skip
        repeats = st.number_input(
            "Hidden repeats, %", 0, 100, start.repeats, key=f"{key}_repeats",
            help="Share of a person's traces that the queue repeats unannounced, to measure whether the person "
                "agrees with themselves.",
        )  # fmt: skip
        hours = st.number_input(
            "Lease, hours", 0.1, 240.0, start.hours, key=f"{key}_hours",
            help="Hours for which an opened trace is reserved for the person who opened it; afterwards the queue may "
                "assign it to another person.",
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom"):
        versions = known_versions()
        version = st.selectbox(
            "Guideline", versions, index=versions.index(start.version), key=f"{key}_guideline",
            format_func=lambda one: "the newest" if one == NEWEST else f"version {one}", width=180,
            help="Annotators must acknowledge this version before they work in the queue; their labels record it.",
        )  # fmt: skip
        due = st.date_input(
            "Due", start.due, key=f"{key}_due", width=180,
            help="The due date is shown to everyone and not enforced. It means the end of that day, UTC.",
        )  # fmt: skip
        blind = st.checkbox(
            "Blind",
            start.blind,
            key=f"{key}_blind",
            help="Hides judges' findings and other annotators' labels until the person submits the trace.",
        )
        hide = st.pills(
            "Hide from people", HIDEABLE, selection_mode="multi", default=list(start.hide), key=f"{key}_hide"
        )
    answers_by, after, pass_mark = practice_fields(start, key)
    return Given(
        answers_by=answers_by, after=after, pass_mark=pass_mark,
        name=str(name), k=int(k), overlap=int(overlap), repeats=int(repeats), hours=float(hours), blind=bool(blind),
        hide=tuple(hide or ()), version=int(version or NEWEST), due=due if isinstance(due, date) else None,
    )  # fmt: skip


def practice_fields(start: Given, key: str) -> tuple[str | None, int | None, int]:
    """Whose labels are right where the queue is practice; after which practice, and with which mark, it opens else."""
    with read_transaction(workspace().engine) as connection:
        practised = {row.queue_key: row.name for row in queue.queues(connection) if row.is_practice}
    people = [str(name) for name in options.people()["annotator"]]
    authors: list[str | None] = [
        None,
        *people,
        *([start.answers_by] if start.answers_by and start.answers_by not in people else []),
    ]
    afters: list[int | None] = [None, *practised]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        answers_by = st.selectbox(
            "Correct answers of practice", authors, index=authors.index(start.answers_by), key=f"{key}_answers_by",
            width=220,
            format_func=lambda one: one or "the gold, else my own labels",
            help="Whose labels a person's practice is compared with; only traces that they submitted are taken.",
        )  # fmt: skip
        after = st.selectbox(
            "Opens after practice", afters, index=afters.index(start.after) if start.after in afters else 0,
            key=f"{key}_after", width=220, format_func=lambda one: "at once" if one is None else practised[one],
            help="The queue gives a person traces only when they have done this practice queue and reached the mark.",
        )  # fmt: skip
        mark = st.number_input(
            "Pass mark, %", 0, 100, start.pass_mark, key=f"{key}_mark", width=140,
            help="Percent of the points of practice: errors caught and scores equal to the correct ones.",
        )  # fmt: skip
    return answers_by, after, int(mark)


def known_versions() -> list[int]:
    with read_transaction(workspace().engine) as connection:
        return [NEWEST, *(one.version for one in guidelines.guidelines(connection))]


def trace_filter(traces: pd.DataFrame, key: str) -> tuple[TraceFilter, int]:
    """Which traces, chosen by the person; and the seed of samples and orders."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sampling: Any = st.selectbox(
            "Take", list(SAMPLINGS), format_func=lambda one: SAMPLINGS[one], key=f"{key}_sampling", width=240
        )
        stratum: Any = "format"
        if sampling == "stratified":
            stratum = st.selectbox("By", STRATA, key=f"{key}_stratum", width=120)
        count = None
        if sampling != "hand":
            count = st.number_input(
                "Max. traces", 1, 1_000_000, None, key=f"{key}_count", width=120, placeholder="no limit"
            )
        seed = st.number_input(
            "Seed",
            0,
            2**31 - 1,
            1,
            key=f"{key}_seed",
            width=120,
            help="Seed of random samples and orders; the same seed gives the same result.",
        )
    if sampling == "hand":
        return TraceFilter(trace_ids=hand_picked(set(traces["trace_id"]), key), sampling="hand"), int(seed)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        formats = st.multiselect("Formats", sorted(set(traces["format"])), key=f"{key}_formats", width=200)
        search = st.text_input("Name or goal contains", key=f"{key}_search", width=220)
        spans = st.number_input("Min. spans", 0, 1_000_000, 0, key=f"{key}_spans", width=140)
        with_errors = st.checkbox("With failed spans", key=f"{key}_errors")
        untouched = st.checkbox("Not submitted by anyone", key=f"{key}_untouched")
    chosen_by = TraceFilter(
        formats=tuple(formats), search=search.strip(), min_spans=int(spans), with_errors=with_errors,
        untouched=untouched, sampling=sampling, stratum=stratum, count=None if count is None else int(count),
    )  # fmt: skip
    return chosen_by, int(seed)


def hand_picked(known: Collection[str], key: str) -> tuple[str, ...]:
    """The trace IDs of a field, in their order; those that the workspace lacks are named below it."""
    text = st.text_area(
        "Trace IDs, one on each line", key=f"{key}_ids", persist_state="session",
        help="The queue takes these traces in this order. The Explore page adds the traces that are selected there.",
    )  # fmt: skip
    ids = lines_of(text)
    unknown = [one for one in ids if one not in known]
    if unknown:
        st.error(
            plain(
                f"This workspace holds no trace {unknown[0]!r}; {len(unknown):,} of {counted(len(ids), 'ID')} unknown. "
                "Try: correct or delete these lines."
            )
        )
    return ids


def lines_of(text: str) -> tuple[str, ...]:
    """The lines that are not empty, each once."""
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def pick_by_hand(trace_ids: Sequence[str]) -> None:
    """Add traces to those of the form for a new queue, and let the Admin page open with it."""
    picked = lines_of(st.session_state.get("filter_ids") or "")
    st.session_state["filter_ids"] = "\n".join(dict.fromkeys([*picked, *trace_ids]))
    st.session_state["filter_sampling"], st.session_state["admin_view"] = "hand", "Queues"


def forget_hand_picked(key: str) -> None:
    """Empty the field of trace IDs when its traces are in a queue."""
    st.session_state.pop(f"{key}_ids", None)


# ---- changing --------------------------------------------------------------------------------------------------


def change_form(known: list[Any]) -> None:
    by_key = {row.queue_key: row for row in known}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = int(
            st.selectbox("Queue", list(by_key), format_func=lambda one: by_key[one].name, key="change_queue", width=320)
            or 0
        )
        parts = (*PARTS, RESULTS) if by_key[key].is_practice else PARTS
        part = st.segmented_control("Part", parts, default=PARTS[0], required=True, key="change_part")
    row = by_key[key]
    if part == "Settings":
        settings_form(row)
    elif part == "Traces":
        take_out(row)
        put_in(row)
    elif part == RESULTS:
        practice_results(row.queue_key)
    else:
        close_form(row)


def practice_results(key: int) -> None:
    """What each person reached, the lowest first."""
    with read_transaction(workspace().engine) as connection:
        table = results(connection, key)
    if table.empty:
        st.caption("No trace of this queue has been submitted yet.")
        return
    st.dataframe(
        table.sort_values("percent"), hide_index=True, placeholder="n/a",
        column_config={"percent": st.column_config.NumberColumn("percent", format="%.0f")},
    )  # fmt: skip
    st.caption(
        "points: errors caught and scores equal to the correct ones; of: the errors of either side and all correct "
        "scores."
    )


def settings_form(row: Any) -> None:
    before = Given.of(queue_changes.settings_of(row))
    with st.form(f"settings-{row.queue_key}", border=False):
        settings = fields(before, f"settings-{row.queue_key}")
        st.caption(
            "A changed k or overlap also applies to submitted work: the first k submissions of an item count, the "
            "others are stored as extra. Current leases keep their expiry."
        )
        if st.form_submit_button("Save", type="primary"):
            done = attempt(
                lambda connection: queue_changes.change_queue(
                    connection, row.queue_key, QueueSettings(**settings.values()), by=user().name, now=now()
                )
            )
            if done:
                changed = ", ".join(name.removesuffix("_at").replace("_", " ") for name in done.value)
                say(f"{row.name}: {changed} changed." if changed else f"{row.name} already had these settings.")


def take_out(row: Any) -> None:
    items = items_table(row.queue_key)
    chosen = chosen_rows(items, f"items-{row.queue_key}-{len(items)}")
    if st.button(f"Take {counted(len(chosen), 'trace')} out", key="take_out", disabled=not chosen):
        done = attempt(
            lambda connection: queue_changes.retire_traces(connection, row.queue_key, chosen, by=user().name, now=now())
        )
        if done:
            note = f" {done.value} had work, which stays stored." if done.value else ""
            say(f"{counted(len(chosen), 'trace')} removed from {row.name}.{note}")


def put_in(row: Any) -> None:
    with st.expander("Put traces in"):
        chosen_by, seed = trace_filter(listings.traces(), "more")
        with read_transaction(workspace().engine) as connection:
            selection = queue.find_traces(connection, chosen_by, seed=seed)
            here = set(places.traces_of(connection, row.queue_key))
        new = [one for one in selection if one not in here]
        how = "chosen by hand" if chosen_by.sampling == "hand" else "fit"
        st.caption(f"{counted(len(selection), 'trace')} {how}, {len(new):,} of them are not in {plain(row.name)}.")
        if st.button(f"Put {counted(len(new), 'trace')} in", key="put_in", disabled=not new):
            done = attempt(
                lambda connection: queue_changes.add_traces(connection, row.queue_key, new, by=user().name, now=now())
            )
            if done:
                forget_hand_picked("more")
                say(f"{counted(done.value, 'trace')} put into {row.name}.")


def close_form(row: Any) -> None:
    if row.closed_at is None:
        st.caption(
            "A closed queue assigns no more traces. Annotators may finish their open traces, and all labels "
            "stay stored."
        )
        if st.button("Close the queue", key="close_queue"):
            shut(row, "closed")
    else:
        st.caption(f"Closed since {datetime.fromtimestamp(row.closed_at / 1e6, UTC):%Y-%m-%d %H:%M} UTC.")
        if st.button("Reopen the queue", key="reopen_queue"):
            shut(row, "open again")


def shut(row: Any, state: str) -> None:
    change = queue_changes.close_queue if state == "closed" else queue_changes.reopen_queue
    if attempt(lambda connection: change(connection, row.queue_key, by=user().name, now=now())):
        say(f"{row.name} is {state}.")


# ---- tables of items -------------------------------------------------------------------------------------------


def items_table(queue_key: int) -> pd.DataFrame:
    """One row per live item, one column per person with the state of their work; see `matrix`."""
    with read_transaction(workspace().engine) as connection:
        rows = places.assignments(connection, queue_key, now=now())
        assigned = places.assigned_names(connection, queue_key)
    titles = dict(listings.traces()[["trace_id", "name"]].itertuples(index=False, name=None))
    return matrix(rows, assigned, titles)


def matrix(
    rows: list[tuple[str, int, str, int, str, bool]], assigned: dict[str, list[str]], titles: dict[str, str]
) -> pd.DataFrame:
    """trace, name, wanted, counted, then a column a person with the state of their work."""
    table: dict[str, dict[str, Any]] = {}
    for trace_id, goal, who, occasion, state, late in rows:
        line = table.setdefault(
            trace_id, {"trace": trace_id, "name": titles.get(trace_id, ""), "wanted": goal, "counted": 0}
        )
        if not who:
            continue
        is_again = occasion == queue.REPEAT
        line["counted"] += state == "counted" and not is_again
        text = f"{state}{', late' if late else ''}"
        known = line.get(who)
        line[who] = f"{known}; again {text}" if is_again and known else (f"again {text}" if is_again else text)
    for trace_id, names in assigned.items():
        for name in names if trace_id in table else ():
            known = table[trace_id].get(name)
            table[trace_id][name] = "assigned" if known is None else f"{known}, assigned"
    fixed = ["trace", "name", "wanted", "counted"]
    frame = pd.DataFrame(list(table.values()), columns=None if table else fixed)
    return frame[fixed + sorted(column for column in frame.columns if column not in fixed)].fillna("")


def chosen_rows(items: pd.DataFrame, key: str) -> list[str]:
    """The table of items; the traces of the rows that are ticked."""
    event: Any = st.dataframe(items, hide_index=True, on_select="rerun", selection_mode="multi-row", key=key)
    return [str(items["trace"].iloc[place]) for place in event.selection.rows if place < len(items)]


# ---- time ------------------------------------------------------------------------------------------------------


def now() -> int:
    return time.time_ns() // 1000


def end_of(day: date) -> int:
    """The last second of a day (UTC) in microseconds."""
    return int(datetime.combine(day, clock(23, 59, 59), UTC).timestamp()) * 1_000_000


def day_of(at: int) -> date:
    return datetime.fromtimestamp(at / 1e6, UTC).date()
