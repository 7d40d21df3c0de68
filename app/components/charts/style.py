"""Colours, sizes and the finish that every chart of the researcher's pages shares.

One palette (Okabe and Ito's, made for colour-blind readers) in light and dark. Matrices that can be clicked are grids
of square markers: Streamlit reports no clicks on heatmaps. `customdata` of a mark holds what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

BLUE, SKY, ORANGE, VERMILLION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PURPLE, YELLOW, GREY = "#009E73", "#CC79A7", "#F0E442", "#8A8F98"
SERIES: Final = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, YELLOW)
"""In the order in which judges, models and people take them; the eighth begins again."""
SCORE_COLORS: Final = (VERMILLION, ORANGE, SKY, BLUE)
FAINT = 0.45  # opacity of a mark with too few units
ROW, HEAD = 26, 96  # pixels of one row of a grid or forest, and of everything around the rows
CARD = 400  # pixels that a chart in half a page of 1280 has for its marks
LEGEND: Final = {
    "orientation": "h", "xref": "container", "x": 0, "xanchor": "left", "yref": "container", "y": 1, "yanchor": "top",
}  # fmt: skip
"""Along the top of the whole chart: beside the plot alone it would be narrow where names are long."""
SMALLEST, UPRIGHT = 8, 16  # pixels: a smaller square is hard to hit; how high a line stands in its place
REACH = 20  # pixels from a mark within which it is the one that is clicked, where none is nearer
CLICKS: Final[dict[str, Any]] = {
    "clickmode": "event+select", "hovermode": "closest", "hoverdistance": REACH, "dragmode": False,
}  # fmt: skip
"""How a chart's marks are pointed at and clicked."""
RGB = tuple[int, int, int]


class Scale(NamedTuple):
    """Colours of a share of 0, a half and 1 on a page of this colour."""

    page: str
    low: str
    middle: str
    high: str


LIGHT: Final = Scale("#FFFFFF", "#E8EEF4", SKY, BLUE)
DARK: Final = Scale("#171613", "#262D35", BLUE, SKY)
GRID = "rgba(138,143,152,0.25)"


def squares(
    *,
    x: pd.Series,
    y: pd.Series,
    color: NDArray[np.float64],
    text: Sequence[str],
    custom: pd.DataFrame,
    hover: str,
    marker_size: int,
    is_pale: NDArray[np.bool_] | None = None,
    is_dark: bool = False,
    text_size: int = 12,
) -> go.Figure:
    """A grid of square markers on one scale of blues, 0 close to the page to 1 far from it, with readable text on each.

    Where `is_pale`, the colour is half the page's. `is_dark`: the scheme of the page; the least never shines.
    """
    pale = np.zeros(len(color), dtype=bool) if is_pale is None else is_pale
    scale = DARK if is_dark else LIGHT
    fills = [_on_scale(float(shade), scale, is_pale=bool(few)) for shade, few in zip(color, pale, strict=True)]
    return go.Figure(
        go.Scatter(
            x=list(x),
            y=list(y),
            mode="markers+text",
            text=list(text),
            textfont={"size": text_size, "color": [_readable_on(fill) for fill in fills]},
            marker={
                "symbol": "square",
                "size": marker_size,
                "color": [_css(fill) for fill in fills],
                "line": {"width": 1, "color": GREY},
            },
            customdata=custom.to_numpy(),
            hovertemplate=hover,
        )
    )


def _on_scale(shade: float, scale: Scale, *, is_pale: bool) -> RGB:
    """The colour of a share: from nearly that of the page over the middle one at a half to the last."""
    low, high, part = (
        (scale.low, scale.middle, shade * 2) if shade <= 0.5 else (scale.middle, scale.high, shade * 2 - 1)
    )
    color = _mixed(_rgb(low), _rgb(high), min(max(part, 0.0), 1.0))
    return _mixed(color, _rgb(scale.page), 0.5) if is_pale else color


def _readable_on(fill: RGB) -> str:
    """Black or white, whichever has the higher contrast: one of the two always has 4.5 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in fill)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"


def _mixed(one: RGB, other: RGB, part: float) -> RGB:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _rgb(color: str) -> RGB:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _css(color: RGB) -> str:
    return "#{:02X}{:02X}{:02X}".format(*color)


def faint(color: str, opacity: float = FAINT) -> str:
    """The colour of what too few units stand behind."""
    red, green, blue = _rgb(color)
    return f"rgba({red},{green},{blue},{opacity})"


def narrow(width: int, color: str) -> dict[str, Any]:
    """A square; where there is room for a few pixels alone, an upright line as high as its row: seen and hit sooner."""
    if width >= SMALLEST:
        return {"symbol": "square", "size": width, "color": color}
    return {"symbol": "line-ns-open", "size": UPRIGHT, "color": color, "line": {"width": width, "color": color}}


def count_axis(figure: go.Figure, title: str, most: int) -> None:
    """An axis of counts from 0 on: no tick stands at half a trace."""
    figure.update_yaxes(title=title, rangemode="tozero", tickformat=",d", dtick=1 if most < 6 else None, nticks=6)


def shortened(text: str, most: int = 34) -> str:
    """The text with its middle left out where it is too long for an axis: its last words name the dimension."""
    if len(text) <= most:
        return text
    tail = text[-(most // 2) :]
    tail = tail[tail.index(" ") + 1 :] if " " in tail else tail
    return f"{text[: most - 1 - len(tail)].rstrip()}…{tail}"


def name_rows(figure: go.Figure, names: Sequence[str], shown: Sequence[str] | None = None) -> None:
    """One row per name, read from the top; long names are shortened on the axis alone."""
    texts = [shortened(name) for name in names] if shown is None else list(shown)
    figure.update_yaxes(
        type="category", categoryorder="array", categoryarray=list(names)[::-1], range=[-0.6, len(names) - 0.4],
        tickmode="array", tickvals=list(names), ticktext=texts,
    )  # fmt: skip


def series_color(place: int) -> str:
    return SERIES[place % len(SERIES)]


def finished(figure: go.Figure, *, height: int, legend: bool = True, title: str = "") -> go.Figure:
    """One look: room for long names, a legend above, quiet lines, no tools but the picture's download."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 16, "t": 40 if legend or title else 16, "b": 8},
        legend=LEGEND,
        showlegend=legend,
        title={"text": title, "font": {"size": 14}} if title else None,
        hoverlabel={"align": "left"},
        font={"size": 13},
        **CLICKS,
    )
    figure.update_xaxes(automargin=True, gridcolor=GRID, title_font={"size": 12})
    figure.update_yaxes(automargin=True, gridcolor=GRID, title_font={"size": 12})
    return without_markup(figure)


def without_markup(figure: go.Figure) -> go.Figure:
    """Names from outside as they are: Plotly would make links and type of what looks like HTML in them.

    `customdata` is written the same way, since hovering shows it; a click reads it with `html.unescape`.
    """
    for trace in figure.data:
        for name in ("x", "y", "name", "text", "customdata"):
            if trace[name] is not None:
                trace[name] = _as_written(trace[name])
    for axis in [*figure.select_xaxes(), *figure.select_yaxes()]:
        for name in ("categoryarray", "tickvals", "ticktext"):
            if axis[name] is not None:
                axis[name] = _as_written(axis[name])
    for note in figure.layout.annotations:
        for name in ("x", "y", "text", "hovertext"):
            note[name] = None if note[name] is None else _as_written(note[name])
    return figure


def _as_written(value: Any) -> Any:
    """Every text in it without markup but for our own line breaks."""
    if isinstance(value, str):
        return escape(value, quote=False).replace("&lt;br&gt;", "<br>")
    if isinstance(value, np.ndarray):
        return np.frompyfunc(_as_written, 1, 1)(value) if value.dtype.kind in "OU" else value
    return [_as_written(one) for one in value] if isinstance(value, (list, tuple)) else value
