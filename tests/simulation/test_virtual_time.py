"""Virtual time: events in order, clocks of their own, and work side by side."""

from datetime import timedelta

import pytest

from simulation.limits import Latency
from simulation.virtual_time import START, Dice, InvocationClock, World, instant_of, seconds_of


def test_events_happen_in_the_order_of_their_instants() -> None:
    world, seen = World(), list[tuple[str, float]]()
    for name, at in (("late", 5.0), ("early", 1.0), ("early too", 1.0)):
        world.at(at, lambda name=name: seen.append((name, world.now)))

    world.run(until=10.0)

    assert seen == [("early", 1.0), ("early too", 1.0), ("late", 5.0)]
    assert world.now == 10.0


def test_an_event_for_the_past_happens_now() -> None:
    world, seen = World(), list[float]()
    world.at(3.0, lambda: world.at(1.0, lambda: seen.append(world.now)))

    world.run(until=4.0)

    assert seen == [3.0]


def test_what_is_planned_for_later_waits() -> None:
    world, seen = World(), list[float]()
    world.at(3.0, lambda: seen.append(world.now))

    world.run(until=2.0)

    assert not seen


def test_an_invocation_has_a_clock_of_its_own() -> None:
    clock = InvocationClock()
    clock.start(7.0)

    clock.sleep(timedelta(seconds=2))

    assert clock.monotonic() == 9.0
    assert clock.now() == START + timedelta(seconds=9)


def test_what_runs_side_by_side_takes_as_long_as_its_longest() -> None:
    clock = InvocationClock()

    answers = clock.side_by_side([lambda: clock.spend(1.0), lambda: clock.spend(3.0)], lanes=8)

    assert answers == [None, None]
    assert clock.at == 3.0


def test_more_than_there_are_lanes_wait_for_one() -> None:
    clock = InvocationClock()

    clock.side_by_side([lambda: clock.spend(1.0)] * 5, lanes=2)

    assert clock.at == 3.0


def test_side_by_side_shares_one_cpu() -> None:
    clock = InvocationClock(speed=0.5)

    clock.side_by_side([lambda: clock.spend(0.0, cpu=1.0)] * 4, lanes=4)

    assert clock.at == 8.0


def test_many_rare_things_happen_as_often_as_their_mean_says() -> None:
    dice = Dice(1)

    drawn = [dice.poisson(1_200.0) for _ in range(200)]

    assert sum(drawn) / 200 == pytest.approx(1_200, rel=0.01)
    assert len(set(drawn)) > 50


def test_durations_have_the_percentiles_that_they_are_given_by() -> None:
    dice = Dice(1)

    drawn = sorted(dice.duration(Latency(0.02, 0.2)) for _ in range(20_000))

    assert drawn[10_000] == pytest.approx(0.02, rel=0.05)
    assert drawn[19_800] == pytest.approx(0.2, rel=0.1)


def test_an_instant_and_its_seconds_are_the_same() -> None:
    assert seconds_of(instant_of(12.345678)) == 12.345678
