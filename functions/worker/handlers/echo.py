"""The handlers that every installation has: to try a stage with, and to copy."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.adapters.targets.handlers import RefusedError
from functions.ports.targets import Invocation
from functions.worker.handlers.registry import handler


@handler("echo")
def echo(payload: Any, invocation: Invocation) -> Any:
    """Answer with the payload and the attempt that it came by."""
    return {"payload": payload, "attempt": invocation.attempt}


@handler("trial")
def trial(payload: Any, invocation: Invocation) -> Any:
    """Take `seconds`, ten at most, and fail before attempt `succeeds_at`, or for good if `refuses` is true: `make smoke` calls it.

    A call that is given up goes on in its thread: so with less than a second left it does not begin.
    """
    if invocation.deadline < datetime.now(UTC) + timedelta(seconds=1):
        raise ValueError("a trial takes a timeout of more than a second")
    time.sleep(min(payload.get("seconds", 0), 10))
    if payload.get("refuses"):
        raise RefusedError("it fails for good, as it was asked to")
    if invocation.attempt < payload.get("succeeds_at", 1):
        raise RuntimeError(f"attempt {invocation.attempt} fails, as it was asked to")
    return echo(payload, invocation)
