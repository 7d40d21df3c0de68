"""A column against a list of any length: one parameter, where `IN` takes one a value and databases limit those."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Dialect,
    Integer,
    Text,
    bindparam,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine


def is_one_of(column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Give the condition that the column, of texts or integers, is one of the values; `~` of it that it is none."""
    return _is_in(column, bindparam(None, list(values), type_=_List(column.type), unique=True))


def is_in_list(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """As `is_one_of`, for a statement that is made once: the list is its parameter of this name."""
    return _is_in(column, bindparam(name, type_=_List(column.type)))


def _is_in(column: ColumnElement[Any], parameter: BindParameter[Any]) -> ColumnElement[bool]:
    return column.in_(select(literal_column("value", column.type)).select_from(_Values(parameter)))


_CANNOT_STAND: Final = re.compile("[\0\ud800-\udfff]")


class _List(TypeDecorator[Any]):
    """A list in one parameter: an array on PostgreSQL, JSON on SQLite."""

    impl = Text
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        item = BigInteger() if isinstance(self.item, Integer) else self.item
        return dialect.type_descriptor(ARRAY(item) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Iterable[Any] | None, dialect: Dialect) -> Any:
        values = [one for one in value or () if _can_stand(one)]
        return values if dialect.name == "postgresql" else json.dumps(values)


def _can_stand(value: str | int) -> bool:
    """Whether both databases can hold a value; one that they cannot hold equals none of theirs."""
    if isinstance(value, int):
        return abs(value) < 2**63
    return _CANNOT_STAND.search(value) is None


class _Values(FunctionElement[Any]):
    """The rows of a list, in a column `value`."""

    inherit_cache = True


@compiles(_Values, "sqlite")
def _on_sqlite(element: _Values, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_Values, "postgresql")
def _on_postgresql(element: _Values, compiler: Any, **options: Any) -> str:
    return f"unnest({compiler.process(element.clauses, **options)}) AS list(value)"
