"""What breaks jobs in the hands of their targets, owners and operators. Each leaves out one rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from functions.api.dead_letters.replay import Replayer
from functions.api.jobs import report_outcome as finish
from functions.api.jobs.report_outcome import OutcomeReports
from functions.domain.jobs import claims
from functions.domain.jobs.claims import Drop
from functions.domain.jobs.job import Timer
from functions.domain.operations.operation import Operation
from functions.domain.wheel import Ring
from functions.operations import executor as work
from functions.ports.ledger import Applied, Cancelled
from functions.services.jobs import settler as settling
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.rescheduler import Rescheduler
from functions.worker import claimer
from testkit import fakes

Lambdas = dict[type, type]


class _HoldsWithoutAWatchdog(settling.Settler):
    def hold(self, timer: Timer, claim: Any) -> bool:
        return super(_HoldsWithoutAWatchdog, replace(self, placer=_PlacesNothing())).hold(timer, claim)


class _PlacesNothing:
    def place_one(self, _: Timer) -> Ring:
        return Ring.NEAR


def holds_without_a_watchdog(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {settling.Settler: _HoldsWithoutAWatchdog}


def drops_a_watchdog_that_finds_a_lease(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    judge = claims.decide_claim

    def decide_claim(row: Any, **given: Any) -> Any:
        verdict = judge(row, **given)
        return Drop("leased") if isinstance(verdict, claims.Watch) else verdict

    monkeypatch.setattr(claimer, "decide_claim", decide_claim)
    return {}


def listens_to_stale_fences(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(finish, "_running", lambda job_id, row, *, fence: row)
    return {}


def prolongs_whatever_runs(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    extend = fakes.InMemoryLedger.extend

    def extend_anyway(ledger: Any, job_id: Any, *, fence: int, **given: Any) -> Any:
        row = ledger.rows.get(job_id.key)
        return extend(ledger, job_id, fence=row.fence if row else fence, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "extend", extend_anyway)
    return {}


class _ForgetsTheLetterFirst(Replayer):
    def _let_go_on(self, letter: Any, due_at: Any) -> Any:
        self.dead_letters.delete(letter.letter_id)
        return super()._let_go_on(letter, due_at)


def forgets_the_letter_before_its_replay(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Replayer: _ForgetsTheLetterFirst}


def replays_without_a_far_row(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    _leave_out_the_far_row(monkeypatch, "replay")
    return {}


class _MovesInTwoSteps(Rescheduler):
    def _settle_move(self, job_id: Any, job: Any, timer: Timer, **given: Any) -> None:
        self.timers.put([timer])
        super()._settle_move(job_id, job, timer, **given)


def moves_in_two_steps(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    _leave_out_the_far_row(monkeypatch, "move")
    return {Rescheduler: _MovesInTwoSteps}


class _HastensWithoutItsRow(Rescheduler):
    def _hasten(self, *_: Any, **__: Any) -> None:
        """Whose message is due before its row says."""


def hastens_without_its_row(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Rescheduler: _HastensWithoutItsRow}


def completes_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    """And takes no notice of a settlement that was refused."""

    class _Trusts(OutcomeReports):
        def complete(self, job_id: Any, *, fence: int, result: str, caller: str = "") -> None:
            row = self.ledger.get(job_id.key)
            if row is not None and isinstance(
                self.ledger.complete(job_id, fence=fence, result=result, now=self.clock.now()), Applied
            ):
                return

    return {OutcomeReports: _Trusts}


def forgets_what_it_has_moved(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(Operation, "has_moved", lambda *_: False)
    return {}


class _OnlyForgetsTheRow(Canceller):
    def _write_tombstone(self, job_id: Any) -> Cancelled:
        self._forget(self.timers.delete(job_id))
        return Cancelled()


def cancels_without_a_tombstone(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Canceller: _OnlyForgetsTheRow}


def records_a_step_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    act = work._Turn._act

    def record_and_act(turn: Any, finding: Any, meant: Any) -> None:
        progress = replace(turn.operation.progress, place=finding.place)
        turn.operation = replace(turn.operation, progress=progress)
        turn._record(is_last=False)
        act(turn, finding, meant)

    monkeypatch.setattr(work._Turn, "_act", record_and_act)
    return {}


def means_what_is_submitted_later(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(Operation, "is_older", lambda *_: False)
    return {}


def puts_a_part_without_its_lease(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    put = work._Turn._put_part

    def put_anyway(turn: Any) -> bool:
        turn.operation = replace(turn.operation, lease_until=turn.executor.clock.now())
        return put(turn)

    monkeypatch.setattr(work._Turn, "_put_part", put_anyway)
    return {}


def _leave_out_the_far_row(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A call to the ledger writes its own row alone."""
    make = getattr(fakes.InMemoryLedger, call)

    def make_alone(ledger: Any, *args: Any, **given: Any) -> Any:
        put, ledger.put_far = ledger.put_far, lambda _: None
        try:
            return make(ledger, *args, **given)
        finally:
            ledger.put_far = put

    monkeypatch.setattr(fakes.InMemoryLedger, call, make_alone)
