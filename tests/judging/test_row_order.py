"""Every export has the same rows in the same order on both databases."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.app.workspaces import filled

from tracejury.app.cli import main

EXPORTS = (
    ["traces", "--csv", "{out}/traces.csv"],
    ["labels", "export", "--out", "{out}/labels.json"],
    ["labels", "export", "--as", "csv", "--out", "{out}/labels.csv"],
    ["verdicts", "export", "--out", "{out}/verdicts.json"],
    ["report", "--out", "{out}/report", "--draws", "0", "--inputs", "--format", "csv"],
)
VARIES = {"manifest.json"}
"""What names times and places."""


def exported(home: Path, out: Path) -> dict[str, str]:
    out.mkdir()
    for command in EXPORTS:
        outcome = CliRunner().invoke(main, [*(one.format(out=out) for one in command), "--home", str(home)])
        assert outcome.exit_code == 0, outcome.output
    return {
        str(file.relative_to(out)): without_times(file)
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name not in VARIES
    }


def without_times(file: Path) -> str:
    """What an export says, but for the moment at which its traces were stored."""
    text = file.read_text(encoding="utf-8")
    return re.sub(r"[0-9-]{10} [0-9:.]+\+00:00$", "", text, flags=re.MULTILINE) if file.name == "traces.csv" else text


def test_both_databases_export_the_same(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path / "one").engine.dispose()
    here = exported(tmp_path / "one", tmp_path / "out-one")
    monkeypatch.setenv("TRACEJURY_DATABASE", server)
    filled(tmp_path / "two").engine.dispose()
    there = exported(tmp_path / "two", tmp_path / "out-two")
    assert os.environ["TRACEJURY_DATABASE"] == server
    assert set(here) == set(there)
    assert [name for name in here if here[name] != there[name]] == []
