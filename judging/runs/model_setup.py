"""The models of a run and what is known of them, and whether a run can be worked on with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tracejury.judging.judges.judge import ModelCapabilities
from tracejury.judging.judges.model import Model, ModelError, ModelReply, ModelRequest, Prices
from tracejury.judging.judges.rubric import AgentDescription, Rubric
from tracejury.judging.runs.run_spec import RunSpec


class BatchModel(Protocol):
    """A model that also takes many requests at once, answered within hours."""

    async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str: ...

    async def poll_batch(self, batch_id: str) -> Mapping[str, ModelReply | ModelError] | None: ...


@dataclass(frozen=True, kw_only=True)
class ModelSetup:
    """A model and what is known of it: None for what is not."""

    call: Model
    prices: Prices | None = None
    context: int | None = None
    count: Callable[[str], int] = len
    capabilities: ModelCapabilities = field(default_factory=ModelCapabilities)
    batch: BatchModel | None = None


def check_spec(
    spec: RunSpec,
    *,
    rubrics: Mapping[str, Rubric],
    models: Mapping[str, ModelSetup],
    agents: Mapping[str, AgentDescription],
) -> None:
    """Raise ValueError for a run that cannot be worked on: unknown names, or a budget without prices."""
    missing = [key for key in spec.rubrics if key not in rubrics]
    if missing:
        raise ValueError(f"no rubric for {', '.join(missing)}: it was removed, or its file renamed")
    if spec.agent not in {"auto", "none", *agents}:
        raise ValueError(f"no agent description {spec.agent!r}; there are auto, none, {', '.join(agents)}")
    unpriced = [name for name in spec.models if models[name].prices is None]
    if spec.budget_usd is not None and unpriced:
        raise ValueError(
            f"a budget needs prices, and none are known for {', '.join(unpriced)}: give the prices, or no budget"
        )
    if spec.batch and any(models[name].batch is None for name in spec.models):
        raise ValueError("this model has no batch interface")
