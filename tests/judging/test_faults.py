"""Everything a provider or a machine does wrong, end to end: litellm, a scripted server, real processes, kill -9."""

import asyncio
import http.server
import importlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.fake_provider import Action, Answer, Cut, Hang, Provider, Raw, Request, Reset, Status, verdict
from tests.judging.grid import AGENTS, RUBRICS, Grid, kill, planned
from tests.judging.run_owners import PRICES, setup, start_owner

from tracejury.judging.judges.model import LitellmModel, ModelError, ModelReply, ModelRequest
from tracejury.judging.runs.model_setup import BatchModel
from tracejury.judging.runs.run_control import want_failed_again
from tracejury.judging.runs.run_spec import RunStatus
from tracejury.judging.runs.run_store import Paid, RunStore, Sending
from tracejury.judging.runs.runner import Runner, Summary

GOOD = Answer(text=verdict(2))
TOO_LONG = Status(code=400, message="maximum context length is 10 tokens", error_code="context_length_exceeded")
FAULTS: Mapping[str, tuple[list[Action], str]] = {
    "429 with Retry-After": ([Status(code=429, headers={"retry-after": "0.2"}), GOOD], "scored"),
    "429 without Retry-After": ([Status(code=429), GOOD], "scored"),
    "429 until a date": ([Status(code=429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}), GOOD], "scored"),
    "429 with a Retry-After that is neither": ([Status(code=429, headers={"retry-after": "soon"}), GOOD], "scored"),
    "429 for ever": ([Status(code=429)], "error"),
    "500 twice": ([Status(code=500), Status(code=500), GOOD], "scored"),
    "503": ([Status(code=503), GOOD], "scored"),
    "connection reset": ([Reset(), GOOD], "scored"),
    "hang, then well": ([Hang(), GOOD], "scored"),
    "hang for ever": ([Hang()], "error"),
    "cut in the middle, then well": ([Cut(text=verdict(3)), GOOD], "scored"),
    "cut in the middle for ever": ([Cut(text=verdict(3))], "error"),
    "200 with an error, then well": ([Raw(b'{"error": {"message": "overloaded", "code": 503}}'), GOOD], "scored"),
    "200 with an error for ever": ([Raw(b'{"error": {"message": "overloaded", "code": 503}}')], "error"),
    "200 with no choice": ([Raw(b'{"id": "1", "object": "chat.completion", "choices": []}')], "unparsable"),
    "200 with a page": ([Raw(b"<html>502 Bad Gateway</html>")], "error"),
    "slow stream": ([Answer(text=verdict(2), trickle_s=0.3)], "scored"),
    "stream that never ends": ([Answer(text=verdict(2), trickle_s=60)], "error"),
    "500 for ever": ([Status(code=500)], "error"),
    "empty reply": ([Answer(text="")], "unparsable"),
    "null reply": ([Answer(text=None)], "unparsable"),
    "cut by length": ([Answer(text='{"criteria": "c", "rationale": "the ag', finish_reason="length")], "unparsable"),
    "cut by length, yet a score": ([Answer(text="Criteria: c\nScore: 3", finish_reason="length")], "unparsable"),
    "context overflow": ([TOO_LONG], "too_long"),
    "413": ([Status(code=413)], "too_long"),
    "wrong JSON": ([Answer(text='{"score": 3,}')], "unparsable"),
    "score of 7": ([Answer(text=verdict(7))], "unparsable"),
    "null score": ([Answer(text=verdict(None))], "unparsable"),
    "prose": ([Answer(text="I give it 3 of 3.")], "unparsable"),
    "prose, then mended": ([Answer(text="I give it 3 of 3."), GOOD], "scored"),
    "refusal": ([Answer(text=None, refusal="I cannot help with that")], "refused"),
    "content filter": ([Answer(text="", finish_reason="content_filter")], "refused"),
    "content filter as an error": ([Status(code=400, error_code="content_filter", message="flagged")], "refused"),
    "bad request": ([Status(code=400, message="messages is malformed")], "error"),
}  # fmt: skip


@pytest.fixture
def provider() -> object:
    importlib.import_module("tests.judging.warmed")  # no call here is to wait for litellm's imports
    with Provider(lambda request: GOOD) as running:
        yield running


def trace_number(request: Request) -> int:
    found = re.search(r"Trace (0{24}[0-9a-f]{8}):", request.prompt)
    assert found is not None
    return int(found[1], 16)


def run(grid: Grid, provider: Provider, *, batch: bool = False, **options: Any) -> Summary:
    return asyncio.run(runner(grid, provider, batch=batch, **options).run())


def runner(grid: Grid, provider: Provider, *, batch: bool = False, **options: Any) -> Runner:
    models = {"openai/fake": setup(provider.base_url, timeout_s=3.0, batch=batch)}
    store = RunStore(grid.engine, grid.run_key)
    return Runner(
        grid.spec, store, rubrics=RUBRICS, models=models, agents=AGENTS, poll_s=0.05, batch_poll_s=0.01, **options
    )


def test_each_fault_ends_in_its_own_state_and_nothing_is_scored_that_was_no_score(
    provider: Provider, tmp_path: Path
) -> None:
    names = list(FAULTS)
    met: Counter[int] = Counter()

    def script(request: Request) -> Action:
        number = trace_number(request)
        actions, _ = FAULTS[names[number - 1]]
        met[number] += 1
        return actions[min(met[number], len(actions)) - 1]

    provider.script = script
    grid = planned(tmp_path, len(names), rubrics=("LC",), models=("openai/fake",), attempts=3, concurrency=16)
    summary = run(grid, provider)
    rows = grid.rows("select trace_id, state, score, reason from cell")
    found = {names[int(str(trace_id), 16) - 1]: state for trace_id, state, _, _ in rows}
    assert found == {name: state for name, (_, state) in FAULTS.items()}
    assert {score for _, state, score, _ in rows if state == "scored"} == {2}
    assert {score for _, state, score, _ in rows if state != "scored"} == {None}
    assert all(reason for _, state, _, reason in rows if state != "scored")
    assert summary.status == "done"
    assert sum(summary.states.values()) == len(FAULTS)
    kept = grid.rows("select count(*) from cell where state = 'unparsable' and raw_reply is null")
    assert kept == [(0,)]  # whatever came back is kept, the empty reply too
    assert met[names.index("refusal") + 1] == 1  # not asked again
    assert met[names.index("context overflow") + 1] == 1
    assert met[names.index("500 for ever") + 1] == 3
    assert met[names.index("score of 7") + 1] == 2  # once, and one repair


def test_failed_cells_alone_are_judged_again_once_the_provider_is_well(provider: Provider, tmp_path: Path) -> None:
    provider.script = lambda request: Status(code=400, message="odd") if trace_number(request) == 2 else GOOD
    grid = planned(tmp_path, 3, rubrics=("LC",), models=("openai/fake",))
    assert run(grid, provider).states == {"scored": 2, "error": 1}
    provider.script = lambda request: GOOD
    assert want_failed_again(grid.engine, grid.run_key) == 1
    assert run(grid, provider).states == {"scored": 3}
    assert len(provider.log.requests) == 4


def test_a_rejected_response_format_is_asked_for_once_and_then_no_more(provider: Provider, tmp_path: Path) -> None:
    def script(request: Request) -> Action:
        if "response_format" in request.body:
            return Status(code=400, message="response_format json_schema is not supported", param="response_format")
        if "tools" in request.body:
            return Status(code=400, message="this model does not support tools", param="tools")
        return Answer(
            text='Criteria: c\nSupporting Evidence: e\nFindings:\n- S4 | high | invented | "As the search"\nScore: 1'
        )

    provider.script = script
    grid = planned(tmp_path, 2, models=("openai/fake",), concurrency=1)
    assert run(grid, provider).states == {"scored": 4}
    assert len(provider.log.requests) == 6  # json, tool, then four times the template
    assert grid.rows("select distinct score from cell") == [(1,)]
    parameters = [json.loads(str(row[0])) for row in grid.rows("select parameters from cell order by cell_key")]
    assert [len(p.get("rejected", [])) for p in parameters] == [2, 0, 0, 0]
    assert {p["form"] for p in parameters} == {"template"}
    assert grid.rows("select distinct evidence_place from finding") == [("verbatim",)]


def test_a_rejected_parameter_is_left_out_and_recorded(provider: Provider, tmp_path: Path) -> None:
    def script(request: Request) -> Action:
        if "temperature" in request.body:
            return Status(code=400, message="Unsupported value: 'temperature' does not support 0", param="temperature")
        return GOOD

    provider.script = script
    grid = planned(tmp_path, 2, models=("openai/fake",), parameters={"temperature": 0}, concurrency=1)
    assert run(grid, provider).states == {"scored": 4}
    assert len(provider.log.requests) == 5
    parameters = [json.loads(str(row[0])) for row in grid.rows("select parameters from cell")]
    assert all(p["left_out"] == ["temperature"] for p in parameters)


def test_a_wrong_key_is_tried_once(provider: Provider, tmp_path: Path) -> None:
    provider.script = lambda request: Status(code=401, message="Incorrect API key provided")
    grid = planned(tmp_path, 3, models=("openai/fake",), concurrency=1)
    summary = run(grid, provider)
    assert (summary.status, grid.states()) == ("paused", {"pending": 6})
    assert "Incorrect API key" in summary.message
    assert len(provider.log.requests) == 1


def test_cached_tokens_are_recorded_for_all_but_the_lead_call(provider: Provider, tmp_path: Path) -> None:
    from tests.judging.traces import small_trace

    traces = [small_trace(trace_id=f"{1:032x}", tool_output="word " * 4000)]
    grid = planned(tmp_path, traces, rubrics=("LC", "EE", "PQ"), models=("openai/fake",))
    run(grid, provider)
    cached = [row[0] for row in grid.rows("select cached_tokens from reply order by reply_key")]
    assert cached[0] == 0
    assert all(isinstance(tokens, int) and tokens > 4000 for tokens in cached[1:])


# batches --------------------------------------------------------------------------------------------------------


def test_a_batch_judges_every_cell_and_a_second_start_hands_in_nothing(provider: Provider, tmp_path: Path) -> None:
    provider.script = lambda r: Status(code=400, message="odd") if trace_number(r) == 2 else GOOD
    grid = planned(tmp_path, 3, models=("openai/fake",), batch=True)
    summary = run(grid, provider, batch=True)
    assert (summary.status, summary.states) == ("done", {"scored": 4, "error": 2})
    assert len(provider.batches) == 1
    assert summary.spent_usd == pytest.approx(sum(
        tokens * PRICES.prompt + said * PRICES.completion
        for tokens, said in grid.rows("select prompt_tokens, completion_tokens from reply")  # type: ignore[misc]
    ))  # fmt: skip
    run(grid, provider, batch=True)
    assert len(provider.batches) == 1


def test_a_batch_handed_in_by_an_owner_that_stopped_is_collected_and_not_paid_again(
    provider: Provider, tmp_path: Path
) -> None:
    provider.batch_polls_until_done = 10**9
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True)
    waiting = runner(grid, provider, batch=True)

    async def stopped() -> Summary:
        asyncio.get_running_loop().call_later(2.0, waiting.stop)
        return await waiting.run()

    assert asyncio.run(stopped()).status == "paused"
    assert grid.states() == {"pending": 4}
    assert len(provider.batches) == 1
    provider.batch_polls_until_done = 1
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert len(provider.batches) == 1


class Dies(RunStore):
    """A store whose process is killed in the middle of its work: it has no time for a farewell."""

    def end(
        self, status: RunStatus, message: str = "", *, is_by_person: bool = False, is_whole: bool = True
    ) -> RunStatus:
        kill(self)
        raise OSError("killed here")


class DiesBeforeTheNote(Dies):
    def note_batch(self, model: str, batch_id: str, sendings: Sequence[Sending]) -> None:
        raise OSError("killed here")


class DiesBeforeItCollects(Dies):
    def collect(self, batch_id: str, paid: Sequence[Paid]) -> None:
        raise OSError("killed here")


def killed(grid: Grid, dying: Runner, store: type[Dies]) -> None:
    dying.store = store(grid.engine, grid.run_key)
    with pytest.raises(OSError, match="killed here"):
        asyncio.run(dying.run())


def test_a_batch_whose_owner_died_before_noting_it_is_counted_and_can_be_left_alone(
    provider: Provider, tmp_path: Path
) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True, ask_again=False)
    killed(grid, runner(grid, provider, batch=True), DiesBeforeTheNote)
    assert grid.watch()["unanswered"] == 4
    assert run(grid, provider, batch=True).states == {"error": 4}
    assert len(provider.batches) == 1  # the one that nobody knows of
    assert want_failed_again(grid.engine, grid.run_key) == 4
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert (len(provider.batches), grid.watch()["unanswered"]) == (2, 4)


def test_of_a_batch_that_was_refused_nothing_is_perhaps_paid(provider: Provider, tmp_path: Path) -> None:
    class Refused:
        async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str:
            raise ModelError("auth", "wrong key")

    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True, ask_again=False)
    refused = runner(grid, provider, batch=True)
    refused.models["openai/fake"] = replace(refused.models["openai/fake"], batch=Refused())  # type: ignore[arg-type]
    assert asyncio.run(refused.run()).status == "paused"
    assert (grid.states(), grid.watch()["unanswered"]) == ({"pending": 4}, 0)
    assert run(grid, provider, batch=True).states == {"scored": 4}


class Breaks:
    """A batch interface that takes a batch and then fails it as a whole."""

    async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str:
        return f"batch-{time.time_ns()}"

    async def poll_batch(self, batch_id: str) -> Mapping[str, ModelReply | ModelError] | None:
        raise ModelError("bad_request", "the batch failed validation")


def breaks(grid: Grid, provider: Provider) -> Runner:
    made = runner(grid, provider, batch=True)
    made.models["openai/fake"] = replace(made.models["openai/fake"], batch=Breaks())
    return made


def test_of_a_batch_that_failed_as_a_whole_nothing_is_perhaps_paid(provider: Provider, tmp_path: Path) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True, ask_again=False)
    assert asyncio.run(breaks(grid, provider).run()).states == {"error": 4}
    assert want_failed_again(grid.engine, grid.run_key) == 4
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert (grid.watch()["unanswered"], grid.watch()["unanswered_usd"]) == (0, 0.0)


def test_a_batch_that_cannot_be_asked_for_is_left_open_and_not_paid_again(provider: Provider, tmp_path: Path) -> None:
    class Away(Breaks):
        async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str:
            assert batch is not None
            return await batch.submit_batch(requests)

        async def poll_batch(self, batch_id: str) -> Mapping[str, ModelReply | ModelError] | None:
            raise ModelError("bad_request", "a page of HTML", is_unknown=True)

    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True)
    made = runner(grid, provider, batch=True)
    batch = made.models["openai/fake"].batch
    made.models["openai/fake"] = replace(made.models["openai/fake"], batch=Away())
    summary = asyncio.run(made.run())
    assert (summary.status, summary.states) == ("paused", {"pending": 4})
    assert summary.message.endswith("cannot be fetched: a page of HTML")
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert (len(provider.batches), grid.watch()["unanswered"]) == (1, 0)


@pytest.mark.parametrize(("path", "kind"), [(None, "transient"), ("/html", "bad_request")])
def test_a_batch_that_was_not_heard_of_is_no_batch_that_failed(
    path: str | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no key")
    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        base = f"http://127.0.0.1:{server.server_port}/v1"
        if path is None:
            server.server_close()  # nobody listens
        else:
            threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ModelError) as told:
            asyncio.run(LitellmModel(name="openai/fake", api_base=base, timeout_s=3.0).poll_batch("batch-1"))
    assert (told.value.kind, told.value.is_unknown) == (kind, True)


class Page(http.server.BaseHTTPRequestHandler):
    """What a proxy answers while the provider is away."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>back soon</html>")

    def log_message(self, *_: object) -> None:
        pass


def test_of_a_dead_owner_s_batch_that_failed_nothing_is_perhaps_paid(provider: Provider, tmp_path: Path) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True, ask_again=False)
    killed(grid, breaks(grid, provider), DiesBeforeItCollects)
    assert asyncio.run(breaks(grid, provider).run()).states == {"error": 4}
    assert grid.watch()["unanswered"] == 0
    assert want_failed_again(grid.engine, grid.run_key) == 4
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert grid.watch()["unanswered"] == 0


def dies_after_the_note(grid: Grid, provider: Provider) -> None:
    """An owner hands in its first two cells and dies while it waits for them."""
    dying = runner(grid, provider, batch=True, batch_cells=2)
    dying.models["openai/fake"] = replace(dying.models["openai/fake"], batch=Waits(dying.models["openai/fake"].batch))
    killed(grid, dying, Dies)


class Waits(Breaks):
    """A batch interface whose owner dies while it waits for the batch."""

    def __init__(self, real: BatchModel | None) -> None:
        self.real = real

    async def submit_batch(self, requests: Mapping[str, ModelRequest]) -> str:
        assert self.real is not None
        return await self.real.submit_batch(requests)

    async def poll_batch(self, batch_id: str) -> Mapping[str, ModelReply | ModelError] | None:
        raise OSError("killed here")


def test_what_a_lost_batch_leaves_unanswered_is_not_what_the_next_one_was_to_answer(
    provider: Provider, tmp_path: Path
) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True)
    killed(grid, runner(grid, provider, batch=True, batch_cells=2), DiesBeforeTheNote)
    assert run(grid, provider, batch=True, batch_cells=2).states == {"scored": 4}
    assert len(provider.batches) == 3  # the lost one, its cells again, the other cells
    assert grid.watch()["unanswered"] == 2  # perhaps paid, and said
    assert grid.rows("select outcome, count(*) from request group by 1 order by 1") == [("answered", 4), ("unknown", 2)]


def test_the_batch_of_an_owner_that_died_is_collected_and_not_handed_in_again(
    provider: Provider, tmp_path: Path
) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True)
    dies_after_the_note(grid, provider)
    assert grid.watch()["unanswered"] == 0
    assert run(grid, provider, batch=True).states == {"scored": 4}
    assert len(provider.batches) == 2
    assert (grid.rows("select count(*) from reply"), grid.watch()["unanswered"]) == ([(4,)], 0)


def test_cells_in_a_batch_are_not_asked_one_by_one_meanwhile(provider: Provider, tmp_path: Path) -> None:
    grid = planned(tmp_path, 2, models=("openai/fake",), batch=True)
    dies_after_the_note(grid, provider)
    one_by_one = runner(grid, provider, batch=True)
    one_by_one.spec = replace(grid.spec, batch=False)
    assert asyncio.run(one_by_one.run()).states == {"scored": 4}
    assert (len(provider.batches), len(provider.log.requests)) == (1, 4)
    assert grid.rows("select count(*) from reply") == [(4,)]


# kill -9 --------------------------------------------------------------------------------------------------------


def kill_at_work(
    home: Path, grid: Grid, count: Callable[[], int], dice: random.Random, provider: Provider, *, batch: bool = False
) -> None:
    """Start an owner in a process of its own, and kill it some time after the provider has heard of it."""
    before, owner = count(), start_owner(home, grid.run_key, provider.base_url, batch=batch)
    while count() == before and owner.is_alive():
        time.sleep(0.002)
    time.sleep(dice.uniform(0.0, 0.4))
    owner.kill()
    owner.join()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.soak)])
def test_killed_anywhere_again_and_again_no_cell_is_lost_and_no_stored_reply_is_asked_for_again(
    provider: Provider, tmp_path: Path, kills: int
) -> None:
    dice = random.Random(kills)
    provider.script = lambda request: Answer(text=verdict(request.number % 4), after_s=dice.uniform(0.0, 0.15))
    cells = 12 * kills
    grid = planned(tmp_path, cells // 3, rubrics=("LC", "EE", "PQ"), models=("openai/fake",), concurrency=6)
    for _ in range(kills):
        kill_at_work(tmp_path, grid, lambda: len(provider.log.requests), dice, provider)
    assert "pending" in grid.states() or "running" in grid.states(), (
        "it ended before the last kill: give it more traces"
    )
    final = start_owner(tmp_path, grid.run_key, provider.base_url)
    final.join(240)
    assert final.exitcode == 0
    assert grid.states() == {"scored": cells}  # each cell in exactly one state, none lost
    assert grid.watch()["status"] == "done"
    twice = grid.rows("select cell_key from reply group by cell_key having count(*) > 1")
    assert twice == []  # no reply paid twice
    assert grid.rows("select count(*) from cell c join reply r using (cell_key) where c.score is null") == [(0,)]
    lost_in_flight = len(provider.log.completed) - cells
    unknown = int(str(grid.watch()["unanswered"]))
    assert 0 <= lost_in_flight <= unknown  # each answer on its way to a process that no longer was is counted
    assert unknown <= 6 * kills  # and at most `concurrency` of them a kill
    recorded = grid.rows("select count(*), count(outcome) from request")
    assert recorded == [(cells + unknown, cells + unknown)]  # whatever went out, with what came of it
    assert len(provider.log.requests) <= cells + unknown
    assert_nothing_was_asked_after_it_was_stored(grid, provider)


def assert_nothing_was_asked_after_it_was_stored(grid: Grid, provider: Provider) -> None:
    stored = {
        (int(str(trace_id), 16), str(judge)): int(str(at)) / 1e6
        for trace_id, judge, at in grid.rows(
            "select trace_id, rubric, created_at from reply join cell using (cell_key)"
        )
    }
    for request, at in zip(provider.log.requests, provider.log.times, strict=True):
        judge = next(key for key in ("LC", "EE", "PQ") if f"({key})" in request.prompt)
        assert at <= stored[trace_number(request), judge]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.soak)])
def test_owners_of_batches_killed_anywhere_lose_no_cell_and_collect_no_answer_twice(
    provider: Provider, tmp_path: Path, kills: int
) -> None:
    dice = random.Random(kills)
    provider.batch_polls_until_done = 3
    cells = 24 * kills
    grid = planned(tmp_path, cells // 3, rubrics=("LC", "EE", "PQ"), models=("openai/fake",), batch=True)
    for _ in range(kills):
        kill_at_work(tmp_path, grid, lambda: len(provider.batches), dice, provider, batch=True)
    assert "pending" in grid.states(), "the run ended before the last kill: give it more traces"
    final = start_owner(tmp_path, grid.run_key, provider.base_url, batch=True)
    final.join(400)
    assert final.exitcode == 0
    assert grid.states() == {"scored": cells}  # each cell in exactly one state, none lost
    assert grid.watch()["status"] == "done"
    assert grid.rows("select count(*) from reply") == [(cells,)]
    assert len(provider.log.completed) == cells  # what was answered is what was stored
    noted = {str(name) for (name,) in grid.rows("select batch_id from batch where collected_at is not null")}
    lost = {name: batch for name, batch in provider.batches.items() if name not in noted}
    sent = sum(len(provider.files[batch["input_file_id"]].splitlines()) for batch in lost.values())
    unknown = int(str(grid.watch()["unanswered"]))
    assert sent <= unknown  # whatever nobody will collect is counted as perhaps paid
    recorded = grid.rows("select count(*), count(outcome) from request")
    assert recorded == [(cells + unknown, cells + unknown)]
