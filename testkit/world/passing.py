"""How time passes in a world, and what happens meanwhile."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.wheel import Wheel
from functions.ports.collections import CollectionStore
from testkit.fakes import QueuedMessage
from testkit.world.history import History
from testkit.world.lambdas import Lambdas
from testkit.world.operations import Operations
from testkit.world.process import Conditions, LateCall, Process

TICK = timedelta(seconds=60)
LATEST = timedelta(seconds=30)
"""How long a call that nobody waits for any more may take to be made."""


class Passing(Lambdas, Operations):
    """late: calls that a service has taken in; live: processes that are held at a call."""

    wheel: Wheel
    audits: bool
    history: History
    collections: CollectionStore
    late: list[LateCall]
    live: list[Process]

    def redeliver(self) -> None:
        """SQS delivers at least once: messages in flight become visible although somebody has them."""
        for message in self.ready.messages.values():
            if message.receive_count:
                message.visible_at = self.clock.instant

    def time_passes(self, duration: timedelta) -> None:
        """And nothing else happens."""
        self.clock.tick(duration)
        self.tidy()

    def tidy(self) -> None:
        """Lambdas that have used up their time are stopped; calls that were late are made at last."""
        for process in self.live:
            if self.clock.instant > process.ends_at:
                process.kill()
        self.live[:] = [process for process in self.live if not process.is_over]
        while self.late and self.late[0].sent_at + LATEST < self.clock.instant:
            self.land()

    def land(self, which: int = 0) -> None:
        """A call that nobody waits for any more is made."""
        if self.late:
            late = self.late.pop(which % len(self.late))
            self.history.note_turn(self.clock.instant, late.process, f"{late.name} is made at last")
            late.make()
            self.history.disturb()

    def go_on(self, duration: timedelta) -> None:
        """The rest of the world goes on, without faults, while one process stalls."""
        end = self.clock.instant + duration
        self.redeliver()
        while True:
            for shard in range(self.wheel.scan_shards):
                self.scan(shard)
            self._operate_on_what_is_open()
            if self.clock.instant >= end:
                break
            self.clock.tick(min(end - self.clock.instant, timedelta(seconds=20)))
        self.work(Conditions(ahead=self.wheel.skew / 2))

    def live_on(self, duration: timedelta, *, heals: bool = True) -> None:
        """Everything runs as it should, each message as soon as it is visible."""
        end = self.clock.instant + duration
        while self.clock.instant < end:
            next_tick = min(self.clock.instant + TICK, end)
            for shard in range(self.wheel.scan_shards):
                self.scan(shard)
            if heals:
                self.heal()
            while (message := self._next_message()) is not None and message.visible_at <= next_tick:
                self.clock.tick(message.visible_at - self.clock.instant)
                self.work()
                self.bury()
            self.clock.tick(next_tick - self.clock.instant)

    def pass_a_minute(self) -> None:
        """Everything runs as it should, at its own time."""
        for shard in range(self.wheel.scan_shards):
            self.scan(shard)
        if self.audits:
            self.sweep()
        if self.promises.collections.is_used:
            self.open_collections()
        if self.promises.schedules.truth.versions:
            self.heal()
        self._operate_on_what_is_open()
        for _ in range(3):
            while self.work():
                pass
            self.bury()
            self.clock.tick(timedelta(seconds=20))

    def _operate_on_what_is_open(self) -> None:
        if self.promises.operations.open():
            self.operate()

    def _next_message(self) -> QueuedMessage | None:
        return min(self.ready.messages.values(), key=lambda message: message.visible_at, default=None)
