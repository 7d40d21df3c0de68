"""Settings of the running app, from the environment; read once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DEFAULT_USER = "me"


@dataclass(frozen=True, kw_only=True)
class Config:
    """`sign_in` is `off` (one trusted person, or a few, on localhost), `password` or `oidc`.

    `new_people` says whom `oidc` lets in for the first time: e-mail domains (`@lab.example`), `*` for everyone
    whom the provider vouches for, or nobody.
    """

    home: Path
    sign_in: str
    user: str
    new_people: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def config() -> Config:
    """The settings. Raises `ValueError` for a sign-in mode that does not exist, and for a domain that is none."""
    sign_in = os.environ.get("TRACEJURY_SIGN_IN", "off")
    if sign_in not in {"off", "password", "oidc"}:
        raise ValueError(f"TRACEJURY_SIGN_IN is {sign_in!r}: use off, password or oidc")
    return Config(
        home=Path(os.environ.get("TRACEJURY_HOME") or ".tracejury"),
        sign_in=sign_in,
        user=os.environ.get("TRACEJURY_USER", DEFAULT_USER),
        new_people=_new_people(os.environ.get("TRACEJURY_NEW_PEOPLE", "refuse")),
    )


def _new_people(text: str) -> tuple[str, ...]:
    if text == "refuse":
        return ()
    domains = tuple(one.strip().lower() for one in text.split(","))
    wrong = [one for one in domains if one != "*" and not (one.startswith("@") and len(one) > 1)]
    if wrong:
        raise ValueError(f"TRACEJURY_NEW_PEOPLE holds {wrong[0]!r}: use refuse, *, or domains like @lab.example")
    return domains
