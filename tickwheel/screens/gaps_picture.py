"""The gaps of a schedule beside those that its definition expects, as a picture: needs matplotlib, the extra `tickwheel[picture]`."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from tickwheel.client.schedule_stats import GapBucket, ScheduleStats
from tickwheel.errors import NoPicture
from tickwheel.screens.top import lag_text

_COUNTED, _EXPECTED, _INK = "#2f6f9f", "#b3423a", "#333333"
_SMALLEST = 0.5
_TICKS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
_PERCENT = 100


def draw_gaps(file: Path, stats: ScheduleStats) -> None:
    """Writes a picture of the share of gaps in each bucket, counted and expected; the file's name says its kind.

    Raises NoPicture when matplotlib is not installed, or does not know the kind; OSError when it cannot write.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
    except ImportError:
        raise NoPicture("a picture needs matplotlib: pip install 'tickwheel[picture]'") from None
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    panel: Any = figure.subplots()
    buckets, total = stats.histogram, max(stats.gaps.count, 1)
    edges = [_edges(bucket) for bucket in buckets]
    counted = [_PERCENT * bucket.count / total for bucket in buckets]
    panel.bar(
        [low for low, _ in edges],
        counted,
        [high - low for low, high in edges],
        align="edge",
        color=_COUNTED,
        alpha=0.75,
        edgecolor="white",
        linewidth=0.6,
        label=f"counted: {_words(stats.gaps.count, stats.gaps.p50, stats.gaps.p95)}",
    )
    if stats.expected is not None:
        shares = [_PERCENT * (bucket.expected_share or 0.0) for bucket in buckets]
        label = f"expected: {_words(None, stats.expected.p50, stats.expected.p95)}"
        for number, ((low, high), share) in enumerate(zip(edges, shares, strict=True)):
            panel.hlines(share, low, high, colors=_EXPECTED, linewidth=2.2, label="" if number else label)
    panel.set_xscale("log")
    low, high = min(low for low, _ in edges), max(high for _, high in edges)
    panel.set_xlim(low / 1.05, high * 1.05)
    panel.set_ylim(bottom=0)
    panel.xaxis.set_major_locator(FixedLocator([tick for tick in _TICKS if low <= tick <= high]))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: _tick(tick)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_title(
        f"Gaps between fires of {stats.id} since {stats.since:%Y-%m-%d %H:%M} UTC", loc="left", fontsize=11, color=_INK
    )
    panel.set_xlabel("gap", color=_INK)
    panel.set_ylabel("% of gaps", color=_INK)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, loc="upper left", fontsize=9)
    try:
        figure.savefig(file, dpi=130)
    except ValueError as error:
        raise NoPicture(f"{file} cannot be drawn: {error}") from None


def _edges(bucket: GapBucket) -> tuple[float, float]:
    """On an axis that has no 0, and no end."""
    low = max(bucket.start.total_seconds(), _SMALLEST)
    return low, bucket.end.total_seconds() if bucket.end is not None else low * 2**0.5


def _words(count: int | None, p50: timedelta | None, p95: timedelta | None) -> str:
    gaps = "" if count is None else f"{count:,} gaps, "
    return f"{gaps}p50 {lag_text(p50)}, p95 {lag_text(p95)}"


def _tick(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"
