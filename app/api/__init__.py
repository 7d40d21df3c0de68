"""The routes of the API; each module adds its own to `ROUTES`."""

from starlette.routing import Route

from tracejury.app.api.compare import ROUTES as COMPARE
from tracejury.app.api.exports import ROUTES as EXPORTS
from tracejury.app.api.invitation import ROUTES as INVITATION
from tracejury.app.api.otlp import ROUTES as OTLP
from tracejury.app.api.signin import ROUTES as SIGN_IN
from tracejury.app.api.work import ROUTES as WORK
from tracejury.app.painting import ROUTES as PAINTING

ROUTES: tuple[Route, ...] = (*WORK, *COMPARE, *EXPORTS, *OTLP, *SIGN_IN, *INVITATION, *PAINTING)
