"""What a cron expression may not be that somebody asks for today, and what to write instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from functions.domain.errors import InvalidSchedule
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.cron_dialects import check_cron
from tests.wall_clock import local
from tickwheel.demo.schedules import NEVER
from tickwheel.demo.workload import read_rows


@pytest.mark.parametrize(
    "expression",
    [
        "*/59 */23 */31 */12 */7",
        "5-10/20 * * * *",
        "0 23-23/24 * * *",
        "5 15-23/24 * * *",
        "09 05-9 01 02 *",
        "0 0 28W * *",
        "0 0 29W 3 *",
        "0 0 31W jan,oct *",
        "0 0 LW,L-30W * *",
        "0 0 * * mon-fri#1,L5,sunL",
        "0 0 * * thu/2,0/7",
        "@daily",
    ],
)
def test_what_programs_agree_on_is_taken(expression: str):
    check_new_cron(expression)


def test_each_of_hundreds_of_real_schedules_is_taken():
    rows = read_rows(Path(__file__).parents[2] / "examples" / "kubernetes-periodics.jsonl")
    expressions = {row["cron"] for row in rows if "cron" in row} - NEVER

    assert len(expressions) > 200
    for expression in expressions:
        check_cron(expression)
        check_new_cron(expression)


@pytest.mark.parametrize(
    ("expression", "message", "instead"),
    [
        (
            "*/90 * * * *",
            "'*/90' in the minute has a step larger than 59",
            [{"every": "PT1H30M"}, {"cron": "0 * * * *"}],
        ),
        (
            "1/60 * * * *",
            "'1/60' in the minute has a step larger than 59",
            [{"every": {"interval": "PT1H", "phase": "PT1M"}}, {"cron": "1 * * * *"}],
        ),
        ("*/90,5 * * * *", "'*/90' in the minute", [{"cron": "0,5 * * * *"}]),
        ("*/90 8-18 * * *", "'*/90' in the minute", [{"cron": "0 8-18 * * *"}]),
        ("* 1/24 * * *", "'1/24' in the hour has a step larger than 23", [{"cron": "* 1 * * *"}]),
        ("0 */36 * * *", "'*/36' in the hour", [{"every": "P1DT12H"}, {"cron": "0 0 * * *"}]),
        (
            "30 */36 * * *",
            "'*/36' in the hour",
            [{"every": {"interval": "P1DT12H", "phase": "PT30M"}}, {"cron": "30 0 * * *"}],
        ),
        (
            "30 6 */45 * *",
            "'*/45' in the day of month has a step larger than 31",
            [{"every": {"interval": "P45D", "phase": "PT6H30M"}}, {"cron": "30 6 1 * *"}],
        ),
        ("0 0 5/45 * 1", "'5/45' in the day of month", [{"cron": "0 0 5 * 1"}]),
        ("0 0 */45 * 1", "'*/45' in the day of month has a step larger than 31", []),
        ("0 0 1 */13 *", "'*/13' in the month has a step larger than 12", [{"cron": "0 0 1 1 *"}]),
        ("0 0 * * mon/8", "'mon/8' in the day of week has a step larger than 7", [{"cron": "0 0 * * mon"}]),
        ("*/99999999 * * * *", "'*/99999999' in the minute", [{"cron": "0 * * * *"}]),
        (f"*/{'9' * 900} * * * *", "'*/9999", [{"cron": "0 * * * *"}]),
        ("0 022-002 * * *", "'022-002' in the hour has a number of more than two digits", [{"cron": "0 22-2 * * *"}]),
        ("0 1,010/2 * * *", "'010/2' in the hour has a number", [{"cron": "0 1,10/2 * * *"}]),
        ("0 0 W15 * *", "'w15' in the day of month stands the wrong way round", [{"cron": "0 0 15W * *"}]),
        (
            "0 0 31W * *",
            "'31W' in the day of month asks for a day that some of the months do not have",
            [{"cron": "0 0 LW * *"}, {"cron": "0 0 31W jan,mar,may,jul,aug,oct,dec *"}],
        ),
        (
            "0 0 1W,30W 1-3 *",
            "'30W' in the day of month asks for a day",
            [{"cron": "0 0 1W,LW 1-3 *"}, {"cron": "0 0 1W,30W jan,mar *"}],
        ),
        ("0 0 29W 2 *", "'29W' in the day of month asks for a day", [{"cron": "0 0 LW 2 *"}]),
        (
            "0 0 * * 1/2",
            "'1/2' in the day of week could end with Saturday or with Sunday",
            [{"cron": "0 0 * * mon,wed,fri"}, {"cron": "0 0 * * mon,wed,fri,sun"}],
        ),
        (
            "0 0 * * 2,Saturday/1",
            "'sat/1' in the day of week could end with Saturday or with Sunday",
            [{"cron": "0 0 * * 2,sat"}, {"cron": "0 0 * * 2,sat,sun"}],
        ),
        ("0 0 * * mon-mon#2", "'mon-mon#2' in the day of week is no range", [{"cron": "0 0 * * mon#2"}]),
        (
            "0 0 * * 1,1#1",
            "'1,1#1' in the day of week mixes weekdays of every week with those of a month",
            [{"cron": "0 0 * * 1#1"}],
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_only_read_where_it_is_stored_is_refused_with_what_to_write(
    expression: str, message: str, instead: list[dict[str, Any]]
):
    assert parse_cron(expression)

    with pytest.raises(InvalidSchedule) as refused:
        check_new_cron(expression)

    assert str(refused.value).startswith(message)
    assert [*refused.value.instead] == instead
    assert all(json.dumps(definition) in str(refused.value) for definition in instead)
    for definition in instead:
        if "cron" in definition:
            check_new_cron(definition["cron"])
            parse_cron(definition["cron"])


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("0 0 * * 7/2", ["0 0 * * 0", "0 0 * * */2"]),
        ("0 0 L * mon,7/3", ["0 0 L * mon,0", "0 0 L * mon,*/3"]),
        ("0 9 * * mon,tue#1", ["0 9 * * mon#1,mon#2,mon#3,mon#4,mon#5,tue#1"]),
        ("0 9 * * mon,tue#1,friL", ["0 9 * * mon#1,mon#2,mon#3,mon#4,mon#5,tue#1,fril"]),
    ],
)
def test_what_no_program_reads_in_one_way_is_refused_with_definitions_to_paste(expression: str, instead: list[str]):
    with pytest.raises(InvalidSchedule) as refused:
        parse_cron(expression)

    assert refused.value.instead == tuple({"cron": each} for each in instead)
    assert all(each in str(refused.value) for each in instead)
    for each in instead:
        check_new_cron(each)
        assert next(parse_cron(each).matches(since=local("2027-01-01 00:00")))
