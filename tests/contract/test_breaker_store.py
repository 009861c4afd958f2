"""What every store of breakers keeps: one row a destination that is not closed, changed only by whoever saw it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain import key_lengths
from functions.domain.instants import MILLISECOND, to_seconds
from functions.domain.targets.breaker import BREAKER_LIFE, MAX_OPEN_FOR, BreakerState
from functions.ports.ledger import Applied
from functions.ports.targets import BreakerStore, Changed
from testkit.builders import NOON, a_breaker
from tests.contract.conftest import BreakerSubject

HOST = "https://example.com"


def test_a_breaker_that_nobody_opened_is_closed(breakers: BreakerStore):
    assert breakers.get("acme", HOST) is None


def test_a_breaker_is_kept_as_it_was_put(breakers: BreakerStore):
    breaker = a_breaker(
        destination="arn:aws:sqs:eu-west-1:123456789012:bills.fifo",
        state=BreakerState.HALF_OPEN,
        until=NOON + 7 * MILLISECOND,
        open_for=MAX_OPEN_FOR,
        opened_at=NOON - timedelta(days=3),
        error_class="throttled",
    )

    assert breakers.put(breaker, seen=None) == Applied()
    assert breakers.get("acme", breaker.destination) == breaker


def test_instants_are_kept_to_the_millisecond_and_never_earlier(breakers: BreakerStore):
    breaker = a_breaker(until=NOON + timedelta(microseconds=1))
    breakers.put(breaker, seen=None)

    assert breakers.get("acme", HOST) == replace(breaker, until=NOON + MILLISECOND)


def test_two_that_open_at_once_open_it_once_and_the_other_meets_the_first(breakers: BreakerStore):
    first, second = a_breaker(), a_breaker(error_class="timeout")

    assert breakers.put(first, seen=None) == Applied()
    assert breakers.put(second, seen=None) == Changed(first)
    assert breakers.get("acme", HOST) == first


def test_a_write_whose_answer_was_lost_recognises_itself(breakers: BreakerStore):
    opened = a_breaker()
    probed = replace(opened, owner="probe", state=BreakerState.HALF_OPEN)

    assert [breakers.put(opened, seen=None) for _ in range(2)] == [Applied(), Applied()]
    assert [breakers.put(probed, seen=opened) for _ in range(2)] == [Applied(), Applied()]
    assert [breakers.close(probed) for _ in range(2)] == [Applied(), Applied()]


def test_of_two_that_saw_the_same_row_one_replaces_it(breakers: BreakerStore):
    seen = a_breaker()
    first, second = replace(seen, owner="first"), replace(seen, owner="second")
    breakers.put(seen, seen=None)

    assert breakers.put(first, seen=seen) == Applied()
    assert breakers.put(second, seen=seen) == Changed(first)
    assert breakers.get("acme", HOST) == first


def test_a_row_that_is_gone_is_not_replaced(breakers: BreakerStore):
    seen = a_breaker()

    assert breakers.put(replace(seen, owner="late"), seen=seen) == Changed(None)
    assert breakers.get("acme", HOST) is None


def test_whoever_saw_the_row_closes_it(breakers: BreakerStore):
    breaker = a_breaker()
    breakers.put(breaker, seen=None)

    assert breakers.close(breaker) == Applied()
    assert breakers.get("acme", HOST) is None


def test_a_row_that_another_has_written_since_is_not_closed(breakers: BreakerStore):
    seen = a_breaker()
    newer = replace(seen, owner="newer")
    breakers.put(seen, seen=None)
    breakers.put(newer, seen=seen)

    assert breakers.close(seen) == Changed(newer)
    assert breakers.get("acme", HOST) == newer


def test_a_reset_closes_whatever_stands_there_and_says_whether_it_did(breakers: BreakerStore):
    breakers.put(a_breaker(), seen=None)

    assert breakers.reset("acme", HOST)
    assert not breakers.reset("acme", HOST)
    assert breakers.get("acme", HOST) is None


def test_tenants_and_destinations_have_breakers_of_their_own(breakers: BreakerStore):
    mine = a_breaker()
    breakers.put(mine, seen=None)

    assert breakers.get("globex", HOST) is None
    assert breakers.get("acme", f"{HOST}:8443") is None
    assert not breakers.reset("globex", HOST)
    assert breakers.get("acme", HOST) == mine


def test_a_tenants_breakers_are_listed_page_by_page_in_the_order_of_their_destinations(breakers: BreakerStore):
    listed = [a_breaker(destination=name) for name in ("arn:aws:sqs:b", "handler:a", "https://a", "https://a:81")]
    for breaker in (listed[2], listed[0], listed[3], listed[1], a_breaker(tenant="globex")):
        breakers.put(breaker, seen=None)

    assert breakers.page("acme", after="", limit=2) == (listed[:2], True)
    assert breakers.page("acme", after="handler:a", limit=2) == (listed[2:], False)
    assert breakers.page("acme", after="https://a", limit=9) == (listed[3:], False)
    assert breakers.page("acme", after="https://zzz", limit=9) == ([], False)
    assert breakers.page("acme", after="\x00", limit=9) == (listed, False)
    assert breakers.page("initech", after="", limit=9) == ([], False)


def test_a_row_may_go_a_day_after_its_time(breaker_subject: BreakerSubject):
    breaker = a_breaker()
    breaker_subject.breakers.put(breaker, seen=None)

    if breaker_subject.expires_at is not None:
        assert breaker_subject.expires_at() == breaker.until + BREAKER_LIFE


def test_an_entry_of_the_index_may_go_with_its_row(breaker_subject: BreakerSubject):
    breaker = a_breaker()
    breaker_subject.breakers.put(breaker, seen=None)
    reopened = replace(breaker, owner="again", until=NOON + timedelta(hours=3))
    breaker_subject.breakers.put(reopened, seen=breaker)

    if breaker_subject.client is not None:
        (entry,) = entries(breaker_subject)
        assert int(entry["x"]["N"]) == to_seconds(reopened.until + BREAKER_LIFE)


def test_the_breakers_of_all_tenants_are_listed_by_tenant_and_destination(breakers: BreakerStore):
    assert breakers.everywhere(limit=9) == ([], 0)
    listed = [
        a_breaker(destination="handler:a"),
        a_breaker(destination="https://a#b"),
        a_breaker(tenant="globex", state=BreakerState.HALF_OPEN),
    ]
    for breaker in (listed[1], listed[0]):
        breakers.put(breaker, seen=None)
    opened = replace(listed[2], owner="opened", state=BreakerState.OPEN)
    breakers.put(opened, seen=None)
    breakers.put(listed[2], seen=opened)

    assert breakers.everywhere(limit=9) == (listed, 3)
    assert breakers.everywhere(limit=2) == (listed[:2], 3)
    assert breakers.everywhere(limit=1) == (listed[:1], 3)


def test_a_breaker_that_was_closed_or_reset_is_listed_nowhere(breakers: BreakerStore):
    closed, reset = a_breaker(), a_breaker(tenant="globex")
    for breaker in (closed, reset):
        breakers.put(breaker, seen=None)
    breakers.close(closed)
    breakers.reset("globex", HOST)

    assert breakers.everywhere(limit=9) == ([], 0)


def test_nothing_of_a_closed_breaker_is_left(breaker_subject: BreakerSubject):
    probed = replace(a_breaker(), owner="probe", state=BreakerState.HALF_OPEN)
    for close in (
        lambda: breaker_subject.breakers.close(probed),
        lambda: breaker_subject.breakers.reset("acme", HOST),
    ):
        opened = replace(probed, owner="opened", state=BreakerState.OPEN)
        breaker_subject.breakers.put(opened, seen=None)
        breaker_subject.breakers.put(probed, seen=opened)
        close()

        if breaker_subject.client is not None:
            assert entries(breaker_subject) == []


def test_whoever_dies_between_the_entry_and_the_row_has_opened_nothing(breaker_subject: BreakerSubject):
    if breaker_subject.client is None:
        return  # one step
    breaker = a_breaker()
    with dying_after(breaker_subject, "PutItem"), pytest.raises(DiedError):
        breaker_subject.breakers.put(breaker, seen=None)

    assert breaker_subject.breakers.get("acme", HOST) is None
    assert breaker_subject.breakers.everywhere(limit=9) == ([], 0)
    assert breaker_subject.breakers.put(breaker, seen=None) == Applied()
    assert breaker_subject.breakers.everywhere(limit=9) == ([breaker], 1)


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_whoever_dies_between_the_row_and_the_entry_has_closed_it(breaker_subject: BreakerSubject, how: str):
    if breaker_subject.client is None:
        return  # one step
    breakers, breaker, other = breaker_subject.breakers, a_breaker(), a_breaker(tenant="globex")
    for each in (breaker, other):
        breakers.put(each, seen=None)
    close = {"closed": lambda: breakers.close(breaker), "reset": lambda: breakers.reset("acme", HOST)}[how]
    with dying_after(breaker_subject, "DeleteItem"), pytest.raises(DiedError):
        close()

    assert breakers.get("acme", HOST) is None
    assert breakers.everywhere(limit=1) == ([other], 1)
    newer = a_breaker(opened_at=NOON + timedelta(minutes=1))
    assert breakers.put(newer, seen=None) == Applied()
    assert breakers.everywhere(limit=9) == ([newer, other], 2)


def test_a_breaker_that_is_opened_anew_while_it_is_closed_stays_listed(breaker_subject: BreakerSubject):
    old, newer = a_breaker(), a_breaker(opened_at=NOON + timedelta(minutes=1))
    breaker_subject.breakers.put(old, seen=None)
    with between(breaker_subject, "DeleteItem", lambda: breaker_subject.breakers.put(newer, seen=None)):
        assert breaker_subject.breakers.close(old) == Applied()

    assert breaker_subject.breakers.everywhere(limit=9) == (
        ([newer], 1) if breaker_subject.client is not None else ([], 0)
    )


def test_a_breaker_of_a_very_long_destination_is_kept_and_listed(breakers: BreakerStore):
    breaker = a_breaker(tenant="t" * 64, destination="https://" + "x" * (key_lengths.DESTINATION - 8))
    assert breakers.put(breaker, seen=None) == Applied()

    assert breakers.everywhere(limit=9) == ([breaker], 1)
    assert breakers.close(breaker) == Applied()
    assert breakers.everywhere(limit=9) == ([], 0)


class DiedError(Exception):
    """The process ends here."""


@contextmanager
def dying_after(subject: BreakerSubject, call: str) -> Iterator[None]:
    """The first such call is made, and then the process ends."""

    def die() -> None:
        raise DiedError

    with between(subject, call, die):
        yield


@contextmanager
def between(subject: BreakerSubject, call: str, act: Callable[[], object]) -> Iterator[None]:
    """What happens right after the first such call, before the next."""
    if subject.client is None:
        yield
        return
    events, name = subject.client.meta.events, f"after-call.dynamodb.{call}"

    def once(**_: object) -> None:
        events.unregister(name, once)
        act()

    events.register(name, once)
    yield


def entries(subject: BreakerSubject) -> list[dict[str, Any]]:
    assert subject.client is not None
    return [item for item in subject.client.scan(TableName=subject.table)["Items"] if item["t"]["S"] == "~breakers"]
