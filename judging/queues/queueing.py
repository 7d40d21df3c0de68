"""Who labels what next: order, overlap, hidden repeats, and which traces to take at all. Pure functions.

Every choice follows from a seed, so that a queue can be made again and a person meets the same order on every
machine. The draws are hashes, not a random generator: they do not depend on the order in which people come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from math import floor

FLOOR = 0.25  # of the mean size, that every trace has more
GAP = 5  # traces that lie between a trace and its hidden repeat, while there are new ones


def draw(seed: int, *names: str) -> int:
    """A number that looks random, the same for the same seed and names."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def order(traces: Iterable[str], *, seed: int, person: str) -> list[str]:
    """The order in which this person meets the traces; each person has their own."""
    return sorted(traces, key=lambda trace_id: (draw(seed, "order", person, trace_id), trace_id))


def people_by_trace(traces: Sequence[str], *, k: int, share: float, seed: int) -> dict[str, int]:
    """How many people each trace wants: `share` of them (rounded, half up) want `k`, the others one.

    Raises `ValueError` for a `k` below 1 or a share outside 0..1.
    """
    if k < 1:
        raise ValueError(f"k is {k}: an item wants at least one person")
    if not 0 <= share <= 1:
        raise ValueError(f"the share of overlap is {share}: it lies between 0 and 1")
    shared = overlap(traces, share=share, seed=seed)
    return {trace_id: k if trace_id in shared else 1 for trace_id in traces}


def overlap(traces: Iterable[str], *, share: float, seed: int, now: Iterable[str] = ()) -> set[str]:
    """The traces that want several people: `share` of all, and of those that do `now` as many as there is room for.

    So a queue that grows keeps the overlap it has, and a share that is changed moves as few traces as it can.
    """
    now = set(now)
    ranked = sorted(traces, key=lambda trace_id: (trace_id not in now, draw(seed, "overlap", trace_id), trace_id))
    return set(ranked[: round_half_up(share * len(ranked))])


def next_repeat(
    done: Sequence[str],
    repeated: Iterable[str],
    *,
    share: float,
    seed: int,
    person: str,
    unfit: Iterable[str] = (),
    is_end: bool = False,
) -> str | None:
    """The trace that this person is shown a second time now, if one is due.

    `done` are the traces the person has finished, in that order; `repeated` those shown again so far; `unfit`
    those whose repeat would mean nothing (the judges' errors have been seen). A repeat lies at least `GAP`
    traces after the first time, except at the end, when no new trace is left: then only the very last one is
    spared where there is another.
    """
    repeated, unfit = set(repeated), set(unfit)
    due = round_half_up(share * len(done)) if is_end else floor(share * len(done))
    if len(repeated) >= due:
        return None
    far = done[: max(0, len(done) - GAP)]
    near = done[:-1] if len(done) > 1 else done
    for reach in (far, near) if is_end else (far,):
        fit = [trace_id for trace_id in reach if trace_id not in repeated and trace_id not in unfit]
        if fit:
            return min(fit, key=lambda trace_id: (draw(seed, "repeat", person, trace_id), trace_id))
    return None


def deal(
    places: Mapping[str, tuple[int, Collection[str]]], people: Sequence[str], *, seed: int
) -> dict[str, list[str]]:
    """Free places to people, evenly: `places` maps a trace to how many people it wants and who has it already.

    Whoever has least comes next; nobody gets a trace twice, so a place for which nobody is left stays free.
    """
    load = Counter(name for _, names in places.values() for name in names if name in people)
    dealt: dict[str, list[str]] = {}
    for trace_id in sorted(places, key=lambda one: (draw(seed, "deal", one), one)):
        number, names = places[trace_id]
        fit = [name for name in people if name not in names]
        fit.sort(key=lambda name: (load[name], draw(seed, "deal", name, trace_id)))
        dealt[trace_id] = fit[: max(0, number - len(names))]
        load.update(dealt[trace_id])
    return dealt


def round_half_up(value: float) -> int:
    """Half up, and 0.3 * 10 is 3 though the product is a little less."""
    return floor(value + 0.5 + 1e-9)


def random_sample(traces: Sequence[str], count: int, *, seed: int) -> list[str]:
    """`count` of the traces (all, if there are no more), in the order given."""
    chosen = set(sorted(traces, key=lambda trace_id: (draw(seed, "sample", trace_id), trace_id))[: max(0, count)])
    return [trace_id for trace_id in traces if trace_id in chosen]


def stratified_sample(strata: Mapping[str, str], count: int, *, seed: int) -> dict[str, float]:
    """`count` of the traces so that each stratum has its share, and the chance of each: its stratum's share drawn.

    `strata` maps a trace to its stratum. Shares by largest remainder. Where `count` allows, no stratum is left empty.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for trace_id, stratum in strata.items():
        groups[stratum].append(trace_id)
    shares = _shares({name: len(group) for name, group in groups.items()}, min(max(0, count), len(strata)))
    chosen = {one for name, group in groups.items() for one in random_sample(group, shares[name], seed=seed)}
    drawn = {name: shares[name] / len(group) for name, group in groups.items()}
    return {trace_id: drawn[strata[trace_id]] for trace_id in strata if trace_id in chosen}


def chances(sizes: Mapping[str, float], count: int) -> dict[str, float]:
    """The chance of each trace to be among `count` drawn: in proportion to its size, 1 where that is more.

    Every trace keeps a chance: to each size `FLOOR` of the mean is added, so that no weight is without bound. Source:
    probability proportional to size, Hansen and Hurwitz 1943; sizes above the share are taken for certain (Särndal,
    Swensson and Wretman 1992, 3.6). The chances sum to `count`, or to all traces where there are no more.
    """
    if count >= len(sizes):
        return dict.fromkeys(sizes, 1.0)
    mean = sum(sizes.values()) / len(sizes)
    weights = {name: size + FLOOR * mean if mean > 0 else 1.0 for name, size in sizes.items()}
    certain: set[str] = set()
    while True:
        left = count - len(certain)
        total = sum(weight for name, weight in weights.items() if name not in certain)
        more = {name for name, weight in weights.items() if name not in certain and left * weight >= total}
        if not more:
            return {name: 1.0 if name in certain else left * weight / total for name, weight in weights.items()}
        certain |= more


def systematic_sample(chances: Mapping[str, float], *, seed: int) -> list[str]:
    """Draw traces with exactly these chances, as many as they sum to; in the order given.

    Source: Madow 1949, systematic sampling from a random order: one draw from 0 to 1 moves a comb of distance 1 over
    the cumulated chances.
    """
    ranked = sorted(chances, key=lambda trace_id: (draw(seed, "systematic", trace_id), trace_id))
    place, chosen = draw(seed, "comb") / 2**64, set()
    reached = 0.0
    for trace_id in ranked:
        reached += chances[trace_id]
        if reached > place + 1e-9:
            chosen.add(trace_id)
            place += 1
    return [trace_id for trace_id in chances if trace_id in chosen]


def spread(scores: Iterable[Sequence[float]]) -> float | None:
    """How far judges are apart on a trace: the mean distance of two scores of the same dimension, 0..3.

    One sequence of scores a dimension (all judges, all repeats). None where no dimension was scored twice.
    """
    distances = [abs(a - b) for values in scores for a, b in combinations(values, 2)]
    return sum(distances) / len(distances) if distances else None


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Parts of `count` in proportion to the sizes, never more than a stratum has."""
    total = sum(sizes.values())
    if total == 0:
        return dict.fromkeys(sizes, 0)
    exact = {name: size * count / total for name, size in sizes.items()}
    parts = {name: floor(value) for name, value in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: (parts[name] - exact[name], name))
    for name in by_remainder[: count - sum(parts.values())]:
        parts[name] += 1
    if count >= len(sizes):
        for name in sorted(sizes):
            if parts[name] == 0:
                parts[max(parts, key=lambda other: (parts[other], other))] -= 1
                parts[name] = 1
    return parts
