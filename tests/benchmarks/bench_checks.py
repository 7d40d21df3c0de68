"""The offline judge against gemini-2.5-flash's recorded answers, on the shared TRAIL traces and their human labels.

`python -m tests.benchmarks.bench_checks [SHARED]`. Failures count as no prediction. Micro-averaged over traces; a pair
is (span, TRAIL category), a span counts once whatever the number of findings on it.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tracejury.ingest.labels import Annotation, JudgeReply, read_annotations, read_replies
from tracejury.ingest.readers import read_traces
from tracejury.ingest.trace import Trace
from tracejury.judging.agreement.intervals import Bootstrap, Floats, cluster_bootstrap
from tracejury.judging.checks import CHECKS, Check, find

Pair = tuple[str, str]
Pairs = Mapping[str, frozenset[Pair]]
"""By trace id: what was labelled, or what was found, as (span, category)."""
Counting = Callable[[Pairs, Pairs, Iterable[str]], "Counts"]
HALVES_SEED, SPLITS = 7, 200
JUDGE_METRICS = ("precision", "F1", "F1 less gemini's")

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Predictions against labels. An estimate whose denominator is zero is None."""

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
        estimates = (f"{value:.3f}" if value is not None else "n/a" for value in (self.precision, self.recall, self.f1))
        return "  ".join((*estimates, f"{self.hits:4d} of {self.predicted:4d} found, {self.labelled:4d} labelled"))


@dataclass(frozen=True, kw_only=True)
class Material:
    """What is compared: labels by split, the baseline's answers, findings with their check; CPU seconds taken."""

    reference: Mapping[str, Pairs]
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
        return {split: frozenset(reference) & frozenset(self.findings) for split, reference in self.reference.items()}


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
        reference={split: _reference(trail / "annotations" / split) for split in ("gaia", "swe_bench")},
        baseline=_replies(trail / "predictions" / "gemini-2.5-flash_GAIA"),
        findings=findings,
        read_s=read - start,
        judge_s=judged - read,
    )


def pairs(reference: Pairs, found: Pairs, traces: Iterable[str]) -> Counts:
    """Counts over (span, category) pairs of `traces`."""
    return _count([(reference[trace], found.get(trace, frozenset())) for trace in traces])


def spans(reference: Pairs, found: Pairs, traces: Iterable[str]) -> Counts:
    """Counts over spans of `traces`, whatever their category."""
    return _count([(_spans(reference[trace]), _spans(found.get(trace, frozenset()))) for trace in traces])


def halves(traces: Iterable[str], seed: int = HALVES_SEED) -> tuple[frozenset[str], frozenset[str]]:
    """A random half of the traces and the other, the same at every call."""
    shuffled = sorted(traces)
    random.Random(seed).shuffle(shuffled)
    middle = len(shuffled) // 2
    return frozenset(shuffled[:middle]), frozenset(shuffled[middle:])


def develop_and_confirm(traces: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The half on which a rule may be worked out, its labels read, and the half on which it is only counted.

    By the parity of the trace id, so that nobody chose it: a rule that holds on the first half alone is dropped.
    """
    known = frozenset(traces)
    develop = frozenset(trace for trace in known if int(trace, 16) % 2 == 0)
    return develop, known - develop


def stability(reference: Pairs, found: Pairs, baseline: Pairs, traces: Iterable[str], count: Counting) -> Bootstrap:
    """Precision, F1, and F1 less the baseline's, with each trace left out."""
    rows = []
    for trace in sorted(traces):
        ours, theirs = count(reference, found, [trace]), count(reference, baseline, [trace])
        rows.append((ours.hits, ours.predicted, ours.labelled, theirs.hits, theirs.predicted))
    return cluster_bootstrap(np.array(rows), _estimates, draws=0)


def _estimates(sums: Floats) -> Floats:
    hits, predicted, labelled, their_hits, their_predicted = np.moveaxis(sums, -1, 0)
    f1 = 2 * hits / (predicted + labelled)
    return np.stack([hits / predicted, f1, f1 - 2 * their_hits / (their_predicted + labelled)], axis=-1)


def main(shared: Path = SHARED) -> None:
    if not (shared / "trail").is_dir():
        print(f"no TRAIL traces in {shared.name}/trail beside the repository: nothing to compare with")
        return
    material = gather(shared)
    reference = {**material.reference["gaia"], **material.reference["swe_bench"]}
    gaia, swe = material.at_hand["gaia"], material.at_hand["swe_bench"]
    print(f"{len(material.findings)} traces read in {material.read_s:.1f} s, judged in {material.judge_s:.1f} s (CPU)")
    print(f"\n{'':38}{'precision  recall  F1'}")
    for label, traces in (("GAIA", gaia), ("SWE-bench", swe), ("all", gaia | swe), *_split(gaia | swe)):
        _row(f"checks, {label}", reference, material.found, traces)
        if traces == gaia:
            _row("gemini-2.5-flash, GAIA", reference, material.baseline, traces)
            _row(
                "gemini-2.5-flash, GAIA, all labels",
                reference,
                material.baseline,
                frozenset(material.reference["gaia"]),
            )
    _print_halves(material, reference, gaia | swe)
    for label, traces in (("GAIA", gaia), ("SWE-bench", swe), ("all", gaia | swe)):
        _print_stability(label, material, reference, traces)
    _print_checks(material, reference, {"GAIA": gaia, "SWE-bench": swe, **dict(_split(gaia | swe))})


def _print_halves(material: Material, reference: Pairs, traces: frozenset[str]) -> None:
    """How far F1 moves over random halves: that of traces never seen lies in a range like this, if the rules hold."""
    for name, count in (("pairs", pairs), ("spans", spans)):
        f1 = sorted(count(reference, material.found, halves(traces, seed)[0]).f1 or 0.0 for seed in range(SPLITS))
        low, middle, high = (f1[round(share * (SPLITS - 1))] for share in (0.05, 0.5, 0.95))
        print(f"F1 of {name} over {SPLITS} random halves: {middle:.3f} ({low:.3f} to {high:.3f} in 90 of 100)")


def _print_stability(label: str, material: Material, reference: Pairs, traces: frozenset[str]) -> None:
    """95 % intervals by the jackknife over traces, and the range of the estimates when any one trace is left out."""
    for name, count in (("pairs", pairs), ("spans", spans)):
        drawn = stability(reference, material.found, material.baseline, traces, count)
        low, high = drawn.jackknife_t()
        least, most = drawn.left_out.min(axis=0), drawn.left_out.max(axis=0)
        known = JUDGE_METRICS if label == "GAIA" else JUDGE_METRICS[:2]  # the baseline answered for GAIA only
        for place, estimate in enumerate(known):
            print(
                f"{label} {name}, {estimate}: {drawn.estimate[place]:.3f}, 95 % {low[place]:.3f} to {high[place]:.3f}, "
                f"any one trace left out {least[place]:.3f} to {most[place]:.3f}"
            )


def _split(traces: frozenset[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    develop, confirm = develop_and_confirm(traces)
    return (("developing half", develop), ("confirming half", confirm))


def _row(name: str, reference: Pairs, found: Pairs, traces: Set[str]) -> None:
    print(f"{name:36} {len(traces)} traces")
    print(f"{'  pairs':38}{pairs(reference, found, traces)}")
    print(f"{'  spans':38}{spans(reference, found, traces)}")


def _print_checks(material: Material, reference: Pairs, parts: Mapping[str, frozenset[str]]) -> None:
    """Each check alone, by part of the material: findings, those that are a labelled pair, those on a labelled span,
    traces it fires on; F1 of all traces without the check."""
    traces = frozenset[str]().union(*parts.values())
    whole = (pairs(reference, material.found, traces).f1 or 0.0, spans(reference, material.found, traces).f1 or 0.0)
    print("\nof each check: findings, labelled pairs among them, on labelled spans, traces it fires on")
    print(f"{'check':24}{'category':30}" + "".join(f"{part:>20}" for part in parts) + "   F1 without: pairs, spans")
    for check in CHECKS:
        rest = material.without(check.name)
        change = [
            (count(reference, rest, traces).f1 or 0.0) - f1 for count, f1 in zip((pairs, spans), whole, strict=True)
        ]
        counted = "".join(_counted(check, material, reference, part) for part in parts.values())
        print(f"{check.name:24}{check.category[:29]:30}{counted}   {change[0]:+.3f} {change[1]:+.3f}")


def _counted(check: Check, material: Material, reference: Pairs, traces: frozenset[str]) -> str:
    said = [(t, pair) for t in traces for name, pair in material.findings[t] if name == check.name]
    hits = sum(pair in reference[trace] for trace, pair in said)
    on_span = sum(pair[0] in _spans(reference[trace]) for trace, pair in said)
    return f"{len(said):>8}{hits:>4}{on_span:>4}{len({trace for trace, _ in said}):>4}"


def _count(sets: Iterable[tuple[Set[object], Set[object]]]) -> Counts:
    both = list(sets)
    return Counts(
        hits=sum(len(known & said) for known, said in both),
        predicted=sum(len(said) for _, said in both),
        labelled=sum(len(known) for known, _ in both),
    )


def _spans(said: Iterable[Pair]) -> frozenset[str]:
    return frozenset(span for span, _ in said)


def _reference(folder: Path) -> Pairs:
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
    main(*map(Path, sys.argv[1:2]))
