"""Where ARE's environment is looked for, and what is said where it is not; nothing is installed here."""

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracejury.app.cli import main
from tracejury.judging.gaia2.environment import Gaia2Error, find, own_folder, remember, requirements
from tracejury.judging.gaia2.scenarios import CAPABILITIES
from tracejury.judging.store import open_workspace


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRACEJURY_CACHE", str(tmp_path))
    monkeypatch.delenv("TRACEJURY_ARE_PYTHON", raising=False)
    return tmp_path


def test_every_package_of_the_list_has_one_version_and_its_hashes_and_no_host() -> None:
    text = requirements().decode()
    packages = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert all(re.match(r"[\w.\[\]-]+==\S+", line) for line in packages)
    assert any(line.startswith("meta-agents-research-environments==1.2.0") for line in packages)
    assert text.count("--hash=sha256:") >= len(packages)
    assert "http" not in re.sub(r"^\S+==\S+.*$", "", text, flags=re.MULTILINE)


def test_without_an_environment_the_command_to_make_it_is_named() -> None:
    with pytest.raises(Gaia2Error, match="Try: tracejury gaia2 setup"):
        find()
    made = CliRunner().invoke(main, ["gaia2", "setup", "--check"])
    assert (made.exit_code, "Try: tracejury gaia2 setup" in made.output) == (1, True)


def test_a_python_without_are_is_refused_with_what_to_install() -> None:
    with pytest.raises(Gaia2Error, match=r"cannot import ARE.*Try: .* -m pip install"):
        remember(Path(sys.executable))
    with pytest.raises(Gaia2Error, match="cannot be run"):
        remember(Path("/nowhere/python"))


def test_an_environment_that_was_made_is_found_by_its_list_and_python(cache: Path) -> None:
    told = {"python": "3.11.9", "are": "1.2.0", "maseval": None}
    own_folder().mkdir(parents=True)
    (own_folder() / "ready.json").write_text(json.dumps(told))
    found = find()
    assert (found.python, found.are_version) == (own_folder() / "bin" / "python", "1.2.0")
    assert own_folder().parent == cache


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["samples"], "--model NAME"),
        (["samples", "--model", "m"], "--judge-model NAME, or --no-judge"),
        (["samples", "--model", "m", "--judge-model", "j", "--no-judge"], "--judge-model NAME, or --no-judge"),
        (["samples", "--model", "m", "--no-judge", "--capability", "planning"], CAPABILITIES[0]),
        (["samples", "--model", "m", "--no-judge", "--again", "finished"], "no execution ends as 'finished'"),
        (["samples", "--model", "m", "--no-judge", "--temperature", "hot"], "a number or none"),
        (["samples", "--model", "script:/nowhere.json", "--no-judge"], "a JSON list of replies"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_to_give(words: list[str], told: str, tmp_path: Path) -> None:
    made = CliRunner().invoke(main, ["gaia2", "run", *words, "--dry-run", "--home", str(tmp_path / "w")])
    assert made.exit_code == 2
    assert told in made.output


def test_a_budget_without_prices_is_refused_before_anything_runs(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('["hello"]')
    words = ["samples", "--model", f"script:{script}", "--no-judge", "--budget", "1", "--home", str(tmp_path / "w")]
    made = CliRunner().invoke(main, ["gaia2", "run", *words])
    assert made.exit_code == 2
    assert "Try: --price INPUT,OUTPUT" in made.output


def test_stopping_an_execution_that_is_not_running_says_so(tmp_path: Path) -> None:
    open_workspace(tmp_path / "w")
    made = CliRunner().invoke(main, ["gaia2", "stop", "nothing", "--home", str(tmp_path / "w")])
    assert (made.exit_code, "nothing is not running" in made.output) == (1, True)
