"""The command `tickwheel`.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. Tables are for people; `--json` prints one JSON object.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tickwheel.client import Client
from tickwheel.durations import parse_duration
from tickwheel.errors import InvalidJob
from tickwheel.jobs import Job, NewJob, RetryPolicy, Submitted, format_instant, parse_instant
from tickwheel.jobs_file import Account, Failed, beside, read_lines, submit_lines, write_lines
from tickwheel.local.commands import app as local
from tickwheel.terminal import REFUSED, WRONG_USAGE, complain, error_console, explain, failing_politely

_MOST_SHOWN = 20

T = TypeVar("T")

app = typer.Typer(
    name="tickwheel",
    help="Submit jobs to Tickwheel, look at them, cancel them, and run the local cloud.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(local, name="local")


def _option_of(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Turns a parser's ValueError into a usage error that names the option."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    convert.__name__ = parse.__name__.removeprefix("parse_")
    return convert


_instant = _option_of(parse_instant)
_duration = _option_of(parse_duration)

EndpointOption = Annotated[
    str | None,
    typer.Option(help="Address of the API; else TICKWHEEL_ENDPOINT, else the local cloud.", show_default=False),
]
RegionOption = Annotated[str | None, typer.Option(help="Region to sign for; else the address names it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


@app.command()
def submit(  # noqa: PLR0917  # typer reads the options off the signature
    target: Annotated[str | None, typer.Argument(help="https://... or handler:NAME", show_default=False)] = None,
    tenant: Annotated[str | None, typer.Option(help="Owner of the job.", show_default=False)] = None,
    payload: Annotated[str | None, typer.Option(help="JSON, or @FILE that holds it.", show_default=False)] = None,
    run_at: Annotated[
        datetime | None, typer.Option(parser=_instant, help="RFC 3339 with an offset: 2030-01-31T09:00:00Z.")
    ] = None,
    delay: Annotated[timedelta | None, typer.Option(parser=_duration, help="90, 90s, 5m, 2h, 1d or PT1M30S.")] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key answers with the same job.")] = None,
    priority: Annotated[str | None, typer.Option(help="critical, high, normal or low.")] = None,
    delivery: Annotated[str | None, typer.Option(help="exactly_once, at_least_once or at_most_once.")] = None,
    precision: Annotated[str | None, typer.Option(help="default or exact.")] = None,
    retry_strategy: Annotated[
        str | None, typer.Option(help="exponential, fixed, linear or decorrelated_jitter.")
    ] = None,
    retry_attempts: Annotated[int | None, typer.Option(help="Attempts in all.")] = None,
    retry_base: Annotated[timedelta | None, typer.Option(parser=_duration, help="First wait.")] = None,
    retry_cap: Annotated[timedelta | None, typer.Option(parser=_duration, help="Longest wait.")] = None,
    timeout: Annotated[timedelta | None, typer.Option(parser=_duration, help="Limit of one attempt.")] = None,
    expires_after: Annotated[
        timedelta | None, typer.Option(parser=_duration, help="Do not run later than this after its time.")
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
            _usage("--file takes target and tenant from its lines; leave them out, or leave --file out")
        _submit_file(file, endpoint=endpoint, region=region, as_json=as_json)
        return
    if target is None or tenant is None:
        _usage("a target and --tenant are needed: tickwheel submit https://example.com/hook --tenant acme --delay 90s")
    fields: dict[str, Any] = {
        "payload": None if payload is None else _read_payload(payload),
        "run_at": run_at,
        "delay": delay,
        "idempotency_key": idempotency_key,
        "priority": priority,
        "delivery": delivery,
        "precision": precision,
        "timeout": timeout,
        "expires_after": expires_after,
    }
    retry: dict[str, Any] = {
        "strategy": retry_strategy,
        "attempts": retry_attempts,
        "base": retry_base,
        "cap": retry_cap,
    }
    try:
        policy = RetryPolicy(**retry) if any(value is not None for value in retry.values()) else None
        job = NewJob(target, tenant=tenant, retry=policy, **fields)
    except InvalidJob as invalid:
        _usage(str(invalid))
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.submit_job(job), as_json=as_json)


@app.command()
def get(
    job_id: Annotated[str, typer.Argument(metavar="ID")],
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a job as it stands."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.get(job_id), as_json=as_json)


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


def _submit_file(file: Path, *, endpoint: str | None, region: str | None, as_json: bool) -> None:
    try:
        lines = read_lines(file)
    except (OSError, UnicodeDecodeError) as error:
        _usage(f"{file} cannot be read: {error}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        failing_politely(as_json=as_json),
        Client(endpoint, region=region) as client,
        Progress(*columns, console=error_console(), disable=as_json) as progress,
    ):
        task = progress.add_task("submitting", total=len(lines))
        account, interrupted = submit_lines(client, lines, advance=lambda count: progress.advance(task, count))
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
        "jobs": [{"line": each.line.number, **_as_json(each.job)} for each in account.accepted],
        "problems": listed(account.refused),
        "unknown": listed(account.unanswered),
        "files": {word: str(path) for word, path in kept.items()},
    }


def _show_account(account: Account, kept: dict[str, Path], *, interrupted: bool) -> None:
    errors = error_console()
    for failed in (account.refused, account.unanswered):
        for each in failed[:_MOST_SHOWN]:
            errors.print(f"[red]line {each.line.number}[/red]: {escape(str(each.error))}", soft_wrap=True)
        if len(failed) > _MOST_SHOWN:
            errors.print(f"... and {len(failed) - _MOST_SHOWN} more like these")
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


def _show(answer: Submitted | Job, *, as_json: bool) -> None:
    fields = _as_json(answer)
    if as_json:
        typer.echo(json.dumps(fields))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in fields.items():
        if value is not None:
            table.add_row(name.replace("_", " "), escape(value if isinstance(value, str) else json.dumps(value)))
    Console().print(table)


def _as_json(answer: Submitted | Job) -> dict[str, Any]:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value for name, value in asdict(answer).items()
    }


def _read_payload(text: str) -> Any:
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            _usage(f"--payload {text}: cannot be read: {error}")
    try:
        return json.loads(text)
    except ValueError as error:
        _usage(f"""--payload is not JSON ({error}): {text[:80]!r}; a string needs quotes of its own: '"text"'""")


def _usage(message: str) -> NoReturn:
    complain(message)
    raise typer.Exit(WRONG_USAGE)


if __name__ == "__main__":
    app()
