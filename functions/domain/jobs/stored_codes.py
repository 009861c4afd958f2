"""The codes of enums in rows and messages, for ever: what a release wrote years ago is read by these tables.

So no code here changes its meaning, and a new member gets one that no other has had. A StrEnum that is stored by its value
has its codes in its class, and so has the class of a job, by whose number far rows are sorted. `tests/contract/test_stored_meaning.py` holds both against the release before.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar

from functions.domain.errors import Undecodable
from functions.domain.jobs import overlap
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.retry import Jitter, Strategy

Member = TypeVar("Member", bound=Enum)
Code = TypeVar("Code", int, str)


class Codes(Generic[Member, Code]):
    """The codes of all members of an enum, and back."""

    def __init__(self, codes: Mapping[Member, Code]) -> None:
        self._codes = dict(codes)
        self._members = {code: member for member, code in codes.items()}
        enum = type(next(iter(codes)))
        if len(self._members) < len(codes) or set(codes) != set(enum):
            raise TypeError(f"every member of {enum.__name__} needs a code of its own")

    def __contains__(self, code: object) -> bool:
        return code in self._members

    def code_of(self, member: Member) -> Code:
        """What stands for a member."""
        return self._codes[member]

    def member_of(self, code: object) -> Member:
        """The member that a code stands for. Raises Undecodable for what is none, `True` for 1 among it."""
        member = self._members.get(code) if isinstance(code, int | str) and not isinstance(code, bool) else None  # pyright: ignore[reportArgumentType]
        if member is None:
            raise Undecodable(f"{code!r} is not a code of {type(next(iter(self._codes))).__name__}")
        return member


DELIVERIES = Codes({Delivery.EXACTLY_ONCE: 0, Delivery.AT_LEAST_ONCE: 1, Delivery.AT_MOST_ONCE: 2})
STRATEGIES = Codes({Strategy.EXPONENTIAL: 0, Strategy.FIXED: 1, Strategy.LINEAR: 2, Strategy.DECORRELATED_JITTER: 3})
JITTERS = Codes({Jitter.FULL: 1, Jitter.EQUAL: 2})
OVERLAPS = Codes(overlap.CODES)
PRIORITY_WORDS = Codes(
    {Priority.CRITICAL: "critical", Priority.HIGH: "high", Priority.NORMAL: "normal", Priority.LOW: "low"}
)
