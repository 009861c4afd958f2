"""What becomes of an exception that leaves a handler: Lambda would log its text, and with it whatever that repeats."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from functions.domain.faults import fault_of, places_of
from functions.runtime.observability import logger

LambdaHandler = Callable[[Any, Any], Any]


class InvocationFailed(Exception):
    """An invocation has failed; the line `invocation_failed` before it says where."""


def without_texts(handler: LambdaHandler) -> LambdaHandler:
    """Let an exception end the invocation as before, but by its kind and its place alone."""

    @wraps(handler)
    def handle(event: Any, context: Any) -> Any:
        try:
            return handler(event, context)
        except Exception as error:  # noqa: BLE001  it is raised again, under another name
            logger.error("invocation_failed", extra={"error": fault_of(error), "places": places_of(error)})
            # Not from the error: Lambda logs a cause with its text.
            raise InvocationFailed(fault_of(error)) from None

    return handle
