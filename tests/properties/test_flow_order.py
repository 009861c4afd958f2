"""The jobs of an ordered flow have their effects one after the other, whoever dies, stalls or is late."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from functions.domain.targets.flows import FlowLimits, NamedFlow
from functions.services.far_ring.flow_order import FlowOrders
from testkit.builders import a_submission
from testkit.fakes import InMemoryFlowStore
from testkit.world.process import HELD
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler

FLOWS = {tenant: NamedFlow(key="in-order", limits=FlowLimits(is_ordered=True)) for tenant in ("acme", "umbrella")}


class OrderedJobs(Scheduler):
    is_capped = False

    def submit_it(self, submission: Any, due_in: Any, *, is_keyed: bool, conditions: Any) -> None:
        if not self.is_capped:
            self.is_capped = True
            for tenant in FLOWS:
                self.world.promises.at_once.capped(tenant, 1, moment=self.world.history.moment)
        flowing = {**submission, "flows": (FLOWS[submission["tenant"]],)}
        super().submit_it(flowing, due_in, is_keyed=is_keyed, conditions=conditions)

    cap: Any = None  # no other bound of its calls

    @rule(tenant=st.sampled_from(sorted(FLOWS)), count=st.integers(1, 6), stops=st.integers(0, 3))
    def call_side_by_side(self, tenant: str, count: int, stops: int) -> None:
        """Jobs come to several workers, some of which are held in their calls."""
        for _ in range(count):
            self.world.submit(a_submission(due_at=self.world.clock.instant, tenant=tenant, flows=(FLOWS[tenant],)))
        for _ in range(stops):
            worker = self.world.work(HELD, batch=1)
            if worker and not worker.is_over:
                worker.go_to("target.end", or_to_its_end=True)
                self.began(worker)


def test_the_jobs_of_an_ordered_flow_run_one_at_a_time_and_none_is_lost():
    run_state_machine_as_test(OrderedJobs, settings=settings(SCHEDULER_SETTINGS, max_examples=60))


def test_a_hold_that_holds_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(InMemoryFlowStore, "hold", lambda *_: True)
    monkeypatch.setattr(FlowOrders, "start", lambda *_: True)
    with pytest.raises(AssertionError, match="calls at the same time"):
        run_state_machine_as_test(OrderedJobs, settings=settings(SCHEDULER_SETTINGS, max_examples=100))
