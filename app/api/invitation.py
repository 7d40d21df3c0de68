"""The page behind an invitation's link: the invited person chooses a password and is signed in."""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tracejury.app.api.answers import is_from_here
from tracejury.app.api.signin import entered, form_fields, form_page
from tracejury.app.config import config
from tracejury.app.session import workspace
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.invitations import Invitation, accept, invitation
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import SHORTEST_PASSWORD, PeopleError, Person

PATH = "/api/invitation"
GONE = "This invitation was used, revoked or has expired. Ask an administrator for another one."
_FORM = """<p>You are invited as <b>{name}</b>, {role}.</p>
<input type="hidden" name="username" autocomplete="username" value="{name}">
<label for="password">Choose a password ({shortest} characters or more)</label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="{shortest}"
 required autofocus>
<label for="again">Password again</label>
<input id="again" name="again" type="password" autocomplete="new-password" required>
<input type="hidden" name="code" value="{code}">
<button type="submit">Join</button>
"""


def invitation_routes(space: Callable[[], Workspace], *, is_on: Callable[[], bool]) -> tuple[Route, ...]:
    """The form and its answer; 404 unless people sign in with passwords of this app."""

    async def form(request: Request) -> Response:
        if not is_on():
            return Response(status_code=404)
        code = request.query_params.get("code", "")
        return _page(await run_in_threadpool(_offer, space(), code), code)

    async def join(request: Request) -> Response:
        if not is_on():
            return Response(status_code=404)
        if not is_from_here(request):
            return form_page(403, PATH, "", problem="The form was sent from another site. Open the link again.")
        fields = await form_fields(request)
        if fields is None:
            return form_page(413, PATH, "", problem="The form is too large.")
        code, password = fields.get("code", ""), fields.get("password", "")
        offer = await run_in_threadpool(_offer, space(), code)
        if offer is None or password != fields.get("again"):
            return _page(offer, code, problem="The two passwords differ. Type the same one twice.", status=422)
        try:
            person = await run_in_threadpool(_accept, space(), code, password)
        except PeopleError as error:
            return _page(offer, code, problem=f"Not done: {error}.", status=422)
        return entered(request, space().secret(), person, "/")

    return (Route(PATH, form, methods=["GET"]), Route(PATH, join, methods=["POST"]))


def _offer(space: Workspace, code: str) -> Invitation | None:
    with read_transaction(space.engine) as connection:
        return invitation(connection, code, now=_now())


def _accept(space: Workspace, code: str, password: str) -> Person:
    with write_transaction(space.engine, PEOPLE) as connection:
        return accept(connection, code, password=password, now=_now())


def _page(offer: Invitation | None, code: str, *, problem: str = "", status: int = 200) -> Response:
    if offer is None:
        return form_page(410, PATH, "", problem=GONE)
    filled = _FORM.format(
        name=escape(offer.name), role=offer.role, code=escape(code), shortest=SHORTEST_PASSWORD
    )  # fmt: skip
    return form_page(status, PATH, filled, problem=problem)


def _now() -> int:
    return time.time_ns() // 1000


ROUTES = invitation_routes(workspace, is_on=lambda: config().sign_in == "password")
