"""Everything that Tickwheel raises on purpose.

TickwheelError
├── InvalidWheel            the constants of a stage break a rule that keeps jobs from being lost
├── WheelChanged            the constants differ from those recorded at the first deploy
├── InvalidPattern          a pattern of the allowed targets is none, or allows nothing
├── InvalidInput            a value from outside is refused
│   ├── InvalidJob          a job breaks a rule
│   ├── InvalidSchedule     a schedule breaks a rule, or never fires
│   │   └── TooCostly       its fires take more work to find than one caller may cause
│   ├── InvalidJobId        a text is not a job id
│   └── InvalidLetterId     a text is not the id of a dead letter
├── Undecodable             a stored or queued body was not written by Tickwheel
│   └── NewerVersion        it was, but by a newer one
├── KeyReused               an idempotency key belongs to another job or operation
├── JobNotFound             nobody was given that id, or no trace of its job is left
├── ScheduleNotFound        a tenant has no such schedule
├── LetterNotFound          there is no such dead letter (any more)
├── OperationNotFound       a tenant has no such operation (any more)
├── TooManyOperations       a tenant has as many open operations as it may have
├── NotReplayable           a dead letter holds nothing that could be run again
├── PayloadGone             the payload of a dead letter's job is no more
├── JobNotFailed            the job of a dead letter is under way by another submission
├── Busy                    rows kept changing while they were being changed
│   ├── JobBusy             those of a job
│   └── ScheduleBusy        those of a schedule, or of its tenant's schedules together
├── ScheduleBehind          a schedule still catches up on what it missed
├── AlreadySettled          the job came to its end before it could be cancelled or changed
├── Moved                   the job goes on under another id
├── Forbidden               a caller may not act for a tenant, or is no operator
├── TenantBusy              a tenant kept changing while it was being changed
├── TenantChanged           a tenant is not as somebody has seen it who changes it
├── TenantDeleted           a tenant is being deleted, or has been
├── TenantClosed            a tenant takes nothing in any more
├── RateExceeded            a tenant hands in faster than it may
├── ReadRateExceeded        a caller reads faster than it may
├── Shed                    the stage is behind, and takes nothing of a class in
├── QuotaExceeded           as many jobs of a tenant wait as may
├── SchedulesExceeded       a tenant has as many schedules as it may
├── FiresExceeded           the schedules of a tenant fire as often as they may
├── BacklogExceeded         more jobs of a tenant wait than its cap serves in days
├── PriorityNotAllowed      a job has a higher class than its tenant may use
├── StaleFence              the attempt that somebody speaks for is not the one that is running
├── NotHeld                 nothing is known of an attempt that goes on by itself
├── NotChangeable           a job of this kind cannot be changed, or run before its time
├── TooLate                 the job may be on its way, so a cancel or a change cannot be promised
├── ClockSkewed             this machine's clock is too far from the store's for a safe far write
├── MalformedWebhookSecret  the secret of the master keys is not what the stage made it
└── NotPlaced               the stores refused a timer on every attempt

Errors carry data; the API's table maps each type to a status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any


class TickwheelError(Exception):
    """Base of every error that Tickwheel raises on purpose."""


class InvalidWheel(TickwheelError, ValueError):
    """The constants of a stage break a rule that keeps jobs from being lost."""


class WheelChanged(TickwheelError):
    """The constants of the stage differ from those recorded at its first deploy."""


class InvalidPattern(TickwheelError, ValueError):
    """A pattern of the allowed targets is none, or allows nothing."""

    def __init__(self, pattern: str, remedy: str) -> None:
        super().__init__(f"targets has {pattern!r}: {remedy}")
        self.pattern = pattern


class InvalidInput(TickwheelError, ValueError):
    """A value from outside is refused."""


class InvalidJob(InvalidInput):
    """A job breaks a rule; `field` names the part, `value` is what was given."""

    def __init__(self, message: str, *, field: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class InvalidSchedule(InvalidInput):
    """A schedule breaks a rule, or never fires; `field` names the part, `value` is what was given.

    instead: parts of a definition, one of which to write in its place; the message says what each of them means.
    """

    def __init__(
        self, message: str, *, field: str = "", value: Any = None, instead: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.instead = tuple(instead)


class TooCostly(InvalidSchedule):
    """The fires of a schedule take more work to find than its budget holds.

    In a request its definition is refused. Elsewhere it says nothing of whether the schedule fires: its chain stays
    where it is.
    """

    def __init__(self, *, field: str = "rule", value: Any = None) -> None:
        super().__init__(
            "takes too many steps to find what it fires next: name more days or times, use wider windows, or split it "
            "into schedules that are simpler",
            field=field,
            value=value,
        )


class InvalidJobId(InvalidInput):
    """A text is not a job id."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:200]!r} is not a job id: an id is the text that a submission answered with")
        self.text = text


class InvalidLetterId(InvalidInput):
    """A text is not the id of a dead letter."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:200]!r} is not the id of a dead letter: an id is the text that a list of them tells")
        self.text = text


class Undecodable(TickwheelError):
    """A stored or queued body was not written by Tickwheel, or by a newer one. Its text repeats nothing of the body."""


class NewerVersion(Undecodable):
    """A body was written by a newer Tickwheel: where two versions run side by side, another function can read it."""


class KeyReused(TickwheelError):
    """An idempotency key belongs to another job, or operation, than the one that was asked for with it.

    kind: which of them. difference: what tells them apart.
    """

    def __init__(self, first_id: str, *, kind: str = "job", difference: str = "differs in more than its time") -> None:
        super().__init__(
            f"the idempotency key belongs to {kind} {first_id}, which {difference}: use another key, or submit the same "
            f"{kind}"
        )
        self.first_id = first_id


class JobNotFound(TickwheelError):
    """Nobody was given that id, or no trace is left of its job: every row of it would have expired, or was removed."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id}")
        self.job_id = job_id


class ScheduleNotFound(TickwheelError):
    """A tenant has no such schedule."""

    def __init__(self, tenant: str, schedule_id: str) -> None:
        super().__init__(f"tenant {tenant} has no schedule {schedule_id}")
        self.tenant = tenant
        self.schedule_id = schedule_id


class LetterNotFound(TickwheelError):
    """There is no such dead letter: it was replayed or purged, or has expired."""

    def __init__(self, letter_id: str) -> None:
        super().__init__(f"there is no dead letter {letter_id}: it has been replayed or purged, or has expired")
        self.letter_id = letter_id


class OperationNotFound(TickwheelError):
    """A tenant has no such operation, or it ended long ago."""

    def __init__(self, tenant: str, operation_id: str) -> None:
        super().__init__(f"tenant {tenant} has no operation {operation_id[:80]}: look at the list of its operations")
        self.tenant = tenant
        self.operation_id = operation_id


class TooManyOperations(TickwheelError):
    """A tenant has as many open operations as it may have. retry_after: when one of them may have ended."""

    def __init__(self, tenant: str, *, limit: int, retry_after: timedelta) -> None:
        super().__init__(
            f"tenant {tenant} has {limit} operations that are not over, which is the most there may be: wait for the end "
            "of one, or stop one"
        )
        self.tenant = tenant
        self.retry_after = retry_after


class RateExceeded(TickwheelError):
    """A tenant hands jobs in faster than it may. retry_after: when there is room for one more."""

    def __init__(self, tenant: str, *, rate: float, burst: int, retry_after: timedelta) -> None:
        super().__init__(
            f"tenant {tenant} may submit {rate:g} jobs a second, and {burst} at once after a while of none: send fewer, or "
            f"later; an operator may raise its submission_rate"
        )
        self.tenant = tenant
        self.retry_after = retry_after


class ReadRateExceeded(TickwheelError):
    """A caller reads faster than it may. tenant: empty for what is of none. retry_after: when there is room for this one."""

    def __init__(self, caller: str, tenant: str, *, rate: float, retry_after: timedelta) -> None:
        of_whom, whose = (f" of tenant {tenant}", "the tenant's") if tenant else ("", "the default plan's")
        super().__init__(
            f"{caller} may ask for {rate:g} reads{of_whom} a second, of which lists, previews and the like take several: ask "
            f"later, for fewer at once, or less often; an operator may raise {whose} read_rate"
        )
        self.caller = caller
        self.tenant = tenant
        self.retry_after = retry_after


class Shed(TickwheelError):
    """The stage is behind, and takes nothing of a class in. retry_after: when that is looked at again."""

    def __init__(self, priority: str, *, lag: timedelta, retry_after: timedelta) -> None:
        super().__init__(
            f"the stage is {lag.total_seconds():g} s behind and takes no {priority} jobs in until it has caught up: submit "
            "again later, or with a higher priority if it matters more"
        )
        self.priority = priority
        self.retry_after = retry_after


class NotReplayable(TickwheelError):
    """A dead letter holds nothing that could be run again."""

    def __init__(self, letter_id: str, reason: str) -> None:
        super().__init__(f"dead letter {letter_id} cannot be replayed: {reason}")
        self.letter_id = letter_id
        self.reason = reason


class PayloadGone(TickwheelError):
    """The payload of a dead letter's job is no more."""

    def __init__(self, letter_id: str) -> None:
        super().__init__(
            f"the payload of dead letter {letter_id} is gone, so its job cannot run: submit it anew, and purge the letter"
        )
        self.letter_id = letter_id


class JobNotFailed(TickwheelError):
    """What the ledger has under the name of a dead letter's job is another run, and this letter has not been replayed."""

    def __init__(self, letter_id: str, *, state: str) -> None:
        super().__init__(
            f"under the name of dead letter {letter_id} there is a job that is {state}: it was submitted again since. Wait for "
            "its end, or cancel it, and then until its ledger row expires, after 22 days; or submit the job under another "
            "idempotency key and purge the letter"
        )
        self.letter_id = letter_id
        self.state = state


class Busy(TickwheelError):
    """Rows kept changing while they were being changed, and this was not written. retry_after: when to ask again."""

    retry_after = timedelta(seconds=1)

    def __init__(self, told: str = "others keep changing what this would change: ask for it again") -> None:
        super().__init__(told)


class JobBusy(Busy):
    """A job kept changing while it was being changed. job_id: its id, or the key of its rows."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} is being changed by others: ask for it again")
        self.job_id = job_id


class ScheduleBusy(Busy):
    """A schedule kept changing while it was being changed, or so many of its tenant did that no turn came."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"schedule {schedule_id}, or many others of its tenant, are being changed by somebody else: change it again"
        )
        self.schedule_id = schedule_id


class ScheduleBehind(TickwheelError):
    """A schedule still catches up on what it missed: its old definition decides that first."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"schedule {schedule_id} still catches up on fires that it missed, under its old definition: change it in a "
            "few minutes, or pause it first"
        )
        self.schedule_id = schedule_id


class AlreadySettled(TickwheelError):
    """The job came to its end before it could be cancelled or changed."""

    def __init__(self, job_id: str, *, state: str) -> None:
        super().__init__(f"job {job_id} is already {state}")
        self.job_id = job_id
        self.state = state


class Moved(TickwheelError):
    """The job goes on under another id."""

    def __init__(self, job_id: str, *, moved_to: str) -> None:
        super().__init__(f"job {job_id} was rescheduled or edited and is now job {moved_to}: ask for that")
        self.job_id = job_id
        self.moved_to = moved_to


class Forbidden(TickwheelError):
    """A caller may not act for a tenant; without a tenant: is no operator. caller: how patterns would name it."""

    def __init__(self, caller: str, *, tenant: str = "", remedy: str) -> None:
        asked = f"may not act for tenant {tenant}" if tenant else "is no operator of this stage"
        super().__init__(f"{caller} {asked}: {remedy}")
        self.caller = caller
        self.tenant = tenant


class TenantBusy(TickwheelError):
    """A tenant kept changing while it was being changed: nothing was written."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"{tenant} is being changed by somebody else: look at it, and change it again")
        self.tenant = tenant


class TenantChanged(TickwheelError):
    """A tenant is not as somebody has seen it who changes it: nothing was written. version: the one it has."""

    def __init__(self, tenant: str, *, seen: int, version: int) -> None:
        super().__init__(f"{tenant} has version {version}, not {seen}: look at it, and change it again")
        self.tenant = tenant
        self.version = version


class TenantDeleted(TickwheelError):
    """A tenant is being deleted, or has been (is_over). until: before that it cannot be there again."""

    def __init__(self, tenant: str, *, is_over: bool, until: datetime | None = None) -> None:
        told = f"tenant {tenant} has been deleted: put it (PUT /v1/tenants/{tenant}) to have it again"
        if not is_over:
            told = f"tenant {tenant} is being deleted: wait for the end of that"
        elif until is not None:
            told = f"tenant {tenant} has been deleted: put it after {until:%Y-%m-%d %H:%M} UTC, when its last messages are gone"
        super().__init__(told)
        self.tenant = tenant


class QuotaExceeded(TickwheelError):
    """As many jobs of a tenant wait as may, about; the same request may be taken after a while."""

    def __init__(self, tenant: str, *, count: int, limit: int) -> None:
        super().__init__(
            f"about {count} jobs of tenant {tenant} wait, and {limit} may: wait until some have run, cancel some, or ask "
            "an operator for a higher max_pending"
        )
        self.tenant = tenant
        self.count = count
        self.limit = limit
        self.retry_after = timedelta(minutes=1)


class BacklogExceeded(TickwheelError):
    """More jobs of a tenant wait than its execution_rate serves in days; the same request may be taken after a while.

    rate: jobs a second. limit: how many it serves in the time that is the most.
    """

    def __init__(self, tenant: str, *, count: int, limit: int, rate: float, most: timedelta) -> None:
        days = timedelta(days=1)
        super().__init__(
            f"about {count} jobs of tenant {tenant} wait by then, which take {count / rate / days.total_seconds():.1f} days at the "
            f"{rate:g} a second of its execution_rate, and no more than {most / days:g} days of it are taken in: hand in fewer, cancel "
            "some, or ask an operator for a higher execution_rate"
        )
        self.tenant = tenant
        self.count = count
        self.limit = limit
        self.retry_after = timedelta(minutes=1)


class SchedulesExceeded(TickwheelError):
    """A tenant has as many schedules as it may, and would have another."""

    def __init__(self, tenant: str, *, count: int, limit: int) -> None:
        super().__init__(
            f"tenant {tenant} has {count} schedules, and {limit} may be there: delete some, or ask an operator for a higher "
            "max_schedules"
        )
        self.tenant = tenant
        self.count = count
        self.limit = limit


class FiresExceeded(TickwheelError):
    """The schedules of a tenant would fire more often than they may. per_minute: what they come to without this change.

    added: fires a minute that it would add.
    """

    def __init__(self, tenant: str, *, per_minute: float, added: float, limit: int) -> None:
        super().__init__(
            f"the schedules of tenant {tenant} come to {per_minute:.4g} fires a minute, this would add {added:.4g}, and {limit} may "
            "be: let some fire less often, pause or delete some, or ask an operator for a higher max_fires_per_minute"
        )
        self.tenant = tenant
        self.per_minute = per_minute
        self.added = added
        self.limit = limit


class TenantClosed(TickwheelError):
    """A tenant takes nothing in any more: no job, no schedule, no pause. status: why."""

    def __init__(self, tenant: str, status: str) -> None:
        remedy = "what it has goes on; an operator opens it by `tickwheel tenant resume`"
        super().__init__(f"tenant {tenant} is {status}: {remedy if status == 'draining' else 'it is gone'}")
        self.tenant = tenant
        self.status = status


class PriorityNotAllowed(TickwheelError):
    """A job has a higher class than its tenant may use. top: the highest that it may."""

    def __init__(self, tenant: str, *, priority: str, top: str) -> None:
        super().__init__(
            f"priority is {priority}, but {top} is the highest that tenant {tenant} may use: lower it, or ask an operator"
        )
        self.tenant = tenant
        self.priority = priority
        self.top = top


class StaleFence(TickwheelError):
    """The attempt that somebody speaks for is not the one that is running."""

    def __init__(self, job_id: str, *, fence: int, state: str) -> None:
        super().__init__(
            f"fence {fence} of job {job_id} is stale: the job is {state}, and that attempt of it is over: stop, and "
            "undo what can be undone"
        )
        self.job_id = job_id
        self.fence = fence
        self.state = state


class NotHeld(TickwheelError):
    """Nothing is known of an attempt that goes on by itself. is_soon: its worker is about to note that it does."""

    def __init__(self, job_id: str, reason: str, *, is_soon: bool = False) -> None:
        super().__init__(f"job {job_id} {reason}")
        self.job_id = job_id
        self.is_soon = is_soon


class NotChangeable(TickwheelError):
    """A job of this kind cannot be changed, or run before its time; the reason says what to do instead."""

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"job {job_id} {reason}")
        self.job_id = job_id


class TooLate(TickwheelError):
    """The job may be on its way to its target, so a cancel or a change cannot be promised."""

    def __init__(
        self,
        job_id: str,
        reason: str = "an at_least_once job can be cancelled only while it is far from due, and not in the first "
        "minute or two after its submission",
    ) -> None:
        super().__init__(f"job {job_id} may be on its way: {reason}")
        self.job_id = job_id


class ClockSkewed(TickwheelError):
    """This machine's clock is too far from the store's for a safe far write."""

    def __init__(self, *, offset: timedelta, limit: timedelta) -> None:
        super().__init__(
            f"this clock differs from the store's by {offset.total_seconds():+.1f} s, more than the "
            f"{limit.total_seconds():.1f} s that keep a far write safe"
        )
        self.offset = offset
        self.limit = limit


class MalformedWebhookSecret(TickwheelError):
    """The secret of the master keys is not what the stage made it; nothing of it is repeated."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"the webhook secret {fault}: put one as docs/targets.md says")


@dataclass
class NotPlaced(TickwheelError):
    """The stores refused these timers on every attempt; `reasons` says why, one a timer."""

    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{len(self.reasons)} timers were refused on every attempt, the first because: {self.reasons[0]}"
