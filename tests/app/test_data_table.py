"""Tables on screen: as wide as what they hold, columns with their words and what they mean."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import streamlit as st

from tracejury.app.components.data_table import FREE_TEXT, data_table
from tracejury.app.components.glossary import TERMS


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a table is shown with."""
    held: dict[str, Any] = {}
    monkeypatch.setattr(st, "dataframe", lambda frame, **settings: held.update(settings, frame=frame))
    return held


@pytest.mark.parametrize(
    ("text", "width"), [("a name", "content"), ("x" * FREE_TEXT, "content"), ("x" * (FREE_TEXT + 1), "stretch")]
)
def test_a_table_of_estimates_is_as_wide_as_they_are_and_one_of_texts_as_the_page(
    shown: dict[str, Any], text: str, width: str
) -> None:
    data_table(pd.DataFrame({"annotator": ["ada", text], "submitted": [1, 2]}))
    assert shown["width"] == width


def test_a_width_that_is_asked_for_is_kept(shown: dict[str, Any]) -> None:
    data_table(pd.DataFrame({"submitted": [1]}), width="stretch")
    assert shown["width"] == "stretch"


def test_columns_say_what_they_hold(shown: dict[str, Any]) -> None:
    data_table(pd.DataFrame({"judge_model": ["checks"], "relevant": [True], "recall": [0.5], "caught": [3]}))
    about = {name: config["help"] for name, config in shown["column_config"].items()}
    assert about["judge_model"] == "The model, offline checks or import that judged"
    assert about["relevant"].startswith("The error has the judge's dimension")
    assert about["recall"].startswith("Share of the judge's errors that it caught")
    assert about["caught"] == TERMS["caught"]  # a count, no flag
