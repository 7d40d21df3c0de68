"""Evaluations that traces record, as verdicts of their evaluators: kept beside all others, hidden like all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import Engine

from tracejury.ingest.evaluations import Evaluation, evaluations_of
from tracejury.ingest.parse import json_text
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import Json, Trace
from tracejury.judging.labels.scales import plain_score
from tracejury.judging.labels.score_import import SPANS_ONLY, dimension_of, known_dimension
from tracejury.judging.records import Call, Failure, Verdict
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store.judge_models import SCORES_ONLY

AUTHOR = "ingest"


def keep_recorded_evaluations(engine: Engine, trace_ids: Iterable[str]) -> int:
    """Store what evaluators said in these traces as their verdicts; returns how many are new.

    A verdict that is there already is not repeated, so a trace may be given again.
    """
    by_evaluator: dict[str, list[Verdict | Failure]] = defaultdict(list)
    for trace_id in dict.fromkeys(trace_ids):
        with read_transaction(engine) as connection:
            try:
                trace = load(connection, trace_id)
            except KeyError:  # received, and not shown until its root has ended
                continue
        for evaluator, outcomes in recorded_outcomes(trace).items():
            by_evaluator[evaluator] += outcomes
    new = 0
    for evaluator, outcomes in by_evaluator.items():
        new += import_outcomes(engine, outcomes, model=evaluator, author=AUTHOR, mode=SCORES_ONLY).new
    return new


def recorded_outcomes(trace: Trace) -> dict[str, list[Verdict | Failure]]:
    """By evaluator, its verdicts of a trace: one for each result of the root, one for all results of other spans."""
    roots = {span.span_id for span in trace.spans if span.depth == 0}
    root = roots.pop() if len(roots) == 1 else None
    outcomes: dict[str, list[Verdict | Failure]] = defaultdict(list)
    of_spans: dict[tuple[str, str], list[Evaluation]] = defaultdict(list)
    for one in evaluations_of(trace):
        if one.error is None and one.span_id is not None and one.span_id != root:
            of_spans[one.evaluator, one.name].append(one)
        else:
            outcomes[one.evaluator].append(_outcome(one, trace.trace_id))
    for (evaluator, name), several in of_spans.items():
        outcomes[evaluator].append(_of_spans(evaluator, name, several, trace.trace_id))
    return dict(outcomes)


def _outcome(one: Evaluation, trace_id: str) -> Verdict | Failure:
    call, dimension = _call(one.evaluator, [one]), dimension_of(one.name)
    if one.error is not None:
        return Failure(
            rubric=dimension, trace_id=trace_id, state="error", reason=f"the evaluator failed: {one.error}", call=call
        )
    is_ours = known_dimension(one.name) is not None
    score = plain_score(one.value) if is_ours else None
    return Verdict(
        rubric=dimension,
        trace_id=trace_id,
        state="not_applicable" if score is None else "scored",
        score=score,
        criteria="",
        rationale=one.explanation,
        findings=(),
        call=call,
        reason=None if score is not None else f"{one.name} is not on the scale 0 to 3: {_given(one)}",
    )


def _of_spans(evaluator: str, name: str, several: Sequence[Evaluation], trace_id: str) -> Verdict:
    """One verdict without a score of the trace: none of the spans' scores is one."""
    return Verdict(
        rubric=dimension_of(name),
        trace_id=trace_id,
        state="not_applicable",
        score=None,
        criteria="",
        rationale="\n".join(f"{one.span_id}: {_given(one)} {one.explanation}".strip() for one in several),
        findings=(),
        call=_call(evaluator, several),
        reason=SPANS_ONLY,
    )


def _given(one: Evaluation) -> str:
    value = None if one.value is None else f"{one.value:g}"
    return " ".join(filter(None, (value, None if one.label is None else f"({one.label})"))) or "no value"


def _call(evaluator: str, several: Sequence[Evaluation]) -> Call:
    raw: list[Json] = [dict(one.attributes) for one in several]
    return Call(model=evaluator, raw_reply=json_text(raw if len(raw) > 1 else raw[0]))
