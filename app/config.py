"""Settings of the running app, from the environment; read once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DEFAULT_USER = "me"


@dataclass(frozen=True, kw_only=True)
class Config:
    """`sign_in` is `off` (one trusted person, or a few, on localhost), `password` or `oidc`."""

    home: Path
    sign_in: str
    user: str


@lru_cache(maxsize=1)
def config() -> Config:
    """The settings. Raises `ValueError` for a sign-in mode that does not exist."""
    sign_in = os.environ.get("TRACEJURY_SIGN_IN", "off")
    if sign_in not in {"off", "password", "oidc"}:
        raise ValueError(f"TRACEJURY_SIGN_IN is {sign_in!r}: use off, password or oidc")
    return Config(
        home=Path(os.environ.get("TRACEJURY_HOME") or ".tracejury"),
        sign_in=sign_in,
        user=os.environ.get("TRACEJURY_USER", DEFAULT_USER),
    )
