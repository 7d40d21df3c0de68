"""The browser side's entry: navigation by role, then the page."""

from pathlib import Path

import streamlit as st

from tracejury.app.config import config
from tracejury.app.pages import ACCOUNT, PAGES
from tracejury.app.session import user

VIEWS = Path(__file__).parent / "views"


def main() -> None:
    st.set_page_config(page_title="Tracejury", page_icon="⚖️", layout="wide")
    who = user()
    home = st.Page(VIEWS / "home.py", title="Tracejury", default=True, visibility="hidden")
    pages = [
        st.Page(VIEWS / f"{page.file}.py", title=page.title, icon=page.icon, url_path=page.file)
        for page in (PAGES if config().sign_in == "off" else (*PAGES, ACCOUNT))
        if who.may(page.role)
    ]
    st.navigation([home, *pages], position="top").run()


main()
