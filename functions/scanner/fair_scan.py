"""One class of a shard, round by round: the stream of all tenants, and turns of those that have more than their quantum.

The cursor of the stream passes over a tenant that has a turn of its own, whose rows lie behind that tenant's own cursor
until it has caught up. No cursor ever passes a row that is neither sent nor kept as a dead letter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf

from functions.domain.far_ring.cursor import ClassCursor, OwnCursor, Position
from functions.domain.far_ring.fairness import MAX_OWN, STREAM, grant, order_from, quantum_of
from functions.domain.far_ring.timer_key import NO_TENANT, owned_prefix, owner_bounds, owner_of
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import RENEW_AFTER
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.tenants import TenantPlans
from functions.ports.timers import Page, StoredTimer
from functions.scanner.budgets import Budgets
from functions.scanner.pages import PAGE, position_behind
from functions.scanner.promote import Promoter
from functions.scanner.renew import Renewer
from functions.scanner.tick import Tick

EVERYBODY_PAUSED = "everybody is paused"
USED_UP = "the budget of a class is used up"
OUT_OF_TIME = "the time of a class is used up"


@dataclass(frozen=True, slots=True, kw_only=True)
class FairScan:
    """Scans classes."""

    wheel: Wheel
    plans: TenantPlans
    budgets: Budgets
    promoter: Promoter
    renewer: Renewer

    def scan(self, tick: Tick, priority: Priority, *, horizon: int) -> str:
        """Promote what a class has up to a bucket; why it ended before that, if it did."""
        return _ClassScan(self, tick, priority, horizon=horizon).run()


class _ClassScan:
    """Scans a class in one tick."""

    def __init__(self, parts: FairScan, tick: Tick, priority: Priority, *, horizon: int) -> None:
        cursor = tick.cursors[priority]
        self._parts = parts
        self._tick = tick
        self._priority = priority
        self._wheel = parts.wheel
        self._plans = parts.plans
        self._left: int | None = None
        self._quantum = 0
        self._horizon = horizon
        self._at = cursor.at
        self._own = dict(cursor.own)
        self._turn = cursor.turn
        self._stopped_by = ""

    def run(self) -> str:
        """Until nothing is due; else why it ended before that."""
        self._look_at_held()
        self._renew_old()
        while self._has_work():
            names = order_from(self._turn, list(self._own))
            for number, name in enumerate(names):
                self._turn = name
                is_over = self._stream_turn() if name == STREAM else self._own_turn(name)
                if is_over:
                    self._turn = names[(number + 1) % len(names)]
                self._record()
                if self._stopped_by:
                    return self._stopped_by
        return ""

    def _look_at_held(self) -> None:
        for tenant, own in list(self._own.items()):
            plan = self._plans.of(tenant)
            if plan.is_deleted:
                # What lies behind its cursor is forgotten: the stream has passed over it.
                del self._own[tenant]
            else:
                self._own[tenant] = own._replace(is_held_back=plan.is_paused)

    def _renew_old(self) -> None:
        """What tables would let go before long, a page of each in turns, as far as this tick has time."""
        failed: set[str] = set()
        while old := [name for name in self._old() if name not in failed]:
            for name in old:
                if not self._tick.may_renew(self._priority):
                    return
                # One that has caught up with the stream meanwhile is in it again.
                if (name == STREAM or name in self._own) and not self._renew_page(name):
                    failed.add(name)

    def _old(self) -> list[str]:
        """Whose next rows have waited for long, be it for their tenant, its cap, room in a queue, or those before them."""
        oldest = self._horizon - RENEW_AFTER // SECOND
        return [name for name in order_from(self._turn, list(self._own)) if self._position_of(name).bucket < oldest]

    def _renew_page(self, name: str) -> bool:
        """Whether all of it has been written again."""
        at, page = self._position_of(name), self._page_of(name)
        mine = [row for row in page.rows if name != STREAM or self._is_of_stream(row)]
        renewed = self._parts.renewer.renew(mine)
        self._tick.buried += renewed.buried
        failed = min(renewed.failed, default=None)
        behind = position_behind(page, at, wheel=self._wheel)
        to = behind if failed is None else _position_before(failed, page.rows, at)
        if name == STREAM:
            self._at = to
        else:
            self._own[name] = self._own[name]._replace(at=to)
        self._record()
        return failed is None

    def _position_of(self, name: str) -> Position:
        return self._at if name == STREAM else self._own[name].at

    def _page_of(self, name: str) -> Page:
        if name == STREAM:
            return self._tick.pages.read(self._at, self._priority)
        return self._tick.pages.read_between(self._own[name].at, *owner_bounds(self._priority, name), limit=PAGE)

    def _is_of_stream(self, row: StoredTimer) -> bool:
        """It is neither behind a cursor of its tenant's own, nor forgotten."""
        tenant = owner_of(row.key)[0]
        return tenant == NO_TENANT or (tenant not in self._own and not self._plans.of(tenant).is_deleted)

    def _has_work(self) -> bool:
        behind = (own.at.bucket for own in self._own.values() if not own.is_held_back)
        return min((self._at.bucket, *behind)) <= self._horizon

    def _stream_turn(self) -> bool:
        """One bucket, from the cursor to its end; whether it has got there, or to a tenant that holds it up."""
        bucket, counts = self._at.bucket, Counter[str]()
        while self._at.bucket == bucket <= self._horizon:
            if not self._may_continue():
                return False
            page = self._tick.pages.read(self._at, self._priority)
            picked = self._pick(page, counts)
            refused = self._promote(picked.rows, within=self._tick.may_wait(picked.rows, is_last=page.is_last))
            if refused is not None:
                self._stop_before(refused, page.rows, left=picked.left)
                return False
            if picked.is_cut:
                self._at = Position(bucket, picked.passed)
                return not self._stopped_by
            self._at = Position(self._wheel.next_bucket(bucket)) if page.is_last else Position(bucket, picked.passed)
            self._record()
        return True

    def _pick(self, page: Page, counts: Counter[str]) -> _Picked:
        """The rows of the stream that go out now. A tenant with more than its quantum, or a paused one, leaves it."""
        picked = _Picked(self._at.key)
        if page.rows and not self._open():
            picked.is_cut = True
            return picked
        tenant = NO_TENANT
        shares: dict[str, _Share] = {}
        for row in page.rows:
            tenant = owner_of(row.key)[0]
            if tenant not in shares:
                shares[tenant] = self._share(tenant)
            if tenant not in self._own and not shares[tenant].is_gone:
                if self._left is not None and len(picked.rows) >= self._left:
                    self._stopped_by = USED_UP
                    picked.is_cut = True
                    return picked
                is_held_back, is_over = shares[tenant].is_held_back, counts[tenant] >= shares[tenant].grant
                if is_over and len(self._own) < MAX_OWN:
                    self._leave(tenant, picked, is_held_back=is_held_back)
                elif is_over and not is_held_back:
                    picked.is_cut = True
                    return picked
                else:
                    # Rows of a paused tenant too, where there is no room: holding the stream up would stop everybody.
                    picked.rows.append(row)
                    counts[tenant] += 1
            picked.passed = row.key
        has_room = len(self._own) < MAX_OWN and not page.is_last
        if has_room and counts[tenant] and tenant not in self._own and counts[tenant] >= shares[tenant].grant:
            # Whatever more it has would be read for nothing.
            self._leave(tenant, picked, is_held_back=False)
        if tenant in self._own:
            picked.passed = owner_bounds(self._priority, tenant)[1]
        return picked

    def _share(self, tenant: str) -> _Share:
        if tenant == NO_TENANT:
            return _Share(inf)
        plan = self._plans.of(tenant)
        # A cap is held where a tenant has a cursor of its own. Without room for that it would never be served.
        leaves = plan.is_paused or (plan.has_rate and len(self._own) < MAX_OWN)
        return _Share(
            0 if leaves else grant(self._quantum, plan.weight), is_held_back=plan.is_paused, is_gone=plan.is_deleted
        )

    def _leave(self, tenant: str, picked: _Picked, *, is_held_back: bool) -> None:
        start = owned_prefix(self._priority, tenant)
        self._own[tenant] = OwnCursor(Position(self._at.bucket, max(picked.passed, start)), is_held_back=is_held_back)
        picked.left.append(tenant)

    def _stop_before(self, refused: str, rows: Sequence[StoredTimer], *, left: Sequence[str]) -> None:
        """The cursor goes no further than the first row that was refused. Who left the stream behind it is in it again."""
        for tenant in left:
            if self._own[tenant].at.key >= refused:
                del self._own[tenant]
        self._at = _position_before(refused, rows, self._at)

    def _own_turn(self, tenant: str) -> bool:
        """A quantum of one tenant, and what a turn that was cut off has left over; whether it is used, or nothing is due."""
        own = self._own.get(tenant)
        if own is None or own.is_held_back:
            return True
        if not self._open():
            return False
        start, end = owner_bounds(self._priority, tenant)
        plan = self._plans.of(tenant)
        deficit = own.deficit or grant(self._quantum, plan.weight)
        while deficit and own.at.bucket <= self._horizon:
            if not self._may_continue():
                self._own[tenant] = own._replace(deficit=deficit)
                return False
            limit = min(PAGE, deficit if self._left is None else min(deficit, self._left))
            page = self._tick.pages.read_between(own.at, start, end, limit=limit)
            rows = self._parts.promoter.with_bookings(tenant, plan, page.rows) if plan.has_rate else page.rows
            refused = self._promote(rows)
            if refused is not None:
                self._own[tenant] = own._replace(at=_position_before(refused, rows, own.at))
                return False
            if len(rows) < len(page.rows):
                # Its rate is used up as far as this tick reaches.
                at = Position(own.at.bucket, rows[-1].key) if rows else own.at
                self._own[tenant] = OwnCursor(at, is_held_back=True)
                self._record()
                return True
            deficit -= len(page.rows)
            own = self._own[tenant] = OwnCursor(position_behind(page, own.at, wheel=self._wheel))
            self._record()
        return True

    def _open(self) -> bool:
        """What is asked only where there is something to promote: most ticks of most shards have nothing."""
        if not self._quantum:
            if self._tick.budgets is None:
                self._tick.budgets = self._parts.budgets.of_a_tick()
            self._left = self._tick.budgets.get(self._priority)
            self._quantum = quantum_of(self._left)
            if self._plans.of_everybody().is_paused:
                self._stopped_by = EVERYBODY_PAUSED
        return not self._stopped_by

    def _may_continue(self) -> bool:
        if self._left == 0:
            self._stopped_by = USED_UP
        elif not self._tick.has_time(self._priority):
            self._stopped_by = OUT_OF_TIME
        return not self._stopped_by

    def _promote(self, rows: Sequence[StoredTimer], *, within: timedelta = timedelta(0)) -> str | None:
        """The key of the first row with which it could not be done now."""
        if not rows:
            return None  # most buckets of most classes
        promoted = self._parts.promoter.promote(rows, shard=self._tick.shard, within=within)
        self._tick.note_promoted(rows, promoted)
        if self._left is not None:
            self._left -= len(rows) - len(promoted.unsent)
        if not promoted.unsent:
            return None
        self._stopped_by = f"a {self._priority.name.lower()} message was refused"
        return min(promoted.unsent)

    def _record(self) -> None:
        self._merge()
        self._tick.record(self._priority, ClassCursor(self._at, dict(self._own), self._turn))

    def _merge(self) -> None:
        """A tenant that has caught up with the stream is in it again: the stream comes to its rows next."""
        caught_up = [
            tenant
            for tenant, own in self._own.items()
            if not own.is_held_back
            and own.at == Position(self._at.bucket)
            and self._at.key < owned_prefix(self._priority, tenant)
        ]
        for tenant in caught_up:
            del self._own[tenant]


@dataclass(frozen=True, slots=True)
class _Share:
    """grant: jobs of the stream in a turn. is_held_back: it is paused; is_gone: it is deleted, and its rows are forgotten."""

    grant: float
    is_held_back: bool = False
    is_gone: bool = False


@dataclass(slots=True)
class _Picked:
    """What goes out of a page. passed: the cursor behind it; left: tenants that left the stream; is_cut: the turn ends."""

    passed: str
    rows: list[StoredTimer] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    is_cut: bool = False


def _position_before(key: str, rows: Sequence[StoredTimer], at: Position) -> Position:
    """The last of these rows before a key; where there is none, the position at which they were read."""
    return Position(at.bucket, max((row.key for row in rows if row.key < key), default=at.key))
