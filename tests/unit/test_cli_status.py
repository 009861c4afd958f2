"""`tickwheel status` against a real server: what it prints, and how it exits."""

import io
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from rich.console import Console
from typer.testing import Result

from tests import command_line
from tests.api_server import Answer, ApiServer
from tests.unit.test_client_health import class_json, health_json, troubled_json
from tickwheel.client.health import Health
from tickwheel.screens.status import duration, screen_of

PROBLEM = Answer(403, {"type": "x", "title": "No", "status": 403, "code": "forbidden"})


run = partial(command_line.run, "status")


def status(answer: dict[str, Any], *arguments: str) -> Result:
    with ApiServer(Answer(200, answer)) as server:
        return run(*arguments, server=server)


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.output.splitlines()]


@pytest.mark.parametrize(("word", "code"), [("ok", 0), ("paused", 0), ("behind", 1), ("unknown", 1)])
def test_the_exit_code_says_whether_somebody_has_to_look(word: str, code: int) -> None:
    result = status(health_json(status=word))

    assert result.exit_code == code, result.output
    assert result.output.startswith(f"{word}  at 2030-01-31 12:00:00 UTC")


def test_stage_and_endpoint_are_named() -> None:
    with ApiServer(Answer(200, health_json(stage="prod")), Answer(200, health_json(stage="prod"))) as server:
        people, script = run(server=server), run("--json", server=server)

    assert people.output.splitlines()[1] == f"stage prod at {server.url}"
    assert {"stage": "prod", "endpoint": server.url, "context": None}.items() <= json.loads(script.stdout).items()


def test_a_release_that_does_not_say_its_stage_has_an_endpoint() -> None:
    with ApiServer(Answer(200, health_json())) as server:
        result = run(server=server)

    assert result.output.splitlines()[1] == server.url


def test_a_stage_with_which_all_is_well_shows_its_classes_and_nothing_that_there_is_not() -> None:
    result = status(health_json())

    assert ["normal", "1,234", "17", "50,000", "-", "12:02:00", "accepted"] in rows(result)
    assert "2 shards; tenants with a cursor of their own: 0 behind, 0 held" in result.output
    assert "the sweeper published 42s ago; the bucket audit has reached 11:54:00" in result.output
    for heading in ("breakers", "tenants that", "scanned"):
        assert heading not in result.output


def test_a_stage_in_trouble_shows_why_and_what_is_behind() -> None:
    result = status(troubled_json())

    assert "  normal is 40 minutes behind\n  submissions of low are refused\n" in result.output
    found = rows(result)
    assert ["normal", "1,234", "17", "50,000", "40m", "00s", "11:20:00", "accepted"] in found
    assert ["high", "1,234", "17", "full", "-", "12:02:00", "accepted"] in found
    assert ["low", "1,234", "17", "50,000", "-", "12:02:00", "refused"] in found
    assert (
        "64 shards, 11 not scanned: 3, 7, ...; tenants with a cursor of their own: 1,200 behind, 1 held"
        in result.output
    )
    assert ["7", "40m", "00s", "11:20:00", "?", "whale,", "[acme],", "...", "(12)", "paused"] in found
    assert ["acme", "https://[2001:db8::1]:8443", "half", "open", "2030-01-30", "09:00", "timeout"] in found
    assert "breakers that are not closed: 1,000" in result.output
    assert "... and 999 more" in result.output
    assert ["globex", "draining", "08:00:00", "moves", "[away]"] in found
    assert "... and 50 more" in result.output


def test_what_is_not_known_is_shown_so() -> None:
    unknown = dict.fromkeys(("depth", "waiting", "budget", "lag_seconds", "is_shed", "oldest_bucket_at"))
    sweeper = {"published_at": None, "is_fresh": False, "audited_to": None, "audit_age_seconds": None}

    result = status(health_json(status="unknown", classes=[class_json("low", **unknown)], sweeper=sweeper))

    assert ["low", "?", "?", "?", "-", "?", "?"] in rows(result)
    assert "the sweeper has published nothing" in result.output


def test_json_has_all_of_it_with_instants_and_seconds() -> None:
    result = status(troubled_json(), "--json")

    assert result.exit_code == 1
    answer = json.loads(result.output)
    assert (answer["status"], answer["at"], answer["breaker_count"]) == ("behind", "2030-01-31T12:00:00Z", 1_000)
    assert (answer["classes"][2]["age"], answer["classes"][2]["lag"]) == (2_400, 2_399)
    assert answer["shards"]["worst"][0]["behind"] == {"count": 12, "first": ["whale", "[acme]"]}
    assert answer["tenants"][0]["since"] == "2030-01-31T08:00:00Z"


def test_who_is_no_operator_is_reported_so() -> None:
    with ApiServer(PROBLEM) as server:
        result = run(server=server)

    assert result.exit_code == 1
    assert "forbidden" in result.output or "No" in result.output


def test_a_narrow_terminal_loses_no_column() -> None:
    console = Console(file=io.StringIO(), width=80, record=True)
    console.print(screen_of(Health.from_json(troubled_json())))

    assert all(len(line) <= 80 for line in console.export_text().splitlines())


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (timedelta(seconds=59, milliseconds=900), "59s"),
        (timedelta(minutes=1), "1m 00s"),
        (timedelta(minutes=59, seconds=59), "59m 59s"),
        (timedelta(hours=1, minutes=2), "1h 02m"),
        (timedelta(hours=23, minutes=59), "23h 59m"),
        (timedelta(days=5, hours=2), "5d 02h"),
        (timedelta(seconds=-3), "0s"),
    ],
)
def test_durations_are_shown_in_two_units(length: timedelta, shown: str) -> None:
    assert duration(length) == shown
