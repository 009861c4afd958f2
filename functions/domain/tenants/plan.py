"""What a tenant may do: its plan, which is one of the stage's, but for the limits that it has of its own.

    built in  <-  the stage's plan `default`  <-  the stage's plan that the tenant is on  <-  the tenant's own limits

What is further to the right counts. A tenant that has no row is on the stage's default plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from math import ceil, inf
from typing import Any

from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.instants import SECOND, format_duration, from_ms, parse_duration, to_ms
from functions.domain.jobs.job import Priority
from functions.domain.jobs.stored_codes import PRIORITY_WORDS
from functions.domain.schedules.load import LoadLimits
from functions.domain.schedules.spread import MAX_DEFAULT_SPREAD, DefaultSpread, SpreadFrom

DEFAULT_PLAN = "default"
PLAN_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
UNLIMITED = "unlimited"
"""How a limit that is none is written down. It is infinite inside."""

MAX_PRINCIPALS = 20
MAX_PRINCIPAL_LENGTH = 256
MAX_NOTE_LENGTH = 500

BURST_SECONDS = 10
"""Seconds of its submission rate that a tenant may save up where its plan does not say how much; and of its read rate, always."""


class TenantStatus(StrEnum):
    """Whether a tenant is served. What each of them lets through stands in `TenantPlan`."""

    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"
    DELETING = "deleting"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Limit:
    """What a limit may be. is_whole: no fraction. may_be_unlimited: it may be none at all."""

    lowest: float
    highest: float
    is_whole: bool = True
    may_be_unlimited: bool = True

    def read(self, name: str, value: Any) -> float:
        """The limit that a JSON value says. Raises InvalidInput, which names the limit."""
        if value == UNLIMITED and self.may_be_unlimited:
            return inf
        if not self._takes(value):
            kind = "a whole number" if self.is_whole else "a number"
            rest = f', or "{UNLIMITED}"' if self.may_be_unlimited else ""
            raise InvalidInput(
                f"{name} is {value!r}, but must be {kind} from {self.lowest:g} to {self.highest:g}{rest}"
            )
        return int(value) if self.is_whole else float(value)

    def _takes(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        # No number that is none lies between two others.
        return self.lowest <= value <= self.highest and not (self.is_whole and value % 1)


LIMITS: Mapping[str, Limit] = {
    "weight": Limit(0.1, 100, is_whole=False, may_be_unlimited=False),
    "submission_rate": Limit(0.01, 100_000, is_whole=False),
    "submission_burst": Limit(1, 1_000_000, may_be_unlimited=False),
    "max_pending": Limit(1, 1_000_000_000),
    "execution_rate": Limit(0.01, 100_000, is_whole=False),
    "max_concurrency": Limit(1, 1_000),
    "subshards": Limit(1, 512, may_be_unlimited=False),
    "read_rate": Limit(1, 100_000),
    "max_schedules": Limit(1, 1_000_000),
    "max_fires_per_minute": Limit(1, 1_000_000),
}
"""Every limit that is a number, by its name. Those that are not are `top_priority` and `spread`."""

TOP_PRIORITY = "top_priority"
SPREAD = "spread"
LIMIT_NAMES = (*LIMITS, TOP_PRIORITY, SPREAD)

Limits = Mapping[str, Any]
"""Limits by name, those that are set: numbers, the name of a priority, and a duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPlan:
    """What a tenant may do, all things considered. An infinite limit is none.

    weight: its share where more is due than may go out. submission_rate, execution_rate: jobs a second.
    submission_burst: jobs that it may submit at once after a while of none; 0 where that follows from the rate.
    max_pending: jobs that wait for their time, about. max_concurrency: jobs that are called at the same time.
    top_priority: the highest class that its jobs may have. subshards: over how many shards its jobs are spread.
    read_rate: reads a second that each of its callers may ask of each process.
    max_schedules: that there are of it. max_fires_per_minute: of all of them, about.
    spread: of its schedules that say none, none by default; spread_from: where it is set.
    principals: patterns of the ARNs that may act for it. status: whether it is served; note: why, for people.
    is_stage_paused: it waits with everybody, whatever its status is; stage_resumed_at: when that ended last.

    Raises InvalidInput, which names the limit.
    """

    weight: float = 1.0
    submission_rate: float = inf
    submission_burst: float = 0
    max_pending: float = inf
    execution_rate: float = inf
    max_concurrency: float = inf
    top_priority: Priority = Priority.CRITICAL
    subshards: int = 1
    read_rate: float = 100
    max_schedules: float = 10_000
    max_fires_per_minute: float = 600
    spread: timedelta = timedelta(0)
    spread_from: SpreadFrom = SpreadFrom.STAGE
    principals: tuple[str, ...] = ()
    status: TenantStatus = TenantStatus.ACTIVE
    note: str = ""
    changed_at: datetime | None = None
    is_stage_paused: bool = False
    stage_resumed_at: datetime | None = None

    def __post_init__(self) -> None:
        for name, limit in LIMITS.items():
            value = getattr(self, name)
            if value != inf and not (name == "submission_burst" and not value):
                limit.read(name, value)

    @property
    def is_paused(self) -> bool:
        """Nothing of it is promoted or called; all of it waits."""
        return self.status is TenantStatus.PAUSED or (self.is_stage_paused and not self.is_deleted)

    @property
    def resumed_at(self) -> datetime | None:
        """Since when it has been served without a pause of its own, or of everybody; None where there was none."""
        own = self.changed_at if self.status is TenantStatus.ACTIVE else None
        return max((instant for instant in (own, self.stage_resumed_at) if instant is not None), default=None)

    @property
    def is_closed(self) -> bool:
        """It takes nothing in any more: no job, no schedule, no fire of one."""
        return self.status in (TenantStatus.DRAINING, TenantStatus.DELETING, TenantStatus.DELETED)

    @property
    def is_deleted(self) -> bool:
        """Whatever there is of it is forgotten, not run."""
        return self.status in (TenantStatus.DELETING, TenantStatus.DELETED)

    @property
    def has_rate(self) -> bool:
        """Whether the rate of its executions is capped."""
        return self.execution_rate != inf

    @property
    def counts_pending(self) -> bool:
        """Whether it is known how many of its jobs wait: for its quota, or for what its cap can serve."""
        return self.max_pending != inf or self.has_rate

    @property
    def load_limits(self) -> LoadLimits:
        """What its schedules may come to."""
        return LoadLimits(schedules=self.max_schedules, fires_per_minute=self.max_fires_per_minute)

    @property
    def default_spread(self) -> DefaultSpread | None:
        """What a schedule of it takes that says no spread; None for none."""
        return DefaultSpread(self.spread, self.spread_from) if self.spread else None

    @property
    def burst(self) -> int:
        """Jobs that it may submit at once, where its submission rate is limited."""
        return int(self.submission_burst) or max(1, ceil(self.submission_rate * BURST_SECONDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What is stored of a tenant that has a row. plan: the name of one of the stage's. limits: of its own.

    status_since: since when it has its status. version: grows with every change.

    Raises InvalidInput, which names the field.
    """

    plan: str = DEFAULT_PLAN
    limits: Limits = field(default_factory=dict[str, Any])
    principals: tuple[str, ...] = ()
    status: TenantStatus = TenantStatus.ACTIVE
    status_since: datetime | None = None
    note: str = ""
    version: int = 0
    changed_at: datetime | None = None

    def __post_init__(self) -> None:
        read_limits(self.limits)
        if not PLAN_NAME.fullmatch(self.plan):
            raise InvalidInput(f"plan is {self.plan[:80]!r}, but must match {PLAN_NAME.pattern}")
        if len(self.principals) > MAX_PRINCIPALS:
            raise InvalidInput(f"principals has {len(self.principals)} entries, but must have at most {MAX_PRINCIPALS}")
        for principal in self.principals:
            if not 0 < len(principal) <= MAX_PRINCIPAL_LENGTH:
                raise InvalidInput(
                    f"principals has {principal[:80]!r}, but each must have 1 to {MAX_PRINCIPAL_LENGTH} characters"
                )
        if len(self.note) > MAX_NOTE_LENGTH:
            raise InvalidInput(f"note has {len(self.note)} characters, but must have at most {MAX_NOTE_LENGTH}")

    def plan_among(self, plans: Mapping[str, Limits]) -> TenantPlan:
        """What it may do on a stage with these plans. One that is not there any more counts as the default."""
        default = plans.get(DEFAULT_PLAN, {})
        named = plans.get(self.plan, {})
        given = {**default, **named, **self.limits}
        spread_from = SpreadFrom.STAGE if SPREAD not in named or self.plan == DEFAULT_PLAN else SpreadFrom.PLAN
        return TenantPlan(
            **read_limits(given),
            spread_from=SpreadFrom.TENANT if SPREAD in self.limits else spread_from,
            principals=self.principals,
            status=self.status,
            note=self.note,
            changed_at=self.status_since,
        )


def read_limits(given: Limits) -> dict[str, Any]:
    """Limits by their names, as a plan has them. Raises InvalidInput, which names the limit."""
    check_limit_names(given)
    read: dict[str, Any] = {name: LIMITS[name].read(name, value) for name, value in given.items() if name in LIMITS}
    if TOP_PRIORITY in given:
        try:
            read[TOP_PRIORITY] = PRIORITY_WORDS.member_of(given[TOP_PRIORITY])
        except Undecodable:
            names = ", ".join(map(PRIORITY_WORDS.code_of, Priority))
            raise InvalidInput(f"{TOP_PRIORITY} is {given[TOP_PRIORITY]!r}, but must be one of {names}") from None
    if SPREAD in given:
        read[SPREAD] = _read_spread(given[SPREAD])
    return read


def _read_spread(value: Any) -> timedelta:
    with suppress(InvalidInput):
        spread = parse_duration(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
        if spread is not None and spread <= MAX_DEFAULT_SPREAD and not spread % SECOND:
            return spread
    shown = f"{value!r}"[:80]
    raise InvalidInput(f"{SPREAD} is {shown}, but must be whole seconds or a duration such as PT5M, from 0 to PT1H")


def check_limit_names(names: Iterable[str]) -> None:
    """Each is the name of a limit. Raises InvalidInput, with the names there are."""
    unknown = sorted(set(names) - set(LIMIT_NAMES))
    if unknown:
        raise InvalidInput(f"{unknown[0][:80]!r} is no limit: use {', '.join(LIMIT_NAMES)}")


def write_limits(plan: TenantPlan) -> dict[str, Any]:
    """The limits of a plan by name, as they are written: what `read_limits` reads."""
    written: dict[str, Any] = {name: getattr(plan, name) for name in LIMITS}
    written["submission_burst"] = plan.burst if plan.submission_rate != inf else UNLIMITED
    limits = {name: UNLIMITED if value == inf else value for name, value in written.items()}
    return limits | {TOP_PRIORITY: PRIORITY_WORDS.code_of(plan.top_priority), SPREAD: format_duration(plan.spread)}


def encode_tenant(tenant: Tenant) -> str:
    """A tenant as its row holds it; what has its usual value is left out."""
    values: dict[str, Any] = {
        "plan": tenant.plan if tenant.plan != DEFAULT_PLAN else None,
        "limits": dict(tenant.limits) or None,
        "principals": list(tenant.principals) or None,
        "status": tenant.status.value if tenant.status is not TenantStatus.ACTIVE else None,
        "since": to_ms(tenant.status_since) if tenant.status_since is not None else None,
        "note": tenant.note or None,
        "version": tenant.version or None,
        "changed_at": to_ms(tenant.changed_at) if tenant.changed_at is not None else None,
    }
    given = {name: value for name, value in values.items() if value is not None}
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False)


def decode_tenant(text: str) -> Tenant:
    """The tenant that `encode_tenant` wrote. Raises Undecodable."""
    try:
        given: dict[str, Any] = json.loads(text)
        return Tenant(
            plan=given.get("plan", DEFAULT_PLAN),
            # What a newer Tickwheel knows is left out: one row must not stop everybody who reads them all.
            limits={name: limit for name, limit in given.get("limits", {}).items() if name in LIMIT_NAMES},
            principals=tuple(given.get("principals", ())),
            status=_status(given.get("status", TenantStatus.ACTIVE)),
            status_since=from_ms(given["since"]) if "since" in given else None,
            note=given.get("note", ""),
            version=given.get("version", 0),
            changed_at=from_ms(given["changed_at"]) if "changed_at" in given else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not a tenant: {error!r}") from error


def _status(text: str) -> TenantStatus:
    """A status that a newer Tickwheel knows is served to nobody: it is taken for a pause, which loses nothing."""
    return TenantStatus(text) if text in set(TenantStatus) else TenantStatus.PAUSED
