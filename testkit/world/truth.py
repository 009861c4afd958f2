"""What has been decided about schedules: the changes that were committed, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.jobs.occurrence import Occurrence
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState, Status
from functions.ports.schedules import StoredSchedule


@dataclass(frozen=True)
class Version:
    """It decides the fires after `since`, up to the `since` of the next.

    committed: how much had happened then. life: how often the schedule had been deleted before.
    """

    number: int
    status: Status
    schedule: Schedule
    since: datetime
    committed: int
    life: int

    @property
    def is_active(self) -> bool:
        return self.status is Status.ACTIVE


class Truth:
    """Versions by the keys of their schedules."""

    def __init__(self) -> None:
        self.versions: dict[str, list[Version]] = {}

    def commit(self, stored: StoredSchedule, state: ScheduleState, *, moment: int) -> Version:
        """A change has been written."""
        versions = self.versions.setdefault(stored.key, [])
        life = versions[-1].life + (versions[-1].status is Status.DELETED) if versions else 0
        version = Version(state.version, state.status, stored.schedule, state.changed_at, moment, life)
        versions.append(version)
        return version

    def keys(self, *statuses: Status) -> list[str]:
        """The schedules that stand so."""
        return [key for key, versions in self.versions.items() if versions[-1].status in statuses]

    def last(self, key: str) -> Version:
        """The version that counts."""
        return self.versions[key][-1]

    def of(self, key: str, number: int) -> tuple[Version | None, list[Version]]:
        """The version with that number, and those that followed it."""
        versions = self.versions.get(key, [])
        for index in range(len(versions) - 1, -1, -1):
            if versions[index].number == number:
                return versions[index], versions[index + 1 :]
        return None, []

    def was_stopped(self, key: str, *, since: int) -> bool:
        """Whether it was paused or deleted at any moment since."""
        versions = self.versions[key]
        ends = [*(version.committed for version in versions[1:]), None]
        return any(
            not version.is_active and (end is None or end > since) for version, end in zip(versions, ends, strict=True)
        )

    def is_deleted(self, key: str, *, after: int, before: int) -> bool:
        """Whether a version was followed by a deletion, as far as had happened at a moment."""
        _, later = self.of(key, after)
        return any(version.status is Status.DELETED and version.committed <= before for version in later)

    def counts(self, key: str, occurrence: Occurrence) -> bool:
        """Whether the version that decided a fire was the one to decide it, as things stand."""
        version, later = self.of(key, occurrence.version)
        return version is not None and (not later or occurrence.fire_at <= later[0].since)
