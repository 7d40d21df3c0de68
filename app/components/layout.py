"""One look for the researcher's pages: margins, headings of one scale, cards with an explained title."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import streamlit as st

from app.components.figures import plain

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

_STYLE = """
[data-testid="stMainBlockContainer"]:has(.st-key-researcher) { padding: 4.2rem 2rem 3rem; max-width: 1880px; }
[data-testid="stMainBlockContainer"] h2 { font-size: 1.55rem; padding: 0 0 0.6rem; }
[data-testid="stMainBlockContainer"] h3 { font-size: 1.06rem; padding: 0 0 0.4rem; }
[data-testid="stMainBlockContainer"] [data-testid="stDataFrame"] { font-variant-numeric: tabular-nums; }
.st-key-headline [data-testid="stMetricValue"] { font-size: 1.4rem; font-variant-numeric: tabular-nums; }
[data-testid="stCaptionContainer"] { color: inherit; opacity: 0.76; }
button[kind^="primary"]:not(:disabled) p { color: light-dark(#ffffff, #0e1117); }
"""
# The last two lines lift Streamlit's captions and primary buttons above a contrast of 4.5 to 1.


def heading(text: str, about: str = "", *, beside: Callable[[], None] | None = None) -> None:
    """The page's title, with what `beside` draws at its right; also sets the page's margins."""
    with st.container(key="researcher"):
        _look()(key="look")
        if beside is None:
            st.header(text, anchor=False, help=about or None)
            return
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.header(text, anchor=False, help=about or None, width="content")
            beside()


@cache
def _look() -> ComponentRenderer:
    """A style sheet as a component: st.html and markdown stay closed to all of the app's code."""
    component: ComponentRenderer = st.components.v2.component("tracejury.look", css=_STYLE, isolate_styles=False)
    return component


def done(text: str | None) -> None:
    """What the last act of the page did; nothing where there is nothing to tell."""
    if text:
        st.success(plain(text))


def title(text: str, about: str = "") -> None:
    """A card's title; `about` explains it when the person points at the question mark."""
    st.subheader(text, anchor=False, help=about or None)
