"""Who is at the screen, and the workspace they look at; the only place that knows session and query keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

import streamlit as st
from sqlalchemy import select

from tracejury.app import grants, signin
from tracejury.app.config import config
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import Person, is_deactivated, person, person_by_email, sign_out, welcome
from tracejury.judging.store.people import Role as Role

RANK: dict[str, int] = {"annotator": 0, "adjudicator": 1, "researcher": 2, "admin": 3}
_PLACES = ("trace", "span", "pair", "person", "judge_model", "repeat_no", "dimension")
FILTERS = (
    "reference",
    "judge_models",
    "matches",
    "split",
    "missing",
    "blind_only",
    "versions",
    "repeat",
    "trace_formats",
    "guideline",
    "tolerance",
    "same_traces",
)
"""The names of the researcher's filters in the address, the same on every page."""
_SEEN = "signed_in_noted"
_SAID = "said"
_DRAWN = "drawn_revisions"


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class User:
    """The person at the screen; `name` stands at every label, `epoch` in every token made for them."""

    name: str
    role: Role
    epoch: int = 0

    def may(self, role: Role) -> bool:
        return RANK[self.role] >= RANK[role]


_asker: ContextVar[User | None] = ContextVar("asker", default=None)
"""For whom something deferred is made, where no page runs."""


@st.cache_resource(show_spinner=False)
def workspace() -> Workspace:
    """The workspace, opened once a process."""
    return open_workspace(config().home)


def ask_database() -> None:
    """Raise where the database does not answer."""
    with read_transaction(workspace().engine) as connection:
        connection.execute(select(tables.setting.c.name).limit(1))


def user() -> User:
    """The person at the screen. The page ends here, with a way in, where nobody is signed in."""
    account = signed_in()
    if account is None:
        _ask_to_sign_in()
        st.stop()
    return account


def must(role: Role) -> None:
    """Stop the page unless the person has this role: the navigation hides a page, an address does not."""
    if not user().may(role):
        st.error(f"This page needs the role {role}. An administrator can give it.")
        st.stop()


def signed_in() -> User | None:
    """The person at the screen, None where nobody is signed in.

    With sign-in off this is `?as=NAME`, else TRACEJURY_USER, with every right. With `password` it is who the
    session cookie says, with `oidc` whose e-mail address the provider vouches for; the role is the store's.
    """
    asker = _asker.get()
    if asker is not None:
        return asker
    match config().sign_in:
        case "password":
            account = person_of_session(signin.read(workspace().secret(), st.context.cookies.get(signin.COOKIE)))
        case "oidc":
            account = _person_of_provider()
        case _:
            return User(name=st.query_params.get("as") or config().user, role="admin")
    return None if account is None else User(name=account.name, role=account.role, epoch=account.epoch)


class NoRightError(Exception):
    """Somebody asked for what they may no longer have; the message says what to do."""


def deferred(make: Callable[[], T], *, role: Role) -> Callable[[], T]:
    """`make`, to be called when the page is no longer run (a download that is pressed): for who is at the screen now.

    They must still be signed in, active, and of this role then. Whatever fails, the person is told: Streamlit keeps
    quiet of what is no plain exception.
    """
    who = user()

    def made() -> T:
        _must_still(who, role)
        before = _asker.set(who)
        try:
            return make()
        except Exception:
            raise
        except BaseException as stop:
            raise NoRightError("this page has expired. Try: reload the page") from stop
        finally:
            _asker.reset(before)

    return made


def _must_still(who: User, role: Role) -> None:
    """Raise `NoRightError` for somebody who signed out, was deactivated or lost the role since."""
    if config().sign_in == "off":
        return
    with read_transaction(workspace().engine) as connection:
        account = person(connection, who.name)
    if account is None or account.epoch != who.epoch or RANK[account.role] < RANK[role]:
        raise NoRightError(f"{who.name} may no longer do this. Try: sign in again")


def person_of_session(session: signin.Session | None) -> Person | None:
    """The person whose session this is: active, and not signed out since."""
    if session is None:
        return None
    with read_transaction(workspace().engine) as connection:
        account = person(connection, session.name)
    return account if account is not None and account.epoch == session.epoch else None


def sign_out_now() -> None:
    """End this person's sessions everywhere."""
    who = signed_in()
    if who is not None:
        sign_out(workspace().engine, who.name)
    if config().sign_in == "oidc":
        st.logout()


def drawn(what: str, revision: object) -> object:
    """The revision of something that this page was drawn from before, what its buttons were pressed on; from now on
    it is `revision`.
    """
    revisions: dict[str, object] = st.session_state.setdefault(_DRAWN, {})
    before = revisions.get(what, revision)
    revisions[what] = revision
    return before


def say(text: str) -> None:
    """Show the page as it is after an act, with a word on what was done."""
    st.session_state[_SAID] = text
    st.rerun()


def shown_message() -> str | None:
    """The word on what was done, once."""
    text = st.session_state.pop(_SAID, None)
    return None if text is None else str(text)


def address() -> dict[str, list[str]]:
    """What the address of this page says, who one is left out."""
    return {key: st.query_params.get_all(key) for key in st.query_params if key not in {"as", *_PLACES}}


def address_of(query: Mapping[str, Sequence[str]]) -> str:
    """A link to this page with these filters and no others.

    It opens a session of its own: Streamlit lets no one set a parameter that a widget of the page is bound to.
    """
    return "?" + urlencode({**link_params(), **query}, doseq=True)


def _person_of_provider() -> Person | None:
    email = st.user.get("email") if st.user.get("is_logged_in") else None
    if not email or st.user.get("email_verified") is False:
        return None
    with read_transaction(workspace().engine) as connection:
        account = person_by_email(connection, str(email))
    if account is None and st.user.get("email_verified") is True and is_welcome(str(email), config().new_people):
        with write_transaction(workspace().engine, PEOPLE) as connection:
            account = welcome(connection, str(email))
    if account is not None and not st.session_state.get(_SEEN):
        st.session_state[_SEEN] = True
        with write_transaction(workspace().engine, PEOPLE) as connection:
            record(connection, who=account.name, what="signed in", subject=account.name, detail={"by": "oidc"})
    return account


def is_welcome(email: str, domains: tuple[str, ...]) -> bool:
    """Whether someone nobody knows yet may come in: by the domain of their address, or anyone (`*`)."""
    _, at, domain = email.strip().lower().rpartition("@")
    return "*" in domains or at + domain in domains


def _is_deactivated() -> bool:
    """Whether the session, or the provider's e-mail address, is that of an account that was deactivated."""
    claims = signin.read(workspace().secret(), st.context.cookies.get(signin.COOKIE))
    email = str(st.user.get("email") or "") if config().sign_in == "oidc" and st.user.get("is_logged_in") else ""
    with read_transaction(workspace().engine) as connection:
        return is_deactivated(connection, name="" if claims is None else claims.name, email=email)


def _ask_to_sign_in() -> None:
    if _is_deactivated():
        st.error(
            "Your account is deactivated. Ask an administrator to activate it. Your saved labels stay; unsaved ones "
            "stay in this browser.",
            icon=":material/lock:",
        )
        return
    if config().sign_in == "password":
        st.info("You are signed out. Reload this page to sign in.", icon=":material/lock:")
        st.link_button("Sign in", signin.PATH, type="primary")
        return
    if st.user.get("is_logged_in"):
        st.error(
            f"{st.user.get('email') or 'This account'} is not a member of this workspace, or its e-mail address is "
            f"not verified. Try: ask an administrator to add you on the Admin page."
        )
        st.button("Sign out", on_click=st.logout, key="sign_out")
        return
    st.info("Sign in to continue.", icon=":material/lock:")
    st.button("Sign in", on_click=st.login, type="primary", key="sign_in")


def trace_token(trace_id: str, occasion: int = 0) -> str:
    """The token that lets this person's browser save labels of this trace."""
    return token(trace_id, occasion=occasion)


def token(subject: str, *, occasion: int = 0, purpose: str = grants.TRACE) -> str:
    """A token of this person for a subject, good for `grants.MAX_AGE_S` seconds while they are signed in."""
    who = user()
    return grants.mint(workspace().secret(), grants.Grant(who.name, subject, occasion, who.epoch), purpose=purpose)


def link_params(**extra: str | None) -> dict[str, str]:
    """Query parameters for a link to another page: who one is, and `extra` without the empty ones."""
    is_free = config().sign_in == "off" and "as" in st.query_params
    params = {"as": st.query_params["as"]} if is_free else {}
    return params | {key: value for key, value in extra.items() if value}
