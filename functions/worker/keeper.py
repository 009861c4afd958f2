"""Messages of a live worker stay hidden, those of a dead one come back soon.

A queue hides what it has delivered for longer than a worker may run, so the job of a worker that dies would wait for that long.
While a batch takes longer than most, its messages are hidden anew and anew, each time for a short while only: the last
of them is over soon after the death.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from functions.domain.faults import fault_of
from functions.domain.instants import SECOND
from functions.ports.ready_queue import ReadyQueue, Receipt
from functions.ports.recorder import Journal
from functions.worker.message import Message

FIRST_AFTER = SECOND
"""Most batches are over by then, and cost no request."""

PERIOD = 15 * SECOND
HIDDEN_FOR = 45 * SECOND
"""Two requests in a row may fail before a message comes back while its worker lives. Its ledger row guards it then."""


class Repeats(Protocol):
    """Calls a function again and again beside what runs inside; the last call may end after it."""

    def __call__(
        self, act: Callable[[], None], /, *, first_after: timedelta, period: timedelta
    ) -> AbstractContextManager[object]:
        """first_after: from the beginning. period: between two calls."""
        ...


def never(_: Callable[[], None], /, **__: timedelta) -> AbstractContextManager[object]:
    """Calls nothing."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Keeps the messages of a batch hidden."""

    ready: ReadyQueue
    journal: Journal
    repeats: Repeats = never

    @contextmanager
    def keep(self, messages: Sequence[Message]) -> Iterator[Kept]:
        """While this is entered; each message until it is let go."""
        kept = Kept({message.receipt for message in messages})
        with self.repeats(lambda: self._hide(kept), first_after=FIRST_AFTER, period=PERIOD):
            yield kept

    def _hide(self, kept: Kept) -> None:
        receipts = kept.receipts()
        if not receipts:
            return
        try:
            refused = self.ready.hide(receipts, hidden_for=HIDDEN_FOR)
        except Exception as error:  # noqa: BLE001  the next one is soon, and what comes back meanwhile is told apart by its row
            self.journal.event("not_hidden", error=fault_of(error))
            return
        if refused:
            self.journal.event("not_hidden", error=", ".join(sorted(set(refused))))


class Kept:
    """The messages of a batch that are still to be hidden, for its threads."""

    def __init__(self, receipts: set[Receipt]) -> None:
        self._receipts = receipts

    def receipts(self) -> Sequence[Receipt]:
        """Those of now."""
        return list(self._receipts)

    def let_go(self, message: Message) -> None:
        """It has to come back, and may have been hidden until another time: that time stands."""
        self._receipts.discard(message.receipt)
