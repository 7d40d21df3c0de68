"""The Work page alone, as the tests of the desk start it."""

from pathlib import Path

import streamlit as st

from tracejury import app

VIEWS = Path(app.__file__).parent / "views"

st.set_page_config(page_title="Desk", page_icon="⚖️", layout="wide")
work = st.Page(VIEWS / "work.py", title="Work")
other = st.Page(lambda: st.text_input("Elsewhere"), title="Other", url_path="other")
st.navigation([work, other], position="top").run()
