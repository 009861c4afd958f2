"""What an alarm row leads to: the fire of its schedule, if its version is still the one that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from functions.domain.errors import TooCostly
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Link, ScheduleState, Status
from functions.domain.schedules.step_budget import STEPS_OF_A_TICK, Budget
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.schedules import ScheduleStore, StoredSchedule
from functions.services.schedules.materialiser import SHARE, Carried, Chain, Materialiser
from functions.services.schedules.pauser import DIED

SLICE = timedelta(seconds=5)
"""How long alarms that are handled together are worked out in a tick, before what has come of them is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAlarms:
    """Handles the alarms of schedules that have come due.

    One that is handled on time, for a fire that is far from the next, reads nothing but its schedule's definition: whatever it
    repeats overwrites itself, and the advance checks the rest.
    """

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    materialiser: Materialiser
    journal: Journal

    def handle(self, alarms: Sequence[ScheduleAlarm], *, ends_at: float = inf) -> list[Carried]:
        """Carry the chains of these alarms on: none begins after `ends_at` (monotonic, s), but at least one does.

        Those of a tenant of which one was set aside are refused: they are to be handled apart from the others'.
        """
        stored = self._definitions(alarms)
        current = {index: alarm for index, alarm in enumerate(alarms) if self._is_current(alarm, stored)}
        costly: set[str] = set()
        asked = self._to_ask(current, stored, costly, ends_at=min(ends_at, self._a_while()))
        states = self.schedules.states([_key(current[index]) for index in asked]) if asked else {}
        chains: dict[int, Chain] = {}
        carried = dict.fromkeys(range(len(alarms)), Carried.ON)
        for index, alarm in current.items():
            link = _link_of(alarm, states.get(_key(alarm)))
            if asked.get(index):
                carried[index] = Carried.ASIDE
            elif alarm.tenant in costly:
                carried[index] = Carried.REFUSED
            elif link is not None:
                chains[index] = Chain(stored[_key(alarm)], link)
        done = self.materialiser.materialise(list(chains.values()), ends_at=min(ends_at, self._a_while()))
        carried |= dict(zip(chains, done, strict=True))
        self.journal.count("alarms_due", len(alarms))
        return [carried[index] for index in range(len(alarms))]

    def accuse(self, tenant: str, schedule_id: str, version: int) -> None:
        """A process died while it handled the alarm of this chain: it is set aside. Never raises."""
        self.materialiser.asides.set_aside(f"{tenant}#{schedule_id}", version=version, why=DIED)

    def _a_while(self) -> float:
        return self.clock.monotonic() + SLICE.total_seconds()

    def _definitions(self, alarms: Sequence[ScheduleAlarm]) -> dict[str, StoredSchedule]:
        """As of some moment before; where that is older than the alarm, as of all writes before."""
        newest = {_key(alarm): alarm.version for alarm in sorted(alarms, key=lambda alarm: alarm.version)}
        stored = self.schedules.definitions(list(newest))
        missing = [key for key, version in newest.items() if key not in stored or stored[key].version < version]
        return stored | self.schedules.definitions(missing, consistent=True) if missing else stored

    def _is_current(self, alarm: ScheduleAlarm, stored: Mapping[str, StoredSchedule]) -> bool:
        """Whether its version is the one that counts."""
        found = stored.get(_key(alarm))
        if found is None:
            # Deleted; or written by a newer Tickwheel, and then the sweep finds its chain again.
            self.journal.event("alarm_without_schedule", schedule=_key(alarm), version=alarm.version)
            return False
        return found.version == alarm.version and found.status is Status.ACTIVE

    def _to_ask(
        self,
        alarms: Mapping[int, ScheduleAlarm],
        stored: Mapping[str, StoredSchedule],
        costly: set[str],
        *,
        ends_at: float,
    ) -> dict[int, bool]:
        """Those whose schedule may have advanced meanwhile; whether each was set aside. costly: gets the tenants of those."""
        found: dict[int, bool] = {}
        for index, alarm in alarms.items():
            if alarm.tenant in costly:
                continue
            if self.clock.monotonic() >= ends_at:
                found[index] = False  # asking costs half a read unit, working it out may cost seconds
                continue
            schedule = stored[_key(alarm)]
            try:
                if not self._repeats_itself(alarm, schedule.schedule):
                    found[index] = False
            except TooCostly as error:
                self.materialiser.asides.set_aside(schedule.key, version=schedule.version, why=str(error))
                costly.add(alarm.tenant)
                found[index] = True
        return found

    def _repeats_itself(self, alarm: ScheduleAlarm, schedule: Schedule) -> bool:
        """Whether all that it leads to has the same keys as when it was handled before, so that no second chain can begin.

        Raises TooCostly.
        """
        is_on_time = alarm.alarm_at == alarm.link.at and alarm.link.at >= self.clock.now()
        if not is_on_time or schedule.is_end_to_start:
            return False
        try:
            with self.clock.limited(SHARE):
                following = next_fire(schedule, after=alarm.link.at, budget=Budget(STEPS_OF_A_TICK))
        except TooCostly:
            raise
        except Exception:  # noqa: BLE001  a definition that cannot be computed: the chain is reported as broken
            return False  # reported by the process that continues its chain
        return following is None or following.at - alarm.link.at >= self.wheel.guard + self.wheel.bucket


def _link_of(alarm: ScheduleAlarm, state: ScheduleState | None) -> Link | None:
    """The link from which the chain of an alarm continues; None when another alarm does it."""
    if state is None:
        return alarm.link  # not asked for, or a read that is behind: the advance knows better
    if state.version != alarm.version:
        # The same is true of an earlier one.
        return alarm.link if state.version < alarm.version else None
    if state.link is None:
        return None
    if state.alarm_at not in (None, alarm.alarm_at) and state.link.position > alarm.link.position:
        return None  # the alarm that comes due then was placed before it was recorded
    return max(alarm.link, state.link, key=lambda link: link.position)


def _key(alarm: ScheduleAlarm) -> str:
    return f"{alarm.tenant}#{alarm.schedule_id}"
