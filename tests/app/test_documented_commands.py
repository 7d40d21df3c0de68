"""Every command that README and help show is run as it stands there, and so is the example of every command."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.fake_provider import Answer, Provider, verdict

from tracejury.app.cli import main
from tracejury.app.commands import serving
from tracejury.app.config import config

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
TRACES = ("26b922f64d8e1e1293aecc400d694a96", "3d8e7e6c463a1a995ade209ff0b0166a")
DOCUMENTS = (ROOT / "README.md", *sorted((DATA / "help").glob("*.md")))
NOT_RUN_HERE = {
    "tracejury fetch trail": "loads from the hub",
    "tracejury gaia2 fetch": "loads from the hub",
    "tracejury gaia2 setup": "installs 750 MB",
    "tracejury gaia2 proof": "needs the environment that gaia2 setup makes",
    "tracejury move --to postgresql": "needs a PostgreSQL server",
    "tracejury plan --judge-model checks": "needs a pilot of several labelled traces: the tests of planning run it",
    "tracejury demo": "fills a workspace with every sample: the test of the wheel runs it",
}
"""Beginnings of commands, each with the reason."""
PLACEHOLDERS = {
    "0a1b2c3d": TRACES[0][:8],
    "http://127.0.0.1:11434/v1": "{provider}",
    "s3://team/agents": "corpus",
    " --engine dask --scheduler tcp://scheduler:8786": "",
}
"""What a reader puts their own in for. The model gpt-4.1 is asked at the scripted provider, as OPENAI_BASE_URL says."""


def commands_in(text: str) -> Iterator[str]:
    """The commands `tracejury ...` of the shell blocks, without comments; those within $(...) on their own."""
    for block in re.findall(r"(?s)```sh\n(.*?)```", text):
        for line in block.splitlines():
            yield from re.findall(r"\$\((tracejury [^)]+)\)", line)
            if re.match(r"(\w+=\S+ )*tracejury \w", line):
                yield re.sub(r"\s+#.*$", "", line)


def examples(group: click.Group = main) -> Iterator[str]:
    for command in group.commands.values():
        if command.epilog:
            yield command.epilog.removeprefix("Example: ")
        if isinstance(command, click.Group):
            yield from examples(command)


DOCUMENTED = {path.name: [*commands_in(path.read_text(encoding="utf-8"))] for path in DOCUMENTS} | {
    "examples": [*examples()]
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(lambda _request: Answer(text=verdict())) as running:
        yield running


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a reader works: traces, labels, outputs of a judge, and a workspace. Only ever copied."""
    folder = tmp_path_factory.mktemp("reader") / "folder"
    for name, source in (
        ("traces", "samples/trail"), ("labels", "labels/trail"), ("outputs", "samples/predictions/hasty-judge"),
    ):  # fmt: skip
        (folder / name).mkdir(parents=True)
        for trace in TRACES:
            shutil.copy(DATA / source / f"{trace}.json", folder / name)
    for words in (
        f"ingest {folder}/traces",
        "judge",
        f"labels import {folder}/labels --as trail --annotator ada",
        "match",
    ):
        done = CliRunner().invoke(main, [*words.split(), "--home", str(folder / ".tracejury")])
        assert done.exit_code == 0, done.output
    for words in (f"build {folder}/traces --out {folder}/agents", f"check {folder}/agents",
                  f"sample {folder}/agents --into {folder}/study"):  # fmt: skip
        done = CliRunner().invoke(main, ["corpus", *words.split()])
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    shutil.copytree(filled, tmp_path / "folder")
    monkeypatch.chdir(tmp_path / "folder")
    monkeypatch.delenv("TRACEJURY_HOME", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    monkeypatch.setattr(serving, "serve", lambda _home, **_options: 0)  # would run until it is stopped
    config.cache_clear()
    yield tmp_path / "folder"
    config.cache_clear()


def fill_in(folder: Path) -> None:
    """What a person does after `tracejury rubric new brevity`."""
    shipped = (ROOT / "judging" / "judges" / "rubrics" / "LC.toml").read_text(encoding="utf-8")
    text = re.sub(r'(?m)^(key|dimension) = ".*"$', lambda m: 'key = "brevity"' if m[1] == "key" else "", shipped)
    (folder / ".tracejury" / "rubrics" / "brevity.toml").write_text(text, encoding="utf-8")


def label_pairs(folder: Path) -> None:
    """What a person does after `tracejury match sample`."""
    pairs = pd.read_csv(folder / "pairs.csv", dtype=str, keep_default_na=False)
    pairs.assign(same_error="no").to_csv(folder / "pairs.csv", index=False)


AFTER: dict[str, Callable[[Path], None]] = {
    "tracejury rubric new brevity": fill_in,
    "tracejury match sample --out pairs.csv --n 50": label_pairs,
}


def run(command: str, folder: Path, provider: Provider) -> str | None:
    """Run one command line, with settings before it and a file after `>`; what went wrong, None where nothing did."""
    shown = command
    for name, own in PLACEHOLDERS.items():
        command = command.replace(name, own.format(provider=provider.base_url))
    command, _, file = command.partition(" > ")
    words = shlex.split(command)
    at = words.index("tracejury")
    settings = dict(word.split("=", 1) for word in words[:at])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        config.cache_clear()
        done = CliRunner().invoke(main, words[at + 1 :])
    config.cache_clear()
    if done.exit_code != 0 or "Traceback" in done.output:
        return f"{shown}: exit code {done.exit_code}: {done.output[-500:]}{done.exception!r}"
    if file:
        (folder / file).write_text(done.stdout, encoding="utf-8")
    AFTER.get(shown, lambda _folder: None)(folder)
    return None


def is_run(command: str) -> bool:
    return not command.startswith(tuple(NOT_RUN_HERE))


@pytest.mark.parametrize("name", [name for name, commands in DOCUMENTED.items() if commands])
def test_every_command_of_a_document_works_as_it_stands_there(name: str, folder: Path, provider: Provider) -> None:
    faults = [run(command, folder, provider) for command in DOCUMENTED[name] if is_run(command)]
    assert "\n".join(fault for fault in faults if fault is not None) == ""


def test_the_commands_that_are_not_run_are_still_shown() -> None:
    shown = [command for commands in DOCUMENTED.values() for command in commands]
    assert [start for start in NOT_RUN_HERE if not any(command.startswith(start) for command in shown)] == []
    assert len({command for command in shown if is_run(command)}) > 35


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_commands_named_in_sentences_exist_with_their_options(path: Path) -> None:
    prose = re.sub(r"(?s)```.*?```", "", path.read_text(encoding="utf-8"))
    named = re.findall(r"`(?:\.venv/bin/)?tracejury ([a-z][^`]*)`", prose)
    assert [words for words in named if fault_in(words)] == []


def fault_in(words: str) -> bool:
    """Whether the command, its sub-command or one of its options is none."""
    command: click.Command = main
    names = [word.strip("[],") for word in words.split()]
    while isinstance(command, click.Group) and names and names[0] in command.commands:
        command = command.commands[names.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    is_bare_group = isinstance(command, click.Group) and not command.invoke_without_command and bool(names)
    return command is main or is_bare_group or not {word for word in names if word.startswith("--")} <= known


def test_a_command_that_is_none_is_told_apart() -> None:
    assert fault_in("judges --model x")
    assert fault_in("judge --modell x")
    assert fault_in("gaia2 walk")
    assert not fault_in("traces replace PATH")
