"""Runs one scenario of GAIA2 in ARE's own environment: `<are-env>/bin/python -I worker.py job.json`.

Standard library and ARE alone. What a model answers comes from the parent process: one JSON line a question on
standard output, one JSON line an answer on standard input; keys, prices and limits stay there. Everything else goes
to files of the execution's folder: `live.jsonl` (a line a log entry, as it comes), the trace in `trace/`,
`judge_calls.jsonl`, and last `result.json`, renamed into place when all else is written.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

_MARK = re.compile(r"\[\[\s*(true|false|success|failure)\s*\]\]", re.IGNORECASE)
_ROLES = {"tool-response": "user", "tool-call": "assistant"}
_SUPERVISOR_SIGNAL = signal.SIGUSR1


class EndExecutionError(BaseException):
    """The execution ends now, with this status. No `Exception`: the agent's loop would log those and go on."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class Parent:
    """The process that asks models for us. Questions of agent and judge may be under way at the same time."""

    def __init__(self) -> None:
        # ARE prints to standard output: the channel moves to a descriptor of its own, prints go to the log.
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._sending = threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._next = 0
        threading.Thread(target=self._listen, name="answers", daemon=True).start()

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The parent's answer. Raises `EndExecutionError` where the parent says that the execution ends."""
        answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        with self._sending:
            self._next += 1
            number = self._next
            self._answers[number] = answers
            self._out.write(json.dumps({**question, "id": number}) + "\n")
            self._out.flush()
        answer = answers.get()
        if answer.get("end"):
            raise EndExecutionError(str(answer["end"]), str(answer.get("error", "")))
        return answer

    def _listen(self) -> None:
        for line in sys.stdin:
            answer = json.loads(line)
            waiting = self._answers.pop(answer["id"], None)
            if waiting is not None:
                waiting.put(answer)
        os.kill(os.getpid(), signal.SIGTERM)  # the parent is gone: keep the partial trace and end


class Live:
    """Where the execution stands, from its log entries; each is a line of `live.jsonl` at once.

    Turns and steps count from 0, as in the span table. A message to the user ends a turn.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self.turn: int | None = None
        self.step: int | None = None
        self._is_between = True
        self.clock: float | None = None
        self.tool: str | None = None

    def add(self, log: Any) -> None:
        try:
            line = log.serialize()
        except Exception:  # a value that JSON cannot hold: the live view misses it, the trace does not
            return
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()
            self._note(json.loads(line))

    def _note(self, entry: dict[str, Any]) -> None:
        kind = entry.get("log_type")
        if isinstance(entry.get("timestamp"), int | float):
            self.clock = entry["timestamp"]
        if kind == "step":
            self.step = 0 if self.step is None else self.step + 1
        elif kind == "tool_call":
            self.tool = entry.get("tool_name")
            self._is_between |= str(self.tool).endswith("__send_message_to_user")
        elif kind == "task" and self._is_between:  # after a wait the agent gets a task too, in the same turn
            self.turn = 0 if self.turn is None else self.turn + 1
            self._is_between = False

    def state(self) -> dict[str, Any]:
        return {"turn": self.turn, "step": self.step, "clock": self.clock, "last_tool": self.tool}


def plain_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message as chat models take it, images of the environment in it."""
    role = getattr(message["role"], "value", message["role"])
    content: Any = message.get("content", "")
    images = [one.to_openai_json() for one in message.get("attachments") or [] if one.mime.startswith("image/")]
    if images:
        content = [*([{"type": "text", "text": content}] if content else []), *images]
    return {"role": _ROLES.get(role, role), "content": content}


def usage_of(answer: dict[str, Any]) -> dict[str, Any]:
    """What ARE logs of a call: 0 where the provider does not count."""
    usage = answer.get("usage") or {}
    counts = {name: int(usage.get(name) or 0) for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens")}
    total = counts["prompt_tokens"] + counts["completion_tokens"]
    return {**counts, "total_tokens": total, "completion_duration": float(answer.get("seconds") or 0.0)}


def expected_words(messages: list[dict[str, Any]]) -> dict[str, str]:
    """The verdicts that a judge's prompt asks for, each as the prompt writes it; none for another question."""
    system = next((str(one["content"]) for one in messages if one["role"] == "system"), "")
    return {word.lower(): f"[[{word}]]" for word in _MARK.findall(system)}


def verdict_in(text: str, expected: dict[str, str]) -> str | None:
    """The one expected verdict that an answer gives; None where it gives none, or several and no evaluation line."""
    for part in (text.rpartition("Evaluation:")[2], text):
        words = {word.lower() for word in _MARK.findall(part)} & expected.keys()
        if len(words) == 1:
            return expected[words.pop()]
    return None


def make_engines(parent: Parent, live: Live, job: dict[str, Any]) -> tuple[Any, Any]:
    """The agent's engine and the judge's. Both ask the parent; the judge's reads verdicts in any case of letters."""
    from are.simulation.agents.llm.llm_engine import LLMEngine, LLMEngineException

    calls = Path(job["folder"]) / "judge_calls.jsonl"

    class AgentEngine(LLMEngine):
        def chat_completion(self, messages: Any, stop_sequences: Any = (), **_: Any) -> tuple[str, dict[str, Any]]:
            question = {"ask": "agent", "messages": list(map(plain_message, messages)), "stop": list(stop_sequences)}
            answer = parent.ask({**question, **live.state()})
            if "error" in answer:
                raise LLMEngineException(answer["error"])
            text = str(answer["text"])
            for stop in stop_sequences:
                text = text.split(stop)[0]
            # ARE's own engine does so, for agents that write Python's words into JSON.
            return text.replace("False", "false").replace("True", "true"), usage_of(answer)

    class JudgeEngine(LLMEngine):
        def chat_completion(self, messages: Any, stop_sequences: Any = (), **_: Any) -> tuple[str, dict[str, Any]]:
            sent = list(map(plain_message, messages))
            expected = expected_words(sent)
            for attempt in range(2):
                question = {"ask": "judge", "messages": sent, "stop": list(stop_sequences), **live.state()}
                try:
                    answer = parent.ask(question)
                except EndExecutionError as ended:
                    self._keep(sent, {"error": ended.message}, None, attempt)
                    raise
                verdict = verdict_in(str(answer.get("text", "")), expected) if expected else None
                self._keep(sent, answer, verdict, attempt)
                if "error" in answer:
                    raise EndExecutionError("judge_failed", f"the judge's model gave no answer: {answer['error']}")
                if not expected:
                    return str(answer["text"]), usage_of(answer)
                if verdict is not None:
                    return _MARK.sub("", str(answer["text"])) + verdict, usage_of(answer)
            words = " nor ".join(expected.values())
            raise EndExecutionError(
                "judge_failed", f"the judge's answer holds neither {words}, though it was asked twice"
            )

        def _keep(self, sent: Any, answer: Any, verdict: str | None, attempt: int) -> None:
            row = {"messages": sent, "answer": answer, "verdict": verdict, "attempt": attempt}
            with calls.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    return AgentEngine(job["model"]), JudgeEngine(job.get("judge_model") or "none")


def stock_judge_engine(reply: str) -> Any:
    """ARE's own judge engine, with litellm's mock for a model that always answers this (for the proof)."""
    from are.simulation.agents.are_simulation_agent_config import LLMEngineConfig
    from are.simulation.validation.configs import create_judge_engine

    engine = create_judge_engine(LLMEngineConfig(model_name="gpt-4o-mini", provider="openai"))
    engine.mock_response = reply
    return engine


def keep_prompts() -> None:
    """ARE renders the prompts of its judge anew for each tool that it checks, a second and a half of CPU time: once is
    enough, as what is made of texts alone is always the same."""
    try:
        from are.simulation.validation.utils import llm_utils

        render = llm_utils.jinja_format
    except (ImportError, AttributeError):  # another ARE than the locked one: it takes its time
        return
    made: dict[Any, str] = {}

    def rendered(template: str, skip_validation: bool = True, **values: Any) -> str:
        if not all(isinstance(value, str) for value in values.values()):
            return str(render(template, skip_validation, **values))
        key = (template, skip_validation, tuple(sorted(values.items())))
        if key not in made:
            made[key] = render(template, skip_validation, **values)
        return made[key]

    llm_utils.jinja_format = rendered


def load_scenario(job: dict[str, Any], judge_engine: Any) -> Any:
    """The scenario, ready to run. Raises whatever ARE raises for one that it cannot read."""
    from are.simulation.data_handler.importer import JsonScenarioImporter
    from are.simulation.scenarios.scenario_imported_from_json.utils import get_scenario_duration, preprocess_scenario
    from are.simulation.validation.configs import GraphPerEventJudgeConfig

    text = Path(job["scenario"]).read_text(encoding="utf-8")
    scenario, _, _ = JsonScenarioImporter().import_from_json_to_benchmark(
        text, apps_to_skip=["SandboxLocalFileSystem"], load_completed_events=False
    )
    scenario.run_number, scenario.config = job["repeat"], job["capability"]
    if job["oracle"]:
        scenario.initialize()
        scenario.patch_oracle_user_message_order()
        return scenario
    noise = noise_config(job)
    preprocess_scenario(
        scenario,
        judge_config=GraphPerEventJudgeConfig(engine=judge_engine) if job.get("judge_model") else None,
        max_scenario_duration=get_scenario_duration(scenario, min(420, job["duration"]), job["duration"]),
        **noise,
    )
    return scenario


def noise_config(job: dict[str, Any]) -> dict[str, Any]:
    """The benchmark's noise: failing tools and ten events of the environment a minute, as in GAIA2's noise phase."""
    if not job["noise"]:
        return {}
    from are.simulation.scenarios.utils.scenario_expander import EnvEventsConfig
    from are.simulation.types import ToolAugmentationConfig

    return {
        "tool_augmentation_config": ToolAugmentationConfig(),
        "env_events_config": EnvEventsConfig(num_env_events_per_minute=10, env_events_seed=0),
    }


def make_runner(job: dict[str, Any], live: Live, engine: Any, seen: dict[str, Any]) -> Any:
    """ARE's scenario runner with our engine, our limit of iterations, and every log entry told as it comes."""
    from are.simulation import scenario_runner
    from are.simulation.agents.agent_builder import AgentBuilder, AppAgentBuilder

    class Engines:
        def create_engine(self, engine_config: Any, mock_responses: Any = None) -> Any:
            return engine

    class Builder(AgentBuilder):
        def build(self, agent_config: Any, env: Any = None, mock_responses: Any = None) -> Any:
            agent = super().build(agent_config, env, mock_responses)
            agent.max_iterations = agent.react_agent.max_iterations = job["max_iterations"]
            return agent

    plain_environment = scenario_runner.Environment

    class WatchedEnvironment(plain_environment):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            seen["env"] = self

        def append_to_world_logs(self, world_log: Any) -> None:
            super().append_to_world_logs(world_log)
            live.add(world_log)

        def append_world_logs(self, log: Any) -> None:
            super().append_world_logs(log)
            live.add(log)

    scenario_runner.Environment = WatchedEnvironment

    class Runner(scenario_runner.ScenarioRunner):
        def _export_trace(self, env: Any, scenario: Any, *args: Any, **kwargs: Any) -> str | None:
            seen["env"], seen["run_duration"] = env, args[3] if len(args) > 3 else kwargs.get("run_duration")
            return None

    return Runner(
        agent_builder=Builder(llm_engine_builder=Engines()),
        app_agent_builder=AppAgentBuilder(llm_engine_builder=Engines()),
    )


def runner_config(job: dict[str, Any], scenario: Any) -> Any:
    from are.simulation.agents.are_simulation_agent_config import LLMEngineConfig
    from are.simulation.scenarios.config import ScenarioRunnerConfig

    judge = job.get("judge_model")
    return ScenarioRunnerConfig(
        model=job["model"],
        model_provider=None,
        agent=None if job["oracle"] else "default",
        oracle=job["oracle"],
        export=True,
        output_dir=None,
        max_turns=scenario.nb_turns,
        trace_dump_format="both",
        use_custom_logger=False,
        a2a_app_prop=1.0 if job["agent_to_agent"] else 0.0,
        a2a_model=job["model"] if job["agent_to_agent"] else None,
        simulated_generation_time_mode=job["time"],
        judge_engine_config=None if judge is None else LLMEngineConfig(model_name=judge),
        max_scenario_duration=job["duration"],
        max_time_scenario_duration=min(420, job["duration"]),
        **noise_config(job),
    )


def export(job: dict[str, Any], seen: dict[str, Any], scenario: Any, config: Any, result: dict[str, Any]) -> None:
    """The trace in ARE's three forms, under the execution's own name."""
    from are.simulation.data_handler.exporter import JsonScenarioExporter

    env, exporter = seen.get("env"), JsonScenarioExporter()
    if env is None:
        return
    decision = "Valid" if result["success"] is True else "Invalid"
    agent = config.agent
    common = {"scenario_exception": result["raised"], "export_apps": getattr(scenario, "hf_metadata", None) is None}
    arguments = (env, scenario, scenario.scenario_id, config, job["model"], agent, decision)
    forms = {
        "hf": lambda: exporter.export_to_json(*arguments, **common),
        "gui": lambda: exporter.export_to_json(*arguments, world_logs=env.get_world_logs(), **common),
        "lite": lambda: exporter.export_to_json_lite(
            env,
            scenario,
            scenario.scenario_id,
            job["model"],
            agent,
            decision,
            result["rationale"],
            run_duration=seen.get("run_duration"),
        ),
    }
    for form, make in forms.items():
        try:
            write(Path(job["folder"]) / "trace" / form / f"{job['name']}.json", make())
        except Exception:
            traceback.print_exc()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def watch(stop: dict[str, Any]) -> None:
    """End the execution on SIGTERM, or where the environment's thread dies: ARE's loop would wait for it for ever."""

    def end(number: int, _frame: Any) -> None:
        if stop.get("ended"):
            return
        stop["ended"] = True
        raise stop.get("error") or EndExecutionError("stopped", "ended by a signal")

    def thread_died(args: Any) -> None:
        sys.__excepthook__(args.exc_type, args.exc_value, args.exc_traceback)
        if args.thread is None or args.thread.name != "EventLoop":
            return
        raised = args.exc_value
        told = f"{args.exc_type.__name__}: {raised}"
        known = raised if isinstance(raised, EndExecutionError) else None
        stop["error"] = known or EndExecutionError(_who_failed(args.exc_traceback, stop), told)
        signal.pthread_kill(threading.main_thread().ident or 0, _SUPERVISOR_SIGNAL)

    signal.signal(signal.SIGTERM, end)
    signal.signal(_SUPERVISOR_SIGNAL, end)
    threading.excepthook = thread_died


def _who_failed(frames: Any, stop: dict[str, Any]) -> str:
    """Whose failure ended the environment's thread: the set-up's, the judge's (it runs there), or its own."""
    if not stop.get("set_up"):
        return "setup_failed"
    files = {frame.filename.replace("\\", "/") for frame in traceback.extract_tb(frames)}
    return "judge_failed" if any("/simulation/validation/" in file for file in files) else "environment_error"


def run(job: dict[str, Any]) -> dict[str, Any]:
    """What came of the execution: the status in ARE's words and, where we ended it, in ours."""
    folder, stop, seen = Path(job["folder"]), {}, {}  # type: Path, dict[str, Any], dict[str, Any]
    parent, live = Parent(), Live(folder / "live.jsonl")
    result: dict[str, Any] = {"success": None, "rationale": None, "raised": None, "execution_status": None}
    scenario: Any = None
    config: Any = None
    watch(stop)
    try:
        agent_engine, judge_engine = make_engines(parent, live, job)
        if job.get("stock_judge_reply"):
            judge_engine = stock_judge_engine(job["stock_judge_reply"])
        keep_prompts()
        scenario = load_scenario(job, judge_engine)
        config = runner_config(job, scenario)
        runner = make_runner(job, live, agent_engine, seen)
        stop["set_up"] = True
        validation = runner.run(config, scenario)
        result |= {
            "success": validation.success,
            "rationale": validation.rationale,
            "raised": validation.exception,
            "seconds": validation.duration,
        }
        judge = getattr(scenario, "judge", None)
        result["judge_errors"] = [str(one) for one in getattr(judge, "error_logs", None) or []]
    except EndExecutionError as ended:
        result |= {"execution_status": ended.status, "raised": RuntimeError(ended.message), "success": None}
    except Exception as error:
        traceback.print_exc()
        result |= {"execution_status": "setup_failed", "raised": error}
    stop["ended"] = True
    if scenario is not None and config is not None:
        try:
            export(job, seen, scenario, config, result)
        except Exception:
            traceback.print_exc()
    return {**result, **live.state(), "turns": getattr(scenario, "nb_turns", None)}


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    result = run(job)
    raised = result.pop("raised")
    result |= {
        "exception_type": None if raised is None else type(raised).__name__,
        "exception_message": None if raised is None else str(raised),
    }
    write(Path(job["folder"]) / "result.json", json.dumps(result, default=str))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads of the environment never end by themselves


if __name__ == "__main__":
    main()
