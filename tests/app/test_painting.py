"""What a page has sent shows before heavier things follow; without a browser nothing waits."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from tracejury.app import painting


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=list(painting.ROUTES)))


def test_the_browsers_word_ends_the_wait_and_a_word_that_nobody_waits_for_is_nothing(client: TestClient) -> None:
    event = painting._waiting["note"] = threading.Event()
    try:
        assert client.post("/api/painted/other").status_code == 204
        assert not event.is_set()
        assert client.post("/api/painted/note").status_code == 204
        assert event.is_set()
    finally:
        del painting._waiting["note"]


@pytest.mark.parametrize("browser", [True, False])
def test_only_a_browser_is_waited_for_and_once_a_part(
    browser: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(painting, "_agent", lambda: "a browser" if browser else None)
    monkeypatch.setattr(painting, "MOST_S", 0.2)
    notes: list[int] = []
    monkeypatch.setattr(painting, "secrets", SimpleNamespace(token_hex=lambda size: str(notes.append(size))))
    script = tmp_path / "script.py"
    script.write_text(
        "import time\nimport streamlit as st\nfrom tracejury.app.painting import paint\n"
        "started = time.monotonic()\npaint('here')\nst.text(f'{time.monotonic() - started:.3f}')\n",
        encoding="utf-8",
    )
    at = AppTest.from_file(str(script), default_timeout=120)
    waited = float(at.run().text[0].value)
    assert waited >= (0.2 if browser else 0)  # nobody answers here
    at.run()
    assert len(notes) == (1 if browser else 0)
    assert painting._waiting == {}
