"""Layouts of texts: whatever a text holds, a layout shows stretches of it, in order, and hides no letter of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracejury.app.components.annotator.rendering import LONGEST, LONGEST_MARKDOWN, layout, leaves

LINES = st.sampled_from([
    "# Title *it* ##", "- one **bold** `co``de`", "  1. two __init__ 😀", "> quote ~~gone~~ [a](http://b.c)",
    "|a|b\\|c|", "|-|:-:|", "```python", "```", "    code x = 1", "def f(x): return 'é'", "***", "Setext", "===",
    "&amp; \\* <b>",
    "![i](x)", "", "\ttab", "a\\nb", "\x1b[31mred\x1b[0m", "@@ -1,2 +3 @@", "+ added", "[x]: http://z",
    "~~~ js a", "* [ ] x",
])  # fmt: skip
TEXTS = st.one_of(st.lists(LINES, max_size=12).map("\n".join), st.lists(LINES, max_size=6).map("\r\n".join), st.text())
NAMES = re.compile(r"[a-z][a-z0-9]*")


def shown(nodes: list[Any], text: str) -> str:
    """What is read on the screen, less the structure."""
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(
        leaf[2] if len(leaf) > 2 else units[2 * leaf[0] : 2 * leaf[1]].decode("utf-16-le", "surrogatepass")
        for leaf in leaves(nodes)
    )


def names(nodes: list[Any]) -> set[str]:
    found = set()
    for node in nodes:
        if not isinstance(node[0], int):
            found |= {node[0]} | names(node[1:])
    return found


@given(TEXTS, st.booleans())
def test_leaves_are_stretches_of_the_text_in_order_and_hide_no_letter(text: str, is_prose: bool) -> None:
    nodes = layout(text, is_prose=is_prose)
    if nodes is None:
        return
    length, at = len(text.encode("utf-16-le", "surrogatepass")) // 2, 0
    for start, end, *_ in leaves(nodes):
        assert at <= start < end <= length
        at = end
    if "\x1b" not in text and "\\n" not in text:
        assert re.sub(r"[\W_]", "", shown(nodes, text)) == re.sub(r"[\W_]", "", text)
    assert all(NAMES.fullmatch(name) for name in names(nodes)), "names become classes"


@pytest.mark.parametrize(
    ("text", "read", "has"),
    [
        ("# Plan\n\nCall **now**, _soon_.", "PlanCall now, _soon_.", {"h1", "strong", "em"}),
        ("1. one\n2. `two`", "1. one2. two", {"ol", "li", "mark", "code"}),
        ("|a|b|\n|-|-|\n|1|2|", "ab12", {"table", "th", "td"}),
        ("See [the page](http://a.b).", "See [the page](http://a.b).", {"a"}),
        ("```python\nx = 'é'  # why\n```", "```pythonx = 'é'  # why\n", {"pre", "info", "s", "c"}),
        ("😀 **bold** 😀 `code`", "😀 bold 😀 code", {"strong", "code"}),
        ("a **bold**\r\nline", "a bold\r\nline", {"strong"}),
    ],
)
def test_markdown_is_shown_without_its_marks(text: str, read: str, has: set[str]) -> None:
    nodes = layout(text, is_prose=True)
    assert nodes is not None
    assert shown(nodes, text) == read
    assert has <= names(nodes)
    assert layout(text, is_prose=False) is None, "what a tool answers is no Markdown"


@pytest.mark.parametrize(
    ("text", "read", "has"),
    [
        ("\x1b[1;31mFAILED\x1b[0m ok\x1b[K", "FAILED ok", {"t1"}),
        ("\x1b[38;5;196mred\x1b[m plain", "red plain", {"pre"}),
        ("@@ -1,2 +1,2 @@\n same\n-old\n+new\n", "@@ -1,2 +1,2 @@\n same\n-old\n+new\n", {"ins", "rm"}),
        ("one\\ntwo\\n\\tthree\\n", "one\ntwo\n\tthree\n", {"p"}),
        ("import os\nprint(os.name)", "import os\nprint(os.name)", {"k", "f"}),
    ],
)
def test_tool_output_is_shown_as_what_it_is(text: str, read: str, has: set[str]) -> None:
    nodes = layout(text, is_prose=False)
    assert nodes is not None
    assert shown(nodes, text) == read
    assert has <= names(nodes)


def test_markup_of_a_trace_is_text() -> None:
    text = "**a** <img src=x onerror=alert(1)> <script>alert(1)</script>"
    nodes = layout(text, is_prose=True)
    assert nodes is not None
    assert shown(nodes, text) == text.replace("**", "")
    assert names(nodes) == {"p", "strong"}


def test_plain_and_very_long_texts_and_json_stay_as_they_are() -> None:
    for text in ("", "Two plain\nlines.", '{"a": [1]}', "*a*" * (LONGEST_MARKDOWN // 3 + 1), "\x1b[1m" + "x" * LONGEST):
        assert layout(text, is_prose=True) is None
