"""The comparison's island: pairs of errors and judge findings, decided by mouse and by key, over their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tracejury.app.components import glossary
from tracejury.ingest.trace import Json

if TYPE_CHECKING:
    from streamlit.components.v2.bidi_component import ComponentResult
    from streamlit.components.v2.types import ComponentRenderer

_HERE = Path(__file__).parent


def comparison(data: Mapping[str, Json], *, key: str, on_act: Callable[[], None] | None = None) -> ComponentResult:
    """Mount the island. `data`: trace_id, token, base, pairs (of `payload.pairs_payload`), focus (a pair's key).

    Decisions go to the API by themselves. `act` is a trigger: `{"kind": "saved"}` after one was stored, and
    `{"kind": "next"}` when the next undecided trace is wanted.
    """
    return _component()(key=key, data=dict(data), on_act_change=on_act or _nothing)


@cache
def _component() -> ComponentRenderer:
    import streamlit as st

    return st.components.v2.component(
        "tracejury.comparison",
        html='<div class="tjc" data-tjc tabindex="-1"></div>',
        css=(_HERE / "comparison.css").read_text(encoding="utf-8"),
        js=glossary.script() + (_HERE / "comparison.mjs").read_text(encoding="utf-8"),
        isolate_styles=False,  # text that a person selects must be readable by the page
    )


def _nothing() -> None:
    """Streamlit wants a callback for each value of a component."""
