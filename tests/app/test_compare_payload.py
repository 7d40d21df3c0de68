"""The text of a pair, cut into marked segments: nothing is lost, nothing is altered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.app.components.comparison.payload import WHOLE, Stretch, find_quote, segments


def joined(cut: list[list[object]]) -> str:
    return "".join(str(piece[0]) if len(piece) == 2 else "?" * int(str(piece[0])) for piece in cut)


def test_marks_that_overlap_show_both_sides() -> None:
    marks = [Stretch(0, 6, "reference"), Stretch(4, 9, "judge")]
    assert segments("abcdefghij", marks) == [["abcd", "reference"], ["ef", "both"], ["ghi", "judge"], ["j", ""]]


def test_a_long_text_is_shown_around_its_marks_and_says_how_much_it_leaves_out() -> None:
    text = "x" * 50_000
    cut = segments(text, [Stretch(30_000, 30_010, "judge")])
    assert [len(piece) for piece in cut] == [2, 1, 2, 2, 2, 1]
    assert sum(len(piece[0]) if len(piece) == 2 else piece[0] for piece in cut) == 50_000  # type: ignore[index, arg-type, misc]


@given(
    st.text(max_size=300),
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.sampled_from(["reference", "judge"])), max_size=4),
)
def test_segments_joined_are_the_text(text: str, places: list[tuple[int, int, str]]) -> None:
    marks = [
        Stretch(min(a, b, len(text)), min(max(a, b), len(text)), side)  # type: ignore[arg-type]
        for a, b, side in places
    ]
    cut = segments(text, marks)
    assert joined(cut) == text  # type: ignore[arg-type]


def test_a_short_text_is_never_cut() -> None:
    assert segments("y" * WHOLE, []) == [["y" * WHOLE, ""]]


@pytest.mark.parametrize(
    ("quote", "places"),
    [
        ("the cat sat", ["the cat sat"]),
        ("the  cat\nsat", ["the cat sat"]),
        ("the cat\\nsat", ["the cat sat"]),
        ("the cat ... on the mat", ["the cat", "on the mat"]),
        ("the dog", []),
        ("", []),
        ("cat", []),  # too short to mean anything
        ("sat (on", []),
    ],
)
def test_quotes_are_found_with_white_space_folded_and_ellipses_cut(quote: str, places: list[str]) -> None:
    text = "First, the cat sat down on the mat."
    assert [text[start:end] for start, end in find_quote(text, quote)] == places
