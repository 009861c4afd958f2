"""The command `tickwheel herd`: who fires at the same minute, and how much of a spread would part them."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from tickwheel.client import Client
from tickwheel.client.fires import FireCount
from tickwheel.client.instants import format_instant
from tickwheel.client.schedules import NewSchedule
from tickwheel.commands.api import Api
from tickwheel.commands.lines import read_lines
from tickwheel.commands.options import instant
from tickwheel.commands.registry import commands
from tickwheel.commands.schedule_lines import parse_lines
from tickwheel.commands.terminal import error_console, progress_bar, show_failed_lines, usage
from tickwheel.errors import TickwheelError
from tickwheel.screens.herd import USUAL_TARGET, Herd, Load, Suggestion, plot, suggest
from tickwheel.screens.herd_picture import draw

_MOST_NAMED = 5

Count = Callable[[timedelta | None], Sequence[FireCount]]


@commands.add()
def herd(
    *,
    tenant: Annotated[str | None, typer.Option(help="Tenant of the schedules.", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="JSON Lines file with one schedule per line, as for import. Instead of --tenant.", show_default=False
        ),
    ] = None,
    hours: Annotated[int, typer.Option(min=1, max=48, help="Number of hours to look ahead.")] = 24,
    start: Annotated[datetime | None, instant("Start of the hours to look at; RFC 3339. Default: now.")] = None,
    target: Annotated[
        float | None,
        typer.Option(min=1, help=f"Highest fires per minute to aim for. Default: {USUAL_TARGET:g} times the mean."),
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Write a picture to this file. Requires the extra `picture`.")
    ] = None,
    api: Api,
) -> None:
    """Show how many jobs fire in each minute, and suggest a spread. Changes nothing."""
    if (tenant is None) == (file is None):
        usage("either --tenant or --file is needed: tickwheel herd --tenant acme")
    begin = (start or datetime.now(UTC)).replace(second=0, microsecond=0)
    asked = [] if file is None else _read(file)
    with progress_bar(disable=api.as_json) as progress:
        count = _counting(api.client, progress, tenant=tenant, asked=asked, start=begin, hours=hours)
        before = Load(begin, hours, count(None))
        if not before.total:
            raise TickwheelError(_nothing(before))
        limit = target if target is not None else ceil(USUAL_TARGET * before.mean)
        suggestion = (
            None if before.peak <= limit else suggest(lambda spread: Load(begin, hours, count(spread)), target=limit)
        )
    if png is not None:
        _draw(png, before, suggestion, target=limit)
    if api.as_json:
        api.print(_as_json(before, suggestion, target=limit))
    else:
        _show(before, suggestion, target=limit)
        if png is not None:
            error_console().print(f"wrote the picture to {escape(str(png))}", soft_wrap=True)


def _read(file: Path) -> Sequence[NewSchedule]:
    found, failed = parse_lines(read_lines(file))
    show_failed_lines([(each.line.number, each.error) for each in failed])
    return [schedule for _, schedule in found]


def _counting(
    client: Client,
    progress: Progress,
    *,
    tenant: str | None,
    asked: Sequence[NewSchedule],
    start: datetime,
    hours: int,
) -> Count:
    """Asks the scheduler, with a bar for each spread."""

    def count(spread: timedelta | None) -> Sequence[FireCount]:
        words = "counting" if spread is None else f"with a spread of {_short(spread)}"
        task = progress.add_task(words, total=len(asked) if tenant is None else None)
        options: dict[str, Any] = {
            "start": start,
            "hours": hours,
            "spread": spread,
            "on_progress": lambda number: progress.advance(task, number),
        }
        if tenant is None:
            return client.schedules.count_fires(asked, **options)
        results = client.schedules.count_fires_of(tenant, **options)
        progress.update(task, total=len(results))
        return results

    return count


def _draw(file: Path, before: Load, suggestion: Suggestion | None, *, target: float) -> None:
    loads = [("current", before)]
    if suggestion is not None:
        loads.append((f"with a spread of {_short(suggestion.spread)}", suggestion.load))
    try:
        draw(file, loads, target=target)
    except OSError as error:
        raise TickwheelError(f"{file} cannot be written: {error}") from None


def _show(before: Load, suggestion: Suggestion | None, *, target: float) -> None:
    console = Console(highlight=False)
    width = min(console.width, 110)
    typer.echo(
        f"{len(before.counted)} schedules, {before.total} fires in {before.hours} hours from {_minute(before)}\n"
    )
    typer.echo(f"current: at most {before.peak} fires in a minute, {before.mean:.1f} on average")
    _print_plot(console, before, peak=before.peak, width=width, style="red")
    typer.echo("\nthe fullest minutes")
    for each in before.worst():
        typer.echo(f"  {each.at:%H:%M}  {each.count:>6}  {_named(each)}")
    if suggestion is None:
        typer.echo(f"\nno minute has more than {target:g} fires: no spread is needed")
    else:
        load = suggestion.load
        typer.echo(
            f"\nwith a spread of {_short(suggestion.spread)} for those without one: at most {load.peak} in a minute"
        )
        _print_plot(console, load, peak=before.peak, width=width, style="green")
        typer.echo("\n" + _advice(suggestion, target=target))
    for detail, number in _reasons(before.left_out).items():
        typer.echo(f"left out {number}: {detail}")


def _print_plot(console: Console, load: Load, *, peak: int, width: int, style: str) -> None:
    *rows, axis = plot(load, peak=peak, width=width)
    for row in rows:
        label, tick, bars = row.partition("┤")
        console.print(f"{label}{tick}[{style}]{bars}[/{style}]", no_wrap=True, overflow="crop")
    console.print(axis, no_wrap=True, overflow="crop")


def _advice(suggestion: Suggestion, *, target: float) -> str:
    spread = _short(suggestion.spread)
    if suggestion.is_enough:
        return (
            f"suggestion: spread {spread}, the smallest with at most {target:g} fires in a minute; "
            f"tickwheel schedule update ID --tenant TENANT --spread {spread}"
        )
    return (
        f"no spread up to an hour keeps every minute at {target:g} fires; {spread} comes closest, with "
        f"{suggestion.load.peak}"
    )


def _named(each: Herd) -> str:
    names = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in each.shares[:_MOST_NAMED])
    more = len(each.shares) - _MOST_NAMED
    return names + (f" and {more} more" if more > 0 else "")


def _reasons(left_out: Sequence[FireCount]) -> dict[str, int]:
    return dict(Counter(result.problem.detail or result.problem.title for result in left_out if result.problem))


def _nothing(load: Load) -> str:
    reasons = "; ".join(f"left out {number}: {detail}" for detail, number in _reasons(load.left_out).items())
    return f"nothing fires in these {load.hours} hours" + (f": {reasons}" if reasons else "")


def _as_json(before: Load, suggestion: Suggestion | None, *, target: float) -> dict[str, Any]:
    return {
        "start": format_instant(before.start),
        "hours": before.hours,
        "schedules": len(before.counted),
        "fires": before.total,
        "target": target,
        "before": _load_json(before),
        "worst": [
            {
                "at": format_instant(each.at),
                "fires": each.count,
                "by": [{"name": name, "fires": count} for name, count in each.shares[:_MOST_NAMED]],
            }
            for each in before.worst()
        ],
        "suggestion": suggestion
        and {"spread": _short(suggestion.spread), "is_enough": suggestion.is_enough, **_load_json(suggestion.load)},
        "left_out": [
            {"tenant": result.tenant, "id": result.id, **(result.problem.as_json() if result.problem else {})}
            for result in before.left_out
        ],
    }


def _load_json(load: Load) -> dict[str, Any]:
    return {"peak": load.peak, "mean": load.mean, "minutes": list(load.minutes)}


def _minute(load: Load) -> str:
    return f"{load.start:%Y-%m-%d %H:%M} UTC"


def _short(duration: timedelta) -> str:
    return f"{duration // timedelta(minutes=1)}m"
