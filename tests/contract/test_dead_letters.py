"""What every store of dead letters keeps: what failed for good, with its error, its attempts and the job."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.adapters.dynamodb_dead_letters import LIFE
from functions.domain.instants import MILLISECOND
from functions.domain.job import Payload
from functions.domain.job_id import job_id_of
from functions.domain.timer_key import NO_TENANT
from functions.ports import DeadLetter
from tests.builders import NOON, a_timer
from tests.contract.conftest import ON_DYNAMODB, LetterSubject


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

    assert letter_subject.expires_at() == NOON + LIFE == NOON + timedelta(days=90)


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_letter_keeps_the_beginning_of_what_would_not_fit_into_a_row(letter_subject: LetterSubject):
    long = DeadLetter(tenant=NO_TENANT, identity="m", dead_at=NOON, error="e" * 500_000, raw="é" * 500_000)

    letter_subject.dead_letters.put(long)

    [kept] = letter_subject.letters()
    assert (kept.error, kept.raw) == ("e" * 2_000, "é" * 65_536)


def a_letter() -> DeadLetter:
    timer = a_timer(attempt=3, payload=Payload(text='"\ufffe\x00\U0001f600"'))
    return DeadLetter(
        tenant=timer.job.tenant,
        identity=timer.job.identity,
        dead_at=NOON,
        error="it hurts",
        attempt=3,
        job_id=str(job_id_of(timer.job)),
        timer=timer,
    )
