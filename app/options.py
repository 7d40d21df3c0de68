"""What a page of the researcher offers to choose: the filters of the workspace, arms to compare, saved views."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st

from tracejury.app.components.saved import saved_views
from tracejury.app.listings import now_revision, place
from tracejury.app.session import address, address_of, user, workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.reports.filter_options import read_options, reference_annotators
from tracejury.judging.reports.filters import FilterOptions, Split, read_split
from tracejury.judging.reports.frames import chosen_reference
from tracejury.judging.store import views
from tracejury.judging.store.judge_models import judge_models as stored_judge_models
from tracejury.judging.store.judge_models import judge_versions, later_repeats
from tracejury.judging.store.locks import SETTINGS
from tracejury.judging.store.people import gold_names
from tracejury.judging.store.revisions import Revision

VERSION_GIVEN = 12  # characters of a version's hash that an arm is asked by
UNUSED = "split"  # name of an uploaded file that has no usable character


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
        people = reference_annotators(connection)
        usual = chosen_reference(people, gold_names(connection), None)
        return _Names(people, usual, tuple(stored_judge_models(connection)))


def options() -> FilterOptions:
    """What the filters of the researcher's pages offer."""
    return replace(_options(place(), now_revision()), splits=splits())


@st.cache_resource(show_spinner=False, max_entries=2)
def _options(place: str, now: Revision) -> FilterOptions:
    """All but the splits: their files are no part of the revision."""
    with read_transaction(workspace().engine) as connection:
        return read_options(connection)


class ArmOption(NamedTuple):
    """A side that can be compared: as `judging.reports.arms` reads it, in words, and where Compare shows it."""

    text: str
    words: str
    judge_model: str | None = None
    repeat: int = 0


def arms(judge_models: Sequence[str], reference: str | None) -> list[ArmOption]:
    """Judges, their single versions and repeats where there are several, and people in a judge's place.

    Nobody of the majority stands beside it: each has a vote in it.
    """
    with read_transaction(workspace().engine) as connection:
        versions, repeats = judge_versions(connection), later_repeats(connection)
    others = [] if reference == MAJORITY else [str(name) for name in people()["annotator"] if name != reference]
    several = Counter((one.rubric, one.judge_model) for one in versions)
    return [
        *(ArmOption(name, name, name) for name in judge_models),
        *(
            ArmOption(f"version={one.judge_version[:VERSION_GIVEN]}", one.name, one.versioned)
            for one in versions
            if several[one.rubric, one.judge_model] > 1
        ),
        *(
            ArmOption(f"judge_model={name},repeat={repeat}", f"{name}, repeat {repeat}", name, repeat)
            for name, repeat in repeats
            if name in judge_models
        ),
        *(ArmOption(f"person={name}", f"person {name}") for name in others),
    ]


def split_folder() -> Path:
    """Where the split files of this workspace are kept."""
    return workspace().home / "splits"


def splits() -> dict[str, Split]:
    """Every split file that can be read, and each of its parts, by `file` and `file:part`."""
    by_name: dict[str, Split] = {}
    for file in sorted(split_folder().glob("*.json")):
        split = _split_in(file, file.stat().st_mtime_ns)
        if split is not None:
            parts = (split.only(part) for part in sorted(set(split.by_trace.values())))
            by_name |= {one.name: one for one in (split, *parts)}
    return by_name


@lru_cache(maxsize=64)
def _split_in(file: Path, changed: int) -> Split | None:
    del changed  # a file that changed is read again
    try:
        return read_split(file.read_bytes(), file.name, file.stem)
    except ValueError:
        return None


def keep_split(data: bytes, name: str) -> str:
    """Keep a split file in the workspace and return the name it is chosen by. Raises `ValueError`."""
    read_split(data, name, name)
    stem = re.sub(r"[^\w.-]+", "_", Path(name).stem).strip("._") or UNUSED
    split_folder().mkdir(parents=True, exist_ok=True)
    (split_folder() / f"{stem}.json").write_bytes(data)
    return stem


def saved_views_menu(page: str) -> None:
    """The menu of a page's saved views, beside its title."""
    with read_transaction(workspace().engine) as connection:
        stored_views = views.saved_views(connection, page)

    def save(name: str) -> None:
        with write_transaction(workspace().engine, SETTINGS) as connection:
            view = views.SavedView(page=page, name=name.strip(), query=address(), author=user().name)
            views.save_view(connection, view)

    def take_away(name: str) -> None:
        with write_transaction(workspace().engine, SETTINGS) as connection:
            views.delete_view(connection, page=page, name=name, author=user().name)

    saved_views(stored_views, address_of=address_of, on_save=save, on_delete=take_away)
