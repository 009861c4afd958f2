"""Errors about dead letters."""

from __future__ import annotations

from functions.domain.errors.general import InvalidInput, TickwheelError


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
