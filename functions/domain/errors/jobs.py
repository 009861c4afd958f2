"""Errors about jobs, their dead letters, and operations on many of them."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.errors.general import Busy, InvalidInput, TickwheelError


class InvalidJob(InvalidInput):
    """A job breaks a rule."""


class UnknownHandler(InvalidJob):
    """A target names a handler that the stage does not have."""


class InvalidJobId(InvalidInput):
    """A text is not a job id."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:200]!r} is not a job id: an id is the text that a submission answered with")
        self.text = text


class KeyReused(TickwheelError):
    """An idempotency key belongs to another job, or operation, than the one that was asked for with it.

    kind: which of them. difference: what distinguishes them.
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


class NotKept(TickwheelError):
    """A part of a job is not kept, or not any more. what: which part, in a word."""

    def __init__(self, job_id: str, *, what: str) -> None:
        super().__init__(
            f"the {what} of job {job_id} is not kept: it has not been claimed yet, it has ended, or was too large for its row"
        )


class JobBusy(Busy):
    """A job kept changing while it was being changed. job_id: its id, or the key of its rows."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} is being changed by others: ask for it again")


class AlreadySettled(TickwheelError):
    """The job came to its end before it could be cancelled or changed."""

    def __init__(self, job_id: str, *, state: str) -> None:
        super().__init__(f"job {job_id} is already {state}")
        self.job_id = job_id
        self.state = state


class Moved(TickwheelError):
    """The job continues under another id."""

    def __init__(self, job_id: str, *, moved_to: str) -> None:
        super().__init__(f"job {job_id} was rescheduled or edited and is now job {moved_to}: ask for that")
        self.moved_to = moved_to


class StaleFence(TickwheelError):
    """The attempt that somebody speaks for is not the one that is running."""

    def __init__(self, job_id: str, *, fence: int, state: str) -> None:
        super().__init__(
            f"fence {fence} of job {job_id} is stale: the job is {state}, and that attempt of it is over: stop, and "
            "undo what can be undone"
        )
        self.fence = fence
        self.state = state


class NotHeld(TickwheelError):
    """Nothing is known of a held attempt. is_soon: its worker is about to note that it is held."""

    def __init__(self, job_id: str, reason: str, *, is_soon: bool = False) -> None:
        super().__init__(f"job {job_id} {reason}")
        self.is_soon = is_soon


class NotChangeable(TickwheelError):
    """A job of this kind cannot be changed, or run before its time; the reason says what to do instead."""

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"job {job_id} {reason}")


class TooLate(TickwheelError):
    """The job may be on its way to its target, so a cancel or a change cannot be promised."""

    def __init__(
        self,
        job_id: str,
        reason: str = "an at_least_once job can be cancelled only while it is far from due, and not in the first "
        "minute or two after its submission",
    ) -> None:
        super().__init__(f"job {job_id} may be on its way: {reason}")


class InvalidDeadLetterId(InvalidInput):
    """A text is not the id of a dead letter."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:200]!r} is not the id of a dead letter: an id is as a list of them has it")
        self.text = text


class DeadLetterNotFound(TickwheelError):
    """There is no such dead letter: it was replayed or purged, or has expired."""

    def __init__(self, letter_id: str) -> None:
        super().__init__(f"there is no dead letter {letter_id}: it has been replayed or purged, or has expired")


class NotReplayable(TickwheelError):
    """A dead letter holds nothing that could be run again."""

    def __init__(self, letter_id: str, reason: str) -> None:
        super().__init__(f"dead letter {letter_id} cannot be replayed: {reason}")


class PayloadGone(TickwheelError):
    """The payload of a dead letter's job is no more."""

    def __init__(self, letter_id: str) -> None:
        super().__init__(
            f"the payload of dead letter {letter_id} is gone, so its job cannot run: submit it anew, and purge the letter"
        )


class JobNotFailed(TickwheelError):
    """What the ledger has under the name of a dead letter's job is another run, and this letter has not been replayed."""

    def __init__(self, letter_id: str, *, state: str) -> None:
        super().__init__(
            f"under the name of dead letter {letter_id} there is a job that is {state}: it was submitted again since. Wait for "
            "its end, or cancel it, and then until its ledger row expires, after 22 days; or submit the job under another "
            "idempotency key and purge the letter"
        )


class FlowNotFound(TickwheelError):
    """A flow has no limits, and nothing has used it of late. tenant: None for one of the stage."""

    def __init__(self, key: str, *, tenant: str | None) -> None:
        whose = f"tenant {tenant}" if tenant is not None else "the stage"
        super().__init__(
            f"{whose} has no flow {key} that has limits or was used of late: look at the list of its flows"
        )


class OperationNotFound(TickwheelError):
    """A tenant has no such operation, or it ended long ago."""

    def __init__(self, tenant: str, operation_id: str) -> None:
        super().__init__(f"tenant {tenant} has no operation {operation_id[:80]}: look at the list of its operations")


class TooManyOperations(TickwheelError):
    """A tenant has as many open operations as it may have. retry_after: when one of them may have ended."""

    def __init__(self, tenant: str, *, limit: int, retry_after: timedelta) -> None:
        super().__init__(
            f"tenant {tenant} has {limit} operations that are not over, which is the most there may be: wait for the end "
            "of one, or stop one"
        )
        self.retry_after = retry_after
