"""Short histories that show why a rule is there: each is harmless, until the rule is broken."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.retry import RetryPolicy, Strategy
from testkit.builders import LOCAL_WHEEL, a_submission
from testkit.world.process import HELD, SMOOTHLY, Conditions, Fate, Fault, Process
from testkit.world.world import World
from tests.properties.shared import ALL, ONE, ORDERED, SLOW

AHEAD = LOCAL_WHEEL.skew / 2
LEASE_IS_OVER = timedelta(seconds=21)
"""Of a job with a timeout of 10 s: 15 s and SKEW, and a second."""

SOON = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=1))
LATE = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=60))
WINDOW = Collect(key="export", window=30 * SECOND)
DIES_AT_ONCE = Conditions(fault=Fault(Fate.DIES_BEFORE))


def submit(
    world: World, due_in: float = 0, *, calls: str = "fine", conditions: Conditions = SMOOTHLY, **asked: Any
) -> Process:
    """A client submits a job."""
    due_at = world.clock.instant + conditions.ahead + timedelta(seconds=due_in)
    asked = {"retry": SOON, "target": f"https://example.com/{calls}", **asked}
    return world.submit(a_submission(due_at=due_at, **asked), conditions)


def only_id(world: World) -> str:
    """The id of the only job."""
    (job_id,) = world.promises.jobs
    return job_id


def scan_all(world: World, conditions: Conditions = SMOOTHLY) -> None:
    for shard in range(world.wheel.scan_shards):
        world.scan(shard, conditions)


def hold_a_worker(world: World, *, batch: int = 10, ahead: timedelta = timedelta(0)) -> Process:
    """A worker that goes call by call."""
    worker = world.work(Conditions(ahead=ahead, is_held=True), batch=batch)
    assert worker is not None
    return worker


def claim_all_and_go_on(world: World) -> None:
    """What runs side by side has its claims, and the last one has called its target, before the first one does."""
    worker = world.work(HELD)
    if worker is None:
        return
    for lane in reversed(range(len(worker.lanes) - 1)):
        worker.go_on(lane, 2)
    worker.finish()


def a_late_scanner_comes_back(world: World) -> None:
    """Its lease is over, and another one has gone on from there."""
    late = world.scan(0, HELD)
    late.go_to("shards.checkpoint")
    world.clock.tick(40 * SECOND)
    scan_all(world)
    world.clock.tick(30 * SECOND)
    scan_all(world)
    late.ends_at += 60 * SECOND
    late.finish()


def two_workers_rescue_one_job(world: World) -> None:
    """Both have seen that its worker is dead."""
    submit(world, conditions=Conditions(fault=Fault(Fate.TWICE)))
    world.work(Conditions(fault=Fault(Fate.DIES_AFTER)), batch=1)
    world.redeliver()
    world.clock.tick(LEASE_IS_OVER)
    rescuers = [hold_a_worker(world, batch=1), hold_a_worker(world, batch=1)]
    for rescuer in rescuers:
        rescuer.go_to("ledger.rescue")
    for rescuer in rescuers:
        rescuer.go_on(steps=2)


def a_zombie_settles(world: World) -> None:
    """Its attempt has been rescued: what it has to say comes too late."""
    submit(world, calls="flaky")
    zombie = hold_a_worker(world)
    zombie.go_to("target.end")
    world.redeliver()
    world.clock.tick(LEASE_IS_OVER)
    hold_a_worker(world).go_to("target.end")
    zombie.finish()
    world.clock.tick(2 * SECOND)
    world.work()


def a_far_write_stalls(world: World) -> None:
    """When it is made at last, its bucket has been read."""
    world.clock.tick(23 * SECOND)
    stalled = submit(world, 156, conditions=HELD)
    stalled.go_to("timers.put")
    world.clock.tick(25 * SECOND)
    scan_all(world, Conditions(ahead=AHEAD))
    stalled.finish()


def a_fast_clock_sends(world: World) -> None:
    """Its message comes early by as much as its clock, and the worker's, are off."""
    submit(world, 30, conditions=Conditions(ahead=AHEAD))
    for _ in range(40):
        world.work(Conditions(ahead=-AHEAD))
        world.clock.tick(SECOND)


def a_client_asks_again_for_another_time(world: World) -> None:
    """The first answer was lost, and the first job may already be on its way."""
    submit(world, 0, idempotency_key="key", conditions=Conditions(fault=Fault(Fate.DIES_BEFORE, at_call=2)))
    submit(world, 30, idempotency_key="key")
    world.work()


def a_client_asks_again(world: World) -> None:
    """The first submission died between its two writes."""
    submit(world, 30, idempotency_key="key", conditions=Conditions(fault=Fault(Fate.DIES_BEFORE, at_call=2)))
    submit(world, 30, idempotency_key="key")


def a_retry_is_refused(world: World) -> None:
    """The queue takes nothing at the moment at which the next attempt is placed."""
    submit(world, calls="flaky")
    worker = hold_a_worker(world)
    worker.go_to("target.end")
    world.refused = dict.fromkeys(Priority, False)
    worker.finish()


def a_running_job_is_asked_to_stop(world: World) -> None:
    """Its attempt fails, and there would be another one."""
    submit(world, calls="flaky")
    worker = hold_a_worker(world)
    worker.go_to("target.end")
    world.cancel(only_id(world))
    worker.finish()


def a_job_kills_its_workers(world: World) -> None:
    """Each of them."""
    submit(world, calls="poison")


def a_job_kills_its_company(world: World) -> None:
    """Nine healthy jobs come in one batch with it, and all have their claims when it strikes."""
    submit(world, calls="poison")
    for _ in range(9):
        submit(world)
    for _ in range(12):
        claim_all_and_go_on(world)
        world.clock.tick(100 * SECOND)


def three_jobs_kill_their_company(world: World) -> None:
    """A healthy job waits behind them until its message has been received too often, and it has died once with them."""
    for _ in range(3):
        submit(world, calls="poison")
    submit(world)
    for _ in range(14):
        claim_all_and_go_on(world)
        world.clock.tick(100 * SECOND)


def a_submission_at_the_guard_is_cancelled(world: World) -> None:
    """By one clock its row was late, so that a message followed it; by another its bucket is not yet closed."""
    submit(
        world,
        155.005,
        delivery=Delivery.AT_LEAST_ONCE,
        conditions=Conditions(ahead=AHEAD, costs=20 * MILLISECOND),
    )
    world.cancel(only_id(world), Conditions(ahead=-AHEAD))


def a_write_lands_behind_a_cancel(world: World) -> None:
    """The first write of a row gets no answer and is on its way still; the second is confirmed, and its job cancelled."""
    submit(world, 420, delivery=Delivery.AT_LEAST_ONCE, conditions=Conditions(fault=Fault(Fate.LATE)))
    world.cancel(only_id(world))
    world.land()


def the_answer_to_a_claim_is_lost(world: World) -> None:
    """The SDK repeats the claim; it meets itself, and goes on."""
    submit(world)
    world.work(Conditions(fault=Fault(Fate.TWICE)))
    world.promises.expect(bool(world.promises.runs), "waits for its own lease")


def a_job_fails_for_good(world: World) -> None:
    """On each of its attempts."""
    submit(world, calls="broken")


def a_started_job_comes_back(world: World) -> None:
    """It may run once at most, and its worker died while it did."""
    submit(world, delivery=Delivery.AT_MOST_ONCE)
    world.work(Conditions(fault=Fault(Fate.DIES_AFTER, at_call=2)))


def a_claimed_job_is_cancelled(world: World) -> None:
    """Its worker is just about to call the target."""
    submit(world)
    worker = hold_a_worker(world)
    worker.go_to("target.begin")
    world.cancel(only_id(world))
    worker.finish()


def a_job_comes_while_its_collection_is_given(world: World) -> None:
    """It waits for the release after that one."""
    submit(world, collect=WINDOW)
    world.time_passes(31 * SECOND)
    worker = hold_a_worker(world)
    worker.go_to("target.end")
    submit(world, collect=WINDOW)
    worker.finish()


def a_job_that_is_collected_is_cancelled(world: World) -> None:
    """Another one of its collection waits on."""
    submit(world, collect=WINDOW)
    submit(world, collect=WINDOW)
    world.cancel(next(iter(world.promises.jobs)))
    world.time_passes(31 * SECOND)
    world.work()


def a_release_dies_between_the_ends_of_its_jobs(world: World) -> None:
    """The first has ended."""
    for _ in range(3):
        submit(world, collect=WINDOW)
    world.time_passes(31 * SECOND)
    worker = hold_a_worker(world)
    worker.go_to("target.end")
    while not any(row.is_settled for row in world.ledger.rows.values()):
        worker.go_on()
    worker.kill()


def a_target_has_not_taken_all(world: World) -> None:
    """It names those that failed, and they come again."""
    submit(world, calls="flaky", collect=WINDOW)
    world.time_passes(31 * SECOND)
    world.work()


def an_ordered_job_waits_for_its_retry(world: World) -> None:
    """The one behind it is due, and its message comes."""
    submit(world, calls="flaky", flows=(ORDERED,), retry=LATE)
    world.time_passes(SECOND)
    submit(world, flows=(ORDERED,))
    world.work(batch=1)
    world.work()


def an_ordered_job_comes_late(world: World) -> None:
    """The one behind it has a message, and its own row has not been promoted."""
    submit(world, 170, flows=(ORDERED,), priority=Priority.LOW)
    submit(world, 171, flows=(ORDERED,))
    world.refused = {Priority.LOW: False}
    world.time_passes(100 * SECOND)
    scan_all(world)
    world.time_passes(75 * SECOND)
    world.work()


def two_jobs_of_a_flow_come_at_once(world: World) -> None:
    """It lets one run at a time."""
    for _ in range(2):
        submit(world, flows=(ONE,))
    worker = hold_a_worker(world, batch=1)
    worker.go_to("target.end")
    world.work()


def many_jobs_of_a_flow_come_at_once(world: World) -> None:
    """Two may start, and then one every five seconds."""
    for _ in range(6):
        submit(world, flows=(SLOW,))
    world.work()


def a_job_with_callbacks_fails(world: World) -> None:
    """On each of its attempts."""
    submit(world, calls="broken", callbacks=ALL)
