"""Python functions that run in the worker, as targets."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from inspect import isawaitable
from typing import Any

from functions.adapters.targets.calls import Call
from functions.domain.targets.http_answers import is_pending
from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded

Handler = Callable[[Any, Invocation], Any]
"""A Python target: takes the payload and the invocation, returns a JSON value or what to await for it, raises to fail."""

ERROR_CLASS = "tickwheel_error_class"
"""An exception that has this attribute is a failure of that class which another attempt cannot help."""

_WORD = re.compile(r"[a-z0-9_]{1,40}", re.ASCII)

_CANCELLING_SECONDS = 0.1
"""How long after its timeout a coroutine is cancelled: what it would still answer then is of no use."""


class RefusedError(Exception):
    """What a handler of this package raises where another attempt cannot help."""

    tickwheel_error_class = "handler_refused"


class HandlerCaller:
    """Calls the function that is registered under the name behind `handler:`."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def call(
        self,
        target: str,
        payload: str | None,
        invocation: Invocation,
        *,
        options: TargetOptions,  # noqa: ARG002  a function has none
        timeout: timedelta,
    ) -> Outcome:
        """A function that overruns its timeout continues, with a stale fence; a coroutine is cancelled where it next waits."""
        name = target.partition(":")[2]
        handler = self._handlers.get(name)
        if handler is None:
            known = ", ".join(sorted(self._handlers)) or "none"
            return Failed(
                f"there is no handler {name!r}; registered are: {known}",
                error_class="handler_missing",
                is_permanent=True,
                is_its_own=True,
            )
        call = Call(timeout)
        return call.run(lambda: _run(handler, payload, invocation, call))


def _run(handler: Handler, payload: str | None, invocation: Invocation, call: Call) -> Outcome:
    try:
        value = handler(json.loads(payload) if payload is not None else None, invocation)
        if isawaitable(value):
            import asyncio  # at the first coroutine: a cold start without one goes without it

            value = asyncio.run(_within(value, call.seconds_left() + _CANCELLING_SECONDS))
        said = json.dumps(value, allow_nan=False)
        return Pending() if is_pending(value) else Succeeded(said, said)
    except BaseException as error:  # noqa: BLE001  whatever a user's code raises, sys.exit too, is the result
        return _failed(error)


async def _within(value: Awaitable[Any], seconds: float) -> Any:
    import asyncio

    async with asyncio.timeout(seconds):
        return await value


def _failed(error: BaseException) -> Failed:
    text = f"{type(error).__name__}: {error}"
    error_class = getattr(error, ERROR_CLASS, None)
    if isinstance(error_class, str) and _WORD.fullmatch(error_class):
        return Failed(text, error_class=error_class, is_permanent=True, is_its_own=True)
    return Failed(text, error_class="handler_error")
