"""The failed attempts that a ledger row keeps."""

from datetime import timedelta

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.past_attempts import PastAttempt, read_attempts, with_attempt
from testkit.builders import NOON


def test_attempts_are_kept_in_their_order_with_all_that_is_known_of_them():
    first = a_past(1, took=1_500 * MILLISECOND)
    second = a_past(2, error_class="worker_died")

    assert read_attempts(kept_of(first, second)) == [first, second]


def test_the_oldest_make_way_where_there_is_no_room_for_all():
    pasts = [a_past(number) for number in range(1, 101)]

    kept = kept_of(*pasts, room=300)

    read = read_attempts(kept)
    assert len(kept) <= 300
    assert read == pasts[-len(read) :]
    assert len(read) >= 3


def test_nothing_is_kept_where_there_is_no_room_for_one():
    assert with_attempt("", a_past(1), room=20) == ""


def test_of_a_long_error_the_beginning_is_kept_and_a_text_of_any_language_fits_its_room():
    kept = with_attempt("", a_past(1, error="é" * 5_000), room=400)

    assert [past.error for past in read_attempts(kept)] == ["é" * 30]
    assert len(kept.encode()) <= 400


@pytest.mark.parametrize("kept", ["", "{", "7", "[7]", '[["x"]]', '[[1,"x",1,"a","b"]]'])
def test_what_is_no_list_of_attempts_is_none(kept: str):
    assert read_attempts(kept) == []


def test_what_a_newer_release_says_beside_is_left_alone():
    assert read_attempts('[[1,1803902400000,-1,"timeout","late","new"]]') == [
        PastAttempt(attempt=1, ended_at=NOON, error_class="timeout", error="late")
    ]


def a_past(number: int, **overrides: object) -> PastAttempt:
    fields = {"error_class": "http_503", "error": "the target answered 503", **overrides}
    return PastAttempt(attempt=number, ended_at=NOON + number * SECOND, **fields)  # pyright: ignore[reportArgumentType]


def kept_of(*pasts: PastAttempt, room: int = 10_000) -> str:
    kept = ""
    for past in pasts:
        kept = with_attempt(kept, past, room=room)
    return kept


def test_noon_is_what_the_bytes_above_say():
    assert timedelta(milliseconds=1803902400000) == NOON - NOON.fromtimestamp(0, NOON.tzinfo)
