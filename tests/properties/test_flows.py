"""A flow's rate and its bound are never exceeded and nothing that waits for it is lost, whoever dies, stalls or is late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from functions.domain.targets.flows import FlowId
from functions.services.far_ring.flow_turns import FlowTurns
from testkit.builders import a_submission
from testkit.world.process import HELD
from tests.properties import mutations
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler
from tests.properties.shared import ONE, SLOW

FLOW_OF = {"acme": ONE, "umbrella": SLOW}


class FlowingJobs(Scheduler):
    """Jobs of which all name one of two flows, so that most have to wait: in the machine of jobs few do.

    What is promised is the same there and here.
    """

    def submit_it(self, submission: Any, due_in: Any, *, is_keyed: bool, conditions: Any) -> None:
        asked = {name: value for name, value in submission.items() if name != "collect"}
        flowing = {**asked, "flows": (FLOW_OF[asked["tenant"]],)}
        super().submit_it(flowing, due_in, is_keyed=is_keyed, conditions=conditions)

    cap: Any = None  # no other bound of its calls

    @rule(tenant=st.sampled_from(sorted(FLOW_OF)), count=st.integers(1, 6), stops=st.integers(0, 3))
    def call_side_by_side(self, tenant: str, count: int, stops: int) -> None:
        """Jobs of a flow come to several workers, some of which are held in their calls."""
        for _ in range(count):
            due_at = self.world.clock.instant
            self.world.submit(a_submission(due_at=due_at, tenant=tenant, flows=(FLOW_OF[tenant],)))
        for _ in range(stops):
            worker = self.world.work(HELD, batch=1)
            if worker and not worker.is_over:
                worker.go_to("target.end", or_to_its_end=True)
                self.began(worker)


@pytest.mark.long
def test_what_flows_promise_is_kept_where_all_jobs_name_them():
    run_state_machine_as_test(FlowingJobs, settings=settings(SCHEDULER_SETTINGS, max_examples=300))


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
        (mutations.lets_in_without_a_permit, "calls at the same time"),
        (mutations.spends_what_is_spent, "tokens within"),
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
