"""An import from the files of another program: its plan, the file that is reviewed, and its application."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, NotStored, Put, Schedule, Stored
from tickwheel.commands.api import Api
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.terminal import REFUSED, error_console, explain, progress_bar, usage
from tickwheel.errors import ApiProblem, InvalidSchedule, Unreachable
from tickwheel.imports.clock import zone_of
from tickwheel.imports.fields import Unreadable
from tickwheel.imports.found import LeftOut
from tickwheel.imports.plan import Plan, Planned, Wanted, plan_of
from tickwheel.imports.reading import read_files
from tickwheel.imports.registry import SOURCES
from tickwheel.screens.imports import left_out_table, plan_table

_SUFFIX = ".schedules.jsonl"


@dataclass(kw_only=True)
class SourceOptions(OptionSet):
    """What is imported of another program, and as what."""

    panel = "From another program"

    source: Annotated[
        str | None,
        typer.Option("--from", help=f"Whose files these are: {', '.join(SOURCES)}.", show_default=False),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(help="Tenant of the schedules, of a file of them where a line names none.", show_default=False),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(help="Target of jobs that name none; {name} in it is the name there.", show_default=False),
    ] = None
    timezone: Annotated[str, typer.Option(help="Time zone of schedules that name none.")] = "UTC"
    prefix: Annotated[str, typer.Option(help="What each id begins with.")] = ""
    suspended: Annotated[
        bool, typer.Option("--suspended", help="Also those that are switched off there, as ones that fire.")
    ] = False
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help=f"File of the plan. Default: the first file's name with {_SUFFIX}."),
    ] = None
    apply: Annotated[bool, typer.Option("--apply", help="Store what is planned, not only write its file.")] = False

    @property
    def given(self) -> list[str]:
        """The names of options that only make sense with --from."""
        values = {name: value for name, value in vars(self).items() if name not in ("source", "tenant") and value}
        return [f"--{name}" for name, value in values.items() if not (name == "timezone" and value == "UTC")]


@dataclass
class Applied:
    """What became of each schedule of a plan. Those that are stored as planned are not written."""

    created: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    failed: list[tuple[str, ApiProblem | Unreachable]] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list[str])


def import_from(files: list[Path], options: SourceOptions, api: Api) -> None:
    """Plans an import, writes its file, and stores it if that is asked for; exit code 1 if something is not carried over."""
    plan = _planned(files, options)
    output = options.output or Path.cwd() / f"{files[0].resolve().stem}{_SUFFIX}"
    _write(output, plan)
    applied = _apply(plan, api) if options.apply and plan.planned else None
    if api.as_json:
        api.print(_as_json(plan, output, applied))
    else:
        _show(plan, output, applied, api)
    is_complete = all(each.is_expected for each in plan.left_out) and not (
        applied and (applied.failed or applied.unsent)
    )
    if not is_complete:
        raise typer.Exit(REFUSED)


def _planned(files: list[Path], options: SourceOptions) -> Plan:
    source = SOURCES.get(options.source or "")
    if source is None:
        usage(f"--from {options.source} is not known: use one of {', '.join(SOURCES)}")
    if options.tenant is None:
        usage("--tenant is required with --from: the schedules are its")
    try:
        zone_of(options.timezone)
    except Unreadable as problem:
        usage(f"--timezone: {problem}")
    wanted = Wanted(
        tenant=options.tenant,
        now=datetime.now(UTC),
        target=options.target,
        timezone=options.timezone,
        prefix=options.prefix,
        with_suspended=options.suspended,
    )
    return plan_of(read_files(files, source), wanted)


def _write(output: Path, plan: Plan) -> None:
    lines = [json.dumps(each.as_json(), ensure_ascii=False) for each in plan.planned]
    try:
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        usage(f"{output} cannot be written: {error}")


def _apply(plan: Plan, api: Api) -> Applied:
    asked = [each.schedule for each in plan.planned]
    with progress_bar(disable=api.as_json) as progress:
        task = progress.add_task("importing", total=len(asked))
        return apply_all(api.client, asked, lambda count: progress.advance(task, count))


def apply_all(client: Client, asked: Sequence[NewSchedule], advance: Callable[[int], None]) -> Applied:
    """Stores the schedules of one tenant that are not stored as asked."""
    stored = {each.id: each for each in client.schedules.list(tenant=asked[0].tenant)}
    applied = Applied()
    to_put: list[NewSchedule] = []
    for schedule in asked:
        current = stored.get(schedule.id)
        if current is not None and is_stored_as(schedule, current):
            applied.unchanged.append(schedule.id)
        else:
            to_put.append(schedule)
    advance(len(applied.unchanged))
    unsent = {schedule.id for schedule in to_put}

    def settle(result: Put) -> None:
        unsent.discard(result.asked.id)
        match result:
            case Stored():
                before = stored.get(result.asked.id)
                is_same = before is not None and before.version == result.schedule.version
                kind = applied.unchanged if is_same else applied.changed if before else applied.created
                kind.append(result.asked.id)
            case NotStored():
                applied.failed.append((result.asked.id, result.error))
        advance(1)

    try:
        client.schedules.put_many(to_put, on_progress=settle)
    except KeyboardInterrupt:
        applied.unsent = sorted(unsent)
    return applied


def is_stored_as(asked: NewSchedule, stored: Schedule) -> bool:
    """Whether a stored definition says the same, word for word; one that says it otherwise is put again, which changes nothing."""
    try:
        current = NewSchedule.from_json({**stored.definition, "id": stored.id, "tenant": stored.tenant})
    except InvalidSchedule:
        return False
    return current.as_json() == asked.as_json()


def _as_json(plan: Plan, output: Path, applied: Applied | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "file": str(output),
        "planned": [_planned_json(each) for each in plan.planned],
        "left_out": [_left_out_json(each) for each in plan.left_out],
    }
    if applied is not None:
        failed = [{"id": schedule_id, **explain(error)} for schedule_id, error in applied.failed]
        body["applied"] = {**vars(applied), "failed": failed}
    return body


def _planned_json(planned: Planned) -> dict[str, Any]:
    place = planned.entry.place
    return {
        "file": place.file,
        "line": place.line,
        "name": planned.entry.name,
        "there": planned.entry.written,
        "schedule": planned.as_json(),
        "next_there": [each.isoformat() for each in planned.there],
        "next_here": [each.isoformat() for each in planned.here],
        "differing": [
            {"there": [each.isoformat() for each in day.there], "here": [each.isoformat() for each in day.here]}
            for day in planned.differing
        ],
        "remarks": list(planned.remarks),
    }


def _left_out_json(left_out: LeftOut) -> dict[str, Any]:
    place = left_out.place
    return {
        "file": place.file,
        "line": place.line,
        "name": left_out.name,
        "there": left_out.written,
        "reason": left_out.reason,
    }


def _show(plan: Plan, output: Path, applied: Applied | None, api: Api) -> None:
    if plan.planned:
        api.print(None, plan_table(plan.planned))
    if plan.left_out:
        api.print(None, "", left_out_table(plan.left_out))
    different = sum(bool(each.remarks or each.differing) for each in plan.planned)
    summary = f"{len(plan.planned)} planned, {different} of them with differences, {len(plan.left_out)} left out"
    typer.echo(f"{summary}: {output}")
    if applied is None:
        if plan.planned:
            error_console().print(f"nothing is stored yet: read {escape(str(output))}, then repeat this with --apply, or tickwheel import that file", soft_wrap=True)  # fmt: skip
        return
    counts = f"created {len(applied.created)}, changed {len(applied.changed)}, unchanged {len(applied.unchanged)}"
    typer.echo(
        f"{counts}, refused {len(applied.failed)}" + (f", not sent {len(applied.unsent)}" if applied.unsent else "")
    )
    for schedule_id, error in applied.failed:
        error_console().print(f"{schedule_id}: {escape(str(error))}", soft_wrap=True)
