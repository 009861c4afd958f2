"""What every store of the jobs that wait keeps: sums by tenant and due day, of which none is below zero."""

from datetime import date, timedelta

from functions.ports.tenants import PendingStore

DAY = date(2027, 2, 28)
NEXT = DAY + timedelta(days=1)


def test_the_jobs_of_a_day_and_all_after_it_are_counted(pending: PendingStore):
    for day, count in ((DAY - timedelta(days=1), 100), (DAY, 5), (DAY, -2), (NEXT, 10), (date(2036, 12, 31), 20)):
        pending.add("acme", day, count)

    assert pending.counts("acme", since=DAY) == {DAY: 3, NEXT: 10, date(2036, 12, 31): 20}
    assert pending.counts("acme", since=NEXT) == {NEXT: 10, date(2036, 12, 31): 20}


def test_a_day_from_which_too_many_were_taken_is_one_without_jobs(pending: PendingStore):
    pending.add("acme", DAY, -7)
    pending.add("acme", NEXT, 2)

    assert pending.counts("acme", since=DAY) == {DAY: 0, NEXT: 2}


def test_tenants_do_not_mix(pending: PendingStore):
    pending.add("acme", DAY, 5)

    assert pending.counts("umbrella", since=DAY) == {}
