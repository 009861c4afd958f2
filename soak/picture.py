"""The curves of a soak in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from soak.curves import Curve
from testkit.deployment import FUNCTIONS

_INK = "#333333"
_COLOURS = ("#1f6f54", "#b3423a", "#2f6f9f", "#c98a1b", "#7a5a9e", "#7f8c8d")
_ROOM_FOR_NAMES = 1.35
_PANELS: Mapping[str, Sequence[str]] = {
    "Memory of the largest process of each function (MiB)": [f"memory {function}" for function in FUNCTIONS],
    "Memory of the emulator (MiB)": ["memory emulator"],
    "Lag of steady jobs (ms), by when they were due": ["lag p50", "lag p95"],
    "Ready queues (messages)": ["depth", "waiting"],
    "Rows that still count": ["timers", "ledger, open", "leases", "rows of tenants"],
    "Rows until their ttl": ["timers, all rows", "ledger, all rows", "rows of minutes", "rows of dead_letters"],
    "Behind: oldest bucket (s), cursors, breakers": ["oldest bucket", "cursors behind", "breakers"],
    "Processes, and new dead letters": ["processes", "dead letters"],
}


def draw(file: Path, curves: Mapping[str, Curve], *, rate: float, seconds: float, judged_from: float) -> None:
    """Write the picture; the file's name says its kind. rate: jobs a second. seconds: how long the load lasted."""
    figure = Figure(figsize=(13, 14), layout="constrained")
    panels = figure.subplots(4, 2, sharex=True).flat
    title = f"{seconds / 60:.0f} minutes at {rate:g} jobs a second under faults; shaded: warm-up, not judged; line: end of load"
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, color=_INK)
    for panel, (title, names) in zip(panels, _PANELS.items(), strict=True):
        _draw(panel, title, {name: curves.get(name, ()) for name in names}, judged_from)
        panel.axvline(seconds / 60, color="#bbbbbb", linewidth=1)
    figure.savefig(file, dpi=100)


def _draw(panel: Any, title: str, curves: Mapping[str, Curve], judged_from: float) -> None:
    panel.axvspan(0, judged_from / 60, color="#f2f2f2", linewidth=0)
    for (name, curve), colour in zip(curves.items(), _COLOURS, strict=False):
        panel.plot([at / 60 for at, _ in curve], [value for _, value in curve], color=colour, linewidth=1.3, label=name)
    panel.set_title(title, loc="left", fontsize=10, color=_INK)
    panel.set_xlabel("minutes", fontsize=9, color=_INK)
    # What the start shows may be far larger: everything is cold.
    judged = [value for curve in curves.values() for at, value in curve if at >= judged_from]
    panel.set_ylim(0, _ROOM_FOR_NAMES * max([1, *judged]))
    panel.set_xlim(left=0)
    panel.spines[["top", "right"]].set_visible(False)
    panel.tick_params(colors=_INK, labelsize=9, labelbottom=True)
    panel.legend(frameon=False, fontsize=8, loc="upper left", ncols=3)
