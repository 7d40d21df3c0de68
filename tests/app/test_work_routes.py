"""The desk's routes: what is served to whom, what is stored, what is refused and how it says so."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.api import work
from app.grants import Grant, mint
from ingest.store import pack, write, writing
from judging.ledger import Workspace, labels, open_workspace
from tests.app.desk_traces import desk_trace, huge_trace, long_trace

TRACE = "desk-trace"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    opened = open_workspace(tmp_path / "home")
    for trace in (desk_trace(), desk_trace("other/trace?"), huge_trace()):
        with writing(opened.engine) as connection:
            write(connection, pack(trace))
    return opened


@pytest.fixture
def client(space: Workspace) -> TestClient:
    return TestClient(Starlette(routes=list(work.work_routes(lambda: space))))


@pytest.fixture
def token(space: Workspace) -> Callable[..., str]:
    return lambda trace_id=TRACE, user="ann": mint(space.secret(), Grant(user, trace_id))


def score(value: int | None = 0, dimension: str = "LC") -> dict[str, Any]:
    payload = {"dimension": dimension, "value": value, "not_applicable": False, "note": "", "confidence": None}
    return {"op_id": str(uuid.uuid4()), "kind": "score.put", "payload": payload, "client_time": "2026-11-27T10:00:00Z"}


def body(token: str, *ops: dict[str, Any], base: int = 0, trace_id: str = TRACE) -> dict[str, Any]:
    return {"token": token, "trace_id": trace_id, "base_revision": base, "ops": list(ops)}


def test_operations_are_stored_for_the_person_of_the_token(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    op = score(0)
    answer = client.post("/api/ops", json=body(token(), op))
    assert answer.status_code == 200
    assert answer.json() == {"revision": 1, "applied": [op["op_id"]]}
    stored = labels.state(space.engine, annotator="ann", trace_id=TRACE)
    assert stored["scores"]["LC"]["value"] == 0
    assert labels.state(space.engine, annotator="ben", trace_id=TRACE)["scores"] == {}


def test_the_same_operation_twice_changes_nothing(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    op = score(2)
    first, second = (client.post("/api/ops", json=body(token(), op)) for _ in range(2))
    assert first.json() == second.json()
    assert labels.state(space.engine, annotator="ann", trace_id=TRACE)["revision"] == 1


def test_a_stale_base_is_409_with_what_is_stored(client: TestClient, token: Callable[..., str]) -> None:
    client.post("/api/ops", json=body(token(), score(3)))
    answer = client.post("/api/ops", json=body(token(), score(1), base=0))
    assert answer.status_code == 409
    assert answer.json()["revision"] == 1
    assert answer.json()["state"]["scores"]["LC"]["value"] == 3


def test_client_headers_do_not_change_who_one_is(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    client.post("/api/ops", json=body(token(), score(1)), headers={"X-User": "ben", "X-Forwarded-User": "ben"})
    assert labels.state(space.engine, annotator="ben", trace_id=TRACE)["revision"] == 0


@pytest.mark.parametrize("bad", ["", "forged", None])
def test_no_genuine_token_is_401(client: TestClient, bad: str | None) -> None:
    answer = client.post("/api/ops", json=body(bad, score()))  # type: ignore[arg-type]
    assert answer.status_code == 401
    assert set(answer.json()) == {"error", "remedy"}


def test_a_token_of_another_trace_is_403(client: TestClient, token: Callable[..., str]) -> None:
    assert client.post("/api/ops", json=body(token("other/trace?"), score())).status_code == 403
    assert client.get(f"/api/trace/{TRACE}", params={"token": token("other/trace?")}).status_code == 403


def test_too_much_in_one_request_is_413(
    client: TestClient, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "BODY_LIMIT", 2_000)
    op = score()
    op["payload"]["note"] = "x" * 5_000
    assert client.post("/api/ops", json=body(token(), op)).status_code == 413


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ops": [{"op_id": "12345678", "kind": "dance", "payload": {}}]}, "malformed"),
        ({"ops": []}, "at least one"),
        ({"base_revision": "0"}, "base_revision"),
        ({"base_revision": True}, "base_revision"),
        ({"base_revision": -1}, "base_revision"),
    ],
)
def test_a_malformed_batch_is_422_and_says_where(
    client: TestClient, token: Callable[..., str], change: dict[str, Any], said: str
) -> None:
    answer = client.post("/api/ops", json=body(token(), score()) | change)
    assert answer.status_code == 422
    assert said in answer.json()["error"] + answer.json()["remedy"]


def test_a_body_that_is_no_json_is_422(client: TestClient) -> None:
    assert client.post("/api/ops", content=b"{").status_code == 422
    assert client.post("/api/ops", content=b"[]").status_code == 422


def test_a_refused_operation_leaves_the_batch_unstored(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    bad = score()
    bad["payload"]["value"] = 4
    answer = client.post("/api/ops", json=body(token(), score(1), bad))
    assert answer.status_code == 422
    assert answer.json()["op_id"] == bad["op_id"]
    assert labels.state(space.engine, annotator="ann", trace_id=TRACE)["revision"] == 0


def test_the_trace_opens_with_its_texts(client: TestClient, token: Callable[..., str]) -> None:
    opening = client.get(f"/api/trace/{TRACE}", params={"token": token()}).json()
    assert opening["trace_id"] == TRACE
    assert len(opening["blocks"]) == 6


def test_an_id_with_slash_and_question_mark_is_found(client: TestClient, token: Callable[..., str]) -> None:
    answer = client.get("/api/trace/other%2Ftrace%3F", params={"token": token("other/trace?")})
    assert answer.json()["trace_id"] == "other/trace?"
    span = client.get("/api/span/other%2Ftrace%3F/2", params={"token": token("other/trace?")})
    assert [block["seq"] for block in span.json()["blocks"]] == [2]


def test_reading_needs_a_token(client: TestClient) -> None:
    for path in (f"/api/trace/{TRACE}", f"/api/span/{TRACE}/0", f"/api/search/{TRACE}"):
        assert client.get(path).status_code == 401


def test_an_unknown_trace_is_404_with_a_remedy(client: TestClient, token: Callable[..., str]) -> None:
    answer = client.get("/api/trace/nowhere", params={"token": token("nowhere")})
    assert (answer.status_code, answer.json()["remedy"]) == (404, "choose a trace from the list")


def test_a_span_of_5_mb_comes_as_its_head_then_whole(client: TestClient, token: Callable[..., str]) -> None:
    parameters = {"token": token("huge-trace")}
    cut = client.get("/api/span/huge-trace/1", params=parameters)
    assert len(cut.content) < 20_000
    whole = client.get("/api/span/huge-trace/1", params=parameters | {"whole": "1"})
    assert len(whole.content) > 5_000_000


def test_a_stretch_is_bounded(client: TestClient, token: Callable[..., str]) -> None:
    answer = client.get(f"/api/span/{TRACE}/4", params={"token": token(), "count": "99999999999"})
    assert [block["seq"] for block in answer.json()["blocks"]] == [4]
    answer = client.get(f"/api/span/{TRACE}/4", params={"token": token(), "count": "500"})
    assert [block["seq"] for block in answer.json()["blocks"]] == [4, 5]


def test_search_answers_with_spans(client: TestClient, token: Callable[..., str]) -> None:
    assert client.get("/api/search/huge-trace", params={"token": token("huge-trace"), "q": "needle"}).json() == {
        "hits": [1]
    }


def test_a_long_trace_opens_with_its_outline_and_the_rest_follows(
    space: Workspace, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "LONG_TRACE", 30)
    with writing(space.engine) as connection:
        write(connection, pack(long_trace(61)))
    client = TestClient(Starlette(routes=list(work.work_routes(lambda: space))))
    parameters = {"token": token("long-trace")}
    early = client.get("/api/trace/long-trace", params=parameters).json()
    assert (early["partial"], early["blocks"], len(early["spans"]["id"])) == (True, [], 61)
    rest = client.get("/api/trace/long-trace", params=parameters | {"rest": "1"}).json()
    assert len(rest["blocks"]) == 61
    assert rest["spans"] == early["spans"]
    again = client.get("/api/trace/long-trace", params=parameters).json()
    assert "partial" not in again


def test_answers_are_never_kept_by_the_browser(client: TestClient, token: Callable[..., str]) -> None:
    assert client.get(f"/api/trace/{TRACE}", params={"token": token()}).headers["cache-control"] == "no-store"
