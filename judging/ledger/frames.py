"""From the ledger to the frames of agreement: which human, which judges, which matches count."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
import pandas as pd
from sqlalchemy import Connection, func, select

from ingest.store import schema
from judging.ledger import side_frames, tables
from judging.ledger.labels import error_labels, reviews, score_labels
from judging.ledger.matches import Decision, decisions, finding_reviews
from judging.ledger.side_frames import rows_of
from judging.ledger.systems import VERSION_MARK, VERSION_SHOWN, current_versions, system_name
from judging.records import CELL_STATES, DIMENSIONS, ErrorLabel, ScoreLabel

Counting = Literal["proposed", "confirmed"]
FINAL = CELL_STATES
PEOPLE = "people"


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is compared. None and empty mean all (for `human`: the one with the most submitted reviews).

    `matches` says whether proposals count until a person decides, or only confirmed pairs. `splits` maps
    trace ids to a split's name; traces outside it are left out when `only_split` is set. `versions` are judge
    versions to set beside each other (prompt against prompt), by their hash; their systems are named by it.
    `repeat` is the run whose answers are compared with people. `formats` are the formats of the traces that
    count (`trail`, `gaia2` ...); `guideline` keeps the traces whose newest review was made under that version.
    """

    human: str | None = None
    systems: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    matches: Counting = "proposed"
    splits: Mapping[str, str] = field(default_factory=dict)
    only_split: bool = False
    blind_only: bool = True
    repeat: int = 0
    formats: tuple[str, ...] = ()
    guideline: str | None = None


@dataclass(frozen=True, kw_only=True)
class Frames:
    """The inputs of `judging.agreement`, and who was compared. Columns as its `frames` module says."""

    human: str | None
    error_pairs: pd.DataFrame
    score_pairs: pd.DataFrame
    ratings: pd.DataFrame
    findings: pd.DataFrame
    rationales: pd.DataFrame
    judged: pd.DataFrame
    repeats: pd.DataFrame
    unit_labels: pd.DataFrame
    trail_gold: pd.DataFrame
    trail_predictions: pd.DataFrame
    trail_traces: pd.DataFrame
    trail_scores: pd.DataFrame
    """trace_id, judge, system, split of every cell that was answered, findings or not."""


def load_frames(connection: Connection, selection: Selection) -> Frames:
    """All frames of a selection; empty ones keep their columns."""
    human = selection.human or default_human(connection)
    cells = _cells(connection, selection)
    current = cells[cells["repeat"] == selection.repeat]
    done = submitted(connection, selection.guideline)
    reviewed = _reviewed(done, human)
    seen = current[current["trace_id"].isin(reviewed)]
    errors = [e for e in _errors(connection, selection, human) if e.trace_id in reviewed]
    scores = [s for s in _scores(connection, selection) if (s.annotator, s.trace_id) in done]
    decided = [] if human is None else decisions(connection, annotator=human)
    return Frames(
        human=human,
        error_pairs=_error_pairs(current, errors, decided, selection),
        score_pairs=_score_pairs(current, [s for s in scores if s.annotator == human], selection),
        ratings=_ratings(cells, scores, selection, gold_names(connection)),
        findings=_findings(connection, seen, errors, decided, selection),
        rationales=_rationales(cells),
        judged=_judged(seen, selection),
        repeats=side_frames.repeats(connection),
        unit_labels=side_frames.unit_labels(connection, current, errors, reviewed),
        trail_gold=side_frames.trail_gold(errors),
        trail_predictions=side_frames.trail_predictions(connection, seen),
        trail_traces=side_frames.trail_traces(seen),
        trail_scores=side_frames.trail_scores(connection, seen, human or ""),
    )


def _reviewed(done: set[tuple[str, str]], human: str | None) -> set[str]:
    return {trace_id for annotator, trace_id in done if annotator == human}


def humans(connection: Connection) -> pd.DataFrame:
    """People with submitted reviews: annotator, traces (in the workspace), most first."""
    done = pd.DataFrame(sorted(submitted(connection)), columns=["annotator", "trace_id"])
    present = set(connection.scalars(select(schema.trace.c.trace_id)))
    counted = done[done["trace_id"].isin(present)].groupby("annotator")["trace_id"].nunique()
    table = counted.rename("traces").reset_index()
    return table.sort_values(["traces", "annotator"], ascending=[False, True], ignore_index=True)


def guidelines_read(connection: Connection) -> list[str]:
    """The guideline versions that submitted reviews were made under, in order."""
    query = select(tables.review.c.guideline_version).where(tables.review.c.guideline_version.is_not(None)).distinct()
    return sorted((str(version) for version in connection.scalars(query)), key=lambda v: (len(v), v))


def default_human(connection: Connection) -> str | None:
    """The adjudicated gold where there is any, else the person who reviewed most traces."""
    gold = connection.scalar(select(tables.annotator.c.annotator).where(tables.annotator.c.kind == "adjudicated"))
    people = humans(connection)
    if gold is not None and gold in set(people["annotator"]):
        return str(gold)
    return None if people.empty else str(people["annotator"].iloc[0])


def gold_names(connection: Connection) -> frozenset[str]:
    """Under whose name adjudicated labels stand: nobody's own opinion."""
    table = tables.annotator
    return frozenset(connection.scalars(select(table.c.annotator).where(table.c.kind == "adjudicated")))


def revision(connection: Connection) -> tuple[int, ...]:
    """Changes whenever anything that a figure depends on changes: the key for caches.

    Counts stand beside the newest keys: cells that wait again change no key, and the clock of a worker may be
    behind that of another.
    """
    appended = (
        (schema.trace, "trace_key"),
        (tables.error_label, "row_key"),
        (tables.score_label, "row_key"),
        (tables.review, "row_key"),
        (tables.match, "row_key"),
        (tables.finding_review, "row_key"),
        (tables.finding, "finding_key"),
    )
    parts = [select(func.coalesce(func.max(table.c[key]), 0)).scalar_subquery() for table, key in appended]
    parts.append(select(func.coalesce(func.max(schema.trace.c.ingested_at), 0)).scalar_subquery())
    parts.append(select(func.count(tables.cell.c.finished_at)).scalar_subquery())
    parts.append(select(func.coalesce(func.max(tables.cell.c.finished_at), 0)).scalar_subquery())
    return tuple(int(value) for value in connection.execute(select(*parts)).one())


def read_splits(data: bytes, file: str) -> dict[str, str]:
    """Split by trace id, from JSON `{"dev": [ids], "test": [ids]}`; other keys are left aside.

    Raises `ValueError` naming the file when no list of ids is in it or a trace is in two splits.
    """
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{file}: not JSON ({error}): expected {{'dev': [ids], 'test': [ids]}}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{file}: expected an object of lists of trace ids, such as {{'dev': [...]}}")
    splits: dict[str, str] = {}
    for name, ids in parsed.items():
        if not isinstance(ids, list):
            continue
        for trace_id in ids:
            if not isinstance(trace_id, str):
                raise ValueError(f"{file}: {name!r} holds {str(trace_id)[:60]!r}, which is no trace id")
            if splits.setdefault(trace_id, name) != name:
                raise ValueError(f"{file}: trace {trace_id} is in the splits {splits[trace_id]!r} and {name!r}")
    if not splits:
        raise ValueError(f"{file}: holds no list of trace ids")
    return splits


def submitted(connection: Connection, guideline: str | None = None) -> set[tuple[str, str]]:
    """(annotator, trace) of the newest reviews that are submitted, of all or of one guideline version."""
    return {
        (r.annotator, r.trace_id)
        for r in reviews(connection)
        if r.status == "submitted" and guideline in {None, r.guideline_version}
    }


def chosen_traces(connection: Connection, selection: Selection) -> set[str]:
    """The traces of the workspace that may count."""
    trace = schema.trace.c
    wanted = [trace.format.in_(selection.formats)] if selection.formats else []
    return set(connection.scalars(select(trace.trace_id).where(*wanted)))


def _errors(connection: Connection, selection: Selection, human: str | None) -> list[ErrorLabel]:
    if human is None:
        return []
    table = tables.error_label
    conditions = [table.c.annotator == human, table.c.occasion == 0]
    if selection.blind_only:
        conditions.append(table.c.phase == "blind")
    present = chosen_traces(connection, selection)
    return [
        label
        for label in error_labels(connection, *conditions)
        if label.is_complete and label.trace_id in present and _in_split(label.trace_id, selection)
    ]


def _scores(connection: Connection, selection: Selection) -> list[ScoreLabel]:
    table = tables.score_label
    conditions = [table.c.occasion == 0, table.c.dimension.in_(DIMENSIONS)]
    if selection.blind_only:
        conditions.append(table.c.phase == "blind")
    newest_first: dict[tuple[str, str, str], ScoreLabel] = {}
    present = chosen_traces(connection, selection)
    for score in score_labels(connection, *conditions):
        if score.trace_id in present and _in_split(score.trace_id, selection):
            newest_first[score.annotator, score.trace_id, score.dimension] = score
    return list(newest_first.values())


def _in_split(trace_id: str, selection: Selection) -> bool:
    return not selection.only_split or trace_id in selection.splits


_CELL_COLUMNS = {
    "cell_key": "int64",
    "trace_id": "object",
    "judge": "object",
    "system": "object",
    "repeat": "int64",
    "state": "object",
    "score": "float64",
    "rationale": "object",
}


def _cells(connection: Connection, selection: Selection) -> pd.DataFrame:
    """Finished cells of traces in the workspace: of each system, judge, trace and repeat the newest one.

    Where a system's judge exists in several versions, the one of `current_versions` counts, or those chosen.
    """
    cell, version = tables.cell, tables.judge_version
    chosen = selection.versions or tuple(current_versions(connection).values())
    rows = connection.execute(
        select(
            cell.c.cell_key,
            cell.c.trace_id,
            cell.c.judge,
            cell.c.judge_version,
            cell.c.repeat,
            cell.c.state,
            cell.c.score,
            cell.c.rationale,
            version.c.model,
            version.c.mode,
            version.c.prompt_order,
        )
        .join(version, version.c.judge_version == cell.c.judge_version)
        .join(schema.trace, schema.trace.c.trace_id == cell.c.trace_id)
        .where(cell.c.state.in_(CELL_STATES), cell.c.judge_version.in_(chosen))
        .order_by(cell.c.finished_at, cell.c.cell_key)
    )
    found = pd.DataFrame(rows.all(), columns=_CELL_QUERY)
    asked = found[["model", "mode", "prompt_order"]].itertuples(index=False)
    found["system"] = [system_name(*way) for way in asked]
    if selection.systems:
        found = found[found["system"].isin(selection.systems)]
    if selection.versions:
        found["system"] += VERSION_MARK + found["judge_version"].str.slice(0, VERSION_SHOWN)
    if selection.judges:
        found = found[found["judge"].isin(selection.judges)]
    if selection.formats:
        found = found[found["trace_id"].isin(chosen_traces(connection, selection))]
    if selection.only_split:
        found = found[found["trace_id"].isin(selection.splits)]
    kept = found.drop_duplicates(["system", "judge", "trace_id", "repeat"], keep="last")
    return kept[list(_CELL_COLUMNS)].astype(_CELL_COLUMNS)


_CELL_QUERY = [
    "cell_key", "trace_id", "judge", "judge_version", "repeat", "state", "score", "rationale", "model", "mode",
    "prompt_order",
]  # fmt: skip


def split_of(trace_id: str, selection: Selection) -> str:
    """The name of the trace's split, `all` where none is given."""
    return selection.splits.get(trace_id, "all") if selection.splits else "all"


def _state(state: str) -> str:
    return state if state in {"scored", "not_applicable"} else "failed"


def _error_pairs(
    cells: pd.DataFrame, errors: Sequence[ErrorLabel], decided: Sequence[Decision], selection: Selection
) -> pd.DataFrame:
    counted = _counted(decided, selection)
    by_trace: dict[str, list[ErrorLabel]] = {}
    for error in errors:
        by_trace.setdefault(error.trace_id, []).append(error)
    rows = []
    for cell in rows_of(cells):
        for error in by_trace.get(str(cell.trace_id), ()):
            rows.append(_error_pair(cell, error, counted.get((cell.cell_key, error.label_id)), selection))
    return pd.DataFrame(rows, columns=list(_ERROR_PAIR))


_ERROR_PAIR = (
    "trace_id", "error_id", "impact", "split", "system", "judge", "relevant", "state", "caught", "localized",
    "match_status", "dimensions",
)  # fmt: skip


def _error_pair(cell: Any, error: ErrorLabel, match: Decision | None, selection: Selection) -> dict[str, Any]:
    failed = _state(cell.state) == "failed"
    relevant = cell.judge in error.dimensions if cell.judge in DIMENSIONS else True
    return {
        "trace_id": error.trace_id,
        "error_id": error.label_id,
        "impact": error.impact,
        "split": split_of(error.trace_id, selection),
        "system": cell.system,
        "judge": cell.judge,
        "relevant": relevant,
        # a judge that found its rubric not applicable has said something: it reported no error
        "state": "failed" if failed else "scored",
        "caught": None if failed else match is not None,
        "localized": None if failed else match is not None and match.localized,
        "match_status": None if match is None else match.status,
        "dimensions": ",".join(error.dimensions),
    }


def _counted(decided: Sequence[Decision], selection: Selection) -> dict[tuple[int, str], Decision]:
    wanted = {"confirmed"} if selection.matches == "confirmed" else {"confirmed", "proposed"}
    return {(d.cell_key, d.label_id): d for d in decided if d.status in wanted}


def _score_pairs(cells: pd.DataFrame, scores: Sequence[ScoreLabel], selection: Selection) -> pd.DataFrame:
    by_key = {(score.trace_id, score.dimension): score for score in scores}
    rows = []
    for cell in rows_of(cells):
        score = by_key.get((str(cell.trace_id), str(cell.judge)))
        if score is None:
            continue
        state = _state(str(cell.state))
        if score.not_applicable and state == "scored":
            state = "not_applicable"
        rows.append(
            {
                "trace_id": cell.trace_id,
                "judge": cell.judge,
                "system": cell.system,
                "split": split_of(str(cell.trace_id), selection),
                "human": score.value,
                "model": cell.score if state == "scored" else None,
                "state": state,
            }
        )
    return pd.DataFrame(rows, columns=["trace_id", "judge", "system", "split", "human", "model", "state"])


def _ratings(
    cells: pd.DataFrame, scores: Sequence[ScoreLabel], selection: Selection, golds: Collection[str]
) -> pd.DataFrame:
    """Every score of judges (rater: the repeat, kind `run`) and of people (kind `human`, system `people`).

    The adjudicated gold is of kind `gold`: made from what people said, it would raise every ceiling.
    """
    rows = [
        {
            "unit": cell.trace_id,
            "trace_id": cell.trace_id,
            "rater": f"run {cell.repeat}",
            "rater_kind": "run",
            "value": cell.score if cell.state == "scored" else None,
            "judge": cell.judge,
            "system": cell.system,
            "split": split_of(str(cell.trace_id), selection),
            "state": _state(str(cell.state)),
        }
        for cell in rows_of(cells)
        if cell.judge in DIMENSIONS
    ]
    rows += [
        {
            "unit": score.trace_id,
            "trace_id": score.trace_id,
            "rater": score.annotator,
            "rater_kind": "gold" if score.annotator in golds else "human",
            "value": None if score.not_applicable else score.value,
            "judge": score.dimension,
            "system": PEOPLE,
            "split": split_of(score.trace_id, selection),
            "state": "not_applicable" if score.not_applicable else "scored",
        }
        for score in scores
    ]
    columns = ["unit", "trace_id", "rater", "rater_kind", "value", "judge", "system", "split", "state"]
    return pd.DataFrame(rows, columns=columns)


def _findings(
    connection: Connection,
    cells: pd.DataFrame,
    errors: Sequence[ErrorLabel],
    decided: Sequence[Decision],
    selection: Selection,
) -> pd.DataFrame:
    """One row a finding of the current cells; `matched`: with an error of the human compared."""
    ours = {error.label_id for error in errors}
    matched = {d.finding_key for d in _counted(decided, selection).values() if d.label_id in ours}
    verdicts = finding_reviews(connection)
    by_cell = {int(cell.cell_key): cell for cell in rows_of(cells)}
    finding, citation = tables.finding, tables.citation
    rows = connection.execute(
        select(
            finding.c.finding_key,
            finding.c.cell_key,
            func.count(citation.c.citation_key).label("citations"),
            (func.count(citation.c.citation_key) - func.count(citation.c.span_id)).label("invalid"),
        )
        .outerjoin(citation, citation.c.finding_key == finding.c.finding_key)
        .group_by(finding.c.finding_key, finding.c.cell_key)
        .order_by(finding.c.finding_key)
    ).all()
    found = [
        {
            "trace_id": by_cell[row.cell_key].trace_id,
            "judge": by_cell[row.cell_key].judge,
            "system": by_cell[row.cell_key].system,
            "split": split_of(str(by_cell[row.cell_key].trace_id), selection),
            "finding_id": row.finding_key,
            "matched": row.finding_key in matched,
            "verdict": None if row.finding_key in matched else verdicts.get(row.finding_key),
            "citations": row.citations,
            "invalid_citations": row.invalid,
        }
        for row in rows
        if row.cell_key in by_cell
    ]
    columns = [
        "trace_id",
        "judge",
        "system",
        "split",
        "finding_id",
        "matched",
        "verdict",
        "citations",
        "invalid_citations",
    ]
    return pd.DataFrame(found, columns=columns)


def _judged(cells: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    answered = cells.loc[cells["state"].map(_state) != "failed", ["trace_id", "judge", "system"]]
    split = [split_of(str(trace_id), selection) for trace_id in answered["trace_id"]]
    return answered.assign(split=pd.Series(split, index=answered.index, dtype="object")).reset_index(drop=True)


def _rationales(cells: pd.DataFrame) -> pd.DataFrame:
    written = cells[cells["rationale"].notna() & (cells["rationale"] != "")]
    renamed = written.rename(columns={"repeat": "run", "rationale": "text"})
    return renamed[["judge", "system", "trace_id", "run", "text"]].reset_index(drop=True)
