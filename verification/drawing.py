"""What tenants submit in an episode, drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.instants import SECOND
from functions.domain.jobs.callbacks import NO_CALLBACKS, Callbacks
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.schedule import Schedule
from functions.domain.targets.flows import FlowLimits, NamedFlow, parse_rate
from testkit.builders import a_schedule, a_submission, a_template
from verification.acts import Act
from verification.pace import Pace

TENANTS = ("acme", "globex", "initech", "umbrella")
TAG = "urgent"

FLOWS: Mapping[int, tuple[NamedFlow, ...]] = {
    0: (NamedFlow(key="bounded", limits=FlowLimits(concurrency=1)),),
    3: (NamedFlow(key="rated", limits=FlowLimits(rate=parse_rate("12/min"), burst=2)),),
}
"""Of every sixth job, by what is left of its number: drawn by nobody, so that an episode is the same but for them."""

IN_ORDER = NamedFlow(key="in-order", limits=FlowLimits(is_ordered=True))
"""Of every third job, between these."""

TOLD = "https://told.example.com/"
CALLBACKS: Mapping[int, Callbacks] = {
    0: Callbacks(on_success=TOLD, on_failure=TOLD, on_end=TOLD),
    2: Callbacks(on_end=TOLD),
    3: Callbacks(on_failure=TOLD),
}
"""Of every fourth job, in the same way. All of an at_most_once job are refused."""

COLLECTS: Mapping[int, Collect] = {
    0: Collect(key="orders", window=40 * SECOND, most=3),
    3: Collect(key="digest", at="*/3 * * * *", most=8),
    4: Collect(key="export", window=160 * SECOND, at="*/10 * * * *", timezone="Asia/Kathmandu"),
}
"""Of every sixth job, in the same way: they keep nothing that does not go together with it."""

WITH_A_DEADLINE = 1
"""Of every third job, in the same way."""

_DELIVERIES = (*[Delivery.EXACTLY_ONCE] * 6, *[Delivery.AT_LEAST_ONCE] * 2, Delivery.AT_MOST_ONCE)
_GOES_ON = "lasting"
_TARGETS_OF_OFTEN = ("fine", "fine", "flaky")
"""A destination that never works is left alone for longer and longer, and so would be whatever fires often."""
_LARGE = 10_000
_MOST_ATTEMPTS = {Delivery.AT_LEAST_ONCE: 4}
"""Each copy of a message has attempts of its own, and each of these is copied."""


class Drawing:
    """Draws jobs and schedules. acts: what is done in the episode."""

    def __init__(self, chance: random.Random, acts: Collection[Act], pace: Pace) -> None:
        self._chance = chance
        self._acts = acts
        self._pace = pace

    def seconds(self, span: float, start: float = 0) -> timedelta:
        """A while from `start` on, in whole milliseconds."""
        return timedelta(milliseconds=round(1000 * (start + span * self._chance.random())))

    def due_in(self) -> timedelta:
        """How far ahead a job is due: at once, near, far, or where the rings meet."""
        kind, guard = self._chance.random(), self._pace.wheel.guard
        if kind < 0.1:
            return timedelta(0)
        if kind < 0.22:
            return guard + timedelta(milliseconds=self._chance.choice([-1, 0, 1, 5, 1_000, 9_000]))
        if kind < 0.55:
            return self.seconds(guard.total_seconds())
        return self.seconds(self._pace.far, guard.total_seconds())

    def submission(self, number: int, *, due_at: datetime) -> Submission:
        """A job."""
        chance = self._chance
        tenant = chance.choice(TENANTS)
        text = f'"{tenant} {number}{"." * (_LARGE if chance.random() < 0.03 else 0)}"'
        kinds = self._pace.targets
        if Act.LATER_ENDS in self._acts:
            kinds = (*kinds, *[_GOES_ON] * 10)
        submission = a_submission(
            due_at=due_at,
            tenant=tenant,
            payload=text,
            idempotency_key=f"key-{number}" if chance.random() < 0.4 else None,
            target=self._target(kinds),
            delivery=(delivery := chance.choice(_DELIVERIES)),
            priority=chance.choice(list(Priority)),
            precision=chance.choice(list(Precision)),
            retry=self._retry(delivery),
            expires_after=chance.choice([None] * 9 + [timedelta(seconds=self._pace.expires_after)]),
            flows=self._flows(number),
            callbacks=self._callbacks(number, delivery),
            run_deadline=self._deadline(number),
            tags=(TAG,) if Act.OPERATIONS in self._acts and chance.random() < 0.4 else (),
        )
        return self._collected(submission, number)

    def _collected(self, submission: Submission, number: int) -> Submission:
        collect = COLLECTS.get(number % 6) if Act.COLLECTIONS in self._acts else None
        if collect is None:
            return submission
        callbacks = submission.callbacks or self._callbacks(number, Delivery.EXACTLY_ONCE)
        payload = f'"{submission.tenant} {number}"'
        return replace(
            submission,
            collect=collect,
            payload=payload,
            delivery=Delivery.EXACTLY_ONCE,
            priority=Priority.NORMAL,
            precision=Precision.DEFAULT,
            expires_after=None,
            run_deadline=None,
            flows=(),
            callbacks=callbacks,
        )

    def _callbacks(self, number: int, delivery: Delivery) -> Callbacks:
        is_with = Act.CALLBACKS in self._acts and delivery is not Delivery.AT_MOST_ONCE
        return CALLBACKS.get(number % 4, NO_CALLBACKS) if is_with else NO_CALLBACKS

    def _deadline(self, number: int) -> timedelta | None:
        is_with = Act.DEADLINES in self._acts and number % 3 == WITH_A_DEADLINE
        return timedelta(seconds=self._pace.expires_after) if is_with else None

    def schedule(self, number: int) -> Schedule:
        """A schedule that fires often enough for its episode."""
        chance = self._chance
        tenant, delivery = chance.choice(TENANTS), chance.choice(_DELIVERIES)
        rule, kinds = chance.choice(
            [(rule, _TARGETS_OF_OFTEN) for rule in self._pace.often]
            + [(rule, self._pace.targets) for rule in self._pace.seldom]
        )
        overlap = chance.choice(list(Overlap)) if delivery is Delivery.EXACTLY_ONCE else Overlap.ALLOW
        job = a_template(
            target=self._target(kinds),
            payload=Payload(text=f'"{tenant} schedule {number}"'),
            delivery=delivery,
            priority=chance.choice(list(Priority)),
            retry=self._retry(delivery),
        )
        return a_schedule(tenant=tenant, schedule_id=f"schedule-{number}", rule=rule, overlap=overlap, job=job)

    def _flows(self, number: int) -> tuple[NamedFlow, ...]:
        if Act.ORDERS in self._acts and number % 3 == 1:
            return (IN_ORDER,)
        return FLOWS.get(number % 6, ()) if Act.FLOWS in self._acts else ()

    def _target(self, kinds: tuple[str, ...]) -> str:
        # Each kind is a destination of its own, so that what is broken keeps none of the others waiting.
        return f"https://{self._chance.choice(kinds)}.example.com/"

    def _retry(self, delivery: Delivery) -> RetryPolicy:
        chance = self._chance
        base = timedelta(seconds=chance.choice(self._pace.retries))
        return RetryPolicy(
            strategy=chance.choice(list(Strategy)),
            attempts=min(chance.choice(self._pace.attempts), _MOST_ATTEMPTS.get(delivery, 1_000)),
            base=base,
            cap=max(base, timedelta(seconds=self._pace.longest_retry)),
        )
