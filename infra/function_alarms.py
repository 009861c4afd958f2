"""Alarms on what Lambda counts of the functions: that they fail, are throttled, dropped, or not invoked at all."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.package import Function
from infra.runbook import alarm

MINUTE = cdk.Duration.minutes(1)


def errors(scope: Construct, function: Function) -> cloudwatch.Alarm:
    """Invocations end in errors."""
    return alarm(
        scope,
        f"Errors{camel_case(function.name)}",
        metric=function.function.metric_errors(period=MINUTE),
        threshold=0,
        periods=3,
        breaching=2,
        meaning=f"The {function.name} fails; one lost invocation is repeated, two in three minutes are a fault",
        section="a-function-fails",
    )


def silence(scope: Construct, function: Function) -> cloudwatch.Alarm:
    """A function of which there is a tick each minute is not invoked any more, or never was.

    Lambda counts no invocation by no datapoint, so missing data is the fault. An alarm without any data is on from its first
    evaluation (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html): on a new stage
    until the first ticks are counted. So it is created after their rules, and whoever pages by it waits for those first.
    """
    silent = alarm(
        scope,
        f"Silent{camel_case(function.name)}",
        metric=function.function.metric_invocations(period=MINUTE),
        threshold=1,
        is_least=True,
        periods=3,
        missing=cloudwatch.TreatMissingData.BREACHING,
        meaning=f"Nothing invokes the {function.name}, of which there is a tick each minute",
        section="a-function-is-silent",
    )
    if function.node.scope is not None:  # with its rules
        silent.node.add_dependency(function.node.scope)
    return silent


def no_tick_ends_well(scope: Construct, function: Function) -> cloudwatch.Alarm:
    """A function of which there is a tick each minute is silent, or every tick of it fails.

    Lambda's `Errors` is 1 or 0 of each invocation (https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html), so its
    minimum is 1 where all of a minute failed, and missing where there was none: one alarm in place of two. On a new stage it
    is on until the first ticks are counted, as one on silence is.
    """
    silent = alarm(
        scope,
        f"Silent{camel_case(function.name)}",
        metric=function.function.metric_errors(period=MINUTE, statistic="Minimum"),
        threshold=0,
        periods=3,
        missing=cloudwatch.TreatMissingData.BREACHING,
        meaning=f"No tick of the {function.name} ends well, of which there is one each minute: nothing invokes it, or it fails",
        section="a-function-is-silent",
    )
    if function.node.scope is not None:  # with its rules
        silent.node.add_dependency(function.node.scope)
    return silent


def api_throttles(scope: Construct, function: Function) -> cloudwatch.Alarm:
    """Requests are turned away."""
    return _throttles(
        scope,
        function,
        meaning="Requests do not reach the API: the account has no concurrency left for it",
        section="requests-fail",
    )


def worker_throttles(scope: Construct, function: Function) -> cloudwatch.Alarm:
    """Batches are turned away."""
    return _throttles(
        scope,
        function,
        meaning="Batches do not reach the worker: the account has no concurrency left, and each try ages their messages",
        section="workers-are-throttled",
    )


def _throttles(scope: Construct, function: Function, *, meaning: str, section: str) -> cloudwatch.Alarm:
    """The account has no concurrency left for it."""
    return alarm(
        scope,
        f"Throttled{camel_case(function.name)}",
        metric=function.function.metric_throttles(period=MINUTE),
        threshold=0,
        periods=3,
        breaching=2,
        meaning=meaning,
        section=section,
    )


def dropped_invocations(scope: Construct, functions: Sequence[Function]) -> list[cloudwatch.Alarm]:
    """Lambda takes what is sent on purpose for a loop."""
    return [
        alarm(
            scope,
            f"Dropped{camel_case(function.name)}",
            metric=function.dropped_invocations(),
            threshold=0,
            meaning=f"Lambda takes invocations of {function.name} for a loop and drops them: messages end as dead letters",
            section="lambda-drops-invocations",
        )
        for function in functions
        if function.sends_to_itself
    ]


def camel_case(name: str) -> str:
    """Return a function's name as part of the name of a construct."""
    return "".join(word.capitalize() for word in name.split("_"))
