"""A report as one HTML file with its charts: needs no network and no Tracejury to be read.

It is light or dark as the reader's screen is, and light on paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import orjson
import pandas as pd

from tracejury.app.components import charts
from tracejury.app.components.estimate_text import with_labels
from tracejury.app.components.judges import JUDGE_METRICS, has_rows, metric_rows
from tracejury.ingest.trace import Json
from tracejury.judging.agreement import scores
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.tables import Table
from tracejury.judging.reports.typeset import typeset

SNAPSHOT_METRICS = ("caught.recall", "localized.recall", "scores.off_by_one", "scores.quadratic_kappa", "scores.ac2")
MOST_ROWS = 500  # of one table; the files hold all
_STYLE = """
:root { color-scheme: light dark; --ink: #24262d; --quiet: #5b606b; --page: #ffffff; --raised: #f5f6f8;
  --line: #d9dce1; --grid: rgba(138, 143, 152, 0.25); }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #fafafa; --quiet: #a3a8b0; --page: #0e1117;
  --raised: #1a1d24; --line: #3a3f4a; --grid: rgba(163, 168, 176, 0.25); } }
@media print { :root { color-scheme: light; } }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 1180px; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--page); }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 12.5px; display: block;
  overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: 3px 8px; text-align: left; white-space: nowrap; }
td:not(.n) { white-space: normal; max-width: 26rem; } td.n, th.n { text-align: right; }
th, pre { background: var(--raised); }
pre { padding: 1rem; overflow-x: auto; font-size: 12px; } p { color: var(--quiet); }
.js-plotly-plot :is([class*="axislayer"], .infolayer) text { fill: var(--ink) !important; }
.js-plotly-plot .legend .bg { fill: none !important; }
.js-plotly-plot :is(.gridlayer, .zerolinelayer) path { stroke: var(--grid) !important; }
@media print { table { display: table; font-size: 8px; } th, td.n, td, pre { white-space: pre-wrap; padding: 2px; }
  h2 { break-after: avoid; }
  .js-plotly-plot, tr { break-inside: avoid; } .modebar { display: none; } }
"""


def snapshot(
    inputs: Inputs, tables: Sequence[tuple[Table, pd.DataFrame]], *, about: str, manifest: Mapping[str, Json]
) -> bytes:
    """The charts of `inputs`, then every table that has rows, then the manifest."""
    parts = [f"<h1>Agreement</h1><p>{escape(about)}</p>"]
    for place, (title, chart) in enumerate(_charts(inputs)):
        parts.append(f"<h2>{escape(title)}</h2>")
        _without_ground(chart)
        parts.append(
            chart.to_html(
                full_html=False, include_plotlyjs=place == 0, config={"displaylogo": False, "responsive": True}
            )
        )
    parts += [_table(table, frame, manifest) for table, frame in tables]
    shown = orjson.dumps(dict(manifest), option=orjson.OPT_INDENT_2).decode()
    parts.append(f"<h2>Made from</h2><pre>{escape(shown)}</pre>")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tracejury report</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )
    return page.encode("utf-8", "backslashreplace")


def _without_ground(chart: Any) -> None:
    """The page is the ground of its charts: one drawing for light and dark."""
    clear = "rgba(0,0,0,0)"
    chart.update_layout(template="plotly_white", paper_bgcolor=clear, plot_bgcolor=clear)


def _charts(inputs: Inputs) -> list[tuple[str, Any]]:
    drawings = [
        (shown.title, charts.forest(metric_rows(inputs, shown), title=shown.title, metric=shown.metric))
        for shown in JUDGE_METRICS
        if shown.name in SNAPSHOT_METRICS and has_rows(inputs, shown)
    ]
    suite = inputs.suite.assign(label=inputs.suite["judge_model"])
    if int(suite["n"].sum()):
        drawings.append(("Coverage by impact, any judge of a suite", charts.impact_bars(suite)))
    pairs = inputs.frame("score_pairs")
    if len(pairs):
        drawings.append(
            ("Frequency of each score", charts.prevalence_bars(with_labels(scores.score_prevalence(pairs))))
        )
    return drawings


def _table(table: Table, frame: pd.DataFrame, manifest: Mapping[str, Json]) -> str:
    if frame.empty:
        return ""
    text = typeset(frame, table, manifest)
    right = [name in text.numeric for name in text.cells.columns]

    def cells(values: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if is_number else ''}>{escape(value)}</{tag}>"
            for value, is_number in zip(values, right, strict=True)
        )

    rows = text.cells.head(MOST_ROWS).itertuples(index=False, name=None)
    body = "".join(f"<tr>{cells(list(row), 'td')}</tr>" for row in rows)
    notes = [*text.notes, *([f"The first {MOST_ROWS} of {len(frame):,} rows."] if len(frame) > MOST_ROWS else [])]
    return (
        f"<h2>{escape(text.title)}</h2>{_paragraph(text.caption)}"
        f"<table><tr>{cells(list(text.cells.columns), 'th')}</tr>{body}</table>{_paragraph(' '.join(notes))}"
    )


def _paragraph(text: str) -> str:
    return f"<p>{escape(text[0].upper() + text[1:])}</p>" if text else ""
