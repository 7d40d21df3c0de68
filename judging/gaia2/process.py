"""One execution as a process of its own: started in ARE's environment, answered, watched, ended within its limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.parse import parse_json
from tracejury.ingest.trace import IngestError, Json
from tracejury.judging.gaia2.environment import scrubbed
from tracejury.judging.gaia2.live import last_words

GRACE_S = 20.0
"""Seconds that an execution asked to stop may take to write its partial trace, before it is killed."""
End = Literal["ended", "time_limit", "stopped", "died"]
Answer = Callable[[Mapping[str, Json]], dict[str, Json]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a worker ended: `result` is what it wrote last (None where it could not), `log` its last words."""

    how: End
    result: dict[str, Json] | None
    seconds: float
    log: str


class WorkerProcess:
    """A worker and the threads that answer it. `state` is what its latest question said of where it stands."""

    def __init__(self, python: Path, job: Mapping[str, Json], answer: Answer) -> None:
        self._folder = Path(str(job["folder"]))
        self._answer = answer
        self._writing = threading.Lock()
        self.state: dict[str, Json] = {}
        (self._folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        worker = self._folder / "worker.py"
        worker.write_bytes(resources.files("tracejury.data").joinpath("gaia2/worker.py").read_bytes())
        with (self._folder / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(
                [python, "-I", str(worker), str(self._folder / "job.json")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=scrubbed(HOME=str(home)),
                cwd=home,
                start_new_session=True,
            )
        self._started = time.monotonic()
        threading.Thread(target=self._listen, name="questions", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self, limit_s: float, stopping: Callable[[], bool], look: Callable[[], None] = lambda: None) -> Ended:
        """Wait until the worker has ended, and see that it does: at its limit, or when `stopping` says so."""
        how: End = "ended"
        while self._process.poll() is None:
            if time.monotonic() - self._started > limit_s:
                how = "time_limit"
            elif stopping():
                how = "stopped"
            if how != "ended":
                self._end()
                break
            look()
            time.sleep(0.1)
        self._kill()
        result = self._result()
        if result is None and how == "ended":
            how = "died"
        return Ended(how=how, result=result, seconds=time.monotonic() - self._started, log=last_words(self._folder))

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            try:
                question = object_in(parse_json(line))
            except IngestError:
                continue
            self.state = {name: question.get(name) for name in ("turn", "step", "clock", "last_tool")}
            threading.Thread(target=self._reply, args=(question,), name="answer", daemon=True).start()

    def _reply(self, question: dict[str, Json]) -> None:
        try:
            answer = self._answer(question)
        except Exception as error:  # whatever a model raises: the worker must not wait for ever
            answer = {"error": f"{type(error).__name__}: {error}"}
        line = json.dumps({**answer, "id": question.get("id")}).encode() + b"\n"
        with self._writing:
            try:
                assert self._process.stdin is not None
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (BrokenPipeError, OSError, ValueError):
                return  # the worker has ended meanwhile

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        """End the worker's whole session: nothing of an execution outlives it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _result(self) -> dict[str, Json] | None:
        file = self._folder / "result.json"
        try:
            return object_in(parse_json(file.read_bytes())) if file.exists() else None
        except (OSError, IngestError):
            return None
