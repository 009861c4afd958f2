"""Flows on DynamoDB: in the tenants table, a partition for each flow that is in use, beside its permits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.dynamodb.table import Item, Table, instant_of
from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import EPOCH, MICROSECOND, to_ms, to_seconds
from functions.domain.jobs.job import Timer
from functions.domain.targets.flows import (
    FlowId,
    FlowLimits,
    FlowOrder,
    FlowState,
    OrderRow,
    parse_flow_id,
    place_in_room,
    read_limits,
    write_limits,
)
from functions.ports.flows import NoRoom, StoredWaiting
from functions.ports.ledger import Applied

_STATE = "flow"
_LIMITS = "flow#"
ROOM = "room#"
_HOLDER = "order"
_MISSED = "order!"
"""Between who runs and who is first, so that one Query finds all three."""

_ORDER = "order#"
_LIFE = timedelta(days=30)
"""A state says nothing any more long before: its rate is over within a day and its burst, and who waits has a turn each minute."""

_BATCH = 25
_TRIES = 3


@dataclass
class DynamoDBFlowStore:
    """A partition {t: `{owner}#{key}`} for each flow that is in use.

    {i: `flow`, n: theoretical arrival time (µs), p: of what has left the room (µs), q: next turn (ms), e: entries, v: version,
    c: cursor, g: granted, b: busy until (ms), x: ttl (s)}, and {i: `room#{tenant}#{time}#{identity}`, j: timer record}.
    In an ordered flow {i: `order`, h: place of what runs, j: its id, m: missed since (ms), x: ttl (s)}, {i: `order#{place}`, j: job id,
    x: ttl (s)}, and {i: `order!`, m: when somebody was missed (ms), x: ttl (s)}.
    Its limits, where they were set: {t: owner, i: `flow#{key}`, l: limits}.
    """

    table: Table

    def limits(self, flow: FlowId) -> FlowLimits | None:
        """Half a read unit."""
        item = self.table.get({"t": flow.owner, "i": _LIMITS + flow.key}, is_consistent=False)
        return _limits(item) if item else None

    def page(self, owner: str, *, after: str, limit: int) -> tuple[dict[str, FlowLimits], bool]:
        """One Query. Raises Undecodable."""
        items, has_more = self.table.page(
            "t = :t AND i BETWEEN :first AND :last",
            limit=limit,
            t=owner,
            first=f"{_LIMITS}{after}\0" if after else _LIMITS,
            last=f"{_LIMITS}~",
        )
        return {item["i"].removeprefix(_LIMITS): _limits(item) for item in items}, has_more

    def set_limits(self, flow: FlowId, limits: FlowLimits) -> None:
        """One write unit."""
        self.table.put({"t": flow.owner, "i": _LIMITS + flow.key, "l": write_limits(limits)})

    def forget_limits(self, flow: FlowId) -> bool:
        """One write unit."""
        key = {"t": flow.owner, "i": _LIMITS + flow.key}
        return bool(self.table.delete(key, returns="ALL_OLD").item)

    def spend(
        self, flow: FlowId, *, cost: timedelta, now: datetime, latest: datetime, has_had_turn: bool
    ) -> Applied | NoRoom:
        """One write unit while it is used all the time, two after a while of no use or where it has no room."""
        may_enter = "" if has_had_turn else " AND attribute_not_exists(q)"
        for _ in range(_TRIES):
            found = self._update(
                flow,
                update="SET n = n + :cost, x = :ttl",
                condition=f"n BETWEEN :now AND :latest{may_enter}",
                cost=cost // MICROSECOND,
                now=_us(now),
                latest=_us(latest),
                ttl=_ttl(now + cost),
            )
            if found is None:
                return Applied()
            next_at = _us_instant(found, "n")
            if "q" in found and not has_had_turn:
                return NoRoom(next_at, is_waited_for=True)
            if next_at is not None and next_at > latest:
                return NoRoom(next_at)
            found = self._update(
                flow,
                update="SET n = :to, x = :ttl",
                condition=f"(attribute_not_exists(n) OR n < :now){may_enter}",
                to=_us(now + cost),
                now=_us(now),
                ttl=_ttl(now + cost),
            )
            if found is None:
                return Applied()
        return NoRoom(None)

    def refund(self, flow: FlowId, *, cost: timedelta) -> None:
        """One write unit."""
        self._update(flow, update="SET n = n - :cost", condition="attribute_exists(n)", cost=cost // MICROSECOND)

    def state(self, flow: FlowId) -> FlowState:
        """One read unit."""
        return _state(self.table.get(_key(flow)))

    def is_waited_for(self, flow: FlowId) -> bool:
        """Half a read unit."""
        return "q" in self.table.get(_key(flow), is_consistent=False)

    def wait(self, flow: FlowId, timer: Timer) -> None:
        """A write unit for each KB of its record.

        Never expires: it is all that is left of an attempt that nobody has claimed, and nobody knows for how long its tenant is paused.
        None stays behind: the sweeper opens each room in which something waits, and with its tenant it is deleted.
        """
        self.table.put({"t": str(flow), "i": ROOM + _place(timer), "j": encode_timer(timer)})

    def note_entry(self, flow: FlowId) -> FlowState:
        """One write unit."""
        return _state(self.table.update(_key(flow), update="ADD e :one", returns="ALL_NEW", one=1).item)

    def note_turn(self, flow: FlowId, turn_at: datetime) -> None:
        """One write unit."""
        self._update(flow, update="SET q = :at, x = :ttl", at=turn_at, ttl=_ttl(turn_at))

    def waiting(self, flow: FlowId, *, after: str, limit: int) -> list[StoredWaiting]:
        """A read unit for each 4 KB."""
        found = self.table.query(
            "t = :t AND i BETWEEN :first AND :last",
            limit=limit,
            is_consistent=True,
            t=str(flow),
            first=f"{ROOM}{after}\0" if after else ROOM,
            last=f"{ROOM}~",
        )
        return [_waiting(item) for item in found.items]

    def places(self, flow: FlowId, *, after: str = "", upto: str = "", limit: int) -> tuple[list[str], bool]:
        """One Query: half a read unit for each 4 KB, and at most a megabyte.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Pagination.html
        """
        found = self.table.query(
            "t = :t AND i BETWEEN :first AND :last",
            # One more: that a page is full does not say whether there is another.
            limit=limit + 1,
            only="i",
            t=str(flow),
            first=f"{ROOM}{after}\0" if after else ROOM,
            last=ROOM + (upto or "~"),
        )
        places = [item["i"].removeprefix(ROOM) for item in found.items]
        return places[:limit], len(places) > limit or bool(found.last)

    def waited_for(self, *, after: str, limit: int) -> tuple[set[FlowId], str]:
        """One Scan: half a read unit for each 4 KB of the rows, and at most a megabyte."""
        partition, _, sort = after.partition(" ")
        found = self.table.scan(
            limit=limit,
            after={"t": partition, "i": sort or _STATE} if after else None,
            condition="begins_with(i, :room)",
            room=ROOM,
        )
        return {
            parse_flow_id(item["t"]) for item in found.items
        }, f"{found.last['t']} {found.last['i']}" if found.last else ""

    def line_up(self, flow: FlowId, row: OrderRow) -> None:
        """One write unit. By an update, which every function that places jobs may make."""
        key, expiry = {"t": str(flow), "i": _ORDER + row.place}, _expiry(row)
        if expiry:
            self.table.update(key, update="SET j = :id, x = :ttl", id=row.job_id, ttl=expiry["x"])
        else:
            self.table.update(key, update="SET j = :id", id=row.job_id)

    def order(self, flow: FlowId) -> FlowOrder:
        """One Query, a read unit."""
        found = self.table.query(
            "t = :t AND i BETWEEN :first AND :last",
            limit=3,
            is_consistent=True,
            t=str(flow),
            first=_HOLDER,
            last=f"{_ORDER}~",
        )
        holder = next(
            (
                OrderRow(place=item["h"], job_id=item["j"], missed_at=instant_of(item, "m"))
                for item in found.items
                if item["i"] == _HOLDER
            ),
            None,
        )
        rows = [
            OrderRow(place=item["i"].removeprefix(_ORDER), job_id=item["j"])
            for item in found.items
            if item["i"].startswith(_ORDER)
        ]
        missed_at = next((instant_of(item, "m") for item in found.items if item["i"] == _MISSED), None)
        return FlowOrder(holder=holder, head=rows[0] if rows else None, missed_at=missed_at)

    def hold(self, flow: FlowId, row: OrderRow) -> bool:
        """One write unit, held or not."""
        item = {"t": str(flow), "i": _HOLDER, "h": row.place, "j": row.job_id, **_expiry(row)}
        return self.table.put(item, condition="attribute_not_exists(t) OR h = :mine", mine=row.place).is_done

    def miss(self, flow: FlowId, *, now: datetime, holder: OrderRow | None = None) -> None:
        """One write unit."""
        if holder is None:
            self.table.put({"t": str(flow), "i": _MISSED, "m": now, "x": _ttl(now)})
            return
        self.table.update(
            {"t": str(flow), "i": _HOLDER},
            update="SET m = if_not_exists(m, :now)",
            condition="h = :place",
            place=holder.place,
            now=now,
        )

    def finish(self, flow: FlowId, place: str) -> None:
        """Two write units."""
        # Its row first: whoever dies in between leaves a holder that has ended, and not one that may start twice.
        self.table.delete({"t": str(flow), "i": _ORDER + place})
        self.release(flow, place)

    def release(self, flow: FlowId, place: str) -> None:
        """One write unit."""
        self.table.delete(
            {"t": str(flow), "i": _HOLDER}, condition="attribute_not_exists(t) OR h = :place", place=place
        )

    def waiting_at(self, flow: FlowId, place: str) -> StoredWaiting | None:
        """A read unit for each 4 KB."""
        item = self.table.get({"t": str(flow), "i": ROOM + place})
        return _waiting(item) if item else None

    def leave(self, flow: FlowId, *, seen: FlowState, state: FlowState) -> bool:
        """One write unit."""
        planned = {"planned": _us(state.planned_at)} if state.planned_at is not None else {}
        found = self._update(
            flow,
            update="SET v = :version, c = :cursor, g = :granted, b = :busy" + (", p = :planned" if planned else ""),
            condition="v = :seen" if seen.version else "attribute_not_exists(v)",
            version=state.version,
            cursor=state.cursor,
            granted=state.granted,
            busy=to_ms(state.busy_until) if state.busy_until is not None else 0,
            **planned,
            **({"seen": seen.version} if seen.version else {}),
        )
        return found is None

    def remove(self, flow: FlowId, places: Sequence[str]) -> None:
        """A write unit for each KB of a record."""
        left: Sequence[Item] = [{"t": str(flow), "i": ROOM + place} for place in places]
        for _ in range(_TRIES * len(left)):
            if not left:
                break
            # What is not deleted has left all the same: whoever takes it for waiting sends a message that the ledger drops.
            left = [*self.table.delete_many(left[:_BATCH]), *left[_BATCH:]]

    def close(self, flow: FlowId, *, seen: FlowState) -> bool:
        """One write unit."""
        if seen.entries:
            return self._update(flow, update="REMOVE q", condition="e = :entries", entries=seen.entries) is None
        # Its state was lost, and nobody has entered since: whoever does sends a turn where none is noted.
        if seen.turn_at is None:
            return True
        return (
            self._update(flow, update="REMOVE q", condition="attribute_exists(q) AND attribute_not_exists(e)") is None
        )

    def _update(self, flow: FlowId, **asked: Any) -> Item | None:
        """None when it was written; what it found, when its condition was not met."""
        write = self.table.update(_key(flow), **asked)
        return None if write.is_done else write.item


def _expiry(row: OrderRow) -> Item:
    return {"x": to_seconds(row.expires_at)} if row.expires_at is not None else {}


def _key(flow: FlowId) -> Item:
    return {"t": str(flow), "i": _STATE}


def _place(timer: Timer) -> str:
    return place_in_room(timer.job.tenant, scheduled_at=timer.job.scheduled_at, identity=timer.job.identity)


def _state(item: Item) -> FlowState:
    return FlowState(
        next_at=_us_instant(item, "n"),
        planned_at=_us_instant(item, "p"),
        turn_at=instant_of(item, "q"),
        entries=item.get("e", 0),
        version=item.get("v", 0),
        cursor=item.get("c", ""),
        granted=item.get("g", 0),
        busy_until=instant_of(item, "b"),
    )


def _waiting(item: Item) -> StoredWaiting:
    place = item["i"].removeprefix(ROOM)
    tenant = place.partition("#")[0]
    try:
        return StoredWaiting(place, tenant, decode_timer(item["j"], tenant=tenant))
    except Undecodable:
        return StoredWaiting(place, tenant, None)


def _limits(item: Item) -> FlowLimits:
    try:
        return read_limits(item["l"])
    except InvalidInput as error:
        raise Undecodable(f"not the limits of a flow: {error}") from error


def _us(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def _us_instant(item: Item, name: str) -> datetime | None:
    return EPOCH + item[name] * MICROSECOND if name in item else None


def _ttl(instant: datetime) -> int:
    return to_seconds(instant + _LIFE)
