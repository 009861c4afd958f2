"""The lives of five schedules, from creation to deletion, and what was seen of them.

To fire takes minutes, so each life passes on a thread of its own while the other tests run. It notes what was asked for and
when that was acknowledged; a target notes what arrived. Nothing is asserted here: test_schedules does that, near the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from functions.domain.instants import MINUTE, SECOND
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import Arrival, Sink, Target
from tickwheel.client import Client
from tickwheel.client.endpoint import LoopbackTransport
from tickwheel.client.fires import Backfill, Difference, Fire
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule, Schedule
from tickwheel.errors import ApiProblem

T = TypeVar("T")


NAMES = ("each-minute", "overlapping", "from-its-end", "on-hold", "far-away")
"""Of the schedules, and of their tenants."""

RHYTHM = timedelta(seconds=20)
PHASE = timedelta(seconds=7)
"""What each-minute is changed to. None of its fires falls on a whole minute, so that old and new ones differ."""

OVERLAPPING = timedelta(seconds=5)
FROM_ITS_END = timedelta(seconds=15)
BACKFILLED = 10

_EPOCH = datetime.fromtimestamp(0, UTC)
_CLEARANCE = timedelta(seconds=12)
"""So long before a fire nothing is asked for: the answer would come after it, and either would be right."""

_PATIENCE = 240.0
_WATCHED_AFTER_DELETE = timedelta(seconds=75)


class Stopped(Exception):
    """The tests are over before this life is."""


@dataclass(frozen=True)
class Done(Generic[T]):
    """Something that was asked for, and its answer. It took effect between the two instants."""

    asked_at: datetime
    acked_at: datetime
    answer: T


@dataclass(frozen=True)
class EachMinute:
    """Of a cron of each minute with overlap forbid, that got another rhythm, was paused, resumed, and deleted."""

    target: Target
    compared: Difference
    created: Done[Schedule]
    previewed: Sequence[Fire]
    compared_edit: Difference
    edited: Done[Schedule]
    paused: Done[Schedule]
    found_paused: Schedule
    resumed: Done[Schedule]
    found_last: Schedule
    deleted: Done[None]
    found_deleted: ApiProblem | None
    watched_until: datetime


@dataclass(frozen=True)
class Overlapping:
    """Of overlap forbid, and a target that answers its first call only after several fires."""

    target: Target
    arrivals_while_held: Sequence[Arrival]
    released_at: datetime
    found: Schedule


@dataclass(frozen=True)
class FromItsEnd:
    """Of an interval from end to start, whose first run takes a while."""

    created: Schedule
    released_at: datetime
    target: Target
    found: Schedule


@dataclass(frozen=True)
class OnHold:
    """Of a paused cron of each minute that was triggered, and whose last ten minutes were backfilled."""

    target: Target
    paused: Done[Schedule]
    triggered: tuple[str, str, str]
    backfilled: Sequence[datetime]
    dry: Backfill
    backfill: Backfill
    repeated: Backfill
    per_minute: int
    found: Schedule


@dataclass(frozen=True)
class FarAway:
    """Of a single fire that is too far ahead for a queue."""

    target: Target
    at: datetime
    alarm: dict[str, Any] | None
    found: Schedule


class Hands:
    """What a life is led with. Everything raises Stopped once the tests are over."""

    def __init__(self, client: Client, sink: Sink, deployment: Deployment, over: threading.Event) -> None:
        self.schedules = client.schedules
        self.sink = sink
        self.deployment = deployment
        self._over = over

    def ask(self, call: Callable[[], T]) -> Done[T]:
        """Do it, and note when."""
        asked_at = datetime.now(UTC)
        answer = call()
        return Done(asked_at, datetime.now(UTC), answer)

    def until(self, instant: datetime) -> None:
        """Wait for an instant."""
        if self._over.wait(max(0.0, (instant - datetime.now(UTC)).total_seconds())):
            raise Stopped

    def until_clear(self, interval: timedelta, phase: timedelta = timedelta(0)) -> None:
        """Wait until no fire of a rhythm is so near that a request might be before or after it."""
        while (following := next_of(interval, phase, after=datetime.now(UTC))) - datetime.now(UTC) < _CLEARANCE:
            self.until(following + SECOND)

    def eventually(self, read: Callable[[], T], holds: Callable[[T], object], *, what: str) -> T:
        """The first reading that holds."""

        def read_on() -> T:
            if self._over.is_set():
                raise Stopped
            return read()

        return eventually(read_on, holds, within=_PATIENCE, what=what)

    def arrivals(self, target: Target, count: int, *, what: str) -> list[Arrival]:
        """What has arrived at a target, once there is so much of it."""
        return self.eventually(lambda: target.arrivals, lambda seen: len(seen) >= count, what=what)

    def delete(self, name: str) -> Done[None]:
        """Delete a schedule."""
        return self.ask(lambda: self.schedules.delete(name, tenant=name))

    def found(self, name: str) -> Schedule:
        """A schedule as it stands."""
        return self.schedules.get(name, tenant=name)


class Lives:
    """The five of them, each led from entry on; `of` waits for one. On exit those that are under way are cut short."""

    def __init__(self, deployment: Deployment, sink: Sink) -> None:
        self._over = threading.Event()
        self._client = Client(deployment.stack.api_endpoint, transport=_OneAtATime())
        self._hands = Hands(self._client, sink, deployment, self._over)
        self._pool = ThreadPoolExecutor(len(NAMES), thread_name_prefix="life")

    def __enter__(self) -> Self:
        self._each_minute = self._pool.submit(each_minute, self._hands)
        self._overlapping = self._pool.submit(overlapping, self._hands)
        self._from_its_end = self._pool.submit(from_its_end, self._hands)
        self._on_hold = self._pool.submit(on_hold, self._hands)
        self._far_away = self._pool.submit(far_away, self._hands)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown(cancel_futures=True)
        self._client.close()

    # Each raises what its life has raised.

    def each_minute(self) -> EachMinute:
        return self._each_minute.result()

    def overlapping(self) -> Overlapping:
        return self._overlapping.result()

    def from_its_end(self) -> FromItsEnd:
        return self._from_its_end.result()

    def on_hold(self) -> OnHold:
        return self._on_hold.result()

    def far_away(self) -> FarAway:
        return self._far_away.result()


class _OneAtATime(LoopbackTransport):
    """A request after the other: for each that comes at the same time as another, a function would be started."""

    def __init__(self) -> None:
        super().__init__(httpx.HTTPTransport())
        self._lock = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            return super().handle_request(request)


def each_minute(hands: Hands) -> EachMinute:
    name, calls, target = "each-minute", hands.schedules, hands.sink.target()
    payload = {
        "index": "{{tickwheel.index}}",
        "nominal_time": "{{tickwheel.nominal_time}}",
        "words": "run {{tickwheel.index}} of {{tickwheel.schedule_id}}",
    }
    schedule = NewSchedule(
        name, tenant=name, cron="* * * * *", overlap="forbid", history=50, target=target.url, payload=payload
    )
    hands.until_clear(MINUTE)
    compared = calls.compare(schedule, count=3)
    created = hands.ask(lambda: calls.put(schedule))
    previewed = calls.preview(name, tenant=name, count=3)
    hands.arrivals(target, 3, what="three fires of a cron of each minute")

    changes = {"cron": None, "every": {"interval": RHYTHM.total_seconds(), "phase": PHASE.total_seconds()}}
    hands.until_clear(MINUTE)
    hands.until_clear(RHYTHM, PHASE)
    compared_edit = calls.compare_patch(name, tenant=name, changes=changes, count=2)
    edited = hands.ask(lambda: calls.patch(name, tenant=name, changes=changes))
    hands.arrivals(target, len(target.arrivals) + 2, what="two fires of the new rhythm")

    hands.until_clear(RHYTHM, PHASE)
    paused = hands.ask(lambda: calls.pause(name, tenant=name, note="the target moves"))
    found_paused = hands.found(name)
    hands.until(paused.acked_at + RHYTHM + 5 * SECOND)
    hands.until_clear(RHYTHM, PHASE)
    resumed = hands.ask(lambda: calls.resume(name, tenant=name, note="it has moved"))
    hands.arrivals(target, len(target.arrivals) + 1, what="a fire after the resume")

    def between_fires() -> Schedule:
        hands.until_clear(RHYTHM, PHASE)
        return hands.found(name)

    # A target has had its call before the worker notes the run's end.
    found_last = hands.eventually(
        between_fires, lambda found: all(run.state != "running" for run in found.runs), what="each run has ended"
    )
    deleted = hands.delete(name)
    watched_until = deleted.acked_at + _WATCHED_AFTER_DELETE
    hands.until(watched_until)
    return EachMinute(
        target,
        compared,
        created,
        previewed,
        compared_edit,
        edited,
        paused,
        found_paused,
        resumed,
        found_last,
        deleted,
        _problem(lambda: hands.found(name)),
        watched_until,
    )


def overlapping(hands: Hands) -> Overlapping:
    # Of a class that few other tests use: it keeps a worker for a while.
    name, target = "overlapping", hands.sink.target(holds=True)
    schedule = NewSchedule(
        name,
        tenant=name,
        every=OVERLAPPING,
        overlap="forbid",
        history=50,
        target=target.url,
        priority="critical",
        timeout=timedelta(seconds=45),
    )
    hands.schedules.put(schedule)
    first = hands.arrivals(target, 1, what="the first fire, whose run is held")[0]
    hands.until(first.at + 3 * OVERLAPPING)
    hands.eventually(lambda: hands.found(name).skips, lambda skips: skips.get("overlap", 0) >= 2, what="two skips")
    arrivals_while_held, released_at = target.arrivals, datetime.now(UTC)
    target.released.set()
    hands.arrivals(target, 2, what="a fire after the run that was held")
    # The slot is free as soon as the ledger knows the end of the run; the schedule's history hears of it a moment later.
    found = hands.eventually(
        lambda: hands.found(name),
        lambda found: any(run.fire_at == first.scheduled_at and run.settled_at is not None for run in found.runs),
        what="the end of the run that was held",
    )
    hands.delete(name)
    return Overlapping(target, arrivals_while_held, released_at, found)


def from_its_end(hands: Hands) -> FromItsEnd:
    name, target = "from-its-end", hands.sink.target(holds=True)
    every = Every(interval=FROM_ITS_END, from_end=True)
    created = hands.schedules.put(NewSchedule(name, tenant=name, every=every, target=target.url))
    first = hands.arrivals(target, 1, what="the first fire, whose run is held")[0]
    hands.until(first.at + 4 * SECOND)
    released_at = datetime.now(UTC)
    target.released.set()
    hands.arrivals(target, 3, what="three fires from end to start")
    found = hands.eventually(
        lambda: hands.found(name),
        lambda found: sum(run.settled_at is not None for run in found.runs) >= 3,
        what="three runs have settled",
    )
    hands.delete(name)
    return FromItsEnd(created, released_at, target, found)


def on_hold(hands: Hands) -> OnHold:
    name, calls, target, per_minute = "on-hold", hands.schedules, hands.sink.target(), 60
    payload = {"fire_time": "{{tickwheel.fire_time}}"}
    hands.until_clear(MINUTE)
    calls.put(NewSchedule(name, tenant=name, cron="* * * * *", target=target.url, payload=payload))
    paused = hands.ask(lambda: calls.pause(name, tenant=name))
    first, again, other = (calls.trigger(name, tenant=name, idempotency_key=key) for key in ("a", "a", "b"))
    hands.arrivals(target, 2, what="two triggered runs")

    end = next_of(MINUTE, timedelta(0), after=datetime.now(UTC) - MINUTE)
    fires = {"start": end - BACKFILLED * MINUTE, "end": end, "per_minute": per_minute}
    dry = calls.backfill(name, tenant=name, dry_run=True, **fires)
    backfill = calls.backfill(name, tenant=name, idempotency_key="c", **fires)
    hands.arrivals(target, 2 + BACKFILLED, what="the runs of a backfill")
    # As after an answer that was lost. Its messages come while other tests run.
    repeated = calls.backfill(name, tenant=name, idempotency_key="c", **fires)
    found = hands.found(name)
    # Paused until the end: whatever arrives after this is one too many.
    return OnHold(
        target,
        paused,
        (first, again, other),
        [end - number * MINUTE for number in range(BACKFILLED, 0, -1)],
        dry,
        backfill,
        repeated,
        per_minute,
        found,
    )


def far_away(hands: Hands) -> FarAway:
    name, target = "far-away", hands.sink.target()
    margin = 45 * SECOND  # for the request, should the functions have to start first
    at = datetime.now(UTC).replace(microsecond=0) + LOCAL_WHEEL.guard + margin
    created = hands.schedules.put(NewSchedule(name, tenant=name, at=at, target=target.url))
    alarm = hands.deployment.alarm_row(name, name, version=created.version, alarm_at=at)
    hands.arrivals(target, 1, what="the fire that was far")
    found = hands.eventually(
        lambda: hands.found(name), lambda found: found.last_outcome == "succeeded", what="its run has settled"
    )
    hands.delete(name)
    return FarAway(target, at, alarm, found)


def next_of(interval: timedelta, phase: timedelta, *, after: datetime) -> datetime:
    """The first fire of a rhythm after an instant."""
    return _EPOCH + phase + ((after - _EPOCH - phase) // interval + 1) * interval


def fires_of(interval: timedelta, phase: timedelta, *, after: datetime, until: datetime) -> list[datetime]:
    """The fires of a rhythm after an instant, up to another."""
    fires: list[datetime] = []
    while (fire := next_of(interval, phase, after=fires[-1] if fires else after)) <= until:
        fires.append(fire)
    return fires


def _problem(call: Callable[[], object]) -> ApiProblem | None:
    try:
        call()
    except ApiProblem as problem:
        return problem
    return None
