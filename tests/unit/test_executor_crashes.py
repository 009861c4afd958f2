"""A turn of an operation dies at each of its writes, before or after it, and the next one finishes its work."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

import pytest

from functions.domain.far_ring.cursor import first_cursors
from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.operations.operation import Operation, OperationKind, OperationState, Shift
from functions.operations.executor import LEASE, STEP
from functions.ports.targets import Failed, Succeeded
from testkit.builders import NOON, a_filter, a_timer, an_operation
from testkit.observed import DeathError
from testkit.scheduler import World, pass_time

LATER = NOON + HOUR
END = NOON + 4 * HOUR
RETRIES = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=HOUR, cap=HOUR)
WRITES = [
    "exports.put",
    "ledger.cancel",
    "ledger.hasten",
    "ledger.move",
    "operations.finish",
    "operations.save",
    "operations.take",
    "payloads.delete",
    "payloads.put",
    "ready.send",
    "timers.delete",
]

DUE_AT = {
    "retry": LATER,
    "small": LATER,
    "other": LATER,
    "once": LATER,
    "large": LATER + MINUTE,
    "loose": LATER + MINUTE,
}

Runs = dict[str, list[datetime]]
"""When each job has called its target, by what its payload says."""


def a_scene() -> World:
    """A job of each kind an hour ahead, one of which has failed once; and one that nobody means."""
    world = World(dates_rows=True)
    _have_scanned(world)
    world.placer.place([a_timer(payload=Payload(text='"retry"'), tags=("t",), retry=RETRIES)])
    world.targets.answer = lambda *_: Failed("busy")
    world.receive_and_work()
    world.targets.answer = lambda *_: Succeeded()
    large = a_timer(due_at=LATER + MINUTE, tags=("t",), payload=Payload(pointer="acme/large"), identity="large")
    world.payloads.objects["acme/large"] = '"large"'
    timers = [
        a_timer(due_at=LATER, payload=Payload(text='"small"'), tags=("t",)),
        a_timer(due_at=LATER, payload=Payload(text='"other"'), tags=("other",)),
        a_timer(due_at=LATER, payload=Payload(text='"once"'), tags=("t",), delivery=Delivery.AT_MOST_ONCE),
        large,
        a_timer(due_at=LATER + MINUTE, payload=Payload(text='"loose"'), tags=("t",), delivery=Delivery.AT_LEAST_ONCE),
    ]
    world.placer.place(timers)
    world.clock.tick(MINUTE)
    world.targets.effects.clear()
    return world


def an_accepted(world: World, action: OperationKind) -> Operation:
    wanted = a_filter(tag="t", due_from=LATER - MINUTE, due_until=LATER + 3 * MINUTE)
    shift = Shift(by=2 * HOUR) if action is OperationKind.RESCHEDULE else None
    operation = an_operation(action, wanted=wanted, created_at=world.clock.now(), rate=2, shift=shift)
    assert world.operations.create(operation) is None
    return operation


def writes_of(action: OperationKind) -> list[str]:
    """The writes of a turn that goes well."""
    world, calls = a_scene(), list[str]()
    an_accepted(world, action)
    _taking_its_time(world, calls.append).operate()
    return [call for call in calls if call in WRITES]


def lived_through(action: OperationKind, *, at: int, when: str) -> tuple[World, Operation, Runs]:
    """Its first turn dies at that write; then all goes on."""
    world, calls = a_scene(), list[str]()
    operation = an_accepted(world, action)

    def die(call: str) -> None:
        if call in WRITES:
            calls.append(call)
            if len(calls) == at + 1:
                raise DeathError

    with suppress(DeathError):
        if when == "before":
            _taking_its_time(world, die).operate()
        else:
            _taking_its_time(world, lambda _: None).watched(after=die).operate()
    assert len(calls) > at
    world.clock.tick(LEASE + world.wheel.skew + SECOND)
    for _ in range(3):
        world.operate()
    pass_time(world, until=END)
    runs: Runs = {}
    for started_at, _, payload, _ in world.targets.effects:
        runs.setdefault(json.loads(payload or ""), []).append(started_at)
    found = world.operations.get("acme", operation.operation_id)
    assert found is not None
    return world, found, runs


def each_death(action: OperationKind, when: str) -> list[tuple[World, Operation, Runs]]:
    return [lived_through(action, at=at, when=when) for at in range(len(writes_of(action)))]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_cancel_that_died_is_finished_and_no_job_of_it_runs(when: str):
    for _, operation, runs in each_death(OperationKind.CANCEL, when):
        assert operation.state is OperationState.DONE
        assert operation.progress.refused == {}
        assert _counted(runs) == {"other": 1}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_reschedule_that_died_is_finished_and_moves_each_job_once(when: str):
    for world, operation, runs in each_death(OperationKind.RESCHEDULE, when):
        assert operation.state is OperationState.DONE
        assert {"too_late", "not_changeable"} >= set(operation.progress.refused)
        assert _counted(runs) == {"other": 1, "retry": 1, "loose": 1, "small": 1, "once": 1, "large": 1}
        assert all(_is_soon(runs[name], after=DUE_AT[name] + 2 * HOUR) for name in ("small", "once", "large"))
        assert all(_is_soon(runs[name], after=DUE_AT[name]) for name in ("retry", "loose", "other"))
        assert sum(row.state is State.MOVED for row in world.ledger.rows.values()) == 3


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_now_that_died_is_finished_and_runs_each_job_once(when: str):
    for _, operation, runs in each_death(OperationKind.RUN_NOW, when):
        assert operation.state is OperationState.DONE
        assert {"not_changeable"} >= set(operation.progress.refused)
        assert _counted(runs) == {"other": 1, "retry": 1, "loose": 1, "small": 1, "once": 1, "large": 1}
        assert all(runs[name][0] < NOON + 10 * MINUTE for name in ("retry", "small", "once", "large"))
        assert all(_is_soon(runs[name], after=DUE_AT[name]) for name in ("loose", "other"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_export_that_died_is_finished_and_holds_each_job_once(when: str):
    for world, operation, runs in each_death(OperationKind.EXPORT, when):
        assert operation.state is OperationState.DONE
        lines = [
            line
            for part in range(1, operation.progress.parts + 1)
            for line in world.exports.parts["acme", operation.operation_id, part]
        ]
        payloads = sorted(json.loads(line)["payload"] for line in lines)
        assert payloads == ["large", "loose", "once", "retry", "small"]
        assert _counted(runs) == {"other": 1, "retry": 1, "loose": 1, "small": 1, "once": 1, "large": 1}


@pytest.mark.parametrize("action", [OperationKind.CANCEL, OperationKind.RESCHEDULE, OperationKind.RUN_NOW])
def test_what_died_wrote_more_than_one_step(action: OperationKind):
    writes = Counter(writes_of(action))

    assert writes["operations.take"] == writes["operations.finish"] == 1
    assert writes["operations.save"] >= 2


def test_a_job_that_is_promoted_at_any_moment_of_a_cancel_runs_or_is_cancelled():
    ends: list[State] = []
    while True:
        world, calls = World(dates_rows=True), list[str]()
        _have_scanned(world)
        timer = a_timer(due_at=NOON + 160 * SECOND, tags=("t",))
        world.placer.place([timer])
        wanted = a_filter(tag="t", due_from=NOON + 2 * MINUTE, due_until=NOON + 3 * MINUTE)
        world.operations.create(an_operation(wanted=wanted))

        _promoting(world, timer, calls, at=len(ends)).operate(time_limit=HOUR)
        if len(calls) <= len(ends):
            break
        pass_time(world, until=NOON + 10 * MINUTE)

        ends.append(world.row(timer.job).state)
        assert len(world.calls) == (ends[-1] is State.SUCCEEDED)
    assert set(ends) == {State.SUCCEEDED, State.CANCELLED}


def _promoting(world: World, timer: Timer, calls: list[str], *, at: int) -> World:
    """Its job comes due, and a worker gets it, right before a call."""

    def promote(call: str) -> None:
        calls.append(call)
        if len(calls) == at + 1:
            world.clock.tick(timer.due_at - world.clock.now())
            world.ready.send([timer])
            world.receive_and_work()

    return world.watched(before=promote)


def _taking_its_time(world: World, happens: Callable[[str], None]) -> World:
    """Each write takes so long that some steps are recorded."""

    def before(call: str) -> None:
        if call in WRITES:
            world.clock.tick(STEP / 2)
        happens(call)

    return world.watched(before=before)


def _have_scanned(world: World) -> None:
    frontier = world.wheel.next_bucket(world.wheel.horizon(now=NOON))
    for shard in range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, first_cursors(frontier), lease_until=None)


def _counted(runs: Runs) -> dict[str, int]:
    return {name: len(instants) for name, instants in runs.items()}


def _is_soon(instants: Sequence[datetime], *, after: datetime) -> bool:
    return all(after <= instant < after + MINUTE for instant in instants)
