"""The environment of each Lambda, read once, as a frozen model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import from_json

from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import Priority
from functions.domain.targets.addresses import Network, parse_networks
from functions.domain.targets.targets import AllowedTargets
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.plan import Limits, read_limits
from functions.domain.wheel import Wheel

_Urls = Annotated[
    tuple[str, ...],
    BeforeValidator(lambda value: tuple(from_json(value)) if isinstance(value, str) else value),
    Field(min_length=len(Priority), max_length=len(Priority)),
]
_Networks = Annotated[
    tuple[Network, ...],
    BeforeValidator(lambda value: parse_networks(from_json(value)) if isinstance(value, str) else value),
]

_PATTERNS = TypeAdapter(tuple[str, ...])
_Targets = Annotated[
    AllowedTargets,
    BeforeValidator(lambda value: AllowedTargets(_PATTERNS.validate_json(value)) if isinstance(value, str) else value),
]


_Principals = Annotated[
    tuple[str, ...],
    BeforeValidator(
        lambda value: tuple(map(check_pattern, _PATTERNS.validate_json(value))) if isinstance(value, str) else value
    ),
]


_LIMITS = TypeAdapter(dict[str, dict[str, Any]])


def _read_plans(value: Any) -> Any:
    plans = _LIMITS.validate_json(value) if isinstance(value, str) else _LIMITS.validate_python(value)
    for name, limits in plans.items():
        try:
            read_limits(limits)
        except InvalidInput as error:
            raise ValueError(f"plan {name!r}: {error}") from None
    return plans


_Plans = Annotated[Mapping[str, Limits], BeforeValidator(_read_plans)]


class Settings(BaseModel):
    """What every Lambda gets: the constants of its stage."""

    model_config = ConfigDict(frozen=True)

    STAGE: str
    BUCKET_SECONDS: int
    LOOKAHEAD_SECONDS: int
    SKEW_SECONDS: int
    GUARD_SECONDS: int
    WRITE_SHARDS: int
    SCAN_SHARDS: int

    @classmethod
    def from_environment(cls) -> Self:
        """Fails at the cold start with the name of what is missing or wrong."""
        return cls.model_validate(dict(os.environ))

    def wheel(self) -> Wheel:
        """The wheel of the stage. Raises InvalidWheel."""
        return Wheel(
            bucket=timedelta(seconds=self.BUCKET_SECONDS),
            lookahead=timedelta(seconds=self.LOOKAHEAD_SECONDS),
            skew=timedelta(seconds=self.SKEW_SECONDS),
            guard=timedelta(seconds=self.GUARD_SECONDS),
            write_shards=self.WRITE_SHARDS,
            scan_shards=self.SCAN_SHARDS,
        )


class _PlacingSettings(Settings):
    PLANS: _Plans
    TIMERS_TABLE: str
    TENANTS_TABLE: str
    SHARDS_TABLE: str
    READY_QUEUE_URLS: _Urls


class _AuditedSettings(Settings):
    AUDIT_STREAM: str


class _ScheduleSettings(_PlacingSettings):
    LEDGER_TABLE: str
    SCHEDULES_TABLE: str
    SCHEDULE_STATE_TABLE: str


class ApiSettings(_ScheduleSettings, _AuditedSettings):
    """The submission API."""

    DEAD_LETTERS_TABLE: str
    PAYLOAD_BUCKET: str
    WEBHOOK_SECRET: str
    ALLOWED_TARGETS: _Targets
    ALLOW_PLAIN_HTTP: bool
    MAX_TIMEOUT_SECONDS: int
    OPERATIONS_FUNCTION: str
    OPERATORS: _Principals
    JWT_TENANT_CLAIM: str


class WorkerSettings(_ScheduleSettings, _AuditedSettings):
    """The worker."""

    DEAD_LETTERS_TABLE: str
    PAYLOAD_BUCKET: str
    WEBHOOK_SECRET: str
    ALLOWED_TARGETS: _Targets
    ALLOWED_NETWORKS: _Networks
    LAG_OBJECTIVE_MS: Annotated[int, Field(ge=1)]


class ScannerSettings(_ScheduleSettings, _AuditedSettings):
    """The scanner."""

    DEAD_LETTERS_TABLE: str
    READY_CAPACITY: Annotated[int, Field(ge=1)]


class SweeperSettings(_ScheduleSettings, _AuditedSettings):
    """The sweeper."""

    DEAD_LETTERS_TABLE: str
    AUDIT_SAMPLE: Annotated[float, Field(ge=0, le=1)]
    READY_CAPACITY: Annotated[int, Field(ge=1)]
    SHED_AFTER_SECONDS: Annotated[int, Field(ge=60)]


class OperationsSettings(_PlacingSettings, _AuditedSettings):
    """The executor of operations."""

    LEDGER_TABLE: str
    SCHEDULES_TABLE: str
    SCHEDULE_STATE_TABLE: str
    DEAD_LETTERS_TABLE: str
    PAYLOAD_BUCKET: str
    LONGEST_TIMEOUT_SECONDS: Annotated[int, Field(ge=1, le=900)]


class DeadLettersSettings(_PlacingSettings, _AuditedSettings):
    """The consumer of the dead-letter queues."""

    LEDGER_TABLE: str
    DEAD_LETTERS_TABLE: str
    SCHEDULES_TABLE: str
    SCHEDULE_STATE_TABLE: str
