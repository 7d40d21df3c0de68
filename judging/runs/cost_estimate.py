"""What a run will cost before it is started: raw JSON sent naively, our text, our text cached, our text in a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from tracejury.ingest.store import load, load_source
from tracejury.judging.judges.judge import spans_judged
from tracejury.judging.judges.model import Prices
from tracejury.judging.judges.prompt import build_prompt
from tracejury.judging.judges.rubric import Rubric
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_spec import RunSpec

Way = Literal["naive", "deduplicated", "cached", "batch"]
WAYS: tuple[Way, ...] = ("naive", "deduplicated", "cached", "batch")
MEANING: Mapping[Way, str] = {
    "naive": "raw trace file in every call",
    "deduplicated": "judge's view in every call, no cache",
    "cached": "judge's view first, read from the provider's cache after the first call of a trace",
    "batch": "judge's view through the provider's batch interface",
}
ANSWER_TOKENS = 700  # assumed of each answer
CACHE_LEAST = 1_024  # tokens: shorter prefixes are not cached by any provider
_SAMPLE = 120_000  # characters of a raw file that are counted; the rest by proportion


@dataclass(frozen=True, kw_only=True)
class TraceSize:
    """Tokens of a trace: of its source as it is, and of our text. `spans` are those a span-by-span run asks about."""

    trace_id: str
    raw_tokens: int
    text_tokens: int
    spans: int


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """One judge by one model (or the total, judge and model None). Costs in US dollars, None where unknown.

    `prompt_tokens` are those of our text in all calls.
    """

    rubric: str | None
    model: str | None
    calls: int
    prompt_tokens: int
    answer_tokens: int
    costs: Mapping[Way, float | None]


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """Rows by judge and model; `total` sums them. `too_long` names traces that will be cut to fit a model."""

    rows: tuple[CostRow, ...]
    total: CostRow
    traces: int
    too_long: tuple[str, ...] = ()

    def table(self) -> list[dict[str, object]]:
        """One dict per row: judge, model, calls, prompt_tokens, answer_tokens and a cost by way."""
        return [_flat(row) for row in (*self.rows, self.total)]

    def lines(self) -> list[str]:
        """The table as text, with what each way means."""
        head = ["dimension", "model", "calls", "prompt tokens", *WAYS]
        body = [
            [
                row.rubric or "total",
                row.model or "",
                f"{row.calls:,}",
                f"{row.prompt_tokens:,}",
                *(_dollars(row.costs[way]) for way in WAYS),
            ]
            for row in (*self.rows, self.total)
        ]
        widths = [max(len(line[column]) for line in [head, *body]) for column in range(len(head))]
        table = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in [head, *body]
        ]
        return [*table, "", *(f"{way}: {MEANING[way]}" for way in WAYS)]


def trace_sizes(connection: Connection, traces: Sequence[str], count: Callable[[str], int]) -> list[TraceSize]:
    """Sizes of stored traces by a tokenizer; of the raw files only a part is counted, the rest by proportion."""
    return [_size(connection, trace_id, count) for trace_id in traces]


def estimate(
    spec: RunSpec,
    sizes: Sequence[TraceSize],
    rubrics: Mapping[str, Rubric],
    models: Mapping[str, ModelSetup],
) -> CostEstimate:
    """The cost of a run in four ways. The judges of one trace share its cached prefix, in equal parts."""
    rows = []
    for model in spec.models:
        setup = models[model]
        beside = {rubric: _beside(setup, rubrics[rubric], spec) for rubric in spec.rubrics}
        rows += [_row(spec, sizes, rubric, model, setup.prices, beside[rubric]) for rubric in spec.rubrics]
    limits = [setup.context for setup in models.values() if setup.context is not None]
    room = min(limits, default=None)
    cut = () if room is None else tuple(size.trace_id for size in sizes if size.text_tokens > room)
    return CostEstimate(rows=tuple(rows), total=_total(rows), traces=len(sizes), too_long=cut)


def _size(connection: Connection, trace_id: str, count: Callable[[str], int]) -> TraceSize:
    trace = load(connection, trace_id, with_logs=False)
    reading = render_trace(trace)
    raw = load_source(connection, trace_id).data.decode("utf-8", "replace")
    sample = raw[:_SAMPLE]
    raw_tokens = round(count(sample) * len(raw) / len(sample)) if sample else 0
    return TraceSize(
        trace_id=trace_id,
        raw_tokens=raw_tokens,
        text_tokens=count(reading.text),
        spans=len(spans_judged(reading)),
    )


@dataclass(frozen=True)
class _Beside:
    """Tokens of a prompt beside the trace: those before it (shared), and those after it."""

    before: int
    after: int


def _beside(setup: ModelSetup, rubric: Rubric, spec: RunSpec) -> _Beside:
    prompt = build_prompt("", rubric, form=setup.capabilities.forms[0], order=spec.order)
    return _Beside(setup.count(prompt.system) + setup.count(prompt.prefix), setup.count(prompt.suffix))


def _row(
    spec: RunSpec,
    sizes: Sequence[TraceSize],
    rubric: str,
    model: str,
    prices: Prices | None,
    beside: _Beside,
) -> CostRow:
    costs: dict[Way, float | None] = dict.fromkeys(WAYS, None if prices is None else 0.0)
    calls = prompt_tokens = 0
    for size in sizes:
        some = spec.repeats * (size.spans if spec.mode == "span" else 1)
        calls += some
        prompt_tokens += some * (beside.before + size.text_tokens + beside.after)
        if prices is not None:
            for way, cost in _costs(spec, size, some, prices, beside).items():
                known = costs[way]
                costs[way] = None if known is None or cost is None else known + cost
    return CostRow(
        rubric=rubric,
        model=model,
        calls=calls,
        prompt_tokens=prompt_tokens,
        answer_tokens=calls * ANSWER_TOKENS,
        costs=costs,
    )


def _costs(spec: RunSpec, size: TraceSize, calls: int, prices: Prices, beside: _Beside) -> dict[Way, float | None]:
    """The cost of one judge's calls on one trace."""
    around = beside.before + beside.after
    ours, raw = size.text_tokens + around, size.raw_tokens + around
    has_batch = prices.batch_prompt is not None and prices.batch_completion is not None
    return {
        "naive": calls * prices.cost(prompt=raw, completion=ANSWER_TOKENS),
        "deduplicated": calls * prices.cost(prompt=ours, completion=ANSWER_TOKENS),
        "cached": _cached(spec, size, calls, prices, beside),
        "batch": calls * prices.cost(prompt=ours, completion=ANSWER_TOKENS, batch=True) if has_batch else None,
    }


def _cached(spec: RunSpec, size: TraceSize, calls: int, prices: Prices, beside: _Beside) -> float:
    """One call writes the prefix, all others read it; a judge bears its share of the writing."""
    prefix = beside.before + size.text_tokens
    sharing = calls if spec.order == "paper" else calls * len(spec.rubrics)
    if prefix < CACHE_LEAST or sharing < 2:
        return calls * prices.cost(prompt=prefix + beside.after, completion=ANSWER_TOKENS)
    prompt = prefix + beside.after
    writes = prices.cost(prompt=prompt, completion=ANSWER_TOKENS, cache_write=prefix)
    reads = prices.cost(prompt=prompt, completion=ANSWER_TOKENS, cached=prefix)
    return calls * (writes + (sharing - 1) * reads) / sharing


def _total(rows: Sequence[CostRow]) -> CostRow:
    costs: dict[Way, float | None] = {}
    for way in WAYS:
        parts = [row.costs[way] for row in rows]
        costs[way] = None if any(part is None for part in parts) else sum(part for part in parts if part is not None)
    return CostRow(
        rubric=None,
        model=None,
        calls=sum(row.calls for row in rows),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        answer_tokens=sum(row.answer_tokens for row in rows),
        costs=costs,
    )


def _flat(row: CostRow) -> dict[str, object]:
    return {
        "dimension": row.rubric or "total",
        "model": row.model,
        "calls": row.calls,
        "prompt_tokens": row.prompt_tokens,
        "answer_tokens": row.answer_tokens,
        **{way: row.costs[way] for way in WAYS},
    }


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
