"""What the local stage has beside its sizes: what its jobs may call, and ways in, which cost nothing there."""

from __future__ import annotations

from collections.abc import Mapping

from functions.domain.targets.targets import DEFAULT_TARGETS
from functions.domain.tenants.access import ANYBODY
from infra.event_templates import EventRule

TARGETS = (
    *DEFAULT_TARGETS,
    "http://*",
    "arn:aws:lambda:*:000000000000:function:*",
    "arn:aws:sqs:*:000000000000:*",
    "arn:aws:sns:*:000000000000:*",
    "arn:aws:events:*:000000000000:event-bus/*",
    "arn:aws:states:*:000000000000:stateMachine:*",
)

QUEUES: Mapping[str, tuple[str, ...]] = {"acme": (ANYBODY,)}

RULES: Mapping[str, EventRule] = {
    "remind": EventRule(
        tenant="acme",
        pattern={"source": ["shop"], "detail-type": ["OrderPlaced"]},
        paths={"order": "$.detail.order", "hook": "$.detail.hook"},
        job={"target": "<hook>", "payload": {"order": "<order>"}},
    )
}
"""An order that is placed calls the hook that its event names."""
