"""The whole scheduler under faults: any order of steps, a fault in any of them, and still every promise kept.

Then the promises are broken one by one in the code, to see that this machine notices.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from functions.domain import claims
from functions.domain.job import Delivery, Precision, Priority, Timer
from functions.domain.lifecycle import Event
from functions.domain.retry import RetryPolicy, Strategy
from functions.ports import Failed
from functions.scanner import scan
from functions.worker import execute
from tests.builders import LOCAL_WHEEL, a_submission
from tests.world import Fault, World

SECONDS = st.sampled_from([0, 1, 5, 14, 16, 17, 20, 40, 60, 95, 130])
CLOCKS = st.sampled_from([-1, 0, 1]).map(lambda sign: LOCAL_WHEEL.skew / 2 * sign)
FAULTS = st.one_of(
    st.none(),
    st.builds(
        Fault,
        at_call=st.integers(1, 12),
        kind=st.sampled_from(["before", "after", "lost", "stall"]),
        stall=st.sampled_from([3, 50, 100, 200]).map(lambda seconds: timedelta(seconds=seconds)),
    ),
)
TARGETS = st.sampled_from(["fine", "fine", "fine", "flaky", "broken", "poison"]).map("https://example.com/{}".format)


class Scheduler(RuleBasedStateMachine):
    def new_world(self) -> World:
        return World()

    @initialize()
    def begin(self) -> None:
        self.world = self.new_world()
        self.keyed: list[str] = []
        self.stashed: set[str] = set()

    @rule(
        due_in=st.sampled_from([0, 3, 30, 100, 154, 156, 200, 240, 300, 420]),
        delivery=st.sampled_from([Delivery.EXACTLY_ONCE, Delivery.EXACTLY_ONCE, *Delivery]),
        priority=st.sampled_from(Priority),
        precision=st.sampled_from(Precision),
        calls=TARGETS,
        tenant=st.sampled_from(["acme", "umbrella"]),
        expires=st.sampled_from([None, None, None, 30]),
        is_keyed=st.booleans(),
        is_large=st.sampled_from([False, False, True]),
        ahead=CLOCKS,
        fault=FAULTS,
    )
    def submit(
        self, due_in, delivery, priority, precision, calls, tenant, expires, is_keyed, is_large, ahead, fault
    ) -> None:
        key = f"key-{len(self.keyed)}" if is_keyed else None
        process = self.world.process(ahead=ahead, fault=fault)
        if key:
            self.keyed.append(key)
        self.world.submit(
            a_submission(
                tenant=tenant,
                due_at=process.clock.now() + timedelta(seconds=due_in),
                delivery=delivery,
                priority=priority,
                precision=precision,
                target=calls,
                expires_after=timedelta(seconds=expires) if expires else None,
                idempotency_key=key,
                payload='"' + "x0aZ" * 4_000 + '"' if is_large else "1",
                retry=RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=160)),
            ),
            process,
        )

    @rule(which=st.integers(0, 20), later=SECONDS, ahead=CLOCKS, fault=FAULTS)
    def submit_again(self, which, later, ahead, fault) -> None:
        """A client that got no answer submits the same job again, for whatever time it is then."""
        keyed = [job.submission for job in self.world.jobs.values() if job.submission.idempotency_key]
        if keyed:
            again = keyed[which % len(keyed)]
            due_at = self.world.clock.now() + timedelta(seconds=later)
            self.world.submit(replace(again, due_at=due_at), self.world.process(ahead=ahead, fault=fault))

    @rule(which=st.integers(0, 20), ahead=CLOCKS, fault=FAULTS)
    def cancel(self, which, ahead, fault) -> None:
        ids = list(self.world.jobs)
        if ids:
            self.world.cancel(ids[which % len(ids)], self.world.process(ahead=ahead, fault=fault))

    @rule(seconds=SECONDS)
    def time_passes(self, seconds) -> None:
        self.world.clock.tick(timedelta(seconds=seconds))

    @rule(ahead=CLOCKS, fault=FAULTS)
    def tick(self, ahead, fault) -> None:
        for shard in range(self.world.wheel.scan_shards):
            self.world.scan(shard, self.world.process(ahead=ahead, fault=fault))

    @rule(ahead=CLOCKS, fault=FAULTS, stall=st.sampled_from([0, 0, 0, 14, 16, 18, 40]))
    def work(self, ahead, fault, stall) -> None:
        self.world.stall_target = timedelta(seconds=stall)
        self.world.work(self.world.process(ahead=ahead, fault=fault))
        self.world.stall_target = timedelta(0)

    @rule()
    def redeliver(self) -> None:
        self.world.redeliver()

    @rule(which=st.integers(0, 20))
    def keep_a_copy(self, which) -> None:
        """A message may come once more as long as its queue keeps it."""
        messages = list(self.world.ready.messages.values())
        if messages:
            copied = messages[which % len(messages)]
            copy_id = f"copy-{copied.message_id}"
            self.world.ready.messages[copy_id] = replace(
                copied, message_id=copy_id, visible_at=self.world.clock.instant + timedelta(days=13), receive_count=0
            )
            self.stashed.add(copy_id)

    @rule(refuses=st.booleans())
    def throttle_the_queue(self, refuses) -> None:
        self.world.refuses_sends = refuses

    @rule(ahead=CLOCKS, fault=FAULTS)
    def sweep(self, ahead, fault) -> None:
        if self.world.audits:
            self.world.sweep(self.world.process(ahead=ahead, fault=fault))

    @rule(fault=FAULTS)
    def bury(self, fault) -> None:
        self.world.bury(self.world.process(fault=fault))

    @invariant()
    def every_promise_is_kept(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        copies = {copy_id: world.ready.messages.pop(copy_id) for copy_id in self.stashed & set(world.ready.messages)}
        world.drain()
        world.check_nothing_lost()
        runs = len(world.runs)
        world.ready.messages |= copies
        world.forget(timedelta(days=13))
        for _ in range(20):
            world.work(world.process())
            world.clock.tick(timedelta(seconds=100))
        ledgered = [run for run in world.runs[runs:] if not self._is_at_least_once(run.key)]
        assert not ledgered, f"ran again after 13 days: {ledgered}"
        world.check_settled_once()

    def _is_at_least_once(self, key: str) -> bool:
        ids = [job_id for job_id in self.world.jobs if job_id.endswith(key.split("#")[1])]
        return all(self.world.jobs[job_id].submission.delivery is Delivery.AT_LEAST_ONCE for job_id in ids)


SCHEDULER_SETTINGS = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    print_blob=False,
    phases=[Phase.generate],  # a history is read by its steps: shrinking takes minutes and seldom helps
)
TestScheduler = Scheduler.TestCase
TestScheduler.settings = SCHEDULER_SETTINGS


class SettlesBeforeItPlaces(execute.Worker):
    def _fail(self, timer: Timer, claim, failure: Failed) -> None:
        if timer.job.delivery is Delivery.EXACTLY_ONCE and timer.attempt < timer.job.retry.attempts:
            following = timer.next_attempt(failed_at=self.clock.now(), jitter=self.jitter())
            self._settle(timer, claim, Event.RETRY, error=failure.error, following=following)
            self._place(following)
        else:
            super()._fail(timer, claim, failure)


class DefersByAcknowledging(execute.Worker):
    def _claim(self, timer: Timer, message):
        claim = super()._claim(timer, message)
        return None if claim == execute._Returned("leased") else claim


class HasOneCursorForAllClasses(scan._Tick):
    def _move(self, priority, at) -> None:
        for each in Priority:
            super()._move(each, at)


def settles_before_it_places(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(worker_class=SettlesBeforeItPlaces)


def defers_by_acknowledging(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(worker_class=DefersByAcknowledging)


def leases_without_skew(monkeypatch: pytest.MonkeyPatch) -> World:
    judge = claims.judge_claim
    monkeypatch.setattr(execute, "judge_claim", lambda row, **given: judge(row, **{**given, "skew": timedelta(0)}))
    world = World()
    world.ledger._skew = timedelta(0)
    return world


def forgets_before_its_messages(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(claims, "LEDGER_LIFE", timedelta(days=7))
    return World()


def has_one_cursor_for_all_classes(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(scan, "_Tick", HasOneCursorForAllClasses)
    return World(audits=False)


@pytest.mark.parametrize(
    ("mutation", "violation"),
    [
        (settles_before_it_places, "lost"),
        (defers_by_acknowledging, "lost"),
        (leases_without_skew, "two live runs"),
        (forgets_before_its_messages, "ran again after 13 days"),
        (has_one_cursor_for_all_classes, "lost"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_the_machine_notices_a_scheduler_that(mutation, violation, monkeypatch) -> None:
    class Mutant(Scheduler):
        def new_world(self) -> World:
            return mutation(monkeypatch)

    with pytest.raises(AssertionError, match=violation):
        run_state_machine_as_test(
            Mutant, settings=settings(SCHEDULER_SETTINGS, max_examples=2_000, report_multiple_bugs=False)
        )
