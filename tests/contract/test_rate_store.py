"""What every store of rates keeps: a theoretical arrival time that only grows, however many reserve at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from random import Random

import pytest

from functions.domain.gcra import interval_of, reserve, tolerance_of
from functions.ports import Ahead, Applied, RateStore
from tests.builders import NOON

SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(microseconds=123_457)


def test_the_first_reservation_meets_nothing(rates: RateStore):
    assert rates.advance("acme", seen=None, to=LATER) == Applied()


def test_a_reservation_that_saw_something_else_learns_what_there_is(rates: RateStore):
    rates.advance("acme", seen=None, to=LATER)

    assert rates.advance("acme", seen=None, to=NOON) == Ahead(LATER)
    assert rates.advance("acme", seen=NOON, to=NOON + SECOND) == Ahead(LATER)
    assert rates.advance("acme", seen=LATER, to=LATER + SECOND) == Applied()
    assert rates.advance("acme", seen=LATER, to=LATER + SECOND) == Ahead(LATER + SECOND)


def test_one_that_remembers_what_has_expired_since_learns_that_there_is_nothing(rates: RateStore):
    assert rates.advance("acme", seen=NOON, to=LATER) == Ahead(None)


def test_tenants_and_kinds_of_rates_do_not_mix(rates: RateStore):
    rates.advance("acme", seen=None, to=LATER)

    assert rates.advance("umbrella", seen=None, to=NOON) == Applied()
    assert rates.spend("acme", cost=SECOND, now=NOON, latest=NOON) == Applied()
    assert rates.advance("acme", seen=LATER, to=LATER + SECOND) == Applied()


def test_a_submission_begins_at_now_and_the_next_adds_to_it(rates: RateStore):
    latest = NOON + 2 * SECOND

    answers = [rates.spend("acme", cost=SECOND, now=NOON, latest=latest) for _ in range(4)]

    assert answers == [Applied(), Applied(), Applied(), Ahead(NOON + 3 * SECOND)]


def test_what_is_past_counts_as_now(rates: RateStore):
    rates.spend("acme", cost=SECOND, now=NOON, latest=NOON)
    much_later = NOON + timedelta(hours=1)

    assert rates.spend("acme", cost=SECOND, now=much_later, latest=much_later) == Applied()
    assert rates.spend("acme", cost=SECOND, now=much_later, latest=much_later) == Ahead(much_later + SECOND)


INTERVAL = interval_of(10)


class Contender:
    """Reserves seven slots, one call at a time; what it saw may be old by its next."""

    def __init__(self, rates: RateStore) -> None:
        self._rates = rates
        self._seen: datetime | None = None
        self.slots: tuple[datetime, ...] = ()

    def step(self) -> None:
        asked = reserve(
            [NOON] * 7,
            next_at=self._seen,
            now=NOON,
            interval=INTERVAL,
            tolerance=tolerance_of(1, INTERVAL),
            until=NOON + timedelta(hours=1),
        )
        assert asked.next_at is not None
        answer = self._rates.advance("acme", seen=self._seen, to=asked.next_at)
        if isinstance(answer, Applied):
            self.slots = asked.slots
        else:
            self._seen = answer.next_at

    def finish(self) -> None:
        while not self.slots:
            self.step()


def test_executions_that_are_reserved_in_any_order_never_share_a_slot(rates: RateStore):
    contenders, dice = [Contender(rates) for _ in range(6)], Random(7)

    while waiting := [contender for contender in contenders if not contender.slots]:
        dice.choice(waiting).step()

    slots = sorted(slot for contender in contenders for slot in contender.slots)
    assert slots == [NOON + number * INTERVAL for number in range(6 * 7)]


@pytest.mark.dynamodb_local
def test_executions_that_are_reserved_at_the_same_moment_never_share_a_slot(real_rates: RateStore):
    with ThreadPoolExecutor(8) as pool:
        contenders = [Contender(real_rates) for _ in range(12)]
        list(pool.map(Contender.finish, contenders))

    slots = sorted(slot for contender in contenders for slot in contender.slots)
    assert slots == [NOON + number * INTERVAL for number in range(12 * 7)]


@pytest.mark.dynamodb_local
def test_submissions_at_the_same_moment_get_exactly_what_there_is(real_rates: RateStore):
    def spend(_: int) -> bool:
        answer = real_rates.spend("acme", cost=SECOND, now=NOON, latest=NOON + 9 * SECOND)
        return isinstance(answer, Applied)

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(spend, range(40)))

    # What meets others all the time may be refused, which is on the safe side.
    assert 1 <= taken <= 10
    while spend(0):
        taken += 1
    assert taken == 10
