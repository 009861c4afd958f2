"""Short histories of schedules that show why a rule is there: each is harmless, until the rule is broken."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Delivery, Payload
from functions.domain.jobs.overlap import Overlap
from functions.domain.schedules.schedule import Misfire, Schedule
from testkit.builders import LOCAL_WHEEL, a_schedule, a_template, every
from testkit.world.process import HELD, SMOOTHLY, Conditions, Fate, Fault, Process
from testkit.world.world import World
from tests.properties.histories import AHEAD, LEASE_IS_OVER, SOON, hold_a_worker, scan_all

KEY = "acme#nightly"
SHARD = LOCAL_WHEEL.shard_of("acme", "nightly")

EVERY_MINUTE = every(minutes=1)
"""The next one or two are always near."""
FAR = every(seconds=400)
"""At noon the next one is at 12:06:40; its bucket opens at 12:04:30."""


def put(world: World, *, calls: str = "fine", conditions: Conditions = SMOOTHLY, **parts: Any) -> Process:
    """A client creates a schedule."""
    job = a_template(target=f"https://example.com/{calls}", retry=SOON, **parts.pop("job", {}))
    return world.put_schedule(a_schedule(job=job, **parts), conditions)


def patch(world: World, conditions: Conditions = SMOOTHLY, **parts: Any) -> Process:
    """A client changes a part of it; without any, what its jobs are given."""

    def edit(schedule: Schedule) -> Schedule:
        other = {"job": replace(schedule.job, payload=Payload(text="2"))}
        return replace(schedule, **(parts or other))

    return world.patch(KEY, edit, conditions)


def kill_when_it_records(world: World) -> None:
    """A scanner that has advanced a schedule dies right after."""
    put(world, rule=FAR)
    world.time_passes(5 * MINUTE)
    scanner = world.scan(SHARD, HELD)
    scanner.go_to("schedules.advance")
    scanner.kill(after=True)


def a_scanner_dies_when_it_records(world: World) -> None:
    """Whatever it has recorded, it has placed."""
    kill_when_it_records(world)
    world.look()


def the_alarm_of_a_dead_scanner_rings_again(world: World) -> None:
    """What it is to go on from has been recorded before."""
    kill_when_it_records(world)
    world.time_passes(MINUTE)
    scan_all(world)
    world.look()


def fires_are_nearer_than_the_far_ring(world: World) -> None:
    """Each of them is placed; without the sweep only an alarm goes on behind the last."""
    put(world, rule=EVERY_MINUTE)
    world.live_on(10 * MINUTE, heals=False)
    world.look()


def a_change_leaves_messages_behind(world: World) -> None:
    """Of the fires that the version before has placed."""
    put(world, rule=EVERY_MINUTE)
    patch(world, rule=every(minutes=1, phase=7 * SECOND))
    world.live_on(3 * MINUTE, heals=False)


def a_pause_leaves_messages_behind(world: World) -> None:
    """They come when nothing may fire any more."""
    put(world, rule=EVERY_MINUTE)
    world.pause(KEY)
    world.live_on(3 * MINUTE, heals=False)


def a_delete_leaves_messages_behind(world: World) -> None:
    """They come when a schedule of the same name has been created anew."""
    put(world, rule=EVERY_MINUTE)
    world.delete(KEY)
    world.live_on(MINUTE)
    put(world, rule=FAR)
    world.live_on(3 * MINUTE, heals=False)


def two_fires_find_the_slot_free(world: World) -> None:
    """Both have seen it, and only then one takes it."""
    put(world, rule=every(seconds=15), overlap=Overlap.FORBID)
    world.time_passes(31 * SECOND)
    workers = [hold_a_worker(world, batch=1), hold_a_worker(world, batch=1)]
    for worker in workers:
        worker.go_to("schedules.take_slot")
    for worker in workers:
        worker.go_on(steps=3)


def a_fire_meets_a_run(world: World, **parts: Any) -> None:
    """The run before it has not come to its end."""
    put(world, rule=every(seconds=15), **parts)
    world.time_passes(16 * SECOND)
    running = hold_a_worker(world, batch=1)
    running.go_to("target.end")
    world.time_passes(15 * SECOND)
    world.work(batch=1)
    world.look()
    running.finish()


def a_fire_is_skipped(world: World) -> None:
    """Nothing else carries it any more."""
    a_fire_meets_a_run(world, overlap=Overlap.FORBID)


def a_fire_waits(world: World) -> None:
    """Its message is acknowledged long before it runs."""
    a_fire_meets_a_run(world, overlap=Overlap.BUFFER_ONE)


def a_run_is_replaced(world: World) -> None:
    """It fails, and there would be another attempt."""
    a_fire_meets_a_run(world, overlap=Overlap.REPLACE, calls="flaky")


def a_run_outlasts_its_interval(world: World) -> None:
    """From end to start: its chain is looked at while it runs."""
    schedule = {"rule": every(seconds=15, from_end=True), "job": {"timeout": timedelta(seconds=40)}}
    put(world, **schedule)
    world.time_passes(16 * SECOND)
    running = hold_a_worker(world)
    running.go_to("target.end")
    world.time_passes(20 * SECOND)
    world.resume(KEY)
    running.finish()


def a_worker_dies_after_a_change(world: World) -> None:
    """It had messages of both versions for the same fire."""
    world.time_passes(5 * MINUTE)
    put(world, rule=FAR)
    patch(world)
    world.time_passes(2 * MINUTE)
    worker = hold_a_worker(world)
    worker.go_on(1, 3)
    worker.go_on(0, 4)
    worker.kill()
    world.redeliver()
    world.clock.tick(LEASE_IS_OVER)
    world.work(batch=1)


def a_run_with_the_slot_is_overtaken_by_a_change(world: World) -> None:
    """Its worker has died; by the clock of whoever changed the schedule it was not due yet."""
    put(world, rule=EVERY_MINUTE, overlap=Overlap.FORBID)
    world.time_passes(MINUTE)
    world.work(Conditions(fault=Fault(Fate.DIES_AFTER, at_call=2)), batch=1)
    patch(world, Conditions(ahead=-AHEAD), rule=every(minutes=1, phase=7 * SECOND))
    world.live_on(5 * MINUTE, heals=False)


def fires_were_missed_before_a_change(world: World) -> None:
    """No tick has come for long: the version that missed them decides them."""
    put(world, rule=EVERY_MINUTE)
    world.time_passes(6 * MINUTE)
    patch(world, rule=FAR)
    world.look()


def a_fire_comes_back_after_a_change(world: World) -> None:
    """It was placed, and is to be placed anew: it counts once."""
    put(world, rule=every(seconds=15), max_runs=2)
    world.live_on(20 * SECOND)
    patch(world)
    world.live_on(2 * MINUTE)


def a_schedule_comes_to_its_end(world: World) -> None:
    """Nothing of it fires any more, and nobody changes it."""
    put(world, rule=every(seconds=15), max_runs=2)
    world.live_on(2 * MINUTE)
    world.look()


def an_alarm_rings_late(world: World) -> None:
    """By less than what counts as missed."""
    put(world, rule=FAR, misfire=Misfire.SKIP)
    world.time_passes(7 * MINUTE)
    scan_all(world)
    world.look()


def a_definition_is_read_too_early(world: World) -> None:
    """What is not read consistently shows the version before."""
    put(world, rule=FAR)
    patch(world)
    world.schedules.lags = True
    world.time_passes(5 * MINUTE)
    scan_all(world)
    world.look()


def a_run_without_a_ledger_row_is_to_be_alone(world: World) -> None:
    """Nobody could tell when it has come to its end."""
    put(world, rule=FAR, job={"delivery": Delivery.AT_LEAST_ONCE})
    for token in ("first", "second"):
        world.trigger(KEY, token, overlap=Overlap.BUFFER_ONE)
        world.live_on(MINUTE)
