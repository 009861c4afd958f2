"""The commands about many jobs at once: `tickwheel operations ...`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tickwheel.client.calls.operations import Operations
from tickwheel.client.durations import parse_duration
from tickwheel.client.instants import parse_instant
from tickwheel.client.operations import JobFilter, Operation
from tickwheel.commands.api import Api
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import TagOption, TargetOption, duration, option_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, complain, error_console, share_bar, usage
from tickwheel.errors import InvalidRequest
from tickwheel.screens.operations import examples_table, operation_table, operations_table
from tickwheel.screens.tables import show_table

group = commands.group("operations", about="Cancel, reschedule, run or export all waiting jobs that match a filter.")


def parse_due(text: str, *, now: datetime | None = None) -> datetime:
    """Reads RFC 3339, or how long from now: `2h`, or `-30m` for a time that is past; raises ValueError."""
    with suppress(ValueError, OverflowError):
        return (now or datetime.now(UTC)) + parse_shift(text)
    return parse_instant(text)


def parse_shift(text: str) -> timedelta:
    """Reads a duration, with a minus for earlier: `2h`, `-1d`, `-PT90S`; raises ValueError."""
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


due_option = option_of(parse_due)
shift_option = option_of(parse_shift)

_WORDS = {
    "cancel": ("cancelling", "cancelled"),
    "reschedule": ("rescheduling", "rescheduled"),
    "run_now": ("running", "run now"),
    "export": ("exporting", "exported"),
}
"""What is being done to jobs, and what was."""

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="As listed by `operations list`.")]
TenantOption = Annotated[str, typer.Option(help="Tenant of the jobs.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Skip the count and the confirmation.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Count the matches and show the first ones; change nothing.")
]
NoWaitOption = Annotated[bool, typer.Option("--no-wait", help="Return as soon as the operation is accepted.")]


@dataclass(kw_only=True)
class FilterOptions(OptionSet):
    """Which jobs are selected."""

    tenant: TenantOption
    due_from: Annotated[
        datetime | None,
        typer.Option(
            parser=due_option, help="Jobs due at or after this time; RFC 3339, or from now: 2h. Default: -1h."
        ),
    ] = None
    due_until: Annotated[
        datetime | None, typer.Option(parser=due_option, help="Jobs due before this time; RFC 3339, or from now: 2h.")
    ] = None
    target: TargetOption = None
    schedule: Annotated[str | None, typer.Option(help="Id of the schedule that the jobs are fires of.")] = None
    tag: TagOption = None
    every: Annotated[
        bool, typer.Option("--all", help="All jobs of the tenant. Required if there is no other filter.")
    ] = False

    def as_filter(self) -> JobFilter:
        """The filter; what it refuses is wrong usage."""
        fields = {name: value for name, value in vars(self).items() if name != "every"}
        try:
            return JobFilter(**fields, all=self.every)
        except InvalidRequest as invalid:
            usage(str(invalid))


@group.add()
def cancel(
    *,
    selection: FilterOptions,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    no_wait: NoWaitOption = False,
    api: Api,
) -> None:
    """Cancel all matching jobs. A running attempt continues, and is not retried."""
    matching = selection.as_filter()
    _can_ask(api, yes=yes or dry_run, to="cancel")
    start = partial(api.client.operations.cancel, matching)
    _start(start, "Cancel {} jobs for good?", api, yes=yes, dry_run=dry_run, no_wait=no_wait)


@group.add()
def reschedule(
    *,
    selection: FilterOptions,
    by: Annotated[
        timedelta | None, typer.Option(parser=shift_option, help="How much later, or earlier: --by=-1h.")
    ] = None,
    to: Annotated[datetime | None, typer.Option(parser=due_option, help="New time; RFC 3339, or from now: 2h.")] = None,
    spread: Annotated[timedelta | None, duration("With --to: distribute the jobs evenly over this time.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    no_wait: NoWaitOption = False,
    api: Api,
) -> None:
    """Reschedule all matching jobs. Each continues under a new id; its old id stays valid."""
    matching = selection.as_filter()
    if (by is None) == (to is None) or (by is not None and spread is not None):
        usage("a new time is required: --by 2h, or --to 2030-01-31T09:00:00Z, with --spread 1h to avoid a herd")
    _can_ask(api, yes=yes or dry_run, to="reschedule")
    start = partial(api.client.operations.reschedule, matching, by=by, to=to, spread=spread)
    _start(start, "Reschedule {} jobs?", api, yes=yes, dry_run=dry_run, no_wait=no_wait)


@group.add()
def run_now(
    *,
    selection: FilterOptions,
    rate: Annotated[float | None, typer.Option(help="Jobs per second, 1 to 1000. Default: 50.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    no_wait: NoWaitOption = False,
    api: Api,
) -> None:
    """Run all matching jobs now, at a limited rate."""
    matching = selection.as_filter()
    _can_ask(api, yes=yes or dry_run, to="run them")
    start = partial(api.client.operations.run_now, matching, rate=rate)
    _start(start, "Run {} jobs now?", api, yes=yes, dry_run=dry_run, no_wait=no_wait)


@group.add()
def export(
    *,
    selection: FilterOptions,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON Lines, one job per line.")] = None,
    dry_run: DryRunOption = False,
    no_wait: NoWaitOption = False,
    api: Api,
) -> None:
    """Export all matching jobs, with their payloads, to a file."""
    matching = selection.as_filter()
    if out is not None and (no_wait or dry_run):
        option = "--no-wait" if no_wait else "--dry-run"
        usage(f"{option} cannot be combined with --out: omit {option}, or omit --out and download the export later")
    calls = api.client.operations
    operation = calls.export(matching, dry_run=dry_run)
    _finish(calls, operation, api, no_wait=no_wait, out=out)


@group.add()
def download(
    operation_id: IdArgument,
    *,
    tenant: TenantOption,
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON Lines, one job per line.")],
    api: Api,
) -> None:
    """Download the jobs of a finished export to a file."""
    operation = api.client.operations.get(operation_id, tenant=tenant)
    count = _download(api.client.operations, operation, out)
    api.print({"jobs": count, "file": str(out)}, f"wrote {count} jobs to {out}")


@group.add("list")
def list_operations(
    *,
    tenant: TenantOption,
    limit: Annotated[int, typer.Option(min=1, help="Number to show, newest first.")] = 20,
    api: Api,
) -> None:
    """List operations, newest first. They are deleted 30 days after their end."""
    everything = sorted(api.client.operations.list(tenant=tenant), key=lambda each: each.created_at, reverse=True)
    newest = list(islice(everything, limit))
    shown = operations_table(newest) if newest else f"tenant {tenant} has no operations of the last 30 days"
    api.print({"operations": [operation.body for operation in newest]}, shown)


@group.add()
def show(operation_id: IdArgument, *, tenant: TenantOption, api: Api) -> None:
    """Show an operation and the first jobs that were refused."""
    operation = api.client.operations.get(operation_id, tenant=tenant)
    _show(operation, api)


@group.add()
def stop(operation_id: IdArgument, *, tenant: TenantOption, api: Api) -> None:
    """Stop an operation at its next step. Changes already made are kept."""
    operation = api.client.operations.stop(operation_id, tenant=tenant)
    _show(operation, api)


def _can_ask(api: Api, *, yes: bool, to: str) -> None:
    """Wrong usage where a script would be asked."""
    if api.as_json and not yes:
        usage(f"--json cannot ask for confirmation: add --yes to {to}, or --dry-run to count")


def _start(
    start: Callable[..., Operation], question: str, api: Api, *, yes: bool, dry_run: bool, no_wait: bool
) -> None:
    """Counts the jobs and shows the first, asks, and then does it; at once with yes, and nothing but the count in a dry run."""
    calls = api.client.operations
    if not yes and not dry_run:
        counted = _followed(calls, start(dry_run=True), api)
        _show_end(counted, api)
        if not counted.matched:
            return
        api.confirm(question.format(counted.matched), yes=False)
    _finish(calls, start(dry_run=dry_run), api, no_wait=no_wait)


def _finish(calls: Operations, operation: Operation, api: Api, *, no_wait: bool, out: Path | None = None) -> None:
    """Waits for the end of an operation, and prints it; or prints that it was accepted."""
    if no_wait:
        look = f"tickwheel operations show {operation.id} --tenant {operation.tenant}"
        api.print(operation.body, f"accepted {operation.id}: show it with `{look}`")
        return
    operation = _followed(calls, operation, api)
    if out is not None and operation.state == "done":
        _download(calls, operation, out)
    _show_end(operation, api)


def _followed(calls: Operations, operation: Operation, api: Api) -> Operation:
    if not api.as_json:
        # Whoever ends the command does not end the operation.
        error_console().print(f"operation {operation.id}", soft_wrap=True)
    word = "counting" if operation.dry_run else _WORDS[operation.action][0]
    with share_bar(disable=api.as_json) as bar:
        task = bar.add_task(word, total=1.0)
        return calls.wait(
            operation,
            on_progress=lambda seen: bar.update(
                task, completed=seen.share, description=f"{word}, {seen.matched} matched"
            ),
        )


def _download(calls: Operations, operation: Operation, out: Path) -> int:
    try:
        return calls.download(operation, out)
    except OSError as error:
        complain(f"{out} cannot be written: {error}")
        raise typer.Exit(REFUSED) from None


def _show(operation: Operation, api: Api) -> None:
    examples = (examples_table(operation),) if operation.examples else ()
    api.print(operation.body, operation_table(operation), *examples)


def _show_end(operation: Operation, api: Api) -> None:
    """What came of it. That it could not be done to all that match is an error."""
    if api.as_json:
        api.print(operation.body)
    else:
        console = Console() if operation.dry_run else error_console()
        if operation.examples:
            show_table(examples_table(operation), console)
        typer.echo(_summary(operation))
        if operation.state == "failed":
            complain(f"the operation failed: {operation.error or 'no reason was recorded'}")
    if operation.refused or operation.state != "done":
        raise typer.Exit(REFUSED)


def _summary(operation: Operation) -> str:
    ended = "" if operation.state == "done" else f"{operation.state} at {operation.share:.0%}: "
    if operation.dry_run:
        shown = len(operation.examples)
        more = f"; these are the first {shown}" if 0 < shown < operation.matched else ""
        return f"{ended}{operation.matched} match{more}"
    why = ", ".join(f"{count} {code}" for code, count in operation.refused.items())
    refused = f", refused {operation.refused_count} ({why})" if why else ""
    return f"{ended}{_WORDS[operation.action][1]} {operation.done} of {operation.matched}{refused}"
