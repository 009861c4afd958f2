import json

import pytest

from functions.domain.errors import Undecodable
from functions.domain.far_ring import cursor as cursor_module
from functions.domain.far_ring.cursor import (
    MOST_PLAIN,
    BucketAuditPosition,
    ClassCursor,
    OwnCursor,
    Position,
    decode_cursors,
    encode_cursors,
    first_cursors,
    handled_for,
    has_passed,
    oldest_bucket,
)
from functions.domain.far_ring.fairness import MAX_OWN
from functions.domain.jobs.job import Priority
from testkit.builders import worst_cursors


def test_a_new_shard_starts_every_class_at_the_same_bucket():
    assert first_cursors(60) == {priority: ClassCursor(Position(60)) for priority in Priority}


def test_the_oldest_bucket_is_that_of_the_slowest_class_or_tenant():
    cursors = first_cursors(600)
    assert oldest_bucket(cursors) == 600

    cursors[Priority.HIGH] = ClassCursor(Position(540))
    assert oldest_bucket(cursors) == 540

    whales = {"whale": OwnCursor(Position(60)), "minnow": OwnCursor(Position(120))}
    cursors[Priority.LOW] = ClassCursor(Position(600), whales)
    assert oldest_bucket(cursors) == 60


def test_a_tenant_that_is_held_makes_nobody_old_but_is_not_passed():
    cursors = first_cursors(600)
    cursors[Priority.LOW] = ClassCursor(
        Position(600), {"paused": OwnCursor(Position(60, "3#paused#7#j"), is_held_back=True)}
    )

    assert oldest_bucket(cursors) == 600
    assert (handled_for(cursors, "paused"), handled_for(cursors, "acme")) == (60, 600)
    assert has_passed(cursors, 60, "3#paused#7#j")
    assert not has_passed(cursors, 60, "3#paused#8#j")
    assert has_passed(cursors, 540, "3#acme#8#j")
    assert not has_passed(cursors, 600, "3#acme#8#j")
    assert has_passed(cursors, 60, "2#paused#8#j")


def test_cursors_are_read_as_they_were_written():
    own = {
        "whale": OwnCursor(Position(60, "3#whale#1"), deficit=7),
        "paused": OwnCursor(Position(0), is_held_back=True),
    }
    cursors = {**first_cursors(600), Priority.LOW: ClassCursor(Position(600, "3#x"), own, turn="whale")}

    assert decode_cursors(encode_cursors(cursors)) == cursors


def test_the_oldest_bucket_is_that_of_the_oldest_alarm_that_has_not_handled():
    cursors = {**first_cursors(600), Priority.HIGH: ClassCursor(Position(600), unhandled=Position(540, "1#acme"))}

    assert oldest_bucket(cursors) == 540
    assert handled_for(cursors, "acme") == 540
    assert has_passed(cursors, 540, "1#acme#1#j")


def test_cursors_that_have_no_room_are_written_closely_and_read_as_they_were():
    cursors = worst_cursors(MAX_OWN)
    plainly = sum(
        len(tenant) + len(own.at.key) for of_class in cursors.values() for tenant, own in of_class.own.items()
    )

    written = encode_cursors(cursors)

    assert plainly > MOST_PLAIN
    assert len(written) < plainly * 0.9
    assert decode_cursors(written) == cursors


def test_the_most_cursors_of_the_longest_tenants_and_jobs_fit_into_an_item():
    """With its names and all else that a row has, which is less than half a KB."""
    assert len(encode_cursors(worst_cursors(MAX_OWN))) + 512 < 400 * 1_024


def test_no_position_is_reported_otherwise_for_being_written_closely(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cursor_module, "MOST_PLAIN", 0)
    keys = ["", "#", "=", "2#acme#", "2#acme#0001803902400#j", "2#acme", "1#acme#7", "#2#acme#", "é\uffff"]
    own = {f"acme{number or ''}": OwnCursor(Position(660 - 60 * number, key)) for number, key in enumerate(keys)}
    cursors = {**first_cursors(600), Priority.NORMAL: ClassCursor(Position(600, "2#x"), own, "acme", Position(0, "k"))}

    assert decode_cursors(encode_cursors(cursors)) == cursors


def test_what_is_written_closely_is_no_row_of_the_release_before():
    written = json.loads(encode_cursors(worst_cursors(MAX_OWN)))

    assert all("own" not in of_class for of_class in written.values())


def test_an_audit_position_is_ordered_as_the_rows_are_read():
    positions = [
        BucketAuditPosition(60),
        BucketAuditPosition(60, 0, "2#acme"),
        BucketAuditPosition(60, 1),
        BucketAuditPosition(60, 1, "0#acme"),
        BucketAuditPosition(120),
    ]

    assert sorted(positions[number] for number in (3, 0, 4, 2, 1)) == positions


def test_cursors_are_written_small():
    written = encode_cursors(first_cursors(1_803_902_400))

    assert len(written) < 200
    assert json.loads(written)["0"] == {"at": [1_803_902_400, ""], "own": {}}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"0":{"at":[1,""],"own":{}}}', encode_cursors(first_cursors(0)).replace("own", "owns")],
)
def test_a_position_is_never_guessed(text: str):
    with pytest.raises(Undecodable):
        decode_cursors(text)
