"""The web application: Streamlit's pages and our API routes in one process."""

from pathlib import Path

from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit import App

from app.api import ROUTES


async def health(_request: object) -> JSONResponse:
    """Alive; opens nothing."""
    return JSONResponse({"status": "ok"})


app = App(Path(__file__).parent / "main.py", routes=[Route("/api/health", health), *ROUTES])
