"""Find dead letters: what a filter means, newest first, a bounded part of it a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE, SURELY_MARKED, DeadLetterId
from functions.domain.errors import DeadLetterNotFound, InvalidInput, Undecodable
from functions.domain.far_ring.timer_record import unpack
from functions.domain.instants import (
    LATEST,
    MILLISECOND,
    format_instant,
    from_ms,
    from_seconds,
    to_ms,
    to_seconds,
    to_the_millisecond,
)
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import base36, read_base36
from functions.domain.jobs.occurrence import fill_references
from functions.domain.key_lengths import DEAD_LETTER_IDENTITY, fits
from functions.domain.targets.targets import destination_of
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.payloads import PayloadStore

MOST_SHOWN = 10
"""Dead letters that a dry run names."""

MOST_QUERIES = 20
"""Queries of one request: a query is a page of the hours in which a tenant had dead letters, or a page of the letters of an hour."""

USUAL_REACH = timedelta(hours=24)
"""How far back a request looks that does not say so."""

_HOURS_AT_ONCE = 8
_PAGE = 100
_HOUR = timedelta(hours=1)
_HOUR_SECONDS = 3_600
_NEVER = LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFilter:
    """Which dead letters are selected: those of a tenant, from since up to until, that match every condition.

    since, until: None for the last 24 hours. target: of the job, or what it shares with others: `https://host`.
    """

    tenant: str
    since: datetime | None = None
    until: datetime | None = None
    target: str = ""
    error_class: str = ""
    schedule_id: str = ""
    tag: str = ""

    def matches(self, letter: DeadLetter) -> bool:
        """Whether a dead letter of this tenant, of the right time, is selected."""
        if self.error_class and letter.error_class != self.error_class:
            return False
        if letter.timer is None:
            return not (self.target or self.schedule_id or self.tag)
        job = letter.timer.job
        schedule_id = job.occurrence.schedule_id if job.occurrence else ""
        return (
            (not self.target or self.target in (job.target, destination_of(job.target)))
            and (not self.schedule_id or self.schedule_id == schedule_id)
            and (not self.tag or self.tag in job.tags)
        )

    def describe(self) -> dict[str, str]:
        """What is said, for the log: of a target only its destination, because a path may hold a secret."""
        given = {
            "since": format_instant(self.since) if self.since else "",
            "until": format_instant(self.until) if self.until else "",
            "target": destination_of(self.target) if self.target else "",
            "error_class": self.error_class,
            "schedule": self.schedule_id,
            "tag": self.tag,
        }
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """Where the next request continues: everything from `before` on has been examined, nothing since `since` before it.

    due_at: when the next replay of the same operation is due, where they are staggered.
    """

    since: datetime
    before: DeadLetterId
    due_at: datetime | None = None

    def __str__(self) -> str:
        due_at = base36(to_ms(self.due_at)) if self.due_at else ""
        return "~".join((base36(to_ms(self.since)), base36(to_ms(self.before.dead_at)), due_at, self.before.identity))

    @property
    def is_at_the_end(self) -> bool:
        """Whether nothing is left to be examined."""
        return (self.before.dead_at, self.before.identity) <= (self.since, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterPage:
    """A part of the letters that are selected, newest first. goes_on: behind them, None at the end."""

    letters: Sequence[DeadLetter]
    since: datetime
    goes_on: Bookmark | None

    @property
    def examined_until(self) -> datetime:
        """How far back this part reaches."""
        return self.goes_on.before.dead_at if self.goes_on else self.since

    def cut(self, count: int, *, due_at: datetime | None = None) -> DeadLetterPage:
        """The first so many dead letters, and where to continue behind them. due_at: of the next replay."""
        goes_on = self.goes_on
        if count < len(self.letters):
            goes_on = Bookmark(since=self.since, before=self.letters[count - 1].letter_id)
        goes_on = replace(goes_on, due_at=due_at) if goes_on is not None else None
        return replace(self, letters=self.letters[:count], goes_on=goes_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A dead letter with the payload of its job: JSON text, as its target would be given it; None where there is none.

    is_payload_gone: it had one, and the payload store has it no more, or nobody can read it.
    """

    letter: DeadLetter
    payload: str | None = None
    is_payload_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFinder:
    """Looks dead letters up. side_by_side: maps a function over items at the same time, answers in order.

    marked_since: since when it is noted which hours have dead letters; None where that is not known.
    """

    wheel: Wheel
    clock: Clock
    dead_letters: DeadLetters
    payloads: PayloadStore
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
    marked_since: Callable[[], datetime | None]

    def inspect(self, letter_id: DeadLetterId) -> Inspected:
        """A dead letter with its payload. Raises DeadLetterNotFound."""
        letter = self.dead_letters.get(letter_id)
        if letter is None:
            raise DeadLetterNotFound(str(letter_id))
        if letter.timer is None:
            return Inspected(letter=letter)
        job = letter.timer.job
        pointer = job.payload.pointer
        try:
            text = unpack(job.payload) if pointer is None else self.payloads.get(pointer)
        except Undecodable:
            return Inspected(letter=letter, is_payload_gone=True)
        if text is None:
            return Inspected(letter=letter, is_payload_gone=pointer is not None)
        return Inspected(
            letter=letter, payload=fill_references(text, job.occurrence) if job.occurrence is not None else text
        )

    def begin(self, wanted: DeadLetterFilter, *, after: str = "") -> Bookmark:
        """Where a request begins: where the one before it has left off, or at the newest. Raises InvalidInput."""
        now = self.clock.now()
        # The clock of whoever wrote a dead letter may be ahead.
        latest, earliest = to_the_millisecond(now + self.wheel.skew), to_the_millisecond(now - DEAD_LETTER_LIFE)
        if after:
            bookmark = _parse_bookmark(after, tenant=wanted.tenant)
            newest = DeadLetterId(tenant=wanted.tenant, dead_at=latest, identity="")
            # Anybody may have made it up: what is read stays within the life of a dead letter.
            return replace(
                bookmark,
                since=max(bookmark.since, earliest),
                before=bookmark.before if bookmark.before.dead_at <= latest else newest,
            )
        since = wanted.since or (wanted.until or now) - USUAL_REACH
        if wanted.until is not None and since >= wanted.until:
            raise InvalidInput("since must be before until: it is the older end")
        return Bookmark(
            since=max(to_the_millisecond(since), earliest),
            before=DeadLetterId(
                tenant=wanted.tenant, dead_at=min(to_the_millisecond(wanted.until or latest), latest), identity=""
            ),
        )

    def find(self, wanted: DeadLetterFilter, *, begin: Bookmark, limit: int) -> DeadLetterPage:
        """At most so many dead letters from a bookmark on; fewer, or none, where so much has to be read for them."""
        letters: list[DeadLetter] = []
        before, since = begin.before, begin.since
        for letter, behind in self._read(before, since):
            if letter is not None and letter.dead_at < since:
                before = replace(before, dead_at=since, identity="")
                break
            before = behind
            if letter is not None and wanted.matches(letter):
                letters.append(letter)
                if len(letters) == limit:
                    break
        reached = Bookmark(since=since, before=before, due_at=begin.due_at)
        return DeadLetterPage(letters=letters, since=since, goes_on=None if reached.is_at_the_end else reached)

    def _read(self, before: DeadLetterId, since: datetime) -> Iterator[tuple[DeadLetter | None, DeadLetterId]]:
        """Dead letters, newest first, each with the place behind it; None at the end of an hour. It may end before `since`."""
        hours, is_all, query_count = self._hours(before, since)
        while hours and query_count < MOST_QUERIES:
            count = min(_HOURS_AT_ONCE, MOST_QUERIES - query_count)
            chunk, hours = hours[:count], hours[count:]
            pages = self.side_by_side(lambda hour: self.dead_letters.page(hour, before=before, limit=_PAGE), chunk)
            query_count += count
            for hour, (letters, has_more) in zip(chunk, pages, strict=True):
                yield from ((letter, letter.letter_id) for letter in letters)
                last, is_unfinished = letters, has_more
                while is_unfinished:
                    if query_count >= MOST_QUERIES:
                        return
                    last, is_unfinished = self.dead_letters.page(hour, before=last[-1].letter_id, limit=_PAGE)
                    query_count += 1
                    yield from ((letter, letter.letter_id) for letter in last)
                yield None, replace(before, dead_at=max(hour, since), identity="")
        if is_all and not hours:
            yield None, replace(before, dead_at=since, identity="")

    def _hours(self, before: DeadLetterId, since: datetime) -> tuple[list[datetime], bool, int]:
        """Hours that may have dead letters, from a place back, newest first; whether it is all; queries for them.

        Where hours are marked, those; where they are not yet, each.
        """
        newest = before.dead_at if before.identity else before.dead_at - MILLISECOND
        if newest < since:
            return [], True, 0
        marked_since = self.marked_since()
        first_marked = _hour_of(marked_since + SURELY_MARKED) + _HOUR if marked_since is not None else _NEVER
        most, query_count = MOST_QUERIES - 1, 0
        hours: list[datetime] = []
        if newest >= first_marked:
            hours, has_more = self.dead_letters.hours(
                before.tenant, since=max(since, first_marked), until=newest, limit=most
            )
            query_count = 1
            if has_more:
                return hours, False, query_count
            newest = first_marked - _HOUR
        hour, oldest = _hour_of(newest), _hour_of(since)
        while hour >= oldest and len(hours) < most:
            hours.append(hour)
            hour -= _HOUR
        return hours, hour < oldest, query_count


def obstacle_of(letter: DeadLetter) -> str:
    """Why a dead letter cannot be replayed, for people; empty when it can."""
    if letter.timer is None:
        return "it holds no job that this version of Tickwheel can read"
    if letter.timer.job.delivery is Delivery.AT_MOST_ONCE:
        # One that could not be promoted. The ledger starts such a job only where it has no row of it.
        return "an at_most_once job is never tried again: submit it anew"
    return ""


def _hour_of(instant: datetime) -> datetime:
    return from_seconds(to_seconds(instant) // _HOUR_SECONDS * _HOUR_SECONDS)


def _parse_bookmark(text: str, *, tenant: str) -> Bookmark:
    problem = InvalidInput("after is not the `next` of an answer: leave it out to begin anew")
    try:
        since, before, due_at, identity = text.split("~", 3)
        if identity and not fits(identity, DEAD_LETTER_IDENTITY):
            raise problem
        return Bookmark(
            since=from_ms(read_base36(since)),
            before=DeadLetterId(tenant=tenant, dead_at=from_ms(read_base36(before)), identity=identity),
            due_at=from_ms(read_base36(due_at)) if due_at else None,
        )
    except (ValueError, OverflowError):
        raise problem from None
