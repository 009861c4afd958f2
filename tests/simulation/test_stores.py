"""The ports over the network: rows in order, throttled calls, and messages with their delays."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.jobs.job import Precision, Priority
from functions.domain.targets.options import USUAL
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Succeeded
from simulation.calls import Calls
from simulation.limits import Latency, Limits
from simulation.network import Line, Tables, Throttled
from simulation.partitions import Sample
from simulation.prices import Price, Remote
from simulation.queues import Queue
from simulation.size import Room
from simulation.stores import SimulatedReady, SimulatedTargets, SimulatedTimers, Target, TimerRows
from simulation.virtual_time import START, Dice, InvocationClock, World, instant_of
from testkit.builders import a_timer, a_wheel, an_invocation
from tests.simulation.small import a_scenario

WHEEL = a_wheel(write_shards=1, scan_shards=1)
LIMITS = Limits()


class Given:
    def __init__(self, *, partitions: int = 1) -> None:
        self.world = World()
        self.clock = InvocationClock()
        self.tables = Tables.of(LIMITS, Sample(1, (0,)), lambda _: Room(partitions, writes=1e9, reads=1e9))
        self.line = Line(self.clock, Dice(1), LIMITS)
        self.rows = TimerRows(WHEEL, self.tables.timers, row_bytes=600)
        self.timers = SimulatedTimers(self.rows, self.line, LIMITS)
        self.queues = {priority: Queue(self.world, LIMITS, share=1.0, visibility=30.0) for priority in Priority}
        self.promoted: list[str] = []
        self.ready = SimulatedReady(
            self.queues, self.line, share=0.5, promoted=lambda tenant, at: self.promoted.append(tenant)
        )


def a_far_timer(seconds: float = 1_000.0, **overrides: Any):
    return a_timer(due_at=instant_of(seconds), wheel=WHEEL, **overrides)


def test_rows_come_in_the_order_of_their_keys() -> None:
    given = Given()
    timers = [a_far_timer(1_000 + second, identity=f"j{second}") for second in (3, 1, 2)]
    given.timers.put(timers)

    bucket = WHEEL.bucket_of(timers[0].due_at)
    first = given.timers.read(bucket, 0, limit=2)
    second = given.timers.read(bucket, 0, after=first.rows[-1].key, limit=2)

    found = [row.timer.job.identity for row in (*first.rows, *second.rows) if row.timer]
    assert found == ["j1", "j2", "j3"]
    assert (first.is_last, second.is_last) == (False, True)


def test_a_call_takes_its_time_and_its_units() -> None:
    given = Given()

    given.timers.put([a_far_timer(identity=f"j{number}") for number in range(30)])

    assert given.tables.timers.writes.total == 30
    assert 0.001 < given.clock.at < 0.2


def test_what_a_partition_refuses_is_not_known_to_be_written() -> None:
    given = Given()
    given.line.clock.start(5.0)
    given.tables.timers.take(WHEEL.bucket_of(instant_of(1_000)), 0, at=5.0, units=998, is_ticked=False)

    unwritten = given.timers.put([a_far_timer(identity=f"j{number}") for number in range(5)])

    assert [timer.job.identity for timer in unwritten] == ["j2", "j3", "j4"]
    assert len(given.timers.read(WHEEL.bucket_of(instant_of(1_000)), 0, limit=10).rows) == 2


def test_a_reader_that_is_throttled_tries_again() -> None:
    given = Given()
    bucket = WHEEL.bucket_of(instant_of(1_000))
    given.line.clock.start(5.99)
    given.tables.timers.take(bucket, 0, at=5.99, units=3_000, is_read=True)

    page = given.timers.read(bucket, 0, limit=10)

    assert page.is_last
    assert given.clock.at >= 6.0 or given.tables.timers.reads.throttled == 0


def test_a_store_that_refuses_every_try_is_throttled() -> None:
    given = Given()
    table = given.tables.ledger
    for second in range(30):
        table.take(at=float(second), units=1_000, is_read=False)

    class Store:
        def claim(self) -> str:
            return "claimed"

    store = Remote(Store(), given.line, {"claim": Price(table, 1)})
    with pytest.raises(Throttled):
        store.claim()

    given.clock.start(40.0)
    assert store.claim() == "claimed"


def test_a_call_without_a_price_is_not_modelled() -> None:
    given = Given()

    with pytest.raises(KeyError):
        _ = Remote(given.rows, given.line, {}).keep


def test_a_message_waits_for_its_instant_rounded_up() -> None:
    given = Given()
    given.ready.send([a_far_timer(10.4, identity="default"), a_far_timer(10.4, precision=Precision.EXACT)])
    queue = given.queues[Priority.NORMAL]

    given.world.run(until=9.5)
    exact = queue.visible_count
    given.world.run(until=11.5)

    assert exact == 1
    assert queue.visible_count == 2


def test_batches_are_of_ten_and_of_one_class() -> None:
    given = Given()

    given.ready.send([a_far_timer(priority=Priority.HIGH) for _ in range(11)] + [a_far_timer()])

    assert [given.queues[priority].sends for priority in Priority] == [0, 2, 1, 0]
    given.world.run(until=1.0)
    assert {priority: depth.held for priority, depth in given.ready.depths().items()} == {
        Priority.CRITICAL: 0,
        Priority.HIGH: 22,
        Priority.NORMAL: 2,
        Priority.LOW: 0,
    }


def test_only_what_a_scanner_sends_is_promoted() -> None:
    given = Given()
    given.ready.send([a_far_timer(tenant="submitted")])
    given.line.is_ticked = True

    given.ready.send([a_far_timer(tenant="scanned")])

    assert given.promoted == ["scanned"]


def test_a_deferred_message_is_hidden_until_a_whole_second() -> None:
    given = Given()
    given.ready.send([a_far_timer(0.0)])
    given.world.run(until=1.0)
    queue = given.queues[Priority.NORMAL]
    (parcel,) = queue.receive(10)
    given.clock.start(1.0)

    given.ready.defer(Receipt("NORMAL", parcel.message_id), until=START + timedelta(seconds=100.5))

    given.world.run(until=100.4)
    assert queue.visible_count == 0
    given.world.run(until=102.0)
    assert queue.visible_count == 1


def test_a_call_is_noted_with_its_class_and_its_lag() -> None:
    given, calls = Given(), Calls()
    target = Target(latency=Latency(0.5, 0.6), answer=lambda host, at, attempt, random: Succeeded(host))
    targets = SimulatedTargets(target, given.line, Dice(1), calls)
    given.clock.start(12.5)
    asked = an_invocation(idempotency_key="acme#j", attempt=1, scheduled_at=instant_of(12.0), deadline=instant_of(60.0))

    outcome = targets.call("https://shop.example.com/high", None, asked, options=USUAL, timeout=timedelta(seconds=1))

    assert outcome == Succeeded("shop.example.com")
    table = calls.table()
    assert (list(table.lag), list(table.priority), list(table.at)) == ([0.5], [Priority.HIGH], [12.5])
    assert 12.9 < given.clock.at < 13.2
    assert calls.effects == {"acme#j": 1}


def test_a_call_before_its_instant_is_early() -> None:
    calls = Calls()
    asked = an_invocation(idempotency_key="acme#j", attempt=1, scheduled_at=instant_of(12.0), deadline=instant_of(60.0))
    for at in (11.9, 12.0):
        calls.note(asked, None, host="host", priority=Priority.LOW, at=at, outcome=Succeeded())

    assert calls.early == 1
    assert list(calls.table().lag) == [pytest.approx(0.0), 0.0]


def test_a_scenario_measures_first_attempts_of_its_window() -> None:
    calls = Calls()
    columns = calls._columns
    for tenant, at, lag, is_first in (("in", 20, 1, True), ("retry", 20, 1, False), ("before", 20, 15, True)):
        columns.add(tenant, f"{tenant}.example.com", Priority.LOW, at=at, lag=lag, is_first=is_first)
    columns.add("else", "else.example.com", Priority.LOW, at=20, lag=1, is_first=True)
    scenario = a_scenario(
        window=(10, 30),
        is_unmeasured=lambda host: host == "else.example.com",
    )

    measured = scenario.measured(calls.table())

    assert [measured.names[int(tenant)] for tenant in measured.tenant] == ["in"]


def test_a_batch_of_many_keys_is_a_call_for_each_hundred() -> None:
    class Store:
        def get_many(self, keys: list[str]) -> int:
            return len(keys)

    one, many = Given(partitions=100), Given(partitions=100)
    for given, count in ((one, 100), (many, 250)):
        store = Remote(Store(), given.line, {"get_many": Price(given.tables.ledger, 0, is_read=True, each=1)})
        assert store.get_many([str(number) for number in range(count)]) == count
        assert given.tables.ledger.reads.total == count / 2

    assert many.clock.at > 1.5 * one.clock.at
