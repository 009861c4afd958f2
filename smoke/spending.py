"""What a run costs at most: its executions one by one, and a stage that is awake meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from bench.cost_inputs import every_metric, read_measured
from bench.prices import read_prices_of_one
from infra.stage import Stage
from smoke.check import Check

HOURS_A_MONTH = 720

_LOG_BYTES = 4_000
"""Of an execution that comes alone, with the lines of its request and of Lambda itself; `make bench` has 1,400 in full batches."""

_CALLS = 20
"""Requests of the run, and of its checks on the account, an execution; each a request of API Gateway and of Lambda."""


def most_usd(checks: Iterable[Check], stage: Stage, *, seconds: float) -> float:
    """Every execution in an invocation of its own, every metric of the stage in use, for as long as it may last."""
    chosen, prices = [check for check in checks if check.is_possible(stage)], read_prices_of_one()
    jobs = sum(check.jobs for check in chosen)
    hours = 1 + seconds / 3_600  # metrics are billed by the hour that has any value
    metrics = len(every_metric()) * hours * prices["metric"] / HOURS_A_MONTH
    awake = sum(check.worker_seconds for check in chosen) + jobs
    memory_gb = stage.worker.memory_mb / 1_024
    return metrics + jobs * _usd_of_one() + awake * memory_gb * prices["lambda_gb_second"] + sum(c.usd for c in chosen)


def _usd_of_one() -> float:
    prices = read_prices_of_one()
    units = read_measured().fire  # the dearest: a schedule's
    return (
        units.writes * prices["dynamodb_write_unit"]
        + units.reads * prices["dynamodb_read_unit"]
        + 10 * units.sqs_requests * prices["sqs_request"]
        + _CALLS * (prices["http_api_request"] + prices["lambda_request"])
        + _LOG_BYTES / 2**30 * prices["log_gb"]
        + prices["firehose_5_kb"]
    )
