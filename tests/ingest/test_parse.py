"""JSON of every kind is read or its fault named with line and column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.ingest import times
from tracejury.ingest.parse import inner_json, is_deep, json_text, parse_documents, parse_json
from tracejury.ingest.trace import IngestError

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_without_nul_comes_back_as_it_was(value: Any) -> None:
    text = json.dumps(value)
    if "\\u0000" not in text:
        assert parse_json(text.encode()) == value


@pytest.mark.parametrize(
    ("raw", "place", "reason"),
    [
        (b'{"a": 1,\n "b" 2}', "line 2", "not JSON"),
        (b'{"a": 1,\n "b": [1, 2', "line 2", "ends too early"),
        (b"", "", "the file is empty"),
        (b"[" * 5000, "", "ends too early"),
    ],
)
def test_a_fault_is_named_with_its_place(raw: bytes, place: str, reason: str) -> None:
    with pytest.raises(IngestError) as caught:
        parse_json(raw)
    assert place in caught.value.place
    assert reason in caught.value.reason
    assert caught.value.remedy


def test_documents_one_a_line_or_one_after_another_are_all_found() -> None:
    values = [{"a": 1}, {"b": [2, {"c": "\u2028 no line end"}]}, {"d": None}]
    for text in (
        "\n".join(json.dumps(v, ensure_ascii=False) for v in values),
        "\r\n\r\n".join(json.dumps(v) for v in values),
        "\n".join(json.dumps(v, indent=2) for v in values),
        "".join(json.dumps(v) for v in values),
        ",\n".join(json.dumps(v, indent=1) for v in values),
    ):
        found = list(parse_documents(text.encode()))
        assert [item.error for item in found] == [None] * 3
        assert [item.value for item in found] == values


def test_a_first_line_that_is_cut_off_does_not_hide_the_others() -> None:
    found = list(parse_documents(b'{"a": \n{"b": 2}\n{"c": 3}\n'))
    assert [item.value for item in found if item.error is None] == [{"b": 2}, {"c": 3}]
    assert [item.place for item in found if item.error is not None] == ["line 1"]


@pytest.mark.parametrize("text", ["33149", "true", '"x"', "plain", "", "{not json", "[1, 2", "[" * 3000])
def test_text_that_is_json_by_accident_stays_text(text: str) -> None:
    assert inner_json(text) is None


def test_depth_is_measured_without_recursion() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert is_deep(deep)
    assert not is_deep([[[1]]])


def test_json_text_is_compact_and_reads_back() -> None:
    assert json_text({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("PT0.003057S", 3_057), ("PT9M9.9S", 549_900_000), ("PT1H23M21.0232S", 5_001_023_200), ("PT0.03179S", 31_790),
        ("PT-0.5S", -500_000), ("-PT1S", -1_000_000), ("P1DT1S", 86_401_000_000), ("PT", None), ("1.5", None),
        (3, None), ("PT1.2.3S", None),
    ],
)  # fmt: skip
def test_iso_durations(text: Any, microseconds: int | None) -> None:
    assert times.iso_duration(text) == microseconds


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        ("2025-03-19T16:49:31.228786Z", 1_742_402_971_228_786),
        ("2025-03-19T16:49:31.228786", 1_742_402_971_228_786),  # TRAIL's events have no zone and are UTC
        ("2025-03-19T17:49:31.228786+01:00", 1_742_402_971_228_786),
        ("2025-03-19 16:49:31.228786123+00:00", 1_742_402_971_228_786),
        (1_742_402_971, 1_742_402_971_000_000),
        (1_742_402_971_228, 1_742_402_971_228_000),
        (1_742_402_971_228_786, 1_742_402_971_228_786),
        ("1742402971228786123", 1_742_402_971_228_786),
        ("yesterday", None), (None, None), (True, None), (0, None), ([], None),
    ],
)  # fmt: skip
def test_times_of_every_unit(value: Any, microseconds: int | None) -> None:
    assert times.from_any(value) == microseconds


@pytest.mark.parametrize("written", ["1e999", "-1e400", "9" * 5000, str(2**70), "NaN", "-Infinity"])
def test_a_number_that_no_database_takes_is_kept_as_it_is_written(written: str) -> None:
    text = f'{{"a": [1, {written}, NaN], "b": 2.5}}'
    expected = {"a": [1, written, "NaN"], "b": 2.5}
    assert parse_json(text.encode()) == expected
    assert inner_json(text) == expected
    first, second = parse_documents(f"{text} {text}".encode())
    assert first.value == second.value == expected
    assert [warning.partition(":")[0] for warning in first.warnings] == ["not_a_json_number"]


def test_a_number_too_large_alone_is_kept_as_it_is_written() -> None:
    assert parse_json(b'{"a": 1e999}') == {"a": "1e999"}
