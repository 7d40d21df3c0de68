"""Who is at the screen, and the workspace they look at; the only place that knows session and query keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from app import grants
from app.config import config
from judging.ledger import Workspace, open_workspace

Role = Literal["annotator", "adjudicator", "researcher", "admin"]
RANK: dict[str, int] = {"annotator": 0, "adjudicator": 1, "researcher": 2, "admin": 3}


@dataclass(frozen=True, kw_only=True)
class User:
    """The person at the screen; `name` stands at every label."""

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        return RANK[self.role] >= RANK[role]


@st.cache_resource(show_spinner=False)
def workspace() -> Workspace:
    """The workspace, opened once a process."""
    return open_workspace(config().home)


def user() -> User:
    """The person at the screen. With sign-in off this is `?as=NAME`, else TRACEJURY_USER, with every right."""
    name = st.query_params.get("as") or config().user
    return User(name=name, role="admin")


def trace_token(trace_id: str, occasion: int = 0) -> str:
    """The token that lets this person's browser save labels of this trace."""
    return grants.mint(workspace().secret(), grants.Grant(user().name, trace_id, occasion))


def link_params(**extra: str | None) -> dict[str, str]:
    """Query parameters for a link to another page: who one is, and `extra` without the empty ones."""
    kept = {"as": st.query_params["as"]} if "as" in st.query_params else {}
    return kept | {key: value for key, value in extra.items() if value}
