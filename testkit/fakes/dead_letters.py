"""What failed for good, in memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.ports.dead_letters import DeadLetter
from testkit.fakes.kept import kept


class InMemoryDeadLetters:
    def __init__(self) -> None:
        self.letters: dict[tuple[str, datetime, str], DeadLetter] = {}

    def put(self, letter: DeadLetter) -> None:
        dead_at = letter.letter_id.dead_at
        self.letters[letter.tenant, dead_at, letter.identity] = replace(letter, dead_at=dead_at)

    def get(self, letter_id: DeadLetterId) -> DeadLetter | None:
        letter = self.letters.get(_key(letter_id))
        return _read(letter) if letter is not None else None

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        """Those of letters that are still there: it keeps no marks."""
        hours = {
            dead_at.replace(minute=0, second=0, microsecond=0) for owner, dead_at, _ in self.letters if owner == tenant
        }
        first = since.replace(minute=0, second=0, microsecond=0)
        found = sorted((hour for hour in hours if first <= hour <= until), reverse=True)
        return found[:limit], len(found) > limit

    def page(self, hour: datetime, *, before: DeadLetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        keys = [key for key in self.letters if hour <= key[1] < hour + timedelta(hours=1) and key < _key(before)]
        found = sorted((key for key in keys if key[0] == before.tenant), reverse=True)
        return [_read(self.letters[key]) for key in found[:limit]], len(found) > limit

    def mark(self, letter_id: DeadLetterId, *, now: datetime) -> bool:
        letter = self.letters.get(_key(letter_id))
        if letter is None:
            return False
        self.letters[_key(letter_id)] = replace(letter, replayed_at=letter.replayed_at or kept(now))
        return True

    def delete(self, letter_id: DeadLetterId) -> None:
        self.letters.pop(_key(letter_id), None)


def _key(letter_id: DeadLetterId) -> tuple[str, datetime, str]:
    return letter_id.tenant, letter_id.dead_at, letter_id.identity


def _read(letter: DeadLetter) -> DeadLetter:
    if letter.timer is None:
        return letter
    return replace(letter, timer=decode_timer(encode_timer(letter.timer), tenant=letter.tenant))
