"""The handlers that a stage has, by name: what a submission may name behind `handler:`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property
from typing import Self

BUILT_IN = frozenset({"echo", "trial"})
"""Those of every stage."""

FOLDER = "tickwheel_handlers"
"""Below a folder that Python looks into: what the functions get of handlers beside those of this package."""

FILE = "handlers.json"
"""In FOLDER: the names, each with the module that registers it."""

LIVE = "live"
"""In FOLDER, of a local cloud alone: the path of a file that says where the handlers are now."""

_MOST_LISTED = 20
_MOST_NEAR = 3
_LOOKED_AT = 10
"""Names on either side in the order of the alphabet: what one refusal costs, of the thousands that a batch may hold, does not grow with
how many there are."""
_MOST_COMPARED = 100
"""Refusals of one request that look for near names: each takes about half a millisecond."""


class HandlerNames:
    """The names that a stage has."""

    def __init__(self, names: Iterable[str] = BUILT_IN) -> None:
        self._names = frozenset(names)
        self._left = _MOST_COMPARED

    def of_a_request(self) -> Self:
        """The same names for one request, of which only the first hundred refusals say what is near."""
        return type(self)(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def near(self, name: str) -> list[str]:
        """Those that it may have been meant to be, the likeliest first."""
        at = bisect_left(self._sorted, name)
        around = self._sorted[max(0, at - _LOOKED_AT) : at + _LOOKED_AT]
        by_folded = {each.casefold(): each for each in reversed(around)}
        return [by_folded[each] for each in get_close_matches(name.casefold(), by_folded, n=_MOST_NEAR)]

    def objection(self, name: str) -> str:
        """Why a name is refused, and what to do."""
        self._left -= 1
        if self._left >= 0 and (near := self.near(name)):
            return f"names no handler of this stage: did you mean {' or '.join(f'handler:{each}' for each in near)}?"
        listed = ", ".join(self._sorted[:_MOST_LISTED])
        more = len(self._sorted) - _MOST_LISTED
        return (
            f"names no handler of this stage, which has {listed}{f' and {more} more' if more > 0 else ''}: use one of them, or "
            "deploy yours with `handlers`"
        )

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._names)
