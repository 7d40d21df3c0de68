"""Headings of one scale and cards with an explained title; their look is `look.css`, sent with the page."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from tracejury.app.components.estimate_text import plain


def heading(text: str, *, beside: Callable[[], None] | None = None) -> None:
    """The page's title, with what `beside` draws at its right."""
    if beside is None:
        st.header(text, anchor=False)
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(text, anchor=False, width="content")
        beside()


def done(text: str | None) -> None:
    """What the last act of the page did; nothing where there is nothing to tell."""
    if text:
        st.success(plain(text))


def title(text: str, about: str = "") -> None:
    """A card's title; `about` explains it when the person points at the question mark."""
    st.subheader(text, anchor=False, help=about or None)
