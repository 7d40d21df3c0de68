"""Opens pages in a browser that nothing listens to, and has the page itself note when it became useful.

Playwright listens to each page's scripts (`Runtime.enable`), for which the engine works out the places of every error
that a library makes and drops: Plotly's start takes three times as long as it does for a person. Here the browser is
told where to go, the page notes its own times, and it is asked for them at the end.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = (
    "--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip
_NOTE = """(() => {
    const noted = window.__noted = {};
    let still = 0;
    const isSeen = one => one && one.getClientRects().length > 0;
    const look = () => {
        if (noted.useful === undefined && isSeen(document.querySelector(%(useful)s))) noted.useful = performance.now();
        const rests = noted.useful !== undefined && (%(rested)s)();
        if (!rests) still = 0;
        else if (!still) still = performance.now();
        else if (performance.now() - still > 120) { noted.whole = still; return; }
        requestAnimationFrame(look);
    };
    look();
})()"""


@dataclass(kw_only=True)
class Undisturbed:
    """A running browser, spoken to by the DevTools protocol."""

    talk: ClientConnection
    _asked: int = field(default=0)

    def opened(self, address: str, *, useful: str, rested: str, give_up_s: float) -> dict[str, float]:
        """Milliseconds from the address to `useful` (a selector shows) and to `whole` (`rested`, a function, holds).

        What did not come within `give_up_s` is missing.
        """
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        page = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._ask("Page.enable", page)
        note = _NOTE % {"useful": json.dumps(useful), "rested": rested}
        self._ask("Page.addScriptToEvaluateOnNewDocument", page, source=note)
        self._ask("Page.navigate", page, url=address)
        noted: dict[str, float] = {}
        give_up = time.monotonic() + give_up_s
        while "whole" not in noted and time.monotonic() < give_up:
            time.sleep(0.5)
            asked = self._ask("Runtime.evaluate", page, expression="window.__noted", returnByValue=True)
            noted = asked["result"].get("value") or {}
        self._ask("Target.closeTarget", targetId=target)
        return noted

    def _ask(self, method: str, page: str | None = None, **parameters: object) -> dict[str, Any]:
        self._asked += 1
        asked: dict[str, object] = {"id": self._asked, "method": method, "params": parameters}
        self.talk.send(json.dumps(asked if page is None else asked | {"sessionId": page}))
        while True:
            answer = json.loads(self.talk.recv(timeout=30))
            if answer.get("id") == self._asked:
                result: dict[str, Any] = answer["result"]
                return result


@contextmanager
def undisturbed(chromium: str, profile: Path, *, size: tuple[int, int]) -> Iterator[Undisturbed]:
    """A browser with a profile, which keeps the scripts of an earlier visit, compiled."""
    command = [chromium, *FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_address(profile / "DevToolsActivePort"), max_size=None) as talk:
            yield Undisturbed(talk=talk)
    finally:
        process.terminate()
        process.wait(20)


def _address(port_file: Path) -> str:
    """Where the browser listens: it writes the port and the path once it does."""
    for _ in range(200):
        lines = port_file.read_text(encoding="utf-8").split() if port_file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.1)
    raise RuntimeError("the browser does not listen")
