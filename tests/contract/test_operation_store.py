"""What every store of operations keeps: what was asked and how it stands, one turn at a time, and which are open."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import Undecodable
from functions.domain.instants import HOUR, MILLISECOND
from functions.domain.operations.operation import (
    OPERATION_LIFE,
    Example,
    JobFilter,
    Operation,
    OperationKind,
    OperationState,
    Progress,
    Shift,
    WalkPosition,
)
from functions.ports.operations import OperationStore
from testkit.builders import LOCAL_WHEEL, NOON
from tests.contract.conftest import ON_DYNAMODB, OperationSubject

SKEW = LOCAL_WHEEL.skew
LEASE = timedelta(minutes=2)
LATER = NOON + timedelta(minutes=1)


def test_an_operation_that_nobody_asked_for_is_not_there(operations: OperationStore):
    assert operations.get("acme", "o1") is None
    assert operations.stop("acme", "o1") is None
    assert take(operations, an_operation()) is None
    assert operations.open(limit=10) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"action": OperationKind.CANCEL, "dry_run": True},
        {"action": OperationKind.RESCHEDULE, "shift": Shift(by=timedelta(hours=-3)), "fingerprint": "f"},
        {"action": OperationKind.RESCHEDULE, "shift": Shift(to=NOON + HOUR, spread=timedelta(minutes=7))},
        {"action": OperationKind.RUN_NOW, "rate": 0.5},
        {
            "action": OperationKind.EXPORT,
            "wanted": JobFilter(
                tenant="acme",
                due_from=NOON - HOUR,
                due_until=NOON + HOUR,
                target="https://example.com",
                schedule_id="nightly",
                tag="é\U0001f600",
            ),
        },
    ],
    ids=lambda asked: asked["action"].value,
)
def test_an_operation_is_kept_as_it_was_asked_for(operations: OperationStore, asked: dict[str, Any]):
    operation = an_operation(**asked)

    assert operations.create(operation) is None
    assert operations.get("acme", "o1") == operation


def test_instants_are_kept_to_the_millisecond_and_never_earlier(operations: OperationStore):
    operations.create(an_operation(created_at=NOON + timedelta(microseconds=1)))

    assert operations.get("acme", "o1") == an_operation(created_at=NOON + MILLISECOND)


def test_an_operation_is_created_once_and_the_second_meets_the_first(operations: OperationStore):
    first, second = (
        an_operation(caller="ann"),
        an_operation(caller="bob", action=OperationKind.EXPORT, created_at=LATER),
    )

    assert operations.create(first) is None
    assert operations.create(second) == first
    assert operations.get("acme", "o1") == first
    assert operations.open(limit=10) == [("acme", "o1")]


def test_one_that_is_over_is_not_opened_again(operations: OperationStore):
    ended = a_finished(operations, an_operation())

    assert operations.create(an_operation()) == ended
    assert operations.open(limit=10) == []


def test_tenants_have_operations_of_their_own(operations: OperationStore):
    mine, theirs = an_operation(), an_operation(tenant="globex", action=OperationKind.EXPORT)
    operations.create(mine)
    operations.create(theirs)

    operations.stop("globex", "o1")

    assert operations.get("acme", "o1") == mine
    assert operations.get("globex", "o1") == replace(theirs, stop_requested=True)
    assert operations.get("initech", "o1") is None


def test_a_tenants_operations_are_listed_page_by_page_in_the_order_of_their_ids(operations: OperationStore):
    listed = [an_operation(operation_id=name) for name in ("o1", "o2", "o3", "oz")]
    for operation in (listed[2], listed[0], listed[3], listed[1], an_operation(tenant="globex")):
        operations.create(operation)

    assert operations.page("acme", after="", limit=2) == (listed[:2], True)
    assert operations.page("acme", after="o2", limit=2) == (listed[2:], False)
    assert operations.page("acme", after="o1a", limit=9) == (listed[1:], False)
    assert operations.page("acme", after="oz", limit=9) == ([], False)
    assert operations.page("initech", after="", limit=9) == ([], False)


def test_open_operations_of_all_tenants_are_reported_oldest_first(operations: OperationStore):
    for tenant, operation_id, age in (("acme", "o1", 2), ("globex", "o9", 3), ("acme", "o0", 0), ("a", "o5", 2)):
        operations.create(an_operation(tenant=tenant, operation_id=operation_id, created_at=NOON - age * HOUR))

    assert operations.open(limit=10) == [("globex", "o9"), ("a", "o5"), ("acme", "o1"), ("acme", "o0")]
    assert operations.open(limit=2) == [("globex", "o9"), ("a", "o5")]


def test_whoever_takes_an_operation_has_it_and_it_is_running(operations: OperationStore):
    operation = a_created(operations)

    taken = take(operations, operation, owner="me")

    running = OperationState.RUNNING
    assert taken == replace(operation, state=running, owner="me", lease_until=NOON + LEASE)
    assert operations.get("acme", "o1") == taken
    assert operations.open(limit=10) == [("acme", "o1")]


def test_an_operation_that_another_has_is_not_taken(operations: OperationStore):
    operation = a_created(operations)
    taken = take(operations, operation, owner="me")

    assert take(operations, operation, owner="you", now=NOON + LEASE + SKEW) is None
    assert operations.get("acme", "o1") == taken


def test_an_operation_whose_lease_is_over_by_more_than_skew_is_taken(operations: OperationStore):
    operation = a_created(operations)
    take(operations, operation, owner="me")
    now = NOON + LEASE + SKEW + MILLISECOND

    taken = take(operations, operation, owner="you", now=now)

    assert taken is not None
    assert (taken.owner, taken.lease_until) == ("you", now + LEASE)


def test_a_take_whose_answer_was_lost_recognises_itself(operations: OperationStore):
    operation = a_created(operations)

    assert take(operations, operation, owner="me") == take(operations, operation, owner="me") is not None


def test_an_operation_that_was_given_back_is_taken_at_once_where_it_stands(operations: OperationStore):
    mine = a_taken(operations, owner="me")
    operations.save(replace(mine, progress=SOME), lease_until=None)

    taken = take(operations, mine, owner="you", now=LATER)

    assert taken == replace(mine, progress=SOME, owner="you", lease_until=LATER + LEASE)


def test_what_is_over_is_not_taken(operations: OperationStore):
    operation = a_finished(operations, an_operation())

    assert take(operations, operation, owner="me", now=NOON + 99 * HOUR) is None
    assert take(operations, operation, owner="you", now=NOON + 99 * HOUR) is None


def test_a_step_is_kept_and_prolongs_the_lease(operations: OperationStore):
    mine = a_taken(operations)

    saved = operations.save(replace(mine, progress=SOME), lease_until=LATER + LEASE)

    assert saved == replace(mine, progress=SOME, lease_until=LATER + LEASE)
    assert operations.get("acme", "o1") == saved


def test_a_step_says_that_somebody_has_asked_to_stop(operations: OperationStore):
    mine = a_taken(operations)
    operations.stop("acme", "o1")

    saved = operations.save(replace(mine, progress=SOME), lease_until=LATER + LEASE)

    assert saved == replace(mine, progress=SOME, lease_until=LATER + LEASE, stop_requested=True)


@pytest.mark.parametrize("lease_until", [NOON + 9 * HOUR, None])
def test_a_step_of_an_operation_that_another_has_taken_is_refused(
    operations: OperationStore, lease_until: datetime | None
):
    mine = a_taken(operations, owner="me")
    theirs = take(operations, mine, owner="you", now=NOON + HOUR)

    assert operations.save(replace(mine, progress=SOME), lease_until=lease_until) is None
    assert not operations.finish(ended(mine))
    assert operations.get("acme", "o1") == theirs


@pytest.mark.parametrize("lease_until", [LATER + LEASE, None])
def test_a_step_whose_answer_was_lost_recognises_itself(operations: OperationStore, lease_until: datetime | None):
    stepped = replace(a_taken(operations), progress=SOME)

    first = operations.save(stepped, lease_until=lease_until)

    assert first is not None
    assert operations.save(stepped, lease_until=lease_until) == first


def test_a_step_that_lands_late_takes_nothing_back(operations: OperationStore):
    mine = a_taken(operations)
    saved = operations.save(replace(mine, progress=SOME), lease_until=LATER + LEASE)

    assert operations.save(mine, lease_until=LATER + LEASE - MILLISECOND) is None
    assert operations.get("acme", "o1") == saved


def test_a_step_that_lands_when_the_operation_was_given_back_is_refused(operations: OperationStore):
    mine = a_taken(operations)
    given_back = operations.save(replace(mine, progress=SOME), lease_until=None)

    assert operations.save(mine, lease_until=LATER + LEASE) is None
    assert operations.get("acme", "o1") == given_back


@pytest.mark.parametrize("state", [OperationState.DONE, OperationState.STOPPED, OperationState.FAILED])
def test_an_operation_that_has_ended_is_reported_so_and_is_no_longer_open(
    operations: OperationStore, state: OperationState
):
    other = a_created(operations, operation_id="o2")
    last = ended(a_taken(operations), state)

    assert operations.finish(last)
    assert operations.get("acme", "o1") == replace(last, lease_until=None)
    assert operations.open(limit=10) == [("acme", other.operation_id)]


def test_an_end_whose_answer_was_lost_recognises_itself(operations: OperationStore):
    last = ended(a_taken(operations))

    assert [operations.finish(last) for _ in range(2)] == [True, True]
    assert operations.open(limit=10) == []


def test_what_has_ended_ends_in_no_other_way_and_makes_no_step(operations: OperationStore):
    mine = a_taken(operations)
    operations.finish(ended(mine))

    assert not operations.finish(ended(mine, OperationState.FAILED))
    assert operations.save(mine, lease_until=LATER + LEASE) is None
    assert operations.save(mine, lease_until=None) is None
    assert operations.get("acme", "o1") == replace(ended(mine), lease_until=None)


def test_an_operation_that_was_given_back_may_still_be_ended_by_its_last_owner(operations: OperationStore):
    mine = a_taken(operations)
    operations.save(mine, lease_until=None)

    assert operations.finish(ended(mine))


def test_whoever_waits_and_whoever_runs_is_asked_to_stop(operations: OperationStore):
    waiting, running = a_created(operations, operation_id="o2"), a_taken(operations)

    for operation in (waiting, running):
        asked = replace(operation, stop_requested=True)
        assert operations.stop("acme", operation.operation_id) == asked
        assert operations.stop("acme", operation.operation_id) == asked
        assert operations.get("acme", operation.operation_id) == asked
    assert len(operations.open(limit=10)) == 2


def test_that_it_was_asked_to_stop_is_reported_to_whoever_takes_it_and_stays(operations: OperationStore):
    operation = a_created(operations)
    operations.stop("acme", "o1")

    taken = take(operations, operation)

    assert taken is not None
    assert taken.stop_requested
    assert operations.finish(ended(replace(taken, stop_requested=False), OperationState.STOPPED))
    stopped = operations.get("acme", "o1")
    assert stopped is not None
    assert (stopped.state, stopped.stop_requested) == (OperationState.STOPPED, True)


def test_what_is_over_is_not_asked_to_stop(operations: OperationStore):
    last = a_finished(operations, an_operation())

    assert operations.stop("acme", "o1") == last
    assert operations.get("acme", "o1") == last


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_an_operation_is_kept_for_60_days_while_it_waits_and_for_30_after_its_end(operation_subject: OperationSubject):
    operations, expires_at = operation_subject.operations, operation_subject.expires_at
    assert expires_at is not None
    operation = a_created(operations)
    assert expires_at(operation) == NOON + timedelta(days=60)

    taken = take(operations, operation, now=NOON + 20 * HOUR)
    assert taken is not None
    assert expires_at(operation) == NOON + 20 * HOUR + timedelta(days=60)

    operations.finish(replace(ended(taken), ended_at=NOON + 21 * HOUR))
    assert expires_at(operation) == NOON + 21 * HOUR + OPERATION_LIFE == NOON + 21 * HOUR + timedelta(days=30)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_what_a_newer_version_has_written_is_an_error(operation_subject: OperationSubject):
    operations = operation_subject.operations
    assert operation_subject.spoil is not None
    operation_subject.spoil(a_created(operations))

    for call in (lambda: operations.get("acme", "o1"), lambda: operations.page("acme", after="", limit=9)):
        with pytest.raises(Undecodable, match="not an operation"):
            call()


SOME = Progress(
    place=WalkPosition(20_000, 2, 1, 1_728_000_060, "2#acme#1728000061000#é"),
    share=0.25,
    examined=900,
    matched=80,
    done=70,
    refused={"too_late": 9, "moved": 1},
    examples=(Example("j1~a", "too_late", "it is due"), Example("j1~b")),
    due_at=NOON + MILLISECOND,
    parts=2,
    failures=1,
    error="é",
)


def an_operation(*, tenant: str = "acme", operation_id: str = "o1", **overrides: Any) -> Operation:
    fields: dict[str, Any] = {
        "action": OperationKind.CANCEL,
        "wanted": JobFilter(tenant=tenant, due_from=NOON),
        "caller": "ann",
        "created_at": NOON,
    }
    return Operation(operation_id=operation_id, **{**fields, **overrides})


def a_created(operations: OperationStore, **overrides: Any) -> Operation:
    operation = an_operation(**overrides)
    assert operations.create(operation) is None
    return operation


def a_taken(operations: OperationStore, *, owner: str = "me") -> Operation:
    taken = take(operations, a_created(operations), owner=owner)
    assert taken is not None
    return taken


def a_finished(operations: OperationStore, operation: Operation) -> Operation:
    operations.create(operation)
    taken = take(operations, operation)
    assert taken is not None
    assert operations.finish(ended(taken))
    return replace(ended(taken), lease_until=None)


def ended(operation: Operation, state: OperationState = OperationState.DONE) -> Operation:
    return replace(operation, state=state, progress=replace(SOME, share=1.0), ended_at=LATER)


def take(
    operations: OperationStore, operation: Operation, *, owner: str = "me", now: datetime = NOON
) -> Operation | None:
    return operations.take(
        operation.tenant, operation.operation_id, owner=owner, lease_until=now + LEASE, now=now, skew=SKEW
    )
