"""Every route and every page as nobody and as each role: who may, who may not, and no word of judges or others on a
trace that one labels blind.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from tests.app.conftest import MAIN, RUN_S
from tests.app.desk_judges import JUDGE_MODEL, MARKERS, OTHER, judge, other_person
from tests.app.desk_traces import desk_trace
from tests.app.workspaces import hold_blind

from tracejury.app import asgi, datasets, signin
from tracejury.app.api import compare, exports
from tracejury.app.api.scripts import mint_script
from tracejury.app.config import config
from tracejury.app.grants import TRACE, Grant, mint
from tracejury.app.guard import METRICS
from tracejury.app.pages import ACCOUNT, PAGES
from tracejury.app.session import RANK
from tracejury.ingest.store import pack, write, write_transaction
from tracejury.judging.labels.comments import put_comment
from tracejury.judging.store import Workspace
from tracejury.judging.store.people import add_person

BLIND, LAST, TOOL = "desk-blind", "last000000000006", "tool000000000004"
ROLES = {"ann": "annotator", "jud": "adjudicator", "res": "researcher", "root": "admin"}
NOBODY = ""
OF_TRACE = tuple(sorted({*MARKERS, "MARKERCOMMENT"} - {JUDGE_MODEL, "oracle-7", "MARKERRUN", "MARKERDETAIL", OTHER}))
"""What judges and others say of the one trace: for nobody who labels it. The names of judges, runs and people stand in
the lists of those who lead, and in nothing that an annotator gets."""


@pytest.fixture
def space(full: Workspace, quick_passwords: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The samples, and one more trace that judges and another person spoke of, and that each role labels blind."""
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "password")
    monkeypatch.setenv("TRACEJURY_HOME", str(full.home))
    config.cache_clear()
    with write_transaction(full.engine) as connection:
        write(connection, pack(desk_trace(BLIND)))
        for name, role in {**ROLES, OTHER: "annotator"}.items():
            add_person(connection, name, role=role, by="test", password="a long enough secret")  # type: ignore[arg-type]
    judge(full, BLIND, (LAST, TOOL))
    other_person(full, BLIND, LAST)
    with write_transaction(full.engine) as connection:
        put_comment(connection, comment_id="c1", author=OTHER, body="@root @ann MARKERCOMMENT", trace_id=BLIND,
                    span_id=LAST)  # fmt: skip
    for name in ROLES:
        hold_blind(full, name, BLIND)
    yield full
    config.cache_clear()


class Asked(NamedTuple):
    """A request, the purpose and subject of its token, the least role that is served, and what a blind person gets."""

    method: str
    path: str
    purpose: str = TRACE
    role: str = "annotator"
    blind: int = 200
    query: str = ""
    body: dict[str, Any] | None = None

    @property
    def subject(self) -> str:
        return self.path.rpartition("/")[2] if self.purpose == exports.PURPOSE else BLIND


DECIDED = {"reference": OTHER, "judge_model": JUDGE_MODEL, "finding_key": 1, "label_id": f"MARKEROTHER-{BLIND}",
           "status": "confirmed"}  # fmt: skip
MARKED = {"op_id": "an-operation-1", "kind": "score.put", "payload": {"dimension": "LC", "value": 1}}
COMMENTED = {"comment_id": "mine", "body": "my own word"}
ASKED: dict[str, tuple[Asked, ...]] = {
    "/api/ops": (Asked("POST", "/api/ops", body={"base_revision": 0, "ops": [MARKED]}),),
    "/api/trace/{trace_id:path}": (
        Asked("GET", f"/api/trace/{BLIND}"),
        Asked("GET", f"/api/trace/{BLIND}", query="rest=1"),
    ),
    "/api/span/{trace_id:path}/{seq:int}": (Asked("GET", f"/api/span/{BLIND}/0", query="count=64&whole=1"),),
    "/api/layout/{trace_id:path}": (Asked("GET", f"/api/layout/{BLIND}", query="texts=1,2,3"),),
    "/api/search/{trace_id:path}": (Asked("GET", f"/api/search/{BLIND}", query="q=moons"),),
    "/api/text/{trace_id:path}": (Asked("GET", f"/api/text/{BLIND}"),),
    "/api/media/{trace_id:path}/{digest:str}": (Asked("GET", f"/api/media/{BLIND}/{'0' * 64}", blind=404),),
    "/api/comments/{trace_id:path}": (
        Asked("GET", f"/api/comments/{BLIND}", query="others=show"),
        Asked("POST", f"/api/comments/{BLIND}", body=COMMENTED),
    ),
    "/api/reveal/{trace_id:path}": (Asked("GET", f"/api/reveal/{BLIND}", blind=403),),
    "/api/settings": (
        Asked("GET", "/api/settings", query=f"trace_id={BLIND}"),
        Asked("PUT", "/api/settings", body={"keys": {}, "pretty": True, "base_revision": 0}),
    ),
    "/api/compare/texts/{trace_id:path}": (
        Asked("GET", f"/api/compare/texts/{BLIND}", compare.PURPOSE, "adjudicator", 403, "finding=1"),
    ),
    "/api/compare/decide": (Asked("POST", "/api/compare/decide", compare.PURPOSE, "adjudicator", 403, body=DECIDED),),
    "/api/export/{name}": tuple(
        Asked("GET", f"/api/export/{name}", exports.PURPOSE, "researcher")
        for name in (*datasets.BY_NAME, "manifest")
    ),
}  # fmt: skip
"""By route: what is asked of it with the token of a page. `test_exports` asks for tables and the whole report."""
OTHERWISE = {
    "/health", "/api/health", "/v1/traces", "/v1/logs", "/api/signin", "/api/invitation", "/api/painted/{note}",
}  # fmt: skip
"""Open, or with another proof than a page's token: the tests below."""


@pytest.fixture
def client(space: Workspace) -> TestClient:
    return TestClient(Starlette(routes=list(asgi.OURS), middleware=asgi.middleware()[1:-1]), follow_redirects=False)


def ask(space: Workspace, client: TestClient, one: Asked, name: str) -> Any:
    """The answer to a request with the token that a page would have given this person, had they the right."""
    token = mint(space.secret(), Grant(name, one.subject), purpose=one.purpose) if name else ""
    if one.body is not None:
        return client.request(one.method, one.path, json={"token": token, "trace_id": BLIND, **one.body})
    return client.request(one.method, f"{one.path}?{one.query}", params={"token": token, **pairs(one.query)})


def pairs(query: str) -> dict[str, str]:
    return dict(part.split("=") for part in query.split("&") if part)


def words_in(answer: Any) -> list[str]:
    """The markers in an answer, in those of its files, and in its headers."""
    content: bytes = answer.content
    if content[:2] == b"PK":
        archive = zipfile.ZipFile(io.BytesIO(content))
        content = b"".join(name.encode() + archive.read(name) for name in archive.namelist())
    return [
        mark for mark in OF_TRACE if mark.lower().encode() in content.lower() + str(answer.headers).lower().encode()
    ]


def test_no_route_is_left_out() -> None:
    assert {route.path for route in asgi.OURS} == ASKED.keys() | OTHERWISE


@pytest.mark.parametrize("name", [NOBODY, *ROLES])
def test_each_route_serves_whom_it_should_and_no_word_on_a_trace_to_who_labels_it_blind(
    name: str, space: Workspace, client: TestClient
) -> None:
    rank = RANK[ROLES[name]] if name else -1
    for asked in ASKED.values():
        for one in asked:
            answer = ask(space, client, one, name)
            allowed = one.blind if rank >= RANK[one.role] else 403 if name else 401
            assert answer.status_code == allowed, (one, answer.text[:300])
            assert words_in(answer) == [], one
            if name == "ann":
                assert [mark for mark in MARKERS if mark in answer.text] == [], one


def test_without_sign_in_who_labels_a_trace_blind_gets_no_word_on_it_and_no_token_opens_nothing(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", "off")
    config.cache_clear()
    client = TestClient(Starlette(routes=list(asgi.OURS), middleware=asgi.middleware()[1:]), "http://localhost")
    for asked in ASKED.values():
        for one in asked:
            answer = ask(space, client, one, "ann")
            assert (answer.status_code, words_in(answer)) == (one.blind, []), (one, answer.text[:300])
            assert ask(space, client, one, NOBODY).status_code == 401, one


def test_what_is_looked_for_is_there_for_who_labels_nothing_blind(space: Workspace, client: TestClient) -> None:
    with write_transaction(space.engine) as connection:
        add_person(connection, "free", role="admin", by="test", password="a long enough secret")
    shown: set[str] = set()
    for route in ("/api/comments/{trace_id:path}", "/api/export/{name}", "/api/compare/texts/{trace_id:path}"):
        for one in ASKED[route]:
            answer = ask(space, client, one, "free")
            shown |= set(words_in(answer))
    assert shown >= {"MARKERCOMMENT", "MARKEROTHER", "MARKERREASON"}


@pytest.mark.parametrize("name", [NOBODY, *ROLES])
def test_a_script_or_cookie_opens_what_its_person_may(name: str, space: Workspace, client: TestClient) -> None:
    if name:
        client.cookies[signin.COOKIE] = signin.mint(space.secret(), signin.Session(name, 0))
    may_export = name in {"res", "root"}
    for use, method, path, served in (
        ("export", "GET", "/api/export/labels", 200),
        ("otlp", "POST", "/v1/traces", 200),
    ):
        assert client.request(method, path, json={"resourceSpans": []} if method == "POST" else None).status_code == 401
        token = mint_script(space, name or "stranger", use=use, days=1, by="test")  # type: ignore[arg-type]
        header = {"Authorization": f"Bearer {token}"}
        answer = client.request(method, path, headers=header, json={"resourceSpans": []} if method == "POST" else None)
        assert answer.status_code == (served if may_export else 403), (use, answer.text)
        assert words_in(answer) == []
    for metrics in (METRICS, f"{METRICS}/"):
        assert client.get(metrics).status_code == (404 if name == "root" else 403)  # Streamlit's own is not behind it
    for page in ("/work", "/admin", f"/compare?trace={BLIND}"):
        answer = client.get(page, headers={"accept": "text/html"})
        assert answer.status_code == (404 if name else 303), page
    for path in ("/health", "/api/health"):
        assert client.get(path).json()["status"] == "ok"
    assert client.get("/api/invitation?code=x").status_code == 410
    assert client.post("/api/painted/x").status_code == 204


ADDRESS: dict[str, str] = {
    "trace": BLIND, "trace_id": BLIND, "span": LAST, "pair": "1", "person": OTHER, "judge_model": JUDGE_MODEL,
    "repeat_no": "0", "dimension": "LC", "reference": OTHER, "judge_models": JUDGE_MODEL, "matches": "proposed",
    "q": "moons", "others": "show", "as": "root", "blind_only": "false",
}  # fmt: skip


VIEWS = {"view", "rows", "adjudicate_view", "admin_view", "guideline_view"}


def shown_to(
    name: str, page: str, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[AppTest, bytes]]:
    """A page by its address with every parameter, then each of its views, as the browser of this person opens it; and
    all that it sends.
    """
    cookie = signin.mint(space.secret(), signin.Session(name, 0))
    monkeypatch.setattr(type(st.context), "cookies", {signin.COOKIE: cookie})
    at = AppTest.from_file(str(MAIN), default_timeout=RUN_S)
    at.switch_page(str(next(one.script for one in (*PAGES, ACCOUNT) if one.file == page)))
    for key, value in ADDRESS.items():
        at.query_params[key] = value
    at.run()
    yield at, b"".join(protos(at._tree))
    for key, view in [(one.key, view) for one in at.segmented_control if one.key in VIEWS for view in one.options]:
        at.segmented_control(key=key).set_value(view).run()
        yield at, b"".join(protos(at._tree))


def protos(node: Any) -> Iterator[bytes]:
    proto = getattr(node, "proto", None)
    if hasattr(proto, "SerializeToString"):
        yield proto.SerializeToString()
    for child in getattr(node, "children", {}).values():
        yield from protos(child)


@pytest.mark.parametrize(
    "name", ["ann", *(pytest.param(name, marks=pytest.mark.soak) for name in ("jud", "res", "root"))]
)
def test_no_page_shows_a_word_on_a_trace_to_who_labels_it_blind(
    name: str, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_for = {"MARKERCOMMENT", *(MARKERS if name == "ann" else OF_TRACE)}
    for page in (*PAGES, ACCOUNT):
        for at, sent in shown_to(name, page.file, space, monkeypatch):
            assert [mark for mark in looked_for if mark.encode() in sent and mark not in ADDRESS.values()] == [], page
            assert not at.exception, page
            is_shown = page.title in [header.value for header in at.header]
            assert is_shown == (RANK[ROLES[name]] >= RANK[page.role]) or page.file == "work", page


@pytest.mark.soak
def test_pages_show_those_words_to_who_labels_nothing_blind(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with write_transaction(space.engine) as connection:
        add_person(connection, "free", role="admin", by="test", password="a long enough secret")
    pages = ("compare", "runs", "reports")
    sent = b"".join(sent for page in pages for _, sent in shown_to("free", page, space, monkeypatch))
    assert {mark for mark in OF_TRACE if mark.encode() in sent} >= {"MARKERFINDING", "MARKERREASON", "MARKEROTHER"}
