"""Each page's first useful paint and each filter change in a browser, at the target size beside the samples.

`useful` is the moment when a named element of the page's own shows (after a change: shows something else than before,
or the same at rest), `whole` when the page has come to rest and shows nothing that is still being computed. `web` is
the CPU of the app's own process until then, `beside` that of the processes that make its estimates: a busy machine
changes them far less than it changes the seconds of a clock.

The browser has a profile, as a person's has: it keeps the scripts of an earlier visit, compiled. A change is timed from
the click or key that makes it: a list that offers it is open by then.

The large workspace is built anew (about a minute); TRACEJURY_BENCH_HOME keeps it, or takes one that is there.
TRACEJURY_BENCH_ONLY measures only the rows whose name holds one of its words (by comma).
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from playwright.sync_api import BrowserContext, Locator, Page, Playwright, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from sqlalchemy import select

from tests.app.workspaces import filled
from tests.benchmarks.large import build
from tests.benchmarks.undisturbed import Undisturbed, undisturbed
from tests.browser.conftest import FLAGS
from tracejury import app
from tracejury.ingest.store import read_transaction
from tracejury.judging.reports.frames import default_reference
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.judge_models import judge_models

ASGI = Path(app.__file__).parent / "asgi.py"
PAINT_S, CHANGE_S = 2.0, 1.0
GIVE_UP_MS = 30_000  # what takes longer is told as `never`, or as never at rest
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1280, 1100
WORDS = {"samples": "library", "large": "ferry timetable"}  # that some spans hold
RESTED = """() => !document.querySelector('[data-testid="stStatusWidget"]')
    && !document.querySelector('[data-testid="stSkeleton"]')
    && !document.querySelector('[data-stale="true"]')"""


class Opened(NamedTuple):
    """A page by its address, and the element that makes it useful."""

    name: str
    path: str
    useful: str


class Act(NamedTuple):
    """What a person does: what comes before it (a list is opened), and the click or key itself."""

    ready: Callable[[Page], object]
    do: Callable[[Page], object]


class Change(NamedTuple):
    """Something a person does on a page, and the element that shows its effect."""

    name: str
    path: str
    act: Act
    useful: str


class Cpu(NamedTuple):
    """Seconds of the app's process and of those beside it."""

    web: float
    beside: float

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.web - before.web, max(0.0, self.beside - before.beside))


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Seconds of the clock to the useful element and to rest; seconds of CPU until then."""

    useful: float | None
    whole: float | None
    cpu: Cpu


def choose(label: str, option: str, *, under: str | None = None) -> Act:
    """Choose an option of a filter, one that stands under a button where that is named."""

    def ready(page: Page) -> None:
        if under is not None:
            page.get_by_role("button", name=under).first.click()
        _unfold(page.get_by_test_id("stSelectbox").filter(has_text=label).locator("input").first)

    return Act(ready, _option(option))


def tick(label: str, option: str | None = None) -> Act:
    """Tick an option of a filter, the first where none is named."""
    field = "stMultiSelect"
    return Act(
        lambda page: _unfold(page.get_by_test_id(field).filter(has_text=label).locator("input").first),
        (lambda page: page.get_by_role("option").first.click()) if option is None else _option(option),
    )


def take(key: str, place: int) -> Act:
    """Choose the option at a place of the list of a field."""
    return Act(
        lambda page: _unfold(page.locator(f".st-key-{key} input").first),
        lambda page: page.get_by_role("option").nth(place).click(),
    )


def _option(name: str) -> Callable[[Page], object]:
    return lambda page: page.get_by_role("option", name=name, exact=True).click()


def _unfold(field: Locator) -> None:
    """Open the list of a field; the scrolling that brings it into view may fold it again."""
    field.click()
    try:
        field.page.get_by_role("option").first.wait_for(timeout=1000)
    except PlaywrightTimeout:
        field.press("ArrowDown")
        field.page.get_by_role("option").first.wait_for()


def first_row(key: str) -> Act:
    """The box at the left of a table's first row."""
    place: Any = {"x": 12, "y": 52}
    return Act(_nothing, lambda page: page.locator(f".st-key-{key} .dvn-scroller").first.click(position=place))


def switch(label: str, *, under: str) -> Act:
    """Switch a filter that stands under a button on or off."""
    return Act(
        lambda page: page.get_by_role("button", name=under).first.click(),
        lambda page: page.get_by_test_id("stCheckbox").filter(has_text=label).locator("label").click(),
    )


def press(name: str) -> Act:
    return Act(_nothing, lambda page: page.get_by_role("radio", name=name, exact=True).first.click())


def decide(key: str) -> Act:
    return Act(
        lambda page: page.locator('.tjc-row[data-decided="no"]').first.click(),
        lambda page: page.keyboard.press(key),
    )


def search(words: str) -> Act:
    return Act(lambda page: page.locator(".st-key-q input").fill(words), lambda page: page.keyboard.press("Enter"))


def download(key: str) -> Act:
    def do(page: Page) -> Path:
        with page.expect_download(timeout=GIVE_UP_MS) as caught:
            page.locator(f".st-key-{key} button").first.click()
        return Path(caught.value.path())

    return Act(_nothing, do)


def _nothing(page: Page) -> None:
    del page


TILES = '.st-key-headline [data-testid="stMetricValue"]'
ANSWER = ".st-key-answer"
TABLE = '[data-testid="stDataFrame"] canvas'


def plot(key: str) -> str:
    return f".st-key-{key} .main-svg"


def pages(trace_id: str) -> tuple[Opened, ...]:
    return (
        Opened("home (work)", "/", ".tj-desk"),
        Opened("work, all traces", "/work?queue=all", ".tj-desk"),
        Opened("work, a trace", f"/work?trace={trace_id}", ".tj-desk"),
        Opened("guideline", "/guideline", "h2"),
        Opened("compare", "/compare", ".tjc-row"),
        Opened("compare, a trace", f"/compare?trace={trace_id}", ".tjc-row"),
        Opened("adjudicate", "/adjudicate", ".st-key-settle button"),
        Opened("agreement, overview", "/agreement", ANSWER),
        Opened("agreement, errors", "/agreement?view=Errors", TILES),
        Opened("agreement, scores", "/agreement?view=Scores", TILES),
        Opened("agreement, consistency", "/agreement?view=Consistency", TABLE),
        Opened("agreement, raters", "/agreement?view=Raters", TILES),
        Opened("agreement, A against B", "/agreement?view=A+against+B", TILES),
        Opened("agreement, team", "/agreement?view=Team", TABLE),
        Opened("explore", "/explore", ".st-key-traces canvas"),
        Opened("explore, its charts", "/explore", plot("chart-together")),
        Opened("agreement, its charts", "/agreement", plot("chart-impact")),
        Opened("runs", "/runs", '[data-testid="stProgress"]'),
        Opened("reports", "/reports", ".st-key-zip button"),
        Opened("ingest", "/ingest", ".st-key-uploads"),
        Opened("admin", "/admin", '[data-testid="stForm"]'),
    )


def changes(trace_id: str, words: str) -> tuple[Change, ...]:
    explore = ".st-key-traces canvas"
    return (
        Change("agreement: matches", "/agreement", choose("Matches", "confirmed"), ANSWER),
        Change("agreement: reference", "/agreement", choose("Reference", "ben"), ANSWER),
        Change(
            "agreement: failures",
            "/agreement",
            choose("Failures", "misses", under="More filters"),
            ANSWER,
        ),
        Change(
            "agreement: labels",
            "/agreement",
            switch("Blind labels only", under="More filters"),
            ANSWER,
        ),
        Change("agreement: view", "/agreement", press("Scores"), ".st-key-headline"),
        Change("explore: facet", "/explore", tick("Lowest judge score", "0"), explore),
        Change("explore: source", "/explore", tick("Source"), explore),
        Change("explore: tool", "/explore", tick("Tool"), explore),
        Change("explore: labelled by", "/explore", tick("Labelled by", "ben"), explore),
        Change("explore: judge state", "/explore", tick("Judge state"), explore),
        Change("explore: search", "/explore", search(words), ".st-key-hits canvas"),
        Change("explore: similar errors", "/explore", take("similar_to", 0), ".st-key-similar_to ~ * canvas"),
        Change("explore: a row", "/explore", first_row("traces"), ".st-key-to-work button"),
        Change("adjudicate: view", "/adjudicate", press("All disputed"), ".st-key-settle button"),
        Change("adjudicate: next trace", "/adjudicate", take("adjudicate_trace", 1), ".st-key-settle button"),
        Change("runs: another run", "/runs", take("run", 1), plot("chart-outcomes")),
        Change("admin: view", "/admin", press("Queues"), ".st-key-queue_name"),
        Change("reports: matches", "/reports", choose("Matches", "confirmed"), ".st-key-pairs-csv button"),
        Change("reports: rows CSV", "/reports", download("pairs-csv"), ".st-key-pairs-csv button"),
        Change("compare: Y", f"/compare?trace={trace_id}", decide("y"), ".tjc-done"),
        Change("compare: F", f"/compare?trace={trace_id}", decide("f"), ".tjc-done"),
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        kept = os.environ.get("TRACEJURY_BENCH_HOME")
        home = Path(kept) if kept else Path(folder) / "large"
        spaces = {"samples": filled(Path(folder) / "samples"), "large": _large(home)}
        with undisturbed(CHROMIUM, Path(folder) / "profile", size=(WIDTH, HEIGHT)) as opener:
            context = _browser(playwright, Path(folder) / "clicking")
            taken = {name: _measured(opener, context, space, name) for name, space in spaces.items()}
            context.close()
    _print(taken)


def _browser(playwright: Playwright, profile: Path) -> BrowserContext:
    context = playwright.chromium.launch_persistent_context(
        profile,
        executable_path=CHROMIUM,
        args=[*FLAGS, "--disable-quic"],
        viewport={"width": WIDTH, "height": HEIGHT},
        accept_downloads=True,
    )
    context.set_default_timeout(GIVE_UP_MS)
    return context


def _large(home: Path) -> Workspace:
    if (home / "tracejury.db").exists():
        return open_workspace(home)
    started = time.process_time()
    space = build(home)
    print(f"built the large workspace in {time.process_time() - started:.0f} s of CPU", flush=True)
    return space


def _measured(opener: Undisturbed, context: BrowserContext, space: Workspace, name: str) -> dict[str, Taken]:
    trace_id = _a_trace(space)
    found: dict[str, Taken] = {}
    with _server(space.home) as (address, process):
        for one in filter(lambda one: _is_wanted(one.name), pages(trace_id)):
            for row in (one.name, f"{one.name} (again)"):
                found[row] = _told(name, row, _open(opener, process, address, one))
        for change in filter(lambda one: _is_wanted(one.name), changes(trace_id, WORDS[name])):
            row = f"> {change.name}"
            found[row] = _told(name, row, _change(context, process, address, change))
    return found


def _is_wanted(name: str) -> bool:
    return any(word in name for word in os.environ.get("TRACEJURY_BENCH_ONLY", "").split(","))


def _told(space: str, row: str, taken: Taken) -> Taken:
    print(f"  {space}: {_row(row, [taken])}", flush=True)
    return taken


def _a_trace(space: Workspace) -> str:
    """A trace that the usual person and the first judge both spoke of."""
    with read_transaction(space.engine) as connection:
        reference, judge_model = default_reference(connection), judge_models(connection)[0]
        cell, finding, review = tables.cell, tables.finding, tables.review
        found = connection.scalar(
            select(cell.c.trace_id)
            .join(finding, finding.c.cell_key == cell.c.cell_key)
            .join(tables.judge_version, tables.judge_version.c.judge_version == cell.c.judge_version)
            .join(review, review.c.trace_id == cell.c.trace_id)
            .where(tables.judge_version.c.model == judge_model, review.c.annotator == reference)
            .limit(1)
        )
    assert found is not None
    return str(found)


def _open(opener: Undisturbed, process: psutil.Process, address: str, one: Opened) -> Taken:
    cpu = _cpu(process)
    noted = opener.opened(address + one.path, useful=one.useful, rested=RESTED, give_up_s=GIVE_UP_MS / 1000)
    useful, whole = noted.get("useful"), noted.get("whole", float("inf"))
    return Taken(
        useful=None if useful is None else useful / 1000,
        whole=None if useful is None else whole / 1000,
        cpu=_cpu(process).since(cpu),
    )


def _change(context: BrowserContext, process: psutil.Process, address: str, change: Change) -> Taken:
    page = context.new_page()
    try:
        page.goto(address + change.path)
        page.locator("h2").first.wait_for()
        _rest(page)
        change.act.ready(page)
        _rest(page)
        return _timed(page, process, lambda: change.act.do(page), change.useful)
    except PlaywrightTimeout as error:
        print(f"  {page.url}: {str(error).splitlines()[0]}", flush=True)
        return Taken(useful=None, whole=None, cpu=Cpu(0.0, 0.0))
    finally:
        page.close()


NOTE_CHANGE = """([useful, rested]) => {
    const noted = window.__change = {};
    const begin = () => { noted.began ??= performance.now(); };
    for (const kind of ['pointerdown', 'keydown']) addEventListener(kind, begin, { capture: true, once: true });
    const isRested = eval(rested), since = {}, before = document.querySelector(useful)?.textContent;
    const held = (name, holds) => {  // since when it has held, once it has for a while: between reruns a page rests
        since[name] = holds ? since[name] ?? performance.now() : undefined;
        if (since[name] && performance.now() - since[name] > 120) noted[name] ??= since[name] - noted.began;
    };
    const look = () => {
        if (noted.began !== undefined && !isRested(true)) noted.ran = true;
        if (noted.ran || performance.now() - noted.began > 800) {  // some changes need no rerun
            const shown = document.querySelector(useful), shows = !!shown?.getClientRects().length;
            held('useful', shows && (shown.textContent !== before || isRested(false)));
            held('whole', shows && isRested(true));
        }
        if (noted.whole === undefined) requestAnimationFrame(look);
    };
    look();
}"""
RESTED_OR_WAITS = f"(skeletons) => skeletons ? ({RESTED})() : ({RESTED.replace('stSkeleton', 'none')})()"


def _timed(page: Page, process: psutil.Process, act: Callable[[], object], useful: str) -> Taken:
    """The page notes itself when it was clicked, and since when it rested afterwards."""
    cpu = _cpu(process)
    page.evaluate(NOTE_CHANGE, [useful, RESTED_OR_WAITS])
    started = time.perf_counter()
    done = act()
    acted = time.perf_counter() - started
    try:
        page.wait_for_function("() => window.__change.whole !== undefined", timeout=GIVE_UP_MS, polling=50)
    except PlaywrightTimeout as error:  # the table says that it never came
        print(f"  {page.url}: {str(error).splitlines()[0]}", flush=True)
        return Taken(useful=None, whole=None, cpu=_cpu(process).since(cpu))
    noted = page.evaluate("() => window.__change")
    file_s = acted if isinstance(done, Path) else 0.0  # the act ends with the file
    whole, shown = noted["whole"], noted.get("useful", noted["whole"])
    useful_s, whole_s = (max(each / 1000, file_s) for each in (shown, whole))
    return Taken(useful=useful_s, whole=whole_s, cpu=_cpu(process).since(cpu))


def _rest(page: Page, *, skeletons: bool = True) -> None:
    """Until nothing runs any more, twice in a row: between two reruns the page looks finished."""
    rested = RESTED if skeletons else RESTED.replace("stSkeleton", "none")
    for _ in range(2):
        page.wait_for_function(rested, timeout=GIVE_UP_MS, polling=30)
        page.wait_for_timeout(50)


def _cpu(process: psutil.Process) -> Cpu:
    return Cpu(_spent(process), sum(_spent(one) for one in process.children(recursive=True)))


def _spent(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


@contextmanager
def _server(home: Path) -> Iterator[tuple[str, psutil.Process]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-P", "-m", "streamlit", "run", str(ASGI), f"--server.port={port}",
        "--server.address=127.0.0.1", "--server.headless=true", "--server.fileWatcherType=none",
        "--browser.gatherUsageStats=false",
    ]  # fmt: skip
    environment = os.environ | {"TRACEJURY_HOME": str(home), "TRACEJURY_USER": "ruth"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(480):
            try:
                urllib.request.urlopen(f"{address}/api/health", timeout=1)
                break
            except OSError:
                time.sleep(0.25)
        yield address, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def _print(taken: dict[str, dict[str, Taken]]) -> None:
    print(f"{'':34}" + "".join(f"{name:>34}" for name in taken))
    print(f"{'':34}" + "  useful   whole     web  beside  " * len(taken))
    for name in next(iter(taken.values())):
        print(_row(name, [found.get(name) for found in taken.values()]))
    print(f"targets: {PAINT_S:g} s to the first useful paint, {CHANGE_S:g} s for a change (>); ! is above it")


def _row(name: str, taken: Sequence[Taken | None]) -> str:
    target = CHANGE_S if name.startswith(">") else PAINT_S
    return f"{name:34}" + "".join(_cell(one, target) for one in taken)


def _cell(one: Taken | None, target: float) -> str:
    if one is None or one.useful is None or one.whole is None:
        return f"{'never':>9}{'':25}"
    mark = "!" if one.useful > target else " "
    return f"{one.useful:8.2f}{mark}{one.whole:7.2f}{one.cpu.web:8.2f}{one.cpu.beside:8.2f}  "


if __name__ == "__main__":
    main()
