"""The options that say what a schedule is: the same for creating one and for changing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any, get_args

import typer

from tickwheel.client.fields import said
from tickwheel.client.schedule_parts import Window, parse_date, parse_local
from tickwheel.client.schedules import Overlap
from tickwheel.commands.job_options import JobOptions
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import duration, instant, option_of
from tickwheel.commands.terminal import usage

_window = option_of(Window.parse)
_date = option_of(parse_date)
_local = option_of(parse_local)


@dataclass(kw_only=True)
class RuleOptions(OptionSet):
    """When a schedule fires."""

    panel = "Rule (exactly one)"

    cron: Annotated[str | None, typer.Option(help="Cron expression of five fields, or a macro such as @daily.")] = None
    every: Annotated[timedelta | None, duration("Interval: 90, 90s, 5m, 2h, 1d or PT1M30S.")] = None
    at: Annotated[datetime | None, instant("Fire once at this time; RFC 3339 with an offset.")] = None
    rrule: Annotated[str | None, typer.Option(help="Recurrence rule of RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR.")] = (
        None
    )
    poisson: Annotated[float | None, typer.Option(help="Random fires; the average number per day.")] = None
    starts_at: Annotated[
        datetime | None, typer.Option(parser=_local, help="First occurrence of --rrule, as a local time.")
    ] = None
    phase: Annotated[timedelta | None, duration("Offset from each multiple of --every.")] = None
    from_end: Annotated[bool, typer.Option("--from-end", help="Measure --every from the end of a run.")] = False
    timezone: Annotated[str | None, typer.Option(help="IANA time zone name, such as Europe/Berlin. Default: UTC.")] = (
        None
    )
    gap: Annotated[str | None, typer.Option(help="What to do with skipped local times: next_valid or skip.")] = None
    fold: Annotated[str | None, typer.Option(help="Which of repeated local times fires: first, second or both.")] = None

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        starts_at = self.starts_at and self.starts_at.isoformat(timespec="seconds")
        anchor = "end" if self.from_end else None
        return said(
            {
                "at": self.at,
                "cron": self.cron,
                "every": said({"interval": self.every, "phase": self.phase, "from": anchor}),
                "rrule": said({"rule": self.rrule, "starts_at": starts_at}),
                "poisson": said({"per_day": self.poisson}),
                "timezone": self.timezone,
                "gap": self.gap,
                "fold": self.fold,
            }
        )


@dataclass(kw_only=True)
class CalendarOptions(OptionSet):
    """Dates on which a schedule does not fire."""

    exclude: Annotated[
        list[date] | None, typer.Option(parser=_date, metavar="DATE", help="A date without fires. Repeatable.")
    ] = None
    holidays: Annotated[
        list[str] | None, typer.Option(help="Holidays without fires, such as DE, DE-BY, US or NYSE. Repeatable.")
    ] = None
    weekends: Annotated[
        bool, typer.Option("--exclude-weekends", "--weekends", help="No fires on Saturdays and Sundays.")
    ] = False
    roll: Annotated[str | None, typer.Option(help="Where to shift fires on excluded dates: before, after or skip.")] = (
        None
    )

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        return said({**vars(self), "weekends": self.weekends or None})


@dataclass(kw_only=True)
class MoveOptions(OptionSet):
    """What moves and bounds the fires of a schedule."""

    panel = "Windows, calendar and limits"

    window: Annotated[
        list[Window] | None,
        typer.Option(
            parser=_window, metavar="WINDOW", help="When it may fire, such as 'mon-fri 09:00-17:00'. Repeatable."
        ),
    ] = None
    window_mode: Annotated[
        str | None, typer.Option(help="What to do with fires outside the windows: skip, defer, or scale (poisson).")
    ] = None
    calendar: CalendarOptions
    spread: Annotated[
        timedelta | None, duration("Upper bound of a constant delay; 0: none. Default: that of the tenant.")
    ] = None
    jitter: Annotated[timedelta | None, duration("Upper bound of a random delay for each fire.")] = None
    start: Annotated[datetime | None, instant("No fire before this time.")] = None
    end: Annotated[datetime | None, instant("No fire at or after this time.")] = None
    max_runs: Annotated[int | None, typer.Option(help="Number of fires after which the schedule ends.")] = None

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        fields = {name: value for name, value in vars(self).items() if name != "window"}
        return said({"windows": self.window, **fields})


@dataclass(kw_only=True)
class RunOptions(OptionSet):
    """What the runs of a schedule do."""

    panel = "Missed fires and overlapping runs"

    misfire: Annotated[str | None, typer.Option(help="What to do with missed fires: fire_all, coalesce or skip.")] = (
        None
    )
    max_lateness: Annotated[timedelta | None, duration("Drop fires that are later than this.")] = None
    overlap: Annotated[
        str | None,
        typer.Option(help=f"What to do while the previous run has not ended: {', '.join(get_args(Overlap))}."),
    ] = None
    pause_after_failures: Annotated[
        int | None, typer.Option(help="Number of consecutive failures after which to pause.")
    ] = None
    history: Annotated[int | None, typer.Option(help="Number of runs to keep in the history.")] = None
    success_history: Annotated[
        int | None, typer.Option(help="Number of successful runs to keep, however many follow.")
    ] = None
    failure_history: Annotated[int | None, typer.Option(help="Number of failed runs to keep, however many follow.")] = (
        None
    )

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        return said(vars(self))


@dataclass(kw_only=True)
class DefinitionOptions(OptionSet):
    """A definition, but for its id and its tenant."""

    rule: RuleOptions
    moves: MoveOptions
    runs: RunOptions
    job: JobOptions

    def as_json(self) -> dict[str, Any]:
        """Its options, as the API takes them."""
        return said({**self.rule.as_json(), **self.moves.as_json(), **self.runs.as_json(), "job": self.job})


def patch_of(changes: dict[str, Any], unset: Sequence[str] | None, *, example: str) -> dict[str, Any]:
    """A merge patch: what options have said, and null for each field that is removed, by its path of names with dots between.

    example: of an option, for whom said nothing.
    """
    for path in unset or ():
        _unset(changes, path)
    if not changes:
        usage(f"nothing to change: use an option such as {example}, or --unset FIELD")
    return changes


def _unset(changes: dict[str, Any], path: str) -> None:
    *outer, name = path.split(".")
    for part in outer:
        changes = changes.setdefault(part, {})
        if not isinstance(changes, dict):
            usage(f"--unset {path} contradicts another option")
    if name in changes:
        usage(f"--unset {path} contradicts another option")
    changes[name] = None
