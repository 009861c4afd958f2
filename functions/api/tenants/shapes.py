"""What is answered about tenants, as types."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from functions.api.http.shapes import Caller, Day, Instant, TenantId, one_of
from functions.api.tenants.requests import LIMIT_SCHEMAS
from functions.domain.tenants.changes import EFFECTIVE_AFTER
from functions.domain.tenants.deletion import Part
from functions.domain.tenants.plan import LIMIT_NAMES, UNLIMITED, TenantStatus

_WRITTEN: dict[str, Any] = {name: {"anyOf": [schema, {"const": UNLIMITED}]} for name, schema in LIMIT_SCHEMAS.items()}

Limits = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "required": list(_WRITTEN), "properties": _WRITTEN})
]
DeletedRows = Annotated[
    dict[str, int],
    WithJsonSchema(
        {
            "type": "object",
            "required": [part.value for part in Part],
            "properties": {part.value: {"type": "integer"} for part in Part},
        }
    ),
]


class StageStatus(TypedDict):
    """The status of a tenant, or of the stage."""

    status: Annotated[str, one_of(TenantStatus)]
    note: str
    """for people: why it has its status, or its limits"""
    version: int
    """grows with every change; 0: it was never changed"""
    status_since: NotRequired[Instant]
    changed_at: NotRequired[Instant]
    in_effect_by: NotRequired[
        Annotated[
            Instant,
            Field(
                description=f"everything acts by the last change from then on: {EFFECTIVE_AFTER.total_seconds():g} s after it"
            ),
        ]
    ]


class Load(TypedDict):
    """what its schedules come to, and what they may."""

    count: int
    """schedules that there are"""
    fires_per_minute: float
    """of all that go on, each in an hour in which it fires most, about"""
    max_schedules: Annotated[Any, WithJsonSchema(_WRITTEN["max_schedules"])]
    max_fires_per_minute: Annotated[Any, WithJsonSchema(_WRITTEN["max_fires_per_minute"])]


class Deletion(TypedDict):
    """While it is being deleted."""

    part: Annotated[str, one_of(Part)] | None
    """what is being deleted"""
    deleted: DeletedRows
    """rows and objects so far, by parts"""
    ledger: Annotated[str, one_of(["scan", "ttl"])]


class Tenant(StageStatus):
    """A tenant as it stands."""

    tenant: TenantId
    plan: Annotated[str, Field(examples=["default"])]
    limits: Limits
    """in effect: its own before its plan's, those before the default plan's"""
    own_limits: list[Annotated[str, one_of(LIMIT_NAMES)]]
    """which of them are its own"""
    principals: list[Caller]
    """who may act for it"""
    schedules: NotRequired[Load]
    deletion: NotRequired[Deletion]


class Tenants(TypedDict):
    """A page of tenants."""

    tenants: list[Tenant]
    next: str | None
    """`after` of the next page"""


class UsageFigures(TypedDict):
    """What was used."""

    submitted: int
    """jobs that were handed in"""
    executed: int
    """attempts that were called"""
    succeeded: int
    failed: int
    """for good"""
    units: int
    """write units of the tables"""
    bytes: int
    """of the payloads that were handed in"""


class UsedDay(UsageFigures):
    """What was used on a day."""

    day: Day


class Cap(TypedDict):
    """of a tenant with an `execution_rate`."""

    execution_rate: float
    """a second"""
    waiting: int | None
    """jobs that wait for it by the end of this day, about; null where that cannot be known just now"""
    waiting_days: float | None
    """how long it takes to serve them"""
    is_exceeded_by_schedules: bool
    """whether the schedules fire more than it serves: then what waits only grows, and they do not count in `waiting`"""


class _From(TypedDict("_From", {"from": Day})):
    """The first day: `from` is a word of Python's own."""


class Usage(_From):
    """What a tenant has used."""

    tenant: TenantId
    until: Day
    days: list[UsedDay]
    """days on which there was anything, in order"""
    total: UsageFigures
    schedules: Load
    cap: NotRequired[Cap]


class WebhookKey(TypedDict):
    """What signatures are made with."""

    id: Annotated[str, Field(examples=["k1"])]
    """as in the header Tickwheel-Key-Ids"""
    secret: Annotated[str, Field(pattern="^whsec_", examples=["whsec_c2VjcmV0IG9mIHRoZSB0ZW5hbnQgYWNtZQ=="])]
    """of Standard Webhooks"""


class WebhookKeys(TypedDict):
    """The keys of a tenant."""

    keys: list[WebhookKey]
    """the current key first"""
