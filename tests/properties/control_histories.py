"""Short histories of targets, owners and operators: each is harmless, until the rule that it is about is broken."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from functions.api.operations.manager import Asked
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.operations.operation import OperationKind, Shift
from testkit.world.fires import Run
from testkit.world.process import HELD, SMOOTHLY, Conditions, Fate, Fault, Process
from testkit.world.world import World
from tests.properties.histories import AHEAD, only_id, scan_all, submit

LATER = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(minutes=10))


def a_target_falls_silent(world: World) -> None:
    """Its worker has acknowledged its message: only a watchdog can tell."""
    submit(world, calls="lasting")
    world.work()


def a_target_falls_silent_after_a_heartbeat(world: World) -> None:
    """Its watchdog has met a live lease."""
    submit(world, calls="lasting")
    world.work()
    world.heartbeat(_running(world), 2 * MINUTE)
    world.live_on(MINUTE)


def a_zombie_speaks(world: World) -> None:
    """Of two attempts the first is heard of after the second has begun."""
    first = _first_of_two_attempts(world)
    world.heartbeat(first, timedelta(hours=1))
    world.complete(first)


def a_target_is_done_before_its_worker_knows(world: World) -> None:
    """Then it says so once more."""
    first = _first_of_two_attempts(world)
    world.complete(_running(world))
    world.complete(first)


def a_replay_dies_on_the_way(world: World) -> None:
    """At each of its calls once, and nobody asks again."""
    for number in range(1, 8):
        submit(world, calls="broken", tenant=f"tenant-{number}", retry=RetryPolicy(attempts=1))
        world.work()
        (letter,) = [each for each in world.dead_letters.letters.values() if each.tenant == f"tenant-{number}"]
        world.replay(letter.letter_id, Conditions(fault=Fault(Fate.DIES_BEFORE, at_call=number)))
        world.look()


def a_move_dies_on_the_way(world: World) -> None:
    """Of each of its calls once after it was made."""
    for number in range(1, 5):
        submit(world, due_in=600, tenant=f"tenant-{number}", retry=LATER)
        job_id = next(each for each in world.promises.jobs if f"tenant-{number}" in each)
        submission = world.promises.jobs[job_id].submission
        later = replace(submission, due_at=submission.due_at + 20 * MINUTE)
        world.reschedule(job_id, later, Conditions(fault=Fault(Fate.DIES_AFTER, at_call=number)))
        world.look()


def a_retry_is_hastened(world: World) -> None:
    """Its message is due before its row said."""
    submit(world, calls="flaky", retry=LATER)
    world.work()
    world.time_passes(SECOND)
    world.run_now(only_id(world))


def a_turn_with_a_slow_clock_moves_a_job_ahead_of_itself(world: World) -> None:
    """By its row it seems older than the operation, which somebody with a fast clock has asked for."""
    submit(world, due_in=600)
    ask_for(world, OperationKind.RESCHEDULE, shift=Shift(by=40 * MINUTE), conditions=Conditions(ahead=AHEAD))
    world.operate(Conditions(ahead=-AHEAD))


def an_operation_cancels_a_job_that_is_promoted(world: World) -> None:
    """Its message waits in the ready queue, and its row is still there."""
    submit(world, due_in=200)
    world.time_passes(2 * MINUTE)
    scan_all(world)
    ask_for(world, OperationKind.CANCEL)
    world.operate()


def a_turn_of_a_cancel_dies(world: World) -> None:
    """Right before it writes the first tombstone."""
    operator = _turn_at(world, "ledger.cancel", of=OperationKind.CANCEL)
    operator.kill()
    world.time_passes(3 * MINUTE)
    world.operate()


def a_job_is_submitted_after_a_cancel_was_asked_for(world: World) -> None:
    """And before anybody has carried it on."""
    submit(world, due_in=600)
    ask_for(world, OperationKind.CANCEL)
    world.time_passes(10 * SECOND)
    submit(world, due_in=600)
    world.operate()


def a_late_turn_of_an_export_comes_back(world: World) -> None:
    """Its lease is over, and another one has exported all; it has the first job, and time for a step."""
    late = _turn_at(world, "ledger.get_many", of=OperationKind.EXPORT)
    late.ends_at += 10 * MINUTE
    world.time_passes(3 * MINUTE)
    world.operate()
    late.finish()


def ask_for(
    world: World, action: OperationKind, *, shift: Shift | None = None, conditions: Conditions = SMOOTHLY
) -> None:
    """An owner asks for an operation on all jobs of the next hours."""
    now = world.clock.instant
    due_until = now + timedelta(hours=3)
    asked = Asked(tenant="acme", action=action, due_from=now, due_until=due_until, shift=shift)
    world.ask_for(asked, conditions)


def _running(world: World) -> Run:
    return world.promises.running()[-1]


def _first_of_two_attempts(world: World) -> Run:
    """The first, when the second has begun."""
    submit(world, calls="lasting", retry=LATER)
    world.work()
    first = _running(world)
    world.live_on(MINUTE)
    return first


def _turn_at(world: World, call: str, *, of: OperationKind) -> Process:
    """A turn of an operation on two jobs, held before a call."""
    submit(world, due_in=1_200)
    submit(world, due_in=1_300)
    ask_for(world, of)
    turn = world.operate(HELD)
    turn.go_to(call)
    return turn
