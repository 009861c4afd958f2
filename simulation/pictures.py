"""A picture of a run: what came due and what was called, lag beside that of the baselines, queues, and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from simulation.measure import Point
from simulation.outcome import Result

_INK = "#333333"
_OURS = "#1f6f54"
_DUE = "#b9c4cc"
_OF_BASELINES = ("#b3423a", "#c98a1b", "#2f6f9f", "#7a5a9e")
_LEAST_LAG = 0.01
"""Seconds: what is less is drawn there, because the scale is logarithmic."""


def draw(file: Path, result: Result) -> None:
    """Write a picture; the file's name says its kind."""
    figure = Figure(figsize=(13, 9.2), layout="constrained")
    panels = figure.subplots(2, 2)
    figure.suptitle(result.title, x=0.01, ha="left", fontsize=14, color=_INK)
    _draw_rates(panels[0][0], result)
    _draw_lags(panels[0][1], result)
    _draw_queues(panels[1][0], result)
    _draw_quantiles(panels[1][1], result)
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=_INK, labelsize=9)
    figure.savefig(file, dpi=110)


def _draw_rates(panel: Any, result: Result) -> None:
    points = [point for point in result.points if point.at >= _begins_at(result)]
    at = [point.at / 60 for point in points]
    panel.fill_between(at, [point.due for point in points], color=_DUE, label="due", linewidth=0)
    panel.plot(at, [point.called for point in points], color=_OURS, linewidth=1.4, label="called")
    _label(panel, "Jobs a second", "minutes")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panel.set_ylim(bottom=0)
    _explain(panel, columns=2)


def _draw_lags(panel: Any, result: Result) -> None:
    for baseline, colour in zip(result.baselines, _OF_BASELINES, strict=True):
        _draw_lag(panel, baseline.points, colour=colour, words=baseline.words, width=1.0)
    _draw_lag(panel, result.points, colour=_OURS, words="Tickwheel", width=2.0)
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())
    _label(panel, "Lag at the 99th percentile, by when a job was due (s)", "minutes")
    _explain(panel, columns=3)


def _draw_lag(panel: Any, points: Sequence[Point], *, colour: str, words: str, width: float) -> None:
    drawn = [point for point in points if point.due]
    lags = [max(_LEAST_LAG, point.lag) for point in drawn]
    panel.plot([point.at / 60 for point in drawn], lags, color=colour, linewidth=width, label=words)


def _draw_queues(panel: Any, result: Result) -> None:
    minutes = [minute for minute in result.minutes if minute["at"] >= _begins_at(result) - 180]
    at = [minute["at"] / 60 for minute in minutes]
    series = [[minute[name] for minute in minutes] for name in ("in_flight", "visible", "delayed")]
    panel.stackplot(
        at, *series, colors=("#2f6f9f", "#b3423a", _DUE), labels=("in flight", "waiting for a worker", "delayed")
    )
    panel.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1e6:g}M" if value >= 1e5 else f"{value:,.0f}")
    )
    _label(panel, "Messages in the ready queues, each minute", "minutes")
    _explain(panel, columns=3)


def _draw_quantiles(panel: Any, result: Result) -> None:
    rows = [("Tickwheel", result.lag, _OURS)]
    rows += [
        (baseline.words, baseline.lag, colour) for baseline, colour in zip(result.baselines, _OF_BASELINES, strict=True)
    ]
    rows.reverse()
    for place, (_, lag, colour) in enumerate(rows):
        if not lag.count:
            panel.annotate(
                "none of them ran", (0.02, place), xycoords=("axes fraction", "data"), va="center", fontsize=8
            )
            continue
        values = [max(_LEAST_LAG, value) for value in (lag.p50, lag.p95, lag.p99, lag.p999)]
        panel.plot([values[0], values[-1]], [place, place], color=colour, linewidth=1.2)
        for value, marker in zip(values, "o|D|", strict=True):
            panel.plot([value], [place], marker, color=colour, markersize=8 if marker == "|" else 6)
        panel.annotate(f"{values[2]:,.2f} s", (values[2], place), xytext=(0, 8), textcoords="offset points", fontsize=8)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.margins(x=0.08)
    panel.set_yticks(range(len(rows)), [words for words, _, _ in rows])
    panel.set_ylim(-0.5, len(rows) - 0.3)
    _label(panel, "Lag of what was measured: p50 (dot), p95, p99 (diamond), p99.9", "seconds")


def _begins_at(result: Result) -> float:
    """When the first jobs came due: what is before is no news."""
    return next((point.at for point in result.points if point.due), 0.0)


def _explain(panel: Any, *, columns: int) -> None:
    """A legend below its panel, where it hides nothing."""
    panel.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.13), ncols=columns, frameon=False, fontsize=8.5, borderaxespad=0.0
    )


def _label(panel: Any, title: str, below: str) -> None:
    panel.set_title(title, loc="left", fontsize=10.5, color=_INK)
    panel.set_xlabel(below, color=_INK, fontsize=9)
