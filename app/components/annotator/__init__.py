"""The annotator's island: tree, conversation, error labels and scores of one trace, by mouse and by key."""

from __future__ import annotations

import re
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
MODULES = (
    "text", "keys", "labels", "merge", "outbox", "settings", "spans", "page", "tree", "reader", "judgetext", "category",
    "errors", "scores", "revealed", "dialogs", "comments", "panes",
    "connection", "document", "work", "note", "place", "time", "head", "submission", "keyboard", "desk",
)  # fmt: skip
_IMPORT = re.compile(r"(?m)^import [^;]*;\n")
_EXPORT = re.compile(r"(?m)^export (?!default)")


def annotator(
    data: Mapping[str, Json],
    *,
    key: str,
    on_span: Callable[[], None] | None = None,
    on_act: Callable[[], None] | None = None,
) -> ComponentResult:
    """Mount the island with the data of `payload.frame`.

    The result's `span` is the id of the span in hand (`on_span` is called when it changes, at most every
    250 ms). `act` is a trigger: `{"kind": "submitted" | "skipped" | "previous" | "next" | "renew",
    "trace_id": ...}`; `renew` asks for a fresh pass, the others for another trace.
    """
    return _component()(key=key, data=dict(data), on_span_change=on_span or _nothing, on_act_change=on_act or _nothing)


def script() -> str:
    """The island's modules as one, after the glossary: `import` lines gone, `export` kept for the default only."""
    texts = ((_HERE / "js" / f"{name}.mjs").read_text(encoding="utf-8") for name in MODULES)
    return glossary.script() + "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


@cache
def _component() -> ComponentRenderer:
    import streamlit as st

    return st.components.v2.component(
        "tracejury.annotator",
        html=(_HERE / "annotator.html").read_text(encoding="utf-8"),
        css=(_HERE / "annotator.css").read_text(encoding="utf-8"),
        js=script(),
        isolate_styles=False,  # a selection inside a shadow root cannot be read: evidence needs the light DOM
    )


def _nothing() -> None:
    """Streamlit wants a callback for each value of a component."""
