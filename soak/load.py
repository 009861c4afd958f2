"""Jobs at a steady rate, near and far, of every delivery and priority; some twice with their key, some cancelled."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import parse_job_id
from soak.record import Record
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import PRIORITIES
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted
from tickwheel.errors import ApiProblem
from verification.deployed import job_of
from verification.history import Cancel
from verification.sink import SLOW_TIMEOUT, Manner, Sink

STEADY = ("acme", "globex", "initech")
PAUSED = "umbrella"
SHAKY = "hooli"
DOWN = "stark"
BURSTING = "wayne"

LONGEST_WAIT = LOCAL_WHEEL.guard + timedelta(seconds=68)
"""How long after its submission a job is due, at most."""

_SHARE_FAR = 0.3
_FAR = LOCAL_WHEEL.guard + 8 * SECOND
KINDS = [
    *[(tenant, Manner.FINE) for tenant in STEADY for _ in range(20)],
    *[(PAUSED, Manner.FINE)] * 5,
    # Most of its calls succeed: where nearly all fail, its breaker opens for twice as long each time, and nothing comes to
    # its end.
    *[(SHAKY, Manner.FINE)] * 24,
    *[(SHAKY, Manner.FLAKY)] * 4,
    (SHAKY, Manner.BROKEN),
    *[(DOWN, Manner.DOWN)] * 6,
]
"""One of them is chosen for each job: whose it is, and how its target answers."""

_DELIVERIES = (*[Delivery.EXACTLY_ONCE] * 4, Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE)
_WEIGHTS = (2, 2, 5, 1)
_SHARE_WITH_KEY = 0.3
_SHARE_AGAIN = 0.3
_SHARE_CANCELLED = 0.02
_TRIES = 20
_RETRY = RetryPolicy(strategy="fixed", attempts=3, base=3 * SECOND, cap=3 * SECOND)


class Sinks(NamedTuple):
    """What the jobs call: one, and another which is down at times, a destination of its own."""

    usual: Sink
    moody: Sink

    def address(self, manner: Manner) -> str:
        """Where something is called that answers so."""
        return (self.moody if manner is Manner.DOWN else self.usual).address(manner)


@dataclass
class Load:
    """Submits through one client. rate: jobs a second."""

    client: Client
    sinks: Sinks
    record: Record
    rate: float
    seed: int
    _numbers: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._lock = threading.Lock()

    def run(self, until: datetime, stop: threading.Event) -> None:
        """Each second its jobs, until that instant."""
        owed, before = 0.0, datetime.now(UTC)
        while (now := datetime.now(UTC)) < until and not stop.is_set():
            owed += self.rate * (now - before).total_seconds()
            before = now
            count = int(owed)
            owed -= count
            self.submit([self._draw(now) for _ in range(count)])
            stop.wait(1)

    def burst(self, count: int) -> None:
        """So many jobs of one tenant, all of them due at the same instant."""
        run_at = datetime.now(UTC) + 20 * SECOND
        self.submit([self._new(BURSTING, Manner.FINE, run_at, priority="Normal") for _ in range(count)])

    def hold(self, count: int) -> list[str]:
        """Jobs of three priorities whose first call is not answered; their keys."""
        run_at = datetime.now(UTC) + 8 * SECOND
        jobs = [self._new(SHAKY, Manner.HELD, run_at, priority=PRIORITIES[number % 3]) for number in range(count)]
        return self.submit(jobs, is_disturbed=True)

    def slow(self) -> None:
        """A job whose target answers when nobody waits any more."""
        run_at = datetime.now(UTC) + 8 * SECOND
        self.submit([self._new(SHAKY, Manner.SLOW, run_at, priority="Normal")], is_disturbed=True)

    def submit(self, asked: Sequence[NewJob], *, is_disturbed: bool = False) -> list[str]:
        """Until each of them is taken: a store that throttles refuses some. Their keys."""
        keys: list[str] = []
        left = list(asked)
        for _ in range(_TRIES):
            if not left:
                break
            answers = self.client.submit_many(left, batch_size=50)
            taken = [(job, answer) for job, answer in zip(left, answers, strict=True) if isinstance(answer, Submitted)]
            left = [job for job, answer in zip(left, answers, strict=True) if not isinstance(answer, Submitted)]
            self.record.refused_count += len(left)
            for job, answer in taken:
                keys.append(self._note(job, answer, is_disturbed=is_disturbed))
            self._after(taken)
        if left:
            self.record.broken.append(f"{len(left)} jobs were not taken in {_TRIES} tries")
        return keys

    def _draw(self, now: datetime) -> NewJob:
        chance = self._chance
        tenant, manner = chance.choice(KINDS)
        is_far = chance.random() < _SHARE_FAR
        delay = _FAR + 60 * SECOND * chance.random() if is_far else (8 + 52 * chance.random()) * SECOND
        return self._new(
            tenant,
            manner,
            now + delay,
            priority=chance.choices(PRIORITIES, _WEIGHTS)[0],
            delivery=chance.choice(_DELIVERIES),
            has_key=chance.random() < _SHARE_WITH_KEY,
        )

    def _new(
        self,
        tenant: str,
        manner: Manner,
        run_at: datetime,
        *,
        priority: str,
        delivery: Delivery = Delivery.EXACTLY_ONCE,
        has_key: bool = False,
    ) -> NewJob:
        with self._lock:
            self._numbers += 1
            number = self._numbers
        return NewJob(
            self.sinks.address(manner),
            tenant=tenant,
            payload={"tenant": tenant, "number": number},
            run_at=run_at,
            delivery=cast("Any", str(delivery)),
            priority=cast("Any", priority.lower()),
            idempotency_key=f"key-{number}" if has_key else None,
            retry=_RETRY,
            timeout=SLOW_TIMEOUT if manner is Manner.SLOW else 20 * SECOND,
        )

    def _note(self, job: NewJob, answer: Submitted, *, is_disturbed: bool) -> str:
        taken = job_of(job, answer)
        self.record.add_job(taken, is_steady=job.tenant in STEADY, is_disturbed=is_disturbed)
        return taken.key

    def _after(self, taken: Sequence[tuple[NewJob, Submitted]]) -> None:
        for job, answer in taken:
            if job.idempotency_key and self._chance.random() < _SHARE_AGAIN:
                self._submit_again(job, answer)
            elif job.tenant in STEADY and self._chance.random() < _SHARE_CANCELLED:
                self._cancel(answer.id)

    def _submit_again(self, job: NewJob, first: Submitted) -> None:
        self.record.strike("submitted twice with a key")
        again = self.client.submit_job(job)
        if (again.id, again.replayed) != (first.id, True):
            self.record.broken.append(f"{job.idempotency_key} of {job.tenant} was {first.id}, and then {again.id}")

    def _cancel(self, job_id: str) -> None:
        try:
            state = self.client.cancel(job_id).state
        except ApiProblem:
            return  # too late: it runs
        key = parse_job_id(job_id).key
        self.record.strike("cancelled")
        self.record.add_cancel(Cancel(key, datetime.now(UTC), is_final=state == "cancelled"))
