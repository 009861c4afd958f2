"""Permits for the calls of tenants whose concurrency is capped: one for each call, taken before its claim.

    permit = limiter.take(tenant, limit=plan.max_concurrency, lease_until=...)
    if permit is None:                              # as many run as may: same message, same attempt, later
        park(timer, until=now + limiter.wait(tenant, limit=...))
    ...claim, call, settle...
    limiter.give_back(permit)                         # whatever came of it

**A permit cannot leak.** It is a lease for as long as the attempt may last: a worker that dies, or whose release is lost,
gives it back by that, SKEW later. A release names its owner, so one that comes late takes nothing from whoever has the
permit by then; and each receive of a message has an owner of its own. A target that answered 202 gives its permit back with
that: what it continues with by itself is not counted. When a cap shrinks, the permits above it are not taken any more.

**What it costs.** A tenant without a cap: nothing. A call: two write units, to take and to give back; a permit is tried at
random first, and where that one is taken, one more unit and a Query (half a read unit for each 50 permits) find the free
ones. A job that finds none: that unit and the Query, the note of its parking (a unit, where it is ledgered), and its
way back: a message, or a far row (a unit) and its promotion. All permits of a tenant are in one partition, which takes
1,000 writes a second: 500 calls a second of a capped tenant.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.targets.concurrency import Crowd, Permit, free_permits, wait_for_permit
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.targets import PermitStore

MOST_CROWDS = 1_000
"""Tenants whose crowd a process remembers. One that it forgets is asked for more often, for a while."""

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimiter:
    """Finds permits, for the threads of a batch. token: a fresh owner token. jitter: a random number from 0 up to 1."""

    wheel: Wheel
    clock: Clock
    permits: PermitStore
    journal: Journal
    token: Callable[[], str]
    jitter: Callable[[], float]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _crowds: OrderedDict[str, Crowd] = field(default_factory=OrderedDict[str, Crowd], init=False)

    def take(self, tenant: str, *, limit: int, lease_until: datetime) -> Permit | None:
        """A permit among so many, until then; None when others have all of them. Raises what its store raises."""
        owner = self.token()
        for number in self._numbers(tenant, limit=limit):
            permit = Permit(tenant=tenant, number=number, owner=owner, lease_until=lease_until)
            if self.permits.take(permit, now=self.clock.now(), skew=self.wheel.lease_skew):
                return permit
        return None

    def wait(self, tenant: str, *, limit: int) -> timedelta:
        """How long one more job of the tenant waits that found no permit among so many."""
        with self._lock:
            crowd = self._crowds.pop(tenant, Crowd()).grown(at=self.clock.monotonic())
            self._crowds[tenant] = crowd
            if len(self._crowds) > MOST_CROWDS:
                self._crowds.popitem(last=False)
        return wait_for_permit(crowd, limit=limit, far=self.wheel.guard + FAR_MARGIN, jitter=self.jitter())

    def give_back(self, permit: Permit) -> None:
        """The call is over. Never raises: where the store fails, the lease does it."""
        try:
            self.permits.give_back(permit)
        except Exception as error:  # noqa: BLE001  the job is settled, or comes back; its permit must not change that
            self.journal.event("permit_not_given_back", tenant=permit.tenant, error=type(error).__name__)

    def _numbers(self, tenant: str, *, limit: int) -> Iterator[int]:
        """Which permits to try: one at random, and where that is taken, some of the free ones."""
        guessed = int(self.jitter() * limit)
        yield guessed
        leases = self.permits.leases(tenant, limit=limit)
        free = free_permits(leases, limit=limit, now=self.clock.now(), skew=self.wheel.lease_skew, chance=self.jitter())
        yield from [number for number in free if number != guessed][:_TRIES]
