"""Scales of scores made elsewhere, mapped openly to 0..3: `1..5=0..3`, `good=3,bad=0`. Nothing is guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracejury.judging.records import SCORES

_RANGE = re.compile(
    r"(?P<low>-?\d+(?:\.\d+)?)\s*\.\.\s*(?P<high>-?\d+(?:\.\d+)?)\s*=\s*(?P<first>[0-3])\s*\.\.\s*(?P<last>[0-3])"
)
_MOST_SHOWN = 12  # points of a scale that are written out
Value = float | bool | str | None


class ScaleError(ValueError):
    """A scale that cannot be read; the message says how one is written."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How values of one name (or of all, where `name` is None) become scores of 0 to 3."""

    text: str
    name: str | None = None
    ends: tuple[float, float, int, int] | None = None
    words: Mapping[str, int] = field(default_factory=dict)

    def score(self, value: Value) -> int | None:
        """The score of a value; None for one that is not on this scale. Halves go up."""
        if self.ends is None:
            return self.words.get(_word(value))
        low, high, first, last = self.ends
        if isinstance(value, str) or value is None or not low <= float(value) <= high:
            return None
        return math.floor(first + (float(value) - low) / (high - low) * (last - first) + 0.5)

    @property
    def in_words(self) -> str:
        """The scale with what becomes of each of its points, where they are few."""
        if self.ends is None:
            return self.text
        low, high, _, _ = self.ends
        points = [low + step for step in range(int(high - low) + 1)]
        is_short = low.is_integer() and high.is_integer() and 2 < len(points) <= _MOST_SHOWN
        shown = ", ".join(f"{point:g} -> {self.score(point)}" for point in points)
        return f"{self.text} ({shown})" if is_short else self.text


def read_scale(text: str) -> Scale:
    """`[NAME:]LOW..HIGH=FIRST..LAST` or `[NAME:]WORD=SCORE,WORD=SCORE`. Raises `ScaleError`."""
    head, colon, tail = text.rpartition(":")
    name, spec = (head.strip() or None, tail) if colon else (None, text)
    mark = _RANGE.fullmatch(spec.strip())
    if mark is not None:
        low, high = float(mark["low"]), float(mark["high"])
        if low >= high:
            raise ScaleError(f"the scale {text!r} must begin with its lower end, such as 1..5=3..0")
        return Scale(text=spec.strip(), name=name, ends=(low, high, int(mark["first"]), int(mark["last"])))
    words = dict(_pair(part, text) for part in spec.split(",") if part.strip())
    if not words:
        raise ScaleError(f"the scale {text!r} maps nothing. Try: 1..5=0..3 or good=3,bad=0")
    return Scale(text=spec.strip(), name=name, words=words)


def scale_of(name: str, scales: tuple[Scale, ...]) -> Scale | None:
    """The scale of a name: its own, else the one for all; None without either."""
    own = [scale for scale in scales if scale.name is not None and scale.name.lower() == name.lower()]
    return next(iter([*own, *(scale for scale in scales if scale.name is None)]), None)


def plain_score(value: Value) -> int | None:
    """A value that is a score of 0 to 3 as it stands; None for any other. True and false are none."""
    is_score = isinstance(value, int | float) and not isinstance(value, bool) and value in SCORES
    return int(value) if is_score else None  # type: ignore[arg-type]


def _pair(part: str, text: str) -> tuple[str, int]:
    word, equals, score = part.rpartition("=")
    if not equals or not word.strip() or score.strip() not in {str(one) for one in SCORES}:
        raise ScaleError(f"{part.strip()!r} in the scale {text!r} is not WORD=SCORE. Try: 1..5=0..3 or good=3,bad=0")
    return _word(word), int(score)


def _word(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value).strip().lower()
    return f"{value:g}"
