"""An alarm that leads whoever it wakes to a section of the runbook."""

from __future__ import annotations

import re
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.stage_parts import InvalidStage

RUNBOOK = "docs/runbook.md"

CONTEXT = "runbook"
"""The context value that says at which address people read it, such as that of a release in a company's own Git."""

_ADDRESS = re.compile(r"https://[^\s#()]{1,200}")

SUPPRESSOR_WAIT = cdk.Duration.minutes(3)
"""How long an alarm waits to see whether the one that explains it goes off, too."""

SUPPRESSOR_EXTENSION = cdk.Duration.minutes(5)
"""How long it stays silent after that one is over."""


def place_of(scope: Construct) -> str:
    """Where the runbook is: an address, or its path in the checkout. Raises InvalidStage for what is no address."""
    address = scope.node.try_get_context(CONTEXT)
    if address is None:
        return RUNBOOK
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise InvalidStage(
            f"the context value {CONTEXT} is {address!r}: use an address such as https://git.example.com/{RUNBOOK}"
        )
    return address


def section_link(scope: Construct, title: str, section: str) -> str:
    """A section of it in Markdown: a link where it has an address."""
    place = place_of(scope)
    return f"`#{section}`" if place == RUNBOOK else f"[{title}]({place}#{section})"


def _described(scope: Construct, meaning: str, *, section: str) -> str:
    return f"{meaning}. What to do: {place_of(scope)}#{section}"


def alarm(
    scope: Construct,
    construct_id: str,
    *,
    metric: cloudwatch.IMetric,
    threshold: float,
    meaning: str,
    section: str,
    periods: int = 1,
    breaching: int | None = None,
    missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    is_least: bool = False,
) -> cloudwatch.Alarm:
    """Watch that a metric does not exceed the threshold, in `breaching` of so many `periods`, or in all of them.

    is_least: that it does not fall below it instead.
    """
    return cloudwatch.Alarm(
        scope,
        construct_id,
        metric=metric,
        threshold=threshold,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
        if is_least
        else cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        evaluation_periods=periods,
        datapoints_to_alarm=breaching,
        treat_missing_data=missing,
        alarm_description=_described(scope, meaning, section=section),
    )


def composite(
    scope: Construct,
    construct_id: str,
    *,
    rule: cloudwatch.IAlarmRule,
    meaning: str,
    section: str,
    unless: cloudwatch.CompositeAlarm | None = None,
) -> cloudwatch.CompositeAlarm:
    """Combine alarms. unless: the alarm that explains this one, which then wakes nobody a second time."""
    return cloudwatch.CompositeAlarm(
        scope,
        construct_id,
        alarm_rule=rule,
        alarm_description=_described(scope, meaning, section=section),
        actions_suppressor=unless,
        actions_suppressor_wait_period=SUPPRESSOR_WAIT if unless else None,
        actions_suppressor_extension_period=SUPPRESSOR_EXTENSION if unless else None,
    )


def any_of(*alarms: cloudwatch.IAlarm, rules: Sequence[cloudwatch.IAlarmRule] = ()) -> cloudwatch.IAlarmRule:
    """Hold when at least one of them is in alarm, or one of the rules holds."""
    return cloudwatch.AlarmRule.any_of(*rules, *(_in_alarm(each) for each in alarms))


def all_of(*alarms: cloudwatch.IAlarm) -> cloudwatch.IAlarmRule:
    """Hold when all of them are in alarm."""
    return cloudwatch.AlarmRule.all_of(*(_in_alarm(each) for each in alarms))


def _in_alarm(each: cloudwatch.IAlarm) -> cloudwatch.IAlarmRule:
    return cloudwatch.AlarmRule.from_alarm(each, cloudwatch.AlarmState.ALARM)
