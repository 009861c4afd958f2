"""The commands about tenants: `tickwheel tenant ...`; and about the whole stage: `tickwheel pause`, `tickwheel resume`."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tickwheel.client import Client
from tickwheel.client.fields import without_none
from tickwheel.client.instants import format_instant
from tickwheel.client.tenants import LIMITS, Tenant
from tickwheel.commands.options import EndpointOption, JsonOption, RegionOption, option_of
from tickwheel.commands.terminal import failing_politely, print_fields, usage
from tickwheel.commands.usage import show_usage
from tickwheel.errors import InvalidRequest

app = typer.Typer(help="Show and change tenants: plans, limits, and who may act for them.", no_args_is_help=True)

app.command("usage")(show_usage)

_UNLIMITED = "unlimited"
_RATE = re.compile(r"([0-9.]+)(?:/(s|m|h))?", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3_600}


@dataclass(frozen=True)
class Amount:
    """A limit as the API takes it."""

    value: float | str


def parse_rate(text: str) -> Amount:
    """Reads jobs a second: `100`, `100/s`, `30/m`, `5/h`, or `unlimited`; raises ValueError."""
    if text == _UNLIMITED:
        return Amount(text)
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no rate: use 100/s, 30/m, 5/h or {_UNLIMITED}")
    number = _number(found[1]) / _SECONDS[found[2] or "s"]
    return Amount(int(number) if number == int(number) else number)


def parse_limit(text: str) -> Amount:
    """Reads a whole number, or `unlimited`; raises ValueError."""
    if text == _UNLIMITED:
        return Amount(text)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no whole number: use 100, or {_UNLIMITED}")
    return Amount(int(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


rate_option = option_of(parse_rate)
limit_option = option_of(parse_limit)

TenantArgument = Annotated[str, typer.Argument(metavar="ID")]
NoteOption = Annotated[str, typer.Option(help="Why, for people.")]
VersionOption = Annotated[int | None, typer.Option(help="Only if it still has this version.")]


@app.command("list")
def list_tenants(endpoint: EndpointOption = None, region: RegionOption = None, as_json: JsonOption = False) -> None:
    """List the tenants that were ever changed."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        found = list(client.tenants.list())
    if as_json:
        typer.echo(json.dumps({"tenants": [_as_json(tenant) for tenant in found]}))
    elif found:
        Console().print(_table(found))
    else:
        typer.echo("every tenant is on the default plan; `tickwheel tenant set ID` changes one")


@app.command()
def show(
    tenant: TenantArgument, endpoint: EndpointOption = None, region: RegionOption = None, as_json: JsonOption = False
) -> None:
    """Show a tenant: its plan, the limits in effect, and who may act for it."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.get(tenant), as_json=as_json)


@app.command("set")
def set_tenant(  # noqa: PLR0917  # typer reads the options off the signature
    tenant: TenantArgument,
    plan: Annotated[str | None, typer.Option(help="One of the stage's plans.")] = None,
    weight: Annotated[float | None, typer.Option(help="Its share where more is due than may go out.")] = None,
    submission_rate: Annotated[
        Amount | None, typer.Option(parser=rate_option, metavar="RATE", help="Submissions: 100/s, 30/m or unlimited.")
    ] = None,
    submission_burst: Annotated[int | None, typer.Option(help="Jobs that it may submit at once.")] = None,
    max_pending: Annotated[
        Amount | None, typer.Option(parser=limit_option, metavar="COUNT", help="Jobs that wait, about; or unlimited.")
    ] = None,
    execution_rate: Annotated[
        Amount | None, typer.Option(parser=rate_option, metavar="RATE", help="Jobs that run: 100/s, 30/m or unlimited.")
    ] = None,
    max_concurrency: Annotated[
        Amount | None,
        typer.Option(parser=limit_option, metavar="COUNT", help="Jobs that run at the same time; or unlimited."),
    ] = None,
    subshards: Annotated[int | None, typer.Option(help="Over how many shards its jobs are spread.")] = None,
    read_rate: Annotated[
        Amount | None,
        typer.Option(parser=rate_option, metavar="RATE", help="Reads of each caller: 100/s, 300/m or unlimited."),
    ] = None,
    max_schedules: Annotated[
        Amount | None,
        typer.Option(parser=limit_option, metavar="COUNT", help="Schedules that there are; or unlimited."),
    ] = None,
    max_fires_per_minute: Annotated[
        Amount | None,
        typer.Option(parser=limit_option, metavar="COUNT", help="Fires of all its schedules, about; or unlimited."),
    ] = None,
    top_priority: Annotated[str | None, typer.Option(help="The highest class that its jobs may have.")] = None,
    principal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARN", help="A role or user that may act for it, besides those there are; again for more."
        ),
    ] = None,
    remove_principal: Annotated[
        list[str] | None, typer.Option(metavar="ARN", help="One that may not any more; again for more.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="For people.")] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A limit that is its plan's again; or plan, limits, principals, note."),
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the given fields of a tenant, and keep the rest."""
    limits = _said(
        {
            "weight": weight,
            "submission_rate": submission_rate,
            "submission_burst": submission_burst,
            "max_pending": max_pending,
            "execution_rate": execution_rate,
            "max_concurrency": max_concurrency,
            "subshards": subshards,
            "read_rate": read_rate,
            "max_schedules": max_schedules,
            "max_fires_per_minute": max_fires_per_minute,
            "top_priority": top_priority,
        }
    )
    said: dict[str, Any] = without_none({"plan": plan, "note": note, "limits": limits or None})
    added, removed, gone = principal or (), remove_principal or (), unset or ()
    if not (said or added or removed or gone):
        usage("nothing is said that is to be changed: add --plan, a limit such as --weight 3, --principal or --unset")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        if added or removed:
            # By the version that they are of: what somebody else adds meanwhile is not lost.
            found = client.tenants.get(tenant)
            said |= {"principals": _among(found.principals, added, removed), "version": found.version}
        try:
            changed = client.tenants.patch(tenant, **said, unset=gone)
        except InvalidRequest as invalid:
            usage(str(invalid))
        _show(changed, as_json=as_json)


@app.command()
def pause(
    tenant: TenantArgument,
    note: NoteOption = "",
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nothing of a tenant run until it is resumed; its jobs wait."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.pause(tenant, note=note), as_json=as_json)


@app.command()
def resume(
    tenant: TenantArgument,
    note: NoteOption = "",
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a tenant go on that is paused or draining."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.resume(tenant, note=note), as_json=as_json)


@app.command()
def drain(
    tenant: TenantArgument,
    note: NoteOption = "",
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take nothing in for a tenant any more; what it has runs."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.drain(tenant, note=note), as_json=as_json)


@app.command()
def delete(  # noqa: PLR0917  # typer reads the options off the signature
    tenant: TenantArgument,
    confirm: Annotated[str, typer.Option(metavar="ID", help="The tenant's id again.")],
    keep_ledger: Annotated[bool, typer.Option("--keep-ledger", help="Let its ledger rows expire instead.")] = False,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a tenant with all its jobs, schedules, payloads and traces; `tickwheel tenant show` shows the progress.

    From `in effect by` on, nothing of it is taken in anywhere.
    """
    if confirm != tenant:
        usage(f"--confirm is {confirm!r}, but must be {tenant!r}, the tenant that is to be deleted")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.delete(tenant, confirm=confirm, ledger="ttl" if keep_ledger else "scan"), as_json=as_json)


@app.command()
def shard(  # noqa: PLR0917  # typer reads the options off the signature
    tenant: TenantArgument,
    subshards: Annotated[int | None, typer.Option(help="Over how many shards its jobs are spread.")] = None,
    cap: Annotated[
        Amount | None, typer.Option(parser=rate_option, metavar="RATE", help="Jobs that run: 2000/s or unlimited.")
    ] = None,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Spread a large tenant over shards, and cap how fast its jobs run."""
    limits = _said({"subshards": subshards, "execution_rate": cap})
    if not limits:
        usage("say over how many shards, or how fast: tickwheel tenant shard acme --subshards 8 --cap 2000/s")
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        _show(client.tenants.patch(tenant, limits=limits), as_json=as_json)


def pause_stage(
    note: NoteOption = "", endpoint: EndpointOption = None, region: RegionOption = None, as_json: JsonOption = False
) -> None:
    """Let nothing of any tenant run until the stage is resumed; all jobs wait."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.pause(note=note), as_json=as_json)


def resume_stage(
    note: NoteOption = "", endpoint: EndpointOption = None, region: RegionOption = None, as_json: JsonOption = False
) -> None:
    """Let the stage go on."""
    with failing_politely(as_json=as_json), Client(endpoint, region=region) as client:
        print_fields(client.resume(note=note), as_json=as_json)


def _said(limits: dict[str, Any]) -> dict[str, Any]:
    given = without_none(limits)
    return {name: limit.value if isinstance(limit, Amount) else limit for name, limit in given.items()}


def _among(principals: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """In their order, each once."""
    return [each for each in dict.fromkeys((*principals, *added)) if each not in removed]


def _show(tenant: Tenant, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(tenant)))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("tenant", tenant.tenant)
    table.add_row("status", escape(_status_text(tenant)))
    table.add_row("plan", escape(tenant.plan))
    # A stage of another version may have fewer.
    for name in (name for name in LIMITS if name in tenant.limits):
        table.add_row(name.replace("_", " "), f"{tenant.limits[name]}{' (own)' if name in tenant.own_limits else ''}")
    table.add_row("principals", escape("\n".join(tenant.principals)) or "operators only")
    table.add_row("version", str(tenant.version))
    if tenant.in_effect_by is not None:
        table.add_row("in effect by", format_instant(tenant.in_effect_by))
    if tenant.schedules is not None:
        table.add_row("schedules", f"{tenant.schedules.count:,}")
        table.add_row("fires per minute", f"{tenant.schedules.fires_per_minute:,g}")
    if tenant.deletion is not None:
        table.add_row("deleting", tenant.deletion.part or "its row")
        counts = (f"{count:,} {part}" for part, count in tenant.deletion.deleted.items() if count)
        table.add_row("deleted so far", ", ".join(counts) or "nothing")
    Console().print(table)


def _status_text(tenant: Tenant) -> str:
    return f"{tenant.status}: {tenant.note}" if tenant.note else tenant.status


def _table(found: Iterable[Tenant]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("tenant", "plan", "status", "limits of its own", "principals"):
        table.add_column(heading, overflow="fold")
    for tenant in found:
        own = ", ".join(f"{name} {tenant.limits[name]}" for name in tenant.own_limits)
        table.add_row(
            tenant.tenant,
            escape(tenant.plan),
            escape(_status_text(tenant)),
            own,
            escape("\n".join(tenant.principals)),
        )
    return table


def _as_json(tenant: Tenant) -> dict[str, Any]:
    return {
        name: format_instant(value) if isinstance(value, datetime) else value for name, value in asdict(tenant).items()
    }
