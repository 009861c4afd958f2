"""The commands about dead letters: `tickwheel dead-letters ...`."""

import inspect
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID

from tickwheel.client import Client
from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter, Matches, Part, Replay
from tickwheel.client.durations import parse_duration
from tickwheel.client.instants import format_instant, parse_instant
from tickwheel.commands.options import EndpointOption, JsonOption, RegionOption, option_of, with_options
from tickwheel.commands.terminal import REFUSED, error_console, explain, failing_politely, progress_bar, usage
from tickwheel.errors import ApiProblem, InvalidRequest
from tickwheel.screens.dead_letters import dead_letter_table, dead_letters_table

app = typer.Typer(help="Look at what failed for good, and replay or purge it.", no_args_is_help=True)


def parse_past(text: str, *, now: datetime | None = None) -> datetime:
    """Reads RFC 3339, or how long ago: `90s`, `5m`, `2h`, `1d`; raises ValueError."""
    with suppress(ValueError, OverflowError):
        return (now or datetime.now(UTC)) - parse_duration(text)
    return parse_instant(text)


past_option = option_of(parse_past)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="As `dead-letters list` shows it.")]
IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Letters; or give --tenant for all that match.")
]
TenantOption = Annotated[str | None, typer.Option(help="Owner of the jobs; ? for what Tickwheel did not write.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Count and show what matches; change nothing.")]


def _takes_filter(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a filter but for the tenant; what they say reaches it as `said`, by their names."""
    return with_options(command, "said", list(inspect.signature(_said).parameters.values()), _said)


def _said(
    *,
    since: Annotated[
        datetime | None,
        typer.Option(parser=past_option, help="RFC 3339, or how long ago: 2h. Else a day before --until."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(parser=past_option, help="Letters before; RFC 3339, or how long ago. Else now.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Of the job, or its destination: https://example.com.")] = None,
    error_class: Annotated[str | None, typer.Option(help="Such as timeout.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Id of the schedule whose fires failed.")] = None,
    tag: Annotated[str | None, typer.Option(help="One of the job's.")] = None,
) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "target": target,
        "error_class": error_class,
        "schedule": schedule,
        "tag": tag,
    }


@app.command("list")
@_takes_filter
def list_dead_letters(
    tenant: Annotated[str, typer.Option(help="Owner of the jobs; ? for what Tickwheel did not write.")],
    *,
    said: dict[str, Any],
    limit: Annotated[int, typer.Option(min=1, help="How many are shown, newest first.")] = 50,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead letters, newest first."""
    matching = _filter(tenant, said)
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        letters = list(islice(client.dead_letters.list(matching, page_size=min(limit, 500)), limit))
    if as_json:
        typer.echo(json.dumps({"dead_letters": [letter.body for letter in letters]}))
    else:
        Console().print(dead_letters_table(letters))


@app.command()
def show(
    letter_id: IdArgument,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a dead letter with its payload."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        letter = client.dead_letters.get(letter_id)
    if as_json:
        typer.echo(json.dumps(letter.body))
        return
    console = Console()
    console.print(dead_letter_table(letter))
    if "payload" in letter.body:
        console.print("[bold]payload[/bold]")
        console.print_json(data=letter.payload)


@app.command()
@_takes_filter
def replay(
    letter_ids: IdsArgument = None,
    *,
    tenant: TenantOption = None,
    said: dict[str, Any],
    rate: Annotated[float | None, typer.Option(help="Jobs a second; else all at once.")] = None,
    dry_run: DryRunOption = False,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run jobs that have failed for good again: those of the letters named, or all that match."""
    matching = _matching(letter_ids, tenant, said, {"--rate": rate, "--dry-run": dry_run})
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        calls = client.dead_letters
        if matching is None:
            _act_on_each(letter_ids or [], calls.replay, _show_replay, as_json=as_json)
        elif dry_run:
            _show_matches(calls.count(matching), as_json=as_json)
        else:
            done = _with_progress(
                "replaying",
                lambda on_part: calls.replay_many(matching, rate=rate, on_progress=on_part),
                as_json=as_json,
            )
            _show_part(done, "replayed", as_json=as_json)


@app.command()
@_takes_filter
def purge(
    letter_ids: IdsArgument = None,
    *,
    tenant: TenantOption = None,
    said: dict[str, Any],
    dry_run: DryRunOption = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget dead letters and their payloads: those named, or all that match. They cannot be brought back."""
    matching = _matching(letter_ids, tenant, said, {"--dry-run": dry_run})
    if as_json and not yes and not dry_run:
        usage("--json cannot ask: add --yes to purge, or --dry-run to count")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        calls = client.dead_letters
        if matching is None:
            ids = letter_ids or []
            _confirm(len(ids), yes=yes)
            _act_on_each(ids, calls.purge, lambda letter_id, _: typer.echo(f"purged {letter_id}"), as_json=as_json)
            return
        matches = calls.count(matching) if dry_run or not yes else None
        if matches is not None and dry_run:
            _show_matches(matches, as_json=as_json)
            return
        if matches is not None:
            _show_matches(matches, as_json=as_json)
            _confirm(matches.matched, yes=yes)
        done = _with_progress(
            "purging",
            lambda on_part: calls.purge_many(matching, on_progress=on_part),
            total=matches.matched if matches is not None else None,
            as_json=as_json,
        )
        _show_part(done, "purged", as_json=as_json)


def _filter(tenant: str, said: dict[str, Any]) -> DeadLetterFilter:
    try:
        return DeadLetterFilter(tenant=tenant, **said)
    except InvalidRequest as invalid:
        usage(str(invalid))


def _matching(
    letter_ids: list[str] | None, tenant: str | None, said: dict[str, Any], beside: dict[str, Any]
) -> DeadLetterFilter | None:
    """The filter; None where letters are named. Both or neither is wrong usage."""
    if not letter_ids:
        if tenant is None:
            usage("name letters by their ids, or give --tenant and what else they have in common")
        return _filter(tenant, said)
    options = {"--tenant": tenant, **{f"--{name.replace('_', '-')}": value for name, value in said.items()}, **beside}
    given = [name for name, value in options.items() if value]
    if given:
        usage(f"ids name the letters already; leave {', '.join(given)} out, or the ids")
    return None


def _act_on_each(
    letter_ids: Sequence[str], act: Callable[[str], Any], show: Callable[[str, Any], None], *, as_json: bool
) -> None:
    """One letter's refusal does not hold up the others."""
    done: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for letter_id in letter_ids:
        try:
            answer = act(letter_id)
        except ApiProblem as problem:
            refused.append({"id": letter_id, **explain(problem)})
            if not as_json:
                error_console().print(f"[red]{escape(letter_id)}[/red]: {escape(str(problem))}", soft_wrap=True)
            continue
        done.append(_replay_json(answer) if isinstance(answer, Replay) else {"id": letter_id})
        if not as_json:
            show(letter_id, answer)
    if as_json:
        typer.echo(json.dumps({"done": done, "problems": refused}))
    if refused:
        raise typer.Exit(REFUSED)


def _confirm(count: int, *, yes: bool) -> None:
    if not yes:
        typer.confirm(f"Purge {count} dead letters for good?", abort=True, err=True)


def _with_progress(
    word: str, work: Callable[[Callable[[Part], None]], Part], *, as_json: bool, total: int | None = None
) -> Part:
    with progress_bar(disable=as_json) as progress:
        task: TaskID = progress.add_task(word, total=total)
        return work(lambda part: progress.advance(task, part.matched))


def _show_replay(letter_id: str, outcome: Replay) -> None:
    if outcome.due_at is not None:
        typer.echo(f"replayed {letter_id}: attempt {outcome.attempt} is due at {format_instant(outcome.due_at)}")
    else:
        typer.echo(f"replayed before {letter_id}: its job is {outcome.state}")


def _replay_json(outcome: Replay) -> dict[str, Any]:
    body = {"id": outcome.id, "job_id": outcome.job_id, "outcome": outcome.outcome}
    if outcome.due_at is None:
        return {**body, "state": outcome.state}
    return {**body, "attempt": outcome.attempt, "due_at": format_instant(outcome.due_at)}


def _show_matches(matches: Matches, *, as_json: bool) -> None:
    newest: Sequence[DeadLetter] = matches.newest
    if as_json:
        typer.echo(json.dumps({"matched": matches.matched, "dead_letters": [letter.body for letter in newest]}))
        return
    Console().print(dead_letters_table(newest))
    more = f", of which these are the newest {len(newest)}" if matches.matched > len(newest) else ""
    typer.echo(f"{matches.matched} match{more}")


def _show_part(part: Part, word: str, *, as_json: bool) -> None:
    if as_json:
        failed = [{"id": each.id, "code": each.code, "detail": each.detail} for each in part.failed]
        already = {"already_replayed": part.already_replayed} if word == "replayed" else {}
        typer.echo(json.dumps({"matched": part.matched, word: part.done, **already, "failed": failed}))
    else:
        for each in part.failed:
            error_console().print(f"[red]{escape(each.id)}[/red]: {escape(each.detail)}", soft_wrap=True)
        before = f", {part.already_replayed} replayed before" if part.already_replayed else ""
        typer.echo(f"{word} {part.done} of {part.matched}{before}, failed {len(part.failed)}")
    if part.failed:
        raise typer.Exit(REFUSED)
