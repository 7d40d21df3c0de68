"""The proof that stock ARE's judge engine hides `[[True]]`: one execution, judged by ARE's engine and by ours."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.values import text
from tracejury.ingest.trace import Json
from tracejury.judging.gaia2.answers import Answerer, ScriptChat
from tracejury.judging.gaia2.environment import AreEnvironment
from tracejury.judging.gaia2.process import WorkerProcess
from tracejury.judging.gaia2.scenarios import STAND_INS, read_scenarios

JUDGE_REPLY = "[[True]] [[Success]]"
_LIMIT_S = 180.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """What one engine makes of an execution that is right, with a judge that says so."""

    engine: str
    success: bool | None
    rationale: str | None


def prove(environment: AreEnvironment) -> list[Proof]:
    """The same scripted execution under both engines."""
    return [_judged(environment, name, is_stock=name == "ARE's") for name in ("ARE's", "ours")]


def _judged(environment: AreEnvironment, name: str, *, is_stock: bool) -> Proof:
    scenario = read_scenarios([STAND_INS], capabilities=["execution"], limit=1)[0]
    script = resources.files("tracejury.data").joinpath("gaia2/scripts/boat_entry.json").read_text(encoding="utf-8")
    answerer = Answerer(agent=ScriptChat(json.loads(script)), judge=ScriptChat([JUDGE_REPLY]), parameters={})
    with tempfile.TemporaryDirectory(prefix="tracejury-") as place:
        folder = Path(place)
        (folder / "scenario.json").write_text(scenario.text, encoding="utf-8")
        worker = WorkerProcess(environment.python, _job_document(folder, is_stock=is_stock), answerer)
        result = object_in(worker.wait(_LIMIT_S, lambda: False).result)
    success = result.get("success")
    rationale = text(result.get("rationale")) or text(result.get("exception_message"))
    return Proof(engine=name, success=success if isinstance(success, bool) else None, rationale=rationale)


def _job_document(folder: Path, *, is_stock: bool) -> dict[str, Json]:
    return {
        "folder": str(folder),
        "scenario": str(folder / "scenario.json"),
        "name": "proof",
        "repeat": 1,
        "capability": "execution",
        "model": "script:boat_entry",
        "judge_model": "script:judge",
        "stock_judge_reply": JUDGE_REPLY if is_stock else None,
        "max_iterations": 80,
        "duration": 1800,
        "time": "measured",
        "oracle": False,
        "noise": False,
        "agent_to_agent": False,
    }
