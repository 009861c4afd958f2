"""Every event that the log knows: what its line means, and which keys it has. The one place where they are declared.

A line that says anything else fails its tests, and a key that is declared nowhere is never written: what a payload or a
header holds cannot be logged by mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Shape:
    """What an event means, the keys that it always has, and those that it may have.

    of_many: the keys with ids of jobs for whom all is well: only those of sampled jobs are written, and the line only with one of
    them. tells: the keys of which one has to say something, or the line is not written. At the level DEBUG both are written always.
    """

    meaning: str
    keys: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    of_many: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()

    def fault(self, keys: Collection[str]) -> str:
        """What is wrong with a line of these keys; empty for nothing."""
        missing = set(self.keys) - set(keys)
        unknown = set(keys) - set(self.keys) - set(self.optional)
        return " and ".join(
            f"{word} {', '.join(sorted(names))}"
            for word, names in (("lacks", missing), ("must not have", unknown))
            if names
        )


SAMPLE = 100
"""Of so many jobs one is sampled, by its id: every function writes all lines of it."""


def is_sampled(job_id: str) -> bool:
    """Whether all lines of a job are written."""
    return crc32(job_id.encode()) % SAMPLE == 0


KEYS: Mapping[str, str] = {
    "accepted": "jobs of a file that came in",
    "action": "what an operation does to each job",
    "after": "the new values, without defaults",
    "alarms_due": "how many schedule alarms came due",
    "already_replayed": "number of dead letters that had been replayed before",
    "attempt": "number of the attempt, from 1",
    "audited": "number of timers that were read again",
    "before": "the previous values, without defaults",
    "budgets": "by priority: how many jobs a tick of a shard may promote",
    "buried": "number of timers that became dead letters because no queue accepts them",
    "by": "how much later or earlier jobs run",
    "caller": "the caller: the ARN that signed the request, or the subject of its token",
    "collection": "a tenant, and what stands for all that jobs have in common which are given to their target together",
    "count": "a number, or how often something happened",
    "counts": "by counter: how often it was counted",
    "deleted": "number of deleted rows and objects, by kind",
    "depths": "by priority: how many jobs the ready queue holds",
    "destination": "a host with its port, a handler, an ARN without its version",
    "done": "how many jobs an operation has changed",
    "dry_run": "whether an operation only counts",
    "early_ms": "milliseconds until the job was due",
    "error": "the class of an error, and where in Tickwheel it was raised; never the text of a third party",
    "error_class": "the class of the failure that a breaker opened for",
    "failed": "number that could not be processed",
    "far": "ids of jobs that were put into the far ring",
    "fault": "why a store refused it",
    "fence": "the fence of the claim",
    "file": "name of a file of jobs, below the folder of its tenant",
    "filter": "the filter of an operation; of a target, only its destination",
    "healed": "number of chains that were continued",
    "job_id": "the id of a job, which contains its tenant, and for a fire its schedule and fire time",
    "job_ids": "ids of jobs",
    "flow": "the owner of a flow and its key: a tenant, or `~` for the whole stage",
    "jobs": "ids of the jobs that an operation has changed",
    "lag_ms": "milliseconds after the job was due",
    "lags": "by priority: seconds that the scanners are behind",
    "left": "shards that another process held: rewind them again",
    "dead_letter": "the id of a dead letter",
    "dead_letters": "ids of dead letters",
    "lines": "lines of the audit trail, as they would have been sent",
    "matched": "number of matches",
    "message_id": "the id of the message in SQS",
    "moved_to": "the id under which a job continues",
    "near": "ids of jobs that were sent to a ready queue",
    "note": "the note of the caller who paused it; for a schedule that paused itself, the reason",
    "of": "the job that a callback is of",
    "offset_ms": "how far the clock of the function was ahead of that of the stores",
    "operation": "the id of an operation",
    "outcome": "the final state of a job, or `retried`",
    "handlers": "a module of handlers",
    "places": "the calls that led to an error, outermost first",
    "purged": "number of purged dead letters",
    "rate": "jobs per second that an operation runs",
    "reason": "the reason, in words",
    "resource": "the physical id of a resource of a stack: tenant and schedule, or tenant and principal",
    "refused": "number of refused items, or the numbers by code",
    "replayed": "number of replayed dead letters",
    "rewound": "shards whose cursors were set back",
    "schedule": "tenant and id of a schedule, separated by #",
    "seconds": "a duration in seconds",
    "sender": "the unique id of the user or role that sent a message, as SQS says",
    "seen": "number of schedules that were read",
    "sent": "how many jobs were promoted",
    "shard": "number of a shard",
    "shed": "the priorities whose submissions are refused",
    "spread": "length of time over which jobs are spread",
    "state": "the new state",
    "stopped_by": "why a tick ended before its work was done; empty if it was done",
    "stragglers": "number of timers that had not been promoted",
    "tenant": "the tenant",
    "to": "the new time of jobs; of a rewind, the instant to which cursors were set back",
    "unplaced": "number of stragglers that could not be sent",
    "until": "when it is checked again",
    "values": "measured values, each an object that names its metric and has the dimensions beside it",
    "version": "the version of a schedule",
    "waiting": "by priority: how many jobs are due and wait for a worker",
    "waits_for": "shards that the audit waits for",
    "waits_for_queues": "whether the audit waits for the ready queues",
    "what": "the kind of change",
    "why": "why the next fire of a schedule was not found",
}
"""What each key says, in whichever event."""

_OPERATION = ("operation", "tenant", "action", "caller", "dry_run")

EVENTS: Mapping[str, Shape] = {
    # What happens to a job, from its submission to its end.
    "jobs_accepted": Shape(
        "a request has placed jobs in the wheel: one line for all of them that are sampled",
        ("near", "far"),
        of_many=("near", "far"),
    ),
    "submission_failed": Shape("a store failed while a job was accepted; its caller got an error", ("tenant", "error")),
    "fires_placed": Shape(
        "fires of schedules have been placed in the wheel as jobs: those that are sampled",
        ("job_ids",),
        of_many=("job_ids",),
    ),
    "promoted": Shape(
        "a scanner has sent jobs to their ready queues: one line per page, for those that are sampled",
        ("shard", "job_ids"),
        of_many=("job_ids",),
    ),
    "came_early": Shape("a message arrived before its time, and is delayed again", ("job_id", "early_ms")),
    "began_early": Shape("an attempt began before its time: a bug", ("job_id", "tenant", "attempt", "early_ms")),
    "began_late": Shape("an attempt began later than the stage promises", ("job_id", "tenant", "attempt", "lag_ms")),
    "parked": Shape("an attempt was parked: placed again for later, before its claim", ("job_id", "until", "reason")),
    "flow_let_out": Shape("attempts that waited for a flow had their turn", ("flow", "count")),
    "flow_not_handed_on": Shape(
        "the end of a call let out nothing that waits for its flow: the next turn does", ("flow", "error")
    ),
    "collections_not_swept": Shape(
        "a sweep did not see whether the release of a collection is overdue: a later one does", ("error",)
    ),
    "release_placed_anew": Shape(
        "the release of a collection was overdue, or lost: it was placed again", ("collection",)
    ),
    "release_not_prolonged": Shape(
        "the lease of a release was not prolonged after its call: another worker may take it over", ("job_id", "error")
    ),
    "released": Shape(
        "jobs were given to their target together; failed: how many of them it has not taken",
        ("job_id", "count", "failed"),
    ),
    "flow_rooms_not_swept": Shape("a sweep did not see whether a room's turn is overdue: a later one does", ("error",)),
    "flow_turn_sent_anew": Shape(
        "the turn of a flow was received too often, or overdue, or lost: it was sent again", ("flow",)
    ),
    "revived": Shape("an overdue attempt was placed again, because its message may be lost", ("job_id", "attempt")),
    "held": Shape("a target has answered 202: it completes the job later", ("job_id", "attempt")),
    "rescued": Shape("an attempt was taken over from a worker that has died", ("job_id", "attempt")),
    "lease_expired": Shape("an attempt was taken over because its target sent no heartbeat", ("job_id", "attempt")),
    "job_settled": Shape(
        "an attempt, or a job without one, has ended", ("job_id", "tenant", "outcome", "attempt"), ("error",)
    ),
    "settle_refused": Shape(
        "the end of an attempt was not recorded: another worker has claimed it", ("job_id", "attempt", "fence")
    ),
    "not_released": Shape("an attempt could not be released: it is free when its lease ends", ("job_id", "error")),
    "result_not_kept": Shape("a large result could not be stored: only its beginning is kept", ("job_id", "error")),
    "duplicate_dropped": Shape("a message had nothing left to do", ("job_id", "attempt", "reason")),
    "callback_put": Shape("a job has ended and one of its callbacks became a job", ("job_id", "tenant", "of")),
    "dead_lettered": Shape("a job became a dead letter", ("job_id", "tenant", "error")),
    "requeued": Shape("a message from a dead-letter queue was placed again", ("job_id", "attempt")),
    "straggler": Shape("the bucket audit sent a timer that had not been promoted", ("job_id", "attempt", "fault")),
    "job_forgotten": Shape("a job of a deleted tenant was dropped", ("job_id", "tenant")),
    "file_ended": Shape(
        "each line of a file of jobs came in or was refused, or the file is gone, or cannot be read on",
        ("tenant", "file", "state", "lines", "accepted", "refused"),
    ),
    "file_failed": Shape("a turn of a file of jobs failed, and comes again", ("message_id", "error")),
    "message_failed": Shape(
        "a message of a submission queue could not be finished, and comes again",
        ("tenant", "message_id", "sender", "error"),
    ),
    "message_refused": Shape(
        "jobs of a message of a submission queue are in the queue of the refused",
        ("tenant", "message_id", "sender", "refused"),
    ),
    "message_taken": Shape(
        "a message of a submission queue is done: each of its jobs came in, was refused, or was sent on",
        ("tenant", "message_id", "sender", "count"),
    ),
    "message_undecodable": Shape(
        "a message that Tickwheel did not write became a dead letter", ("message_id", "dead_letter")
    ),
    "not_buried": Shape(
        "a dead message could not be written as a dead letter; it will be received again", ("message_id", "error")
    ),
    "not_hidden": Shape("messages of a batch that goes on could not be hidden from other workers", ("error",)),
    "worker_clock_skewed": Shape("a worker began no attempt because its clock is wrong", ("offset_ms",)),
    "job_returned": Shape("a message was returned to its queue after an error", ("message_id", "error")),
    # What happens to the fires of schedules.
    "schedule_paused": Shape("a schedule paused itself", ("schedule", "note")),
    "schedule_healed": Shape("the sweep has continued a broken chain", ("schedule",)),
    "schedule_not_healed": Shape("the sweep could not continue a broken chain", ("schedule", "error")),
    "schedule_not_counted": Shape(
        "a store failed while the sweep corrected a schedule's share of the load: the next pass retries",
        ("schedule", "error"),
    ),
    "chain_broken": Shape("the next fire of a schedule cannot be computed", ("schedule", "error")),
    "chain_set_aside": Shape(
        "finding the next fire of a schedule takes too much work: the sweep tries again", ("schedule", "why", "count")
    ),
    "aside_not_noted": Shape(
        "a store failed while a chain was set aside: this time is not counted", ("schedule", "error")
    ),
    "alarms_left": Shape("alarms of a tenant were left to the sweep", ("tenant", "count")),
    "fire_refused": Shape("a fire can never be placed, and was skipped", ("schedule", "fault")),
    "not_recorded": Shape(
        "the state of a schedule was not written: its fires will be placed again", ("schedule", "error")
    ),
    "alarm_without_schedule": Shape("an alarm came due for a schedule that does not exist", ("schedule", "version")),
    "stale_fire_dropped": Shape("a fire of an older version of a schedule was dropped", ("job_id",)),
    "fire_skipped": Shape("a fire did not become a run", ("job_id", "reason")),
    "fire_waits": Shape("a fire waits for the previous run", ("job_id", "seconds")),
    "run_abandoned": Shape("a schedule no longer waits for a run", ("job_id",)),
    "run_not_given_up": Shape(
        "it is unknown whether a run that a schedule waits for has ended: it will be checked again",
        ("schedule", "error"),
    ),
    "run_replaced": Shape("a run was cancelled and replaced by the next one", ("job_id",)),
    # What somebody did by hand.
    "job_cancelled": Shape("a caller cancelled a job", ("job_id", "state", "caller")),
    "job_hastened": Shape("a caller ran an attempt now", ("job_id", "attempt", "caller")),
    "job_moved": Shape("a caller changed the time or the content of a job", ("job_id", "moved_to", "caller")),
    "dead_letters_replayed": Shape(
        "dead letters were replayed",
        ("caller", "tenant", "matched", "replayed", "already_replayed", "failed", "dead_letters"),
        ("filter",),
    ),
    "dead_letters_purged": Shape(
        "dead letters were purged", ("caller", "tenant", "matched", "purged", "failed", "dead_letters"), ("filter",)
    ),
    "replay_failed": Shape("a store failed while a dead letter was replayed", ("dead_letter", "error")),
    "purge_failed": Shape("a store failed while a dead letter was purged", ("dead_letter", "error")),
    "dead_letter_stays": Shape("the dead letter of a replayed job could not be deleted", ("dead_letter", "error")),
    "far_row_stays": Shape(
        "the far row of a replayed attempt could not be deleted after the attempt was placed", ("job_id", "error")
    ),
    "breaker_reset": Shape("a caller reset a breaker", ("tenant", "destination")),
    "tenant_changed": Shape("a caller changed a tenant, or the stage", ("caller", "tenant", "what", "before", "after")),
    "resource_provided": Shape("a resource of a stack is as CloudFormation asked for", ("what", "resource")),
    "resource_refused": Shape(
        "a resource of a stack is not as CloudFormation asked for; it was told why", ("what", "resource")
    ),
    "operation_accepted": Shape(
        "an operation on many jobs was accepted", (*_OPERATION, "filter"), ("by", "to", "spread", "rate")
    ),
    "operation_stop_requested": Shape("a caller stopped an operation", _OPERATION),
    # What operations and deletions do.
    "operation_acted": Shape("an operation has changed jobs", (*_OPERATION, "jobs")),
    "operation_ended": Shape("an operation has ended", (*_OPERATION, "state", "matched", "done", "refused", "error")),
    "operation_failed": Shape(
        "a turn of an operation ended in an error", ("operation", "tenant", "error"), ("action", "caller", "dry_run")
    ),
    "waking_failed": Shape(
        "the executor could not be woken for an operation: it starts within a minute", (*_OPERATION, "error")
    ),
    "tenant_deleted": Shape("all data of a tenant has been deleted", ("tenant", "deleted")),
    "deletion_failed": Shape("a turn of a deletion failed, and will be retried", ("tenant", "error")),
    # What the functions report of each tick.
    "shard_scanned": Shape(
        "a tick that did something, or was stopped, has ended",
        ("shard", "sent", "alarms_due", "buried", "stopped_by"),
        tells=("sent", "alarms_due", "buried", "stopped_by"),
    ),
    "rewound": Shape("cursors were set back after a restore", ("to", "rewound", "left")),
    "shard_taken": Shape("another scanner has the lease of the shard", ("shard",)),
    "alarms_failed": Shape("a store failed while schedule alarms were handled: they will be retried", ("error",)),
    "swept": Shape(
        "a bucket audit that read timers, or waits, has ended",
        ("audited", "stragglers", "unplaced", "waits_for", "waits_for_queues"),
        tells=("audited", "stragglers", "unplaced", "waits_for", "waits_for_queues"),
    ),
    "schedules_swept": Shape(
        "a sweep over schedules that changed something has ended",
        ("seen", "healed", "refused"),
        tells=("healed", "refused"),
    ),
    "conditions_published": Shape(
        "the sweeper has published the conditions of the stage, and something waits",
        ("depths", "waiting", "budgets", "lags", "shed"),
        tells=("depths", "waiting", "lags", "shed"),
    ),
    "request_failed": Shape(
        "a request failed because of a fault, and was answered with 500 or 503", ("error", "places")
    ),
    "observed": Shape(
        "what an invocation has counted and measured, where a stage is watched for the essential",
        optional=("counts", "values"),
    ),
    "flush_failed": Shape("audit lines or counts of an invocation could not be written in time", ("error",)),
    "handlers_not_loaded": Shape(
        "a module of a user's handlers could not be imported: its jobs fail and are retried",
        ("handlers", "error", "places"),
    ),
    "invocation_failed": Shape("an invocation ended in an error", ("error", "places")),
    # What was not to be had, and what was done without it.
    "conditions_not_read": Shape("the conditions of the stage are unknown: nothing is held back", ("error",)),
    "plans_not_read": Shape("the plans of tenants could not be read: the last known ones apply", ("error",)),
    "rate_unknown": Shape(
        "the rate of a tenant could not be checked: its submissions are accepted", ("tenant", "error")
    ),
    "rate_contended": Shape("too many processes reserved from a rate at once", ("tenant",)),
    "quota_unknown": Shape(
        "the number of a tenant's waiting jobs could not be read: its submissions are accepted", ("tenant", "error")
    ),
    "pending_not_counted": Shape("accepted jobs were not counted against their quota", ("tenant", "error")),
    "pulse_not_written": Shape("counts of the pulse were not written: the next write includes them", ("error",)),
    "audit_lines_lost": Shape(
        "the audit stream did not accept these lines: load them from the log", ("reason", "lines")
    ),
    "usage_not_written": Shape("the usage of a tenant was not written", ("tenant", "error")),
    "permit_not_given_back": Shape("a permit was not returned: it is free when its lease ends", ("tenant", "error")),
    "breaker_opened": Shape(
        "a destination fails: its jobs are parked", ("tenant", "destination", "until", "error_class")
    ),
    "breaker_probed": Shape("one job probes a destination", ("tenant", "destination", "until", "error_class")),
    "breaker_reopened": Shape("the probe has failed", ("tenant", "destination", "until", "error_class")),
    "breaker_released": Shape("the probe was inconclusive", ("tenant", "destination", "until", "error_class")),
    "breaker_closed": Shape(
        "the probe has succeeded: jobs run again", ("tenant", "destination", "until", "error_class")
    ),
    "breaker_unknown": Shape(
        "the state of a breaker is unknown: its destination is called", ("tenant", "destination", "error")
    ),
}
"""The keys of each event, by its name."""
