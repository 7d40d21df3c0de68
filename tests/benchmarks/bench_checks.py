"""The offline judge against gemini-2.5-flash's recorded answers, on the shared TRAIL traces and their human labels.

`python -m tests.benchmarks.bench_checks [SHARED]`. Failures count as no prediction. Micro-averaged over traces; a pair
is (span, TRAIL category), a span counts once whatever the number of findings on it.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from ingest.labels import Annotation, JudgeReply, read_annotations, read_replies
from ingest.readers import read_traces
from ingest.trace import Trace
from judging.checks import CHECKS, find

Pair = tuple[str, str]
Pairs = Mapping[str, frozenset[Pair]]
"""By trace id: what was labelled, or what was found, as (span, category)."""
HALVES_SEED, SPLITS = 7, 200


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Predictions against labels. A figure whose denominator is zero is None."""

    hits: int
    predicted: int
    labelled: int

    @property
    def precision(self) -> float | None:
        return self.hits / self.predicted if self.predicted else None

    @property
    def recall(self) -> float | None:
        return self.hits / self.labelled if self.labelled else None

    @property
    def f1(self) -> float | None:
        both = self.predicted + self.labelled
        return 2 * self.hits / both if both else None

    def __str__(self) -> str:
        figures = (f"{value:.3f}" if value is not None else "n/a" for value in (self.precision, self.recall, self.f1))
        return "  ".join((*figures, f"{self.hits:4d} of {self.predicted:4d} found, {self.labelled:4d} labelled"))


@dataclass(frozen=True, kw_only=True)
class Material:
    """What is compared: labels by split, the baseline's answers, findings with their check; CPU seconds taken."""

    gold: Mapping[str, Pairs]
    baseline: Pairs
    findings: Mapping[str, tuple[tuple[str, Pair], ...]]
    read_s: float
    judge_s: float

    @property
    def found(self) -> Pairs:
        return {trace: frozenset(pair for _, pair in said) for trace, said in self.findings.items()}

    def without(self, check: str) -> Pairs:
        """What is found when one check is left out."""
        return {trace: frozenset(pair for name, pair in said if name != check) for trace, said in self.findings.items()}

    @property
    def at_hand(self) -> dict[str, frozenset[str]]:
        """Of each split the labelled traces that are here."""
        return {split: frozenset(gold) & frozenset(self.findings) for split, gold in self.gold.items()}


def gather(shared: Path) -> Material:
    """Read and judge the shared TRAIL traces."""
    trail = shared / "trail"
    start = time.process_time()
    traces = [trace for trace in read_traces(trail / "traces") if isinstance(trace, Trace)]
    read = time.process_time()
    findings = {
        trace.trace_id: tuple((f.check or "", (f.citations[0].span_id or "", f.category or "")) for f in find(trace))
        for trace in traces
    }
    judged = time.process_time()
    return Material(
        gold={split: _gold(trail / "annotations" / split) for split in ("gaia", "swe_bench")},
        baseline=_replies(trail / "predictions" / "gemini-2.5-flash_GAIA"),
        findings=findings,
        read_s=read - start,
        judge_s=judged - read,
    )


def pairs(gold: Pairs, found: Pairs, traces: Iterable[str]) -> Counts:
    """Counts over (span, category) pairs of `traces`."""
    return _count([(gold[trace], found.get(trace, frozenset())) for trace in traces])


def spans(gold: Pairs, found: Pairs, traces: Iterable[str]) -> Counts:
    """Counts over spans of `traces`, whatever their category."""
    return _count([(_spans(gold[trace]), _spans(found.get(trace, frozenset()))) for trace in traces])


def halves(traces: Iterable[str], seed: int = HALVES_SEED) -> tuple[frozenset[str], frozenset[str]]:
    """A random half of the traces and the other, the same at every call."""
    shuffled = sorted(traces)
    random.Random(seed).shuffle(shuffled)
    middle = len(shuffled) // 2
    return frozenset(shuffled[:middle]), frozenset(shuffled[middle:])


def main(shared: Path) -> None:
    material = gather(shared)
    gold = {**material.gold["gaia"], **material.gold["swe_bench"]}
    gaia, swe = material.at_hand["gaia"], material.at_hand["swe_bench"]
    print(f"{len(material.findings)} traces read in {material.read_s:.1f} s, judged in {material.judge_s:.1f} s (CPU)")
    print(f"\n{'':38}{'precision  recall  F1'}")
    for label, traces in (("GAIA", gaia), ("SWE-bench", swe), ("all", gaia | swe), *_split(gaia | swe)):
        _row(f"checks, {label}", gold, material.found, traces)
        if traces == gaia:
            _row("gemini-2.5-flash, GAIA", gold, material.baseline, traces)
            _row("gemini-2.5-flash, GAIA, all labels", gold, material.baseline, frozenset(material.gold["gaia"]))
    _print_halves(material, gold, gaia | swe)
    _print_checks(material, gold, gaia | swe)


def _print_halves(material: Material, gold: Pairs, traces: frozenset[str]) -> None:
    """How far F1 moves over random halves: that of traces never seen lies in a range like this, if the rules hold."""
    for name, count in (("pairs", pairs), ("spans", spans)):
        f1 = sorted(count(gold, material.found, halves(traces, seed)[0]).f1 or 0.0 for seed in range(SPLITS))
        low, middle, high = (f1[round(share * (SPLITS - 1))] for share in (0.05, 0.5, 0.95))
        print(f"F1 of {name} over {SPLITS} random halves: {middle:.3f} ({low:.3f} to {high:.3f} in 90 of 100)")


def _split(traces: frozenset[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    first, second = halves(traces)
    return (("one random half", first), ("the other half", second))


def _row(name: str, gold: Pairs, found: Pairs, traces: Set[str]) -> None:
    print(f"{name:36} {len(traces)} traces")
    print(f"{'  pairs':38}{pairs(gold, found, traces)}")
    print(f"{'  spans':38}{spans(gold, found, traces)}")


def _print_checks(material: Material, gold: Pairs, traces: frozenset[str]) -> None:
    """Each check alone: findings, those that are a labelled pair, those on a labelled span; F1 without the check."""
    whole = (pairs(gold, material.found, traces).f1 or 0.0, spans(gold, material.found, traces).f1 or 0.0)
    print(f"\n{'check':26}{'category':34}{'n':>5}{'pairs':>7}{'spans':>7}   F1 pairs, spans without it")
    for check in CHECKS:
        said = [(t, pair) for t, all_said in material.findings.items() for name, pair in all_said if name == check.name]
        labelled = [(pair, gold.get(trace, frozenset())) for trace, pair in said]
        hits = sum(pair in known for pair, known in labelled)
        on_span = sum(pair[0] in _spans(known) for pair, known in labelled)
        rest = material.without(check.name)
        change = [(count(gold, rest, traces).f1 or 0.0) - f1 for count, f1 in zip((pairs, spans), whole, strict=True)]
        figures = f"{len(said):>5}{hits:>7}{on_span:>7}   {change[0]:+.3f} {change[1]:+.3f}"
        print(f"{check.name:26}{check.category:34}{figures}")


def _count(sets: Iterable[tuple[Set[object], Set[object]]]) -> Counts:
    both = list(sets)
    return Counts(
        hits=sum(len(known & said) for known, said in both),
        predicted=sum(len(said) for _, said in both),
        labelled=sum(len(known) for known, _ in both),
    )


def _spans(said: Iterable[Pair]) -> frozenset[str]:
    return frozenset(span for span, _ in said)


def _gold(folder: Path) -> Pairs:
    rows = [row for row in read_annotations(folder) if isinstance(row, Annotation)]
    return {row.trace_id: _pairs_of(row) for row in rows}


def _replies(folder: Path) -> Pairs:
    return {row.trace_id: _pairs_of(row) for row in read_replies(folder) if isinstance(row, JudgeReply)}


def _pairs_of(row: Annotation | JudgeReply) -> frozenset[Pair]:
    """Labels as written: a location that names no span or a category that is none stays, and matches nothing."""
    return frozenset(
        (span, error.category or error.category_raw)
        for error in row.errors
        for span in (error.span_ids or (error.location or "",))
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2].parent / "shared")
