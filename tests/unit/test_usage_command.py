"""What a tenant has used, as the client reads it and the command shows it."""

import json
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests import command_line
from tests.api_server import Answer, ApiServer
from tickwheel.client import Client
from tickwheel.client.tenants import Cap, Figures, ScheduleLoad, Usage

FIRST: dict[str, int] = {"submitted": 1200, "executed": 5, "succeeded": 4, "failed": 1, "units": 9, "bytes": 70}
SECOND = {**FIRST, "submitted": 34}
TOTAL = {name: FIRST[name] + SECOND[name] for name in FIRST}
TOLD: dict[str, Any] = {
    "tenant": "acme",
    "from": "2026-11-01",
    "until": "2026-11-22",
    "days": [{"day": "2026-11-02", **FIRST}, {"day": "2026-11-20", **SECOND}],
    "total": TOTAL,
}


run = partial(command_line.run, "tenant", "usage")


def test_the_client_asks_for_days_and_reads_what_it_is_given() -> None:
    with ApiServer(Answer(200, TOLD)) as server, Client(server.url, region="us-east-1") as client:
        found = client.tenants.usage("acme", first=date(2026, 11, 1), last=date(2026, 11, 22))

    assert server.requests[0].path == "/v1/tenants/acme/usage?from=2026-11-01&until=2026-11-22"
    days = {date(2026, 11, 2): Figures(**FIRST), date(2026, 11, 20): Figures(**SECOND)}
    assert found == Usage(
        tenant="acme", first=date(2026, 11, 1), last=date(2026, 11, 22), days=days, total=Figures(**TOTAL)
    )


def test_the_client_leaves_out_what_is_not_said() -> None:
    with ApiServer(Answer(200, TOLD)) as server, Client(server.url, region="us-east-1") as client:
        client.tenants.usage("a.b")

    assert server.requests[0].path == "/v1/tenants/a.b/usage"


def test_the_command_shows_each_day_and_the_totals() -> None:
    with ApiServer(Answer(200, TOLD)) as server:
        result = run("acme", server=server)

    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["day", *FIRST]
    assert lines[1] == ["2026-11-02", "1,200", "5", "4", "1", "9", "70"]
    assert lines[-1] == ["2026-11-01", "to", "2026-11-22", "1,234", "10", "8", "2", "18", "140"]


def test_the_command_asks_for_so_many_days_until_today() -> None:
    with ApiServer(Answer(200, TOLD)) as server:
        result = run("acme", "--days", "7", "--json", server=server)

    assert json.loads(result.stdout) == TOLD
    asked = {
        name: date.fromisoformat(day) for name, (day,) in parse_qs(urlsplit(server.requests[0].path).query).items()
    }
    assert asked["until"] - asked["from"] == timedelta(days=6)
    assert datetime.now(UTC).date() - asked["until"] <= timedelta(days=1)


LOAD: dict[str, Any] = {
    "count": 1_234,
    "max_schedules": 10_000,
    "fires_per_minute": 20.57,
    "max_fires_per_minute": "unlimited",
}


def test_what_its_schedules_come_to_is_read_and_shown_beside_the_days() -> None:
    with ApiServer(*[Answer(200, {**TOLD, "schedules": LOAD})] * 3) as server:
        with Client(server.url, region="us-east-1") as client:
            found = client.tenants.usage("acme")
        shown = run("acme", server=server).stdout
        answer = json.loads(run("acme", "--json", server=server).stdout)

    assert found.schedules == ScheduleLoad(**LOAD)
    assert shown.splitlines()[-1] == "now: 1,234 schedules of 10,000, 20.57 fires a minute of unlimited"
    assert answer["schedules"] == LOAD


def test_what_waits_for_a_cap_is_reported_and_what_it_can_never_serve() -> None:
    cap = {"execution_rate": 0.5, "waiting": 108000, "waiting_days": 2.5, "is_exceeded_by_schedules": True}
    answer = Answer(200, {**TOLD, "cap": cap})
    with ApiServer(answer, answer, answer) as server:
        result = run("acme", server=server)
        as_json = run("acme", "--json", server=server)
        with Client(server.url, region="us-east-1") as client:
            found = client.tenants.usage("acme")

    assert result.stdout.splitlines()[-1] == (
        "cap: 0.5 executions a second; 108,000 jobs wait for it, and take 2.5 days to run; "
        "the schedules fire faster than it allows, so the backlog only grows"
    )
    assert json.loads(as_json.stdout)["cap"] == cap
    assert found.cap == Cap(execution_rate=0.5, waiting=108_000, waiting_days=2.5, is_exceeded_by_schedules=True)
