"""A metric as one record: what computes it, where it stands, which way is good, and where its values lie."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

Best = Literal["high", "low", "zero"]


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of the product: its function (whose docstring defines it) and the table and column that show it.

    `best` is the good direction, `limits` the least and the greatest value that it can take. `words` define it where
    the function makes several metrics, or a table. `has_ceiling`: whether people compared with each other set a limit
    that a judge can be held to. `short`: its title on a page that says what it is of.
    """

    name: str
    title: str
    function: Callable[..., object]
    table: str
    column: str
    best: Best
    limits: tuple[float, float] = (0.0, 1.0)
    has_ceiling: bool = False
    words: str | None = None
    short: str | None = None

    @property
    def aim(self) -> float | None:
        """Return the value that is best; None where there is no greatest one."""
        value = {"high": self.limits[1], "low": self.limits[0], "zero": 0.0}[self.best]
        return None if abs(value) == inf else value
