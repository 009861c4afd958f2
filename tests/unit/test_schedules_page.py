"""docs/schedules.md: every example in it is taken by what it is for, and every table of fires is what is computed."""

import json
import re
import shlex
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from functions.api.http.problem_table import TABLE
from functions.api.http.requests import Rules
from functions.api.schedules.bodies import RULES as RULE_NAMES
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.requests import BackfillBody
from functions.api.schedules.stats import nearest_rank
from functions.domain.jobs.occurrence import check_references
from functions.domain.schedules.fire_figures import LAST_BUCKET, bounds_of, middle_of
from functions.domain.schedules.firing import MOST_GATHERED, fires
from functions.domain.schedules.rules import Poisson
from functions.domain.schedules.state import SkipReason
from functions.domain.schedules.step_budget import STEPS_OF_A_FIRE, STEPS_OF_A_REQUEST, STEPS_OF_A_WALK
from functions.domain.schedules.zones import zone_of
from testkit.builders import NOON, a_schedule, every
from tests.api_server import Answer, ApiServer, Request
from tests.command_line import run
from tests.pages import blocks, commands, read_page, values, words_of
from tests.unit.test_client_schedule_stats import PROBES
from tests.unit.test_client_schedules import put_result, schedule_json

PAGE = read_page("schedules.md")
RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
BERLIN = {
    "gap": (datetime(2027, 3, 28, 0, tzinfo=UTC), datetime(2027, 3, 28, 2, 30, tzinfo=UTC)),
    "fold": (datetime(2027, 10, 30, 23, tzinfo=UTC), datetime(2027, 10, 31, 3, tzinfo=UTC)),
}


@pytest.mark.parametrize("example", blocks(PAGE, "json"), ids=lambda text: text.split('"')[1])
def test_every_body_is_taken(example: str):
    body = json.loads(example)

    if "job" in body:
        read_schedule(body, RULES).schedule("acme", "nightly")
    else:
        BackfillBody.model_validate(body)


def test_every_kind_of_rule_is_shown_with_a_good_example():
    found = [re.findall(r"`([^`]*)`", line)[0] for line in PAGE.splitlines() if re.match(r'\| `"', line)]

    for example in found:
        read_schedule({**json.loads(f"{{{example}}}"), "job": {"target": "handler:echo"}}, RULES)
    assert {next(iter(json.loads(f"{{{example}}}"))) for example in found} == set(RULE_NAMES)


@pytest.mark.parametrize("policy", ["gap", "fold"])
def test_the_fires_of_a_clock_change_are_what_is_computed(policy: str):
    start, end = BERLIN[policy]
    for cron, chosen, on_page in values(PAGE, f"| cron | `{policy}` | fires |"):
        definition = {"cron": cron, "timezone": "Europe/Berlin", "job": {"target": "handler:echo"}}
        if chosen:
            definition[policy] = chosen
        schedule = read_schedule(definition, RULES).schedule("acme", "nightly")
        found = takewhile(lambda fire: fire.at < end, fires(schedule, after=start - timedelta(milliseconds=1)))
        local = [fire.at.astimezone(zone_of("Europe/Berlin")) for fire in found]
        clock = [f"{at:%H:%M}" + (at.isoformat()[-6:] if policy == "fold" else "") for at in local]

        assert (", ".join(clock) or "none") == on_page, (cron, chosen)


def test_the_fires_of_recurrence_rules_at_a_clock_change_are_what_is_computed():
    for rule, chosen, *on_page in values(PAGE, "| rule, from midnight |"):
        policies = [policy.strip("` ") for policy in chosen.split(",") if policy]
        definition = {
            "rrule": {"rule": rule, "starts_at": "2027-01-01T00:00:00"},
            "timezone": "Europe/Berlin",
            "job": {"target": "handler:echo"},
            **dict(zip(("gap", "fold"), policies, strict=False)),
        }
        schedule = read_schedule(definition, RULES).schedule("acme", "nightly")
        spans = (
            (datetime(2027, 3, 28, 0, tzinfo=UTC), datetime(2027, 3, 28, 2, tzinfo=UTC)),
            (datetime(2027, 10, 30, 23, tzinfo=UTC), datetime(2027, 10, 31, 2, 30, tzinfo=UTC)),
        )
        for (start, end), expected in zip(spans, on_page, strict=True):
            found = takewhile(lambda fire: fire.at < end, fires(schedule, after=start - timedelta(milliseconds=1)))  # noqa: B023
            local = [fire.at.astimezone(zone_of("Europe/Berlin")) for fire in found]
            with_offset = "+" in expected
            clock = [f"{at:%H:%M}" + (at.isoformat()[-6:] if with_offset else "") for at in local]
            assert ", ".join(clock) == expected, (rule, chosen)


def test_every_reference_is_one_that_there_is():
    for reference, *_ in values(PAGE, "| reference | |"):
        check_references(reference)


def test_every_reason_for_a_skip_is_named():
    assert all(f"`{reason.value}`" in PAGE for reason in SkipReason)


def test_every_problem_that_is_named_is_one_that_there_is():
    codes = {code for _, code, _ in TABLE.values()}

    assert {"invalid_schedule", "too_costly", "schedule_not_found", "schedule_busy", "not_placed"} <= codes


@pytest.mark.parametrize("command", commands(PAGE), ids=lambda text: text[:60])
def test_every_command_does_something(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "schedules.jsonl"
    file.write_text('{"tenant": "acme", "id": "a", "cron": "@daily", "job": {"target": "handler:echo"}}\n')
    monkeypatch.chdir(tmp_path)

    with ApiServer(otherwise=answer_anything) as server:
        result = run(*shlex.split(command, comments=True)[1:], server=server, typed="y\n")

    assert result.exit_code == 0, result.output
    assert server.requests


def test_the_python_examples_run(monkeypatch: pytest.MonkeyPatch):
    with ApiServer(otherwise=answer_anything) as server:
        monkeypatch.setenv("TICKWHEEL_ENDPOINT", server.url)
        names: dict[str, Any] = {}
        for example in blocks(PAGE, "python"):
            exec(compile(example, "docs/schedules.md", "exec"), names)

    assert [request.method for request in server.requests] == ["PUT", "PATCH", "GET", "POST", "GET", "PATCH", "GET"]


def answer_anything(request: Request) -> Answer:
    """As the API would, about a schedule of its own."""
    counts = {"results": [{"tenant": "acme", "id": "a", "minutes": {"0": 1}}], "next": None}
    answers: dict[str, Any] = {
        "/v1/schedules:fires": counts,
        "/v1/schedules": {"schedules": [schedule_json()], "next": None},
    }
    path, _, query = request.path.partition("?")
    if path == "/v1/schedules:batch":
        return Answer(200, {"results": [put_result(each["id"]) for each in request.json["schedules"]]})
    if path in answers:
        return Answer(200, answers[path])
    verbs = {
        "preview": {"fires": []},
        "stats": PROBES,
        "trigger": {"job": "j1~x"},
        "backfill": {"backfill": "x", "count": 0},
    }
    if "dry_run" in query:
        return Answer(200, {"before": [], "after": []})
    return Answer(200, verbs.get(path.rpartition(":")[2], schedule_json()))


def test_the_page_counts_steps_as_they_are_counted():
    assert f"more than {STEPS_OF_A_FIRE:,} steps" in PAGE
    assert f"{STEPS_OF_A_WALK:,} steps do not show" in words_of(PAGE)
    assert f"share {STEPS_OF_A_REQUEST:,} steps" in PAGE
    assert f"counts {MOST_GATHERED} of the others at most" in PAGE


def in_words(duration: timedelta) -> str:
    """Such as `2 h 37 min`, rounded; seconds below a minute."""
    if duration < timedelta(minutes=1):
        return f"{round(duration.total_seconds())} s"
    hours, minutes = divmod(round(duration / timedelta(minutes=1)), 60)
    return " ".join(f"{number} {unit}" for number, unit in ((hours, "h"), (minutes, "min")) if number)


def test_the_page_compares_independent_events_with_other_rules_as_they_fire():
    start, days = datetime(2030, 1, 1, tzinfo=UTC), 30
    rules: list[dict[str, Any]] = [
        {"rule": every(hours=1)},
        {"rule": every(hours=1), "jitter": timedelta(minutes=30)},
        {"rule": Poisson(24)},
    ]
    rows: dict[str, list[str]] = {}
    for rule in rules:
        upcoming = fires(a_schedule(schedule_id="probes", **rule), after=start - timedelta(milliseconds=1))
        at = [fire.at for fire in takewhile(lambda fire: fire.at < start + timedelta(days=days), upcoming)]
        gaps = sorted(later - earlier for earlier, later in pairwise(at))
        by_hour = Counter((each - start) // timedelta(hours=1) for each in at)
        by_day = Counter((each - start) // timedelta(days=1) for each in at)
        column = {
            "fires in 30 days": f"{len(at)}",
            "fires a day, least and most": f"{min(by_day.values())}, {max(by_day.values())}",
            "gap, p50": in_words(nearest_rank(gaps, 50) or timedelta(0)),
            "gap, p95": in_words(nearest_rank(gaps, 95) or timedelta(0)),
            "shortest gap": in_words(gaps[0]),
            "longest gap": in_words(gaps[-1]),
            "hours of the clock without a fire, of 720": f"{days * 24 - len(by_hour)}",
            "most fires in an hour of the clock": f"{max(by_hour.values())}",
        }
        for name, value in column.items():
            rows.setdefault(name, []).append(value)

    for name, values_of_rules in rows.items():
        assert f"| {name} | {' | '.join(values_of_rules)} |" in PAGE


def test_the_page_says_how_far_the_middle_of_a_bucket_is_off():
    bounds = [bounds_of(bucket) for bucket in range(7, LAST_BUCKET)]

    assert f"in {LAST_BUCKET + 1} buckets" in PAGE
    assert all(middle_of(bucket) / low < 1.2 for bucket, (low, _) in enumerate(bounds, start=7))
