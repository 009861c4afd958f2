"""One field of a cron as another program reads it, and as Tickwheel reads the same."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from tickwheel.imports.dialects import WEEKDAYS, Dialect

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NUMBERS = {name: number for number, name in enumerate(MONTHS, 1)}
_ITEM = re.compile(r"(\*|\?|[0-9]{1,3}|[a-z]{3})(?:-([0-9]{1,3}|[a-z]{3}))?(?:/([0-9]{1,3}))?", re.ASCII)
_FROM_LAST = re.compile(r"l(?:-([0-9]{1,2}))?(w?)", re.ASCII)
_NEAREST = re.compile(r"([0-9]{1,2})w", re.ASCII)
_NTH = re.compile(r"([0-9]|[a-z]{3})#([1-5])", re.ASCII)
_LAST = re.compile(r"([0-9]|[a-z]{3})l", re.ASCII)
_MOST_ITEMS = 200

OnDay = Callable[[date], bool]


class Unreadable(ValueError):
    """The text is none that this program takes, or it cannot be said here; its message says which."""


@dataclass(frozen=True)
class Numbers:
    """A field of numbers. text: as Tickwheel reads it."""

    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class Days:
    """A day field. text: as Tickwheel reads it. plain: the numbers, where it has no others. has_star: it begins with one, is_any: it has one without a step."""

    text: str
    tests: tuple[OnDay, ...]
    plain: frozenset[int] | None
    has_star: bool
    is_any: bool


@dataclass(frozen=True)
class _Kind:
    """What is numbered, from where to where, and names of numbers."""

    what: str
    low: int
    high: int
    names: Mapping[str, int]

    @property
    def size(self) -> int:
        """How many different ones there are: Sunday is one, whether it is 0, 7 or both."""
        return min(self.high - self.low + 1, 7) if self.what == "day of week" else self.high - self.low + 1


@dataclass(frozen=True)
class _Item:
    values: tuple[int, ...]
    is_star: bool
    step: int
    low: int
    high: int


def numbers(text: str, what: str, low: int, high: int, dialect: Dialect) -> Numbers:
    """Reads minutes, hours or months."""
    names = _MONTH_NUMBERS if what == "month" else {}
    kind = _Kind(what, low, high, names)
    items = [_item(each, kind, dialect) for each in _split(text, what)]
    return Numbers(_joined(_written(each, low, high) for each in items), frozenset(_values(items)))


def days_of_month(text: str, dialect: Dialect) -> Days:
    """Reads the day of the month."""
    texts: list[str] = []
    tests: list[OnDay] = []
    plain: set[int] | None = set()
    parts = _split(text, "day of month")
    for part in parts:
        special = _special_date(part) if dialect.has_letters else None
        if special is not None:
            texts.append(part.upper())
            tests.append(special)
            plain = None
            continue
        item = _item(part, _Kind("day of month", 1, 31, {}), dialect)
        # A star has a say in how the day fields are joined, where it is read as Tickwheel reads it.
        is_kept = item.is_star and (item.step == 1 or dialect.join == "star")
        texts.append(_written(item, 1, 31) if is_kept or not item.is_star else f"1-31/{item.step}")
        tests.append(_is_date(item.values))
        plain = None if plain is None else plain | set(item.values)
    kept = None if plain is None else frozenset(plain)
    return Days(_joined(texts), tuple(tests), kept, text[:1] in {"*", "?"}, _is_any(parts))


def days_of_week(text: str, dialect: Dialect) -> Days:
    """Reads the day of the week."""
    low, high = dialect.weekday_bounds
    names = {name: low + (number + dialect.sunday - low) % 7 for number, name in enumerate(WEEKDAYS)}
    kind = _Kind("day of week", low, high, names)
    texts: list[str] = []
    tests: list[OnDay] = []
    plain: set[int] | None = set()
    parts = _split(text, "day of week")
    for part in parts:
        special = _special_weekday(part, kind, dialect) if dialect.has_letters else None
        if special is not None:
            texts.append(special[0])
            tests.append(special[1])
            plain = None
            continue
        item = _item(part, kind, dialect)
        weekdays = tuple(dict.fromkeys(dialect.weekday(number) for number in item.values))
        texts.append(_weekdays_text(item, weekdays, dialect))
        tests.append(_is_weekday(weekdays))
        plain = None if plain is None else plain | set(weekdays)
    kept = None if plain is None else frozenset(plain)
    return Days(_joined(texts), tuple(tests), kept, text[:1] in {"*", "?"}, _is_any(parts))


def _split(text: str, what: str) -> list[str]:
    parts = text.lower().split(",")
    if len(parts) > _MOST_ITEMS:
        raise Unreadable(f"the {what} has more than {_MOST_ITEMS} items")
    return parts


def _is_any(parts: list[str]) -> bool:
    return any(part in {"*", "?", "*/1"} for part in parts)


def _item(part: str, kind: _Kind, dialect: Dialect) -> _Item:
    text = f"*{part}" if part.startswith("/") and dialect.has_letters else part
    match = _ITEM.fullmatch(text)
    if match is None:
        raise Unreadable(f"{part!r} is no {kind.what} of {dialect.name}")
    step = int(match[3] or 1)
    if not step:
        raise Unreadable(f"{part!r} in the {kind.what} has a step of 0")
    if match[1] in {"*", "?"}:
        last = kind.low + kind.size - 1
        return _Item(tuple(range(kind.low, last + 1, step)), is_star=True, step=step, low=kind.low, high=last)
    first = _number(match[1], part, kind)
    last = _number(match[2], part, kind) if match[2] else kind.high if match[3] else first
    if first <= last:
        return _Item(tuple(range(first, last + 1, step)), is_star=False, step=step, low=first, high=last)
    if not dialect.wraps:
        raise Unreadable(f"{part!r} in the {kind.what} runs backwards, which {dialect.name} refuses")
    around = range(first, last + kind.size + 1, step)
    values = tuple(kind.low + (number - kind.low) % kind.size for number in around)
    return _Item(values, is_star=False, step=step, low=first, high=last)


def _number(text: str, part: str, kind: _Kind) -> int:
    number = int(text) if text.isdigit() else kind.names.get(text)
    if number is None or not kind.low <= number <= kind.high:
        names = " or a name" if kind.names else ""
        raise Unreadable(f"{part!r} in the {kind.what} is not from {kind.low} to {kind.high}{names}")
    return number


def _written(item: _Item, low: int, high: int) -> str:
    if item.is_star:
        return "*" if item.step == 1 else f"*/{item.step}" if item.step <= high - low else str(low)
    if len(item.values) == 1:
        return str(item.values[0])
    return f"{item.low}-{item.high}" + (f"/{item.step}" if item.step > 1 else "")


def _weekdays_text(item: _Item, weekdays: tuple[int, ...], dialect: Dialect) -> str:
    if item.is_star and item.step == 1:
        return "*"
    if item.is_star and dialect.join == "star" and dialect.sunday == 0:
        return f"*/{item.step}" if item.step < 7 else WEEKDAYS[weekdays[0]]  # noqa: PLR2004
    if item.step == 1 and 2 < len(weekdays) <= 7:  # noqa: PLR2004
        return f"{WEEKDAYS[weekdays[0]]}-{WEEKDAYS[weekdays[-1]]}"
    return ",".join(WEEKDAYS[each] for each in weekdays)


def _joined(texts: Iterable[str]) -> str:
    return ",".join(dict.fromkeys(texts))


def _values(items: Iterable[_Item]) -> Iterable[int]:
    return (value for item in items for value in item.values)


def _is_date(values: tuple[int, ...]) -> OnDay:
    return lambda day: day.day in values


def _is_weekday(weekdays: tuple[int, ...]) -> OnDay:
    return lambda day: day.isoweekday() % 7 in weekdays


def _last_of(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _special_date(part: str) -> OnDay | None:
    if match := _FROM_LAST.fullmatch(part):
        before = int(match[1] or 0)
        if match[2]:
            return lambda day: day.day == _nearest(day, _last_of(day) - before)
        return lambda day: day.day == _last_of(day) - before
    if match := _NEAREST.fullmatch(part):
        number = int(match[1])
        return lambda day: number <= _last_of(day) and day.day == _nearest(day, number)
    return None


def _nearest(day: date, number: int) -> int:
    """The day of the month from Monday to Friday that is nearest to a date of it, in the same month."""
    if number < 1:
        return 0
    wanted, last = day.replace(day=number), _last_of(day)
    if wanted.isoweekday() == 6:  # noqa: PLR2004
        return number - 1 if number > 1 else number + 2
    if wanted.isoweekday() == 7:  # noqa: PLR2004
        return number + 1 if number < last else number - 2
    return number


def _special_weekday(part: str, kind: _Kind, dialect: Dialect) -> tuple[str, OnDay] | None:
    if part == "l":
        if dialect.lone_last is None:
            raise Unreadable(f"a lone L as day of week has no meaning in the documentation of {dialect.name}")
        weekday = WEEKDAYS.index(dialect.lone_last)
        return WEEKDAYS[weekday], _is_weekday((weekday,))
    match = _NTH.fullmatch(part) or _LAST.fullmatch(part)
    if match is None:
        return None
    weekday = dialect.weekday(_number(match[1], part, kind))
    if match.re is _LAST:
        return (
            f"{WEEKDAYS[weekday]}L",
            lambda day: day.isoweekday() % 7 == weekday and (day + timedelta(days=7)).month != day.month,
        )
    nth = int(match[2])
    return f"{WEEKDAYS[weekday]}#{nth}", lambda day: day.isoweekday() % 7 == weekday and (day.day - 1) // 7 + 1 == nth
