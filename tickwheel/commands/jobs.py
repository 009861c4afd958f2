"""The commands about a job that was submitted: what its owner changes, and what its target reports."""

import json
from datetime import datetime, timedelta
from typing import Annotated

import typer

from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.definition import patch_of
from tickwheel.commands.job_options import JobOptions
from tickwheel.commands.option_sets import Without
from tickwheel.commands.options import duration, instant, read_json
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.screens.tables import fields_table, shortened

IdArgument = Annotated[str, typer.Argument(metavar="ID")]
FenceOption = Annotated[int, typer.Option(min=1, help="The fence of the attempt.", show_default=False)]


@commands.add()
def get(
    job_id: IdArgument,
    *,
    only_result: Annotated[
        bool, typer.Option("--result", help="Print nothing but the result, whole, as JSON.")
    ] = False,
    api: Api,
) -> None:
    """Show a job. A long result is shortened; --json and --result print all of it."""
    job = api.client.get(job_id)
    if only_result:
        api.print(job.result, json.dumps(job.result, indent=2, ensure_ascii=False))
        return
    fields = fields_of(job)
    api.print(fields, fields_table({**fields, "result": shortened(fields["result"])}))


@commands.add("payload")
def show_payload(job_id: IdArgument, *, api: Api) -> None:
    """Show the payload of a job."""
    payload = api.client.payload(job_id)
    api.print({"id": job_id, "payload": payload}, json.dumps(payload, indent=2, ensure_ascii=False))


@commands.add()
def cancel(job_id: IdArgument, *, api: Api) -> None:
    """Cancel a job. A running attempt is asked to stop."""
    cancellation = api.client.cancel(job_id)
    is_running = f"an attempt of {cancellation.id} is running; it was asked to stop"
    shown = f"cancelled {cancellation.id}" if cancellation.state == "cancelled" else is_running
    api.print(fields_of(cancellation), shown)


@commands.add()
def run_now(job_id: IdArgument, *, api: Api) -> None:
    """Run a job in the far ring, or its next attempt, now."""
    api.print_fields(api.client.run_now(job_id))


@commands.add()
def reschedule(
    job_id: IdArgument,
    *,
    at: Annotated[datetime | None, instant("New time; RFC 3339 with an offset: 2030-01-31T09:00:00Z.")] = None,
    delay: Annotated[timedelta | None, duration("New delay from now: 90, 90s, 5m, 2h, 1d or PT1M30S.", "--in")] = None,
    api: Api,
) -> None:
    """Reschedule a waiting job. It continues under a new id."""
    if (at is None) == (delay is None):
        usage("a new time is required: --at 2030-01-31T09:00:00Z, or --in 2h")
    api.print_fields(api.client.reschedule(job_id, run_at=at, delay=delay))


@commands.add()
def edit(
    job_id: IdArgument,
    *,
    options: Annotated[JobOptions, Without(("delivery",))],
    unset_fields: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", help="Reset a field, such as payload or http.headers.X-Team, to its default. Repeatable."
        ),
    ] = None,
    api: Api,
) -> None:
    """Update the given fields of a waiting job. It continues under a new id."""
    changes = patch_of(options.as_json(), unset_fields, example="--timeout 10s")
    api.print_fields(api.client.edit(job_id, changes))


@commands.add("explain")
def explain_job(job_id: IdArgument, *, api: Api) -> None:
    """Explain why a job has not run yet, or how it ended."""
    api.print_fields(api.client.explain(job_id))


@commands.add()
def heartbeat(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    lease: Annotated[
        timedelta | None, duration("Length of the lease, 1 s to 12 h. Default: the job's timeout plus 5 s.")
    ] = None,
    api: Api,
) -> None:
    """Renew the lease of an attempt whose target answered 202."""
    api.print_fields(api.client.heartbeat(job_id, fence=fence, lease=lease))


@commands.add()
def complete(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    result: Annotated[
        str | None, typer.Option(help="JSON, or @FILE to read it from a file.", show_default=False)
    ] = None,
    api: Api,
) -> None:
    """Complete an attempt: report that its target has succeeded."""
    value = None if result is None else read_json("--result", result)
    api.print_fields(api.client.complete(job_id, fence=fence, result=value))


@commands.add()
def fail(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    error: Annotated[str, typer.Option(help="The error message. It is shown with the job.", show_default=False)],
    permanent: Annotated[bool, typer.Option("--permanent", help="Do not retry the job.")] = False,
    retry_after: Annotated[timedelta | None, duration("Shortest wait before the next attempt.")] = None,
    api: Api,
) -> None:
    """Fail an attempt: report that its target has failed."""
    ended = api.client.fail(job_id, fence=fence, error=error, permanent=permanent, retry_after=retry_after)
    api.print_fields(ended)
