"""What a job calls, and how, as a request has it: the same for a job and for the job of a schedule."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from functions.api.http import requests
from functions.api.http.collect_body import CollectBody, check_company
from functions.api.http.flow_body import FlowBody
from functions.domain.errors import InvalidJob
from functions.domain.far_ring.timer_record import PAYLOAD_LIMIT
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.jobs.job import MAX_TAGS, Delivery, Precision, Priority, check_tags
from functions.domain.jobs.retry import (
    MAX_AGE,
    MAX_ATTEMPTS,
    MAX_BACKOFF,
    MAX_INTERVALS,
    MIN_BACKOFF,
    Jitter,
    RetryPolicy,
    Strategy,
)
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.targets.flows import MAX_FLOWS, NamedFlow, check_flows
from functions.domain.targets.kinds import Kind
from functions.domain.targets.options import MAX_HEADERS, STATUS_CODES, Method, TargetOptions
from functions.domain.targets.targets import check_asynchronous, check_target, parse_target

MAX_EXPIRY = timedelta(days=14)

_PRIORITIES = tuple(priority.name.lower() for priority in Priority)

StatusCode = Annotated[int, Field(ge=STATUS_CODES[0], le=STATUS_CODES[-1], strict=True)]
_Backoff = Annotated[requests.Duration, requests.between(MIN_BACKOFF, MAX_BACKOFF, "must be from 1 second to 12 hours")]
_Age = Annotated[requests.Duration, requests.between(MIN_BACKOFF, MAX_AGE, "must be from 1 second to 30 days")]
_Expiry = Annotated[
    requests.Duration, requests.between(timedelta.resolution, MAX_EXPIRY, "must be above 0 and at most 14 days")
]


class RetryBody(requests.StrictModel):
    """How failed attempts are retried."""

    strategy: Strategy = REQUESTED.retry.strategy
    attempts: Annotated[
        int,
        Field(ge=1, le=MAX_ATTEMPTS, strict=True, description="The highest number of attempts, including the first."),
    ] = REQUESTED.retry.attempts
    base: _Backoff = REQUESTED.retry.base
    cap: _Backoff = REQUESTED.retry.cap
    max_age: Annotated[_Age | None, Field(description="No attempt is due later than this after the first one.")] = (
        REQUESTED.retry.max_age
    )
    intervals: Annotated[
        tuple[_Backoff, ...],
        Field(
            max_length=MAX_INTERVALS,
            description="The waits before the second attempt, the third and so on, in place of `strategy`, `base` and `cap`. "
            "`attempts` is then one more than there are intervals. With more attempts than that the last interval is repeated.",
            examples=[[60, 300, 1800]],
        ),
    ] = REQUESTED.retry.intervals
    jitter: Annotated[
        Literal["none", "full", "equal"],
        Field(description="`full` waits a random part of each gap, `equal` half of it and a random part of the rest."),
    ] = "none"

    @field_validator("cap")
    @classmethod
    def _is_above_base(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        if value < info.data.get("base", value):
            raise PydanticCustomError("cap", "must not be smaller than base")
        return value

    @model_validator(mode="after")
    def _intervals_stand_alone(self) -> Self:
        beside = [name for name in ("strategy", "base", "cap") if name in self.model_fields_set]
        if self.intervals and beside:
            said = {"beside": " and ".join(beside)}
            raise PydanticCustomError(
                "intervals", "intervals take the place of {beside}: leave one of the two out", said
            )
        return self

    def policy(self) -> RetryPolicy:
        """The policy of the domain."""
        jitter = None if self.jitter == "none" else Jitter(self.jitter)
        if self.intervals:
            attempts = self.attempts if "attempts" in self.model_fields_set else None
            return RetryPolicy.of_intervals(**self.by_name("intervals", "max_age"), attempts=attempts, jitter=jitter)
        # A cap that was not given makes way for a longer base.
        cap = max(self.base, self.cap)
        return RetryPolicy(**self.by_name("strategy", "attempts", "base", "max_age"), cap=cap, jitter=jitter)


class HttpBody(requests.StrictModel):
    """How an HTTP target is called, and how its response statuses are interpreted."""

    method: Method = REQUESTED.method
    headers: Annotated[
        dict[str, str],
        Field(
            json_schema_extra={"maxProperties": MAX_HEADERS},
            description="Headers to send in addition to those that Tickwheel sets.",
        ),
    ] = {}  # noqa: RUF012  pydantic copies it
    success: Annotated[
        tuple[StatusCode, ...], Field(description="The statuses that mean success. An empty list means 200 to 299.")
    ] = ()
    retry_on: Annotated[
        tuple[StatusCode, ...], Field(description="Statuses to retry that would otherwise be permanent failures.")
    ] = ()

    @field_validator("headers")
    @classmethod
    def _can_be_set(cls, value: dict[str, str]) -> dict[str, str]:
        try:
            TargetOptions(headers=tuple(value.items()))
        except InvalidJob as error:
            context = {"reason": str(error), "name": error.value}
            raise PydanticCustomError("header", "{reason}: {name}", context) from None
        return value

    @field_validator("retry_on")
    @classmethod
    def _is_no_success(cls, value: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        success = info.data.get("success", ())
        requests.checked(lambda codes: TargetOptions(success_codes=success, retry_codes=codes), value)
        return value


class CallBody(requests.StrictModel):
    """What to call, and how: the same for a job and for the job of a schedule."""

    target: Annotated[
        str,
        Field(
            description="An HTTPS URL, `handler:NAME` for a function in the worker, or an ARN.",
            examples=["https://example.com/hook"],
        ),
    ]
    payload: Annotated[Any, Field(description="Any JSON value of at most 256 KB.")] = None
    priority: Annotated[str, Field(json_schema_extra={"enum": list(_PRIORITIES)})] = REQUESTED.priority.name.lower()
    delivery: Delivery = REQUESTED.delivery
    precision: Precision = REQUESTED.precision
    retry: RetryBody = RetryBody()
    timeout: requests.Duration = REQUESTED.timeout
    expires_after: _Expiry | None = None
    run_deadline: Annotated[
        _Age | None,
        Field(
            description="How long a run may take, from its due time on: all its attempts, the waits between them and what its target "
            "does after a 202. Then it fails with the error class `run_deadline`."
        ),
    ] = None
    http: HttpBody = HttpBody()
    asynchronous: Annotated[
        bool, Field(strict=True, description="Whether to invoke a Lambda function without waiting for its result.")
    ] = False
    tags: Annotated[
        tuple[requests.Tag, ...],
        Field(max_length=MAX_TAGS, description="Labels of the job, chosen by its tenant."),
        requests.obeying(check_tags),
    ] = ()
    flow: Annotated[
        tuple[FlowBody, ...],
        Field(
            max_length=MAX_FLOWS,
            description="The flows whose rate and concurrency this job shares with all other jobs that name them.",
        ),
        requests.obeying(lambda flows: check_flows(_named(flows))),
    ] = ()
    collect: Annotated[
        CollectBody | None,
        Field(description="With which other jobs it is given to its target in one call, and when."),
    ] = None
    on_success: Annotated[
        str | None, Field(description="A target that is called with the outcome when the job has succeeded.")
    ] = None
    on_failure: Annotated[
        str | None,
        Field(description="A target that is called with the outcome when the job has failed for good or has expired."),
    ] = None
    on_end: Annotated[
        str | None,
        Field(description="A target that is called with the outcome when the job has ended in any way."),
    ] = None

    @field_validator("flow")
    @classmethod
    def _can_be_ordered(cls, value: tuple[FlowBody, ...], info: ValidationInfo) -> tuple[FlowBody, ...]:
        delivery = info.data.get("delivery", Delivery.EXACTLY_ONCE)
        if delivery is not Delivery.EXACTLY_ONCE and any(flow.ordered for flow in value):
            raise PydanticCustomError(
                "ordered", "has an order, which only exactly_once jobs keep: leave delivery out, or ordered"
            )
        return value

    @field_validator("collect")
    @classmethod
    def _goes_with_others(cls, value: CollectBody | None, info: ValidationInfo) -> CollectBody | None:
        return check_company(value, info)

    @field_validator("target")
    @classmethod
    def _can_be_called(cls, value: str, info: ValidationInfo) -> str:
        rules = requests.rules_of(info)
        return requests.checked(
            check_target,
            value,
            allowed=rules.allowed,
            allow_plain_http=rules.allow_plain_http,
            handlers=rules.handlers,
        )

    @field_validator("on_success", "on_failure", "on_end")
    @classmethod
    def _can_be_called_back(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        if info.data.get("delivery") is Delivery.AT_MOST_ONCE:
            raise PydanticCustomError(
                "callback",
                "is for exactly_once and at_least_once jobs: how an at_most_once job ended is not kept, so leave it out",
            )
        return cls._can_be_called(value, info)

    @field_validator("payload")
    @classmethod
    def _is_small_enough(cls, value: Any) -> Any:
        size = len(requests.compact_json(value).encode())
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
        limit = requests.rules_of(info).max_timeout
        if not MILLISECOND <= value <= limit:
            raise PydanticCustomError(
                "timeout",
                "must be at least a millisecond and at most {limit} s in this stage",
                {"limit": f"{limit.total_seconds():g}"},
            )
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
        return (
            requests.checked(check_asynchronous, value, target=info.data["target"]) if "target" in info.data else value
        )

    def call(self) -> dict[str, Any]:
        """What a job and the job of a schedule have of it in the domain, by name: all but the payload."""
        same = self.by_name("target", "delivery", "precision", "timeout", "expires_after", "run_deadline", "tags")
        priority = Priority[self.priority.upper()]
        flows = _named(self.flow)
        callbacks = Callbacks(
            on_success=self.on_success or "", on_failure=self.on_failure or "", on_end=self.on_end or ""
        )
        given = {"retry": self.retry.policy(), "options": self.options(), "flows": flows, "callbacks": callbacks}
        given["collect"] = self.collect.terms() if self.collect is not None else None
        return {**same, "priority": priority, **given}

    def options(self) -> TargetOptions:
        """The options of the domain. What has no order has one there: the same call again must be equal to the first."""
        return TargetOptions(
            method=self.http.method,
            headers=tuple(sorted(self.http.headers.items())),
            success_codes=tuple(sorted(set(self.http.success))),
            retry_codes=tuple(sorted(set(self.http.retry_on))),
            is_async=self.asynchronous,
        )


def _named(flows: tuple[FlowBody, ...]) -> tuple[NamedFlow, ...]:
    return tuple(flow.named() for flow in flows)
