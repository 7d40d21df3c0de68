"""A report as one HTML file with its charts: needs no network and no Tracejury to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import orjson
import pandas as pd

from app.components import charts
from app.components.figures import with_labels
from app.components.judges import FIGURES, SIGNED, figure_rows, has_rows
from ingest.trace import Json
from judging.agreement import scores
from judging.agreement.tables import Inputs, Table, printed

SHOWN_FIGURES = ("caught.recall", "localized.recall", "scores.off_by_one", "scores.quadratic_kappa", "scores.ac2")
MOST_ROWS = 500  # of one table; the files hold all
_STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem; color: #24262d; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 12.5px; display: block;
  overflow-x: auto; }
th, td { border: 1px solid #d9dce1; padding: 3px 8px; text-align: left; white-space: nowrap; }
td.n, th.n { text-align: right; } th { background: #f5f6f8; }
pre { background: #f5f6f8; padding: 1rem; overflow-x: auto; font-size: 12px; } p { color: #5b606b; }
"""


def snapshot(
    inputs: Inputs, tables: Sequence[tuple[Table, pd.DataFrame]], *, about: str, manifest: Mapping[str, Json]
) -> bytes:
    """The charts of `inputs`, then every table that has rows, then the manifest."""
    parts = [f"<h1>Agreement</h1><p>{escape(about)}</p>"]
    for place, (title, figure) in enumerate(_figures(inputs)):
        parts.append(f"<h2>{escape(title)}</h2>")
        parts.append(figure.to_html(full_html=False, include_plotlyjs=place == 0, config={"displaylogo": False}))
    parts += [_table(table, frame) for table, frame in tables]
    shown = orjson.dumps(dict(manifest), option=orjson.OPT_INDENT_2).decode()
    parts.append(f"<h2>Made from</h2><pre>{escape(shown)}</pre>")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tracejury report</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )
    return page.encode("utf-8", "backslashreplace")


def _figures(inputs: Inputs) -> list[tuple[str, Any]]:
    made = [
        (figure.title, charts.forest(figure_rows(inputs, figure), metric=figure.title, limits=(lowest, 1)))
        for figure in FIGURES
        if figure.name in SHOWN_FIGURES and has_rows(inputs, figure)
        for lowest in [-1 if figure.name.partition(".")[2] in SIGNED else 0]
    ]
    suite = inputs.suite.assign(label=inputs.suite["system"])
    if int(suite["n"].sum()):
        made.append(("Coverage by impact, any judge of a suite", charts.impact_bars(suite)))
    pairs = inputs.frame("score_pairs")
    if len(pairs):
        made.append(
            ("How often each score is given", charts.prevalence_bars(with_labels(scores.score_prevalence(pairs))))
        )
    return made


def _table(table: Table, frame: pd.DataFrame) -> str:
    if frame.empty:
        return ""
    text = printed(frame, table).head(MOST_ROWS)
    right = [pd.api.types.is_numeric_dtype(frame[column].dtype) for column in frame.columns]

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if is_number else ''}>{escape(value)}</{tag}>"
            for value, is_number in zip(values, right, strict=True)
        )

    body = "".join(f"<tr>{cells(list(row), 'td')}</tr>" for row in text.itertuples(index=False, name=None))
    name = f"{table.paper}: {table.title}" if table.paper else table.title
    more = f"<p>The first {MOST_ROWS} of {len(frame):,} rows.</p>" if len(frame) > MOST_ROWS else ""
    return f"<h2>{escape(name)}</h2><table><tr>{cells(list(text.columns), 'th')}</tr>{body}</table>{more}"
