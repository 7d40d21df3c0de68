"""The web application: Streamlit's pages and our API routes in one process."""

import asyncio
import gc
import importlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit import App

from tracejury.app import adjudicating, estimates, telemetry
from tracejury.app.api import ROUTES
from tracejury.app.api.answers import MachineFaults
from tracejury.app.api.otlp import watch_stragglers
from tracejury.app.api.scripts import may_read_metrics
from tracejury.app.api.signin import is_signed_in
from tracejury.app.config import config
from tracejury.app.guard import Guard
from tracejury.app.lifeline import end_with_parent
from tracejury.app.look import Look
from tracejury.app.run_processes import RUNS
from tracejury.app.session import ask_database, workspace
from tracejury.app.signin import SignInFirst
from tracejury.judging.agreement.frames import keep_texts_in_python

keep_texts_in_python()
_log = logging.getLogger(__name__)

READY_AFTER_S = 5.0
ANSWER_S = 5.0
IMPORTED_LATE = ("sklearn.feature_extraction.text", "tracejury.app.components.charts")


async def health(_request: object) -> JSONResponse:
    """Alive; opens nothing."""
    return JSONResponse({"status": "ok"})


async def ready(_request: object) -> JSONResponse:
    """Whether pages can work: 503 where the database does not answer within `ANSWER_S`. It names no detail."""
    try:
        await asyncio.wait_for(asyncio.to_thread(ask_database), ANSWER_S)
    except Exception:
        _log.warning("the database does not answer", exc_info=True)
        return JSONResponse({"status": "failed", "database": "no answer"}, 503)
    return JSONResponse({"status": "ok", "database": "ok"})


async def be_ready() -> None:
    """What takes a second to import or to read, once the first page has had its time, where much is held."""
    await asyncio.sleep(READY_AFTER_S)
    await asyncio.to_thread(settle)
    if not await asyncio.to_thread(estimates.is_small_now):
        for name in IMPORTED_LATE:
            await asyncio.to_thread(importlib.import_module, name)
        await asyncio.to_thread(adjudicating.warm)
        await asyncio.to_thread(settle)


def settle() -> None:
    """Keep the collector from all that is here to stay: Streamlit has it look through everything after each run."""
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(_app: App) -> AsyncIterator[None]:
    """Beside the pages: traces that came without a root are shown after a while; the worker of estimates is ready."""
    end_with_parent()
    telemetry.configure_logging()
    gc.freeze()  # what was imported; the rest in `settle`
    watcher = asyncio.create_task(watch_stragglers(workspace))
    await asyncio.to_thread(estimates.start)
    readying = asyncio.create_task(be_ready())
    try:
        yield
    finally:
        for task in (watcher, readying):
            task.cancel()
        if SIGNALS is not None:
            await asyncio.to_thread(SIGNALS.close)
        estimates.queue().close()
        RUNS.close()


def middleware() -> list[Middleware]:
    """Each request is recorded. What is not for this app is refused, what the machine fails is named; in the password
    mode nobody gets a page before they have signed in; a page comes with its style.
    """
    observed = Middleware(telemetry.Observed, routes=OURS, signals=SIGNALS)
    settings = config()
    guard = Middleware(Guard, hosts=settings.hosts, may_read_metrics=may_read_metrics, patience_s=settings.timeout_s)
    first = [Middleware(SignInFirst, is_signed_in=is_signed_in)] if settings.sign_in == "password" else []
    return [observed, guard, Middleware(MachineFaults), *first, Middleware(Look)]


OURS = [Route("/api/health", health), Route("/health", ready), *ROUTES]
SIGNALS = telemetry.signals()
app = App(
    Path(__file__).parent / "main.py",
    routes=OURS,
    middleware=middleware(),
    lifespan=lifespan,
)
