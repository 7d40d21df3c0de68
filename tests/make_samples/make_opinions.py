"""Makes data/labels and data/samples/predictions from `opinions.py`, with quotes located by our own readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from opinions import ADA, BEN, CAREFUL, GUIDELINE, HASTY, TRAIL_LABELS, TRAIL_SCORES, Guess, Opinion, Quote, Said
from recording_ids import sample_trace_id

from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Trace
from tracejury.judging.judges.trace_text import message_text

DATA = Path(__file__).resolve().parents[2] / "data"
CONTEXT = 40  # code points kept before and after a quote


def _traces() -> dict[str, Trace]:
    """The traces that people labelled, by id."""
    found = [result for name in ("trail", "gaia2") for result in read_traces(DATA / "samples" / name)]
    return {trace.trace_id: trace for trace in found if isinstance(trace, Trace)}


class Sample:
    """One sample as people and judges read it; a TRAIL-form one has its id from the key."""

    def __init__(self, key: str, traces: Mapping[str, Trace]) -> None:
        self.key = key
        by_name = {trace_id for trace_id in traces if trace_id.startswith(key)}
        self.trace_id = by_name.pop() if by_name else sample_trace_id(key)
        self.trace = traces[self.trace_id]

    def span_id(self, seq: int) -> str:
        return self.trace.spans[seq].span_id

    def evidence(self, quote: Quote) -> dict[str, Any]:
        field, text = self._holding(quote)
        start = text.index(quote.text)
        end = start + len(quote.text)
        return {
            "quote": quote.text,
            "span_id": self.span_id(quote.seq),
            "field": field,
            "start": start,
            "end": end,
            "before": text[max(0, start - CONTEXT) : start],
            "after": text[end : end + CONTEXT],
        }

    def _holding(self, quote: Quote) -> tuple[str, str]:
        """The field that holds the quote: what a span said or returned comes before what it was told."""
        for field, text in self._fields(quote.seq):
            if quote.text in text:
                return field, text
        raise ValueError(f"{self.key}: span {quote.seq} holds no {quote.text!r}")

    def _fields(self, seq: int) -> Iterator[tuple[str, str]]:
        span = self.trace.spans[seq]
        for position in span.output_messages:
            yield f"message:{position}", message_text(self.trace.messages[position])
        for name in ("output", "status_message", "tool_arguments", "input"):
            text = getattr(span, name)
            if text is not None:
                yield name, text


def _label(sample: Sample, annotator: str, number: int, said: Said) -> dict[str, Any]:
    return {
        "label_id": f"{annotator}-{sample.key}-{number + 1}",
        "span_ids": [sample.span_id(seq) for seq in said.spans],
        "dimensions": said.dimensions.split(),
        "impact": said.impact,
        "category": said.category,
        "description": said.description,
        "phase": "blind",
        "evidence": [sample.evidence(quote) for quote in said.quotes],
    }


def _score(dimension: str, value: int | None, note: str) -> dict[str, Any]:
    return {
        "dimension": dimension,
        "value": value,
        "not_applicable": value is None,
        "note": note,
        "confidence": None,
        "phase": "blind",
    }


def _opinion(sample: Sample, annotator: str, opinion: Opinion) -> dict[str, Any]:
    return {
        "trace_id": sample.trace_id,
        "annotator": annotator,
        "status": "submitted",
        "no_error": not opinion.errors,
        "guideline_version": GUIDELINE,
        "errors": [_label(sample, annotator, number, said) for number, said in enumerate(opinion.errors)],
        "scores": [_score(key, value, opinion.notes.get(key, "")) for key, value in opinion.scores.items()],
    }


def _own_form(samples: Mapping[str, Sample], annotator: str, opinions: Mapping[str, Opinion]) -> dict[str, Any]:
    return {
        "format": "tracejury-labels",
        "version": 1,
        "annotators": [annotator],
        "labels": [_opinion(samples[key], annotator, opinion) for key, opinion in opinions.items()],
    }


def _trail_scores(key: str) -> dict[str, Any]:
    reliability, security, adherence, plan = TRAIL_SCORES[key]
    return {
        "reliability_score": reliability,
        "reliability_reasoning": "How far the answer can be trusted.",
        "security_score": security,
        "security_reasoning": "Nothing unsafe was done.",
        "instruction_adherence_score": adherence,
        "instruction_adherence_reasoning": "How far the instructions were followed.",
        "plan_opt_score": plan,
        "plan_opt_reasoning": "How well the work was planned.",
        "overall": (reliability + security + adherence + plan) / 4,
    }


def _trail_annotation(sample: Sample) -> dict[str, Any]:
    agreed = [ADA[sample.key].errors[number] for number in TRAIL_LABELS[sample.key]]
    errors = [
        {
            "category": said.category,
            "location": sample.span_id(said.spans[-1]),
            "evidence": said.quotes[0].text,
            "description": said.description,
            "impact": said.impact.upper(),
        }
        for said in agreed
    ]
    return {"trace_id": sample.trace_id, "errors": errors, "scores": [_trail_scores(sample.key)]}


def _prediction(sample: Sample, guesses: list[Guess]) -> dict[str, Any]:
    errors = [
        {
            "category": guess.category,
            "location": sample.span_id(guess.location) if isinstance(guess.location, int) else guess.location,
            "evidence": guess.evidence,
            "description": guess.description,
            "impact": guess.impact,
        }
        for guess in guesses
    ]
    return {"errors": errors, "scores": [_trail_scores(sample.key)]}


def _trailing_comma(text: str) -> str:
    """The slip of a hand that TRAIL's own labels hold once: a comma after the last error."""
    at = text.index('\n    ],\n    "scores"')
    return f"{text[:at]},{text[at:]}"


def _predictions(samples: Mapping[str, Sample]) -> Iterator[tuple[str, str]]:
    for key, guesses in CAREFUL.items():
        yield f"careful-judge/{samples[key].trace_id}.json", _text(_prediction(samples[key], list(guesses)))
    cut = _text(_prediction(samples["lighthouse"], list(CAREFUL["lighthouse"])))[:700]
    yield f"careful-judge/{samples['tidecalc'].trace_id}.json", f"Here is my evaluation of the trace:\n\n{cut}"
    for key, guesses in HASTY.items():
        yield f"hasty-judge/{samples[key].trace_id}.json", _text(_prediction(samples[key], list(guesses)))
    unread = "Context window exceeded. No output generated."
    yield f"hasty-judge/{samples['observatory'].trace_id}.json", unread


def _text(value: Any) -> str:
    return json.dumps(value, indent=4, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(path.relative_to(DATA))


def main() -> None:
    traces = _traces()
    samples = {key: Sample(key, traces) for key in ADA}
    for annotator, opinions in (("ada", ADA), ("ben", BEN)):
        _write(DATA / "labels" / f"{annotator}.json", _text(_own_form(samples, annotator, opinions)))
    for key in TRAIL_LABELS:
        sample = samples[key]
        text = _text(_trail_annotation(sample))
        spoiled = _trailing_comma(text) if key == "census" else text
        _write(DATA / "labels" / "trail" / f"{sample.trace_id}.json", spoiled)
    for name, text in _predictions(samples):
        _write(DATA / "samples" / "predictions" / name, text)


if __name__ == "__main__":
    main()
