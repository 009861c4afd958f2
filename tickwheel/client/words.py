"""The words that the scheduler answers with, as enums whose members are texts: `job.state == "running"` is true as well.

A newer scheduler may have more of them. Such a word is read as it is: a value of its enum that is none of its members, equal to
its text, and not `is_known`.
"""

from enum import StrEnum
from typing import Any, Self


class Word(StrEnum):
    """Base of these enums."""

    @property
    def is_known(self) -> bool:
        """Whether this release has the word."""
        return self.name in type(self).__members__

    @classmethod
    def _missing_(cls, value: Any) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_, word._value_ = value.upper(), value
        return word


class JobState(Word):
    """Where a job stands. `untracked`: nothing is known of it, or no longer; `absent`: it has no row."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTEMPTED = "attempted"
    SKIPPED = "skipped"
    MOVED = "moved"
    UNTRACKED = "untracked"
    ABSENT = "absent"


class CancellationState(Word):
    """What a cancellation has led to."""

    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"


class Reason(Word):
    """Why a job has not run yet, or how it ended."""

    WAITING = "waiting"
    IN_READY_QUEUE = "in_ready_queue"
    SPREAD_OR_JITTERED = "spread_or_jittered"
    LEASED = "leased"
    HELD = "held"
    RETRYING = "retrying"
    PARKED = "parked"
    WAITING_FOR_FLOW = "waiting_for_flow"
    COLLECTED = "collected"
    TENANT_PAUSED = "tenant_paused"
    AT_CONCURRENCY_CAP = "at_concurrency_cap"
    OVER_CAP = "over_cap"
    BUFFERED = "buffered"
    PAUSED = "paused"
    CANCEL_REQUESTED = "cancel_requested"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ATTEMPTED = "attempted"
    SKIPPED = "skipped"
    MOVED = "moved"
    UNTRACKED = "untracked"


class Priority(Word):
    """The priority of a job."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Delivery(Word):
    """What is promised of the calls of a job."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Ring(Word):
    """Where an accepted job waits: in a ready queue, or in the far ring."""

    NEAR = "near"
    FAR = "far"


class CallbackEvent(Word):
    """The end of a job that a callback is for."""

    ON_SUCCESS = "on_success"
    ON_FAILURE = "on_failure"
    ON_END = "on_end"


class ScheduleStatus(Word):
    """Whether a schedule fires."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class ScheduleChange(Word):
    """What putting a schedule does, or would do."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


class RunOrigin(Word):
    """What a run of a schedule came of."""

    SCHEDULED = "scheduled"
    TRIGGERED = "triggered"
    BACKFILLED = "backfilled"


class MarkKind(Word):
    """What makes a fire differ from its rule."""

    GAP = "gap"
    FOLD = "fold"
    WINDOW = "window"
    CALENDAR = "calendar"
    SPREAD = "spread"
    JITTER = "jitter"


class SpreadSource(Word):
    """Whose default spread a schedule took."""

    TENANT = "tenant"
    PLAN = "plan"
    STAGE = "stage"


class GapSource(Word):
    """What expected gaps were computed of."""

    RULE = "rule"
    DISTRIBUTION = "distribution"
    SAMPLE = "sample"


class Action(Word):
    """What an operation does to each of its jobs."""

    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    RUN_NOW = "run_now"
    EXPORT = "export"


class OperationState(Word):
    """How far an operation is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class ReplayOutcome(Word):
    """What a replay has led to."""

    REPLAYED = "replayed"
    ALREADY_REPLAYED = "already_replayed"


class TenantStatus(Word):
    """The status of a tenant, or of the stage."""

    ACTIVE = "active"
    PAUSED = "paused"
    DRAINING = "draining"
    DELETING = "deleting"
    DELETED = "deleted"


class DeletionPart(Word):
    """What is deleted of a tenant, in this order."""

    OPERATIONS = "operations"
    TIMERS = "timers"
    SCHEDULES = "schedules"
    STATES = "states"
    OBJECTS = "objects"
    LETTERS = "letters"
    BREAKERS = "breakers"
    FLOWS = "flows"
    ROWS = "rows"
    LEDGER = "ledger"


class LedgerDeletion(Word):
    """How a deleted tenant's rows of the ledger go: looked for, or left to expire."""

    SCAN = "scan"
    TTL = "ttl"


class HealthStatus(Word):
    """The health of a stage."""

    OK = "ok"
    BEHIND = "behind"
    PAUSED = "paused"
    UNKNOWN = "unknown"


class BreakerState(Word):
    """The state of a breaker that is not closed."""

    OPEN = "open"
    HALF_OPEN = "half_open"
