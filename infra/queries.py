"""Queries that CloudWatch Logs Insights keeps for whoever follows one thing through all functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.package import Function
from infra.stage import Stage
from infra.stage_parts import Watching

_SHOWN = ("@timestamp", "service", "message")


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query by its name. answers: what it is for. A word in capitals is what its reader puts in."""

    name: str
    answers: str
    lines: tuple[str, ...]


_LACKS = (
    "conditions_not_read",
    "plans_not_read",
    "rate_unknown",
    "quota_unknown",
    "breaker_unknown",
    "usage_not_written",
    "permit_not_given_back",
    "job_returned",
)

QUERIES = (
    SavedQuery(
        "One job",
        "what happened to a job, from the request that brought it to its end",
        (
            f"fields {', '.join((*_SHOWN, 'outcome', 'attempt', 'error', 'reason', 'xray_trace_id'))}",
            'filter @message like "JOB_ID"',
            "sort @timestamp asc",
        ),
    ),
    SavedQuery(
        "One schedule",
        "what happened to a schedule of a tenant, and to its fires",
        (
            f"fields {', '.join((*_SHOWN, 'job_id', 'outcome', 'error', 'reason'))}",
            'filter schedule = "TENANT#SCHEDULE_ID" or @message like "~SCHEDULE_ID:"',
            "sort @timestamp asc",
        ),
    ),
    SavedQuery(
        "One operation",
        "what an operation on many jobs has done",
        (
            f"fields {', '.join((*_SHOWN, 'matched', 'done', 'state', 'error'))}",
            'filter operation = "OPERATION_ID"',
            "sort @timestamp asc",
        ),
    ),
    SavedQuery(
        "One request",
        "what the API logged about a request",
        (
            f"fields {', '.join((*_SHOWN, 'level', 'error'))}",
            'filter correlation_id = "REQUEST_ID"',
            "sort @timestamp asc",
        ),
    ),
    SavedQuery(
        "One tenant's attempts",
        "how a tenant's attempts ended, by minute",
        (
            'filter message = "job_settled" and tenant = "TENANT"',
            "stats count(*) as attempts by bin(1m), outcome, error",
        ),
    ),
    SavedQuery(
        "Why jobs failed",
        "dead letters by tenant and error",
        ('filter message = "dead_lettered"', "stats count(*) as letters by tenant, error", "sort letters desc"),
    ),
    SavedQuery(
        "Who was late",
        "attempts that began later than promised, by tenant",
        (
            'filter message = "began_late"',
            "stats count(*) as attempts, pct(lag_ms, 99) as lag_p99 by tenant",
            "sort attempts desc",
        ),
    ),
    SavedQuery(
        "What was not to be had",
        "stores that failed, and what was done without them",
        (
            f"filter message in {json.dumps(_LACKS)}",
            "stats count(*) as times by service, message, error",
            "sort times desc",
        ),
    ),
)

_COUNTERS = ("jobs_submitted", "attempts", "succeeded", "retried", "failed")

OF_ESSENTIAL = (
    SavedQuery(
        "What was counted",
        "what happened by hour and function, where a stage is watched for the essential; put any counter in place of these",
        (
            'filter message = "observed"',
            f"stats {', '.join(f'sum(counts.{name}) as {name}' for name in _COUNTERS)} by bin(1h), service",
        ),
    ),
    SavedQuery(
        "How late attempts began",
        "percentiles of the lag by priority, where a stage is watched for the essential; `ring` and `kind` are there too",
        (
            'filter message = "observed"',
            "fields jsonParse(@message) as line",
            # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-Unnest.html
            "unnest line.values into value",
            "filter ispresent(value.lag_ms)",
            "stats count(*) as attempts, pct(value.lag_ms, 50) as p50, pct(value.lag_ms, 99) as p99 by value.priority",
        ),
    ),
)
"""Of what are metrics elsewhere."""


class SavedQueries(Construct):
    """The queries of a stage, over the log groups of all its functions. Of one that is watched fully, metrics say the rest."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, functions: Sequence[Function]) -> None:
        super().__init__(scope, construct_id)
        groups = [function.log_group.log_group_name for function in functions]
        asked = QUERIES + (OF_ESSENTIAL if stage.watching is Watching.ESSENTIAL else ())
        for query in asked:
            logs.CfnQueryDefinition(
                self,
                "".join(part for part in query.name.title() if part.isalnum()),
                name=f"Tickwheel {stage.name}/{query.name}",
                query_string="\n| ".join(query.lines),
                log_group_names=groups,
            )
