"""Whether a destination may be called, for one worker: it asks before a claim, and reports how the call went.

    decision = breakers.decide(timer, lease_until=...)      # before the claim; the ledger is not touched
    if isinstance(decision, Park):                          # same message, same attempt, at decision.until
        place(replace(timer, due_at=decision.until))
    ...claim...
    breakers.note(timer, decision, outcome)                 # after the call, whatever it answered
    breakers.release(timer, decision)                       # instead, when the target was not called

While all is well nothing is read, written or kept. A process remembers a destination from its first failure on, asks
for the shared row only after failures of its own, and then at most once in five seconds. So each process learns that a
breaker is open at the price of one failed call; and it learns of a reset, or of a probe that went well, within five
seconds of work for that destination.

The rules are in `functions/domain/targets/breaker.py`. A store that fails never stops a job: a breaker that is not known to be
open counts as closed, and one that is, until its time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from functions.domain.instants import format_instant
from functions.domain.jobs.job import Timer
from functions.domain.targets.breaker import (
    Breaker,
    RecentCalls,
    Signal,
    guarded_destination,
    opened,
    signal_of_failure,
)
from functions.ports.clock import Clock
from functions.ports.ledger import Applied
from functions.ports.recorder import Journal
from functions.ports.targets import BreakerStore, Changed, Failed, Outcome

REFRESH_SECONDS = 5
"""A destination's row is read no more often, and a store that failed is left alone as long."""

MOST_KNOWN = 1_000
"""Destinations that a process remembers. One that it forgets costs it a failed call."""

_TRIES = 3

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Go:
    """The target may be called. probe: the half-open breaker whose probe this call is; None for any other call."""

    destination: str
    probe: Breaker | None = None


@dataclass(frozen=True, slots=True)
class Park:
    """The target is not to be called: the job comes back at `until`. The reason is a text for people."""

    until: datetime
    reason: str


CallDecision = Go | Park


@dataclass(slots=True)
class _Known:
    """What this process knows of a destination. Its lock is held while the store is asked: the other threads wait.

    breaker: the row that was seen last; None for a closed one. read_after, write_after: on the monotonic clock.
    """

    tenant: str
    destination: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    recent_calls: RecentCalls = field(default_factory=RecentCalls)
    breaker: Breaker | None = None
    read_after: float = 0.0
    write_after: float = 0.0

    def learn(self, breaker: Breaker | None) -> None:
        """The row as it was found. What failed before it was closed counts no more."""
        if breaker is None and self.breaker is not None:
            self.recent_calls = RecentCalls()
        self.breaker = breaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakers:
    """Admits calls, and learns from how they went. Safe for the threads of a batch.

    token: a fresh owner token. jitter: a random number from 0 up to 1. skew: how far two clocks may differ.
    """

    clock: Clock
    breaker_store: BreakerStore
    journal: Journal
    token: Callable[[], str]
    jitter: Callable[[], float]
    skew: timedelta
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _known: OrderedDict[tuple[str, str], _Known] = field(default_factory=OrderedDict, init=False)

    def decide(self, timer: Timer, *, lease_until: datetime) -> CallDecision:
        """Whether the target of a timer may be called now. lease_until: by then the call is over.

        Never raises. Each Go is followed by one `note` or one `release`.
        """
        destination = guarded_destination(timer.job.target)
        known = self._recall(timer.job.tenant, destination)
        if known is None:
            return Go(destination)
        with known.lock:
            return self._decide(known, lease_until=lease_until)

    def note(self, timer: Timer, go: Go, outcome: Outcome) -> None:
        """Learn from the outcome of a call that might be made. Never raises."""
        signal = _signal_of(outcome)
        is_new = go.probe is not None or signal is Signal.FAILS
        known = self._recall(timer.job.tenant, go.destination, is_new=is_new)
        if known is None:
            return
        with known.lock:
            if go.probe is not None:
                self._end_probe(known, go.probe, outcome)
            elif signal is not Signal.UNKNOWN:
                self._note(known, outcome, signal)

    def release(self, timer: Timer, go: Go) -> None:
        """A call that might be made is not made: what would have been a probe is given back. Never raises."""
        known = self._recall(timer.job.tenant, go.destination, is_new=True) if go.probe is not None else None
        if known is not None and go.probe is not None:
            with known.lock:
                self._end_probe(known, go.probe, None)

    def _decide(self, known: _Known, *, lease_until: datetime) -> CallDecision:
        seen = known.breaker
        if seen is not None and not self._may_be_probed(seen):
            self._read(known)
        for _ in range(_TRIES):
            seen = known.breaker
            if seen is None:
                return Go(known.destination)
            if not self._may_be_probed(seen):
                break
            if self.clock.monotonic() < known.write_after:
                return Go(known.destination)
            probe = seen.probed(owner=self.token(), lease_until=lease_until)
            match self._ask(known, lambda seen=seen, probe=probe: self.breaker_store.put(probe, seen=seen)):
                case None:
                    return Go(known.destination)
                case Applied():
                    known.learn(probe)
                    self._report(probe, event="breaker_probed")
                    return Go(known.destination, probe)
                case Changed(newer):
                    known.learn(newer)
        return self._park(known)

    def _may_be_probed(self, breaker: Breaker) -> bool:
        return breaker.may_be_probed(now=self.clock.now(), skew=self.skew)

    def _park(self, known: _Known) -> CallDecision:
        if known.breaker is None:
            return Go(known.destination)
        until = known.breaker.parked_until(now=self.clock.now(), skew=self.skew, jitter=self.jitter())
        return Park(until, f"the breaker of {known.destination} is {known.breaker.state}")

    def _note(self, known: _Known, outcome: Outcome, signal: Signal) -> None:
        is_failure = signal is Signal.FAILS
        known.recent_calls = known.recent_calls.with_call(failed=is_failure, at=self.clock.monotonic())
        if not isinstance(outcome, Failed) or not is_failure or known.breaker is not None:
            return
        if known.recent_calls.trips:
            self._open(known, outcome)
        else:
            self._read(known)

    def _read(self, known: _Known) -> None:
        if self.clock.monotonic() < known.read_after:
            return
        known.read_after = self.clock.monotonic() + REFRESH_SECONDS
        # In a tuple: no breaker is an answer too.
        found = self._ask(known, lambda: (self.breaker_store.get(known.tenant, known.destination),))
        if found is not None:
            known.learn(*found)

    def _open(self, known: _Known, failure: Failed) -> None:
        if self.clock.monotonic() < known.write_after:
            return
        breaker = opened(
            known.tenant,
            known.destination,
            owner=self.token(),
            now=self.clock.now(),
            error_class=failure.error_class,
            retry_after=failure.retry_after,
        )
        if self._write(known, breaker, seen=None, event="breaker_opened"):
            self.journal.count("breakers_opened")

    def _end_probe(self, known: _Known, probe: Breaker, outcome: Outcome | None) -> None:
        """outcome: None when nothing was called."""
        signal = Signal.UNKNOWN if outcome is None else _signal_of(outcome)
        now, owner = self.clock.now(), self.token()
        if signal is Signal.WORKS:
            self._close(known, probe)
        elif isinstance(outcome, Failed) and signal is Signal.FAILS:
            breaker = probe.reopened(
                owner=owner, now=now, error_class=outcome.error_class, retry_after=outcome.retry_after
            )
            self._write(known, breaker, seen=probe, event="breaker_reopened")
        else:
            self._write(known, probe.released(owner=owner, now=now), seen=probe, event="breaker_released")

    def _close(self, known: _Known, probe: Breaker) -> None:
        match self._ask(known, lambda: self.breaker_store.close(probe)):
            case Applied():
                known.learn(None)
                self.journal.count("breakers_closed")
                self._report(probe, event="breaker_closed")
            case Changed(newer):
                # The lease of this probe was over: another one is under way, or has answered.
                known.learn(newer)
            case None:
                # This process has seen that the destination works; for the others the lease runs out.
                if known.breaker is not None and known.breaker.owner == probe.owner:
                    known.learn(None)

    def _write(self, known: _Known, breaker: Breaker, *, seen: Breaker | None, event: str) -> bool:
        """Whether the breaker stands; where another one does, that is known from now on."""
        match self._ask(known, lambda: self.breaker_store.put(breaker, seen=seen)):
            case Applied():
                known.learn(breaker)
                self._report(breaker, event=event)
                return True
            case Changed(newer):
                known.learn(newer)
        return False

    def _ask(self, known: _Known, call: Callable[[], Answer]) -> Answer | None:
        """What the store answers; None when it fails."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001  a breaker must not stop the jobs that it is to spare
            self.journal.event(
                "breaker_unknown",
                tenant=known.tenant,
                destination=known.destination,
                error=type(error).__name__,
            )
            known.read_after = known.write_after = self.clock.monotonic() + REFRESH_SECONDS
            return None

    def _recall(self, tenant: str, destination: str, *, is_new: bool = False) -> _Known | None:
        """What is known of a destination; is_new: from now on something is."""
        if not destination:
            return None
        key = (tenant, destination)
        with self._lock:
            known = self._known.get(key)
            if known is None and is_new:
                known = self._known[key] = _Known(tenant, destination)
                if len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def _report(self, breaker: Breaker, *, event: str) -> None:
        self.journal.event(
            event,
            tenant=breaker.tenant,
            destination=breaker.destination,
            until=format_instant(breaker.until),
            error_class=breaker.error_class,
        )


def _signal_of(outcome: Outcome) -> Signal:
    if isinstance(outcome, Failed):
        return signal_of_failure(outcome.error_class, is_its_own=outcome.is_its_own)
    return Signal.WORKS
