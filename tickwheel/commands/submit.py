"""The command `tickwheel`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Tables are for people; `--json` prints one JSON object.
"""

import json
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tickwheel.client import Client
from tickwheel.client.jobs import Http, NewJob, RetryPolicy
from tickwheel.commands.breakers import app as breaker
from tickwheel.commands.breakers import breakers
from tickwheel.commands.cost import cost
from tickwheel.commands.dead_letters import app as dead_letters
from tickwheel.commands.herd import herd
from tickwheel.commands.jobs import complete, edit, explain_job, fail, heartbeat, reschedule, run_now
from tickwheel.commands.jobs_file import Account, Failed, beside, read_lines, submit_lines, write_lines
from tickwheel.commands.local import app as local
from tickwheel.commands.operations import app as operations
from tickwheel.commands.options import (
    EndpointOption,
    Header,
    JsonOption,
    RegionOption,
    duration_option,
    header_option,
    headers_of,
    instant_option,
    read_payload,
)
from tickwheel.commands.schedules import app as schedule
from tickwheel.commands.schedules import import_schedules
from tickwheel.commands.simulate import simulate
from tickwheel.commands.status import status
from tickwheel.commands.tenants import app as tenant
from tickwheel.commands.tenants import pause_stage, resume_stage
from tickwheel.commands.terminal import (
    REFUSED,
    error_console,
    explain,
    failing_politely,
    fields_of,
    print_fields,
    progress_bar,
    show_failed_lines,
    usage,
)
from tickwheel.commands.top import top
from tickwheel.commands.verify import verify
from tickwheel.errors import InvalidJob

app = typer.Typer(
    name="tickwheel",
    help="Submit jobs to Tickwheel, repeat them by schedules, look at them, and run the local cloud.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(local, name="local")
app.add_typer(schedule, name="schedule")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(operations, name="operations")
app.add_typer(breaker, name="breaker")
app.add_typer(tenant, name="tenant")
app.command()(breakers)
app.command("import")(import_schedules)
app.command("explain")(explain_job)
app.command()(status)
app.command()(top)
app.command("pause")(pause_stage)
app.command("resume")(resume_stage)
for _command in (run_now, reschedule, edit, heartbeat, complete, fail):
    app.command()(_command)
app.command()(herd)
app.command()(verify)
app.command()(simulate)
app.command()(cost)


@app.command()
def submit(  # noqa: PLR0917  # typer reads the options off the signature
    target: Annotated[
        str | None, typer.Argument(help="https://..., handler:NAME or an ARN", show_default=False)
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Owner of the job.", show_default=False)] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, or @FILE that holds it.", show_default=False)] = None,
    run_at: Annotated[
        datetime | None, typer.Option(parser=instant_option, help="RFC 3339 with an offset: 2030-01-31T09:00:00Z.")
    ] = None,
    delay: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="90, 90s, 5m, 2h, 1d or PT1M30S.")
    ] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key answers with the same job.")] = None,
    priority: Annotated[str | None, typer.Option(help="critical, high, normal or low.")] = None,
    delivery: Annotated[str | None, typer.Option(help="exactly_once, at_least_once or at_most_once.")] = None,
    precision: Annotated[str | None, typer.Option(help="default or exact.")] = None,
    retry_strategy: Annotated[
        str | None, typer.Option(help="exponential, fixed, linear or decorrelated_jitter.")
    ] = None,
    retry_attempts: Annotated[int | None, typer.Option(help="Attempts in all.")] = None,
    retry_base: Annotated[timedelta | None, typer.Option(parser=duration_option, help="First wait.")] = None,
    retry_cap: Annotated[timedelta | None, typer.Option(parser=duration_option, help="Longest wait.")] = None,
    retry_max_age: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="No attempt later than this after the first.")
    ] = None,
    timeout: Annotated[timedelta | None, typer.Option(parser=duration_option, help="Limit of one attempt.")] = None,
    expires_after: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="Do not run later than this after its time.")
    ] = None,
    http_method: Annotated[str | None, typer.Option(help="POST, PUT, PATCH, DELETE or GET.")] = None,
    header: Annotated[
        list[Header] | None,
        typer.Option(parser=header_option, metavar="NAME=VALUE", help="A header; may be given again."),
    ] = None,
    http_success: Annotated[
        list[int] | None, typer.Option(metavar="STATUS", help="A status that means success; may be given again.")
    ] = None,
    http_retry_on: Annotated[
        list[int] | None, typer.Option(metavar="STATUS", help="A status to try again; may be given again.")
    ] = None,
    asynchronous: Annotated[
        bool, typer.Option("--asynchronous", help="Start a Lambda function without waiting for its answer.")
    ] = False,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A label of the job; may be given again.")
    ] = None,
    traceparent: Annotated[
        str | None, typer.Option(help="W3C's: the trace that the job belongs to.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Submit a job per line of this JSON Lines file.", show_default=False)
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job, or with --file one per line of a file."""
    if file is not None:
        if target is not None or tenant is not None:
            usage("--file takes target and tenant from its lines; leave them out, or leave --file out")
        _submit_file(file, endpoint=endpoint, region=region, as_json=as_json, traceparent=traceparent)
        return
    if target is None or tenant is None:
        usage("a target and --tenant are needed: tickwheel submit https://example.com/hook --tenant acme --delay 90s")
    fields: dict[str, Any] = {
        "payload": None if payload is None else read_payload(payload),
        "run_at": run_at,
        "delay": delay,
        "idempotency_key": idempotency_key,
        "priority": priority,
        "delivery": delivery,
        "precision": precision,
        "timeout": timeout,
        "expires_after": expires_after,
        "asynchronous": asynchronous or None,
        "tags": tag or (),
    }
    http: dict[str, Any] = {
        "method": http_method,
        "headers": headers_of(header),
        "success": http_success or (),
        "retry_on": http_retry_on or (),
    }
    retry: dict[str, Any] = {
        "strategy": retry_strategy,
        "attempts": retry_attempts,
        "base": retry_base,
        "cap": retry_cap,
        "max_age": retry_max_age,
    }
    try:
        policy = RetryPolicy(**retry) if any(value is not None for value in retry.values()) else None
        job = NewJob(target, tenant=tenant, retry=policy, http=Http(**http), **fields)
    except InvalidJob as invalid:
        usage(str(invalid))
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.submit_job(job, traceparent=traceparent), as_json=as_json)


@app.command()
def get(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a job as it stands."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.get(job_id), as_json=as_json)


@app.command()
def cancel(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a job; a running attempt is asked to stop."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        cancellation = client.cancel(job_id)
        if as_json:
            typer.echo(json.dumps(asdict(cancellation)))
        elif cancellation.state == "cancelled":
            typer.echo(f"cancelled {cancellation.id}")
        else:
            typer.echo(f"an attempt of {cancellation.id} is running; it was asked to stop")


@app.command()
def webhook_keys(
    tenant: Annotated[str, typer.Argument(metavar="TENANT")],
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the secrets that a tenant's receivers verify signatures with, the current one first."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        keys = client.webhook_keys(tenant)
        if as_json:
            typer.echo(json.dumps({"keys": [asdict(key) for key in keys]}))
            return
        for key in keys:
            typer.echo(f"{key.id} {key.secret}")


def _submit_file(
    file: Path, *, endpoint: str | None, region: str | None, as_json: bool, traceparent: str | None
) -> None:
    try:
        lines = read_lines(file)
    except (OSError, UnicodeDecodeError) as error:
        usage(f"{file} cannot be read: {error}")
    with (
        failing_politely(as_json=as_json),
        Client(endpoint, region=region) as client,
        progress_bar(disable=as_json) as progress,
    ):
        task = progress.add_task("submitting", total=len(lines))
        account, interrupted = submit_lines(
            client, lines, advance=lambda count: progress.advance(task, count), traceparent=traceparent
        )
    kept = {
        word: beside(file, word)
        for word, failed in (("refused", account.refused), ("unanswered", account.unanswered))
        if failed
    }
    for word, path in kept.items():
        write_lines(path, account.refused if word == "refused" else account.unanswered)
    if as_json:
        typer.echo(json.dumps(_account_json(account, kept)))
    else:
        _show_account(account, kept, interrupted=interrupted)
    if not account.is_complete:
        raise typer.Exit(REFUSED)


def _account_json(account: Account, kept: dict[str, Path]) -> dict[str, Any]:
    def listed(failed: list[Failed]) -> list[dict[str, Any]]:
        return [{"line": each.line.number, **explain(each.error)} for each in failed]

    return {
        "accepted": len(account.accepted),
        "refused": len(account.refused),
        "unanswered": len(account.unanswered),
        "jobs": [{"line": each.line.number, **fields_of(each.job)} for each in account.accepted],
        "problems": listed(account.refused),
        "unknown": listed(account.unanswered),
        "files": {word: str(path) for word, path in kept.items()},
    }


def _show_account(account: Account, kept: dict[str, Path], *, interrupted: bool) -> None:
    errors = error_console()
    for failed in (account.refused, account.unanswered):
        show_failed_lines([(each.line.number, each.error) for each in failed])
    if interrupted:
        errors.print("interrupted")
    summary = f"accepted {len(account.accepted)}, refused {len(account.refused)}"
    typer.echo(summary + (f", unanswered {len(account.unanswered)}" if account.unanswered else ""))
    if "refused" in kept:
        errors.print(f"refused lines are in {kept['refused']}: mend and submit that file", soft_wrap=True)
    if "unanswered" in kept:
        errors.print(
            f"lines without an answer are in {kept['unanswered']}: they may have been taken, so submit that file "
            "again only if its jobs carry an idempotency_key",
            soft_wrap=True,
        )


if __name__ == "__main__":
    app()
