"""Reading order, and what is doubtful in a tree of spans."""

import random

import pytest
from tests.build import span_id, trace_of
from tests.effort import assert_linear

from tracejury.ingest.trace import IngestError, SpanDraft


def draft(number: int, parent: int | None = None, start: int | None = None, **more: object) -> SpanDraft:
    up = None if parent is None else span_id(parent)
    return SpanDraft(span_id=span_id(number), parent_span_id=up, start_time=start, end_time=start, **more)  # type: ignore[arg-type]


def order(*drafts: SpanDraft) -> list[int]:
    return [int(span.span_id, 16) for span in trace_of(drafts).spans]


def test_parents_come_first_and_siblings_by_start_time() -> None:
    assert order(draft(3, 1, 30), draft(2, 1, 20), draft(4, 2, 25), draft(1, None, 10)) == [1, 2, 4, 3]


def test_siblings_that_start_together_keep_the_order_of_the_source() -> None:
    assert order(draft(1, None, 1), draft(3, 1, 5), draft(2, 1, 5)) == [1, 3, 2]


def test_siblings_on_a_simulated_clock_keep_the_order_of_the_source() -> None:
    assert order(draft(1), draft(3, 1, 90, clock="sim"), draft(2, 1, 5, clock="sim")) == [1, 3, 2]


def test_a_shuffled_source_gives_the_same_tree() -> None:
    drafts = [(n, None if n == 1 else random.Random(n).randint(1, n - 1), n * 10) for n in range(1, 200)]
    straight = trace_of([draft(*one) for one in drafts]).spans
    random.Random(7).shuffle(drafts)
    shuffled = trace_of([draft(*one) for one in drafts]).spans
    assert [(s.span_id, s.depth) for s in straight] == [(s.span_id, s.depth) for s in shuffled]


def test_an_orphan_is_a_root_that_keeps_the_parent_it_names() -> None:
    spans = trace_of([draft(1), draft(2, 99)]).spans
    assert (spans[1].depth, spans[1].parent_span_id) == (0, span_id(99))
    assert spans[1].warnings[0].startswith("orphan:")


def test_an_identical_duplicate_is_kept_once_with_a_warning() -> None:
    trace = trace_of([draft(1), draft(2, 1, 5), draft(2, 1, 5)])
    assert len(trace.spans) == 2
    assert [warning.split(":")[0] for warning in trace.all_warnings].count("duplicate_span") == 1


def test_different_spans_of_one_id_are_all_kept() -> None:
    trace = trace_of([draft(1), draft(2, 1, 5, name="a"), draft(2, 1, 6, name="b")])
    assert [span.name for span in trace.spans] == ["", "a", "b"]
    assert trace.spans[2].attributes["tracejury.span_id"] == span_id(2)


def test_a_cycle_of_parents_is_cut_at_its_first_span() -> None:
    trace = trace_of([draft(1, 3), draft(2, 1), draft(3, 2), draft(4, 3)])
    assert [(int(s.span_id, 16), s.depth) for s in trace.spans] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert "cycle" in trace.spans[0].warnings[0]
    assert trace.spans[0].parent_span_id == span_id(3)


def test_a_span_that_is_its_own_parent_is_a_root() -> None:
    assert [span.depth for span in trace_of([draft(1, 1)]).spans] == [0]


def test_a_negative_duration_is_clamped_and_said() -> None:
    one = draft(1, None, 1_000_000)
    one.end_time = 500_000
    span = trace_of([one]).spans[0]
    assert (span.duration_s, span.attributes["tracejury.end_time_us"]) == (0.0, 500_000)
    assert "negative_duration" in span.warnings[0]


def test_ten_thousand_spans_deep_is_no_recursion_error() -> None:
    drafts = [draft(n, n - 1 if n > 1 else None, n) for n in range(1, 10_001)]
    assert trace_of(drafts).spans[-1].depth == 9_999


def test_a_trace_without_spans_is_refused_by_name() -> None:
    with pytest.raises(IngestError, match="holds no span"):
        trace_of([])


def test_only_leaf_llm_spans_are_summed() -> None:
    drafts = [
        draft(1, kind="AGENT", total_tokens=99),
        draft(2, 1, kind="LLM", total_tokens=10),
        draft(3, 2, kind="TOOL"),
        draft(4, 3, kind="LLM", total_tokens=7),
    ]
    assert [int(span.span_id, 16) for span in trace_of(drafts).leaf_llm_spans()] == [4]


def test_thousands_of_spans_of_one_id_are_no_quadratic_wait() -> None:
    def read_alike(size: int) -> None:
        trace = trace_of([draft(1, None, n, name=str(n)) for n in range(size)])
        assert len({span.span_id for span in trace.spans}) == size

    assert_linear(read_alike, 5_000)
