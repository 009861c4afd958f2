"""What jobs of the machine have in common with others, and who is told of their ends."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from functions.domain.instants import SECOND
from functions.domain.jobs.callbacks import NO_CALLBACKS, Callbacks
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery, Precision, Priority
from functions.domain.targets.flows import THE_STAGE, FlowId, FlowLimits, FlowScope, NamedFlow, parse_rate
from testkit.world.world import World

TENANTS = ["acme", "umbrella"]

ONE = NamedFlow(key="one", limits=FlowLimits(concurrency=1))
SLOW = NamedFlow(key="slow", limits=FlowLimits(rate=parse_rate("12/min"), burst=2))
SHARED = NamedFlow(key="shared", scope=FlowScope.STAGE)
ORDERED = NamedFlow(key="ordered", limits=FlowLimits(is_ordered=True))
FLOWS = {
    **{FlowId(tenant, flow.key): flow.limits for tenant in TENANTS for flow in (ONE, SLOW, ORDERED) if flow.limits},
    FlowId(THE_STAGE, SHARED.key): FlowLimits(concurrency=2),
}
COLLECTIONS = [
    Collect(key="export", window=30 * SECOND),
    Collect(key="count", window=200 * SECOND, most=2),
    Collect(key="digest", at="* * * * *", most=3),
]
SHARE = st.sampled_from([None] * 10 + [(ONE,), (SLOW,), (SHARED,), (SHARED, SLOW), (ORDERED,), *COLLECTIONS])
"""What a job has in common with others."""

TOLD = "https://example.com/told"
ALL = Callbacks(on_success=TOLD, on_failure=TOLD, on_end=TOLD)
CALLBACKS = st.sampled_from([NO_CALLBACKS] * 9 + [ALL, Callbacks(on_end=TOLD), Callbacks(on_success=TOLD)])


def have_flows(world: World) -> None:
    """Jobs of the world may name them."""
    for flow, limits in FLOWS.items():
        world.have_flow(flow, limits)


def with_sense(drawn: dict[str, Any]) -> dict[str, Any]:
    """What goes only with exactly_once, or with a ledger row, is left out where it does not. Jobs of a collection have much in common."""
    asked = dict(drawn)
    shared: tuple[NamedFlow, ...] | Collect | None = asked.pop("shared")
    if asked["delivery"] is Delivery.AT_MOST_ONCE:
        asked["callbacks"] = NO_CALLBACKS
    if isinstance(shared, Collect):
        common = {"tenant": TENANTS[0], "priority": Priority.NORMAL, "precision": Precision.DEFAULT, "payload": "1"}
        return {**asked, **common, **_SINGLE, "delivery": Delivery.EXACTLY_ONCE, "collect": shared}
    if shared and ORDERED in shared:
        asked["delivery"] = Delivery.EXACTLY_ONCE
    return {**asked, "flows": shared or ()}


_SINGLE = {"expires_after": None, "run_deadline": None}
"""Of what is not collected."""
