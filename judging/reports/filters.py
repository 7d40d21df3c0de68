"""The filters: which traces, judges and references are looked at; one type for pages, commands, exports, notebook."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

import orjson

from tracejury.judging.agreement.frames import Missing
from tracejury.judging.agreement.intervals import DRAWS, SEED
from tracejury.judging.agreement.majority import REFERENCE_KINDS
from tracejury.judging.records import DIMENSIONS, SLICED_BY, TOLERANCE_WORDS, Tolerance
from tracejury.judging.store.judge_models import VERSION_SHOWN
from tracejury.judging.store.revisions import Revision

Matches = Literal["proposed", "confirmed"]
MOST_NAMED = 20  # names that an error lists


@dataclass(frozen=True, kw_only=True)
class Split:
    """Named parts of the traces: (trace_id, part). Traces in none of them are left out."""

    name: str
    parts: tuple[tuple[str, str], ...]

    @cached_property
    def by_trace(self) -> Mapping[str, str]:
        """The part of each trace."""
        return MappingProxyType(dict(self.parts))

    def __getstate__(self) -> dict[str, object]:
        return {"name": self.name, "parts": self.parts}

    def only(self, part: str) -> Split:
        """The traces of one part."""
        return Split(name=f"{self.name}:{part}", parts=tuple(pair for pair in self.parts if pair[1] == part))


@dataclass(frozen=True, kw_only=True)
class Filters:
    """What is compared, and how it is counted. None and empty mean all.

    `reference` is an annotator's name, or one of `REFERENCE_KINDS`: the adjudicated gold, the majority of annotators,
    or the single annotator with the most reviews; None takes the adjudicated gold where there is any, else that
    annotator.
    `matches` says whether proposals count until a person decides, or only confirmed pairs. `versions` are judge
    versions to set beside each other (prompt against prompt), by their hash; their judge models are named by it.
    `repeat` is the one that is compared with people. `trace_formats` are the formats of the traces that count (`trail`,
    `gaia2` ...); `guideline` keeps the traces whose newest review was made under that version.
    `tolerance` says how near to a labelled span a finding must cite to localize the error (`TOLERANCE_WORDS`).
    `slices` names what the tables of slices go by (`SLICED_BY`: agent, length ...).
    `same_traces` compares judges on the traces that all of them answered, where they answered different ones.
    `missing`, `draws` and `seed` say how estimates are made. `revision` holds them to one revision of the data; None
    is the data as it is now.
    """

    reference: str | None = None
    judge_models: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    matches: Matches = "proposed"
    split: Split | None = None
    missing: Missing = "drop"
    blind_only: bool = True
    repeat: int = 0
    trace_formats: tuple[str, ...] = ()
    guideline: str | None = None
    tolerance: Tolerance = "exact"
    slices: tuple[str, ...] = ()
    same_traces: bool = True
    draws: int = DRAWS
    seed: int = SEED
    revision: Revision | None = None

    def unpinned(self) -> Filters:
        """The filters, whichever revision of the data they show."""
        return replace(self, revision=None)

    def without(self, names: Iterable[str]) -> Filters:
        """The filters with these fields as nobody set them."""
        usual = Filters()
        return replace(self, **{name: getattr(usual, name) for name in names})

    def label(self) -> str:
        """The filters in words, for a caption or a file."""
        heads = [version[:VERSION_SHOWN] for version in self.versions]
        parts = [
            f"judges: {', '.join(self.judge_models) or 'all'}",
            f"split: {'all traces' if self.split is None else self.split.name}",
            "proposed and confirmed matches" if self.matches == "proposed" else "confirmed matches only",
            "failures left out" if self.missing == "drop" else "failures count as disagreement",
            "blind labels only" if self.blind_only else "blind and revealed labels",
            *([f"judge versions: {', '.join(heads)}"] if heads else []),
            *([f"repeat {self.repeat}"] if self.repeat else []),
            *([f"trace formats: {', '.join(self.trace_formats)}"] if self.trace_formats else []),
            *([f"guideline version {self.guideline}"] if self.guideline is not None else []),
            *([f"localized: {TOLERANCE_WORDS[self.tolerance]}"] if self.tolerance != "exact" else []),
            *([] if self.same_traces else ["each judge on its own traces"]),
        ]
        return " · ".join(parts)


class UnknownFilterError(ValueError):
    """A filter that names nothing of the workspace; the message says what it has."""

    def __init__(self, problem: str, known: Collection[str]) -> None:
        names = list(known)
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        there = "; ".join(names[:MOST_NAMED]) + more
        none_yet = "leave it out, since there is none yet"
        self.problem, self.remedy = problem, f"use one of: {there}" if names else none_yet
        super().__init__(f"{problem}. Try: {there or none_yet}")


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """What a workspace has for each filter.

    `reviewers` have submitted reviews, `annotators` are all; `versions` gives the hash of each judge version by the
    words that choose it.
    """

    reviewers: tuple[str, ...] = ()
    annotators: frozenset[str] = frozenset()
    judge_models: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    splits: Mapping[str, Split] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    repeats: tuple[int, ...] = ()
    trace_formats: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()

    def checked(self, filters: Filters) -> Filters:
        """The filters with whole hashes of versions. Raises `UnknownFilterError` for one that names nothing here."""
        reference = [] if filters.reference is None else [filters.reference]
        named(reference, (*self.reviewers, *REFERENCE_KINDS), "reference", also=self.annotators)
        named(filters.judge_models, self.judge_models, "judge model")
        named(filters.dimensions, (*DIMENSIONS, *self.dimensions), "dimension")
        named(filters.trace_formats, self.trace_formats, "format of traces")
        named([] if filters.guideline is None else [filters.guideline], self.guidelines, "guideline version")
        named([str(filters.repeat)], [str(number) for number in self.repeats], "repeat", also={"0"})
        named([filters.matches], get_args(Matches), "kind of matches")
        named([filters.missing], get_args(Missing), "way to count what is missing")
        named([filters.tolerance], TOLERANCE_WORDS, "tolerance")
        named(filters.slices, SLICED_BY, "kind of slice")
        return replace(filters, versions=whole_hashes(filters.versions, self.versions))


def named(names: Iterable[str], known: Collection[str], what: str, *, also: Collection[str] = ()) -> None:
    """Raise `UnknownFilterError` for the first name that is none of `known` (which the error lists), nor of `also`."""
    for name in names:
        if name not in known and name not in also:
            raise UnknownFilterError(f"no {what} is called {name[:60]!r}", known)


def whole_hashes(texts: Iterable[str], versions: Mapping[str, str]) -> tuple[str, ...]:
    """Judge versions by name, hash or its beginning (a leading @ is left aside). Raises `UnknownFilterError`."""
    return tuple(_whole_hash(text, versions) for text in texts)


def _whole_hash(text: str, versions: Mapping[str, str]) -> str:
    start = text.removeprefix("@").strip()
    fits = [version for name, version in versions.items() if text == name or (start and version.startswith(start))]
    if len(fits) != 1:
        what = "several judge versions begin with" if fits else "no judge version begins with"
        raise UnknownFilterError(f"{what} {start!r}", [f"{v[:12]} ({name})" for name, v in versions.items()])
    return fits[0]


def read_split(data: bytes, file: str, name: str) -> Split:
    """A split from JSON `{"dev": [ids], "test": [ids]}`; other keys are left aside.

    Raises `ValueError` naming the file when no list of ids is in it or a trace is in two parts.
    """
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"{file}: not JSON ({error}): expected {{'dev': [ids], 'test': [ids]}}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"{file}: expected an object of lists of trace ids, such as {{'dev': [...]}}")
    parts: dict[str, str] = {}
    for part, ids in parsed.items():
        for trace_id in ids if isinstance(ids, list) else ():
            if not isinstance(trace_id, str):
                raise ValueError(f"{file}: {part!r} holds {str(trace_id)[:60]!r}, which is not a trace id")
            if parts.setdefault(trace_id, part) != part:
                raise ValueError(f"{file}: trace {trace_id} is in the splits {parts[trace_id]!r} and {part!r}")
    if not parts:
        raise ValueError(f"{file}: holds no list of trace ids")
    return Split(name=name, parts=tuple(parts.items()))
