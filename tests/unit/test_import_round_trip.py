"""Each source from a file of it into a scheduler and back: what is stored is what was planned, and what is exported is that again."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from testkit.in_memory import Scheduler
from testkit.in_process_api import InProcess
from tests.api_server import Answer, ApiServer, Request
from tests.command_line import run
from tests.unit.test_cli_import_plan import CRONTAB
from tests.unit.test_import_sources import BEAT, CRON_JOB, FOLDERS, SCHEDULE, STORED, TEMPLATE, a_store
from tickwheel.client import NewSchedule
from tickwheel.commands.import_plan import apply_all
from tickwheel.commands.schedules_file import exported
from tickwheel.imports.plan import Plan, Wanted, plan_of
from tickwheel.imports.reading import read_files
from tickwheel.imports.registry import SOURCES

_DJANGO = "django_celery_beat"
_DAGS = """\
import pendulum
start = pendulum.datetime(2027, 1, 1, tz="Europe/Berlin")
with DAG("daily", schedule="@daily", start_date=start, catchup=False, max_active_runs=1):
    pass
@dag(schedule=timedelta(hours=6))
def often(): ...
"""
_FUNCTIONS = """\
functions:
  report:
    handler: a.b
    events:
      - schedule: cron(0/2 * ? * MON-FRI *)
      - schedule: {rate: [rate(1 hour)], input: {a: 1}}
"""
_TASK = {"task": "t", "args": "[1]", "kwargs": "{}", "enabled": True}
FILES: Mapping[str, tuple[str, str]] = {
    "crontab": ("jobs.crontab", CRONTAB),
    "system-crontab": (
        "certbot",
        "PATH=/bin\n0\t*/12 * * *\troot\ttest -x /usr/bin/certbot\n@daily nobody /bin/true\n",
    ),
    "kubernetes": ("jobs.yaml", CRON_JOB),
    "eventbridge": (
        "rules.json",
        json.dumps({"Schedules": [SCHEDULE, {**SCHEDULE, "Name": "often", "ScheduleExpression": "rate(5 minutes)"}]}),
    ),
    "celery-beat": ("tasks.py", BEAT),
    "django-celery-beat": (
        "fixture.json",
        json.dumps(
            [
                {
                    "model": f"{_DJANGO}.crontabschedule",
                    "pk": 1,
                    "fields": {"minute": "0", "hour": "3", "timezone": "UTC"},
                },
                {"model": f"{_DJANGO}.intervalschedule", "pk": 1, "fields": {"every": 2, "period": "hours"}},
                {"model": f"{_DJANGO}.periodictask", "pk": 1, "fields": {"name": "by day", "crontab": 1, **_TASK}},
                {"model": f"{_DJANGO}.periodictask", "pk": 2, "fields": {"name": "often", "interval": 1, **_TASK}},
            ]
        ),
    ),
    "apscheduler": (
        "jobs.json",
        json.dumps(
            [
                {"id": "a", "func": "m:f", "trigger": "cron", "day_of_week": "0", "hour": "9"},
                {"id": "b", "func": "m:f", "trigger": "interval", "hours": 2},
                {"id": "d", "func": "m:f", "trigger": "cron", "day": "last fri", "hour": "9", "kwargs": {"a": None}},
            ]
        ),
    ),
    "serverless": ("serverless.yml", _FUNCTIONS),
    "quartz": ("jobs.properties", "report.cron=0 30 9 ? * 2\n*/10 * * * * ?\nlast=0 0 9 LW * ?\n"),
    "spring": ("jobs.properties", "report.cron=0 30 9 ? * 2\n*/10 * * * * ?\n"),
    "airflow": ("dags.py", _DAGS),
    "github": ("ci.yml", "name: nightly\non:\n  schedule:\n    - cron: '37 0 * * 1'\n    - cron: '5,35 */2 1 * *'\n"),
}
"""An example of each source, ours."""


@contextmanager
def served(scheduler: Scheduler, transport: httpx.BaseTransport) -> Iterator[ApiServer]:
    """The real API behind a real server: the command speaks HTTP. One request at a time: its stores are made for one thread."""
    turn = threading.Lock()

    def forward(request: Request) -> Answer:
        with turn:
            url = f"https://scheduler.invalid{request.path}"
            answer = transport.handle_request(httpx.Request(request.method, url, content=request.body))
        return Answer(answer.status_code, answer.read())

    with scheduler, ApiServer(otherwise=forward) as server:
        yield server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    made: list[InProcess] = []

    class Kept(InProcess):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            made.append(self)

    monkeypatch.setattr("testkit.in_memory.InProcess", Kept)
    scheduler = Scheduler()
    with served(scheduler, made[0]) as server:
        yield server


def read(file: Path) -> dict[str, Any]:
    return dict(meaning(json.loads(line)) for line in file.read_text().splitlines())


def meaning(line: dict[str, Any]) -> tuple[str, Any]:
    """A definition by its id. An interval is said in two ways."""
    schedule = NewSchedule.from_json(line)
    body = schedule.as_json()
    if "every" in body and not isinstance(body["every"], dict):
        body["every"] = {"interval": body["every"]}
    return schedule.id, body


@pytest.mark.parametrize("source", sorted(FILES))
def test_what_is_planned_is_stored_and_what_is_exported_is_the_same_again(
    source: str, server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, text = FILES[source]
    (tmp_path / name).write_text(text)
    asked = ("import", name, "--from", source, "--tenant", "acme", "--target", "handler:run", "-o", "plan.jsonl")

    run(*asked, server=server)
    assert server.requests == []
    planned = read(tmp_path / "plan.jsonl")
    assert planned
    count = len(planned)

    first = run(*asked, "--apply", server=server)
    assert f"created {count}, changed 0, unchanged 0, refused 0\n" in first.stdout
    again = run(*asked, "--apply", server=server)
    assert f"created 0, changed 0, unchanged {count}, refused 0\n" in again.stdout
    assert run("import", "plan.jsonl", server=server).stdout == (
        f"stored {count}, refused 0 (created 0, changed 0, unchanged {count})\n"
    )

    run("export", "--tenant", "acme", "-o", "all.jsonl", server=server)
    assert read(tmp_path / "all.jsonl") == planned
    back = run("import", "all.jsonl", server=server)
    assert back.stdout == f"stored {count}, refused 0 (created 0, changed 0, unchanged {count})\n"


def test_every_source_has_an_example() -> None:
    assert set(FILES) == set(SOURCES)


def test_a_store_and_a_template_come_back_too(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.sqlite").write_bytes(a_store(tmp_path, nightly=STORED))
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    for name, source in (("jobs.sqlite", "apscheduler"), ("template.yaml", "eventbridge")):
        asked = ("import", name, "--from", source, "--tenant", "acme", "--target", "handler:run", "--apply")
        assert "created 1, changed 0, unchanged 0, refused 0" in run(*asked, server=server).stdout

    run("export", "--tenant", "acme", "-o", "all.jsonl", server=server)
    planned = read(tmp_path / "jobs.schedules.jsonl") | read(tmp_path / "template.schedules.jsonl")
    assert read(tmp_path / "all.jsonl") == planned


def test_a_file_that_says_something_else_changes_that_schedule_alone(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.crontab").write_text(CRONTAB)
    asked = ("import", "jobs.crontab", "--from", "crontab", "--tenant", "acme", "--target", "handler:run", "--apply")
    run(*asked, server=server)
    (tmp_path / "jobs.crontab").write_text(CRONTAB.replace("30 2 * * *", "45 3 * * *"))

    assert "created 0, changed 1, unchanged 1, refused 0" in run(*asked, server=server).stdout


@pytest.mark.parametrize("source", sorted(FOLDERS))
def test_files_of_other_people_are_stored_and_come_back(source: str) -> None:
    folder = os.environ.get("TICKWHEEL_IMPORT_FILES")
    if not folder:
        pytest.skip("TICKWHEEL_IMPORT_FILES names no folder with schedules of other programs: NOTHING REAL IS READ")
    stored: dict[str, Any] = {}
    with Scheduler() as scheduler:
        for number, files in enumerate(_together(source, sorted(Path(folder).glob(FOLDERS[source])))):
            found = _plan(source, files, prefix=f"f{number}-")
            asked = [each.schedule for each in found.planned]
            first, again = (apply_all(scheduler.client, asked, lambda _: None) for _ in range(2))
            assert (first.failed, len(first.created)) == ([], len(asked)), (files, first)
            assert len(again.unchanged) == len(asked), (files, again)
            stored |= dict(meaning(each.as_json()) for each in found.planned)
        listed = list(scheduler.client.schedules.list(tenant="acme"))
        assert dict(meaning(exported(each)) for each in listed) == stored


def _together(source: str, files: list[Path]) -> list[list[Path]]:
    """A fixture has its parts in files that refer to each other."""
    return [files] if source == "django-celery-beat" else [[file] for file in files]


def _plan(source: str, files: list[Path], *, prefix: str) -> Plan:
    wanted = {"tenant": "acme", "now": datetime.now(UTC), "target": "handler:run", "timezone": "Europe/Berlin"}
    return plan_of(read_files(files, SOURCES[source]), Wanted(**wanted, prefix=prefix))
