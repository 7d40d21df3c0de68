"""Names that a queue hides, blocked out in what the desk is sent; every place in a text stays where it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Literal

from tracejury.judging.records import BLOCK

Hidden = Literal["agent", "model"]


class Mask:
    """Blocks out agents' and models' names, letter for letter, so that evidence keeps its code points.

    A name that is an ordinary word (`main`) is blocked where it names a span, not wherever prose says it; any
    other name (`search_agent`, `gpt-4o`, also without its provider) is blocked everywhere.
    """

    def __init__(self, hide: Collection[Hidden], *, agents: Iterable[str | None], models: Iterable[str | None]) -> None:
        names = {name for name in agents if name} if "agent" in hide else set()
        for model in models if "model" in hide else ():
            names |= {model, model.rpartition("/")[2]} if model else set()
        self._names = sorted((name for name in names if name.strip()), key=len, reverse=True)

    def name(self, text: str) -> str:
        """A span's name without any of the names."""
        return _blocked(self._everywhere, text) if self._names else text

    def text(self, text: str) -> str:
        """A text without the names that are no ordinary words."""
        return _blocked(self._telling, text) if self._names else text

    @cached_property
    def _everywhere(self) -> re.Pattern[str] | None:
        return _pattern(self._names)

    @cached_property
    def _telling(self) -> re.Pattern[str] | None:
        return _pattern([name for name in self._names if not re.fullmatch(r"[^\W\d_]?[a-z]*", name)])


def _pattern(names: list[str]) -> re.Pattern[str] | None:
    if not names:
        return None
    return re.compile(rf"(?i)(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")


def _blocked(pattern: re.Pattern[str] | None, text: str) -> str:
    return text if pattern is None else pattern.sub(lambda match: BLOCK * len(match[0]), text)
