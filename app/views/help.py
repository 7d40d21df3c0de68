"""Help: the Markdown of `data/help`, the same as in the repository."""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable

import streamlit as st

from tracejury.app.components import layout
from tracejury.app.session import user

TOPICS = {
    "annotator": "Annotator's handbook",
    "researcher": "Researcher's guide",
    "judges": "Judges and rubrics",
    "formats": "Formats",
    "gaia2": "GAIA2",
    "team": "Running it for a team",
    "corpus": "Corpora",
    "reference": "Reference",
}


def page() -> None:
    layout.heading("Help")
    user()
    topics = {key: title for key, title in TOPICS.items() if topic_file(key).is_file()}
    topic = st.segmented_control(
        "Topic", list(topics), format_func=topics.__getitem__, default="annotator", required=True, key="help_topic",
        label_visibility="collapsed", bind="query-params",
    )  # fmt: skip
    st.markdown(without_title(topic_file(str(topic)).read_text(encoding="utf-8")))


def topic_file(key: str) -> Traversable:
    """The Markdown file of a topic."""
    return resources.files("tracejury.data").joinpath("help", f"{key}.md")


def without_title(text: str) -> str:
    """The text without its own title, and with links to files of the repository as plain words."""
    body = re.sub(r"\A# .*\n", "", re.sub(r"<!--.*?-->\n?", "", text))
    return re.sub(r"\[([^]]+)\]\((?!https?:)[^)]*\)", r"\1", body)


page()
