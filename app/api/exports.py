"""Stable addresses for data: `GET /api/export/{name}`, with the filters of the Agreement page and a token.

The token of a page stands in the address; a script sends its own as `Authorization: Bearer`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tracejury.app import datasets, estimates, options
from tracejury.app.api import scripts
from tracejury.app.api.answers import NotServedError, answered
from tracejury.app.api.rights import checked
from tracejury.app.components.filters import ANY_GUIDELINE, MATCHES, MISSING, TOLERANCES, reference_of
from tracejury.app.estimates import FailedEstimateError, NoEstimateError
from tracejury.app.grants import TokenError
from tracejury.app.session import FILTERS, workspace
from tracejury.ingest.store import read_transaction, trace_ids
from tracejury.judging.agreement.frames import Missing
from tracejury.judging.labels.anchoring import at_work_blind
from tracejury.judging.labels.sightings import note_seen
from tracejury.judging.records import Tolerance
from tracejury.judging.reports.filters import Filters, Matches, UnknownFilterError, named
from tracejury.judging.store import Workspace

PURPOSE = "export"
"""Of tokens for one data set; made only for those who may see judges' answers."""
STATS = "stats"
SEVERAL = ("judge_models", "versions", "trace_formats")
YES_NO = {"true": True, "false": False}
KNOWN = tuple(sorted({*FILTERS, "format", "table", "token"}))
"""What an address may ask: a word misspelt would else let every row through."""


def export_routes(space: Callable[[], Workspace]) -> tuple[Route, ...]:
    """The routes over a workspace that is opened when the first request comes."""

    async def export(request: Request) -> Response:
        name, query = request.path_params["name"], request.query_params
        several = {key: query.getlist(key) for key in SEVERAL}
        bearer = scripts.bearer(request)
        return await answered(lambda: _export(space(), bearer, name, dict(query), several))

    return (Route("/api/export/{name}", export),)


def filters_of(query: Mapping[str, str], several: Mapping[str, Sequence[str]]) -> Filters:
    """The filters of an address, in the words of the pages or of the command line.

    `several` holds the filters that may be given more than once, or with commas: judge_models, versions, trace_formats.
    Raises `NotServedError`, and `UnknownFilterError` for one that names nothing of the workspace.
    """
    named(query, KNOWN, "filter")
    offered = options.options()
    split, guideline = query.get("split") or None, query.get("guideline")
    named([] if split is None else [split], offered.splits, "split")
    return offered.checked(
        Filters(
            reference=reference_of(query.get("reference")),
            judge_models=_parts(several.get("judge_models", ()), offered.judge_models),
            matches=cast("Matches", _one(query, "matches", {**MATCHES}, "proposed")),
            split=None if split is None else offered.splits[split],
            missing=cast("Missing", _one(query, "missing", {**MISSING, **{m: m for m in get_args(Missing)}}, "drop")),
            blind_only=bool(_one(query, "blind_only", YES_NO, "true")),
            versions=_parts(several.get("versions", ()), offered.versions),
            repeat=_repeat(query.get("repeat"), offered.repeats),
            trace_formats=_parts(several.get("trace_formats", ()), offered.trace_formats),
            guideline=None if guideline in {None, "", ANY_GUIDELINE} else guideline,
            tolerance=cast(
                "Tolerance", _one(query, "tolerance", {**TOLERANCES, **{t: t for t in get_args(Tolerance)}}, "exact")
            ),
            same_traces=bool(_one(query, "same_traces", YES_NO, "true")),
        )
    )


def _repeat(word: str | None, known: Sequence[int]) -> int:
    number = (word or "0").removeprefix("repeat ")
    named([number], [str(one) for one in known], "repeat", also={"0"})
    return int(number)


def _parts(words: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Names given one by one or with commas; a name may have commas of its own."""
    apart = [[name] if name in known else name.split(",") for name in words]
    return tuple(name for names in apart for name in names if name)


def _one(query: Mapping[str, str], name: str, meanings: Mapping[str, object], default: str) -> object:
    word = query.get(name) or default
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
    space: Workspace, bearer: str | None, name: str, query: Mapping[str, str], several: Mapping[str, Sequence[str]]
) -> Response:
    who = _exporter(space, bearer, query.get("token"), name)
    with read_transaction(space.engine) as connection:
        blind = at_work_blind(connection, who)
    form = query.get("format") or "csv"
    try:
        filters = filters_of(query, several)
        if name == "manifest":
            filters = estimates.with_all(filters)
            return JSONResponse(datasets.manifest(filters, blind=blind))
        if name == "report":
            filters = datasets.with_tables(filters)
            _note_all(space, who, blind)
            return _file(datasets.report_zip(filters, blind=blind), "tracejury-report", "zip")
        if form not in datasets.FORMATS:
            raise NotServedError(422, f"format is {form!r}", f"use one of: {', '.join(datasets.FORMATS)}")
        if name == STATS:
            return _stats(filters, query.get("table") or "error_estimates", form, blind)
        if name not in datasets.BY_NAME:
            known = ", ".join([*datasets.BY_NAME, STATS, "report", "manifest"])
            raise NotServedError(404, f"no export is called {name!r}", f"use one of: {known}")
        filters = estimates.with_all(filters)
        dataset = datasets.BY_NAME[name]
        rows = datasets.open_rows(dataset.frame(filters), blind)
        _note(space, who, {str(one) for key in datasets.TRACE_COLUMNS if key in rows for one in rows[key].dropna()})
        return _file(datasets.rows_bytes(dataset, rows, form, datasets.manifest(filters, blind=blind)), name, form)
    except UnknownFilterError as error:
        raise NotServedError(422, error.problem, error.remedy) from error
    except NoEstimateError as error:
        raise NotServedError(422, str(error), "choose other filters") from error
    except FailedEstimateError as error:
        raise NotServedError(503, str(error), "try again") from error


def _note(space: Workspace, who: str, ids: Iterable[str]) -> None:
    note_seen(space.engine, annotator=who, trace_ids=ids, what="Export")


def _note_all(space: Workspace, who: str, blind: Collection[str]) -> None:
    with read_transaction(space.engine) as connection:
        ids = set(trace_ids(connection)).difference(blind)
    _note(space, who, ids)


def _stats(filters: Filters, name: str, form: str, blind: frozenset[str]) -> Response:
    tables = {table.name: table for table in datasets.available(estimates.inputs(filters))}
    if name not in tables:
        raise NotServedError(404, f"no table is called {name!r}", f"use one of: {', '.join(tables)}")
    filters = estimates.with_all(filters, f"table.{name}")
    return _file(datasets.table_bytes(tables[name], filters, form, blind=blind), name, form)


def _file(data: bytes, name: str, form: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"', "Cache-Control": "no-store"}
    return Response(data, 200, headers, datasets.MIMES[form])


ROUTES = export_routes(workspace)
