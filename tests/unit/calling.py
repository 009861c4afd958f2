"""How the tests of targets call them."""

import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from functions.adapters.targets.address_check import AddressCheck
from functions.adapters.targets.caller import TargetCaller
from functions.adapters.targets.calls import BUSY
from functions.adapters.targets.handlers import Handler
from functions.domain.targets.addresses import parse_networks
from functions.domain.targets.options import USUAL, TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome
from testkit.builders import an_invocation
from testkit.fakes import FakeClock, GivenWebhookKeys

LOOPBACK = parse_networks(["127.0.0.0/8", "::1/128"])
SHORT = timedelta(milliseconds=200)
NO_ANSWER = Failed("Timeout: no answer within 0.2 s", error_class="timeout")
INVOCATION = an_invocation()
TOLD = {
    "job_id": "j1~acme~2e~a0~1~b0~x",
    "tenant": "acme",
    "idempotency_key": "acme#x",
    "attempt": 2,
    "fence": 7,
    "scheduled_at": "2027-03-01T12:00:00.000Z",
    "traceparent": INVOCATION.traceparent,
}
"""What targets are given of it."""


def a_caller(handlers: Mapping[str, Handler] | None = None, **parts: Any) -> TargetCaller:
    """A caller that may call this machine."""
    return TargetCaller(
        handlers or {},
        **{"clock": FakeClock(), "addresses": AddressCheck(LOOPBACK), "keys": GivenWebhookKeys(), **parts},
    )


def call(
    target: str,
    payload: str | None = "1",
    *,
    caller: TargetCaller | None = None,
    handlers: dict[str, Handler] | None = None,
    invocation: Invocation = INVOCATION,
    timeout: timedelta = timedelta(seconds=60),
    **options: Any,
) -> Outcome:
    """One call; its options by name."""
    caller = caller or a_caller(handlers)
    given = TargetOptions(**options) if options else USUAL
    return caller.call(target, payload, invocation, options=given, timeout=timeout)


def busy() -> set[threading.Thread]:
    """The threads that make a call now."""
    return {thread for thread in threading.enumerate() if thread.name == BUSY}


def wait_for_calls(*, since: set[threading.Thread], seconds: float = 50) -> None:
    """Wait until the calls end that have begun since then; those of other tests may take their time."""
    until = time.monotonic() + seconds
    while busy() - since:
        assert time.monotonic() < until
        time.sleep(0.01)


def failure_of(outcome: Outcome) -> Failed:
    assert isinstance(outcome, Failed)
    return outcome
