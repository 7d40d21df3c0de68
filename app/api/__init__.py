"""The routes of the API; each module adds its own to `ROUTES`."""

from starlette.routing import Route

from app.api.compare import ROUTES as COMPARE
from app.api.exports import ROUTES as EXPORTS
from app.api.otlp import ROUTES as OTLP
from app.api.signin import ROUTES as SIGN_IN
from app.api.work import ROUTES as WORK
from app.painting import ROUTES as PAINTING

ROUTES: tuple[Route, ...] = (*WORK, *COMPARE, *EXPORTS, *OTLP, *SIGN_IN, *PAINTING)
