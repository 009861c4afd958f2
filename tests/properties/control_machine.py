"""Jobs whose targets answer 202, whose owners change them one by one or many at once, and whose dead letters
are replayed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from functions.api.operations.manager import Asked
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.operations.operation import OperationKind, Shift
from testkit.world.process import SMOOTHLY, Conditions
from tests.properties.machine import (
    CONDITIONS,
    DUE_IN,
    FAULTS,
    SCHEDULER_SETTINGS,
    SIDES,
    SUBMISSIONS,
    Scheduler,
)

KINDS = st.sampled_from(["lasting", "lasting", "lasting", "fine", "flaky", "broken", "poison"])
LEASES = st.sampled_from([1, 20, 60, 200]).map(lambda seconds: seconds * SECOND)
TAGS = st.sampled_from([(), ("urgent",), ("urgent",), ("late", "urgent")])
DUE_FAR_IN = DUE_IN | st.sampled_from([200, 250, 300, 350, 420])
CHANGED = st.tuples(SUBMISSIONS, KINDS, TAGS).map(
    lambda drawn: {**drawn[0], "target": f"https://example.com/{drawn[1]}", "tags": drawn[2]}
)
REACH = timedelta(minutes=8)
"""Of an operation: further than any job is due, and few buckets to read."""

WRITES = [
    ("ledger.cancel", "ledger.move", "ready.send", "exports.put"),
    ("timers.delete", "operations.save"),
    ("operations.save", "operations.finish"),
]
TURNS = st.tuples(SIDES, st.sampled_from(WRITES), st.integers(1, 8), st.none() | FAULTS | FAULTS, st.booleans())
"""A clock; a turn goes up to a write of such a kind, so many calls further, perhaps with a fault, and perhaps to its end."""

OPERATIONS = st.fixed_dictionaries(
    {
        "action": st.sampled_from(
            [
                OperationKind.CANCEL,
                OperationKind.RESCHEDULE,
                OperationKind.RESCHEDULE,
                OperationKind.RUN_NOW,
                OperationKind.RUN_NOW,
                OperationKind.EXPORT,
            ]
        ),
        "which": st.integers(0, 20),
        "tag": st.sampled_from(["", "urgent"]),
        "later": st.sampled_from([0, 30, 200, 400]).map(lambda seconds: seconds * SECOND),
        "rate": st.sampled_from([1.0, 50.0]),
        "dry_run": st.sampled_from([False] * 7 + [True]),
    }
)


class Controlled(Scheduler):
    """Every step of the machine of jobs, and those of targets, owners and operators."""

    @initialize(
        audits=st.booleans(),
        seconds=st.integers(0, 59),
        first=st.lists(st.tuples(CHANGED, DUE_FAR_IN), min_size=2, max_size=5),
        asked=st.none() | OPERATIONS,
    )
    def begin(self, audits, seconds, first, asked) -> None:
        self.begin_in(audits=audits)
        self.world.clock.tick(seconds * SECOND)
        self.copies: list = []
        self.operations = 0
        for submission, due_in in first:
            self.submit_it(submission, due_in, is_keyed=False, conditions=SMOOTHLY)
        if asked is not None:
            self.ask_for(**asked, conditions=SMOOTHLY)

    @rule(submission=CHANGED, due_in=DUE_FAR_IN, conditions=CONDITIONS)
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

    @rule(asked=OPERATIONS, conditions=CONDITIONS, turn=st.none() | TURNS)
    def ask_for_an_operation(self, asked, conditions, turn) -> None:
        self.ask_for(**asked, conditions=conditions)
        if turn is not None:
            self.operate(turn)

    @precondition(lambda self: self.world.promises.operations.open())
    @rule(turn=TURNS)
    def take_a_turn(self, turn) -> None:
        self.operate(turn)

    def ask_for(self, *, action, which, tag, later, rate, dry_run, conditions) -> None:
        """On the jobs of a tenant that has some. Each reschedule has a shift of its own, by which its moves are known."""
        tenants = [parse_job_id(job_id).tenant for job_id in self.world.promises.waiting()] or ["acme"]
        now = self.world.clock.instant
        self.operations += 1
        asked = Asked(
            tenant=tenants[which % len(tenants)],
            action=action,
            due_from=now - REACH / 4,
            due_until=now + REACH,
            tag=tag,
            shift=Shift(by=later + self.operations * MILLISECOND) if action is OperationKind.RESCHEDULE else None,
            rate=rate,
            dry_run=dry_run,
        )
        self.began(self.world.ask_for(asked, conditions))

    def operate(self, turn) -> None:
        ahead, writes, steps, fault, goes_on = turn
        operator = self.world.operate(Conditions(ahead=ahead, is_held=True))
        operator.go_to(*writes, or_to_its_end=True)
        operator.go_on(0, steps, fault=fault)
        if goes_on:
            operator.finish()
        self.began(operator)

    @precondition(lambda self: self.world.promises.operations.open())
    @rule(which=st.integers(0, 9), conditions=CONDITIONS)
    def stop(self, which, conditions) -> None:
        operations = self.world.promises.operations.open()
        operation = operations[which % len(operations)]
        self.began(self.world.stop(operation.tenant, operation.operation_id, conditions))

    @precondition(lambda self: self.world.dead_letters.letters)
    @rule(which=st.integers(0, 9), conditions=CONDITIONS)
    def replay(self, which, conditions) -> None:
        letters = list(self.world.dead_letters.letters.values())
        self.began(self.world.replay(letters[which % len(letters)].letter_id, conditions))

    def running(self, which):
        runs = self.world.promises.running()
        return runs[which % len(runs)]


CONTROLLED_SETTINGS = settings(SCHEDULER_SETTINGS, max_examples=400)
