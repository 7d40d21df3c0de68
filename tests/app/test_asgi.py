"""What the server does beside its pages."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest

from tracejury.app import estimates
from tracejury.app.asgi import settle


def test_what_is_here_to_stay_is_kept_from_the_collector() -> None:
    """Streamlit has it look through everything after each run of a page: a fifth of a second where much is held."""
    held = [[number] for number in range(10_000)]
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() >= before + len(held)
    assert not any(each is held for each in gc.get_objects())


@pytest.mark.parametrize("is_small", [True, False])
def test_the_worker_of_estimates_is_started_only_where_it_will_be_needed(
    monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(estimates, "is_small_now", lambda: is_small)
    monkeypatch.setattr(estimates, "queue", lambda: SimpleNamespace(start=lambda: started.append(True)))
    estimates.start()
    assert started == [True] * (not is_small)
