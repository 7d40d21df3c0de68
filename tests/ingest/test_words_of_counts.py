"""Counts in words."""

import pytest

from tracejury.ingest.words import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "trace", "0 traces"), (1, "trace", "1 trace"), (1204, "error pair", "1,204 error pairs"),
        (1, "query", "1 query"), (2, "query", "2 queries"), (2, "key", "2 keys"), (3, "match", "3 matches"),
    ],
)  # fmt: skip
def test_a_noun_agrees_with_its_number(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words
