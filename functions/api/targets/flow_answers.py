"""What the API answers about flows: the shapes of its bodies, and these from what the rules found."""

from collections.abc import Mapping
from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.domain.instants import format_instant
from functions.domain.targets import flows as rules

FlowKey = Annotated[str, Field(examples=["stripe"])]


class FlowLimits(TypedDict):
    """The limits of a flow. `null` is not limited."""

    tenant: shapes.TenantId | None
    """Whose flow it is, or `null` for one of the stage."""
    key: FlowKey
    rate: str | None
    """How many calls may start in a unit of time, such as `60/min`."""
    burst: int | None
    """How many calls may start at once after a while of none. `null` without a rate."""
    concurrency: int | None
    """How many calls may run at the same time."""
    ordered: NotRequired[bool]
    """Whether jobs run one after the other, in the order of their due times. Left out where they do not."""


class Flows(TypedDict):
    """A page of flows whose limits were set."""

    flows: list[FlowLimits]
    next: str | None
    """The `after` of the next page, or `null` on the last page."""


class FlowFigures(FlowLimits):
    """A flow and what goes on in it."""

    is_set: bool
    """Whether the limits were set for the flow. If not, they are those of the job that goes next."""
    waiting: shapes.Count
    """How many jobs wait for the flow."""
    waiting_tenants: shapes.Count
    """How many tenants these jobs belong to."""
    has_more: bool
    """Whether more jobs wait than were counted."""
    next_start_at: shapes.Instant | None
    """The earliest time at which the rate lets a call start. `null` without a rate."""
    running: shapes.Count | None
    """How many calls run now. `null` without a concurrency."""


class FlowForgotten(TypedDict):
    """A flow without limits of its own."""

    tenant: shapes.TenantId | None
    key: FlowKey
    was_set: bool
    """Whether the flow had limits."""


def limits_body(flow: rules.FlowId, limits: rules.FlowLimits) -> FlowLimits:
    """The limits of a flow."""
    body: FlowLimits = {
        "tenant": flow.tenant,
        "key": flow.key,
        "rate": str(limits.rate) if limits.rate is not None else None,
        "burst": limits.bucket if limits.rate is not None else None,
        "concurrency": limits.concurrency,
    }
    return {**body, "ordered": True} if limits.is_ordered else body


def flows_body(owner: str, found: Mapping[str, rules.FlowLimits], *, has_more: bool) -> Flows:
    """A page of a list."""
    return {
        "flows": [limits_body(rules.FlowId(owner, key), limits) for key, limits in found.items()],
        "next": list(found)[-1] if has_more and found else None,
    }


def figures_body(flow: rules.FlowId, figures: rules.FlowFigures) -> FlowFigures:
    """A flow and what goes on in it."""
    return {
        **limits_body(flow, figures.limits),
        "is_set": figures.is_set,
        "waiting": figures.waiting,
        "waiting_tenants": figures.tenants,
        "has_more": figures.has_more,
        "next_start_at": format_instant(figures.next_start_at) if figures.next_start_at else None,
        "running": figures.running,
    }


def forgotten_body(flow: rules.FlowId, *, was_set: bool) -> FlowForgotten:
    """A flow without limits of its own."""
    return {"tenant": flow.tenant, "key": flow.key, "was_set": was_set}
