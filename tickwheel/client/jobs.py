"""The arguments and results of calls about jobs, as values that are validated on construction.

Instants are aware datetimes in UTC and durations are timedeltas; numbers and strings exist only on the wire.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.collect import Collect, collect_problems, parse_collect
from tickwheel.client.durations import parse_duration
from tickwheel.client.fields import (
    Parsers,
    Reader,
    choice_problems,
    count_problems,
    duration_list_problems,
    duration_problems,
    flag_problems,
    header_problems,
    instant_problems,
    list_problems,
    names_of,
    payload_problems,
    read_part,
    said,
    text_problems,
)
from tickwheel.client.flows import Flow, flow_problems, parse_flows
from tickwheel.client.instants import parse_instant
from tickwheel.client.words import CallbackEvent, CancellationState, Delivery, JobState, Priority, Ring
from tickwheel.errors import ApiProblem, FieldProblem, InvalidJob, Unreachable

PriorityText = Literal["critical", "high", "normal", "low"]
DeliveryText = Literal["exactly_once", "at_least_once", "at_most_once"]
Precision = Literal["default", "exact"]
Strategy = Literal["exponential", "fixed", "linear", "decorrelated_jitter"]
Jitter = Literal["none", "full", "equal"]
Method = Literal["POST", "PUT", "PATCH", "DELETE", "GET"]


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """When a failed attempt is retried. A field that is None takes the scheduler's default.

    The defaults are `decorrelated_jitter`, 5 attempts, a base of 2 s and a cap of 10 minutes. No attempt is due later
    than `max_age` after the first. `intervals` are the waits one after the other, in place of strategy, base and cap; the
    last one is repeated where there are more attempts. `jitter` is that of each wait: `none`, unless it is given.
    """

    strategy: Strategy | None = None
    attempts: int | None = None
    base: timedelta | None = None
    cap: timedelta | None = None
    max_age: timedelta | None = None
    intervals: Sequence[timedelta] = ()
    jitter: Jitter | None = None

    def __post_init__(self) -> None:
        problems = [
            *choice_problems("retry.strategy", self.strategy, Strategy),
            *duration_problems("retry.base", self.base),
            *duration_problems("retry.cap", self.cap),
            *duration_problems("retry.max_age", self.max_age),
            *duration_list_problems("retry.intervals", self.intervals),
            *choice_problems("retry.jitter", self.jitter, Jitter),
        ]
        _refuse([*problems, *count_problems("retry.attempts", self.attempts)])

    def as_json(self) -> dict[str, Any]:
        """The policy on the wire, without what is left to the scheduler."""
        return said(vars(self))


@dataclass(frozen=True, kw_only=True)
class Http:
    """How an HTTP target is called, and how its statuses are interpreted. An omitted field takes the scheduler's default.

    The defaults are `POST`, success from 200 to 299, and retries for failures that may be temporary; `retry_on`
    names further statuses to try again. What `headers` hold may be secret: it is left out of the text of this value.
    """

    method: Method | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    success: Sequence[int] = ()
    retry_on: Sequence[int] = ()

    def __post_init__(self) -> None:
        _refuse(
            [
                *choice_problems("http.method", self.method, Method),
                *header_problems("http.headers", self.headers),
                *list_problems("http.success", self.success, int, "statuses such as 200"),
                *list_problems("http.retry_on", self.retry_on, int, "statuses such as 404"),
            ]
        )

    def as_json(self) -> dict[str, Any]:
        """The call on the wire, without what is left to the scheduler."""
        return said(vars(self))


@dataclass(frozen=True, kw_only=True)
class JobFields:
    """The options of a job besides its target, tenant and time; None takes the scheduler's default.

    `run_deadline` is how long a run may take, all its attempts and waits included, from its due time on;
    `http` is for HTTP targets; `asynchronous` starts a Lambda function without waiting for its answer; `tags` are labels;
    `flow` names up to three flows whose rate and concurrency this job shares with the others that name them; `collect` says
    with which others it is given to its target in one call. `on_success`,
    `on_failure` and `on_end` are targets that are called with the outcome when the job has ended.
    """

    payload: Any = None
    priority: Priority | PriorityText | None = None
    delivery: Delivery | DeliveryText | None = None
    precision: Precision | None = None
    retry: RetryPolicy | None = None
    timeout: timedelta | None = None
    expires_after: timedelta | None = None
    run_deadline: timedelta | None = None
    http: Http | None = None
    asynchronous: bool | None = None
    tags: Sequence[str] = ()
    flow: Sequence[Flow] = ()
    collect: Collect | None = None
    on_success: str | None = None
    on_failure: str | None = None
    on_end: str | None = None

    def field_problems(self, prefix: str = "") -> list[FieldProblem]:
        """What is wrong with these fields, by their names behind a prefix."""
        return [
            *payload_problems(self.payload),
            *choice_problems(f"{prefix}priority", self.priority, Priority),
            *choice_problems(f"{prefix}delivery", self.delivery, Delivery),
            *choice_problems(f"{prefix}precision", self.precision, Precision),
            *duration_problems(f"{prefix}timeout", self.timeout),
            *duration_problems(f"{prefix}expires_after", self.expires_after),
            *duration_problems(f"{prefix}run_deadline", self.run_deadline),
            *flag_problems(f"{prefix}asynchronous", self.asynchronous),
            *list_problems(f"{prefix}tags", self.tags, str, "texts"),
            *flow_problems(f"{prefix}flow", self.flow),
            *collect_problems(f"{prefix}collect", self.collect),
            *(
                problem
                for name in ("on_success", "on_failure", "on_end")
                if getattr(self, name) is not None
                for problem in text_problems(f"{prefix}{name}", getattr(self, name))
            ),
        ]


@dataclass(frozen=True)
class NewJob(JobFields):
    """A job to submit: `target` is a URL, `handler:NAME` or an ARN, and one of `run_at` and `delay`, or neither for now.

    An `idempotency_key` makes a repeated submission answer with the first job, and so makes it safe to send again when
    an answer was lost; it costs one write unit. Raises InvalidJob, naming every problem at once.
    """

    target: str
    _: KW_ONLY
    tenant: str
    run_at: datetime | None = None
    delay: timedelta | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        problems = [
            *text_problems("target", self.target),
            *text_problems("tenant", self.tenant),
            *instant_problems("run_at", self.run_at),
            *duration_problems("delay", self.delay),
            *self.field_problems(),
        ]
        if self.idempotency_key is not None:
            problems += text_problems("idempotency_key", self.idempotency_key)
        if self.run_at is not None and self.delay is not None:
            problems.append(FieldProblem("run_at", "give run_at or delay, not both"))
        _refuse(problems)
        if self.run_at is not None:
            object.__setattr__(self, "run_at", self.run_at.astimezone(UTC))

    def as_json(self) -> dict[str, Any]:
        """The body of a submission, without what is left to the scheduler."""
        return said(vars(self))

    @classmethod
    def from_json(cls, body: Any) -> "NewJob":
        """Reads the body of a submission, as a line of a jobs file has it; raises InvalidJob with every problem."""
        if not isinstance(body, dict):
            raise InvalidJob([FieldProblem("job", "is a JSON object")])
        reader = Reader(body)
        values = reader.take_all(names_of(cls), JOB_PARSERS)
        reader.refuse_the_rest("a job")
        return reader.make(cls, {"target": None, "tenant": None, **values}, InvalidJob)


@dataclass(frozen=True, kw_only=True)
class Submitted(Answer):
    """An accepted job: it is durable and will run at `due_at`.

    `replayed` says that its idempotency key had been seen before and this is the first job's answer.
    """

    id: str
    tenant: str
    due_at: datetime
    state: JobState
    ring: Ring | None
    replayed: bool = False


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A job of a batch that the scheduler did not accept."""

    job: NewJob
    problem: ApiProblem


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A job of a batch without an answer after all retries: it may or may not have been accepted."""

    job: NewJob
    error: Unreachable | ApiProblem


Submission = Submitted | Refused | Unanswered


@dataclass(frozen=True, kw_only=True)
class PastAttempt(Answer):
    """An attempt that has failed. took: how long its target was called, where that is known."""

    attempt: int
    ended_at: datetime
    error_class: str
    error: str
    took: Annotated[timedelta | None, Wire(read=parse_duration)] = None


@dataclass(frozen=True, kw_only=True)
class Callback(Answer):
    """A callback of a job that has ended: the job `id` calls its target with the outcome."""

    on: CallbackEvent
    target: str
    id: str
    state: JobState


@dataclass(frozen=True, kw_only=True)
class Job(Answer):
    """A job and its latest attempt. A field is None if the scheduler does not know its value yet.

    attempts: the last ones that failed, the oldest first. job: what was submitted, of its headers only the names;
    unknown of a job that was due soon, until its first attempt. callbacks: those that its end has led to.
    """

    id: str
    tenant: str
    state: JobState
    due_at: datetime
    priority: Priority | None = None
    delivery: Delivery | None = None
    attempt: int | None = None
    fence: int | None = None
    rescues: int | None = None
    cancel_requested: bool | None = None
    result: Any = None
    error: str | None = None
    moved_to: str | None = None
    updated_at: datetime | None = None
    attempts: tuple[PastAttempt, ...] = ()
    job: Mapping[str, Any] | None = None
    callbacks: tuple[Callback, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cancellation(Answer):
    """`cancelled`: it will not run. `cancel_requested`: an attempt is running and is asked to stop."""

    id: str
    state: CancellationState


def _parse_retry(body: Any) -> RetryPolicy:
    durations: Parsers = {
        **dict.fromkeys(("base", "cap", "max_age"), parse_duration),
        "intervals": lambda value: [parse_duration(each) for each in value] if isinstance(value, list) else value,
    }
    names = names_of(RetryPolicy)
    return read_part("retry", body, RetryPolicy, InvalidJob, names=names, whole="a job", parsers=durations)


def _parse_http(body: Any) -> Http:
    return read_part("http", body, Http, InvalidJob, names=names_of(Http), whole="a job", is_secret=True)


JOB_PARSERS: Parsers = {
    "run_at": parse_instant,
    "delay": parse_duration,
    "retry": _parse_retry,
    "timeout": parse_duration,
    "expires_after": parse_duration,
    "run_deadline": parse_duration,
    "http": _parse_http,
    "flow": parse_flows,
    "collect": parse_collect,
}
"""How the fields of a job are read that are not taken as they are."""


def _refuse(problems: list[FieldProblem]) -> None:
    if problems:
        raise InvalidJob(problems)
