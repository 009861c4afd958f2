"""The evaluator of alarms that tests rely on, against the examples of CloudWatch's own documentation."""

from typing import Any

import pytest

from testkit.cloudwatch.alarms import Alarms, short_name
from testkit.cloudwatch.datapoints import Datapoints, metric
from testkit.cloudwatch.metric_math import UnknownId, evaluate

LATE = metric("Tickwheel", "late", service="worker")
DIMENSIONS = [{"Name": "service", "Value": "worker"}]


def an_alarm(*, periods: int = 1, breaching: int | None = None, missing: str = "notBreaching", **more: Any) -> Any:
    watched = {"Namespace": "Tickwheel", "MetricName": "late", "Statistic": "Sum", "Period": 60}
    return {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            **({} if "Metrics" in more else {**watched, "Dimensions": DIMENSIONS}),
            "Threshold": 0,
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": periods,
            **({"DatapointsToAlarm": breaching} if breaching else {}),
            "TreatMissingData": missing,
            **more,
        },
    }


def data_of(*values: float | None, period: int = 60) -> Datapoints:
    """A value a period from 0 on; None: none."""
    data = Datapoints()
    for number, value in enumerate(values):
        if value is not None:
            data.put(LATE, value, at=number * period + 1)
    return data


def is_in_alarm(alarm: Any, data: Datapoints, *, at: float = 300) -> bool:
    return Alarms({"Late12345678": alarm}).is_in_alarm("Late12345678", data, at=at)


X, NONE = 1.0, None


@pytest.mark.parametrize(
    ("points", "breaching", "not_breaching"),
    [
        ((0, NONE, X, NONE, X), False, False),
        ((NONE, NONE, NONE, NONE, 0), False, False),
        ((NONE, NONE, NONE, NONE, NONE), True, False),
        ((0, X, X, NONE, X), True, True),
        ((NONE, NONE, X, NONE, NONE), True, False),
    ],
)
def test_three_of_three_as_documented(points: tuple[Any, ...], breaching: bool, not_breaching: bool) -> None:
    assert is_in_alarm(an_alarm(periods=3, missing="breaching"), data_of(*points)) is breaching
    assert is_in_alarm(an_alarm(periods=3), data_of(*points)) is not_breaching


@pytest.mark.parametrize(
    ("points", "breaching", "not_breaching"),
    [
        ((0, NONE, X, NONE, X), True, True),
        ((0, 0, X, 0, X), True, True),
        ((0, NONE, X, NONE, NONE), True, False),
        ((NONE, NONE, NONE, NONE, 0), True, False),
        ((NONE, NONE, NONE, NONE, X), True, False),
    ],
)
def test_two_of_three_as_documented(points: tuple[Any, ...], breaching: bool, not_breaching: bool) -> None:
    assert is_in_alarm(an_alarm(periods=3, breaching=2, missing="breaching"), data_of(*points)) is breaching
    assert is_in_alarm(an_alarm(periods=3, breaching=2), data_of(*points)) is not_breaching


def test_a_period_that_is_not_over_is_not_looked_at() -> None:
    assert not is_in_alarm(an_alarm(), data_of(0, X), at=119)
    assert is_in_alarm(an_alarm(), data_of(0, X), at=120)


def test_what_is_long_over_is_forgotten() -> None:
    assert not is_in_alarm(an_alarm(), data_of(X), at=300)


def test_a_threshold_is_compared_as_the_alarm_says() -> None:
    assert not is_in_alarm(an_alarm(Threshold=1), data_of(1), at=60)
    assert is_in_alarm(an_alarm(Threshold=1, ComparisonOperator="GreaterThanOrEqualToThreshold"), data_of(1), at=60)
    assert is_in_alarm(an_alarm(Threshold=1, ComparisonOperator="LessThanThreshold"), data_of(0.5), at=60)


def test_another_dimension_is_another_metric() -> None:
    data = Datapoints()
    data.put(metric("Tickwheel", "late", service="api"), 1, at=1)
    data.put(metric("Tickwheel", "late", service="worker", ring="far"), 1, at=1)
    assert not is_in_alarm(an_alarm(), data, at=60)


def test_a_line_in_the_embedded_format_is_each_of_its_values_in_each_of_its_sets_of_dimensions() -> None:
    described = {
        "Namespace": "Tickwheel",
        "Dimensions": [["service"], ["service", "ring"]],
        "Metrics": [{"Name": "late", "Unit": "Count"}, {"Name": "attempts", "Unit": "Count"}],
    }
    line = {"_aws": {"Timestamp": 61_000, "CloudWatchMetrics": [described]}, "service": "worker", "ring": "far"}
    data = Datapoints()
    data.read([{**line, "late": [1, 0, 1], "attempts": 3}, {"message": "no metrics"}])
    assert data.folded(LATE, statistic="Sum", period=60) == {60: 2}
    assert data.folded(LATE, statistic="Average", period=60) == {60: pytest.approx(2 / 3)}
    of_ring = metric("Tickwheel", "attempts", ring="far", service="worker")
    assert data.folded(of_ring, statistic="Sum", period=300) == {0: 3}


@pytest.mark.parametrize(
    ("statistic", "value"),
    [("Sum", 110), ("Average", 22), ("Minimum", 1), ("Maximum", 100), ("SampleCount", 5), ("p50", 3), ("p99.9", 100)],
)
def test_a_statistic_folds_the_values_of_a_period(statistic: str, value: float) -> None:
    data = Datapoints()
    for each in (4, 1, 100, 3, 2):
        data.put(LATE, each, at=5)
    assert data.folded(LATE, statistic=statistic, period=60) == {0: value}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("IF(late >= 10, share, 0)", 0),
        ("IF(late >= 9, share, 0)", 0.5),
        ("100 * late / all", None),
        ("100 * FILL(all, 18) / late", 200),
        ("IF(all > 0, 1, 0)", None),
        ("IF(late > 0, late - 1, all)", 8),
        ("late / 0", None),
        ("-late + 1", -8),
        ("late == 9", 1),
    ],
)
def test_metric_math(expression: str, value: float | None) -> None:
    assert evaluate(expression, {"late": 9, "share": 0.5, "all": None}) == value


def test_an_expression_that_names_no_metric_is_an_error() -> None:
    with pytest.raises(UnknownId, match="'lag' is not one of late"):
        evaluate("lag > 1", {"late": 1})


def test_what_the_evaluator_does_not_know_it_does_not_guess() -> None:
    with pytest.raises(NotImplementedError, match="RATE"):
        evaluate("RATE(late)", {"late": 1})
    with pytest.raises(NotImplementedError, match="tm99"):
        data_of(1).folded(LATE, statistic="tm99", period=60)


def test_an_alarm_on_an_expression() -> None:
    def stat(name: str, statistic: str) -> dict[str, Any]:
        of = {"Namespace": "Tickwheel", "MetricName": "late", "Dimensions": DIMENSIONS}
        return {"Id": name, "MetricStat": {"Metric": of, "Stat": statistic, "Period": 60}, "ReturnData": False}

    metrics = [{"Id": "e", "Expression": "IF(late >= 2, share, 0)"}, stat("late", "Sum"), stat("share", "Average")]
    alarm = an_alarm(Metrics=metrics, Threshold=0.4)
    data = data_of(1, 1)
    assert not is_in_alarm(alarm, data, at=120)
    for value in (1, 0, 0):
        data.put(LATE, value, at=100)
    assert is_in_alarm(alarm, data, at=120)


def test_a_composite_holds_by_its_rule() -> None:
    def rule(*parts: Any) -> dict[str, Any]:
        return {"Type": "AWS::CloudWatch::CompositeAlarm", "Properties": {"AlarmRule": {"Fn::Join": ["", list(parts)]}}}

    on, off = {"Fn::GetAtt": ["AlarmsOn12345678", "Arn"]}, {"Fn::GetAtt": ["AlarmsOff12345678", "Arn"]}
    alarms = Alarms(
        {
            "AlarmsOn12345678": an_alarm(),
            "AlarmsOff12345678": an_alarm(Threshold=10),
            "AlarmsBoth12345678": rule('(ALARM("', on, '") AND ALARM("', off, '"))'),
            "AlarmsAny12345678": rule('(ALARM("', off, '") OR ALARM("', on, '"))'),
            "AlarmsBut12345678": rule('ALARM("', on, '") AND NOT ALARM("', off, '")'),
        }
    )
    assert alarms.in_alarm(data_of(X), at=60) == {"On", "Any", "But"}
    assert alarms.in_alarm(data_of(0), at=60) == set()


def test_an_alarm_is_called_as_its_construct() -> None:
    assert short_name("AlarmsBurnsBurnFastLong5307008E") == "BurnFastLong"
    assert short_name("AlarmsErrorsApi5FBAB325") == "ErrorsApi"
    assert short_name("AuditAlarmsLate836040F1") == "AuditLate"
