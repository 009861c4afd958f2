import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from functions.domain.instants import MILLISECOND, MINUTE, SECOND
from tickwheel.client.fires import FireCount
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule
from tickwheel.demo.fires import FiresVerdict, JudgedSchedule, Watched, judge_fires
from tickwheel.demo.judge import judge
from tickwheel.demo.report import as_json, tables
from tickwheel.demo.schedules import Import
from tickwheel.demo.sink import Arrival
from tickwheel.errors import ApiProblem
from tickwheel.screens.herd import Load

COUNTED_AT = datetime(2027, 1, 31, 8, 58, tzinfo=UTC)
IMPORTED_AT = datetime(2027, 1, 31, 8, 59, 30, tzinfo=UTC)
NINE = datetime(2027, 1, 31, 9, tzinfo=UTC)
ENDED_AT = NINE + timedelta(minutes=3, seconds=10)

EACH_MINUTE = NewSchedule("each-minute", tenant="demo", cron="* * * * *", target="http://sink/demo/each-minute")
FROM_END = NewSchedule(
    "from-end",
    tenant="etcd",
    every=Every(interval=timedelta(hours=4), from_end=True),
    target="http://sink/etcd/from-end",
)
THREE = tuple(NINE + number * MINUTE for number in range(3))


def a_load(minutes: dict[int, int] | None = None) -> Load:
    """Of the one that fires each minute, and the one that cannot be counted."""
    every_minute = dict.fromkeys(range(1_440), 1)
    problem = ApiProblem(status=422, code="invalid_schedule", title="cannot be counted")
    counts = [
        FireCount(tenant="demo", id="each-minute", minutes=every_minute if minutes is None else minutes),
        FireCount(tenant="etcd", id="from-end", minutes={}, problem=problem),
    ]
    return Load(COUNTED_AT, 24, counts)


def an_import(**fields: Any) -> Import:
    usual = Import(stored=[EACH_MINUTE, FROM_END], switched_off={}, failed={}, ended_at=IMPORTED_AT)
    return replace(usual, **fields)


def arrivals_of(*fires: datetime, name: str = "each-minute", late: timedelta = 20 * MILLISECOND, **fields: Any):
    return [
        replace(Arrival(name=name, attempt=1, scheduled_at=at, arrived_at=at + late, accepted=True), **fields)
        for at in fires
    ]


def judged(*arrivals: Arrival, imported: Import | None = None, load: Load | None = None) -> FiresVerdict:
    imported = imported or an_import()
    watched = Watched.between(imported.ended_at, ENDED_AT, load or a_load())
    return judge_fires(imported, watched, arrivals)


def of_each_minute(verdict: FiresVerdict) -> JudgedSchedule:
    return verdict.schedules[0]


def test_the_whole_minutes_after_the_import_are_watched_up_to_the_end():
    watched = Watched.between(IMPORTED_AT, ENDED_AT, a_load())

    assert (watched.since, watched.until, watched.count) == (NINE, NINE + 3 * MINUTE, 3)
    assert list(watched.expected["each-minute"]) == list(THREE)
    assert "from-end" not in watched.expected


def test_a_minute_that_begins_with_the_end_of_the_import_is_whole():
    assert Watched.between(NINE, NINE + MINUTE, a_load()).count == 1
    assert Watched.between(NINE + MILLISECOND, NINE + MINUTE, a_load()).count == 0


def test_nothing_is_expected_where_there_is_no_whole_minute():
    watched = Watched.between(NINE + SECOND, NINE + 2 * SECOND, a_load())

    assert (watched.since, watched.until, watched.count) == (NINE + MINUTE, NINE + MINUTE, 0)


def test_only_what_is_expected_counts_as_arrived():
    watched = Watched.between(IMPORTED_AT, ENDED_AT, a_load())
    twice, outside, stranger = arrivals_of(NINE, NINE), arrivals_of(NINE - MINUTE), arrivals_of(NINE, name="stranger")

    assert watched.arrived([*twice, *outside, *stranger]) == 1
    assert watched.arrived(arrivals_of(*THREE)) == 3


def test_each_expected_fire_once_is_well():
    verdict = judged(*arrivals_of(*THREE))

    assert (of_each_minute(verdict).expected, of_each_minute(verdict).fires) == (3, 3)
    assert of_each_minute(verdict).lags == [20 * MILLISECOND] * 3
    assert verdict.faults == []


def test_a_fire_that_never_arrived_is_lost():
    verdict = judged(*arrivals_of(THREE[0], THREE[2]))

    assert of_each_minute(verdict).lost == [THREE[1]]
    assert verdict.faults == ["1 fire never arrived: each-minute at 09:01:00"]


def test_a_fire_without_an_effect_is_lost():
    refused = arrivals_of(THREE[1], accepted=False)

    assert of_each_minute(judged(*arrivals_of(THREE[0], THREE[2]), *refused)).lost == [THREE[1]]


def test_two_fires_in_a_minute_of_one_are_one_too_many():
    verdict = judged(*arrivals_of(*THREE, NINE + 30 * SECOND))

    assert of_each_minute(verdict).extra == [NINE]
    assert verdict.faults == ["1 fire arrived that no schedule has: each-minute at 09:00:00"]


def test_a_second_effect_is_a_duplicate_and_no_fire_of_its_own():
    verdict = judged(*arrivals_of(*THREE), *arrivals_of(NINE, attempt=2))

    assert (of_each_minute(verdict).fires, of_each_minute(verdict).extra) == (3, [])
    assert verdict.faults == ["1 fire had more than one effect: each-minute at 09:00:00"]


def test_a_retry_after_a_failure_is_no_duplicate():
    verdict = judged(*arrivals_of(*THREE[1:]), *arrivals_of(NINE, accepted=False), *arrivals_of(NINE, attempt=2))

    assert (of_each_minute(verdict).fires, verdict.faults) == (3, [])


def test_an_early_fire_is_a_fault_even_by_a_millisecond_and_outside_the_watched_minutes():
    before = arrivals_of(NINE - MINUTE, late=-MILLISECOND)

    assert judged(*before, *arrivals_of(*THREE)).faults == ["1 fire arrived early: each-minute at 08:59:00"]


def test_what_arrives_outside_the_watched_minutes_is_neither_expected_nor_extra():
    outside = arrivals_of(NINE - MINUTE, NINE + 3 * MINUTE, late=SECOND)

    verdict = judged(*outside, *arrivals_of(*THREE))

    assert (of_each_minute(verdict).fires, of_each_minute(verdict).lags) == (3, [20 * MILLISECOND] * 3)
    assert verdict.faults == []


def test_a_schedule_from_end_to_start_is_judged_by_what_can_be_known():
    fires = arrivals_of(NINE + 7 * SECOND, name="from-end")
    early = arrivals_of(NINE + 7 * SECOND, name="from-end", late=-SECOND)

    verdict = judged(*arrivals_of(*THREE), *fires)

    assert (verdict.schedules[1].expected, verdict.schedules[1].fires, verdict.faults) == (None, 1, [])
    assert judged(*arrivals_of(*THREE), *early).faults == ["1 fire arrived early: from-end at 09:00:07"]


def test_those_that_never_fire_are_refused_and_no_fault():
    verdict = judged(*arrivals_of(*THREE), imported=an_import(switched_off={"off": "never fires"}))

    assert (verdict.refused, verdict.faults) == (1, [])


def test_a_schedule_that_was_not_imported_is_a_fault():
    verdict = judged(*arrivals_of(*THREE), imported=an_import(failed={"nightly": "busy"}))

    assert verdict.faults == ["1 schedule not imported as it should be: nightly (busy)"]


def test_a_fire_of_what_was_not_imported_is_a_fault():
    verdict = judged(*arrivals_of(*THREE), *arrivals_of(NINE, name="off"))

    assert verdict.faults == ["1 schedule fired without having been imported: off"]


def test_the_report_says_it_in_numbers_and_in_a_table():
    fires = judged(*arrivals_of(*THREE[:2]), imported=an_import(switched_off={"off": "never fires"}))
    jobs = judge([], submissions={}, arrivals=[], states={}, dead_letters=[])
    console = Console(width=100, record=True)

    console.print(tables(jobs, fires))

    assert json.loads(as_json(jobs, fires, wall=SECOND))["schedules"] == {
        "imported": 2,
        "refused": 1,
        "fires_expected": 3,
        "fires": 2,
        "lost": 1,
        "extra": 0,
        "duplicated": 0,
        "early": 0,
        "lag_ms": {"p50": 20, "p95": 20, "p99": 20},
    }
    [row] = [line.split() for line in console.export_text().splitlines() if line.strip().startswith("each-minute")]
    assert row == ["each-minute", "1", "3", "2", "1", "20", "20"]
