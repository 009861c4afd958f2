"""What tenants submit in an episode of minutes, drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import datetime, timedelta

from functions.domain.instants import SECOND
from functions.domain.job import Delivery, Payload, Precision, Priority
from functions.domain.occurrence import Overlap
from functions.domain.retry import RetryPolicy, Strategy
from functions.domain.schedule import CronRule, Schedule
from functions.domain.submission import Submission
from tests.builders import LOCAL_WHEEL, a_schedule, a_submission, a_template, every
from verification.acts import Act

TENANTS = ("acme", "globex", "initech", "umbrella")
TAG = "urgent"

_DELIVERIES = (*[Delivery.EXACTLY_ONCE] * 6, *[Delivery.AT_LEAST_ONCE] * 2, Delivery.AT_MOST_ONCE)
_TARGETS = (*["fine"] * 36, *["flaky"] * 6, *["stubborn"] * 4, *["broken"] * 3, "poison")
_GOES_ON = "lasting"
_OFTEN = (
    *(CronRule(expression) for expression in ("* * * * *", "*/2 * * * *")),
    *(every(seconds=seconds) for seconds in (20, 60, 100, 155, 156)),
    every(seconds=60, phase=7 * SECOND),
)
_TARGETS_OF_OFTEN = ("fine", "fine", "flaky")
"""A destination that never works is left alone for longer and longer, and so would be whatever fires often."""
_SELDOM = (CronRule("*/5 * * * *"), every(seconds=300))
_RETRIES = (1, 1, 5, 30, 160)
_LARGE = 10_000


class Drawing:
    """Draws jobs and schedules. acts: what is done in the episode."""

    def __init__(self, chance: random.Random, acts: Collection[Act]) -> None:
        self._chance = chance
        self._acts = acts

    def seconds(self, span: float, start: float = 0) -> timedelta:
        """A while from `start` on, in whole milliseconds."""
        return timedelta(milliseconds=round(1000 * (start + span * self._chance.random())))

    def due_in(self) -> timedelta:
        """How far ahead a job is due: at once, near, far, or where the rings meet."""
        kind = self._chance.random()
        if kind < 0.1:
            return timedelta(0)
        if kind < 0.22:
            return LOCAL_WHEEL.guard + timedelta(milliseconds=self._chance.choice([-1, 0, 1, 5, 1_000, 9_000]))
        if kind < 0.55:
            return self.seconds(LOCAL_WHEEL.guard.total_seconds())
        return self.seconds(600, LOCAL_WHEEL.guard.total_seconds())

    def submission(self, number: int, *, due_at: datetime) -> Submission:
        """A job."""
        chance = self._chance
        tenant = chance.choice(TENANTS)
        text = f'"{tenant} {number}{"." * (_LARGE if chance.random() < 0.03 else 0)}"'
        kinds = _TARGETS if Act.LATER_ENDS not in self._acts else (*_TARGETS, *[_GOES_ON] * 10)
        return a_submission(
            due_at=due_at,
            tenant=tenant,
            payload=text,
            idempotency_key=f"key-{number}" if chance.random() < 0.4 else None,
            target=self._target(kinds),
            delivery=chance.choice(_DELIVERIES),
            priority=chance.choice(list(Priority)),
            precision=chance.choice(list(Precision)),
            retry=self._retry(),
            expires_after=chance.choice([None] * 9 + [timedelta(seconds=30)]),
            tags=(TAG,) if Act.OPERATIONS in self._acts and chance.random() < 0.4 else (),
        )

    def schedule(self, number: int) -> Schedule:
        """A schedule that fires often enough for an episode of minutes."""
        chance = self._chance
        tenant, delivery = chance.choice(TENANTS), chance.choice(_DELIVERIES)
        rule, kinds = chance.choice(
            [(rule, _TARGETS_OF_OFTEN) for rule in _OFTEN] + [(rule, _TARGETS) for rule in _SELDOM]
        )
        overlap = chance.choice(list(Overlap)) if delivery is Delivery.EXACTLY_ONCE else Overlap.ALLOW
        job = a_template(
            target=self._target(kinds),
            payload=Payload(text=f'"{tenant} schedule {number}"'),
            delivery=delivery,
            priority=chance.choice(list(Priority)),
            retry=self._retry(),
        )
        return a_schedule(tenant=tenant, schedule_id=f"schedule-{number}", rule=rule, overlap=overlap, job=job)

    def _target(self, kinds: tuple[str, ...]) -> str:
        # Each kind is a destination of its own, so that what is broken keeps none of the others waiting.
        return f"https://{self._chance.choice(kinds)}.example.com/"

    def _retry(self) -> RetryPolicy:
        chance = self._chance
        base = timedelta(seconds=chance.choice(_RETRIES))
        return RetryPolicy(
            strategy=chance.choice(list(Strategy)),
            attempts=chance.choice([1, 2, 2, 3, 4]),
            base=base,
            cap=max(base, timedelta(seconds=160)),
        )
