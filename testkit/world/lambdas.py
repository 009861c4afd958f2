"""What AWS calls in a world: each call is a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from functions.dead_letters.dead_message import DeadMessageHandler
from functions.domain.instants import MILLISECOND
from functions.domain.stage.conditions import Conditions as StageConditions
from functions.scanner.scan import Scanner
from functions.sweeper.collections import CollectionOpener
from functions.sweeper.heal import Healer
from functions.sweeper.sweep import Sweeper
from functions.worker.execute import Worker
from functions.worker.keeper import never
from testkit.fakes.ready_queue import received
from testkit.world.carriers import timers_of
from testkit.world.host import FUNCTION_LIMIT, Host
from testkit.world.process import SMOOTHLY, Conditions, Process
from testkit.world.targets import Targets


@contextmanager
def once(act: Callable[[], None], /, **_: timedelta) -> Iterator[None]:
    """At the beginning, and then nothing happens beside a process: its messages come back soon, whether it lives or not."""
    act()
    yield


class Lambdas(Host):
    """Ticks, and deliveries of messages."""

    def scan(self, shard: int, conditions: Conditions = SMOOTHLY) -> Process:
        """One tick of one shard."""
        process = self.process(f"scan {shard}", conditions)
        scanner = self.build(Scanner, process)
        return self.begin(process, lambda: scanner.scan(shard, time_limit=FUNCTION_LIMIT), conditions)

    def sweep(self, conditions: Conditions = SMOOTHLY) -> Process:
        """One audit."""
        self._publish_depths()
        process = self.process("sweep", conditions)
        opener, sweeper = self._opener(process), self.build(Sweeper, process, sample=1.0)

        def sweep() -> None:
            if self.promises.collections.is_used:
                opener.sweep()
            sweeper.sweep(time_limit=FUNCTION_LIMIT)

        return self.begin(process, sweep, conditions)

    def sweep_collections(self, conditions: Conditions = SMOOTHLY) -> Process:
        """The part of a sweep that looks for releases which are missing."""
        process = self.process("sweep of collections", conditions)
        opener = self._opener(process)
        return self.begin(process, opener.sweep, conditions)

    def _opener(self, process: Process) -> CollectionOpener:
        """It begins where there is nothing before: it has all in one page."""
        return self.build(CollectionOpener, process, token=lambda: "")

    def _publish_depths(self) -> None:
        """How the queues stand, beside the budgets that a history has set."""
        now = self.clock.instant
        published = self.shards.conditions() or StageConditions(published_at=now)
        waiting = {priority: depth.waiting for priority, depth in self.ready.depths().items()}
        self.shards.publish(replace(published, published_at=now, waiting=waiting))

    def heal(self, conditions: Conditions = SMOOTHLY) -> Process:
        """One sweep of the schedules."""
        process = self.process("heal", conditions)
        healer = self.build(Healer, process)
        return self.begin(process, lambda: healer.heal(time_limit=FUNCTION_LIMIT), conditions)

    def work(self, conditions: Conditions = SMOOTHLY, *, batch: int = 10) -> Process | None:
        """Deliver a batch of messages to a worker; None when there is none."""
        # A poll takes its time. Without it, what was put off until this very instant would come back without end.
        self.clock.tick(MILLISECOND)
        messages = self.ready.receive(batch)
        if not messages:
            return None
        counts = [message.receive_count for message in messages]
        process = self.process("work", conditions)
        timers = [timer for message in messages for timer in timers_of(message.body)]
        targets = Targets(self.promises, process, timers)
        worker = self.build(
            Worker,
            process,
            given={"targets": targets, "repeats": once if conditions.hides else never},
            side_by_side=process.side_by_side,
        )
        ends_at = process.clock.now() + FUNCTION_LIMIT

        def deliver() -> None:
            returned = worker.execute([received(message) for message in messages], ends_at=ends_at)
            for message, count in zip(messages, counts, strict=True):
                # The handle of an earlier receive deletes nothing.
                if message.message_id not in returned and message.receive_count == count:
                    self.ready.delete(message.message_id)

        return self.begin(process, deliver, conditions)

    def bury(self, conditions: Conditions = SMOOTHLY) -> Process | None:
        """Deliver what the dead-letter queue has to its consumer."""
        dead = list(self.ready.dead)
        if not dead:
            return None
        process = self.process("bury", conditions)
        burier = self.build(DeadMessageHandler, process)

        def deliver() -> None:
            for message in dead:
                if (
                    burier.bury(
                        message.body,
                        message_id=message.message_id,
                        seen_at=self.first_seen.setdefault(message.message_id, self.clock.instant),
                        receive_count=message.receive_count,
                    )
                    and message in self.ready.dead
                ):
                    self.ready.dead.remove(message)

        return self.begin(process, deliver, conditions)
