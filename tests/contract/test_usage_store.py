"""What every store of usage keeps: sums by tenant and day."""

from datetime import date, timedelta

from functions.domain.tenants.usage import Days, Usage
from functions.ports.tenants import UsageStore

DAY = date(2027, 2, 28)
NEXT = DAY + timedelta(days=1)
ALL = Usage(submitted=1, executed=2, succeeded=3, failed=4, units=5, bytes=6)


def test_counts_of_a_day_are_added_up(usage: UsageStore):
    usage.add("acme", DAY, ALL)
    usage.add("acme", DAY, Usage(failed=10))

    assert usage.days("acme", Days(first=DAY, last=DAY)) == {DAY: ALL + Usage(failed=10)}


def test_days_are_reported_in_order_and_only_those_that_are_asked_for(usage: UsageStore):
    for offset in (2, 0, -1, 1):
        usage.add("acme", DAY + timedelta(days=offset), Usage(units=1))

    found = usage.days("acme", Days(first=DAY, last=NEXT))

    assert list(found) == [DAY, NEXT]


def test_tenants_do_not_mix(usage: UsageStore):
    usage.add("acme", DAY, ALL)

    assert usage.days("umbrella", Days(first=DAY, last=NEXT)) == {}


def test_nothing_is_nothing(usage: UsageStore):
    usage.add("acme", DAY, Usage())

    assert sum(usage.days("acme", Days(first=DAY, last=DAY)).values(), Usage()) == Usage()
