"""What the demo imports: the periodic jobs of the example as the schedules that they are, and a few that fire each minute.

Each has a spread of an hour where that has a meaning. As the example states them, hundreds fire in the same second of an
hour and few in between, so that what a run of the demo shows would depend on the time of day.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tickwheel.client import Client
from tickwheel.client.durations import parse_duration
from tickwheel.client.jobs import Priority, RetryPolicy
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule, NotStored, Put
from tickwheel.errors import ApiProblem, Unreachable
from tickwheel.screens.herd import Load

SPREAD = timedelta(hours=1)

OWN_TENANT = "demo"
"""Whose schedules of each minute are."""

NEVER = frozenset({"0 0 30 2 *", "0 0 31 2 *"})
"""Days that there are not: so the project switches a job off. The scheduler refuses what would never fire."""

HOURS = 24
"""How far ahead fires are counted."""

_OWN: Mapping[str, Priority] = {f"each-minute-{priority}": priority for priority in Priority}
_THREADS = 2
"""For each of them a function is started, and two cores run everything."""

_TIMEOUT = timedelta(seconds=10)
_RETRY = RetryPolicy(strategy="decorrelated_jitter", attempts=6, base=timedelta(seconds=1), cap=timedelta(seconds=5))


@dataclass(frozen=True, kw_only=True)
class Import:
    """What became of the schedules. ended_at: when the last of them had its answer.

    switched_off: refused because they never fire, as they must be. failed: not taken for any other reason, or taken
    although they never fire, and why.
    """

    stored: Sequence[NewSchedule]
    switched_off: Mapping[str, str]
    failed: Mapping[str, str]
    ended_at: datetime


def schedule_names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The name of each that is planned."""
    return [*(row["name"] for row in rows), *_OWN]


def plan_schedules(rows: Iterable[Mapping[str, Any]], *, sink: str) -> list[NewSchedule]:
    """A schedule for each row, in their order, then one of each minute for each priority; `sink` is where they call."""
    return [
        *(_of_row(row, sink=sink) for row in rows),
        *(
            _schedule(name, sink=sink, tenant=OWN_TENANT, cron="* * * * *", priority=priority)
            for name, priority in _OWN.items()
        ),
    ]


def count_loads(
    client: Client, schedules: Sequence[NewSchedule], *, on_progress: Callable[[int], None]
) -> tuple[Load, Load]:
    """The fires of the next hours, by the scheduler's own arithmetic: without the spread, and with it."""
    start = datetime.now(UTC).replace(second=0, microsecond=0)
    before, after = (
        Load(start, HOURS, client.schedules.count_fires(each, start=start, hours=HOURS, on_progress=on_progress))
        for each in ([replace(schedule, spread=None) for schedule in schedules], schedules)
    )
    return before, after


def import_all(client: Client, schedules: Sequence[NewSchedule], *, on_progress: Callable[[Put], None]) -> Import:
    """Puts every schedule; `on_progress` is called with each result."""
    results = client.schedules.put_many(schedules, threads=_THREADS, on_progress=on_progress)
    stored: list[NewSchedule] = []
    switched_off: dict[str, str] = {}
    failed: dict[str, str] = {}
    for result in results:
        asked = result.asked
        if not isinstance(result, NotStored):
            stored.append(asked)
            if asked.cron in NEVER:
                failed[asked.id] = "accepted, although it never fires"
        elif _is_switched_off(result):
            switched_off[asked.id] = _reason_of(result.error)
        else:
            failed[asked.id] = _reason_of(result.error)
    return Import(stored=stored, switched_off=switched_off, failed=failed, ended_at=datetime.now(UTC))


def _is_switched_off(result: NotStored) -> bool:
    never_fires = result.asked.cron in NEVER
    return (
        never_fires and isinstance(result.error, ApiProblem) and result.error.status == HTTPStatus.UNPROCESSABLE_ENTITY
    )


def _reason_of(error: ApiProblem | Unreachable) -> str:
    return (error.detail or error.title) if isinstance(error, ApiProblem) else str(error)


def _of_row(row: Mapping[str, Any], *, sink: str) -> NewSchedule:
    if "minimum_interval" in row:
        # Its fires depend on when its runs end: a delay that is the same for each fire has no meaning.
        every = Every(interval=_go_duration(row["minimum_interval"]), from_end=True)
        return _schedule(row["name"], sink=sink, tenant=row["tenant"], every=every)
    rule = {"cron": row["cron"]} if "cron" in row else {"every": _go_duration(row["interval"])}
    return _schedule(row["name"], sink=sink, tenant=row["tenant"], spread=SPREAD, **rule)


def _schedule(name: str, *, sink: str, tenant: str, **fields: Any) -> NewSchedule:
    return NewSchedule(
        name,
        tenant=tenant,
        target=f"{sink}/{quote(tenant, safe='')}/{quote(name, safe='')}",
        payload={
            "schedule": "{{tickwheel.schedule_id}}",
            "fire": "{{tickwheel.fire_time}}",
            "index": "{{tickwheel.index}}",
        },
        retry=_RETRY,
        timeout=_TIMEOUT,
        **fields,
    )


def _go_duration(text: str) -> timedelta:
    """Whole hours, minutes and seconds: `4h30m` is ISO 8601 but for the letters in front."""
    return parse_duration(f"PT{text}")
