"""Targets of coverage-guided fuzzing (atheris): each reader, and each route of the API.

`python -m tests.fuzz reader:otlp FOLDER -max_total_time=60` runs one; arguments after the folder are libFuzzer's. The
folder holds what was found to reach new code, and as `crash-…` an input that fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).resolve().parents[1] / "data" / "samples"
SEED_BYTES = 20_000
"""Larger samples are no seeds: what is found in them is found in small ones sooner."""
PARTS = 6
"""A request is cut into so many: method, part of the path, query, name and value of a header, body."""
Target = Callable[[bytes], None]


def readers() -> list[str]:
    """Name the targets that read files: one for each format, and one that recognises what it is given."""
    from tracejury.ingest.readers import READERS

    return ["reader:any", *(f"reader:{reader.NAME}" for reader in READERS)]


def routes() -> list[str]:
    """Name the targets that send requests: each route, where nobody signs in and where people do."""
    from tracejury.app.asgi import OURS

    return [f"route:{mode}:{number}" for mode in ("off", "password") for number in range(len(OURS))]


def reading(name: str) -> Target:
    """Give bytes to a reader; whatever they are, traces or named rejections come out."""
    from tests.ingest.test_bad_input import fine
    from tests.ingest.trail_files import read_all

    def target(data: bytes) -> None:
        if data.strip():
            fine(read_all(data, format=None if name == "any" else name))

    return target


def requesting(mode: str, number: int) -> Target:
    """Send requests to a route of an app with a workspace; no answer is a fault of the server.

    `TOKEN` in a request is one that is good for the route and the trace `x`; where people sign in, an administrator
    has done so.
    """
    os.environ["TRACEJURY_SIGN_IN"] = mode
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from tests.app.test_fuzz_routes import filled
    from tracejury.app import asgi
    from tracejury.app.api.answers import MachineFaults

    route, cookies, token = asgi.OURS[number], *_entered(asgi.OURS[number].path)
    before = [one for one in asgi.middleware()[1:] if one.cls is not MachineFaults]  # it would hide faults of ours
    app = Starlette(routes=[*asgi.OURS], middleware=before)
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False, cookies=cookies)
    methods = sorted(route.methods or {"GET"})

    def target(data: bytes) -> None:
        data = data.replace(b"TOKEN", token)
        method, part, query, header, value, body = (*data.split(b"\n", PARTS - 1), *[b""] * PARTS)[:PARTS]
        path = filled(route.path, part.decode("latin-1"))
        name = "".join(chr(one) for one in header if chr(one).isalnum() or one == ord("-")) if header.isascii() else ""
        plain = bytes(one for one in value if 32 <= one < 127).decode()
        answer = client.request(
            methods[len(method) % len(methods)], path, params=query.decode("latin-1").replace("\r", ""), content=body,
            headers={"content-type": "application/json", **({name: plain} if name else {})}, follow_redirects=False,
        )  # fmt: skip
        assert answer.status_code < 500 or answer.status_code == 503, (answer.status_code, answer.text[:300])
        assert "Traceback" not in answer.text

    return target


def _entered(path: str) -> tuple[dict[str, str], bytes]:
    """A workspace with a trace and an administrator; their session cookie, and their token for the route."""
    from tests.app.desk_traces import desk_trace
    from tracejury.app import signin
    from tracejury.app.api import compare, exports, scripts
    from tracejury.app.grants import TRACE, Grant, mint
    from tracejury.app.session import workspace
    from tracejury.ingest.store import pack, write, write_transaction
    from tracejury.judging.store.people import add_person

    space = workspace()
    with write_transaction(space.engine) as connection:
        write(connection, pack(desk_trace("x")))
        add_person(connection, "root", role="admin", by="fuzz", password="a long enough secret")
    secret = space.secret()
    purposes = {"/api/compare": (compare.PURPOSE, "x"), "/api/export": (exports.PURPOSE, "labels")}
    purpose, subject = next((of for start, of in purposes.items() if path.startswith(start)), (TRACE, "x"))
    token = mint(secret, Grant("root", subject), purpose=purpose)
    if path.startswith("/v1/"):
        token = scripts.mint_script(space, "root", use="otlp", days=1, by="fuzz")
    return {signin.COOKIE: signin.mint(secret, signin.Session("root", 0))}, token.encode()


def seeds(name: str, folder: Path) -> None:
    """Write what fuzzing begins with: small samples of a format, or of all; a request of each kind."""
    kind, _, what = name.partition(":")
    files = SAMPLES.rglob("*") if kind == "reader" else ()
    small = (file for file in files if file.is_file() and file.stat().st_size <= SEED_BYTES)
    for file in small:
        if what in ("any", file.parent.name):
            (folder / f"{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
    if kind == "route":
        (folder / "json").write_bytes(
            b'\nx\ntoken=TOKEN&trace_id=x&q=x\naccept\n*/*\n{"token": "TOKEN", "trace_id": "x", "base_revision": 0, '
            b'"body": "x", "comment_id": "x", "keys": {}, "pretty": true, "ops": [{"op_id": "an-operation-1", '
            b'"kind": "score.put", "payload": {"dimension": "LC", "value": 1}}], "resourceSpans": []}'
        )
        (folder / "export").write_bytes(b"\nlabels\ntoken=TOKEN&format=json\naccept\n*/*\n")
        (folder / "script").write_bytes(b'\nx\n\nauthorization\nBearer TOKEN\n{"resourceSpans": []}')
        (folder / "form").write_bytes(
            b"\nx\nnext=/\ncontent-type\napplication/x-www-form-urlencoded\nname=a&password=b"
        )


def main(name: str, folder: Path, arguments: list[str]) -> None:
    """Fuzz one target until libFuzzer's limits are reached or an input fails; it ends the process."""
    import atheris

    kind, _, what = name.partition(":")
    os.environ["TRACEJURY_HOME"] = str(folder / "home")
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    seeds(name, inputs)
    with atheris.instrument_imports(include=["tracejury.ingest", "tracejury.app.api", "tracejury.app.guard"]):
        mode, _, number = what.partition(":")
        target: Any = reading(what) if kind == "reader" else requesting(mode, int(number))
    atheris.Setup([sys.argv[0], f"-artifact_prefix={folder}/", *arguments, str(inputs)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
