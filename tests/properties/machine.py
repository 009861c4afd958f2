"""The whole scheduler under faults: any order of steps, and a fault in any of them."""

from __future__ import annotations

import random
import string
from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Delivery, Precision, Priority
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.stage import conditions
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.tenants import EVERYBODY
from testkit.builders import LOCAL_WHEEL, a_submission
from testkit.world.process import HELD, SMOOTHLY, Conditions, Fate, Fault, Process
from testkit.world.world import World
from tests.properties.shared import CALLBACKS, SHARE, TENANTS, have_flows, with_sense

MOST_LIVE = 4
LARGE = f'"{"".join(random.Random(7).choices(string.ascii_letters, k=10_000))}"'

SECONDS = st.sampled_from([1, 5, 14, 16, 20, 29, 40, 60, 95, 130])
SIDES = st.sampled_from([0, 0, -1, 1]).map(lambda side: LOCAL_WHEEL.skew / 2 * side)
SKEWED = st.sampled_from([*[timedelta(0)] * 8, timedelta(seconds=20), timedelta(seconds=-20)])
FAULTS = st.builds(
    Fault,
    fate=st.sampled_from([fate for fate in Fate if fate is not Fate.HELD]),
    at_call=st.sampled_from([1, 1, 2, 2, 3, 3, 4, 5, 6, 8]),
    stall=st.sampled_from([3, 12, 25, 50]).map(lambda seconds: timedelta(seconds=seconds)),
)
CONDITIONS = st.builds(
    Conditions,
    ahead=SIDES,
    costs=st.sampled_from([0, 1, 20]).map(lambda costs: costs * MILLISECOND),
    fault=st.one_of(st.none(), FAULTS),
    is_held=st.sampled_from([False, False, True]),
    hides=st.booleans(),
)
TARGETS = ["fine", "fine", "fine", "flaky", "broken", "poison"]
SUBMISSIONS = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(TENANTS),
        "delivery": st.sampled_from([Delivery.EXACTLY_ONCE, Delivery.EXACTLY_ONCE, *Delivery]),
        "priority": st.sampled_from(Priority),
        "precision": st.sampled_from(Precision),
        "target": st.sampled_from(TARGETS).map("https://example.com/{}".format),
        "expires_after": st.sampled_from([None, None, None, timedelta(seconds=30)]),
        "run_deadline": st.sampled_from([None, None, None, timedelta(seconds=40)]),
        "payload": st.sampled_from(["1", "1", "1", LARGE]),
        "retry": st.sampled_from([1, 30, 160]).map(
            lambda base: RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=base))
        ),
        "callbacks": CALLBACKS,
        "shared": SHARE,
    }
).map(with_sense)
DUE_IN = st.sampled_from([0, 3, 30, 100, 154, 155, 155.005, 156, 170, 200, 240, 300, 420])


class Machine(RuleBasedStateMachine):
    """What happens to processes, messages and time, whatever they carry."""

    lambdas: ClassVar[dict[type, type]] = {}
    world: World

    def begin_in(self, **options: Any) -> World:
        """A world in which jobs may name flows."""
        self.world = World(lambdas=self.lambdas, **options)
        have_flows(self.world)
        return self.world

    @rule(conditions=CONDITIONS, skewed=SKEWED, seconds=st.sampled_from([0, 20, 60]))
    def scan(self, conditions, skewed, seconds) -> None:
        self.world.time_passes(seconds * SECOND)
        conditions = replace(conditions, ahead=conditions.ahead + skewed)
        for shard in range(self.world.wheel.scan_shards):
            self.began(self.world.scan(shard, conditions))

    @precondition(lambda self: self.world.ready.messages)
    @rule(conditions=CONDITIONS, batch=st.sampled_from([10, 10, 1]), waits=st.booleans())
    def work(self, conditions, batch, waits) -> None:
        if waits:
            self.wait_for_a_message()
        self.began(self.world.work(conditions, batch=batch))

    @precondition(lambda self: self.world.ready.messages)
    @rule(ahead=SIDES, steps=st.integers(1, 4), waits=st.booleans())
    def work_side_by_side(self, ahead, steps, waits) -> None:
        """All jobs of a batch make some calls before one of them goes on."""
        if waits:
            self.wait_for_a_message()
        worker = self.world.work(Conditions(ahead=ahead, is_held=True))
        if worker:
            for lane in range(len(worker.lanes) - 1):
                worker.go_on(lane, steps)
            self.began(worker)

    @precondition(lambda self: self.world.audits)
    @rule(conditions=CONDITIONS)
    def sweep(self, conditions) -> None:
        self.began(self.world.sweep(conditions))

    @precondition(lambda self: self.world.promises.collections.is_used)
    @rule(conditions=CONDITIONS)
    def open_collections(self, conditions) -> None:
        self.began(self.world.open_collections(conditions))

    @precondition(lambda self: self.world.ready.dead)
    @rule(conditions=CONDITIONS)
    def bury(self, conditions) -> None:
        self.began(self.world.bury(conditions))

    @precondition(lambda self: self.world.live)
    @rule(which=st.integers(0, MOST_LIVE), lane=st.integers(0, 9), steps=st.integers(1, 8), fault=st.none() | FAULTS)
    def go_on(self, which, lane, steps, fault) -> None:
        self.live(which).go_on(lane, steps, fault=fault)

    @precondition(lambda self: self.world.live)
    @rule(which=st.integers(0, MOST_LIVE))
    def finish(self, which) -> None:
        self.live(which).finish()

    @precondition(lambda self: self.world.live)
    @rule(which=st.integers(0, MOST_LIVE), after=st.booleans())
    def kill(self, which, after) -> None:
        self.live(which).kill(after=after)

    @precondition(lambda self: self.world.late)
    @rule(which=st.integers(0, 5))
    def land(self, which) -> None:
        self.world.land(which)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds) -> None:
        self.world.time_passes(seconds * SECOND)

    @precondition(lambda self: any(message.receive_count for message in self.world.ready.messages.values()))
    @rule()
    def redeliver(self) -> None:
        self.world.redeliver()

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
            self.world.look()

    def wait_for_a_message(self) -> None:
        instants = [message.visible_at for message in self.world.ready.messages.values()]
        self.world.time_passes(min(instants) - self.world.clock.instant)

    def began(self, process: Process | None) -> None:
        """No more than a few are under way at once."""
        if process and len(self.world.live) > MOST_LIVE:
            self.world.live[0].finish()

    def live(self, which) -> Process:
        return self.world.live[which % len(self.world.live)]

    def submit_it(self, submission, due_in, *, is_keyed, conditions) -> None:
        key = f"key-{len(self.world.promises.sent)}" if is_keyed else None
        due_at = self.world.clock.instant + conditions.ahead + timedelta(seconds=due_in)
        self.began(self.world.submit(a_submission(due_at=due_at, idempotency_key=key, **submission), conditions))

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if not self.world.promises.broken:
                self.world.come_to_an_end()
                self.come_after_the_end()
        finally:
            self.world.end()

    @rule(budget=st.sampled_from([None, 0, 1, 2, 5]))
    def publish(self, budget: int | None) -> None:
        """So many jobs of each class may go out in a tick; none where their ready queues are full."""
        self.world.history.disturb()
        budgets = dict.fromkeys(Priority, budget) if budget is not None else {}
        self.world.shards.publish(conditions.Conditions(published_at=self.world.clock.instant, budgets=budgets))

    @rule(
        tenant=st.sampled_from(TENANTS),
        is_paused=st.booleans(),
        weight=st.sampled_from([1, 1, 3]),
        rate=st.sampled_from([inf, inf, 0.02]),
        subshards=st.sampled_from([1, 1, 2]),
    )
    def plan(self, tenant, is_paused, weight, rate, subshards) -> None:
        """A tenant is paused or resumed, gets another share, a cap, or is spread over more shards or fewer."""
        self.world.history.disturb()
        plan = replace(
            self.world.plans.of(tenant),
            status=TenantStatus.PAUSED if is_paused else TenantStatus.ACTIVE,
            weight=weight,
            execution_rate=rate,
            subshards=subshards,
        )
        self.world.plans.put(tenant, plan, now=self.world.clock.instant)

    @rule(tenant=st.sampled_from(TENANTS), limit=st.sampled_from([inf, 1, 1, 2]))
    def cap(self, tenant, limit) -> None:
        """So many jobs of a tenant may be called at the same time."""
        world = self.world
        world.history.note_turn(world.clock.instant, "plans", f"{tenant} may have {limit:g} calls")
        world.promises.at_once.capped(tenant, limit, moment=world.history.moment)
        world.plans.put(tenant, replace(world.plans.of(tenant), max_concurrency=limit), now=world.clock.instant)

    @rule(is_paused=st.sampled_from([False, False, True]))
    def pause(self, is_paused: bool) -> None:
        """Everybody is paused, or nobody that is not paused alone."""
        self.world.history.disturb()
        plan = TenantPlan(status=TenantStatus.PAUSED if is_paused else TenantStatus.ACTIVE)
        self.world.plans.put(EVERYBODY, plan, now=self.world.clock.instant)

    @rule(write_shards=st.sampled_from([1, 2]))
    def reshard(self, write_shards: int) -> None:
        """The stage is deployed with more shards that are written, or fewer."""
        self.world.history.disturb()
        self.world.deploy(write_shards=write_shards)

    def come_after_the_end(self) -> None:
        """What still has to hold when all is done."""


class Scheduler(Machine):
    """Jobs."""

    @initialize(
        is_new=st.sampled_from([False] * 9 + [True]),
        audits=st.booleans(),
        seconds=st.integers(0, 59),
        first=st.lists(st.tuples(SUBMISSIONS, DUE_IN), min_size=1, max_size=4),
    )
    def begin(self, is_new, audits, seconds, first) -> None:
        self.begin_in(is_new=is_new, audits=audits)
        self.world.clock.tick(seconds * SECOND)
        self.copies: list = []
        for submission, due_in in first:
            self.submit_it(submission, due_in, is_keyed=False, conditions=SMOOTHLY)

    @rule(submission=SUBMISSIONS, due_in=DUE_IN, is_keyed=st.booleans(), conditions=CONDITIONS, skewed=SKEWED)
    def submit(self, submission, due_in, is_keyed, conditions, skewed) -> None:
        conditions = replace(conditions, ahead=conditions.ahead + skewed)
        self.submit_it(submission, due_in, is_keyed=is_keyed, conditions=conditions)

    @rule(
        submission=SUBMISSIONS,
        shared=SHARE.filter(bool),
        count=st.integers(2, 5),
        stops=st.integers(0, 3),
        conditions=CONDITIONS,
    )
    def submit_together(self, submission, shared, count, stops, conditions) -> None:
        """Jobs that share a flow or a collection, and workers some of which are held in their calls."""
        for number in range(count):
            asked = {name: value for name, value in submission.items() if name not in ("flows", "collect")}
            last = conditions if number == count - 1 else SMOOTHLY
            self.submit_it(with_sense({**asked, "shared": shared}), 0, is_keyed=False, conditions=last)
        for _ in range(stops):
            worker = self.world.work(HELD, batch=1)
            if worker and not worker.is_over:
                worker.go_to("target.end", or_to_its_end=True)
                self.began(worker)

    @precondition(lambda self: self.world.promises.sent)
    @rule(
        which=st.integers(0, 20),
        later=st.sampled_from([0, 20, 100, 160, 200]),
        is_other=st.sampled_from([False] * 7 + [True]),
        conditions=CONDITIONS,
    )
    def submit_again(self, which, later, is_other, conditions) -> None:
        """A client that got no answer submits the same job again, for whatever time it is then."""
        sent = list(self.world.promises.sent.values())
        due_at = self.world.clock.instant + conditions.ahead + timedelta(seconds=later)
        again = replace(sent[-1 - which % len(sent)], due_at=due_at)
        self.began(self.world.submit(replace(again, payload="2") if is_other else again, conditions))

    @precondition(lambda self: self.world.promises.waiting())
    @rule(which=st.integers(0, 20), conditions=CONDITIONS)
    def cancel(self, which, conditions) -> None:
        ids = self.world.promises.waiting()
        self.began(self.world.cancel(ids[which % len(ids)], conditions))

    @precondition(lambda self: self.world.ready.messages)
    @rule(which=st.integers(0, 20))
    def keep_a_copy(self, which) -> None:
        """A message may come once more as long as its queue keeps it."""
        messages = list(self.world.ready.messages.values())
        self.copies.append(messages[which % len(messages)])

    def come_after_the_end(self) -> None:
        world = self.world
        runs = {key: len(runs) for key, runs in world.promises.runs.items()}
        world.forget(timedelta(days=13))
        for copy in self.copies:
            copy_id = f"copy-{copy.message_id}"
            world.ready.messages[copy_id] = replace(
                copy, message_id=copy_id, visible_at=world.clock.instant, receive_count=0
            )
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
    max_examples=800,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    print_blob=False,
    phases=[Phase.generate],  # a history is read by its steps: shrinking takes minutes and seldom helps
)
