"""The browser side's entry: navigation by role, then the page."""

import streamlit as st

from tracejury.app.config import config
from tracejury.app.pages import ACCOUNT, PAGES, VIEWS
from tracejury.app.session import user


def main() -> None:
    st.set_page_config(page_title="Tracejury", page_icon="⚖️", layout="wide")
    who = user()
    home = st.Page(VIEWS / "home.py", title="Tracejury", default=True, visibility="hidden")
    pages = [
        st.Page(page.script, title=page.title, url_path=page.file)
        for page in (PAGES if config().sign_in == "off" else (*PAGES, ACCOUNT))
        if who.may(page.role)
    ]
    st.navigation([home, *pages], position="top").run()


main()
