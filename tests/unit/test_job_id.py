from itertools import accumulate

import pytest

from functions.domain.errors import InvalidJobId
from functions.domain.instants import LATEST
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.job_id import JobId, first_identity, job_id_of, moved_identity, movers_of, parse_job_id
from testkit.builders import NOON, a_job


def test_an_id_says_where_the_rows_of_its_job_are():
    job = a_job(identity="order:7", priority=Priority.LOW, delivery=Delivery.AT_MOST_ONCE)

    job_id = parse_job_id(str(job_id_of(job)))

    assert job_id == JobId(
        tenant="acme",
        priority=Priority.LOW,
        delivery=Delivery.AT_MOST_ONCE,
        bucket=job.bucket,
        shard=job.shard,
        due_at=NOON,
        identity="order:7",
    )
    assert job_id.key == job.key


def test_an_id_is_the_same_in_every_release():
    assert str(job_id_of(a_job(identity="x.1"))) == "j1~acme~2e~ttzw00~1~n0p8ww00~x.1"


@pytest.mark.parametrize(("delivery", "is_ledgered"), [(Delivery.EXACTLY_ONCE, True), (Delivery.AT_LEAST_ONCE, False)])
def test_an_id_says_whether_its_job_has_a_ledger_row(delivery: Delivery, is_ledgered: bool):
    assert job_id_of(a_job(delivery=delivery)).is_ledgered is is_ledgered


VALID = "j1~acme~2e~a0~1~b0~x"


def test_the_shortest_id_there_is_is_read():
    assert str(parse_job_id(VALID)) == VALID


def test_an_id_of_the_last_instant_there_is_for_a_job_is_read():
    assert parse_job_id("j1~acme~2e~a0~1~2kmc0ao00~x").due_at == LATEST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "j1",
        "j2~acme~2e~a0~1~b0~x",
        "J1~acme~2e~a0~1~b0~x",
        "j1~a#b~2e~a0~1~b0~x",
        "j1~~2e~a0~1~b0~x",
        "j1~acme~~a0~1~b0~x",
        "j1~acme~4e~a0~1~b0~x",
        "j1~acme~2~a0~1~b0~x",
        "j1~acme~2z~a0~1~b0~x",
        "j1~acme~2el~a0~1~b0~x",
        "j1~acme~\uff12e~a0~1~b0~x",
        "j1~acme~2e~A0~1~b0~x",
        "j1~acme~2e~0a0~1~b0~x",
        "j1~acme~2e~a_0~1~b0~x",
        "j1~acme~2e~+a0~1~b0~x",
        "j1~acme~2e~-a0~1~b0~x",
        "j1~acme~2e~a0~-1~b0~x",
        "j1~acme~2e~a0~1~-b0~x",
        "j1~acme~2e~a0~ 1~b0~x",
        "j1~acme~2e~~1~b0~x",
        "j1~acme~2e~a0~1~zzzzzzzzzzzzzzzz~x",
        "j1~acme~2e~a0~1~2kmc0ao01~x",
        "j1~acme~2e~a0~1~b0~",
        "j1~acme~2e~a0~1~b0~x~y",
        "j1~acme~2e~a0~1~b0~x\n",
        "j1~acme~2e~a0~1~b0~a b",
        "j1~acme~2e~a0~1~b0~é",
        "j1~acme~2e~a0~1~b0~" + "x" * 201,
        "j1~acme~2e~" + "9" * 400 + "~1~b0~x",
    ],
    ids=lambda value: str(value)[:30],
)
def test_any_other_text_is_refused(text: str):
    with pytest.raises(InvalidJobId) as refused:
        parse_job_id(text)

    assert refused.value.text == text


def test_the_last_two_operations_that_have_moved_a_job_are_named_on_whoever_moves_it_then():
    moved = list(
        accumulate(("a.1", "2", "b.3", "4", "c.5"), lambda on, by: moved_identity(on, unique=by), initial="first")
    )

    assert moved == ["first", "first_a.1", "first_a.2", "first_b.a.3", "first_b.a.4", "first_c.b.5"]
    assert [movers_of(identity) for identity in moved[3:]] == [["b", "a"], ["b", "a"], ["c", "b"]]
    assert {first_identity(identity) for identity in moved} == {"first"}
