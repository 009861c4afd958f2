"""Expressions of other programs are named, and translated to what fires when their own documentation says."""

from __future__ import annotations

import json
from datetime import date, timedelta
from itertools import islice
from typing import Any

import pytest

from functions.api.schedules.bodies import read_schedule
from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.cron_dialects import check_cron
from functions.domain.schedules.firing import fires
from functions.domain.schedules.schedule import Schedule
from fuzzing.parsers import RULES
from tests.wall_clock import on_the_wall, utc

BERLIN = "Europe/Berlin"
NEW_YORK = "America/New_York"


def refused(expression: str, timezone: str = "UTC") -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as error:
        check_cron(expression, timezone=timezone)
    return error.value


def taken(definition: Any, timezone: str = "UTC") -> Schedule:
    """What the API makes of a translation that was pasted into the definition in place of the cron."""
    pasted = {"timezone": timezone, **definition, "job": {"target": "handler:echo"}}
    schedule = read_schedule(pasted, RULES).schedule("acme", "nightly")
    if "cron" in definition:
        check_new_cron(definition["cron"])
    return schedule


def shown(definition: Any, timezone: str, *, since: str) -> list[str]:
    """What the wall shows at its first three fires."""
    schedule = taken(definition, timezone)
    return [on_the_wall(fire.at, schedule.timezone) for fire in islice(fires(schedule, after=utc(since)), 3)]


EVENTBRIDGE, ROBFIG = "is EventBridge's cron(…)", "robfig/cron"
SECONDS, CRONTAB = "is an expression with seconds", "is a line of a crontab"

TRANSLATED: list[tuple[str, str, str, Any, list[str]]] = [
    (
        "cron(0 18 ? * MON-FRI *)",
        "UTC",
        EVENTBRIDGE,
        {"cron": "0 18 * * mon-fri"},
        ["2027-03-11 18:00+00:00", "2027-03-12 18:00+00:00", "2027-03-15 18:00+00:00"],
    ),
    (
        # Monday to Friday: with cron's own numbers it would be Tuesday to Saturday.
        "cron(0 18 ? * 2-6 *)",
        "UTC",
        f"{EVENTBRIDGE}, whose weekdays are 1 for Sunday to 7 for Saturday",
        {"cron": "0 18 * * mon-fri"},
        ["2027-03-11 18:00+00:00", "2027-03-12 18:00+00:00", "2027-03-15 18:00+00:00"],
    ),
    (
        "CRON(15 10 ? * 6L 2027-2028)",
        BERLIN,
        EVENTBRIDGE,
        {
            "cron": "15 10 * * friL",
            "timezone": BERLIN,
            "gap": "skip",
            "start": "2027-01-01T00:00:00+01:00",
            "end": "2029-01-01T00:00:00+01:00",
        },
        ["2027-03-26 10:15+01:00", "2027-04-30 10:15+02:00", "2027-05-28 10:15+02:00"],
    ),
    (
        "cron(15 10 * * ? 2026,2027)",
        "UTC",
        EVENTBRIDGE,
        {"cron": "15 10 * * *", "start": "2026-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
        ["2027-03-11 10:15+00:00", "2027-03-12 10:15+00:00", "2027-03-13 10:15+00:00"],
    ),
    (
        "cron(0 9 ? * 2#1 *)",
        "UTC",
        EVENTBRIDGE,
        {"cron": "0 9 * * mon#1"},
        ["2027-04-05 09:00+00:00", "2027-05-03 09:00+00:00", "2027-06-07 09:00+00:00"],
    ),
    (
        "cron(0 8 ? * 2/2 *)",
        "UTC",
        EVENTBRIDGE,
        {"cron": "0 8 * * mon,wed,fri"},
        ["2027-03-12 08:00+00:00", "2027-03-15 08:00+00:00", "2027-03-17 08:00+00:00"],
    ),
    (
        "cron(/30 22-1 3W * ? *)",
        "UTC",
        EVENTBRIDGE,
        {"cron": "*/30 22-1 3W * *"},
        ["2027-04-02 00:00+00:00", "2027-04-02 00:30+00:00", "2027-04-02 01:00+00:00"],
    ),
    (
        # What a clock change skips does not run; 14 March is the change.
        "cron(30 2 * * ? *)",
        NEW_YORK,
        EVENTBRIDGE,
        {"cron": "30 2 * * *", "timezone": NEW_YORK, "gap": "skip"},
        ["2027-03-11 02:30-05:00", "2027-03-12 02:30-05:00", "2027-03-13 02:30-05:00"],
    ),
    (
        # Without its name around it.
        "0 10 * * ? *",
        "UTC",
        EVENTBRIDGE,
        {"cron": "0 10 * * *"},
        ["2027-03-11 10:00+00:00", "2027-03-12 10:00+00:00", "2027-03-13 10:00+00:00"],
    ),
    (
        "rate(5 minutes)",
        "UTC",
        "is EventBridge's rate(…)",
        {"every": "PT5M"},
        ["2027-03-11 00:05+00:00", "2027-03-11 00:10+00:00", "2027-03-11 00:15+00:00"],
    ),
    (
        "rate(1 day)",
        "UTC",
        "is EventBridge's rate(…)",
        {"every": "P1D"},
        ["2027-03-12 00:00+00:00", "2027-03-13 00:00+00:00", "2027-03-14 00:00+00:00"],
    ),
    (
        "at(2027-07-01T09:30:00)",
        BERLIN,
        "is EventBridge's at(…)",
        {"at": "2027-07-01T09:30:00+02:00"},
        ["2027-07-01 09:30+02:00"],
    ),
    (
        "at(2027-07-01T09:30:00)",
        "UTC",
        "is EventBridge's at(…)",
        {"at": "2027-07-01T09:30:00Z"},
        ["2027-07-01 09:30+00:00"],
    ),
    (
        "@every 1h30m0.9s",
        "UTC",
        "is robfig/cron's @every",
        {"every": "PT1H30M"},
        ["2027-03-11 01:30+00:00", "2027-03-11 03:00+00:00", "2027-03-11 04:30+00:00"],
    ),
    (
        "@every 20ms",
        "UTC",
        "is robfig/cron's @every",
        {"every": "PT1S"},
        ["2027-03-11 00:00:01+00:00", "2027-03-11 00:00:02+00:00", "2027-03-11 00:00:03+00:00"],
    ),
    (
        "@every 5h/45m",
        "UTC",
        "Temporal's",
        {"every": {"interval": "PT5H", "phase": "PT45M"}},
        ["2027-03-11 03:45+00:00", "2027-03-11 08:45+00:00", "2027-03-11 13:45+00:00"],
    ),
    (
        "@every_minute",
        "UTC",
        "is a macro of Cronos",
        {"cron": "* * * * *"},
        ["2027-03-11 00:01+00:00", "2027-03-11 00:02+00:00", "2027-03-11 00:03+00:00"],
    ),
    (
        "CRON_TZ=Europe/Berlin 0 9 * * *",
        "UTC",
        ROBFIG,
        {"cron": "0 9 * * *", "timezone": BERLIN, "gap": "skip", "fold": "both"},
        ["2027-03-11 09:00+01:00", "2027-03-12 09:00+01:00", "2027-03-13 09:00+01:00"],
    ),
    (
        "TZ=Asia/Tokyo @midnight",
        "UTC",
        ROBFIG,
        {"cron": "@midnight", "timezone": "Asia/Tokyo", "gap": "skip", "fold": "both"},
        ["2027-03-12 00:00+09:00", "2027-03-13 00:00+09:00", "2027-03-14 00:00+09:00"],
    ),
    (
        "TZ=Asia/Tokyo 0 */20 9 * * *",
        "UTC",
        "and what follows is an expression with seconds",
        {"cron": "*/20 9 * * *", "timezone": "Asia/Tokyo"},
        ["2027-03-11 09:20+09:00", "2027-03-11 09:40+09:00", "2027-03-12 09:00+09:00"],
    ),
    (
        "0 0 12 * * ?",
        "UTC",
        SECONDS,
        {"cron": "0 12 * * *"},
        ["2027-03-11 12:00+00:00", "2027-03-12 12:00+00:00", "2027-03-13 12:00+00:00"],
    ),
    (
        "0 15 10 ? * 6L 2027",
        "UTC",
        "is an expression with seconds and years, as Quartz has it",
        {"cron": "15 10 * * friL", "start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
        ["2027-03-26 10:15+00:00", "2027-04-30 10:15+00:00", "2027-05-28 10:15+00:00"],
    ),
    (
        "0 0 18 L-3 * ?",
        "UTC",
        SECONDS,
        {"cron": "0 18 L-3 * *"},
        ["2027-03-28 18:00+00:00", "2027-04-27 18:00+00:00", "2027-05-28 18:00+00:00"],
    ),
    (
        "0/10 * * * * *",
        "UTC",
        SECONDS,
        {"every": "PT10S"},
        ["2027-03-11 00:00:10+00:00", "2027-03-11 00:00:20+00:00", "2027-03-11 00:00:30+00:00"],
    ),
    (
        "30 * * * * ?",
        "UTC",
        SECONDS,
        {"every": {"interval": "PT1M", "phase": "PT30S"}},
        ["2027-03-11 00:00:30+00:00", "2027-03-11 00:01:30+00:00", "2027-03-11 00:02:30+00:00"],
    ),
    (
        "0 5 * * 1 root /usr/sbin/backup --all >/dev/null 2>&1",
        "UTC",
        f"{CRONTAB}, with its command; what runs is said in `job`",
        {"cron": "0 5 * * 1"},
        ["2027-03-15 05:00+00:00", "2027-03-22 05:00+00:00", "2027-03-29 05:00+00:00"],
    ),
    (
        "@daily /usr/sbin/backup",
        "UTC",
        CRONTAB,
        {"cron": "@daily"},
        ["2027-03-12 00:00+00:00", "2027-03-13 00:00+00:00", "2027-03-14 00:00+00:00"],
    ),
    (
        "0 5 * * 5#2   # the second Friday",
        "UTC",
        "is a line with a comment",
        {"cron": "0 5 * * 5#2"},
        ["2027-03-12 05:00+00:00", "2027-04-09 05:00+00:00", "2027-05-14 05:00+00:00"],
    ),
    (
        "rate(1 hour) # hourly",
        "UTC",
        "is a line with a comment, and the rest of it is EventBridge's rate(…)",
        {"every": "PT1H"},
        ["2027-03-11 01:00+00:00", "2027-03-11 02:00+00:00", "2027-03-11 03:00+00:00"],
    ),
    (
        "Mon..Fri *-*-* 09:05:00",
        "UTC",
        "is a calendar event of systemd",
        {"cron": "5 9 * * mon-fri"},
        ["2027-03-11 09:05+00:00", "2027-03-12 09:05+00:00", "2027-03-15 09:05+00:00"],
    ),
    (
        # On Monday, where cron's @weekly is on Sunday.
        "weekly",
        "UTC",
        "is a calendar event of systemd",
        {"cron": "0 0 * * mon"},
        ["2027-03-15 00:00+00:00", "2027-03-22 00:00+00:00", "2027-03-29 00:00+00:00"],
    ),
]
"""An expression, the zone of its definition, whose it is, the translation, and when it first fires after 11 March 2027."""


@pytest.mark.parametrize(
    ("expression", "timezone", "said", "definition", "first"), TRANSLATED, ids=[each[0] for each in TRANSLATED]
)
def test_an_expression_of_another_program_is_named_and_translated(
    expression: str, timezone: str, said: str, definition: Any, first: list[str]
):
    error = refused(expression, timezone)

    assert said in str(error)
    assert str(error).endswith(f"write {json.dumps(definition)}")
    assert error.instead == (definition,)
    assert shown(definition, timezone, since="2027-03-11 00:00") == first


@pytest.mark.parametrize(
    ("expression", "meaning", "definition"),
    [
        ("0 18 * * MON-FRI *", "where that is the year", {"cron": "0 18 * * mon-fri"}),
        (
            "0 18 * * MON-FRI 2027",
            "where that is the year",
            {"cron": "0 18 * * mon-fri", "start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
        ),
        (
            "0,0 18 * * mon-fri 2027",
            "where that is the year",
            {"cron": "0,0 18 * * mon-fri", "start": "2027-01-01T00:00:00Z", "end": "2028-01-01T00:00:00Z"},
        ),
        ("0 18 * * MON-FRI 0", "where that is seconds, as in croniter", {"cron": "0 18 * * mon-fri"}),
    ],
)
def test_a_sixth_field_that_cannot_be_weekdays_is_a_year_or_seconds(expression: str, meaning: str, definition: Any):
    error = refused(expression)

    assert str(error) == f"is a cron with a sixth field after it; write {json.dumps(definition)} {meaning}"
    assert error.instead == (definition,)
    assert shown(definition, "UTC", since="2027-03-11 00:00") == [
        "2027-03-11 18:00+00:00",
        "2027-03-12 18:00+00:00",
        "2027-03-15 18:00+00:00",
    ]


def test_six_fields_whose_weekdays_are_counted_in_two_ways_have_two_translations():
    error = refused("0 0 18 ? * 2-6")

    assert error.instead == ({"cron": "0 18 * * mon-fri"}, {"cron": "0 18 * * tue-sat"})
    assert '{"cron": "0 18 * * mon-fri"} where Sunday is 1, as in Quartz' in str(error)
    assert '{"cron": "0 18 * * tue-sat"} where Sunday is 0, as in Spring' in str(error)


@pytest.mark.parametrize(
    ("expression", "timezone", "skipped", "repeated"),
    [
        # https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html: skipped, and once.
        ("cron(30 2 * * ? *)", BERLIN, [], ["02:30+02:00"]),
        ("cron(0/30 2 * * ? *)", BERLIN, [], ["02:00+02:00", "02:30+02:00"]),
        ("cron(*/30 2 * * ? *)", BERLIN, [], ["02:00+02:00", "02:30+02:00"]),
        # https://pkg.go.dev/github.com/robfig/cron/v3#hdr-Time_zones: skipped; its tests: twice.
        (f"CRON_TZ={BERLIN} 30 2 * * *", "UTC", [], ["02:30+02:00", "02:30+01:00"]),
        (f"CRON_TZ={BERLIN} */30 2 * * *", "UTC", [], ["02:00+02:00", "02:30+02:00", "02:00+01:00", "02:30+01:00"]),
    ],
)
def test_a_translation_does_on_a_clock_change_what_the_other_program_documents(
    expression: str, timezone: str, skipped: list[str], repeated: list[str]
):
    (definition,) = refused(expression, timezone).instead
    schedule = taken(definition, timezone)

    for day, expected in (("2027-03-28", skipped), ("2027-10-31", repeated)):
        after = utc(f"{day} 00:00") - timedelta(hours=3)
        found = (on_the_wall(fire.at, BERLIN) for fire in islice(fires(schedule, after=after), 6))
        assert [text.removeprefix(f"{day} ") for text in found if text.startswith(day)] == expected


@pytest.mark.parametrize(
    ("expression", "definition", "count", "low", "high"),
    [
        # One a period, at a place in it that is the schedule's own.
        ("H * * * *", {"cron": "0 * * * *", "spread": "PT1H"}, 24, 0, 60),
        ("H/15 * * * *", {"cron": "*/15 * * * *", "spread": "PT15M"}, 96, 0, 15),
        ("H(0-29)/10 * * * *", {"cron": "0-29/10 * * * *", "spread": "PT10M"}, 72, 0, 10),
        ("H(5-9) 3 * * *", {"cron": "5 3 * * *", "spread": "PT5M"}, 1, 0, 5),
        ("H 9 * * 1-5", {"cron": "0 9 * * 1-5", "spread": "PT1H"}, 1, 0, 60),
        ("H H * * *", {"cron": "0 0 * * *", "spread": "P1D"}, 1, 0, 24 * 60),
        ("H H(0-7) * * *", {"cron": "0 0 * * *", "spread": "PT8H"}, 1, 0, 8 * 60),
    ],
)
def test_a_choice_by_hash_is_a_spread(expression: str, definition: Any, count: int, low: int, high: int):
    error = refused(expression)

    assert "is Jenkins' H, a choice by hash" in str(error)
    assert error.instead == (definition,)
    found = list(islice(fires(taken(definition), after=utc("2027-03-11 23:59") + timedelta(seconds=59)), count))
    delays = {fire.at - fire.nominal_at for fire in found}
    assert len(delays) == 1
    assert timedelta(minutes=low) <= delays.pop() < timedelta(minutes=high)
    assert all(fire.nominal_at.date() == date(2027, 3, 12) for fire in found)


@pytest.mark.parametrize(
    ("expression", "timezone", "message"),
    [
        ("cron(0 18 * * MON-FRI)", "UTC", "it has 5 fields, but there it must have 6, the last of them the year"),
        ("cron(0 18 1 * MON *)", "UTC", "there one of the two day fields must be ?"),
        ("cron(0 18 * * ? 2027,2029)", "UTC", "'2027,2029' are not years that follow each other"),
        ("cron(0 18 * * ? 2027/2)", "UTC", "are not years that follow each other"),
        ("cron(0 18 * * ? 0000)", "UTC", "are not years that follow each other"),
        ("cron(0 18 ? * 8 *)", "UTC", "'8' has no translation: write names such as mon-fri"),
        ("cron(0 18 ? * 0 *)", "UTC", "'0' has no translation"),
        ("cron(0 18 31W * ? *)", "UTC", "as '0 18 31W * *' it is refused: '31W' in the day of month asks for a day"),
        ("cron(0 25 * * ? *)", "UTC", "as '0 25 * * *' it is refused: is not a cron expression"),
        ("rate(0 minutes)", "UTC", "it must be a number of minutes, hours or days"),
        ("rate(5 weeks)", "UTC", "it must be a number of minutes, hours or days"),
        ("rate(9999999 days)", "UTC", "an interval must be from 1 second to ten years"),
        ("at(2027-02-30T00:00:00)", "UTC", "it must hold a local time such as 2027-01-31T09:00:00"),
        (
            "at(2027-03-28T02:30:00)",
            BERLIN,
            "the clock of Europe/Berlin shows its time never: write an instant with its offset",
        ),
        (
            "at(2027-10-31T02:30:00)",
            BERLIN,
            "the clock of Europe/Berlin shows its time twice: write an instant with its offset",
        ),
        ("at(0001-01-01T00:00:00)", BERLIN, "it must be in the years from 1970 to 2199"),
        ("@every 5 minutes", "UTC", 'its interval is none: write {"every": "PT5M"} for five minutes'),
        ("@every 99999999999h", "UTC", "an interval is at most ten years, and its phase is shorter than it"),
        ("@every 1h/2h", "UTC", "an interval is at most ten years, and its phase is shorter than it"),
        ("@every 1.5.5h", "UTC", "its interval is none"),
        ("0 0 * * mon-fri 30", "UTC", "only second 0 can be expressed as a cron"),
        ("@reboot", "UTC", "there is no machine here whose start it could mean"),
        ("TZ=Europe/Berln 0 9 * * *", "UTC", "is not an IANA time zone: did you mean Europe/Berlin"),
        ("TZ=Europe/Berlin 0 25 * * *", "UTC", "what follows it is not taken: '0 25 * * *'"),
        ("TZ=UTC TZ=UTC 0 9 * * *", "UTC", "what follows it is not taken: 'TZ=UTC 0 9 * * *'"),
        ("TZ=Europe/Berlin */90 * * * *", "UTC", "what follows it is not taken: '*/90 * * * *'"),
        ("5 0 12 * * ?", "UTC", "only second 0 can be expressed as a cron: it fires on the minute"),
        ("*/7 * * * * *", "UTC", "only second 0 can be expressed"),
        ("* 5 * * * *", "UTC", "only second 0 can be expressed"),
        (
            "0 0 0 13 * FRI",
            "UTC",
            "it has two day fields, which other programs join in other ways: leave one of them *",
        ),
        ("H/7 * * * *", "UTC", "write a number, or a `spread`"),
        ("0 H * * *", "UTC", "write a number, or a `spread`"),
        ("0 0 H * *", "UTC", "write a number, or a `spread`"),
        ("H H * * *", BERLIN, "write a number, or a `spread`"),
        ("H(9-5) * * * *", "UTC", "write a number, or a `spread`"),
        ("# at night", "UTC", "is a comment; it says nothing of times"),
        ("MAILTO=ops@example.com", "UTC", "is a setting of a crontab; it says nothing of times"),
        ("0 5 * * * a\n0 6 * * * b", "UTC", "is 2 lines of a crontab; put a schedule for each of them"),
        ("Mon *-*-01 04:00", "UTC", "it wants the weekday and the date to match, which a cron cannot say"),
        (
            "FREQ=DAILY;BYHOUR=9",
            "UTC",
            'is an RFC 5545 rule; give it as `rrule`, with its first local time: {"rrule": {"rule": "FREQ=DAILY;',
        ),
    ],
)
def test_where_there_is_no_translation_it_is_said_what_cannot_be_expressed(
    expression: str, timezone: str, message: str
):
    error = refused(expression, timezone)

    assert message in str(error)
    assert error.instead == ()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("61 * * * *", "is not a cron expression: its minute, '61'"),
        ("0 9 * *", "has 4 fields"),
        ("every day at noon", "has 4 fields"),
        ("x" * 2_000, "is longer than 1000 characters"),
        ("", "has 0 fields"),
        ("R * * * *", "is a choice by hash or chance"),
    ],
)
def test_what_is_of_no_known_program_keeps_its_own_refusal(expression: str, message: str):
    error = refused(expression)

    assert message in str(error)
    assert error.instead == ()


@pytest.mark.parametrize("expression", ["0 9 * * 1-5", "@daily", "0 0 LW * *", "*/90 * * * *"])
def test_what_can_be_read_is_no_dialect(expression: str):
    check_cron(expression)
