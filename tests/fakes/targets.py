"""Whatever a job calls, remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.ports import Failed, Invocation, Succeeded
from tests.fakes.clock import FakeClock


@dataclass
class RecordingTargets:
    """Remembers each effect, and answers what the test says."""

    clock: FakeClock
    answer: Callable[[str, Invocation], Succeeded | Failed] = lambda _, __: Succeeded()
    effects: list[tuple[datetime, str, str | None, Invocation]] = field(default_factory=list)

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        self.effects.append((self.clock.now(), target, payload, invocation))
        return self.answer(target, invocation)
