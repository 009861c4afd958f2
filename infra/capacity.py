"""What a stage needs of the quotas of an account and region, by itself or at so many executions a second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from infra.queue_sources import BATCH_SIZE
from infra.stage import Stage
from infra.throughput import MAX_CONCURRENCY, SOURCE_MOST
from infra.ticks import TARGETS_PER_RULE

_DOCS = "https://docs.aws.amazon.com"

_SMALL_GATEWAYS = (
    *("af-south-1", "eu-south-1", "ap-southeast-3", "me-central-1", "ap-south-2", "ap-southeast-4", "eu-south-2"),
    *("eu-central-2", "il-central-1", "ca-west-1", "ap-southeast-5", "ap-southeast-7", "mx-central-1"),
)
"""Cape Town, Milan, Jakarta, UAE, Hyderabad, Melbourne, Spain, Zurich, Tel Aviv, Calgary, Malaysia, Thailand, Mexico."""

_LARGE_STREAMS = ("us-east-1", "us-west-2", "eu-west-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One of AWS's, for an account and region.

    service, code: of Service Quotas; code is None where that does not have it, and a support case raises it. default: what
    AWS gives, in the regions of `elsewhere` another value. page: where AWS says so.
    """

    name: str
    service: str
    code: str | None
    default: float
    page: str
    elsewhere: Mapping[str, float] = field(default_factory=dict, hash=False)
    is_adjustable: bool = True

    def default_in(self, region: str) -> float:
        """What a new account has there, if AWS did not lower it."""
        return self.elsewhere.get(region, self.default)


CONCURRENCY = Quota(
    name="Lambda, concurrent invocations",
    service="lambda",
    code="L-B99A9384",
    default=1_000,  # a new account may have 10
    page=f"{_DOCS}/lambda/latest/dg/gettingstarted-limits.html",
)
UNRESERVED = Quota(
    name="Lambda, concurrent invocations that no function has reserved",
    service="lambda",
    code="L-B99A9384",  # what is reserved is a part of the same
    default=1_000,
    page=f"{_DOCS}/lambda/latest/dg/provisioned-concurrency.html",
)
TABLE_WRITES = Quota(
    name="DynamoDB, write units a second and table",
    service="dynamodb",
    code="L-AB614373",
    default=40_000,
    page=f"{_DOCS}/amazondynamodb/latest/developerguide/ServiceQuotas.html",
)
TABLE_READS = Quota(
    name="DynamoDB, read units a second and table",
    service="dynamodb",
    code="L-CF0CBE56",
    default=40_000,
    page=f"{_DOCS}/amazondynamodb/latest/developerguide/ServiceQuotas.html",
)
REQUESTS = Quota(
    name="API Gateway, requests a second",
    service="apigateway",
    code="L-8A5B8E43",
    default=10_000,
    elsewhere=dict.fromkeys(_SMALL_GATEWAYS, 2_500),
    page=f"{_DOCS}/apigateway/latest/developerguide/limits.html",
)
BURST = Quota(
    name="API Gateway, requests at once",
    service="apigateway",
    code="L-CDF5615A",
    default=5_000,
    elsewhere=dict.fromkeys(_SMALL_GATEWAYS, 1_250),
    page=f"{_DOCS}/apigateway/latest/developerguide/limits.html",
    is_adjustable=False,  # AWS raises it with the requests a second
)
IN_FLIGHT = Quota(
    name="SQS, messages in flight a queue",
    service="sqs",
    code=None,
    default=120_000,
    page=f"{_DOCS}/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
)
RULES = Quota(
    name="EventBridge, rules a bus",
    service="events",
    code="L-244521F2",
    default=300,
    elsewhere={"af-south-1": 100, "eu-south-1": 100},
    page=f"{_DOCS}/eventbridge/latest/userguide/eb-quota.html",
)
STREAM_REQUESTS = Quota(
    name="Firehose, requests a second and stream",
    service="firehose",
    code=None,
    default=1_000,
    elsewhere=dict.fromkeys(_LARGE_STREAMS, 2_000),
    page=f"{_DOCS}/firehose/latest/dev/limits.html",
)
STREAM_BYTES = Quota(
    name="Firehose, MiB a second and stream",
    service="firehose",
    code=None,
    default=1,
    elsewhere=dict.fromkeys(_LARGE_STREAMS, 5),
    page=f"{_DOCS}/firehose/latest/dev/limits.html",
)

QUOTAS = (CONCURRENCY, TABLE_WRITES, TABLE_READS, REQUESTS, BURST, IN_FLIGHT, RULES, STREAM_REQUESTS, STREAM_BYTES)

LEFT_UNRESERVED = 100
"""Concurrent invocations that AWS leaves to functions without any of their own, so that the others have the rest:
https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html. An account of 10 must leave all of them, and is refused
provisioned concurrency: https://github.com/anomalyco/sst/issues/5829."""

PARTITION_WRITES = 1_000
"""Write units a second of one partition: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"""

OTHER_RULES = 2
"""Those of the sweeper and of operations."""

REQUESTS_OF_A_STAGE = 20
"""A second: 10,000 jobs, in requests of 500."""

JOBS_A_REQUEST = 25
"""Where somebody asks for so many executions a second: what the cost page assumes, too."""

LEDGER_WRITES = 2
"""Units of an execution that is `exactly_once`, measured by `make bench`: its claim and its end."""

AUDIT_LINE_BYTES = 490
"""Of an execution, measured by `make bench`."""

_SIMULATED_RATE = 100_000
_SIMULATED_SHARDS = 512
SIMULATED_INVOCATIONS = 5_632
"""The most that the scenario `executions` of the simulation (docs/simulation.md) had at once: `tickwheel simulate executions --reduced`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """least: of the quota. because: what it is made of, for people. is_deployed: less than it stops a deployment.

    instead: what makes the stage need less.
    """

    quota: Quota
    least: float
    because: str
    is_deployed: bool = False
    instead: str = ""


def needed_quotas(stage: Stage, *, executions: float | None = None) -> Sequence[Need]:
    """What the stage may use as it is set, and what so many executions a second need beyond that."""
    return _of_settings(stage) if executions is None else _at_rate(stage, executions)


def _of_settings(stage: Stage) -> Sequence[Need]:
    workers = sum(limit or 0 for limit in stage.workers)
    shards = stage.wheel.scan_shards
    consumers = stage.concurrency - workers - shards
    most = max(SOURCE_MOST if limit is None else limit for limit in stage.workers)
    return (
        Need(
            quota=CONCURRENCY,
            least=stage.concurrency,
            because=f"{workers:,} workers, {shards} scanners, {consumers} for dead letters",
        ),
        *_of_ready_workers(stage),
        *_of_tables(stage),
        Need(quota=REQUESTS, least=REQUESTS_OF_A_STAGE, because="10,000 jobs, 500 a request"),
        Need(quota=BURST, least=REQUESTS_OF_A_STAGE, because="those of one second at once"),
        Need(quota=IN_FLIGHT, least=most * BATCH_SIZE, because=f"{most} workers with {BATCH_SIZE} messages each"),
        Need(quota=RULES, least=_rules(shards), because=f"{TARGETS_PER_RULE} shards a rule, and {OTHER_RULES} others"),
    )


def _of_ready_workers(stage: Stage) -> Sequence[Need]:
    ready = stage.ready_critical
    if not ready:
        return ()
    because = f"ready_critical is {ready}, and AWS leaves {LEFT_UNRESERVED} to all functions"
    return (
        Need(
            quota=UNRESERVED,
            least=ready + LEFT_UNRESERVED,
            because=because,
            is_deployed=True,
            instead="set ready_critical of the stage to 0",
        ),
    )


def _of_tables(stage: Stage) -> Sequence[Need]:
    warm = stage.warm_throughput.values()
    if not warm:
        shards = stage.wheel.scan_shards
        writes = min(shards * PARTITION_WRITES, TABLE_WRITES.default)
        return (Need(quota=TABLE_WRITES, least=writes, because=f"{PARTITION_WRITES:,} for each of {shards} shards"),)
    # DynamoDB refuses to warm a table beyond its quota: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
    because = "the warm throughput of a table"
    return (
        Need(quota=TABLE_WRITES, least=max(table.writes for table in warm), because=because, is_deployed=True),
        Need(quota=TABLE_READS, least=max(table.reads for table in warm), because=because, is_deployed=True),
    )


def _at_rate(stage: Stage, rate: float) -> Sequence[Need]:
    invocations = math.ceil(rate * SIMULATED_INVOCATIONS / _SIMULATED_RATE)
    shards = max(stage.wheel.scan_shards, math.ceil(rate * _SIMULATED_SHARDS / _SIMULATED_RATE))
    consumers = MAX_CONCURRENCY.start * len(stage.max_concurrency)
    requests = math.ceil(rate / JOBS_A_REQUEST)
    batches = math.ceil(rate / BATCH_SIZE)
    mebibytes = rate * AUDIT_LINE_BYTES / 2**20
    at_rate = (
        Need(
            quota=CONCURRENCY,
            least=invocations + shards + consumers,
            because=f"{invocations:,} workers, {shards} scanners, {consumers} for dead letters",
        ),
        Need(
            quota=TABLE_WRITES,
            least=rate * LEDGER_WRITES,
            because=f"{LEDGER_WRITES} an execution, in the ledger",
        ),
        Need(quota=REQUESTS, least=requests, because=f"if all are submitted, {JOBS_A_REQUEST} jobs a request"),
        Need(quota=BURST, least=requests, because="those of one second at once"),
        Need(
            quota=IN_FLIGHT,
            least=invocations * BATCH_SIZE,
            because=f"{BATCH_SIZE} messages a worker, if all jobs are of one class",
        ),
        Need(
            quota=RULES,
            least=_rules(shards),
            because=f"{TARGETS_PER_RULE} of {shards} shards a rule, and {OTHER_RULES}",
        ),
        Need(quota=STREAM_REQUESTS, least=batches, because=f"one for {BATCH_SIZE} executions"),
        Need(quota=STREAM_BYTES, least=mebibytes, because=f"{AUDIT_LINE_BYTES} bytes an execution"),
    )
    own = {need.quota: need for need in _of_settings(stage)}
    greater = [max(need, own.pop(need.quota, need), key=lambda each: each.least) for need in at_rate]
    return (*greater, *own.values())


def _rules(shards: int) -> int:
    return math.ceil(shards / TARGETS_PER_RULE) + OTHER_RULES
