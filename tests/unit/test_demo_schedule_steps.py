from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tests.unit.test_demo_schedules import a_client, a_schedule
from tickwheel.client import Client
from tickwheel.client.fires import FireCount
from tickwheel.client.schedules import NewSchedule, NotStored, Put, Stored
from tickwheel.demo.narrator import Narrator
from tickwheel.demo.schedule_steps import await_fires, count_herd, import_schedules
from tickwheel.demo.schedules import Import, plan_schedules
from tickwheel.demo.sink import Sink
from tickwheel.errors import ApiProblem
from tickwheel.screens.herd import Load

NOW = datetime(2027, 1, 31, 9, tzinfo=UTC)
NEVER = ApiProblem(status=422, code="invalid_schedule", title="refused", detail="cron never fires")


@pytest.fixture
def said() -> StringIO:
    return StringIO()


@pytest.fixture
def narrator(said: StringIO) -> Iterator[Narrator]:
    with Narrator(Console(file=said, width=80)) as narrator:
        yield narrator


def daily(count: int, *, cron: str = "@daily") -> list[NewSchedule]:
    rows = [{"tenant": "etcd", "name": f"nightly-{number}", "cron": cron} for number in range(count)]
    return plan_schedules(rows, sink="http://sink")[:count]


def refusing(*refused: str) -> Client:
    """A client that is answered that these never fire."""

    def put_many(asked: Sequence[NewSchedule], *, threads: int, on_progress: Callable[[Put], None]) -> list[Put]:
        results: list[Put] = []
        for each in asked:
            is_refused = each.id in refused
            results.append(
                NotStored(asked=each, error=NEVER) if is_refused else Stored(asked=each, schedule=a_schedule(each))
            )
            on_progress(results[-1])
        return results

    return a_client(put_many=put_many)


def test_the_import_says_what_was_refused_and_why(narrator: Narrator, said: StringIO):
    never = daily(1, cron="0 0 30 2 *")

    imported = import_schedules(refusing("nightly-0"), [*never, *daily(3)[1:]], narrator)

    assert len(imported.stored) == 2
    assert "2 schedules of 1 tenants; 1 refused, as they never fire" in said.getvalue()
    assert "nightly-0: cron never fires" in said.getvalue()


def test_an_import_that_takes_nothing_ends_with_what_the_scheduler_says(narrator: Narrator):
    schedules = daily(25)

    with pytest.raises(ApiProblem, match="never fires"):
        import_schedules(refusing(*(schedule.id for schedule in schedules)), schedules, narrator)


def test_an_import_that_takes_some_goes_on(narrator: Narrator):
    schedules = daily(25)

    imported = import_schedules(refusing(*(schedule.id for schedule in schedules[1:])), schedules, narrator)

    assert (len(imported.stored), len(imported.failed)) == (1, 24)


def test_the_herd_is_shown_as_it_is_and_with_the_spread_on_one_scale(narrator: Narrator, said: StringIO):
    def count_fires(schedules: Sequence[NewSchedule], *, start: datetime, hours: int, on_progress: Any):
        minutes = range(len(schedules)) if schedules[0].spread else [0] * len(schedules)
        return [
            FireCount(tenant="etcd", id=each.id, minutes={minute: 1})
            for each, minute in zip(schedules, minutes, strict=True)
        ]

    load = count_herd(a_client(count_fires=count_fires), daily(40), narrator)

    assert load.peak == 1
    assert "without a spread: up to 40 in a minute" in said.getvalue()
    assert "with a spread of 60 minutes, as imported: up to 1" in said.getvalue()
    assert said.getvalue().count("40 ┤") == 2
    assert [line for line in said.getvalue().splitlines() if len(line) > 80] == []


def test_nothing_is_waited_for_when_no_whole_minute_has_passed(narrator: Narrator, said: StringIO):
    imported = Import(stored=daily(1), switched_off={}, failed={}, ended_at=datetime.now(UTC) + timedelta(minutes=1))
    load = Load(NOW, 24, [FireCount(tenant="etcd", id="nightly-0", minutes={0: 1})])

    with Sink({}) as sink:
        watched = await_fires(imported, load, sink, narrator)
    narrator.end()

    assert watched.count == 0
    assert "0 of 0 fires" in said.getvalue()
