"""What becomes of a message that Tickwheel did not write: a dead letter of nobody's tenant, with the body as it came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.recorder import Journal

ERROR_CLASS = "undecodable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessages:
    """Keeps foreign messages, for whoever receives one."""

    dead_letters: DeadLetters
    journal: Journal

    def keep(self, body: str, *, message_id: str, seen_at: datetime, error: Undecodable) -> None:
        """Write the dead letter. seen_at: when its queue first gave it out; it names the letter, so that repeating this adds none."""
        letter = DeadLetter(
            tenant=NO_TENANT,
            identity=message_id,
            dead_at=seen_at,
            error=f"{ERROR_CLASS}: {error}",
            error_class=ERROR_CLASS,
            raw=body,
        )
        self.dead_letters.put(letter)
        self.journal.count("dead_lettered")
        # Neither the body nor what it was refused for: both are its sender's words, and stand in the dead letter.
        self.journal.event("message_undecodable", message_id=message_id, dead_letter=str(letter.letter_id))
