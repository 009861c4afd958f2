"""Carries operations on: the target of its own rule, each minute, and called at once for each new operation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.operations.executor import Operator
from functions.operations.tenant_deleter import Eraser
from functions.runtime.observability import logger
from functions.runtime.settings import OperationsSettings
from functions.runtime.uncaught import without_texts
from functions.runtime.wiring import Wiring, job_identity, token

settings = OperationsSettings.from_environment()
wiring = Wiring(settings)
wiring.confirm()
operator = Operator(
    wheel=wiring.wheel,
    clock=wiring.clock,
    operations=wiring.operations,
    timers=wiring.timers,
    ledger=wiring.ledger,
    payloads=wiring.payloads,
    exports=wiring.exports,
    canceller=wiring.canceller,
    rescheduler=wiring.rescheduler,
    plans=wiring.plans,
    submission_rates=wiring.submission_rates,
    journal=wiring.journal,
    token=token,
    identity=job_identity,
    side_by_side=wiring.map_side_by_side,
    audit=wiring.audit,
)

eraser = Eraser(
    clock=wiring.clock,
    skew=wiring.wheel.skew,
    longest=timedelta(seconds=settings.LONGEST_TIMEOUT_SECONDS),
    tenants=wiring.tenants,
    deletions=wiring.deletions,
    remains=wiring.remains,
    journal=wiring.journal,
    token=token,
    audit=wiring.audit,
)


@logger.inject_lambda_context
@without_texts
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function."""
    try:
        report = operator.work(time_limit=_left(context))
        eraser.work(time_limit=0.5 * _left(context))
    finally:
        wiring.audit.flush()
        wiring.tally.flush()
        wiring.pulse.flush()
        wiring.journal.flush()
    return {"worked": report.worked, "ended": report.ended, "jobs": report.jobs}


def _left(context: LambdaContext) -> timedelta:
    return timedelta(milliseconds=context.get_remaining_time_in_millis())
