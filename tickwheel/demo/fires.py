"""The judgement over the fires of the imported schedules.

watched
    The whole minutes after the import and before the last job had been waited for.
expected
    The fires in the watched minutes by the scheduler's own arithmetic, counted before the import. Those of a schedule from
    end to start cannot be counted.
lost, extra
    Fires that were expected in a minute and had no effect at the sink; or had one, and were not expected.
duplicated
    A fire that had a second effect at the sink, whichever minute it was due in.
early
    A request at the sink before the instant that it names as its own, whichever that was.
lag
    From the instant that a fire of the watched minutes was due to the arrival of its first attempt.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tickwheel.client.schedules import NewSchedule
from tickwheel.demo.judge import counted, named
from tickwheel.demo.schedules import Import
from tickwheel.demo.sink import Arrival
from tickwheel.screens.herd import Load

_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Watched:
    """Whole minutes from `since` up to `until`, and the fires in them by schedule, then minute; of those that were counted."""

    since: datetime
    until: datetime
    expected: Mapping[str, Counter[datetime]]

    @classmethod
    def between(cls, begin: datetime, end: datetime, load: Load) -> "Watched":
        """The whole minutes between two instants; none when there is none."""
        since, until = _EPOCH - (_EPOCH - begin) // _MINUTE * _MINUTE, _minute_of(end)
        return cls(
            since,
            max(since, until),
            {
                result.id: Counter(
                    {
                        minute: count
                        for number, count in result.minutes.items()
                        if since <= (minute := load.start + number * _MINUTE) < until
                    }
                )
                for result in load.counted
            },
        )

    def __contains__(self, instant: datetime) -> bool:
        return self.since <= instant < self.until

    @property
    def count(self) -> int:
        """How many fires are expected."""
        return sum(minutes.total() for minutes in self.expected.values())

    def arrived(self, arrivals: Iterable[Arrival]) -> int:
        """How many of the expected fires have had their effect."""
        by_name = _by_name(arrivals)
        return sum(
            (minutes & _minutes_of(by_name.get(name, ()), self)).total() for name, minutes in self.expected.items()
        )


@dataclass(frozen=True, kw_only=True)
class JudgedSchedule:
    """A schedule and what became of its fires. expected: None where that cannot be known."""

    schedule: NewSchedule
    expected: int | None
    fires: int
    lost: Sequence[datetime]
    extra: Sequence[datetime]
    duplicated: Sequence[datetime]
    early: Sequence[datetime]
    lags: Sequence[timedelta]


@dataclass(frozen=True, kw_only=True)
class FiresVerdict:
    """The judgement. refused: those that never fire. faults: a sentence for each thing that must not have happened."""

    schedules: Sequence[JudgedSchedule]
    refused: int
    faults: Sequence[str]


def judge_fires(imported: Import, watched: Watched, arrivals: Iterable[Arrival]) -> FiresVerdict:
    """Judges fires that are over."""
    by_name = _by_name(arrivals)
    judged = [_judged(schedule, watched, by_name.pop(schedule.id, [])) for schedule in imported.stored]
    return FiresVerdict(
        schedules=judged,
        refused=len(imported.switched_off),
        faults=list(_faults(imported, judged, strangers=sorted(by_name))),
    )


def _judged(schedule: NewSchedule, watched: Watched, arrivals: Sequence[Arrival]) -> JudgedSchedule:
    expected = watched.expected.get(schedule.id)
    arrived = _minutes_of(arrivals, watched)
    effects = Counter(arrival.scheduled_at for arrival in arrivals if arrival.accepted)
    return JudgedSchedule(
        schedule=schedule,
        expected=None if expected is None else expected.total(),
        fires=arrived.total(),
        lost=[] if expected is None else sorted((expected - arrived).elements()),
        extra=[] if expected is None else sorted((arrived - expected).elements()),
        duplicated=sorted(at for at, count in effects.items() if count > 1),
        early=sorted(arrival.scheduled_at for arrival in arrivals if arrival.arrived_at < arrival.scheduled_at),
        lags=sorted(
            max(timedelta(0), arrival.arrived_at - arrival.scheduled_at)
            for arrival in arrivals
            if arrival.attempt == 1 and arrival.scheduled_at in watched
        ),
    )


def _faults(imported: Import, judged: Sequence[JudgedSchedule], *, strangers: Sequence[str]) -> Iterable[str]:
    if imported.failed:
        reasons = [f"{name} ({reason})" for name, reason in imported.failed.items()]
        yield f"{counted(len(reasons), 'schedule')} not imported as it should be: {named(reasons)}"
    for fires_of, words in (
        (lambda each: each.lost, "never arrived"),
        (lambda each: each.extra, "arrived that no schedule has"),
        (lambda each: each.duplicated, "had more than one effect"),
        (lambda each: each.early, "arrived early"),
    ):
        fires = [f"{each.schedule.id} at {at:%H:%M:%S}" for each in judged for at in fires_of(each)]
        if fires:
            yield f"{counted(len(fires), 'fire')} {words}: {named(fires)}"
    if strangers:
        yield f"{counted(len(strangers), 'schedule')} fired without having been imported: {named(strangers)}"


def _by_name(arrivals: Iterable[Arrival]) -> dict[str, list[Arrival]]:
    by_name: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        by_name.setdefault(arrival.name, []).append(arrival)
    return by_name


def _minutes_of(arrivals: Iterable[Arrival], watched: Watched) -> Counter[datetime]:
    """How many different fires had an effect, by the watched minute that they were due in."""
    fires = {arrival.scheduled_at for arrival in arrivals if arrival.accepted}
    return Counter(_minute_of(at) for at in fires if at in watched)


def _minute_of(instant: datetime) -> datetime:
    return _EPOCH + (instant - _EPOCH) // _MINUTE * _MINUTE
