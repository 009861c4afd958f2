"""What the services of AWS allow and how long they take: every number that the simulation takes from outside.

Each has its unit and its source; those that nobody publishes are called assumptions. They are printed in every report.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple

_PARTITIONS = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"
_HEAT = "AWS Database Blog, Scaling DynamoDB, parts 2 and 3"
_ON_DEMAND = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html"
_TABLES = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"
_SQS = "SQS developer guide, quotas"
_ESM = "https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html"
_LATENCY = "bitesizedserverless.com, Serverless Messaging: Latency Compared (2022, 1,024 samples)"
_CPU = "measured on one core with boto3 1.44, on loopback without TLS"
_CONCURRENCY = "https://docs.aws.amazon.com/lambda/latest/dg/lambda-concurrency.html"
_GATEWAY = "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html"
_CALLS = "python -m bench calls"
_LOGS = "python -m bench logs"
_FIREHOSE = "https://docs.aws.amazon.com/firehose/latest/dev/limits.html"
_ADAPTER = "functions/adapters/clients.py"
_ASSUMED = "assumption: not published"


def _known(value: float, unit: str, source: str) -> float:
    return field(default=value, metadata={"unit": unit, "source": source})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits and latencies of the services. Latencies are lognormal, given by their p50 and p99."""

    partition_write_units: float = _known(1_000, "write units/s", _PARTITIONS)
    partition_read_units: float = _known(3_000, "read units/s", _PARTITIONS)
    partition_gb: float = _known(10, "GB", _HEAT)
    table_units: float = _known(
        40_000, "units/s of a table, of reads and of writes; default quota, adjustable", _TABLES
    )
    grown_peak: float = _known(2, "times its highest use so far that a table takes at once", _ON_DEMAND)
    quota_window: float = _known(
        5, "s over which the use of a quota is looked at", "assumption: in one second a sample comes in lumps"
    )
    read_unit_bytes: float = _known(4_096, "bytes", "DynamoDB developer guide, read consistency: halved if eventual")
    store_p50: float = _known(0.005, "s", f"{_ASSUMED}; single-digit milliseconds")
    store_p99: float = _known(0.025, "s", _ASSUMED)
    store_tries: float = _known(3, "tries of a throttled call", "botocore, standard retry mode")
    store_pause: float = _known(0.05, "s before the second try, doubled, with full jitter", "botocore, retry modes")
    transaction_calls: float = _known(
        2, "calls whose time a transaction of writes takes", "assumption: it prepares, then commits"
    )
    conflict_pause: float = _known(
        0.06, "s before a transaction that met another is tried again, doubled, with full jitter", _ADAPTER
    )
    conflict_pause_most: float = _known(0.5, "s, at most", _ADAPTER)
    send_p50: float = _known(0.012, "s", f"{_ASSUMED}; SendMessageBatch")
    send_p99: float = _known(0.050, "s", f"{_ASSUMED}; SendMessageBatch")
    batch_messages: float = _known(10, "messages", _SQS)
    in_flight: float = _known(120_000, "messages of a standard queue", _SQS)
    noisy_share: float = _known(0.10, "of the messages in flight", "SQS developer guide, fair queues")
    noisy_least: float = _known(30, "messages in flight", "SQS developer guide, fair queues")
    delivery_p50: float = _known(0.0162, "s", _LATENCY)
    delivery_p99: float = _known(0.105, "s", _LATENCY)
    source_start: float = _known(5, "concurrent invocations", _ESM)
    source_growth: float = _known(300 / 60, "concurrent invocations a second", _ESM)
    source_most: float = _known(1_250, "concurrent invocations of an event source without a maximum", _ESM)
    provisioned_growth: float = _known(1_000 / 60, "concurrent invocations a second, in provisioned mode", _ESM)
    provisioned_polls: float = _known(1, "polls/s for each of its concurrent invocations: 10 of a poller", _ESM)
    concurrency: float = _known(
        1_000,
        "functions at the same time, default quota, adjustable; less in a new account",
        "https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
    )
    new_environments: float = _known(100, "environments a second: 1,000 each 10 s", _CONCURRENCY)
    environments_saved: float = _known(10, "s of which they may start at once", _CONCURRENCY)
    idle_life: float = _known(600, "s that an idle environment lives", _ASSUMED)
    cold_p50: float = _known(0.40, "s", f"{_ASSUMED}; Python initialisation of 150 to 400 ms, and the sandbox")
    cold_p99: float = _known(1.20, "s", _ASSUMED)
    vcpu_mb: float = _known(1_769, "MB of memory that come with one CPU", "Lambda developer guide, memory")
    tick_jitter: float = _known(30, "s into its minute, at most", f"{_ASSUMED}; what LOOKAHEAD is made for")
    store_call_cpu: float = _known(0.00085, "CPU seconds of a call", _CPU)
    send_call_cpu: float = _known(0.00119, "CPU seconds of a batch of 10", _CPU)
    call_kept_cpu: float = _known(0.00139, "CPU seconds of a call of an HTTPS target, on a kept connection", _CALLS)
    call_new_cpu: float = _known(0.00295, "CPU seconds of one on a new connection, with its TLS handshake", _CALLS)
    kept_hosts: float = _known(10, "hosts whose connections a process keeps", "urllib3, num_pools of a PoolManager")
    log_line_cpu: float = _known(0.00003, "CPU seconds of a line of the log", _CALLS)
    gateway_rate: float = _known(10_000, "requests/s of all APIs of an account, default quota, adjustable", _GATEWAY)
    gateway_burst: float = _known(5_000, "requests at once, beside them", _GATEWAY)
    gateway_p50: float = _known(0.010, "s that the gateway adds", _ASSUMED)
    gateway_p99: float = _known(0.050, "s that the gateway adds", _ASSUMED)
    request_cpu: float = _known(0.020, "CPU seconds of a request", "assumption of docs/cost.md, all of it CPU")
    submission_cpu: float = _known(
        0.002, "CPU seconds of each of its jobs", "assumption of docs/cost.md, all of it CPU"
    )
    near_log: float = _known(618, "bytes of log of an execution, its metrics included", _LOGS)
    far_log: float = _known(662, "bytes of log of one that was promoted", _LOGS)
    tick_log: float = _known(903, "bytes of log of a tick", _LOGS)
    request_log: float = _known(714, "bytes of log of a request", _LOGS)
    firehose_requests: float = _known(2_000, "requests/s of a stream, default quota, adjustable", _FIREHOSE)
    firehose_bytes: float = _known(5 * 2**20, "bytes/s of a stream, default quota in the largest regions", _FIREHOSE)
    sorted_set_moves: float = _known(20_000, "jobs/s of one poller of a sorted set", f"{_ASSUMED}; in batches")
    page_row_cpu: float = _known(0.0000214, "CPU seconds of a row that is read", _CPU)


@dataclass(frozen=True, slots=True)
class Known:
    """A limit as a report shows it."""

    name: str
    value: float
    unit: str
    source: str


def known(limits: Limits) -> list[Known]:
    """Every limit with where it comes from."""
    return [
        Known(each.name, getattr(limits, each.name), each.metadata["unit"], each.metadata["source"])
        for each in fields(limits)
    ]


class Latency(NamedTuple):
    """A lognormal duration, in seconds."""

    p50: float
    p99: float
