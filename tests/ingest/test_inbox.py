"""Spans received over HTTP: kept at once, shown when the root has ended, late ones joined."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, func, select
from tests.build import TRACE, workspace

from tracejury.ingest import inbox
from tracejury.ingest.gaps import GAPS
from tracejury.ingest.inbox import receive, show_stragglers, waiting
from tracejury.ingest.messages import numbered_as
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load, read_transaction, schema, search, trace_ids
from tracejury.ingest.trace import IngestError, Trace
from tracejury.judging.store import Workspace

LIVE = "5b" * 16


def request(*spans: tuple[str, str, str], trace_id: str = LIVE) -> bytes:
    items = [
        {
            "traceId": trace_id,
            "spanId": f"{int(number):016x}",
            "parentSpanId": f"{int(parent):016x}" if parent else "",
            "name": name,
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + int(number)),
            "endTimeUnixNano": str(1_700_000_000_100_000_000 + int(number)),
        }
        for number, parent, name in spans
    ]
    scope = {"scope": {"name": "test"}, "spans": items}
    return json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}).encode()


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    return workspace(tmp_path)


def send(opened: Workspace, body: bytes, **more: Any) -> tuple[str, ...]:
    return receive(opened.engine, body, **({"signal": "traces", "is_protobuf": False} | more)).shown


def names(opened: Workspace, trace_id: str = LIVE) -> list[str]:
    with read_transaction(opened.engine) as connection:
        return [span.name for span in load(connection, trace_id).spans]


def test_children_wait_until_their_root_has_ended(opened: Workspace) -> None:
    assert send(opened, request(("2", "1", "child"))) == ()
    with read_transaction(opened.engine) as connection:
        assert (trace_ids(connection), waiting(connection)) == ([TRACE], 1)
    assert send(opened, request(("1", "", "root"))) == (LIVE,)
    assert names(opened) == ["root", "child"]
    with read_transaction(opened.engine) as connection:
        assert waiting(connection) == 0


def test_a_late_span_joins_and_search_finds_it(opened: Workspace) -> None:
    send(opened, request(("1", "", "root")))
    assert send(opened, request(("3", "1", "latecomer"))) == (LIVE,)
    assert names(opened) == ["root", "latecomer"]
    with read_transaction(opened.engine) as connection:
        assert [hit.seq for hit in search(connection, "latecomer")] == [1]
        assert [hit.seq for hit in search(connection, "root")] == [0]


def test_the_same_request_twice_shows_each_span_once(opened: Workspace) -> None:
    send(opened, request(("1", "", "root"), ("2", "1", "child")))
    send(opened, request(("1", "", "root"), ("2", "1", "child")))
    assert names(opened) == ["root", "child"]


def test_a_request_with_several_traces_is_split(opened: Workspace) -> None:
    other = "6c" * 16
    one, two = (json.loads(request(("1", "", n), trace_id=t)) for n, t in (("a", LIVE), ("b", other)))
    both = {"resourceSpans": one["resourceSpans"] + two["resourceSpans"]}
    assert send(opened, json.dumps(both).encode()) == (LIVE, other)
    assert (names(opened), names(opened, other)) == (["a"], ["b"])


def test_protobuf_and_json_of_one_trace_are_joined(opened: Workspace) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = bytes.fromhex(LIVE), (1).to_bytes(8, "big"), "root"
    span.start_time_unix_nano, span.end_time_unix_nano = 10**18, 10**18 + 10**9
    send(opened, request(("2", "1", "child")))
    assert send(opened, message.SerializeToString(), is_protobuf=True) == (LIVE,)
    assert names(opened) == ["root", "child"]


def test_a_body_that_is_no_request_is_refused_and_nothing_is_kept(opened: Workspace) -> None:
    for body, more in ((b"{}", {}), (b"[1", {}), (b'{"resourceSpans": 5}', {}), (b"\xff\xff", {"is_protobuf": True})):
        with pytest.raises(IngestError):
            send(opened, body, **more)
    with read_transaction(opened.engine) as connection:
        assert waiting(connection) == 0


def test_a_trace_from_a_file_is_not_changed_by_what_arrives_later(opened: Workspace) -> None:
    before = names(opened, TRACE)
    send(opened, request(("9", "", "intruder"), trace_id=TRACE))
    assert names(opened, TRACE) == before


def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "time", SimpleNamespace(time=lambda: time.time() + 3600))


def test_a_trace_whose_root_never_comes_is_shown_after_a_while(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(opened, request(("2", "1", "child")))
    assert show_stragglers(opened.engine, older_than_s=600) == []
    an_hour_later(monkeypatch)
    assert show_stragglers(opened.engine, older_than_s=600) == [LIVE]
    assert names(opened) == ["child"]


def test_one_trace_that_cannot_be_shown_keeps_no_other_waiting(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "f" * 32
    send(opened, request(("2", "1", "child")))
    send(opened, request(("2", "1", "child"), trace_id=other))
    show = inbox._show

    def refusing(connection: Connection, trace_id: str) -> bool:
        if trace_id == min(LIVE, other):
            raise ValueError("refused by the database")
        return show(connection, trace_id)

    monkeypatch.setattr(inbox, "_show", refusing)
    an_hour_later(monkeypatch)
    assert show_stragglers(opened.engine, older_than_s=600) == [max(LIVE, other)]


def test_spans_without_a_trace_id_are_told_and_junk_is_no_error(opened: Workspace) -> None:
    body = json.loads(request(("1", "", "root")))
    spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [{"spanId": "00", "name": "nobody's"}, "junk", None]
    body["resourceSpans"] += ["junk", {"scopeSpans": "junk"}]
    receipt = receive(opened.engine, json.dumps(body).encode(), signal="traces", is_protobuf=False)
    assert (receipt.items, receipt.rejected, receipt.shown) == (1, 1, (LIVE,))


def test_a_trace_that_grows_keeps_one_source(opened: Workspace) -> None:
    send(opened, request(("1", "", "root")))
    for number in range(2, 8):
        send(opened, request((str(number), "1", "late")))
    with read_transaction(opened.engine) as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM source WHERE file LIKE 'otlp-http/%'").scalar()
    assert count == 1


def test_a_request_sent_again_is_kept_once(opened: Workspace) -> None:
    body = request(("1", "", "root"), ("2", "1", "child"))
    send(opened, body)
    send(opened, body)
    with read_transaction(opened.engine) as connection:
        assert connection.scalar(select(func.count()).select_from(schema.inbox)) == 1
        trace = load(connection, LIVE)
    assert [span.name for span in trace.spans] == ["root", "child"]
    assert {warning.partition(":")[0] for warning in trace.all_warnings} <= set(GAPS)


def test_a_span_that_comes_in_two_requests_stands_once_with_its_messages(opened: Workspace) -> None:
    said = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
    log = {
        "traceId": LIVE,
        "spanId": f"{2:016x}",
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps([said])}}],
        "timeUnixNano": "1700000000000000002",
    }
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}).encode()
    send(opened, request(("1", "", "root"), ("2", "1", "call")))
    send(opened, logs, signal="logs")
    send(opened, request(("2", "1", "call"), ("3", "1", "other")))
    with read_transaction(opened.engine) as connection:
        trace = load(connection, LIVE)
    assert [span.name for span in trace.spans] == ["root", "call", "other"]
    assert [trace.messages[place].content for place in trace.spans[1].input_messages] == ["hi"]
    assert [warning.partition(":")[0] for warning in trace.all_warnings] == ["duplicate_span", "no_kinds"]


def test_what_the_tools_send_in_any_order_and_twice_is_what_their_files_hold(opened: Workspace) -> None:
    files = sorted((Path(__file__).parent / "dialects").glob("*.otlp.jsonl"))
    lines = [line for path in files for line in path.read_bytes().splitlines()] * 2
    random.Random(7).shuffle(lines)
    for line in lines:
        send(opened, line, signal="logs" if b'"resourceLogs"' in line[:20] else "traces")
    held = [trace for path in files for trace in read_traces(path) if isinstance(trace, Trace)]
    assert len(held) > 20
    with read_transaction(opened.engine) as connection:
        for trace in held:
            shown = load(connection, trace.trace_id)
            same = numbered_as(trace, shown.messages)  # a trace that grew keeps the positions that it had
            assert (shown.spans, shown.messages) == (same.spans, same.messages)
            assert (len(shown.logs), shown.all_warnings) == (len(trace.logs), trace.all_warnings)
