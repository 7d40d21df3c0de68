"""The frames beside the main ones: units for corpus rates, TRAIL's own measures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from typing import Any

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.labels import JudgeReply, read_reply
from tracejury.ingest.store.one_of import is_one_of
from tracejury.ingest.texts import decompress
from tracejury.judging.agreement.frames import among
from tracejury.judging.agreement.juries import JURY_VOTES
from tracejury.judging.agreement.majority import majority_scores
from tracejury.judging.judges.jury import jury_score, on_scale
from tracejury.judging.labels.label_store import newest
from tracejury.judging.records import ANSWERED_STATES, DIMENSIONS
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import joint_mode

TRAIL_JUDGE = "trail"


def unit_labels(cells: pd.DataFrame, findings: pd.DataFrame, errors: pd.DataFrame, reviewed: Set[str]) -> pd.DataFrame:
    """Say of each trace whether it holds an error of the dimension: `judge_label`, and `reference_label` where a
    person looked.
    """
    reference = among(cells["trace_id"], errors["trace_id"])
    for dimension in DIMENSIONS:
        of_dimension = cells["dimension"] == dimension
        with_it = errors.loc[errors["dimensions"].astype("str").str.contains(dimension, regex=False), "trace_id"]
        reference[of_dimension] = among(cells.loc[of_dimension, "trace_id"], with_it)
    has_finding = cells["cell_key"].isin(findings["cell_key"])
    answered = cells["state"].isin(ANSWERED_STATES)
    return pd.DataFrame(
        {
            "dimension": cells["dimension"],
            "judge_model": cells["judge_model"],
            "unit": cells["trace_id"],
            "judge_label": _where(has_finding, answered),
            "reference_label": _where(reference, among(cells["trace_id"], reviewed)),
        }
    ).reset_index(drop=True)


def _where(values: pd.Series, known: pd.Series) -> pd.Series:
    """What was said, None where nothing is known."""
    return values if known.all() else values.astype("object").where(known, None)


def trail_reference(errors: pd.DataFrame) -> pd.DataFrame:
    """The reference errors as TRAIL's scorer reads them: category and location as they were written."""
    rows = errors[["trace_id", "category", "locations"]].explode("locations", ignore_index=True)
    return rows.rename(columns={"locations": "location"})


def trail_predictions(predictions: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """What judge models say in TRAIL's categories, as it was written: trace_id, judge_model, category, location."""
    rows = predictions.merge(cells[["cell_key", "trace_id", "judge_model"]], on="cell_key", how="inner")
    return rows[["trace_id", "judge_model", "category", "location"]]


def trail_traces(cells: pd.DataFrame) -> pd.DataFrame:
    """Every trace a judge model was asked about: failed when none of its judges answered there."""
    answered = cells["state"].isin(ANSWERED_STATES)
    by_trace = answered.groupby([cells["judge_model"], cells["trace_id"]]).any().rename("answered").reset_index()
    state = by_trace["answered"].map({True: "scored", False: "failed"})
    return pd.DataFrame({"trace_id": by_trace["trace_id"], "judge_model": by_trace["judge_model"], "state": state})


def jury_votes(connection: Connection, cells: pd.DataFrame) -> pd.DataFrame:
    """The votes behind each joint verdict among `cells`: members, voted, scores (different ones), tied (0 or 1)."""
    cell, member = tables.cell, tables.jury_member
    scores_by_cell: dict[int, list[int | None]] = defaultdict(list)
    for key, score in connection.execute(
        select(member.c.cell_key, cell.c.score).join(cell, cell.c.cell_key == member.c.member_key)
    ):
        scores_by_cell[key].append(score)
    joint = cells[cells["cell_key"].isin(list(scores_by_cell))]
    rows = [
        (dimension, judge_model, trace_id, *_counted(scores_by_cell[int(key)], str(judge_model)))
        for dimension, judge_model, trace_id, key in zip(
            joint["dimension"], joint["judge_model"], joint["trace_id"], joint["cell_key"], strict=True
        )
    ]
    return pd.DataFrame(rows, columns=list(JURY_VOTES))


def _counted(scores: list[int | None], judge_model: str) -> tuple[int, int, int, int]:
    joint = on_scale(jury_score(scores, "mean" if joint_mode("mean") in judge_model else "majority"))
    return len(scores), sum(joint.votes.values()), len(joint.votes), int(bool(joint.tied))


def trail_scores(connection: Connection, cells: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """TRAIL's scales (1 to 5) as people and imported judges gave them: trace_id, judge_model, scale, reference_score,
    judge_score.

    `people` (annotator, trace_id): whose word counts on which trace; of several on one trace that of their majority.
    """
    columns = ["trace_id", "judge_model", "scale", "reference_score", "judge_score"]
    own_cells = cells[cells["dimension"] == TRAIL_JUDGE]
    if own_cells.empty:
        return pd.DataFrame(columns=columns)
    reference_scales = _trail_scales(connection, people)
    replies = dict(
        connection.execute(
            select(tables.cell.c.cell_key, tables.cell.c.raw_reply).where(
                is_one_of(tables.cell.c.cell_key, (int(key) for key in own_cells["cell_key"]))
            )
        ).all()
    )
    rows = [
        {
            "trace_id": cell.trace_id,
            "judge_model": cell.judge_model,
            "scale": name,
            "reference_score": value,
            "judge_score": scores.get(name),
        }
        for cell in rows_of(own_cells)
        for scores in [_scores(replies.get(cell.cell_key), cell.trace_id)]
        for name, value in reference_scales.get(cell.trace_id, ())
    ]
    return pd.DataFrame(rows, columns=columns)


def _trail_scales(connection: Connection, people: pd.DataFrame) -> dict[str, list[tuple[str, float]]]:
    """By trace, the name and value of each scale."""
    table = tables.score_label
    names = ["annotator", "trace_id", "dimension", "value"]
    query = select(*(table.c[name] for name in names)).where(
        newest(table, ("annotator", "trace_id", "occasion", "dimension", "phase")),
        is_one_of(table.c.annotator, people["annotator"].unique()),
        table.c.dimension.startswith("trail."),
    )
    rows = pd.read_sql_query(query, connection, coerce_float=False)
    rows = rows.merge(people[["annotator", "trace_id"]].drop_duplicates(), on=["annotator", "trace_id"])
    rows = rows.drop_duplicates(names[:3], keep="last").assign(not_applicable=False)
    people_of = people.groupby("trace_id")["annotator"].nunique()
    several = among(rows["trace_id"], people_of.index[people_of > 1])  # of whom one alone may have given the scale
    voted = pd.concat([rows[~several], majority_scores(rows[several])]) if several.any() else rows
    by_trace: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in rows_of(voted):
        by_trace[row.trace_id].append((row.dimension.removeprefix("trail."), row.value))
    return by_trace


def _scores(body: bytes | None, trace_id: str) -> dict[str, float | None]:
    if body is None:
        return {}
    reply = read_reply(decompress(body).decode("utf-8", "surrogatepass"), file=trace_id, trace_id=trace_id)
    return {score.name: score.score for score in reply.scores} if isinstance(reply, JudgeReply) else {}


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    yield from frame.itertuples(index=False)
