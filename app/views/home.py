"""The bare address: straight on to the desk, with the query as it is."""

import streamlit as st

from tracejury.app.session import link_params

st.switch_page("views/work.py", query_params=link_params(**{key: st.query_params[key] for key in st.query_params}))
