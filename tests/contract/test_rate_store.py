"""What every store of rates keeps: timetables and arrival times, however many reserve at once."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from random import Random

import pytest

from functions.domain.instants import SECOND
from functions.domain.tenants.rate_bookings import Timetable, reserve
from functions.ports.ledger import Applied
from functions.ports.tenants import Ahead, Booked, RateStore
from testkit.builders import NOON

FIRST = Timetable(1, 1_803_902_400, (3, 0, 100_000), 1)
SECOND_ONE = Timetable(100, 18_039_024, (), 2)


def test_the_first_reservation_meets_nothing(rates: RateStore):
    assert rates.book("acme", FIRST, seen=None) == Applied()


def test_a_reservation_that_saw_something_else_learns_what_there_is(rates: RateStore):
    rates.book("acme", FIRST, seen=None)

    assert rates.book("acme", SECOND_ONE, seen=None) == Booked(FIRST)
    assert rates.book("acme", SECOND_ONE, seen=FIRST) == Applied()
    assert rates.book("acme", SECOND_ONE, seen=FIRST) == Booked(SECOND_ONE)


def test_one_that_remembers_what_has_expired_since_learns_that_there_is_nothing(rates: RateStore):
    assert rates.book("acme", SECOND_ONE, seen=FIRST) == Booked(None)


def test_tenants_and_kinds_of_rates_do_not_mix(rates: RateStore):
    rates.book("acme", FIRST, seen=None)

    assert rates.book("umbrella", SECOND_ONE, seen=None) == Applied()
    assert rates.spend("acme", cost=SECOND, now=NOON, latest=NOON) == Applied()
    assert rates.book("acme", SECOND_ONE, seen=FIRST) == Applied()


def test_a_submission_begins_at_now_and_the_next_adds_to_it(rates: RateStore):
    latest = NOON + 2 * SECOND

    answers = [rates.spend("acme", cost=SECOND, now=NOON, latest=latest) for _ in range(4)]

    assert answers == [Applied(), Applied(), Applied(), Ahead(NOON + 3 * SECOND)]


def test_what_is_past_counts_as_now(rates: RateStore):
    rates.spend("acme", cost=SECOND, now=NOON, latest=NOON)
    much_later = NOON + timedelta(hours=1)

    assert rates.spend("acme", cost=SECOND, now=much_later, latest=much_later) == Applied()
    assert rates.spend("acme", cost=SECOND, now=much_later, latest=much_later) == Ahead(much_later + SECOND)


def test_what_was_reserved_at_another_rate_counts_for_nothing(rates: RateStore):
    far = NOON + timedelta(hours=3)
    rates.spend("acme", cost=timedelta(hours=3), now=NOON, latest=NOON)

    assert rates.spend("acme", cost=SECOND, now=NOON, latest=NOON, most=far) == Ahead(far)
    assert rates.spend("acme", cost=SECOND, now=NOON, latest=NOON, most=far - SECOND) == Applied()
    assert rates.spend("acme", cost=SECOND, now=NOON, latest=NOON, most=far) == Ahead(NOON + SECOND)


RATE = 3


class Contender:
    """Reserves seven bookings, one call at a time; what it saw may be old by its next."""

    def __init__(self, rates: RateStore) -> None:
        self._rates = rates
        self._seen: Timetable | None = None
        self.bookings: tuple[datetime, ...] = ()

    def step(self) -> None:
        asked = reserve([NOON] * 7, seen=self._seen, now=NOON, rate=RATE, until=NOON + timedelta(hours=1))
        answer = self._rates.book("acme", asked.timetable, seen=self._seen)
        if isinstance(answer, Booked):
            self._seen = answer.timetable
        else:
            self.bookings = asked.bookings

    def finish(self) -> None:
        while not self.bookings:
            self.step()


def a_second_has_no_more_than_its_bookings(contenders: list[Contender]) -> None:
    bookings = [booking for contender in contenders for booking in contender.bookings]
    assert len(bookings) == 7 * len(contenders)
    assert max(Counter(bookings).values()) == RATE
    assert max(bookings) == NOON + (len(bookings) - 1) // RATE * SECOND


def test_executions_that_are_reserved_in_any_order_never_share_a_booking(rates: RateStore):
    contenders, dice = [Contender(rates) for _ in range(6)], Random(7)

    while waiting := [contender for contender in contenders if not contender.bookings]:
        dice.choice(waiting).step()

    a_second_has_no_more_than_its_bookings(contenders)


@pytest.mark.dynamodb_local
def test_executions_that_are_reserved_at_the_same_moment_never_share_a_booking(real_rates: RateStore):
    contenders = [Contender(real_rates) for _ in range(12)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(Contender.finish, contenders))

    a_second_has_no_more_than_its_bookings(contenders)


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
