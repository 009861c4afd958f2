"""Owners of jobs, operators, and targets that answered 202: what each of them does in an episode."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from math import inf

from functions.api.operations.manager import Asked
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.submission import Submission
from functions.domain.operations.operation import OperationKind, Shift
from testkit.world.clients import REQUEST_LIMIT
from testkit.world.fires import Run
from verification.acts import Act
from verification.clients import TRIES
from verification.drawing import TAG, TENANTS, Drawing
from verification.stage import Stage

_BEYOND_GUARD = REQUEST_LIMIT + 10 * SECOND
_ACTIONS = (OperationKind.CANCEL, *[OperationKind.RESCHEDULE] * 2, *[OperationKind.RUN_NOW] * 2, OperationKind.EXPORT)
_ASKS_AGAIN = 7 * SECOND


class Owners:
    """Act at times that are drawn, on what there is then."""

    def __init__(self, stage: Stage, chance: random.Random, acts: Collection[Act]) -> None:
        self._stage = stage
        self._chance = chance
        self._pace = stage.pace
        self._draw = Drawing(chance, acts, stage.pace)
        self._edits = 0
        stage.record.goes_on = self._go_on
        habits: dict[Act, tuple[int, Callable[[], None]]] = {
            Act.MOVES: (10, self._move),
            Act.HASTENINGS: (8, self._run_now),
            Act.OPERATIONS: (3, self._operate),
            Act.REPLAYS: (8, self._replay),
            Act.RATES: (2, self._cap_rate),
            Act.PERMITS: (3, self._cap_calls),
            Act.TENANT_PAUSES: (2, self._pause_tenant),
            Act.STAGE_PAUSES: (1, self._pause_stage),
        }
        self._habits = [habit for act, habit in habits.items() if act in acts]

    def begin(self) -> None:
        """Put everything on the agenda, from now on."""
        begin = self._stage.clock.instant
        for times, act in self._habits:
            for _ in range(times):
                self._stage.at(begin + self._draw.seconds(self._pace.asked_within, 60), act)

    def _move(self) -> None:
        stage, job_id = self._stage, self._pick()
        if job_id is None:
            return
        submission: Submission = stage.record.jobs[job_id].submission
        keeps_payload = self._chance.random() < 0.6
        self._edits += 1
        nearest = stage.wheel.guard + stage.wheel.skew + _BEYOND_GUARD
        edited = replace(
            submission,
            due_at=stage.clock.instant + nearest + self._draw.seconds(self._pace.move),
            payload=submission.payload if keeps_payload else f'"{submission.tenant} edit {self._edits}"',
        )
        stage.move(job_id, edited, keeps_payload=keeps_payload, conditions=stage.conditions())

    def _run_now(self) -> None:
        job_id = self._pick()
        if job_id is not None:
            self._stage.run_now(job_id, self._stage.conditions())

    def _operate(self) -> None:
        stage, chance = self._stage, self._chance
        now, action = stage.clock.instant, chance.choice(_ACTIONS)
        reach = timedelta(seconds=self._pace.reach)
        # A shift of its own, by which its moves are known.
        by = chance.choice(self._pace.shifts) * SECOND + stage.acts[Act.OPERATIONS] * MILLISECOND
        asked = Asked(
            tenant=chance.choice(TENANTS),
            action=action,
            due_from=now - reach / 4,
            due_until=now + reach,
            tag=chance.choice(["", TAG, TAG, TAG]),
            shift=Shift(by=by + MILLISECOND) if action is OperationKind.RESCHEDULE else None,
            rate=chance.choice([1.0, 50.0]),
            dry_run=chance.random() < 0.1,
        )
        stage.ask_for(asked, stage.conditions())
        if chance.random() < 0.2:
            stage.at(now + self._draw.seconds(90), self._stop)

    def _stop(self) -> None:
        stage = self._stage
        operations = sorted(stage.promises.operations.open(), key=lambda operation: operation.operation_id)
        if operations:
            operation = self._chance.choice(operations)
            stage.stop(operation.tenant, operation.operation_id, stage.conditions())

    def _replay(self) -> None:
        letters = sorted((letter.letter_id for letter in self._stage.dead_letters.letters.values()), key=str)
        if letters:
            self._stage.replay(self._chance.choice(letters), self._stage.conditions())

    def _cap_rate(self) -> None:
        self._stage.cap_rate(self._chance.choice(TENANTS), self._chance.choice([*self._pace.rates, inf]))

    def _cap_calls(self) -> None:
        self._stage.cap_calls(self._chance.choice(TENANTS), self._chance.choice([1, 1, 2, inf]))

    def _pause_tenant(self) -> None:
        stage, tenant = self._stage, self._chance.choice(TENANTS)
        stage.pause_tenant(tenant)
        stage.at(
            stage.clock.instant + self._draw.seconds(self._pace.tenant_pause, 20), lambda: stage.resume_tenant(tenant)
        )

    def _pause_stage(self) -> None:
        self._stage.pause_stage()
        self._stage.at(
            self._stage.clock.instant + self._draw.seconds(self._pace.stage_pause, 20), self._stage.resume_stage
        )

    def _pick(self) -> str | None:
        waiting = self._stage.record.waiting()
        return self._chance.choice(waiting) if waiting else None

    def _go_on(self, run: Run) -> None:
        """A target has answered 202."""
        stage, chance = self._stage, self._chance
        began_at, takes = stage.clock.instant, chance.choice(self._pace.took) * SECOND
        if chance.random() < 0.6:
            # Within the lease of its attempt, and later at times.
            stage.at(began_at + self._draw.seconds(16, 1), lambda: self._beat(run, until=began_at + takes))
        kind = chance.random()
        if kind < 0.6:
            stage.at(began_at + takes, lambda: self._say(run, lambda: self._stage.complete(run, stage.conditions())))
        elif kind < 0.85:
            is_permanent = chance.random() < 0.3
            stage.at(
                began_at + takes,
                lambda: self._say(run, lambda: stage.fail(run, stage.conditions(), is_permanent=is_permanent)),
            )

    def _beat(self, run: Run, *, until: datetime) -> None:
        stage, lease = self._stage, self._chance.choice(self._pace.leases) * SECOND
        if run.has_ended or stage.record.was_heard(run) or stage.clock.instant >= until:
            return
        stage.heartbeat(run, lease, stage.conditions())
        stage.at(
            stage.clock.instant + lease * self._chance.choice([0.5, 0.5, 1.2]), lambda: self._beat(run, until=until)
        )

    def _say(self, run: Run, say: Callable[[], object], tries: int = TRIES) -> None:
        stage = self._stage
        if stage.record.was_heard(run):
            return
        say()
        if not stage.record.was_heard(run) and tries:
            stage.at(stage.clock.instant + _ASKS_AGAIN, lambda: self._say(run, say, tries - 1))
