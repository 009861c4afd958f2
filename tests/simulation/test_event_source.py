"""The event source: how it grows with a backlog and falls back without one; and the environments behind it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from simulation.event_source import EventSource, Function
from simulation.limits import Limits
from simulation.queues import Parcel, Queue
from simulation.size import PROD, SCALE, Source, StageSize
from simulation.virtual_time import Dice, World

QUICK = replace(Limits(), delivery_p50=0.001, delivery_p99=0.002, cold_p50=0.001, cold_p99=0.002)


class Busy:
    """An environment that takes so long for every batch, and may return it."""

    def __init__(self, seconds: float, *, is_failing: bool = False) -> None:
        self.seconds = seconds
        self.is_failing = is_failing

    def run(self, parcels: Sequence[Parcel], *, at: float) -> tuple[float, list[str]]:
        back = [parcel.message_id for parcel in parcels] if self.is_failing else []
        return at + self.seconds, back


class Given:
    def __init__(
        self,
        environment: Busy,
        *,
        most: float = 1_000,
        share: float = 1.0,
        limits: Limits = QUICK,
        source: Source | None = None,
    ) -> None:
        self.world = World()
        self.queue = Queue(self.world, limits, share=share, visibility=1_000.0)
        dice = Dice(1)
        self.function = Function(self.world, limits, dice, lambda: environment, share=share)
        source = source or Source(limits.source_start, limits.source_growth, most)
        self.source = EventSource(self.world, limits, dice, self.queue, self.function, source, share=share)

    def send(self, count: int) -> None:
        self.queue.send([(Parcel(f"m{number}", "body", f"g{number % 50}"), 0) for number in range(count)], at=0.0)

    def send_each_second(self, count: int) -> None:
        for second in range(count):
            self.queue.send([(Parcel(f"m{second}", "body", "acme"), second)], at=0.0)


def test_it_begins_with_five() -> None:
    given = Given(Busy(100.0))
    given.send(1_000)

    given.world.run(until=0.9)

    assert given.function.busy == 5


@pytest.mark.parametrize(
    ("share", "count", "within"), [(1.0, 20_000, 10), (0.1, 2_000, 2)], ids=["the whole", "a sample"]
)
def test_with_a_backlog_it_grows_by_its_share_of_300_a_minute(share: float, count: int, within: float) -> None:
    given = Given(Busy(1_000.0), share=share)
    given.send(count)

    given.world.run(until=61.0)

    assert given.function.busy == pytest.approx(share * (5 + 300), abs=within)


def test_it_never_grows_beyond_its_maximum() -> None:
    given = Given(Busy(1_000.0), most=20)
    given.send(2_000)

    given.world.run(until=60.0)

    assert given.function.most_busy == 20


def test_without_a_backlog_it_does_not_grow() -> None:
    given = Given(Busy(0.05))
    given.send_each_second(60)

    given.world.run(until=60.0)

    assert given.source.allowed == 5


def test_it_falls_back_when_the_backlog_is_gone() -> None:
    given = Given(Busy(1.0))
    given.send(4_000)
    given.world.run(until=20.0)
    grown = given.source.allowed
    given.world.run(until=300.0)
    given.queue.send([(Parcel("last", "body", "acme"), 0)], at=300.0)
    given.world.run(until=302.0)

    assert grown > 50
    assert given.source.allowed <= 6


def test_batches_are_of_ten() -> None:
    given = Given(Busy(0.01))
    given.send(100)

    given.world.run(until=10.0)

    assert given.function.spent.invocations == 10
    assert given.queue.depth == 0


def test_what_is_returned_is_not_deleted() -> None:
    given = Given(Busy(0.01, is_failing=True))
    given.send(10)

    given.world.run(until=10.0)

    assert given.queue.in_flight_count == 10


def test_an_idle_environment_is_used_again() -> None:
    given = Given(Busy(0.01))
    given.send_each_second(30)

    given.world.run(until=60.0)

    assert given.function.spent.cold_starts == 1
    assert given.function.spent.invocations == 30


def test_a_cold_start_takes_its_time() -> None:
    given = Given(Busy(0.01), limits=replace(QUICK, cold_p50=0.4, cold_p99=0.5))
    given.send(1)

    given.world.run(until=0.2)

    assert given.queue.depth == 1
    given.world.run(until=1.0)
    assert given.queue.depth == 0


def test_no_more_environments_start_in_a_second_than_lambda_allows() -> None:
    limits = replace(QUICK, source_start=400)
    given = Given(Busy(0.5), limits=limits, share=0.5)
    given.send(2_000)
    started: list[float] = []

    def note(second: float) -> None:
        given.world.at(second, lambda: started.append(given.queue.depth))

    for second in (0.4, 1.4, 2.4, 3.4):
        note(second)
    given.world.run(until=6.0)

    # 200 are wanted at once, and 50 start in a second.
    assert started[0] == 2_000
    assert given.queue.depth < started[3] < started[2] < started[1] < started[0]
    assert given.function.spent.cold_starts > 50


def test_provisioned_pollers_ask_ten_times_a_second() -> None:
    """20 invocations are two pollers: 200 messages a second in batches of ten, however quickly they are handled."""
    given = Given(Busy(0.001), source=Source(20.0, 0.0, 20.0, polls=1.0))
    given.send(5_000)

    given.world.run(until=10.5)

    assert 5_000 - given.queue.depth == pytest.approx(2_100, abs=30)


def test_a_source_that_asks_as_often_as_it_may_is_not_taken_for_idle() -> None:
    given = Given(Busy(0.001), source=Source(20.0, 1.0, 1_000.0, polls=1.0))
    for second in range(60):
        given.queue.send([(Parcel(f"m{second}-{number}", "body", "acme"), second) for number in range(400)], at=0.0)

    given.world.run(until=60.0)

    # 40 polls a second are what comes in: it has grown as far, and stays there.
    assert given.source.allowed == pytest.approx(40, abs=12)


def test_a_stage_says_how_its_sources_are() -> None:
    standard, provisioned = StageSize(stage=PROD), StageSize(stage=SCALE)

    assert standard.source_of(2, Limits()) == Source(5, 5, 300)
    normal = SCALE.pollers[2]
    assert normal is not None
    found = provisioned.source_of(2, Limits())
    assert (found.start, found.most, found.polls) == (normal.minimum * 10, normal.maximum * 10, 1)
