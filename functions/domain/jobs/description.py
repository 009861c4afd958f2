"""How a job was asked for, as JSON values for people and programs: without its payload, of its headers only the names."""

from __future__ import annotations

from typing import Any

from functions.domain.instants import format_duration, format_instant
from functions.domain.jobs.collect import DEFAULT_MEMBERS, Collect
from functions.domain.jobs.job import Job, Precision
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.targets.flows import FlowLimits, FlowScope, NamedFlow
from functions.domain.targets.options import USUAL, TargetOptions


def describe_job(job: Job) -> dict[str, Any]:
    """How the job was asked for. What has its usual value is left out."""
    usual = {
        "priority": (job.priority.name.lower(), "normal"),
        "precision": (job.precision.value, Precision.DEFAULT.value),
        "expires_at": (format_instant(job.expires_at) if job.expires_at else None, None),
        "run_deadline": (format_duration(job.run_deadline) if job.run_deadline else None, None),
        "http": (_http_body(job.options), {}),
        "asynchronous": (job.options.is_async, False),
        "tags": (list(job.tags), []),
        "flow": ([flow_body(flow) for flow in job.flows], []),
        "collect": (collect_body(job.collect) if job.collect is not None else None, None),
        **{name: (target, None) for name, target in job.callbacks.body().items()},
        "submitted_at": (format_instant(job.submitted_at) if job.submitted_at else None, None),
        "occurrence": (_occurrence_body(job.occurrence) if job.occurrence else None, None),
    }
    return {
        "target": job.target,
        "scheduled_at": format_instant(job.scheduled_at),
        "delivery": job.delivery.value,
        "retry": retry_body(job.retry),
        "timeout": format_duration(job.timeout),
        **{name: value for name, (value, unsaid) in usual.items() if value != unsaid},
    }


def retry_body(retry: RetryPolicy) -> dict[str, Any]:
    """A retry policy in all its parts that are of consequence."""
    gaps = {"base": format_duration(retry.base), "cap": format_duration(retry.cap)}
    intervals = [format_duration(interval) for interval in retry.intervals]
    return {
        **({"intervals": intervals} if intervals else {"strategy": retry.strategy.value}),
        "attempts": retry.attempts,
        **({} if intervals else gaps),
        **({"max_age": format_duration(retry.max_age)} if retry.max_age is not None else {}),
        **({"jitter": retry.jitter.value} if retry.jitter is not None else {}),
    }


def flow_body(flow: NamedFlow) -> dict[str, Any]:
    """A flow as a job names it."""
    scope = {} if flow.scope is FlowScope.TENANT else {"scope": flow.scope.value}
    return {"key": flow.key, **scope, **(limits_body(flow.limits) if flow.limits is not None else {})}


def collect_body(collect: Collect) -> dict[str, Any]:
    """With which others a job is given to its target, and when."""
    body = {
        "key": collect.key,
        "for": format_duration(collect.window) if collect.window is not None else None,
        "max": collect.most if collect.most != DEFAULT_MEMBERS else None,
        "at": collect.at or None,
        "timezone": collect.timezone if collect.timezone != "UTC" else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def limits_body(limits: FlowLimits) -> dict[str, Any]:
    """The limits of a flow, those that are set: a burst that follows from the rate is not."""
    body = {
        "rate": str(limits.rate) if limits.rate is not None else None,
        "burst": limits.burst or None,
        "concurrency": limits.concurrency,
        "ordered": True if limits.is_ordered else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _http_body(options: TargetOptions) -> dict[str, Any]:
    body = {
        "method": options.method.value if options.method is not USUAL.method else "",
        # Values of headers may be secrets.
        "headers": [name for name, _ in options.headers],
        "success": list(options.success_codes),
        "retry_on": list(options.retry_codes),
    }
    return {name: value for name, value in body.items() if value}


def _occurrence_body(fire: Occurrence) -> dict[str, Any]:
    return {
        "schedule_id": fire.schedule_id,
        "fire_at": format_instant(fire.fire_at),
        "nominal_at": format_instant(fire.nominal_at),
        "index": fire.index,
    }
