"""The turn of a flow: a message that lets out of its room what may start by then. It is a job of Tickwheel's own."""

from __future__ import annotations

import json
from datetime import datetime

from functions.domain.errors import Undecodable
from functions.domain.instants import to_ms
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.schedules.defaults import STORED
from functions.domain.targets.flows import THE_STAGE, FlowId

TURN = "flow:turn"
"""Its target, which nobody can ask for: there is no such kind."""

_STAGE_TENANT = "-"


def turn_of(flow: FlowId, *, at: datetime) -> Timer:
    """The message of a turn."""
    job = Job(
        tenant=_STAGE_TENANT if flow.owner == THE_STAGE else flow.owner,
        identity=f"flow-{to_ms(at)}",
        bucket=0,
        shard=0,
        target=TURN,
        payload=Payload(text=json.dumps([flow.owner, flow.key])),
        scheduled_at=at,
        priority=Priority.CRITICAL,
        delivery=Delivery.AT_LEAST_ONCE,
        precision=Precision.DEFAULT,
        retry=STORED.retry,
        timeout=STORED.timeout,
    )
    return Timer(job=job, due_at=at)


def flow_of(turn: Timer) -> FlowId:
    """Whose turn a message is. Raises Undecodable."""
    try:
        owner, key = json.loads(turn.job.payload.text or "")
    except ValueError as error:
        raise Undecodable("not the turn of a flow") from error
    return FlowId(owner, key)


def is_turn(timer: Timer) -> bool:
    """Whether a message is the turn of a flow."""
    return timer.job.target == TURN
