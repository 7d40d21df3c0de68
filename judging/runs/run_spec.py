"""What a run is to do, and where it may stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from tracejury.ingest.trace import Json
from tracejury.judging.judges.jury import Rule
from tracejury.judging.judges.model import Prices
from tracejury.judging.judges.prompt import Order

Mode = Literal["trace", "span", "jury"]
RunStatus = Literal["queued", "running", "paused", "out of budget", "cancelled", "done"]
STOPPED: tuple[RunStatus, ...] = ("paused", "out of budget", "cancelled")
"""A run that stands so goes on only where somebody starts it again."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What a run is to do; stored with it as JSON. Parameters are sent only when set.

    `agent` names the description given to the judges: `auto` (chosen by the trace), `none`, or a name.
    `attempts` are calls tried for one reply; `give_up_after` cells in a row that end as errors stop the run.
    `use_cache` takes replies of earlier runs to the same request; without `ask_again` a request whose answer is
    unknown (and perhaps paid) is not sent again: its cell is an error. `prices` by model override public ones.
    `jury_rule` makes one score of those of a jury's models. Without `reasoning` judges are not shown what the model
    of the trace thought.
    """

    rubrics: tuple[str, ...]
    models: tuple[str, ...]
    repeats: int = 1
    mode: Mode = "trace"
    jury_rule: Rule = "majority"
    order: Order = "cache"
    agent: str = "auto"
    parameters: Mapping[str, Json] = field(default_factory=dict)
    api_base: str | None = None
    timeout_s: float = 600.0
    concurrency: int = 8
    rpm: int | None = None
    tpm: int | None = None
    budget_usd: float | None = None
    batch: bool = False
    use_cache: bool = True
    ask_again: bool = True
    reasoning: bool = True
    prices: Mapping[str, Prices] = field(default_factory=dict)
    repairs: bool = True
    attempts: int = 6
    backoff_s: float = 1.0
    give_up_after: int = 20

    @property
    def title(self) -> str:
        return f"{', '.join(self.rubrics)} by {', '.join(self.models)}"

    def __post_init__(self) -> None:
        if not self.rubrics or not self.models:
            raise ValueError("a run needs at least one dimension and one model")
        if self.mode == "jury" and len(set(self.models)) < 2:
            raise ValueError("a jury needs two or more models")
        if self.mode != "jury" and len(self.models) > 1:
            raise ValueError("several models judge together only in mode 'jury'")
        for name in ("repeats", "concurrency", "attempts", "rpm", "tpm", "give_up_after"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
        foreign = [name for name in self.prices if name not in self.models]
        if foreign:
            raise ValueError(f"a price for {', '.join(foreign)}, which is not a model of this run")
        if self.budget_usd is not None and self.budget_usd < 0:
            raise ValueError(f"a budget cannot be negative: {self.budget_usd}")
        if self.batch and self.mode == "span":
            raise ValueError("the batch interface answers after hours: it cannot go span by span")

    @property
    def kind(self) -> list[object]:
        """What makes two runs of one kind: everything that changes what is asked, not how fast or for how much."""
        return [sorted(self.rubrics), sorted(self.models), self.mode, self.order, self.agent, dict(self.parameters),
                self.repeats]  # fmt: skip

    def to_json(self) -> dict[str, Json]:
        content: dict[str, Json] = orjson.loads(orjson.dumps(asdict(self)))
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RunSpec:
        prices = {model: Prices(**each) for model, each in content.get("prices", {}).items()}
        listed = {name: tuple(content[name]) for name in ("rubrics", "models")}
        return cls(**{**content, **listed, "prices": prices})


def model_names(text: str) -> tuple[str, ...]:
    """The models of a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
