"""Matches proposed by the rule, and stored, for every person and every judged cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sqlalchemy import Connection, Engine

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.matching.candidates import by_person, candidates_of, complete_errors, judged_cells
from tracejury.judging.matching.compared import newest_label, record_matching
from tracejury.judging.matching.match_store import store_proposals
from tracejury.judging.matching.rule import AUTO, RULE, TextLikeness, propose
from tracejury.judging.records import ErrorLabel
from tracejury.judging.runs.verdict_imports import resolve_waiting
from tracejury.judging.store.locks import MATCHES
from tracejury.judging.store.spans import parents_of

Progress = Callable[[int, int], None]


def propose_matches(
    engine: Engine, *, judge_model: str | None = None, progress: Progress | None = None
) -> dict[str, int]:
    """Propose matches for every person and every judged cell (of `judge` or of all), and store what changed.

    Proposals that are no longer made are withdrawn; people's decisions stay untouched. Returns
    `{"matches", "new", "withdrawn", "traces"}`.
    """
    resolve_waiting(engine)
    totals: Counter[str] = Counter(matches=0, new=0, withdrawn=0, traces=0)
    last_label = newest_label(engine)
    with read_transaction(engine) as connection:
        by_trace = complete_errors(connection)
    likeness = TextLikeness()
    for number, (trace_id, errors) in enumerate(by_trace.items()):
        with write_transaction(engine, MATCHES) as connection:
            totals.update(_propose_trace(connection, trace_id, errors, judge_model, likeness))
            cells = [cell.cell_key for cell in judged_cells(connection, trace_id, judge_model)]
            record_matching(connection, cells, {error.annotator for error in errors}, last_label, matcher=RULE)
        if progress is not None:
            progress(number + 1, len(by_trace))
    return dict(totals)


def _propose_trace(
    connection: Connection,
    trace_id: str,
    errors: Sequence[ErrorLabel],
    judge_model: str | None,
    likeness: TextLikeness,
) -> Counter[str]:
    chosen = judged_cells(connection, trace_id, judge_model)
    if not chosen:
        return Counter()
    by_cell = candidates_of(connection, chosen)
    parents = parents_of(connection, trace_id)
    proposals, people = [], by_person(errors)
    for cell in chosen:
        for own in people:
            proposals += propose(own, by_cell.get(cell.cell_key, ()), parents=parents, likeness=likeness)
    finding_keys = [candidate.finding_id for candidates in by_cell.values() for candidate in candidates]
    return store_proposals(connection, proposals, author=AUTO, finding_keys=finding_keys) + Counter(traces=1)
