"""The routes of Compare: texts with both evidences, decisions that are stored or refused by name."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import select, update
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tracejury.app import grants
from tracejury.app.api.compare import PURPOSE, compare_routes
from tracejury.app.grants import Grant, mint
from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.sightings import sightings
from tracejury.judging.matching.comparison import compare_trace, decided_revision, undecided
from tracejury.judging.matching.deciding import match_decisions
from tracejury.judging.matching.finding_reviews import finding_reviews
from tracejury.judging.matching.pairs import Comparison, Pair
from tracejury.judging.queues.places import next_item
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.store import Workspace
from tracejury.judging.store.tables import cell, finding

JUDGE_MODEL = "careful-judge"


def comparison_with(space: Workspace, state: str) -> tuple[Comparison, Pair]:
    """A trace of ada's under the careful judge that has a pair of this state."""
    with read_transaction(space.engine) as connection:
        for trace_id in undecided(connection, reference="ada", judge_model=JUDGE_MODEL):
            comparison = compare_trace(connection, trace_id=trace_id, reference="ada", judge_model=JUDGE_MODEL)
            for pair in comparison.pairs:
                if pair.state == state:
                    return comparison, pair
    raise AssertionError(f"the samples hold no {state} pair")


@pytest.fixture
def client(full: Workspace) -> TestClient:
    return TestClient(Starlette(routes=list(compare_routes(lambda: full))))


def compare_token(space: Workspace, trace_id: str, user: str = "ruth") -> str:
    return mint(space.secret(), Grant(user, trace_id), purpose=PURPOSE)


def body(space: Workspace, trace_id: str, **decision: Any) -> dict[str, Any]:
    return {
        "token": compare_token(space, trace_id),
        "trace_id": trace_id,
        "reference": "ada",
        "judge_model": JUDGE_MODEL,
        **decision,
    }


def test_a_confirmed_pair_names_who_confirmed_it(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    sent = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="confirmed"
    )
    answer = client.post("/api/compare/decide", json=sent).json()
    after = next(p for p in answer["pairs"] if p["key"] == pair.key)
    assert (after["status"], after["author"], after["decided"]) == ("confirmed", "ruth", True)


def test_a_decision_is_undone_with_what_it_rejected_and_only_by_its_author(full: Workspace, client: TestClient) -> None:
    with read_transaction(full.engine) as connection:
        comparison = compare_trace(
            connection, trace_id="e4043bbcbac772732118f0a8679c9546", reference="ben", judge_model=JUDGE_MODEL
        )
    pair = next(p for p in comparison.pairs if p.state == "localized")
    assert pair.error is not None
    other = next(p.finding_key for p in comparison.pairs if p.finding_key not in (None, pair.finding_key))
    about = {"label_id": pair.error.label_id, "reference": "ben"}

    def sent(finding_key: int | None, status: str, user: str = "ruth") -> Any:
        told = body(full, comparison.trace_id, **about, finding_key=finding_key, status=status)
        told["token"] = compare_token(full, comparison.trace_id, user)
        return client.post("/api/compare/decide", json=told)

    def states(answer: Any) -> dict[str, tuple[str, str | None]]:
        return {p["key"]: (p["state"], p["status"]) for p in answer.json()["pairs"]}

    before = {p.key: (p.state, p.decision.status if p.decision else None) for p in comparison.pairs}
    sent(pair.finding_key, "confirmed")
    confirmed = states(sent(other, "confirmed"))
    assert confirmed[f"{pair.error.label_id}|{other}"][1] == "confirmed"
    assert sent(other, "undo", "mallory").status_code == 409
    undone = states(sent(other, "undo"))
    assert undone[pair.key] == ("localized", "confirmed")  # as it stood before the second decision
    assert states(sent(pair.finding_key, "undo")) == before
    assert sent(pair.finding_key, "undo").status_code == 409
    with read_transaction(full.engine) as connection:
        assert match_decisions(connection).empty


def test_each_answer_is_newer_than_the_page_and_the_answer_before_it(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    with read_transaction(full.engine) as connection:
        page = decided_revision(connection)
    about = {"label_id": pair.error.label_id, "finding_key": pair.finding_key}
    answers = [
        client.post("/api/compare/decide", json=body(full, comparison.trace_id, **about, status=status)).json()[
            "revision"
        ]
        for status in ("confirmed", "rejected")
    ]
    assert page < answers[0] < answers[1]


def test_a_finding_is_decided_in_its_own_repeat(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    about = {"label_id": pair.error.label_id, "finding_key": pair.finding_key, "status": "confirmed"}
    refused = client.post("/api/compare/decide", json=body(full, comparison.trace_id, **about, repeat=1))
    assert refused.status_code == 422  # repeat 1 of this judge holds no such finding
    with write_transaction(full.engine) as connection:
        cell_key = select(finding.c.cell_key).where(finding.c.finding_key == pair.finding_key).scalar_subquery()
        connection.execute(update(cell).where(cell.c.cell_key == cell_key).values(repeat=1))
    stored = client.post("/api/compare/decide", json=body(full, comparison.trace_id, **about, repeat=1))
    assert stored.status_code == 200, stored.text


def test_a_confirmed_pair_counts_where_only_confirmed_ones_do(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    sent = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="confirmed"
    )
    client.post("/api/compare/decide", json=sent)
    with read_transaction(full.engine) as connection:
        pairs = load_frames(
            connection, Filters(reference="ada", judge_models=(JUDGE_MODEL,), matches="confirmed")
        ).error_pairs
    assert list(pairs.loc[pairs["caught"].eq(True), "error_id"]) == [pair.error.label_id]


def test_a_rejected_pair_leaves_a_missed_error_and_an_unmatched_finding(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    sent = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="rejected"
    )
    pairs = client.post("/api/compare/decide", json=sent).json()["pairs"]
    states = {p["key"]: (p["state"], p["rejected"]) for p in pairs}
    assert states[f"{pair.error.label_id}|"] == ("missed", 1)
    assert states[f"|{pair.finding_key}"] == ("unmatched", 1)


def test_two_that_stood_alone_can_be_matched_by_a_person(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    reject = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="rejected"
    )
    client.post("/api/compare/decide", json=reject)
    again = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="confirmed"
    )
    pairs = client.post("/api/compare/decide", json=again).json()["pairs"]
    assert next(p for p in pairs if p["key"] == pair.key)["status"] == "confirmed"


def unmatched_after_rejection(space: Workspace, client: TestClient) -> tuple[str, int]:
    comparison, pair = comparison_with(space, "localized")
    assert pair.error is not None
    assert pair.finding_key is not None
    sent = body(
        space, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="rejected"
    )
    client.post("/api/compare/decide", json=sent)
    return comparison.trace_id, pair.finding_key


def test_an_unmatched_finding_gets_a_review_and_loses_it_again(full: Workspace, client: TestClient) -> None:
    trace_id, key = unmatched_after_rejection(full, client)
    client.post("/api/compare/decide", json=body(full, trace_id, finding_key=key, review="false alarm"))
    with read_transaction(full.engine) as connection:
        assert finding_reviews(connection)[key] == "false alarm"
    client.post("/api/compare/decide", json=body(full, trace_id, finding_key=key, review=None))
    with read_transaction(full.engine) as connection:
        assert key not in finding_reviews(connection)


def test_a_matched_finding_takes_no_review(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    sent = body(full, comparison.trace_id, finding_key=pair.finding_key, review="false alarm")
    answer = client.post("/api/compare/decide", json=sent)
    assert answer.status_code == 409
    assert "matched" in answer.json()["error"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"finding_key": 999_999}, 422, "is not a finding of this judge"),
        ({"label_id": "nobody"}, 422, "is not an error of this annotator"),
        ({"status": "maybe"}, 422, "not a decision"),
        ({"status": "proposed"}, 422, "not a decision"),
        ({"finding_key": None}, 422, "is not a finding of this judge"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_nothing_stored(
    full: Workspace, client: TestClient, change: dict[str, Any], status: int, words: str
) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    sent = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="confirmed"
    )
    answer = client.post("/api/compare/decide", json=sent | change)
    assert answer.status_code == status
    assert words in answer.json()["error"]
    with read_transaction(full.engine) as connection:
        again = compare_trace(connection, trace_id=comparison.trace_id, reference="ada", judge_model=JUDGE_MODEL)
    assert again.pairs == comparison.pairs


def test_a_finding_of_another_trace_cannot_be_decided_here(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    with read_transaction(full.engine) as connection:
        others = [
            t for t in undecided(connection, reference="ada", judge_model=JUDGE_MODEL) if t != comparison.trace_id
        ]
    sent = body(full, others[0], finding_key=pair.finding_key, review="false alarm")
    assert client.post("/api/compare/decide", json=sent).status_code == 422


@pytest.mark.parametrize("token", ["", "forged", None])
def test_without_a_genuine_token_nothing_is_answered(full: Workspace, client: TestClient, token: str | None) -> None:
    comparison, pair = comparison_with(full, "localized")
    sent = body(full, comparison.trace_id, finding_key=pair.finding_key, review="duplicate") | {"token": token}
    assert client.post("/api/compare/decide", json=sent).status_code == 401
    answer = client.get(f"/api/compare/texts/{comparison.trace_id}", params={"token": token or ""})
    assert answer.status_code == 401


def test_a_token_that_has_run_out_decides_nothing(
    full: Workspace, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison, pair = comparison_with(full, "localized")
    sent = body(full, comparison.trace_id, finding_key=pair.finding_key, review="duplicate")
    later = time.time() + grants.MAX_AGE_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    answers = [
        client.post("/api/compare/decide", json=sent),
        client.get(f"/api/compare/texts/{comparison.trace_id}", params={"token": sent["token"]}),
    ]
    assert [(one.status_code, one.json()["error"]) for one in answers] == [(401, "the token has expired")] * 2


def test_who_is_at_work_on_the_trace_blind_reads_and_decides_nothing_of_it(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    with write_transaction(full.engine) as connection:
        key = make_queue(connection, QueueSpec(name="own", author="root", k=3), [comparison.trace_id], now=1)
    assert next_item(full.engine, key, "ruth", now=time.time_ns() // 1000) is not None
    sent = body(
        full, comparison.trace_id, label_id=pair.error.label_id, finding_key=pair.finding_key, status="confirmed"
    )
    texts = client.get(
        f"/api/compare/texts/{comparison.trace_id}",
        params={"token": sent["token"], "label": pair.error.label_id, "finding": str(pair.finding_key)},
    )
    for answer in (client.post("/api/compare/decide", json=sent), texts):
        assert answer.status_code == 403
        assert "blind" in answer.text
        assert pair.error.description not in answer.text


def test_an_annotators_token_opens_no_comparison(full: Workspace, client: TestClient) -> None:
    """The Work page's token is for the trace itself: it must not show what judges said."""
    comparison, _ = comparison_with(full, "localized")
    token = mint(full.secret(), Grant("ada", comparison.trace_id))
    answer = client.get(f"/api/compare/texts/{comparison.trace_id}", params={"token": token})
    assert answer.status_code == 401


def test_texts_hold_the_stored_text_whole_and_mark_both_evidences(full: Workspace, client: TestClient) -> None:
    comparison, pair = comparison_with(full, "localized")
    assert pair.error is not None
    query = {
        "token": compare_token(full, comparison.trace_id),
        "label": pair.error.label_id,
        "finding": pair.finding_key,
    }
    spans = client.get(f"/api/compare/texts/{comparison.trace_id}", params=query).json()["spans"]
    assert any(span["reference"] and span["judge"] for span in spans)
    sides = {piece[1] for span in spans for part in span["parts"] for piece in part["segments"] if len(piece) == 2}
    assert sides & {"reference", "both"}
    for part in (part for span in spans for part in span["parts"]):
        shown = "".join(piece[0] for piece in part["segments"] if len(piece) == 2)
        left_out = sum(piece[0] for piece in part["segments"] if len(piece) == 1)
        assert len(shown) + left_out == part["length"]


def test_a_body_that_is_no_json_is_refused(client: TestClient) -> None:
    assert client.post("/api/compare/decide", content=b"{").status_code == 422
    assert client.post("/api/compare/decide", content=b"[]").status_code == 422
    assert client.post("/api/compare/decide", content=b" " * 2_000_000).status_code == 413


def test_reading_the_texts_is_stored_as_seen(full: Workspace, client: TestClient) -> None:
    comparison, _ = comparison_with(full, "localized")
    trace_id = comparison.trace_id
    token = compare_token(full, trace_id, "rosa")  # who has seen nothing in another test
    client.get(f"/api/compare/texts/{trace_id}", params={"token": token})
    with read_transaction(full.engine) as connection:
        found = sightings(connection, annotator="rosa", trace_id=trace_id)
    assert [one.what for one in found] == ["Compare"]
