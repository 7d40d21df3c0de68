"""The Work page with its routes; DESK_TOKEN_S shortens the life of its tokens."""

import os
from pathlib import Path

from streamlit import App

from tracejury.app import grants
from tracejury.app.api.work import ROUTES

grants.MAX_AGE_S = int(os.environ.get("DESK_TOKEN_S", grants.MAX_AGE_S))
app = App(Path(__file__).parent / "main.py", routes=list(ROUTES))
