"""What the researcher's pages read: the frames of a choice, kept until the store changes."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
import pandas as pd
import streamlit as st
from sqlalchemy import select

from tracejury.app.components.saved import saved_views
from tracejury.app.computing import WHOLE, Asked, Desk, MovedOnError, Rank, patience
from tracejury.app.session import Role, address, address_of, user, workspace
from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.table import query_frame, trace_frame
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.agreement.tables import InputName, Inputs
from tracejury.judging.labels.anchoring import at_work_blind
from tracejury.judging.labels.label_store import error_labels, newest, reviews
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.reports.arms import arm_pairs, read_arm
from tracejury.judging.reports.estimate_worker import Shelf
from tracejury.judging.reports.estimates import DERIVED, FRAMES, OPINIONS, Bench, Chosen, Question, make
from tracejury.judging.reports.estimates import Revision as Revision
from tracejury.judging.reports.export import Facts, inputs_of, selected_decisions
from tracejury.judging.reports.frames import (
    Counting,
    Frames,
    Selection,
    default_reference,
    guidelines_read,
    load_frames,
    read_splits,
    reference_annotators,
    revision,
    weight,
)
from tracejury.judging.reports.person_pairs import person_pairs, person_revision
from tracejury.judging.reports.workload import workload
from tracejury.judging.store import tables, views
from tracejury.judging.store.judge_models import VERSION_SHOWN, judge_versions, later_runs, repeats
from tracejury.judging.store.judge_models import judge_models as stored_judge_models

HEAVY = 1_000  # labels, scores and judgements together from which figures are always left to another process
SOON_S = 1.5  # figures of less than that are waited for so long, rather than older ones shown
WARM_S = 600.0
ATTEMPTS = 5  # at a file, of a revision that changes before all is made
AHEAD_S = 30.0  # figures that a page may ask for next are wanted this long
KEPT = 6  # choices whose frames and figures stay in memory
VERSION_GIVEN = 12  # characters of a version's hash that a side is asked by
SHOWN = (
    "repeated", "facts", "compared", "rated", "bias_marks", "bias_lines", "alpha_samples", "table.dimension_grid",
    "table.findings", "table.score_confusion", "table.score_prevalence", "table.score_flags",
    "table.table_01_error_map", "error_ceiling", "trace_rationales",
)  # fmt: skip
"""What pages show of the usual choice beside `WHOLE`, in the order in which it is made ready."""
is_wanted = threading.Event()
"""Set once somebody has opened a page that shows figures, or may lead to one."""
UNUSED = "split"  # name of an uploaded file that has no usable character


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a person chose to compare; None and empty mean all. `split` is `file` or `file:name`.

    `versions` are judge versions by hash, `repeat` the run that is compared with people, `formats` those of the
    traces, `guideline` the version that people had read.
    """

    reference: str | None = None
    judge_models: tuple[str, ...] = ()
    matches: Counting = "proposed"
    split: str | None = None
    missing: Missing = "drop"
    blind_only: bool = True
    versions: tuple[str, ...] = ()
    repeat: int = 0
    formats: tuple[str, ...] = ()
    guideline: str | None = None
    draws: int = DRAWS
    at: Standing | None = None
    """Who makes the figures of a page or file, and of which revision, where that is another process; see `pinned`."""

    def unpinned(self) -> Choice:
        """The choice, whichever revision of the data it shows."""
        return replace(self, at=None)

    def label(self) -> str:
        """The choice in words, for a caption or a file."""
        heads = [version[:VERSION_SHOWN] for version in self.versions]
        parts = [
            f"judges: {', '.join(self.judge_models) or 'all'}",
            f"split: {self.split or 'all traces'}",
            "proposed and confirmed matches" if self.matches == "proposed" else "confirmed matches only",
            "failures left out" if self.missing == "drop" else "failures count as disagreement",
            "blind labels only" if self.blind_only else "blind and revealed labels",
            *([f"judge versions: {', '.join(heads)}"] if heads else []),
            *([f"repeat {self.repeat}"] if self.repeat else []),
            *([f"data: {', '.join(self.formats)}"] if self.formats else []),
            *([f"guideline version {self.guideline}"] if self.guideline is not None else []),
        ]
        return " · ".join(parts)


class Options(NamedTuple):
    """What can be chosen: people with reviews, judges with outcomes, parts of the workspace.

    `versions` gives the hash of each judge version by the words that choose it, on the page and in the address.
    """

    people: Sequence[str] = ()
    judge_models: Sequence[str] = ()
    splits: Sequence[str] = ()
    versions: Mapping[str, str] = MappingProxyType({})
    repeats: Sequence[int] = ()
    formats: Sequence[str] = ()
    guidelines: Sequence[str] = ()


class SplitError(Exception):
    """A split that cannot be used; the message says why and what to do."""


def must(role: Role) -> None:
    """Stop the page unless the person has this role: the navigation hides a page, an address does not."""
    if not user().may(role):
        st.error(f"This page needs the role {role}. An administrator can give it.")
        st.stop()
    if role == "researcher":
        is_wanted.set()


def now_revision() -> Revision:
    """The store's revision: in the key of every cache below."""
    with read_transaction(workspace().engine) as connection:
        return revision(connection)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Of which revision the figures of a choice are shown, and which one is being computed (the same: none is)."""

    shown: Revision
    coming: Revision
    is_kept: bool
    """Made by the other process and read from disk; else computed here, because there is little."""

    @property
    def is_stale(self) -> bool:
        return self.shown != self.coming


def is_heavy(now: Revision) -> bool:
    """Whether figures take a second or more here: another process makes them, whether it has started or not."""
    return weight(now) > HEAVY


def has_much() -> bool:
    """Whether this workspace is heavy now."""
    return is_heavy(now_revision())


def standing(choice: Choice) -> Standing:
    """Which revision to show. Raises `SplitError`."""
    if choice.at is not None and choice.at.is_kept:
        return choice.at
    now = now_revision()
    if choice.at is not None or (not is_heavy(now) and not desk().is_ready):
        return Standing(shown=now, coming=now, is_kept=False)
    shown, coming = desk().standing(chosen(choice), now)
    if shown != coming:
        desk().ask_whole(chosen(choice), coming)
    return Standing(shown=shown, coming=coming, is_kept=True)


def pinned(choice: Choice) -> Choice:
    """The choice with its revision held: what a page or a file shows is all of one. Raises `SplitError`.

    What is made here is always of now, and goes on being made here until the page is drawn anew.
    """
    at = standing(choice)
    if at.is_stale and not is_heavy(at.coming):
        desk().wait_whole(chosen(choice), at.coming, at_most_s=SOON_S)
        at = standing(choice)
    return replace(choice, at=at)


def frames(choice: Choice) -> Frames | KeptFrames:
    """The frames of a choice, each read when it is asked for. Shared between sessions: never change them.

    Raises `SplitError`; `Waiting` and `NotComputedError` where another process makes them.
    """
    at = standing(choice)
    if at.is_kept:
        return _kept_frames(place(), at.shown, chosen(choice))
    return _frames(place(), at.shown, choice.unpinned(), _stamp(choice))


def inputs(choice: Choice) -> Inputs:
    """The inputs of every table; derived tables are computed when first asked for, then shared. Raises as `frames`."""
    at = standing(choice)
    if at.is_kept:
        return _kept_inputs(place(), at.shown, chosen(choice))
    return _inputs(place(), at.shown, choice.unpinned(), _stamp(choice))


def facts(choice: Choice) -> Facts:
    """What a manifest tells of the choice. Raises as `frames`."""
    row = figure(choice, "facts").to_dict("records")[0]
    return Facts(
        reference=None if row["reference"] is None else str(row["reference"]),
        judge_models=orjson.loads(str(row["judge_models"])),
        traces=int(row["traces"]),
        reference_errors=int(row["reference_errors"]),
        incomplete_errors=int(row["incomplete_errors"]),
        data_hash=str(row["data_hash"]),
        **{name: orjson.loads(str(row[name])) for name in ("votes", "judge_versions", "store_revision")},
    )


def figure(choice: Choice, name: str, *arguments: str) -> pd.DataFrame:
    """A figure of `judging.figures`. Raises as `frames`."""
    at = standing(choice)
    question = Question(figure=name, chosen=chosen(choice), arguments=arguments)
    if at.is_kept:
        return _kept(place(), Asked(question=question, now=at.shown))
    return _made(place(), at.shown, choice.unpinned(), _stamp(choice), question)


def ahead(choice: Choice, *names: str) -> None:
    """Have figures made that the page is about to ask for, in this order, and then all others of the choice.

    Last come those of choices one step away, while nobody waits for anything: a filter that is moved finds them there.
    """
    at = standing(choice)
    if not at.is_kept:
        return
    every = [Asked(question=Question(figure=name, chosen=chosen(choice)), now=at.shown) for name in names]
    for asked in every:
        if desk().state(asked) == "waiting":
            desk().ask(asked, rank=Rank.NEXT)
    for each in (choice, *one_step_away(choice)):
        whole = [Asked(question=Question(figure=name, chosen=chosen(each)), now=at.shown) for name in WHOLE]
        desk().ask_ahead(whole, wanted_s=AHEAD_S)


def one_step_away(choice: Choice) -> tuple[Choice, ...]:
    """The choices that another matches, failures or labels filter makes."""
    return (
        replace(choice, matches="confirmed" if choice.matches == "proposed" else "proposed"),
        replace(choice, missing="disagree" if choice.missing == "drop" else "drop"),
        replace(choice, blind_only=not choice.blind_only),
    )


def has_traces() -> bool:
    """Whether there is any trace here."""
    with read_transaction(workspace().engine) as connection:
        return connection.scalar(select(schema.trace.c.trace_id).limit(1)) is not None


def has_trace(trace_id: str) -> bool:
    """Whether this trace is here: labels of one that is not wait for it."""
    with read_transaction(workspace().engine) as connection:
        return connection.scalar(select(schema.trace.c.trace_id).where(schema.trace.c.trace_id == trace_id)) is not None


class ArmOption(NamedTuple):
    """A side that can be compared: as `judging.reports.arms` reads it, in words, and where Compare shows it."""

    text: str
    words: str
    judge_model: str | None = None
    repeat: int = 0


def sides(judge_models: Sequence[str], reference: str | None) -> list[ArmOption]:
    """Judges, their single versions and runs where there are several, and people in a judge's place.

    Nobody of the majority stands beside it: each has a vote in it.
    """
    with read_transaction(workspace().engine) as connection:
        versions, runs = judge_versions(connection), later_runs(connection)
        others = [str(name) for name in reference_annotators(connection)["annotator"] if name != reference]
        people = [] if reference == MAJORITY else others
    several = Counter((one.rubric, one.judge_model) for one in versions)
    return [
        *(ArmOption(name, name, name) for name in judge_models),
        *(
            ArmOption(f"version={one.judge_version[:VERSION_GIVEN]}", one.name, one.versioned)
            for one in versions
            if several[one.rubric, one.judge_model] > 1
        ),
        *(
            ArmOption(f"judge_model={name},repeat={run}", f"{name}, run {run}", name, run)
            for name, run in runs
            if name in judge_models
        ),
        *(ArmOption(f"person={name}", f"person {name}") for name in people),
    ]


def coming(choice: Choice, name: str) -> Asked | None:
    """A figure that is still being made, None where it is there (or made in this process)."""
    at = standing(choice)
    asked = Asked(question=Question(figure=name, chosen=chosen(choice)), now=at.shown)
    if at.is_kept and not is_heavy(at.shown):  # it takes a moment: rather that than to draw a chart twice
        with patience() as left:
            desk().be_patient(asked, left)
    return asked if at.is_kept and desk().state(asked) == "waiting" else None


def whole(choice: Choice, *tables: str) -> Choice:
    """Wait until all that a file is made from is there, of one revision, which the choice given back holds.

    Raises `SplitError`, `NotComputedError`.
    """
    return _waited(choice, (*WHOLE, "facts", "error_ceiling", "error_figures", *(f"table.{name}" for name in tables)))


def _waited(choice: Choice, names: Sequence[str]) -> Choice:
    """The choice at the revision of which all these are there; a newer one where the data changed meanwhile.

    Who labels all the time must not keep a file from leaving, nor have it wait for what cannot be made any more.
    """
    for attempt in range(ATTEMPTS):
        at = standing(choice)
        if not at.is_kept:
            return choice
        every = [Asked(question=Question(figure=name, chosen=chosen(choice)), now=at.coming) for name in names]
        for asked in every:
            desk().ask(asked)
        try:
            for asked in every:
                desk().wait(asked)
        except MovedOnError:
            if attempt == ATTEMPTS - 1:
                raise
            choice = choice.unpinned()
            continue
        return replace(choice, at=Standing(shown=at.coming, coming=at.coming, is_kept=True))
    raise AssertionError("the last attempt returns or raises")


def with_frames(choice: Choice) -> Choice:
    """Wait for the frames alone; else as `whole`."""
    return _waited(choice, ("reference", "facts", *FRAMES))


def chosen(choice: Choice) -> Chosen:
    """The choice as figures are asked for. Raises `SplitError`."""
    return _chosen(choice.unpinned(), _stamp(choice), str(split_folder()))


@st.cache_resource(show_spinner=False)
def desk() -> Desk:
    """Where figures are asked for; one a process."""
    return Desk(shelf=Shelf(home=workspace().home.resolve()), is_light=lambda now: not is_heavy(now))


def warm() -> None:
    """Have the usual choice made before the first person asks, where that takes long."""
    now = now_revision()
    if is_heavy(now):
        desk().ask_whole(chosen(Choice()), now, wanted_s=WARM_S)
        usual = [Asked(question=Question(figure=name, chosen=chosen(Choice())), now=now) for name in SHOWN]
        desk().ask_ahead(usual, wanted_s=WARM_S)


def traces() -> pd.DataFrame:
    """The list of traces with their summaries, in order of ingestion."""
    return _traces(place(), now_revision())


def people() -> pd.DataFrame:
    """Annotators with submitted reviews: annotator, traces. Shared between sessions: never change it."""
    return _known_names(place(), now_revision()).people


def usual_reference() -> str | None:
    """Whom judges are compared with unless somebody else is chosen."""
    return _known_names(place(), now_revision()).usual


def judge_models() -> list[str]:
    """Models and imported judges that have an outcome, by name."""
    return list(_known_names(place(), now_revision()).judge_models)


class _Names(NamedTuple):
    people: pd.DataFrame
    usual: str | None
    judge_models: tuple[str, ...]


@st.cache_resource(show_spinner=False, max_entries=2)
def _known_names(place: str, now: Revision) -> _Names:
    with read_transaction(workspace().engine) as connection:
        return _Names(
            reference_annotators(connection), default_reference(connection), tuple(stored_judge_models(connection))
        )


def options() -> Options:
    """What the filters of the researcher's pages offer."""
    return _options(place(), now_revision())._replace(splits=tuple(split_names()))


@st.cache_resource(show_spinner=False, max_entries=2)
def _options(place: str, now: Revision) -> Options:
    """All but the splits: their files are no part of the revision."""
    names = _known_names(place, now)
    with read_transaction(workspace().engine) as connection:
        return Options(
            people=tuple(str(name) for name in names.people["annotator"]),
            judge_models=names.judge_models,
            splits=(),
            versions={one.name: one.judge_version for one in judge_versions(connection)},
            repeats=tuple(repeats(connection)),
            formats=tuple(sorted(connection.scalars(select(schema.trace.c.format).distinct()))),
            guidelines=tuple(guidelines_read(connection)),
        )


def selection(choice: Choice) -> Selection:
    """The choice as the store takes it. Raises `SplitError`."""
    return chosen(choice).selection()


def split_folder() -> Path:
    """Where the split files of this workspace are kept."""
    return workspace().home / "splits"


def split_names() -> list[str]:
    """Every `file` and `file:name` of the split files that can be read."""
    names: list[str] = []
    for file in sorted(split_folder().glob("*.json")):
        try:
            parts = sorted(set(read_splits(file.read_bytes(), file.name).values()))
        except ValueError:
            continue
        names += [file.stem, *(f"{file.stem}:{part}" for part in parts)]
    return names


def keep_split(data: bytes, name: str) -> str:
    """Keep a split file in the workspace and return the name it is chosen by. Raises `ValueError`."""
    read_splits(data, name)
    stem = re.sub(r"[^\w.-]+", "_", Path(name).stem).strip("._") or UNUSED
    split_folder().mkdir(parents=True, exist_ok=True)
    (split_folder() / f"{stem}.json").write_bytes(data)
    return stem


def splits_of(name: str) -> Mapping[str, str]:
    """Split by trace id, of a whole file or of one of its parts. Raises `SplitError`."""
    stem, _, part = name.partition(":")
    file = split_folder() / f"{stem}.json"
    if Path(stem).name != stem or not file.is_file():
        raise SplitError(f"There is no split file {stem!r} in this workspace: add it under Split.")
    try:
        found = read_splits(file.read_bytes(), file.name)
    except ValueError as error:
        raise SplitError(f"{error}. Replace the file under Split.") from error
    return {trace_id: split for trace_id, split in found.items() if part in {"", split}}


def blind_to_me() -> frozenset[str]:
    """The traces that the person at the screen labels blind now: nothing that is said of them may be shown."""
    with read_transaction(workspace().engine) as connection:
        return at_work_blind(connection, user().name)


def note_rows(rows: pd.DataFrame, what: str) -> None:
    """Store that the person at the screen has seen these rows of labels and verdicts: see `sightings`."""
    ids = {str(one) for name in ("trace_id", "unit") if name in rows for one in rows[name].dropna()}
    note_seen(workspace().engine, annotator=user().name, trace_ids=ids, what=what)


def saved_views_menu(page: str) -> None:
    """The menu of a page's saved views, beside its title."""
    with read_transaction(workspace().engine) as connection:
        held = views.saved_views(connection, page)

    def save(name: str) -> None:
        with write_transaction(workspace().engine) as connection:
            view = views.SavedView(page=page, name=name.strip(), query=address(), author=user().name)
            views.save_view(connection, view)

    def take_away(name: str) -> None:
        with write_transaction(workspace().engine) as connection:
            views.delete_view(connection, page=page, name=name, author=user().name)

    saved_views(held, address_of=address_of, on_save=save, on_delete=take_away)


def team() -> pd.DataFrame:
    """`workload` of everyone."""
    return _team(place(), now_revision())


@st.cache_resource(show_spinner=False, max_entries=2)
def _team(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return workload(connection)


def submitted_by(person: str) -> pd.DataFrame:
    """trace_id, errors, minutes (missing: unknown), submitted_at of every trace that a person has submitted."""
    review, error = tables.review, tables.error_label
    mine = (newest(review, ("annotator", "trace_id", "occasion")), review.c.occasion == 0, review.c.annotator == person)
    query = select(review.c.trace_id, review.c.active_ms, review.c.created_at).where(
        *mine, review.c.status == "submitted"
    )
    with read_transaction(workspace().engine) as connection:
        rows = query_frame(connection, query.order_by(review.c.created_at, review.c.trace_id))
        made = Counter(e.trace_id for e in error_labels(connection, error.c.occasion == 0, error.c.annotator == person))
    return pd.DataFrame(
        {
            "trace_id": rows["trace_id"],
            "errors": [made[trace_id] for trace_id in rows["trace_id"]],
            "minutes": pd.to_numeric(rows["active_ms"]) / 60_000,
            "submitted_at": pd.to_datetime(rows["created_at"], unit="us", utc=True),
        }
    )


def first_span(label_id: str | None) -> str | None:
    """The span that an error names first, None where there is no such error."""
    with read_transaction(workspace().engine) as connection:
        known = error_labels(connection, tables.error_label.c.label_id == (label_id or ""))
    return next((span for error in known for span in error.span_ids), None)


def skip_reasons() -> pd.DataFrame:
    """annotator, trace_id, reason of every trace that was skipped."""
    return _skip_reasons(place(), now_revision())


@st.cache_resource(show_spinner=False, max_entries=2)
def _skip_reasons(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        skipped = [r for r in reviews(connection) if r.status == "skipped"]
    return pd.DataFrame(
        [(r.annotator, r.trace_id, r.reason) for r in skipped], columns=["annotator", "trace_id", "reason"]
    )


def place() -> str:
    """Which database: in the key of every cache beside the revision."""
    return str(workspace().engine.url)


def _stamp(choice: Choice) -> int:
    """When the split file last changed, 0 without one."""
    file = split_folder() / f"{(choice.split or '').partition(':')[0]}.json"
    return file.stat().st_mtime_ns if choice.split and file.is_file() else 0


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def _frames(place: str, now: Revision, choice: Choice, stamp: int) -> Frames:
    with read_transaction(workspace().engine) as connection:
        return load_frames(connection, selection(choice))


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def _inputs(place: str, now: Revision, choice: Choice, stamp: int) -> Inputs:
    chosen = selection(choice)
    with read_transaction(workspace().engine) as connection:
        words = selected_decisions(connection, chosen)
        people = Choice(split=choice.split, formats=choice.formats, guideline=choice.guideline)
        pairs = _person_pairs(place, person_revision(connection), people, stamp)
    return inputs_of(
        _frames(place, now, choice, stamp),
        missing=choice.missing,
        draws=choice.draws,
        **words,
        person_pairs=pairs,
    )


@st.cache_resource(show_spinner=False, max_entries=KEPT)
def _person_pairs(place: str, now: Revision, choice: Choice, stamp: int) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return person_pairs(connection, selection(choice))


@st.cache_resource(show_spinner=False, max_entries=KEPT * 8)
def _made(place: str, now: Revision, choice: Choice, stamp: int, question: Question) -> pd.DataFrame:
    held = _frames(place, now, choice, stamp), _inputs(place, now, choice, stamp)
    return make(Bench(frames=held[0], inputs=held[1], side=lambda text: _side(choice, text)), question)


def _side(choice: Choice, text: str) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return arm_pairs(connection, selection(choice), read_arm(text)).error_pairs


def _kept(place: str, asked: Asked) -> pd.DataFrame:
    """A figure of the other process, waited for as long as this page still can."""
    key = place, asked.question.place().key(), asked.question.file(), asked.now
    held = _read_figures()
    if key not in held:
        with patience() as left:
            held[key] = desk().find(asked, patience_s=left)
        for old in list(held)[: -KEPT * 32]:
            held.pop(old, None)
    return held[key]


@st.cache_resource(show_spinner=False)
def _read_figures() -> dict[tuple[str, str, str, Revision], pd.DataFrame]:
    """The figures read last, oldest first. A revision's figure never changes."""
    return {}


@dataclass(frozen=True, kw_only=True)
class KeptFrames:
    """Frames that another process makes: each is read, or raises `Waiting`, when it is asked for."""

    find: Callable[[str], pd.DataFrame]

    @property
    def reference(self) -> str | None:
        person = self.find("reference")["reference"].iloc[0]
        return None if person is None else str(person)

    def __getattr__(self, name: str) -> pd.DataFrame:
        if name not in FRAMES:
            raise AttributeError(name)
        return self.find(name)


def _kept_frames(place: str, now: Revision, chosen: Chosen) -> KeptFrames:
    return KeptFrames(find=lambda name: _kept(place, Asked(question=Question(figure=name, chosen=chosen), now=now)))


def _kept_inputs(place: str, now: Revision, chosen: Chosen) -> Inputs:
    return KeptInputs(missing=chosen.missing, draws=chosen.draws, find=_kept_frames(place, now, chosen).find)


@lru_cache(maxsize=64)
def _chosen(choice: Choice, stamp: int, folder: str) -> Chosen:
    return Chosen(
        reference=choice.reference,
        judge_models=choice.judge_models,
        matches=choice.matches,
        splits=splits_of(choice.split) if choice.split else {},
        only_split=choice.split is not None,
        blind_only=choice.blind_only,
        missing=choice.missing,
        draws=choice.draws,
        versions=choice.versions,
        repeat=choice.repeat,
        formats=choice.formats,
        guideline=choice.guideline,
    )


ALL_GIVEN = (*FRAMES, *OPINIONS)
FOUND = frozenset({*DERIVED, "error_ceiling"})


@dataclass(frozen=True, kw_only=True)
class KeptInputs(Inputs):
    """Inputs whose derived tables another process makes: each raises `Waiting` until it is there."""

    find: Callable[[str], pd.DataFrame]

    def given(self, name: InputName) -> pd.DataFrame | None:
        return self.find(name) if self.has(name) else None

    def has(self, name: InputName) -> bool:
        return name in ALL_GIVEN

    def __getattribute__(self, name: str) -> Any:
        """A table that `Inputs` derives is found, not made."""
        return self.find(name) if name in FOUND else super().__getattribute__(name)


@st.cache_data(show_spinner=False, max_entries=2)
def _traces(place: str, now: Revision) -> pd.DataFrame:
    with read_transaction(workspace().engine) as connection:
        return trace_frame(connection)
