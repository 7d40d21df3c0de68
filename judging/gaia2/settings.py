"""With what GAIA2 is run: models, limits, seed; and the hash that tells executions of different settings apart."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Literal

from tracejury.ingest.trace import Json

TIME_LIMIT_S = 1860
DURATION_S = 1800
MAX_ITERATIONS = 80
MAX_TOKENS = 16_384
TEMPERATURE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutionSettings:
    """What makes an execution what it is. Defaults are those of the paper's protocol.

    `judge_model` None asks no judge. `temperature`, `max_tokens` and `seed` None leave the parameter out. `script`
    is the digest of a scripted model's replies, so that other replies are other settings.
    """

    model: str
    judge_model: str | None
    api_base: str | None = None
    judge_api_base: str | None = None
    temperature: float | None = TEMPERATURE
    max_tokens: int | None = MAX_TOKENS
    max_iterations: int = MAX_ITERATIONS
    time_limit_s: float = TIME_LIMIT_S
    duration_s: int = DURATION_S
    seed: int | None = None
    time: Literal["measured", "fixed"] = "measured"
    oracle: bool = False
    noise: bool = False
    agent_to_agent: bool = False
    script: str = ""

    def __post_init__(self) -> None:
        if self.time_limit_s <= 0 or self.duration_s <= 0 or self.max_iterations <= 0:
            raise ValueError("time limit, duration and iterations must be above 0")
        if self.temperature is not None and self.temperature < 0:
            raise ValueError(f"a temperature is 0 or more, not {self.temperature}")

    @property
    def hash(self) -> str:
        """Eight hex digits of all settings."""
        numbers = {"time_limit_s": float(self.time_limit_s)}  # 1860 and 1860.0 are one limit
        document = json.dumps({**asdict(self), **numbers}, sort_keys=True).encode()
        return hashlib.sha256(document).hexdigest()[:8]

    @property
    def phase(self) -> str:
        on = [name for name, is_on in (("agent2agent", self.agent_to_agent), ("noise", self.noise)) if is_on]
        return "+".join(on) or "standard"

    def parameters(self, scenario_id: str, repeat: int) -> dict[str, Json]:
        """What is sent with each call of the agent's model; the seed is derived for each scenario and repeat."""
        values: dict[str, Json] = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        if self.seed is not None:
            values["seed"] = derived_seed(self.seed, scenario_id, repeat)
        return {name: value for name, value in values.items() if value is not None}


def derived_seed(seed: int, scenario_id: str, repeat: int) -> int:
    """A seed of 31 bits for one execution, from the seed of all."""
    digest = hashlib.sha256(f"{seed}/{scenario_id}/{repeat}".encode()).digest()
    return int.from_bytes(digest[:4]) >> 1
