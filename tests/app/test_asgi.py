"""What the server does beside its pages."""

from __future__ import annotations

import gc

from app.asgi import settle


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
