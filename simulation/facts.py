"""What a run has come to beside its jobs: of the bucket audit, and of schedules that were put by way of the API."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from bench.prices import read_prices
from simulation.stage import SimulatedStage


def facts_of_audit(stage: SimulatedStage) -> dict[str, float]:
    """Of the minutes in which it had something to read, on average; but the longest one."""
    if not stage.audits:
        return {}
    audit = stage.audit
    busy = [run for run in audit.runs if run.rows]
    return {
        "audited_a_bucket": sum(run.rows for run in busy) / max(1, len(busy)),
        "audit_reads": sum(run.reads for run in busy) / max(1, len(busy)),
        "audit_s": max((run.seconds for run in audit.runs), default=inf),
        "audit_mean_s": sum(run.seconds for run in busy) / max(1, len(busy)),
        "audit_behind_s": max((run.behind_s for run in audit.runs), default=inf),
        "audit_read_peak": audit.tables.timers.reads.peak,
        "stragglers": sum(run.stragglers for run in audit.runs),
    }


def facts_of_puts(stage: SimulatedStage) -> dict[str, float]:
    """Of schedules that were put: units of each, USD of a million, and whether each has the alarm of its first fire in the far ring."""
    puts, tables, share = stage.front_door.puts, stage.tables, stage.sample.share
    if not puts.asked:
        return {}
    created = len(puts.created)
    alarms = {
        f"{row.alarm.tenant}#{row.alarm.schedule_id}"
        for rows in stage.kept.rows.rows.values()
        for row in rows.by_key.values()
        if row.alarm is not None
    }
    return {
        "created": created / share,
        "created_until_s": max(puts.created.values(), default=inf),
        "put_refused": puts.refused.total(),
        "without_alarm": len(puts.created.keys() - alarms),
        "put_writes": puts.writes * share / max(1, created),
        "put_reads": puts.reads * share / max(1, created),
        "put_usd": _usd_of_puts(stage) * share / max(1, created),
        "collisions_a_put": stage.kept.sums.collisions / max(1, created),
        "schedules_write_peak": tables.schedules.writes.peak,
        "schedules_read_peak": tables.schedules.reads.peak,
        "state_write_peak": tables.schedule_state.writes.peak,
        "state_table_write_peak": tables.schedule_state.writes.peak_of_table,
    }


def _usd_of_puts(stage: SimulatedStage) -> float:
    """A million times what all of them cost, as of the whole stage. Requests of the API are nothing else here."""
    puts, api, share = stage.front_door.puts, stage.front_door.function.spent, stage.sample.share
    used: Mapping[str, float] = {
        "dynamodb_write_unit": puts.writes,
        "dynamodb_read_unit": puts.reads,
        "http_api_request": stage.front_door.requests / share,
        "lambda_request": api.invocations / share,
        "lambda_gb_second": api.billed * stage.size.stage.api.memory_mb / 1_024 / share,
        "firehose_5_kb": puts.steps / share,
        "log_gb": api.invocations * stage.limits.request_log / 1e9 / share,
    }
    prices = read_prices()
    return sum(count * prices[unit] for unit, count in used.items())
