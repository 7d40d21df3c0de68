"""The majority of a trace's people in the place of one person: its errors, its scores, and what its errors match."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sqlalchemy import Connection

from tracejury.judging.adjudication.majority_errors import SeenError, most_say, seen_errors
from tracejury.judging.agreement.frames import among
from tracejury.judging.agreement.majority import ERRORS, VOTES, majority_scores
from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.matching.rule import assign
from tracejury.judging.records import ErrorLabel
from tracejury.judging.runs.verdicts import cited_spans
from tracejury.judging.store import tables
from tracejury.judging.store.spans import parents_by_trace

_CONFIRMED = 1_000  # a word of a person outweighs any number of proposals


@dataclass(frozen=True, kw_only=True)
class MajorityLabels:
    """What most people said, in the columns that one person's labels have, and every vote that was taken.

    `seen` are the errors that have a majority, by the label that each goes by.
    """

    errors: pd.DataFrame
    scores: pd.DataFrame
    votes: pd.DataFrame
    seen: Mapping[str, SeenError]


def majority_labels(
    connection: Connection, *, done: pd.DataFrame, rows: pd.DataFrame, scores: pd.DataFrame, blind_only: bool
) -> MajorityLabels:
    """The majority on the traces that two people or more submitted.

    `done` (annotator, trace_id): who submitted what, gold left out. `rows`: everybody's current error labels that
    may count, `scores` their scores, both as `columns` has them.
    """
    people = {str(trace): sorted(set(part)) for trace, part in done.groupby("trace_id")["annotator"]}
    several = {trace: names for trace, names in people.items() if len(names) > 1}
    labels = _labels(connection, set(rows["label_id"]), blind_only=blind_only)
    parents = parents_by_trace(connection, several)
    seen_list = [
        one
        for trace, names in several.items()
        for one in seen_errors({name: labels.get((trace, name), []) for name in names}, parents.get(trace, {}))
    ]
    seen = {one.label_id: one for one in seen_list if one.outcome == "majority"}
    submitted_scores = scores.merge(done.drop_duplicates(), on=["annotator", "trace_id"])
    voted = majority_scores(submitted_scores[among(submitted_scores["trace_id"], several)])
    return MajorityLabels(errors=_rows(rows, seen), scores=voted, votes=_votes(seen_list, voted), seen=seen)


def majority_matches(
    connection: Connection, decided: pd.DataFrame, seen: Mapping[str, SeenError], *, confirmed_only: bool
) -> pd.DataFrame:
    """What stands between the majority's errors and findings: cell_key, label_id, finding_id, status, localized,
    confidence (the highest of the labels').

    `decided`: what stands for each person's label. A pair counts by the words of people on any label of the error
    (confirmed by more of them than rejected it), else as proposed where it is proposed for one; one to one within a
    cell, by the assignment with most words and then most proposals. Localized: the finding cites a span of the error.
    """
    goes_by = {label.label_id: key for key, one in seen.items() for label in one.labels}
    decisions = decided[among(decided["label_id"], goes_by)]
    decisions = decisions.assign(label_id=decisions["label_id"].map(goes_by).astype("str"))
    words = pd.DataFrame({name: decisions["status"] == name for name in ("confirmed", "rejected", "proposed")})
    keys = ["cell_key", "label_id", "finding_id"]
    grouped = pd.concat([decisions[[*keys, "confidence"]], words.astype("int64")], axis=1).groupby(keys, sort=False)
    votes = grouped.agg({"confidence": "max", **dict.fromkeys(words.columns, "sum")}).reset_index()
    confirmed = votes["confirmed"] > votes["rejected"]
    proposed = (votes["confirmed"] + votes["rejected"] == 0) & (not confirmed_only)
    votes = votes.assign(
        status=np.where(confirmed, "confirmed", "proposed"),
        weight=(votes["confirmed"] - votes["rejected"]).clip(lower=0) * _CONFIRMED + votes["proposed"],
    )[confirmed | proposed]
    matches = [one for _, cell in votes.groupby("cell_key", sort=False) for one in _one_to_one(cell)]
    pairs = votes.loc[matches, [*keys, "status", "confidence"]].reset_index(drop=True)
    cited = cited_spans(connection, [int(key) for key in pairs["finding_id"]])
    localized = [
        not cited.get(finding, frozenset()).isdisjoint(seen[label].span_ids)
        for label, finding in zip(pairs["label_id"], pairs["finding_id"], strict=True)
    ]
    return pairs.assign(localized=pd.Series(localized, index=pairs.index, dtype=bool))


def _labels(
    connection: Connection, label_ids: set[str], *, blind_only: bool
) -> dict[tuple[str, str], list[ErrorLabel]]:
    table = tables.error_label
    conditions = [table.c.occasion == 0, *([table.c.phase == "blind"] if blind_only else [])]
    labels: dict[tuple[str, str], list[ErrorLabel]] = defaultdict(list)
    for label in error_labels(connection, *conditions):
        if label.label_id in label_ids:
            labels[label.trace_id, label.annotator].append(label)
    return dict(labels)


def _rows(rows: pd.DataFrame, seen: Mapping[str, SeenError]) -> pd.DataFrame:
    """The row that each error goes by, with what most of those who saw it say."""
    written = rows.set_index("label_id")
    rows_here = rows[among(rows["label_id"], seen)]
    own = [seen[label_id] for label_id in rows_here["label_id"]]
    together = [written.loc[[label.label_id for label in one.labels]] for one in own]
    return rows_here.assign(
        span_ids=_objects([one.span_ids for one in own], rows_here),
        dimensions=_objects([",".join(one.dimensions) for one in own], rows_here),
        impact=_objects([one.impact for one in own], rows_here),
        category=_objects([_first([(name,) for name in part["category"] if name]) for part in together], rows_here),
        locations=_objects([most_say(list(part["locations"])) for part in together], rows_here),
    )


def _first(values: Sequence[tuple[str, ...]]) -> str:
    """One category of an error: the one that most name, of a tie the one first named."""
    return next(iter(most_say(values)), "")


def _objects(values: Sequence[object], like: pd.DataFrame) -> pd.Series:
    return pd.Series(list(values), index=like.index, dtype="object")


def _votes(seen_errors: Sequence[SeenError], scores: pd.DataFrame) -> pd.DataFrame:
    errors = pd.DataFrame(
        [(one.labels[0].trace_id, ERRORS, one.people, len(one.labels), one.outcome) for one in seen_errors],
        columns=list(VOTES),
    )
    scored = scores.rename(columns={"dimension": "about"})[list(VOTES)]
    return pd.concat([scored, errors], ignore_index=True).astype({"people": "int64", "votes": "int64"})


def _one_to_one(cell: pd.DataFrame) -> list[int]:
    """The rows of the assignment with the greatest weight."""
    rows, labels = pd.factorize(cell["label_id"])
    columns, findings = pd.factorize(cell["finding_id"])
    weights = np.zeros((len(labels), len(findings)))
    weights[rows, columns] = cell["weight"].to_numpy()
    at = {(int(i), int(j)): key for key, i, j in zip(cell.index, rows, columns, strict=True)}
    return [at[place] for place in assign(weights, least=0.0)]
