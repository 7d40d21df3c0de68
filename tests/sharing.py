"""How `make test` shares the files of tests among its processes: long ones first, one browser and server for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

TOGETHER: Mapping[str, Sequence[str]] = {
    "samples": ("agreement", "compare", "explore", "ingest", "pages_axe", "reports", "runs"),
    "desk": ("work_blind", "work_desk", "work_lost"),
    "team": ("adjudicate", "oidc", "queue", "signin"),
}
"""Files of `tests/browser` that one process goes through: it starts one browser for them, the samples' server once."""
LONG = ("app/test_computing", "judging/test_faults", "app/test_cli", "app/test_agreement_page", "judging/test_estimate",
        "judging/test_report_roundtrip", "app/test_runs_page", "app/test_exports", "judging/test_queue",
        "app/test_adjudicate")  # fmt: skip
"""The files that compute longest, most CPU time first."""
BROWSER = "tests/browser/"
_UNIT = {f"{BROWSER}test_{name}.py": BROWSER + unit for unit, names in TOGETHER.items() for name in names}


def unit_of(nodeid: str) -> str:
    """What is given out as a whole: a file, or browser files that belong together."""
    file = nodeid.split("::", 1)[0]
    return _UNIT.get(file, file)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Units that take long come first, so that none is alone at the end; files with the most tests lead the rest.

    At first two processes drive a browser, which waits as much as it works, and the third computes.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(unit_of(item.nodeid), []).append(item)
    browsers = sorted((unit for unit in units if unit.startswith(BROWSER)), key=lambda unit: -len(units[unit]))
    long = [f"tests/{name}.py" for name in LONG if f"tests/{name}.py" in units]
    others = sorted(units.keys() - {*browsers, *long}, key=lambda unit: (-len(units[unit]), unit))
    order = [*browsers[:2], *long[:3], *browsers[2:], *long[3:], *others]
    return [item for unit in order for item in units[unit]]


class Units(LoadFileScheduling):
    """Gives out units in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def wrong_names(tests: Path) -> list[str]:
    """Browser files without a unit, and names of files that are none."""
    there = {f"tests/{path.relative_to(tests)}" for path in tests.rglob("test_*.py")}
    named = {*_UNIT, *(f"tests/{name}.py" for name in LONG)}
    return sorted({name for name in there - named if name.startswith(BROWSER)} | (named - there))
