"""The wheel from an empty environment: one import name, beside another package called `app`, with all its data."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = """
import os, sys
from streamlit.testing.v1 import AppTest
from tracejury import app
from tracejury.app.pages import PAGES
main = os.path.join(os.path.dirname(app.__file__), "main.py")
names = sys.argv[1:] or [page.file for page in PAGES]
for page in (page for page in PAGES if page.file in names):
    at = AppTest.from_file(main, default_timeout=120).run()
    at.switch_page(str(page.script)).run()
    assert not at.exception, (page.file, at.exception)
print(len(names))
"""


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(cwd), **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "uv", "build", "--wheel", "--quiet", "--out-dir", out, ROOT], check=True)
    (file,) = out.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, the locked versions of what it needs, and somebody else's package `app`."""
    home = tmp_path_factory.mktemp("env")
    pins = re.findall(r"^([a-z0-9][\w.-]*==[^\s\\;]+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    (home / "pins.txt").write_text("\n".join(pins), encoding="utf-8")
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, home / "venv"], check=True)
    target = home / "venv" / "bin" / "python"
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", target, "-c", home / "pins.txt", wheel], check=True, cwd=home,
        env=os.environ | {"UV_COMPILE_BYTECODE": "0"},  # `make` has it compile all, and few packages are used here
    )  # fmt: skip
    site = Path(run(target, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    share_bytecode(site)
    (site / "app").mkdir()
    (site / "app" / "__init__.py").write_text("WHOSE = 'somebody else'\n", encoding="utf-8")
    return target


def share_bytecode(site: Path) -> None:
    """Give the new environment what this one has compiled of the same files, as Python would compile them again.

    Python itself sees whether bytecode belongs to a file, and takes no other.
    """
    own = Path(sysconfig.get_path("purelib"))
    for compiled in own.rglob("__pycache__"):
        wanted = site / compiled.relative_to(own)
        if wanted.parent.is_dir():
            shutil.copytree(compiled, wanted, copy_function=linked, dirs_exist_ok=True)


def linked(source: str, target: str) -> None:
    if not os.path.exists(target):
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)


def test_the_wheel_holds_one_top_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        top = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"tracejury"}


@pytest.mark.slow
def test_it_works_installed_beside_another_package_called_app(python: Path, tmp_path: Path) -> None:
    said = run(python, "-c", "import app, tracejury.app; print(app.WHOSE, tracejury.app.__name__)", cwd=tmp_path)
    assert said.split() == ["somebody", "else", "tracejury.app"]
    home = {"TRACEJURY_HOME": str(tmp_path / "home")}
    command = python.parent / "tracejury"
    run(command, "demo", "--no-serve", cwd=tmp_path, **home)
    run(command, "report", "--out", tmp_path / "tables", "--draws", "50", cwd=tmp_path, **home)
    assert (tmp_path / "tables" / "table_03_caught.csv").stat().st_size > 0
    assert "0.2.0" in run(python, "-m", "tracejury", "--version", cwd=tmp_path)
    assert run(python, "-P", "-c", PAGES, "work", "agreement", "help", cwd=tmp_path, **home).split()[-1] == "3"


@pytest.mark.soak
def test_every_page_opens(python: Path, tmp_path: Path) -> None:
    home = {"TRACEJURY_HOME": str(tmp_path / "home")}
    run(python.parent / "tracejury", "demo", "--no-serve", cwd=tmp_path, **home)
    assert int(run(python, "-P", "-c", PAGES, cwd=tmp_path, **home).split()[-1]) > 5
