"""What a month of a stage costs, line by line: arithmetic alone. What others cost is beside it, in `bench/cost_others.py`.

A month is 30 days. Taxes, support, what targets cost, and the network between regions are left out.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.budgets import Units
from bench.cost_fill import FULL_BATCH, POLLS_A_SECOND, Source, likely_batches
from bench.cost_terms import DAYS, Assumed, Bill, Deployed, Line, Measured, Processor, Workload, billed
from bench.cost_traces import traces
from bench.prices import FreeTier
from functions.domain.far_ring.schedule_alarm import ALARM_LIFE
from functions.domain.jobs.claims import LEDGER_LIFE, TIMER_LIFE

MINUTES = DAYS * 24 * 60
SECONDS = MINUTES * 60
HOURS = DAYS * 24
POLLS = SECONDS / 20
"""Of a poller that receives nothing: it waits for 20 seconds each time."""
GB = 1e9

TIMER_DAYS = TIMER_LIFE.days
"""A far row is kept so long after it was due."""
ALARM_DAYS = ALARM_LIFE.days
"""The alarm row of a fire, likewise."""
LEDGER_DAYS = LEDGER_LIFE.days
"""A ledger row, after its last change."""
STORED_OVERHEAD = 100
"""Bytes that DynamoDB bills for each row beside what it holds."""

INLINE = 8_192
"""A larger payload is an object of S3."""
UNIT = 1_024
BILLED_MESSAGE = 65_536
READ_UNIT = 4_096
AUDIT_STEP = 5_120
"""Bytes: Firehose bills a record as if it were a multiple of this."""
AUDIT_DAYS = 400

UNLIMITED_POLLERS = 2
"""Of an event source that has nothing to do, and no maximum concurrency.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"""
LEDGER_CALLS = {"exactly_once": 2, "at_most_once": 1, "at_least_once": 0}
"""Requests to DynamoDB by which an attempt is claimed and settled, one after the other."""

VCPU = 1_769
"""MB with which a function has one, and with less its share: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html"""

DASHBOARD_METRICS = 50
"""Of a dashboard that a free tier covers, at most: https://aws.amazon.com/cloudwatch/pricing/"""

KNOWLEDGE_SECONDS = 30
PULSE_WRITES = 6
"""Of a process that is busy, a minute: functions/services/telemetry/pulse.py."""
TALLIED = 200
"""Jobs of a tenant that are counted by one write: functions/services/telemetry/usage.py."""

SWEEPS = MINUTES / 5
"""Passes over the states of all schedules."""

PAGE = 500
"""Rows of the table of tenants that each of the two looks at in a minute, once it has so many: functions/sweeper/."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A stage under some work. prices: USD of one unit. free: what of the units is free each month."""

    deployed: Deployed
    measured: Measured
    prices: Mapping[str, float]
    free: Sequence[FreeTier] = ()
    assumed: Assumed = Assumed()  # noqa: RUF009  frozen

    def bill(self, work: Workload) -> Bill:
        """What Tickwheel costs."""
        lines = [
            *self._tables(work),
            *self._storage(work),
            *self._queues(work),
            *self._functions(work),
            self.line("API Gateway", "requests", self._requests(work), "http_api_request"),
            self.line("EventBridge", "ticks by rules on the default bus", self._ticks, None),
            *self._watching(work),
            self.line("Secrets Manager", "the secret of webhooks", self.deployed.secrets, "secret"),
            self.line("KMS", "the key of the topics", self.deployed.keys, "kms_key"),
            *self._payloads(work),
            *self._audit(work),
        ]
        return self.billed(lines, work)

    def billed(self, lines: Sequence[Line], work: Workload) -> Bill:
        """The bill of these lines."""
        return billed(lines, self.free, executions=work.executions)

    def line(self, service: str, what: str, quantity: float, unit: str | None, *, is_assumed: bool = False) -> Line:
        """unit: of which there is a price; None for what is free."""
        usd = quantity * self.prices[unit] if unit else 0.0
        return Line(service=service, what=what, quantity=quantity, unit=unit or "free", usd=usd, is_assumed=is_assumed)

    @property
    def _ticks(self) -> float:
        """Of all shards, the sweeper and the operations."""
        return (self.deployed.shards + 2) * MINUTES

    def fill(self, work: Workload) -> float:
        """Messages of a worker's batch, of all classes together."""
        a_second = work.attempts / SECONDS
        if self.assumed.fill is not None or not a_second:
            return self.assumed.fill or 1.0
        sources = [Source.of(provisioned) for provisioned in self.deployed.class_pollers]
        kept = partial(self.kept_s, work, self.measured.worker)
        return a_second / likely_batches(a_second, shares=work.class_shares, sources=sources, seconds_of=kept)

    def kept_s(self, work: Workload, worker: Processor, fill: float) -> float:
        """For how long a batch of so many messages keeps the poller that received it."""
        return self.assumed.received_s + self.batch_s(work, worker, fill) + self.held_s(work, fill)

    def batch_s(self, work: Workload, worker: Processor, fill: float) -> float:
        """How long a batch takes: its jobs share a vCPU, or what of one the function has, and wait side by side."""
        assumed, calls = self.assumed, LEDGER_CALLS[work.delivery]
        if assumed.batch_s is not None:
            return assumed.batch_s + assumed.target_s
        share = min(1.0, self.deployed.memory["worker"] / VCPU)
        return assumed.invocation_s + calls * assumed.call_s + fill * worker.of(calls) / share + assumed.target_s

    def held_s(self, work: Workload, fill: float) -> float:
        """How long a batch waits for the instant of an `exact` job, on average: not at all where it has none."""
        return self.assumed.hold_s * (1 - (1 - work.exact_share) ** fill)

    def _requests(self, work: Workload) -> float:
        return work.jobs / work.batch + work.look_ups * work.jobs

    def _units(self, work: Workload) -> Units:
        """Of an average job."""
        paths, far, keyed = self.measured.paths, work.far_share, work.keyed_share
        total = Units(0, 0, 0)
        for ring, share in (("far", far), ("near", 1 - far)):
            for suffix, part in ((", keyed", keyed), ("", 1 - keyed)):
                units = paths[f"{ring}, {work.delivery}{suffix}"]
                scale = share * part
                total += Units(units.writes * scale, units.reads * scale, units.sqs_requests * scale)
        return total

    def far_row(self, work: Workload) -> float:
        """Bytes of a far row: what a job's share of a page was, with another payload."""
        measured = self.measured.paths["far, at_least_once"].reads * 2 * READ_UNIT
        return measured - self.measured.payload + (work.payload if work.payload <= INLINE else 0)

    def _tables(self, work: Workload) -> list[Line]:
        units, row, far = self._units(work), self.far_row(work), work.jobs * work.far_share
        larger = max(0, math.ceil(row / UNIT) - 1)
        longer = max(0.0, row - self.far_row(replace(work, payload=self.measured.payload))) / READ_UNIT / 2
        ledgered = 2 if work.delivery == "exactly_once" else 0
        shards, marked = self.deployed.shards * MINUTES, work.tenants * DAYS
        fill = self.fill(work)
        busy_s = self.batch_s(work, self.measured.worker, fill) + self.held_s(work, fill)
        processes = max(1.0, work.attempts / SECONDS / fill * busy_s)
        # Where there are few: a request at once, whose jobs are of one tenant, and each attempt.
        at_once = work.jobs / work.batch + work.attempts
        tallied = min(at_once, max(2 * work.executions / TALLIED, work.tenants * MINUTES))
        audited = self.deployed.audit_sample * (far * (row / READ_UNIT / 2 + 0.5) + shards / 2)
        swept = SWEEPS * work.schedules * self.assumed.state_row / READ_UNIT / 2
        writes = [
            ("jobs", work.jobs * units.writes + far * larger, False),
            ("fires of schedules", work.fires * self.measured.fire.writes, False),
            ("retries", work.executions * work.retries * ledgered, False),
            ("idle shards: leases and checkpoints", shards * self.measured.tick.writes, False),
            ("the sweeper: conditions and places", 3 * MINUTES, False),
            ("marks of tenants' days", marked * self.measured.mark.writes, False),
            ("usage by tenant", tallied, True),
            ("the pulse", min(work.executions, processes * PULSE_WRITES * MINUTES), True),
        ]
        reads = [
            ("jobs", work.jobs * units.reads + far * longer, False),
            ("fires of schedules", work.fires * self.measured.fire.reads, False),
            ("idle shards", shards * self.measured.tick.reads, False),
            ("the audit of ended buckets", audited, False),
            ("the sweep of schedules", swept, True),
            ("the sweeps of flows and collections", MINUTES * 2 * PAGE * self.assumed.tenant_row / READ_UNIT / 2, True),
            ("the sweeper: cursors", shards / 2, False),
            ("what processes know", min(work.executions, processes * SECONDS / KNOWLEDGE_SECONDS), True),
            ("look-ups", work.look_ups * work.jobs, False),
        ]
        return [
            *(
                self.line("DynamoDB", f"writes: {what}", count, "dynamodb_write_unit", is_assumed=assumed)
                for what, count, assumed in writes
            ),
            *(
                self.line("DynamoDB", f"reads: {what}", count, "dynamodb_read_unit", is_assumed=assumed)
                for what, count, assumed in reads
            ),
        ]

    def _storage(self, work: Workload) -> list[Line]:
        far, assumed = work.jobs_a_day * work.far_share, self.assumed
        fires = work.fires / DAYS
        ledgered = 0 if work.delivery == "at_least_once" else work.jobs_a_day
        held = {
            "far rows": (far * (TIMER_DAYS + work.wait_days) + fires * ALARM_DAYS, self.far_row(work)),
            "ledger": ((ledgered + fires) * LEDGER_DAYS, assumed.ledger_row),
            "schedules": (work.schedules, assumed.definition_row + assumed.state_row + STORED_OVERHEAD),
        }
        gb = {what: rows * (size + STORED_OVERHEAD) / GB for what, (rows, size) in held.items()}
        return [
            *(
                self.line("DynamoDB", f"storage: {what}", held, "dynamodb_gb_month", is_assumed=what != "far rows")
                for what, held in gb.items()
            ),
            self.line(
                "DynamoDB", "point-in-time recovery of all", sum(gb.values()), "dynamodb_pitr_gb_month", is_assumed=True
            ),
        ]

    def _queues(self, work: Workload) -> list[Line]:
        fill = self.fill(work)
        chunks = math.ceil(fill * min(self.far_row(work), INLINE + UNIT) / BILLED_MESSAGE)
        far_a_minute = (work.jobs * work.far_share + work.fires) / MINUTES / self.deployed.shards
        near, far = work.jobs * (1 - work.far_share), work.jobs * work.far_share + work.fires
        sends = near / min(FULL_BATCH, work.batch) + far / min(FULL_BATCH, max(1.0, far_a_minute))
        sent, taken = (sends + work.executions * work.retries) * chunks, 2 * work.attempts / fill * chunks
        deployed = self.deployed
        idle = (
            deployed.limited_sources * self.assumed.pollers
            + deployed.unlimited_sources * UNLIMITED_POLLERS
            + deployed.pollers
        )
        return [
            self.line("SQS", "sends", sent, "sqs_request"),
            self.line("SQS", "receives and deletes", taken, "sqs_request", is_assumed=True),
            self.line("SQS", "both, for their message groups", sent + taken, "sqs_fair_request", is_assumed=True),
            self.line("SQS", "receives of nothing", idle * POLLS, "sqs_request", is_assumed=True),
        ]

    def worker(self, work: Workload) -> list[Line]:
        """What runs the jobs, and waits for those that are `exact`."""
        fill = self.fill(work)
        batches = work.attempts / fill
        held = batches * self.held_s(work, fill) * self.deployed.memory["worker"] / UNIT
        return [
            *self.batches(batches, each_s=self.batch_s(work, self.measured.worker, fill)),
            self.line("Lambda", "GB-s: worker, waiting for `exact` jobs", held, "lambda_gb_second", is_assumed=True),
        ]

    def batches(self, count: float, *, each_s: float) -> list[Line]:
        """Invocations of a worker of this stage's size."""
        memory = self.deployed.memory["worker"] / UNIT
        return [
            self.line("Lambda", "requests: worker", count, "lambda_request", is_assumed=True),
            self.line("Lambda", "GB-s: worker", count * each_s * memory, "lambda_gb_second", is_assumed=True),
            self._starts("worker", count * memory),
        ]

    def _starts(self, functions: str, invocations: float) -> Line:
        """Of new environments, billed since August 2025. invocations: each by the GB that its function has.

        https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/
        """
        seconds = invocations * self.assumed.cold * self.assumed.start_s
        return self.line("Lambda", f"GB-s: starts, {functions}", seconds, "lambda_gb_second", is_assumed=True)

    def _pollers(self, work: Workload) -> float:
        """Provisioned, on average: those that are always there, or as many as receive what is executed."""
        if not self.deployed.pollers:
            return 0
        return max(self.deployed.pollers, work.attempts / SECONDS / (self.fill(work) * POLLS_A_SECOND))

    def _functions(self, work: Workload) -> list[Line]:
        memory = {name: megabytes / UNIT for name, megabytes in self.deployed.memory.items()}
        promoted = (work.jobs * work.far_share + work.fires) / self.measured.promoted_a_second
        requests, assumed = self._requests(work), self.assumed
        api_s = requests * assumed.request_s + work.jobs * assumed.submission_s
        # With less than a vCPU a tick takes longer, and costs the same.
        vcpu = max(memory["scanner"], VCPU / UNIT)
        scanner = self.deployed.shards * MINUTES * assumed.tick_s * memory["scanner"] + promoted * vcpu
        ticked = MINUTES * (assumed.sweep_s * memory["sweeper"] + assumed.tick_s * memory["operations"])
        ticks = MINUTES * (self.deployed.shards * memory["scanner"] + memory["sweeper"] + memory["operations"])
        return [
            *self.worker(work),
            self.line("Lambda", "requests: API", requests, "lambda_request"),
            self.line("Lambda", "GB-s: API", api_s * memory["api"], "lambda_gb_second", is_assumed=True),
            self.line("Lambda", "requests: ticks", self._ticks, "lambda_request"),
            self.line("Lambda", "GB-s: scanner", scanner, "lambda_gb_second", is_assumed=True),
            self.line("Lambda", "GB-s: sweeper, operations", ticked, "lambda_gb_second", is_assumed=True),
            self._starts("API and ticks", requests * memory["api"] + ticks),
            self.line(
                "Lambda", "provisioned pollers, hours", self._pollers(work) * HOURS, "poller_hour", is_assumed=True
            ),
            self.line(
                "Lambda",
                "GB-s: workers kept started",
                self.deployed.ready * memory["worker"] * SECONDS,
                "ready_gb_second",
            ),
        ]

    def _watching(self, work: Workload) -> list[Line]:
        deployed, log = self.deployed, self.measured.log_bytes
        far = work.jobs * work.far_share + work.fires
        invocations = {
            "worker": work.attempts / self.fill(work),
            "api": self._requests(work),
            "scanner": deployed.shards * MINUTES,
            "sweeper": MINUTES,
            "operations": MINUTES,
        }
        logged = (
            far * log["far"]
            + (work.executions - far) * log["near"]
            + self._ticks * log["tick"]
            + self._requests(work) * (log["request"] + self.assumed.access_log_line)
            + sum(invocations.values()) * self.assumed.log_line_of_lambda
        )
        traced = sum(self.traces(count) for function, count in invocations.items() if function in deployed.traced)
        is_large = deployed.metrics_of_a_dashboard > DASHBOARD_METRICS
        return [
            *self.logs(logged),
            self.line("CloudWatch", "metrics, by hours with values", self._metrics(work), "metric", is_assumed=True),
            self.line("CloudWatch", "alarms, by their metrics", deployed.alarm_metrics, "alarm_metric"),
            self.line("CloudWatch", "composite alarms", deployed.composite_alarms, "composite_alarm"),
            self.line(
                "CloudWatch",
                "dashboard",
                deployed.dashboards,
                "dashboard_of_many_metrics" if is_large else "dashboard",
            ),
            self.line("X-Ray", "traces", traced, "xray_trace", is_assumed=True),
        ]

    def traces(self, invocations: float) -> float:
        """Of one function that begins its traces."""
        return traces(invocations, seconds=SECONDS, sampled=self.assumed.traced)

    def logs(self, written: float) -> list[Line]:
        """So many bytes, as they come and as they are kept."""
        kept = written / GB * self.deployed.log_days / DAYS
        return [
            self.line("CloudWatch", "logs in", written / GB, "log_gb", is_assumed=True),
            self.line("CloudWatch", "logs kept", kept, "log_gb_month", is_assumed=True),
        ]

    def _metrics(self, work: Workload) -> float:
        """Metrics, of which CloudWatch bills the hours in which they have a value: values come at any time of the month."""
        far = work.jobs * work.far_share
        causes = {
            "idle": MINUTES,
            "request": work.jobs / work.batch,
            "near": work.jobs - far,
            "far": far,
            "fire": work.fires,
            "retry": work.attempts - work.executions,
        }
        values: dict[str, float] = defaultdict(float)
        for cause, names in self.measured.emitted.items():
            for name in names:
                values[name] += causes[cause]
        others = self.deployed.metrics - len(values)
        hours = sum(_hours_with(count) for count in values.values())
        return (hours + others * _hours_with(work.executions * self.assumed.rare)) / HOURS

    def _audit(self, work: Workload) -> list[Line]:
        fill = self.fill(work)
        steps = math.ceil(fill * self.measured.audit_line / AUDIT_STEP)
        kept = work.executions / DAYS * AUDIT_DAYS * self.measured.audit_line_kept / GB
        return [
            self.line(
                "Firehose", "the audit trail, in 5 KB", work.executions / fill * steps, "firehose_5_kb", is_assumed=True
            ),
            self.line("S3", "the audit trail, once it is 400 days old", kept, "s3_gb_month"),
        ]

    def _payloads(self, work: Workload) -> list[Line]:
        if work.payload <= INLINE:
            return []
        objects = work.jobs
        kept = work.jobs_a_day * (work.far_share * work.wait_days) * work.payload / GB
        return [
            self.line("S3", "payloads put", objects, "s3_put"),
            self.line("S3", "payloads read", work.attempts - work.fires, "s3_get"),
            self.line("S3", "payloads kept", kept, "s3_gb_month"),
        ]


def _hours_with(values: float) -> float:
    """Hours of a month that have one of so many values, each at an instant that has nothing to do with the others."""
    return -math.expm1(-values / HOURS) * HOURS
