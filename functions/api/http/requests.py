"""The bodies that the API takes and gives: shapes and texts here, meaning in the domain."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic_core import PydanticCustomError

from functions.domain.errors import InvalidInput, InvalidJob, InvalidSchedule
from functions.domain.far_ring.timer_record import PAYLOAD_LIMIT
from functions.domain.instants import EARLIEST, LATEST, MILLISECOND, format_instant, parse_duration, parse_instant
from functions.domain.jobs.job import MAX_TAGS, TENANT, Delivery, Precision, Priority, check_tags, check_tenant
from functions.domain.jobs.retry import MAX_AGE, MAX_ATTEMPTS, MAX_BACKOFF, MIN_BACKOFF, RetryPolicy, Strategy
from functions.domain.jobs.submission import PAST_GRACE, Submission
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.targets.kinds import Kind
from functions.domain.targets.options import MAX_HEADERS, STATUS_CODES, Method, TargetOptions
from functions.domain.targets.targets import (
    DEFAULT_TARGETS,
    AllowedTargets,
    check_asynchronous,
    check_target,
    parse_target,
)
from functions.domain.trace import Trace

HORIZON = timedelta(days=3_653)
"""How far ahead a job may be due: ten years."""

MAX_EXPIRY = timedelta(days=14)
BATCH_LIMIT = 500
MAX_DEPTH = 100
"""Of lists and objects inside each other in a body. Readers may limit it (RFC 8259, 9), and targets do."""

_PRIORITIES = tuple(priority.name.lower() for priority in Priority)


class Rules(BaseModel):
    """What a stage allows, and the time of the request: the context that a body is validated in."""

    model_config = ConfigDict(frozen=True)

    now: datetime
    allow_plain_http: bool
    max_timeout: timedelta
    allowed: AllowedTargets = AllowedTargets(DEFAULT_TARGETS)
    has_key: bool = False
    """The request has an Idempotency-Key header: a repeat may come after its time, and is told its first job."""


def read_instant(value: Any) -> datetime:
    """For fields of other types that hold one. Raises what pydantic tells as an error of the field."""
    if not isinstance(value, str):
        raise PydanticCustomError("instant", "must be an RFC 3339 text such as 2027-01-31T09:00:00+01:00")
    instant = checked(parse_instant, value)
    if instant < EARLIEST:
        raise PydanticCustomError("earliest", "is earlier than {earliest}", {"earliest": format_instant(EARLIEST)})
    # Behind it there is an end to what a calendar can add.
    if instant > LATEST:
        raise PydanticCustomError("latest", "is later than {latest}", {"latest": format_instant(LATEST)})
    return instant


def _duration(value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PydanticCustomError("duration", "must be seconds, or an ISO 8601 duration such as PT90S")
    return checked(parse_duration, value)


def checked(rule: Any, value: Any, /, **options: Any) -> Any:
    """A rule of the domain as a validator: what it refuses becomes a problem of the field."""
    try:
        return rule(value, **options)
    except InvalidInput as error:
        instead = error.instead if isinstance(error, InvalidSchedule) else ()
        raise PydanticCustomError("rule", "{reason}", {"reason": str(error), "instead": instead}) from error


def _key(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("idempotency_key", "must be printable characters")
    return value


Tenant = Annotated[
    str,
    AfterValidator(lambda value: checked(check_tenant, value)),
    WithJsonSchema({"type": "string", "pattern": f"^{TENANT.pattern}$"}),
]
NewTenant = Annotated[Tenant, WithJsonSchema({"type": "string", "pattern": rf"^(?!\.{{1,2}}$){TENANT.pattern}$"})]
"""As the description has it; whether it is new is looked at where it may be."""

IdempotencyKey = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_key)]
Instant = Annotated[
    datetime,
    BeforeValidator(read_instant),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-31T09:00:00+01:00"]}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "format": "duration"}],
            "description": "seconds, or an ISO 8601 duration without years and months",
            "examples": [90, "PT1H30M"],
        }
    ),
]

Tag = Annotated[str, AfterValidator(lambda value: checked(check_tags, (value,))[0])]
StatusCode = Annotated[int, Field(ge=STATUS_CODES[0], le=STATUS_CODES[-1], strict=True)]


class RetryBody(BaseModel):
    """How a failed attempt is repeated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = REQUESTED.retry.strategy
    attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS, strict=True, description="in all, the first included")] = (
        REQUESTED.retry.attempts
    )
    base: Duration = REQUESTED.retry.base
    cap: Duration = REQUESTED.retry.cap
    max_age: Annotated[Duration | None, Field(description="no attempt is due later than this after the first")] = (
        REQUESTED.retry.max_age
    )

    @field_validator("base", "cap")
    @classmethod
    def _is_in_range(cls, value: timedelta) -> timedelta:
        if not MIN_BACKOFF <= value <= MAX_BACKOFF:
            raise PydanticCustomError("backoff", "must be from 1 second to 12 hours")
        return value

    @field_validator("cap")
    @classmethod
    def _is_above_base(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        if value < info.data.get("base", value):
            raise PydanticCustomError("cap", "must not be smaller than base")
        return value

    @field_validator("max_age")
    @classmethod
    def _is_an_age(cls, value: timedelta | None) -> timedelta | None:
        if value is not None and not MIN_BACKOFF <= value <= MAX_AGE:
            raise PydanticCustomError("max_age", "must be from 1 second to 30 days")
        return value

    def policy(self) -> RetryPolicy:
        """The policy of the domain."""
        return RetryPolicy(
            strategy=self.strategy,
            attempts=self.attempts,
            base=self.base,
            # A cap that was not given makes way for a longer base.
            cap=max(self.base, self.cap),
            max_age=self.max_age,
        )


class HttpBody(BaseModel):
    """How an HTTP target is called, and which of its answers mean what."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Method = REQUESTED.method
    headers: Annotated[
        dict[str, str],
        Field(json_schema_extra={"maxProperties": MAX_HEADERS}, description="sent beside Tickwheel's own"),
    ] = {}
    success: Annotated[tuple[StatusCode, ...], Field(description="statuses that mean success; none: 200 to 299")] = ()
    retry_on: Annotated[
        tuple[StatusCode, ...], Field(description="statuses that are tried again although they are usually permanent")
    ] = ()

    @field_validator("headers")
    @classmethod
    def _can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        try:
            TargetOptions(headers=tuple(value.items()))
        except InvalidJob as error:
            told = {"reason": str(error), "name": error.value}
            raise PydanticCustomError("header", "{reason}: {name}", told) from None
        return value

    @field_validator("retry_on")
    @classmethod
    def _is_no_success(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        success = info.data.get("success", ())
        checked(lambda codes: TargetOptions(success_codes=success, retry_codes=codes), value)
        return value


class CallBody(BaseModel):
    """What to call, and how: the same for a job and for the job of a schedule."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: Annotated[str, Field(description="https://…, handler:NAME for a function of the worker, or an ARN")]
    payload: Annotated[Any, Field(description="any JSON, at most 256 KB")] = None
    priority: Annotated[str, Field(json_schema_extra={"enum": list(_PRIORITIES)})] = REQUESTED.priority.name.lower()
    delivery: Delivery = REQUESTED.delivery
    precision: Precision = REQUESTED.precision
    retry: RetryBody = RetryBody()
    timeout: Duration = REQUESTED.timeout
    expires_after: Duration | None = None
    http: HttpBody = HttpBody()
    asynchronous: Annotated[
        bool, Field(strict=True, description="a Lambda function is started without waiting for its answer")
    ] = False
    tags: Annotated[
        tuple[Tag, ...], Field(max_length=MAX_TAGS, description="labels that the tenant gives the job")
    ] = ()

    @field_validator("target")
    @classmethod
    def _can_be_called(cls, value: str, info: ValidationInfo) -> str:
        rules = rules_of(info)
        return checked(check_target, value, allowed=rules.allowed, allow_plain_http=rules.allow_plain_http)

    @field_validator("payload")
    @classmethod
    def _is_small_enough(cls, value: Any) -> Any:
        size = len(compact_json(value).encode())
        if size > PAYLOAD_LIMIT:
            raise PydanticCustomError(
                "payload",
                "is {size} bytes as compact JSON, but at most {limit} are taken",
                {"size": size, "limit": PAYLOAD_LIMIT},
            )
        return value

    @field_validator("priority")
    @classmethod
    def _is_a_class(cls, value: str) -> str:
        if value not in _PRIORITIES:
            raise PydanticCustomError("priority", "must be one of {known}", {"known": ", ".join(_PRIORITIES)})
        return value

    @field_validator("timeout")
    @classmethod
    def _fits_the_worker(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        limit = rules_of(info).max_timeout
        if not MILLISECOND <= value <= limit:
            raise PydanticCustomError(
                "timeout",
                "must be at least a millisecond and at most {limit} s in this stage",
                {"limit": f"{limit.total_seconds():g}"},
            )
        return value

    @field_validator("expires_after")
    @classmethod
    def _can_expire(cls, value: timedelta | None) -> timedelta | None:
        if value is not None and not timedelta(0) < value <= MAX_EXPIRY:
            raise PydanticCustomError("expires_after", "must be above 0 and at most 14 days")
        return value

    @field_validator("http")
    @classmethod
    def _is_an_endpoint_s(cls, value: HttpBody, info: ValidationInfo) -> HttpBody:
        target = info.data.get("target")
        if value != HttpBody() and target is not None and parse_target(target).kind is not Kind.HTTP:
            raise PydanticCustomError("http", "is for HTTP targets only: leave it out, or give a URL as the target")
        return value

    @field_validator("asynchronous")
    @classmethod
    def _is_a_function_s(cls, value: bool, info: ValidationInfo) -> bool:
        # A target that was refused is a problem of its own.
        return checked(check_asynchronous, value, target=info.data["target"]) if "target" in info.data else value

    @field_validator("tags")
    @classmethod
    def _differ(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return checked(check_tags, value)

    def options(self) -> TargetOptions:
        """The options of the domain. What has no order has one there: the same call again must be equal to the first."""
        return TargetOptions(
            method=self.http.method,
            headers=tuple(sorted(self.http.headers.items())),
            success_codes=tuple(sorted(set(self.http.success))),
            retry_codes=tuple(sorted(set(self.http.retry_on))),
            is_async=self.asynchronous,
        )


class JobBody(CallBody):
    """A job: what to call, for whom, and when. Without run_at and delay: now."""

    tenant: NewTenant
    idempotency_key: IdempotencyKey | None = None
    run_at: Instant | None = None
    delay: Duration | None = None

    @field_validator("run_at")
    @classmethod
    def _is_within_reach(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        now = rules_of(info).now
        is_keyed = rules_of(info).has_key or info.data.get("idempotency_key") is not None
        if value is not None and value < now - PAST_GRACE and not is_keyed:
            raise PydanticCustomError(
                "past",
                "is in the past by more than {grace} s: it is now {now}",
                {"grace": int(PAST_GRACE.total_seconds()), "now": format_instant(now)},
            )
        if value is not None and value > now + HORIZON:
            raise PydanticCustomError("horizon", "is more than ten years ahead")
        return value

    @field_validator("delay")
    @classmethod
    def _is_the_one_time_asked_for(cls, value: timedelta | None, info: ValidationInfo) -> timedelta | None:
        if value is not None and info.data.get("run_at") is not None:
            raise PydanticCustomError("delay", "excludes run_at: give one of them, or neither for now")
        if value is not None and value > HORIZON:
            raise PydanticCustomError("horizon", "is more than ten years")
        return value

    def submission(
        self, *, now: datetime, idempotency_key: str | None = None, trace: Trace | None = None
    ) -> Submission:
        """The job as its tenant asked for it; a key in the body goes before one in a header."""
        due_at = self.run_at if self.run_at is not None else now + (self.delay or timedelta(0))
        return Submission(
            tenant=self.tenant,
            target=self.target,
            payload=None if self.payload is None else compact_json(self.payload),
            due_at=due_at,
            idempotency_key=self.idempotency_key or idempotency_key,
            priority=Priority[self.priority.upper()],
            delivery=self.delivery,
            precision=self.precision,
            retry=self.retry.policy(),
            timeout=self.timeout,
            expires_after=self.expires_after,
            options=self.options(),
            tags=self.tags,
            trace=trace,
        )


class BatchBody(BaseModel):
    """Up to 500 jobs. Each is checked by itself, so that one bad job does not hold up the others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    jobs: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=BATCH_LIMIT)]


def parse_body(body: str | None, *, is_base64: bool = False) -> Any:
    """The JSON of a request, whatever its content type made of it on the way. Raises InvalidInput."""
    try:
        parsed = json.loads(base64.b64decode(body or "").decode() if is_base64 else body or "")
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from None
    except RecursionError as error:
        raise InvalidInput(f"the body is not JSON that can be read: {error}") from None
    _check_depth(parsed)
    return parsed


def check_key(header: str | None) -> str | None:
    """The Idempotency-Key header, under the rules of the body's. Raises ValidationError."""
    return None if header is None else _KEY.validate_python(header)


_KEY = TypeAdapter(IdempotencyKey)


def _check_depth(value: Any) -> None:
    """Without recursion: how much of that there is left depends on who calls. Raises InvalidInput."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    raise InvalidInput(f"the body has more than {MAX_DEPTH} lists and objects inside each other: send a flatter one")


def compact_json(value: Any) -> str:
    """JSON without spaces. NaN, infinities and half of a surrogate pair are not JSON."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise PydanticCustomError("payload", "is not JSON: {reason}", {"reason": str(error)}) from error
    return text


def rules_of(info: ValidationInfo) -> Rules:
    """What a validator is given as its context."""
    rules = info.context
    assert isinstance(rules, Rules)
    return rules
