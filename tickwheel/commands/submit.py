"""The command `tickwheel submit`: one job, or a file of them."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, get_args

import typer

from tickwheel.client.fields import said
from tickwheel.client.jobs import NewJob
from tickwheel.commands.api import Api
from tickwheel.commands.job_file import Options, submit_file
from tickwheel.commands.job_lines import Format
from tickwheel.commands.job_options import JobOptions
from tickwheel.commands.option_sets import Without
from tickwheel.commands.options import duration, instant
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.errors import InvalidJob

_PREFIX = re.compile(r"[A-Za-z0-9._:-]{1,64}")


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
        Path | None,
        typer.Option(
            help="Submit one job for each line of this file, or of standard input: -. JSON Lines, or CSV.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="With --file: jsonl or csv. Default: by the name of the file.", show_default=False
        ),
    ] = None,
    key_prefix: Annotated[
        str | None,
        typer.Option(
            help="With --file: begin the keys that lines are given with this, so that the same lines are other jobs.",
            show_default=False,
        ),
    ] = None,
    no_keys: Annotated[bool, typer.Option("--no-keys", help="With --file: give lines no idempotency key.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="With --file: go on where an interrupted submission of it ended.")
    ] = False,
    api: Api,
) -> None:
    """Submit a job, or with --file one job for each line of a file."""
    if file is not None:
        if target is not None or tenant is not None:
            usage("--file takes target and tenant from its lines; leave them out, or leave --file out")
        keys = _keys_of(key_prefix, no_keys=no_keys)
        submit_file(file, api, Options(form=_form_of(file, form), traceparent=traceparent, keys=keys, resume=resume))
        return
    if form is not None or key_prefix is not None or no_keys or resume:
        usage("--format, --key-prefix, --no-keys and --resume are about a file of jobs: add --file")
    if target is None or tenant is None:
        usage("a target and --tenant are required: tickwheel submit https://example.com/hook --tenant acme --delay 90s")
    owned = {"target": target, "tenant": tenant, "run_at": run_at, "delay": delay, "idempotency_key": idempotency_key}
    try:
        asked = NewJob.from_json({**said(owned), **job.as_json()})
    except InvalidJob as invalid:
        usage(str(invalid))
    api.print_fields(api.client.submit_job(asked, traceparent=traceparent))


def _form_of(file: Path, named: str | None) -> Format:
    if named is None:
        return "csv" if file.suffix.lower() == ".csv" else "jsonl"
    if named not in get_args(Format):
        usage(f"--format is {named!r}: choose from {', '.join(get_args(Format))}")
    return "csv" if named == "csv" else "jsonl"


def _keys_of(prefix: str | None, *, no_keys: bool) -> str | None:
    if prefix is None:
        return None if no_keys else "line"
    if no_keys:
        usage("--key-prefix cannot be combined with --no-keys: use one or the other")
    if not _PREFIX.fullmatch(prefix):
        usage(f"--key-prefix is {prefix!r}: use up to 64 letters, digits, dots, dashes, colons and underscores")
    return prefix
