"""The routes of the API; each module adds its own to `ROUTES`."""

from starlette.routing import Route

from app.api.compare import ROUTES as COMPARE
from app.api.work import ROUTES as WORK

ROUTES: tuple[Route, ...] = (*WORK, *COMPARE)
