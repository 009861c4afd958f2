"""The options that say what a schedule is, and what a job is: the same for creating one and for changing it."""

import inspect
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import typer

from tickwheel.client.durations import seconds
from tickwheel.client.instants import format_instant
from tickwheel.client.schedule_parts import Window, parse_date, parse_local
from tickwheel.commands.options import (
    Header,
    duration_option,
    header_option,
    headers_of,
    instant_option,
    option_of,
    read_payload,
    with_options,
)
from tickwheel.commands.terminal import usage

_window = option_of(Window.parse)
_date = option_of(parse_date)
_local = option_of(parse_local)

_RULE = "When it fires (one of them)"
_MOVES = "What moves and bounds its fires"
_RUNS = "What its runs do"
_JOB = "The job"


def takes_definition(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a definition; what they say reaches it as `definition`, in the API's JSON."""
    options = list(inspect.signature(_definition_of).parameters.values())
    return with_options(command, "definition", options, _definition_of)


def takes_job(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a job that can be changed; what they say reaches it as `job`, in the API's JSON."""
    options = [
        option
        for option in inspect.signature(_definition_of).parameters.values()
        if _panel_of(option) == _JOB and option.name != "delivery"
    ]
    return with_options(command, "job", options, lambda **given: _definition_of(**given).get("job", {}))


def unset(changes: dict[str, Any], path: str) -> None:
    """Null in a merge patch removes a field; path: names with dots between."""
    *outer, name = path.split(".")
    for part in outer:
        changes = changes.setdefault(part, {})
        if not isinstance(changes, dict):
            usage(f"--unset {path} contradicts another option")
    if name in changes:
        usage(f"--unset {path} contradicts another option")
    changes[name] = None


def _panel_of(option: inspect.Parameter) -> str | None:
    return option.annotation.__metadata__[0].rich_help_panel


def _definition_of(
    *,
    cron: Annotated[
        str | None, typer.Option(help="Five fields, or a macro such as @daily.", rich_help_panel=_RULE)
    ] = None,
    every: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="90, 90s, 5m, 2h, 1d or PT1M30S.", rich_help_panel=_RULE),
    ] = None,
    at: Annotated[
        datetime | None,
        typer.Option(parser=instant_option, help="Once: RFC 3339 with an offset.", rich_help_panel=_RULE),
    ] = None,
    rrule: Annotated[
        str | None, typer.Option(help="RFC 5545, such as FREQ=MONTHLY;BYDAY=-1FR.", rich_help_panel=_RULE)
    ] = None,
    poisson: Annotated[float | None, typer.Option(help="Random events, so many a day.", rich_help_panel=_RULE)] = None,
    starts_at: Annotated[
        datetime | None,
        typer.Option(parser=_local, help="First occurrence of --rrule, a local time.", rich_help_panel=_RULE),
    ] = None,
    phase: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="So long after each multiple of --every.", rich_help_panel=_RULE),
    ] = None,
    from_end: Annotated[
        bool, typer.Option("--from-end", help="--every from the end of a run on.", rich_help_panel=_RULE)
    ] = False,
    timezone: Annotated[
        str | None, typer.Option(help="IANA name, such as Europe/Berlin; else UTC.", rich_help_panel=_RULE)
    ] = None,
    gap: Annotated[
        str | None, typer.Option(help="Skipped local times: next_valid or skip.", rich_help_panel=_RULE)
    ] = None,
    fold: Annotated[
        str | None, typer.Option(help="Repeated local times: first, second or both.", rich_help_panel=_RULE)
    ] = None,
    window: Annotated[
        list[Window] | None,
        typer.Option(
            parser=_window, metavar="WINDOW", help="'mon-fri 09:00-17:00'; may be given again.", rich_help_panel=_MOVES
        ),
    ] = None,
    window_mode: Annotated[
        str | None, typer.Option(help="Fires outside: skip, defer, or scale (poisson).", rich_help_panel=_MOVES)
    ] = None,
    exclude: Annotated[
        list[date] | None,
        typer.Option(
            parser=_date, metavar="DATE", help="A date without fires; may be given again.", rich_help_panel=_MOVES
        ),
    ] = None,
    holidays: Annotated[
        list[str] | None, typer.Option(help="DE, DE-BY, US, NYSE; may be given again.", rich_help_panel=_MOVES)
    ] = None,
    weekends: Annotated[
        bool, typer.Option("--weekends", help="No fires on Saturdays and Sundays.", rich_help_panel=_MOVES)
    ] = False,
    roll: Annotated[
        str | None, typer.Option(help="Fires of such dates: before, after or skip.", rich_help_panel=_MOVES)
    ] = None,
    spread: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="A constant delay below this.", rich_help_panel=_MOVES),
    ] = None,
    jitter: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="A delay below this, another each time.", rich_help_panel=_MOVES),
    ] = None,
    start: Annotated[
        datetime | None, typer.Option(parser=instant_option, help="No fire before.", rich_help_panel=_MOVES)
    ] = None,
    end: Annotated[
        datetime | None, typer.Option(parser=instant_option, help="No fire from then on.", rich_help_panel=_MOVES)
    ] = None,
    max_runs: Annotated[int | None, typer.Option(help="No fire after so many.", rich_help_panel=_MOVES)] = None,
    misfire: Annotated[
        str | None, typer.Option(help="Missed fires: fire_all, coalesce or skip.", rich_help_panel=_RUNS)
    ] = None,
    max_lateness: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="Later fires are dropped.", rich_help_panel=_RUNS),
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(help="While the last run goes on: allow, forbid, buffer_one or replace.", rich_help_panel=_RUNS),
    ] = None,
    pause_after_failures: Annotated[
        int | None, typer.Option(help="Pause after so many in a row.", rich_help_panel=_RUNS)
    ] = None,
    history: Annotated[int | None, typer.Option(help="How many runs are remembered.", rich_help_panel=_RUNS)] = None,
    target: Annotated[
        str | None, typer.Option(help="https://..., handler:NAME or an ARN", rich_help_panel=_JOB)
    ] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, or @FILE that holds it.", rich_help_panel=_JOB)] = None,
    priority: Annotated[str | None, typer.Option(help="critical, high, normal or low.", rich_help_panel=_JOB)] = None,
    delivery: Annotated[
        str | None, typer.Option(help="exactly_once, at_least_once or at_most_once.", rich_help_panel=_JOB)
    ] = None,
    precision: Annotated[str | None, typer.Option(help="default or exact.", rich_help_panel=_JOB)] = None,
    retry_strategy: Annotated[
        str | None,
        typer.Option(help="exponential, fixed, linear or decorrelated_jitter.", rich_help_panel=_JOB),
    ] = None,
    retry_attempts: Annotated[int | None, typer.Option(help="Attempts in all.", rich_help_panel=_JOB)] = None,
    retry_base: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="First wait.", rich_help_panel=_JOB)
    ] = None,
    retry_cap: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="Longest wait.", rich_help_panel=_JOB)
    ] = None,
    retry_max_age: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="No attempt later than this after the first.", rich_help_panel=_JOB),
    ] = None,
    timeout: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="Limit of one attempt.", rich_help_panel=_JOB)
    ] = None,
    expires_after: Annotated[
        timedelta | None,
        typer.Option(parser=duration_option, help="Do not run later than this after its time.", rich_help_panel=_JOB),
    ] = None,
    http_method: Annotated[
        str | None, typer.Option(help="POST, PUT, PATCH, DELETE or GET.", rich_help_panel=_JOB)
    ] = None,
    header: Annotated[
        list[Header] | None,
        typer.Option(
            parser=header_option, metavar="NAME=VALUE", help="A header; may be given again.", rich_help_panel=_JOB
        ),
    ] = None,
    http_success: Annotated[
        list[int] | None,
        typer.Option(metavar="STATUS", help="A status that means success; may be given again.", rich_help_panel=_JOB),
    ] = None,
    http_retry_on: Annotated[
        list[int] | None,
        typer.Option(metavar="STATUS", help="A status to try again; may be given again.", rich_help_panel=_JOB),
    ] = None,
    asynchronous: Annotated[
        bool,
        typer.Option(
            "--asynchronous", help="Start a Lambda function without waiting for its answer.", rich_help_panel=_JOB
        ),
    ] = False,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="A label of each run; may be given again.", rich_help_panel=_JOB),
    ] = None,
) -> dict[str, Any]:
    return _said(
        {
            "at": at and format_instant(at),
            "cron": cron,
            "every": _said({"interval": every, "phase": phase, "from": "end" if from_end else None}),
            "rrule": _said({"rule": rrule, "starts_at": starts_at and starts_at.isoformat(timespec="seconds")}),
            "poisson": _said({"per_day": poisson}),
            "timezone": timezone,
            "gap": gap,
            "fold": fold,
            "windows": [each.as_json() for each in window or []],
            "window_mode": window_mode,
            "calendar": _said(
                {
                    "exclude": [day.isoformat() for day in exclude or []],
                    "holidays": list(holidays or []),
                    "weekends": weekends or None,
                    "roll": roll,
                }
            ),
            "spread": spread,
            "jitter": jitter,
            "start": start and format_instant(start),
            "end": end and format_instant(end),
            "max_runs": max_runs,
            "misfire": misfire,
            "max_lateness": max_lateness,
            "overlap": overlap,
            "pause_after_failures": pause_after_failures,
            "history": history,
            "job": _said(
                {
                    "target": target,
                    "payload": None if payload is None else read_payload(payload),
                    "priority": priority,
                    "delivery": delivery,
                    "precision": precision,
                    "retry": _said(
                        {
                            "strategy": retry_strategy,
                            "attempts": retry_attempts,
                            "base": retry_base,
                            "cap": retry_cap,
                            "max_age": retry_max_age,
                        }
                    ),
                    "timeout": timeout,
                    "expires_after": expires_after,
                    "http": _said(
                        {
                            "method": http_method,
                            "headers": headers_of(header),
                            "success": list(http_success or []),
                            "retry_on": list(http_retry_on or []),
                        }
                    ),
                    "asynchronous": asynchronous or None,
                    "tags": list(tag or []),
                }
            ),
        }
    )


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    """What options have said; durations become seconds."""
    return {
        name: seconds(value) if isinstance(value, timedelta) else value
        for name, value in fields.items()
        if value is not None and (name == "payload" or value not in ([], {}))
    }
