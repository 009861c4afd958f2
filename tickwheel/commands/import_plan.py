"""An import from the files of another program: its plan, the file that is reviewed, and its application."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, NotStored, Put, Stored
from tickwheel.commands.api import Api
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.terminal import INTERRUPTED, REFUSED, error_console, explain, progress_bar, usage
from tickwheel.errors import ApiProblem, Unreachable
from tickwheel.imports.clock import zone_of
from tickwheel.imports.documents import STANDARD_INPUT
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
    with_environment: Annotated[
        bool,
        typer.Option("--with-environment", help="Put the environment of commands into payloads. It may be secret."),
    ] = False
    apply: Annotated[bool, typer.Option("--apply", help="Store what is planned, not only write its file.")] = False

    @property
    def given(self) -> list[str]:
        """The names of options that only make sense with --from."""
        values = {name: value for name, value in vars(self).items() if name not in ("source", "tenant") and value}
        return [
            f"--{name.replace('_', '-')}"
            for name, value in values.items()
            if not (name == "timezone" and value == "UTC")
        ]


@dataclass
class Applied:
    """What became of each schedule of a plan. stored: those of which it is not known whether they were so before.

    failed: refused. unanswered: may be stored. unsent: of an application that was interrupted.
    """

    created: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    unchanged: list[str] = field(default_factory=list[str])
    stored: list[str] = field(default_factory=list[str])
    failed: list[tuple[str, ApiProblem | Unreachable]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list[str])
    unsent: list[str] = field(default_factory=list[str])
    is_interrupted: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all of them are stored."""
        return not (self.failed or self.unanswered or self.unsent)

    def note(self, result: Put) -> None:
        """What became of one of them."""
        match result:
            case Stored():
                kinds = {"created": self.created, "updated": self.changed, "unchanged": self.unchanged}
                kinds.get(result.change or "", self.stored).append(result.asked.id)
            case NotStored(error=Unreachable()):
                self.unanswered.append(result.asked.id)
            case NotStored():
                self.failed.append((result.asked.id, result.error))


def import_from(files: list[Path], options: SourceOptions, api: Api) -> None:
    """Plans an import, writes its file, and stores it if that is asked for; exit code 1 if something is not carried over."""
    plan = _planned(files, options)
    stem = "stdin" if files[0] == STANDARD_INPUT else files[0].resolve().stem
    output = options.output or Path.cwd() / f"{stem}{_SUFFIX}"
    _write(output, plan)
    applied = _apply(plan, api) if options.apply and plan.planned else None
    if api.as_json:
        api.print(_as_json(plan, output, applied))
    else:
        _show(plan, output, applied, api)
    if applied is not None and applied.is_interrupted:
        raise typer.Exit(INTERRUPTED)
    is_complete = applied is None or applied.is_complete
    if not is_complete or not all(each.is_expected for each in plan.left_out):
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
        with_environment=options.with_environment,
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
    """Stores schedules. Those that are stored as asked are not written: the scheduler says which."""
    applied = Applied()
    read_count = settled_count = 0

    def ahead() -> Iterator[NewSchedule]:
        nonlocal read_count
        for schedule in asked:
            read_count += 1
            yield schedule

    def settle(result: Put) -> None:
        nonlocal settled_count
        applied.note(result)
        settled_count += 1
        advance(1)

    try:
        client.schedules.put_many(ahead(), on_progress=settle)
    except KeyboardInterrupt:
        applied.is_interrupted = True
        # What the client has read may have been sent.
        applied.unanswered += [schedule.id for schedule in asked[settled_count:read_count]]
        applied.unsent = [schedule.id for schedule in asked[read_count:]]
    return applied


def _as_json(plan: Plan, output: Path, applied: Applied | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "file": str(output),
        "planned": [_planned_json(each) for each in plan.planned],
        "left_out": [_left_out_json(each) for each in plan.left_out],
    }
    if applied is not None:
        failed = [{"id": schedule_id, **explain(error)} for schedule_id, error in applied.failed]
        kinds = {name: value for name, value in vars(applied).items() if name != "is_interrupted"}
        body["applied"] = {**kinds, "failed": failed}
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
    counts = {"created": applied.created, "changed": applied.changed, "unchanged": applied.unchanged}
    further = {"stored": applied.stored, "unanswered": applied.unanswered, "never sent": applied.unsent}
    said = {**counts, "refused": applied.failed, **{name: some for name, some in further.items() if some}}
    text = ", ".join(f"{name} {len(some)}" for name, some in said.items())
    typer.echo(f"interrupted: {text}" if applied.is_interrupted else text)
    for schedule_id, error in applied.failed:
        error_console().print(f"{schedule_id}: {escape(str(error))}", soft_wrap=True)
    if applied.is_interrupted or applied.unanswered:
        error_console().print("repeat this with --apply: what is stored is not written again", soft_wrap=True)
