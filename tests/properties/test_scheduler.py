"""The whole scheduler under faults: any order of steps, a fault in any of them, and still every promise kept.

Then the promises are broken one by one in the code, to see that this machine notices.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job import Delivery, Precision, Priority
from functions.domain.retry import RetryPolicy, Strategy
from tests.builders import LOCAL_WHEEL, a_submission
from tests.world.process import Fate, Fault, Process
from tests.world.world import Conditions, World

MOST_LIVE = 4
LARGE = '"' + "".join(f"{number:x}" for number in range(0, 90_000, 3)) + '"'

SECONDS = st.sampled_from([0, 1, 5, 14, 16, 17, 20, 29, 40, 60, 95, 130])
SIDES = st.sampled_from([0, 0, -1, 1]).map(lambda side: LOCAL_WHEEL.skew / 2 * side)
SKEWED = st.sampled_from([*[timedelta(0)] * 8, timedelta(seconds=20), timedelta(seconds=-20)])
FAULTS = st.builds(
    Fault,
    fate=st.sampled_from(Fate),
    at_call=st.integers(1, 12),
    stall=st.sampled_from([3, 12, 50, 100]).map(lambda seconds: timedelta(seconds=seconds)),
)
CONDITIONS = st.builds(
    Conditions,
    ahead=SIDES,
    costs=st.sampled_from([0, 1, 20]).map(lambda costs: costs * MILLISECOND),
    fault=st.one_of(st.none(), FAULTS),
    is_held=st.sampled_from([False, False, True]),
)
TARGETS = st.sampled_from(["fine", "fine", "fine", "flaky", "broken", "poison"]).map("https://example.com/{}".format)


class Scheduler(RuleBasedStateMachine):
    def new_world(self, **options) -> World:
        return World(**options)

    @initialize(is_new=st.sampled_from([False] * 9 + [True]), audits=st.booleans())
    def begin(self, is_new, audits) -> None:
        self.world = self.new_world(is_new=is_new, audits=audits)
        self.keys = 0
        self.copies: list = []

    @rule(
        due_in=st.sampled_from([0, 3, 30, 100, 154, 155, 155.005, 156, 170, 200, 240, 300, 420]),
        delivery=st.sampled_from([Delivery.EXACTLY_ONCE, Delivery.EXACTLY_ONCE, *Delivery]),
        priority=st.sampled_from(Priority),
        precision=st.sampled_from(Precision),
        calls=TARGETS,
        tenant=st.sampled_from(["acme", "umbrella"]),
        expires=st.sampled_from([None, None, None, 30]),
        is_keyed=st.booleans(),
        is_large=st.sampled_from([False, False, False, True]),
        backoff=st.sampled_from([1, 30, 160]),
        conditions=CONDITIONS,
        skewed=SKEWED,
    )
    def submit(
        self,
        due_in,
        delivery,
        priority,
        precision,
        calls,
        tenant,
        expires,
        is_keyed,
        is_large,
        backoff,
        conditions,
        skewed,
    ) -> None:
        self.keys += is_keyed
        conditions = replace(conditions, ahead=conditions.ahead + skewed)
        submission = a_submission(
            tenant=tenant,
            due_at=self.world.clock.instant + conditions.ahead + timedelta(seconds=due_in),
            delivery=delivery,
            priority=priority,
            precision=precision,
            target=calls,
            expires_after=timedelta(seconds=expires) if expires else None,
            idempotency_key=f"key-{self.keys}" if is_keyed else None,
            payload=LARGE if is_large else "1",
            retry=RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=backoff)),
        )
        self.began(self.world.submit(submission, conditions))

    @rule(
        which=st.integers(0, 20),
        later=st.sampled_from([0, 20, 100, 160, 200]),
        is_other=st.sampled_from([False] * 7 + [True]),
        conditions=CONDITIONS,
    )
    def submit_again(self, which, later, is_other, conditions) -> None:
        """A client that got no answer submits the same job again, for whatever time it is then."""
        sent = list(self.world.promises.sent.values())
        if sent:
            again = replace(
                sent[which % len(sent)], due_at=self.world.clock.instant + conditions.ahead + timedelta(seconds=later)
            )
            if is_other:
                again = replace(again, payload="2")
            self.began(self.world.submit(again, conditions))

    @rule(which=st.integers(0, 20), conditions=CONDITIONS)
    def cancel(self, which, conditions) -> None:
        ids = list(self.world.promises.jobs)
        if ids:
            self.began(self.world.cancel(ids[which % len(ids)], conditions))

    @rule(conditions=CONDITIONS, skewed=SKEWED)
    def scan(self, conditions, skewed) -> None:
        conditions = replace(conditions, ahead=conditions.ahead + skewed)
        for shard in range(self.world.wheel.scan_shards):
            self.began(self.world.scan(shard, conditions))

    @rule(conditions=CONDITIONS, batch=st.sampled_from([10, 10, 1]))
    def work(self, conditions, batch) -> None:
        self.began(self.world.work(conditions, batch=batch))

    @rule(conditions=CONDITIONS)
    def work_side_by_side(self, conditions) -> None:
        """All jobs of a batch come to their claims before one of them runs."""
        worker = self.world.work(replace(conditions, is_held=True, fault=None))
        if worker:
            for lane in range(len(worker.lanes) - 1):
                worker.go_on(lane, 2)
            self.began(worker)

    @rule(conditions=CONDITIONS)
    def sweep(self, conditions) -> None:
        if self.world.audits:
            self.began(self.world.sweep(conditions))

    @rule(conditions=CONDITIONS)
    def bury(self, conditions) -> None:
        self.began(self.world.bury(conditions))

    @rule(which=st.integers(0, MOST_LIVE), lane=st.integers(0, 9), steps=st.integers(1, 8), fault=st.none() | FAULTS)
    def go_on(self, which, lane, steps, fault) -> None:
        if process := self.live(which):
            process.go_on(lane, steps, fault=fault)

    @rule(which=st.integers(0, MOST_LIVE))
    def finish(self, which) -> None:
        if process := self.live(which):
            process.finish()

    @rule(which=st.integers(0, MOST_LIVE), after=st.booleans())
    def kill(self, which, after) -> None:
        if process := self.live(which):
            process.kill(after=after)

    @rule(which=st.integers(0, 5))
    def land(self, which) -> None:
        self.world.land(which)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds) -> None:
        self.world.time_passes(seconds * SECOND)

    @rule()
    def redeliver(self) -> None:
        self.world.redeliver()

    @rule(which=st.integers(0, 20))
    def keep_a_copy(self, which) -> None:
        """A message may come once more as long as its queue keeps it."""
        messages = list(self.world.ready.messages.values())
        if messages:
            self.copies.append(messages[which % len(messages)])

    @rule(priority=st.sampled_from(Priority), refuses=st.sampled_from([None, None, False, False, True]))
    def refuse(self, priority, refuses) -> None:
        """One queue is throttled, or refuses for good, or takes messages again."""
        if refuses is None:
            self.world.refused.clear()
        else:
            self.world.refused[priority] = refuses

    @invariant()
    def every_promise_is_kept(self) -> None:
        if hasattr(self, "world"):
            self.world.tidy()
            self.world.promises.check_nothing_lost()
            self.world.check()

    def began(self, process: Process | None) -> None:
        """No more than a few are under way at once."""
        if process and len(self.world.live) > MOST_LIVE:
            self.world.live[0].finish()

    def live(self, which) -> Process | None:
        live = self.world.live
        return live[which % len(live)] if live else None

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        try:
            if world.promises.broken:
                return
            world.drain()
            world.promises.check_nothing_lost(is_over=True)
            world.promises.check_dead_letters()
            world.check()
            self.wait_13_days()
        finally:
            world.end()

    def wait_13_days(self) -> None:
        world = self.world
        runs = {key: len(runs) for key, runs in world.promises.runs.items()}
        world.forget(timedelta(days=13))
        for copy in self.copies:
            copy = replace(copy, message_id=f"copy-{copy.message_id}", visible_at=world.clock.instant, receive_count=0)
            world.ready.messages[copy.message_id] = copy
        for _ in range(5):
            while world.work():
                pass
            world.clock.tick(timedelta(seconds=100))
        ledgered = [job.job_id.key for job in world.promises.jobs.values() if job.job_id.is_ledgered]
        for key in ledgered:
            after = len(world.promises.runs.get(key, ()))
            world.promises.expect(runs.get(key, 0) == after, f"ran again after 13 days: {key}")
        world.check()


SCHEDULER_SETTINGS = settings(
    max_examples=1_000,
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
