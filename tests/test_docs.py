"""The documents against the code: every column, command, check, metric and table is described."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner

from tests.reference import HELP, metrics, renewed
from tracejury.app.cli import main
from tracejury.app.command_line.root import SECTIONS
from tracejury.ingest.readers import READERS
from tracejury.ingest.trace import SPAN_COLUMNS
from tracejury.judging.agreement.inputs import COLUMNS, InputName
from tracejury.judging.agreement.metrics import METRICS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DICTIONARY = (ROOT / "data" / "README.md").read_text(encoding="utf-8")


def rows(text: str) -> dict[str, str]:
    """First column (in backticks) to last column of every table row."""
    cells = re.findall(r"^\| `([^`]+)` \|.*?\| ([^|]+) \|$", text, re.MULTILINE)
    return dict(cells)


@pytest.mark.parametrize("column", SPAN_COLUMNS, ids=lambda column: column.name)
def test_the_data_dictionary_says_what_the_code_says_of_each_column(column: object) -> None:
    assert rows(DICTIONARY).get(column.name, "absent").strip() == column.meaning  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", COLUMNS)
def test_the_data_dictionary_names_the_columns_of_every_input_of_a_report(name: InputName) -> None:
    (row,) = [line for line in DICTIONARY.splitlines() if line.startswith(f"| `{name}` |") and line.count("|") == 5]
    assert re.findall(r"`(\w+)`", row.split("|")[2]) == list(COLUMNS[name])


def commands(group: click.Group, prefix: str = "") -> list[str]:
    names = []
    for name, command in group.commands.items():
        full = f"{prefix}{name}"
        if not isinstance(command, click.Group) or command.invoke_without_command:
            names.append(full)
        if isinstance(command, click.Group):
            names += commands(command, f"{full} ")
    return names


@pytest.mark.parametrize("name", commands(main))
def test_every_command_has_help_with_an_example_that_fits_a_line(name: str) -> None:
    command: click.Command = main
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[word]
    assert command.help
    assert re.match(rf"Example: tracejury {name}( |$)", command.epilog or "")
    assert len(command.epilog or "") <= 76


def test_the_help_lists_every_command_in_one_section_and_cuts_no_sentence() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=80).output
    sections = [line for line in shown.splitlines() if re.fullmatch(r"\S.*:", line)]
    names = [name for section in SECTIONS.values() for name in section]
    assert sections == ["Options:", *(f"{title}:" for title in SECTIONS)]
    assert sorted(names) == sorted(main.commands)
    assert re.findall(r"(?m)^  (\w+) {2,}[A-Z]", shown) == names
    assert "..." not in shown.partition("Options:")[2]


SHELLS = re.findall(r"(?m)^.*_TRACEJURY_COMPLETE=(\w+)_source.*$", (HELP / "reference.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shells_that_the_help_names_complete_commands_options_and_values(shell: str) -> None:
    complete = get_completion_class(shell)
    assert complete is not None
    made = complete(main, {}, "tracejury", "_TRACEJURY_COMPLETE")
    assert {one.value for one in made.get_completions(["labels"], "")} == {"import", "export"}
    assert "--dimensions" in {one.value for one in made.get_completions(["judge"], "--")}
    assert {one.value for one in made.get_completions(["judge", "--mode"], "")} == {"trace", "span", "jury"}


def test_bash_completes_by_the_line_of_the_help(tmp_path: Path) -> None:
    line = re.search(r"(?m)^eval .*bash_source tracejury\)\"", (HELP / "reference.md").read_text(encoding="utf-8"))
    assert line is not None
    command = tmp_path / "tracejury"
    command.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c \"from tracejury.app.cli import main; main(prog_name='tracejury')\"\n"
    )
    command.chmod(0o755)
    script = (
        f"{line[0]}; complete -p tracejury; COMP_WORDS=(tracejury rub) COMP_CWORD=1; _tracejury_completion tracejury; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "rubric"


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: str(reader.NAME))
def test_every_format_has_a_sample_and_a_line_in_the_dictionary(reader: object) -> None:
    name = reader.NAME  # type: ignore[attr-defined]
    folder = ROOT / "data" / "samples"
    assert any(path.is_dir() and path.name in {name, name.split("_")[0]} for path in folder.iterdir()), name
    assert name in DICTIONARY


def test_no_machine_path_and_no_registry_host_is_tracked() -> None:
    listed = subprocess.run(
        ["git", "grep", "-lIE", r"(^|[^A-Za-z0-9_.])/(work|root|farm)/[a-z]", "--", "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.stdout.split() == []


def test_no_gated_trail_content_is_tracked() -> None:
    words = "|".join(("gaia-annotation" + "-samples", "gaia-annotations" + "/app"))
    listed = subprocess.run(
        ["git", "grep", "-lIE", words, "--", ".", ":!tests/*.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert listed.stdout.split() == []


@pytest.mark.parametrize("page", sorted(HELP.glob("*.md")), ids=lambda page: page.stem)
def test_the_generated_parts_of_the_help_pages_are_those_of_the_code(page: Path) -> None:
    """Renew them with `python -m tests.reference`."""
    text = page.read_text(encoding="utf-8")
    assert renewed(text) == text


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 8_000


def test_every_name_in_the_architecture_exists() -> None:
    text = (ROOT / ".github" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:app|ingest|judging)(?:\.\w+)+)`", text))
    assert len(names) > 30
    assert sorted(name for name in names if not resolves(name)) == []


def resolves(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module("tracejury." + ".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(HELP.glob("*.md")), *sorted((ROOT / ".github").glob("*.md"))],
    ids=lambda page: page.name,
)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_estimate_has_a_definition_of_its_own() -> None:
    """One that a researcher can cite: not shared with another estimate, not cut off, more than the estimate's name."""
    rows = [row.strip("| ").split(" | ") for row in metrics().splitlines()[2:]]
    assert len({words for _, _, words in rows}) == len(rows) == len(METRICS)
    assert [name for name, title, words in rows if len(words) <= len(title) or "..." in words or "`" in words] == []


def test_the_readme_names_pictures_that_exist() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert pictures
    assert [picture for picture in pictures if not (ROOT / picture).exists()] == []


def test_the_tests_that_contributors_are_told_of_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(named) == 10
    assert named - defined == set()


def test_the_benchmarks_that_contributors_are_told_of_are_all_there_are() -> None:
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^make bench .*ARGS=(.*)$", text, re.MULTILINE)
    known = {path.stem.removeprefix("bench_") for path in (ROOT / "tests" / "benchmarks").glob("bench_*.py")}
    assert set(named.split(", ")) == known
