"""What becomes of the schedules of each program, and of files that are broken or hostile."""

import base64
import json
import os
import pickle
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from tickwheel.imports.found import Source
from tickwheel.imports.plan import Plan, Wanted, id_of, plan_of
from tickwheel.imports.reading import read_files
from tickwheel.imports.registry import SOURCES

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)


def plan(source: str, text: str | bytes, folder: Path, *, name: str = "file", **changes: Any) -> Plan:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    wanted = {"tenant": "acme", "now": NOW, "target": "handler:run", **changes}
    return plan_of(read_files([file], SOURCES[source]), Wanted(**wanted))


def only(found: Plan) -> dict[str, Any]:
    assert found.left_out == ()
    (planned,) = found.planned
    return planned.as_json()


def reasons(found: Plan) -> list[tuple[int, str]]:
    return [(each.place.line, each.reason) for each in found.left_out]


CRON_JOB = """\
apiVersion: v1
kind: Service
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: "30 2 */2 * mon"
  timeZone: Europe/Berlin
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 600
  jobTemplate:
    spec:
      backoffLimit: 2
      template:
        spec:
          containers:
            - {name: a, image: shop, args: [report], env: [{name: TOKEN, value: secret}]}
"""


def test_a_cronjob_keeps_its_days_its_clock_and_its_policies(tmp_path: Path) -> None:
    (planned,) = plan("kubernetes", CRON_JOB, tmp_path).planned

    assert planned.entry.place.line == 4
    assert planned.as_json() == {
        "tenant": "acme",
        "id": "shop.report",
        "cron": "30 2 1-31/2 * mon",
        "timezone": "Europe/Berlin",
        "gap": "skip",
        "fold": "both",
        "misfire": "coalesce",
        "max_lateness": 600,
        "overlap": "forbid",
        "job": {
            "target": "handler:run",
            "payload": {"namespace": "shop", "cronjob": "report", "image": "shop", "args": ["report"]},
        },
    }
    assert planned.there == planned.here
    assert planned.differing == ()
    assert "backoffLimit" in planned.remarks[0]


def test_live_cronjobs_are_read_from_json_and_suspended_ones_left_out_unless_they_are_wanted(tmp_path: Path) -> None:
    items = [
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name},
            "spec": {"schedule": "0 * * * *", **spec},
        }
        for name, spec in (("on", {}), ("off", {"suspend": True}), ("patch", {"schedule": None}))
    ]
    text = json.dumps({"kind": "List", "items": items}, indent=1)

    found = plan("kubernetes", text, tmp_path)

    assert [each.schedule.id for each in found.planned] == ["default.on"]
    assert [(each.name, each.is_expected) for each in found.left_out] == [
        ("default.off", True),
        ("default.patch", False),
    ]
    assert [each.schedule.id for each in plan("kubernetes", text, tmp_path, with_suspended=True).planned] == [
        "default.on",
        "default.off",
    ]


SCHEDULE = {
    "Name": "nightly",
    "ScheduleExpression": "cron(30 2 ? * 2-6 2027-2028)",
    "ScheduleExpressionTimezone": "America/New_York",
    "State": "ENABLED",
    "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
    "Target": {
        "Arn": "arn:aws:lambda:eu-central-1:123456789012:function:report",
        "Input": '{"a": 1}',
        "RetryPolicy": {"MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3600},
    },
}


def test_a_schedule_of_eventbridge_keeps_its_target_and_its_clock(tmp_path: Path) -> None:
    found = plan("eventbridge", json.dumps(SCHEDULE), tmp_path, target=None)

    assert only(found) == {
        "tenant": "acme",
        "id": "nightly",
        "cron": "30 2 * * mon-fri",
        "timezone": "America/New_York",
        "gap": "skip",
        "start": "2027-01-01T05:00:00Z",
        "end": "2029-01-01T05:00:00Z",
        "spread": 900,
        "job": {
            "target": "arn:aws:lambda:eu-central-1:123456789012:function:report",
            "payload": {"a": 1},
            "retry": {"attempts": 4},
            "expires_after": 3600,
        },
    }
    assert "EventBridge has 1 for Sunday" in " ".join(found.planned[0].remarks)


def test_what_eventbridge_lists_without_expressions_or_targets_is_left_out_by_name(tmp_path: Path) -> None:
    listed = {
        "Schedules": [{"Name": "a", "Target": {"Arn": "arn:aws:lambda:x"}}, {**SCHEDULE, "Target": {}, "Name": "b"}]
    }

    first, second = reasons(plan("eventbridge", json.dumps(listed, indent=1), tmp_path, target=None))

    assert first[0] == 3
    assert "get-schedule" in first[1]
    assert "--target" in second[1]


TEMPLATE = """\
Parameters:
  Every: {Type: String, Default: rate(5 minutes)}
Resources:
  Rule:
    Type: AWS::Events::Rule
    Properties:
      ScheduleExpression: !Ref Every
      Targets: [{Id: a, Arn: !GetAtt Function.Arn}]
  Function:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Daily: {Type: ScheduleV2, Properties: {ScheduleExpression: !Sub "cron(0 ${Hour} * * ? *)"}}
        Off: {Type: Schedule, Properties: {Schedule: rate(1 day), Enabled: false}}
  Old:
    Type: AWS::Scheduler::Schedule
    Properties: {ScheduleExpression: "rate(1 day)", EndDate: "2015-10-02T15:01:23"}
"""


def test_a_template_is_read_with_the_defaults_of_its_parameters(tmp_path: Path) -> None:
    found = plan("eventbridge", TEMPLATE, tmp_path)

    (rule,) = found.planned
    assert (rule.schedule.id, rule.as_json()["every"], rule.entry.place.line) == ("Rule", 300, 5)
    assert {each.name: each.reason.split(":")[0] for each in found.left_out} == {
        "Function.Daily": "has an expression that a deployment makes",
        "Function.Off": "is switched off there; --suspended takes it, as one that fires",
        "Old": "does not fire any more",
    }


BEAT = """\
import os
from celery.schedules import crontab, solar
from datetime import timedelta
os.system("touch executed")
app.conf.timezone = "Europe/Berlin"
MINUTES = 5
BEAT = {
    "mondays": {"task": "a.first", "schedule": crontab(minute=30, hour="2", day_of_week="mon", day_of_month="1-7"), "args": (1, 2)},
    "often": {"task": "a.often", "schedule": timedelta(minutes=MINUTES), "options": {"expires": 60, "queue": "low"}},
    "sunset": {"task": "a.sun", "schedule": solar("sunset", 1, 2)},
    "thirteenth": {"task": "a.b", "schedule": crontab(day_of_month=13, day_of_week="fri")},
    "env": {"task": "a.c", "schedule": float(os.environ["X"])},
    **more,
}
app.conf.beat_schedule = BEAT
"""


def test_a_beat_schedule_is_read_without_being_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan("celery-beat", BEAT, tmp_path, name="tasks.py")

    assert not (tmp_path / "executed").exists()
    mondays, often = (each.as_json() for each in found.planned)
    assert (mondays["cron"], mondays["timezone"]) == ("30 2 * * mon#1", "Europe/Berlin")
    assert mondays["job"]["payload"] == {"task": "a.first", "args": [1, 2], "kwargs": {}}
    assert (often["every"], often["job"]["expires_after"]) == (300, 60)
    assert "queue" in " ".join(found.planned[1].remarks)
    assert [line for line, _ in reasons(found)] == [10, 11, 12, 13]
    said = " ".join(reason for _, reason in reasons(found))
    assert "sunrise or sunset" in said
    assert "the date and the weekday to match" in said
    assert "known only when the module runs" in said or "none of crontab" in said


def test_a_time_that_a_clock_change_touches_is_told_where_the_other_program_does_not_document_it(
    tmp_path: Path,
) -> None:
    text = 'CELERY_TIMEZONE = "Europe/Berlin"\nbeat_schedule = {"a": {"task": "t", "schedule": crontab(minute=30, hour=2)}}\n'

    (planned,) = plan("celery-beat", text, tmp_path, name="a.py").planned

    assert [remark for remark in planned.remarks if "2027-03-28" in remark and "Celery does not document" in remark]
    assert [remark for remark in planned.remarks if "2027-10-31" in remark]


def test_fixtures_of_django_refer_to_their_schedules(tmp_path: Path) -> None:
    app = "django_celery_beat"
    task = {"task": "t", "args": "[1]", "kwargs": "{}", "enabled": True}
    fixture = [
        {"model": f"{app}.crontabschedule", "pk": 1, "fields": {"minute": "0", "hour": "3", "timezone": "UTC"}},
        {"model": f"{app}.intervalschedule", "pk": 1, "fields": {"every": 2, "period": "hours"}},
        {"model": f"{app}.clockedschedule", "pk": 9, "fields": {"clocked_time": "2030-01-01T00:00:00Z"}},
        {"model": f"{app}.periodictask", "pk": 1, "fields": {"name": "by day", "crontab": 1, **task}},
        {"model": f"{app}.periodictask", "pk": 2, "fields": {"name": "often", "interval": 1, "one_off": True, **task}},
        {"model": f"{app}.periodictask", "pk": 3, "fields": {"name": "lost", "interval": 7, **task}},
        {"model": f"{app}.periodictask", "pk": 4, "fields": {"name": "once", "clocked": 9, **task, "args": "[1"}},
    ]

    found = plan("django-celery-beat", json.dumps(fixture), tmp_path)

    day, often = (each.as_json() for each in found.planned)
    assert (day["id"], day["cron"]) == (id_of("by day"), "0 3 * * *")
    assert (often["every"], often["max_runs"]) == (7200, 1)
    assert [each.name for each in found.left_out] == ["lost", "once"]


class Touch:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


STORED = base64.b64decode(
    "gASVIQQAAAAAAAB9lCiMB3ZlcnNpb26USwGMAmlklIwHbmlnaHRseZSMBGZ1bmOUjApqc29uOmR1bXBzlIwHdHJpZ2dlcpSMGWFw"
    "c2NoZWR1bGVyLnRyaWdnZXJzLmNyb26UjAtDcm9uVHJpZ2dlcpSTlCmBlH2UKGgBSwKMCHRpbWV6b25llIwIYnVpbHRpbnOUjAdn"
    "ZXRhdHRylJOUjAh6b25laW5mb5SMCFpvbmVJbmZvlJOUjAlfdW5waWNrbGWUhpRSlIwNRXVyb3BlL0JlcmxpbpRLAYaUUpSMCnN0"
    "YXJ0X2RhdGWUTowIZW5kX2RhdGWUTowGZmllbGRzlF2UKIwgYXBzY2hlZHVsZXIudHJpZ2dlcnMuY3Jvbi5maWVsZHOUjAlCYXNl"
    "RmllbGSUk5QpgZR9lCiMBG5hbWWUjAR5ZWFylIwKaXNfZGVmYXVsdJSIjAtleHByZXNzaW9uc5RdlIwlYXBzY2hlZHVsZXIudHJp"
    "Z2dlcnMuY3Jvbi5leHByZXNzaW9uc5SMDUFsbEV4cHJlc3Npb26Uk5QpgZR9lIwEc3RlcJROc2JhdWJoHYwKTW9udGhGaWVsZJST"
    "lCmBlH2UKGgijAVtb250aJRoJIhoJV2UaCkpgZR9lGgsTnNiYXViaB2MD0RheU9mTW9udGhGaWVsZJSTlCmBlH2UKGgijANkYXmU"
    "aCSIaCVdlGgpKYGUfZRoLE5zYmF1YmgdjAlXZWVrRmllbGSUk5QpgZR9lChoIowEd2Vla5RoJIhoJV2UaCkpgZR9lGgsTnNiYXVi"
    "aB2MDkRheU9mV2Vla0ZpZWxklJOUKYGUfZQoaCKMC2RheV9vZl93ZWVrlGgkiWglXZRoJ4wWV2Vla2RheVJhbmdlRXhwcmVzc2lv"
    "bpSTlCmBlH2UKGgsTowFZmlyc3SUSwCMBGxhc3SUSwR1YmF1YmgfKYGUfZQoaCKMBGhvdXKUaCSJaCVdlGgnjA9SYW5nZUV4cHJl"
    "c3Npb26Uk5QpgZR9lChoLE5oT0sCaFBLAnViYXViaB8pgZR9lChoIowGbWludXRllGgkiWglXZRoVimBlH2UKGgsTmhPSx5oUEse"
    "dWJhdWJoHymBlH2UKGgijAZzZWNvbmSUaCSIaCVdlGhWKYGUfZQoaCxOaE9LAGhQSwB1YmF1YmWMBmppdHRlcpROdWKMCGV4ZWN1"
    "dG9ylIwHZGVmYXVsdJSMBGFyZ3OUfZSMAWGUSwFzhZSMBmt3YXJnc5R9lGgijAVkdW1wc5SMEm1pc2ZpcmVfZ3JhY2VfdGltZZRN"
    "EA6MCGNvYWxlc2NllIiMDW1heF9pbnN0YW5jZXOUSwGMDW5leHRfcnVuX3RpbWWUjAhkYXRldGltZZSMCGRhdGV0aW1llJOUQwoH"
    "6gseAh4AAAAAlGgYhpRSlHUu"
)
"""The state of a job that APScheduler 3.11.3 has pickled: a cron at 02:30 from Monday to Friday in Berlin."""


def a_store(folder: Path, **states: bytes) -> bytes:
    file = folder / "store"
    database = sqlite3.connect(file)
    database.execute("create table apscheduler_jobs (id varchar(191), next_run_time float, job_state blob)")
    database.executemany("insert into apscheduler_jobs values (?, 0, ?)", states.items())
    database.commit()
    database.close()
    return file.read_bytes()


def test_a_job_store_is_read_without_calling_anything_that_its_pickles_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    states = {"nightly": STORED, "hostile": pickle.dumps({"trigger": Touch()}), "broken": b"\x80\x04."}

    found = plan("apscheduler", a_store(tmp_path, **states), tmp_path, name="jobs.sqlite")

    assert not (tmp_path / "executed").exists()
    (planned,) = found.planned
    definition = planned.as_json()
    assert (definition["cron"], definition["timezone"]) == ("30 2 * * mon-fri", "Europe/Berlin")
    assert (definition["gap"], definition["fold"]) == ("skip", "both")
    assert (definition["overlap"], definition["misfire"], definition["max_lateness"]) == ("forbid", "coalesce", 3600)
    assert definition["job"]["payload"] == {"func": "json:dumps", "args": [{"a": 1}], "kwargs": {}}
    assert sorted(each.name for each in found.left_out) == ["broken", "hostile"]


def test_jobs_in_json_have_the_triggers_of_apscheduler(tmp_path: Path) -> None:
    jobs = [
        {"id": "a", "func": "m:f", "trigger": "cron", "day_of_week": "0", "hour": "9"},
        {"id": "b", "func": "m:f", "trigger": "interval", "hours": 2, "next_run_time": "2027-01-01T00:00:00+00:00"},
        {"id": "c", "func": "m:f", "trigger": "interval", "hours": 2, "next_run_time": None},
        {"id": "d", "func": "m:f", "trigger": "cron", "day": "last fri", "hour": "9"},
        {"id": "e", "func": "m:f", "trigger": "cron", "second": "*/10"},
    ]

    found = plan("apscheduler", json.dumps(jobs), tmp_path)

    assert [each.as_json().get("cron") for each in found.planned] == ["0 9 * * mon", None, "0 9 * * friL"]
    assert [each.name for each in found.left_out] == ["c", "e"]


def test_functions_of_serverless_have_several_schedules(tmp_path: Path) -> None:
    text = """\
functions:
  report:
    handler: a.b
    events:
      - schedule: cron(0/2 * ? * MON-FRI *)
      - schedule: {rate: [rate(1 hour), "${self:custom.rate}"], input: {a: 1}}
      - schedule: {rate: rate(1 day), enabled: false}
"""
    found = plan("serverless", text, tmp_path, target="arn:aws:lambda:eu-central-1:123456789012:function:{name}")

    first, second = (each.as_json() for each in found.planned)
    assert (first["id"], first["cron"]) == ("report", "0-59/2 * * * mon-fri")
    assert first["job"]["target"].endswith(":function:report")
    assert (second["id"], second["every"], second["job"]["payload"]) == ("report-2", 3600, {"a": 1})
    assert [each.name for each in found.left_out] == ["report-2-2", "report-3"]


def test_quartz_and_spring_read_the_same_numbers_as_different_days(tmp_path: Path) -> None:
    text = "# jobs\nreport.cron=0 30 9 ? * 2\n*/10 * * * * ?\n15 0 0 * * ?\n"

    quartz, spring = (plan(each, text, tmp_path) for each in ("quartz", "spring"))

    assert [each.as_json().get("cron") for each in quartz.planned] == ["30 9 * * mon", None]
    assert [each.as_json().get("cron") for each in spring.planned] == ["30 9 * * tue", None]
    assert [each.schedule.id for each in quartz.planned] == ["report.cron", "line-3"]
    assert [line for line, _ in reasons(quartz)] == [4]


def test_dags_of_airflow_are_read_without_being_executed(tmp_path: Path) -> None:
    text = """\
import pendulum
start = pendulum.datetime(2027, 1, 1, tz="Europe/Berlin")
with DAG("daily", schedule="@daily", start_date=start, catchup=False, max_active_runs=1):
    pass
@dag(schedule=timedelta(hours=6))
def often(): ...
DAG("none", schedule=None)
DAG("assets", schedule=[Dataset("a")])
"""
    found = plan("airflow", text, tmp_path, name="dags.py")

    daily, often = sorted((each.as_json() for each in found.planned), key=lambda each: each["id"])
    assert (daily["cron"], daily["timezone"], daily["misfire"], daily["overlap"]) == (
        "0 0 * * *",
        "Europe/Berlin",
        "coalesce",
        "buffer_one",
    )
    assert (often["id"], often["every"]) == ("often", 21600)
    assert {each.name: each.is_expected for each in found.left_out} == {"none": True, "assets": False}


def test_crons_of_a_workflow_are_found_under_on(tmp_path: Path) -> None:
    text = "name: nightly\non:\n  push:\n  schedule:\n    - cron: '37 0 * * 1'\n    - cron: '0 0 * * 8'\n"

    found = plan("github", text, tmp_path, name="ci.yml")

    (planned,) = found.planned
    assert (planned.schedule.id, planned.as_json()["cron"]) == ("ci", "37 0 * * mon")
    assert planned.entry.place.line == 5
    assert reasons(found) == [(6, "'8' in the day of week is not from 0 to 6 or a name")]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "expands to more than"),
        ("[" * 5_000, "nested"),
        ("a: &a [*a]", "expands to more than"),
        ("{" + '"a":{' * 50_000, "JSON"),
        ("a: [", "is not YAML"),
        ("a: !!python/object/apply:os.mkdir [executed]\nkind: CronJob", "is of the API"),
        ("\x00", "is not YAML"),
    ],
)
def test_a_hostile_document_is_left_out_by_name(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = plan("kubernetes", text, tmp_path)

    assert not (tmp_path / "executed").exists()
    assert all(reason in each.reason or "nested" in each.reason for each in found.left_out)
    assert found.left_out


@pytest.mark.parametrize("source", sorted(SOURCES))
@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"{}", b"[1, null, {}]", b"\xff\xfe\x00", b'{"jobs": 7}', b"a: b\n", b"0 0 * * *"]
)
def test_no_file_is_too_odd_for_a_source(source: str, text: bytes, tmp_path: Path) -> None:
    plan(source, text, tmp_path)


def test_names_that_no_id_can_be_become_one_that_stays() -> None:
    assert id_of("nightly.report") == "nightly.report"
    assert id_of("by day") == id_of("by day") != id_of("by-day")
    assert id_of("ä").startswith("schedule-")
    assert len(id_of("x" * 500)) == 64


FOLDERS = {
    "crontab": "crontab/*",
    "kubernetes": "kubernetes-cronjob/*",
    "eventbridge": "eventbridge-cloudformation/*",
    "serverless": "serverless/*",
    "django-celery-beat": "django-celery-beat/*",
    "quartz": "quartz-spring.jsonl",
    "spring": "quartz-spring.jsonl",
}


@pytest.mark.parametrize("source", sorted(FOLDERS))
def test_files_of_other_people_end_in_a_plan_that_the_scheduler_takes(source: str) -> None:
    folder = os.environ.get("TICKWHEEL_IMPORT_FILES")
    if not folder:
        pytest.skip("TICKWHEEL_IMPORT_FILES names no folder with schedules of other programs: NOTHING REAL IS READ")
    files = sorted(Path(folder).glob(FOLDERS[source]))
    read: Source = SOURCES[source]
    for file in files:
        found = plan_of(
            read_files([file], read), Wanted(tenant="acme", now=NOW, target="handler:run", timezone="Europe/Berlin")
        )
        for each in found.planned:
            cron = each.as_json().get("cron")
            if cron is not None:
                parse_cron(cron)
                check_new_cron(cron)
                assert each.there == each.here, (file, each.entry.written)
                assert each.differing == ()
    assert files
