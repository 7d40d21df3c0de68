"""Who answers in an execution: parameters, retries, refused parameters, budget, scripts; no key reaches a worker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tracejury.ingest.trace import Json
from tracejury.judging.gaia2.answers import Answerer, ScriptChat, Spending, model_label, script_digest, script_replies
from tracejury.judging.gaia2.environment import Gaia2Error, scrubbed
from tracejury.judging.gaia2.settings import ExecutionSettings
from tracejury.judging.judges.model import ModelError, ModelReply, Prices

QUESTION: dict[str, Json] = {"ask": "agent", "messages": [{"role": "user", "content": "go"}], "stop": ["Observation:"]}
REPLY = ModelReply(text="Thought", prompt_tokens=100, completion_tokens=10, latency_s=2.5)


class Recorder:
    """A model that notes what it is sent and answers from a list; an error in the list is raised."""

    def __init__(self, *answers: ModelReply | ModelError) -> None:
        self.answers, self.sent = list(answers), list[Mapping[str, Json]]()

    def __call__(self, messages: Sequence[Mapping[str, Json]], parameters: Mapping[str, Json]) -> ModelReply:
        self.sent.append(dict(parameters))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, ModelError):
            raise answer
        return answer


def settings(**changes: object) -> ExecutionSettings:
    return ExecutionSettings(**{"model": "m", "judge_model": "j", **changes})  # type: ignore[arg-type]


def test_temperature_max_tokens_stop_and_seed_arrive_at_the_model() -> None:
    model = Recorder(REPLY)
    parameters = settings(seed=7).parameters("s", 2)
    answer = Answerer(agent=model, judge=None, parameters=parameters)(QUESTION)
    seed = parameters["seed"]
    assert model.sent == [{"temperature": 0.5, "max_tokens": 16384, "seed": seed, "stop": ["Observation:"]}]
    assert answer["usage"] == {"prompt_tokens": 100, "completion_tokens": 10}
    assert (answer["text"], answer["seconds"]) == ("Thought", 2.5)


def test_each_scenario_and_repeat_has_a_seed_of_its_own() -> None:
    given = settings(seed=7)
    seeds = [given.parameters(name, repeat)["seed"] for name in ("a", "b") for repeat in (1, 2)]
    assert len(set(map(str, seeds))) == 4
    assert given.parameters("a", 1) == given.parameters("a", 1)


def test_parameters_set_to_none_are_left_out() -> None:
    assert settings(temperature=None, max_tokens=None).parameters("s", 1) == {}


def test_a_refused_parameter_is_left_out_from_then_on_and_named() -> None:
    model = Recorder(ModelError("rejected_parameter", "no temperature", parameter="temperature"), REPLY)
    answerer = Answerer(agent=model, judge=None, parameters={"temperature": 0.5, "max_tokens": 9})
    assert answerer(QUESTION)["text"] == "Thought"
    assert answerer(QUESTION)["text"] == "Thought"
    assert ["temperature" in sent for sent in model.sent] == [True, False, False]
    assert answerer.dropped == {"temperature"}


def test_what_the_judge_refuses_is_still_sent_to_the_agent() -> None:
    judge = Recorder(ModelError("rejected_parameter", "no temperature", parameter="temperature"), REPLY)
    agent = Recorder(REPLY)
    answerer = Answerer(agent=agent, judge=judge, parameters={"temperature": 0.5})
    answerer({"ask": "judge", "messages": []})
    answerer({"ask": "agent", "messages": []})
    assert (agent.sent, answerer.judge_dropped, answerer.dropped) == ([{"temperature": 0.5}], {"temperature"}, set())


def test_calls_side_by_side_stay_within_the_budget_together() -> None:
    spending = Spending(limit_usd=1.0)
    assert [spending.reserve(0.6), spending.reserve(0.6)] == [True, False]
    spending.settle(0.6, 0.1)
    assert spending.reserve(0.6)
    assert spending.spent_usd == pytest.approx(0.1)


def test_an_error_that_passes_is_asked_again_and_one_that_stays_is_told() -> None:
    waits: list[float] = []
    model = Recorder(ModelError("rate_limit", "slow down", retry_after_s=3.0), REPLY)
    assert "text" in Answerer(agent=model, judge=None, parameters={}, sleep=waits.append)(QUESTION)
    assert waits == [3.0]
    broken = Answerer(agent=Recorder(ModelError("bad_request", "no")), judge=None, parameters={}, sleep=waits.append)
    assert broken(QUESTION) == {"error": "no"}
    assert broken.errors == ["no"]


@pytest.mark.parametrize(("ask", "status"), [("agent", "setup_failed"), ("judge", "judge_failed")])
def test_a_missing_key_ends_the_execution(ask: str, status: str) -> None:
    model = Recorder(ModelError("auth", "no key"))
    answer = Answerer(agent=model, judge=model, parameters={})({**QUESTION, "ask": ask})
    assert answer == {"error": "no key", "end": status}


def test_the_budget_stops_before_the_next_call() -> None:
    """A call costs 100 x 1e-3 + 10 x 1e-3 = $0.11; the next may cost as much for its answer alone."""
    model = Recorder(REPLY)
    spending = Spending(limit_usd=0.12)
    prices = Prices(prompt=1e-3, completion=1e-3)
    given = {"agent": model, "judge": None, "parameters": {"max_tokens": 50}, "prices": prices, "spending": spending}
    answerer = Answerer(**given)  # type: ignore[arg-type]
    assert answerer(QUESTION)["cost_usd"] == pytest.approx(0.11)
    assert answerer(QUESTION)["end"] == "stopped"
    assert (len(model.sent), spending.spent_usd) == (1, pytest.approx(0.11))
    assert (answerer.tokens, answerer.cost_usd) == (110, pytest.approx(0.11))


def test_the_judge_has_parameters_and_counts_of_its_own() -> None:
    judge = Recorder(REPLY)
    answerer = Answerer(agent=Recorder(REPLY), judge=judge, parameters={"temperature": 0.5, "max_tokens": 9})
    answerer({"ask": "judge", "messages": []})
    assert judge.sent == [{"temperature": 0.0}]
    assert (answerer.tokens, answerer.judge_tokens) == (0, 110)


def test_a_script_answers_in_order_then_with_its_last_and_fills_in_ids() -> None:
    script = ScriptChat(["one", "id {{event_id}}"])
    messages: list[dict[str, Json]] = [{"role": "user", "content": "CalendarEvent(event_id='e-1', title='x')"}]
    assert [script(messages, {}).text for _ in range(3)] == ["one", "id e-1", "id e-1"]


def test_a_script_that_cannot_be_read_is_named_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Gaia2Error, match="Try: a JSON list"):
        script_replies(f"script:{tmp_path / 'gone.json'}")
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(Gaia2Error, match="holds no replies"):
        script_replies(f"script:{tmp_path / 'empty.json'}")


def test_other_replies_are_other_settings_and_no_path_stands_in_a_trace(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps([name]))
    first, second = (script_digest(f"script:{tmp_path / name}.json", None) for name in ("a", "b"))
    assert first != second
    assert settings(script=first).hash != settings(script=second).hash
    assert model_label(f"script:{tmp_path / 'a.json'}") == "script:a"


def test_a_worker_gets_no_key_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "TRACEJURY_DATABASE"):
        monkeypatch.setenv(name, "secret")
    assert "secret" not in scrubbed(HOME="/nowhere").values()
