"""Python functions that run in the worker, as targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from functions.adapters.targets.calls import Call
from functions.domain.targets.http_answers import is_pending
from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded

Handler = Callable[[Any, Invocation], Any]
"""A Python target: takes the payload and the invocation, returns a JSON value, raises to fail."""


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
        """A handler that overruns its timeout continues, with a stale fence."""
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
        return Call(timeout).run(lambda: _run(handler, payload, invocation))


def _run(handler: Handler, payload: str | None, invocation: Invocation) -> Outcome:
    try:
        value = handler(json.loads(payload) if payload is not None else None, invocation)
        said = json.dumps(value, allow_nan=False)
        return Pending() if is_pending(value) else Succeeded(said, said)
    except BaseException as error:  # noqa: BLE001  whatever a user's code raises, sys.exit too, is the result
        return Failed(f"{type(error).__name__}: {error}", error_class="handler_error")
