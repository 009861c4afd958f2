from datetime import timedelta

import pytest

from functions.domain.dead_letters.dead_letter_id import DeadLetterId, parse_dead_letter_id
from functions.domain.errors import InvalidDeadLetterId
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import LATEST
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON


def test_an_id_says_where_the_row_of_its_dead_letter_is():
    letter_id = DeadLetterId(tenant="acme", dead_at=NOON, identity="nightly:2027-03-01T12:00:00.000Z")

    assert parse_dead_letter_id(str(letter_id)) == letter_id


def test_an_id_is_the_same_in_every_release():
    assert str(DeadLetterId(tenant="acme", dead_at=NOON, identity="x.1")) == "d1~acme~n0p8ww00~x.1"


def test_the_id_of_a_dead_letter_is_that_of_its_row_whose_instant_is_rounded_down():
    letter = DeadLetter(tenant="acme", identity="x", dead_at=NOON + timedelta(microseconds=1_999), error="it hurts")

    assert letter.letter_id == DeadLetterId(tenant="acme", dead_at=NOON + timedelta(milliseconds=1), identity="x")


def test_what_tickwheel_did_not_write_has_an_id_that_a_path_can_hold():
    letter_id = DeadLetterId(tenant=NO_TENANT, dead_at=NOON, identity="c5f0#~x")

    assert str(letter_id) == "d1~~n0p8ww00~c5f0#~x"
    assert parse_dead_letter_id(str(letter_id)) == letter_id


def test_an_id_of_the_last_instant_there_is_is_read():
    assert parse_dead_letter_id("d1~acme~2kmc0ao00~x").dead_at == LATEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "d1",
        "d1~acme~a0",
        "d1~acme~a0~",
        "d2~acme~a0~x",
        "D1~acme~a0~x",
        "j1~acme~2e~a0~1~b0~x",
        "d1~a#b~a0~x",
        "d1~?~a0~x",
        "d1~" + "a" * 65 + "~a0~x",
        "d1~acme~~x",
        "d1~acme~A0~x",
        "d1~acme~0a0~x",
        "d1~acme~a_0~x",
        "d1~acme~+a0~x",
        "d1~acme~-a0~x",
        "d1~acme~ a0~x",
        "d1~acme~\uff12~x",
        "d1~acme~zzzzzzzzzzzzzzzz~x",
        "d1~acme~2kmc0ao01~x",
        "d1~acme~a0~" + "x" * 1_200,
        "d1~acme~" + "9" * 1_100 + "~x",
    ],
    ids=lambda value: str(value)[:30],
)
def test_any_other_text_is_refused(text: str):
    with pytest.raises(InvalidDeadLetterId) as refused:
        parse_dead_letter_id(text)

    assert refused.value.text == text
