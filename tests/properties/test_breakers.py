"""Breakers under any interleaving of three workers, with deaths, skewed clocks, resets and a store that fails.

Then the rules are broken one by one, to see that this machine notices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from functions.domain.instants import SECOND
from functions.domain.targets.breaker import MAX_OPEN_FOR, MIN_FAILURES, Breaker, BreakerState
from functions.ports.ledger import Applied
from functions.ports.targets import Changed, Failed, Outcome, Pending, Succeeded
from functions.services.targets.breakers import REFRESH_SECONDS, Breakers, Go, Park
from testkit.builders import LOCAL_WHEEL, a_timer
from testkit.fakes import FakeClock, InMemoryBreakerStore, RecordingJournal
from testkit.observed import Unreliable
from tests.properties.machine import SCHEDULER_SETTINGS

HOST = "https://example.com"
SKEW = LOCAL_WHEEL.skew
LEASE = timedelta(seconds=20)
DOWN = Failed("503", "http_503")
CLOCKS = (-SKEW / 2, timedelta(0), SKEW / 2)

OUTCOMES: list[Outcome] = [
    DOWN,
    replace(DOWN, retry_after=timedelta(minutes=2)),
    Succeeded(),
    Pending(),
    Failed("422", "http_422", is_permanent=True, is_its_own=True),
    Failed("no", "not_allowed", is_permanent=True),
]

workers = st.integers(0, len(CLOCKS) - 1)


@dataclass
class Worker:
    """knows: the opening that it has seen, and whose end it has not seen."""

    clock: FakeClock
    breakers: Breakers
    knows: int = 0


@dataclass(eq=False)
class Call:
    worker: Worker
    go: Go
    lease_until: datetime

    @property
    def is_live(self) -> bool:
        """Whether the call may still be under way, by the clock of its worker."""
        return self.worker.clock.now() <= self.lease_until


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = itertools.count(1)
        self.store: Any = Unreliable(InMemoryBreakerStore())
        self.workers = [self.a_worker(ahead, since=timedelta(0)) for ahead in CLOCKS]
        self.calls: list[Call] = []
        self.elapsed = timedelta(0)
        self.opening = 0
        """How often the breaker has been opened, counted by those who look at its row."""
        self.unchanged_since = timedelta(0)
        self.failed_at = -timedelta(days=1)

    def a_worker(self, ahead: timedelta, *, since: timedelta) -> Worker:
        clock = FakeClock()
        clock.ahead = ahead
        clock.tick(since)
        breakers = Breakers(
            clock=clock,
            breaker_store=self.store,
            journal=RecordingJournal(),
            token=lambda: f"token-{next(self.tokens)}",
            jitter=lambda: 0.5,
            skew=SKEW,
        )
        return Worker(clock, breakers)

    @property
    def row(self) -> Breaker | None:
        return self.store.rows.get(("acme", HOST))

    @property
    def is_settled(self) -> bool:
        """Whether everybody who looks has had the time to see the row as it is."""
        since = max(self.unchanged_since, self.failed_at)
        return not self.store.fails and self.elapsed - since >= REFRESH_SECONDS * SECOND

    @rule(number=workers)
    def admit(self, number: int) -> None:
        self._admit(self.workers[number])

    def _admit(self, worker: Worker) -> Go | Park:
        before = self.row
        lease_until = worker.clock.now() + LEASE
        decision = worker.breakers.decide(a_timer(), lease_until=lease_until)
        self._look(before)
        if isinstance(decision, Park):
            assert decision.until >= worker.clock.now(), "parked for the past"
            assert decision.until <= worker.clock.now() + 2 * MAX_OPEN_FOR + LEASE + 2 * SKEW, "parked for too long"
            assert self.row is not None or not self.is_settled, "a closed breaker parks"
            worker.knows = self.opening if self.row is not None else worker.knows
            return decision
        if decision.probe is not None:
            live = [call for call in self.calls if call.go.probe and call.is_live]
            assert not live, "two live probes"
            assert self.row is not None, "a closed breaker is probed"
            assert self.row.state is BreakerState.HALF_OPEN, "a probe that the store knows nothing of"
            worker.knows = self.opening
        elif self.row is not None and worker.knows == self.opening:
            assert self._has_failed_lately(), "an open breaker lets a call go"
        self.calls.append(Call(worker, decision, lease_until))
        return decision

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def note(self, data: st.DataObject, outcome: Outcome) -> None:
        self._note(self._take(data), outcome)

    @precondition(lambda self: any(call.go.probe for call in self.calls))
    @rule(outcome=st.sampled_from(OUTCOMES))
    def the_oldest_probe_reports(self, outcome: Outcome) -> None:
        """Whether it is still the probe or not."""
        call = next(call for call in self.calls if call.go.probe)
        self.calls.remove(call)
        self._note(call, outcome)

    def _note(self, call: Call, outcome: Outcome) -> None:
        before = self.row
        call.worker.breakers.note(a_timer(), call.go, outcome)
        self._look(before)
        if before is None and self.row is not None and not self.store.fails:
            assert outcome in (DOWN, OUTCOMES[1]), "opened by what is no failure"
            call.worker.knows = self.opening
        if call.go.probe is not None and self.store.fails:
            # It may have seen the destination work: then its own calls go.
            call.worker.knows = 0
        if before is not None and self.row is None:
            closed_by = call.go.probe.owner if call.go.probe is not None else ""
            assert closed_by == before.owner, "closed by another call than its probe"
            assert outcome not in (DOWN, OUTCOMES[1]), "closed by a failure"

    @rule(number=workers, count=st.integers(1, MIN_FAILURES + 1))
    def fail(self, number: int, count: int) -> None:
        """So many calls of a worker, one after the other."""
        for _ in range(count):
            if isinstance(self._admit(self.workers[number]), Go):
                self._note(self.calls.pop(), DOWN)

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        call, before = self._take(data), self.row
        call.worker.breakers.release(a_timer(), call.go)
        self._look(before)
        assert (before is None) == (self.row is None), "opened or closed by a call that was not made"

    @rule(number=workers)
    def die(self, number: int) -> None:
        """Or stall, which looks the same: its calls may report later, or never; a new process knows nothing."""
        self.workers[number] = self.a_worker(self.workers[number].clock.ahead, since=self.elapsed)

    @rule(seconds=st.sampled_from([0.5, 2, 5, 10, 26, 30, 60, 300]))
    def time_passes(self, seconds: float) -> None:
        self.elapsed += seconds * SECOND
        for worker in {id(worker): worker for worker in self._everybody()}.values():
            worker.clock.tick(seconds * SECOND)

    @rule(number=workers, other=workers)
    def probe(self, number: int, other: int) -> None:
        """Two workers know that the destination fails, and one of them becomes the probe, unless somebody is."""
        self.fail(number, MIN_FAILURES)
        self.fail(other, 1)
        self.its_time_comes()
        self._admit(self.workers[number])

    @rule()
    def its_time_comes(self) -> None:
        """To the moment, by a clock in the middle: where mistakes of a moment or of a skew show."""
        if self.row is not None and self.row.until > self.workers[1].clock.now():
            self.time_passes((self.row.until - self.workers[1].clock.now()) / SECOND)

    @rule()
    def reset(self) -> None:
        before = self.row
        self.store.port.reset("acme", HOST)
        self._look(before)

    @rule(fails=st.sampled_from(["", "", "before", "after"]))
    def the_store_fails(self, fails: str) -> None:
        if self.store.fails or fails:
            self.failed_at = self.elapsed
        self.store.fails = fails

    @invariant()
    def one_row_at_most(self) -> None:
        assert len(self.store.rows) <= 1

    def teardown(self) -> None:
        """However it stands, it is probed again, and a probe that goes well closes it for everybody."""
        self.the_store_fails("")
        self.calls = [call for call in self.calls if not call.go.probe]
        row = self.row
        if row is not None:
            self.time_passes(max(timedelta(0), row.until - self.workers[0].clock.now()) / SECOND + 2 * SKEW / SECOND)
            newcomer = self.workers[1] = self.a_worker(timedelta(0), since=self.elapsed)
            first = self._admit(newcomer)
            assert isinstance(first, Go)
            self._note(self.calls.pop(), DOWN)
            probe = self._admit(newcomer)
            assert isinstance(probe, Go), "never probed again"
            assert probe.probe is not None, "never probed again"
            self._note(self.calls.pop(), Succeeded())
        assert self.row is None, "a probe that went well does not close"
        self.time_passes(REFRESH_SECONDS)
        for worker in self.workers:
            assert isinstance(self._admit(worker), Go), "a closed breaker parks"

    def _look(self, before: Breaker | None) -> None:
        if (before is None) != (self.row is None):
            self.unchanged_since = self.elapsed
            self.opening += self.row is not None
        if self.store.fails:
            self.failed_at = self.elapsed

    def _has_failed_lately(self) -> bool:
        return bool(self.store.fails) or self.elapsed - self.failed_at <= REFRESH_SECONDS * SECOND

    def _take(self, data: st.DataObject) -> Call:
        return self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))

    def _everybody(self) -> list[Worker]:
        return [*self.workers, *(call.worker for call in self.calls)]


SETTINGS = settings(
    SCHEDULER_SETTINGS,
    max_examples=300,
    stateful_step_count=30,
    phases=[Phase.generate],  # a history is read by its steps: shrinking takes longer than reading
)

TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = SETTINGS


def _takes_probes_over_without_skew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Breaker, "probed_from", lambda self, *, skew: self.until)


def _writes_over_what_it_has_not_seen(patch: pytest.MonkeyPatch) -> None:
    def put(self: InMemoryBreakerStore, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        if seen is not None and (breaker.tenant, breaker.destination) not in self.rows:
            return Changed(None)
        self.rows[breaker.tenant, breaker.destination] = breaker
        return Applied()

    patch.setattr(InMemoryBreakerStore, "put", put)


def _lets_any_probe_close(patch: pytest.MonkeyPatch) -> None:
    def close(self: InMemoryBreakerStore, seen: Breaker) -> Applied:
        self.rows.pop((seen.tenant, seen.destination), None)
        return Applied()

    patch.setattr(InMemoryBreakerStore, "close", close)


def _waits_for_a_dead_probe(patch: pytest.MonkeyPatch) -> None:
    once = Breaker.may_be_probed

    def may_be_probed(self: Breaker, *, now: datetime, skew: timedelta) -> bool:
        return self.state is BreakerState.OPEN and once(self, now=now, skew=skew)

    patch.setattr(Breaker, "may_be_probed", may_be_probed)


def _never_looks_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("functions.services.targets.breakers.REFRESH_SECONDS", 3_600)


def _lets_calls_go_while_a_probe_is_under_way(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Breakers, "_park", lambda self, known: Go(known.destination))


@pytest.mark.parametrize(
    ("mutation", "violation"),
    [
        (_takes_probes_over_without_skew, "two live probes"),
        (_writes_over_what_it_has_not_seen, "two live probes"),
        (_lets_any_probe_close, "another call than its probe"),
        (_waits_for_a_dead_probe, "never probed again"),
        # What it sees first depends on the history: after a failure of the store it does not look at an open one either.
        (_never_looks_again, "a closed breaker parks|an open breaker lets a call go"),
        (_lets_calls_go_while_a_probe_is_under_way, "an open breaker lets a call go"),
    ],
)
def test_this_machine_notices_a_broken_rule(mutation, violation: str, monkeypatch: pytest.MonkeyPatch):
    mutation(monkeypatch)
    # What is made up depends on the modules that are loaded: some rules take hundreds of histories to break.
    enough = settings(SETTINGS, max_examples=10_000, report_multiple_bugs=False)

    with pytest.raises(AssertionError, match=violation):
        run_state_machine_as_test(Interleavings, settings=enough)
