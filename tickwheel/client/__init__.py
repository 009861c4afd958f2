"""Tickwheel's API as typed calls: the clients, their arguments, and their results.

Each name is imported when it is first used: a command that only reads a duration need not wait for a library of HTTP.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tickwheel.client.api import Client
    from tickwheel.client.async_api import AsyncClient
    from tickwheel.client.backoff import Backoff, Wait
    from tickwheel.client.collect import Collect
    from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter, LetterFilter
    from tickwheel.client.flows import Flow
    from tickwheel.client.jobs import Http, Job, NewJob, RetryPolicy
    from tickwheel.client.operations import JobFilter, Operation
    from tickwheel.client.schedule_parts import Calendar, Every, Recurrence, Window
    from tickwheel.client.schedules import NewSchedule, Schedule
    from tickwheel.client.tenants import Tenant
    from tickwheel.client.timeouts import Timeouts

__all__ = [
    "AsyncClient",
    "Backoff",
    "Calendar",
    "Client",
    "Collect",
    "DeadLetter",
    "DeadLetterFilter",
    "Every",
    "Flow",
    "Http",
    "Job",
    "JobFilter",
    "LetterFilter",
    "NewJob",
    "NewSchedule",
    "Operation",
    "Recurrence",
    "RetryPolicy",
    "Schedule",
    "Tenant",
    "Timeouts",
    "Wait",
    "Window",
]

_PLACES = {
    "api": ("Client",),
    "async_api": ("AsyncClient",),
    "backoff": (
        "Backoff",
        "Wait",
    ),
    "collect": ("Collect",),
    "dead_letters": (
        "DeadLetter",
        "DeadLetterFilter",
        "LetterFilter",
    ),
    "flows": ("Flow",),
    "jobs": (
        "Http",
        "Job",
        "NewJob",
        "RetryPolicy",
    ),
    "operations": (
        "JobFilter",
        "Operation",
    ),
    "schedule_parts": (
        "Calendar",
        "Every",
        "Recurrence",
        "Window",
    ),
    "schedules": (
        "NewSchedule",
        "Schedule",
    ),
    "tenants": ("Tenant",),
    "timeouts": ("Timeouts",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
