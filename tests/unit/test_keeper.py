"""What is hidden of a batch while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import SECOND
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Outcome, Succeeded
from functions.worker.keeper import FIRST_AFTER, HIDDEN_FOR, PERIOD, Keeper
from testkit.builders import DEPLOYED_WHEEL, LOCAL_WHEEL, NOON, a_timer
from testkit.fakes import RecordingJournal
from testkit.fakes.ready_queue import received
from testkit.observed import ObservedReadyQueue
from testkit.scheduler import World
from tests.unit.test_execute import a_claim


@dataclass
class ByHand:
    """Repeats when a test says so."""

    acts: list[Callable[[], None]] = field(default_factory=list)
    asked: list[tuple[timedelta, timedelta]] = field(default_factory=list)

    @contextmanager
    def repeats(self, act: Callable[[], None], /, *, first_after: timedelta, period: timedelta) -> Iterator[None]:
        self.acts.append(act)
        self.asked.append((first_after, period))
        yield
        self.acts.remove(act)

    def act(self) -> None:
        for act in self.acts:
            act()


@dataclass
class Refusing(ObservedReadyQueue):
    """Hides nothing."""

    error: Exception | None = None

    def hide(self, receipts: Sequence[Receipt], *, hidden_for: timedelta) -> list[str]:
        if self.error:
            raise self.error
        return ["MessageNotInflight" for _ in receipts]


def run(world: World, *, meanwhile: Callable[[], object], by_hand: ByHand) -> None:
    """A batch of all that is visible; meanwhile: in each call."""

    class Targets:
        def call(self, *_: Any, **__: Any) -> Outcome:
            meanwhile()
            return Succeeded()

    world.receive_and_work(targets=Targets(), repeats=by_hand.repeats)


def test_the_messages_of_a_batch_are_hidden_for_a_short_while_at_first_soon_and_then_again_and_again():
    world, by_hand = World(), ByHand()
    world.ready.send([a_timer(), a_timer()])
    seen: list[list[timedelta]] = []

    def meanwhile() -> None:
        by_hand.act()
        seen.append([message.visible_at - world.clock.instant for message in world.ready.messages.values()])

    run(world, meanwhile=meanwhile, by_hand=by_hand)

    assert by_hand.asked == [(FIRST_AFTER, PERIOD)]
    assert seen[0] == [HIDDEN_FOR, HIDDEN_FOR]
    assert by_hand.acts == []
    assert world.ready.messages == {}


def test_a_message_that_was_put_off_until_another_time_comes_back_then():
    world, by_hand = World(), ByHand()
    leased, slow = a_timer(), a_timer()
    a_claim(world, leased, owner="another", lease_until=NOON + 100 * SECOND)
    world.ready.send([leased, slow])

    run(world, meanwhile=by_hand.act, by_hand=by_hand)

    [message] = world.ready.messages.values()
    assert message.visible_at == NOON + 101 * SECOND + world.wheel.lease_skew


@pytest.mark.parametrize(
    ("error", "logged"), [(None, "MessageNotInflight"), (TimeoutError("of its queue"), "TimeoutError")]
)
def test_what_cannot_be_hidden_is_in_the_log_and_disturbs_nothing(error: Exception | None, logged: str):
    world, by_hand = World(), ByHand()
    world.ready = Refusing(world.clock, error=error)
    world.ready.send([a_timer()])

    run(world, meanwhile=by_hand.act, by_hand=by_hand)

    assert world.ready.messages == {}
    [found] = [str(keys["error"]) for name, keys in world.journal.events if name == "not_hidden"]
    assert found.startswith(logged)
    assert "of its queue" not in found


def test_a_batch_of_which_all_comes_back_asks_for_nothing():
    world, by_hand = World(), ByHand()
    world.ready.send([a_timer()])
    [message] = [received(message) for message in world.ready.receive()]
    keeper = Keeper(ready=world.ready, journal=RecordingJournal(), repeats=by_hand.repeats)

    with keeper.keep([message]) as kept:
        kept.let_go(message)
        by_hand.act()

    assert world.ready.hidden == 0


@pytest.mark.parametrize("wheel", [LOCAL_WHEEL, DEPLOYED_WHEEL], ids=["local", "aws"])
@pytest.mark.parametrize("side", [1, -1])
def test_a_worker_whose_clock_is_wrong_by_half_of_what_two_may_differ_begins_no_attempt(wheel: Wheel, side: int):
    world = World(wheel=wheel)
    world.ready.send([a_timer(wheel=wheel)])
    world.clock.known_offset = side * (wheel.lease_skew / 2 + SECOND)

    assert len(world.receive_and_work()) == 1
    assert (world.ledger.rows, world.targets.effects) == ({}, [])
    assert "worker_clock_skewed" in dict(world.journal.events)

    world.clock.known_offset = side * wheel.lease_skew / 2
    world.clock.tick(world.ready.visibility)
    assert world.receive_and_work() == []
    assert len(world.targets.effects) == 1
