"""What only an account knows of the bill: what was paid, and what `tickwheel cost` has to assume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from bench.cost import Model
from bench.cost_inputs import model_of
from bench.cost_terms import Assumed, Workload
from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import Ground

_MOST_SHOWN = 8
_DAY = timedelta(days=1)
_HOURS = 24
FUNCTIONS = ("Worker", "Api", "Scanner", "Sweeper")
_QUERY_SECONDS = 120
_RECEIVES_AN_HOUR = 180
"""Of a poller that finds nothing: each waits for 20 seconds."""

_REPORTS = """filter @type = "REPORT"
| stats count(*) as invocations, avg(@billedDuration) as billed_ms, count(@initDuration) as starts, avg(@initDuration) as start_ms by @log"""
"""The line that Lambda writes of each invocation."""


@dataclass(frozen=True, kw_only=True)
class Reported:
    """Of the invocations of a function: billed_ms of one, on average; starts of new environments, each of start_ms."""

    invocations: float
    billed_ms: float
    starts: float
    start_ms: float


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of a stage. received: messages of its ready queues. empty: receives of nothing, of all queues that are read."""

    received: float
    empty: float
    reported: Mapping[str, Reported]


@partial(
    Check,
    name="bill",
    phase=Phase.LONG,
    seconds=180,
    usd=0.02,
    needs_aws="the local cloud bills nothing, and counts nothing",
)
def bill(ground: Ground) -> str:
    """What a day cost by usage type, of the whole account, and what `tickwheel cost` assumes, as this stage had it."""
    seen = told(_day_of(ground), model_of(ground.stage, Assumed()))
    costs = _costs(ground)
    if not costs:
        raise Wrong(
            f"no usage of yesterday; {seen}",
            expected="usage types; Cost Explorer has them a day later, once it is enabled",
        )
    dearest = sorted(costs.items(), key=lambda each: each[1], reverse=True)[:_MOST_SHOWN]
    listed = ", ".join(f"{name} {usd:.3f}" for name, usd in dearest)
    return f"{sum(costs.values()):.2f} USD yesterday: {listed}; {seen}"


def told(day: Day, model: Model) -> str:
    """The figures of a day, each beside what is assumed, and the options that let `tickwheel cost` compute with them."""
    deployed, assumed = model.deployed, model.assumed
    work = Workload(jobs_a_day=day.received, retries=0)
    pollers = deployed.limited_sources * assumed.pollers + deployed.unlimited_sources * 2 + deployed.pollers
    parts, options = [], []
    worker = day.reported.get("Worker")
    if worker and day.received:
        fill = min(10.0, max(1.0, day.received / worker.invocations))
        expected_ms = 1_000 * model.batch_s(work, model.measured.worker, fill)
        parts.append(f"{fill:.1f} messages a batch (assumed {model.fill(work):.1f})")
        parts.append(f"a batch billed {worker.billed_ms:.0f} ms (assumed {expected_ms:.0f})")
        options.append(f"--fill {fill:.1f} --target-ms 0 --batch-ms {worker.billed_ms:.0f}")
    else:
        parts.append("no job has run in the last day, so no batch is known")
    parts.append(
        f"{day.empty / _HOURS:,.0f} receives of nothing an hour (assumed {pollers * _RECEIVES_AN_HOUR:,.0f} of an idle stage)"
    )
    invocations = sum(each.invocations for each in day.reported.values())
    starts = sum(each.starts for each in day.reported.values())
    if invocations and starts:
        start_ms = sum(each.starts * each.start_ms for each in day.reported.values()) / starts
        share = starts / invocations
        parts.append(
            f"{share:.2%} of invocations started anew, in {start_ms:,.0f} ms (assumed {assumed.cold:.2%}, "
            f"{1_000 * assumed.start_s:,.0f} ms)"
        )
        options.append(f"--cold {share:.4f} --start-ms {start_ms:.0f}")
    scanner = day.reported.get("Scanner")
    if scanner:
        parts.append(f"a tick billed {scanner.billed_ms:.0f} ms (assumed {1_000 * assumed.tick_s:.0f} of an idle one)")
        options.append(f"--tick-ms {scanner.billed_ms:.0f}")
    command = f": tickwheel cost --stage {deployed.name} --jobs-per-day {day.received:.0f} {' '.join(options)}"
    return f"the last 24 hours of {deployed.name}: {', '.join(parts)}{command if options else ''}"


def _day_of(ground: Ground) -> Day:
    queues = {name: url.rpartition("/")[2] for name, url in ground.resources.all("AWS::SQS::Queue")}
    ready = [queue for name, queue in queues.items() if name.startswith("Ready") and "Dead" not in name]
    return Day(
        received=sum(_sum(ground, "NumberOfMessagesReceived", queue) for queue in ready),
        empty=sum(_sum(ground, "NumberOfEmptyReceives", queue) for queue in queues.values()),
        reported=_reported(ground),
    )


def _reported(ground: Ground) -> Mapping[str, Reported]:
    """By function, of those that ran."""
    groups = {name: ground.resources.one("AWS::Logs::LogGroup", f"{name}FunctionLogs") for name in FUNCTIONS}
    logs, now = ground.aws("logs"), datetime.now(UTC)
    query = logs.start_query(
        logGroupNames=list(groups.values()),
        startTime=int((now - _DAY).timestamp()),
        endTime=int(now.timestamp()),
        queryString=_REPORTS,
    )["queryId"]
    results = ground.eventually(
        lambda: logs.get_query_results(queryId=query),
        lambda found: found["status"] not in ("Scheduled", "Running"),
        within=_QUERY_SECONDS,
        expected="an end of the query of what was billed",
    )
    rows = [{field["field"]: field["value"] for field in row} for row in results["results"]]
    # A log is named by its account and its group.
    by_group = {row["@log"].partition(":")[2]: row for row in rows}
    return {name: _row(by_group[group]) for name, group in groups.items() if group in by_group}


def _row(row: Mapping[str, str]) -> Reported:
    return Reported(
        invocations=float(row["invocations"]),
        billed_ms=float(row["billed_ms"]),
        starts=float(row.get("starts") or 0),
        start_ms=float(row.get("start_ms") or 0),
    )


def _sum(ground: Ground, metric: str, queue: str) -> float:
    now = datetime.now(UTC)
    points: Iterable[Mapping[str, Any]] = ground.aws("cloudwatch").get_metric_statistics(
        Namespace="AWS/SQS",
        MetricName=metric,
        Dimensions=[{"Name": "QueueName", "Value": queue}],
        StartTime=now - _DAY,
        EndTime=now,
        Period=3_600,
        Statistics=["Sum"],
    )["Datapoints"]
    return sum(point["Sum"] for point in points)


def _costs(ground: Ground) -> Mapping[str, float]:
    """USD of yesterday by usage type."""
    today = datetime.now(UTC).date()
    found = ground.aws("ce").get_cost_and_usage(
        TimePeriod={"Start": str(today - _DAY), "End": str(today)},
        Granularity="DAILY",
        Metrics=["UnblendedCost"],
        GroupBy=[{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
    )["ResultsByTime"]
    return {
        group["Keys"][0]: float(group["Metrics"]["UnblendedCost"]["Amount"]) for day in found for group in day["Groups"]
    }


CHECKS = (bill,)
