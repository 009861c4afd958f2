from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tickwheel.client import Client
from tickwheel.client.fires import FireCount
from tickwheel.client.jobs import Priority
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule, NotStored, Put, Schedule, Stored
from tickwheel.client.words import ScheduleStatus
from tickwheel.demo.schedules import (
    NEVER,
    OWN_TENANT,
    SPREAD,
    count_loads,
    import_all,
    plan_schedules,
    schedule_names,
)
from tickwheel.demo.workload import read_rows
from tickwheel.errors import ApiProblem, Unreachable

ROWS = read_rows(Path(__file__).parents[2] / "examples" / "kubernetes-periodics.jsonl")
SINK = "http://127.0.0.1:1234"
NOW = datetime(2027, 1, 31, 9, tzinfo=UTC)


@pytest.fixture(scope="module")
def planned() -> dict[str, NewSchedule]:
    return {schedule.id: schedule for schedule in plan_schedules(ROWS, sink=SINK)}


def planned_of(**row: Any) -> NewSchedule:
    return plan_schedules([{"tenant": "etcd", "name": "nightly", **row}], sink=SINK)[0]


def a_client(**calls: Any) -> Client:
    return cast("Client", SimpleNamespace(schedules=SimpleNamespace(**calls)))


def answering(*answers: ApiProblem | Unreachable | None) -> Client:
    """A client whose schedules are refused with these errors, in order; None takes one."""

    def put_many(asked: Sequence[NewSchedule], *, threads: int, on_progress: Callable[[Put], None]) -> list[Put]:
        results = [
            Stored(asked=each, schedule=a_schedule(each)) if answer is None else NotStored(asked=each, error=answer)
            for each, answer in zip(asked, answers, strict=True)
        ]
        for result in results:
            on_progress(result)
        return results

    return a_client(put_many=put_many)


def a_schedule(asked: NewSchedule) -> Schedule:
    return Schedule(
        id=asked.id,
        tenant=asked.tenant,
        version=1,
        status=ScheduleStatus.ACTIVE,
        note="",
        definition={},
        created_at=NOW,
        changed_at=NOW,
        skips={},
        body={},
    )


def a_problem(status: int = 422, detail: str = "never fires") -> ApiProblem:
    return ApiProblem(status=status, code="invalid_schedule", title="a schedule is refused", detail=detail)


def test_there_is_a_schedule_for_each_row_and_one_of_each_minute_for_each_priority(planned):
    own = [schedule for schedule in planned.values() if schedule.tenant == OWN_TENANT]

    assert list(planned) == schedule_names(ROWS)
    assert len(planned) == 1_335 + 4
    assert {schedule.cron for schedule in own} == {"* * * * *"}
    assert {schedule.priority for schedule in own} == set(Priority)


def test_a_row_becomes_the_rule_that_it_states():
    assert planned_of(cron="0 6-22/8 * * *").cron == "0 6-22/8 * * *"
    assert planned_of(interval="4h30m").every == timedelta(hours=4, minutes=30)
    assert planned_of(interval="744h").every == timedelta(days=31)
    assert planned_of(minimum_interval="72h").every == Every(interval=timedelta(days=3), from_end=True)


def test_every_rule_of_the_example_is_there(planned):
    kinds = Counter(next(rule for rule in ("cron", "interval", "minimum_interval") if rule in row) for row in ROWS)
    theirs = [planned[row["name"]] for row in ROWS]

    assert sum(schedule.cron is not None for schedule in theirs) == kinds["cron"]
    assert sum(isinstance(schedule.every, Every) for schedule in theirs) == kinds["minimum_interval"]
    assert sum(isinstance(schedule.every, timedelta) for schedule in theirs) == kinds["interval"]
    assert {schedule.timezone for schedule in theirs} == {None}


def test_they_are_spread_where_that_has_a_meaning(planned):
    for row in ROWS:
        assert planned[row["name"]].spread == (None if "minimum_interval" in row else SPREAD)


def test_each_calls_the_sink_under_an_address_of_its_own(planned):
    targets = {schedule.target for schedule in planned.values()}

    assert len(targets) == len(planned)
    assert planned_of(cron="@daily").target == f"{SINK}/etcd/nightly"


def test_two_of_the_example_are_switched_off(planned):
    assert sum(schedule.cron in NEVER for schedule in planned.values()) == 2


def test_a_schedule_that_never_fires_must_be_refused_and_any_other_must_not():
    never, plain = planned_of(cron="0 0 30 2 *"), planned_of(cron="@daily")
    seen: list[Put] = []

    imported = import_all(answering(a_problem(), None), [never, plain], on_progress=seen.append)

    assert imported.stored == [plain]
    assert imported.switched_off == {"nightly": "never fires"}
    assert imported.failed == {}
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("cron", "answer", "reason"),
    [
        ("@daily", a_problem(), "never fires"),
        ("0 0 31 2 *", None, "accepted, although it never fires"),
        ("0 0 31 2 *", a_problem(503, "busy"), "busy"),
        ("@daily", Unreachable("no answer", may_have_been_applied=True), "no answer"),
    ],
)
def test_whatever_else_becomes_of_one_is_a_failure(cron: str, answer: ApiProblem | Unreachable | None, reason: str):
    imported = import_all(answering(answer), [planned_of(cron=cron)], on_progress=lambda _: None)

    assert imported.failed == {"nightly": reason}
    assert imported.switched_off == {}


def test_the_herd_is_counted_without_the_spread_and_with_it():
    asked: list[list[timedelta | None]] = []

    def count_fires(schedules: Sequence[NewSchedule], *, start: datetime, hours: int, on_progress: Any):
        asked.append([schedule.spread for schedule in schedules])
        on_progress(len(schedules))
        minute = 0 if schedules[0].spread is None else 40
        return [FireCount(tenant="etcd", id=schedule.id, minutes={minute: 1}) for schedule in schedules]

    counted: list[int] = []
    before, after = count_loads(
        a_client(count_fires=count_fires), [planned_of(cron="@daily")], on_progress=counted.append
    )

    assert asked == [[None], [SPREAD]]
    assert (before.minutes[0], after.minutes[40]) == (1, 1)
    assert before.start == after.start == before.start.replace(second=0, microsecond=0)
    assert counted == [1, 1]
