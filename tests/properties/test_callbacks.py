"""Every end of a job is told to its callbacks, once each and to no other, whoever dies at which call. The machine of jobs draws callbacks, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from functions.domain.instants import SECOND
from functions.domain.jobs.callback_jobs import Outcome
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.services.jobs import callback_caller
from functions.services.jobs.callback_caller import CallbackCaller
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.ends import Ends
from testkit.builders import a_submission
from testkit.world.process import Conditions, Fate, Fault
from testkit.world.world import World
from tests.properties import mutations
from tests.properties.lives import History, Mutation, live_through, name_of
from tests.properties.shared import ALL


def each_death(act: Callable[[World, Conditions], None]) -> list[History]:
    """A history for each call at which a process may die, before it is made and after it."""

    def history(at_call: int, fate: Fate) -> History:
        def live(world: World) -> None:
            act(world, Conditions(fault=Fault(fate, at_call=at_call)))

        live.__name__ = f"{act.__name__}_{fate.name.lower()}_{at_call}"
        return live

    return [history(at_call, fate) for at_call in range(1, 10) for fate in (Fate.DIES_BEFORE, Fate.DIES_AFTER)]


def a_success(world: World, conditions: Conditions) -> None:
    world.submit(a_submission(due_at=world.clock.instant, callbacks=ALL))
    world.work(conditions)


def _failing(world: World, conditions: Conditions, *, attempts: int) -> None:
    policy = RetryPolicy(attempts=attempts)
    world.submit(
        a_submission(due_at=world.clock.instant, target="https://example.com/broken", retry=policy, callbacks=ALL)
    )
    world.work(conditions)


def a_failure(world: World, conditions: Conditions) -> None:
    _failing(world, conditions, attempts=1)


def a_failure_that_is_tried_again(world: World, conditions: Conditions) -> None:
    _failing(world, conditions, attempts=2)


def _cancelled(world: World, conditions: Conditions, delivery: Delivery) -> None:
    world.submit(a_submission(due_at=world.clock.instant + 600 * SECOND, delivery=delivery, callbacks=ALL))
    world.time_passes(100 * SECOND)
    (job_id,) = world.promises.waiting()
    world.cancel(job_id, conditions)


def a_cancel(world: World, conditions: Conditions) -> None:
    _cancelled(world, conditions, Delivery.EXACTLY_ONCE)


def a_cancel_of_what_keeps_no_row(world: World, conditions: Conditions) -> None:
    _cancelled(world, conditions, Delivery.AT_LEAST_ONCE)


HISTORIES = [
    history
    for act in (a_success, a_failure, a_failure_that_is_tried_again, a_cancel, a_cancel_of_what_keeps_no_row)
    for history in each_death(act)
]


@pytest.mark.parametrize("history", HISTORIES, ids=name_of)
def test_a_death_at_any_call_loses_no_callback_and_doubles_none(history: History):
    live_through(history)


def puts_what_nobody_finds_again(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(CallbackCaller, "found", lambda *_: None)
    return {}


def removes_the_row_before_it_tells(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    def delete_first(canceller: Canceller, job_id: Any, stored: Any, timer: Any) -> Any:
        canceller.timers.delete(job_id)
        return plain(canceller, job_id, stored, timer)

    plain = Canceller._entomb
    monkeypatch.setattr(Canceller, "_entomb", delete_first)
    monkeypatch.setattr("testkit.fakes.InMemoryTimerStore.put_over", lambda *_, **__: True)
    return {}


def tells_of_a_failure_that_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    def retried(ends: Ends, timer: Any, *_: Any) -> None:
        ends.callbacks.ended(timer, Outcome(state=State.FAILED, attempts=1, ended_at=ends.clock.now()))

    monkeypatch.setattr(Ends, "retried", retried)
    return {}


def names_each_putting_anew(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    make, numbers = callback_caller.callback_job, iter(range(1_000_000))

    def make_another(*given: Any, **named: Any) -> Any:
        return replace(make(*given, **named), identity=f"c-{next(numbers):032x}")

    monkeypatch.setattr(callback_caller, "callback_job", make_another)
    return {}


@pytest.mark.parametrize(
    ("act", "mutation", "violation"),
    [
        (a_success, puts_what_nobody_finds_again, "and told"),
        (a_cancel_of_what_keeps_no_row, removes_the_row_before_it_tells, "was not told|and told"),
        (a_success, names_each_putting_anew, "was called by"),
        (a_failure_that_is_tried_again, tells_of_a_failure_that_is_tried_again, "told before its end"),
        (a_failure, mutations.forgets_the_callbacks_of_failures, "and told"),
    ],
    ids=name_of,
)
def test_what_is_broken_is_noticed(
    act: Callable[[World, Conditions], None], mutation: Mutation, violation: str, monkeypatch: pytest.MonkeyPatch
):
    lambdas = mutation(monkeypatch)

    def live_all() -> None:
        for history in each_death(act):
            live_through(history, lambdas=lambdas)

    with pytest.raises(AssertionError, match=violation):
        live_all()
