"""What a job calls, by the scheme of its target."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from functions.adapters.targets.address_check import AddressCheck
from functions.adapters.targets.aws import AwsCaller
from functions.adapters.targets.handlers import Handler, HandlerCaller
from functions.adapters.targets.http import HttpCaller
from functions.domain.targets.options import TargetOptions
from functions.ports.clock import Clock
from functions.ports.targets import Failed, Invocation, Outcome, Targets, WebhookKeys


class TargetCaller:
    """Calls the target of a job by its scheme. Every failure of a target is a result."""

    def __init__(
        self, handlers: Mapping[str, Handler], *, clock: Clock, addresses: AddressCheck, keys: WebhookKeys
    ) -> None:
        http = HttpCaller(clock=clock, addresses=addresses, keys=keys)
        self._by_scheme: dict[str, Targets] = {
            "handler": HandlerCaller(handlers),
            "http": http,
            "https": http,
            "arn": AwsCaller(),
        }

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call once. Answers within the timeout, or a moment later: what overruns continues, with a stale fence."""
        scheme = target.partition(":")[0]
        caller = self._by_scheme.get(scheme)
        if caller is None:
            known = ", ".join(self._by_scheme)
            error = f"the target has the unknown scheme {scheme!r}: known are {known}"
            return Failed(error, error_class="invalid", is_permanent=True)
        return caller.call(target, payload, invocation, options=options, timeout=timeout)
