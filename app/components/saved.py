"""The menu of saved views: open one, keep what the page shows now under a name, take one away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import streamlit as st

from tracejury.app.components.estimate_text import plain


class View(Protocol):
    """A saved view as the menu shows it."""

    @property
    def name(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def query(self) -> Mapping[str, Sequence[str]]: ...


def saved_views(
    views: Sequence[View],
    *,
    address_of: Callable[[Mapping[str, Sequence[str]]], str],
    on_save: Callable[[str], None],
    on_delete: Callable[[str], None],
) -> None:
    """Draw the menu. `on_save` raises `ValueError` with a message for a name that cannot be used."""
    with st.popover("Views", icon=":material/bookmark:", help="Saved filters of this page, shared by the team"):
        if not views:
            st.caption("No views are saved yet. Set the filters, then save them under a name.")
        for number, view in enumerate(views):
            with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
                st.link_button(
                    plain(view.name), address_of(view.query), width="stretch", key=f"view-open-{number}",
                    help=plain(f"saved by {view.author}; opens in a new tab"),
                )  # fmt: skip
                st.button(
                    "", key=f"view-delete-{number}", icon=":material/delete:", on_click=on_delete, args=(view.name,),
                    help="Delete view", type="tertiary",
                )  # fmt: skip
        with st.form("view-form", clear_on_submit=True, border=False):
            name = st.text_input("Name", max_chars=80, placeholder="Name of the view", key="view-name")
            is_sent = st.form_submit_button("Save view", icon=":material/bookmark_add:", key="view-save")
        if is_sent:
            try:
                on_save(name)
            except ValueError as error:
                st.error(plain(str(error)))
            else:
                st.rerun()
