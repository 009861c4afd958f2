"""Send timers at the fraction of a second at which they are due, as far as a tick has patience."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.far_ring.sealed_timer import Sendable
from functions.domain.far_ring.send_times import sendings
from functions.ports.clock import Clock
from functions.ports.ready_queue import ReadyQueue, Rejected


@dataclass(frozen=True, slots=True)
class Sent:
    """rejected: what the queue did not take. waited: how long it took beside the sending."""

    rejected: Sequence[Rejected]
    waited: timedelta = timedelta(0)


def send_in_time(timers: Sequence[Sendable], ready: ReadyQueue, *, clock: Clock, within: timedelta) -> Sent:
    """Send all of these timers. A queue that refuses one is not waited for any more."""
    if not within or not timers:
        return Sent(ready.send(timers))
    began = clock.now()
    rejected: list[Rejected] = []
    waited = timedelta(0)
    for sending in sendings(timers, now=began, within=within):
        left = began + sending.after - clock.now()
        if left > timedelta(0) and not rejected:
            clock.sleep(left)
            waited += left
        rejected += ready.send(sending.timers)
    return Sent(rejected, waited)
