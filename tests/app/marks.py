"""The marks of a page's charts, and clicks on them, as the tests of pages take them."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest
from streamlit.util import AttributeDictionary


def texts(elements: object) -> list[str]:
    return [element.value for element in elements]  # type: ignore[attr-defined]


def drawn(at: AppTest, name: str) -> list[dict[str, Any]]:
    """The traces of a chart."""
    found: list[dict[str, Any]] = spec_of(at, name)["data"]
    return found


def spec_of(at: AppTest, name: str) -> dict[str, Any]:
    """A chart as Plotly draws it; `name` is the end of its key."""
    chart = next(chart for chart in at.get("plotly_chart") if chart.proto.id.endswith(f"-{name}"))
    found: dict[str, Any] = json.loads(chart.proto.spec)
    return found


def marks_of(at: AppTest, key: str) -> list[list[object]]:
    """The `customdata` of the first mark of each trace of a chart."""
    every = [trace.get("customdata") for trace in drawn(at, key.removeprefix("chart-"))]
    return [_rows(data)[0] for data in every if data is not None and len(_rows(data))]


def _rows(data: list[list[object]] | dict[str, str]) -> list[list[object]]:
    return data if isinstance(data, list) else numbers(data).tolist()


def numbers(data: list[float] | dict[str, str]) -> Any:
    """Plotly packs columns of numbers."""
    if isinstance(data, list):
        return np.array(data)
    held = np.frombuffer(base64.b64decode(data["bdata"]), dtype=data["dtype"])
    return held.reshape([int(size) for size in data.get("shape", str(len(held))).split(",")])


def click(at: AppTest, key: str, *points: dict[str, object]) -> None:
    """Choose marks of a chart, as a click in the browser does."""
    at.session_state[key] = AttributeDictionary({"selection": {"points": list(points), "point_indices": []}})
    at.run()


def choose(at: AppTest, key: str, place: int | tuple[int, str]) -> None:
    """Choose a row of a table, or a cell by row and column."""
    rows, cells = ([place], []) if isinstance(place, int) else ([], [place])
    at.session_state[key] = AttributeDictionary({"selection": {"rows": rows, "columns": [], "cells": cells}})
    at.run()
