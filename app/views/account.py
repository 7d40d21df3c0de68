"""Who is signed in: name, role, tokens for scripts, a new password, the way out."""

from __future__ import annotations

import streamlit as st

from tracejury.app.api.scripts import MOST_DAYS, USES, USUAL_DAYS, mint_script
from tracejury.app.components import layout
from tracejury.app.components.estimate_text import plain
from tracejury.app.config import config
from tracejury.app.session import sign_out_now, user, workspace
from tracejury.ingest.store import write_transaction
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import PeopleError, TooManyTriesError, change_person, revoke_script_tokens, sign_in


def page() -> None:
    layout.heading("Account")
    who = user()
    st.text(f"Signed in as {who.name}, {who.role}.")
    st.button("Sign out", key="sign_out", icon=":material/logout:", on_click=sign_out_now)
    st.caption("Signing out ends your sessions on every machine. Your labels are saved.")
    if config().sign_in == "password":
        password_form(who.name)
    if who.may("researcher"):
        script_tokens(who.name)


def script_tokens(name: str) -> None:
    layout.title(
        "Tokens for scripts",
        "A script sends the token as “Authorization: Bearer TOKEN” to /api/export/NAME or /v1/traces.",
    )
    new_token = None
    with st.form("script_token", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        use = st.selectbox("Use", list(USES), key="script_use", width=260, format_func=lambda one: USES[one])
        days = st.number_input("Expires after days", 1, MOST_DAYS, USUAL_DAYS, key="script_days", width=160)
        if st.form_submit_button("Create token"):
            new_token = mint_script(workspace(), name, use=use, days=int(days), by=name)
    if new_token is not None:
        st.code(new_token, language=None, wrap_lines=True)
        st.caption(
            "Copy the token now: it is not shown again. It expires after the chosen days, when you lose the "
            "role, or when you revoke it."
        )
    if st.button("Revoke all my tokens", key="revoke_tokens", icon=":material/key_off:"):
        with write_transaction(workspace().engine, PEOPLE) as connection:
            revoke_script_tokens(connection, name, by=name)
        st.success("All your tokens are revoked.")


def password_form(name: str) -> None:
    with st.form("own_password", clear_on_submit=True, width=520):
        old = st.text_input("Current password", type="password", key="old_password", autocomplete="current-password")
        new = st.text_input("New password", type="password", key="own_new", autocomplete="new-password")
        if st.form_submit_button("Change password"):
            change(name, old, new)


def change(name: str, old: str, new: str) -> None:
    try:
        if sign_in(workspace().engine, name, old) is None:
            st.error("The current password is wrong.")
            return
        with write_transaction(workspace().engine, PEOPLE) as connection:
            change_person(connection, name, by=name, password=new)
    except (PeopleError, TooManyTriesError) as problem:
        st.error(plain(f"Not changed: {problem}."))
        return
    st.success("The password is changed. Reload the page and sign in with it.")


page()
