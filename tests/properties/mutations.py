"""Schedulers that break one rule each: what the machine and the directed histories must notice.

A mutation is applied to the code, and answers which of its classes stand in for the real ones.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.api.jobs.submit import Submitter, _accepted
from functions.domain.jobs import claims
from functions.domain.jobs.callbacks import NO_CALLBACKS
from functions.domain.jobs.job import Delivery, Priority, Timer
from functions.domain.lifecycle import Event, State
from functions.domain.wheel import Wheel
from functions.ports.ledger import Applied, Cancelled, Refused
from functions.ports.targets import Failed
from functions.scanner import scan
from functions.scanner.tick import Tick
from functions.services.far_ring import flow_order
from functions.services.far_ring.flow_order import FlowOrders
from functions.services.far_ring.placer import Placer
from functions.services.jobs import settler as settling
from functions.services.jobs.canceller import Canceller
from functions.services.jobs.ends import Ends
from functions.services.jobs.flow_gate import FlowGate
from functions.worker import claimer, releases
from functions.worker.attempt import Attempts
from functions.worker.execute import Worker
from functions.worker.message import Returned
from testkit import fakes
from testkit.fakes import ledger as fake_ledger

Lambdas = dict[type, type]

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class _SettlesBeforeItPlaces(settling.Settler):
    def fail(self, timer: Timer, claim: Any, failure: Failed) -> bool:
        following = timer.next_attempt(failed_at=self.clock.now(), jitter=self.jitter())
        if timer.job.delivery is not Delivery.EXACTLY_ONCE or following is None:
            return super().fail(timer, claim, failure)
        is_settled = self._settle(timer, claim, Event.RETRY, failure=failure, following=following)
        self.place(following)
        return is_settled


def settles_before_it_places(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {settling.Settler: _SettlesBeforeItPlaces}


class _DefersByAcknowledging(claimer.Claimer):
    def claim(self, timer: Timer, message: Any) -> Any:
        claim = super().claim(timer, message)
        return None if claim == Returned("leased") else claim


def defers_by_acknowledging(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {claimer.Claimer: _DefersByAcknowledging}


def leases_without_skew(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    judge, rescue = claims.decide_claim, fakes.InMemoryLedger.rescue
    monkeypatch.setattr(claimer, "decide_claim", lambda row, **given: judge(row, **{**given, "skew": timedelta(0)}))

    def rescue_without(ledger: Any, timer: Timer, **given: Any) -> Any:
        ledger._skew = timedelta(0)
        return rescue(ledger, timer, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "rescue", rescue_without)
    return {}


def forgets_before_its_messages(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(claims, "LEDGER_LIFE", timedelta(days=7))
    return {}


class _HasOneCursorForAllClasses(Tick):
    def record(self, priority: Priority, cursor: Any) -> None:
        for each in Priority:
            self.cursors[each] = cursor
        super().record(priority, cursor)


def has_one_cursor_for_all_classes(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(scan, "Tick", _HasOneCursorForAllClasses)
    return {}


def checkpoints_without_its_epoch(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    checkpoint = fakes.InMemoryShardStore.checkpoint

    def checkpoint_anyway(shards: Any, lease: Any, cursors: Any, **given: Any) -> bool:
        return checkpoint(shards, replace(lease, epoch=shards.rows[lease.shard]["epoch"]), cursors, **given)

    monkeypatch.setattr(fakes.InMemoryShardStore, "checkpoint", checkpoint_anyway)
    return {}


def rescues_whatever_runs(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    rescue = fakes.InMemoryLedger.rescue

    def rescue_anyway(ledger: Any, timer: Timer, *, row: Any, **given: Any) -> Any:
        met = ledger.rows[timer.job.key]
        if met.state is State.RUNNING:
            ledger.rows[timer.job.key] = replace(met, lease_until=LONG_AGO)
        return rescue(ledger, timer, row=met, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "rescue", rescue_anyway)
    return {}


def settles_without_its_fence(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    settle = fakes.InMemoryLedger.settle

    def settle_anyway(ledger: Any, timer: Timer, event: Event, **given: Any) -> Any:
        met = ledger.rows[timer.job.key]
        return settle(ledger, timer, event, **{**given, "fence": met.fence, "owner": met.owner})

    monkeypatch.setattr(fakes.InMemoryLedger, "settle", settle_anyway)
    return {}


class _PlacesWithoutLookingBack(Placer):
    def _place_far(self, numbered: Any) -> Any:
        wheel = _NeverCloses(**{name: getattr(self.wheel, name) for name in Wheel.__dataclass_fields__})
        return Placer._place_far(replace(self, wheel=wheel), numbered)


class _NeverCloses(Wheel):
    def closes_at(self, due_at: datetime) -> datetime:
        return due_at


def places_without_looking_back(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Placer: _PlacesWithoutLookingBack}


class _TrustsItsMessages(Attempts):
    def run(self, timer: Timer, message: Any, **given: Any) -> Any:
        return super().run(replace(timer, due_at=min(timer.due_at, self.clock.now())), message, **given)


def runs_what_comes_early(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Attempts: _TrustsItsMessages}


class _RegistersAfterItPlaces(Submitter):
    def submit(self, submissions: Any) -> Any:
        jobs = [self._job(submission) for submission in submissions]
        self.placer.place([Timer(job=job, due_at=job.scheduled_at) for job in jobs])
        return super().submit(submissions)


def registers_after_it_places(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Submitter: _RegistersAfterItPlaces}


class _PlacesNoReplay(Submitter):
    def _replay(self, job: Any, submission: Any, row: Any, **given: Any) -> Any:
        return _accepted(replace(job, scheduled_at=row.due_at), state=row.state, is_replay=True)


def places_no_replay(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Submitter: _PlacesNoReplay}


class _IgnoresWhatWasNotPlaced(settling.Settler):
    def place(self, timer: Timer) -> None:
        self.placer.place([timer])


def ignores_what_was_not_placed(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {settling.Settler: _IgnoresWhatWasNotPlaced}


def retries_what_should_stop(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    settle = fakes.InMemoryLedger.settle

    def settle_anyway(ledger: Any, timer: Timer, event: Event, **given: Any) -> Any:
        if timer.job.key in ledger.rows:
            ledger.rows[timer.job.key] = replace(ledger.rows[timer.job.key], cancel_requested=False)
        return settle(ledger, timer, event, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "settle", settle_anyway)
    return {}


def rescues_without_end(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(claims, "MAX_RESCUES", 1_000)
    return {}


class _RunsAllAtOnce(Worker):
    def execute(self, messages: Any, **given: Any) -> Any:
        return super().execute([replace(message, receive_count=1) for message in messages], **given)


def runs_what_came_back_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Worker: _RunsAllAtOnce}


class _CancelsUntilItCloses(Canceller):
    def _delete(self, job_id: Any) -> Cancelled:
        wheel = _IsFarUntilItCloses(**{name: getattr(self.wheel, name) for name in Wheel.__dataclass_fields__})
        return Canceller._delete(replace(self, wheel=wheel), job_id)

    def _is_fresh(self, written_at: datetime, *, now: datetime) -> bool:
        return False


class _CancelsWhatIsFresh(Canceller):
    def _is_fresh(self, written_at: datetime, *, now: datetime) -> bool:
        return False


class _IsFarUntilItCloses(Wheel):
    def is_surely_far(self, due_at: datetime, *, now: datetime) -> bool:
        return now - timedelta(seconds=30) <= self.closes_at(due_at)


def cancels_too_late(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Canceller: _CancelsUntilItCloses}


def cancels_what_is_fresh(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Canceller: _CancelsWhatIsFresh}


def forgets_its_token(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    may_claim = claims.may_claim

    def may_claim_as_a_stranger(row: Any, **given: Any) -> bool:
        return may_claim(row, **{**given, "owner": ""})

    monkeypatch.setattr(claims, "may_claim", may_claim_as_a_stranger)
    monkeypatch.setattr(fake_ledger, "may_claim", may_claim_as_a_stranger)
    monkeypatch.setattr(fake_ledger, "is_own", lambda *_, **__: False)
    return {}


def fails_without_a_letter(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(fakes.InMemoryDeadLetters, "put", lambda *_: None)
    return {}


def starts_again_what_has_started(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    attempt = fakes.InMemoryLedger.attempt

    def attempt_anyway(ledger: Any, timer: Timer, event: Event, **given: Any) -> Any:
        answer = attempt(ledger, timer, event, **given)
        return Applied() if isinstance(answer, Refused) else answer

    monkeypatch.setattr(fakes.InMemoryLedger, "attempt", attempt_anyway)
    return {}


def cancels_what_runs(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    cancel = fakes.InMemoryLedger.cancel

    def cancel_anyway(ledger: Any, job_id: Any, **given: Any) -> Any:
        if job_id.key in ledger.rows:
            ledger.rows[job_id.key] = replace(ledger.rows[job_id.key], state=State.SCHEDULED)
        return cancel(ledger, job_id, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "cancel", cancel_anyway)
    return {}


def lets_no_other_release_follow(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(Placer, "reopen", lambda *_: False)
    return {}


def gives_what_has_ended(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(releases, "may_claim", lambda *_, **__: True)
    return {}


def takes_rows_out_before_their_jobs_end(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    end = releases.Releases._end

    def remove_first(given: Any, members: Any, failures: Any, timer: Timer, claim: Any) -> None:
        collection, _ = releases._found(timer.job)
        opened = given.collections.opened(collection)
        given.collections.remove(collection, opened.places if opened else ())
        end(given, members, failures, timer, claim)

    monkeypatch.setattr(releases.Releases, "_end", remove_first)
    return {}


def ends_what_its_target_named(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(releases, "failures_in", lambda *_: {})
    return {}


def runs_an_order_at_once(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(FlowOrders, "start", lambda *_: True)
    return {}


def runs_an_order_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(flow_order, "_is_ahead", lambda *_, **__: True)
    return {}


def lets_in_without_a_permit(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(FlowGate, "_take_permit", lambda *_, **__: True)
    return {}


def spends_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(fakes.InMemoryFlowStore, "spend", lambda *_, **__: Applied())
    return {}


def forgets_the_callbacks_of_failures(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    kept = Ends._kept

    def keep_silent(ends: Ends, timer: Timer, *given: Any, **named: Any) -> None:
        kept(ends, replace(timer, job=replace(timer.job, callbacks=NO_CALLBACKS)), *given, **named)

    monkeypatch.setattr(Ends, "_kept", keep_silent)
    return {}
