"""Every event that the log knows: what its line means, and which keys it has. The one place where they are declared.

A line that says anything else fails its tests, and a key that is declared nowhere is never written: what a payload or a
header holds cannot be logged by mistake.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """What an event means, the keys that it always has, and those that it may have."""

    meaning: str
    keys: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def fault(self, keys: Collection[str]) -> str:
        """What is wrong with a line of these keys; empty for nothing."""
        missing = set(self.keys) - set(keys)
        unknown = set(keys) - set(self.keys) - set(self.optional)
        return " and ".join(
            f"{word} {', '.join(sorted(names))}"
            for word, names in (("lacks", missing), ("must not have", unknown))
            if names
        )


KEYS: Mapping[str, str] = {
    "action": "what an operation does to each job",
    "after": "what it is now, without what has its usual value",
    "alarms_due": "how many schedule alarms came due",
    "already_replayed": "how many had been let go on before",
    "attempt": "from 1",
    "audited": "how many timers were read again",
    "before": "what it was, without what had its usual value",
    "budgets": "by priority: how many jobs a tick of a shard may promote",
    "buried": "how many timers could not be sent at all",
    "by": "by how much jobs are moved",
    "caller": "who asked: the ARN of who signed the request, or the subject of its token",
    "count": "how many, or how often",
    "deleted": "how much was deleted, by what it was",
    "depths": "by priority: how many jobs the ready queue holds",
    "destination": "a host with its port, a handler, an ARN without its version",
    "done": "how many jobs an operation has changed",
    "dry_run": "whether an operation only counts",
    "early_ms": "milliseconds until the job was due",
    "error": "the class of an error, and where in Tickwheel it was; no text that somebody else wrote",
    "error_class": "the class of the failure that a breaker opened for",
    "failed": "how many could not be worked on",
    "far": "ids of jobs that were put into the far ring",
    "fault": "why a store refused it",
    "fence": "of the claim",
    "filter": "which jobs an operation is about; of their target its destination alone",
    "healed": "how many schedules were carried on",
    "job_id": "the id of a job, which holds its tenant, and of a fire its schedule and fire time",
    "job_ids": "ids of jobs",
    "jobs": "ids of the jobs that an operation has changed",
    "lag_ms": "milliseconds after the job was due",
    "lags": "by priority: seconds that the scanners are behind",
    "left": "shards that somebody else had: they are to be rewound again",
    "letter": "the id of a dead letter",
    "letters": "ids of dead letters",
    "lines": "lines of the audit trail, as they would have been sent",
    "matched": "how many there were",
    "message_id": "of the message, by SQS",
    "moved_to": "the id under which a job goes on",
    "near": "ids of jobs that were sent to a ready queue",
    "note": "what the one who paused it says; of a schedule that paused itself, why",
    "operation": "the id of an operation",
    "outcome": "the state that a job has come to, or `retried`",
    "places": "the calls that led to an error, outermost first",
    "purged": "how many were forgotten",
    "rate": "jobs a second that an operation lets run",
    "reason": "why, in words",
    "refused": "what was not done: how many, or by the code of its reason",
    "replayed": "how many were let go on",
    "rewound": "shards whose cursors were set back",
    "schedule": "tenant and id of a schedule, with a # between",
    "seconds": "for how long",
    "seen": "how many schedules were looked at",
    "sent": "how many jobs were promoted",
    "shard": "a slice of the far ring",
    "shed": "the priorities of which no more is taken in",
    "spread": "over how much time jobs are spread",
    "state": "what it is now",
    "stopped_by": "why a tick ended before its work; empty when it did not",
    "stragglers": "how many timers nobody had promoted",
    "tenant": "whose it is",
    "to": "when jobs are to run instead; of a rewind, to when",
    "unplaced": "how many of them could not be sent either",
    "until": "when it is looked at again",
    "version": "of a schedule",
    "waiting": "by priority: how many jobs are due and wait for a worker",
    "waits_for": "shards that the audit waits for",
    "waits_for_queues": "whether the audit waits for the ready queues",
    "what": "what was changed",
    "why": "what keeps the next fire of a schedule from being found",
}
"""What each key says, in whichever event."""

_OPERATION = ("operation", "tenant", "action", "caller", "dry_run")

EVENTS: Mapping[str, Shape] = {
    # What happens to a job, from its submission to its end.
    "jobs_accepted": Shape("a request has put jobs into the wheel: one line, however many", ("near", "far")),
    "submission_failed": Shape("a store failed while a job was accepted; its caller got an error", ("tenant", "error")),
    "fires_placed": Shape("fires of schedules have become jobs in the wheel", ("job_ids",)),
    "promoted": Shape("a scanner has sent jobs to their ready queues: one line a page", ("shard", "job_ids")),
    "came_early": Shape("a message came before its time, and waits on", ("job_id", "early_ms")),
    "began_early": Shape("an attempt began before its time: a bug", ("job_id", "tenant", "attempt", "early_ms")),
    "began_late": Shape("an attempt began later than the stage promises", ("job_id", "tenant", "attempt", "lag_ms")),
    "parked": Shape("an attempt waits on, before its claim", ("job_id", "until", "reason")),
    "revived": Shape("an attempt that was over its time is placed again: its message was lost", ("job_id", "attempt")),
    "held": Shape("a target has answered 202: it completes the job later", ("job_id", "attempt")),
    "rescued": Shape("an attempt was taken over from a worker that has died", ("job_id", "attempt")),
    "lease_expired": Shape("an attempt was taken over from a target that has fallen silent", ("job_id", "attempt")),
    "job_settled": Shape(
        "an attempt, or a job without one, has come to its end", ("job_id", "tenant", "outcome", "attempt"), ("error",)
    ),
    "settle_refused": Shape("an end did not count: somebody else has the attempt", ("job_id", "attempt", "fence")),
    "not_released": Shape("an attempt could not be given back: its lease runs out", ("job_id", "error")),
    "duplicate_dropped": Shape("a message had nothing left to do", ("job_id", "attempt", "reason")),
    "dead_lettered": Shape("a job is kept as a dead letter", ("job_id", "tenant", "error")),
    "requeued": Shape("a message of a dead-letter queue was placed again", ("job_id", "attempt")),
    "straggler": Shape("a timer that nobody had promoted was sent by the audit", ("job_id", "attempt", "fault")),
    "job_forgotten": Shape("a job of a deleted tenant was dropped", ("job_id", "tenant")),
    "message_undecodable": Shape(
        "a message that Tickwheel has not written became a dead letter", ("message_id", "letter")
    ),
    "not_buried": Shape("a message could not be kept as a dead letter, and comes back", ("message_id", "error")),
    "job_returned": Shape("an error sent a message back to its queue", ("message_id", "error")),
    # What happens to the fires of schedules.
    "schedule_paused": Shape("a schedule paused itself", ("schedule", "note")),
    "schedule_healed": Shape("the sweep has carried a chain on", ("schedule",)),
    "schedule_not_healed": Shape("the sweep could not carry a chain on", ("schedule", "error")),
    "schedule_not_counted": Shape(
        "a store failed while the sweep put right what a schedule counts for: the next pass does", ("schedule", "error")
    ),
    "chain_broken": Shape("the next fire of a schedule cannot be worked out", ("schedule", "error")),
    "chain_set_aside": Shape(
        "the next fire of a schedule takes too much to find: the sweep tries it again", ("schedule", "why", "count")
    ),
    "aside_not_noted": Shape("a store failed while a chain was set aside: it was not counted", ("schedule", "error")),
    "alarms_left": Shape("alarms of a tenant were left to the sweep", ("tenant", "count")),
    "fire_refused": Shape("a fire can never be placed, and is skipped", ("schedule", "fault")),
    "not_recorded": Shape(
        "the state of a schedule was not written: what was placed is placed again", ("schedule", "error")
    ),
    "alarm_without_schedule": Shape("an alarm came due for a schedule that is not there", ("schedule", "version")),
    "stale_fire_dropped": Shape("a fire of an older version did not run", ("job_id",)),
    "fire_skipped": Shape("a fire did not become a run", ("job_id", "reason")),
    "fire_waits": Shape("a fire waits for the run before it", ("job_id", "seconds")),
    "run_abandoned": Shape("a schedule waits no longer for a run", ("job_id",)),
    "run_not_given_up": Shape(
        "whether a run that a schedule waits for has ended was not found out: it is asked again", ("schedule", "error")
    ),
    "run_replaced": Shape("a run was stopped for the next one", ("job_id",)),
    # What somebody did by hand.
    "job_cancelled": Shape("somebody stopped a job", ("job_id", "state", "caller")),
    "job_hastened": Shape("somebody let an attempt run now", ("job_id", "attempt", "caller")),
    "job_moved": Shape("somebody gave a job another time or content", ("job_id", "moved_to", "caller")),
    "dead_letters_replayed": Shape(
        "dead letters were let go on",
        ("caller", "tenant", "matched", "replayed", "already_replayed", "failed", "letters"),
        ("filter",),
    ),
    "dead_letters_purged": Shape(
        "dead letters were forgotten", ("caller", "tenant", "matched", "purged", "failed", "letters"), ("filter",)
    ),
    "replay_failed": Shape("a store failed while a dead letter was let go on", ("letter", "error")),
    "purge_failed": Shape("a store failed while a dead letter was forgotten", ("letter", "error")),
    "letter_stays": Shape("a dead letter that goes on could not be deleted", ("letter", "error")),
    "far_row_stays": Shape("the far row of a replay that was placed could not be deleted", ("job_id", "error")),
    "breaker_reset": Shape("somebody closed a breaker", ("tenant", "destination")),
    "tenant_changed": Shape(
        "somebody changed a tenant, or the whole stage", ("caller", "tenant", "what", "before", "after")
    ),
    "operation_accepted": Shape(
        "an operation on many jobs was accepted", (*_OPERATION, "filter"), ("by", "to", "spread", "rate")
    ),
    "operation_stop_requested": Shape("somebody stopped an operation", _OPERATION),
    # What operations and deletions do.
    "operation_acted": Shape("an operation has changed jobs", (*_OPERATION, "jobs")),
    "operation_ended": Shape("an operation is over", (*_OPERATION, "state", "matched", "done", "refused", "error")),
    "operation_failed": Shape(
        "a turn of an operation ended in an error", ("operation", "tenant", "error"), ("action", "caller", "dry_run")
    ),
    "waking_failed": Shape("nobody was woken for an operation: the next minute finds it", (*_OPERATION, "error")),
    "tenant_deleted": Shape("all that there was of a tenant is gone", ("tenant", "deleted")),
    "deletion_failed": Shape("a deletion could not go on, and is tried again", ("tenant", "error")),
    # What the functions report of each tick.
    "shard_scanned": Shape("the end of a tick", ("shard", "sent", "alarms_due", "buried", "stopped_by")),
    "rewound": Shape("cursors were set back after a restore", ("to", "rewound", "left")),
    "shard_taken": Shape("another scanner has the shard", ("shard",)),
    "alarms_failed": Shape("a store failed while alarms were handled: they are tried again", ("error",)),
    "swept": Shape("the end of an audit", ("audited", "stragglers", "unplaced", "waits_for", "waits_for_queues")),
    "schedules_swept": Shape("the end of a sweep over schedules", ("seen", "healed", "refused")),
    "conditions_published": Shape("how the stage stands", ("depths", "waiting", "budgets", "lags", "shed")),
    "request_failed": Shape("a request failed by a fault, and was answered 500 or 503", ("error", "places")),
    "flush_failed": Shape("audit lines or counts of an invocation could not be written in time", ("error",)),
    "invocation_failed": Shape("an invocation ended in an error", ("error", "places")),
    # What was not to be had, and what was done without it.
    "conditions_not_read": Shape("how the stage stands is not known: nothing is held back", ("error",)),
    "plans_not_read": Shape("plans of tenants are not known: the last ones count", ("error",)),
    "rate_unknown": Shape("whether a tenant keeps to its rate is not known: it is let in", ("tenant", "error")),
    "rate_contended": Shape("a rate was reserved by too many at once", ("tenant",)),
    "quota_unknown": Shape("how many jobs of a tenant wait is not known: they are let in", ("tenant", "error")),
    "pending_not_counted": Shape("jobs that were taken in were not counted against their quota", ("tenant", "error")),
    "pulse_not_written": Shape("what goes on was not counted, and is with the next write", ("error",)),
    "audit_lines_lost": Shape("the audit stream did not take these lines: load them from here", ("reason", "lines")),
    "usage_not_written": Shape("what a tenant used was not counted", ("tenant", "error")),
    "seat_not_given_back": Shape("a permit was not given back: its lease runs out", ("tenant", "error")),
    "breaker_opened": Shape(
        "a destination fails, and is left alone", ("tenant", "destination", "until", "error_class")
    ),
    "breaker_probed": Shape("one job finds out about a destination", ("tenant", "destination", "until", "error_class")),
    "breaker_reopened": Shape("the probe has failed", ("tenant", "destination", "until", "error_class")),
    "breaker_released": Shape("the probe was inconclusive", ("tenant", "destination", "until", "error_class")),
    "breaker_closed": Shape("a probe has found that it works", ("tenant", "destination", "until", "error_class")),
    "breaker_unknown": Shape(
        "whether a destination fails is not known: it is called", ("tenant", "destination", "error")
    ),
}
"""The keys of each event, by its name."""
