"""The load before and after a spread as a picture: needs matplotlib, the extra `tickwheel[picture]`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tickwheel.errors import NoPicture
from tickwheel.screens.herd import Load

_COLOURS = ("#b3423a", "#2f6f9f")
_INK = "#333333"
_MARGIN_HOURS = 0.15


def draw(file: Path, loads: Sequence[tuple[str, Load]], *, target: float) -> None:
    """Writes a picture of the load as it is, and of the one that is suggested, on one scale; the file's name says its kind.

    Raises NoPicture when matplotlib is not installed, or does not know the kind; OSError when it cannot write.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, MultipleLocator
    except ImportError:
        raise NoPicture("a picture needs matplotlib: pip install 'tickwheel[picture]'") from None
    figure = Figure(figsize=(11, 3 * len(loads)), layout="constrained")
    panels = figure.subplots(len(loads), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    start, hours = loads[0][1].start, loads[0][1].hours
    top = 1.05 * max(load.peak for _, load in loads)
    # Hours since midnight of the first day: the axis then reads like a clock.
    offset = start.hour + start.minute / 60
    for panel, (words, load), colour in zip(panels, loads, _COLOURS, strict=False):
        # Lines, not bars: a single minute is seen however many there are, and thousands of bars take seconds.
        filled = [(offset + minute / 60, count) for minute, count in enumerate(load.minutes) if count]
        panel.vlines([hour for hour, _ in filled], 0, [count for _, count in filled], colors=colour, linewidth=1.2)
        panel.set_ylim(0, top)
        if target <= top:
            _mark_target(panel, target)
        title = f"Fires per minute, {words}: at most {load.peak:,}, {load.mean:,.1f} on average"
        panel.set_title(title, loc="left", fontsize=11, color=_INK)
        panel.set_ylabel("fires per minute", color=_INK)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xlim(offset - _MARGIN_HOURS, offset + hours + _MARGIN_HOURS)
    panels[-1].xaxis.set_major_locator(MultipleLocator(3))
    panels[-1].xaxis.set_major_formatter(FuncFormatter(lambda hour, _: f"{int(hour) % 24:02d}:00"))
    panels[-1].set_xlabel(f"UTC, from {start:%Y-%m-%d %H:%M}", color=_INK)
    try:
        figure.savefig(file, dpi=130)
    except ValueError as error:
        raise NoPicture(f"{file} cannot be drawn: {error}") from None


def _mark_target(panel: Any, target: float) -> None:
    panel.axhline(target, color=_INK, linewidth=0.8, linestyle="--")
    panel.annotate(
        f"target {target:,.4g}",
        (1, target),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=_INK,
    )
