"""One run of one Lambda that can be held at any call it makes to a port, and can die there.

Its code runs on threads of its own, of which never more than one is awake: a thread runs while somebody gives it
steps and waits for it, so that every history can be repeated. Run to its end at once, it needs no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from functions.domain.instants import MILLISECOND
from functions.services.telemetry.usage import UsageTally
from functions.services.tenants.plans import KnownPlans
from testkit.fakes import FakeClock
from testkit.world.history import History
from testkit.world.lane import Crash, Lane

ENDLESS = 1_000_000_000


class Unavailable(Exception):
    """A service gave no answer, on every attempt of its adapter."""


class Fate(StrEnum):
    """What becomes of a call to a port."""

    HELD = ""
    DIES_BEFORE = "its process dies before it"
    DIES_AFTER = "its process dies after it"
    TWICE = "its answer is lost, and the SDK repeats it"
    STALLS = "time passes before it"
    FAILS = "is not made, and fails"
    LATE = "fails, and is made later"
    DIES_LATE = "its process dies, and it is made later"
    ECHOES = "goes through, and is made again later"


@dataclass(frozen=True)
class Fault:
    """What becomes of the nth call from now on."""

    fate: Fate
    at_call: int = 1
    stall: timedelta = timedelta(0)


@dataclass(frozen=True)
class Conditions:
    """Under which a process runs: its clock, the cost of each call, and what goes wrong. is_held: step by step.

    hides: of a worker, whether it hides its messages anew, once, so that they come back soon.
    """

    ahead: timedelta = timedelta(0)
    costs: timedelta = timedelta(0)
    fault: Fault | None = None
    is_held: bool = False
    hides: bool = False

    def __str__(self) -> str:
        fault = f", at call {self.fault.at_call}: {self.fault.fate} {self.fault.stall}" if self.fault else ""
        return f"clock {self.ahead.total_seconds():+g} s, {self.costs / MILLISECOND:g} ms a call{fault}"


SMOOTHLY = Conditions()
HELD = Conditions(is_held=True)


@dataclass
class ProcessClock:
    """The clock of one process: it may differ from the world's."""

    process: Process
    ahead: timedelta

    def now(self) -> datetime:
        return self.process.surroundings.clock.instant + self.ahead

    def monotonic(self) -> float:
        return self.process.surroundings.clock.monotonic()

    def sleep(self, duration: timedelta) -> None:
        clock = self.process.surroundings.clock
        wakes_at = clock.instant + duration
        self.process.through("clock.sleep", lambda: clock.tick(wakes_at - clock.instant), IS_LOCAL)

    def offset(self) -> timedelta:
        return self.ahead

    def limited(self, _: timedelta) -> AbstractContextManager[None]:
        return nullcontext()


class Surroundings(Protocol):
    """What a process needs of its world."""

    clock: FakeClock
    late: list[LateCall]
    history: History

    def go_on(self, duration: timedelta) -> None:
        """Let time pass, and the rest of the world do its work."""
        ...


@dataclass(frozen=True)
class LateCall:
    """A call that a service has taken in and not yet made."""

    process: str
    name: str
    make: Callable[[], Any]
    sent_at: datetime


_READS = frozenset(
    {"get", "get_many", "read", "cursors", "audited", "swept", "confirm", "sleep"}
    | {"places", "rows", "opened", "waited_for"}
    | {"definitions", "page", "scan", "state", "states", "days", "read_owned", "open", "urls", "leases", "starts_of"},
)
IS_LOCAL = object()
"""Marks a call that is not made to a service: it cannot be repeated, fail, or be made later."""


class Process:
    """One run of one Lambda. limit: then its Lambda is stopped. began: how much had happened by then, which was at `began_at`.

    counts: what it counts, written down at its end, and what it knows of plans.
    """

    def __init__(self, surroundings: Surroundings, name: str, conditions: Conditions, *, limit: timedelta) -> None:
        self.surroundings = surroundings
        self.name = name
        self.clock = ProcessClock(self, conditions.ahead)
        self.ends_at = surroundings.clock.instant + limit
        self.began, self.began_at = surroundings.history.moment, surroundings.clock.instant
        self.counts: tuple[UsageTally, KnownPlans] | None = None
        self.is_dead = False
        self.is_over = False
        self.is_in_company = False
        self.is_disturbed = False
        self.lanes: list[Lane] = []
        self.awake: Lane | None = None
        self._costs = conditions.costs
        self._fault = conditions.fault
        self._calls = 0

    def run(self, body: Callable[[], None]) -> None:
        """Run it to its end, or to its death."""
        try:
            body()
        except Crash:
            self.is_dead = True
        finally:
            self.is_over = True

    def start(self, body: Callable[[], None]) -> None:
        """Run it up to its first call, and hold it there."""
        self.lanes = [Lane(self, lambda: self.run(body))]
        self.lanes[0].go(0)
        self._look()

    def go_on(self, lane: int = 0, steps: int = 1, *, fault: Fault | None = None) -> None:
        """Let one of its ready threads make some calls; the fault comes after as many calls as it says."""
        ready = [each for each in self.lanes if each.is_ready]
        if not ready or self.is_over:
            return
        self._fault, self._calls = fault, 0
        ready[lane % len(ready)].go(steps)
        self._look()

    def go_to(self, *calls: str, lane: int = 0, or_to_its_end: bool = False) -> None:
        """Let it run until it is held at a call of one of these names."""
        for _ in range(5_000):
            ready = [each for each in self.lanes if each.is_ready]
            if self.is_over and or_to_its_end:
                return
            assert ready, f"{self.name} has ended without {calls}"
            if ready[lane % len(ready)].call in calls:
                return
            self.go_on(lane)
        raise AssertionError(f"{self.name} does not come to {calls}")

    def finish(self) -> None:
        """Run it to its end without faults."""
        while not self.is_over:
            self.go_on(0, ENDLESS)

    def kill(self, *, after: bool = False) -> None:
        """It dies at the call that it is held at: before it is made, or after."""
        if after:
            self.go_on(0, 1)
        self.surroundings.history.disturb()
        self.is_dead = True
        self._look()

    def side_by_side(self, jobs: Sequence[Callable[[], Any]]) -> None:
        """Run functions on threads of their own, and wait for all."""
        was_in_company = self.is_in_company
        self.is_in_company = was_in_company or len(jobs) > 1
        try:
            self._run_side_by_side(jobs)
        finally:
            self.is_in_company = was_in_company

    def _run_side_by_side(self, jobs: Sequence[Callable[[], Any]]) -> None:
        if self.awake is None:
            for job in jobs:
                job()
            return
        parent = self.awake
        children = [Lane(self, job) for job in jobs]
        self.lanes += children
        parent.waits_for = children
        if children:
            parent.hold("its threads")
        if self.is_dead:
            raise Crash
        for child in children:
            if child.fault is not None:
                raise child.fault

    def map_side_by_side(self, rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Map a function over items on threads of their own, if they are several."""
        if len(items) <= 1:
            return [rule(item) for item in items]
        answers: dict[int, Any] = {}
        self.side_by_side(
            [lambda index=index, item=item: answers.update({index: rule(item)}) for index, item in enumerate(items)]
        )
        return [answers[index] for index in range(len(items))]

    def through(self, name: str, make: Callable[[], Any], failed: Any = None, about: Sequence[Any] = ()) -> Any:
        """Make a call, with whatever fate it has. failed: what its adapter answers when the service gave no answer."""
        if self.awake is not None:
            self.awake.hold(name)
        clock = self.surroundings.clock
        if self.is_dead or clock.instant > self.ends_at:
            self.die()
        clock.tick(self._costs)
        fate = self._fate(name, is_local=failed is IS_LOCAL)
        self.is_disturbed = self.is_disturbed or fate is not Fate.HELD
        self.surroundings.history.note(clock.instant, self.name, name, fate, about)
        if fate in (Fate.LATE, Fate.DIES_LATE, Fate.ECHOES):
            self.surroundings.late.append(LateCall(self.name, name, make, clock.instant))
        if fate in (Fate.FAILS, Fate.LATE):
            if failed is None:
                raise Unavailable
            return failed
        if fate is Fate.STALLS:
            self._stall()
        if fate in (Fate.DIES_BEFORE, Fate.DIES_LATE):
            self.die()
        if fate is Fate.TWICE:
            make()
        answer = self._make(make)
        if fate is Fate.DIES_AFTER:
            self.die()
        return answer

    def _make(self, make: Callable[[], Any]) -> Any:
        return make()

    def die(self) -> NoReturn:
        """End at once, with all threads."""
        self.surroundings.history.disturb()
        self.is_dead = True
        raise Crash

    def _stall(self) -> None:
        assert self._fault is not None
        lane, stall = self.awake, self._fault.stall
        self._fault = None
        self.surroundings.go_on(stall)
        self.awake = lane
        if self.surroundings.clock.instant > self.ends_at:
            self.die()

    def _fate(self, name: str, *, is_local: bool) -> Fate:
        self._calls += 1
        if self._fault is None or self._calls != self._fault.at_call:
            return Fate.HELD
        fate = self._fault.fate
        port, _, call = name.partition(".")
        if fate in (Fate.HELD, Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.STALLS):
            return fate
        if is_local or (fate is not Fate.FAILS and call in _READS and name != "collections.open"):
            return Fate.HELD
        if name == "exports.put" and fate in (Fate.LATE, Fate.ECHOES):
            # The store keeps what was sent last, not what arrives last.
            return Fate.FAILS if fate is Fate.LATE else Fate.HELD
        if port == "target":
            # Nobody repeats a request to a target. Its answer may be lost.
            return Fate.FAILS if call == "end" else Fate.HELD
        if fate is Fate.TWICE and port == "timers":
            # This client makes one attempt a call.
            return Fate.HELD
        return fate

    def _look(self) -> None:
        """When it has died, the other threads unwind too. What its code did not expect is the test's to know."""
        if self.is_dead:
            for lane in reversed(self.lanes):
                lane.forget()
                lane.go(0)
            self.is_over = True
        elif self.is_over and self.lanes[0].fault is not None:
            raise self.lanes[0].fault
