"""One episode: a hundred jobs and a few schedules for half an hour, all of it drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.domain.instants import SECOND
from functions.domain.job import Delivery, Payload, Precision, Priority
from functions.domain.occurrence import Overlap
from functions.domain.retry import RetryPolicy, Strategy
from functions.domain.schedule import CronRule, Schedule
from functions.domain.submission import Submission
from tests.builders import LOCAL_WHEEL, a_schedule, a_submission, a_template, every
from verification.checker import Judgement, judge
from verification.faults import Chaos, Fault
from verification.stage import Stage

JOBS = 100
SCHEDULES = 3

_TENANTS = ("acme", "globex", "initech", "umbrella")
_DELIVERIES = (*[Delivery.EXACTLY_ONCE] * 6, *[Delivery.AT_LEAST_ONCE] * 2, Delivery.AT_MOST_ONCE)
_TARGETS = (*["fine"] * 40, *["flaky"] * 6, *["broken"] * 3, "poison")
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
_MOST_TOLD = 3
_SUBMITTED_WITHIN = 600
_TRIES = 4
_ASKS_AGAIN = 5 * SECOND


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an episode. fires: of schedules, that were owed.

    stories: of the first violations, call by call. doubts: what the world that it ran in found by itself.
    """

    seed: int
    jobs: int
    fires: int
    calls: int
    struck: Counter[Fault]
    judgement: Judgement
    doubts: Sequence[str] = ()
    stories: Sequence[str] = ()


def run_episode(
    seed: int, faults: Collection[Fault] = tuple(Fault), *, lambdas: Mapping[type, type] | None = None
) -> Outcome:
    """The same seed and faults give the same episode. lambdas: classes that stand in for the real ones.

    Raises what the code under test did not expect, with a note of the seed.
    """
    try:
        return _live(random.Random(seed), seed, faults, lambdas or {})
    except Exception as error:
        error.add_note(f"in the episode with seed {seed}: tickwheel verify --episode {seed}")
        raise


def _live(chance: random.Random, seed: int, faults: Collection[Fault], lambdas: Mapping[type, type]) -> Outcome:
    struck = [fault for fault in Fault if fault in faults and chance.random() < 0.4]
    stage = Stage(
        audits=chance.random() < 0.5,
        lambdas=dict(lambdas),
        chaos=Chaos(tuple(struck), chance, LOCAL_WHEEL.skew),
    )
    _Clients(stage, chance).live()
    return judged(stage, seed)


def judged(stage: Stage, seed: int = 0) -> Outcome:
    """Bring a stage to its end, and judge its history."""
    try:
        stage.finish()
        history = stage.whole_history()
    finally:
        stage.end()
    judgement = judge(history)
    return Outcome(
        seed=seed,
        jobs=len(history.jobs),
        fires=sum(len(fires.due) for fires in history.fires),
        calls=len(history.calls),
        struck=stage.chaos.struck,
        judgement=judgement,
        doubts=tuple(stage.promises.broken),
        stories=tuple(stage.history.tell(violation.key) for violation in judgement.violations[:_MOST_TOLD]),
    )


class _Clients:
    """Those who submit, cancel and change, and ask again when they hear nothing."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self._stage = stage
        self._chance = chance

    def live(self) -> None:
        stage, chance = self._stage, self._chance
        stage.clock.tick(chance.randrange(60_000) * SECOND / 1000)
        begin = stage.clock.instant
        for number in range(SCHEDULES):
            schedule = self._schedule(number)
            stage.at(begin + self._seconds(120), lambda schedule=schedule: self._put(schedule))
        for number in range(JOBS):
            due_in = self._due_in()
            submitted_at = begin + self._seconds(_SUBMITTED_WITHIN)
            submission = self._submission(number, due_at=submitted_at + due_in)
            stage.at(submitted_at, lambda submission=submission: self._submit(submission))
            if chance.random() < 0.12:
                cancelled_at = submitted_at + due_in * chance.choice([0.1, 0.5, 1, 1.02])
                stage.at(cancelled_at, lambda submission=submission: self._cancel(submission))
        stage.live_until(begin + timedelta(seconds=_SUBMITTED_WITHIN + 300))

    def _submit(self, submission: Submission, tries: int = _TRIES) -> None:
        stage = self._stage
        stage.submit(submission, stage.conditions())
        # Without a key it might run twice.
        if not stage.record.was_told(submission) and submission.idempotency_key is not None:
            self._again(tries, lambda: self._submit(submission, tries - 1))

    def _cancel(self, submission: Submission) -> None:
        job_id = self._stage.record.id_of(submission)
        if job_id is not None:
            self._stage.cancel(job_id, self._stage.conditions())

    def _put(self, schedule: Schedule, tries: int = _TRIES) -> None:
        stage, key = self._stage, f"{schedule.tenant}#{schedule.schedule_id}"
        stage.put_schedule(schedule, stage.conditions())
        if not stage.is_firing(key):
            self._again(tries, lambda: self._put(schedule, tries - 1))
        # Fires that wait for a destination that fails would be dropped by a pause, however long they have been due.
        elif "fine" in schedule.job.target and self._chance.random() < 0.4:
            stage.at(stage.clock.instant + self._seconds(500, 400), lambda: self._pause(key))

    def _pause(self, key: str, tries: int = _TRIES) -> None:
        stage = self._stage
        stage.pause(key, stage.conditions())
        if not stage.is_stopped(key):
            self._again(tries, lambda: self._pause(key, tries - 1))
        else:
            stage.at(stage.clock.instant + self._seconds(100), lambda: self._resume(key))

    def _resume(self, key: str, tries: int = _TRIES) -> None:
        stage = self._stage
        stage.resume(key, stage.conditions())
        if not stage.is_firing(key):
            self._again(tries, lambda: self._resume(key, tries - 1))

    def _again(self, tries: int, ask: Callable[[], None]) -> None:
        if tries:
            self._stage.at(self._stage.clock.instant + _ASKS_AGAIN, ask)

    def _seconds(self, span: float, start: float = 0) -> timedelta:
        return timedelta(milliseconds=round(1000 * (start + span * self._chance.random())))

    def _due_in(self) -> timedelta:
        kind = self._chance.random()
        if kind < 0.1:
            return timedelta(0)
        if kind < 0.2:
            return LOCAL_WHEEL.guard + timedelta(milliseconds=self._chance.choice([-1, 0, 1, 5, 1000]))
        if kind < 0.55:
            return self._seconds(LOCAL_WHEEL.guard.total_seconds())
        return self._seconds(600, LOCAL_WHEEL.guard.total_seconds())

    def _submission(self, number: int, *, due_at: Any) -> Submission:
        chance = self._chance
        tenant = chance.choice(_TENANTS)
        text = f'"{tenant} {number}{"." * (_LARGE if chance.random() < 0.03 else 0)}"'
        return a_submission(
            due_at=due_at,
            tenant=tenant,
            payload=text,
            idempotency_key=f"key-{number}" if chance.random() < 0.4 else None,
            target=self._target(),
            delivery=chance.choice(_DELIVERIES),
            priority=chance.choice(list(Priority)),
            precision=chance.choice(list(Precision)),
            retry=self._retry(),
            expires_after=chance.choice([None] * 9 + [timedelta(seconds=30)]),
        )

    def _schedule(self, number: int) -> Schedule:
        chance = self._chance
        tenant, delivery = chance.choice(_TENANTS), chance.choice(_DELIVERIES)
        rule, kinds = chance.choice(
            [(rule, _TARGETS_OF_OFTEN) for rule in _OFTEN] + [(rule, _TARGETS) for rule in _SELDOM]
        )
        overlap = chance.choice(list(Overlap)) if delivery is Delivery.EXACTLY_ONCE else Overlap.ALLOW
        job = a_template(
            target=f"https://{chance.choice(kinds)}.example.com/",
            payload=Payload(text=f'"{tenant} schedule {number}"'),
            delivery=delivery,
            priority=chance.choice(list(Priority)),
            retry=self._retry(),
        )
        return a_schedule(tenant=tenant, schedule_id=f"schedule-{number}", rule=rule, overlap=overlap, job=job)

    def _target(self) -> str:
        # Each kind is a destination of its own, so that what is broken keeps none of the others waiting.
        return f"https://{self._chance.choice(_TARGETS)}.example.com/"

    def _retry(self) -> RetryPolicy:
        chance = self._chance
        base = timedelta(seconds=chance.choice(_RETRIES))
        return RetryPolicy(
            strategy=chance.choice(list(Strategy)),
            attempts=chance.choice([1, 2, 2, 3]),
            base=base,
            cap=max(base, timedelta(seconds=160)),
        )
