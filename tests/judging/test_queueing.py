"""Order, overlap, hidden repeats and samples: seeded, exact, the same on every machine."""

from collections import Counter

import pytest

from tracejury.judging.queues.queueing import (
    GAP,
    chances,
    next_repeat,
    order,
    people_by_trace,
    random_sample,
    spread,
    stratified_sample,
    systematic_sample,
)

TRACES = [f"t{number:02d}" for number in range(40)]


def test_each_person_has_their_own_order_and_always_the_same() -> None:
    ada, ben = (order(TRACES, seed=7, person=person) for person in ("ada", "ben"))
    assert sorted(ada) == sorted(ben) == TRACES
    assert ada != ben
    assert ada == order(reversed(TRACES), seed=7, person="ada")
    assert ada != order(TRACES, seed=8, person="ada")


def test_the_order_of_a_seed_never_changes() -> None:
    """Pinned: another hash or another key would change the order of every queue that is being worked on."""
    assert order(TRACES[:8], seed=1, person="ada") == ["t07", "t01", "t00", "t04", "t05", "t02", "t06", "t03"]


def test_order_is_spread_evenly_over_people() -> None:
    """Each of 40 traces should be first for about 25 of 1,000 people; the bound is 5 standard deviations."""
    firsts = [order(TRACES, seed=3, person=f"p{number}")[0] for number in range(1000)]
    assert all(abs(firsts.count(trace_id) - 25) < 25 for trace_id in TRACES)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 0), (0.2, 8), (0.5, 20), (1.0, 40), (0.0125, 1), (0.0124, 0)],  # 0.5 of a trace is rounded up
)
def test_the_share_of_overlap_is_exact(share: float, expected: int) -> None:
    counts = people_by_trace(TRACES, k=3, share=share, seed=1)
    assert list(counts) == TRACES
    assert sorted(counts.values()) == [1] * (40 - expected) + [3] * expected


def test_a_share_that_is_a_float_is_not_cut_short() -> None:
    """0.29 * 100 is 28.999999999999996."""
    assert sum(n == 2 for n in people_by_trace([str(n) for n in range(100)], k=2, share=0.29, seed=1).values()) == 29


@pytest.mark.parametrize(("k", "share"), [(0, 0.5), (2, 1.1), (2, -0.1)])
def test_impossible_overlap_is_refused(k: int, share: float) -> None:
    with pytest.raises(ValueError, match=r"at least one|between 0 and 1"):
        people_by_trace(TRACES, k=k, share=share, seed=1)


class TestRepeats:
    def test_one_in_ten_comes_again_after_ten_and_lies_back(self) -> None:
        assert next_repeat(TRACES[:9], (), share=0.1, seed=1, person="ada") is None
        again = next_repeat(TRACES[:10], (), share=0.1, seed=1, person="ada")
        assert again in TRACES[: 10 - GAP]
        assert next_repeat(TRACES[:19], [again], share=0.1, seed=1, person="ada") is None
        second = next_repeat(TRACES[:20], [again], share=0.1, seed=1, person="ada")
        assert second not in {None, again}

    def test_no_repeat_without_a_share(self) -> None:
        assert next_repeat(TRACES, (), share=0, seed=1, person="ada", is_end=True) is None

    def test_at_the_end_the_share_is_rounded_and_the_last_trace_is_spared(self) -> None:
        assert next_repeat(TRACES[:4], (), share=0.2, seed=1, person="ada") is None
        assert next_repeat(TRACES[:4], (), share=0.2, seed=1, person="ada", is_end=True) in TRACES[:3]
        assert next_repeat(TRACES[:2], (), share=0.2, seed=1, person="ada", is_end=True) is None  # 0.4 rounds to 0
        assert next_repeat(TRACES[:1], (), share=1, seed=1, person="ada", is_end=True) == TRACES[0]

    def test_a_trace_whose_answer_was_seen_never_comes_again(self) -> None:
        seen = TRACES[:4]
        assert next_repeat(TRACES[:5], (), share=1, seed=1, person="ada", unfit=seen, is_end=True) is None
        assert next_repeat(TRACES[:6], (), share=1, seed=1, person="ada", unfit=seen, is_end=True) == TRACES[4]

    def test_people_repeat_different_traces(self) -> None:
        chosen = {next_repeat(TRACES, (), share=0.1, seed=1, person=f"p{n}") for n in range(30)}
        assert len(chosen) > 10


class TestSamples:
    def test_a_random_sample_has_the_size_asked_for_and_keeps_the_order(self) -> None:
        chosen = random_sample(TRACES, 10, seed=1)
        assert len(chosen) == 10
        assert chosen == sorted(chosen)
        assert chosen != random_sample(TRACES, 10, seed=2)
        assert random_sample(TRACES, 99, seed=1) == TRACES
        assert random_sample(TRACES, -1, seed=1) == []

    def test_strata_keep_their_shares(self) -> None:
        strata = {trace_id: "big" if number < 30 else "small" for number, trace_id in enumerate(TRACES)}
        chosen = stratified_sample(strata, 8, seed=1)
        assert [strata[trace_id] for trace_id in chosen].count("big") == 6  # 8 * 30 / 40
        assert len(chosen) == 8

    def test_a_rare_stratum_is_not_left_out_where_there_is_room(self) -> None:
        strata = {trace_id: "rare" if number == 0 else "usual" for number, trace_id in enumerate(TRACES)}
        assert "t00" in stratified_sample(strata, 2, seed=1)
        assert len(stratified_sample(strata, 2, seed=1)) == 2
        assert len(stratified_sample(strata, 1, seed=1)) == 1

    @pytest.mark.parametrize("count", range(45))
    def test_a_stratified_sample_has_exactly_its_size(self, count: int) -> None:
        strata = {trace_id: f"s{number % 7 % 4}" for number, trace_id in enumerate(TRACES)}
        chosen = stratified_sample(strata, count, seed=1)
        assert len(chosen) == len(set(chosen)) == min(count, 40)

    def test_a_stratified_draw_tells_the_chance_of_each_stratum(self) -> None:
        strata = {trace_id: "big" if number < 30 else "small" for number, trace_id in enumerate(TRACES)}
        drawn = stratified_sample(strata, 8, seed=1)
        assert {strata[one]: chance for one, chance in drawn.items()} == {"big": 6 / 30, "small": 2 / 10}

    def test_chances_are_in_proportion_to_sizes_that_have_a_floor(self) -> None:
        # mean 2, floor .5: weights 4.5, 2.5, .5, 2.5 sum to 10; the first would have 2 * .45
        assert chances({"a": 4.0, "b": 2.0, "c": 0.0, "d": 2.0}, 2) == pytest.approx(
            {"a": 0.9, "b": 0.5, "c": 0.1, "d": 0.5}
        )
        # 3 * .45 is more than 1: a is certain, and 2 of the others share 2.5 + .5 + 2.5
        certain = chances({"a": 4.0, "b": 2.0, "c": 0.0, "d": 2.0}, 3)
        assert certain == pytest.approx({"a": 1.0, "b": 2 * 2.5 / 5.5, "c": 2 * 0.5 / 5.5, "d": 2 * 2.5 / 5.5})
        assert chances({"a": 0.0, "b": 0.0}, 1) == {"a": 0.5, "b": 0.5}
        assert chances({"a": 1.0}, 5) == {"a": 1.0}

    def test_a_systematic_sample_draws_every_trace_with_its_chance(self) -> None:
        wanted = chances({trace_id: float(number % 7) for number, trace_id in enumerate(TRACES)}, 10)
        draws = [systematic_sample(wanted, seed=seed) for seed in range(4_000)]
        assert {len(drawn) for drawn in draws} == {10}
        often = Counter(trace_id for drawn in draws for trace_id in drawn)
        far = {one: abs(often[one] / 4_000 - chance) for one, chance in wanted.items()}
        assert max(far.values()) < 4 * (0.25 / 4_000) ** 0.5  # four standard errors

    def test_spread_is_the_mean_distance_of_two_scores_of_one_dimension(self) -> None:
        # LC: 0 and 3 are 3 apart; TC: 1-1, 1-2, 1-2 give 0, 1, 1. Mean of (3, 0, 1, 1) = 1.25
        assert spread([[0, 3], [1, 1, 2]]) == 1.25
        assert spread([[2], []]) is None
        assert spread([[2, 2]]) == 0
