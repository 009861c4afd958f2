"""The store of the schedules, which tells what was written, and may be behind with what it lets others read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from functions.domain.planning import Plan
from functions.domain.schedule_state import Link, ScheduleState
from functions.ports import Applied, Behind, StatePage, StoredSchedule
from tests.fakes import InMemoryScheduleStore
from tests.world.schedules import SchedulePromises


class WatchedSchedules(InMemoryScheduleStore):
    """lags: whatever is not read consistently is as it was before the last write."""

    def __init__(self) -> None:
        super().__init__()
        self.promises: SchedulePromises | None = None
        self.lags = False
        self._were: dict[str, tuple[str, StoredSchedule] | None] = {}
        self._stood: dict[str, ScheduleState | None] = {}

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        if consistent or not self.lags:
            return super().definitions(keys, consistent=consistent)
        now = self.written
        were = {key: self._were.get(key, now.get(key)) for key in keys}
        self.written = {key: written for key, written in were.items() if written is not None}
        try:
            return super().definitions(keys)
        finally:
            self.written = now

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        page = super().scan(after=after, limit=limit)
        if not self.lags:
            return page
        stood = {key: self._stood.get(key, state) for key, state in page.states.items()}
        return StatePage({key: state for key, state in stood.items() if state is not None}, page.after)

    def change(self, stored: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None) -> bool:
        met, was = self.state(stored.key), self.written.get(stored.key)
        is_written = super().change(stored, state, seen=seen)
        if is_written:
            self._were[stored.key], self._stood[stored.key] = was, met
            after = self.state(stored.key)
            assert after is not None
            self._promises.changed(stored, after, met=met)
        return is_written

    def advance(
        self, key: str, planned: Plan, *, version: int, before: Link, rings_at: datetime | None, history: int
    ) -> Applied | Behind:
        met = self.state(key)
        answer = super().advance(key, planned, version=version, before=before, rings_at=rings_at, history=history)
        after = self.state(key)
        if isinstance(answer, Applied) and met is not None and after is not None:
            self._stood[key] = met
            self._promises.advanced(key, planned, met=met, after=after)
        return answer

    def take_slot(self, key: str, identity: str, **given: Any) -> bool:
        is_taken = super().take_slot(key, identity, **given)
        if is_taken:
            self._promises.fires.took_slot(key, identity)
        return is_taken

    def wait_for_slot(self, key: str, identity: str, **given: Any) -> bool:
        is_taken = super().wait_for_slot(key, identity, **given)
        if is_taken:
            self._promises.fires.waits_for_slot(key, identity)
        return is_taken

    @property
    def _promises(self) -> SchedulePromises:
        assert self.promises is not None
        return self.promises
