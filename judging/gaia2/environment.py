"""The environment of ARE: made by pip from a locked list into a cache folder, and found again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

PACKAGE = "meta-agents-research-environments"
SETUP = "tracejury gaia2 setup"
STEP = "step"
SIZE = "about 750 MB, half a minute"
_PROBE = (
    "import json, sys; from importlib.metadata import version, PackageNotFoundError as E\n"
    "def v(n):\n"
    "    try: return version(n)\n"
    "    except E: return None\n"
    "import are.simulation.scenario_runner\n"
    "print(json.dumps({'python': sys.version.split()[0], 'are': v('meta-agents-research-environments'),"
    " 'maseval': v('maseval')}))"
)


class Gaia2Error(Exception):
    """What a person must repair before GAIA2 can run here; the message says what and how."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AreEnvironment:
    """A Python that has ARE, with the versions that it runs."""

    python: Path
    python_version: str
    are_version: str
    maseval_version: str | None


def requirements() -> bytes:
    """The locked list: every package of ARE's environment with the hashes of its files."""
    return resources.files("tracejury.data").joinpath("gaia2/requirements.txt").read_bytes()


def cache_folder() -> Path:
    """Where the environment is kept: TRACEJURY_CACHE, else the user's cache folder."""
    named = os.environ.get("TRACEJURY_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(named) if named else (Path(base) if base else Path.home() / ".cache") / "tracejury"


def own_folder() -> Path:
    """The folder of the environment that this list and this Python make."""
    digest = hashlib.sha256(requirements()).hexdigest()[:12]
    return cache_folder() / f"are-{digest}-py{sys.version_info.major}.{sys.version_info.minor}"


def find(python: Path | None = None) -> AreEnvironment:
    """The environment to run in: the Python named here, by TRACEJURY_ARE_PYTHON, by the set-up, or the one made.

    Raises `Gaia2Error` where there is none, or the one named has no ARE.
    """
    named = python or _named()
    if named is not None:
        return probe(named)
    if not _is_ready(own_folder()):
        raise Gaia2Error(f"GAIA2 needs its own environment, which does not exist yet. Try: {SETUP} ({SIZE})")
    return _environment_at(own_folder())


def probe(python: Path) -> AreEnvironment:
    """The versions that a Python has. Raises `Gaia2Error` for one that cannot import ARE."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=180, env=scrubbed(), check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Gaia2Error(f"{python} cannot be run: {error}. Try: --python with the path of a Python") from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise Gaia2Error(f"{python} cannot import ARE: {last[0]}. Try: {python} -m pip install {PACKAGE}")
    versions = json.loads(done.stdout.strip().splitlines()[-1])
    return AreEnvironment(
        python=python,
        python_version=versions["python"],
        are_version=versions["are"] or "unknown",
        maseval_version=versions["maseval"],
    )


def remember(python: Path) -> AreEnvironment:
    """Use this Python from now on. Raises `Gaia2Error` for one without ARE."""
    environment = probe(python)
    _choice().parent.mkdir(parents=True, exist_ok=True)
    _choice().write_text(json.dumps({"python": str(python.absolute())}), encoding="utf-8")
    return environment


def make(progress: Callable[[str], None] = lambda line: None) -> AreEnvironment:
    """Make the environment unless it is there. Raises `Gaia2Error` where the installer fails.

    `progress` gets a line that begins with `STEP` before each step, and the installer's lines between them.
    """
    folder = own_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.with_suffix(".lock")):
        _choice().unlink(missing_ok=True)
        if not _is_ready(folder):
            _install(folder, progress)
            progress(f"{STEP} 4 of 4: import ARE")
            environment = probe(folder / "bin" / "python")
            facts = {
                "python": environment.python_version,
                "are": environment.are_version,
                "maseval": environment.maseval_version,
            }
            (folder / "ready.json").write_text(json.dumps(facts), encoding="utf-8")
    return _environment_at(folder)


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def scrubbed(**more: str) -> dict[str, str]:
    """The environment variables of a process that runs ARE: no key, no token, no path of ours."""
    known = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR", "TZ") if name in os.environ}
    return {"LANG": "C.UTF-8", **known, **more}


def _install(folder: Path, progress: Callable[[str], None]) -> None:
    listed = folder.with_suffix(".txt")
    listed.write_bytes(requirements())
    progress(f"{STEP} 1 of 4: make an empty environment")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)], progress)
    python = str(folder / "bin" / "python")
    progress(f"{STEP} 2 of 4: install the packages")
    _run([*_installer(python), str(listed)], progress)
    progress(f"{STEP} 3 of 4: compile them")
    _run([python, "-m", "compileall", "-q", "-j", "2", str(folder / "lib")], progress, must=False)


def _installer(python: str) -> list[str]:
    """The command that installs a list: uv where it is at hand, which loads files side by side, else pip."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is not None:
        return [uv, "pip", "install", "--no-config", "--python", python, "--no-deps", "--require-hashes", "-r"]
    options = ["--disable-pip-version-check", "--no-input", "--no-deps", "--require-hashes"]
    return [python, "-m", "pip", "install", *options, "-r"]


def _run(command: list[str], progress: Callable[[str], None], *, must: bool = True) -> None:
    # Bytecode is compiled once here: without it every execution would start for ten seconds.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    ) as process:
        lines = [_passed_on(line, progress) for line in process.stdout or ()]
    if must and process.returncode != 0:
        last_lines = "\n".join(line for line in lines[-5:] if line)
        raise Gaia2Error(
            f"the environment of ARE could not be made:\n{last_lines}\nTry: {SETUP} --python PATH of your own"
        )


def _passed_on(line: str, progress: Callable[[str], None]) -> str:
    progress(line.rstrip())
    return line.rstrip()


def _named() -> Path | None:
    if path := os.environ.get("TRACEJURY_ARE_PYTHON"):
        return Path(path)
    if _choice().exists():
        return Path(json.loads(_choice().read_text(encoding="utf-8"))["python"])
    return None


def _choice() -> Path:
    return cache_folder() / "are-python.json"


def _is_ready(folder: Path) -> bool:
    return (folder / "ready.json").exists()


def _environment_at(folder: Path) -> AreEnvironment:
    facts = json.loads((folder / "ready.json").read_text(encoding="utf-8"))
    return AreEnvironment(
        python=folder / "bin" / "python",
        python_version=facts["python"],
        are_version=facts["are"],
        maseval_version=facts["maseval"],
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time make the environment; the others wait and find it made."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
