"""Clients that submit, cancel and manage schedules, and retry when they get no answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import timedelta

from functions.domain.instants import SECOND
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.schedule import Schedule
from verification.acts import HINDERING, Act
from verification.drawing import Drawing
from verification.stage import Stage

TRIES = 4
_ASKS_AGAIN = 5 * SECOND


class Clients:
    """Acts at times that are drawn, through the requests of a stage."""

    def __init__(self, stage: Stage, chance: random.Random, acts: Collection[Act]) -> None:
        self._stage = stage
        self._chance = chance
        self._acts = acts
        self._pace = stage.pace
        self._draw = Drawing(chance, acts, stage.pace)

    def begin(self, *, jobs: int, schedules: int) -> None:
        """Put everything that is going to be asked for on the agenda, from now on."""
        stage, chance, draw = self._stage, self._chance, self._draw
        begin = stage.clock.instant
        for number in range(schedules):
            schedule = draw.schedule(number)
            stage.at(begin + draw.seconds(self._pace.asked_within / 5), lambda schedule=schedule: self._put(schedule))
        for number in range(jobs):
            due_in = draw.due_in()
            submitted_at = begin + draw.seconds(self._pace.asked_within)
            submission = draw.submission(number, due_at=submitted_at + due_in)
            stage.at(submitted_at, lambda submission=submission: self._submit(submission))
            if chance.random() < 0.12:
                cancelled_at = submitted_at + due_in * chance.choice([0.1, 0.5, 1, 1.02])
                stage.at(cancelled_at, lambda submission=submission: self._cancel(submission))
            if Act.RESUBMISSIONS in self._acts and submission.idempotency_key is not None and chance.random() < 0.5:
                again_at = submitted_at + draw.seconds(self._pace.again_within)
                stage.at(again_at, lambda submission=submission: self._submit_at_another_time(submission))

    def _submit(self, submission: Submission, tries: int = TRIES) -> None:
        stage = self._stage
        stage.submit(submission, stage.conditions())
        # Without a key it might run twice.
        if not stage.record.was_answered(submission) and submission.idempotency_key is not None:
            self._again(tries, lambda: self._submit(submission, tries - 1))

    def _submit_at_another_time(self, submission: Submission) -> None:
        """The key answers with its first job, whatever time it is used for now."""
        stage = self._stage
        due_at = stage.clock.instant + timedelta(seconds=self._chance.choice(self._pace.later))
        stage.acts[Act.RESUBMISSIONS] += 1
        self._submit(replace(submission, due_at=due_at))

    def _cancel(self, submission: Submission) -> None:
        job_id = self._stage.record.id_of(submission)
        if job_id is not None:
            self._stage.cancel(job_id, self._stage.conditions())

    def _put(self, schedule: Schedule, tries: int = TRIES) -> None:
        stage, key = self._stage, f"{schedule.tenant}#{schedule.schedule_id}"
        stage.put_schedule(schedule, stage.conditions())
        if not stage.is_firing(key):
            self._look_or_ask_again(key, tries, lambda: self._put(schedule, tries - 1))
        # Fires that wait for a destination that fails, or for their tenant, would be dropped by a pause, however long
        # they have been due.
        elif "fine" in schedule.job.target and not HINDERING & set(self._acts) and self._chance.random() < 0.4:
            stage.at(stage.clock.instant + self._draw.seconds(*self._pace.fires_for), lambda: self._pause(key))

    def _pause(self, key: str, tries: int = TRIES) -> None:
        stage = self._stage
        stage.pause(key, stage.conditions())
        if not stage.is_stopped(key):
            self._again(tries, lambda: self._pause(key, tries - 1))
        else:
            stage.at(stage.clock.instant + self._draw.seconds(self._pace.rests_for), lambda: self._resume(key))

    def _resume(self, key: str, tries: int = TRIES) -> None:
        stage = self._stage
        stage.resume(key, stage.conditions())
        if not stage.is_firing(key):
            self._look_or_ask_again(key, tries, lambda: self._resume(key, tries - 1))

    def _look_or_ask_again(self, key: str, tries: int, ask: Callable[[], None]) -> None:
        if self._chance.random() < 0.5:
            self._stage.look_at(key)
        if not self._stage.is_firing(key):
            self._again(tries, ask)

    def _again(self, tries: int, ask: Callable[[], None]) -> None:
        if tries:
            self._stage.at(self._stage.clock.instant + _ASKS_AGAIN, ask)
