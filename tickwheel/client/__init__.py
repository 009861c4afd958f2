"""Tickwheel's API as typed calls: the client, its arguments, and its results."""

from tickwheel.client.api import Client
from tickwheel.client.backoff import Backoff, Wait
from tickwheel.client.collect import Collect
from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter, LetterFilter
from tickwheel.client.flows import Flow
from tickwheel.client.jobs import Http, Job, NewJob, RetryPolicy
from tickwheel.client.operations import JobFilter, Operation
from tickwheel.client.schedule_parts import Calendar, Every, Recurrence, Window
from tickwheel.client.schedules import NewSchedule, Schedule
from tickwheel.client.tenants import Tenant

__all__ = [
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
    "Wait",
    "Window",
]
