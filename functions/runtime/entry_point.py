"""What the entry points of the Lambda functions that answer no requests have in common."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.runtime.observability import logger
from functions.runtime.uncaught import LambdaHandler, without_texts
from functions.runtime.wiring import Wiring


def entry_point(wiring: Wiring) -> Callable[[LambdaHandler], LambdaHandler]:
    """Log for which invocation a handler runs, hand over what it has collected, and hide the texts of its exceptions."""

    def decorate(handler: LambdaHandler) -> LambdaHandler:
        @logger.inject_lambda_context
        @without_texts
        @wraps(handler)
        def handle(event: Any, context: LambdaContext) -> Any:
            try:
                return handler(event, context)
            finally:
                wiring.flush()

        return handle

    return decorate


def time_left(context: LambdaContext) -> timedelta:
    """How long an invocation may still take."""
    return timedelta(milliseconds=context.get_remaining_time_in_millis())
