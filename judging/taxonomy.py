"""TRAIL's 21 error categories and the default map from each to the GPA dimensions it is judged under."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import cast

from tracejury.ingest.labels import normal_category
from tracejury.judging.records import DIMENSIONS, Dimension


@dataclass(frozen=True, kw_only=True, slots=True)
class Category:
    """One category of TRAIL. `dimensions` are a default that pre-fills a label; a person may correct it."""

    name: str
    group: str
    dimensions: tuple[Dimension, ...]
    reason: str


@cache
def categories() -> tuple[Category, ...]:
    """The categories in the order of `data/taxonomy.csv`."""
    text = files("tracejury.data").joinpath("taxonomy.csv").read_text(encoding="utf-8")
    return tuple(_category(row) for row in csv.DictReader(io.StringIO(text)))


def normalise(category: str) -> str | None:
    """The category that a spelling means, None if none; see `ingest.labels.normal_category`."""
    return normal_category(category)


def dimensions_of(category: str) -> tuple[Dimension, ...]:
    """The default dimensions of a category in any spelling, () if it is none of the 21."""
    name = normalise(category)
    return next((entry.dimensions for entry in categories() if entry.name == name), ())


def _category(row: dict[str, str]) -> Category:
    dimensions = row["dimensions"].split(";")
    unknown = set(dimensions) - set(DIMENSIONS)
    if unknown:
        raise ValueError(f"data/taxonomy.csv: {row['category']!r} maps to {sorted(unknown)}, not among {DIMENSIONS}")
    return Category(
        name=row["category"],
        group=row["group"],
        dimensions=cast(tuple[Dimension, ...], tuple(dimensions)),
        reason=row["reason"],
    )
