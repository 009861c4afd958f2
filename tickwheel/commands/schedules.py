"""The commands about schedules: `tickwheel schedule ...` and `tickwheel import`."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.markup import escape

from tickwheel.client.fires import Backfill, Difference, Fire
from tickwheel.client.instants import format_instant
from tickwheel.client.schedule_stats import ScheduleStats
from tickwheel.client.schedules import NewSchedule, Overlap, Schedule
from tickwheel.client.words import ScheduleChange
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.definition import DefinitionOptions, patch_of
from tickwheel.commands.import_plan import SourceOptions, import_from
from tickwheel.commands.job_lines import Format
from tickwheel.commands.options import instant
from tickwheel.commands.registry import commands
from tickwheel.commands.schedule_replacement import create_or_ask
from tickwheel.commands.schedules_file import Options, exported, has_pointer, import_file, open_output
from tickwheel.commands.terminal import error_console, progress_bar, usage
from tickwheel.errors import InvalidSchedule, TickwheelError
from tickwheel.screens.gaps_picture import draw_gaps
from tickwheel.screens.schedule_stats import gaps_table, headline, stats_table
from tickwheel.screens.schedules import (
    difference_table,
    fires_table,
    runs_table,
    schedules_table,
    standing_table,
)

group = commands.group("schedule", about="Create, show, update, trigger and delete schedules.")

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the schedule, unique within the tenant.")]
TenantOption = Annotated[str, typer.Option(help="Tenant of the schedule.", show_default=False)]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show the next fires before and after; change nothing.")]
CountOption = Annotated[int, typer.Option(min=1, max=100, help="Number of fires to show.")]
NoteOption = Annotated[str, typer.Option(help="The reason, shown with the schedule.")]
OverlapOption = Annotated[
    str | None, typer.Option(help=f"Overlap policy to use instead of the schedule's: {', '.join(get_args(Overlap))}.")
]
IfVersionOption = Annotated[
    int | None, typer.Option("--if-version", help="Only if the schedule has this version.", show_default=False)
]
KeyOption = Annotated[str | None, typer.Option(help="Idempotency key: the same key starts only one run.")]


@group.add()
def create(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    options: DefinitionOptions,
    file: Annotated[Path | None, typer.Option(help="Read the definition from this JSON file.")] = None,
    create_only: Annotated[
        bool, typer.Option("--create-only", help="Only if there is no schedule with this id.")
    ] = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
    count: CountOption = 10,
    yes: Annotated[bool, typer.Option("--yes", help="Replace an existing schedule without confirmation.")] = False,
    api: Api,
) -> None:
    """Create a schedule, or replace one after confirmation."""
    definition = options.as_json()
    if file is not None:
        if definition:
            usage(f"--file cannot be combined with {', '.join(definition)}: use one or the other")
        definition = _read_definition(file, schedule_id=schedule_id, tenant=tenant)
    try:
        schedule = NewSchedule.from_json({**definition, "id": schedule_id, "tenant": tenant})
    except InvalidSchedule as invalid:
        usage(str(invalid))
    if create_only and if_version is not None:
        usage("--create-only cannot be combined with --if-version: a new schedule has none")
    calls = api.client.schedules
    if dry_run:
        difference = calls.compare(schedule, count=count, create_only=create_only, if_version=if_version)
        _show_difference(difference, api)
    elif yes or create_only or if_version is not None:
        _show(calls.put(schedule, create_only=create_only, if_version=if_version), api)
    else:
        _show(create_or_ask(schedule, api, count=count), api)


@group.add()
def update(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    options: DefinitionOptions,
    unset_fields: Annotated[
        list[str] | None,
        typer.Option("--unset", help="Remove a field, such as spread or job.payload. Repeatable."),
    ] = None,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
    count: CountOption = 10,
    api: Api,
) -> None:
    """Update the given fields of a schedule."""
    changes = patch_of(options.as_json(), unset_fields, example="--spread 5m")
    calls = api.client.schedules
    if dry_run:
        difference = calls.compare_patch(
            schedule_id, tenant=tenant, changes=changes, count=count, if_version=if_version
        )
        _show_difference(difference, api)
    else:
        _show(calls.patch(schedule_id, tenant=tenant, changes=changes, if_version=if_version), api)


@group.add("list")
def list_schedules(tenant: TenantOption, *, api: Api) -> None:
    """List the schedules of a tenant."""
    schedules = list(api.client.schedules.list(tenant=tenant))
    shown = schedules_table(schedules) if schedules else f"tenant {tenant} has no schedules"
    api.print({"schedules": [schedule.body for schedule in schedules]}, shown)


@group.add()
def show(schedule_id: IdArgument, tenant: TenantOption, *, api: Api) -> None:
    """Show a schedule and its last runs."""
    _show(api.client.schedules.get(schedule_id, tenant=tenant), api)


@group.add()
def pause(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    note: NoteOption = "",
    if_version: IfVersionOption = None,
    api: Api,
) -> None:
    """Pause a schedule."""
    _show(api.client.schedules.pause(schedule_id, tenant=tenant, note=note, if_version=if_version), api)


@group.add()
def resume(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    note: NoteOption = "",
    if_version: IfVersionOption = None,
    api: Api,
) -> None:
    """Resume a paused schedule, starting from now."""
    _show(api.client.schedules.resume(schedule_id, tenant=tenant, note=note, if_version=if_version), api)


@group.add()
def trigger(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    overlap: OverlapOption = None,
    idempotency_key: KeyOption = None,
    api: Api,
) -> None:
    """Trigger one run of a schedule now. Its next fire is not affected."""
    options: dict[str, Any] = {"overlap": overlap, "idempotency_key": idempotency_key}
    job_id = api.client.schedules.trigger(schedule_id, tenant=tenant, **options)
    api.print({"job": job_id}, f"runs now as job {job_id}")


@group.add()
def backfill(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    start: Annotated[datetime, instant("Fires at or after this time; RFC 3339.", show_default=False)],
    end: Annotated[datetime, instant("Fires before this time; RFC 3339.", show_default=False)],
    overlap: OverlapOption = None,
    per_minute: Annotated[float | None, typer.Option(help="Runs per minute. Default: 60.")] = None,
    after: Annotated[str | None, typer.Option(help="Where to continue an incomplete backfill.")] = None,
    idempotency_key: KeyOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report what would run, and run nothing.")] = False,
    api: Api,
) -> None:
    """Backfill a schedule: run its fires of a past time range."""
    options: dict[str, Any] = {
        "overlap": overlap,
        "per_minute": per_minute,
        "idempotency_key": idempotency_key,
        "dry_run": dry_run,
    }
    found = _backfilled(
        lambda place: api.client.schedules.backfill(
            schedule_id, tenant=tenant, start=start, end=end, after=place, **options
        ),
        after,
        api,
    )
    api.print(fields_of(found), _backfill_text(found, verb="would run" if dry_run else "runs"))


def _backfill_text(found: Backfill, *, verb: str) -> str:
    if not found.count or found.first is None or found.last is None or found.ends_at is None:
        return "no fires in that range"
    first, last, ends_at = map(format_instant, (found.first, found.last, found.ends_at))
    return f"{verb} {found.count} fires, from {first} to {last}; the last is due at {ends_at}"


def _backfilled(part: Callable[[str | None], Backfill], after: str | None, api: Api) -> Backfill:
    """All parts as one; where one is refused, the output says where to continue."""
    with progress_bar(disable=api.as_json) as progress:
        task = progress.add_task("backfilling", total=None)
        found = part(after)
        while found.next is not None:
            progress.advance(task, found.count)
            try:
                further = part(found.next)
            except TickwheelError:
                typer.echo(f"{found.count} fires run; continue after them with --after {found.next}", err=True)
                raise
            found = replace(
                further,
                count=found.count + further.count,
                first=found.first or further.first,
                jobs=found.jobs + further.jobs,
            )
    return found


@group.add()
def preview(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    count: CountOption = 10,
    after: Annotated[datetime | None, instant("Fires after this time; RFC 3339. Default: now.")] = None,
    api: Api,
) -> None:
    """Preview the next fires, and what shifts them."""
    fires = api.client.schedules.preview(schedule_id, tenant=tenant, count=count, after=after)
    api.print({"fires": [_fire_json(fire) for fire in fires]}, fires_table(fires))


@group.add()
def stats(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture to this file, such as gaps.svg. Requires the extra `picture`.")
    ] = None,
    api: Api,
) -> None:
    """Show the figures of a schedule: its gaps beside those that its definition expects, waits, outcomes and lag."""
    found = api.client.schedules.stats(schedule_id, tenant=tenant)
    if picture is not None:
        _draw(picture, found)
    tables = (headline(found), gaps_table(found)) if found.histogram else ()
    api.print(found.body, stats_table(found), *tables)
    if picture is not None and not api.as_json:
        error_console().print(f"wrote the picture to {escape(str(picture))}", soft_wrap=True)


def _draw(file: Path, found: ScheduleStats) -> None:
    if not found.histogram:
        raise TickwheelError("there is nothing to draw: the schedule has no gaps yet, and none are expected")
    try:
        draw_gaps(file, found)
    except OSError as error:
        raise TickwheelError(f"{file} cannot be written: {error}") from None


@group.add()
def delete(
    schedule_id: IdArgument,
    tenant: TenantOption,
    *,
    if_version: IfVersionOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    api: Api,
) -> None:
    """Delete a schedule."""
    api.confirm(f"Delete the schedule {schedule_id} of {tenant} for good?", yes=yes)
    api.client.schedules.delete(schedule_id, tenant=tenant, if_version=if_version)
    deleted = {"id": schedule_id, "tenant": tenant, "status": "deleted"}
    api.print(deleted, f"deleted {schedule_id}")


@commands.add("import")
def import_schedules(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="JSON Lines or CSV, each line with a tenant, an id and a definition, or -; with --from, another program's files or folders.",
        ),
    ],
    *,
    options: SourceOptions,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="jsonl or csv, without --from. Default: by the name of the file.", show_default=False
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a file whose import was interrupted, without --from.")
    ] = False,
    api: Api,
) -> None:
    """Create or replace one schedule for each line of a file, or plan an import from another program. Importing again changes nothing."""
    if options.source is not None:
        if form is not None or resume:
            usage(f"{'--format' if form is not None else '--resume'} is for a file of schedules, without --from")
        import_from(files, options, api)
        return
    if options.given:
        usage(f"{', '.join(options.given)} needs --from: a file of schedules says all that itself")
    if len(files) > 1:
        usage("give one file of schedules at a time")
    import_file(files[0], api, Options(form=_format_of(files[0], form), tenant=options.tenant, resume=resume))


@commands.add("export")
def export_schedules(
    tenant: TenantOption,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: standard output.", show_default=False)
    ] = None,
    api: Api,
) -> None:
    """Write the schedules of a tenant as a file that `tickwheel import` takes."""
    calls = api.client.schedules
    count = 0
    with open_output(output) as file:
        for schedule in calls.list(tenant=tenant):
            # A list has a pointer in place of a large payload.
            whole = calls.get(schedule.id, tenant=tenant) if has_pointer(schedule) else schedule
            file.write(json.dumps(exported(whole), ensure_ascii=False) + "\n")
            count += 1
    if output is not None:
        api.print({"exported": count, "file": str(output)}, f"exported {count} schedules: {output}")


def _format_of(file: Path, named: str | None) -> Format:
    if named not in (None, "jsonl", "csv"):
        usage(f"--format is jsonl or csv, not {named}")
    return "csv" if named == "csv" or (named is None and file.suffix.lower() == ".csv") else "jsonl"


def _read_definition(file: Path, *, schedule_id: str, tenant: str) -> dict[str, Any]:
    """A definition, as it is sent or as `schedule show --json` prints it."""
    try:
        body = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        usage(f"{file} cannot be read: {error}")
    except ValueError as error:
        usage(f"{file} is not JSON: {error}")
    if not isinstance(body, dict):
        usage(f"{file} is not a JSON object")
    for name, value in (("id", schedule_id), ("tenant", tenant)):
        if body.get(name, value) != value:
            usage(f"{file} has {name} {body[name]!r}, not {value!r}: remove it from the file if {value!r} is intended")
    return body


def _show(schedule: Schedule, api: Api) -> None:
    parts = (
        ("", schedule.runs),
        ("\nlast successful runs", schedule.last_successes),
        ("\nlast failed runs", schedule.last_failures),
    )
    tables = (each for heading, runs in parts if runs for each in (heading, runs_table(runs)))
    api.print(schedule.body, standing_table(schedule), *tables)


def _show_difference(difference: Difference, api: Api) -> None:
    sides = {"before": difference.before, "after": difference.after}
    body = {name: [_fire_json(fire) for fire in fires] for name, fires in sides.items()}
    same = ("the schedule has this definition already",) if difference.change is ScheduleChange.UNCHANGED else ()
    api.print({"change": difference.change, **body}, *same, difference_table(difference))


def _fire_json(fire: Fire) -> dict[str, Any]:
    return {**fields_of(fire), "local": fire.local.isoformat()}
