import json

import pytest

from functions.domain.cursor import (
    AuditPosition,
    ClassCursor,
    Position,
    decode_cursors,
    encode_cursors,
    first_cursors,
    oldest_bucket,
)
from functions.domain.errors import Undecodable
from functions.domain.job import Priority


def test_a_new_shard_starts_every_class_at_the_same_bucket():
    assert first_cursors(60) == {priority: ClassCursor(Position(60)) for priority in Priority}


def test_the_oldest_bucket_is_that_of_the_slowest_class_or_tenant():
    cursors = first_cursors(600)
    assert oldest_bucket(cursors) == 600

    cursors[Priority.HIGH] = ClassCursor(Position(540))
    assert oldest_bucket(cursors) == 540

    cursors[Priority.LOW] = ClassCursor(Position(600), {"whale": Position(60), "minnow": Position(120)})
    assert oldest_bucket(cursors) == 60


def test_an_audit_position_is_ordered_as_the_rows_are_read():
    positions = [
        AuditPosition(60),
        AuditPosition(60, 0, "2#acme"),
        AuditPosition(60, 1),
        AuditPosition(60, 1, "0#acme"),
        AuditPosition(120),
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
