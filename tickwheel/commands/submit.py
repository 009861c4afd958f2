"""The command `tickwheel submit`: one job, or a file of them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tickwheel.client import Client
from tickwheel.client.fields import said
from tickwheel.client.jobs import NewJob, Refused, Submission, Submitted, Unanswered
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.job_options import JobOptions
from tickwheel.commands.lines import (
    Accepted,
    Account,
    Failed,
    Line,
    Words,
    failed_json,
    interrupted,
    parse_line,
    send_file,
)
from tickwheel.commands.option_sets import Without
from tickwheel.commands.options import duration, instant
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.errors import InvalidJob


@commands.add()
def submit(
    target: Annotated[
        str | None, typer.Argument(help="https://..., handler:NAME or an ARN.", show_default=False)
    ] = None,
    *,
    tenant: Annotated[str | None, typer.Option(help="Tenant of the job.", show_default=False)] = None,
    run_at: Annotated[datetime | None, instant("When to run; RFC 3339 with an offset: 2030-01-31T09:00:00Z.")] = None,
    delay: Annotated[timedelta | None, duration("Delay from now: 90, 90s, 5m, 2h, 1d or PT1M30S.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key returns the same job.")
    ] = None,
    job: Annotated[JobOptions, Without(("target",))],
    traceparent: Annotated[
        str | None, typer.Option(help="Trace that the job belongs to, as a W3C traceparent.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Submit one job for each line of this JSON Lines file.", show_default=False)
    ] = None,
    api: Api,
) -> None:
    """Submit a job, or with --file one job for each line of a file."""
    if file is not None:
        if target is not None or tenant is not None:
            usage("--file takes target and tenant from its lines; leave them out, or leave --file out")
        _submit_file(file, api, traceparent=traceparent)
        return
    if target is None or tenant is None:
        usage("a target and --tenant are required: tickwheel submit https://example.com/hook --tenant acme --delay 90s")
    owned = {"target": target, "tenant": tenant, "run_at": run_at, "delay": delay, "idempotency_key": idempotency_key}
    try:
        asked = NewJob.from_json({**said(owned), **job.as_json()})
    except InvalidJob as invalid:
        usage(str(invalid))
    api.print_fields(api.client.submit_job(asked, traceparent=traceparent))


def _submit_file(file: Path, api: Api, *, traceparent: str | None) -> None:
    send_file(
        file,
        api,
        partial(submit_lines, traceparent=traceparent),
        _account_json,
        Words(doing="submitting", done="accepted", verb="submit"),
    )


def submit_lines(
    client: Client, lines: Sequence[Line], advance: Callable[[int], None], *, traceparent: str | None
) -> Account[Submitted]:
    """Submits every line that is a job; lines that were never sent count as unanswered.

    `advance` is called with the number of lines settled since the last call. traceparent: of the trace they belong to.
    """
    account = Account[Submitted]()
    jobs: list[tuple[Line, NewJob]] = []
    for line in lines:
        try:
            jobs.append((line, parse_line(line, NewJob.from_json, InvalidJob)))
        except InvalidJob as invalid:
            account.refused.append(Failed(line, invalid))
    advance(len(account.refused))
    settled = 0

    def settle(results: Sequence[Submission]) -> None:
        nonlocal settled
        for result in results:
            _enter(account, jobs[settled][0], result)
            settled += 1
        advance(len(results))

    try:
        client.submit_many((job for _, job in jobs), traceparent=traceparent, on_progress=settle)
    except KeyboardInterrupt:
        account.is_interrupted = True
        account.unanswered += interrupted(line for line, _ in jobs[settled:])
    account.sort()
    return account


def _enter(account: Account[Submitted], line: Line, result: Submission) -> None:
    match result:
        case Submitted():
            account.accepted.append(Accepted(line, result))
        case Refused():
            account.refused.append(Failed(line, result.problem))
        case Unanswered():
            account.unanswered.append(Failed(line, result.error))


def _account_json(account: Account[Submitted]) -> dict[str, Any]:
    return {
        "accepted": len(account.accepted),
        "refused": len(account.refused),
        "unanswered": len(account.unanswered),
        "jobs": [{"line": each.line.number, **fields_of(each.answer)} for each in account.accepted],
        "problems": failed_json(account.refused),
        "unknown": failed_json(account.unanswered),
    }
