"""What the API tells about dead letters is what it describes, and holds no secret."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from functions.api.dead_letters import answers
from functions.api.dead_letters.finder import Bookmark, DeadLetterPage, Inspected
from functions.api.dead_letters.purge import NotPurged, Purges
from functions.api.dead_letters.replay import AlreadyReplayed, NotReplayed, Replayed, Replays
from functions.api.openapi import document
from functions.domain.errors import PayloadGone
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.jobs.job import Precision, Priority
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.targets.options import Method, TargetOptions
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON, a_timer
from tests.unit.test_replay import a_dead_letter

FOREIGN = DeadLetter(
    tenant=NO_TENANT, identity="m", dead_at=NOON, error="undecodable", error_class="undecodable", raw="hello"
)


def test_a_dead_letter_is_reported_as_it_is_described():
    fire = Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON, index=7)
    letter = a_dead_letter(a_timer(attempt=3, tags=("eu",), occurrence=fire))

    answer = answers.entry_body(letter)

    assert_described(answer, "DeadLetterEntry")
    assert (answer["schedule_id"], answer["tags"], answer["attempt"], answer["is_replayable"]) == (
        "nightly",
        ["eu"],
        3,
        True,
    )


def test_what_there_is_not_is_left_out():
    answer = answers.entry_body(FOREIGN)

    assert_described(answer, "DeadLetterEntry")
    assert answer["is_replayable"] is False
    assert not {"job_id", "target", "schedule_id", "tags"} & set(answer)


@pytest.mark.parametrize(
    "inspected",
    [
        Inspected(letter=a_dead_letter(a_timer()), payload='{"n":1}'),
        Inspected(letter=a_dead_letter(a_timer()), is_payload_gone=True),
        Inspected(letter=FOREIGN),
    ],
)
def test_an_inspected_dead_letter_is_reported_as_it_is_described(inspected: Inspected):
    assert_described(answers.inspected_body(inspected), "DeadLetter")


def test_a_job_is_reported_as_it_was_asked_for_but_for_the_values_of_its_headers():
    fire = Occurrence(schedule_id="nightly", fire_at=NOON, nominal_at=NOON, index=7)
    options = TargetOptions(method=Method.PUT, headers=(("X-Key", "s3cret"),), success_codes=(200,), retry_codes=(404,))
    timer = a_timer(
        priority=Priority.HIGH,
        precision=Precision.EXACT,
        expires_at=NOON + timedelta(hours=1),
        options=options,
        tags=("eu",),
        occurrence=fire,
        retry=RetryPolicy(strategy=Strategy.DECORRELATED_JITTER, attempts=2, max_age=timedelta(hours=2)),
    )

    answer = answers.inspected_body(Inspected(letter=a_dead_letter(timer)))["job"]

    assert answer == {
        "target": "https://example.com/hook",
        "scheduled_at": "2027-03-01T12:00:00.000Z",
        "delivery": "exactly_once",
        "retry": {
            "strategy": "decorrelated_jitter",
            "attempts": 2,
            "base": "PT2S",
            "cap": "PT10M",
            "max_age": "PT2H",
        },
        "timeout": "PT10S",
        "priority": "high",
        "precision": "exact",
        "expires_at": "2027-03-01T13:00:00.000Z",
        "http": {"method": "PUT", "headers": ["X-Key"], "success": [200], "retry_on": [404]},
        "tags": ["eu"],
        "occurrence": {
            "schedule_id": "nightly",
            "fire_at": "2027-03-01T12:00:00.000Z",
            "nominal_at": "2027-03-01T12:00:00.000Z",
            "index": 7,
        },
    }


def test_pages_and_results_are_reported_as_they_are_described():
    letters = [a_dead_letter(a_timer()) for _ in range(answers.MOST_SHOWN + 1)]
    letter_id = letters[0].letter_id
    goes_on = Bookmark(since=NOON - timedelta(hours=1), before=letter_id)
    found = DeadLetterPage(letters=letters, since=NOON - timedelta(hours=1), goes_on=goes_on)
    replayed = Replayed(letter_id=letter_id, job_id="j1~x", attempt=4, due_at=NOON)
    already = AlreadyReplayed(letter_id=letter_id, job_id="j1~x", state=State.RUNNING)
    refused = NotReplayed(letter_id=letter_id, error=PayloadGone(str(letter_id)))

    assert_described(answers.page_body(found), "DeadLetters")
    assert_described(answers.dry_run_body(found), "Matches")
    assert_described(answers.replay_body(replayed), "Replay")
    assert_described(answers.replay_body(already), "Replay")
    assert_described(answers.purge_body(letter_id), "Purge")
    replays = answers.replays_body(Replays(found=found, outcomes=[replayed, already, refused]))
    assert_described(replays, "Replays")
    assert (replays["matched"], replays["replayed"], replays["already_replayed"]) == (3, 1, 1)
    assert [failed["code"] for failed in replays["failed"]] == ["payload_gone"]
    purges = answers.purges_body(Purges(found=found, failed=[NotPurged(letter_id=letter_id, fault="TimeoutError")]))
    assert_described(purges, "Purges")
    assert (purges["matched"], purges["purged"], len(purges["failed"])) == (
        answers.MOST_SHOWN + 1,
        answers.MOST_SHOWN,
        1,
    )
    assert len(answers.dry_run_body(found)["dead_letters"]) == answers.MOST_SHOWN


def test_the_end_is_reported_by_no_next():
    found = DeadLetterPage(letters=[], since=NOON, goes_on=None)

    assert answers.page_body(found) == {"dead_letters": [], "examined_until": "2027-03-01T12:00:00.000Z", "next": None}


def assert_described(answer: Mapping[str, Any], model: str) -> None:
    described = document()["components"]["schemas"][model]

    assert set(answer) <= set(described["properties"])
    assert set(described["required"]) <= set(answer)
