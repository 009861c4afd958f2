"""What an alarm row rings for: the fire of its schedule, if its version is still the one that counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from functions.domain.alarm import Alarm
from functions.domain.firing import next_fire
from functions.domain.schedule import Schedule
from functions.domain.schedule_state import Link, ScheduleState, Status
from functions.domain.wheel import Wheel
from functions.materialising import Chain, Materialiser
from functions.ports import Clock, Journal, ScheduleStore, StoredSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Ringer:
    """Rings alarms.

    One that rings on time for a fire that is far from the next reads nothing but its schedule's definition: whatever it
    repeats overwrites itself, and the advance checks the rest.
    """

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    materialiser: Materialiser
    journal: Journal

    def ring(self, alarms: Sequence[Alarm]) -> list[bool]:
        """Carry the chains of these alarms on; whether each is done, or must be repeated."""
        stored = self._definitions(alarms)
        current = {index: alarm for index, alarm in enumerate(alarms) if self._is_current(alarm, stored)}
        states = self._states(current.values(), stored)
        chains: dict[int, Chain] = {}
        for index, alarm in current.items():
            link = alarm.link
            if _key(alarm) in states:
                link = _link_of(alarm, states[_key(alarm)])
            if link is not None:
                chains[index] = Chain(stored[_key(alarm)], link)
        done = dict(zip(chains, self.materialiser.materialise(list(chains.values())), strict=True))
        self.journal.count("alarms_rung", len(alarms))
        return [done.get(index, True) for index in range(len(alarms))]

    def _definitions(self, alarms: Sequence[Alarm]) -> dict[str, StoredSchedule]:
        """As of some moment before; where that is older than the alarm, as of all writes before."""
        newest = {_key(alarm): alarm.version for alarm in sorted(alarms, key=lambda alarm: alarm.version)}
        stored = self.schedules.definitions(list(newest))
        missing = [key for key, version in newest.items() if key not in stored or stored[key].version < version]
        return stored | self.schedules.definitions(missing, consistent=True) if missing else stored

    def _is_current(self, alarm: Alarm, stored: Mapping[str, StoredSchedule]) -> bool:
        """Whether its version is the one that counts."""
        found = stored.get(_key(alarm))
        if found is None:
            # Deleted; or written by a newer Tickwheel, and then the sweep finds its chain again.
            self.journal.event("alarm_without_schedule", schedule=_key(alarm), version=alarm.version)
            return False
        return found.version == alarm.version and found.status is Status.ACTIVE

    def _states(
        self, alarms: Iterable[Alarm], stored: Mapping[str, StoredSchedule]
    ) -> Mapping[str, ScheduleState | None]:
        """The states of those whose truth may have gone on meanwhile; None where there is none."""
        keys = [_key(alarm) for alarm in alarms if not self._repeats_itself(alarm, stored[_key(alarm)].schedule)]
        found = self.schedules.states(keys) if keys else {}
        return {key: found.get(key) for key in keys}

    def _repeats_itself(self, alarm: Alarm, schedule: Schedule) -> bool:
        """Whether all that it leads to has the same keys as when it rang before, so that no second chain can begin."""
        is_on_time = alarm.rings_at == alarm.link.at and alarm.link.at >= self.clock.now()
        if not is_on_time or schedule.is_end_to_start:
            return False
        try:
            following = next_fire(schedule, after=alarm.link.at)
        except Exception:  # noqa: BLE001  a definition that cannot be computed: the chain is told to be broken
            return False  # whoever carries its chain on tells of it
        return following is None or following.at - alarm.link.at >= self.wheel.guard + self.wheel.bucket


def _link_of(alarm: Alarm, state: ScheduleState | None) -> Link | None:
    """Where the chain of an alarm goes on; None when another alarm does it."""
    if state is None:
        return alarm.link  # a read that is behind: the advance knows better
    if state.version != alarm.version:
        # Of an earlier one the same is true.
        return alarm.link if state.version < alarm.version else None
    if state.link is None:
        return None
    if state.rings_at not in (None, alarm.rings_at) and state.link.position > alarm.link.position:
        return None  # the alarm that rings then was placed before it was recorded
    return max(alarm.link, state.link, key=lambda link: link.position)


def _key(alarm: Alarm) -> str:
    return f"{alarm.tenant}#{alarm.schedule_id}"
