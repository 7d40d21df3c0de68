"""Records the spans of a run and gives them fixed ids and times, so that the same script gives the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import opentelemetry.trace as api
from cleaning import clean
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from recording_ids import identifier, sample_span_id, sample_trace_id

MICROSECOND = 1_000


class StartOrder(SpanProcessor):
    """Keeps every span in the order in which they began."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.spans.append(span)


class Recorder:
    """Runs a function under OpenTelemetry and OpenInference and returns its spans in the order they began."""

    def __init__(self, resource: Mapping[str, str]) -> None:
        self.resource = Resource(dict(resource))

    @contextmanager
    def _instrumented(self) -> Iterator[tuple[StartOrder, TracerProvider]]:
        # Imported here: other runs use this module in environments without smolagents.
        from openinference.instrumentation.smolagents import SmolagentsInstrumentor

        order = StartOrder()
        provider = TracerProvider(resource=self.resource)
        provider.add_span_processor(order)
        instrumentor = SmolagentsInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
        try:
            yield order, provider
        finally:
            instrumentor.uninstrument()

    def record(self, run: Callable[[api.Tracer], None]) -> list[ReadableSpan]:
        with self._instrumented() as (order, provider):
            run(provider.get_tracer("patronus.sdk", ""))
        return order.spans


def _jitter(seed: str) -> float:
    return int(identifier(seed, 8), 16) / 0xFFFFFFFF


def _own_seconds(span: ReadableSpan, seed: str) -> float:
    """How long a span without children takes: an LLM by its tokens, a tool a little, by the seed."""
    attributes = span.attributes or {}
    kind = attributes.get("openinference.span.kind")
    if kind == "LLM" or "gen_ai.request.model" in attributes:
        written = attributes.get("llm.token_count.completion", attributes.get("gen_ai.usage.output_tokens", 20))
        told = attributes.get("llm.token_count.prompt", attributes.get("gen_ai.usage.input_tokens", 0))
        return 0.4 + 0.012 * int(str(written)) + 0.00004 * int(str(told)) + 0.3 * _jitter(seed)
    return 0.0002 + (0.6 if kind == "TOOL" and span.name != "FinalAnswerTool" else 0.001) * _jitter(seed)


class _Clock:
    """Start and end in nanoseconds for every span of a tree, children one after the other."""

    def __init__(self, spans: Sequence[ReadableSpan], seed: str, start_us: int) -> None:
        self.seed, self.times = seed, dict[int, tuple[int, int]]()
        self.position = {span.context.span_id: number for number, span in enumerate(spans)}
        self.children: dict[int | None, list[ReadableSpan]] = {}
        for span in spans:
            self.children.setdefault(span.parent.span_id if span.parent else None, []).append(span)
        for root in self.children[None]:
            self._walk(root, start_us)

    def _walk(self, span: ReadableSpan, start_us: int) -> int:
        seed = f"{self.seed}/{self.position[span.context.span_id]}"
        now = start_us + 180 + int(400 * _jitter(seed + "/gap"))
        for child in self.children.get(span.context.span_id, []):
            now = self._walk(child, now) + 150 + int(900 * _jitter(seed + "/between"))
        if span.context.span_id not in self.children:
            now = start_us + int(1e6 * _own_seconds(span, seed))
        self.times[span.context.span_id] = (start_us * MICROSECOND, now * MICROSECOND)
        return now


def _clean_value(value: Any, start_ns: int) -> Any:
    return clean(value, start_ns) if isinstance(value, str) else value


def fixed(spans: Sequence[ReadableSpan], *, seed: str, start_us: int) -> list[ReadableSpan]:
    """The same spans with ids and times that depend on the seed and the script alone."""
    clock = _Clock(spans, seed, start_us)
    trace_id = int(sample_trace_id(seed), 16)
    ids = {span.context.span_id: int(sample_span_id(seed, number), 16) for number, span in enumerate(spans)}

    def context(span_id: int) -> SpanContext:
        return SpanContext(trace_id, ids[span_id], is_remote=False, trace_flags=TraceFlags(1))

    def rebuilt(span: ReadableSpan) -> ReadableSpan:
        start, end = clock.times[span.context.span_id]
        events = [
            Event(
                event.name,
                {key: _clean_value(value, start) for key, value in (event.attributes or {}).items()},
                timestamp=end - (len(span.events) - number) * 20 * MICROSECOND,
            )
            for number, event in enumerate(span.events)
        ]
        return ReadableSpan(
            name=span.name,
            context=context(span.context.span_id),
            parent=context(span.parent.span_id) if span.parent else None,
            resource=span.resource,
            attributes={key: _clean_value(value, start) for key, value in (span.attributes or {}).items()},
            events=events,
            links=[],
            kind=SpanKind.INTERNAL,
            status=span.status,
            start_time=start,
            end_time=end,
            instrumentation_scope=span.instrumentation_scope,
        )

    return [rebuilt(span) for span in spans]
