"""The commands about tenants: `tickwheel tenant ...`; and about the whole stage: `tickwheel pause`, `tickwheel resume`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer

from tickwheel.client.fields import without_none
from tickwheel.client.tenants import Tenant
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import duration, option_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.errors import InvalidRequest
from tickwheel.screens.tenants import tenant_table, tenants_table

group = commands.group("tenant", about="Show and update tenants: plans, limits, and who may act for them.")

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
        raise ValueError(f"{text!r} is not a rate: use 100/s, 30/m, 5/h or {_UNLIMITED}")
    number = _number(found[1]) / _SECONDS[found[2] or "s"]
    return Amount(int(number) if number == int(number) else number)


def parse_limit(text: str) -> Amount:
    """Reads a whole number, or `unlimited`; raises ValueError."""
    if text == _UNLIMITED:
        return Amount(text)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a whole number: use 100, or {_UNLIMITED}")
    return Amount(int(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


rate_option = option_of(parse_rate)
limit_option = option_of(parse_limit)


def _rate(about: str) -> Any:
    return typer.Option(parser=rate_option, metavar="RATE", help=about)


def _count(about: str) -> Any:
    return typer.Option(parser=limit_option, metavar="COUNT", help=about)


TenantArgument = Annotated[str, typer.Argument(metavar="ID")]
NoteOption = Annotated[str, typer.Option(help="The reason, shown with the tenant.")]
VersionOption = Annotated[int | None, typer.Option(help="Apply the change only to this version.")]


@dataclass(kw_only=True)
class LimitOptions(OptionSet):
    """Limits of a tenant that are not its plan's."""

    weight: Annotated[
        float | None, typer.Option(help="Share of the tenant when more jobs are due than may be promoted.")
    ] = None
    submission_rate: Annotated[Amount | None, _rate("Rate of submissions: 100/s, 30/m or unlimited.")] = None
    submission_burst: Annotated[int | None, typer.Option(help="Number of jobs that may be submitted at once.")] = None
    max_pending: Annotated[Amount | None, _count("Approximate highest number of waiting jobs, or unlimited.")] = None
    execution_rate: Annotated[Amount | None, _rate("Rate at which jobs run: 100/s, 30/m or unlimited.")] = None
    max_concurrency: Annotated[Amount | None, _count("Highest number of simultaneous calls, or unlimited.")] = None
    subshards: Annotated[int | None, typer.Option(help="Number of shards over which the jobs are spread.")] = None
    read_rate: Annotated[Amount | None, _rate("Rate of reads of each caller: 100/s, 300/m or unlimited.")] = None
    max_schedules: Annotated[Amount | None, _count("Highest number of schedules, or unlimited.")] = None
    max_fires_per_minute: Annotated[
        Amount | None, _count("Approximate highest number of fires per minute of all schedules, or unlimited.")
    ] = None
    top_priority: Annotated[str | None, typer.Option(help="Highest priority of jobs.")] = None
    spread: Annotated[
        timedelta | None, duration("Spread of new schedules that have none, at most an hour. 0: none.")
    ] = None

    def as_json(self) -> dict[str, Any]:
        """Those that are said, as the API takes them."""
        return _limits_of(vars(self))


@group.add("list")
def list_tenants(*, api: Api) -> None:
    """List the tenants that have settings of their own."""
    found = list(api.client.tenants.list())
    nothing = "every tenant has the default plan; `tickwheel tenant set ID` changes one"
    api.print({"tenants": [fields_of(tenant) for tenant in found]}, tenants_table(found) if found else nothing)


@group.add()
def show(tenant: TenantArgument, *, api: Api) -> None:
    """Show a tenant: its plan, the limits in effect, and who may act for it."""
    _show(api.client.tenants.get(tenant), api)


@group.add("set")
def set_tenant(
    tenant: TenantArgument,
    *,
    plan: Annotated[str | None, typer.Option(help="Name of a plan of the stage.")] = None,
    limits: LimitOptions,
    principal: Annotated[
        list[str] | None,
        typer.Option(metavar="ARN", help="Add a role or user that may act for the tenant. Repeatable."),
    ] = None,
    remove_principal: Annotated[
        list[str] | None, typer.Option(metavar="ARN", help="Remove a role or user. Repeatable.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="A note for readers.")] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Reset a limit to that of the plan; or reset plan, limits, principals or note. Repeatable.",
        ),
    ] = None,
    api: Api,
) -> None:
    """Update the given settings of a tenant."""
    changes = without_none({"plan": plan, "note": note, "limits": limits.as_json() or None})
    added, removed, gone = principal or (), remove_principal or (), unset or ()
    if not (changes or added or removed or gone):
        usage("nothing to change: use --plan, a limit such as --weight 3, --principal or --unset")
    if added or removed:
        # By the version that they are of: what somebody else adds meanwhile is not lost.
        found = api.client.tenants.get(tenant)
        changes |= {"principals": _among(found.principals, added, removed), "version": found.version}
    try:
        changed = api.client.tenants.patch(tenant, **changes, unset=gone)
    except InvalidRequest as invalid:
        usage(str(invalid))
    _show(changed, api)


@group.add()
def pause(tenant: TenantArgument, note: NoteOption = "", *, api: Api) -> None:
    """Pause a tenant: its jobs wait until it is resumed."""
    _show(api.client.tenants.pause(tenant, note=note), api)


@group.add()
def resume(tenant: TenantArgument, note: NoteOption = "", *, api: Api) -> None:
    """Resume a paused or draining tenant."""
    _show(api.client.tenants.resume(tenant, note=note), api)


@group.add()
def drain(tenant: TenantArgument, note: NoteOption = "", *, api: Api) -> None:
    """Drain a tenant: accept nothing new for it, and run its existing jobs."""
    _show(api.client.tenants.drain(tenant, note=note), api)


@group.add()
def delete(
    tenant: TenantArgument,
    *,
    confirm: Annotated[str, typer.Option(metavar="ID", help="The id of the tenant, repeated.")],
    keep_ledger: Annotated[
        bool, typer.Option("--keep-ledger", help="Let the ledger rows expire instead of deleting them.")
    ] = False,
    api: Api,
) -> None:
    """Delete a tenant with all its jobs, schedules, payloads and traces. `tickwheel tenant show` shows the progress.

    From `in effect by` on, nothing of it is taken in anywhere.
    """
    if confirm != tenant:
        usage(f"--confirm is {confirm!r}, but must be {tenant!r}, the id of the tenant")
    _show(api.client.tenants.delete(tenant, confirm=confirm, ledger="ttl" if keep_ledger else "scan"), api)


@group.add()
def shard(
    tenant: TenantArgument,
    *,
    subshards: Annotated[int | None, typer.Option(help="Number of shards over which the jobs are spread.")] = None,
    cap: Annotated[Amount | None, _rate("Rate at which jobs run: 2000/s or unlimited.")] = None,
    api: Api,
) -> None:
    """Spread a large tenant over several shards, and cap the rate at which its jobs run."""
    limits = _limits_of({"subshards": subshards, "execution_rate": cap})
    if not limits:
        usage("--subshards or --cap is required: tickwheel tenant shard acme --subshards 8 --cap 2000/s")
    _show(api.client.tenants.patch(tenant, limits=limits), api)


@commands.add("pause")
def pause_stage(
    note: NoteOption = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Skip the confirmation.")] = False,
    api: Api,
) -> None:
    """Pause the stage: all jobs of all tenants wait until it is resumed."""
    api.confirm("Pause all jobs of all tenants?", yes=yes)
    api.print_fields(api.client.pause(note=note))


@commands.add("resume")
def resume_stage(note: NoteOption = "", *, api: Api) -> None:
    """Resume the stage."""
    api.print_fields(api.client.resume(note=note))


def _limits_of(limits: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: limit.value if isinstance(limit, Amount) else limit for name, limit in limits.items()}
    return without_none(given)


def _among(principals: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """In their order, each once."""
    return [each for each in dict.fromkeys((*principals, *added)) if each not in removed]


def _show(tenant: Tenant, api: Api) -> None:
    api.print(fields_of(tenant), tenant_table(tenant))
