"""Each reader against made-up damage: no traceback, no hang, nothing invented, no span lost in silence."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ingest import mutants
from tests.ingest.test_bad_input import DOCUMENTS, fine
from tests.ingest.trail_files import read_all

from tracejury.ingest.readers import READERS
from tracejury.ingest.trace import Trace

MARKS = (b'"', b"{", b"}", b"[", b"]", b",", b"\n{", b"\x00", b"\\")
ROUNDS = [pytest.param(15, id="short"), pytest.param(1500, id="long", marks=pytest.mark.soak)]

LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=8)
ANY_JSON = st.recursive(
    LEAVES, lambda children: st.lists(children) | st.dictionaries(st.text(max_size=8), children)
).map(lambda value: json.dumps(value).encode())


def damaged(raw: bytes, data: st.DataObject) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    text = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(text) - 1, 0)))
        match data.draw(st.sampled_from(("change", "cut", "double", "insert", "end"))):
            case "change":
                text[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
            case "cut":
                del text[place : place + data.draw(st.integers(1, 200))]
            case "double":
                text[place:place] = text[place : place + data.draw(st.integers(1, 200))]
            case "insert":
                text[place:place] = data.draw(st.sampled_from(MARKS))
            case _:
                del text[place:]
    return bytes(text)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.timeout(1800)
def test_no_damage_breaks_a_reader(name: str, rounds: int) -> None:
    form = [json.dumps(DOCUMENTS[name](), indent=indent).encode() for indent in (None, 2)]

    @settings(max_examples=rounds, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def attack(data: st.DataObject) -> None:
        raw = damaged(data.draw(st.sampled_from(form)), data)
        if raw.strip():
            fine(read_all(raw))

    attack()


@pytest.mark.parametrize(
    "rounds", [pytest.param(40, id="short"), pytest.param(10_000, id="long", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize("name", mutants.FILES)
@pytest.mark.timeout(1800)
def test_no_span_of_a_broken_file_is_lost_in_silence(name: str, rounds: int) -> None:
    for seed in range(rounds):
        raw = mutants.mutant(name, random.Random(f"{name} {seed}"))
        items = read_all(raw)
        fine(items)
        assert mutants.lost_in_silence(raw, items) == set(), (seed, items)


@pytest.mark.parametrize("name", mutants.FILES)
def test_every_marked_span_of_a_whole_file_is_read(name: str) -> None:
    """What the test above counts by: each span bears its marks, and one that is left out is seen."""
    raw = b"\n".join(json.dumps(one).encode() for one in mutants.marked(name))
    (*traces,) = (item for item in read_all(raw) if isinstance(item, Trace))
    count = len(set(re.findall(rb"marked-(\d{3})", raw)))
    assert sum(len(trace.spans) for trace in traces) == count > 2
    without = [replace(trace, spans=trace.spans[:-1]) for trace in traces]
    assert len(mutants.lost_in_silence(raw, [*without])) == len(traces)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.NAME)
@pytest.mark.timeout(1800)
def test_any_bytes_given_to_a_reader_end_in_traces_or_words(reader: Any, rounds: int) -> None:
    @settings(max_examples=rounds, deadline=None, suppress_health_check=list(HealthCheck))
    @given(raw=st.one_of(st.binary(min_size=1, max_size=300), ANY_JSON))
    def attack(raw: bytes) -> None:
        if raw.strip():
            fine(read_all(raw, format=reader.NAME))

    attack()
