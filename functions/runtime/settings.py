"""The environment of each Lambda, read once, as a frozen model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter
from pydantic_core import from_json

from functions.domain.errors import InvalidInput
from functions.domain.jobs.job import Priority
from functions.domain.metrics import Watching
from functions.domain.targets.addresses import Network, parse_networks
from functions.domain.targets.targets import AllowedTargets
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.plan import Limits, read_limits
from functions.domain.wheel import Wheel

_PATTERNS = TypeAdapter(tuple[str, ...])


def _written(read: Callable[[str], Any]) -> BeforeValidator:
    """A setting that the environment has as a text."""
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


_Urls = Annotated[tuple[str, ...], _written(from_json), Field(min_length=len(Priority), max_length=len(Priority))]
_QueueUrls = Annotated[tuple[str, ...], _written(from_json)]
_Networks = Annotated[tuple[Network, ...], _written(lambda text: parse_networks(from_json(text)))]
_Targets = Annotated[AllowedTargets, _written(lambda text: AllowedTargets(_PATTERNS.validate_json(text)))]
_Principals = Annotated[
    tuple[str, ...], _written(lambda text: tuple(map(check_pattern, _PATTERNS.validate_json(text))))
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
    """The constants of a stage."""

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


class FunctionSettings(Settings):
    """What every Lambda gets beside the constants: the plans, the tables and the queues of its stage.

    PATIENCE: how many times as long as on AWS it waits for an answer of a store. An emulated stage has more: a laptop that
    is busy stands still for seconds, which is no fault of a store. WATCHING: which of its metrics it emits.
    """

    PATIENCE: Annotated[int, Field(ge=1)] = 1
    WATCHING: Watching = Watching.FULL
    PLANS: _Plans
    TIMERS_TABLE: str
    TENANTS_TABLE: str
    SHARDS_TABLE: str
    LEDGER_TABLE: str
    SCHEDULES_TABLE: str
    SCHEDULE_STATE_TABLE: str
    DEAD_LETTERS_TABLE: str
    READY_QUEUE_URLS: _Urls
    AUDIT_STREAM: str


class ApiSettings(FunctionSettings):
    """The submission API."""

    PAYLOAD_BUCKET: str
    WEBHOOK_SECRET: str
    ALLOWED_TARGETS: _Targets
    ALLOW_PLAIN_HTTP: bool
    MAX_TIMEOUT_SECONDS: int
    OPERATIONS_FUNCTION: str
    OPERATORS: _Principals
    JWT_TENANT_CLAIM: str
    SUBMISSION_QUEUE_URLS: _QueueUrls
    REFUSED_QUEUE_URLS: _QueueUrls
    FILES_BUCKET: _QueueUrls = ()


class WorkerSettings(FunctionSettings):
    """The worker."""

    PAYLOAD_BUCKET: str
    WEBHOOK_SECRET: str
    ALLOWED_TARGETS: _Targets
    ALLOWED_NETWORKS: _Networks
    LAG_OBJECTIVE_MS: Annotated[int, Field(ge=1)]


class ScannerSettings(FunctionSettings):
    """The scanner."""

    READY_CAPACITY: Annotated[int, Field(ge=1)]
    WARM_MESSAGES: Annotated[tuple[int, ...], _written(from_json)] = ()


class SweeperSettings(FunctionSettings):
    """The sweeper."""

    AUDIT_SAMPLE: Annotated[float, Field(ge=0, le=1)]
    READY_CAPACITY: Annotated[int, Field(ge=1)]
    SHED_AFTER_SECONDS: Annotated[int, Field(ge=60)]


class OperationsSettings(FunctionSettings):
    """The executor of operations."""

    PAYLOAD_BUCKET: str
    LONGEST_TIMEOUT_SECONDS: Annotated[int, Field(ge=1, le=900)]


class DeadLettersSettings(FunctionSettings):
    """The consumer of the dead-letter queues."""


class ResourcesSettings(BaseModel):
    """Of the function that carries out resources of users' stacks. OPERATOR_ROLE: the ARN of the role that it acts as."""

    model_config = ConfigDict(frozen=True)

    API_ENDPOINT: str
    OPERATOR_ROLE: str
    AWS_REGION: str

    @classmethod
    def from_environment(cls) -> Self:
        """Fails at the cold start with the name of what is missing."""
        return cls.model_validate(dict(os.environ))
