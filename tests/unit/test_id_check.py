"""The check in what is random of an id."""

import string
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.errors import InvalidJobId
from functions.domain.jobs.id_check import CHECK_LENGTH, SECRET_BYTES, has_check
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from testkit.builders import ID_SECRET, NOON, a_job, with_check

GIVEN = with_check(job_id_of(a_job(identity="abc")))
CHARACTERS = string.ascii_letters + string.digits + "~._:+-"


def test_an_id_with_its_check_is_known_after_it_was_written_and_read():
    assert has_check(parse_job_id(str(GIVEN)), secret=ID_SECRET)
    assert GIVEN.identity[:-CHECK_LENGTH] == "abc"


def test_a_check_is_the_same_in_every_release():
    assert GIVEN.identity == "abc1162135ccf8444e6"


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "acmf"},
        {"priority": Priority.HIGH},
        {"delivery": Delivery.AT_LEAST_ONCE},
        {"delivery": Delivery.AT_MOST_ONCE},
        {"bucket": GIVEN.bucket + 60},
        {"shard": GIVEN.shard ^ 1},
        {"due_at": GIVEN.due_at + timedelta(milliseconds=1)},
        {"identity": "b" + GIVEN.identity[1:]},
        {"identity": GIVEN.identity[:-CHECK_LENGTH]},
        {"identity": GIVEN.identity[-CHECK_LENGTH:]},
        {"identity": "x"},
    ],
)
def test_an_id_of_which_anything_was_changed_has_no_check(change: dict[str, Any]):
    assert not has_check(replace(GIVEN, **change), secret=ID_SECRET)


@given(position=st.integers(0, len(str(GIVEN)) - 1), character=st.sampled_from(CHARACTERS))
def test_no_id_with_another_character_has_a_check(position: int, character: str):
    text = str(GIVEN)
    changed = text[:position] + character + text[position + 1 :]
    try:
        parsed = parse_job_id(changed)
    except InvalidJobId:
        return

    assert has_check(parsed, secret=ID_SECRET) is (changed == text)


@given(
    st.builds(
        JobId,
        tenant=st.sampled_from(["a", "ab", "acme"]),
        priority=st.sampled_from(Priority),
        delivery=st.sampled_from(Delivery),
        bucket=st.integers(0, 2**40),
        shard=st.integers(0, 99),
        due_at=st.integers(0, 10**9).map(lambda ms: NOON + timedelta(milliseconds=ms)),
        identity=st.text("ab2~_.", min_size=1, max_size=40).map(lambda text: text.replace("~", "-")),
    ),
    st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES),
)
def test_only_who_has_the_secret_makes_ids(job_id: JobId, secret: bytes):
    made = with_check(job_id, secret=secret)

    assert has_check(made, secret=secret)
    assert has_check(made, secret=ID_SECRET) is (secret == ID_SECRET)


@pytest.mark.parametrize("secret", [b"", b"x" * (SECRET_BYTES - 1), b"x" * (SECRET_BYTES + 1)])
def test_no_id_is_checked_with_what_is_no_secret(secret: bytes):
    with pytest.raises(ValueError, match="secret of ids"):
        has_check(GIVEN, secret=secret)
