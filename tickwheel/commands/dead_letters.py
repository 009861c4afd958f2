"""The commands about dead letters: `tickwheel dead-letters ...`."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any

import typer
from rich.json import JSON
from rich.markup import escape
from rich.text import Text

from tickwheel.client.dead_letters import DeadLetterFilter, Matches, Part, Replay
from tickwheel.client.durations import parse_duration
from tickwheel.client.instants import format_instant, parse_instant
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import TagOption, TargetOption, option_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, error_console, explain, progress_bar, usage
from tickwheel.errors import ApiProblem, InvalidRequest
from tickwheel.screens.dead_letters import dead_letter_table, dead_letters_table

group = commands.group("dead-letters", about="List, replay and purge dead letters: jobs that failed for good.")


def parse_past(text: str, *, now: datetime | None = None) -> datetime:
    """Reads RFC 3339, or how long ago: `90s`, `5m`, `2h`, `1d`; raises ValueError."""
    with suppress(ValueError, OverflowError):
        return (now or datetime.now(UTC)) - parse_duration(text)
    return parse_instant(text)


past_option = option_of(parse_past)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="As listed by `dead-letters list`.")]
IdsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Dead letters. Or use --tenant for all that match.")
]
TenantOption = Annotated[
    str | None, typer.Option(help="Tenant of the jobs, or ? for messages that Tickwheel did not write.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Count and show the matches; change nothing.")]


@dataclass(kw_only=True)
class FilterOptions(OptionSet):
    """Which dead letters of a tenant are selected."""

    since: Annotated[
        datetime | None,
        typer.Option(parser=past_option, help="RFC 3339, or how long ago: 2h. Default: a day before --until."),
    ] = None
    until: Annotated[
        datetime | None,
        typer.Option(
            parser=past_option, help="Dead letters before this time; RFC 3339, or how long ago. Default: now."
        ),
    ] = None
    target: TargetOption = None
    error_class: Annotated[str | None, typer.Option(help="Error class such as timeout.")] = None
    schedule: Annotated[str | None, typer.Option(help="Id of the schedule that the jobs were fires of.")] = None
    tag: TagOption = None

    def of(self, tenant: str) -> DeadLetterFilter:
        """The filter; what it refuses is wrong usage."""
        try:
            return DeadLetterFilter(tenant=tenant, **vars(self))
        except InvalidRequest as invalid:
            usage(str(invalid))


@group.add("list")
def list_dead_letters(
    tenant: Annotated[str, typer.Option(help="Tenant of the jobs, or ? for messages that Tickwheel did not write.")],
    *,
    selection: FilterOptions,
    limit: Annotated[int, typer.Option(min=1, help="Number to show, newest first.")] = 50,
    api: Api,
) -> None:
    """List dead letters, newest first."""
    matching = selection.of(tenant)
    letters = list(islice(api.client.dead_letters.list(matching, page_size=min(limit, 500)), limit))
    shown = dead_letters_table(letters) if letters else f"tenant {tenant} has no dead letters that match"
    api.print({"dead_letters": [letter.body for letter in letters]}, shown)


@group.add()
def show(letter_id: IdArgument, *, api: Api) -> None:
    """Show a dead letter with its payload."""
    letter = api.client.dead_letters.get(letter_id)
    payload = (Text("payload", "bold"), JSON.from_data(letter.payload)) if "payload" in letter.body else ()
    api.print(letter.body, dead_letter_table(letter), *payload)


@group.add()
def replay(
    letter_ids: IdsArgument = None,
    *,
    tenant: TenantOption = None,
    selection: FilterOptions,
    rate: Annotated[float | None, typer.Option(help="Jobs per second. Default: all at once.")] = None,
    dry_run: DryRunOption = False,
    api: Api,
) -> None:
    """Replay dead letters: run their jobs again. Select them by id, or by filter."""
    matching = _matching(letter_ids, tenant, selection, {"--rate": rate, "--dry-run": dry_run})
    calls = api.client.dead_letters
    if matching is None:
        _act_on_each(letter_ids or [], calls.replay, _show_replay, api)
    elif dry_run:
        _show_matches(calls.count(matching), api)
    else:
        done = _with_progress(
            "replaying",
            lambda on_part: calls.replay_many(matching, rate=rate, on_progress=on_part),
            api,
        )
        _show_part(done, "replayed", api)


@group.add()
def purge(
    letter_ids: IdsArgument = None,
    *,
    tenant: TenantOption = None,
    selection: FilterOptions,
    dry_run: DryRunOption = False,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    api: Api,
) -> None:
    """Purge dead letters and their payloads. Select them by id, or by filter. This cannot be undone."""
    matching = _matching(letter_ids, tenant, selection, {"--dry-run": dry_run})
    if api.as_json and not yes and not dry_run:
        usage("--json cannot ask for confirmation: add --yes to purge, or --dry-run to count")
    calls = api.client.dead_letters
    if matching is None:
        ids = letter_ids or []
        _confirm(len(ids), api, yes=yes)
        _act_on_each(ids, calls.purge, lambda letter_id, _: typer.echo(f"purged {letter_id}"), api)
        return
    matches = calls.count(matching) if dry_run or not yes else None
    if matches is not None and dry_run:
        _show_matches(matches, api)
        return
    if matches is not None:
        _show_matches(matches, api)
        _confirm(matches.matched, api, yes=yes)
    done = _with_progress(
        "purging",
        lambda on_part: calls.purge_many(matching, on_progress=on_part),
        api,
        total=matches.matched if matches is not None else None,
    )
    _show_part(done, "purged", api)


def _matching(
    letter_ids: list[str] | None, tenant: str | None, selection: FilterOptions, beside: dict[str, Any]
) -> DeadLetterFilter | None:
    """The filter; None where letters are named. Both or neither is wrong usage."""
    if not letter_ids:
        if tenant is None:
            usage("select dead letters by their ids, or by --tenant and other filters")
        return selection.of(tenant)
    options = {
        "--tenant": tenant,
        **{f"--{name.replace('_', '-')}": value for name, value in vars(selection).items()},
        **beside,
    }
    given = [name for name, value in options.items() if value]
    if given:
        usage(f"ids cannot be combined with {', '.join(given)}: use one or the other")
    return None


def _act_on_each(
    letter_ids: Sequence[str], act: Callable[[str], Any], show: Callable[[str, Any], None], api: Api
) -> None:
    """One letter's refusal does not hold up the others."""
    done: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for letter_id in letter_ids:
        try:
            answer = act(letter_id)
        except ApiProblem as problem:
            refused.append({"id": letter_id, **explain(problem)})
            if not api.as_json:
                error_console().print(f"[red]{escape(letter_id)}[/red]: {escape(str(problem))}", soft_wrap=True)
            continue
        done.append(_replay_json(answer) if isinstance(answer, Replay) else {"id": letter_id})
        if not api.as_json:
            show(letter_id, answer)
    api.print({"done": done, "problems": refused})
    if refused:
        raise typer.Exit(REFUSED)


def _confirm(count: int, api: Api, *, yes: bool) -> None:
    api.confirm(f"Purge {count} dead letters for good?", yes=yes)


def _with_progress(
    word: str, work: Callable[[Callable[[Part], None]], Part], api: Api, *, total: int | None = None
) -> Part:
    with progress_bar(disable=api.as_json) as progress:
        task = progress.add_task(word, total=total)
        return work(lambda part: progress.advance(task, part.matched))


def _show_replay(letter_id: str, outcome: Replay) -> None:
    if outcome.due_at is not None:
        typer.echo(f"replayed {letter_id}: attempt {outcome.attempt} is due at {format_instant(outcome.due_at)}")
    else:
        typer.echo(f"already replayed {letter_id}: its job is {outcome.state}")


def _replay_json(outcome: Replay) -> dict[str, Any]:
    body = {"id": outcome.id, "job_id": outcome.job_id, "outcome": outcome.outcome}
    if outcome.due_at is None:
        return {**body, "state": outcome.state}
    return {**body, "attempt": outcome.attempt, "due_at": format_instant(outcome.due_at)}


def _show_matches(matches: Matches, api: Api) -> None:
    newest = matches.newest
    more = f"; these are the newest {len(newest)}" if matches.matched > len(newest) else ""
    body = {"matched": matches.matched, "dead_letters": [letter.body for letter in newest]}
    api.print(body, dead_letters_table(newest), f"{matches.matched} match{more}")


def _show_part(part: Part, word: str, api: Api) -> None:
    if api.as_json:
        already = {"already_replayed": part.already_replayed} if word == "replayed" else {}
        failed = [fields_of(each) for each in part.failed]
        api.print({"matched": part.matched, word: part.done, **already, "failed": failed})
    else:
        for each in part.failed:
            error_console().print(f"[red]{escape(each.id)}[/red]: {escape(each.detail)}", soft_wrap=True)
        before = f", {part.already_replayed} already replayed" if part.already_replayed else ""
        typer.echo(f"{word} {part.done} of {part.matched}{before}, failed {len(part.failed)}")
    if part.failed:
        raise typer.Exit(REFUSED)
