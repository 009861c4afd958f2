"""Everything that Tickwheel raises on purpose.

TickwheelError
├── InvalidWheel            the constants of a stage break a rule that keeps jobs from being lost
├── WheelChanged            the constants differ from those recorded at the first deploy
├── InvalidPattern          a pattern of the allowed targets is none, or allows nothing
├── InvalidInput            a value from outside is refused
│   ├── InvalidJob          a job breaks a rule
│   │   └── UnknownHandler  it names a handler that the stage does not have
│   ├── InvalidSchedule     a schedule breaks a rule, or never fires
│   │   └── TooCostly       its fires take more work to find than one caller may cause
│   ├── InvalidJobId        a text is not a job id
│   └── InvalidDeadLetterId     a text is not the id of a dead letter
├── Undecodable             a stored or queued body was not written by Tickwheel
│   └── NewerVersion        it was, but by a newer one
├── KeyReused               an idempotency key belongs to another job or operation
├── JobNotFound             nobody was given that id, or no trace of its job is left
├── NotKept                 a part of a job is not kept, or not any more
├── ScheduleNotFound        a tenant has no such schedule
├── DeadLetterNotFound          there is no such dead letter (any more)
├── FlowNotFound            a flow has no limits, and nothing has used it of late
├── OperationNotFound       a tenant has no such operation (any more)
├── TooManyOperations       a tenant has as many open operations as it may have
├── NotReplayable           a dead letter holds nothing that could be run again
├── PayloadGone             the payload of a dead letter's job is no more
├── JobNotFailed            the job of a dead letter is under way by another submission
├── Busy                    rows kept changing while they were being changed
│   ├── JobBusy             those of a job
│   └── ScheduleBusy        those of a schedule, or of its tenant's schedules together
├── ScheduleExists          a schedule was to be new, and is there
├── ScheduleChanged         a schedule is not as somebody has seen it who changes it
├── ScheduleBehind          a schedule still catches up on what it missed
├── AlreadySettled          the job came to its end before it could be cancelled or changed
├── Moved                   the job continues under another id
├── Forbidden               a caller may not act for a tenant, or is no operator
├── TenantBusy              a tenant kept changing while it was being changed
├── TenantChanged           a tenant is not as somebody has seen it who changes it
├── TenantDeleted           a tenant is being deleted, or has been
├── TenantClosed            a tenant takes nothing in any more
├── RateExceeded            a tenant submits faster than it may
├── ReadRateExceeded        a caller reads faster than it may
├── Shed                    the stage is behind, and takes nothing of a class in
├── QuotaExceeded           as many jobs of a tenant wait as may
├── SchedulesExceeded       a tenant has as many schedules as it may
├── FlowsExceeded           as many flows have limits of their own as may
├── FiresExceeded           the schedules of a tenant fire as often as they may
├── BacklogExceeded         more jobs of a tenant wait than its cap serves in days
├── PriorityNotAllowed      a job has a higher class than its tenant may use
├── StaleFence              the attempt that somebody speaks for is not the one that is running
├── NotHeld                 nothing is known of a held attempt
├── NotChangeable           a job of this kind cannot be changed, or run before its time
├── TooLate                 the job may be on its way, so a cancel or a change cannot be promised
├── ClockSkewed             this machine's clock is too far from the store's for a safe far write
├── MalformedWebhookSecret  the secret of the master keys is not what the stage made it
└── NotPlaced               the stores refused a timer on every attempt

Errors carry data; the API's table maps each type to a status.
"""

from functions.domain.errors.general import Busy, InvalidInput, NewerVersion, TickwheelError, Undecodable
from functions.domain.errors.jobs import (
    AlreadySettled,
    DeadLetterNotFound,
    FlowNotFound,
    InvalidDeadLetterId,
    InvalidJob,
    InvalidJobId,
    JobBusy,
    JobNotFailed,
    JobNotFound,
    KeyReused,
    Moved,
    NotChangeable,
    NotHeld,
    NotKept,
    NotReplayable,
    OperationNotFound,
    PayloadGone,
    StaleFence,
    TooLate,
    TooManyOperations,
    UnknownHandler,
)
from functions.domain.errors.schedules import (
    InvalidSchedule,
    ScheduleBehind,
    ScheduleBusy,
    ScheduleChanged,
    ScheduleExists,
    ScheduleNotFound,
    TooCostly,
)
from functions.domain.errors.stage import (
    ClockSkewed,
    Forbidden,
    InvalidPattern,
    InvalidWheel,
    MalformedWebhookSecret,
    NotPlaced,
    ReadRateExceeded,
    Shed,
    WheelChanged,
)
from functions.domain.errors.tenants import (
    BacklogExceeded,
    FiresExceeded,
    FlowsExceeded,
    PriorityNotAllowed,
    QuotaExceeded,
    RateExceeded,
    SchedulesExceeded,
    TenantBusy,
    TenantChanged,
    TenantClosed,
    TenantDeleted,
)
