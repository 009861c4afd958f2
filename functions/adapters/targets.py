"""What a job calls: an HTTP endpoint, or a Python function that runs in the worker."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import urllib3

from functions.domain.instants import format_instant
from functions.ports import Failed, Invocation, Succeeded

Handler = Callable[[Any, Invocation], Any]
"""A Python target: takes the payload and what it is told about the attempt, returns a JSON value, raises to fail."""

_CONNECT_SECONDS = 5.0
_CHUNK = 16_384
_READ_LIMIT = 1_048_576


class TargetCaller:
    """Calls the target of a job by its scheme. Every failure of a target is a result."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        # No retries and no redirects: an attempt is one request to the address that was asked for.
        self._http = urllib3.PoolManager(retries=False, maxsize=10)

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        """Call once, for no longer than the timeout."""
        scheme, _, name = target.partition(":")
        if scheme == "handler":
            return self._call_handler(name, payload, invocation, timeout=timeout)
        return self._call_http(target, payload, invocation, timeout=timeout)

    def _call_http(
        self, url: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        seconds = timeout.total_seconds()
        ends = time.monotonic() + seconds
        try:
            response = self._http.request(
                "POST",
                url,
                body=(payload if payload is not None else "null").encode(),
                headers=headers_of(invocation),
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, seconds), read=seconds, total=seconds),
                redirect=False,
                preload_content=False,
            )
            # urllib3 limits each read of the socket; a target that drips bytes is limited here.
            size = 0
            while chunk := response.read1(_CHUNK):
                size += len(chunk)
                if time.monotonic() > ends or size > _READ_LIMIT:
                    response.close()
                    break
            response.release_conn()
        except urllib3.exceptions.HTTPError as error:
            return Failed(f"{type(error).__name__}: {error}")
        if 200 <= response.status < 300:  # noqa: PLR2004
            return Succeeded(json.dumps({"status": response.status}))
        return Failed(f"the target answered {response.status}")

    def _call_handler(
        self, name: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        handler = self._handlers.get(name)
        if handler is None:
            known = ", ".join(sorted(self._handlers)) or "none"
            return Failed(f"there is no handler {name!r}; registered are: {known}", is_permanent=True)
        outcome: list[Succeeded | Failed] = []

        def run() -> None:
            try:
                value = handler(json.loads(payload) if payload is not None else None, invocation)
                outcome.append(Succeeded(json.dumps(value, allow_nan=False)))
            except Exception as error:  # noqa: BLE001  whatever a user's code raises is the result of the attempt
                outcome.append(Failed(f"{type(error).__name__}: {error}"))

        # A thread of its own, because Python cannot stop a function from outside. One that overruns its timeout
        # goes on with a stale fence; it can see the deadline in its invocation.
        thread = threading.Thread(target=run, name=f"handler:{name}", daemon=True)
        thread.start()
        thread.join(timeout.total_seconds())
        return outcome[0] if outcome else Failed(f"handler {name!r} ran longer than {timeout.total_seconds():g} s")


def headers_of(invocation: Invocation) -> dict[str, str]:
    """What an HTTP target is told: everything it needs to deduplicate, and to refuse a stale attempt."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "Tickwheel/1",
        "Idempotency-Key": invocation.idempotency_key,
        "Tickwheel-Job-Id": invocation.job_id,
        "Tickwheel-Tenant": invocation.tenant,
        "Tickwheel-Attempt": str(invocation.attempt),
        "Tickwheel-Fence": str(invocation.fence),
        "Tickwheel-Scheduled-At": format_instant(invocation.scheduled_at),
    }
