"""How `make test` shares the files of tests among its processes: long ones first, one browser and server for many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

BROWSER, SAMPLES = "browser/", "browser/samples"
TOGETHER: Mapping[str, Sequence[str]] = {
    "browser/desk": ("browser/work_desk",),
    "browser/work": ("browser/work_blind", "browser/work_lost"),
    "browser/team": ("browser/adjudicate", "browser/oidc", "browser/queue", "browser/signin"),
    "litellm": (
        *("judging/faults", "judging/model", "judging/llm_matching", "judging/estimate"),
        *("app/cli", "app/documented_commands", "app/notebook", "app/runs_page"),
    ),
}
"""Files that one process goes through: it starts one browser, or imports litellm (4 s of CPU time), once. The browser
files that are not named here share the samples and their server."""
LONG = ("litellm", "app/test_estimates.py", "app/test_agreement_page.py", "judging/test_report_roundtrip.py",
        "app/test_exports.py", "judging/test_queue.py", "app/test_adjudicate.py")  # fmt: skip
"""What computes longest, most CPU time first."""
_UNIT = {f"{name.replace('/', '/test_')}.py": unit for unit, names in TOGETHER.items() for name in names}


def unit_of(nodeid: str) -> str:
    """What is given out as a whole: a file of `tests`, or several that belong together."""
    file = nodeid.split("::", 1)[0].removeprefix("tests/")
    return _UNIT.get(file, SAMPLES if file.startswith(BROWSER) else file)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Units that take long come first, so that none is alone at the end; files with the most tests lead the rest.

    At first three of four processes drive a browser, which waits as much as it works, and one computes.
    """
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        units.setdefault(unit_of(item.nodeid), []).append(item)
    browsers = sorted((unit for unit in units if unit.startswith(BROWSER)), key=lambda unit: -len(units[unit]))
    long = [unit for unit in LONG if unit in units]
    others = sorted(units.keys() - {*browsers, *long}, key=lambda unit: (-len(units[unit]), unit))
    order = [*browsers[:2], *long[:1], *browsers[2:], *long[1:], *others]
    return [item for unit in order for item in sorted(units[unit], key=starts_anew)]


def starts_anew(item: pytest.Item) -> bool:
    """Whether the test begins with empty caches; those that only look at the samples share what was made of them."""
    return "shown" not in getattr(item, "fixturenames", ())


class Units(LoadFileScheduling):
    """Gives out units in the order of collection."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def missing(tests: Path) -> list[str]:
    """The files named here that are not there."""
    named = {*_UNIT, *(unit for unit in LONG if unit not in TOGETHER)}
    return sorted(file for file in named if not (tests / file).is_file())
