"""A purged dead letter is gone with the payload that only it needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from functions.api.dead_letters.finder import DeadLetterFilter, DeadLetterFinder
from functions.api.dead_letters.purge import Purger
from functions.api.dead_letters.replay import MOST_DEAD_LETTERS
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Payload
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.lifecycle import Event, State
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON, a_timer
from testkit.observed import DeathError, Watched
from testkit.scheduler import World
from tests.unit.test_execute import a_message
from tests.unit.test_replay import a_dead_letter

ACME = DeadLetterFilter(tenant="acme")
POINTER = "jobs/acme/x"
LARGE = Payload(pointer=POINTER)


class Operator(World):
    """The scheduler on fakes, with somebody who tidies up what failed in it."""

    def __init__(self) -> None:
        super().__init__()
        self.payloads.objects[POINTER] = '"large"'

    def purger(
        self, *, before: Callable[[str], None] = lambda _: None, after: Callable[[str], None] = lambda _: None
    ) -> Purger:
        def watched(port: Any, name: str) -> Any:
            return Watched(port, name, before, after)

        letters: Any = watched(self.letters, "letters")
        return self.build(
            Purger,
            special={
                "dead_letters": letters,
                "finder": self.build(DeadLetterFinder, dead_letters=letters),
                "ledger": watched(self.ledger, "ledger"),
                "payloads": watched(self.payloads, "payloads"),
            },
        )

    def put(self, *, row: LedgerRow | None = None, dead_at: Any = NOON, **job: Any) -> DeadLetter:
        timer = a_timer(attempt=3, **job)
        letter = a_dead_letter(timer, dead_at=dead_at)
        self.letters.put(letter)
        if row is not None:
            self.ledger.rows[timer.job.key] = row
        return letter

    def put_half_replayed(self, **job: Any) -> DeadLetter:
        """Its replay has died before its message was placed."""
        letter = self.put(**job)
        assert letter.timer is not None
        self.letters.mark(letter.letter_id, now=NOON)
        replayed = letter.timer.replayed(due_at=NOON)
        self.ledger.replay(replayed, far=replayed, job_id=letter.job_id, fence=0, owner="bob", now=NOON)
        return self.buried[-1]

    def purge(self, letter: DeadLetter) -> None:
        self.purger().purge(letter.letter_id, caller="ann")

    @property
    def audit(self) -> list[dict[str, object]]:
        return self.events("dead_letters_purged")


@pytest.fixture
def world() -> Operator:
    return Operator()


FAILED = LedgerRow(state=State.FAILED, attempt=3)


@pytest.mark.parametrize("row", [FAILED, LedgerRow(state=State.FAILED, attempt=0), None])
def test_a_dead_letter_is_gone_with_its_payload(world: Operator, row: LedgerRow | None):
    other = world.put()

    world.purge(world.put(row=row, payload=LARGE))

    assert (world.buried, world.payloads.objects) == ([other], {})


def test_purging_again_changes_nothing(world: Operator):
    letter = world.put(payload=LARGE)

    for _ in range(2):
        world.purge(letter)

    assert [line["purged"] for line in world.audit] == [1, 0]


def test_the_payload_of_a_fire_stays_for_the_others(world: Operator):
    fire = Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON)

    world.purge(world.put(row=FAILED, payload=LARGE, occurrence=fire))

    assert (world.buried, set(world.payloads.objects)) == ([], {POINTER})


@pytest.mark.parametrize(
    "row",
    [
        LedgerRow(state=State.RETRYING, attempt=3),
        LedgerRow(state=State.RUNNING, attempt=4),
        LedgerRow(state=State.FAILED, attempt=4),
        LedgerRow(state=State.SCHEDULED),
    ],
    ids=["replayed", "running again", "failed again, with a letter of its own", "submitted again"],
)
def test_the_payload_of_a_job_that_has_gone_on_stays_for_it(world: Operator, row: LedgerRow):
    world.purge(world.put(row=row, payload=LARGE))

    assert (world.buried, set(world.payloads.objects)) == ([], {POINTER})


def test_an_at_least_once_job_has_no_row_that_counts(world: Operator):
    registered = LedgerRow(state=State.SCHEDULED)

    world.purge(world.put(row=registered, payload=LARGE, delivery=Delivery.AT_LEAST_ONCE))

    assert (world.buried, world.payloads.objects) == ([], {})


@pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
def test_the_payload_of_a_job_without_a_row_that_was_replayed_stays_for_it(world: Operator, delivery: Delivery):
    letter = world.put(payload=LARGE, delivery=delivery)
    world.letters.mark(letter.letter_id, now=NOON)

    world.purge(letter)

    assert (world.buried, set(world.payloads.objects)) == ([], {POINTER})


def test_a_replay_that_was_not_finished_is_stopped_with_its_dead_letter(world: Operator):
    letter = world.put_half_replayed(payload=LARGE)
    assert letter.timer is not None

    world.purge(letter)

    assert world.row(letter.timer.job).state is State.CANCELLED
    assert (world.buried, world.payloads.objects) == ([], {})


def test_the_message_of_a_replay_whose_dead_letter_was_purged_is_dropped(world: Operator):
    letter = world.put_half_replayed()
    assert letter.timer is not None
    world.purge(letter)

    assert world.work(a_message(letter.timer.replayed(due_at=NOON))) == []

    assert world.calls == []


def test_the_replay_of_a_fire_is_stopped_too_and_its_payload_stays_for_the_others(world: Operator):
    letter = world.put_half_replayed(
        payload=LARGE, occurrence=Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON)
    )
    assert letter.timer is not None

    world.purge(letter)

    assert world.row(letter.timer.job).state is State.CANCELLED
    assert (world.buried, set(world.payloads.objects)) == ([], {POINTER})


STEPS = ("ledger.cancel", "payloads.delete", "letters.delete")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_whenever_the_purge_of_a_replay_dies_it_can_be_repeated(world: Operator, step: str, when: str):
    letter = world.put_half_replayed(payload=LARGE)
    assert letter.timer is not None

    def die(call: str) -> None:
        if call == step:
            raise DeathError

    with pytest.raises(DeathError):
        world.purger(**{when: die}).purge(letter.letter_id, caller="ann")
    world.purge(letter)

    assert world.row(letter.timer.job).state is State.CANCELLED
    assert (world.buried, world.payloads.objects) == ([], {})


def test_a_replay_that_begins_to_run_while_its_dead_letter_is_purged_goes_on(world: Operator):
    letter = world.put_half_replayed(payload=LARGE)
    assert letter.timer is not None
    timer = letter.timer.replayed(due_at=NOON)

    def meanwhile(call: str) -> None:
        if call == "ledger.cancel":
            world.ledger.claim(timer, owner="worker", lease_until=NOON + SECOND, now=NOON)
            world.ledger.settle(timer, Event.RETRY, fence=1, owner="worker", now=NOON)

    world.purger(before=meanwhile).purge(letter.letter_id, caller="ann")

    assert world.row(timer.job).state is State.RETRYING
    assert (world.buried, set(world.payloads.objects)) == ([], {POINTER})


@pytest.mark.parametrize("is_marked", [True, False], ids=["another job", "never replayed"])
def test_a_job_that_waits_by_another_submission_is_left_alone(world: Operator, is_marked: bool):
    row = LedgerRow(state=State.RETRYING, attempt=4, due_at=NOON, job_id="another" if is_marked else "")
    letter = world.put(row=row, payload=LARGE)
    assert letter.timer is not None
    if is_marked:
        world.letters.mark(letter.letter_id, now=NOON)
    else:
        row = world.ledger.rows[letter.timer.job.key] = replace(row, job_id=letter.job_id)

    world.purge(letter)

    assert (world.row(letter.timer.job), set(world.payloads.objects)) == (row, {POINTER})


def test_a_purge_that_dies_can_be_repeated(world: Operator):
    letter = world.put(row=FAILED, payload=LARGE)

    def die(call: str) -> None:
        if call == "letters.delete":
            raise DeathError

    with pytest.raises(DeathError):
        world.purger(before=die).purge(letter.letter_id, caller="ann")
    world.purge(letter)

    assert (world.buried, world.payloads.objects) == ([], {})


def test_many_are_purged_by_a_filter_and_the_others_stay(world: Operator):
    for number in range(MOST_DEAD_LETTERS + 5):
        world.put(tags=("eu",), dead_at=NOON - number * SECOND)
    other = world.put(tags=("us",))
    wanted = replace(ACME, tag="eu")

    first = world.purger().purge_part(wanted, after="", caller="ann")
    assert first.found.goes_on is not None
    second = world.purger().purge_part(wanted, after=str(first.found.goes_on), caller="ann")

    assert [len(part.found.letters) for part in (first, second)] == [MOST_DEAD_LETTERS, 5]
    assert (second.found.goes_on, world.buried) == (None, [other])
    assert world.journal.counts["dead_letters_purged"] == MOST_DEAD_LETTERS + 5


def test_a_dead_letter_that_could_not_be_purged_is_reported_and_does_not_hold_up_the_others(world: Operator):
    first, last = world.put(), world.put(dead_at=NOON - SECOND)
    calls: list[str] = []

    def fail_once(call: str) -> None:
        calls.append(call)
        if call == "letters.delete" and calls.count(call) == 1:
            raise TimeoutError

    part = world.purger(before=fail_once).purge_part(ACME, after="", caller="ann")

    assert [(failed.letter_id, failed.fault) for failed in part.failed] == [(first.letter_id, "TimeoutError")]
    assert world.buried == [first]
    [line] = world.audit
    assert (line["matched"], line["purged"], line["failed"], line["dead_letters"]) == (2, 1, 1, [str(last.letter_id)])


def test_each_purge_leaves_one_line_with_who_and_what(world: Operator):
    letter = world.put()

    world.purger().purge(letter.letter_id, caller="arn:aws:iam::1:user/ann")
    world.purger().purge_part(replace(ACME, error_class="timeout"), after="", caller="bob")

    assert world.audit == [
        {
            "caller": "arn:aws:iam::1:user/ann",
            "tenant": "acme",
            "matched": 1,
            "purged": 1,
            "failed": 0,
            "dead_letters": [str(letter.letter_id)],
        },
        {
            "caller": "bob",
            "tenant": "acme",
            "filter": {"error_class": "timeout"},
            "matched": 0,
            "purged": 0,
            "failed": 0,
            "dead_letters": [],
        },
    ]


def test_a_dead_letter_that_never_was_is_purged_like_any_other(world: Operator):
    world.purger().purge(DeadLetterId(tenant="acme", dead_at=NOON, identity="x"), caller="ann")

    assert world.audit[0]["purged"] == 0
