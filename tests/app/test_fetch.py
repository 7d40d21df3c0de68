"""Fetching TRAIL through the hub's own library, against a hub on loopback."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pandas as pd
import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
NAME = "data/gaia-00000-of-00001.parquet"
COMMIT = "a" * 40
GAIA2 = "meta-agents-research-environments/gaia2"
SCENARIOS = ("execution/validation-00000-of-00001.parquet", "time/validation-00000-of-00001.parquet")


def parquet() -> bytes:
    """Our own samples in the hub's form: two columns of JSON text."""
    rows = []
    for label in sorted((DATA / "labels" / "trail").glob("*.json")):
        trace = DATA / "samples" / "trail" / label.name
        rows.append({"trace": trace.read_text(encoding="utf-8"), "labels": label.read_text(encoding="utf-8")})
    held = io.BytesIO()
    pd.DataFrame(rows).to_parquet(held)
    return held.getvalue()


def scenarios(name: str) -> bytes:
    """Two rows of GAIA2's form: our own stand-in under other ids."""
    text = (DATA / "gaia2/scenarios/execution/boat_entry.json").read_text(encoding="utf-8")
    rows = [
        {
            "id": str(n),
            "scenario_id": f"{name}_{n}",
            "split": "validation",
            "data": text.replace("tracejury_boat_entry", f"{name}_{n}"),
        }
        for n in (1, 2)
    ]
    held = io.BytesIO()
    pd.DataFrame(rows).to_parquet(held)
    return held.getvalue()


class Hub(BaseHTTPRequestHandler):
    body = b""
    gated = False

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.gated:
            self._answer(403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "gated"})
        elif self.path.startswith("/api/datasets/PatronusAI/TRAIL"):
            siblings = [{"rfilename": "README.md"}, {"rfilename": NAME}]
            info = {"id": "PatronusAI/TRAIL", "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
            self._answer(200, orjson.dumps(info), {"Content-Type": "application/json"})
        elif self.path.startswith(f"/api/datasets/{GAIA2}"):
            siblings = [{"rfilename": name} for name in SCENARIOS]
            info = {"id": GAIA2, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
            self._answer(200, orjson.dumps(info), {"Content-Type": "application/json"})
        elif self.path.endswith(SCENARIOS):
            body = scenarios(self.path.split("/")[-2])
            headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": COMMIT}
            self._answer(200, body, headers)
        elif self.path.endswith(NAME):
            etag = hashlib.sha256(self.body).hexdigest()
            self._answer(200, self.body, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})
        else:
            self._answer(404, b"{}", {})

    def _answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.body, Hub.gated = parquet(), False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def fetch(home: Path, endpoint: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home / "hf"), "TRACEJURY_HOME": str(home / "w")}
    environment |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DOWNLOAD_TIMEOUT": "5", "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-m", "tracejury.app.cli", *(words or ("fetch", "trail"))]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_traces_and_labels_arrive_together(hub: str, tmp_path: Path) -> None:
    done = fetch(tmp_path, hub)
    assert "6 new traces" in done.stdout, done.stderr
    assert "errors" in done.stdout
    assert done.returncode == 0


def test_no_access_says_how_to_get_it(hub: str, tmp_path: Path) -> None:
    Hub.gated = True
    done = fetch(tmp_path, hub)
    assert done.returncode == 1
    assert "gated" in done.stderr
    assert "HF_TOKEN" in done.stderr


def test_no_network_is_said_in_a_line(tmp_path: Path) -> None:
    done = fetch(tmp_path, "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_scenarios_of_gaia2_arrive_as_files_that_can_be_run(hub: str, tmp_path: Path) -> None:
    done = fetch(tmp_path, hub, "gaia2", "fetch", "--capability", "time", "--limit", "1")
    assert done.returncode == 0, done.stderr
    assert "1 scenario of time" in done.stderr
    files = sorted((tmp_path / "w/gaia2/scenarios").rglob("*.json"))
    assert [file.relative_to(tmp_path / "w").as_posix() for file in files] == ["gaia2/scenarios/time/time_1.json"]
    words = ["gaia2", "run", str(files[0].parent), "--model", "m", "--no-judge", "--repeats", "1", "--dry-run"]
    assert "time  time_1_run_1_" in fetch(tmp_path, hub, *words).stdout


def test_a_capability_that_gaia2_has_not_is_refused_before_the_hub_is_asked(tmp_path: Path) -> None:
    done = fetch(tmp_path, "http://127.0.0.1:9", "gaia2", "fetch", "--capability", "planning")
    assert done.returncode == 1
    assert "GAIA2 has no capability 'planning'. Try: execution, search" in done.stderr
