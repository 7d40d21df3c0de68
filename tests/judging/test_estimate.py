"""Estimates, derived by hand; and the paper's consistency experiment, computed from recorded usage."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fake_provider import verdict
from tests.judging.grid import AGENTS, RUBRICS, Counting, planned

from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load_source, read_transaction
from tracejury.ingest.trace import Trace
from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import ModelReply, ModelRequest, Prices, known_prices
from tracejury.judging.judges.prompt import build_prompt
from tracejury.judging.runs.cost_estimate import ANSWER_TOKENS, CostEstimate, TraceSize, estimate, trace_sizes
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.runs.runner import Runner

PRICES = Prices(prompt=1.0, completion=10.0, cache_read=0.1, cache_write=1.25, batch_prompt=0.5, batch_completion=5.0)
SIZE = TraceSize(trace_id="t", raw_tokens=50_000, text_tokens=10_000, spans=4)


def of(spec: RunSpec, prices: Prices | None = PRICES, sizes: list[TraceSize] | None = None) -> CostEstimate:
    models = {name: ModelSetup(call=Counting(), prices=prices, count=len) for name in spec.models}
    return estimate(spec, sizes or [SIZE], RUBRICS, models)


def beside(judge: str) -> tuple[int, int]:
    prompt = build_prompt("", RUBRICS[judge])
    return len(prompt.system) + len(prompt.prefix), len(prompt.suffix)


def test_two_judges_and_three_repeats_by_hand() -> None:
    result = of(RunSpec(rubrics=("LC", "EE"), models=("m",), repeats=3))
    before, _ = beside("LC")
    answers = 6 * ANSWER_TOKENS * 10.0
    after = {judge: beside(judge)[1] for judge in ("LC", "EE")}
    around = 6 * before + 3 * sum(after.values())
    assert result.total.calls == 6
    assert result.total.costs["naive"] == pytest.approx(6 * 50_000 + around + answers)
    assert result.total.costs["deduplicated"] == pytest.approx(6 * 10_000 + around + answers)
    # one call writes the prefix at 1.25, five read it at 0.1
    prefix = before + 10_000
    assert result.total.costs["cached"] == pytest.approx(prefix * (1.25 + 5 * 0.1) + 3 * sum(after.values()) + answers)
    assert result.total.costs["batch"] == pytest.approx((6 * 10_000 + around) / 2 + answers / 2)


def test_rows_sum_to_the_total() -> None:
    result = of(RunSpec(rubrics=("LC", "EE", "PQ"), models=("a", "b"), mode="jury", repeats=2))
    assert len(result.rows) == 6
    for way in ("naive", "deduplicated", "cached", "batch"):
        assert result.total.costs[way] == pytest.approx(sum(row.costs[way] or 0 for row in result.rows))


def test_unknown_prices_give_unknown_costs_and_never_zero() -> None:
    result = of(RunSpec(rubrics=("LC",), models=("m",)), prices=None)
    assert set(result.total.costs.values()) == {None}
    assert "unknown" in "\n".join(result.lines())
    no_batch = of(RunSpec(rubrics=("LC",), models=("m",)), prices=Prices(prompt=1, completion=1))
    assert no_batch.total.costs["batch"] is None
    assert no_batch.total.costs["naive"] is not None


def test_a_single_call_has_nothing_to_share() -> None:
    result = of(RunSpec(rubrics=("LC",), models=("m",)))
    assert result.total.costs["cached"] == result.total.costs["deduplicated"]


def test_short_prefixes_are_not_cached_by_providers() -> None:
    tiny = TraceSize(trace_id="t", raw_tokens=10, text_tokens=10, spans=1)
    spec = RunSpec(rubrics=("LC", "EE"), models=("m",))
    models = {"m": ModelSetup(call=Counting(), prices=PRICES, count=lambda text: len(text) // 100)}
    total = estimate(spec, [tiny], RUBRICS, models).total
    assert total.costs["cached"] == total.costs["deduplicated"]


def test_in_the_papers_order_only_the_repeats_of_a_judge_share() -> None:
    spec = {"rubrics": ("LC", "EE"), "models": ("m",), "repeats": 2}
    ours, paper = of(RunSpec(**spec)), of(RunSpec(**spec, order="paper"))  # type: ignore[arg-type]
    assert (ours.total.costs["cached"] or 0) < (paper.total.costs["cached"] or 0)
    assert (paper.total.costs["cached"] or 0) < (paper.total.costs["deduplicated"] or 0)


def test_span_by_span_counts_a_call_for_each_span() -> None:
    assert of(RunSpec(rubrics=("LC",), models=("m",), mode="span", repeats=2)).total.calls == 8


def test_sizes_come_from_the_store(tmp_path: Path) -> None:
    grid = planned(tmp_path, 2)
    with read_transaction(grid.engine) as connection:
        sizes = trace_sizes(connection, [f"{n:032x}" for n in (1, 2)], len)
    assert [size.spans for size in sizes] == [3, 3]
    assert all(size.text_tokens > 500 for size in sizes)


def test_the_papers_ways_at_public_prices() -> None:
    """JUDGING.md's example: a 60k-token trace, 7 judges x 5 runs on Sonnet 4.5: $7.25 naive, $1.68 trace first."""
    prices = known_prices("claude-sonnet-4-5")
    size = TraceSize(trace_id="t", raw_tokens=60_000, text_tokens=60_000, spans=1)
    spec = RunSpec(rubrics=("LC", "EE", "PQ", "PA", "GF", "TS", "TC"), models=("m",), repeats=5)
    costs = of(spec, prices=prices, sizes=[size]).total.costs
    # our prompts are counted here in characters, 4 times too many: so only the order of size is held
    assert 6 < (costs["naive"] or 0) < 9
    assert 1 < (costs["cached"] or 0) < 3


class LikeAnthropic:
    """Answers at once and reports usage as Anthropic does: the first call with a prefix writes it, others read it."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    async def __call__(self, request: ModelRequest) -> ModelReply:
        prompt = request.prompt
        prefix = (len(prompt.system) + len(prompt.prefix)) // 4
        known = prompt.prefix_hash in self.seen
        self.seen.add(prompt.prefix_hash)
        reply = ModelReply(
            text=verdict(2, rationale="r" * 4 * (ANSWER_TOKENS - 30)),
            finish_reason="stop",
            prompt_tokens=prefix + len(prompt.suffix) // 4,
            completion_tokens=ANSWER_TOKENS,
            cached_tokens=prefix if known and request.share_prefix else 0,
            cache_write_tokens=0 if known or not request.share_prefix else prefix,
        )
        prices = known_prices("claude-sonnet-4-5")
        assert prices is not None
        return replace(reply, cost_usd=prices.cost_of(reply))


@pytest.mark.shared
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.soak)])
def test_the_papers_consistency_experiment_costs_at_most_7_percent_of_sending_raw_json(
    shared: Path, tmp_path: Path, every: int
) -> None:
    found = sorted(
        (t for t in read_traces(shared / "trail" / "traces") if isinstance(t, Trace)), key=lambda t: t.trace_id
    )
    traces = found[::every]
    judges = ("LC", "EE", "PQ", "PA", "TS", "TC")
    grid = planned(tmp_path, traces, rubrics=judges, models=("claude-sonnet-4-5",), repeats=5, concurrency=16)
    setup = ModelSetup(call=LikeAnthropic(), prices=known_prices("claude-sonnet-4-5"), capabilities=ModelCapabilities())
    store = RunStore(grid.engine, grid.run_key)
    runner = Runner(grid.spec, store, rubrics=RUBRICS, models={"claude-sonnet-4-5": setup}, agents=AGENTS)
    summary = asyncio.run(runner.run())
    assert summary.states == {"scored": 30 * len(traces)}
    with read_transaction(grid.engine) as connection:
        raw = sum(len(load_source(connection, trace.trace_id).data) // 4 for trace in traces)
    naive = 30 * (raw * 3e-6 + len(traces) * ANSWER_TOKENS * 15e-6)
    share = summary.spent_usd / naive
    print(f"{len(traces)} traces: ${summary.spent_usd:.2f} recorded, ${naive:.2f} naive: {share:.1%}")
    assert share <= 0.07
