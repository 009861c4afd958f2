"""Who is notified of an alarm, and how often."""

import dataclasses
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from infra.objective import InvalidObjective, Objective
from infra.stage import Stage
from infra.stage_parts import InvalidStage, Watching
from scripts.synthesis import Resource, Templates

COMPOSITE = "AWS::CloudWatch::CompositeAlarm"


def single(templates: Templates) -> dict[str, Resource]:
    return templates.of_type("AWS::CloudWatch::Alarm")


def named(templates: Templates, name: str) -> dict[str, Any]:
    """The properties of the alarm or composite of that construct."""
    both = single(templates) | templates.of_type(COMPOSITE)
    (found,) = [
        each for logical_id, each in both.items() if re.fullmatch(rf"Alarms(Burns)?{name}[0-9A-F]{{8}}", logical_id)
    ]
    return found["Properties"]


def parts_of(composite: dict[str, Any]) -> list[str]:
    """The logical ids of the alarms in a rule."""
    return [part["Fn::GetAtt"][0] for part in composite["AlarmRule"]["Fn::Join"][1] if isinstance(part, dict)]


def words_of(composite: dict[str, Any]) -> str:
    return "".join(part if isinstance(part, str) else "x" for part in composite["AlarmRule"]["Fn::Join"][1])


def notified(alarm: dict[str, Any]) -> list[str]:
    return [re.sub(r"[0-9A-F]{8}$", "", action["Ref"]) for action in alarm.get("AlarmActions", [])]


def metric_of(alarm: dict[str, Any]) -> tuple[str, str, int, float]:
    return alarm["MetricName"], alarm["Statistic"], alarm["Period"], alarm["Threshold"]


def test_every_alarm_says_somebody_or_is_part_of_one_that_does(full: Templates) -> None:
    composites = {name: each["Properties"] for name, each in full.of_type(COMPOSITE).items()}
    parts = {part for each in composites.values() for part in parts_of(each)}
    for name, alarm in (full.of_type(COMPOSITE) | single(full)).items():
        # One of both: an alarm that pages by itself and in a composite would page twice.
        assert bool(notified(alarm["Properties"])) is (name not in parts), name


def test_four_alarms_page_and_all_of_them_are_composites(full: Templates) -> None:
    paging = {
        name
        for name, alarm in (full.of_type(COMPOSITE) | single(full)).items()
        if "TopicsPages" in notified(alarm["Properties"])
    }
    assert {name[:-8] for name in paging} == {
        "AlarmsJobsAreLate",
        "AlarmsPromiseBroken",
        "AlarmsJobsFail",
        "AlarmsFunctionsFail",
    }
    assert paging <= set(full.of_type(COMPOSITE))


def test_what_can_wait_makes_a_ticket(full: Templates) -> None:
    names = (
        "BurnSteady",
        "QueueAgeLow",
        "RescueRate",
        "OperationFailures",
        "ErrorsOperations",
        "Shedding",
        "ThrottledWorker",
    )
    assert [notified(named(full, name)) for name in names] == [["TopicsTickets"]] * len(names)


def test_whoever_was_reported_an_alarm_learns_when_it_is_over(full: Templates) -> None:
    for alarm in (full.of_type(COMPOSITE) | single(full)).values():
        assert alarm["Properties"].get("OKActions") == alarm["Properties"].get("AlarmActions")


def test_lateness_pages_by_burn_rates_promotion_all_queues_but_low_and_what_makes_jobs_late(full: Templates) -> None:
    page = named(full, "JobsAreLate")
    assert [name.removeprefix("Alarms")[:-8] for name in parts_of(page)] == [
        "BurnsBurnFastLong",
        "BurnsBurnFastShort",
        "BurnsBurnSlowLong",
        "BurnsBurnSlowShort",
        "OldestBucket",
        "PromotionLag",
        "CriticalLate",
        "QueueAgeCritical",
        "QueueAgeHigh",
        "QueueAgeNormal",
        "ErrorsScanner",
        "ErrorsWorker",
    ]


def test_a_burn_rate_pages_only_where_both_of_its_windows_are_in_alarm(full: Templates) -> None:
    words = words_of(named(full, "JobsAreLate"))
    assert words.startswith('((ALARM("x") AND ALARM("x")) OR (ALARM("x") AND ALARM("x")) OR ALARM("x") OR ')
    assert words.count(" AND ") == 2


@pytest.mark.parametrize(
    ("name", "long", "short", "threshold"),
    [("BurnFast", 3600, 300, 0.0144), ("BurnSlow", 6 * 3600, 1800, 0.006)],
)
def test_a_burn_rate_has_a_long_window_and_a_short_one(
    full: Templates, name: str, long: int, short: int, threshold: float
) -> None:
    share = named(full, f"{name}Long")
    assert (share["Threshold"], share["EvaluationPeriods"]) == (threshold, 1)
    assert shares_of(share) == [("late", "Average", long), ("late", "Sum", long)]
    assert metric_of(named(full, f"{name}Short")) == ("late", "Average", short, threshold)


def test_a_budget_that_is_spent_as_it_comes_in_for_three_days_makes_a_ticket(full: Templates) -> None:
    steady = named(full, "BurnSteady")
    assert (steady["Threshold"], steady["EvaluationPeriods"]) == (0.001, 3)
    assert "DatapointsToAlarm" not in steady  # all three
    assert shares_of(steady) == [("late", "Average", 86_400), ("late", "Sum", 86_400)]


def test_a_few_late_jobs_of_a_quiet_stage_wake_nobody(full: Templates) -> None:
    for name in ("BurnFastLong", "BurnSlowLong", "BurnSteady"):
        expressions = [stat for stat in named(full, name)["Metrics"] if "Expression" in stat]
        assert [stat["Expression"] for stat in expressions] == ["IF(late >= 10, share, 0)"]
        by_id = {
            stat["Id"]: stat["MetricStat"]["Stat"] for stat in named(full, name)["Metrics"] if "MetricStat" in stat
        }
        assert by_id == {"late": "Sum", "share": "Average"}


def shares_of(alarm: dict[str, Any]) -> list[tuple[str, str, int]]:
    stats = [stat["MetricStat"] for stat in alarm["Metrics"] if "MetricStat" in stat]
    return sorted((stat["Metric"]["MetricName"], stat["Stat"], stat["Period"]) for stat in stats)


def test_a_stage_that_promises_less_is_reported_later(templates_of: Callable[[Stage], Templates]) -> None:
    lenient = dataclasses.replace(
        Stage.named("dev"),
        watching=Watching.FULL,
        objective=Objective(lag=timedelta(seconds=5), share=0.99),
        alarm_email="duty@example.com",
    )
    templates = templates_of(lenient)

    assert named(templates, "BurnFastShort")["Threshold"] == 0.144
    assert named(templates, "BurnSteady")["Threshold"] == 0.01
    assert templates.environment("worker")["LAG_OBJECTIVE_MS"] == "5000"
    mailed = [each["Properties"] for each in templates.of_type("AWS::SNS::Subscription").values()]
    assert [(each["Protocol"], each["Endpoint"]) for each in mailed] == [("email", "duty@example.com")] * 2
    assert {each["TopicArn"]["Ref"][:-8] for each in mailed} == {"TopicsPages", "TopicsTickets"}


def test_a_function_that_fails_pages_no_second_time_while_jobs_are_late(full: Templates) -> None:
    failing = named(full, "FunctionsFail")
    (suppressor,) = [name for name in full.of_type(COMPOSITE) if name.startswith("AlarmsJobsAreLate")]
    assert failing["ActionsSuppressor"] == {"Fn::GetAtt": [suppressor, "Arn"]}
    assert (failing["ActionsSuppressorWaitPeriod"], failing["ActionsSuppressorExtensionPeriod"]) == (180, 300)
    watched = {name.removeprefix("Alarms")[:-8] for name in parts_of(failing)}
    assert watched == {
        "ErrorsApi",
        "ErrorsSweeper",
        "ErrorsDeadLetters",
        "RequestsFail",
        "ThrottledApi",
        "SilentScanner",
        "SilentSweeper",
    }


def test_nobody_is_mailed_unless_the_stage_says_whom(templates: Templates) -> None:
    assert templates.of_type("AWS::SNS::Subscription") == {}


def test_the_topics_are_outputs(templates: Templates) -> None:
    outputs = templates.scheduler["Outputs"]
    assert outputs["AlarmTopicArn"]["Value"]["Ref"][:-8] == "TopicsPages"
    assert outputs["TicketTopicArn"]["Value"]["Ref"][:-8] == "TopicsTickets"


def test_topics_need_no_key_refuse_plain_http_and_take_alarms_of_this_account_alone(templates: Templates) -> None:
    assert templates.of_type("AWS::KMS::Key") == {}
    topics = templates.of_type("AWS::SNS::Topic")
    assert len(topics) == 2
    own_account = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    policies = {
        policy["Properties"]["Topics"][0]["Ref"]: policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in templates.of_type("AWS::SNS::TopicPolicy").values()
    }
    for name, topic in topics.items():
        # The key that AWS manages for SNS is no use: alarms may not encrypt with it.
        assert "KmsMasterKeyId" not in topic["Properties"]
        plain, alarms = policies[name]
        assert (plain["Effect"], plain["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
        assert (alarms["Effect"], alarms["Principal"]) == ("Allow", {"Service": "cloudwatch.amazonaws.com"})
        assert (alarms["Action"], alarms["Condition"]) == ("sns:Publish", own_account)


def test_the_local_stage_has_only_alarms_that_the_emulator_knows(templates_of: Callable[[Stage], Templates]) -> None:
    local = templates_of(Stage.named("local"))
    assert local.of_type(COMPOSITE) == {}
    assert [alarm for alarm in single(local).values() if "Metrics" in alarm["Properties"]] == []
    assert len(single(local)) > 20


@pytest.mark.parametrize("email", ["", "duty", "duty@example", "a b@example.com", "a@example.com,b@example.com x"])
def test_an_address_that_is_none_is_refused(email: str) -> None:
    with pytest.raises(InvalidStage, match="dev: alarm_email is "):
        dataclasses.replace(Stage.named("dev"), alarm_email=email)


@pytest.mark.parametrize("share", [0.0, 0.9499, 1.0, 99.9])
def test_a_promise_that_no_alarm_could_watch_is_refused(share: float) -> None:
    with pytest.raises(InvalidObjective, match=f"share is {share}: use 0.95 or more"):
        Objective(share=share)


@pytest.mark.parametrize("lag", [timedelta(0), timedelta(seconds=-1), timedelta(microseconds=1500)])
def test_a_lag_that_cannot_be_measured_is_refused(lag: timedelta) -> None:
    with pytest.raises(InvalidObjective, match="use whole milliseconds"):
        Objective(lag=lag)
