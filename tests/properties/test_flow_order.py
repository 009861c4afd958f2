"""The jobs of an ordered flow have their effects in the order of their due times, whatever fails. The machine of jobs draws such flows, too."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from functions.domain.instants import HOUR, SECOND
from functions.domain.targets.flows import FlowLimits, NamedFlow
from functions.ports.targets import Failed, Succeeded
from functions.services.far_ring.flow_order import row_of
from testkit.builders import NOON, a_timer
from testkit.observed import CrashError, DeathError
from testkit.scheduler import World as OneWorker
from tests.unit.test_flow_order import TWICE, called, ids
from tests.unit.test_flows import _fail_once, put, run_with_faults

CALLS = ("line_up", "order", "hold", "finish", "wait", "note_entry", "note_turn", "leave", "remove", "waiting_at")


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    due_in=st.lists(st.integers(0, 40), min_size=2, max_size=8),
    failing=st.sets(st.integers(0, 7)),
    faults=st.dictionaries(
        st.sampled_from(CALLS), st.tuples(st.sampled_from([CrashError, DeathError]), st.booleans()), max_size=3
    ),
)
def test_those_that_are_known_have_their_effects_by_their_due_times(
    due_in: list[int], failing: set[int], faults: dict[str, tuple[type[BaseException], bool]]
):
    world = OneWorker()
    flow = NamedFlow(key="in-order", limits=FlowLimits(is_ordered=True))
    timers = [a_timer(flows=(flow,), retry=TWICE, due_at=NOON + SECOND + n * timedelta(seconds=0.25)) for n in due_in]
    once = {ids(timer)[0] for n, timer in enumerate(timers) if n in failing}

    def answer(*given: Any) -> Failed | Succeeded:
        if given[-1].job_id not in once:
            return Succeeded("")
        once.remove(given[-1].job_id)
        return Failed("503")

    world.targets.answer = answer
    put(world, *timers)
    for call, (error, after) in faults.items():
        _fail_once(world, f"flows.{call}", error, after=after)

    run_with_faults(world, NOON + HOUR / 2)

    # Each with its attempts next to each other: none behind it has begun before it has ended.
    assert [job_id for job_id, _ in groupby(called(world))] == ids(*sorted(timers, key=lambda each: row_of(each).place))
