"""What each error is as an answer: the one table of statuses and codes."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError

from functions.domain import errors

TABLE: dict[type[Exception], tuple[HTTPStatus, str, str]] = {
    ValidationError: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_job", "The job is refused"),
    errors.InvalidJobId: (HTTPStatus.NOT_FOUND, "not_a_job_id", "This is not a job id"),
    errors.InvalidDeadLetterId: (HTTPStatus.NOT_FOUND, "not_a_letter_id", "This is not the id of a dead letter"),
    errors.InvalidJob: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_job", "The job is refused"),
    errors.InvalidSchedule: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_schedule", "The schedule is refused"),
    errors.TooCostly: (HTTPStatus.UNPROCESSABLE_ENTITY, "too_costly", "The schedule takes too much work"),
    errors.InvalidInput: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input", "The request is refused"),
    errors.KeyReused: (HTTPStatus.CONFLICT, "key_reused", "The idempotency key belongs to something else"),
    errors.JobNotFound: (HTTPStatus.NOT_FOUND, "job_not_found", "There is no such job"),
    errors.ScheduleNotFound: (HTTPStatus.NOT_FOUND, "schedule_not_found", "There is no such schedule"),
    errors.DeadLetterNotFound: (HTTPStatus.NOT_FOUND, "letter_not_found", "There is no such dead letter"),
    errors.OperationNotFound: (HTTPStatus.NOT_FOUND, "operation_not_found", "There is no such operation"),
    errors.TooManyOperations: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "too_many_operations",
        "The tenant has too many open operations",
    ),
    errors.QuotaExceeded: (HTTPStatus.TOO_MANY_REQUESTS, "quota_exceeded", "Too many jobs of the tenant wait"),
    errors.BacklogExceeded: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "backlog_exceeded",
        "More jobs wait than the tenant's cap serves",
    ),
    errors.SchedulesExceeded: (HTTPStatus.CONFLICT, "schedules_exceeded", "The tenant has too many schedules"),
    errors.FiresExceeded: (HTTPStatus.CONFLICT, "fires_exceeded", "The schedules of the tenant fire too often"),
    errors.RateExceeded: (HTTPStatus.TOO_MANY_REQUESTS, "rate_exceeded", "The tenant submits too fast"),
    errors.ReadRateExceeded: (HTTPStatus.TOO_MANY_REQUESTS, "read_rate_exceeded", "The caller reads too fast"),
    errors.Shed: (HTTPStatus.SERVICE_UNAVAILABLE, "shed", "The stage is behind"),
    errors.NotReplayable: (HTTPStatus.CONFLICT, "not_replayable", "The dead letter cannot be replayed"),
    errors.PayloadGone: (HTTPStatus.CONFLICT, "payload_gone", "The payload is gone"),
    errors.JobNotFailed: (HTTPStatus.CONFLICT, "job_not_failed", "Another job has its name"),
    errors.Forbidden: (HTTPStatus.FORBIDDEN, "forbidden", "The caller may not do this"),
    errors.TenantBusy: (HTTPStatus.CONFLICT, "tenant_busy", "The tenant is being changed by somebody else"),
    errors.TenantChanged: (HTTPStatus.CONFLICT, "tenant_changed", "The tenant has changed since"),
    errors.TenantDeleted: (HTTPStatus.CONFLICT, "tenant_deleted", "The tenant is deleted"),
    errors.TenantClosed: (HTTPStatus.CONFLICT, "tenant_closed", "The tenant takes nothing in"),
    errors.PriorityNotAllowed: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "priority_not_allowed",
        "The tenant may not use this priority",
    ),
    errors.ScheduleBehind: (HTTPStatus.CONFLICT, "schedule_behind", "The schedule still catches up"),
    errors.ScheduleBusy: (HTTPStatus.CONFLICT, "schedule_busy", "The schedule is being changed by somebody else"),
    errors.JobBusy: (HTTPStatus.CONFLICT, "job_busy", "The job is being changed by somebody else"),
    errors.Busy: (HTTPStatus.CONFLICT, "busy", "It is being changed by somebody else"),
    errors.AlreadySettled: (HTTPStatus.CONFLICT, "already_settled", "The job has come to its end"),
    errors.Moved: (HTTPStatus.CONFLICT, "moved", "The job goes on under another id"),
    errors.StaleFence: (HTTPStatus.CONFLICT, "stale_fence", "The attempt is over"),
    errors.NotHeld: (HTTPStatus.CONFLICT, "not_held", "The attempt is not held"),
    errors.NotChangeable: (HTTPStatus.CONFLICT, "not_changeable", "The job cannot be changed"),
    errors.TooLate: (HTTPStatus.CONFLICT, "too_late", "The job may be on its way"),
    errors.NotPlaced: (HTTPStatus.SERVICE_UNAVAILABLE, "not_placed", "It could not be stored; ask for it again"),
    errors.TickwheelError: (HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "Something is wrong with this stage"),
}
"""Each type of error: its status, its code for programs, its title for people. The nearest base of an error counts."""
