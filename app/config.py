"""Settings of the running app, from the environment; read once."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_network
from pathlib import Path

from tracejury.app.guard import LOCAL, PATIENCE_S, host_name
from tracejury.app.lifeline import LIFELINE

DEFAULT_USER = "me"
LISTENS = "TRACEJURY_LISTENS"
"""Set by `tracejury serve`: the address that it listens at."""


SETTINGS = (
    "TRACEJURY_HOME", "TRACEJURY_DATABASE", "TRACEJURY_SIGN_IN", "TRACEJURY_USER", "TRACEJURY_NEW_PEOPLE",
    "TRACEJURY_HOSTS", "TRACEJURY_PROXIES", "TRACEJURY_LOG", "TRACEJURY_CORPUS", "TRACEJURY_CACHE",
    "TRACEJURY_ARE_PYTHON", "TRACEJURY_TIMEOUT",
)  # fmt: skip
"""The variables that a person sets; `data/help/team.md` tells what each means."""


class SettingError(ValueError):
    """A variable TRACEJURY_* with a value that nothing can be done with; the message says which values there are."""


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
    hosts: frozenset[str] | None = None
    """The names and addresses that the app answers at; None: any."""
    proxies: tuple[str, ...] = ()
    """The proxies whose word on the sender's address is believed."""
    timeout_s: float = PATIENCE_S
    """How long a connection may stand still that waits for the other side."""


@lru_cache(maxsize=1)
def config() -> Config:
    """Return the settings. Raises `SettingError` for a sign-in mode, a domain, an address or a time that is none."""
    sign_in = os.environ.get("TRACEJURY_SIGN_IN", "off")
    if sign_in not in {"off", "password", "oidc"}:
        raise SettingError(f"TRACEJURY_SIGN_IN is {sign_in!r}: use off, password or oidc")
    return Config(
        home=Path(os.environ.get("TRACEJURY_HOME") or ".tracejury"),
        sign_in=sign_in,
        user=os.environ.get("TRACEJURY_USER") or DEFAULT_USER,
        new_people=_new_people(os.environ.get("TRACEJURY_NEW_PEOPLE", "refuse")),
        hosts=_hosts(sign_in),
        proxies=_proxies(),
        timeout_s=_timeout_s(),
    )


def _hosts(sign_in: str) -> frozenset[str] | None:
    """This machine's own names, what the app listens at, and TRACEJURY_HOSTS.

    Where people sign in, any name unless some are listed: a page under a foreign name has nobody's session.
    """
    listed = _listed("TRACEJURY_HOSTS")
    if sign_in != "off" and not listed:
        return None
    return LOCAL | {host_name(one) for one in (*listed, os.environ.get(LISTENS, "127.0.0.1"))}


def _listed(name: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in os.environ.get(name, "").split(",") if one.strip())


def _proxies() -> tuple[str, ...]:
    listed = _listed("TRACEJURY_PROXIES")
    for one in listed:
        try:
            ip_network(one, strict=False)
        except ValueError as error:
            raise SettingError(
                f"TRACEJURY_PROXIES holds {one!r}: use addresses like 10.0.0.2 or 10.0.0.0/24"
            ) from error
    return listed


def _timeout_s() -> float:
    text = os.environ.get("TRACEJURY_TIMEOUT") or str(PATIENCE_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise SettingError(f"TRACEJURY_TIMEOUT is {text!r}: use seconds, more than 0")
    return seconds


def unknown_settings() -> list[str]:
    """The variables TRACEJURY_* that nothing reads: a misspelled one would go unnoticed."""
    return sorted(
        name for name in os.environ if name.startswith("TRACEJURY_") and name not in (*SETTINGS, LISTENS, LIFELINE)
    )


def _new_people(text: str) -> tuple[str, ...]:
    if text == "refuse":
        return ()
    domains = tuple(one.strip().lower() for one in text.split(","))
    wrong = [one for one in domains if one != "*" and not (one.startswith("@") and len(one) > 1)]
    if wrong:
        raise SettingError(f"TRACEJURY_NEW_PEOPLE holds {wrong[0]!r}: use refuse, *, or domains like @lab.example")
    return domains
