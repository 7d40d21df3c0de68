"""Stable addresses for data: `GET /api/export/{name}`, with the filters of the Agreement page and a token.

The token of a page stands in the address; a script sends its own as `Authorization: Bearer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tracejury.app import datasets, loading
from tracejury.app.api import scripts
from tracejury.app.api.answers import NotServedError, answered
from tracejury.app.api.rights import checked
from tracejury.app.components.filters import ANY_GUIDELINE, BLIND, MATCHES, MISSING, reference_of
from tracejury.app.computing import NotComputedError
from tracejury.app.grants import TokenError
from tracejury.app.loading import Choice, SplitError
from tracejury.app.session import FILTERS, workspace
from tracejury.ingest.store import read_transaction, trace_ids
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.majority import REFERENCE_KINDS
from tracejury.judging.labels.anchoring import at_work_blind
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.reports.frames import Counting
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import person

PURPOSE = "export"
"""Of tokens for one data set; made only for those who may see judges' answers."""
STATS = "stats"
SEVERAL = ("judge_models", "versions", "data")
KNOWN = frozenset({*FILTERS, "format", "table", "token"})
"""What an address may ask: a word misspelt would else let every row through."""


def export_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""

    async def export(request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        several = {key: asked.getlist(key) for key in SEVERAL}
        bearer = scripts.bearer(request)
        return await answered(lambda: _export(space(), bearer, name, dict(asked), several))

    return (Route("/api/export/{name}", export),)


def choice_of(asked: Mapping[str, str], several: Mapping[str, Sequence[str]]) -> Choice:
    """The filters of an address, in the words of the pages or of the command line. Raises `NotServedError`.

    `several` holds the filters that may be given more than once, or with commas: judge_models, versions, data.
    """
    for name in asked:
        _among(name, KNOWN, "filter")
    held = loading.options()
    return Choice(
        reference=_known_reference(reference_of(asked.get("reference")), held.people),
        judge_models=_parts(several.get("judge_models", ()), held.judge_models, "judge model"),
        matches=cast("Counting", _one(asked, "matches", {**MATCHES}, "proposed")),
        split=asked.get("split") or None,
        missing=cast("Missing", _one(asked, "missing", {**MISSING, **{m: m for m in get_args(Missing)}}, "drop")),
        blind_only=bool(_one(asked, "phase", {**BLIND}, "blind")),
        versions=_versions(several.get("versions", ()), held.versions),
        repeat=_run(asked.get("repeat"), held.repeats),
        formats=_parts(several.get("data", ()), held.formats, "format of traces"),
        guideline=_guideline(asked.get("guideline"), held.guidelines),
    )


def _known_reference(name: str | None, reviewers: Sequence[str]) -> str | None:
    """A kind of reference, or somebody of the workspace, with submitted reviews or without."""
    if name is not None and name not in (*reviewers, *REFERENCE_KINDS):
        with read_transaction(workspace().engine) as connection:
            if person(connection, name) is None:
                raise _unknown(name, reviewers, "person")
    return name


def _versions(given: Sequence[str], held: Mapping[str, str]) -> tuple[str, ...]:
    """Judge versions by hash, or by the words of the page."""
    return tuple(held.get(name, name) for name in _parts(given, {**held, **dict.fromkeys(held.values())}, "version"))


def _run(word: str | None, held: Sequence[int]) -> int:
    number = (word or "0").removeprefix("repeat ")
    runs = {str(run): run for run in held or (0,)}
    return runs[_among(number, runs, "repeat")]


def _guideline(version: str | None, held: Sequence[str]) -> str | None:
    return None if version in {None, "", ANY_GUIDELINE} else _among(str(version), held, "guideline version")


def _parts(given: Sequence[str], known: Collection[str], what: str) -> tuple[str, ...]:
    """Names given one by one or with commas; a name may have commas of its own."""
    apart = [[name] if name in known else name.split(",") for name in given]
    return tuple(_among(name, known, what) for names in apart for name in names if name)


def _among(name: str, known: Collection[str], what: str) -> str:
    if name not in known:
        raise _unknown(name, known, what)
    return name


def _unknown(name: str, known: Collection[str], what: str) -> NotServedError:
    there = f"use one of: {'; '.join(sorted(known))}" if known else "there is none yet"
    return NotServedError(422, f"no {what} is called {name[:60]!r}", there)


def _one(asked: Mapping[str, str], name: str, meanings: Mapping[str, object], default: str) -> object:
    word = asked.get(name) or default
    if word not in meanings:
        raise NotServedError(422, f"{name} is {word!r}", f"use one of: {', '.join(meanings)}")
    return meanings[word]


def _exporter(space: Workspace, bearer: str | None, token: str | None, name: str) -> str:
    """Who asks. Raises `TokenError` for somebody who may not."""
    if bearer is not None:
        return scripts.checked_script(space, bearer, use="export").user
    if scripts.is_script(token):  # good for days, and addresses stand in logs
        raise TokenError("a script's token does not belong in an address", remedy="send it as Authorization: Bearer")
    return checked(space, token, subject=name, purpose=PURPOSE, role="researcher").user


def _export(
    space: Workspace, bearer: str | None, name: str, asked: Mapping[str, str], several: Mapping[str, Sequence[str]]
) -> Response:
    who = _exporter(space, bearer, asked.get("token"), name)
    with read_transaction(space.engine) as connection:
        blind = at_work_blind(connection, who)
    form = asked.get("format") or "csv"
    choice = choice_of(asked, several)
    try:
        if name == "manifest":
            choice = loading.with_frames(choice)
            return JSONResponse(datasets.manifest(choice, blind=blind))
        if name == "report":
            choice = loading.with_frames(choice)
            _note_all(space, who, blind)
            return _file(datasets.report_zip(choice, blind=blind), "tracejury-report", "zip")
        if form not in datasets.FORMATS:
            raise NotServedError(422, f"format is {form!r}", f"use one of: {', '.join(datasets.FORMATS)}")
        if name == STATS:
            return _stats(choice, asked.get("table") or "error_figures", form, blind)
        if name not in datasets.BY_NAME:
            known = ", ".join([*datasets.BY_NAME, STATS, "report", "manifest"])
            raise NotServedError(404, f"no export is called {name!r}", f"use one of: {known}")
        choice = loading.with_frames(choice)
        dataset = datasets.BY_NAME[name]
        rows = datasets.open_rows(dataset.frame(choice), blind)
        _note(space, who, {str(one) for key in datasets.TRACE_COLUMNS if key in rows for one in rows[key].dropna()})
        return _file(datasets.rows_bytes(dataset, rows, form, datasets.manifest(choice, blind=blind)), name, form)
    except NotComputedError as error:
        raise NotServedError(503, str(error), "ask again") from error
    except SplitError as error:
        raise NotServedError(422, str(error), "choose a split that is there") from error


def _note(space: Workspace, who: str, ids: Iterable[str]) -> None:
    note_seen(space.engine, annotator=who, trace_ids=ids, what="Export")


def _note_all(space: Workspace, who: str, blind: Collection[str]) -> None:
    with read_transaction(space.engine) as connection:
        ids = set(trace_ids(connection)).difference(blind)
    _note(space, who, ids)


def _stats(choice: Choice, name: str, form: str, blind: frozenset[str]) -> Response:
    choice = loading.whole(choice)
    inputs = loading.inputs(choice)
    tables = {table.name: table for table in datasets.available(inputs)}
    if name not in tables:
        raise NotServedError(404, f"no table is called {name!r}", f"use one of: {', '.join(tables)}")
    choice = loading.whole(choice, name)
    return _file(datasets.table_bytes(tables[name], choice, form, blind=blind), name, form)


def _file(data: bytes, name: str, form: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"', "Cache-Control": "no-store"}
    return Response(data, 200, headers, datasets.MIMES[form])


ROUTES = export_routes(workspace)
