"""Which jobs an operation means, when they are to run instead, how it is written down, and the way that it goes."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.instants import DAY, HOUR, MILLISECOND, SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.lifecycle import State
from functions.domain.operations.operation import (
    MAX_EXAMPLES,
    Example,
    Operation,
    OperationKind,
    OperationState,
    OwnedDay,
    Progress,
    Shift,
    WalkPosition,
    rest_of,
    share_done,
    stretches,
)
from functions.domain.operations.record import OperationRecord, decode_operation, encode_operation
from functions.domain.operations.selection import has_more_rows, is_selected, next_attempt, waits
from testkit.builders import LOCAL_WHEEL, NOON, a_filter, a_job, a_timer, a_wheel, an_occurrence_timer, an_operation

TODAY = (NOON.date() - datetime(1970, 1, 1).date()).days  # noqa: DTZ001
EVERY_ACTION = list(OperationKind)
BEFORE = NOON - HOUR


class TestWhichJobsAreMeant:
    @pytest.mark.parametrize(
        ("due_at", "is_met"),
        [(NOON - MILLISECOND, False), (NOON, True), (NOON + HOUR - MILLISECOND, True), (NOON + HOUR, False)],
    )
    def test_an_attempt_is_due_from_the_one_instant_up_to_the_other(self, due_at: datetime, is_met: bool):
        wanted = a_filter(due_from=NOON, due_until=NOON + HOUR)

        assert wanted.matches(a_timer(due_at=due_at)) is is_met

    def test_the_instant_of_a_retry_counts_and_not_that_of_its_job(self):
        retry = replace(a_timer(due_at=NOON, attempt=2), due_at=NOON + DAY)

        assert a_filter(due_from=NOON + HOUR).matches(retry)
        assert not a_filter(due_until=NOON + HOUR).matches(retry)

    @pytest.mark.parametrize(
        ("said", "is_met"),
        [
            ({"target": "https://example.com/hook"}, True),
            ({"target": "https://example.com"}, True),
            ({"target": "https://example.com/hoo"}, False),
            ({"target": "https://example.co"}, False),
            ({"tag": "team:billing"}, True),
            ({"tag": "team:bill"}, False),
            ({"schedule_id": "nightly"}, False),
            ({"tag": "team:billing", "target": "https://example.com"}, True),
            ({"tag": "team:billing", "target": "https://example.org"}, False),
        ],
    )
    def test_all_that_is_said_must_match(self, said: dict[str, str], is_met: bool):
        assert a_filter(**said).matches(a_timer(tags=("team:billing", "monthly"))) is is_met

    def test_the_fires_of_a_schedule_are_selected_by_its_id(self):
        assert a_filter(schedule_id="nightly").matches(an_occurrence_timer())
        assert not a_filter(schedule_id="night").matches(an_occurrence_timer())

    @pytest.mark.parametrize("due_until", [NOON - MILLISECOND, NOON])
    def test_a_range_that_holds_nothing_is_refused(self, due_until: datetime):
        with pytest.raises(InvalidInput, match="due_from must be before due_until"):
            a_filter(due_from=NOON, due_until=due_until)

    @pytest.mark.parametrize(
        "said", [{"due_from": NOON.replace(tzinfo=None)}, {"due_until": NOON.replace(tzinfo=None) + HOUR}]
    )
    def test_a_time_without_an_offset_is_refused(self, said: dict[str, Any]):
        with pytest.raises(InvalidInput, match="has no offset"):
            a_filter(**said)


class TestWhichRowsStandForThem:
    @pytest.mark.parametrize(
        ("written_at", "is_met"), [(NOON - DAY, True), (NOON, True), (NOON + MILLISECOND, False), (None, True)]
    )
    @pytest.mark.parametrize("attempt", [1, 2])
    def test_what_was_written_since_is_left_alone(self, written_at: datetime | None, attempt: int, is_met: bool):
        timer = a_timer(due_at=NOON + HOUR, attempt=attempt)

        assert is_selected(an_operation(), timer, written_at=written_at, now=NOON) is is_met

    @pytest.mark.parametrize("before", ["", "k0123_", "0123_"])
    def test_a_job_that_it_has_moved_is_not_found_again_whatever_the_clocks_say(self, before: str):
        operation = an_operation(OperationKind.RESCHEDULE)
        moved = a_timer(due_at=NOON + HOUR, identity=f"{before}{operation.operation_id}.7f")
        other = a_timer(due_at=NOON + HOUR, identity=f"{before}{operation.operation_id}7.7f")

        assert not is_selected(operation, moved, written_at=BEFORE, now=NOON)
        assert is_selected(operation, other, written_at=BEFORE, now=NOON)
        assert is_selected(an_operation(OperationKind.RESCHEDULE), moved, written_at=BEFORE, now=NOON)

    @pytest.mark.parametrize(("delivery", "is_met"), [(Delivery.AT_LEAST_ONCE, False), (Delivery.AT_MOST_ONCE, True)])
    def test_an_at_least_once_job_that_is_due_may_be_over(self, delivery: Delivery, is_met: bool):
        timer = a_timer(due_at=NOON, delivery=delivery)

        assert is_selected(an_operation(), timer, written_at=BEFORE, now=NOON) is is_met
        assert is_selected(an_operation(), timer, written_at=BEFORE, now=NOON - MILLISECOND)

    @pytest.mark.parametrize("action", EVERY_ACTION)
    def test_a_job_without_a_ledger_row_waits(self, action: OperationKind):
        assert waits(an_operation(action), a_timer(), None)

    @pytest.mark.parametrize("action", EVERY_ACTION)
    @pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.CANCELLED, State.MOVED, State.ATTEMPTED])
    def test_a_settled_job_does_not_wait(self, action: OperationKind, state: State):
        assert not waits(an_operation(action), a_timer(), LedgerRow(state=state, updated_at=NOON + HOUR))

    @pytest.mark.parametrize("action", EVERY_ACTION)
    @pytest.mark.parametrize("attempt", [1, 2, 3])
    def test_a_job_that_runs_can_only_be_cancelled_whether_a_retry_or_a_watchdog_is_placed_or_not(
        self, action: OperationKind, attempt: int
    ):
        row = LedgerRow(state=State.RUNNING, attempt=2, fence=2, updated_at=NOON + HOUR)

        assert waits(an_operation(action), a_timer(attempt=attempt), row) is (action is OperationKind.CANCEL)

    def test_a_job_that_runs_is_asked_to_cancel_once(self):
        row = LedgerRow(state=State.RUNNING, attempt=1, fence=1, cancel_requested=True)

        assert not waits(an_operation(), a_timer(), row)

    def test_a_cancel_that_an_at_least_once_job_is_only_asked_for_is_finished(self):
        # Its row says so before its timer is removed, which alone is its cancel.
        assert waits(an_operation(), a_timer(), LedgerRow(state=State.SCHEDULED, cancel_requested=True))

    @pytest.mark.parametrize("action", [OperationKind.RESCHEDULE, OperationKind.RUN_NOW, OperationKind.EXPORT])
    @pytest.mark.parametrize(
        ("row", "counts"),
        [
            (LedgerRow(state=State.SCHEDULED), [1, 2, 3]),
            (LedgerRow(state=State.SCHEDULED, attempt=1, fence=1), [1, 2, 3]),
            (LedgerRow(state=State.SCHEDULED, attempt=2, fence=2), [2, 3]),
            (LedgerRow(state=State.RETRYING, attempt=1, fence=1, due_at=NOON), [2]),
            (LedgerRow(state=State.RETRYING, attempt=2, fence=2, due_at=NOON), [3]),
        ],
    )
    def test_of_several_rows_the_one_of_the_next_attempt_counts(
        self, action: OperationKind, row: LedgerRow, counts: list[int]
    ):
        operation = an_operation(action)

        assert [attempt for attempt in (1, 2, 3) if waits(operation, a_timer(attempt=attempt), row)] == counts

    @pytest.mark.parametrize("attempt", [1, 2, 3])
    def test_to_cancel_a_job_any_row_of_it_will_do(self, attempt: int):
        row = LedgerRow(state=State.RETRYING, attempt=2, fence=2, due_at=NOON, parked_until=NOON + DAY)

        assert waits(an_operation(), a_timer(attempt=attempt), row)

    @pytest.mark.parametrize(
        "row",
        [
            LedgerRow(state=State.SCHEDULED, parked_until=NOON + HOUR),
            LedgerRow(state=State.RETRYING, attempt=1, fence=1, due_at=NOON, parked_until=NOON + HOUR),
        ],
    )
    def test_of_a_parked_job_the_row_counts_with_which_it_waits_on(self, row: LedgerRow):
        operation, attempt = an_operation(OperationKind.EXPORT), row.attempt + 1

        assert not waits(operation, a_timer(due_at=NOON, attempt=attempt), row)
        assert waits(operation, a_timer(due_at=NOON + HOUR, attempt=attempt), row)

    def test_a_job_that_was_put_off_since_is_exported_by_the_row_that_it_had(self):
        row = LedgerRow(state=State.SCHEDULED, parked_until=NOON + HOUR, updated_at=NOON + SECOND)

        assert waits(an_operation(OperationKind.EXPORT), a_timer(), row)
        assert not waits(an_operation(OperationKind.EXPORT), a_timer(), replace(row, updated_at=NOON))
        assert not waits(an_operation(OperationKind.RUN_NOW), a_timer(), row)

    @pytest.mark.parametrize(
        ("row", "has_more"),
        [
            (None, False),
            (LedgerRow(state=State.SCHEDULED), False),
            (LedgerRow(state=State.SCHEDULED, parked_until=NOON), True),
            (LedgerRow(state=State.RETRYING, attempt=1), True),
        ],
    )
    def test_a_job_that_was_tried_or_put_off_may_be_found_again(self, row: LedgerRow | None, has_more: bool):
        assert has_more_rows(row) is has_more

    @pytest.mark.parametrize(
        ("row", "expected"),
        [
            (None, (1, NOON)),
            (LedgerRow(state=State.SCHEDULED, attempt=1), (1, NOON)),
            (LedgerRow(state=State.SCHEDULED, parked_until=NOON + HOUR), (1, NOON + HOUR)),
            (LedgerRow(state=State.RETRYING, attempt=1, due_at=NOON + HOUR), (2, NOON + HOUR)),
            (LedgerRow(state=State.RETRYING, attempt=1, due_at=NOON, parked_until=NOON + DAY), (2, NOON + DAY)),
        ],
    )
    def test_what_a_job_waits_for(self, row: LedgerRow | None, expected: tuple[int, datetime]):
        assert next_attempt(a_timer(due_at=NOON), row) == expected


class TestShifts:
    @pytest.mark.parametrize("by", [HOUR, -HOUR, MILLISECOND])
    def test_jobs_that_are_shifted_keep_their_distances(self, by: timedelta):
        assert Shift(by=by).due_at(a_job(due_at=NOON)) == NOON + by

    def test_without_a_spread_all_run_at_one_instant(self):
        assert {Shift(to=NOON).due_at(a_job(due_at=NOON + DAY)) for _ in range(5)} == {NOON}

    def test_a_spread_uses_all_of_its_time(self):
        shift = Shift(to=NOON, spread=HOUR)

        minutes = {(shift.due_at(a_job(identity=f"job-{number}")) - NOON) // (HOUR / 6) for number in range(200)}

        assert minutes == set(range(6))

    @pytest.mark.parametrize(
        ("said", "refusal"),
        [
            ({}, "either by how much"),
            ({"by": HOUR, "to": NOON}, "either by how much"),
            ({"by": timedelta(0)}, "at least 1 ms"),
            ({"by": MILLISECOND / 2}, "at least 1 ms"),
            ({"by": HOUR, "spread": HOUR}, "takes no spread"),
            ({"to": NOON, "spread": -SECOND}, "must not be negative"),
            ({"to": NOON.replace(tzinfo=None)}, "has no offset"),
        ],
    )
    def test_a_shift_that_says_too_much_or_too_little_is_refused(self, said: dict[str, Any], refusal: str):
        with pytest.raises(InvalidInput, match=refusal):
            Shift(**said)


class TestTheWay:
    @pytest.mark.parametrize("due_at", [NOON, NOON.replace(hour=0), NOON.replace(hour=23, minute=59, second=59)])
    def test_a_mark_is_of_the_day_on_which_an_attempt_is_due(self, due_at: datetime):
        timer = a_timer(due_at=due_at, priority=Priority.HIGH)

        assert OwnedDay.of(timer) == (TODAY, Priority.HIGH, timer.job.shard)
        assert OwnedDay.of(timer).ends_at == NOON.replace(hour=0) + DAY

    def test_it_leads_over_the_buckets_of_the_marked_days_that_are_in_the_range(self):
        wanted = a_filter(due_from=NOON + 30 * SECOND, due_until=NOON + DAY + timedelta(seconds=61))

        way = stretches(_days(TODAY - 1, TODAY + 1, TODAY, TODAY + 2), wanted, wheel=LOCAL_WHEEL)

        noon, midnight = _bucket(NOON), _bucket(NOON + DAY / 2)
        assert [(stretch.owned.day - TODAY, stretch.first, stretch.end) for stretch in way] == [
            (0, noon, midnight),
            (1, midnight, _bucket(NOON + DAY) + 120),
        ]

    def test_an_instant_on_the_edge_of_a_bucket_does_not_reach_into_it(self):
        (stretch,) = stretches(_days(TODAY), a_filter(due_until=NOON), wheel=LOCAL_WHEEL)

        assert stretch.end == _bucket(NOON)

    def test_a_bucket_that_reaches_over_the_end_of_a_day_belongs_to_both(self):
        wheel = a_wheel(bucket=timedelta(seconds=7), guard=timedelta(seconds=155))

        today, tomorrow = stretches(_days(TODAY, TODAY + 1), a_filter(), wheel=wheel)

        assert today.end == tomorrow.first + 7
        assert today.owned.ends_at.timestamp() - tomorrow.first in range(1, 7)

    def test_it_goes_on_behind_a_key_of_a_bucket_and_at_the_start_of_the_others(self):
        way = stretches(_days(TODAY, TODAY + 1), a_filter(), wheel=LOCAL_WHEEL)
        place = WalkPosition(TODAY, Priority.NORMAL, 0, _bucket(NOON), "2#acme#k")

        left = rest_of(way, place)

        assert left == [(way[0]._replace(first=_bucket(NOON)), "2#acme#k"), (way[1], "")]

    def test_a_stretch_that_is_behind_is_left_out(self):
        way = stretches(_days(TODAY, TODAY + 1), a_filter(), wheel=LOCAL_WHEEL)

        assert rest_of(way, WalkPosition(TODAY, Priority.NORMAL, 0, way[0].end)) == [(way[1], "")]
        assert rest_of(way, WalkPosition(TODAY + 1, Priority.NORMAL, 0, way[1].end)) == []
        assert rest_of(way, WalkPosition(TODAY, Priority.LOW, 0, 0)) == [(way[1], "")]

    def test_a_mark_that_is_new_lies_ahead_or_is_passed_by(self):
        place = WalkPosition(TODAY, Priority.NORMAL, 0, _bucket(NOON))
        way = stretches(_days(TODAY - 1, TODAY, TODAY + 1), a_filter(due_from=NOON - DAY), wheel=LOCAL_WHEEL)

        assert [stretch.owned.day - TODAY for stretch, _ in rest_of(way, place)] == [0, 1]

    def test_how_much_of_it_is_done(self):
        way = stretches(_days(TODAY), a_filter(due_from=NOON, due_until=NOON + HOUR), wheel=LOCAL_WHEEL)
        half = WalkPosition(TODAY, Priority.NORMAL, 0, _bucket(NOON + HOUR / 2))

        assert share_done(way, None) == 0
        assert share_done(way, half) == 0.5
        assert share_done(way, half._replace(bucket=_bucket(NOON + HOUR))) == 1
        assert share_done([], None) == 1


class TestProgress:
    def test_it_counts_what_came_of_some_more_rows(self):
        refused = [Example("a", "moved", "…"), Example("b", "moved"), Example("c", "too_late")]

        progress = Progress(examined=5, matched=4, done=1, refused={"moved": 1}).counting(
            examined=10, matched=6, done=3, refused=refused, shown=[]
        )

        assert (progress.examined, progress.matched, progress.done) == (15, 10, 4)
        assert progress.refused == {"moved": 3, "too_late": 1}
        assert progress.examples == tuple(refused)

    def test_only_the_first_examples_are_kept(self):
        shown = [Example(str(number)) for number in range(MAX_EXAMPLES)]

        progress = Progress(examples=(Example("first"),)).counting(
            examined=0, matched=0, done=0, refused=[], shown=shown
        )

        assert progress.examples == (Example("first"), *shown[:-1])

    def test_three_states_are_the_end(self):
        over = {state for state in OperationState if state.is_over}

        assert over == {OperationState.DONE, OperationState.STOPPED, OperationState.FAILED}


class TestTheRecord:
    def test_what_is_written_is_read_again(self):
        operation = an_operation(
            OperationKind.RESCHEDULE,
            wanted=a_filter(due_until=NOON + DAY, target="https://example.com", schedule_id="nightly", tag="t"),
            shift=Shift(to=NOON + HOUR, spread=HOUR),
            fingerprint="abc",
            rate=2.5,
            dry_run=True,
            ended_at=NOON + HOUR,
            progress=Progress(
                place=WalkPosition(TODAY, 2, 1, _bucket(NOON), "2#acme#k"),
                share=0.25,
                examined=4,
                matched=3,
                done=2,
                refused={"moved": 1},
                examples=(Example("a", "moved", "it was"),),
                due_at=NOON + HOUR,
                parts=3,
                failures=1,
                error="RuntimeError: no",
            ),
        )

        assert _again(operation) == operation

    def test_what_is_not_said_takes_no_room(self):
        record = encode_operation(an_operation())

        assert set(_names(record.asked)) == {"action", "due_from", "caller", "created_at", "rate"}
        assert "place" not in record.progress

    def test_a_shift_of_milliseconds_is_one(self):
        operation = an_operation(OperationKind.RESCHEDULE, shift=Shift(by=-MILLISECOND))

        assert _again(operation).shift == Shift(by=-MILLISECOND)

    @pytest.mark.parametrize(
        "record",
        [
            OperationRecord("", "{}"),
            OperationRecord("[]", "{}"),
            OperationRecord("{}", "{}"),
            OperationRecord('{"action":"dance","due_from":0,"created_at":0}', "{}"),
            OperationRecord('{"action":"cancel","due_from":0,"created_at":0,"by":1,"to":1}', "{}"),
            OperationRecord('{"action":"cancel","due_from":1e99,"created_at":0}', "{}"),
            OperationRecord('{"action":"cancel","due_from":0,"created_at":0}', '{"place":[1]}'),
            OperationRecord('{"action":"cancel","due_from":0,"created_at":0}', "null"),
        ],
    )
    def test_anything_else_is_refused(self, record: OperationRecord):
        with pytest.raises(Undecodable, match="not an operation"):
            decode_operation(record, tenant="acme", operation_id="o1")


def _again(operation: Operation) -> Operation:
    record = encode_operation(operation)
    return decode_operation(record, tenant=operation.tenant, operation_id=operation.operation_id)


def _names(record: str) -> list[str]:
    return [part.split('"')[1] for part in record.strip("{}").split(",")]


def _days(*days: int) -> list[OwnedDay]:
    return [OwnedDay(day, Priority.NORMAL, 0) for day in days]


def _bucket(instant: datetime) -> int:
    return LOCAL_WHEEL.bucket_of(instant)
