"""The store of the schedules, which reports what was written, and may be behind with what it lets others read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from functions.domain.schedules.asked_runs import AskedRun
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.load import Load, LoadLimits, Share
from functions.domain.schedules.state import Link, ScheduleState, SkipReason
from functions.ports.ledger import Applied
from functions.ports.schedules import Behind, ScheduleAndState, ScheduleStore, ScheduleWrite, StatePage, StoredSchedule
from testkit.world.schedules import SchedulePromises


class WatchedSchedules:
    """Around a store. lags: whatever is not read consistently is as it was before the last write."""

    def __init__(self, kept: ScheduleStore) -> None:
        self.promises: SchedulePromises | None = None
        self.lags = False
        self._kept = kept
        self._were: dict[str, StoredSchedule | None] = {}
        self._stood: dict[str, ScheduleState | None] = {}

    def get(self, key: str) -> tuple[StoredSchedule | None, ScheduleState | None]:
        return self._kept.get(key)

    def get_many(self, keys: Sequence[str]) -> Mapping[str, ScheduleAndState]:
        return self._kept.get_many(keys)

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        now = self._kept.definitions(keys, consistent=consistent)
        if consistent or not self.lags:
            return now
        were = {key: self._were.get(key, now.get(key)) for key in keys}
        return {key: stored for key, stored in were.items() if stored is not None}

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        return self._kept.page(tenant, after=after, limit=limit)

    def state(self, key: str) -> ScheduleState | None:
        return self._kept.state(key)

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        return self._kept.states(keys)

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        page = self._kept.scan(after=after, limit=limit)
        if not self.lags:
            return page
        stood = {key: self._stood.get(key, state) for key, state in page.states.items()}
        return StatePage({key: state for key, state in stood.items() if state is not None}, page.after)

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, **limits: LoadLimits
    ) -> bool:
        met, was = self.state(new.key), self.definitions([new.key], consistent=True).get(new.key)
        is_written = self._kept.change(new, state, seen=seen, **limits)
        if is_written:
            self._were[new.key], self._stood[new.key] = was, met
            after = self.state(new.key)
            assert after is not None
            self._promises.changed(new, after, met=met)
        return is_written

    def change_together(self, writes: Sequence[ScheduleWrite]) -> bool:
        mets = {each.new.key: self.state(each.new.key) for each in writes}
        were = self.definitions(list(mets), consistent=True)
        is_written = self._kept.change_together(writes)
        for each in writes if is_written else ():
            key = each.new.key
            self._were[key], self._stood[key] = were.get(key), mets[key]
            after = self.state(key)
            assert after is not None
            self._promises.changed(each.new, after, met=mets[key])
        return is_written

    def load(self, tenant: str) -> Load:
        return self._kept.load(tenant)

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        return self._kept.recount(key, share, seen=seen)

    def advance(
        self, key: str, decided: DueFires, *, version: int, before: Link, alarm_at: datetime | None, history: int
    ) -> Applied | Behind:
        met = self.state(key)
        answer = self._kept.advance(key, decided, version=version, before=before, alarm_at=alarm_at, history=history)
        after = self.state(key)
        if isinstance(answer, Applied) and met is not None and after is not None:
            self._stood[key] = met
            self._promises.advanced(key, decided, met=met, after=after)
        return answer

    def take_slot(self, key: str, identity: str, **given: Any) -> bool:
        is_taken = self._kept.take_slot(key, identity, **given)
        if is_taken:
            self._promises.fires.took_slot(key, identity)
        return is_taken

    def wait_for_slot(self, key: str, identity: str, **given: Any) -> bool:
        is_taken = self._kept.wait_for_slot(key, identity, **given)
        if is_taken:
            self._promises.fires.waits_for_slot(key, identity)
        return is_taken

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        self._kept.note_skip(key, reason, fire_at=fire_at)

    def note_failure(self, key: str, identity: str) -> int:
        return self._kept.note_failure(key, identity)

    def forget_failures(self, key: str) -> None:
        self._kept.forget_failures(key)

    def keep_runs(self, key: str, kept: tuple[KeptRun, ...], *, seen: ScheduleState) -> bool:
        return self._kept.keep_runs(key, kept, seen=seen)

    def remember_asked(self, key: str, asked: tuple[AskedRun, ...], *, seen: ScheduleState) -> bool:
        return self._kept.remember_asked(key, asked, seen=seen)

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        return self._kept.note_aside(key, version=version, now=now)

    @property
    def _promises(self) -> SchedulePromises:
        assert self.promises is not None
        return self.promises
