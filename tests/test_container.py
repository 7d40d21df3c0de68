"""The container and compose files, read as far as that can be done without a container engine."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from sqlalchemy import make_url

from tracejury.app import asgi
from tracejury.app.cli import main
from tracejury.app.commands import serving
from tracejury.app.config import config

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".container"
HELP = (ROOT / "data" / "help" / "team.md").read_text(encoding="utf-8")


def instructions() -> list[tuple[str, str]]:
    """What the container file does, line by line, continued lines joined."""
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"])


def test_the_app_runs_as_nobody_of_importance_and_may_write_its_home_alone(services: dict[str, Any]) -> None:
    stage = instructions()[[name for name, _ in instructions()].index("FROM", 1) :]
    assert [rest for name, rest in stage if name == "USER"] == ["10001"]
    assert [name for name, _ in stage].index("USER") < [name for name, _ in stage].index("CMD")
    app = services["app"]
    assert (app["read_only"], app["cap_drop"]) == (True, ["ALL"])
    assert "user" not in app
    assert [volume.partition(":")[2] for volume in app["volumes"]] == ["/data"]


def test_the_container_starts_a_command_that_there_is_and_asks_a_route_that_there_is() -> None:
    said = dict(instructions())
    _, command, *arguments = orjson.loads(said["CMD"])
    assert main.commands[command].make_context(command, arguments).params["host"] == "0.0.0.0"
    asked = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)'", said["HEALTHCHECK"])
    assert asked is not None
    assert asked[1] == said["EXPOSE"] == str(main.commands["serve"].params[2].default)
    assert asked[2] in {route.path for route in asgi.OURS}


def test_what_is_installed_is_named_in_the_project() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    install = next(rest for name, rest in instructions() if name == "RUN" and "uv pip install" in rest)
    named = re.search(r"/src\[([\w,]+)\]", install)
    assert named is not None
    assert set(named[1].split(",")) <= set(extras)
    assert "--constraints" in shlex.split(install)
    assert (ROOT / "requirements.lock").is_file()


def test_the_settings_are_those_of_the_help_and_open_no_door(
    services: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        name: re.sub(r"\$\{.*?\}", "x.example", value) for name, value in services["app"]["environment"].items()
    }
    assert [name for name in settings if f"`{name}`" not in HELP] == []
    assert make_url(settings["TRACEJURY_DATABASE"]).host == "database"
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    config.cache_clear()
    try:
        serving.refuse_open_door("0.0.0.0", is_agreed=False)
        assert "x.example" in (config().hosts or ())
        assert config().proxies == (services["proxy"]["networks"]["outside"]["ipv4_address"],)
    finally:
        config.cache_clear()


def test_only_the_proxy_is_reached_from_outside(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert services["database"]["networks"] == ["inside"]
    networks = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["networks"]
    assert networks["inside"]["internal"] is True


def test_each_service_waits_for_the_health_of_what_it_needs(services: dict[str, Any]) -> None:
    for service in services.values():
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy"
            assert needed == "app" or "healthcheck" in services[needed]


def test_the_proxy_lets_through_what_the_app_takes(services: dict[str, Any]) -> None:
    proxy = (FOLDER / "Caddyfile").read_text(encoding="utf-8")
    largest = re.search(r"max_size (\d+)MB", proxy)
    taken = re.search(r"--server\.maxUploadSize=(\d+)", Path(serving.__file__).read_text(encoding="utf-8"))
    assert largest is not None
    assert taken is not None
    assert int(largest[1]) * 1_000_000 > int(taken[1]) * 1024 * 1024
    assert f"reverse_proxy app:{dict(instructions())['EXPOSE']}" in proxy
    assert "./Caddyfile:/etc/caddy/Caddyfile:ro" in services["proxy"]["volumes"]


def test_the_programs_for_backups_are_of_the_server_s_version(services: dict[str, Any]) -> None:
    client = re.search(r"postgresql-client-(\d+)", str(instructions()))
    assert client is not None
    assert services["database"]["image"] == f"postgres:{client[1]}"
