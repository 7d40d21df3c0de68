"""The store's rows as columns, whatever is chosen: read once a revision, shared by every choice of `frames`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson
import pandas as pd
from sqlalchemy import Connection, Select, func, select

from tracejury.ingest.labels import JudgeReply, normal_category, read_reply
from tracejury.ingest.store import schema
from tracejury.ingest.texts import decompress
from tracejury.ingest.trace import Json
from tracejury.judging.agreement.frames import among
from tracejury.judging.labels.label_store import newest
from tracejury.judging.labels.spans_scored import MARK
from tracejury.judging.labels.submissions import submissions
from tracejury.judging.matching.compared import matched_until, matchers_of
from tracejury.judging.matching.finding_reviews import finding_reviews
from tracejury.judging.matching.own_rates import own_rates
from tracejury.judging.matching.standing import decisions
from tracejury.judging.queues.strategies import recorded_chances
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES, DIMENSIONS
from tracejury.judging.reports.trace_slices import error_spans, trace_slices
from tracejury.judging.runs.paid_costs import paid_elsewhere
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import SCORES_ONLY, current_versions, version_names
from tracejury.judging.store.people import gold_names
from tracejury.judging.store.revisions import Revision, revision


@dataclass(frozen=True, kw_only=True)
class MadeOf:
    """What the columns were read from, as a manifest tells it: all of one revision.

    `data_hash` is of the contents of all traces.
    """

    revision: Revision
    data_hash: str
    judge_versions: tuple[Mapping[str, Json], ...]
    matchers: tuple[str, ...]
    """Who compared errors and findings: the rule with its version, models with those of their prompts."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Everything that the frames of any choice are made from. Never changed once made.

    `cells`: finished cells of traces in the workspace, the newest of each last, with what they cost. `rationales` and
    `findings` go by `cell_key`. `errors` holds every revision of a label that is not of a hidden repeat, of
    traces that are here, in the order of writing; `scores` every current score; `submitted` who reviewed which trace.
    """

    cells: pd.DataFrame
    rationales: pd.DataFrame
    findings: pd.DataFrame
    predictions: pd.DataFrame
    errors: pd.DataFrame
    scores: pd.DataFrame
    repeats: pd.DataFrame
    submitted: pd.DataFrame
    decisions: pd.DataFrame
    matched: pd.DataFrame
    """cell_key, annotator, last_label: whose errors were compared with a cell's findings, up to which row."""
    trace_slices: pd.DataFrame
    """`trace_slices.trace_slices` of the traces that people submitted or judges answered."""
    error_spans: pd.DataFrame
    """`trace_slices.error_spans` of the spans that error labels name."""
    chances: Mapping[str, float | None] | None
    """`strategies.recorded_chances`: with what chance a queue drew each trace."""
    present: Mapping[str, str]
    """The traces of the workspace, with the format of each."""
    rule_rates: pd.DataFrame
    """`own_rates.own_rates`: what the matching rule reached on pairs labelled here."""
    current: frozenset[str]
    golds: frozenset[str]
    made_of: MadeOf


def load_columns(connection: Connection, before: Columns | None = None) -> Columns:
    """Read them all. Spans that are known of `before` are not looked for again where the traces are the same."""
    made_of = _made_of(connection)
    known = before.error_spans if before is not None and before.made_of.data_hash == made_of.data_hash else None
    present = dict(connection.execute(select(schema.trace.c.trace_id, schema.trace.c.format)).all())
    cells, errors, reviews = _cells(connection), _errors(connection, set(present)), submissions(connection)
    return Columns(
        cells=cells.drop(columns="rationale"),
        rationales=cells.loc[cells["rationale"].notna() & (cells["rationale"] != ""), ["cell_key", "rationale"]],
        findings=_findings(connection),
        predictions=_predictions(connection),
        errors=errors,
        scores=_scores(connection, set(present)),
        repeats=_repeats(connection),
        submitted=reviews,
        trace_slices=trace_slices(connection, {*reviews["trace_id"], *cells["trace_id"]} & set(present)),
        error_spans=error_spans(connection, errors["span_ids"], known),
        decisions=_decisions(connection),
        matched=matched_until(connection),
        chances=recorded_chances(connection),
        present=present,
        rule_rates=own_rates(connection),
        current=frozenset(current_versions(connection).values()),
        golds=gold_names(connection),
        made_of=made_of,
    )


def newest_in_place(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The last row of each combination of `keys`, at the place of the first."""
    order = rows[list(keys)].drop_duplicates()
    return order.merge(rows.drop_duplicates(list(keys), keep="last"), on=list(keys), how="left")


def _made_of(connection: Connection) -> MadeOf:
    trace, version = schema.trace.c, tables.judge_version.c
    digests = connection.execute(select(trace.trace_id, trace.digest).order_by(trace.trace_id)).all()
    versions = connection.execute(
        select(version.judge_version, version.rubric, version.model, version.rubric_version, version.mode).order_by(
            version.created_at, version.judge_version
        )
    )
    return MadeOf(
        revision=revision(connection),
        data_hash=blake2b(orjson.dumps([list(row) for row in digests]), digest_size=16).hexdigest(),
        judge_versions=tuple({str(name): value for name, value in row.items()} for row in versions.mappings()),
        matchers=matchers_of(connection),
    )


def _cells(connection: Connection) -> pd.DataFrame:
    cell, version = tables.cell, tables.judge_version
    columns = ("cell_key", "trace_id", "dimension", "judge_version", "repeat", "state", "score", "rationale", *_SPENT)
    query = (
        select(*(cell.c["rubric" if name == "dimension" else name] for name in columns))
        .join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
        .where(cell.c.state.in_(CELL_STATES))
        .order_by(cell.c.finished_at, cell.c.cell_key)
    )
    cells = _frame(connection, query, columns)
    modes = dict(connection.execute(select(version.c.judge_version, version.c.mode)).all())
    names = version_names(connection)
    versions = cells["judge_version"]  # without rows `map` makes floats
    cells["dimension"] = versions.map({key: name.dimension for key, name in names.items()}).astype("str")
    judge_models = versions.map({key: name.judge_model for key, name in names.items()}).astype("str")
    cells.insert(4, "judge_model", judge_models)
    mode = versions.map(modes)
    cells["reports_errors"] = mode != SCORES_ONLY
    types = {"cell_key": "int64", "repeat": "int64", "score": "float64", **dict.fromkeys(_SPENT, "float64")}
    return _with_spending(connection, cells.astype(types), mode == "checks")


_SPENT = ("cost_usd", "prompt_tokens", "completion_tokens")


def _with_spending(connection: Connection, cells: pd.DataFrame, is_check: pd.Series) -> pd.DataFrame:
    """Cells with `cost_usd` (US dollars as they were paid, `paid_elsewhere`) and `tokens`, NaN where not recorded.

    Checks call no model: their tokens are 0. Of a jury no tokens are its own.
    """
    elsewhere = paid_elsewhere(connection)
    cost = cells["cost_usd"].mask(cells["cell_key"].isin(elsewhere), cells["cell_key"].map(elsewhere).astype("float64"))
    tokens = (cells["prompt_tokens"] + cells["completion_tokens"]).mask(is_check, 0.0)
    return cells.drop(columns=[*_SPENT]).assign(cost_usd=cost, tokens=tokens)


def _findings(connection: Connection) -> pd.DataFrame:
    """finding_id, cell_key, citations, invalid_citations, review."""
    finding, citation = tables.finding, tables.citation
    cited = func.count(citation.c.citation_key)
    counts = _frame(
        connection,
        select(citation.c.finding_key, cited, cited - func.count(citation.c.span_id)).group_by(citation.c.finding_key),
        ("finding_id", "citations", "invalid_citations"),
    )
    keys = _frame(
        connection,
        select(finding.c.finding_key, finding.c.cell_key).order_by(finding.c.finding_key),
        ("finding_id", "cell_key"),
    )
    whole = {"finding_id": "int64", "cell_key": "int64", "citations": "int64", "invalid_citations": "int64"}
    counted_findings = keys.merge(counts, on="finding_id", how="left").fillna({"citations": 0, "invalid_citations": 0})
    reviews = pd.Series(finding_reviews(connection), dtype="str")
    return counted_findings.astype(whole).assign(review=counted_findings["finding_id"].map(reviews).astype("str"))


def _predictions(connection: Connection) -> pd.DataFrame:
    """cell_key, category, location: what TRAIL's official scorer reads.

    Of an imported answer in TRAIL's form every entry as it was written; of any other judge the findings that have a
    category, one row per citation (unresolved ones as written).
    """
    written = _written(connection)
    finding, citation = tables.finding, tables.citation
    query = (
        select(finding.c.cell_key, finding.c.category, func.coalesce(citation.c.span_id, citation.c.cite, ""))
        .outerjoin(citation, citation.c.finding_key == finding.c.finding_key)
        .where(finding.c.category.is_not(None))
        .order_by(finding.c.cell_key, finding.c.position, citation.c.position)
    )
    rows = _frame(connection, query, ("cell_key", "category", "location"))
    return pd.concat([rows[~rows["cell_key"].isin(written["cell_key"])], written], ignore_index=True)


def _written(connection: Connection) -> pd.DataFrame:
    """cell_key, category, location of every entry of imported answers, before any spelling was mended."""
    cell, version = tables.cell, tables.judge_version
    bodies = connection.execute(
        select(cell.c.cell_key, cell.c.trace_id, cell.c.raw_reply)
        .join(version, version.c.judge_version == cell.c.judge_version)
        .where(version.c.mode == "imported", cell.c.state.in_(ANSWERED_STATES), cell.c.raw_reply.is_not(None))
        .order_by(cell.c.cell_key)
    )
    rows = []
    for key, trace_id, body in bodies:
        reply = read_reply(decompress(body).decode("utf-8", "surrogatepass"), file=trace_id, trace_id=trace_id)
        if isinstance(reply, JudgeReply):
            rows += [(key, error.category_raw, error.location or "") for error in reply.errors]
    return pd.DataFrame(rows, columns=["cell_key", "category", "location"]).astype({"cell_key": "int64"})


_ERROR = (
    "label_id", "trace_id", "annotator", "impact", "category", "phase", "span_ids", "dimensions", "deleted",
    "row_key",
)  # fmt: skip


def _errors(connection: Connection, present: Set[str]) -> pd.DataFrame:
    """Every revision of error labels; span_ids and locations tuples, dimensions joined by commas.

    `category` and `locations` are as they were written: what TRAIL's official scorer reads.
    """
    table = tables.error_label
    query = select(*(table.c[name] for name in (*_ERROR, "attributes"))).where(table.c.occasion == 0)
    rows = _frame(connection, query.order_by(table.c.row_key), (*_ERROR, "attributes"))
    rows = rows[among(rows["trace_id"], present)]
    return rows.assign(
        span_ids=pd.Series([tuple(orjson.loads(v)) for v in rows["span_ids"]], index=rows.index, dtype="object"),
        dimensions=[",".join(orjson.loads(v)) for v in rows["dimensions"]],
        category=[_category(*pair) for pair in zip(rows["category"], rows["attributes"], strict=True)],
        locations=pd.Series(
            [_locations(*pair) for pair in zip(rows["span_ids"], rows["attributes"], strict=True)],
            index=rows.index,
            dtype="object",
        ),
        deleted=rows["deleted"].astype(bool),
    ).drop(columns="attributes")


def _category(category: object, attributes: str) -> str:
    """As the annotation has it, unless a person has given the error another category since."""
    known = category if isinstance(category, str) and category else None
    raw = orjson.loads(attributes).get("category_raw") if "category_raw" in attributes else None
    return raw if isinstance(raw, str) and known in (None, normal_category(raw)) else known or ""


def _locations(span_ids: str, attributes: str) -> tuple[str, ...]:
    raw = orjson.loads(attributes).get("location_raw") if "location_raw" in attributes else None
    return (raw,) if isinstance(raw, str) else tuple(orjson.loads(span_ids)) or ("",)


def _scores(connection: Connection, present: Set[str]) -> pd.DataFrame:
    """annotator, trace_id, dimension, value, not_applicable, phase of every current score that is given."""
    table = tables.score_label
    columns = ("annotator", "trace_id", "dimension", "value", "not_applicable", "phase")
    has_score = table.c.value.is_not(None) | table.c.not_applicable.is_(True)
    query = (
        select(*(table.c[name] for name in columns))
        .where(
            newest(table, ("annotator", "trace_id", "occasion", "dimension", "phase")),
            has_score,
            table.c.occasion == 0,
            ~table.c.dimension.startswith("trail."),
            ~table.c.dimension.contains(MARK),  # a score of a span is none of its trace
        )
        .order_by(table.c.row_key)
    )
    rows = _frame(connection, query, columns)
    rows = rows[among(rows["trace_id"], present)]
    return rows.astype({"value": "float64", "not_applicable": bool})


def _repeats(connection: Connection) -> pd.DataFrame:
    """Scores that people gave twice, on a trace and on its hidden repeat: rater, unit, judge, first, second."""
    table = tables.score_label
    keys = ("annotator", "trace_id", "occasion", "dimension", "phase")
    shown_twice = select(table.c.trace_id).where(table.c.occasion == 1)
    query = select(table.c.annotator, table.c.trace_id, table.c.dimension, table.c.occasion, table.c.value).where(
        table.c.trace_id.in_(shown_twice),
        newest(table, keys, table.c.trace_id.in_(shown_twice)),
        table.c.phase == "blind",
        table.c.dimension.in_(DIMENSIONS),
    )
    rows = _frame(connection, query, ("rater", "unit", "dimension", "occasion", "value"))
    wide = rows.pivot_table(index=["rater", "unit", "dimension"], columns="occasion", values="value", aggfunc="last")
    if not {0, 1} <= set(wide.columns):
        return pd.DataFrame(columns=["rater", "unit", "dimension", "first", "second"])
    return wide.rename(columns={0: "first", 1: "second"})[["first", "second"]].dropna().reset_index()


def _decisions(connection: Connection) -> pd.DataFrame:
    """cell_key, label_id, finding_id, status, localized, confidence of every pair that stands."""
    rows = [(d.cell_key, d.label_id, d.finding_key, d.status, d.localized, d.confidence) for d in decisions(connection)]
    columns = ["cell_key", "label_id", "finding_id", "status", "localized", "confidence"]
    types = {"cell_key": "int64", "finding_id": "int64", "localized": "bool", "confidence": "float64"}
    return pd.DataFrame(rows, columns=columns).astype(types)


def _frame(connection: Connection, query: Select[Any], columns: Sequence[str]) -> pd.DataFrame:
    return pd.read_sql_query(query, connection, coerce_float=False).set_axis(list(columns), axis=1)
