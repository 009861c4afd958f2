"""Jobs whose targets go on by themselves, whose owners change them, and whose dead letters are replayed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from functions.domain.instants import SECOND
from tests.properties.machine import (
    CONDITIONS,
    DUE_IN,
    SCHEDULER_SETTINGS,
    SMALL_WHEEL,
    SUBMISSIONS,
    Scheduler,
)
from tests.world.process import SMOOTHLY
from tests.world.world import World

KINDS = st.sampled_from(["lasting", "lasting", "lasting", "fine", "flaky", "broken", "poison"])
LEASES = st.sampled_from([1, 20, 60, 200]).map(lambda seconds: seconds * SECOND)
CHANGED = st.tuples(SUBMISSIONS, KINDS).map(lambda drawn: {**drawn[0], "target": f"https://example.com/{drawn[1]}"})


class Controlled(Scheduler):
    """Every step of the machine of jobs, and those of targets, owners and operators."""

    @initialize(
        audits=st.booleans(),
        seconds=st.integers(0, 59),
        first=st.lists(st.tuples(CHANGED, DUE_IN), min_size=2, max_size=5),
    )
    def begin(self, audits, seconds, first) -> None:
        self.world = World(wheel=SMALL_WHEEL, audits=audits, lambdas=self.lambdas)
        self.world.clock.tick(seconds * SECOND)
        self.copies: list = []
        for submission, due_in in first:
            self.submit_it(submission, due_in, is_keyed=False, conditions=SMOOTHLY)

    @rule(submission=CHANGED, due_in=DUE_IN, conditions=CONDITIONS)
    def submit_another(self, submission, due_in, conditions) -> None:
        self.submit_it(submission, due_in, is_keyed=False, conditions=conditions)

    @precondition(lambda self: self.world.promises.running())
    @rule(which=st.integers(0, 9), lease=LEASES, conditions=CONDITIONS)
    def heartbeat(self, which, lease, conditions) -> None:
        self.began(self.world.heartbeat(self.running(which), lease, conditions))

    @precondition(lambda self: self.world.promises.running())
    @rule(which=st.integers(0, 9), conditions=CONDITIONS)
    def complete(self, which, conditions) -> None:
        self.began(self.world.complete(self.running(which), conditions))

    @precondition(lambda self: self.world.promises.running())
    @rule(which=st.integers(0, 9), is_permanent=st.booleans(), conditions=CONDITIONS)
    def fail(self, which, is_permanent, conditions) -> None:
        self.began(self.world.fail(self.running(which), conditions, is_permanent=is_permanent))

    @precondition(lambda self: self.world.promises.waiting())
    @rule(which=st.integers(0, 20), conditions=CONDITIONS)
    def run_now(self, which, conditions) -> None:
        ids = self.world.promises.waiting()
        self.began(self.world.run_now(ids[which % len(ids)], conditions))

    @precondition(lambda self: self.world.promises.waiting())
    @rule(which=st.integers(0, 20), due_in=st.sampled_from([200, 250, 300, 400]), conditions=CONDITIONS)
    def reschedule(self, which, due_in, conditions) -> None:
        ids = self.world.promises.waiting()
        job_id = ids[which % len(ids)]
        submission = self.world.promises.jobs[job_id].submission
        due_at = self.world.clock.instant + timedelta(seconds=due_in)
        self.began(self.world.reschedule(job_id, replace(submission, due_at=due_at), conditions))

    @precondition(lambda self: self.world.dead_letters.letters)
    @rule(which=st.integers(0, 9), conditions=CONDITIONS)
    def replay(self, which, conditions) -> None:
        letters = list(self.world.dead_letters.letters.values())
        self.began(self.world.replay(letters[which % len(letters)].letter_id, conditions))

    def running(self, which):
        runs = self.world.promises.running()
        return runs[which % len(runs)]


CONTROLLED_SETTINGS = settings(SCHEDULER_SETTINGS, max_examples=400)
