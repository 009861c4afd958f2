"""Seats for the calls of tenants whose concurrency is capped: one for each call, taken before its claim.

    seat = usher.take(tenant, limit=plan.max_concurrency, lease_until=...)
    if seat is None:                                # as many run as may: same message, same attempt, later
        park(timer, until=now + usher.wait(tenant, limit=...))
    ...claim, call, settle...
    usher.give_back(seat)                           # whatever came of it

**A seat cannot leak.** It is a lease for as long as the attempt may last: a worker that dies, or whose release is lost,
gives it back by that, SKEW later. A release names its owner, so one that comes late takes nothing from whoever has the
seat by then; and each receive of a message has an owner of its own. A target that answered 202 gives its seat back with
that: what it goes on with by itself is not counted. When a cap shrinks, the seats above it are not taken any more.

**What it costs.** A tenant without a cap: nothing. A call: two write units, to take and to give back; a seat is tried at
random first, and where that one is taken, one more unit and a Query (half a read unit for each 50 seats) find the free
ones. A job that finds none: that unit and the Query, the note of its parking (a unit, where it is ledgered), and its
way back: a message, or a far row (a unit) and its promotion. All seats of a tenant are in one partition, which takes
1,000 writes a second: 500 calls a second of a capped tenant.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.targets.concurrency import Crowd, Seat, free_seats, wait_for_seat
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.targets import SeatStore

MOST_CROWDS = 1_000
"""Tenants whose crowd a process remembers. One that it forgets is asked for more often, for a while."""

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Usher:
    """Finds seats, for the threads of a batch. token: a fresh owner token. jitter: a random number from 0 up to 1."""

    wheel: Wheel
    clock: Clock
    seats: SeatStore
    journal: Journal
    token: Callable[[], str]
    jitter: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _crowds: OrderedDict[str, Crowd] = field(default_factory=OrderedDict[str, Crowd], init=False)

    def take(self, tenant: str, *, limit: int, lease_until: datetime) -> Seat | None:
        """A seat among so many, until then; None when others have all of them. Raises what its store raises."""
        owner = self.token()
        guessed = int(self.jitter() * limit)
        seat = self._taken(Seat(tenant=tenant, number=guessed, owner=owner, lease_until=lease_until))
        if seat is not None:
            return seat
        leases = self.seats.leases(tenant, limit=limit)
        now = self.clock.now()
        free = free_seats(leases, limit=limit, now=now, skew=self.wheel.skew, chance=self.jitter())
        for number in [number for number in free if number != guessed][:_TRIES]:
            seat = self._taken(Seat(tenant=tenant, number=number, owner=owner, lease_until=lease_until))
            if seat is not None:
                return seat
        return None

    def wait(self, tenant: str, *, limit: int) -> timedelta:
        """How long one more job of the tenant waits that found no seat among so many."""
        with self._lock:
            crowd = self._crowds.pop(tenant, Crowd()).grown(at=self.clock.monotonic())
            self._crowds[tenant] = crowd
            if len(self._crowds) > MOST_CROWDS:
                self._crowds.popitem(last=False)
        return wait_for_seat(crowd, limit=limit, far=self.wheel.guard + FAR_MARGIN, jitter=self.jitter())

    def give_back(self, seat: Seat) -> None:
        """The call is over. Never raises: where the store fails, the lease does it."""
        try:
            self.seats.give_back(seat)
        except Exception as error:  # noqa: BLE001  the job is settled, or comes back; its seat must not change that
            self.journal.event("seat_not_given_back", tenant=seat.tenant, error=type(error).__name__)

    def _taken(self, seat: Seat) -> Seat | None:
        is_taken = self.seats.take(seat, now=self.clock.now(), skew=self.wheel.skew)
        return seat if is_taken else None
