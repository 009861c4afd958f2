"""What every store of the stage's pulse keeps: sums by the minute, and the tenants that stood out."""

from datetime import timedelta

from functions.domain.instants import MINUTE
from functions.domain.jobs.job import Priority
from functions.domain.stage.lag_histogram import LAST_CELL
from functions.domain.stage.pulse import Figure, Pulse, sum_of
from functions.ports.recorder import PulseStore
from testkit.builders import NOON

ALL = Pulse(
    counts={figure: number for number, figure in enumerate(Figure, start=1)},
    lags={priority: {0: 1, 40: 2 + priority, LAST_CELL: 3} for priority in Priority},
)


def test_what_is_added_to_a_minute_adds_up(pulses: PulseStore):
    pulses.add(NOON, ALL)
    pulses.add(NOON, Pulse(counts={Figure.FAILED: 10}, lags={Priority.LOW: {40: 1, 41: 5}}))

    found = pulses.pulses(NOON, NOON)

    assert found == {
        NOON: sum_of([ALL, Pulse(counts={Figure.FAILED: 10}, lags={Priority.LOW: {40: 1, 41: 5}})]),
    }


def test_minutes_are_reported_in_order_and_only_those_that_are_asked_for(pulses: PulseStore):
    for minute in (2, 0, -1, 1):
        pulses.add(NOON + minute * MINUTE, Pulse(counts={Figure.STARTED: 1}))

    assert list(pulses.pulses(NOON, NOON + MINUTE)) == [NOON, NOON + MINUTE]
    assert pulses.pulses(NOON + 5 * MINUTE, NOON + timedelta(hours=1)) == {}


def test_attempts_in_every_cell_of_every_class_are_kept(pulses: PulseStore):
    herd = Pulse(lags={priority: dict.fromkeys(range(LAST_CELL + 1), 7) for priority in Priority})

    pulses.add(NOON, herd)

    assert pulses.pulses(NOON, NOON) == {NOON: herd}


def test_tenants_are_named_by_the_minute(pulses: PulseStore):
    pulses.name(NOON, "acme", {Figure.STARTED: 3, Figure.FAILED: 1})
    pulses.name(NOON, "acme", {Figure.STARTED: 2})
    pulses.name(NOON, "umbrella", {Figure.REFUSED: 1})
    pulses.name(NOON + MINUTE, "acme", {Figure.STARTED: 9})

    assert pulses.named(NOON) == {"acme": {Figure.STARTED: 5, Figure.FAILED: 1}, "umbrella": {Figure.REFUSED: 1}}
    assert pulses.named(NOON - MINUTE) == {}
