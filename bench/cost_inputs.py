"""What goes into a bill: units that were measured, prices with their sources, and what a stage consists of."""

import gzip
import json
from collections.abc import Mapping
from typing import Any

from bench.audit import a_job
from bench.budgets import Units
from bench.cost import Model
from bench.cost_terms import Assumed, Deployed, Measured, Processor
from bench.deployed import read_counts
from bench.prices import provisioned, read_free_tiers, read_prices_of_one
from bench.results import FOLDER
from functions.domain.audit import encode_ending
from functions.domain.metrics import DIMENSIONS, INCIDENTS, VALUES, Watching
from infra.metrics import emitted_at
from infra.stage import Stage

_LINES = 1_000
"""Lines of the audit trail that are compressed together."""

JOB_S = 0.0007
"""Processor time of a job that calls a handler, beside its requests: measured with the deployed handlers. Of a worker that is written
with Powertools no less is taken."""

_LOG_DAYS = {"ONE_DAY": 1, "ONE_WEEK": 7, "TWO_WEEKS": 14, "ONE_MONTH": 30, "THREE_MONTHS": 90, "ONE_YEAR": 365}
_FUNCTIONS = ("api", "scanner", "worker", "sweeper", "operations", "dead_letters")


def model_of(stage: Stage, assumed: Assumed) -> Model:
    """The model of a stage."""
    deployed, prices = deployed_of(stage), read_prices_of_one()
    if assumed.provisioned is not None:
        prices = provisioned(prices, used=assumed.provisioned)
    return Model(
        deployed=deployed,
        measured=read_measured(stage.log_level, stage.watching),
        prices=prices,
        free=read_free_tiers(),
        assumed=assumed,
    )


def read_measured(log_level: str = "INFO", watching: Watching = Watching.FULL) -> Measured:
    """The results of the benchmarks, as they were last written. log_level, watching: those of the stage."""
    names = ("units", "promotion", "logs", "metrics", "requests")
    units, promotion, logs, metrics, requests = (_read(f"{name}.json") for name in names)
    call_ms = requests["processor_ms"]
    lines = [f"{encode_ending(a_job(number))}\n".encode() for number in range(_LINES)]
    return Measured(
        paths={name: _units(found) for name, found in units["paths"].items()},
        fire=_units(units["occurrences"]["allow"]),
        tick=_units(units["idle_tick_of_a_shard"]),
        mark=_units(units["mark"]),
        payload=units["payload_bytes"],
        together=_units(units["together"]),
        log_bytes=logs["levels"][log_level],
        other_log_bytes=logs["powertools"],
        worker=Processor(job_s=JOB_S, call_s=call_ms["this scheduler"] / 1_000),
        other_worker=Processor(job_s=JOB_S, call_s=call_ms["boto3"] / 1_000),
        promoted_a_second=promotion["jobs_a_cpu_second"],
        emitted=metrics["emitted"][watching],
        audit_line=sum(map(len, lines)) / len(lines),
        audit_line_kept=len(gzip.compress(b"".join(lines))) / len(lines),
    )


def deployed_of(stage: Stage) -> Deployed:
    """What it consists of."""
    counts = read_counts(stage.name)
    return Deployed(
        name=stage.name,
        shards=stage.wheel.scan_shards,
        memory={name: getattr(stage, name).memory_mb for name in _FUNCTIONS},
        audit_sample=stage.audit_sample,
        log_days=_LOG_DAYS[stage.log_retention.name],
        limited_sources=sum(limit is not None for limit in stage.max_concurrency)
        + counts["limited_consumers"]
        + len(stage.submission_queues)
        + stage.submission_files,
        unlimited_sources=sum(limit is None for limit in stage.workers) + counts["unlimited_consumers"],
        pollers=sum(pollers.minimum for pollers in stage.pollers if pollers),
        class_pollers=[pollers.minimum if pollers else 0 for pollers in stage.pollers],
        ready=stage.ready_critical,
        metrics=len(every_metric(stage.watching)),
        alarm_metrics=counts["alarm_metrics"],
        composite_alarms=counts["composite_alarms"],
        dashboards=counts["dashboards"],
        metrics_of_a_dashboard=counts["metrics_of_a_dashboard"],
        keys=counts["keys"],
        secrets=counts["secrets"],
        traced=counts["traced"],
    )


def every_metric(watching: Watching = Watching.FULL) -> list[str]:
    """All that functions can emit, each value of each dimension apart, as CloudWatch bills them."""
    names = [INCIDENTS]
    for service, emitted in emitted_at(watching).items():
        for metric in emitted:
            names.append(f"{metric} service={service}")
            dimensions = DIMENSIONS.get(metric, ()) if watching is Watching.FULL else ()
            names += [f"{metric} {by}={value} service={service}" for by in dimensions for value in VALUES[by]]
    return names


def _read(name: str) -> Mapping[str, Any]:
    return json.loads((FOLDER / name).read_text())


def _units(found: Mapping[str, Any]) -> Units:
    return Units(found["writes"], found["reads"], found["sqs_requests"])
