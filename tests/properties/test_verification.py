"""The checker is proved on the code before it judges it: every rule that is broken fails the run, by its name.

Each mutant goes through an episode that shows why its rule is there; the real code goes through the very same one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from functions.domain.far_ring.timer_key import timer_key
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.collection import upto
from functions.domain.jobs.job import Delivery, Priority, Timer
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.ports.ledger import Applied
from functions.services.far_ring import collecting
from functions.services.far_ring.flow_order import FlowOrders, row_of
from functions.services.jobs.callback_caller import CallbackCaller
from functions.services.targets import breakers
from functions.sweeper import sweep
from functions.worker import releases
from functions.worker.claimer import Claimer
from functions.worker.invocation import Invoker
from functions.worker.preconditions import Permission, Preconditions
from functions.worker.releases import Releases
from testkit import fakes
from testkit.builders import a_breaker
from testkit.fakes import ledger as fake_ledger
from testkit.world.process import HELD, SMOOTHLY, Conditions
from tests.properties import control_mutations, histories, mutations, schedule_histories, schedule_mutations
from tests.properties.histories import AHEAD, LEASE_IS_OVER, hold_a_worker, scan_all, submit
from tests.properties.machine import LARGE
from tests.properties.mutations import Lambdas
from tests.properties.schedule_histories import kill_when_it_records
from tickwheel.cli import app
from verification.acts import Act
from verification.checker import Invariant
from verification.drawing import CALLBACKS, FLOWS, IN_ORDER
from verification.episode import EpisodeResult, judged, run_episode
from verification.faults import IN_MEMORY
from verification.stage import Stage

DESTINATION = "https://example.com"

SOON_TOGETHER = Collect(key="export", window=20 * SECOND, most=3)


def a_message_comes_twice(stage: Stage) -> None:
    """The second time when its job has succeeded."""
    submit(stage)
    (message,) = stage.ready.messages.values()
    stage.work()
    stage.ready.messages["copy"] = replace(message, message_id="copy", receive_count=0, visible_at=stage.clock.instant)
    stage.work()


def a_worker_dies_when_it_has_settled_a_failure(stage: Stage) -> None:
    """Its message comes again, and there is nothing left for it to do."""
    submit(stage, calls="flaky")
    worker = hold_a_worker(stage)
    worker.go_to("ledger.settle")
    worker.kill(after=True)


def a_scanner_dies_when_it_has_advanced(stage: Stage) -> None:
    """Whatever the state says has been placed."""
    kill_when_it_records(stage)


def a_worker_dies_when_another_has_waited(stage: Stage) -> None:
    """The message that waited is the only one that is left of its job."""
    submit(stage)
    worker = hold_a_worker(stage)
    worker.go_to("target.end")
    stage.redeliver()
    stage.work()
    worker.kill()


def a_slow_worker_is_behind_and_another_ahead(stage: Stage) -> None:
    """By the clock of the other its lease is over, by its own it is not."""
    stage.clock.tick(SECOND)
    submit(stage, -AHEAD.total_seconds())
    slow = hold_a_worker(stage, ahead=-AHEAD)
    slow.go_to("target.end")
    stage.clock.tick(12 * SECOND)
    stage.redeliver()
    stage.work(Conditions(ahead=AHEAD))
    stage.clock.tick(SECOND)
    slow.finish()


def a_message_stays_away_for_days(stage: Stage) -> None:
    """As long as a queue may keep it."""
    submit(stage)
    stage.keep_a_copy()
    stage.work()


def a_queue_is_purged(stage: Stage) -> None:
    """A job was written in time, and promoted; of its message nothing is left."""
    stage.sweep()
    submit(stage, 240)
    stage.clock.tick(150 * SECOND)
    scan_all(stage)
    stage.ready.messages.clear()


def many_jobs_of_a_slow_flow_come_at_once(stage: Stage) -> None:
    """More than its burst, and than what one more clock would let start."""
    for _ in range(12):
        submit(stage, flows=FLOWS[3])
    for _ in range(2):
        stage.work()


def spends_what_is_spent(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(fakes.InMemoryFlowStore, "spend", lambda *_, **__: Applied())
    return {}


def a_job_of_an_order_comes_before_one_that_is_due_before_it(stage: Stage) -> None:
    """The message of that one is late, by more than clocks may be apart."""
    for due_in in (1, 40):
        submit(stage, due_in, flows=(IN_ORDER,))
    late = min(stage.ready.messages.values(), key=lambda message: message.visible_at)
    late.visible_at += 2 * MINUTE
    stage.clock.tick(MINUTE)
    stage.work(batch=1)


def a_job_of_an_order_waits_for_its_next_attempt(stage: Stage) -> None:
    """The one behind it comes meanwhile."""
    submit(stage, calls="flaky", flows=(IN_ORDER,), retry=RetryPolicy(attempts=2, base=MINUTE, cap=MINUTE))
    submit(stage, 1, flows=(IN_ORDER,))
    stage.work(batch=1)
    stage.clock.tick(2 * SECOND)
    stage.work(batch=1)


def starts_whoever_comes(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(FlowOrders, "start", lambda orders, flow, timer: orders.flows.hold(flow, row_of(timer)))
    return {}


def holds_nothing(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(fakes.InMemoryFlowStore, "hold", lambda *_: True)
    monkeypatch.setattr(FlowOrders, "start", lambda *_: True)
    return {}


def leaves_its_order_when_it_fails(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(
        FlowOrders, "end", lambda orders, flow, timer: orders.flows.finish(flow, row_of(timer).place) or True
    )
    return {}


def a_worker_dies_when_it_has_settled(stage: Stage) -> None:
    """Its callbacks are not put yet; its message comes again."""
    submit(stage, callbacks=CALLBACKS[0])
    worker = hold_a_worker(stage)
    worker.go_to("ledger.settle")
    worker.kill(after=True)


def finds_no_callback_that_is_left(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(CallbackCaller, "found", lambda *_: None)
    return {}


def a_retry_is_due_when_its_run_is_over(stage: Stage) -> None:
    """Its policy grants it, and its deadline does not."""
    submit(stage, calls="broken", run_deadline=5 * SECOND, retry=RetryPolicy(attempts=2, base=20 * SECOND))
    stage.work()
    stage.time_passes(MINUTE)


def forgets_deadlines(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(Timer, "ends_by", None)
    return {}


def _collected(stage: Stage, count: int, *, calls: str = "fine", **asked: Any) -> None:
    for _ in range(count):
        submit(stage, collect=SOON_TOGETHER, calls=calls, **asked)


def a_worker_dies_when_it_has_ended_one_of_two(stage: Stage) -> None:
    """Another gives the other one, with the same key."""
    _collected(stage, 2)
    stage.clock.tick(21 * SECOND)
    worker = hold_a_worker(stage)
    worker.go_to("ledger.extend")
    for _ in ("the lease", "the first end"):
        worker.go_on()
    worker.kill()


def more_wait_than_a_release_takes(stage: Stage) -> None:
    """They are of the next one."""
    _collected(stage, SOON_TOGETHER.most + 2)


def a_job_comes_while_others_are_given(stage: Stage) -> None:
    """Its own window closes while their target is at it."""
    _collected(stage, 2)
    stage.clock.tick(21 * SECOND)
    worker = hold_a_worker(stage)
    worker.go_to("target.end")
    _collected(stage, 1, conditions=SMOOTHLY)
    for _ in range(3):
        stage.clock.tick(3 * SECOND)
        stage.work()
    worker.finish()


def a_target_names_one_that_failed(stage: Stage) -> None:
    """At its first attempt; it comes again in a later release."""
    _collected(stage, 1, calls="flaky")


def gives_who_has_ended(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(releases, "may_claim", lambda *_, **__: True)
    return {}


class _TakesOutWhatIsDue(Releases):
    def _finish(self, collection: Any, number: int, chosen: Any) -> None:
        due = self.collections.waiting(collection, upto=upto(self.clock.now()), limit=1_000)
        super()._finish(collection, number, due)


def takes_out_whatever_is_due(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Releases: _TakesOutWhatIsDue}


class _LetsTheNextOneBegin(Releases):
    def _choose(self, collection: Any, number: int) -> Any:
        chosen = super()._choose(collection, number)
        self.collections.advance(collection, number=number)
        return chosen


def begins_the_next_release_during_a_call(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Releases: _LetsTheNextOneBegin}


def takes_every_answer_for_a_success_of_all(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(releases, "failures_in", lambda *_: {})
    return {}


def closes_a_window_later(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    closing = collecting.closing_of
    monkeypatch.setattr(collecting, "closing_of", lambda *given: closing(*given) + 5 * MINUTE)
    return {}


def jobs_of_two_classes_share_a_bucket(stage: Stage) -> None:
    """The critical one is read first."""
    stage.clock.tick(30 * SECOND)
    for priority in (Priority.LOW, Priority.CRITICAL):
        submit(stage, 200, priority=priority)
    stage.time_passes(2 * MINUTE)
    scan_all(stage)


def a_destination_is_down(stage: Stage) -> None:
    """For minutes, again and again; a job that waits for it has done nothing wrong."""
    submit(stage)
    for _ in range(5):
        breaker = a_breaker(destination=DESTINATION, until=stage.clock.instant + 20 * SECOND)
        stage.breakers.reset("acme", DESTINATION)
        stage.breakers.put(breaker, seen=None)
        stage._known_breakers["acme", DESTINATION] = breakers._Known("acme", DESTINATION, breaker=breaker)
        stage.work()
        stage.clock.tick(2 * MINUTE)


def a_replay_dies_when_its_row_says_that_the_job_goes_on(stage: Stage) -> None:
    """Nobody asks again."""
    submit(stage, calls="broken", retry=RetryPolicy(attempts=1))
    stage.work()
    (letter,) = stage.dead_letters.letters.values()
    replay = stage.replay(letter.letter_id, HELD)
    replay.go_to("ready.send")
    replay.kill()


def a_large_payload_of_each_tenant(stage: Stage) -> None:
    """Each is kept outside its row."""
    for tenant in ("acme", "umbrella"):
        submit(stage, 5, tenant=tenant, payload=f'"{tenant}{LARGE[1:]}')


def a_job_is_cancelled_between_its_attempts(stage: Stage) -> None:
    """The message of the next one is on its way."""
    submit(stage, calls="flaky")
    stage.work()
    stage.cancel(histories.only_id(stage))


def a_rescued_worker_goes_on(stage: Stage) -> None:
    """It calls its target, when another has done so with a larger fence."""
    submit(stage)
    slow = hold_a_worker(stage)
    slow.go_to("target.end")
    stage.redeliver()
    stage.clock.tick(LEASE_IS_OVER)
    stage.work()
    slow.finish()


def claims_whatever_it_meets(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    monkeypatch.setattr(fake_ledger, "may_claim", lambda *_, **__: True)
    return {}


def audits_by_the_time_of_writing(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    audit_page = sweep._Audit._audit_page

    def audit_late_rows(audit: Any, timers: Any) -> None:
        written_at, wheel = audit.sweeper.timers.port.written, audit.sweeper.wheel
        keys = [timer_key(timer.job, due_at=timer.due_at) for timer in timers]
        late = [
            timer for timer, key in zip(timers, keys, strict=True) if written_at[key] > wheel.closes_at(timer.due_at)
        ]
        audit_page(audit, late)

    monkeypatch.setattr(sweep._Audit, "_audit_page", audit_late_rows)
    return {}


class _NotesParks:
    """In place of whoever parks."""

    def __init__(self) -> None:
        self.until: datetime | None = None

    def park(self, _: Any, *, until: datetime, **__: Any) -> None:
        self.until = until


_PARKED: dict[str, datetime] = {}


class _LetsInWhatIsToBeParked(Preconditions):
    def enter(self, timer: Any) -> Permission | None:
        notes: Any = _NotesParks()
        permission = Preconditions.enter(replace(self, settler=notes), timer)
        if notes.until is None:
            return permission
        _PARKED[timer.job.key] = notes.until
        return Permission()


class _ParksAfterItsClaim(Invoker):
    def invoke(self, timer: Any, payload: Any, claim: Any, permission: Any, *, ring: Any) -> Any:
        until = _PARKED.pop(timer.job.key, None)
        if until is None:
            return super().invoke(timer, payload, claim, permission, ring=ring)
        self.settler.place(replace(timer, due_at=until))
        return None, claim


def parks_after_its_claim(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    _PARKED.clear()
    return {Preconditions: _LetsInWhatIsToBeParked, Invoker: _ParksAfterItsClaim}


class _StartsWithALease(Claimer):
    def claim(self, timer: Any, message: Any) -> Any:
        leased = replace(timer, job=replace(timer.job, delivery=Delivery.EXACTLY_ONCE))
        return super().claim(leased, message)


def starts_with_a_lease(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    return {Claimer: _StartsWithALease}


def keeps_all_payloads_in_one_place(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    def put(store: Any, job: Any, text: str) -> str:
        store.objects["payload"] = text
        return "payload"

    monkeypatch.setattr(fakes.InMemoryPayloadStore, "put", put)
    monkeypatch.setattr(fakes.InMemoryPayloadStore, "delete", lambda *_: None)
    return {}


def runs_what_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    claim = fakes.InMemoryLedger.claim

    def claim_anyway(ledger: Any, timer: Any, **given: Any) -> Any:
        row = ledger.rows.get(timer.job.key)
        if row is not None and row.state is State.CANCELLED:
            ledger.rows[timer.job.key] = replace(row, state=State.RETRYING)
        return claim(ledger, timer, **given)

    monkeypatch.setattr(fakes.InMemoryLedger, "claim", claim_anyway)
    return {}


def rescues_with_the_same_fence(monkeypatch: pytest.MonkeyPatch) -> Lambdas:
    rescue = fakes.InMemoryLedger.rescue

    def rescue_as_before(ledger: Any, timer: Any, *, row: Any, **given: Any) -> Any:
        answer = rescue(ledger, timer, row=row, **given)
        ledger.rows[timer.job.key] = replace(ledger.rows[timer.job.key], fence=row.fence)
        return replace(answer, fence=row.fence)

    monkeypatch.setattr(fakes.InMemoryLedger, "rescue", rescue_as_before)
    return {}


EPISODES = [
    (a_message_comes_twice, claims_whatever_it_meets, Invariant.ONE_EFFECT),
    (histories.a_far_write_stalls, mutations.places_without_looking_back, Invariant.NOTHING_LOST),
    (a_worker_dies_when_it_has_settled_a_failure, mutations.settles_before_it_places, Invariant.NOTHING_LOST),
    (a_scanner_dies_when_it_has_advanced, schedule_mutations.drops_what_it_loses, Invariant.SCHEDULES_KEPT),
    (a_worker_dies_when_another_has_waited, mutations.defers_by_acknowledging, Invariant.NOTHING_LOST),
    (a_slow_worker_is_behind_and_another_ahead, mutations.leases_without_skew, Invariant.ONE_AT_A_TIME),
    (a_message_stays_away_for_days, mutations.forgets_before_its_messages, Invariant.ONE_EFFECT),
    (a_queue_is_purged, audits_by_the_time_of_writing, Invariant.NOTHING_LOST),
    (jobs_of_two_classes_share_a_bucket, mutations.has_one_cursor_for_all_classes, Invariant.NOTHING_LOST),
    (a_destination_is_down, parks_after_its_claim, Invariant.ENDS_AGREE),
    (histories.a_started_job_comes_back, starts_with_a_lease, Invariant.ONE_EFFECT),
    (histories.a_fast_clock_sends, mutations.runs_what_comes_early, Invariant.NOTHING_EARLY),
    (histories.a_job_fails_for_good, mutations.fails_without_a_letter, Invariant.DEAD_LETTERS_ACCOUNTED),
    (
        a_replay_dies_when_its_row_says_that_the_job_goes_on,
        control_mutations.replays_without_a_far_row,
        Invariant.NOTHING_LOST,
    ),
    (a_large_payload_of_each_tenant, keeps_all_payloads_in_one_place, Invariant.TENANTS_APART),
    (a_job_is_cancelled_between_its_attempts, runs_what_is_cancelled, Invariant.CANCELS_KEPT),
    (a_rescued_worker_goes_on, rescues_with_the_same_fence, Invariant.FENCES_GROW),
    (many_jobs_of_a_slow_flow_come_at_once, spends_what_is_spent, Invariant.FLOWS_KEPT),
    (a_job_of_an_order_comes_before_one_that_is_due_before_it, starts_whoever_comes, Invariant.ORDER_KEPT),
    (a_job_of_an_order_waits_for_its_next_attempt, holds_nothing, Invariant.ORDER_KEPT),
    (a_job_of_an_order_waits_for_its_next_attempt, leaves_its_order_when_it_fails, Invariant.ORDER_KEPT),
    (a_worker_dies_when_it_has_settled, finds_no_callback_that_is_left, Invariant.CALLBACKS_KEPT),
    (a_retry_is_due_when_its_run_is_over, forgets_deadlines, Invariant.DEADLINES_KEPT),
    (a_worker_dies_when_it_has_ended_one_of_two, gives_who_has_ended, Invariant.COLLECTIONS_KEPT),
    (more_wait_than_a_release_takes, takes_out_whatever_is_due, Invariant.NOTHING_LOST),
    (more_wait_than_a_release_takes, closes_a_window_later, Invariant.COLLECTIONS_KEPT),
    (a_job_comes_while_others_are_given, begins_the_next_release_during_a_call, Invariant.COLLECTIONS_KEPT),
    (a_target_names_one_that_failed, takes_every_answer_for_a_success_of_all, Invariant.COLLECTIONS_KEPT),
    (
        schedule_histories.a_pause_leaves_messages_behind,
        schedule_mutations.admits_whatever_comes,
        Invariant.SCHEDULES_KEPT,
    ),
]
"""An episode, the mutant that must not pass it, and what must be named then."""

WITH_COLLECTIONS = (1, 10, 11)
"""Seeds of episodes in which jobs are collected."""

AUDITED = {a_queue_is_purged}
"""Elsewhere the audit would make up for what is lost."""


def _named(outcome: EpisodeResult) -> set[Invariant]:
    return {violation.invariant for violation in outcome.judgement.violations}


def live(episode: Any, lambdas: Lambdas) -> EpisodeResult:
    stage = Stage(audits=episode in AUDITED, lambdas=lambdas)
    episode(stage)
    return judged(stage)


@pytest.mark.parametrize(
    "episode", dict.fromkeys(episode for episode, _, _ in EPISODES), ids=lambda each: each.__name__
)
def test_the_real_code_keeps_every_promise_when(episode) -> None:
    outcome = live(episode, {})

    assert outcome.judgement.violations == []
    assert outcome.doubts == ()


@pytest.mark.parametrize(
    ("episode", "mutation", "invariant"), EPISODES, ids=lambda given: given.__name__ if callable(given) else ""
)
def test_a_run_fails_and_names_what_is_broken_when(episode, mutation, invariant, monkeypatch) -> None:
    outcome = live(episode, mutation(monkeypatch))

    assert invariant in _named(outcome)


def test_every_invariant_is_named_by_a_run_of_broken_code() -> None:
    assert {invariant for _, _, invariant in EPISODES} == set(Invariant)


@pytest.mark.long
@pytest.mark.parametrize(
    ("mutation", "invariant"),
    [
        (claims_whatever_it_meets, Invariant.ONE_EFFECT),
        (mutations.defers_by_acknowledging, Invariant.NOTHING_LOST),
        (mutations.has_one_cursor_for_all_classes, Invariant.NOTHING_LOST),
        (schedule_mutations.drops_what_it_loses, Invariant.SCHEDULES_KEPT),
        (parks_after_its_claim, Invariant.ENDS_AGREE),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_episodes_that_are_drawn_find_a_scheduler_that(mutation, invariant, monkeypatch) -> None:
    lambdas = mutation(monkeypatch)

    outcomes = (run_episode(seed, lambdas=lambdas) for seed in range(40))

    assert any(invariant in _named(outcome) for outcome in outcomes)


@pytest.mark.parametrize(
    ("mutation", "invariant"),
    [
        (gives_who_has_ended, Invariant.COLLECTIONS_KEPT),
        (takes_every_answer_for_a_success_of_all, Invariant.COLLECTIONS_KEPT),
        (begins_the_next_release_during_a_call, Invariant.COLLECTIONS_KEPT),
        (takes_out_whatever_is_due, Invariant.NOTHING_LOST),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_episodes_with_collections_find_a_scheduler_that(mutation, invariant, monkeypatch) -> None:
    lambdas = mutation(monkeypatch)

    outcomes = (run_episode(seed, lambdas=lambdas) for seed in WITH_COLLECTIONS)

    assert any(invariant in _named(outcome) for outcome in outcomes)


@pytest.mark.long
def test_ten_thousand_jobs_under_every_fault_keep_every_promise() -> None:
    result = CliRunner().invoke(app, ["verify", "--jobs", "10000", "--seed", "2027", "--json"], catch_exceptions=False)

    found = json.loads(result.stdout)
    assert found["violations"] == []
    assert found["doubts"] == []
    assert result.exit_code == 0
    assert found["jobs"] == 10_000
    assert found["episodes_of_months"] >= 3
    assert all(found["faults"][fault]["struck"] >= 10 for fault in IN_MEMORY)
    assert all(found["acts"][act] >= 10 for act in Act)
    assert all(found["all"]["checks"][invariant] >= 500 for invariant in Invariant)
