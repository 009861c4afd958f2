"""Carries operations on: the target of its own rule, each minute, and called at once for each new operation."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.operations.apply_to_job import Applier
from functions.operations.executor import OperationExecutor
from functions.operations.tenant_deleter import TenantDeleter
from functions.runtime.entry_point import entry_point, time_left
from functions.runtime.settings import OperationsSettings
from functions.runtime.wiring import Wiring

settings = OperationsSettings.from_environment()
wiring = Wiring(settings, parts={"applier": Applier})
wiring.confirm()
executor = wiring.build(OperationExecutor)
deleter = wiring.build(TenantDeleter, longest=timedelta(seconds=settings.LONGEST_TIMEOUT_SECONDS))


@entry_point(wiring)
def handler(_: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Entry point of the Lambda function."""
    report = executor.carry_on(time_limit=time_left(context))
    deleter.carry_on(time_limit=0.5 * time_left(context))
    return {"worked": report.worked, "ended": report.ended, "jobs": report.jobs}


startup.is_over()
