"""A tenant is deleted with all that there is of it: when that begins, what a death in between changes, who else is at it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.api.tenants.manager import TenantManager
from functions.domain.errors import InvalidInput, TenantDeleted
from functions.domain.instants import MINUTE
from functions.domain.tenants.changes import EFFECTIVE_AFTER, FORGOTTEN_AFTER, TenantValues
from functions.domain.tenants.deletion import Deletion, DeletionStage, begins_at
from functions.domain.tenants.plan import Tenant, TenantStatus
from functions.operations.tenant_deleter import LEASE, STEP, TenantDeleter
from testkit import fakes
from testkit.builders import LOCAL_WHEEL, NOON
from testkit.observed import DeathError, Watched

LONGEST = timedelta(minutes=5)
SKEW = LOCAL_WHEEL.skew
WAIT = EFFECTIVE_AFTER + LONGEST + SKEW
VALUES = TenantValues(plan="default", limits={}, principals=(), note="")


class Scene:
    """Two tenants with three things of each part, of which acme is being deleted."""

    def __init__(self) -> None:
        self.clock = fakes.FakeClock()
        self.tenants = fakes.InMemoryTenantStore()
        self.deletions = fakes.InMemoryDeletionStore()
        self.tenant_data = fakes.InMemoryTenantData()
        self.journal = fakes.RecordingJournal()
        self.before: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        self.tokens = 0
        for tenant in ("acme", "acme2"):
            self.tenants.change(tenant, Tenant(version=1, limits={"weight": 2}, note="kept"), seen=0)
            for part in DeletionStage:
                self.tenant_data.put(tenant, part, *(f"{part}-{number}" for number in range(3)))

    @property
    def manager(self) -> TenantManager:
        return TenantManager(
            clock=self.clock,
            store=self.tenants,
            usage=fakes.InMemoryUsageStore(),
            deletions=self._watched(self.deletions, "deletions"),
            schedules=fakes.InMemoryScheduleStore(),
            journal=self.journal,
            audit=fakes.RecordingAudit(),
            plans={"default": {}},
        )

    def delete(self, *, keeps_ledger: bool = False) -> None:
        self.manager.delete("acme", confirm="acme", keeps_ledger=keeps_ledger, caller="ann")

    def eraser(self) -> TenantDeleter:
        return TenantDeleter(
            clock=self.clock,
            skew=SKEW,
            longest=LONGEST,
            tenants=self._watched(self.tenants, "tenants"),
            deletions=self._watched(self.deletions, "deletions"),
            tenant_data=self._watched(self.tenant_data, "tenant_data"),
            journal=self.journal,
            audit=fakes.RecordingAudit(),
            token=self._token,
        )

    def work(self, *, seconds: float = 60) -> int:
        return self.eraser().carry_on(time_limit=timedelta(seconds=seconds))

    @property
    def status(self) -> TenantStatus:
        row = self.tenants.get("acme")
        assert row is not None
        return row.status

    def _token(self) -> str:
        self.tokens += 1
        return f"token-{self.tokens}"

    def _watched(self, port: object, name: str) -> Any:
        return Watched(port, name, self._meet_before, self._meet_after)

    def _meet_before(self, call: str) -> None:
        self.before(call)

    def _meet_after(self, call: str) -> None:
        self.after(call)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.delete()
    return scene


def test_nothing_is_deleted_before_everybody_knows_and_has_ended_what_he_had_begun(scene: Scene):
    scene.clock.tick(WAIT - timedelta(milliseconds=1))
    assert scene.work() == 0
    assert len(scene.tenant_data.of("acme")) == 3 * len(DeletionStage)

    scene.clock.tick(timedelta(milliseconds=1))
    assert scene.work() == 1
    assert scene.tenant_data.of("acme") == set()


def test_the_wait_is_the_effect_of_a_change_the_longest_function_and_skew():
    assert begins_at(NOON, longest=LONGEST, skew=SKEW) == NOON + timedelta(minutes=1) + LONGEST + SKEW


def test_what_was_written_by_who_did_not_know_yet_is_deleted(scene: Scene):
    scene.clock.tick(WAIT)
    scene.tenant_data.put("acme", DeletionStage.TIMERS, "a slow submission", "a late retry", "a fire of a tick")

    scene.work()

    assert scene.tenant_data.of("acme") == set()


def test_its_row_stays_as_a_marker_and_other_tenants_keep_everything(scene: Scene):
    scene.clock.tick(WAIT)

    assert scene.work() == 1

    row = scene.tenants.get("acme")
    assert row == Tenant(
        version=3, status=TenantStatus.DELETED, status_since=NOON + WAIT, changed_at=NOON + WAIT, note="kept"
    )
    assert len(scene.tenant_data.of("acme2")) == 3 * len(DeletionStage)
    assert scene.tenants.get("acme2") == Tenant(version=1, limits={"weight": 2}, note="kept")
    assert scene.deletions.rows == {}
    assert (
        "tenant_deleted",
        {"tenant": "acme", "deleted": {part.value: 3 for part in DeletionStage}},
    ) in scene.journal.events


def test_the_ledger_may_be_left_to_its_ttl():
    scene = Scene()
    scene.delete(keeps_ledger=True)
    scene.clock.tick(WAIT)

    assert scene.work() == 1

    assert scene.tenant_data.of("acme") == {f"{DeletionStage.LEDGER}-{number}" for number in range(3)}
    assert scene.status is TenantStatus.DELETED


def test_a_turn_that_has_no_time_left_gives_its_place_to_the_next(scene: Scene):
    scene.clock.tick(WAIT)
    scene.tenant_data.before = lambda: scene.clock.tick(STEP)

    turns = 0
    while scene.status is TenantStatus.DELETING:
        scene.work(seconds=STEP.total_seconds() * 3)
        turns += 1
        if scene.status is TenantStatus.DELETING:
            assert scene.deletions.rows["acme"].lease_until is None

    assert turns == 7  # of twenty pages, three a turn
    assert scene.tenant_data.of("acme") == set()


def test_progress_is_reported_while_it_goes_on(scene: Scene):
    scene.clock.tick(WAIT)
    scene.tenant_data.before = lambda: scene.clock.tick(STEP)
    scene.work(seconds=STEP.total_seconds() * 3)

    deletion = scene.manager.get("acme").deletion

    assert deletion is not None
    assert (deletion.part, deletion.deleted) == (DeletionStage.TIMERS, {"operations": 3, "timers": 2})


def calls_of_a_deletion() -> list[str]:
    scene, calls = Scene(), list[str]()
    scene.delete()
    scene.before = calls.append
    scene.clock.tick(WAIT)
    scene.tenant_data.before = lambda: scene.clock.tick(STEP)
    assert scene.work(seconds=1_000) == 1
    return calls


CALLS = calls_of_a_deletion()


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: f"{number}-{CALLS[number]}")
def test_whoever_dies_at_any_call_leaves_it_to_the_next(scene: Scene, number: int, *, is_after: bool):
    scene.clock.tick(WAIT)
    scene.tenant_data.before = lambda: scene.clock.tick(STEP)
    seen: list[str] = []

    def die(call: str) -> None:
        seen.append(call)
        if len(seen) == number + 1:
            raise DeathError

    setattr(scene, "after" if is_after else "before", die)
    with pytest.raises(DeathError):
        scene.work(seconds=1_000)
    scene.before = scene.after = lambda _: None
    for _ in range(3):
        scene.clock.tick(LEASE + 2 * SKEW)
        scene.work(seconds=1_000)

    assert scene.tenant_data.of("acme") == set()
    assert scene.status is TenantStatus.DELETED
    assert scene.deletions.rows == {}
    assert len(scene.tenant_data.of("acme2")) == 3 * len(DeletionStage)


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda number: f"{number}-{CALLS[number]}")
def test_two_at_once_do_it_as_one_would(scene: Scene, number: int):
    scene.clock.tick(WAIT)
    seen: list[str] = []

    def overtake(call: str) -> None:
        seen.append(call)
        if len(seen) == number + 1:
            # It stalls until its lease is over, and another carries everything on.
            scene.clock.tick(LEASE + 2 * SKEW)
            scene.work(seconds=1_000)

    scene.tenant_data.before = lambda: scene.clock.tick(STEP)
    scene.before = overtake
    scene.work(seconds=10_000)
    scene.before = lambda _: None
    scene.work(seconds=10_000)

    assert scene.tenant_data.of("acme") == set()
    assert scene.status is TenantStatus.DELETED
    assert scene.deletions.rows == {}
    assert [keys for name, keys in scene.journal.events if name == "deletion_failed"] == []


def test_who_has_a_live_lease_is_left_alone(scene: Scene):
    scene.clock.tick(WAIT)
    now = scene.clock.now()
    assert scene.deletions.take("acme", owner="other", lease_until=now + LEASE, now=now, skew=SKEW)

    assert scene.work() == 0

    assert len(scene.tenant_data.of("acme")) == 3 * len(DeletionStage)


def test_a_store_that_fails_holds_up_nobody_else(scene: Scene):
    scene.manager.delete("acme2", confirm="acme2", keeps_ledger=False, caller="ann")
    scene.clock.tick(WAIT)
    failures = iter([TimeoutError("s3")])

    def fail(call: str) -> None:
        if call == "tenant_data.sweep" and (failure := next(failures, None)):
            raise failure

    scene.before = fail

    assert scene.work() == 1

    assert scene.tenant_data.of("acme2") == set()
    ((tenant, error),) = [
        (keys["tenant"], str(keys["error"])) for name, keys in scene.journal.events if name == "deletion_failed"
    ]
    assert tenant == "acme"
    assert error.startswith("TimeoutError at functions.operations.tenant_deleter:")
    scene.clock.tick(LEASE + 2 * SKEW)
    assert scene.work() == 1


def test_a_deletion_is_confirmed_by_the_id():
    scene = Scene()

    with pytest.raises(InvalidInput, match="confirm is 'acme2', but must be 'acme'"):
        scene.manager.delete("acme", confirm="acme2", keeps_ledger=False, caller="ann")

    assert scene.status is TenantStatus.ACTIVE


def test_asking_again_changes_nothing_and_begins_what_a_death_had_left_out():
    scene = Scene()

    def die(_: str) -> None:
        raise DeathError

    scene.before = die
    with pytest.raises(DeathError):
        scene.delete()
    assert (scene.status, scene.deletions.rows) == (TenantStatus.DELETING, {})
    scene.before = lambda _: None
    scene.clock.tick(MINUTE)

    scene.delete()
    scene.delete()

    assert scene.deletions.rows == {"acme": Deletion(tenant="acme", since=NOON)}


def test_what_has_been_deleted_cannot_be_deleted_again(scene: Scene):
    scene.clock.tick(WAIT)
    scene.work()

    with pytest.raises(TenantDeleted, match="has been deleted"):
        scene.delete()


def test_it_is_there_again_once_no_message_of_its_can_be(scene: Scene):
    scene.clock.tick(WAIT)
    scene.work()
    scene.clock.tick(FORGOTTEN_AFTER - timedelta(milliseconds=1))
    with pytest.raises(TenantDeleted, match="has been deleted: put it after 20"):
        scene.manager.put("acme", VALUES, seen=None, caller="ann")

    scene.clock.tick(timedelta(milliseconds=1))
    scene.manager.put("acme", VALUES, seen=None, caller="ann")

    assert scene.status is TenantStatus.ACTIVE
    assert timedelta(days=14) < FORGOTTEN_AFTER


def test_what_an_earlier_life_has_left_is_not_carried_on():
    scene = Scene()
    scene.deletions.begin(Deletion(tenant="acme", since=NOON - timedelta(days=30), part=DeletionStage.LEDGER))

    scene.work()

    assert scene.deletions.rows == {}
    assert len(scene.tenant_data.of("acme")) == 3 * len(DeletionStage)


def test_what_an_earlier_life_has_left_says_nothing_of_how_far_a_later_one_is():
    scene = Scene()
    scene.deletions.begin(Deletion(tenant="acme", since=NOON - timedelta(days=30), part=DeletionStage.LEDGER))

    def die(call: str) -> None:
        if call == "deletions.begin":
            raise DeathError

    scene.before = die
    with pytest.raises(DeathError):
        scene.delete()
    scene.before = lambda _: None
    scene.clock.tick(WAIT)
    scene.work()
    assert scene.status is TenantStatus.DELETING
    assert len(scene.tenant_data.of("acme")) == 3 * len(DeletionStage)

    scene.delete()
    scene.work()
    assert scene.tenant_data.of("acme") == set()
    assert scene.status is TenantStatus.DELETED


def test_a_later_life_is_deleted_from_the_beginning():
    scene = Scene()
    scene.deletions.begin(Deletion(tenant="acme", since=NOON - timedelta(days=30), part=DeletionStage.LEDGER))
    scene.delete()
    scene.clock.tick(WAIT)

    scene.work()

    assert scene.tenant_data.of("acme") == set()


def test_parts_come_in_an_order_in_which_each_is_found_by_what_is_still_there():
    order = list(DeletionStage)

    assert order.index(DeletionStage.TIMERS) < order.index(DeletionStage.ROWS), "the marks of days lead to them"
    assert order[-1] is DeletionStage.LEDGER
    deletion = replace(Deletion(tenant="acme", since=NOON), part=DeletionStage.LEDGER)
    assert deletion.advanced(deleted=0, after=None).part is None
