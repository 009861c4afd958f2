"""Flows: what all jobs that name a key share, however many tenants, shards and workers they are of.

A flow has a token bucket, in its form of GCRA (`functions/domain/gcra.py`), so that in any time there are at most
`rate x time + burst` calls, and permits, which bound how many run at once. What may not run yet waits in the flow's room,
in the order of its time within its tenant; tenants have turns by their weights, as in the far ring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil
from typing import Any

from functions.domain import key_lengths
from functions.domain.errors import InvalidJob, Undecodable
from functions.domain.gcra import tolerance_of
from functions.domain.instants import DAY, HOUR, MINUTE, SECOND, from_ms, to_ms

MAX_FLOWS = 3
"""Flows that a job may name."""

MAX_BURST = 10_000
MAX_CONCURRENCY = 1_000
"""As many permits as a plan may have, too."""

MAX_SET = 1_000
"""Flows of a tenant, or of the stage, whose limits are set."""

MAX_COUNT = 1_000
"""Calls of a rate: a flow is one item of DynamoDB, which takes 1,000 writes a second (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html)."""

KEY = re.compile(rf"[A-Za-z0-9._:-]{{1,{key_lengths.FLOW}}}", re.ASCII)
RATE = re.compile(r"([1-9][0-9]{0,3})/(s|min|h|d)", re.ASCII)
_UNITS = {"s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY}

THE_STAGE = "~"
"""Owns what belongs to no tenant: none can be called so."""

_MARKS_OF_A_FIRST_RUN = 2
_USUAL_SHARE = 10
_USUAL_JITTER = 2 * SECOND
"""A burst that nobody has set is a tenth of the rate's count, and at least what comes in so long: a message that is a second late
would cost a rate without a burst the calls of that second."""


class FlowScope(StrEnum):
    """Whose jobs share a flow."""

    TENANT = "tenant"
    STAGE = "stage"


@dataclass(frozen=True, slots=True)
class Rate:
    """So many calls in a unit of time; as it was asked for."""

    count: int
    unit: str

    @property
    def interval(self) -> timedelta:
        """Between two calls, were they spaced evenly."""
        return _UNITS[self.unit] / self.count

    def __str__(self) -> str:
        return f"{self.count}/{self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """What a flow lets run.

    burst: calls that may go at once after a while of none, 0 where that follows from the rate. concurrency: None for any number.
    is_ordered: its jobs run one after the other, by their due times.

    Raises InvalidJob.
    """

    rate: Rate | None = None
    burst: int = 0
    concurrency: int | None = None
    is_ordered: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.burst <= MAX_BURST:
            raise InvalidJob(f"must be from 1 to {MAX_BURST}", field="burst", value=self.burst)
        if self.concurrency is not None and not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise InvalidJob(f"must be from 1 to {MAX_CONCURRENCY}", field="concurrency", value=self.concurrency)
        if self.burst and self.rate is None:
            raise InvalidJob("needs a rate", field="burst", value=self.burst)

    @property
    def tolerance(self) -> timedelta:
        """How far ahead of even spacing a call may be."""
        return tolerance_of(self.bucket, self.rate.interval) if self.rate is not None else timedelta(0)

    @property
    def bucket(self) -> int:
        """The burst that counts."""
        if self.burst or self.rate is None:
            return self.burst or 1
        return max(1, self.rate.count // _USUAL_SHARE, ceil(_USUAL_JITTER / self.rate.interval))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFlow:
    """A flow as a job names it. limits: None where they are only set for the flow itself, which go before these."""

    key: str
    scope: FlowScope = FlowScope.TENANT
    limits: FlowLimits | None = None

    def __post_init__(self) -> None:
        check_flow_key(self.key)
        if self.limits is not None and self.scope is FlowScope.STAGE:
            raise InvalidJob("excludes limits: those of the stage's flows are set by its operators", field="scope")

    @property
    def is_ordered(self) -> bool:
        """Whether it says that jobs run one after the other."""
        return self.limits is not None and self.limits.is_ordered

    def owner_of(self, tenant: str) -> str:
        """Who owns the flow that a job of a tenant names."""
        return tenant if self.scope is FlowScope.TENANT else THE_STAGE


@dataclass(frozen=True, slots=True)
class FlowId:
    """A flow of a tenant, or of THE_STAGE."""

    owner: str
    key: str

    @property
    def tenant(self) -> str | None:
        """Whose it is; None where it is the stage's."""
        return None if self.owner == THE_STAGE else self.owner

    def __str__(self) -> str:
        return f"{self.owner}#{self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowState:
    """What is known of a flow in use.

    next_at: the theoretical arrival time of its calls; planned_at: of those that have left its room. turn_at: when its room is
    looked at next, None while nothing waits. entries: how often something has entered. version: grows when something leaves.
    cursor: the place of what left last. granted: how much of its tenant's turn is left. busy_until: something is leaving.
    """

    next_at: datetime | None = None
    planned_at: datetime | None = None
    turn_at: datetime | None = None
    entries: int = 0
    version: int = 0
    cursor: str = ""
    granted: int = 0
    busy_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRow:
    """That a job is in the order of a flow. place: its key there. job_id: whose it is.

    missed_at: of who holds the order, since when nothing was known of it. expires_at: when it may be forgotten, of one that is written.
    """

    place: str
    job_id: str
    missed_at: datetime | None = None
    expires_at: datetime | None = field(default=None, compare=False)

    @property
    def known_at(self) -> datetime:
        """Since when it may start: it is due, and was submitted."""
        due, asked = self.place.split("#")[:2]
        return from_ms(max(int(due), int(asked)))

    @property
    def run(self) -> int:
        """Grows with each replay of its job."""
        return int(self.place.split("#")[3]) if self.place.count("#") > _MARKS_OF_A_FIRST_RUN else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOrder:
    """Who runs, and who is first. holder: what has started and has not been found to have ended.

    missed_at: when somebody was due of whom nothing was known. It counts for all that were to start by then.
    """

    holder: OrderRow | None = None
    head: OrderRow | None = None
    missed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFigures:
    """What goes on in a flow. limits: in effect. is_set: they were set for it, and are not those that a job brought along.

    waiting, tenants: how many wait in its room, and of how many tenants; has_more: there are more than were counted. next_start_at: before
    which its rate starts nothing more, None without a rate. running: calls, None where it does not bound them.
    """

    limits: FlowLimits
    is_set: bool
    waiting: int
    tenants: int
    has_more: bool
    next_start_at: datetime | None
    running: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowWait:
    """That a job waits in the room of a flow. before: jobs of its tenant that go first. starts_at: no sooner than then, None for not known."""

    flow: FlowId
    limits: FlowLimits
    before: int
    starts_at: datetime | None


def parse_flow_id(text: str) -> FlowId:
    """The flow that a row names. Raises Undecodable."""
    owner, separator, key = text.partition("#")
    if not separator or not KEY.fullmatch(key):
        raise Undecodable("not the name of a flow")
    return FlowId(owner, key)


def parse_rate(text: str) -> Rate:
    """A rate such as `60/min`. Raises InvalidJob."""
    found = RATE.fullmatch(text)
    if found is None or int(found[1]) > MAX_COUNT:
        raise InvalidJob(
            f"must be a whole number up to {MAX_COUNT} and a unit of time, such as 10/s, 60/min, 500/h or 1000/d",
            field="rate",
            value=text[:80],
        )
    return Rate(int(found[1]), found[2])


def check_flow_key(key: str) -> str:
    """The key itself. Raises InvalidJob."""
    if not KEY.fullmatch(key):
        raise InvalidJob(f"must match {KEY.pattern}", field="key", value=key[:80])
    return key


def check_flows(flows: tuple[NamedFlow, ...]) -> tuple[NamedFlow, ...]:
    """The flows themselves. Raises InvalidJob where there are too many, one is named twice, or two are ordered."""
    if len(flows) > MAX_FLOWS:
        raise InvalidJob(f"must be at most {MAX_FLOWS}", field="flow", value=len(flows))
    if len({(flow.key, flow.scope) for flow in flows}) < len(flows):
        raise InvalidJob("must differ from each other", field="flow", value=", ".join(flow.key for flow in flows))
    ordered = [flow.key for flow in flows if flow.limits is not None and flow.limits.is_ordered]
    if len(ordered) > 1:
        # Two jobs that each had the turn of one would wait for each other.
        raise InvalidJob("may have one ordered flow among them, not more", field="flow", value=", ".join(ordered))
    return flows


def starts(state: FlowState, limits: FlowLimits, *, now: datetime, until: datetime, most: int) -> list[datetime]:
    """When what waits in a room may start: the next instants of its rate up to then; all at once where it has none."""
    if limits.rate is None:
        return [now] * most
    interval, tolerance = limits.rate.interval, limits.tolerance
    next_at = _next_at(state, now=now)
    found: list[datetime] = []
    while len(found) < most and (start := max(now, next_at - tolerance)) <= until:
        found.append(start)
        next_at += interval
    return found


def planned(state: FlowState, limits: FlowLimits, *, now: datetime, count: int) -> datetime | None:
    """The theoretical arrival time after so many more have left its room."""
    if limits.rate is None:
        return state.planned_at
    return _next_at(state, now=now) + count * limits.rate.interval


def earliest_start(state: FlowState, limits: FlowLimits, *, now: datetime, behind: int = 0) -> datetime | None:
    """Before which its rate starts nothing more that is behind so many others; None where it has no rate."""
    if limits.rate is None:
        return None
    return max(now, _next_at(state, now=now) + behind * limits.rate.interval - limits.tolerance)


def _next_at(state: FlowState, *, now: datetime) -> datetime:
    """The theoretical arrival time of the next, counting what has left the room and has not started."""
    return max(now, state.next_at or now, state.planned_at or now)


def limits_named(flow: FlowId, flows: Iterable[NamedFlow], *, tenant: str) -> FlowLimits | None:
    """What a job of a tenant says of the limits of one of its flows; None where it says nothing."""
    return next((each.limits for each in flows if FlowId(each.owner_of(tenant), each.key) == flow), None)


def place_in_room(tenant: str, *, scheduled_at: datetime, identity: str) -> str:
    """Where a job waits in a room: by the time of the job, so that its next attempt goes before what came after it."""
    return f"{tenant}#{to_ms(scheduled_at):013d}#{identity}"


def place_in_order(*, scheduled_at: datetime, asked_at: datetime | None, identity: str, run: int = 0) -> str:
    """Where a job is in the order of a flow: by its due time, then by its submission. run: 0, more after a replay."""
    place = f"{to_ms(scheduled_at):013d}#{to_ms(asked_at or scheduled_at):013d}#{identity}"
    return f"{place}#{run:06d}" if run else place


def write_limits(limits: FlowLimits) -> dict[str, Any]:
    """Limits as they are stored. What is not set is left out."""
    record: dict[str, Any] = {}
    if limits.rate is not None:
        record["r"] = str(limits.rate)
    if limits.burst:
        record["b"] = limits.burst
    if limits.concurrency is not None:
        record["c"] = limits.concurrency
    if limits.is_ordered:
        record["o"] = 1
    return record


def read_limits(record: Mapping[str, Any]) -> FlowLimits:
    """The limits that `write_limits` wrote. Raises InvalidJob."""
    rate = record.get("r")
    return FlowLimits(
        rate=parse_rate(rate) if rate is not None else None,
        burst=record.get("b", 0),
        concurrency=record.get("c"),
        is_ordered=bool(record.get("o")),
    )


def write_flow(flow: NamedFlow) -> dict[str, Any]:
    """A flow of a job as it is stored."""
    limits = write_limits(flow.limits) if flow.limits is not None else {}
    return {"k": flow.key, **({"s": 1} if flow.scope is FlowScope.STAGE else {}), **({"l": limits} if limits else {})}


def read_flow(record: Mapping[str, Any]) -> NamedFlow:
    """The flow that `write_flow` wrote. Raises InvalidJob."""
    return NamedFlow(
        key=record["k"],
        scope=FlowScope.STAGE if record.get("s") else FlowScope.TENANT,
        limits=read_limits(record["l"]) if "l" in record else None,
    )
