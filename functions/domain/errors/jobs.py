"""Errors about jobs."""

from __future__ import annotations

from typing import Any

from functions.domain.errors.general import Busy, InvalidInput, TickwheelError


class InvalidJob(InvalidInput):
    """A job breaks a rule; `field` names the part, `value` is what was given."""

    def __init__(self, message: str, *, field: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


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
    """The job goes on under another id."""

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
