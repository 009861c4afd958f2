"""A flow's rate and its bound are never exceeded and nothing that waits for it is lost, whoever dies, stalls or is late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from functions.domain.instants import SECOND
from functions.domain.targets.flows import FlowId, FlowLimits, NamedFlow, parse_rate
from functions.ports.flows import NoRoom
from functions.ports.ledger import Applied
from functions.services.far_ring.flow_turns import FlowTurns
from functions.services.jobs.flow_gate import FlowGate
from testkit.builders import a_submission
from testkit.fakes import InMemoryFlowStore
from testkit.world.process import HELD
from testkit.world.world import World
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler

BURST = 2
INTERVAL = 5 * SECOND
SLOW = NamedFlow(key="slow", limits=FlowLimits(rate=parse_rate("12/min"), burst=BURST))
FLOWS = {"acme": NamedFlow(key="one-at-a-time", limits=FlowLimits(concurrency=1)), "umbrella": SLOW}
"""All jobs of a tenant name its flow, so that what bounds the flow bounds the tenant."""


class Tokens:
    """When tokens of the slow flow were taken, and not given back, by the world's clock."""

    def __init__(self, world: World) -> None:
        store = world.flows
        assert isinstance(store, InMemoryFlowStore)
        self.world, self.taken = world, list[datetime]()
        self._spend, self._refund = store.spend, store.refund
        vars(store).update(spend=self.spend, refund=self.refund)

    def spend(self, flow: FlowId, **asked: Any) -> Applied | NoRoom:
        answer = self._spend(flow, **asked)
        if flow.key == SLOW.key and isinstance(answer, Applied):
            self.taken.append(self.world.clock.instant)
        return answer

    def refund(self, flow: FlowId, *, cost: timedelta) -> None:
        self._refund(flow, cost=cost)
        if flow.key == SLOW.key and self.taken:
            self.taken.pop()

    def check(self) -> None:
        # One clock may be ahead and the next one behind.
        skew = self.world.wheel.skew
        for number, first in enumerate(self.taken):
            for count, last in enumerate(self.taken[number:], start=1):
                most = BURST + (last - first + skew) / INTERVAL
                self.world.promises.expect(count <= most, f"{count} tokens within {last - first}, of {most:g}")


class FlowingJobs(Scheduler):
    tokens: Tokens

    def submit_it(self, submission: Any, due_in: Any, *, is_keyed: bool, conditions: Any) -> None:
        if not hasattr(self, "tokens"):
            self.tokens = Tokens(self.world)
            self.world.promises.at_once.capped("acme", 1, moment=self.world.history.moment)
        flowing = {**submission, "flows": (FLOWS[submission["tenant"]],)}
        super().submit_it(flowing, due_in, is_keyed=is_keyed, conditions=conditions)

    cap: Any = None  # no other bound of its calls

    @rule(tenant=st.sampled_from(sorted(FLOWS)), count=st.integers(1, 6), stops=st.integers(0, 3))
    def call_side_by_side(self, tenant: str, count: int, stops: int) -> None:
        """Jobs of a flow come to several workers, some of which are held in their calls."""
        for _ in range(count):
            due_at = self.world.clock.instant
            self.world.submit(a_submission(due_at=due_at, tenant=tenant, flows=(FLOWS[tenant],)))
        for _ in range(stops):
            worker = self.world.work(HELD, batch=1)
            if worker and not worker.is_over:
                worker.go_to("target.end", or_to_its_end=True)
                self.began(worker)

    def come_after_the_end(self) -> None:
        self.tokens.check()
        super().come_after_the_end()


@pytest.mark.long
def test_what_flows_promise_is_kept():
    run_state_machine_as_test(FlowingJobs, settings=settings(SCHEDULER_SETTINGS, max_examples=500))


def lets_in_without_a_permit(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(FlowGate, "_take_permit", lambda *_, **__: True)
    return {}


def spends_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(InMemoryFlowStore, "spend", lambda *_, **__: Applied())
    return {}


def removes_before_it_sends(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    send_out = FlowTurns._send_out

    def remove_first(turns: FlowTurns, flow: FlowId, rows: Any, instants: Any) -> bool:
        turns.flows.remove(flow, [row.place for row in rows])
        return send_out(turns, flow, rows, instants)

    monkeypatch.setattr(FlowTurns, "_send_out", remove_first)
    return {}


def forgets_its_turn(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(FlowTurns, "enter", lambda turns, flow, timer: turns.flows.wait(flow, timer))
    return {}


@pytest.mark.parametrize(
    ("broken", "violation"),
    [
        (lets_in_without_a_permit, "calls at the same time"),
        (spends_what_is_spent, "tokens within"),
        pytest.param(removes_before_it_sends, "lost", marks=pytest.mark.long),
        (forgets_its_turn, "lost"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_broken_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], dict[type, type]], violation: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(FlowingJobs, "lambdas", broken(monkeypatch))
    with pytest.raises(AssertionError, match=violation):
        run_state_machine_as_test(FlowingJobs, settings=settings(SCHEDULER_SETTINGS, max_examples=3_000))
