"""The screen of `tickwheel status`: a headline with its reasons, then what it follows from."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from tickwheel.client.health import ClassHealth, Health, Listed
from tickwheel.screens.tables import folded, plain_table, right

_STYLES = {"ok": "bold green", "behind": "bold red", "paused": "bold yellow", "unknown": "bold magenta"}
_UNKNOWN = "?"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def screen_of(health: Health, *, where: str | None = None) -> Group:
    """All of it; what there is nothing of is left out. where: the stage and its address."""
    return Group(*_parts(health, where))


def _parts(health: Health, where: str | None) -> Iterator[RenderableType]:
    style = _STYLES.get(health.status, "bold")
    yield Text.assemble((health.status, style), f"  at {health.at:%Y-%m-%d %H:%M:%S} UTC")
    if where is not None:
        yield Text(where, style="dim")
    for reason in health.reasons:
        yield Text(f"  {reason}")
    yield Text()
    yield _classes(health)
    yield Text()
    yield Text(_shards_line(health))
    yield Text(_sweeper_line(health))
    if health.shards.worst:
        yield from (Text(), _worst(health))
    if health.breaker_count:
        yield from (Text(), Text(f"breakers that are not closed: {health.breaker_count:,}", style="bold"))
        yield _breakers(health)
        yield from _more(health.breaker_count - len(health.breakers))
    if health.tenant_count:
        yield from (Text(), Text(f"tenants that are not served: {health.tenant_count:,}", style="bold"))
        yield _tenants(health)
        yield from _more(health.tenant_count - len(health.tenants))


def _classes(health: Health) -> Table:
    counts = right("depth", "waiting", "budget", "behind")
    table = plain_table(Column("class", style="bold"), *counts, Column("oldest bucket"), Column("submissions"))
    for each in health.classes:
        table.add_row(
            escape(each.priority),
            _count(each.depth),
            _count(each.waiting),
            _budget(each.budget),
            _behind(each.age),
            _clock(each.oldest_bucket_at, at=health.at),
            _taken(each),
        )
    return table


def _worst(health: Health) -> Table:
    table = plain_table(
        Column("shard", justify="right", style="bold"),
        *right("behind"),
        Column("oldest bucket"),
        Column("scanned"),
        *folded("tenants behind", "held"),
    )
    for shard in health.shards.worst:
        table.add_row(
            str(shard.shard),
            _behind(shard.age),
            _clock(shard.oldest_bucket_at, at=health.at),
            _clock(shard.scanned_at, at=health.at),
            _listed(shard.behind),
            _listed(shard.held),
        )
    return table


def _breakers(health: Health) -> Table:
    table = plain_table(*folded("tenant", "destination", "state", "open since", "error"))
    for breaker in health.breakers:
        table.add_row(
            escape(breaker.tenant),
            escape(breaker.destination),
            breaker.state.replace("_", " "),
            _clock(breaker.opened_at, at=health.at),
            escape(breaker.error_class),
        )
    return table


def _tenants(health: Health) -> Table:
    table = plain_table(*folded("tenant", "status", "since", "note"))
    for tenant in health.tenants:
        table.add_row(escape(tenant.tenant), tenant.status, _clock(tenant.since, at=health.at), escape(tenant.note))
    return table


def _shards_line(health: Health) -> str:
    shards = health.shards
    said = f"{shards.count} shards"
    if shards.unscanned_count:
        more = ", ..." if shards.unscanned_count > len(shards.unscanned) else ""
        said += f", {shards.unscanned_count:,} not scanned: {', '.join(map(str, shards.unscanned))}{more}"
    return f"{said}; tenants with a cursor of their own: {shards.cursors_behind:,} behind, {shards.cursors_held:,} held"


def _sweeper_line(health: Health) -> str:
    sweeper = health.sweeper
    if sweeper.published_at is None:
        return "the sweeper has published nothing"
    said = f"the sweeper published {duration(health.at - sweeper.published_at)} ago"
    if sweeper.audited_to is not None:
        said += f"; the bucket audit has reached {_clock(sweeper.audited_to, at=health.at)}"
    return said


def _more(count: int) -> Iterator[Text]:
    if count > 0:
        yield Text(f"... and {count:,} more")


def _count(count: int | None) -> str:
    return f"{count:,}" if count is not None else _UNKNOWN


def _budget(budget: int | None) -> str:
    return "[red]full[/red]" if budget == 0 else _count(budget)


def _behind(age: timedelta) -> str:
    return f"[yellow]{duration(age)}[/yellow]" if age else "-"


def _taken(each: ClassHealth) -> str:
    if each.is_shed is None:
        return _UNKNOWN
    return "[red]refused[/red]" if each.is_shed else "accepted"


def _listed(listed: Listed) -> str:
    if not listed.count:
        return "-"
    names = ", ".join(map(escape, listed.first))
    return f"{names}, ... ({listed.count:,})" if listed.count > len(listed.first) else names


def _clock(instant: datetime | None, *, at: datetime) -> str:
    if instant is None:
        return _UNKNOWN
    return f"{instant:%H:%M:%S}" if instant.date() == at.date() else f"{instant:%Y-%m-%d %H:%M}"


def duration(length: timedelta) -> str:
    """In its two largest units, rounded down: `42s`, `7m 05s`, `3h 20m`, `5d 02h`."""
    seconds = max(0, int(length.total_seconds()))
    if seconds < _MINUTE:
        return f"{seconds}s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE}m {seconds % _MINUTE:02d}s"
    if seconds < _DAY:
        return f"{seconds // _HOUR}h {seconds % _HOUR // _MINUTE:02d}m"
    return f"{seconds // _DAY}d {seconds % _DAY // _HOUR:02d}h"
