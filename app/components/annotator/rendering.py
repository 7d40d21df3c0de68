"""How the desk shows a text: its structure as places in the stored text, never as markup.

A layout is a list of nodes. A leaf `[start, end]` shows that stretch of the text as it stands, `[start, end, shown]`
shows other characters for it (an escaped line break); a node `[name, node, ...]` sets its leaves apart. Leaves come in
the order of the text and never overlap, so that what is selected is a stretch of the stored text. What no leaf shows
is hidden: white space, the marks of Markdown, the sequences of a terminal. A letter or digit of the trace is never
hidden but in such a sequence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Token as Kind
from pygments.token import _TokenType
from pygments.util import ClassNotFound

LONGEST = 200_000  # characters: a longer text stays as it is
LONGEST_MARKDOWN = 60_000  # reading Markdown may take the square of the length
Node = list[Any]

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("text_join")
_NAMES = {
    "paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li", "blockquote": "quote",
    "table": "table", "thead": "rows", "tbody": "rows", "tr": "tr", "th": "th", "td": "td",
    "em": "em", "strong": "strong", "s": "del", "link": "a",
}  # fmt: skip
_HIDEABLE = re.compile(r"[\s#>*_~`|:=+\\-]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_ITEM = re.compile(r"[ \t>]*((?:[-*+]|\d{1,9}[.)])[ \t]*)")
_PREFIX = re.compile(r"[ \t>]*(?:#{1,6}(?=[ \t]))?[ \t]*")
_KINDS = (
    (Kind.Comment, "c"), (Kind.Literal.String, "s"), (Kind.Literal.Number, "n"), (Kind.Keyword, "k"),
    (Kind.Name.Function, "f"), (Kind.Name.Class, "f"), (Kind.Name.Tag, "k"), (Kind.Name.Builtin, "f"),
    (Kind.Name.Exception, "rm"), (Kind.Generic.Inserted, "ins"), (Kind.Generic.Deleted, "rm"),
    (Kind.Generic.Error, "rm"), (Kind.Generic.Heading, "k"), (Kind.Generic.Subheading, "k"),
    (Kind.Generic.Traceback, "k"),
)  # fmt: skip
_DIFF = re.compile(r"(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):\n")
_PYTHON = re.compile(r"\s*(?:#!\S*python|(?:from [\w.]+ )?import \w|(?:async )?def \w+\(|class \w+.*:\n)")
_TERMINAL = re.compile(r"\x1b\[([0-9;]*)m|\x1b\[[0-9;?]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_ESCAPED = re.compile(r"\\r\\n|\\n|\\t")


def layout(text: str, *, is_prose: bool) -> list[Node] | None:
    """The layout of `text`, its places in UTF-16 units as a browser counts; None: it is shown as it stands.

    `is_prose` reads it as Markdown where it is nothing else (a diff, terminal output, code, escaped lines).
    """
    if not text or len(text) > LONGEST:
        return None
    nodes = _nodes(text, is_prose=is_prose)
    return None if nodes is None else _in_units(nodes, text)


def _nodes(text: str, *, is_prose: bool) -> list[Node] | None:
    if "\x1b" in text:
        return _terminal(text)
    if "\n" not in text and text.count("\\n") > 2 and text[0] not in '{["':
        return _unescaped(text)
    if text.lstrip()[:1] in ("{", "["):
        return None  # JSON, which the browser formats
    language = "diff" if _DIFF.search(text) else "pytb" if _TRACEBACK.match(text) else None
    if language is None and not is_prose and _PYTHON.match(text) and "\n" in text.strip():
        language = "python"
    if language is not None:
        return [["pre", *_highlighted(text, range(len(text) + 1), language)]]
    return _Markdown(text).nodes() if is_prose and len(text) <= LONGEST_MARKDOWN else None


# ---- Markdown --------------------------------------------------------------------------------------------------------


class _Markdown:
    """Walks over the tokens and the text side by side; `at` is the place up to which the text has been shown."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        ends = [(match.start(), match.end()) for match in _LINE_END.finditer(text)]
        self.starts = [0, *(end for _, end in ends), len(text)]
        self.ends = [*(start for start, _ in ends), len(text)]
        self.stack: list[Node] = [[]]
        self.line = 0

    def nodes(self) -> list[Node] | None:
        """None where the text has no structure to show."""
        tokens = _MARKDOWN.parse(self.text)
        if all(token.type in ("paragraph_open", "paragraph_close", "inline") for token in tokens) and not any(
            child.type not in ("text", "softbreak", "text_special")
            for token in tokens
            for child in token.children or []
        ):
            return None
        for token in tokens:
            self._block(token)
        self._pass_over(len(self.text))
        return self.stack[0]

    def _block(self, token: Token) -> None:
        if token.map is not None and token.type != "inline":
            self._pass_over(self.starts[token.map[0]])
            self.line = token.map[0]
        if token.type == "inline":
            self._inline(token)
        elif token.type in ("fence", "code_block"):
            self._code(token)
        elif token.type == "hr":
            self.stack[-1].append(["hr"])
            self._pass_over(self.ends[self.line])
        elif token.nesting == 1:
            self._open(token)
        elif token.nesting == -1:
            self._close()

    def _open(self, token: Token) -> None:
        name = token.type.removesuffix("_open")
        self.stack.append([token.tag if name == "heading" else _NAMES[name]])
        marker = _ITEM.match(self.text, self.at) if name == "list_item" else None
        if marker is not None:
            self._show(*marker.span(1), "mark")

    def _close(self) -> None:
        node = self.stack.pop()
        self.stack[-1].append(node)

    def _inline(self, token: Token) -> None:
        if token.map is not None and self.starts[token.map[0]] >= self.at:
            self.line = token.map[0]
            self._pass_over(self.starts[self.line])
        self._skip_prefix()
        for child in token.children or []:
            self._child(child)

    def _child(self, child: Token) -> None:
        if child.type in ("softbreak", "hardbreak"):
            self._line_break()
        elif child.type == "code_inline":
            self._inline_code(child)
        elif child.nesting:
            self._mark(child)
        elif child.type == "text_special":
            self._find(child.content if child.info == "escape" else child.markup)
        elif child.type == "text":
            self._find(child.content)

    def _line_break(self) -> None:
        if self.line + 1 < len(self.ends):
            self._show(max(self.at, self.ends[self.line]), self.starts[self.line + 1])
            self.line += 1
            self._skip_prefix()

    def _skip_prefix(self) -> None:
        match = _PREFIX.match(self.text, self.at, self.ends[self.line])
        if match is not None:
            self._pass_over(match.end())

    def _mark(self, child: Token) -> None:
        if child.nesting == 1:
            self.stack.append([_NAMES[child.type.removesuffix("_open")]])
        place = self._place(child.markup)
        if place is not None and child.markup[0] == "_":
            self._show(place, place + len(child.markup))  # it may be the name of something: `__init__`
        elif place is not None and child.type not in ("link_open", "link_close"):
            self._pass_over(place + len(child.markup))
        if child.nesting == -1:
            self._close()

    def _inline_code(self, child: Token) -> None:
        opening = self._place(child.markup)
        closing = None if opening is None else self._closing(child.markup, opening + len(child.markup))
        if opening is None or closing is None:
            return
        self._pass_over(opening + len(child.markup))
        self._show(self.at, closing, "code")
        self._pass_over(closing + len(child.markup))
        while self.line + 1 < len(self.starts) - 1 and self.starts[self.line + 1] <= closing:
            self.line += 1

    def _closing(self, markup: str, start: int) -> int | None:
        match = re.compile(rf"(?<!`){re.escape(markup)}(?!`)").search(self.text, start)
        return None if match is None else match.start()

    def _find(self, words: str) -> None:
        place = self._place(words)
        if place is not None:
            self._show(place, place + len(words))

    def _place(self, words: str) -> int | None:
        """Where `words` stand next in the line in hand."""
        place = self.text.find(words, self.at, self.ends[self.line]) if words else -1
        return None if place < 0 else place

    def _code(self, token: Token) -> None:
        first, last = token.map or (self.line, self.line)
        is_fence = token.type == "fence"
        if is_fence and token.info.strip():
            self._show(self.starts[first], self.ends[first], "info")
        places = self._code_places(token.content, first + is_fence)
        if places is None:
            self._show(self.at, self.ends[min(last, len(self.ends)) - 1], "pre")
            return
        if len(places) > 1:
            self._pass_over(places[0])
            language = token.info.split()[0] if token.info.strip() else ""
            code = token.content[: len(places) - 1]
            self.stack[-1].append(["pre", *_highlighted(code, places, language)])
            self.at = places[-1]
        self.line = min(last, len(self.ends)) - 1

    def _code_places(self, content: str, first: int) -> list[int] | None:
        """The place in the text of each character of the code and of its end; None where they differ."""
        places: list[int] = []
        for number, line in enumerate(content.removesuffix("\n").split("\n") if content else (), first):
            if number >= len(self.ends) or not self.text.endswith(line, self.starts[number], self.ends[number]):
                return None
            places += range(self.ends[number] - len(line), self.ends[number])
            if self.starts[number + 1] > self.ends[number]:
                places.append(self.starts[number + 1] - 1)  # the line feed, also behind a carriage return
        return [*places, places[-1] + 1] if places else [self.at]

    def _show(self, start: int, end: int, name: str = "") -> None:
        self._pass_over(start)
        if end > start:
            self.stack[-1].append([name, [start, end]] if name else [start, end])
            self.at = end

    def _pass_over(self, to: int) -> None:
        """Hides what stands before `to` where it is nothing but marks; anything else is shown as it is."""
        if to > self.at and _HIDEABLE.fullmatch(self.text, self.at, to) is None:
            words = self.text[self.at : to]
            start, end = self.at + len(words) - len(words.lstrip()), to - len(words) + len(words.rstrip())
            self.stack[-1].append(["x", [start, end]])
        self.at = max(self.at, to)


# ---- code, terminals, escaped lines ----------------------------------------------------------------------------------


def _highlighted(code: str, places: Sequence[int], language: str) -> Iterator[Node]:
    """Leaves of `code`, each character `n` of which stands at `places[n]` of the text."""
    for start, end, name in _pieces(code, language):
        for first, last in _stretches(places, start, end):
            yield [name, [first, last]] if name else [first, last]


def _pieces(code: str, language: str) -> Iterator[tuple[int, int, str]]:
    lexer = _lexer(language)
    if lexer is None:
        yield 0, len(code), ""
        return
    at = 0
    for start, kind, value in lexer.get_tokens_unprocessed(code):
        if value and start >= at:
            if start > at:
                yield at, start, ""
            at = start + len(value)
            yield start, at, _name_of(kind)
    if at < len(code):
        yield at, len(code), ""


def _stretches(places: Sequence[int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretches of the text in which the characters `start` to `end` stand one after another."""
    first = start
    for number in range(start + 1, end + 1):
        if number == end or places[number] != places[number - 1] + 1:
            yield places[first], places[number - 1] + 1
            first = number


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language) if language else None
    except ClassNotFound:
        return None


def _name_of(kind: _TokenType) -> str:
    return next((name for known, name in _KINDS if kind in known), "")


def _terminal(text: str) -> list[Node]:
    """Terminal output in its colours, the sequences hidden."""
    node: Node = ["pre"]
    at, style = 0, ""
    for match in _TERMINAL.finditer(text):
        node += _styled(at, match.start(), style)
        style = _style(style, match[1]) if match[1] is not None else style
        at = match.end()
    node += _styled(at, len(text), style)
    return [node]


def _styled(start: int, end: int, style: str) -> list[Node]:
    if end <= start:
        return []
    return [[style, [start, end]] if style else [start, end]]


def _style(before: str, codes: str) -> str:
    """The colour after a sequence `ESC [ codes m`: the last that it names; 0 and 39 end it, others leave it."""
    style, numbers = before, iter(codes.split(";"))
    for code in numbers:
        if code in ("", "0", "39"):
            style = ""
        elif code in ("38", "48"):
            break  # one of many colours: its numbers are no codes
        elif re.fullmatch(r"[39][0-7]", code):
            style = f"t{code[1]}"
        elif code == "1" and not style:
            style = "strong"
    return style


def _unescaped(text: str) -> list[Node]:
    """A text in which line breaks were written as `\\n`: they are shown as line breaks."""
    node: Node = ["p"]
    at = 0
    for match in _ESCAPED.finditer(text):
        node += _styled(at, match.start(), "")
        node.append([match.start(), match.end(), "\t" if match[0] == "\\t" else "\n"])
        at = match.end()
    return [[*node, *_styled(at, len(text), "")]]


# ---- places ----------------------------------------------------------------------------------------------------------


def leaves(nodes: Iterable[Node]) -> Iterator[Node]:
    """The leaves of a layout in the order of the text."""
    for node in nodes:
        if isinstance(node[0], int):
            yield node
        else:
            yield from leaves(node[1:])


def _in_units(nodes: list[Node], text: str) -> list[Node]:
    """Places in UTF-16 units instead of code points."""
    wide = [place for place, letter in enumerate(text) if letter > "\uffff"]
    for leaf in leaves(nodes) if wide else ():
        leaf[0] += bisect_left(wide, leaf[0])
        leaf[1] += bisect_left(wide, leaf[1])
    return nodes
