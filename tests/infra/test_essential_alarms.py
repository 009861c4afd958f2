"""A stage that is watched for the essential: each of its alarms goes off by a fault, and what must page on any stage does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest

from functions.domain.metrics import INCIDENTS, MUST_BE_ZERO
from infra.stage import STAGES
from infra.stage import Stage as StageValue
from infra.stage_parts import Watching
from scripts.synthesis import Templates
from testkit.cloudwatch.alarms import Alarms, short_name
from testkit.cloudwatch.datapoints import metric
from testkit.events import Context
from tests.infra import test_alarms as faults
from tests.infra.watched import Watched, watched_stage
from tests.integration.stage import NAMESPACE

Fault = Callable[[Watched], None]


def every_tick_fails(watched: Watched) -> None:
    """For four minutes; it is no silence, because Lambda counts each as an invocation."""
    for _ in range(2):
        faults.lose_a_setting(watched, ["scanner", "sweeper"])


FAULTS: dict[str, tuple[Fault, ...]] = {
    "PromotionLag": (faults.some_shards_are_not_scanned,),
    "QueueAgeCritical": (faults.messages_wait,),
    "QueueAgeHigh": (faults.messages_wait,),
    "QueueAgeNormal": (faults.messages_wait,),
    "BurnFastLong": (faults.jobs_are_late,),
    "Incidents": (
        faults.a_job_is_passed_over,
        faults.a_schedule_loses_its_time_zone,
        faults.a_clock_is_set_back,
        faults.a_clock_is_wrong,
        faults.a_job_fails_for_good,
        faults.a_target_tells_that_it_failed,
        faults.a_row_cannot_be_read,
        faults.a_straggler_cannot_be_sent,
        faults.a_foreign_message_is_dead,
        faults.the_audit_stream_is_gone,
    ),
    "HeldTooLong": (faults.held_rows_are_not_put_anew,),
    "DeadLetters": (faults.nobody_consumes_dead_letters,),
    "SilentScanner": (faults.nothing_ticks, every_tick_fails),
    "SilentSweeper": (faults.nothing_ticks, every_tick_fails),
    "ErrorsApi": (faults.a_deployment_forgets_a_setting,),
    "RequestsFail": (faults.a_store_fails_the_api,),
    "ThrottledApi": (faults.the_account_has_no_concurrency_left,),
    "ThrottledWorker": (faults.the_account_has_no_concurrency_left,),
}
"""By the alarm, what sets it off: each of them does."""

PAIRS = [(name, fault) for name, each in FAULTS.items() for fault in each]


@pytest.fixture(scope="module")
def alarms(templates_of: Callable[[StageValue], Templates]) -> Alarms:
    """Of the local stage, whose constants the handlers have here."""
    stage = dataclasses.replace(StageValue.named("local"), emulated=False, watching=Watching.ESSENTIAL)
    return Alarms(templates_of(stage).scheduler["Resources"])


@pytest.fixture
def watched(alarms: Alarms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Watched]:
    monkeypatch.setenv("WATCHING", Watching.ESSENTIAL)
    with watched_stage(alarms, monkeypatch, capsys) as watched:
        for _ in range(3):
            faults.be_well(watched)
        watched.went_off.clear()  # before their first ticks, scanner and sweeper were silent
        yield watched


def test_every_essential_alarm_is_set_off_by_a_fault(alarms: Alarms) -> None:
    assert {short_name(each) for each in alarms.single} == set(FAULTS)
    assert alarms.composites == {}


@pytest.mark.parametrize(("name", "fault"), PAIRS, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_sets_an_essential_alarm_off(watched: Watched, name: str, fault: Fault) -> None:
    watched.next_minute()
    assert name not in watched.went_off

    fault(watched)

    watched.next_minute()
    assert name in watched.went_off


def test_a_stage_that_is_well_sets_off_nothing(watched: Watched) -> None:
    assert watched.in_alarm() == set()


def test_one_tick_that_fails_is_no_silence(watched: Watched) -> None:
    watched.stop_functions()
    with watched.patch.context() as patched:
        patched.delenv("LEDGER_TABLE")
        watched.handle("sweeper", {}, Context())
    faults.be_well(watched)
    assert watched.in_alarm() == set()


def test_one_shard_that_ticks_is_enough_to_tell_silence_from_a_shard_that_is_behind(watched: Watched) -> None:
    faults.some_shards_are_not_scanned(watched)
    assert watched.in_alarm() == {"PromotionLag"}


def test_an_incident_has_no_dimensions_and_what_it_is_stands_in_the_log_alone(watched: Watched) -> None:
    faults.a_job_fails_for_good(watched)
    counted = [of for of in watched.data.values if of.name == INCIDENTS]
    assert counted == [metric(NAMESPACE, INCIDENTS)]
    assert {of.name for of in watched.data.values} & set(MUST_BE_ZERO) == set()


def test_every_essential_alarm_pages_and_leads_to_the_runbook(templates_of: Callable[[StageValue], Templates]) -> None:
    templates = templates_of(StageValue.named("small"))
    for alarm in templates.of_type("AWS::CloudWatch::Alarm").values():
        (topic,) = alarm["Properties"]["AlarmActions"]
        assert topic["Ref"].startswith("TopicsPages")
        assert alarm["Properties"]["OKActions"] == alarm["Properties"]["AlarmActions"]


def test_the_essential_is_fifteen_metrics_no_composite_and_no_dashboard(
    templates_of: Callable[[StageValue], Templates],
) -> None:
    for stage in STAGES:
        if stage.watching is Watching.ESSENTIAL:
            templates = templates_of(stage)
            alarms = [each["Properties"] for each in templates.of_type("AWS::CloudWatch::Alarm").values()]
            assert sum(sum("MetricStat" in each for each in alarm.get("Metrics", ())) or 1 for alarm in alarms) == 15
            assert not templates.of_type("AWS::CloudWatch::CompositeAlarm")
            assert not templates.of_type("AWS::CloudWatch::Dashboard")
