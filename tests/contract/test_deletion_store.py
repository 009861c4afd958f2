"""What every store of deletions keeps: one of a tenant, carried on by one at a time."""

from dataclasses import replace
from datetime import datetime

from functions.domain.instants import MINUTE
from functions.domain.tenants.deletion import Deletion, DeletionStage
from functions.ports.tenants import DeletionStore
from testkit.builders import LOCAL_WHEEL, NOON

SKEW = LOCAL_WHEEL.skew
BEGUN = Deletion(tenant="acme", since=NOON, keeps_ledger=True)


def take(deletions: DeletionStore, owner: str = "a", *, at: datetime = NOON) -> Deletion | None:
    return deletions.take("acme", owner=owner, lease_until=at + MINUTE, now=at, skew=SKEW)


def test_a_deletion_is_begun_once(deletions: DeletionStore):
    assert deletions.begin(BEGUN) == BEGUN
    assert deletions.begin(replace(BEGUN, keeps_ledger=False)) == BEGUN

    assert deletions.get("acme") == BEGUN
    assert deletions.open(limit=10) == ["acme"]
    assert deletions.get("umbrella") is None


def test_that_of_a_later_life_takes_the_place_of_an_earlier_one(deletions: DeletionStore):
    deletions.begin(BEGUN)
    later = Deletion(tenant="acme", since=NOON + MINUTE)

    assert deletions.begin(later) == later
    deletions.forget(BEGUN)
    assert deletions.get("acme") == later


def test_one_carries_it_on_at_a_time(deletions: DeletionStore):
    deletions.begin(BEGUN)
    taken = take(deletions)

    assert taken is not None
    assert (taken.owner, taken.lease_until) == ("a", NOON + MINUTE)
    assert take(deletions, "b", at=NOON + MINUTE + SKEW) is None
    assert take(deletions, "b", at=NOON + 2 * MINUTE) is not None
    assert deletions.save(taken, lease_until=NOON + 9 * MINUTE) is None


def test_a_lease_that_is_given_back_is_free_and_progress_is_kept(deletions: DeletionStore):
    deletions.begin(BEGUN)
    taken = take(deletions)
    assert taken is not None
    moved = taken.advanced(deleted=3, after=None).advanced(deleted=2, after="x")

    assert deletions.save(moved, lease_until=None) == replace(moved, lease_until=None)
    again = take(deletions, "b")

    assert again is not None
    assert (again.part, again.after, again.deleted) == (DeletionStage.TIMERS, "x", {"operations": 3, "timers": 2})


def test_a_step_that_lands_late_is_refused(deletions: DeletionStore):
    deletions.begin(BEGUN)
    taken = take(deletions)
    assert taken is not None
    assert deletions.save(taken, lease_until=NOON + 3 * MINUTE) is not None

    assert deletions.save(taken, lease_until=NOON + 2 * MINUTE) is None


def test_what_is_forgotten_is_gone_and_cannot_be_taken_or_saved(deletions: DeletionStore):
    deletions.begin(BEGUN)
    taken = take(deletions)
    assert taken is not None

    deletions.forget(taken)
    deletions.forget(taken)

    assert deletions.open(limit=10) == []
    assert take(deletions) is None
    assert deletions.save(taken, lease_until=None) is None
