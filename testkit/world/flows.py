"""What is promised about flows: how many of their jobs are called at once, how many start in any time, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.submission import Submission
from functions.domain.targets.flows import FlowId, FlowLimits, NamedFlow
from functions.ports.flows import NoRoom
from functions.ports.ledger import Applied
from functions.services.far_ring.flow_order import LOST_AFTER
from testkit.fakes import InMemoryFlowStore
from testkit.world.accepted import Expected
from testkit.world.calls import CallPromises
from testkit.world.fires import Run
from testkit.world.process import Process
from testkit.world.stores import KeptByAll

_ALL = 10_000


class FlowPromises:
    """Of the flows that a world was told of. jobs: by their ids. has_order: a job that was submitted names one with an order."""

    def __init__(self, stores: KeptByAll, expect: Callable[[bool, str], None], *, jobs: Mapping[str, Expected]) -> None:
        self._stores = stores
        self._expect = expect
        self._jobs = jobs
        self._limits: dict[FlowId, FlowLimits] = {}
        self._tokens: dict[FlowId, list[datetime]] = {}
        self._calls = CallPromises(expect)
        self._begun: dict[FlowId, dict[str, Run]] = {}
        self._replayed: set[str] = set()
        self.has_order = False

    def promised(self, flow: FlowId, limits: FlowLimits) -> None:
        """A flow has these limits from the beginning on."""
        self._limits[flow] = limits
        if limits.is_ordered or limits.concurrency is not None:
            self._calls.capped(str(flow), 1 if limits.is_ordered else limits.concurrency or 1, moment=0)
        if limits.rate is not None:
            self._count_tokens()
            self._tokens[flow] = []

    def submitted(self, submission: Submission) -> None:
        """A client has sent it: in an order, a job that is lost before it was placed is missed for an hour."""
        self.has_order |= any(flow.is_ordered for flow in submission.flows)

    def replayed(self, key: str) -> None:
        """A job that has ended is to run once more, in its place."""
        self._replayed.add(key)
        for begun in self._begun.values():
            begun.pop(key, None)

    def goes_on(self, run: Run) -> None:
        """Its target answered 202."""
        self._calls.goes_on(run)

    def begin(self, timer: Timer, run: Run, process: Process, *, called_at: datetime) -> None:
        """A target is called."""
        for named in timer.job.flows:
            flow = FlowId(named.owner_of(timer.job.tenant), named.key)
            self._calls.begin(str(flow), run, process, ends_at=called_at + timer.job.timeout)
            limits = self._limits.get(flow)
            if limits is not None and limits.is_ordered:
                self._check_order(flow, named, timer, process, called_at)
                self._begun.setdefault(flow, {})[timer.job.key] = run

    def check(self) -> None:
        """All is over: nobody waits any more, and no rate was exceeded."""
        for flow in self._limits:
            waiting = [each.timer for each in self._stores.flows.waiting(flow, after="", limit=_ALL)]
            left = [timer.job.key for timer in waiting if timer is not None and not self._has_ended(timer)]
            self._expect(not left, f"left in the room of {flow.key}: {left}")
        for flow, taken in self._tokens.items():
            self._check_rate(self._limits[flow], taken)

    def _check_order(self, flow: FlowId, named: NamedFlow, timer: Timer, process: Process, called_at: datetime) -> None:
        """Who has begun has ended, through all of its attempts; and nobody was known who is due before."""
        rows, key = self._stores.ledger.rows, timer.job.key
        begun = self._begun.get(flow, {})
        for other in begun.keys() - {key}:
            row = rows.get(other)
            is_over = row is not None and row.is_settled
            self._expect(is_over, f"out of order: {key} began while {other} was under way, which is {row}")
        if key in begun:
            return
        latest = called_at - self._stores.wheel.skew - (self._stores.clock.instant - process.began_at)
        for job_id, expected in self._jobs.items():
            other, row = expected.job_id, rows.get(expected.job_id.key)
            is_of_flow = named in expected.submission.flows and other.tenant == timer.job.tenant
            has_begun = other.key in begun or (row is not None and row.is_settled) or other.key in self._replayed
            if not is_of_flow or has_begun or other.key == key or other.delivery is not Delivery.EXACTLY_ONCE:
                continue
            is_before = other.due_at < timer.job.scheduled_at and other.due_at <= latest
            # One of which nothing is known for so long may have been lost.
            known_at = max(other.due_at, expected.known_at or other.due_at)
            is_known = expected.known < process.began and latest < known_at + LOST_AFTER
            self._expect(not (is_before and is_known), f"out of order: {key} began before {job_id}, which is {row}")

    def _has_ended(self, timer: Timer) -> bool:
        row = self._stores.ledger.rows.get(timer.job.key)
        return not timer.job.is_ledgered or (row is not None and row.is_settled)

    def _count_tokens(self) -> None:
        """When they are taken, and not given back, by the world's clock."""
        store = self._stores.flows
        if self._tokens or not isinstance(store, InMemoryFlowStore):
            return
        spend, refund = store.spend, store.refund

        def count(flow: FlowId, **asked: Any) -> Applied | NoRoom:
            answer = spend(flow, **asked)
            if flow in self._tokens and isinstance(answer, Applied):
                self._tokens[flow].append(self._stores.clock.instant)
            return answer

        def give_back(flow: FlowId, **asked: Any) -> None:
            refund(flow, **asked)
            if self._tokens.get(flow):
                self._tokens[flow].pop()

        vars(store).update(spend=count, refund=give_back)

    def _check_rate(self, limits: FlowLimits, taken: list[datetime]) -> None:
        assert limits.rate is not None
        # One clock may be ahead and the next one behind.
        skew = self._stores.wheel.skew
        for number, first in enumerate(taken):
            for count, last in enumerate(taken[number:], start=1):
                most = limits.bucket + (last - first + skew) / limits.rate.interval
                self._expect(count <= most, f"{count} tokens within {last - first}, of {most:g}")
