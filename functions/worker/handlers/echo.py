"""The handler that every installation has: to try a stage with, and to copy."""

from __future__ import annotations

from typing import Any

from functions.ports.targets import Invocation
from functions.worker.handlers.registry import handler


@handler("echo")
def echo(payload: Any, invocation: Invocation) -> Any:
    """Answer with the payload and the attempt that it came by."""
    return {"payload": payload, "attempt": invocation.attempt}
