"""The days of a year that a recurrence rule names (RFC 5545, section 3.3.10)."""

from __future__ import annotations

from array import array
from calendar import isleap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

WEEK = 7
_MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MAKES_A_WEEK_OF_ITS_YEAR = 4
"""Days: section 3.3.10, "week number one of the calendar year is the first week that contains at least four days"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Which days of a year a rule names. Empty: all of them; what is given must all be true of a day.

    numbered: such as (-1, 4), the last Friday, of each month or of the year. weeks: of a year that begins its weeks on
    `wkst`; then its days are those of its weeks, the first of them may be in the December before.
    """

    months: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    year_days: frozenset[int] = frozenset()
    weeks: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    numbered: frozenset[tuple[int, int]] = frozenset()
    is_numbered_by_month: bool = False
    wkst: int = 0

    def of(self, year: int) -> Sequence[int]:
        """How many days after the first of January each of them is, in order."""
        if not self.weeks:
            return self._of_calendar(year)
        length = length_of(year)
        start, end = first_week_of(year, self.wkst), length + first_week_of(year + 1, self.wkst)
        count = (end - start) // WEEK
        chosen = {week if week > 0 else count + 1 + week for week in self.weeks}
        offsets = [
            offset
            for week in sorted(chosen)
            if 1 <= week <= count
            for offset in range(start + 7 * week - 7, start + 7 * week)
        ]
        before = {offset - length_of(year - 1) for offset in self._of_calendar(year - 1)} if start < 0 else set[int]()
        after = {length + offset for offset in self._of_calendar(year + 1)} if end > length else set[int]()
        named = before | set(self._of_calendar(year)) | after
        return array("h", [offset for offset in offsets if offset in named])

    def _of_calendar(self, year: int) -> Sequence[int]:
        """Without its weeks."""
        length = length_of(year)
        if not (self.months or self.month_days or self.year_days or self.weekdays or self.numbered):
            return range(length)
        months = months_of(year)
        named = set(range(length))
        if self.months:
            named &= {offset for month in self.months for offset in months[month - 1]}
        if self.month_days:
            named &= {offset for month in months for offset in counted(month, self.month_days)}
        if self.year_days:
            named &= set(counted(range(length), self.year_days))
        if self.weekdays or self.numbered:
            named &= self._of_week(year, [months[month - 1] for month in self.months] or months, length)
        return array("h", sorted(named))

    def _of_week(self, year: int, months: Sequence[range], length: int) -> set[int]:
        first = first_weekday_of(year)
        found = {offset for weekday in self.weekdays for offset in range((weekday - first) % WEEK, length, WEEK)}
        for span in months if self.is_numbered_by_month else [range(length)]:
            for number, weekday in self.numbered:
                found.update(
                    counted(range(span.start + (weekday - first - span.start) % WEEK, span.stop, WEEK), {number})
                )
        return found


def counted(span: range, numbers: Sequence[int] | frozenset[int] | set[int]) -> Iterator[int]:
    """The members of a span that these numbers count, from 1, or from its end with -1; in the order of the numbers."""
    for number in numbers:
        place = number - 1 if number > 0 else len(span) + number
        if 0 <= place < len(span):
            yield span[place]


def new_year_of(year: int) -> int:
    """The ordinal of its first of January, also of the year before the first that a date can have."""
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400 + 1


def first_weekday_of(year: int) -> int:
    """On which weekday its first of January is: 0 for Monday."""
    return (new_year_of(year) - 1) % WEEK


def length_of(year: int) -> int:
    """How many days it has."""
    return 366 if isleap(year) else 365


def months_of(year: int) -> Sequence[range]:
    """The days of each month, counted from the first of January."""
    return _MONTHS_OF[isleap(year)]


def _of_months(lengths: Sequence[int]) -> Sequence[range]:
    return [range(end - length, end) for length, end in zip(lengths, accumulate(lengths), strict=True)]


_MONTHS_OF = {
    False: _of_months(_MONTHS),
    True: _of_months([length + (number == 1) for number, length in enumerate(_MONTHS)]),
}


def first_week_of(year: int, wkst: int) -> int:
    """How many days after the first of January the first week of a year begins: from -3 to 3."""
    passed = (first_weekday_of(year) - wkst) % WEEK
    return -passed if WEEK - passed >= _MAKES_A_WEEK_OF_ITS_YEAR else WEEK - passed
