"""Makes data/samples/inspect by running Inspect with its mock model on two questions of ours.

Inspect gives random ids and real times: a second run gives the same text with other ids and times.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import tiktoken
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolError, tool
from paths import SAMPLES

OPENING = {"museum": "Tuesday to Saturday, 10 to 17", "archive": "Thursday, 9 to 12"}


@tool
def opening_hours() -> Any:
    async def execute(house: str) -> str:
        """The opening hours of a house.

        Args:
            house: Name of the house.
        """
        if house not in OPENING:
            raise ToolError(f"no house is called {house!r}; there are {', '.join(OPENING)}")
        return OPENING[house]

    return execute


def _calls(house: str) -> ModelOutput:
    return ModelOutput.for_tool_call("mockllm/model", "opening_hours", {"house": house})


def _says(text: str) -> ModelOutput:
    return ModelOutput.from_content("mockllm/model", text)


class _RoughCount:
    """Stands in for tiktoken, whose tables are fetched from the network: four characters a token."""

    def encode(self, text: str, **options: Any) -> list[int]:
        return [0] * (len(text) // 4)


tiktoken.get_encoding = lambda name: _RoughCount()

RUNS = {
    "opening-hours": (
        [
            Sample(id="museum", input="When does the museum open on a Friday?", target="10"),
            Sample(id="archive", input="On which day is the archive open?", target="Thursday"),
        ],
        [
            _calls("museum"),
            _says("It opens at 10."),
            _calls("town archive"),
            _calls("archive"),
            _says("It is open on Tuesday, from 9 to 12."),
        ],
    ),
    "closing-hours": (
        [Sample(id="museum", input="When does the museum close on a Saturday?", target="17")],
        [_calls("museum"), _says("It closes at 17.")],
    ),
}


def run(name: str) -> EvalLog:
    samples, outputs = RUNS[name]
    task = Task(
        name=name,
        dataset=MemoryDataset(samples, name="harbour-houses"),
        solver=[system_message("Look the hours up; never guess them."), use_tools(opening_hours()), generate()],
        scorer=includes(),
    )
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = eval(task, model=model, display="none", max_samples=1, log_dir="logs", log_format="json")
    return read_eval_log(log.location)


def _without_machine(log: EvalLog) -> EvalLog:
    log.eval.revision = None
    log.eval.task_file = None
    log.eval.metadata = None
    return log


def main() -> None:
    folder = SAMPLES / "inspect"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name, form in (("opening-hours", "json"), ("closing-hours", "eval")):
            log = _without_machine(run(name))
            write_eval_log(log, str(folder / f"{name}.{form}"))
            print(name, log.status, Path(folder / f"{name}.{form}").stat().st_size)


if __name__ == "__main__":
    main()
