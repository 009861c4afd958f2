"""Targets that exist in a test only: what answers for them, and what they were called with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.targets.handlers import HandlerCaller
from functions.adapters.targets.http_outcome import outcome_of
from functions.domain.targets.http_answers import compact, is_pending, judge
from functions.domain.targets.options import TargetOptions
from functions.ports.clock import Clock
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded

_OK = 200


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a target. at: when it was made; scheduled_at: when its job was due.

    idempotency_key: the same for each attempt of a job. fence: grows with each of them.
    """

    target: str
    payload: Any
    tenant: str
    job_id: str
    idempotency_key: str
    attempt: int
    fence: int
    scheduled_at: datetime
    at: datetime


@dataclass(frozen=True)
class Answer:
    """What an HTTP target answers. retry_after: the header of that name."""

    status: int
    body: Any = None
    retry_after: str | None = None


Respond = Callable[[Call], Any]
"""Returns an Answer, or a JSON value, which is answered with 200; raises to fail."""


@dataclass
class VirtualTargets:
    """Targets by their addresses. One that nobody has named answers 200.

    handlers: functions by the names behind `handler:`, which run as in a worker; they stand before those that are registered
    as in a deployment. broken: assertions that failed in what stands for a target.
    """

    clock: Clock
    registered: Callable[[], Mapping[str, Callable[[Any, Invocation], Any]]] = dict
    responds: dict[str, Respond] = field(default_factory=dict[str, Respond])
    handlers: dict[str, Callable[[Any, Invocation], Any]] = field(default_factory=dict)  # pyright: ignore[reportUnknownVariableType]
    calls: list[Call] = field(default_factory=list[Call])
    broken: list[AssertionError] = field(default_factory=list[AssertionError])

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Remember the call, and let what stands for the target answer it."""
        made = Call(
            target=target,
            payload=None if payload is None else json.loads(payload),
            tenant=invocation.tenant,
            job_id=invocation.job_id,
            idempotency_key=invocation.idempotency_key,
            attempt=invocation.attempt,
            fence=invocation.fence,
            scheduled_at=invocation.scheduled_at,
            at=self.clock.now(),
        )
        self.calls.append(made)
        respond = self.responds.get(target)
        if respond is None and target.startswith("handler:"):
            return HandlerCaller({**self.registered(), **self.handlers}).call(
                target, payload, invocation, options=options, timeout=timeout
            )
        try:
            answer = respond(made) if respond is not None else None
        except AssertionError as error:
            self.broken.append(error)
            raise
        except Exception as error:  # noqa: BLE001  whatever a user's code raises is the result
            return Failed(f"{type(error).__name__}: {error}", error_class="error")
        return self._outcome(target, answer, options)

    def _outcome(self, target: str, answer: Any, options: TargetOptions) -> Outcome:
        if not target.startswith(("http://", "https://")) and not isinstance(answer, Answer):
            said = compact(answer)
            return Pending() if is_pending(answer) else Succeeded(said, said)
        given = answer if isinstance(answer, Answer) else Answer(_OK, answer)
        judgement = judge(given.status, given.retry_after, options=options, now=self.clock.now())
        body = b"" if given.body is None else compact(given.body).encode()
        return outcome_of(given.status, judgement, body, is_whole=True)
