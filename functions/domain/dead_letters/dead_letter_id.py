"""Ids of dead letters that locate their rows: to look at one, to replay it or to purge it is one key access.

An id reads `d1~{tenant}~{dead at}~{identity}`: milliseconds in base 36; the tenant is empty where Tickwheel did not write
what failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.errors import InvalidDeadLetterId, InvalidInput
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import HOUR, LATEST, from_ms, to_ms
from functions.domain.jobs.job import check_tenant
from functions.domain.jobs.job_id import base36, read_base36
from functions.domain.key_lengths import DEAD_LETTER_IDENTITY, fits

DEAD_LETTER_LIFE = timedelta(days=90)
"""How long a dead letter is kept."""

SURELY_MARKED = HOUR
"""After hours began to be marked: what a release before has begun has come to its end by then."""

VERSION = "d1"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterId:
    """Where the row of a dead letter is. dead_at: whole milliseconds, as it is stored.

    With an empty identity it is a place between dead letters: everything that died before this instant lies behind it.
    """

    tenant: str
    dead_at: datetime
    identity: str

    def __str__(self) -> str:
        tenant = "" if self.tenant == NO_TENANT else self.tenant
        return "~".join((VERSION, tenant, base36(to_ms(self.dead_at)), self.identity))


def parse_dead_letter_id(text: str) -> DeadLetterId:
    """The id that a text spells. Raises InvalidDeadLetterId for any text that `str(letter_id)` does not write."""
    try:
        version, tenant, dead_at, identity = text.split("~", 3)
        letter_id = DeadLetterId(
            tenant=check_tenant(tenant) if tenant else NO_TENANT,
            dead_at=from_ms(read_base36(dead_at)),
            identity=identity,
        )
    except (ValueError, OverflowError, InvalidInput):
        raise InvalidDeadLetterId(text) from None
    if (
        version != VERSION
        or not fits(identity, DEAD_LETTER_IDENTITY)
        or letter_id.dead_at > LATEST
        or str(letter_id) != text
    ):
        raise InvalidDeadLetterId(text)
    return letter_id
