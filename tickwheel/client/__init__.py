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
    from tickwheel.client.words import (
        Action,
        BreakerState,
        CallbackEvent,
        CancellationState,
        DeletionPart,
        Delivery,
        GapSource,
        HealthStatus,
        JobState,
        LedgerDeletion,
        MarkKind,
        OperationState,
        Priority,
        Reason,
        ReplayOutcome,
        Ring,
        RunOrigin,
        ScheduleChange,
        ScheduleStatus,
        SpreadSource,
        TenantStatus,
        Word,
    )

__all__ = [
    "Action",
    "AsyncClient",
    "Backoff",
    "BreakerState",
    "Calendar",
    "CallbackEvent",
    "CancellationState",
    "Client",
    "Collect",
    "DeadLetter",
    "DeadLetterFilter",
    "DeletionPart",
    "Delivery",
    "Every",
    "Flow",
    "GapSource",
    "HealthStatus",
    "Http",
    "Job",
    "JobFilter",
    "JobState",
    "LedgerDeletion",
    "LetterFilter",
    "MarkKind",
    "NewJob",
    "NewSchedule",
    "Operation",
    "OperationState",
    "Priority",
    "Reason",
    "Recurrence",
    "ReplayOutcome",
    "RetryPolicy",
    "Ring",
    "RunOrigin",
    "Schedule",
    "ScheduleChange",
    "ScheduleStatus",
    "SpreadSource",
    "Tenant",
    "TenantStatus",
    "Timeouts",
    "Wait",
    "Window",
    "Word",
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
    "words": (
        "Action",
        "BreakerState",
        "CallbackEvent",
        "CancellationState",
        "DeletionPart",
        "Delivery",
        "GapSource",
        "HealthStatus",
        "JobState",
        "LedgerDeletion",
        "MarkKind",
        "OperationState",
        "Priority",
        "Reason",
        "ReplayOutcome",
        "Ring",
        "RunOrigin",
        "ScheduleChange",
        "ScheduleStatus",
        "SpreadSource",
        "TenantStatus",
        "Word",
    ),
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
