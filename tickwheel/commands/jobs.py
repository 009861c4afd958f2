"""The commands about a job that was submitted: what its owner changes, and what its target reports."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from tickwheel.client import Client
from tickwheel.commands.definition import takes_job, unset
from tickwheel.commands.options import (
    EndpointOption,
    JsonOption,
    RegionOption,
    duration_option,
    instant_option,
    read_json,
)
from tickwheel.commands.terminal import failing_politely, print_fields, usage

IdArgument = Annotated[str, typer.Argument(metavar="ID")]
FenceOption = Annotated[int, typer.Option(min=1, help="That the attempt was given.", show_default=False)]


def run_now(
    job_id: IdArgument,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a job that waits in the far ring, or its next attempt, now."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.run_now(job_id), as_json=as_json)


def reschedule(
    job_id: IdArgument,
    *,
    at: Annotated[
        datetime | None, typer.Option(parser=instant_option, help="RFC 3339 with an offset: 2030-01-31T09:00:00Z.")
    ] = None,
    delay: Annotated[
        timedelta | None, typer.Option("--in", parser=duration_option, help="90, 90s, 5m, 2h, 1d or PT1M30S.")
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a job that waits another time; it goes on under a new id."""
    if (at is None) == (delay is None):
        usage("another time is needed: --at 2030-01-31T09:00:00Z, or --in 2h")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.reschedule(job_id, run_at=at, delay=delay), as_json=as_json)


@takes_job
def edit(
    job_id: IdArgument,
    *,
    job: dict[str, Any],
    unset_fields: Annotated[
        list[str] | None,
        typer.Option("--unset", help="Give a field, such as payload or http.headers.X-Team, its usual value."),
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what the options name of a job that waits, and leave the rest; it goes on under a new id."""
    for path in unset_fields or []:
        unset(job, path)
    if not job:
        usage("nothing is to be changed: name an option such as --timeout 10s, or --unset FIELD")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.edit(job_id, job), as_json=as_json)


def explain_job(
    job_id: IdArgument,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell why a job has not run yet, or what became of it."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.explain(job_id), as_json=as_json)


def heartbeat(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    lease: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="1 s to 12 h; else the job's timeout and 5 s.")
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Extend the lease of an attempt whose target answered 202."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.heartbeat(job_id, fence=fence, lease=lease), as_json=as_json)


def complete(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    result: Annotated[str | None, typer.Option(help="JSON, or @FILE that holds it.", show_default=False)] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell that the target of an attempt has taken the job."""
    value = None if result is None else read_json("--result", result)
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.complete(job_id, fence=fence, result=value), as_json=as_json)


def fail(
    job_id: IdArgument,
    *,
    fence: FenceOption,
    error: Annotated[str, typer.Option(help="For whoever looks at the job.", show_default=False)],
    permanent: Annotated[bool, typer.Option("--permanent", help="Another attempt cannot help.")] = False,
    retry_after: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="No attempt before this is of any use.")
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell that the target of an attempt has failed."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        ended = client.fail(job_id, fence=fence, error=error, permanent=permanent, retry_after=retry_after)
        print_fields(ended, as_json=as_json)
