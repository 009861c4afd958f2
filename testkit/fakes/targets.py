"""Whatever a job calls, remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Invocation, Outcome, Succeeded
from testkit.fakes.clock import FakeClock


@dataclass
class RecordingTargets:
    """Remembers each effect, and answers what the test says."""

    clock: FakeClock
    answer: Callable[[str, Invocation], Outcome] = lambda _, __: Succeeded()
    effects: list[tuple[datetime, str, str | None, Invocation]] = field(default_factory=list)

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        self.effects.append((self.clock.now(), target, payload, invocation))
        return self.answer(target, invocation)
