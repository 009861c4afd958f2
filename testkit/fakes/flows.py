"""Flows in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.jobs.job import Timer
from functions.domain.targets.flows import FlowId, FlowLimits, FlowOrder, FlowState, OrderRow, place_in_room
from functions.ports.flows import NoRoom, StoredWaiting
from functions.ports.ledger import Applied
from testkit.fakes.kept import kept


class InMemoryFlowStore:
    def __init__(self) -> None:
        self.set: dict[FlowId, FlowLimits] = {}
        self.states: dict[FlowId, FlowState] = {}
        self.rooms: defaultdict[FlowId, dict[str, str]] = defaultdict(dict)
        self.orders: defaultdict[FlowId, dict[str, OrderRow]] = defaultdict(dict)
        self.holders: dict[FlowId, OrderRow] = {}
        self.missed: dict[FlowId, datetime] = {}
        self.reads = 0
        self.writes = 0

    def limits(self, flow: FlowId) -> FlowLimits | None:
        self.reads += 1
        return self.set.get(flow)

    def page(self, owner: str, *, after: str, limit: int) -> tuple[dict[str, FlowLimits], bool]:
        self.reads += 1
        keys = sorted(flow.key for flow in self.set if flow.owner == owner and flow.key > after)
        return {key: self.set[FlowId(owner, key)] for key in keys[:limit]}, len(keys) > limit

    def set_limits(self, flow: FlowId, limits: FlowLimits) -> None:
        self.writes += 1
        self.set[flow] = limits

    def forget_limits(self, flow: FlowId) -> bool:
        self.writes += 1
        return self.set.pop(flow, None) is not None

    def spend(
        self, flow: FlowId, *, cost: timedelta, now: datetime, latest: datetime, has_had_turn: bool
    ) -> Applied | NoRoom:
        self.writes += 1
        state = self._state(flow)
        if state.turn_at is not None and not has_had_turn:
            return NoRoom(state.next_at, is_waited_for=True)
        if state.next_at is not None and state.next_at > latest:
            return NoRoom(state.next_at)
        self.states[flow] = replace(state, next_at=max(state.next_at or now, now) + cost)
        return Applied()

    def refund(self, flow: FlowId, *, cost: timedelta) -> None:
        self.writes += 1
        state = self._state(flow)
        if state.next_at is not None:
            self.states[flow] = replace(state, next_at=state.next_at - cost)

    def state(self, flow: FlowId) -> FlowState:
        self.reads += 1
        return self._state(flow)

    def is_waited_for(self, flow: FlowId) -> bool:
        self.reads += 1
        return self._state(flow).turn_at is not None

    def wait(self, flow: FlowId, timer: Timer) -> None:
        self.writes += 1
        job = timer.job
        place = place_in_room(job.tenant, scheduled_at=job.scheduled_at, identity=job.identity)
        self.rooms[flow][place] = encode_timer(timer)

    def note_entry(self, flow: FlowId) -> FlowState:
        self.writes += 1
        state = self.states[flow] = replace(self._state(flow), entries=self._state(flow).entries + 1)
        return state

    def note_turn(self, flow: FlowId, turn_at: datetime) -> None:
        self.writes += 1
        self.states[flow] = replace(self._state(flow), turn_at=kept(turn_at))

    def waiting(self, flow: FlowId, *, after: str, limit: int) -> list[StoredWaiting]:
        self.reads += 1
        rows = self.rooms[flow]
        places = sorted(place for place in rows if place > after)[:limit]
        return [
            StoredWaiting(place, tenant, decode_timer(rows[place], tenant=tenant))
            for place in places
            for tenant in [place.partition("#")[0]]
        ]

    def places(self, flow: FlowId, *, after: str = "", upto: str = "", limit: int) -> tuple[list[str], bool]:
        self.reads += 1
        found = sorted(place for place in self.rooms[flow] if place > after and (not upto or place <= upto))
        return found[:limit], len(found) > limit

    def waited_for(self, *, after: str, limit: int) -> tuple[set[FlowId], str]:
        self.reads += 1
        rows = sorted((f"{flow} {place}", flow) for flow, room in self.rooms.items() for place in room)
        page = [row for row in rows if row[0] > after][:limit]
        return {flow for _, flow in page}, page[-1][0] if len(page) == limit else ""

    def line_up(self, flow: FlowId, row: OrderRow) -> None:
        self.writes += 1
        self.orders[flow][row.place] = replace(row, missed_at=None)

    def order(self, flow: FlowId) -> FlowOrder:
        self.reads += 1
        rows = self.orders[flow]
        head = rows[min(rows)] if rows else None
        return FlowOrder(holder=self.holders.get(flow), head=head, missed_at=self.missed.get(flow))

    def hold(self, flow: FlowId, row: OrderRow) -> bool:
        self.writes += 1
        found = self.holders.get(flow)
        if found is not None and found.place != row.place:
            return False
        self.holders[flow] = replace(row, missed_at=None)
        return True

    def miss(self, flow: FlowId, *, now: datetime, holder: OrderRow | None = None) -> None:
        self.writes += 1
        found = self.holders.get(flow)
        if holder is None:
            self.missed[flow] = kept(now)
        elif found is not None and found.place == holder.place:
            self.holders[flow] = replace(found, missed_at=found.missed_at or kept(now))

    def finish(self, flow: FlowId, place: str) -> None:
        self.writes += 1
        self.orders[flow].pop(place, None)
        self.release(flow, place)

    def release(self, flow: FlowId, place: str) -> None:
        self.writes += 1
        if flow in self.holders and self.holders[flow].place == place:
            del self.holders[flow]

    def waiting_at(self, flow: FlowId, place: str) -> StoredWaiting | None:
        self.reads += 1
        tenant = place.partition("#")[0]
        record = self.rooms[flow].get(place)
        return StoredWaiting(place, tenant, decode_timer(record, tenant=tenant)) if record is not None else None

    def leave(self, flow: FlowId, *, seen: FlowState, state: FlowState) -> bool:
        self.writes += 1
        found = self._state(flow)
        if found.version != seen.version:
            return False
        self.states[flow] = replace(
            found,
            version=state.version,
            cursor=state.cursor,
            granted=state.granted,
            busy_until=state.busy_until,
            planned_at=state.planned_at or found.planned_at,
        )
        return True

    def remove(self, flow: FlowId, places: Sequence[str]) -> None:
        self.writes += len(places)
        for place in places:
            self.rooms[flow].pop(place, None)

    def close(self, flow: FlowId, *, seen: FlowState) -> bool:
        self.writes += 1
        found = self._state(flow)
        if found.entries != seen.entries:
            return False
        self.states[flow] = replace(found, turn_at=None)
        return True

    def _state(self, flow: FlowId) -> FlowState:
        return self.states.get(flow, FlowState())
