"""The Work page with its routes."""

from pathlib import Path

from streamlit import App

from app.api.work import ROUTES

app = App(Path(__file__).parent / "main.py", routes=list(ROUTES))
