"""Run the jobs of a batch of messages: claim, call, settle, each step safe against a death before or after it.

What happens to a message is one of two things. It is acknowledged, when its job is settled, placed again, or has
nothing left to do, or when it is no message of Tickwheel's, and a dead letter by then. Or it is returned: reported as failed, so that the queue delivers it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from functions.domain.errors import NewerVersion, Undecodable
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.far_ring.warming import BODY, HOLD_SECONDS
from functions.domain.faults import fault_of
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Timer
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.services.jobs.foreign_messages import ForeignMessages
from functions.worker.attempt import Attempts
from functions.worker.keeper import Keeper, Kept
from functions.worker.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Executes batches.

    keeper: keeps its messages hidden. foreign: keeps what is no message of Tickwheel's. side_by_side: runs functions at the
    same time and returns when all are done.
    """

    clock: Clock
    keeper: Keeper
    foreign: ForeignMessages
    attempts: Attempts
    journal: Journal
    side_by_side: Callable[[Sequence[Callable[[], None]]], None]

    def execute(self, messages: Sequence[Message], *, ends_at: datetime) -> list[str]:
        """Run a batch before `ends_at`; the ids of the messages that must come back.

        Messages that come for the first time run side by side. One that was received before may be what killed its
        worker: it runs alone, after the rest of its batch has settled.
        """
        returned: list[str] = []

        def run(message: Message, kept: Kept) -> None:
            if self._returns(message, ends_at=ends_at):
                kept.let_go(message)
                returned.append(message.message_id)

        fresh = [message for message in messages if message.receive_count <= 1]
        with self.keeper.keep(messages) as kept:
            self.side_by_side([lambda message=message: run(message, kept) for message in fresh])
            for message in sorted(messages, key=lambda message: message.receive_count):
                if message.receive_count > 1:
                    run(message, kept)
        return returned

    def _returns(self, message: Message, *, ends_at: datetime) -> bool:
        if message.body == BODY:
            # It has no job: its worker is to be there. One that comes again has been, and holds nobody up.
            if message.receive_count <= 1:
                self.clock.sleep(HOLD_SECONDS * SECOND)
            return False
        try:
            timers = self._decoded(message)
            # Jobs of one envelope that are done already are dropped by the ledger when it comes back.
            outcomes = [self.attempts.run(timer, message, ends_at=ends_at) for timer in timers]
        except Exception as error:  # noqa: BLE001  one job's fault must not send the others of its batch back
            self.journal.event("job_returned", message_id=message.message_id, error=fault_of(error))
            self.journal.count("returned")
            return True
        return any(outcomes)

    def _decoded(self, message: Message) -> Sequence[Timer]:
        """Its timers; none of a foreign message, which is a dead letter by then. Raises NewerVersion."""
        try:
            return decode_envelope(message.body)
        except NewerVersion:
            raise
        except Undecodable as error:
            # At once: no other receive would read it either.
            seen_at = message.seen_at or self.clock.now()
            self.foreign.keep(message.body, message_id=message.message_id, seen_at=seen_at, error=error)
            return ()
