"""How many jobs fire in each minute, and how far a spread flattens the herds: arithmetic and bars."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from tickwheel.client.fires import FireCount

SPREADS = tuple(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60))
"""What is tried, the smallest first: a spread delays, so less is better."""

USUAL_TARGET = 4.0
"""How many times the mean the fullest minute may have."""

_BARS = " ▁▂▃▄▅▆▇█"
_ROWS = 8
_MINUTES_A_BAR = (5, 10, 15, 20, 30, 60)
_LABEL_HOURS = 3


@dataclass(frozen=True)
class Herd:
    """A minute, how many fire in it, and who: the largest shares first, all of them."""

    at: datetime
    count: int
    shares: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Load:
    """The fires of many schedules from `start` on, for so many hours. What has a problem was not counted."""

    start: datetime
    hours: int
    results: Sequence[FireCount]

    @cached_property
    def counted(self) -> Sequence[FireCount]:
        """The schedules that could be counted."""
        return [result for result in self.results if result.problem is None]

    @cached_property
    def left_out(self) -> Sequence[FireCount]:
        """The schedules that could not."""
        return [result for result in self.results if result.problem is not None]

    @cached_property
    def minutes(self) -> Sequence[int]:
        """Fires of each minute."""
        total: Counter[int] = Counter()
        for result in self.counted:
            total.update(result.minutes)
        return [total[minute] for minute in range(self.hours * 60)]

    @property
    def total(self) -> int:
        """All fires."""
        return sum(self.minutes)

    @property
    def mean(self) -> float:
        """Fires a minute on average."""
        return self.total / len(self.minutes)

    @property
    def peak(self) -> int:
        """Fires of the fullest minute."""
        return max(self.minutes)

    def worst(self, most: int = 5) -> Sequence[Herd]:
        """The fullest minutes, the fullest first. Shares are by tenant where there are several, else by schedule."""
        by_tenant = len({result.tenant for result in self.counted}) > 1
        order = sorted(range(len(self.minutes)), key=lambda minute: (-self.minutes[minute], minute))
        herds: list[Herd] = []
        for minute in order[:most]:
            if not self.minutes[minute]:
                break
            shares: Counter[str] = Counter()
            for result in self.counted:
                if minute in result.minutes:
                    shares[result.tenant if by_tenant else result.id] += result.minutes[minute]
            ranked = sorted(shares.items(), key=lambda share: (-share[1], share[0]))
            herds.append(Herd(self.start + timedelta(minutes=minute), self.minutes[minute], ranked))
        return herds


@dataclass(frozen=True)
class Suggestion:
    """A spread, and the load with it. is_enough: its fullest minute is not above the target."""

    spread: timedelta
    load: Load
    is_enough: bool


def suggest(count: Callable[[timedelta], Load], *, target: float) -> Suggestion:
    """The smallest spread that keeps every minute at or below the target; without one, the one with the lowest peak."""
    tried: list[Suggestion] = []
    for spread in SPREADS:
        load = count(spread)
        tried.append(Suggestion(spread, load, is_enough=load.peak <= target))
        if tried[-1].is_enough:
            return tried[-1]
    return min(tried, key=lambda suggestion: suggestion.load.peak)


def plot(load: Load, *, peak: int, width: int) -> Iterator[str]:
    """Lines of text no wider than `width`: a bar is the fullest minute of its part of the time, `peak` fills the height.

    Below them is an axis of hours in UTC.
    """
    margin = len(f"{peak}") + 2
    bars = _bars(load, room=max(width - margin, 24))
    for row in reversed(range(_ROWS)):
        label = {_ROWS - 1: f"{peak}", 0: "0"}.get(row, "")
        line = "".join(_block(bar / max(peak, 1) * _ROWS - row, is_lowest=row == 0) for bar in bars)
        yield f"{label:>{margin - 2}} ┤{line}".rstrip()
    yield " " * margin + _axis(load, len(bars))


def _bars(load: Load, *, room: int) -> Sequence[int]:
    step = next((step for step in _MINUTES_A_BAR if len(load.minutes) / step <= room), _MINUTES_A_BAR[-1])
    return [max(load.minutes[first : first + step]) for first in range(0, len(load.minutes), step)]


def _block(height: float, *, is_lowest: bool) -> str:
    """One row of a bar that reaches `height` rows up from the bottom of this one."""
    eighths = round(height * 8)
    if height > 0 and is_lowest:
        eighths = max(eighths, 1)  # what fires is seen, however little it is
    return _BARS[min(max(eighths, 0), 8)]


def _axis(load: Load, columns: int) -> str:
    """The hours at which the clock shows a multiple of three, each at its column, where one fits."""
    line = ""
    first = load.start.replace(minute=0) + timedelta(hours=1 if load.start.minute else 0)
    for hour in range(load.hours + 1):
        at = first + timedelta(hours=hour)
        column = int((at - load.start) / timedelta(minutes=1) / len(load.minutes) * columns)
        is_free = not line or column > len(line)
        if at.hour % _LABEL_HOURS == 0 and is_free and column + 5 <= columns:
            line = f"{line:<{column}}{at:%H:%M}"
    return line
