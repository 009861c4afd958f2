"""What every store of collections keeps: rows that nobody forgets, releases whose rows are chosen once, numbers that only grow."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.collection import (
    CollectionId,
    CollectionState,
    OpenRelease,
    collection_of,
    count_of,
    members_of,
    upto,
)
from functions.domain.jobs.job import Payload, Timer
from functions.ports.collections import CollectionStore
from testkit.builders import NOON, a_timer

COLLECT = Collect(key="export", window=HOUR)


def a_member(**given: Any) -> Timer:
    return a_timer(collect=COLLECT, **given)


EXPORT = collection_of(a_member().job)


def waiting(collections: CollectionStore, collection: CollectionId = EXPORT, *, limit: int = 100) -> list[Timer]:
    rows = collections.waiting(collection, upto="~", limit=limit)
    return [timer for row in rows for timer in row.timers or ()]


def _identity(timer: Timer) -> str:
    return timer.job.identity


def test_nothing_is_known_of_a_collection_at_first(collections: CollectionStore):
    assert collections.state(EXPORT) == CollectionState()
    assert collections.opened(EXPORT) is None
    assert waiting(collections) == []
    assert collections.places(EXPORT, limit=10) == []


def test_what_is_put_is_read_as_it_was(collections: CollectionStore):
    timers = [a_member(payload=Payload(text=text)) for text in ('"{}[],\\"#"', '{"ä": "\ufffe"}', "1.50")]

    assert collections.put(EXPORT, timers) == []

    assert sorted(waiting(collections), key=_identity) == sorted(timers, key=_identity)
    assert count_of(collections.places(EXPORT, limit=10)) == 3


def test_jobs_that_are_due_in_the_same_moment_stand_in_few_rows(collections: CollectionStore):
    timers = [a_member() for _ in range(40)]

    collections.put(EXPORT, timers)

    assert len(collections.places(EXPORT, limit=100)) == 3
    assert {timer.job.identity for timer in waiting(collections)} == {timer.job.identity for timer in timers}


@pytest.mark.parametrize("count", [1, 26, 60])
def test_any_number_of_rows_is_put_and_taken_out(collections: CollectionStore, count: int):
    timers = [a_member(due_at=NOON + number * MINUTE) for number in range(count)]

    assert collections.put(EXPORT, timers) == []
    places = collections.places(EXPORT, limit=100)
    collections.remove(EXPORT, places[:-1])
    collections.remove(EXPORT, places[:-1])

    assert len(places) == count
    assert waiting(collections) == timers[-1:]


def test_what_is_put_twice_stands_there_once(collections: CollectionStore):
    timer = a_member()

    for _ in range(2):
        collections.put(EXPORT, [timer])

    assert waiting(collections) == [timer]


def test_rows_are_found_in_the_order_of_their_times_and_up_to_one(collections: CollectionStore):
    late, soon, now = (a_member(due_at=NOON + wait) for wait in (HOUR, MINUTE, timedelta(0)))
    collections.put(EXPORT, [late, soon, now])

    rows = collections.waiting(EXPORT, upto=upto(NOON + MINUTE), limit=10)

    assert [row.timers for row in rows] == [(now,), (soon,)]
    assert collections.waiting(EXPORT, upto=upto(NOON + MINUTE), limit=1) == rows[:1]
    assert collections.waiting(EXPORT, after=rows[0].place, upto=upto(NOON + MINUTE), limit=10) == rows[1:]
    assert collections.waiting(EXPORT, after=rows[1].place, upto=upto(NOON + MINUTE), limit=10) == []
    places = collections.places(EXPORT, limit=10)
    assert collections.places(EXPORT, after=places[0], limit=1) == [rows[1].place]
    assert collections.places(EXPORT, after=places[2], limit=10) == []
    assert collections.rows(EXPORT, [rows[1].place, "0#nobody", rows[0].place]) == rows


def test_collections_of_others_are_others(collections: CollectionStore):
    collections.put(EXPORT, [a_member()])
    collections.note_opening(EXPORT, NOON, number=1)

    for other in (CollectionId("other", EXPORT.digest), CollectionId("acme", "0" * 16)):
        assert waiting(collections, other) == []
        assert collections.state(other) == CollectionState()


def test_when_the_next_release_is_due_is_noted(collections: CollectionStore):
    for at in (NOON + HOUR, NOON + MINUTE):
        collections.note_opening(EXPORT, at, number=1)

    assert collections.state(EXPORT) == CollectionState(number=1, opens_at=NOON + MINUTE)


def test_a_release_that_has_ended_lets_the_next_one_come(collections: CollectionStore):
    collections.note_opening(EXPORT, NOON, number=1)

    assert collections.advance(EXPORT, number=1)
    assert collections.state(EXPORT) == CollectionState(number=2)
    collections.note_opening(EXPORT, NOON + HOUR, number=2)
    assert not collections.advance(EXPORT, number=1)

    assert collections.state(EXPORT) == CollectionState(number=2, opens_at=NOON + HOUR)


def test_a_note_of_a_release_that_has_ended_comes_too_late(collections: CollectionStore):
    collections.note_opening(EXPORT, NOON, number=1)
    collections.advance(EXPORT, number=1)

    collections.note_opening(EXPORT, NOON + HOUR, number=1)

    assert collections.state(EXPORT) == CollectionState(number=2)


def test_a_release_is_sent_ahead_once(collections: CollectionStore):
    assert [collections.note_full(EXPORT, 1) for _ in range(2)] == [True, False]
    collections.advance(EXPORT, number=1)

    assert [collections.note_full(EXPORT, number) for number in (1, 3, 2, 2)] == [False, False, True, False]
    assert collections.state(EXPORT).full == 2


def test_the_rows_of_a_release_are_chosen_once(collections: CollectionStore):
    first, other = OpenRelease(number=1, places=("1#a", "1#b,c")), OpenRelease(number=1, places=("1#d",))

    assert collections.open(EXPORT, first, now=NOON) == first
    assert collections.open(EXPORT, other, now=NOON) == first
    assert collections.opened(EXPORT) == first
    assert [first.place_of(identity) for identity in "abcd"] == ["1#a", "1#b,c", "1#b,c", None]


def test_a_later_release_takes_the_place_of_an_earlier_and_never_the_other_way(collections: CollectionStore):
    first, second = (OpenRelease(number=number, places=(f"{number}#a",)) for number in (1, 2))

    collections.open(EXPORT, first, now=NOON)

    assert collections.open(EXPORT, second, now=NOON) == second
    assert collections.open(EXPORT, first, now=NOON) == second


def test_collections_in_which_something_waits_are_found_a_page_at_a_time(collections: CollectionStore):
    mine = [CollectionId(f"tenant-{number}", EXPORT.digest) for number in range(7)]
    for each in mine:
        collections.put(each, [a_member(tenant=each.tenant)])
    collections.note_opening(CollectionId("idle", EXPORT.digest), NOON, number=1)

    found: set[CollectionId] = set()
    after, pages = "", 0
    while pages == 0 or after:
        page, after = collections.waited_for(after=after, limit=2)
        found |= page
        pages += 1

    assert found == set(mine)
    assert pages >= 4
    collections.waited_for(after="anything at all", limit=2)


def test_of_a_deleted_tenant_nothing_is_kept(collections: CollectionStore):
    collections.put(EXPORT, [a_member(due_at=NOON + number * SECOND * 2) for number in range(150)])
    collections.open(EXPORT, OpenRelease(number=1, places=("1#a",)), now=NOON)
    collections.note_opening(EXPORT, NOON, number=1)

    for _ in range(5):
        if not collections.forget(EXPORT):
            break

    assert waiting(collections) == []
    assert collections.opened(EXPORT) is None
    assert collections.state(EXPORT) == CollectionState()


def test_the_members_of_a_place_are_those_of_its_row(collections: CollectionStore):
    timers = [a_member() for _ in range(3)]
    collections.put(EXPORT, timers)

    (place,) = collections.places(EXPORT, limit=10)

    assert members_of(place) == [timer.job.identity for timer in timers]
