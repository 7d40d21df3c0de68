"""Conditions on lists of any length: the same on both databases, and no limit of either is met."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, Text, create_engine, insert, select

from tracejury.ingest.store.one_of import is_in_list, is_one_of

MANY = 300_000
"""More than any SQLite takes as parameters (250,000 in Debian's); PostgreSQL takes 65,535."""
THINGS = Table("thing", MetaData(), Column("key", BigInteger, primary_key=True), Column("name", Text))
NAMES = ("a", "", "ä", "'", '"', "1", "null", "[]", "a\\b", "€ 𝄞", "%", "A")


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as opened:
        fill(opened)
        yield opened


def fill(connection: Connection) -> None:
    THINGS.create(connection)
    connection.execute(insert(THINGS), [{"key": key, "name": name} for key, name in enumerate(NAMES, 2**40)])


def chosen(connection: Connection, condition: Any) -> list[str]:
    return list(connection.scalars(select(THINGS.c.name).where(condition).order_by(THINGS.c.key)))


@given(st.lists(st.sampled_from((*NAMES, "b", "NULL", "\x00", "\ud800", "x" * 1000))))
def test_a_text_is_one_of_a_list_or_none_of_it(connection: Connection, names: list[str]) -> None:
    assert chosen(connection, is_one_of(THINGS.c.name, names)) == [one for one in NAMES if one in names]
    assert chosen(connection, ~is_one_of(THINGS.c.name, names)) == [one for one in NAMES if one not in names]


@given(st.lists(st.integers(-1, len(NAMES))))
def test_a_number_is_one_of_a_list(connection: Connection, places: list[int]) -> None:
    keys = [2**80, -(2**64), *(2**40 + place for place in places)]
    expected = [name for place, name in enumerate(NAMES) if place in places]
    assert chosen(connection, is_one_of(THINGS.c.key, iter(keys))) == expected
    statement = select(THINGS.c.name).where(is_in_list(THINGS.c.key, "keys")).order_by(THINGS.c.key)
    assert list(connection.scalars(statement, {"keys": keys})) == expected


def test_a_list_is_longer_than_the_database_takes_parameters(connection: Connection) -> None:
    assert_long_lists(connection)


def assert_long_lists(connection: Connection) -> None:
    texts = [*map(str, range(MANY)), "ä"]
    assert chosen(connection, is_one_of(THINGS.c.name, texts)) == ["ä", "1"]
    assert len(chosen(connection, ~is_one_of(THINGS.c.name, texts))) == len(NAMES) - 2
    assert chosen(connection, is_one_of(THINGS.c.key, range(2**40 - MANY, 2**40 + 1))) == ["a"]
