"""Samples of evaluations as conversations: OpenAI's evals (its log of events), lm-eval (`samples_*.jsonl`).

What a file holds of the right answer, and of what a scorer said, is no part of them; it is counted in a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import object_in, objects_in
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.trace import Json
from tracejury.ingest.words import counted

Record = Mapping[str, Json]


class Sample(NamedTuple):
    """What a model was asked and answered for one sample, and a warning of what is left out."""

    records: list[Record]
    about: Record
    warning: str | None


def samples_of(rows: Sequence[Record]) -> list[Sample]:
    """The samples in a log of OpenAI's evals, the samplings of each in order; none of any other lines."""
    if not any(_is_sampling(row) for row in rows):
        return []
    run = next((object_in(row["spec"]) for row in rows if isinstance(row.get("spec"), dict)), {})
    models = run.get("completion_fns")
    model = models[0] if isinstance(models, list) and len(models) == 1 else None
    by_sample: dict[tuple[str, ...], list[Record]] = {}
    for row in rows:
        if (own := as_text(row.get("sample_id"))) is not None:
            by_sample.setdefault((*filter(None, [as_text(row.get("run_id"))]), own), []).append(row)
    return [_of_sample("-".join(own), events, model) for own, events in by_sample.items()]


def _is_sampling(row: Record) -> bool:
    data = object_in(row.get("data"))
    return row.get("type") == "sampling" and "sample_id" in row and {"prompt", "sampled"} <= data.keys()


def _of_sample(own: str, events: Sequence[Record], model: Json) -> Sample:
    records: list[Record] = []
    for event in filter(_is_sampling, events):
        data = object_in(event["data"])
        asked = _asked(data["prompt"])
        said = len(records) if asked[: len(records)] == [_words(one) for one in records] else 0
        about = {"created_at": event.get("created_at"), "model": data.get("model", model), "usage": data.get("usage")}
        answer: Record = {"role": "assistant", "content": _first(data["sampled"])}
        records += [*asked[said:], {**answer, **{key: item for key, item in about.items() if item is not None}}]
    others = Counter(as_text(event.get("type")) or "event" for event in events if not _is_sampling(event))
    return Sample(records, {"id": own}, _left_out(others))


def _words(record: Record) -> Record:
    return {"role": record.get("role"), "content": record.get("content")}


def _first(sampled: Json) -> Json:
    """One sampling may have given several answers, of which the evaluation took the first."""
    return next(iter(sampled), None) if isinstance(sampled, list) else sampled


def _left_out(others: Mapping[str, int]) -> str | None:
    if not others:
        return None
    kinds = ", ".join(sorted(others))
    return f"evaluation_left_out: {counted(sum(others.values()), 'event')} of the evaluation not shown ({kinds})"


def _asked(prompt: Json) -> list[Record]:
    """The messages of a prompt: a list of them, its JSON text, or one text."""
    messages = objects_in(opened(prompt))
    return [*messages] or [{"role": "user", "content": as_text(prompt)}]


LM_EVAL = frozenset({"doc_id", "arguments", "resps"})
"""The fields of a row of lm-eval."""


def lm_eval_sample(row: Record) -> list[Record]:
    """The prompt and the answer in a row of lm-eval; none in one that only compares how likely some answers are."""
    if not row.keys() >= LM_EVAL:
        return []
    arguments = row["arguments"]
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else _first(arguments)
    prompt = first.get("arg_0") if isinstance(first, dict) else _first(first)
    answer = _first(_first(row["resps"]))
    is_text = prompt is not None and isinstance(answer, str)
    return [*_asked(prompt), {"role": "assistant", "content": answer}] if is_text else []
