"""Makes data/samples/trulens: an app recorded by TruLens, its event table written as CSV and as JSON lines.

TruLens gives random ids and real times: a second run gives the same text with other ids and times.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from typing import Any

import pandas as pd
from cleaning import clean_json
from paths import SAMPLES, write
from trulens.apps.app import TruApp
from trulens.core import TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes

NOTES = {
    "moon": "The moon bell of Marrow Town is rung at new moon.",
    "storm": "The storm bell of Marrow Town is rung when the barometer falls below 980.",
}
JSON_COLUMNS = ("record", "record_attributes", "resource_attributes", "trace")


class BellGuide:
    """Looks a note up and answers from it."""

    @instrument(
        span_type=SpanAttributes.SpanType.RETRIEVAL,
        attributes={
            SpanAttributes.RETRIEVAL.QUERY_TEXT: "query",
            SpanAttributes.RETRIEVAL.RETRIEVED_CONTEXTS: "return",
        },
    )
    def retrieve(self, query: str) -> list[str]:
        return [text for word, text in NOTES.items() if word in query.lower()]

    @instrument(span_type=SpanAttributes.SpanType.GENERATION)
    def generate(self, query: str, contexts: list[str]) -> str:
        if not contexts:
            raise LookupError("no note fits the question")
        return "It is rung at new moon." if "moon" in query else "It is rung when the barometer falls below 960."

    @instrument(
        attributes={SpanAttributes.RECORD_ROOT.INPUT: "query", SpanAttributes.RECORD_ROOT.OUTPUT: "return"},
    )
    def answer(self, query: str) -> str:
        try:
            return self.generate(query, self.retrieve(query))
        except LookupError as error:
            return f"I cannot say: {error}."


def events(database: str) -> pd.DataFrame:
    with sqlite3.connect(database) as connection:
        return pd.read_sql_query("select * from trulens_events order by start_timestamp", connection)


def record(questions: tuple[str, ...], database: str) -> pd.DataFrame:
    TruSession(database_url=f"sqlite:///{database}").reset_database()
    guide = BellGuide()
    app = TruApp(guide, app_name="bell guide", app_version="1", main_method=guide.answer)
    for question in questions:
        with app:
            guide.answer(question)
    TruSession().force_flush()
    return events(database)


def main() -> None:
    asked = ("When is the moon bell rung?", "When is the storm bell rung?", "When is the fog bell rung?")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        table = record(asked, "events.db")
    for column in JSON_COLUMNS:
        table[column] = table[column].map(lambda text: json.dumps(clean_json(json.loads(text))))
    traces = table["trace"].map(lambda text: json.loads(text)["trace_id"])
    first = traces == traces.iloc[0]
    write(SAMPLES / "trulens" / "bells.csv", table[first].to_csv(index=False))
    lines = "".join(json.dumps(_row(row), ensure_ascii=False) + "\n" for row in table[~first].to_dict(orient="records"))
    write(SAMPLES / "trulens" / "bells.jsonl", lines)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """The row as TruLens' own `Event` holds it: the JSON columns as objects."""
    return {key: json.loads(value) if key in JSON_COLUMNS else value for key, value in row.items()}


if __name__ == "__main__":
    main()
