import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.audit import (
    ABANDONED,
    COLUMNS,
    LINE_LIMIT,
    RECORD_LIMIT,
    Action,
    ActionName,
    Ending,
    described,
    encode_action,
    encode_ending,
    ending_of,
    packed,
)
from functions.domain.errors import InvalidInput
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Priority
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.targets.options import TargetOptions
from testkit.builders import NOON, a_job, an_occurrence_timer

JOB = a_job(identity="i-1", priority=Priority.HIGH)
ID = job_id_of(JOB)


def an_ending(**overrides: Any) -> Ending:
    fields: dict[str, Any] = {
        "job_id": ID,
        "outcome": State.SUCCEEDED,
        "attempt": 1,
        "ended_at": NOON + 3 * SECOND,
        "due_at": NOON,
        "began_at": NOON + SECOND,
        "target": "https://example.com/hook?key=secret",
    }
    return Ending(**{**fields, **overrides})


def an_action(**overrides: Any) -> Action:
    fields: dict[str, Any] = {
        "action": ActionName.SCHEDULE_PAUSE,
        "caller": "arn:aws:iam::1:role/ann",
        "tenant": "acme",
        "subject": "nightly",
        "before": {"status": "active"},
        "after": {"status": "paused", "note": "Wartung"},
    }
    return Action(**{**fields, **overrides})


def test_the_line_of_an_execution_says_what_when_how_late_and_how_long():
    assert json.loads(encode_ending(an_ending(attempt=2, error_class="http_500", outcome=State.FAILED))) == {
        "v": 1,
        "kind": "execution",
        "line_id": an_ending(attempt=2, outcome=State.FAILED).line_id,
        "happened_at": "2027-03-01T12:00:03.000Z",
        "tenant": "acme",
        "job_id": str(ID),
        "outcome": "failed",
        "attempt": 2,
        "priority": "high",
        "delivery": "exactly_once",
        "target": "https://example.com",
        "scheduled_at": "2027-03-01T12:00:00.000Z",
        "due_at": "2027-03-01T12:00:00.000Z",
        "began_at": "2027-03-01T12:00:01.000Z",
        "lag_ms": 1000,
        "duration_ms": 2000,
        "error_class": "http_500",
        "again": False,
    }


def test_the_line_of_an_action_says_who_what_before_and_after():
    assert json.loads(encode_action(an_action(), line_id="l-1", happened_at=NOON)) == {
        "v": 1,
        "kind": "action",
        "line_id": "l-1",
        "happened_at": "2027-03-01T12:00:00.000Z",
        "tenant": "acme",
        "again": False,
        "action": "schedule.pause",
        "caller": "arn:aws:iam::1:role/ann",
        "subject": "nightly",
        "before": '{"status":"active"}',
        "after": '{"note":"Wartung","status":"paused"}',
    }


def test_a_fire_names_its_schedule():
    timer = an_occurrence_timer()

    assert json.loads(encode_ending(an_ending(job_id=job_id_of(timer.job))))["schedule_id"] == "nightly"


def test_what_is_not_known_is_left_out():
    line = json.loads(encode_ending(an_ending(due_at=None, began_at=None, target="")))

    assert not {"due_at", "began_at", "lag_ms", "duration_ms", "target", "error_class", "reason"} & set(line)


def test_every_field_of_a_line_is_a_column():
    lines = [
        encode_ending(an_ending(error_class="e", reason="r", job_id=job_id_of(an_occurrence_timer().job))),
        encode_action(an_action(), line_id="l-1", happened_at=NOON),
        encode_action(an_action(after={"note": "x" * LINE_LIMIT}), line_id="l-1", happened_at=NOON),
    ]

    assert {name for line in lines for name in json.loads(line)} == set(COLUMNS)


def test_a_line_holds_no_payload_no_header_and_no_path_of_a_target():
    job = replace(
        JOB, payload=Payload(text='"p-secret"'), options=TargetOptions(headers=(("authorization", "h-secret"),))
    )
    line = encode_ending(an_ending())
    action = encode_action(an_action(before=described(job)), line_id="l-1", happened_at=NOON)

    assert "secret" not in line + action
    assert "hook" not in line + action


def test_an_action_that_says_too_much_is_reported_without_it():
    line = encode_action(an_action(after={"note": "x" * LINE_LIMIT}), line_id="l-1", happened_at=NOON)

    fields = json.loads(line)
    assert fields["cut"] > LINE_LIMIT
    assert (fields["action"], fields["caller"], fields["subject"]) == (
        "schedule.pause",
        "arn:aws:iam::1:role/ann",
        "nightly",
    )
    assert not {"before", "after"} & set(fields)
    assert len(line) < 1_000


def test_no_text_makes_a_line_too_long():
    action = an_action(caller="c" * 500_000, subject="s" * 500_000, before=None, after=None)

    assert len(encode_action(action, line_id="l-1", happened_at=NOON)) < 3_000
    assert len(encode_ending(an_ending(error_class="e" * 500_000, reason="r" * 500_000))) < 3_000


def test_a_line_is_one_line():
    assert "\n" not in encode_action(an_action(after={"note": "a\nb"}), line_id="l-1", happened_at=NOON)


def test_instants_are_reported_as_they_are_stored_never_earlier():
    line = json.loads(encode_ending(an_ending(ended_at=NOON + timedelta(microseconds=1))))

    assert line["happened_at"] == "2027-03-01T12:00:00.001Z"


def test_a_naive_instant_is_refused():
    with pytest.raises(InvalidInput, match="no offset"):
        an_ending(began_at=datetime(2027, 3, 1))  # noqa: DTZ001  the point


def test_the_same_end_has_the_same_name_however_often_it_is_reported():
    assert an_ending().line_id == an_ending(is_repeated=True, began_at=None, attempt=0).line_id
    assert an_ending().line_id != an_ending(job_id=job_id_of(a_job(identity="i-2"))).line_id


def test_a_job_that_is_replayed_has_an_end_for_each_of_its_failures():
    failures = {an_ending(outcome=State.FAILED, attempt=attempt).line_id for attempt in (1, 4)}

    assert len(failures | {an_ending().line_id}) == 3


def test_an_at_most_once_job_ends_once_whatever_its_row_says():
    job_id = job_id_of(a_job(identity="i-1", delivery=Delivery.AT_MOST_ONCE))
    row = LedgerRow(state=State.ATTEMPTED, attempt=1, updated_at=NOON, due_at=NOON)

    again = ending_of(job_id, row, now=NOON)

    assert again is not None
    assert again.line_id == an_ending(job_id=job_id, outcome=State.FAILED).line_id
    assert again.line_id == an_ending(job_id=job_id, outcome=State.SUCCEEDED).line_id


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RUNNING, State.RETRYING, State.MOVED])
def test_what_has_not_ended_is_not_reported_again(state: State):
    assert ending_of(ID, LedgerRow(state=state), now=NOON) is None


def test_what_is_reported_again_says_so_and_when_it_was():
    row = LedgerRow(
        state=State.FAILED, attempt=3, updated_at=NOON, due_at=NOON, job_id=str(ID), error="secret: not for here"
    )

    again = ending_of(ID, row, now=NOON + timedelta(hours=1), attempt=4, target="https://example.com/hook")

    assert again == Ending(
        job_id=ID,
        outcome=State.FAILED,
        attempt=3,
        ended_at=NOON,
        due_at=NOON,
        target="https://example.com/hook",
        is_repeated=True,
    )
    assert again is not None
    assert json.loads(encode_ending(again))["again"] is True
    assert "secret" not in encode_ending(again)


def test_what_was_never_claimed_is_reported_again_with_the_attempt_of_who_found_it():
    again = ending_of(ID, LedgerRow(state=State.FAILED), now=NOON, attempt=1)

    assert again is not None
    assert (again.attempt, again.ended_at) == (1, NOON)


def test_a_run_that_was_asked_for_twice_is_reported_again_under_its_first_name():
    first, second = (job_id_of(a_job(identity="i-1", due_at=NOON + delay * SECOND)) for delay in (0, 1))

    again = ending_of(second, LedgerRow(state=State.SUCCEEDED, attempt=1, job_id=str(first)), now=NOON)

    assert again is not None
    assert again.job_id == first


def test_a_skip_is_reported_again_with_its_reason():
    row = LedgerRow(state=State.SKIPPED, error="overlap: j1 has not come to its end")

    again = ending_of(ID, row, now=NOON)

    assert again is not None
    assert again.reason == "overlap"


def test_lines_go_into_as_few_records_as_they_fit_into():
    lines = ["x" * 99_999] * 25

    records = list(packed(lines))

    assert [len(record) for record in records] == [10, 10, 5]
    assert all(len("".join(f"{line}\n" for line in record)) <= RECORD_LIMIT for record in records)
    assert [line for record in records for line in record] == lines


def test_the_size_of_a_record_is_counted_in_bytes():
    assert [len(record) for record in packed(["é" * 300_000] * 2)] == [1, 1]


def test_nothing_makes_no_record():
    assert list(packed([])) == []


def test_a_run_that_was_given_up_is_reported_again_with_its_reason_and_any_other_cancel_without():
    given_up, withdrawn = (
        ending_of(ID, LedgerRow(state=State.CANCELLED, error=error), now=NOON)
        for error in (ABANDONED, "secret: of a target")
    )

    assert given_up is not None
    assert withdrawn is not None
    assert (given_up.reason, withdrawn.reason) == (ABANDONED, "")
