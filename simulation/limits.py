"""What the services of AWS allow and how long they take: every number that the simulation takes from outside.

Each has its unit and its source; those that nobody publishes are called assumptions. They are printed in every report.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple

_PARTITIONS = "DynamoDB developer guide, best practices for partition keys"
_HEAT = "AWS Database Blog, Scaling DynamoDB, parts 2 and 3"
_SQS = "SQS developer guide, quotas"
_ESM = "Lambda developer guide, scaling of SQS event sources"
_LATENCY = "bitesizedserverless.com, Serverless Messaging: Latency Compared (2022, 1,024 samples)"
_CPU = "measured on one core with boto3 1.44, on loopback without TLS"
_ASSUMED = "assumption: not published"


def _known(value: float, unit: str, source: str) -> float:
    return field(default=value, metadata={"unit": unit, "source": source})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits and latencies of the services. Latencies are lognormal, given by their p50 and p99."""

    partition_write_units: float = _known(1_000, "write units/s", _PARTITIONS)
    partition_read_units: float = _known(3_000, "read units/s", _PARTITIONS)
    partition_gb: float = _known(10, "GB", _HEAT)
    table_units: float = _known(40_000, "units/s, default quota, adjustable", "DynamoDB developer guide, quotas")
    read_unit_bytes: float = _known(4_096, "bytes", "DynamoDB developer guide, read consistency: halved if eventual")
    store_p50: float = _known(0.005, "s", f"{_ASSUMED}; single-digit milliseconds")
    store_p99: float = _known(0.025, "s", _ASSUMED)
    store_tries: float = _known(3, "tries of a throttled call", "botocore, standard retry mode")
    store_pause: float = _known(0.05, "s before the second try, doubled, with full jitter", "botocore, retry modes")
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
    source_most: float = _known(1_250, "concurrent invocations of an event source", _ESM)
    new_environments: float = _known(
        100, "environments a second: 1,000 each 10 s", "Lambda developer guide, concurrency"
    )
    idle_life: float = _known(600, "s that an idle environment lives", _ASSUMED)
    cold_p50: float = _known(0.40, "s", f"{_ASSUMED}; Python initialisation of 150 to 400 ms, and the sandbox")
    cold_p99: float = _known(1.20, "s", _ASSUMED)
    vcpu_mb: float = _known(1_769, "MB of memory that come with one CPU", "Lambda developer guide, memory")
    tick_jitter: float = _known(30, "s into its minute, at most", f"{_ASSUMED}; what LOOKAHEAD is made for")
    store_call_cpu: float = _known(0.00085, "CPU seconds of a call", _CPU)
    send_call_cpu: float = _known(0.00119, "CPU seconds of a batch of 10", _CPU)
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
