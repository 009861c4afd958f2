"""The command `tickwheel submit`: one job, or a file of them."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tickwheel.client.fields import said
from tickwheel.client.jobs import NewJob
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.job_options import JobOptions
from tickwheel.commands.lines import Account, Failed, beside, read_lines, submit_lines, write_lines
from tickwheel.commands.option_sets import Without
from tickwheel.commands.options import duration_option, instant_option
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, error_console, explain, progress_bar, show_failed_lines, usage
from tickwheel.errors import InvalidJob


@commands.add()
def submit(
    target: Annotated[
        str | None, typer.Argument(help="https://..., handler:NAME or an ARN", show_default=False)
    ] = None,
    *,
    tenant: Annotated[str | None, typer.Option(help="Owner of the job.", show_default=False)] = None,
    run_at: Annotated[
        datetime | None, typer.Option(parser=instant_option, help="RFC 3339 with an offset: 2030-01-31T09:00:00Z.")
    ] = None,
    delay: Annotated[
        timedelta | None, typer.Option(parser=duration_option, help="90, 90s, 5m, 2h, 1d or PT1M30S.")
    ] = None,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key answers with the same job.")] = None,
    job: Annotated[JobOptions, Without(("target",))],
    traceparent: Annotated[
        str | None, typer.Option(help="W3C's: the trace that the job belongs to.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Submit a job per line of this JSON Lines file.", show_default=False)
    ] = None,
    api: Api,
) -> None:
    """Submit a job, or with --file one per line of a file."""
    if file is not None:
        if target is not None or tenant is not None:
            usage("--file takes target and tenant from its lines; leave them out, or leave --file out")
        _submit_file(file, api, traceparent=traceparent)
        return
    if target is None or tenant is None:
        usage("a target and --tenant are needed: tickwheel submit https://example.com/hook --tenant acme --delay 90s")
    owned = {"target": target, "tenant": tenant, "run_at": run_at, "delay": delay, "idempotency_key": idempotency_key}
    try:
        asked = NewJob.from_json({**said(owned), **job.as_json()})
    except InvalidJob as invalid:
        usage(str(invalid))
    api.print_fields(api.client.submit_job(asked, traceparent=traceparent))


def _submit_file(file: Path, api: Api, *, traceparent: str | None) -> None:
    lines = read_lines(file)
    client = api.client
    with progress_bar(disable=api.as_json) as progress:
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
    if api.as_json:
        api.print(_account_json(account, kept))
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
