"""A person's word on a pair of an error and a finding: confirmed or rejected, taken back, and all as a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pandas as pd
from sqlalchemy import Connection, select

from tracejury.judging.labels.label_store import error_labels
from tracejury.judging.matching.match_store import append_matches, as_match, newest_words
from tracejury.judging.matching.rule import AUTO, BY_MODEL, is_localized
from tracejury.judging.matching.standing import decisions, labels_in_pairs
from tracejury.judging.records import ErrorLabel, Match, MatchStatus
from tracejury.judging.runs.verdicts import findings_of
from tracejury.judging.store import tables
from tracejury.judging.store.judge_models import version_names

TOGETHER_US = 10_000  # rows of one decision are made within so many microseconds, two decisions never
BY_PERSON, RESTORED = "decided by a person", "restored by undo"
_match, _finding, _cell = tables.match, tables.finding, tables.cell


def decide(connection: Connection, *, label_id: str, finding_key: int, status: MatchStatus, author: str) -> None:
    """A person's word on one pair, appended.

    Confirming rejects the pairs that stood confirmed before it for this label or this finding (of the same
    person's labels, in the same cell): pairs are one to one. Raises `KeyError` when label or finding is
    unknown, `ValueError` for the author of proposals.
    """
    if author == AUTO or author.startswith(BY_MODEL):
        raise ValueError(f"{author!r} is an author of proposals, not a person")
    error = next(iter(error_labels(connection, tables.error_label.c.label_id == label_id)), None)
    if error is None:
        raise KeyError(f"no error label {label_id}")
    cell = connection.execute(
        select(_finding.c.cell_key, _cell.c.trace_id)
        .join(_cell, _cell.c.cell_key == _finding.c.cell_key)
        .where(_finding.c.finding_key == finding_key)
    ).one_or_none()
    if cell is None:
        raise KeyError(f"no finding {finding_key}")
    findings = dict(findings_of(connection, [cell.cell_key])[cell.cell_key])
    rivals = _rivals(connection, error, finding_key, cell) if status == "confirmed" else []
    statements = [(label_id, finding_key, status), *((label, finding, "rejected") for label, finding in rivals)]
    append_matches(
        connection,
        [
            Match(
                label_id=label,
                finding_id=finding,
                status=word,
                author=author,
                confidence=1.0,
                reasons=(BY_PERSON,),
                localized=label == label_id and is_localized(error, findings[finding]),
            )
            for label, finding, word in statements
        ],
    )


def _rivals(connection: Connection, error: ErrorLabel, finding_key: int, cell: Any) -> list[tuple[str, int]]:
    """Confirmed pairs of the same person and cell that share the label or the finding of a new one."""
    own = {
        label.label_id for label in error_labels(connection, tables.error_label.c.trace_id == error.trace_id)
        if label.annotator == error.annotator
    }  # fmt: skip
    return [
        (d.label_id, d.finding_key)
        for d in decisions(connection, trace_id=cell.trace_id)
        if d.status == "confirmed"
        and d.cell_key == cell.cell_key
        and d.label_id in own
        and (d.label_id == error.label_id) != (d.finding_key == finding_key)
    ]


def undo_decision(connection: Connection, *, label_id: str, finding_key: int, author: str) -> None:
    """Take back a person's newest word on a pair, and the rejections that came with it: what stood before stands again.

    Appended like every word. Raises `KeyError` where this person has said nothing of the pair that stands.
    """
    own = select(_match).where(_match.c.author == author).order_by(_match.c.row_key)
    rows = list(connection.execute(own).all())
    words = _words(rows, label_id, finding_key)
    if not words:
        raise KeyError(f"{author} has not decided on error {label_id} and finding {finding_key}")
    for row in _stored_together(rows, words[-1]):
        *before, last = _words(rows, row.label_id, row.finding_key) or [None]
        if last is row:
            match = as_match(before[-1] if before else row)
            append_matches(connection, [replace(match, reasons=(BY_PERSON, RESTORED))], withdrawn=not before)


def _words(rows: Sequence[Any], label_id: str, finding_key: int) -> list[Any]:
    """A person's words on a pair that have not been taken back, oldest first; `rows` are all of that person."""
    words: list[Any] = []
    for row in rows:
        if (row.label_id, row.finding_key) != (label_id, finding_key):
            continue
        if row.withdrawn or RESTORED in orjson.loads(row.reasons):
            words.pop()
        else:
            words.append(row)
    return words


def _stored_together(rows: Sequence[Any], word: Any) -> list[Any]:
    """The word and, of a confirmation, the rejections of its rivals, which `decide` appended right behind it."""
    together = [word]
    for row in (row for row in rows if row.row_key > word.row_key and word.status == "confirmed"):
        is_rival = (row.label_id == word.label_id) != (row.finding_key == word.finding_key)
        if row.created_at - word.created_at > TOGETHER_US or row.status != "rejected" or not is_rival:
            break
        together.append(row)
    return together


def match_decisions(connection: Connection) -> pd.DataFrame:
    """Every person's newest word on every pair: trace_id, dimension, judge_model, label_id, finding_id, matcher,
    status.

    The input of `judging.agreement.matchers`: proposals are nobody's word, and words that were taken back, or are on
    labels that are gone, count no more.
    """
    names = version_names(connection)
    is_word = _match.c.status != "proposed"
    words = newest_words(connection, _match, ("label_id", "finding_key", "author"), ("status", "withdrawn"), is_word)
    there = set(labels_in_pairs(connection)) if words else set()
    statements = [
        (
            row.trace_id, names[row.judge_version].dimension, names[row.judge_version].judge_model, row.label_id,
            row.finding_key, row.author, row.status,
        )
        for row in words
        if row.label_id in there and not row.withdrawn
    ]  # fmt: skip
    columns = ["trace_id", "dimension", "judge_model", "label_id", "finding_id", "matcher", "status"]
    return pd.DataFrame(statements, columns=columns)
