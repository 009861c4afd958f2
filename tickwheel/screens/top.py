"""The screen of `tickwheel top`: how the stage does, what goes on in it, how late that is, and whose it is.

No information is in a colour alone: a word or a mark stands beside each.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from tickwheel.client.health import ClassHealth, Health
from tickwheel.client.pulse import FIGURES, Lag, Minute, Pulse, Standout
from tickwheel.screens.status import duration
from tickwheel.screens.tables import plain_table, right

# Okabe and Ito's palette, which colour-blind people can distinguish; each comes with its mark.
_STATUS = {
    "ok": ("✔", "bold #009e73"),
    "behind": ("▲", "bold #d55e00"),
    "paused": ("‖", "bold #0072b2"),
    "unknown": ("?", "bold #cc79a7"),
}
_QUIET, _BAR, _WARNING = "dim", "#56b4e9", "#e69f00"
_BARS = "▁▂▃▄▅▆▇█"
_NONE = "-"
_UNKNOWN = "?"
_MOST_REASONS = 4
_MOST_BREAKERS = 4
_TROUBLE = frozenset({"refused", "retried", "failed"})


def top_of(health: Health, *, where: str | None = None) -> Group:
    """All of it, in some 30 lines of 80 columns. where: the stage and its address."""
    return Group(*_parts(health, where))


def _parts(health: Health, where: str | None) -> Iterator[RenderableType]:
    mark, style = _STATUS.get(health.status, ("", "bold"))
    yield Text.assemble(
        (f"{mark} {health.status}", style), f"  at {health.at:%H:%M:%S} UTC", (_where(health), _QUIET), no_wrap=True
    )
    if where is not None:
        yield Text(where, style=_QUIET, overflow="ellipsis", no_wrap=True)
    for reason in health.reasons[:_MOST_REASONS]:
        yield Text(f"  {reason}", overflow="ellipsis", no_wrap=True)
    if len(health.reasons) > _MOST_REASONS:
        yield Text(f"  ... and {len(health.reasons) - _MOST_REASONS} more reasons: tickwheel status")
    yield Text()
    yield _rates(health.pulse)
    yield Text()
    yield _classes(health)
    yield Text()
    yield _tenants(health.pulse)
    yield Text()
    yield from _breakers(health)


def _where(health: Health) -> str:
    oldest = max((each.age for each in health.classes), default=timedelta(0))
    behind = f"oldest bucket {duration(oldest)} late" if oldest else "no bucket is late"
    unscanned = health.shards.unscanned_count
    scanned = f"{unscanned}/{health.shards.count} shards unscanned" if unscanned else "all shards scanned"
    return f"  {behind}, {scanned}"


def _rates(pulse: Pulse) -> Table:
    """A second of the last whole minute, beside what has come in the minute that runs."""
    table = plain_table(
        Column("a second", min_width=11),
        Column(f"at {pulse.last.at:%H:%M}", justify="right", min_width=9),
        Column("peak", justify="right", min_width=9, style=_QUIET),
        Column(f"{len(pulse.minutes) - 1} minutes and this", no_wrap=True),
        *right("so far in this"),
    )
    for figure in FIGURES:
        rates = [minute.rate(figure) for minute in pulse.minutes]
        is_trouble = figure in _TROUBLE and bool(getattr(pulse.last, figure))
        table.add_row(
            Text(f"{figure} !" if is_trouble else figure, style=_WARNING if is_trouble else ""),
            rate_text(pulse.last.rate(figure)),
            rate_text(max(rates)),
            Text(sparkline(rates), style=_BAR),
            f"{getattr(pulse.minutes[-1], figure):,}",
        )
    slowest = [_of(minute.lag.p99) for minute in pulse.minutes]
    table.add_row(
        "lag p99",
        lag_text(pulse.last.lag.p99),
        lag_text(max(_known(pulse.minutes), default=None)),
        Text(sparkline(slowest), style=_BAR),
        lag_text(pulse.minutes[-1].lag.p99),
    )
    return table


def _classes(health: Health) -> Table:
    headings = ("depth", "waiting", "behind", "attempts", "p50", "p95", "p99", "p99.9")
    counts = (Column(heading, justify="right", no_wrap=True) for heading in headings)
    table = plain_table(Column("class", style="bold"), *counts, Column())
    for each in health.classes:
        lag = health.pulse.lags.get(each.priority)
        table.add_row(
            escape(each.priority),
            _count(each.depth),
            _count(each.waiting),
            duration(each.age) if each.age else _NONE,
            *_lag_cells(lag),
            Text(_taken(each), style=_WARNING),
        )
    return table


def _lag_cells(lag: Lag | None) -> tuple[str, ...]:
    if lag is None:
        return (_UNKNOWN,) * 5
    return (f"{lag.attempts:,}", *(lag_text(each) for each in (lag.p50, lag.p95, lag.p99, lag.p999)))


def _tenants(pulse: Pulse) -> Table:
    """Those with the most, side by side."""
    ranks = {"attempts": pulse.executions, "failures": pulse.failures, "refused": pulse.refusals}
    table = plain_table()
    for heading in ranks:
        table.add_column(f"most {heading}", max_width=17, no_wrap=True, overflow="ellipsis")
        table.add_column("", justify="right", min_width=5)
    height = max((len(found) for found in ranks.values()), default=0)
    for row in range(max(1, height)):
        table.add_row(*(cell for found in ranks.values() for cell in _standout(found, row)))
    return table


def _standout(found: Sequence[Standout], row: int) -> tuple[str, str]:
    if row < len(found):
        return escape(found[row].tenant), f"{found[row].count:,}"
    return (_NONE, "") if row == 0 else ("", "")


def _breakers(health: Health) -> Iterator[RenderableType]:
    if not health.breaker_count:
        yield Text("no breaker is open", style=_QUIET)
        return
    yield Text(f"! breakers that are not closed: {health.breaker_count:,}", style=_WARNING)
    shown = health.breakers[:_MOST_BREAKERS]
    for breaker in shown:
        since = duration(health.at - breaker.opened_at)
        line = f"  {breaker.tenant}  {breaker.destination}  {breaker.state.replace('_', ' ')} for {since}"
        yield Text(f"{line}, {breaker.error_class}", overflow="ellipsis", no_wrap=True)
    if health.breaker_count > len(shown):
        yield Text(f"  ... and {health.breaker_count - len(shown):,} more: tickwheel status")


def _taken(each: ClassHealth) -> str:
    if each.budget == 0:
        return "▲ full"
    return "▲ refused" if each.is_shed else ""


def _count(count: int | None) -> str:
    return _UNKNOWN if count is None else f"{count:,}"


def _known(minutes: Sequence[Minute]) -> Iterator[timedelta]:
    yield from (minute.lag.p99 for minute in minutes if minute.lag.p99 is not None)


def _of(lag: timedelta | None) -> float | None:
    return None if lag is None else lag.total_seconds()


def sparkline(values: Sequence[float | None]) -> str:
    """A bar for each, as high as its share of the largest; a blank for None, and the lowest bar for what is not 0."""
    largest = max((value for value in values if value is not None), default=0.0)
    return "".join(_bar(value, largest) for value in values)


def _bar(value: float | None, largest: float) -> str:
    if value is None:
        return " "
    if not value:
        return "·"
    return _BARS[min(len(_BARS) - 1, int(value / largest * len(_BARS)))]


def rate_text(rate: float) -> str:
    """Three figures: `0`, `0.02`, `4.17`, `41.7`, `417`, `4,170`."""
    if not rate:
        return "0"
    if rate < 10:  # noqa: PLR2004  a digit before the point leaves two behind it
        return f"{rate:.2f}"
    return f"{rate:.1f}" if rate < 100 else f"{rate:,.0f}"  # noqa: PLR2004  and two leave one


def lag_text(lag: timedelta | None) -> str:
    """`12ms`, `1.2s`, `42s`, or in two units above a minute; `-` of no attempt."""
    if lag is None:
        return _NONE
    seconds = lag.total_seconds()
    if seconds < 1:
        return f"{seconds * 1_000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 10 else duration(lag)  # noqa: PLR2004  above, tenths are noise
