"""What every store of dead letters keeps: what failed for good, with its error, its attempts and the job."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.dead_letters.letter_id import LETTER_LIFE, LetterId, parse_letter_id
from functions.domain.errors import InvalidLetterId
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Payload
from functions.domain.jobs.job_id import job_id_of
from functions.domain.key_lengths import LETTER_IDENTITY
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON, a_timer
from tests.contract.conftest import ON_DYNAMODB, LetterSubject

HOUR = timedelta(hours=1)


def test_a_dead_letter_is_kept_as_it_was_put(letter_subject: LetterSubject):
    letter = a_letter()

    letter_subject.dead_letters.put(letter)

    assert letter_subject.letters() == [letter]


def test_what_tickwheel_did_not_write_is_kept_as_it_was_received(letter_subject: LetterSubject):
    foreign = DeadLetter(
        tenant=NO_TENANT, identity="message-1", dead_at=NOON, error="undecodable", raw='{"not":"ours \U0001f600"}'
    )

    letter_subject.dead_letters.put(foreign)

    assert letter_subject.letters() == [foreign]


def test_a_letter_is_kept_under_the_longest_name_that_there_is(letter_subject: LetterSubject):
    letters = [
        replace(a_letter(), identity=identity) for identity in ("i" * LETTER_IDENTITY, "ü" * (LETTER_IDENTITY // 2))
    ]

    for letter in letters:
        letter_subject.dead_letters.put(letter)
        assert parse_letter_id(str(letter.letter_id)) == letter.letter_id
        assert letter_subject.dead_letters.get(letter.letter_id) == letter


@pytest.mark.parametrize("identity", ["i" * (LETTER_IDENTITY + 1), "ü" * (LETTER_IDENTITY // 2 + 1), "\ud800", ""])
def test_no_id_of_a_letter_is_longer_than_its_key(identity: str):
    with pytest.raises(InvalidLetterId):
        parse_letter_id(f"d1~acme~mz3q8w00~{identity}")


def test_the_hours_that_had_letters_are_told_newest_first(letter_subject: LetterSubject):
    store = letter_subject.dead_letters
    for dead_at in (NOON, NOON + HOUR / 2, NOON - 3 * HOUR, NOON - 50 * HOUR):
        store.put(replace(a_letter(), dead_at=dead_at))
    store.put(replace(a_letter(), tenant="globex", dead_at=NOON - HOUR, timer=None))

    everything = store.hours("acme", since=NOON - LETTER_LIFE, until=NOON + HOUR, limit=9)
    assert everything == ([NOON, NOON - 3 * HOUR, NOON - 50 * HOUR], False)
    assert store.hours("acme", since=NOON - LETTER_LIFE, until=NOON, limit=1) == ([NOON], True)
    assert store.hours("acme", since=NOON - 2 * HOUR, until=NOON - HOUR / 2, limit=9) == ([], False)
    # Of the hours of both ends all is meant.
    assert store.hours("acme", since=NOON - 2.5 * HOUR, until=NOON, limit=9) == ([NOON, NOON - 3 * HOUR], False)
    assert store.hours("nobody", since=NOON - LETTER_LIFE, until=NOON, limit=9) == ([], False)


def test_a_letter_put_twice_with_the_same_instant_is_one(letter_subject: LetterSubject):
    letter = a_letter()

    letter_subject.dead_letters.put(letter)
    letter_subject.dead_letters.put(letter)

    assert letter_subject.letters() == [letter]


def test_letters_of_other_jobs_other_tenants_and_other_instants_are_letters_of_their_own(
    letter_subject: LetterSubject,
):
    letter = a_letter()
    letters = [
        letter,
        replace(letter, dead_at=NOON + MILLISECOND),
        replace(letter, dead_at=NOON + timedelta(hours=1)),
        replace(letter, identity="other"),
        replace(letter, tenant="globex", timer=None),
    ]

    for each in letters:
        letter_subject.dead_letters.put(each)

    assert sorted(map(str, letter_subject.letters())) == sorted(map(str, letters))


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_letter_lives_90_days(letter_subject: LetterSubject):
    assert letter_subject.expires_at is not None
    letter_subject.dead_letters.put(a_letter())

    assert letter_subject.expires_at() == NOON + LETTER_LIFE == NOON + timedelta(days=90)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_letter_keeps_the_beginning_of_what_would_not_fit_into_a_row(letter_subject: LetterSubject):
    long = DeadLetter(tenant=NO_TENANT, identity="m", dead_at=NOON, error="e" * 500_000, raw="é" * 500_000)

    letter_subject.dead_letters.put(long)

    [kept] = letter_subject.letters()
    assert (kept.error, kept.raw) == ("e" * 2_000, "é" * 65_536)


def test_a_letter_is_found_by_its_id(letter_subject: LetterSubject):
    letter, foreign = a_letter(), a_foreign_letter()
    letter_subject.dead_letters.put(letter)
    letter_subject.dead_letters.put(foreign)

    assert letter_subject.dead_letters.get(letter.letter_id) == letter
    assert letter_subject.dead_letters.get(foreign.letter_id) == foreign


def test_a_letter_is_found_by_its_id_however_fine_the_instant_of_its_death(letter_subject: LetterSubject):
    letter = replace(a_letter(), dead_at=NOON + timedelta(microseconds=7_999))
    letter_subject.dead_letters.put(letter)

    found = letter_subject.dead_letters.get(letter.letter_id)

    assert found == replace(letter, dead_at=NOON + 7 * MILLISECOND)
    assert found is not None
    assert found.letter_id == letter.letter_id


def test_what_is_not_there_is_not_found(letter_subject: LetterSubject):
    letter = a_letter()
    letter_subject.dead_letters.put(letter)

    for other in ({"tenant": "globex"}, {"identity": "other"}, {"dead_at": NOON + MILLISECOND}):
        assert letter_subject.dead_letters.get(replace(letter.letter_id, **other)) is None


def test_a_forgotten_letter_is_gone_and_forgetting_it_again_changes_nothing(letter_subject: LetterSubject):
    letter, other = a_letter(), a_letter(identity="other")
    letter_subject.dead_letters.put(letter)
    letter_subject.dead_letters.put(other)

    for _ in range(2):
        letter_subject.dead_letters.delete(letter.letter_id)

    assert letter_subject.letters() == [other]


def test_the_first_mark_of_a_letter_stays(letter_subject: LetterSubject):
    letter, other = a_letter(), a_letter(identity="other")
    letter_subject.dead_letters.put(letter)
    letter_subject.dead_letters.put(other)

    for later in (timedelta(microseconds=1_500), HOUR):
        assert letter_subject.dead_letters.mark(letter.letter_id, now=NOON + later)

    marked = replace(letter, replayed_at=NOON + 2 * MILLISECOND)
    assert letter_subject.dead_letters.get(letter.letter_id) == marked
    assert letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10) == ([other, marked], False)


def test_what_is_gone_is_not_marked(letter_subject: LetterSubject):
    letter = a_letter()

    assert not letter_subject.dead_letters.mark(letter.letter_id, now=NOON)
    assert letter_subject.letters() == []


def test_letters_of_an_hour_are_read_newest_first(letter_subject: LetterSubject):
    hour = [
        a_letter(dead_at=NOON, identity="b"),
        a_letter(dead_at=NOON, identity="c"),
        a_letter(dead_at=NOON + MILLISECOND, identity="a"),
        a_letter(dead_at=NOON + HOUR - MILLISECOND),
    ]
    elsewhere = [a_letter(dead_at=NOON - MILLISECOND), a_letter(dead_at=NOON + HOUR), a_letter(tenant="globex")]
    for letter in [*elsewhere, *hour]:
        letter_subject.dead_letters.put(letter)

    found, _ = letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10)

    assert found == hour[::-1]


def test_letters_of_an_hour_are_read_page_by_page(letter_subject: LetterSubject):
    letters = [a_letter(dead_at=NOON + minute * timedelta(minutes=1)) for minute in range(5)]
    for letter in letters:
        letter_subject.dead_letters.put(letter)

    first, has_more = letter_subject.dead_letters.page(NOON, before=behind_all(), limit=3)
    second, has_yet_more = letter_subject.dead_letters.page(NOON, before=first[-1].letter_id, limit=3)

    assert first + second == letters[::-1]
    assert (has_more, has_yet_more) == (True, False)


def test_letters_that_died_before_an_instant_lie_behind_it(letter_subject: LetterSubject):
    before, at = a_letter(dead_at=NOON + MILLISECOND), a_letter(dead_at=NOON + 2 * MILLISECOND)
    letter_subject.dead_letters.put(before)
    letter_subject.dead_letters.put(at)

    found, _ = letter_subject.dead_letters.page(NOON, before=behind_all(at.dead_at), limit=10)

    assert found == [before]


def test_an_hour_without_letters_is_empty(letter_subject: LetterSubject):
    assert letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10) == ([], False)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_record_of_a_newer_version_is_told_as_it_is_and_does_not_hide_the_others(letter_subject: LetterSubject):
    letter = a_letter()
    letter_subject.dead_letters.put(letter)
    assert letter_subject.spoil is not None
    letter_subject.spoil()

    found, _ = letter_subject.dead_letters.page(NOON, before=behind_all(), limit=10)

    assert found == [replace(letter, timer=None, raw='{"lunar":28}')]


def behind_all(dead_at: datetime = NOON + timedelta(days=1)) -> LetterId:
    return LetterId(tenant="acme", dead_at=dead_at, identity="")


def a_letter(*, dead_at: datetime = NOON, **overrides: Any) -> DeadLetter:
    timer = a_timer(attempt=3, payload=Payload(text='"\ufffe\x00\U0001f600"'), **overrides)
    return DeadLetter(
        tenant=timer.job.tenant,
        identity=timer.job.identity,
        dead_at=dead_at,
        error="it hurts",
        error_class="timeout",
        attempt=3,
        job_id=str(job_id_of(timer.job)),
        timer=timer,
        fence=5,
    )


def a_foreign_letter() -> DeadLetter:
    return DeadLetter(
        tenant=NO_TENANT, identity="a#b~c", dead_at=NOON, error="undecodable", error_class="undecodable", raw="é"
    )
