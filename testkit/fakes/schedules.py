"""Definitions and states of schedules in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime

from functions.domain.errors import FiresExceeded, SchedulesExceeded, Undecodable
from functions.domain.schedules.asked_runs import AskedRun, read_asked, write_asked
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.fire_figures import NO_FIGURES
from functions.domain.schedules.kept_runs import KeptRun, read_kept, write_kept
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits, Share
from functions.domain.schedules.record import decode_schedule, encode_stored
from functions.domain.schedules.state import Cut, Link, ScheduleState, SkipReason, Status
from functions.ports.ledger import Applied
from functions.ports.schedules import Behind, ScheduleAndState, ScheduleWrite, StatePage, StoredSchedule
from testkit.fakes.kept import kept

WRITTEN_MEANWHILE = (
    "holder",
    "holder_since",
    "waiting",
    "waiting_since",
    "misfire_count",
    "skips",
    "last_skip",
    "kept_runs",
    "asked_runs",
)
"""What workers and scanners write, which is not a change's to undo."""


@dataclass
class StateRow:
    """A state without what is read from elsewhere: `recent` is a ring, and the link's index is that of the count."""

    state: ScheduleState
    ring: dict[int, datetime] = field(default_factory=dict)

    def read(self) -> ScheduleState:
        state = self.state
        link = state.link and replace(state.link, index=state.fire_count - state.link.is_awaited)
        return replace(state, link=link, recent=tuple(sorted(self.ring.values())))


class InMemoryScheduleStore:
    def __init__(self) -> None:
        self.written: dict[str, tuple[str, StoredSchedule]] = {}
        self.rows: dict[str, StateRow] = {}
        self.loads: dict[str, Load] = {}

    def get(self, key: str) -> tuple[StoredSchedule | None, ScheduleState | None]:
        return self._read(key) if key in self.written else None, self.state(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, ScheduleAndState]:
        return {key: self.get(key) for key in keys}

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        found: dict[str, StoredSchedule] = {}
        for key in keys:
            with suppress(Undecodable):
                found |= {key: self._read(key)} if key in self.written else {}
        return found

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        keys = sorted(key for key in self.written if key.startswith(f"{tenant}#") and key > f"{tenant}#{after}")
        return [self._read(key) for key in keys[:limit]], len(keys) > limit

    def state(self, key: str) -> ScheduleState | None:
        return self.rows[key].read() if key in self.rows else None

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        return {key: self.rows[key].read() for key in keys if key in self.rows}

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        keys = sorted(key for key in self.rows if key > (after or ""))
        return StatePage(self.states(keys[:limit]), keys[limit - 1] if len(keys) > limit else None)

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, limits: LoadLimits = NO_LIMITS
    ) -> bool:
        key, met = new.key, self.state(new.key)
        if _place_of(met) != _place_of(seen) or (met and met.share) != (seen and seen.share):
            return False
        tenant, added = new.schedule.tenant, Load.of(state.share) - Load.of(seen.share if seen else None)
        limits.check(tenant, self.load(tenant), added)
        self.loads[tenant] = self.load(tenant) + added
        if state.status is Status.DELETED:
            self.written.pop(key, None)
        else:
            written = replace(new, created_at=kept(new.created_at), changed_at=kept(new.changed_at))
            self.written[key] = json.dumps(encode_stored(new.schedule), ensure_ascii=False), written
        if met is not None and seen is not None and seen.status is not Status.DELETED:
            state = replace(state, **{name: getattr(met, name) for name in WRITTEN_MEANWHILE})
        self.rows[key] = _row(state, history=new.schedule.history)
        return True

    def change_together(self, writes: Sequence[ScheduleWrite]) -> bool:
        before = copy(self.written), copy(self.rows), copy(self.loads)
        try:
            is_written = all(self.change(each.new, each.state, seen=each.seen, limits=each.limits) for each in writes)
        except (SchedulesExceeded, FiresExceeded):
            is_written = False
        if not is_written:
            self.written, self.rows, self.loads = before
        return is_written

    def load(self, tenant: str) -> Load:
        return self.loads.get(tenant, Load())

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        met = self.state(key)
        if met is None or (met.version, met.share) != (seen.version, seen.share):
            return False
        tenant = key.partition("#")[0]
        self.loads[tenant] = self.load(tenant) + Load.of(share) - Load.of(met.share)
        self._update(key, share=share)
        return True

    def advance(
        self, key: str, decided: DueFires, *, version: int, before: Link, alarm_at: datetime | None, history: int
    ) -> Applied | Behind:
        state = self.state(key)
        stands_there = state is not None and state.link is not None and state.link.position == _kept(before).position
        if state is None or not stands_there or state.version != version or state.status is not Status.ACTIVE:
            return Behind(state)
        skips = {reason: state.skips.get(reason, 0) + count for reason, count in decided.skips.items()}
        self._update(
            key,
            link=decided.link and _kept(decided.link),
            alarm_at=alarm_at and kept(alarm_at),
            fire_count=decided.kept[-1].index + 1 if decided.kept else state.fire_count,
            skips=state.skips | skips,
            last_skip=_kept_skip(decided.last_skip) or state.last_skip,
            misfire_count=state.misfire_count + decided.misfire_count,
            figures=((state.figures or NO_FIGURES) + decided.figures) or None,
        )
        places = max(history, 1)
        for link in decided.kept[-places:]:
            self.rows[key].ring[link.index % places] = kept(link.at)
        return Applied()

    def take_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        state = self.state(key)
        if state is None or state.holder not in (seen.holder, identity):
            return False
        if seen.waiting == identity:
            self._update(key, waiting="", waiting_since=None)
        self._update(key, holder=identity, holder_since=kept(now))
        return True

    def wait_for_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        state = self.state(key)
        if state is None or state.waiting not in (seen.waiting, identity):
            return False
        self._update(key, waiting=identity, waiting_since=kept(now))
        return True

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        state = self.state(key)
        if state is not None:
            skips = state.skips | {reason: state.skips.get(reason, 0) + 1}
            self._update(key, skips=skips, last_skip=_kept_skip((reason, fire_at)))

    def note_failure(self, key: str, identity: str) -> int:
        state = self.state(key)
        if state is None:
            return 0
        failures = state.failures | {identity}
        self._update(key, failures=failures)
        return len(failures)

    def forget_failures(self, key: str) -> None:
        if key in self.rows:
            self._update(key, failures=frozenset())

    def keep_runs(self, key: str, kept: tuple[KeptRun, ...], *, seen: ScheduleState) -> bool:
        state = self.state(key)
        if state is None or (state.born, state.kept_runs) != (seen.born, seen.kept_runs):
            return False
        self._update(key, kept_runs=read_kept(write_kept(kept)))
        return True

    def remember_asked(self, key: str, asked: tuple[AskedRun, ...], *, seen: ScheduleState) -> bool:
        state = self.state(key)
        if state is None or (state.born, state.asked_runs) != (seen.born, seen.asked_runs):
            return False
        self._update(key, asked_runs=read_asked(write_asked(asked)))
        return True

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        state = self.state(key)
        if state is None or state.version != version:
            return 0
        if state.aside_at != kept(now):
            asides = state.asides + 1 if state.is_costly(now) else 1
            self._update(key, asides=asides, aside_at=kept(now))
        return self.rows[key].state.asides

    def _read(self, key: str) -> StoredSchedule:
        tenant, _, schedule_id = key.partition("#")
        text, stored = self.written[key]
        return replace(stored, schedule=decode_schedule(text, tenant=tenant, schedule_id=schedule_id))

    def _update(self, key: str, **fields: object) -> None:
        row = self.rows[key]
        row.state = replace(row.state, **fields)


def _row(state: ScheduleState, *, history: int) -> StateRow:
    places = max(history, 1)
    recent = state.recent[-places:]
    first = state.fire_count - len(recent)
    ring = {(first + number) % places: kept(at) for number, at in enumerate(recent)}
    state = replace(
        state,
        changed_at=kept(state.changed_at),
        cuts=tuple(Cut(cut.version, kept(cut.since)) for cut in state.cuts),
        link=state.link and _kept(state.link),
        alarm_at=state.alarm_at and kept(state.alarm_at),
        failures=frozenset(),
        aside_at=state.aside_at and kept(state.aside_at),
    )
    return StateRow(state, ring)


def _place_of(state: ScheduleState | None) -> object:
    return state and (state.version, state.link and state.link.position)


def _kept(link: Link) -> Link:
    return replace(
        link,
        at=kept(link.at),
        nominal_at=kept(link.nominal_at),
        previous_at=link.previous_at and kept(link.previous_at),
    )


def _kept_skip(skip: tuple[SkipReason, datetime] | None) -> tuple[SkipReason, datetime] | None:
    return skip and (skip[0], kept(skip[1]))
