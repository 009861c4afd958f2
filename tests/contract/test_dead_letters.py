"""What every store of dead letters keeps: what failed for good, with its error, its attempts and the job."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE, DeadLetterId, parse_dead_letter_id
from functions.domain.errors import InvalidDeadLetterId
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import HOUR, MILLISECOND
from functions.domain.jobs.job import Payload
from functions.domain.key_lengths import DEAD_LETTER_IDENTITY
from functions.ports.dead_letters import DeadLetter
from testkit import builders
from testkit.builders import NOON, a_timer
from tests.contract.conftest import ON_DYNAMODB, DeadLetterSubject


def test_a_dead_letter_is_kept_as_it_was_put(dead_letter_subject: DeadLetterSubject):
    letter = a_dead_letter()

    dead_letter_subject.dead_letters.put(letter)

    assert dead_letter_subject.letters() == [letter]


def test_what_tickwheel_did_not_write_is_kept_as_it_was_received(dead_letter_subject: DeadLetterSubject):
    foreign = DeadLetter(
        tenant=NO_TENANT, identity="message-1", dead_at=NOON, error="undecodable", raw='{"not":"ours \U0001f600"}'
    )

    dead_letter_subject.dead_letters.put(foreign)

    assert dead_letter_subject.letters() == [foreign]


def test_a_dead_letter_is_kept_under_the_longest_name_that_there_is(dead_letter_subject: DeadLetterSubject):
    letters = [
        replace(a_dead_letter(), identity=identity)
        for identity in ("i" * DEAD_LETTER_IDENTITY, "ü" * (DEAD_LETTER_IDENTITY // 2))
    ]

    for letter in letters:
        dead_letter_subject.dead_letters.put(letter)
        assert parse_dead_letter_id(str(letter.letter_id)) == letter.letter_id
        assert dead_letter_subject.dead_letters.get(letter.letter_id) == letter


@pytest.mark.parametrize(
    "identity", ["i" * (DEAD_LETTER_IDENTITY + 1), "ü" * (DEAD_LETTER_IDENTITY // 2 + 1), "\ud800", ""]
)
def test_no_id_of_a_dead_letter_is_longer_than_its_key(identity: str):
    with pytest.raises(InvalidDeadLetterId):
        parse_dead_letter_id(f"d1~acme~mz3q8w00~{identity}")


def test_the_hours_that_had_dead_letters_are_reported_newest_first(dead_letter_subject: DeadLetterSubject):
    store = dead_letter_subject.dead_letters
    for dead_at in (NOON, NOON + HOUR / 2, NOON - 3 * HOUR, NOON - 50 * HOUR):
        store.put(replace(a_dead_letter(), dead_at=dead_at))
    store.put(replace(a_dead_letter(), tenant="globex", dead_at=NOON - HOUR, timer=None))

    everything = store.hours("acme", since=NOON - DEAD_LETTER_LIFE, until=NOON + HOUR, limit=9)
    assert everything == ([NOON, NOON - 3 * HOUR, NOON - 50 * HOUR], False)
    assert store.hours("acme", since=NOON - DEAD_LETTER_LIFE, until=NOON, limit=1) == ([NOON], True)
    assert store.hours("acme", since=NOON - 2 * HOUR, until=NOON - HOUR / 2, limit=9) == ([], False)
    # Of the hours of both ends all is meant.
    assert store.hours("acme", since=NOON - 2.5 * HOUR, until=NOON, limit=9) == ([NOON, NOON - 3 * HOUR], False)
    assert store.hours("nobody", since=NOON - DEAD_LETTER_LIFE, until=NOON, limit=9) == ([], False)


def test_a_dead_letter_put_twice_with_the_same_instant_is_one(dead_letter_subject: DeadLetterSubject):
    letter = a_dead_letter()

    dead_letter_subject.dead_letters.put(letter)
    dead_letter_subject.dead_letters.put(letter)

    assert dead_letter_subject.letters() == [letter]


def test_dead_letters_of_other_jobs_other_tenants_and_other_instants_are_dead_letters_of_their_own(
    dead_letter_subject: DeadLetterSubject,
):
    letter = a_dead_letter()
    letters = [
        letter,
        replace(letter, dead_at=NOON + MILLISECOND),
        replace(letter, dead_at=NOON + timedelta(hours=1)),
        replace(letter, identity="other"),
        replace(letter, tenant="globex", timer=None),
    ]

    for each in letters:
        dead_letter_subject.dead_letters.put(each)

    assert sorted(map(str, dead_letter_subject.letters())) == sorted(map(str, letters))


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_dead_letter_lives_90_days(dead_letter_subject: DeadLetterSubject):
    assert dead_letter_subject.expires_at is not None
    dead_letter_subject.dead_letters.put(a_dead_letter())

    assert dead_letter_subject.expires_at() == NOON + DEAD_LETTER_LIFE == NOON + timedelta(days=90)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_dead_letter_keeps_the_beginning_of_what_would_not_fit_into_a_row(dead_letter_subject: DeadLetterSubject):
    long = DeadLetter(tenant=NO_TENANT, identity="m", dead_at=NOON, error="e" * 500_000, raw="é" * 500_000)

    dead_letter_subject.dead_letters.put(long)

    [kept] = dead_letter_subject.letters()
    assert (kept.error, kept.raw) == ("e" * 2_000, "é" * 65_536)


def test_a_dead_letter_is_found_by_its_id(dead_letter_subject: DeadLetterSubject):
    letter, foreign = a_dead_letter(), a_foreign_dead_letter()
    dead_letter_subject.dead_letters.put(letter)
    dead_letter_subject.dead_letters.put(foreign)

    assert dead_letter_subject.dead_letters.get(letter.letter_id) == letter
    assert dead_letter_subject.dead_letters.get(foreign.letter_id) == foreign


def test_a_dead_letter_is_found_by_its_id_however_fine_the_instant_of_its_death(dead_letter_subject: DeadLetterSubject):
    letter = replace(a_dead_letter(), dead_at=NOON + timedelta(microseconds=7_999))
    dead_letter_subject.dead_letters.put(letter)

    found = dead_letter_subject.dead_letters.get(letter.letter_id)

    assert found == replace(letter, dead_at=NOON + 7 * MILLISECOND)
    assert found is not None
    assert found.letter_id == letter.letter_id


def test_what_is_not_there_is_not_found(dead_letter_subject: DeadLetterSubject):
    letter = a_dead_letter()
    dead_letter_subject.dead_letters.put(letter)

    for other in ({"tenant": "globex"}, {"identity": "other"}, {"dead_at": NOON + MILLISECOND}):
        assert dead_letter_subject.dead_letters.get(replace(letter.letter_id, **other)) is None


def test_a_forgotten_dead_letter_is_gone_and_forgetting_it_again_changes_nothing(
    dead_letter_subject: DeadLetterSubject,
):
    letter, other = a_dead_letter(), a_dead_letter(identity="other")
    dead_letter_subject.dead_letters.put(letter)
    dead_letter_subject.dead_letters.put(other)

    for _ in range(2):
        dead_letter_subject.dead_letters.delete(letter.letter_id)

    assert dead_letter_subject.letters() == [other]


def test_the_first_mark_of_a_dead_letter_stays(dead_letter_subject: DeadLetterSubject):
    letter, other = a_dead_letter(), a_dead_letter(identity="other")
    dead_letter_subject.dead_letters.put(letter)
    dead_letter_subject.dead_letters.put(other)

    for later in (timedelta(microseconds=1_500), HOUR):
        assert dead_letter_subject.dead_letters.mark(letter.letter_id, now=NOON + later)

    marked = replace(letter, replayed_at=NOON + 2 * MILLISECOND)
    assert dead_letter_subject.dead_letters.get(letter.letter_id) == marked
    assert dead_letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10) == ([other, marked], False)


def test_what_is_gone_is_not_marked(dead_letter_subject: DeadLetterSubject):
    letter = a_dead_letter()

    assert not dead_letter_subject.dead_letters.mark(letter.letter_id, now=NOON)
    assert dead_letter_subject.letters() == []


def test_dead_letters_of_an_hour_are_read_newest_first(dead_letter_subject: DeadLetterSubject):
    hour = [
        a_dead_letter(dead_at=NOON, identity="b"),
        a_dead_letter(dead_at=NOON, identity="c"),
        a_dead_letter(dead_at=NOON + MILLISECOND, identity="a"),
        a_dead_letter(dead_at=NOON + HOUR - MILLISECOND),
    ]
    elsewhere = [
        a_dead_letter(dead_at=NOON - MILLISECOND),
        a_dead_letter(dead_at=NOON + HOUR),
        a_dead_letter(tenant="globex"),
    ]
    for letter in [*elsewhere, *hour]:
        dead_letter_subject.dead_letters.put(letter)

    found, _ = dead_letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10)

    assert found == hour[::-1]


def test_dead_letters_of_an_hour_are_read_page_by_page(dead_letter_subject: DeadLetterSubject):
    letters = [a_dead_letter(dead_at=NOON + minute * timedelta(minutes=1)) for minute in range(5)]
    for letter in letters:
        dead_letter_subject.dead_letters.put(letter)

    first, has_more = dead_letter_subject.dead_letters.page(NOON, before=behind_all(), limit=3)
    second, has_yet_more = dead_letter_subject.dead_letters.page(NOON, before=first[-1].letter_id, limit=3)

    assert first + second == letters[::-1]
    assert (has_more, has_yet_more) == (True, False)


def test_dead_letters_that_died_before_an_instant_lie_behind_it(dead_letter_subject: DeadLetterSubject):
    before, at = a_dead_letter(dead_at=NOON + MILLISECOND), a_dead_letter(dead_at=NOON + 2 * MILLISECOND)
    dead_letter_subject.dead_letters.put(before)
    dead_letter_subject.dead_letters.put(at)

    found, _ = dead_letter_subject.dead_letters.page(NOON, before=behind_all(at.dead_at), limit=10)

    assert found == [before]


def test_an_hour_without_dead_letters_is_empty(dead_letter_subject: DeadLetterSubject):
    assert dead_letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10) == ([], False)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_record_of_a_newer_version_is_reported_as_it_is_and_does_not_hide_the_others(
    dead_letter_subject: DeadLetterSubject,
):
    letter = a_dead_letter()
    dead_letter_subject.dead_letters.put(letter)
    assert dead_letter_subject.spoil is not None
    dead_letter_subject.spoil()

    found, _ = dead_letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10)

    assert found == [replace(letter, timer=None, raw='{"lunar":28}')]


def behind_all(dead_at: datetime = NOON + timedelta(days=1)) -> DeadLetterId:
    return DeadLetterId(tenant="acme", dead_at=dead_at, identity="")


def a_dead_letter(*, dead_at: datetime = NOON, **overrides: Any) -> DeadLetter:
    timer = a_timer(attempt=3, payload=Payload(text='"\ufffe\x00\U0001f600"'), **overrides)
    return builders.a_dead_letter(timer, dead_at=dead_at, error_class="timeout", fence=5)


def a_foreign_dead_letter() -> DeadLetter:
    return DeadLetter(
        tenant=NO_TENANT, identity="a#b~c", dead_at=NOON, error="undecodable", error_class="undecodable", raw="é"
    )
