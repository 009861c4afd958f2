"""The figures of a schedule for people: a table, and its gaps as bars beside those that its definition expects."""

from rich.table import Column, Table

from tickwheel.client.instants import format_instant
from tickwheel.client.schedule_stats import ExpectedGapFigures, GapBucket, Quantiles, ScheduleStats
from tickwheel.screens.tables import fields_table, plain_table, right
from tickwheel.screens.top import lag_text

_WIDTH = 40
_BAR, _REST, _EXPECTED = "█", " ", "┃"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SOURCES = {
    "rule": "of the first {count:,} gaps that the definition names",
    "distribution": "of independent events",
    "sample": "of {count:,} gaps of independent events with this definition",
}


def stats_table(stats: ScheduleStats) -> Table:
    """A row a figure; those that there are not are left out."""
    gaps, expected, runs = stats.gaps, stats.expected, stats.runs
    rows = {
        "id": stats.id,
        "tenant": stats.tenant,
        "status": stats.status,
        "version": f"{stats.version}, since {format_instant(stats.since)}",
        "fires": f"{stats.fires:,}",
        "misfires": f"{stats.misfires:,}" if stats.misfires else None,
        "skips": ", ".join(f"{count} {reason}" for reason, count in stats.skips.items()) or None,
        "gaps": f"{gaps.count:,}" + (f": p50 {lag_text(gaps.p50)}, p95 {lag_text(gaps.p95)}" if gaps.count else ""),
        "expected": _expected_text(expected) if expected is not None else None,
        "waits for windows": f"{stats.waits.count:,}, {lag_text(stats.waits.mean)} on average"
        if stats.waits.count
        else None,
        "last runs": ", ".join(f"{count} {state}" for state, count in runs.outcomes.items()) or None,
        "lag": _quantiles_text(runs.lag),
        "ended after": _quantiles_text(runs.ended_after),
    }
    return fields_table(rows)


def gaps_table(stats: ScheduleStats) -> Table:
    """A row a bucket: how many gaps it has, how many are expected, and both as a bar with a mark."""
    table = plain_table(*right("gap", "counted", "expected"), Column("", no_wrap=True))
    total = stats.gaps.count
    expected = [_expected_count(bucket, total) for bucket in stats.histogram]
    most = max([1.0, *(bucket.count for bucket in stats.histogram), *(count or 0.0 for count in expected)])
    for bucket, count in zip(stats.histogram, expected, strict=True):
        words = "-" if count is None else f"{count:,.1f}"
        table.add_row(_range_text(bucket), f"{bucket.count:,}", words, _bar(bucket.count / most, (count or 0) / most))
    return table


def _expected_count(bucket: GapBucket, total: int) -> float | None:
    return None if bucket.expected_share is None else bucket.expected_share * total


def _expected_text(expected: ExpectedGapFigures) -> str:
    words = _SOURCES.get(expected.source, expected.source).format(count=expected.count or 0)
    shortest = "; longer by the duration of each run" if expected.is_shortest else ""
    return f"p50 {lag_text(expected.p50)}, p95 {lag_text(expected.p95)}, {words}{shortest}"


def _quantiles_text(found: Quantiles) -> str | None:
    if not found.count:
        return None
    return f"p50 {lag_text(found.p50)}, p95 {lag_text(found.p95)}, of {found.count} runs"


def _range_text(bucket: GapBucket) -> str:
    end = "" if bucket.end is None else lag_text(bucket.end)
    return f"{lag_text(bucket.start)} - {end}".rstrip()


def _bar(counted: float, expected: float) -> str:
    """A bar of what was counted, with a mark where it is expected to end."""
    eighths = round(counted * _WIDTH * 8)
    # What there is is seen, however little it is.
    eighths = max(eighths, 1) if counted else 0
    whole, rest = divmod(eighths, 8)
    bar = (_BAR * whole + (_EIGHTHS[rest] if rest else "")).ljust(_WIDTH + 1, _REST)
    if not expected:
        return bar.rstrip()
    place = min(_WIDTH, round(expected * _WIDTH))
    return (bar[:place] + _EXPECTED + bar[place + 1 :]).rstrip()


def headline(stats: ScheduleStats) -> str:
    """Of the bars: what they show."""
    return "counted gaps" + (f" (expected: {_EXPECTED})" if stats.expected is not None else "")
