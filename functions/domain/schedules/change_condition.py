"""What a request wants to be true of a schedule that it changes: If-None-Match and If-Match, as RFC 9110 means them.

https://www.rfc-editor.org/rfc/rfc9110#section-13.1
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.errors import ScheduleChanged, ScheduleExists

MOST_REQUESTS = 10
"""How many conditional requests a schedule remembers: a repeat of an older one is judged like a new request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCondition:
    """is_new: there is no schedule of this id. exists: there is one. versions: it has one of these; None for any.

    request: the name of the request, which its repeats have, too; empty for one without a condition.
    """

    is_new: bool = False
    exists: bool = False
    versions: frozenset[int] | None = None
    request: str = ""

    def check(self, tenant: str, schedule_id: str, version: int | None, *, is_in_place: bool = False) -> None:
        """Raises ScheduleChanged, ScheduleExists where it is not met. version: that of the schedule, None where there is none.

        is_in_place: the schedule is as the whole of the request says already. The RFC lets that pass for If-Match alone: whoever
        creates must learn that somebody else has.
        """
        is_wanted = version is not None and (self.versions is None or version in self.versions)
        if (self.exists or self.versions is not None) and not is_wanted and not is_in_place:
            raise ScheduleChanged(tenant, schedule_id, seen=sorted(self.versions or ()), version=version)
        if self.is_new and version is not None:
            raise ScheduleExists(tenant, schedule_id, version=version)


ALWAYS = ChangeCondition()
"""No condition."""


def remembered(requests: tuple[str, ...], request: str) -> tuple[str, ...]:
    """The names of the last conditional requests that have changed a schedule, with that of another one."""
    return (*requests, request)[-MOST_REQUESTS:] if request else requests
