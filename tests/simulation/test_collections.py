"""What collections cost by the bytes of their rows, how hot one becomes, and what is noted of a call that gives jobs together."""

from __future__ import annotations

import json
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from functions.domain.instants import HOUR
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.collection import collection_of, member_identity, place_of
from functions.domain.jobs.job import Payload, Priority, Timer
from functions.ports.targets import Succeeded
from simulation.calls import Calls
from simulation.collecting import _lateness, digests, exports
from simulation.collections import CollectionRows, Given, SimulatedCollections
from simulation.limits import Limits
from simulation.network import Line, Tables, Throttled
from simulation.partitions import Sample
from simulation.size import Room
from simulation.virtual_time import Dice, InvocationClock, instant_of
from testkit.builders import a_job, an_invocation

LIMITS = Limits()
HOURLY = Collect(key="export", window=HOUR, most=500)


class Stage:
    def __init__(self) -> None:
        self.clock = InvocationClock()
        self.table = Tables.of(LIMITS, Sample(1, (0,)), lambda _: Room(40, writes=1e9, reads=1e9)).tenants
        self.rows = CollectionRows()
        self.collections = SimulatedCollections(self.rows, Line(self.clock, Dice(1), LIMITS), self.table)

    @property
    def units(self) -> tuple[float, float]:
        """Written and read."""
        return self.table.writes.total, self.table.reads.total


def collected(number: int, *, due: float = 0.0, **overrides: Any) -> Timer:
    job = a_job(due_at=instant_of(due), collect=HOURLY, **overrides)
    return Timer.first_of(
        a_job(
            due_at=instant_of(due), collect=HOURLY, identity=member_identity(job, unique=f"{number:08x}"), **overrides
        )
    )


def test_a_job_that_comes_alone_is_a_write_unit_in_and_one_out() -> None:
    stage, timer = Stage(), collected(1)
    collection = collection_of(timer.job)

    stage.collections.put(collection, [timer])
    assert stage.units == (1, 0)
    stage.collections.remove(collection, [place_of([timer])])

    assert stage.units == (2, 0)


def test_jobs_that_come_together_share_their_rows() -> None:
    stage, timers = Stage(), [collected(number) for number in range(28)]

    stage.collections.put(collection_of(timers[0].job), timers)

    assert len(stage.rows.kept[collection_of(timers[0].job)]) == 2
    assert stage.units[0] < 28 / 4


def test_a_row_of_several_kilobytes_is_as_many_units() -> None:
    stage = Stage()
    timer = collected(1, payload=Payload(text=json.dumps(Random(1).randbytes(1_500).hex())))

    stage.collections.put(collection_of(timer.job), [timer])

    assert 2 <= stage.units[0] <= 5


def test_what_waits_is_read_by_the_bytes_of_all_its_rows() -> None:
    stage, timers = Stage(), [collected(number, due=2.0 * number) for number in range(60)]
    collection = collection_of(timers[0].job)
    stage.collections.put(collection, timers)
    size = sum(stage.rows.size_of(collection, place_of([timer])) for timer in timers)

    assert len(stage.collections.waiting(collection, upto="~", limit=100)) == 60

    assert stage.units[1] == -(-size // 4_096)
    stage.collections.places(collection, limit=100)
    assert stage.units[1] == 1.5 * -(-size // 4_096)


def test_a_collection_takes_a_thousand_units_a_second_and_the_others_do_not_notice() -> None:
    stage = Stage()
    timers = [collected(number) for number in range(1_100)]

    def put_all() -> None:
        for timer in timers:
            stage.clock.start(0.0)
            stage.collections.put(collection_of(timer.job), [timer])

    with pytest.raises(Throttled):
        put_all()

    assert stage.rows.write_peak == 1_000
    stage.clock.start(0.0)
    other = collected(1, tenant="other")
    assert stage.collections.put(collection_of(other.job), [other]) == []


def test_each_job_that_a_call_gives_has_its_effect_and_its_time() -> None:
    calls, timer = Calls(), collected(1)
    asked = an_invocation(
        idempotency_key="acme#b-0123456789abcdef-1", attempt=1, scheduled_at=instant_of(12.0), deadline=instant_of(60.0)
    )
    body = json.dumps(
        [
            {"key": "acme#a", "scheduled_at": "2027-03-01T00:00:00.000Z"},
            {"key": "acme#b", "scheduled_at": "2037-03-01T00:00:00.000Z"},
        ]
    )

    calls.note(asked, body, host="host", priority=Priority.NORMAL, at=13.0, outcome=Succeeded())

    assert calls.effects == {"acme#a": 1, "acme#b": 1}
    assert calls.early == 1
    assert [(given.host, len(given.due)) for given in calls.given] == [("host", 2)]
    assert timer.job.key not in calls.effects


def test_a_release_is_late_by_the_window_of_its_first_job_unless_it_is_full() -> None:
    terms = exports(3_600.0)

    assert _lateness(Given("host", 3_605.0, (0.0, 10.0)), terms) == pytest.approx(5.0)
    assert _lateness(Given("host", 700.0, tuple(float(number) for number in range(100))), terms) is None
    assert digests(3_600.0, 7).at == "7 * * * *"
    assert digests(1_200.0, 27).at == "7,27,47 * * * *"
    assert exports(1_200.0).window == timedelta(minutes=20)
