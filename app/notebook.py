"""The way in from Python: `import tracejury as tj`; the same functions as the pages and the command.

Frames are pandas with the types of `judging.reports.rows`; `to_arrow` gives the span table to polars and DuckDB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from tracejury.ingest.batch import Report, ingest
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import read_transaction
from tracejury.ingest.table import span_frame, span_table
from tracejury.ingest.trace import Rejected, Span, Trace
from tracejury.ingest.words import counted
from tracejury.judging.agreement import errors, reliability
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import TABLES
from tracejury.judging.judges.rubric import choose_rubrics, rubrics
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import DIMENSIONS, Failure, Verdict
from tracejury.judging.reports import rows
from tracejury.judging.reports.export import (
    facts_of,
    inputs_of,
    manifest_of,
    opinions_of,
    report_tables,
    write_manifest,
    write_report,
)
from tracejury.judging.reports.filter_options import checked
from tracejury.judging.reports.filters import Filters, read_split
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.store import NoWorkspaceError, open_workspace
from tracejury.judging.store import Workspace as Store

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
CHECKS = "checks"


def open(home: str | Path | None = None, *, create: bool = False) -> Workspace:
    """Open the workspace at `home`; with `create` one is made where there is none.

    `home` defaults to TRACEJURY_HOME, then to `./.tracejury`. Raises `WorkspaceError`, also for a folder without a
    workspace: a mistyped path makes no empty one.
    """
    try:
        return Workspace(open_workspace(None if home is None else Path(home).expanduser(), create=create))
    except NoWorkspaceError as error:
        raise NoWorkspaceError(f"{error}. Try: correct the path, or create=True to make one") from error


def read(*paths: str | Path, format: str | None = None, merge: bool = False) -> Traces:
    """Read traces from files, folders and archives, without a workspace; `rejected` names what could not be read."""
    every = [one for path in paths for one in read_traces(Path(path).expanduser(), format=format, merge=merge)]
    return Traces(
        [ShownTrace(one) for one in every if isinstance(one, Trace)],
        [one for one in every if isinstance(one, Rejected)],
    )


class ShownTrace:
    """A trace with its span table; a notebook shows its tree of spans, as text only."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __getattr__(self, name: str) -> Any:
        return getattr(self.trace, name)

    def __repr__(self) -> str:
        return f"<trace {self.trace.trace_id}: {counted(len(self.trace.spans), 'span')}>"

    @cached_property
    def text(self) -> str:
        """Judge's view of the trace."""
        from tracejury.judging.judges.trace_text import render_trace

        return render_trace(self.trace).text

    def spans(self) -> pd.DataFrame:
        """Give the span table of the trace."""
        return span_frame([self.trace])

    def _repr_html_(self) -> str:
        lines = "\n".join(_tree_line(span) for span in self.trace.spans)
        head = f"{self.trace.trace_id}: {self.trace.goal or 'no goal found'}"
        return f"<p>{escape(head)}</p><pre>{escape(lines)}</pre>"


class Traces(Sequence[ShownTrace]):
    """Traces that were read, and what was rejected with its reason and remedy."""

    def __init__(self, traces: list[ShownTrace], rejected: list[Rejected]) -> None:
        self._traces, self.rejected = traces, rejected

    def __getitem__(self, at: Any) -> Any:
        return self._traces[at]

    def __len__(self) -> int:
        return len(self._traces)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'trace')}, {len(self.rejected)} rejected>"

    def spans(self) -> pd.DataFrame:
        """Give the span table of all traces."""
        return span_frame(one.trace for one in self._traces)

    def messages(self) -> pd.DataFrame:
        """Return one row per message."""
        return rows.messages_frame(one.trace for one in self._traces)

    def to_arrow(self) -> pa.Table:
        """Give the span table as Arrow."""
        return span_table(one.trace for one in self._traces)


class Workspace:
    """A workspace: its tables as data frames, and what the command does with it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __repr__(self) -> str:
        return f"<workspace {self.store.home}: {counted(len(self.traces()), 'trace')}>"

    def ingest(self, *paths: str | Path, merge: bool = False) -> Report:
        """Ingest files, folders and archives; the report names what was rejected."""
        return ingest(self.store.engine, [str(Path(path).expanduser()) for path in paths], merge=merge)

    def trace(self, trace_id: str) -> ShownTrace:
        """Give one trace. Raises `KeyError` for an id that is not here."""
        with read_transaction(self.store.engine) as connection:
            return ShownTrace(next(rows.traces_of(connection, [trace_id])))

    def traces(self) -> pd.DataFrame:
        """Return one row per trace with its summary."""
        return self._rows(rows.trace_rows)

    def spans(self, traces: Collection[str] | None = None) -> pd.DataFrame:
        """Give the span table, of all traces or of these."""
        return self._rows(lambda connection: rows.span_rows(connection, traces))

    def messages(self, traces: Collection[str] | None = None) -> pd.DataFrame:
        """Return one row per message, of all traces or of these."""
        return self._rows(lambda connection: rows.message_rows(connection, traces))

    def to_arrow(self, traces: Collection[str] | None = None) -> pa.Table:
        """Give the span table as Arrow, for polars and DuckDB."""
        return self._rows(lambda connection: rows.span_arrow(connection, traces))

    def labels(self) -> pd.DataFrame:
        """Give one row an error that a person marked."""
        return self._rows(rows.label_rows)

    def scores(self) -> pd.DataFrame:
        """Return one row per score that a person gave."""
        return self._rows(rows.score_rows)

    def reviews(self) -> pd.DataFrame:
        """Return one row per trace that a person opened, with its status."""
        return self._rows(rows.review_rows)

    def verdicts(self) -> pd.DataFrame:
        """Return one row per verdict or failure of a judge."""
        return self._rows(rows.verdict_rows)

    def findings(self) -> pd.DataFrame:
        """Return one row per finding of a judge."""
        return self._rows(rows.finding_rows)

    def matches(self) -> pd.DataFrame:
        """Return one row per pair of an error and a finding: proposed, confirmed or rejected."""
        return self._rows(rows.match_rows)

    def judge(
        self,
        model: str = CHECKS,
        dimensions: Sequence[str] = DIMENSIONS,
        traces: Sequence[str] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """Judge traces (default: all) and wait; `settings` are those of `RunSpec`, as repeats, budget_usd, api_base.

        Returns counts by state and the run's key. Raises `ValueError` for what no run can do, `RubricError` for an
        unknown dimension.
        """
        if model == CHECKS:
            from tracejury.judging.runs.offline import judge_all

            if settings:
                raise ValueError(
                    f"the offline checks do not take {next(iter(settings))}. Try: name a model, or leave it out"
                )
            return asdict(
                judge_all(self.store.engine, traces=traces, dimensions=_shipped(dimensions), author="notebook")
            )
        return _apart(lambda: self._judge_by_model(model, dimensions, traces, settings))

    def match(self) -> dict[str, int]:
        """Propose which findings describe which reference errors, by the rule."""
        return propose_matches(self.store.engine)

    def table(self, name: str, **filters: Any) -> pd.DataFrame:
        """Give a report table under the filters of the pages, by the same names.

        Raises `ValueError` that names the tables, filters or values that exist.
        """
        known = [table.name for table in TABLES]
        if name not in known:
            raise ValueError(f"no table is called {name!r}; there are {', '.join(known)}")
        return report_tables(self.inputs(**filters), [name])[name]

    def report(self, out: str | Path, *, format: str | Sequence[str] = "csv", **filters: Any) -> list[Path]:
        """Write every table that can be made into the folder `out`, with manifest.json; returns the files.

        `format`: csv, json, md, tex, parquet, or several of these.
        """
        folder, inputs = Path(out).expanduser(), self.inputs(**filters)
        with read_transaction(self.store.engine) as connection:
            chosen = checked(connection, filters_of(filters))
            manifest = manifest_of(facts_of(load_frames(connection, chosen)), chosen, inputs)
        forms = format.split(",") if isinstance(format, str) else list(format)
        written = write_report(folder, report_tables(inputs), formats=forms, made_from=manifest)
        write_manifest(folder, manifest, written)
        return [folder / one.file for one in written]

    def inputs(self, **filters: Any) -> Inputs:
        """Give what the tables are made from under these filters: error_pairs, score_pairs, ratings and so on."""
        with read_transaction(self.store.engine) as connection:
            chosen = checked(connection, filters_of(filters))
            frames = load_frames(connection, chosen)
            return inputs_of(frames, chosen, opinions_of(connection, chosen, frames))

    def _rows(self, make: Callable[[Any], T]) -> T:
        with read_transaction(self.store.engine) as connection:
            return make(connection)

    def _judge_by_model(
        self, model: str, dimensions: Sequence[str], traces: Sequence[str] | None, settings: dict[str, Any]
    ) -> dict[str, Any]:
        from tracejury.ingest.store import trace_ids
        from tracejury.judging.judges.rubric import agent_descriptions
        from tracejury.judging.runs.model_setup import check_spec
        from tracejury.judging.runs.run_control import plan_run
        from tracejury.judging.runs.run_spec import RunSpec, model_names
        from tracejury.judging.wiring import model_setups, work_on

        known, engine = rubrics(self.store.home), self.store.engine
        chosen = choose_rubrics(",".join(dimensions), known)
        spec = RunSpec(rubrics=tuple(one.key for one in chosen), models=model_names(model), **settings)
        trace_ids_wanted = list(traces) if traces is not None else self._rows(lambda c: trace_ids(c, with_steps=True))
        agents, setups = agent_descriptions(self.store.home), model_setups(spec)
        check_spec(spec, rubrics=known, models=setups, agents=agents)  # before a run is stored
        run = plan_run(engine, spec, trace_ids_wanted, rubrics=known, agents=agents, author="notebook")
        summary = work_on(engine, run, home=self.store.home, models=setups)
        return {"run": run, "status": summary.status, "states": dict(summary.states)}


def filters_of(values: Mapping[str, Any]) -> Filters:
    """Make filters of keyword arguments; a text stands for a list of one, and for a split it is a file's path.

    Raises `ValueError` for an unknown name.
    """
    known = {each.name: each.default for each in fields(Filters)}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(f"no filter is called {unknown[0]!r}. Try: {', '.join(known)}")
    several = {name for name, default in known.items() if default == ()}
    chosen: dict[str, Any] = {
        name: ((value,) if isinstance(value, str) else tuple(value)) if name in several else value
        for name, value in values.items()
    }
    if isinstance(split := chosen.get("split"), str | Path):
        file = Path(split).expanduser()
        chosen["split"] = read_split(file.read_bytes(), str(file), file.stem)
    return Filters(**chosen)


def judge(trace: Trace | ShownTrace, dimension: str, *, model: str = CHECKS, **settings: Any) -> Verdict | Failure:
    """Judge one trace under one dimension and wait; nothing is stored. `settings` as `judge_async` takes them."""
    return _apart(lambda: asyncio.run(_awaited(judge_async(trace, dimension, model=model, **settings))))


async def judge_async(
    trace: Trace | ShownTrace,
    dimension: str,
    *,
    model: str = CHECKS,
    api_base: str | None = None,
    home: Path | None = None,
    **parameters: Any,
) -> Verdict | Failure:
    """Judge one trace under one dimension; nothing is stored.

    `parameters` go to the provider (temperature, max_tokens). A failure is returned, never raised. Raises
    `RubricError` for an unknown dimension.
    """
    plain_trace = trace.trace if isinstance(trace, ShownTrace) else trace
    if model == CHECKS:
        from tracejury.judging.checks import judge_offline

        (key,) = _shipped([dimension])
        return next(one for one in judge_offline(plain_trace) if one.rubric == key)
    from tracejury.judging.judges.judge import Judge, judge_trace
    from tracejury.judging.judges.model import LitellmModel
    from tracejury.judging.judges.trace_text import render_trace

    (rubric,) = choose_rubrics(dimension, rubrics(home))
    one_judge = Judge(rubric=rubric, model=model, parameters=parameters)
    return await judge_trace(one_judge, render_trace(plain_trace), LitellmModel(name=model, api_base=api_base))


def alpha(ratings: pd.DataFrame, level: reliability.Level = "interval") -> pd.Series:
    """Give Krippendorff's alpha of ratings: value, low, high, n and the reason where it is undefined.

    `ratings`: unit, rater, value; one row per rating. Source: Krippendorff (2011), by the library `krippendorff`.
    """
    _must_have(ratings, "ratings", ("unit", "rater", "value"))
    matrix = reliability.rating_matrix(ratings)
    estimate = reliability.alpha_with_interval(matrix.values, level, clusters=reliability.clusters_of(matrix)).row()
    return pd.Series({name: estimate[name] for name in ("value", "low", "high", "n", "reason")})


def precision_recall(error_pairs: pd.DataFrame) -> pd.DataFrame:
    """Give precision (GPA), recall, F1, F2 and accuracy of caught and localized errors, with intervals.

    `error_pairs`: trace_id, error_id, impact, dimension, relevant, caught, localized; optional judge_model, split.
    """
    _must_have(
        error_pairs, "error_pairs", ("trace_id", "error_id", "impact", "dimension", "relevant", "caught", "localized")
    )
    return errors.error_table(error_pairs)


def _must_have(frame: object, name: str, columns: Sequence[str]) -> None:
    """Raise `ValueError` where a frame is none, or lacks a column."""
    have = [str(one) for one in frame.columns] if isinstance(frame, pd.DataFrame) else []
    if lacking := [one for one in columns if one not in have]:
        raise ValueError(f"{name} lacks {', '.join(lacking)}. Try: a pandas data frame with {', '.join(columns)}")


def _tree_line(span: Span) -> str:
    status = "  ERROR" if span.status == "ERROR" else ""
    return f"{'  ' * span.depth}S{span.seq} {span.kind} {span.name}{status}"


def _shipped(dimensions: Iterable[str]) -> tuple[Any, ...]:
    unknown = [one for one in dimensions if one not in DIMENSIONS]
    if unknown:
        raise ValueError(f"the offline checks have no dimension {unknown[0]!r}; they have {', '.join(DIMENSIONS)}")
    return tuple(dimensions)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _apart(work: Callable[[], T]) -> T:
    """Run in a thread of its own: a notebook's own event loop is running in this one."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()
