"""The sign-in page of the password mode: a form, a cookie that scripts cannot read, and a limit on guessing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tracejury.app import signin
from tracejury.app.api.answers import is_from_here
from tracejury.app.config import config
from tracejury.app.session import person_of_session, workspace
from tracejury.ingest.store import read_transaction
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import DeactivatedError, Person, TooManyTriesError, sign_in, someone_can_sign_in

BODY_LIMIT = 10_000  # bytes of a sign-in
UNKNOWN_ADDRESS = "behind a proxy that TRACEJURY_PROXIES does not name"
WRONG = "Name or password is wrong."
DEACTIVATED = "Your account is deactivated. Ask an administrator to activate it; your labels are saved."
NOBODY = (
    "No administrator can sign in yet. On this machine, run Tracejury once with TRACEJURY_SIGN_IN=off, "
    "add an administrator with a password on the Admin page, then start it again."
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_FRAME = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sign in · Tracejury</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; --accent: light-dark(#005A9C, #56B4E9); }}
body {{ font: 16px/1.5 system-ui, sans-serif; background: light-dark(#fff, #171614); }}
body {{ display: grid; min-height: 90vh; place-items: center; margin: 0; }}
form {{ width: min(22rem, 90vw); display: grid; gap: .4rem; }}
h1 {{ font-size: 1.5rem; margin: 0 0 .6rem; }}
input, button {{ font: inherit; padding: .5rem .6rem; border-radius: .4rem; border: 1px solid GrayText; }}
button {{ margin-top: .8rem; background: var(--accent); border-color: var(--accent); cursor: pointer; }}
button {{ color: light-dark(#fff, #0e1117); }}
.problem {{ border-left: 4px solid #D55E00; padding-left: .6rem; margin: 0 0 .4rem; }}
</style></head><body><main>
<form method="post" action="{action}">
<h1>Tracejury</h1>
{problem}{fields}</form></main></body></html>
"""
_FIELDS = """<label for="name">Name</label>
<input id="name" name="name" autocomplete="username" required autofocus value="{name}">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<input type="hidden" name="next" value="{next}">
<button type="submit">Sign in</button>
"""


def is_signed_in(cookie: str | None) -> bool:
    """Whether a session cookie still holds."""
    return person_of_session(signin.read(workspace().secret(), cookie)) is not None


def signin_routes(space: Callable[[], Workspace], *, is_on: Callable[[], bool]) -> tuple[Route, ...]:
    """The form and its answer; 404 unless the password mode is on."""

    async def form(request: Request) -> Response:
        if not is_on():
            return Response(status_code=404)
        target = signin.local_path(request.query_params.get("next"))
        ready = await run_in_threadpool(_has_administrator, space())
        return _page(200, target=target, problem="" if ready else NOBODY)

    async def enter(request: Request) -> Response:
        if not is_on():
            return Response(status_code=404)
        if not is_from_here(request):
            return _page(403, problem="The form was sent from another site. Sign in on this page.")
        fields = await form_fields(request)
        if fields is None:
            return _page(413, problem="The form is too large.")
        name, password = fields.get("name", ""), fields.get("password", "")
        target = signin.local_path(fields.get("next"))
        device = signin.known_device(space().secret(), request.cookies.get(signin.DEVICE), name)
        enter_as = partial(sign_in, address=address_of(request), device=device)
        try:
            account = await run_in_threadpool(enter_as, space().engine, name, password)
        except DeactivatedError:
            return _page(403, target=target, name=name, problem=DEACTIVATED)
        except TooManyTriesError as error:
            page = _page(429, target=target, name=name, problem=f"Not now: {error}.")
            page.headers["Retry-After"] = str(error.wait_s)
            return page
        if account is None:
            return _page(401, target=target, name=name, problem=WRONG)
        return entered(request, space().secret(), account, target)

    return (Route(signin.PATH, form, methods=["GET"]), Route(signin.PATH, enter, methods=["POST"]))


def entered(request: Request, secret: str, account: Person, target: str) -> Response:
    """Return the way on to a page, with the cookies of a person who has shown that they are this one."""
    answer = RedirectResponse(target, 303, {"Cache-Control": "no-store"})
    origin = request.headers.get("origin") or ""
    is_secure = request.url.scheme == "https" or origin.startswith("https://")
    session = signin.mint(secret, signin.Session(account.name, account.epoch))
    device = signin.mint_device(secret, account.name)
    for name, value, age in (
        (signin.COOKIE, session, signin.MAX_AGE_S),
        (signin.DEVICE, device, signin.DEVICE_AGE_S),
    ):
        answer.set_cookie(name, value, max_age=age, httponly=True, samesite="lax", secure=is_secure, path="/")
    return answer


def address_of(request: Request) -> str:
    """The sender's address; where a proxy says another and none is known here, no word of it is believed."""
    if "x-forwarded-for" in request.headers and not config().proxies:
        return UNKNOWN_ADDRESS
    return request.client.host if request.client is not None else ""


async def form_fields(request: Request) -> dict[str, str] | None:
    """Return the fields of a form that was sent, the last of each name; None for more than `BODY_LIMIT` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            return None
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}


def _has_administrator(space: Workspace) -> bool:
    with read_transaction(space.engine) as connection:
        return someone_can_sign_in(connection)


def _page(status: int, *, target: str = "/", name: str = "", problem: str = "") -> HTMLResponse:
    return form_page(
        status, signin.PATH, _FIELDS.format(name=escape(name), next=escape(target)), problem=problem
    )  # fmt: skip


def form_page(status: int, action: str, fields: str, *, problem: str = "") -> HTMLResponse:
    """Return a page with one form; `fields` is our own markup, whatever stands in it escaped."""
    alert = f'<p class="problem" role="alert">{escape(problem)}</p>\n' if problem else ""
    return HTMLResponse(_FRAME.format(action=action, problem=alert, fields=fields), status, _HEADERS)


ROUTES = signin_routes(workspace, is_on=lambda: config().sign_in == "password")
