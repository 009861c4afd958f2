"""Alarms of a template, evaluated on datapoints as CloudWatch documents it.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html: it looks at some more periods than
it has to evaluate, takes the newest of those that have data, and fills up with what missing data counts for only when
they are too few. How many more is not fixed; its examples have two. Periods are taken by the clock here, while CloudWatch
may evaluate a window that slides.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from testkit.cloudwatch.datapoints import Datapoints, metric
from testkit.cloudwatch.metric_math import evaluate

ALARM = "AWS::CloudWatch::Alarm"
COMPOSITE = "AWS::CloudWatch::CompositeAlarm"

MORE_PERIODS = 2

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
    "LessThanThreshold": operator.lt,
    "LessThanOrEqualToThreshold": operator.le,
}
_BREACHES = {"breaching": True, "notBreaching": False}
_PART = re.compile(r'ALARM\("([^"]+)"\)')

Resource = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Alarms:
    """The alarms of a template by their logical id; `resources` is a template's. Names of queues and functions are theirs."""

    resources: Mapping[str, Resource]

    def __post_init__(self) -> None:
        assert self.single, "a template without alarms"

    @property
    def single(self) -> dict[str, Resource]:
        """Those that watch a metric or an expression."""
        return {name: each["Properties"] for name, each in self.resources.items() if each["Type"] == ALARM}

    @property
    def composites(self) -> dict[str, Resource]:
        """Those that watch others."""
        return {name: each["Properties"] for name, each in self.resources.items() if each["Type"] == COMPOSITE}

    def named(self, name: str) -> str:
        """The logical id of the alarm of a construct."""
        found = [each for each in {**self.single, **self.composites} if short_name(each) == name]
        assert len(found) == 1, f"{name}: {found}"
        return found[0]

    def is_in_alarm(self, logical_id: str, data: Datapoints, *, at: float) -> bool:
        """Whether it is at the end of the last period that is over by then."""
        if logical_id in self.composites:
            return self._holds(self.composites[logical_id], data, at=at)
        return self._breaches(self.single[logical_id], data, at=at)

    def in_alarm(self, data: Datapoints, *, at: float) -> set[str]:
        """The names of all that are."""
        every = {**self.single, **self.composites}
        return {short_name(each) for each in every if self.is_in_alarm(each, data, at=at)}

    def _holds(self, composite: Resource, data: Datapoints, *, at: float) -> bool:
        rule = "".join(
            part if isinstance(part, str) else part["Fn::GetAtt"][0] for part in composite["AlarmRule"]["Fn::Join"][1]
        )
        states = _PART.sub(lambda part: str(self.is_in_alarm(part[1], data, at=at)), rule)
        for word in ("AND", "OR", "NOT"):
            states = re.sub(rf"\b{word}\b", word.lower(), states)
        return _truth(ast.parse(states, mode="eval").body)

    def _breaches(self, alarm: Resource, data: Datapoints, *, at: float) -> bool:
        period, series = _series(alarm, data)
        count = alarm["EvaluationPeriods"]
        compare = _OPERATORS[alarm["ComparisonOperator"]]
        newest = int(at // period) * period - period
        looked_at = [newest - number * period for number in range(count + MORE_PERIODS)]
        breaches = [compare(series[start], alarm["Threshold"]) for start in looked_at if start in series][:count]
        breaches += [_BREACHES[alarm["TreatMissingData"]]] * (count - len(breaches))
        return sum(breaches) >= alarm.get("DatapointsToAlarm", count)


def short_name(logical_id: str) -> str:
    """The name of an alarm's construct: `AlarmsBurnsBurnFastLong5307008E` is BurnFastLong."""
    return re.sub(r"^(?:(?=Audit)|Alarms(?:Burns(?=Burn))?)|(?<=^Audit)Alarms|[0-9A-F]{8}$", "", logical_id)


def _series(alarm: Resource, data: Datapoints) -> tuple[int, dict[int, float]]:
    """The period of an alarm, and what it compares, by the start of each."""
    if "Metrics" not in alarm:
        of = metric(alarm["Namespace"], alarm["MetricName"], **_dimensions(alarm))
        statistic = alarm.get("Statistic") or alarm["ExtendedStatistic"]
        return alarm["Period"], data.folded(of, statistic=statistic, period=alarm["Period"])
    inputs = {each["Id"]: each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each}
    (period,) = {each["Period"] for each in inputs.values()}
    (expression,) = [each["Expression"] for each in alarm["Metrics"] if each.get("ReturnData", True)]
    folded = {name: _folded(each, data) for name, each in inputs.items()}
    starts = {start for series in folded.values() for start in series}
    values = {start: evaluate(expression, {name: folded[name].get(start) for name in folded}) for start in starts}
    return period, {start: value for start, value in values.items() if value is not None}


def _folded(stat: Resource, data: Datapoints) -> dict[int, float]:
    of = metric(stat["Metric"]["Namespace"], stat["Metric"]["MetricName"], **_dimensions(stat["Metric"]))
    return data.folded(of, statistic=stat["Stat"], period=stat["Period"])


def _dimensions(of: Resource) -> dict[str, str]:
    return {each["Name"]: _resolved(each["Value"]) for each in of.get("Dimensions", ())}


def _resolved(value: Any) -> str:
    match value:
        case {"Ref": name} | {"Fn::GetAtt": [name, _]}:
            return re.sub(r"[0-9A-F]{8}$", "", name)
        case {"Fn::ImportValue": export}:
            return re.sub(r"^.*:ExportsOutputRef|[0-9A-F]{16}$", "", export)
        case _:
            return value


def _truth(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=bool() as value):
            return value
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_truth(value) for value in values)
        case ast.BoolOp(op=ast.Or(), values=values):
            return any(_truth(value) for value in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(operand)
        case _:
            raise NotImplementedError(ast.unparse(node))
