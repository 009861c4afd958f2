"""The commands about tenants: `tickwheel tenant ...`; and about the whole stage: `tickwheel pause`, `tickwheel resume`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tickwheel.client.fields import without_none
from tickwheel.client.tenants import Tenant
from tickwheel.commands.api import Api, fields_of
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.options import option_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import usage
from tickwheel.errors import InvalidRequest
from tickwheel.screens.tenants import tenant_table, tenants_table

group = commands.group("tenant", about="Show and change tenants: plans, limits, and who may act for them.")

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


def _rate(about: str) -> Any:
    return typer.Option(parser=rate_option, metavar="RATE", help=about)


def _count(about: str) -> Any:
    return typer.Option(parser=limit_option, metavar="COUNT", help=about)


TenantArgument = Annotated[str, typer.Argument(metavar="ID")]
NoteOption = Annotated[str, typer.Option(help="Why, for people.")]
VersionOption = Annotated[int | None, typer.Option(help="Only if it still has this version.")]


@dataclass(kw_only=True)
class LimitOptions(OptionSet):
    """Limits of a tenant that are not its plan's."""

    weight: Annotated[float | None, typer.Option(help="Its share where more is due than may go out.")] = None
    submission_rate: Annotated[Amount | None, _rate("Submissions: 100/s, 30/m or unlimited.")] = None
    submission_burst: Annotated[int | None, typer.Option(help="Jobs that it may submit at once.")] = None
    max_pending: Annotated[Amount | None, _count("Jobs that wait, about; or unlimited.")] = None
    execution_rate: Annotated[Amount | None, _rate("Jobs that run: 100/s, 30/m or unlimited.")] = None
    max_concurrency: Annotated[Amount | None, _count("Jobs that run at the same time; or unlimited.")] = None
    subshards: Annotated[int | None, typer.Option(help="Over how many shards its jobs are spread.")] = None
    read_rate: Annotated[Amount | None, _rate("Reads of each caller: 100/s, 300/m or unlimited.")] = None
    max_schedules: Annotated[Amount | None, _count("Schedules that there are; or unlimited.")] = None
    max_fires_per_minute: Annotated[Amount | None, _count("Fires of all its schedules, about; or unlimited.")] = None
    top_priority: Annotated[str | None, typer.Option(help="The highest class that its jobs may have.")] = None

    def as_json(self) -> dict[str, Any]:
        """Those that are said, as the API takes them."""
        return _limits_of(vars(self))


@group.add("list")
def list_tenants(*, api: Api) -> None:
    """List the tenants that were ever changed."""
    found = list(api.client.tenants.list())
    nothing = "every tenant is on the default plan; `tickwheel tenant set ID` changes one"
    api.print({"tenants": [fields_of(tenant) for tenant in found]}, tenants_table(found) if found else nothing)


@group.add()
def show(tenant: TenantArgument, *, api: Api) -> None:
    """Show a tenant: its plan, the limits in effect, and who may act for it."""
    _show(api.client.tenants.get(tenant), api)


@group.add("set")
def set_tenant(
    tenant: TenantArgument,
    *,
    plan: Annotated[str | None, typer.Option(help="One of the stage's plans.")] = None,
    limits: LimitOptions,
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
    api: Api,
) -> None:
    """Change the given fields of a tenant, and keep the rest."""
    changes = without_none({"plan": plan, "note": note, "limits": limits.as_json() or None})
    added, removed, gone = principal or (), remove_principal or (), unset or ()
    if not (changes or added or removed or gone):
        usage("nothing is said that is to be changed: add --plan, a limit such as --weight 3, --principal or --unset")
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
    """Let nothing of a tenant run until it is resumed; its jobs wait."""
    _show(api.client.tenants.pause(tenant, note=note), api)


@group.add()
def resume(tenant: TenantArgument, note: NoteOption = "", *, api: Api) -> None:
    """Let a tenant go on that is paused or draining."""
    _show(api.client.tenants.resume(tenant, note=note), api)


@group.add()
def drain(tenant: TenantArgument, note: NoteOption = "", *, api: Api) -> None:
    """Take nothing in for a tenant any more; what it has runs."""
    _show(api.client.tenants.drain(tenant, note=note), api)


@group.add()
def delete(
    tenant: TenantArgument,
    *,
    confirm: Annotated[str, typer.Option(metavar="ID", help="The tenant's id again.")],
    keep_ledger: Annotated[bool, typer.Option("--keep-ledger", help="Let its ledger rows expire instead.")] = False,
    api: Api,
) -> None:
    """Delete a tenant with all its jobs, schedules, payloads and traces; `tickwheel tenant show` shows the progress.

    From `in effect by` on, nothing of it is taken in anywhere.
    """
    if confirm != tenant:
        usage(f"--confirm is {confirm!r}, but must be {tenant!r}, the tenant that is to be deleted")
    _show(api.client.tenants.delete(tenant, confirm=confirm, ledger="ttl" if keep_ledger else "scan"), api)


@group.add()
def shard(
    tenant: TenantArgument,
    *,
    subshards: Annotated[int | None, typer.Option(help="Over how many shards its jobs are spread.")] = None,
    cap: Annotated[Amount | None, _rate("Jobs that run: 2000/s or unlimited.")] = None,
    api: Api,
) -> None:
    """Spread a large tenant over shards, and cap how fast its jobs run."""
    limits = _limits_of({"subshards": subshards, "execution_rate": cap})
    if not limits:
        usage("say over how many shards, or how fast: tickwheel tenant shard acme --subshards 8 --cap 2000/s")
    _show(api.client.tenants.patch(tenant, limits=limits), api)


@commands.add("pause")
def pause_stage(note: NoteOption = "", *, api: Api) -> None:
    """Let nothing of any tenant run until the stage is resumed; all jobs wait."""
    api.print_fields(api.client.pause(note=note))


@commands.add("resume")
def resume_stage(note: NoteOption = "", *, api: Api) -> None:
    """Let the stage go on."""
    api.print_fields(api.client.resume(note=note))


def _limits_of(limits: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: limit.value if isinstance(limit, Amount) else limit for name, limit in limits.items()}
    return without_none(given)


def _among(principals: Sequence[str], added: Sequence[str], removed: Sequence[str]) -> list[str]:
    """In their order, each once."""
    return [each for each in dict.fromkeys((*principals, *added)) if each not in removed]


def _show(tenant: Tenant, api: Api) -> None:
    api.print(fields_of(tenant), tenant_table(tenant))
