from datetime import timedelta
from typing import Any

import pytest

from functions.api.http.problems import Misshapen
from functions.api.http.requests import Rules
from functions.api.schedules.patch import names_payload, patched
from functions.domain.errors import InvalidInput, InvalidSchedule
from functions.domain.instants import MINUTE
from functions.domain.jobs.job import Payload
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.schedules.rules import CronRule, Every, Poisson
from functions.domain.schedules.schedule import Calendar
from functions.domain.targets.options import TargetOptions
from testkit.builders import NOON, a_schedule, a_template, every

RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
POINTER = "schedules/acme/nightly/1"


def test_an_empty_patch_changes_nothing():
    schedule = a_schedule(calendar=Calendar(holidays=("DE",)), spread=timedelta(minutes=5))

    assert patched(schedule, {}, RULES) == schedule


def test_what_a_patch_does_not_name_stays():
    schedule = a_schedule(spread=timedelta(minutes=5), max_runs=7)

    after = patched(schedule, {"spread": "PT10M"}, RULES)

    assert (after.spread, after.max_runs, after.rule) == (timedelta(minutes=10), 7, schedule.rule)


def test_null_removes_a_field():
    assert patched(a_schedule(max_runs=7), {"max_runs": None}, RULES).max_runs is None


def test_objects_are_merged_and_lists_are_replaced():
    schedule = a_schedule(calendar=Calendar(holidays=("DE", "US"), weekends=True))

    after = patched(schedule, {"calendar": {"holidays": ["FR"]}}, RULES)

    assert after.calendar == Calendar(holidays=("FR",), weekends=True)


@pytest.mark.parametrize(
    ("patch", "rule"),
    [
        ({"cron": "0 3 * * *"}, CronRule("0 3 * * *")),
        ({"poisson": {"per_day": 5}, "every": None}, Poisson(5)),
        ({"every": {"phase": 60}}, Every(interval=timedelta(hours=1), phase=timedelta(minutes=1))),
        ({"every": 60}, Every(interval=timedelta(minutes=1))),
    ],
)
def test_a_rule_takes_the_place_of_the_rule(patch: dict[str, Any], rule: object):
    assert patched(a_schedule(rule=every(hours=1)), patch, RULES).rule == rule


@pytest.mark.parametrize(
    ("patch", "field"), [({"every": None}, "rule"), ({"cron": "0 3 * * *", "every": 60}, "rule"), ({"job": None}, "")]
)
def test_a_patch_that_leaves_no_whole_definition_is_refused(patch: dict[str, Any], field: str):
    with pytest.raises((InvalidSchedule, Misshapen)) as refused:
        patched(a_schedule(), patch, RULES)

    assert getattr(refused.value, "field", "") == field


@pytest.mark.parametrize("patch", [None, [], "x", 7])
def test_a_patch_that_is_no_object_is_refused(patch: Any):
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        patched(a_schedule(), patch, RULES)


def test_a_payload_is_merged_like_any_other_part():
    schedule = a_schedule(job=a_template(payload=Payload(text='{"a":1,"b":{"c":2}}')))

    after = patched(schedule, {"job": {"payload": {"a": None, "b": {"d": 3}}}}, RULES)

    assert after.job.payload == Payload(text='{"b":{"c":2,"d":3}}')


def test_a_header_is_changed_and_removed_by_itself():
    options = TargetOptions(headers=(("X-Key", "old"), ("X-Team", "billing")), retry_codes=(404,))
    schedule = a_schedule(job=a_template(options=options, tags=("a", "b")))
    patch = {"job": {"http": {"headers": {"X-Key": "new", "X-Team": None}}, "tags": ["c"]}}

    after = patched(schedule, patch, RULES)

    assert after.job.options == TargetOptions(headers=(("X-Key", "new"),), retry_codes=(404,))
    assert after.job.tags == ("c",)


def test_null_removes_what_is_said_of_http_and_of_a_retry_s_age():
    job = a_template(options=TargetOptions(retry_codes=(404,)), retry=RetryPolicy(max_age=timedelta(hours=1)))

    after = patched(a_schedule(job=job), {"job": {"http": None, "retry": {"max_age": None}}}, RULES)

    assert (after.job.options, after.job.retry) == (TargetOptions(), RetryPolicy())


def test_a_patch_of_intervals_takes_the_number_of_attempts_with_it():
    before = a_schedule(job=a_template(retry=RetryPolicy.of_intervals([MINUTE, 5 * MINUTE])))

    after = patched(before, {"job": {"retry": {"intervals": [60, 300, 1800]}}}, RULES)

    assert after.job.retry == RetryPolicy.of_intervals([MINUTE, 5 * MINUTE, 30 * MINUTE])
    assert patched(after, {"job": {"retry": {"intervals": None}}}, RULES).job.retry == RetryPolicy()


def test_a_stored_payload_stays_when_the_patch_does_not_name_it():
    schedule = a_schedule(job=a_template(payload=Payload(pointer=POINTER)))

    assert patched(schedule, {"job": {"priority": "high"}}, RULES).job.payload == Payload(pointer=POINTER)


def test_a_stored_payload_is_merged_when_the_patch_names_it():
    schedule = a_schedule(job=a_template(payload=Payload(pointer=POINTER)))
    patch = {"job": {"payload": {"b": 2}}}

    assert names_payload(patch)
    assert patched(schedule, patch, RULES, stored_payload='{"a":1}').job.payload == Payload(text='{"a":1,"b":2}')


def test_a_stored_payload_is_removed_by_null():
    schedule = a_schedule(job=a_template(payload=Payload(pointer=POINTER)))

    after = patched(schedule, {"job": {"payload": None}}, RULES, stored_payload="[1]")

    assert after.job.payload == Payload()


def test_a_patch_cannot_point_at_a_payload():
    with pytest.raises(InvalidSchedule) as refused:
        patched(a_schedule(), {"job": {"payload_pointer": "schedules/else/nightly/1"}}, RULES)

    assert refused.value.field == "job.payload_pointer"


def test_a_patch_that_is_nested_too_deeply_is_refused():
    patch: dict[str, Any] = {}
    for _ in range(100_000):
        patch = {"a": patch}

    with pytest.raises(InvalidInput, match="nested too deeply"):
        patched(a_schedule(), patch, RULES)
