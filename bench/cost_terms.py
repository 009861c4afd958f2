"""What the arithmetic of a bill is given, and what it gives: values alone, of a month of 30 days."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bench.budgets import Units

DAYS = 30
FULL_BATCH = 10
"""Messages."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is asked of a stage.

    batch: jobs a request. far_share: of jobs that are due in more than GUARD. keyed_share: with an idempotency key. wait_days:
    how long a far job waits, about. retries: attempts beside the first, a job. payload: bytes, as they are stored.
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

    fill: messages of a batch that a worker gets; None: as many as come within a second, one to ten. pollers: of an event
    source that has a maximum concurrency and nothing to do, which asks SQS every 20 seconds. rare: share of executions that
    have a value for a metric that was not seen to get one: of trouble, or of what few use. cold: share of invocations that
    begin with a new environment, whose start takes start_s.
    """

    fill: float | None = None
    pollers: int = 5
    cold: float = 0.01
    start_s: float = 1.0
    target_s: float = 0.1
    batch_s: float = 0.03
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
    rare: float = 0.001

    def fill_at(self, a_second: float) -> float:
        """Messages in a batch, at so many a second."""
        return self.fill if self.fill is not None else min(FULL_BATCH, max(1.0, a_second))


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the benchmarks have measured. paths: units of a job by `{ring}, {delivery}` and with `, keyed`, in full batches.

    fire: of an occurrence. log_bytes: that an execution writes, of a near and of a far one, and a tick. promoted_a_second: jobs, by one vCPU.
    audit_line, audit_line_kept: bytes of a line of the audit trail, as it is sent and as it is compressed. emitted: names of metrics that
    get a value, by what gives it: an `idle` minute, a `request`, a `near` or `far` job, a `fire`, a `retry`.
    """

    paths: Mapping[str, Units]
    fire: Units
    tick: Units
    mark: Units
    payload: int
    log_bytes: Mapping[str, float]
    promoted_a_second: float
    audit_line: float
    audit_line_kept: float
    emitted: Mapping[str, Collection[str]]


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What a stage consists of. memory: MB by function. log_days: how long lines are kept. metrics: all that it can emit.

    limited_sources, unlimited_sources: event sources of SQS with a maximum concurrency, and without one. pollers: the
    provisioned ones of all others, while there is nothing to do. ready: workers that are kept started.
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


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the bill: so many units of one kind. is_assumed: an assumption goes into it."""

    service: str
    what: str
    quantity: float
    unit: str
    usd: float
    is_assumed: bool = False


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
    def usd_a_million(self) -> float | None:
        """Of a million executions; None where there are none."""
        return self.usd / self.executions * 1e6 if self.executions else None
