"""Each route against made-up requests: an answer that says what is wrong, never a fault of the server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.testclient import TestClient

from tracejury.app.api import ROUTES
from tracejury.app.config import config
from tracejury.app.guard import Guard
from tracejury.judging.store import Workspace

ROUNDS = [pytest.param(10, id="short"), pytest.param(1000, id="long", marks=pytest.mark.soak)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=12), children, max_size=4),
    max_leaves=12,
)
KEYS = ("token", "trace_id", "base_revision", "ops", "keys", "pretty", "occasion", "resourceSpans", "name", "format")
BODY = st.one_of(
    st.binary(max_size=200),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(KEYS), JSON).map(lambda value: json.dumps(value).encode()),
)
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)
HEADERS = st.dictionaries(
    st.sampled_from(("content-type", "content-encoding", "authorization", "cookie", "range", "accept")),
    st.one_of(TEXT, st.sampled_from(("application/json", "application/x-protobuf", "gzip", "Bearer tracejury_x"))),
)

ASKED = (*KEYS, "human", "judges", "run", "version", "table")
QUERY = st.dictionaries(st.sampled_from(ASKED), st.text(max_size=20))


@pytest.fixture(params=["off", "password"])
def client(request: pytest.FixtureRequest, full: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("TRACEJURY_SIGN_IN", request.param)
    config.cache_clear()
    guard = Middleware(Guard, hosts=None, may_read_metrics=lambda *_: False)
    with TestClient(Starlette(routes=list(ROUTES), middleware=[guard]), raise_server_exceptions=False) as made:
        yield made


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{'-'.join(sorted(route.methods or ()))} {route.path}")
@pytest.mark.timeout(1800)
def test_no_request_makes_a_route_fail(route: Route, rounds: int, client: TestClient) -> None:
    methods = sorted(route.methods or {"GET"})

    @settings(max_examples=rounds, deadline=None, suppress_health_check=list(HealthCheck))
    @given(method=st.sampled_from(methods), part=TEXT, headers=HEADERS, body=BODY, query=QUERY)
    def attack(method: str, part: str, headers: dict[str, str], body: bytes, query: dict[str, str]) -> None:
        path = filled(route.path, part)
        answer = client.request(method, path, headers=headers, content=body, params=query, follow_redirects=False)
        assert answer.status_code < 500 or answer.status_code == 503, (answer.status_code, answer.text[:300])
        assert "Traceback" not in answer.text

    attack()


def filled(path: str, part: str) -> str:
    """The path with something in the place of its parameters."""
    plain = "".join(character for character in part if character.isalnum()) or "x"
    number = "".join(character for character in part if character in "0123456789") or "0"
    return "/".join((number if ":int}" in one else plain) if one.startswith("{") else one for one in path.split("/"))
