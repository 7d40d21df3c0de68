"""Makes data/samples/gaia2 by running ARE 1.2.0 with a scripted model on a small scenario of ours.

ARE's simulated clock moves with the machine's real one, so a second run gives the same rows with other ids
and times. Usage: `python run_are.py` in an environment with ARE (see README.md here).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from are.simulation.agents.agent_builder import AgentBuilder
from are.simulation.agents.llm.llm_engine import LLMEngine
from are.simulation.apps.agent_user_interface import AgentUserInterface
from are.simulation.apps.calendar import CalendarApp
from are.simulation.apps.email_client import Email, EmailClientApp
from are.simulation.apps.system import SystemApp
from are.simulation.benchmark.hf_upload_utils import build_trace_rows
from are.simulation.data_handler.exporter import JsonScenarioExporter
from are.simulation.scenario_runner import ScenarioRunner
from are.simulation.scenarios.config import MultiScenarioRunnerConfig, ScenarioRunnerConfig
from are.simulation.scenarios.scenario import Scenario, ScenarioValidationResult
from are.simulation.scenarios.validation_result import MultiScenarioValidationResult
from are.simulation.types import EventRegisterer
from paths import SAMPLES

GAIA2 = SAMPLES / "gaia2"
START = 1_772_524_800.0  # 2026-03-03 08:00 UTC, on the simulated clock
TITLE = "Boat to Ness"
RIGHT, WRONG = ("2026-03-04 07:10:00", "2026-03-04 07:45:00"), ("2026-03-04 07:40:00", "2026-03-04 08:15:00")


class HarbourDesk(Scenario):
    """The user asks for a calendar entry; the timetable arrives by e-mail a little later."""

    def init_and_populate_apps(self, *args: Any, **kwargs: Any) -> None:
        mail = EmailClientApp()
        mail.user_email = "user@example.com"
        self.apps = [AgentUserInterface(), CalendarApp(), mail, SystemApp()]

    def build_events_flow(self) -> None:
        user, calendar = self.get_typed_app(AgentUserInterface), self.get_typed_app(CalendarApp)
        mail = self.get_typed_app(EmailClientApp)
        with EventRegisterer.capture_mode():
            asked = user.send_message_to_agent(
                content=f"The harbour office will mail you the winter timetable. Put the first boat to Ness tomorrow "
                f"into my calendar as '{TITLE}', from departure to arrival, and tell me the times."
            ).depends_on(None, delay_seconds=2)
            mailed = mail.send_email_to_user(
                email=Email(
                    sender="office@example.com",
                    recipients=[mail.user_email],
                    subject="Winter timetable",
                    content="Boats to Ness leave at 07:10, 11:40 and 16:20. The crossing takes 35 minutes.",
                    email_id="timetable",
                )
            ).depends_on(asked, delay_seconds=5)
            entered = (
                calendar.add_calendar_event(title=TITLE, start_datetime=RIGHT[0], end_datetime=RIGHT[1])
                .oracle()
                .depends_on(mailed, delay_seconds=2)
            )
            told = (
                user.send_message_to_user(content="The boat leaves at 07:10 and arrives at 07:45.")
                .oracle()
                .depends_on(entered, delay_seconds=1)
            )
        self.events = [asked, mailed, entered, told]

    def validate(self, env: Any) -> ScenarioValidationResult:
        entries = env.get_app("CalendarApp").events.values()
        starts = [entry.start_strftime for entry in entries if entry.title == TITLE]
        if any("07:10" in start for start in starts):
            return ScenarioValidationResult(success=True)
        rationale = f"Failure: no calendar entry '{TITLE}' that starts at 07:10; found {starts}"
        return ScenarioValidationResult(success=False, rationale=rationale)


def action(thought: str, tool: str, **arguments: Any) -> str:
    call = json.dumps({"action": tool, "action_input": arguments}, indent=2)
    return f"Thought: {thought}\n\nAction:\n{call}\n"


def replies(times: tuple[str, str]) -> list[str]:
    return [
        action(
            "I need the timetable before I can make the entry. I look into the inbox.",
            "EmailClientApp__list_emails",
            folder_name="INBOX",
        ),
        action(
            "The timetable has not come yet, so I wait for it.",
            "SystemApp__wait_for_notification",
            timeout=20,
        ),
        action(
            "The mail should have come by now. I open it.",
            "EmailClientApp__get_email_by_id",
            email_id="timetable.eml",
            folder_name="INBOX",
        ),
        action(
            "I guessed the id and no mail has it. I list the inbox to see the right one.",
            "EmailClientApp__list_emails",
            folder_name="INBOX",
        ),
        action(
            "The mail is there. I open it by its id.",
            "EmailClientApp__get_email_by_id",
            email_id="timetable",
            folder_name="INBOX",
        ),
        action(
            "The first boat is found. I enter it from departure to arrival.",
            "CalendarApp__add_calendar_event",
            title=TITLE,
            start_datetime=times[0],
            end_datetime=times[1],
        ),
        action(
            "The entry is made, so I tell the user.",
            "AgentUserInterface__send_message_to_user",
            content=f"The first boat to Ness leaves at {times[0][11:16]} and arrives at {times[1][11:16]}.",
        ),
    ]


class ScriptedEngine(LLMEngine):
    def __init__(self, texts: list[str]) -> None:
        super().__init__("scripted/harbour-1")
        self.texts = list(texts)

    def chat_completion(
        self, messages: list[dict[str, Any]], stop_sequences: list[str] | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        text = self.texts.pop(0)
        read, written = sum(len(str(message["content"])) for message in messages) // 4, len(text) // 4
        return text, {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "reasoning_tokens": 0,
            "completion_duration": 1.0,
        }


class ScriptedEngines:
    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def create_engine(self, engine_config: Any, mock_responses: Any = None) -> LLMEngine:
        return ScriptedEngine(self.texts)


class ExportingRunner(ScenarioRunner):
    """Writes the gui form too, which only ARE's graphical interface does."""

    def _export_trace(self, env: Any, scenario: Any, *rest: Any, **options: Any) -> Any:
        model_id, agent_id, result, _, runner_config = rest
        path = super()._export_trace(env, scenario, *rest, **options)
        text = JsonScenarioExporter().export_to_json(
            env,
            scenario,
            scenario.scenario_id,
            runner_config=runner_config,
            model_id=model_id,
            agent_id=agent_id,
            validation_decision="Valid" if result.success else "Invalid",
            world_logs=env.world_logs,
            scenario_exception=result.exception,
        )
        gui = Path(path).parents[1] / "gui" / Path(path).name
        gui.parent.mkdir(exist_ok=True)
        gui.write_text(text, encoding="utf-8")
        return path


def run(name: str, times: tuple[str, str], forms: tuple[str, ...]) -> None:
    scenario = HarbourDesk()
    scenario.scenario_id = f"harbour_desk_{name}"
    scenario.start_time, scenario.duration, scenario.time_increment_in_seconds = START, 120, 1
    scenario.initialize()
    settings: dict[str, Any] = {
        "model": "scripted/harbour-1",
        "model_provider": "scripted",
        "agent": "default",
        "export": True,
        "output_dir": "exports",
        "trace_dump_format": "both",
        "max_turns": 1,
        "simulated_generation_time_mode": "measured",
        "use_custom_logger": False,
    }
    builder = AgentBuilder(llm_engine_builder=ScriptedEngines(replies(times)))
    result = ExportingRunner(agent_builder=builder).run(ScenarioRunnerConfig(**settings), scenario)
    print(name, result.success, result.rationale, result.exception, result.export_path)
    (hf,) = Path("exports/hf").glob(f"{scenario.scenario_id}*.json")
    for form in set(forms) - {"row"}:
        copied = GAIA2 / form / hf.name
        copied.parent.mkdir(parents=True, exist_ok=True)
        text = (Path("exports") / form / hf.name).read_text(encoding="utf-8")
        copied.write_text(_without_machine(text), encoding="utf-8")
        print(form, copied.name, copied.stat().st_size)
    if "row" in forms:
        _write_row(scenario.scenario_id, result, settings)


def _write_row(scenario_id: str, result: ScenarioValidationResult, settings: dict[str, Any]) -> None:
    whole = MultiScenarioValidationResult(run_config=MultiScenarioRunnerConfig(**settings))
    (row,) = build_trace_rows({(scenario_id, 1): result}, ("standard", "adaptability", 0.0, False, False), whole)
    path = GAIA2 / "row" / f"{scenario_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_without_machine(json.dumps(row, indent=1)), encoding="utf-8")
    print("row", path.name, path.stat().st_size)


def _without_machine(text: str) -> str:
    """Stack traces without the paths of the machine that ran it."""
    return re.sub(r'(File \\+")[^"\\]*/(?:site-packages|python3\.\d+)/', r"\1", text)


def main() -> None:
    shutil.rmtree(GAIA2, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run("gui", RIGHT, ("gui",))
        run("pair", WRONG, ("hf", "lite"))
        run("row", WRONG, ("row",))


if __name__ == "__main__":
    main()
