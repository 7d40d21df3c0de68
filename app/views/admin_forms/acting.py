"""What an administrator's forms share: one change in one transaction, refused in words, told of once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import streamlit as st
from sqlalchemy import Connection

from tracejury.app.components.estimate_text import plain
from tracejury.app.session import user, workspace
from tracejury.ingest.store import write_transaction
from tracejury.judging.queues.queue_store import QueueError
from tracejury.judging.store.locks import COMMENTS, PEOPLE, QUEUES
from tracejury.judging.store.people import PeopleError

Made = TypeVar("Made")


@dataclass(frozen=True)
class Done(Generic[Made]):
    """A change that was made, and what it gave."""

    value: Made


def attempt(work: Callable[[Connection], Made]) -> Done[Made] | None:
    """Do `work` in one write transaction. None, with the reason on the page, where it is refused."""
    if not user().may("admin"):
        st.error("Only an administrator may do this.")
        return None
    try:
        with write_transaction(workspace().engine, PEOPLE, QUEUES, COMMENTS) as connection:
            return Done(work(connection))
    except (PeopleError, QueueError) as problem:
        st.error(plain(f"Not done: {problem}."))
        return None
