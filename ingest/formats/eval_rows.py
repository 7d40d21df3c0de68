"""Samples of evaluations as conversations: OpenAI's evals, lm-eval, HELM, promptfoo, DeepEval, Ragas.

What a file holds of the right answer, and of what a scorer said, is no part of them; it is counted in a warning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tracejury.ingest.formats.exports import as_text
from tracejury.ingest.formats.fields import object_in, objects_in, plain_name
from tracejury.ingest.formats.rows import opened
from tracejury.ingest.formats.streamed import function_call
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


def sample_of(row: Record) -> list[Record]:
    """What a model was asked and answered in a row of an evaluation; none of any other row."""
    return next((records for marks, read in _FORMS if row.keys() >= marks and (records := read(row))), [])


def _lm_eval(row: Record) -> list[Record]:
    """Nothing where it only compares how likely some answers are."""
    arguments = row["arguments"]
    first = next(iter(arguments.values()), None) if isinstance(arguments, dict) else _first(arguments)
    prompt = first.get("arg_0") if isinstance(first, dict) else _first(first)
    answer = _first(_first(row["resps"]))
    is_text = prompt is not None and isinstance(answer, str)
    return [*_asked(prompt), {"role": "assistant", "content": answer}] if is_text else []


def _helm(row: Record) -> list[Record]:
    request, result = object_in(row["request"]), object_in(row["result"])
    asked = request.get("messages") or request.get("prompt")
    answer = next(iter(objects_in(result.get("completions"))), {}).get("text")
    return _sample(asked, answer, result.get("error"), model=request.get("model"))


def _promptfoo(row: Record) -> list[Record]:
    prompt, response = object_in(row["prompt"]), object_in(row["response"])
    used, provider = object_in(response.get("tokenUsage")), row.get("provider")
    usage = {f"{name}_tokens": used[name] for name in ("prompt", "completion", "total") if used.get(name)}
    model = object_in(provider).get("id", provider if isinstance(provider, str) else None)
    error = response.get("error") or row.get("error")
    return _sample(prompt.get("raw"), response.get("output"), error, model=model, usage=usage or None)


def _deep_eval(row: Record) -> list[Record]:
    fields = {plain_name(name): item for name, item in row.items()}
    if "actualoutput" not in fields:
        return []
    called: list[Record] = []
    for number, tool in enumerate(objects_in(fields.get("toolscalled"))):
        call = function_call(
            f"call-{number}", tool.get("name"), tool.get("inputParameters", tool.get("input_parameters"))
        )
        called.append({"role": "assistant", "content": None, "tool_calls": [call]})
        called.append({"role": "tool", "tool_call_id": f"call-{number}", "content": tool.get("output")})
    context = fields.get("retrievalcontext")
    return _sample(row["input"], fields["actualoutput"], None, between=[*_contexts(context), *called])


def _ragas(row: Record) -> list[Record]:
    asked, context = row["user_input"], _contexts(row.get("retrieved_contexts"))
    if isinstance(asked, list) and row.get("response") is None:
        return [*objects_in(asked), *context]
    return _sample(asked, row.get("response"), None, between=context)


def _contexts(texts: Json) -> list[Record]:
    return [{"type": "retrieved contexts", "contexts": texts}] if texts else []


def _sample(asked: Json, answer: Json, error: Json, *, between: Sequence[Record] = (), **about: Json) -> list[Record]:
    """The messages of a prompt and its answer, or why there is none."""
    if not asked or (answer is None and not error):
        return []
    beside = {name: item for name, item in about.items() if item is not None}
    last: Record = {"role": "assistant", "content": as_text(answer), **beside} if answer is not None else {
        "type": "error", "content": error}  # fmt: skip
    return [*_asked(asked), *between, last]


_FORMS: tuple[tuple[frozenset[str], Callable[[Record], list[Record]]], ...] = (
    (LM_EVAL, _lm_eval),
    (frozenset({"instance", "request", "result"}), _helm),
    (frozenset({"prompt", "response", "vars"}), _promptfoo),
    (frozenset({"input", "success"}), _deep_eval),
    (frozenset({"user_input"}), _ragas),
)
"""The fields by which a row is known, and what reads it."""
