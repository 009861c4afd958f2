"""Operations are accepted once, described without secrets, and never more of a tenant than it may have."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.api.operations.manager import MOST_OPEN, OPERATION_ID, RETRY_AFTER, Asked, OperationManager
from functions.domain.errors import InvalidInput, KeyReused, OperationNotFound, TooManyOperations
from functions.domain.instants import HOUR, MILLISECOND, SECOND
from functions.domain.operations.operation import (
    MOST_REACH,
    USUAL_REACH,
    Operation,
    OperationKind,
    OperationState,
    Shift,
)
from testkit.builders import DEPLOYED_WHEEL, NOON
from testkit.fakes import (
    CountingWaker,
)
from testkit.scheduler import World

ANN = "arn:aws:iam::123456789012:user/ann"


class Office(World):
    """A manager of operations with what it needs."""

    def __init__(self) -> None:
        super().__init__(wheel=DEPLOYED_WHEEL)
        self.waker = CountingWaker()
        identities = (f"{number:032x}" for number in range(1_000))
        # The last digits are cut off.
        self.manager = self.build(OperationManager, waker=self.waker, identity=lambda: next(identities)[::-1])

    def accept(self, key: str | None = None, **asked: Any) -> Operation:
        return self.manager.accept(an_asked(**asked), key=key, caller=ANN)

    def ended(self, operation: Operation, state: OperationState, **progress: Any) -> Operation:
        taken = self.operations.take(
            operation.tenant,
            operation.operation_id,
            owner="o",
            lease_until=NOON + HOUR,
            now=self.clock.now(),
            skew=SECOND,
        )
        assert taken is not None
        ended = a_changed(taken, state=state, ended_at=self.clock.now(), **progress)
        assert self.operations.finish(ended)
        return ended

    @property
    def event_names(self) -> list[str]:
        return [name for name, _ in self.journal.events]


def an_asked(**asked: Any) -> Asked:
    return Asked(**{"tenant": "acme", "action": OperationKind.CANCEL, "tag": "eu", **asked})


def a_changed(operation: Operation, *, state: OperationState, ended_at: Any, **progress: Any) -> Operation:
    return replace(operation, state=state, ended_at=ended_at, progress=replace(operation.progress, **progress))


def test_an_accepted_operation_is_open_and_wakes_its_executor():
    office = Office()

    operation = office.accept()

    assert office.operations.get("acme", operation.operation_id) == operation
    assert office.operations.open(limit=10) == [("acme", operation.operation_id)]
    assert (operation.state, operation.caller, operation.created_at) == (OperationState.WAITING, ANN, NOON)
    assert OPERATION_ID.fullmatch(operation.operation_id)
    assert office.waker.calls == 1


def test_what_is_due_since_an_hour_is_selected_unless_it_is_said():
    office = Office()

    assert office.accept().wanted.due_from == NOON - USUAL_REACH
    assert office.accept(due_from=NOON + HOUR).wanted.due_from == NOON + HOUR
    assert office.accept(due_from=NOON - MOST_REACH).wanted.due_from == NOON - MOST_REACH


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"due_from": NOON - MOST_REACH - MILLISECOND}, "due_from must not be before 2027-02-15T12:00:00.000Z"),
        ({"due_until": NOON - USUAL_REACH}, "due_until is before due_from, which is 2027-03-01T11:00:00.000Z"),
        ({"due_from": NOON, "due_until": NOON}, "due_from must be before due_until"),
        (
            {"action": OperationKind.RESCHEDULE, "shift": Shift(to=NOON + 330 * SECOND - MILLISECOND)},
            "to must be at least 330 s ahead, it is now 2027-03-01T12:00:00.000Z",
        ),
        (
            {"action": OperationKind.RESCHEDULE, "shift": Shift(to=NOON + timedelta(days=3_653), spread=SECOND)},
            "to, or the end of its spread, is more than ten years ahead",
        ),
    ],
)
def test_what_could_mean_no_job_is_refused_and_leaves_nothing(asked: dict[str, Any], said: str):
    office = Office()

    with pytest.raises(InvalidInput, match=said):
        office.accept(**asked)

    assert (office.operations.rows, office.event_names, office.waker.calls) == ({}, [], 0)


def test_the_nearest_and_the_farthest_shift_are_taken():
    office = Office()

    office.accept(action=OperationKind.RESCHEDULE, shift=Shift(to=NOON + 330 * SECOND))
    office.accept(action=OperationKind.RESCHEDULE, shift=Shift(to=NOON + HOUR, spread=timedelta(days=3_653) - HOUR))
    office.accept(action=OperationKind.RESCHEDULE, shift=Shift(by=-HOUR))

    assert len(office.operations.rows) == 3


def test_without_a_key_each_request_is_an_operation_of_its_own():
    office = Office()

    assert office.accept().operation_id != office.accept().operation_id
    assert office.event_names == ["operation_accepted"] * 2


def test_the_same_request_under_the_same_key_is_answered_with_the_first_operation_as_it_stands():
    office = Office()
    first = office.accept("k")
    office.clock.tick(MOST_REACH)
    ended = office.ended(first, OperationState.DONE, matched=3)

    again = office.accept("k")

    assert (again.operation_id, again.state, again.progress.matched) == (first.operation_id, ended.state, 3)
    assert office.event_names == ["operation_accepted"]
    assert office.waker.calls == 1


def test_a_repeat_is_answered_although_its_times_could_not_be_asked_for_any_more():
    office = Office()
    first = office.accept("k", due_from=NOON - MOST_REACH)
    office.clock.tick(HOUR)

    assert office.accept("k", due_from=NOON - MOST_REACH).operation_id == first.operation_id


def test_keys_of_two_tenants_do_not_meet():
    office = Office()

    assert office.accept("k").operation_id != office.accept("k", tenant="globex").operation_id


@pytest.mark.parametrize(
    "other",
    [
        {"action": OperationKind.EXPORT},
        {"tag": "us"},
        {"target": "handler:echo"},
        {"schedule_id": "nightly"},
        {"due_from": NOON},
        {"due_until": NOON + HOUR},
        {"dry_run": True},
        {"rate": 7.0},
        {"shift": Shift(by=HOUR)},
        {"shift": Shift(to=NOON + HOUR)},
        {"shift": Shift(to=NOON + HOUR, spread=HOUR)},
    ],
)
def test_another_request_under_a_used_key_is_refused(other: dict[str, Any]):
    office = Office()
    first = office.accept("k")

    with pytest.raises(
        KeyReused, match=r"belongs to operation o[0-9a-z]{25}, which asks for something else"
    ) as refusal:
        office.accept("k", **other)

    assert refusal.value.first_id == first.operation_id
    assert len(office.operations.rows) == 1


def test_two_requests_under_one_key_at_the_same_time_are_one_operation(monkeypatch: pytest.MonkeyPatch):
    office = Office()
    first = office.accept("k")
    office.clock.tick(SECOND)
    with monkeypatch.context() as patch:
        patch.setattr(office.operations, "get", lambda *_: None)

        assert office.accept("k").operation_id == first.operation_id
        with pytest.raises(KeyReused):
            office.accept("k", tag="us")

    assert office.operations.get("acme", first.operation_id) == first
    assert office.event_names == ["operation_accepted"]


def test_an_operation_whose_first_write_got_no_answer_is_accepted_with_its_audit_line(
    monkeypatch: pytest.MonkeyPatch,
):
    office = Office()
    create = office.operations.create

    def create_twice(operation: Operation) -> Operation | None:
        create(operation)
        return create(operation)

    monkeypatch.setattr(office.operations, "create", create_twice)
    operation = office.accept()

    assert office.operations.get("acme", operation.operation_id) == operation
    assert (office.event_names, office.waker.calls) == (["operation_accepted"], 1)


def test_a_tenant_has_only_so_many_open_operations():
    office = Office()
    opened = [office.accept() for _ in range(MOST_OPEN)]

    with pytest.raises(TooManyOperations, match="tenant acme has 10 operations that are not over") as refusal:
        office.accept()
    assert refusal.value.retry_after == RETRY_AFTER
    assert len(office.operations.rows) == MOST_OPEN

    office.accept(tenant="globex")
    office.ended(opened[3], OperationState.STOPPED)
    office.accept()


def test_a_repeat_is_answered_however_many_are_open():
    office = Office()
    first = office.accept("k")
    for _ in range(MOST_OPEN - 1):
        office.accept()

    assert office.accept("k").operation_id == first.operation_id


def test_an_executor_that_cannot_be_woken_is_noted_and_the_operation_stands():
    office = Office()
    office.waker.fails_with = ConnectionError("no route")

    operation = office.accept()

    assert office.operations.open(limit=1) == [("acme", operation.operation_id)]
    assert office.event_names == ["operation_accepted", "waking_failed"]
    assert str(office.journal.events[1][1]["error"]).startswith("ConnectionError at functions.api.operations.manager:")


def test_the_audit_line_says_who_wants_what_and_repeats_no_secret():
    office = Office()

    operation = office.accept(
        action=OperationKind.RUN_NOW,
        target="https://example.com/hook?token=s3cret",
        schedule_id="nightly",
        due_until=NOON + HOUR,
        rate=5.0,
        dry_run=True,
    )

    assert office.journal.events == [
        (
            "operation_accepted",
            {
                "operation": operation.operation_id,
                "tenant": "acme",
                "action": "run_now",
                "caller": ANN,
                "dry_run": True,
                "filter": {
                    "due_from": "2027-03-01T11:00:00.000Z",
                    "due_until": "2027-03-01T13:00:00.000Z",
                    "target": "https://example.com",
                    "schedule": "nightly",
                    "tag": "eu",
                },
                "rate": 5.0,
            },
        )
    ]


@pytest.mark.parametrize(
    ("shift", "fields"),
    [
        (Shift(by=-90 * SECOND), {"by": "-PT1M30S"}),
        (Shift(by=HOUR), {"by": "PT1H"}),
        (Shift(to=NOON + HOUR, spread=HOUR), {"to": "2027-03-01T13:00:00.000Z", "spread": "PT1H"}),
    ],
)
def test_the_audit_line_of_a_reschedule_says_when(shift: Shift, fields: dict[str, str]):
    office = Office()

    office.accept(action=OperationKind.RESCHEDULE, shift=shift)

    assert fields.items() <= office.journal.events[0][1].items()
    assert "rate" not in office.journal.events[0][1]


def test_a_stop_is_asked_for_and_noted_with_who_asks():
    office = Office()
    operation = office.accept()

    stopped = office.manager.stop("acme", operation.operation_id, caller="bob")

    assert (stopped.stop_requested, stopped.state) == (True, OperationState.WAITING)
    assert office.event_names == ["operation_accepted", "operation_stop_requested"]
    assert office.journal.events[1][1]["caller"] == "bob"
    assert office.waker.calls == 2


def test_a_stop_of_what_is_over_changes_nothing():
    office = Office()
    operation = office.accept()
    ended = office.ended(operation, OperationState.DONE)

    stopped = office.manager.stop("acme", operation.operation_id, caller=ANN)

    assert (stopped.state, stopped.stop_requested, stopped.ended_at) == (ended.state, False, ended.ended_at)
    assert office.event_names == ["operation_accepted"]
    assert office.waker.calls == 1


@pytest.mark.parametrize(
    ("tenant", "operation_id"),
    [("acme", "o" + "f" * 25), ("globex", ""), ("acme", "x"), ("acme", "o" + "#" * 25), ("a#b", "o" + "0" * 25)],
)
def test_there_is_only_what_was_accepted_for_that_tenant(tenant: str, operation_id: str):
    office = Office()
    accepted = office.accept()

    for ask in (office.manager.get, lambda *names: office.manager.stop(*names, caller=ANN)):
        with pytest.raises(OperationNotFound):
            ask(tenant, operation_id or accepted.operation_id)


@pytest.mark.parametrize("operation_id", ["", "x" * 2_000, "o" + "0" * 25 + "#1", "o" + "F" * 25])
def test_what_cannot_be_an_id_is_asked_of_no_store(operation_id: str, monkeypatch: pytest.MonkeyPatch):
    office = Office()
    for call in ("get", "stop"):
        monkeypatch.setattr(office.operations, call, lambda *_: pytest.fail("it was asked"))

    with pytest.raises(OperationNotFound):
        office.manager.get("acme", operation_id)
    with pytest.raises(OperationNotFound):
        office.manager.stop("acme", operation_id, caller=ANN)


def test_a_list_is_reported_page_by_page_and_of_one_tenant():
    office = Office()
    ids = sorted(office.accept().operation_id for _ in range(3))
    office.accept(tenant="globex")

    first, after = office.manager.page("acme", after="", limit=2)
    second, end = office.manager.page("acme", after=after or "", limit=2)

    assert [operation.operation_id for operation in (*first, *second)] == ids
    assert (after, end) == (ids[1], None)


def test_only_an_export_that_is_done_has_files():
    office = Office()
    done = office.ended(office.accept(action=OperationKind.EXPORT), OperationState.DONE, parts=2)
    counted = office.ended(office.accept(action=OperationKind.EXPORT, dry_run=True), OperationState.DONE)
    stopped = office.ended(office.accept(action=OperationKind.EXPORT), OperationState.STOPPED, parts=1)
    cancelled = office.ended(office.accept(), OperationState.DONE)

    place = f"https://exports.example/acme/{done.operation_id}"
    assert office.manager.parts(done) == [f"{place}/1", f"{place}/2"]
    assert [office.manager.parts(operation) for operation in (counted, stopped, cancelled)] == [None] * 3
