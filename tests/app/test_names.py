"""Names come from outside: wherever a page shows one, it is a name and never becomes a link, an image or formatting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Text, update
from streamlit.testing.v1 import AppTest
from tests.app.conftest import OpenPage

from tracejury.app.components.estimate_text import plain
from tracejury.app.pages import PAGES
from tracejury.ingest.store import schema, write_transaction
from tracejury.judging.store import Workspace

EVIL = "[{0}](http://evil.example) www.evil.example **{0}**"
NAMES = ("ada", "ben", "careful-judge", "hasty-judge", "steady-model", "three runs")
_LINK = re.compile(r"(?<!\\)\]\(|(?<!\\):\s*//|://\w|www\.|(?<!\\)\*\*")
_MARKDOWN = ("markdown", "caption", "title", "header", "subheader", "info", "success", "warning", "error", "metric",
             "button", "checkbox", "toggle", "expander", "tab", "radio", "button_group", "link_button")  # fmt: skip


@pytest.fixture
def hostile(full: Workspace) -> Workspace:
    """The filled workspace, in which everybody and every judge has a name that is Markdown."""
    with write_transaction(full.engine) as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
        for table in schema.metadata.sorted_tables:
            for column in (one for one in table.columns if isinstance(one.type, Text)):
                for name in NAMES:
                    connection.execute(update(table).where(column == name).values({column.name: EVIL.format(name)}))
    return full


def shown(at: AppTest) -> Iterator[tuple[str, str]]:
    """Every text of a page that Streamlit reads as Markdown, by the kind of element."""
    for kind in _MARKDOWN:
        for element in at.get(kind):
            proto = getattr(element, "proto", None)
            for field in ("body", "label", "help", "delta", "caption"):
                text = getattr(proto, field, None)
                if isinstance(text, str) and not getattr(proto, "is_caption_html", False):
                    yield f"{kind}.{field}", text
            for option in getattr(proto, "options", ()):
                yield f"{kind}.options", str(getattr(option, "content", option))


@pytest.mark.parametrize("page", [spec.file for spec in PAGES])
def test_no_name_is_a_link_on_a_page(page: str, hostile: Workspace, open_page: OpenPage) -> None:
    at = open_page(page)
    assert not at.exception
    found = [(kind, text) for kind, text in shown(at) if "evil" in text and _LINK.search(text)]
    assert found == []


@pytest.mark.parametrize(
    "name", ["http://evil.example", "HTTPS://evil.example", "www.evil.example", "WWW.x.y", "a@evil.example", "a_b@c.d"]
)
def test_a_name_that_looks_like_an_address_is_broken_where_markdown_would_link_it(name: str) -> None:
    """GitHub's Markdown links addresses in plain text, escaped or not (mdast-util-gfm-autolink-literal)."""
    text = re.sub(r"\\(.)", r"\1", plain(name))
    assert not re.search(r"https?://[-.\w]|www(?=\.)|[-.\w+]+@[-\w]+(?:\.[-\w]+)+", text, re.IGNORECASE | re.ASCII)
    assert text.replace("\u2060", "") == name
