"""How each error is answered: the one table of statuses, codes and titles."""

from __future__ import annotations

from http import HTTPStatus

from pydantic import ValidationError

from functions.domain import errors

_PROBLEMS: dict[HTTPStatus, dict[type[Exception], tuple[str, str]]] = {
    HTTPStatus.FORBIDDEN: {errors.Forbidden: ("forbidden", "The caller may not do this")},
    HTTPStatus.NOT_FOUND: {
        errors.InvalidJobId: ("not_a_job_id", "This is not a job id"),
        errors.InvalidDeadLetterId: ("not_a_dead_letter_id", "This is not the id of a dead letter"),
        errors.JobNotFound: ("job_not_found", "There is no such job"),
        errors.NotKept: ("not_kept", "This part of the job is not kept"),
        errors.ScheduleNotFound: ("schedule_not_found", "There is no such schedule"),
        errors.DeadLetterNotFound: ("dead_letter_not_found", "There is no such dead letter"),
        errors.FlowNotFound: ("flow_not_found", "There is no such flow"),
        errors.OperationNotFound: ("operation_not_found", "There is no such operation"),
    },
    HTTPStatus.CONFLICT: {
        errors.KeyReused: ("key_reused", "The idempotency key belongs to something else"),
        errors.SchedulesExceeded: ("schedules_exceeded", "The tenant has too many schedules"),
        errors.FlowsExceeded: ("flows_exceeded", "Too many flows have limits of their own"),
        errors.FiresExceeded: ("fires_exceeded", "The schedules of the tenant fire too often"),
        errors.NotReplayable: ("not_replayable", "The dead letter cannot be replayed"),
        errors.PayloadGone: ("payload_gone", "The payload is gone"),
        errors.JobNotFailed: ("job_not_failed", "Another job has its name"),
        errors.TenantBusy: ("tenant_busy", "The tenant is being changed by somebody else"),
        errors.TenantChanged: ("tenant_changed", "The tenant has changed since"),
        errors.TenantDeleted: ("tenant_deleted", "The tenant is deleted"),
        errors.TenantClosed: ("tenant_closed", "The tenant takes nothing in"),
        errors.ScheduleBehind: ("schedule_behind", "The schedule still catches up"),
        errors.ScheduleBusy: ("schedule_busy", "The schedule is being changed by somebody else"),
        errors.JobBusy: ("job_busy", "The job is being changed by somebody else"),
        errors.Busy: ("busy", "It is being changed by somebody else"),
        errors.AlreadySettled: ("already_settled", "The job has come to its end"),
        errors.Moved: ("moved", "The job continues under another id"),
        errors.StaleFence: ("stale_fence", "The attempt is over"),
        errors.NotHeld: ("not_held", "The attempt is not held"),
        errors.NotChangeable: ("not_changeable", "The job cannot be changed"),
        errors.TooLate: ("too_late", "The job may be on its way"),
    },
    HTTPStatus.PRECONDITION_FAILED: {
        errors.ScheduleExists: ("schedule_exists", "There is such a schedule already"),
        errors.ScheduleChanged: ("schedule_changed", "The schedule has changed since"),
    },
    HTTPStatus.UNPROCESSABLE_ENTITY: {
        ValidationError: ("invalid_job", "The job is refused"),
        errors.InvalidJob: ("invalid_job", "The job is refused"),
        errors.UnknownHandler: ("unknown_handler", "The stage has no such handler"),
        errors.InvalidSchedule: ("invalid_schedule", "The schedule is refused"),
        errors.TooCostly: ("too_costly", "The schedule takes too much work"),
        errors.InvalidInput: ("invalid_input", "The request is refused"),
        errors.PriorityNotAllowed: ("priority_not_allowed", "The tenant may not use this priority"),
    },
    HTTPStatus.TOO_MANY_REQUESTS: {
        errors.TooManyOperations: ("too_many_operations", "The tenant has too many open operations"),
        errors.QuotaExceeded: ("quota_exceeded", "Too many jobs of the tenant wait"),
        errors.BacklogExceeded: ("backlog_exceeded", "More jobs wait than the tenant's cap serves"),
        errors.RateExceeded: ("rate_exceeded", "The tenant submits too fast"),
        errors.ReadRateExceeded: ("read_rate_exceeded", "The caller reads too fast"),
    },
    HTTPStatus.INTERNAL_SERVER_ERROR: {errors.TickwheelError: ("internal", "Something is wrong with this stage")},
    HTTPStatus.SERVICE_UNAVAILABLE: {
        errors.Shed: ("shed", "The stage is behind"),
        errors.NotPlaced: ("not_placed", "It could not be stored; ask for it again"),
    },
}

TABLE = {
    error: (status, code, title) for status, problems in _PROBLEMS.items() for error, (code, title) in problems.items()
}
"""Each type of error: its status, its code for programs, its title for people. The nearest base of an error counts."""
