"""The desk's routes: what is served to whom, what is stored, what is refused and how it says so."""

import base64
import sqlite3
import uuid
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.app.desk_traces import EMOJI_CRLF_RTL, desk_trace, huge_trace, long_trace

from tracejury.app.api import documents, work
from tracejury.app.api.answers import MachineFaults
from tracejury.app.api.packing import packed
from tracejury.app.cli import main
from tracejury.app.components.annotator import payload
from tracejury.app.components.annotator.rendering import leaves
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import load, pack, write, write_transaction
from tracejury.ingest.trace import ExpectedEvent, Json, Message, Outcome, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.labels import item_state
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.store import Workspace, open_workspace

TRACE = "desk-trace"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    opened = open_workspace(tmp_path / "home")
    for trace in (desk_trace(), desk_trace("other/trace?"), huge_trace()):
        with write_transaction(opened.engine) as connection:
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


def review(status: str) -> dict[str, Any]:
    payload = {"status": status, "no_error": True, "reason": "", "active_ms": 1000}
    return {"op_id": str(uuid.uuid4()), "kind": "review.put", "payload": payload, "client_time": None}


def test_operations_are_stored_for_the_person_of_the_token(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    op = score(0)
    answer = client.post("/api/ops", json=body(token(), op))
    assert answer.status_code == 200
    assert answer.json() == {"revision": 1, "applied": [op["op_id"]], "state": None}
    stored = item_state.state(space.engine, annotator="ann", trace_id=TRACE)
    assert stored["scores"]["LC"]["value"] == 0
    assert item_state.state(space.engine, annotator="ben", trace_id=TRACE)["scores"] == {}


def test_the_same_operation_twice_changes_nothing(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    op = score(2)
    first, second = (client.post("/api/ops", json=body(token(), op)) for _ in range(2))
    assert first.json() == second.json() | {"state": None}
    assert second.json()["state"]["scores"]["LC"]["value"] == 2
    assert item_state.state(space.engine, annotator="ann", trace_id=TRACE)["revision"] == 1


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
    assert item_state.state(space.engine, annotator="ben", trace_id=TRACE)["revision"] == 0


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
    ("change", "message"),
    [
        ({"ops": [{"op_id": "12345678", "kind": "dance", "payload": {}}]}, "malformed"),
        ({"ops": []}, "at least one"),
        ({"base_revision": "0"}, "base_revision"),
        ({"base_revision": True}, "base_revision"),
        ({"base_revision": -1}, "base_revision"),
    ],
)
def test_a_malformed_batch_is_422_and_says_where(
    client: TestClient, token: Callable[..., str], change: dict[str, Any], message: str
) -> None:
    answer = client.post("/api/ops", json=body(token(), score()) | change)
    assert answer.status_code == 422
    assert message in answer.json()["error"] + answer.json()["remedy"]


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
    assert item_state.state(space.engine, annotator="ann", trace_id=TRACE)["revision"] == 0


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
    for path in (
        f"/api/trace/{TRACE}",
        f"/api/span/{TRACE}/0",
        f"/api/layout/{TRACE}",
        f"/api/search/{TRACE}",
        f"/api/text/{TRACE}",
    ):
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


def test_layouts_are_places_in_the_texts_and_as_many_as_fit(
    client: TestClient, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opening = client.get(f"/api/trace/{TRACE}", params={"token": token()}).json()
    [(number, text)] = [(each, text) for each, text in opening["texts"].items() if str(text).startswith("Here is")]
    asked = {"token": token(), "texts": f"{number}p,{number},nothing,99999p"}
    answer = client.get(f"/api/layout/{TRACE}", params=asked).json()
    assert answer["digest"] == opening["digest"]
    assert answer["layouts"] == {f"{number}p": answer["layouts"][f"{number}p"], number: None}
    assert [text[leaf[0] : leaf[1]] for leaf in leaves(answer["layouts"][f"{number}p"])][:2] == [
        "Here is the plan:", "1. "
    ]  # fmt: skip
    monkeypatch.setattr(payload, "LAYOUT_ROOM", 1)
    assert list(client.get(f"/api/layout/{TRACE}", params=asked).json()["layouts"]) == [f"{number}p"]


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
    monkeypatch.setattr(documents, "LONG_TRACE", 30)
    with write_transaction(space.engine) as connection:
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


def grown(trace_id: str = TRACE) -> Trace:
    """The trace with a late span, as the OTLP receiver joins it."""
    trace = desk_trace(trace_id)
    root = trace.spans[0]
    late = replace(
        root, seq=6, span_id="late000000000007", parent_span_id=root.span_id, depth=1, name="late", kind="TOOL",
        output="it came late",
    )  # fmt: skip
    return replace(trace, spans=(*trace.spans, late))


def test_a_trace_that_grew_is_read_again(client: TestClient, space: Workspace, token: Callable[..., str]) -> None:
    parameters = {"token": token()}
    before = client.get(f"/api/trace/{TRACE}", params=parameters).json()
    with write_transaction(space.engine) as connection:
        write(connection, pack(grown()), replaces=pack(desk_trace()))
    after = client.get(f"/api/trace/{TRACE}", params=parameters).json()
    assert (len(before["blocks"]), len(after["blocks"])) == (6, 7)
    assert before["digest"] != after["digest"]
    span = client.get(f"/api/span/{TRACE}/6", params=parameters).json()
    assert span["digest"] == after["digest"], "a page can tell that its numbers belong to another version"
    assert client.get(f"/api/search/{TRACE}", params=parameters | {"q": "came late"}).json() == {"hits": [6]}


def test_an_unchanged_trace_is_read_once(
    client: TestClient, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    monkeypatch.setattr(documents, "load", lambda *args, **named: loads.append(args) or load(*args, **named))
    for _ in range(3):
        client.get(f"/api/span/{TRACE}/0", params={"token": token()})
    assert len(loads) == 1


def test_a_trace_read_ahead_is_not_read_again_when_the_page_asks_for_it(
    space: Workspace, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, packs = [], []
    monkeypatch.setattr(documents, "load", lambda *args, **named: loads.append(args) or load(*args, **named))
    monkeypatch.setattr(documents, "packed", lambda body: packs.append(1) or packed(body))
    shelf = documents.Documents(lambda: space)
    for trace_id in (TRACE, "no such trace"):
        shelf.prepare(Grant("ann", trace_id))
    shelf._ahead.shutdown(wait=True)
    client = TestClient(Starlette(routes=list(work.work_routes(lambda: space, shelf))))
    for _ in range(2):
        assert len(client.get(f"/api/trace/{TRACE}", params={"token": token()}).json()["blocks"]) == 6
    assert (len(loads), len(packs)) == (1, 1)


def test_a_browser_without_gzip_gets_the_same_opening_plain(client: TestClient, token: Callable[..., str]) -> None:
    params = {"token": token()}
    small = client.get(f"/api/trace/{TRACE}", params=params, headers={"Accept-Encoding": "gzip"})
    plain = client.get(f"/api/trace/{TRACE}", params=params, headers={"Accept-Encoding": "identity"})
    assert small.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert int(small.headers["content-length"]) < int(plain.headers["content-length"]) / 2
    assert small.json() == plain.json()


def test_the_judges_text_is_byte_for_byte_what_the_command_prints(
    client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    answer = client.get(f"/api/text/{TRACE}", params={"token": token()})
    printed = CliRunner().invoke(main, ["text", TRACE, "--home", str(space.home)])
    assert answer.content == printed.stdout_bytes
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert EMOJI_CRLF_RTL.encode().split(b"\r\n")[0] in answer.content


# ---- what a queue hides, what a benchmark decided ----------------------------------------------------------------


def named_trace() -> Trace:
    """A trace whose agents and model stand in spans, tools, parameters, warnings and prose."""
    agent, model = "secret_searcher", "acme/Zebra-9"
    drafts = [
        SpanDraft(span_id="root000000000001", name=f"invoke_agent {agent}", kind="AGENT", agent=agent),
        SpanDraft(span_id="model00000000002", parent_span_id="root000000000001", name="chat Zebra-9", kind="LLM",
                  agent=agent, model=model, input=f'{{"model": "{model}", "x": 1}}', output_messages=(0,)),
        SpanDraft(span_id="tool000000000003", parent_span_id="root000000000001", name="call", kind="TOOL",
                  tool_name=agent, output="zebra-9 😀 said so", warnings=[f"odd: {model}"]),
    ]  # fmt: skip
    messages = [Message("assistant", f"I, {agent}, ask Zebra-9.", name=agent)]
    return assemble(
        drafts, trace_id="named", format="made", source=Source(file="x"), messages=messages, goal=f"Ask {agent}"
    )


@pytest.fixture
def hiding(space: Workspace) -> int:
    """A queue that hides agents and models."""
    with write_transaction(space.engine) as connection:
        write(connection, pack(named_trace()))
        spec = QueueSpec(name="blind", author="boss", hide=("agent", "model"))
        return make_queue(connection, spec, ["named"], now=1)


NAMES = ("secret_searcher", "zebra-9", "acme")


def test_hidden_names_are_in_no_answer_until_one_has_submitted(
    client: TestClient, hiding: int, token: Callable[..., str]
) -> None:
    parameters = {"token": token("named")}
    paths = ("/api/trace/named", "/api/trace/named?rest=1", "/api/span/named/0?count=9&whole=1", "/api/text/named")
    for path in paths:
        answer = client.get(path, params=parameters)
        assert [name for name in NAMES if name in answer.text.lower()] == [], path
    for name in NAMES:
        assert client.get("/api/search/named", params=parameters | {"q": name}).json() == {"hits": []}
    refused = client.get("/api/text/named", params=parameters)
    assert (refused.status_code, refused.json()["remedy"]) == (403, "submit the trace first")
    client.post("/api/ops", json=body(token("named"), review("submitted"), trace_id="named"))
    opened = client.get("/api/trace/named", params=parameters)
    assert [name for name in NAMES if name in opened.text.lower()] == list(NAMES)
    assert client.get("/api/text/named", params=parameters).status_code == 200
    other = client.get("/api/trace/named", params={"token": token("named", "ben")})
    assert [name for name in NAMES if name in other.text.lower()] == [], "ben has not submitted"


def test_the_outline_of_a_long_trace_hides_names_too(
    client: TestClient, hiding: int, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LONG_TRACE", 1)
    answer = client.get("/api/trace/named", params={"token": token("named")})
    assert answer.json()["partial"] is True
    assert [name for name in NAMES if name in answer.text.lower()] == []


def test_a_blocked_name_leaves_every_place_where_it_was(
    hiding: int, client: TestClient, token: Callable[..., str]
) -> None:
    opening = client.get("/api/trace/named", params={"token": token("named")}).json()
    shown = next(text for text in opening["texts"].values() if "said so" in text)
    assert shown.index("😀") == "zebra-9 😀 said so".index("😀")
    assert len(shown) == len("zebra-9 😀 said so")


def test_a_quote_taken_while_names_are_hidden_says_after_submitting_what_the_trace_says(
    hiding: int, client: TestClient, space: Workspace, token: Callable[..., str]
) -> None:
    shown = client.get("/api/trace/named", params={"token": token("named")}).json()["texts"].values()
    text = next(text for text in shown if "said so" in text)
    evidence = {"quote": text, "span_id": "tool000000000003", "field": "output", "start": 0, "end": len(text),
                "before": "", "after": ""}  # fmt: skip
    label = {"label_id": "one", "span_ids": ["tool000000000003"], "dimensions": ["LC"], "impact": "low",
             "category": None, "description": "", "evidence": [evidence], "phase": "blind"}  # fmt: skip
    put = {"op_id": str(uuid.uuid4()), "kind": "error.put", "payload": label, "client_time": None}
    assert client.post("/api/ops", json=body(token("named"), put, trace_id="named")).status_code == 200
    stored = item_state.state(space.engine, annotator="ann", trace_id="named")
    assert stored["errors"][0]["evidence"][0]["quote"] == text == "███████ 😀 said so"
    done = review("submitted")
    done["payload"]["no_error"] = False
    assert client.post("/api/ops", json=body(token("named"), done, base=1, trace_id="named")).status_code == 200
    stored = item_state.state(space.engine, annotator="ann", trace_id="named")
    assert stored["errors"][0]["evidence"][0]["quote"] == "zebra-9 😀 said so"
    assert len(stored["errors"]) == 1


def test_without_a_queue_nothing_is_hidden(client: TestClient, space: Workspace, token: Callable[..., str]) -> None:
    with write_transaction(space.engine) as connection:
        write(connection, pack(named_trace()))
    opening = client.get("/api/trace/named", params={"token": token("named")}).json()
    assert opening["agents"] == ["secret_searcher"]
    assert opening["models"] == ["acme/Zebra-9"]


@pytest.mark.parametrize("long_from", [3000, 1])
def test_the_benchmarks_verdict_reaches_no_annotator(
    client: TestClient, space: Workspace, token: Callable[..., str], monkeypatch: pytest.MonkeyPatch, long_from: int
) -> None:
    monkeypatch.setattr(documents, "LONG_TRACE", long_from)
    gold = "the-gold-event-and-answer"
    trace = desk_trace("judged")
    root = replace(trace.spans[0], status="ERROR")
    verdict = Outcome(decision="Invalid", score=0.0, reason=gold, rationale=gold, source="bench")
    expected = ExpectedEvent(
        event_id="e1", app=None, function=gold, args={"a": gold}, relative_time=0.0, event_time=0.0, comparator=None,
        depends_on=(), turn=1, matched=None,
    )  # fmt: skip
    judged = replace(
        trace, spans=(root, *trace.spans[1:]), outcome=verdict, expected_events=(expected,),
        warnings=(f"outcome_unclear: {gold}", "other: stays"),
    )  # fmt: skip
    with write_transaction(space.engine) as connection:
        write(connection, pack(judged))
    parameters = {"token": token("judged")}
    answers = [
        client.get(path, params=parameters)
        for path in ("/api/trace/judged", "/api/trace/judged?rest=1", "/api/text/judged")
    ]
    assert [gold in answer.text for answer in answers] == [False, False, False]
    opening = answers[0].json()
    assert opening["spans"]["status"][0] == 0, "UNSET: the root's own status is the verdict"
    assert opening["spans"]["status"][3] == 2, "what failed on the way stays"
    assert opening["warnings"] == ["other: stays"]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF\x20\0\0\0WEBP", "image/webp"),
        (b"RIFF\x20\0\0\0WAVEfmt ", "audio/wav"), (b"ID3\x04", "audio/mpeg"), (b"\xff\xfb\x90", "audio/mpeg"),
        (b"OggS", "audio/ogg"), (b"fLaC", "audio/flac"), (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"\0\0\0\x20ftypisom", "video/mp4"), (b"\x1a\x45\xdf\xa3", "video/webm"),
    ],
)  # fmt: skip
def test_pictures_and_sound_are_served_from_the_traces_own_bytes_as_nothing_else(
    client: TestClient, space: Workspace, token: Callable[..., str], start: bytes, kind: str
) -> None:
    data = start + bytes(20)
    script = b"<svg onload='alert(1)'/>" * 2
    held: Json = [{"parts": [None, {"content": base64.b64encode(each).decode()}]} for each in (data, script)]
    draft = SpanDraft(span_id="a" * 16, attributes={"gen_ai.input.messages": held})
    with write_transaction(space.engine) as connection:
        write(connection, pack(assemble([draft], trace_id="seen", format="otlp", source=Source(file="x", data=b"y"))))
    query = {"token": token("seen")}
    answer = client.get(f"/api/media/seen/{sha256(data).hexdigest()}", params=query)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, data, kind)
    assert answer.headers["x-content-type-options"] == "nosniff"
    for digest in (sha256(script).hexdigest(), "0" * 64):
        assert client.get(f"/api/media/seen/{digest}", params=query).status_code == 404
    assert client.get(f"/api/media/seen/{sha256(data).hexdigest()}").status_code == 401


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OperationalError("INSERT", {}, sqlite3.OperationalError("disk I/O error")), 503),
        (DatabaseError("SELECT", {}, sqlite3.DatabaseError("database disk image is malformed")), 503),
        (OSError(28, "No space left on device", "/secret/place"), 503),
        (MemoryError(), 503),
        (IntegrityError("INSERT", {}, sqlite3.IntegrityError("UNIQUE constraint failed")), 500),
        (KeyError("x"), 500),
    ],
)
def test_what_the_machine_fails_is_to_be_sent_again_and_what_we_fail_is_an_error(
    error: Exception, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing(_request: Request) -> Response:
        raise error

    app = Starlette(routes=[Route("/", failing)], middleware=[Middleware(MachineFaults)])
    answer = TestClient(app, raise_server_exceptions=False).get("/")
    assert answer.status_code == status
    if status == 503:
        assert answer.json()["error"] == "the server's disk, memory or database failed"
        assert answer.headers["retry-after"] == "30"
        assert "secret" not in answer.text
        assert "Try: " in caplog.text
        assert "Traceback" not in caplog.text
