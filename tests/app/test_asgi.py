"""What the server does beside its pages."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from tracejury.app import asgi, loading
from tracejury.app.asgi import be_ready, settle
from tracejury.app.computing import Desk
from tracejury.judging.reports.estimate_worker import Shelf


def test_what_is_here_to_stay_is_kept_from_the_collector() -> None:
    """Streamlit has it look through everything after each run of a page: a fifth of a second where much is held."""
    held = [[number] for number in range(10_000)]
    before = gc.get_freeze_count()
    try:
        settle()
        assert gc.get_freeze_count() >= before + len(held)
        assert not any(each is held for each in gc.get_objects())
    finally:
        gc.unfreeze()


def test_the_process_of_figures_waits_for_a_researcher_where_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    started, desk = threading.Event(), Desk(shelf=Shelf(home=Path()))
    monkeypatch.setattr(asgi, "READY_AFTER_S", 0.05)
    monkeypatch.setattr(asgi, "IMPORTED_LATE", ())
    monkeypatch.setattr(asgi, "settle", lambda: None)
    monkeypatch.setattr(Desk, "start", lambda _: started.set())
    monkeypatch.setattr(asgi.adjudicating, "warm", lambda: None)
    monkeypatch.setattr(loading, "desk", lambda: desk)
    monkeypatch.setattr(loading, "is_wanted", threading.Event())

    async def served(*, has_much: bool) -> bool:
        started.clear()
        monkeypatch.setattr(loading, "has_much", lambda: has_much)
        readying = asyncio.create_task(be_ready())
        await asyncio.sleep(0.3)
        before = started.is_set()
        loading.is_wanted.set()
        await readying
        assert started.is_set()
        loading.is_wanted.clear()
        return before

    assert not asyncio.run(served(has_much=False))
    assert asyncio.run(served(has_much=True))
