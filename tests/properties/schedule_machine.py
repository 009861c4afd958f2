"""The schedules under faults: created, changed and swept while their chains go on, and while nothing runs at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery, Payload, Priority
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate, Misfire, Schedule
from functions.domain.schedules.state import Status
from testkit.builders import a_schedule, every
from testkit.world.process import SMOOTHLY
from tests.properties.machine import (
    CONDITIONS,
    DUE_IN,
    LARGE,
    SCHEDULER_SETTINGS,
    SKEWED,
    SUBMISSIONS,
    Machine,
)

OVERLAPS = st.sampled_from([None, None, Overlap.ALLOW, Overlap.FORBID, Overlap.REPLACE])
"""Of a run that is asked for: one that waits where others replace each other may wait for ever."""

KEYS = st.sampled_from(["acme#nightly", "umbrella#hourly"])
RULES = st.one_of(
    st.builds(
        lambda seconds, phase: every(seconds=seconds, phase=phase * SECOND),
        st.sampled_from([15, 20, 40, 60, 100, 150, 154, 155, 156, 160, 200, 300, 400]),
        st.sampled_from([0, 0, 7]),
    ),
    st.sampled_from(["* * * * *", "*/2 * * * *", "*/5 * * * *"]).map(CronRule),
    st.sampled_from([15, 60, 150, 200, 400]).map(lambda seconds: every(seconds=seconds, from_end=True)),
)
PARTS = {
    "rule": RULES,
    "overlap": st.sampled_from(Overlap),
    "misfire": st.sampled_from(Misfire),
    "max_lateness": st.sampled_from([None, None, None, timedelta(seconds=30), timedelta(minutes=5)]),
    "max_runs": st.sampled_from([None, None, None, 1, 2, 5]),
    "pause_after_failures": st.sampled_from([None, None, None, 1, 2]),
    "history": st.sampled_from([10, 10, 3, 0]),
    "success_history": st.sampled_from([None, None, None, 1]),
    "failure_history": st.sampled_from([None, None, None, 2]),
}
JOBS = st.builds(
    JobTemplate,
    target=st.sampled_from(["fine", "fine", "flaky", "flaky", "broken", "poison"]).map("https://example.com/{}".format),
    delivery=st.sampled_from([Delivery.EXACTLY_ONCE] * 5 + [*Delivery]),
    priority=st.sampled_from([Priority.NORMAL, *Priority]),
    retry=st.sampled_from([1, 30, 160]).map(
        lambda base: RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(seconds=base))
    ),
    timeout=st.sampled_from([10, 10, 30]).map(lambda seconds: seconds * SECOND),
    expires_after=st.sampled_from([None, None, None, timedelta(seconds=30)]),
)
DEFINITIONS = st.fixed_dictionaries({**PARTS, "job": JOBS})
EDITS = st.one_of(*(values.map(lambda value, name=name: {name: value}) for name, values in PARTS.items()))
"""Of one part."""


class Schedules(Machine):
    """Schedules of two tenants, and a few jobs that share their queues."""

    @initialize(
        is_new=st.sampled_from([False] * 9 + [True]),
        audits=st.sampled_from([False, False, True]),
        seconds=st.integers(0, 59),
        jobs=st.lists(st.tuples(SUBMISSIONS, DUE_IN), max_size=2),
        key=KEYS,
        first=DEFINITIONS,
    )
    def begin(self, is_new, audits, seconds, jobs, key, first) -> None:
        self.begin_in(is_new=is_new, audits=audits)
        self.world.clock.tick(seconds * SECOND)
        self.number = 0
        self.asked: list[Schedule] = []
        for submission, due_in in jobs:
            self.submit_it(submission, due_in, is_keyed=False, conditions=SMOOTHLY)
        self.put_it(key, first, SMOOTHLY)

    @rule(key=KEYS, definition=DEFINITIONS, conditions=CONDITIONS, skewed=SKEWED)
    def put(self, key, definition, conditions, skewed) -> None:
        self.put_it(key, definition, replace(conditions, ahead=conditions.ahead + skewed))

    @rule(first=DEFINITIONS, second=DEFINITIONS, conditions=CONDITIONS, skewed=SKEWED)
    def put_together(self, first, second, conditions, skewed) -> None:
        """Of one tenant: they are written in one request, unless somebody is faster."""
        keys = ("acme#nightly", "acme#weekly")
        schedules = [self.asked_for(key, each) for key, each in zip(keys, (first, second), strict=True)]
        conditions = replace(conditions, ahead=conditions.ahead + skewed)
        self.began(self.world.put_schedules(schedules, conditions))

    @rule(which=st.integers(0, 20), conditions=CONDITIONS)
    def put_again(self, which, conditions) -> None:
        """A client that got no answer, or has not heard of what others did, puts what it has put before."""
        if self.asked:
            self.began(self.world.put_schedule(self.asked[-1 - which % len(self.asked)], conditions))

    @precondition(lambda self: self.existing())
    @rule(which=st.integers(0, 1), edit=EDITS, conditions=CONDITIONS)
    def patch(self, which, edit, conditions) -> None:
        key = self.existing()[-1 - which % len(self.existing())]
        self.began(self.world.patch(key, lambda schedule: with_sense(schedule, **edit), conditions))

    @precondition(lambda self: self.existing())
    @rule(which=st.integers(0, 1), deletes=st.sampled_from([False, False, True]), conditions=CONDITIONS)
    def stop(self, which, deletes, conditions) -> None:
        key = self.existing()[-1 - which % len(self.existing())]
        self.began((self.world.delete if deletes else self.world.pause)(key, conditions))

    @precondition(lambda self: self.existing(Status.PAUSED))
    @rule(conditions=CONDITIONS)
    def resume(self, conditions) -> None:
        self.began(self.world.resume(self.existing(Status.PAUSED)[0], conditions))

    @precondition(lambda self: self.existing())
    @rule(which=st.integers(0, 1), conditions=CONDITIONS, is_again=st.booleans(), overlap=OVERLAPS)
    def trigger(self, which, conditions, is_again, overlap) -> None:
        key = self.existing()[-1 - which % len(self.existing())]
        self.number += not is_again
        self.began(self.world.trigger(key, f"t{self.number}", conditions, overlap=overlap))

    @rule(conditions=CONDITIONS, skewed=SKEWED)
    def heal(self, conditions, skewed) -> None:
        self.began(self.world.heal(replace(conditions, ahead=conditions.ahead + skewed)))

    @rule(minutes=st.sampled_from([1, 2, 3]))
    def live_on(self, minutes) -> None:
        """All goes well for a while, but for what is under way."""
        self.world.live_on(timedelta(minutes=minutes))

    @rule(minutes=st.sampled_from([1, 2, 3, 3, 5, 5, 8, 20, 60]))
    def stand_still(self, minutes) -> None:
        """Nothing runs at all."""
        self.world.time_passes(timedelta(minutes=minutes))

    @rule(lags=st.booleans())
    def lag(self, lags) -> None:
        """Reads that need not be consistent show what was before the last write."""
        self.world.schedules.lags = lags

    def existing(self, *statuses) -> list[str]:
        return self.world.promises.schedules.truth.keys(*(statuses or (Status.ACTIVE, Status.PAUSED)))

    def put_it(self, key, definition, conditions) -> None:
        self.began(self.world.put_schedule(self.asked_for(key, definition), conditions))

    def asked_for(self, key, definition) -> Schedule:
        self.number += 1
        tenant, _, schedule_id = key.partition("#")
        payload = LARGE if self.number % 7 == 0 else str(self.number)
        job = replace(definition["job"], payload=Payload(text=payload))
        schedule = with_sense(a_schedule(tenant=tenant, schedule_id=schedule_id), **{**definition, "job": job})
        self.asked.append(schedule)
        return schedule


def with_sense(schedule: Schedule, **parts) -> Schedule:
    """What goes only with exactly_once is left out where it does not; what kills workers does so seldom."""
    job = parts.get("job", schedule.job)
    if job.delivery is not Delivery.EXACTLY_ONCE:
        parts |= {
            "overlap": Overlap.ALLOW,
            "pause_after_failures": None,
            "success_history": None,
            "failure_history": None,
        }
        rule = parts.get("rule", schedule.rule)
        parts["rule"] = replace(rule, from_end=False) if getattr(rule, "from_end", False) else rule
    if "poison" in job.target:
        parts["rule"] = every(seconds=400)
    return replace(schedule, **parts)


SCHEDULES_SETTINGS = settings(SCHEDULER_SETTINGS, max_examples=200)
