"""What the arithmetic of a bill is given, and what it gives: values alone, of a month of 30 days."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.budgets import Units
from bench.prices import FreeTier

DAYS = 30


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is asked of a stage.

    batch: jobs a request. far_share: of jobs that are due in more than GUARD. keyed_share: with an idempotency key. wait_days:
    how long a far job waits, about. retries: attempts beside the first, a job. payload: bytes, as they are stored.
    class_shares: of executions by class, `critical` first: each class has a ready queue of its own. exact_share: of executions
    that are `exact`, whose worker waits for their instant.
    """

    jobs_a_day: float
    schedules: float = 0
    fires_a_schedule_day: float = 1
    payload: int = 512
    batch: float = 25
    far_share: float = 0.8
    keyed_share: float = 0
    delivery: str = "exactly_once"
    wait_days: float = 1
    retries: float = 0.02
    look_ups: float = 0.1
    tenants: int = 20
    class_shares: tuple[float, ...] = (0, 0, 1, 0)
    exact_share: float = 0

    def __post_init__(self) -> None:
        """Refuse shares that are no whole."""
        if not math.isclose(sum(self.class_shares), 1):
            raise ValueError(f"class_shares add up to {sum(self.class_shares):g}: they must be 1 together")

    @property
    def jobs(self) -> float:
        """A month."""
        return self.jobs_a_day * DAYS

    @property
    def fires(self) -> float:
        """A month."""
        return self.schedules * self.fires_a_schedule_day * DAYS

    @property
    def executions(self) -> float:
        """Jobs and fires a month, by whose million a cost is reported."""
        return self.jobs + self.fires

    @property
    def attempts(self) -> float:
        """A month, of all executions."""
        return self.executions * (1 + self.retries)


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """What is not measured, and can be said. Durations of Lambdas in seconds, billed ones.

    fill: messages of a batch that a worker gets; None: as many as are likely, `bench/cost_fill.py`. batch_s: what a batch
    takes beside its targets; None: by its size. call_s: until DynamoDB answers. invocation_s: of an invocation, beside its
    work. received_s: what a poller needs to receive a batch and to delete it. hold_s: how long a worker waits for an `exact`
    job, on average: it comes one to two seconds early. pollers: of an event
    source that has a maximum concurrency and nothing to do, which asks SQS every 20 seconds. rare: share of executions that
    have a value for a metric that was not seen to get one: of trouble, or of what few use. cold: share of invocations that
    begin with a new environment, whose start takes start_s. traced: share of invocations that X-Ray samples beside the first
    of each second. provisioned: share of DynamoDB's provisioned capacity that is used; None: capacity on demand.
    """

    fill: float | None = None
    pollers: int = 5
    cold: float = 0.01
    start_s: float = 1.0
    target_s: float = 0.1
    batch_s: float | None = None
    call_s: float = 0.005
    invocation_s: float = 0.005
    received_s: float = 0.02
    hold_s: float = 1.5
    request_s: float = 0.02
    submission_s: float = 0.002
    tick_s: float = 0.05
    sweep_s: float = 0.3
    ledger_row: int = 300
    state_row: int = 600
    tenant_row: int = 150
    definition_row: int = 1_500
    log_line_of_lambda: int = 300
    access_log_line: int = 450
    traced: float = 0.05
    rare: float = 0.0001
    provisioned: float | None = None


@dataclass(frozen=True, kw_only=True)
class Processor:
    """Processor time of a worker, in seconds of a whole vCPU: of a job, and of each request to DynamoDB beside it."""

    job_s: float
    call_s: float

    def of(self, calls: int) -> float:
        """Of a job with so many requests."""
        return self.job_s + calls * self.call_s


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the benchmarks have measured. paths: units of a job by `{ring}, {delivery}` and with `, keyed`, in full batches.

    fire: of an occurrence. log_bytes: that an execution writes, of a near and of a far one, and a tick. promoted_a_second: jobs, by one vCPU.
    worker: its processor time. other_log_bytes, other_worker: the same of an execution by a worker that is written with Powertools
    and botocore, as one behind another scheduler. together: units of a far job that is submitted with 24 like it, for one minute.
    audit_line, audit_line_kept: bytes of a line of the audit trail, as it is sent and as it is compressed. emitted: names of metrics that
    get a value, by what gives it: an `idle` minute, a `request`, a `near` or `far` job, a `fire`, a `retry`.
    """

    paths: Mapping[str, Units]
    fire: Units
    tick: Units
    mark: Units
    payload: int
    log_bytes: Mapping[str, float]
    other_log_bytes: float
    worker: Processor
    other_worker: Processor
    promoted_a_second: float
    audit_line: float
    audit_line_kept: float
    emitted: Mapping[str, Collection[str]]
    together: Units


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What a stage consists of. memory: MB by function. log_days: how long lines are kept. metrics: all that it can emit.

    limited_sources, unlimited_sources: event sources of SQS with a maximum concurrency, and without one. pollers: the
    provisioned ones of all others, while there is nothing to do. class_pollers: the same by class, 0 for a class without any.
    ready: workers that are kept started. traced: functions whose traces begin with them. metrics_of_a_dashboard: of the one
    that has most.
    """

    name: str
    shards: int
    memory: Mapping[str, int]
    audit_sample: float
    log_days: float
    limited_sources: int
    unlimited_sources: int
    pollers: int
    ready: int
    metrics: int
    alarm_metrics: int
    composite_alarms: int
    dashboards: int
    keys: int
    secrets: int = 1
    class_pollers: Sequence[int] = (0, 0, 0, 0)
    traced: Collection[str] = ("api", "dead_letters", "operations", "scanner", "sweeper", "worker")
    metrics_of_a_dashboard: int = 0


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the bill: so many units of one kind. is_assumed: an assumption goes into it.

    usd_after_free: what is left of it once the account's free units are taken off.
    """

    service: str
    what: str
    quantity: float
    unit: str
    usd: float
    is_assumed: bool = False
    usd_after_free: float = 0


@dataclass(frozen=True, kw_only=True)
class Bill:
    """A month."""

    lines: tuple[Line, ...]
    executions: float

    @property
    def usd(self) -> float:
        """All lines."""
        return sum(line.usd for line in self.lines)

    @property
    def usd_after_free(self) -> float:
        """All lines, of an account that does nothing else."""
        return sum(line.usd_after_free for line in self.lines)

    @property
    def usd_a_million(self) -> float | None:
        """Of a million executions; None where there are none."""
        return self.usd / self.executions * 1e6 if self.executions else None


def billed(lines: Iterable[Line], free: Sequence[FreeTier], *, executions: float) -> Bill:
    """The bill of what was used, each free tier taken off the lines of its units, in their order."""
    kept = [line for line in lines if line.quantity]
    left = [line.quantity for line in kept]
    for tier in free:
        rest = tier.a_month
        for unit in tier.of:
            for index, line in enumerate(kept):
                if line.unit == unit:
                    taken = min(rest, left[index])
                    left[index] -= taken
                    rest -= taken
    priced = (replace(line, usd_after_free=line.usd * left[index] / line.quantity) for index, line in enumerate(kept))
    return Bill(lines=tuple(priced), executions=executions)
