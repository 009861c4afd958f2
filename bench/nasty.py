"""What the definitions cost that cost most: a list of those that once stopped a shard, and ones that are drawn.

One that is taken must find its next fire fast, with caches cold and warm; a request with as many as fit into it must be
answered fast, taken or not. Caches are emptied before what is reported as cold.
"""

import gc
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from holidays.registry import COUNTRIES
from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.budgets import COLD_FIRE, REQUEST, SPARSE_FIRES_A_SECOND, WARM_FIRE
from bench.results import write_result
from bench.schedules import measure
from functions.api.http.problems import Misshapen
from functions.api.http.requests import Rules
from functions.api.schedules.bodies import read_schedule
from functions.api.schedules.fire_counts import FireCountsBody, count_given
from functions.domain.errors import InvalidInput
from functions.domain.instants import MINUTE
from functions.domain.schedules.firing import check_fires, next_fire
from functions.domain.schedules.schedule import Schedule
from functions.domain.targets.targets import AllowedTargets

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
RULES = Rules(now=NOW, allow_plain_http=False, allowed=AllowedTargets(("handler:*",)), max_timeout=timedelta(minutes=1))
DRAWN = 300
SEED = 13
REQUEST_BYTES = 10_000
_TRIES = 3
_MANY = 60
HOLIDAY_SETS = [codes[1] for codes in COUNTRIES.values()]

Definition = dict[str, Any]


def rrule(rule: str, starts_at: str = "2027-01-01T20:00:00") -> Definition:
    return {"rrule": {"rule": rule, "starts_at": starts_at}}


BERLIN = {"timezone": "Europe/Berlin"}
OFFICE = {"days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00"}
A_MINUTE_A_WEEK = {"days": ["mon"], "start": "09:00", "end": "09:01"}
SECONDS = ",".join(map(str, range(60)))
LAST_DAYS = "BYMONTHDAY=25,26,27,28,29,30,31"
A_MONTH = [str((NOW + timedelta(days=day)).date()) for day in range(1, 32)]

NASTY: Mapping[str, Definition] = {
    "count, a minute a year": rrule("FREQ=MINUTELY;COUNT=5000;BYMONTH=11;BYMONTHDAY=23;BYHOUR=3;BYMINUTE=0"),
    "count, every other day": rrule("FREQ=DAILY;INTERVAL=2;COUNT=5000"),
    "count, one of a week": rrule("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=5000"),
    "count, a minute later each day": rrule("FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYMINUTE=0;COUNT=5000"),
    "minutely, Sunday the 29th of February": rrule("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU;BYHOUR=5;BYMINUTE=5"),
    "daily, Sunday the 29th of February": rrule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=SU"),
    "hourly, far apart": rrule("FREQ=HOURLY;INTERVAL=99991;BYMONTH=7"),
    "all minutes and seconds": rrule(f"FREQ=MINUTELY;BYSECOND={SECONDS};BYHOUR=23"),
    "seconds that a clock change skips": {
        **rrule(f"FREQ=MINUTELY;BYMONTH=3;BYDAY=SU;{LAST_DAYS};BYHOUR=2;BYSECOND={SECONDS}"), **BERLIN, "gap": "skip"
    },
    "seconds that a clock change gathers": {
        **rrule(f"FREQ=MINUTELY;BYMONTH=3;BYDAY=SU;{LAST_DAYS};BYHOUR=2;BYSECOND={SECONDS}"), **BERLIN, "gap": "next_valid"
    },
    "minutes that a clock change skips": {"cron": "0-59 2 25-31 3 */7", **BERLIN, "gap": "skip"},
    "a day of a month that is never": rrule("FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30"),
    "last of a set that is smaller": rrule("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6"),
    "cron, fifth Monday of February": {"cron": "0 0 */2 2 mon#5"},
    "cron, last weekday": {"cron": "0 0 LW * *"},
    "cron that its windows never meet": {"cron": "0 20 * * *", "windows": [OFFICE], **BERLIN},
    "cron on days that its windows never meet": {"cron": "0 9 * * sat", "windows": [OFFICE], **BERLIN},
    "interval that its windows never meet": {"every": {"interval": "P1D", "phase": "PT20H"}, "windows": [OFFICE], **BERLIN},
    "rule that its windows never meet": {**rrule("FREQ=MINUTELY;INTERVAL=1440"), "windows": [OFFICE], **BERLIN},
    "holidays only": {"cron": "0 9 25 12 *", "calendar": {"holidays": ["DE"]}},
    "a minute of a week": {"cron": "* * * * *", "windows": [A_MINUTE_A_WEEK], "window_mode": "defer", **BERLIN},
    "a minute of a week, some of them excluded": {
        "cron": "* * * * *",
        "windows": [A_MINUTE_A_WEEK],
        "window_mode": "defer",
        "calendar": {"exclude": ["2027-03-08", "2027-03-15", "2027-03-22", "2027-03-29"]},
        **BERLIN,
    },
    "a second of all that meets a minute a week": {"every": 1, "windows": [A_MINUTE_A_WEEK], **BERLIN},
    "interval that seldom meets its window": {"every": "PT24H1M", "windows": [A_MINUTE_A_WEEK], **BERLIN},
    "hourly over a month of excluded dates": {
        "cron": "0 * * * *",
        "calendar": {"exclude": A_MONTH, "roll": "after"},
        **BERLIN,
    },
    "hourly back over a month of excluded dates": {
        "cron": "0 * * * *",
        "calendar": {"exclude": A_MONTH, "roll": "before"},
        **BERLIN,
    },
    "holidays only, of ten sets": {
        "cron": "0 9 25 12 *",
        "calendar": {"holidays": ["TH", "XSHE", "IR", "MV", "VN", "IL", "TR", "SA", "CN", "DE"]},
    },
    "ten sets of holidays": {
        "cron": "0 9 * * *",
        "calendar": {
            "holidays": ["US-CA", "CH-ZH", "MY", "AU-NSW", "IN", "ES-MD", "CA-QC", "IR", "DE-BY", "NYSE"],
            "roll": "after",
        },
        **BERLIN,
    },
    "events that seldom meet their window": {"poisson": {"per_day": 1}, "windows": [A_MINUTE_A_WEEK], "window_mode": "skip"},
    "events that wait for a week": {"poisson": {"per_day": 1440}, "windows": [A_MINUTE_A_WEEK], "window_mode": "defer"},
    "from end to start": {"every": {"interval": 1, "from": "end"}, "windows": [A_MINUTE_A_WEEK], **BERLIN},
}  # fmt: skip

SPARSE: Mapping[str, Definition] = {
    "rrule, a date of a year": {**rrule("FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=23"), **BERLIN},
    "rrule, a weekday of a year": {**rrule("FREQ=YEARLY;BYDAY=20MO"), **BERLIN},
    "rrule, a week of a year": {**rrule("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO"), **BERLIN},
    "rrule, the 29th of February": {**rrule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29"), **BERLIN},
    "rrule, Friday the 13th": {**rrule("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"), **BERLIN},
    "rrule, last working day": {**rrule("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"), **BERLIN},
    "cron, last day of the month": {"cron": "30 2 L * *", **BERLIN},
    "cron, working day nearest to the 15th": {"cron": "30 2 15W * *", **BERLIN},
    "cron, last Friday": {"cron": "30 2 * * friL", **BERLIN},
    "cron, the 29th of February": {"cron": "0 0 29 2 *", **BERLIN},
}


def run(console: Console) -> list[str]:
    """Measure, print, write nasty.json; a sentence for each figure that breaks its budget."""
    definitions = {**NASTY, **{f"drawn {number}": drawn for number, drawn in enumerate(draw(SEED, DRAWN))}}
    progress = track(definitions.items(), description="definitions", console=console, transient=True)
    taken = {name: found for name, definition in progress if (found := _fire_of(definition)) is not None}
    progress = track(requests(definitions).items(), description="requests", console=console, transient=True)
    asked = {name: _best(lambda body=body: _count(body)) for name, body in progress}
    sparse = {name: measure(_read(definition)) for name, definition in SPARSE.items()}
    _print(console, taken, asked, sparse, refused=len(definitions) - len(taken))
    worst = {
        "cold_next_fire_ms": _worst({name: cold for name, (cold, _) in taken.items()}),
        "warm_next_fire_ms": _worst({name: warm for name, (_, warm) in taken.items()}),
        "request_ms": _worst(asked),
    }
    rates = {name: round(rate) for name, rate in sparse.items()}
    write_result(
        "nasty.json", {"taken": len(taken), "refused": len(definitions) - len(taken), **worst, "sparse": rates}
    )
    return [
        *_over("cold next fire", {name: cold for name, (cold, _) in taken.items()}, COLD_FIRE),
        *_over("warm next fire", {name: warm for name, (_, warm) in taken.items()}, WARM_FIRE),
        *_over("request", asked, REQUEST),
        *(
            f"{name}: {rate:,.0f} next fires a CPU second, below the budget of {SPARSE_FIRES_A_SECOND:,}"
            for name, rate in sparse.items()
            if rate < SPARSE_FIRES_A_SECOND
        ),
    ]


def draw(seed: int, count: int) -> Iterator[Definition]:
    """Definitions as somebody might write them who means no good; the same for the same seed."""
    pick = random.Random(seed)
    for _ in range(count):
        definition = dict(pick.choice((_drawn_rrule, _drawn_cron, _drawn_interval, _drawn_events))(pick))
        if pick.random() < 0.6:
            start = pick.randrange(24 * 60)
            end = (start + pick.choice((1, 1, 30, 480))) % (24 * 60)
            days = pick.sample(("mon", "tue", "wed", "thu", "fri", "sat", "sun"), pick.randint(1, 7))
            definition["windows"] = [{"days": days, "start": _clock(start), "end": _clock(end)}]
            definition["window_mode"] = pick.choice(("skip", "defer"))
        if pick.random() < 0.4:
            first = NOW.date() + timedelta(days=pick.randint(-5, 60))
            definition["calendar"] = {
                "exclude": [str(first + timedelta(days=day)) for day in range(pick.choice((0, 7, 40, 400)))],
                "holidays": pick.sample(("DE", "US", "MY", "NYSE"), pick.randint(0, 2)),
                "weekends": pick.random() < 0.5,
                "roll": pick.choice(("skip", "before", "after")),
            }
        yield {**definition, "timezone": pick.choice(("UTC", "Europe/Berlin", "Africa/Casablanca", "Asia/Kolkata"))}


def requests(definitions: Mapping[str, Definition]) -> dict[str, FireCountsBody]:
    """Bodies of `:fires` of up to REQUEST_BYTES: of one kind as many as fit, and all kinds together."""
    found = {
        name: [varied(definition, number) for number in range(_MANY)]
        for name, definition in definitions.items()
        if name in NASTY
    }
    found["minutely crons"] = [{"cron": "* * * * *"}] * 100
    found["drawn"] = [definition for name, definition in definitions.items() if name not in NASTY]
    return {name: _body(given) for name, given in found.items()}


def varied(definition: Definition, number: int) -> Definition:
    """A definition of the same kind: what a process remembers of the others with smaller numbers is of no use for it."""
    found = dict(definition)
    if "rrule" in found:
        starts_at = datetime.fromisoformat(found["rrule"]["starts_at"]) + number * MINUTE
        found["rrule"] = {**found["rrule"], "starts_at": starts_at.isoformat()}
    minute, _, fields = found.get("cron", "").partition(" ")
    if minute == "0":
        found["cron"] = f"{number} {fields}"
    if "windows" in found:
        found["windows"] = [
            {**window, **{name: _later(window[name], number) for name in ("start", "end")}}
            for window in found["windows"]
        ]
    sets = found.get("calendar", {}).get("holidays", ())
    if number and sets:
        # The last one stays: it may be what leaves no date.
        places = range(number * len(sets), (number + 1) * len(sets) - 1)
        others = [HOLIDAY_SETS[place % len(HOLIDAY_SETS)] for place in places]
        found["calendar"] = {**found["calendar"], "holidays": [*others, sets[-1]]}
    elif "calendar" in found:
        excluded = [*found["calendar"].get("exclude", ()), str(NOW.date() - timedelta(days=number + 1))]
        found["calendar"] = {**found["calendar"], "exclude": excluded}
    return found


def _later(clock: str, minutes: int) -> str:
    hour, minute = map(int, clock.split(":"))
    return _clock((hour * 60 + minute + minutes) % (24 * 60))


def _body(definitions: Sequence[Definition]) -> FireCountsBody:
    written: list[Definition] = []
    size = 0
    for number, definition in enumerate(definitions):
        named = {"tenant": "acme", "id": f"s{number}", **definition, "job": {"target": "handler:echo"}}
        size += len(json.dumps(named)) + 2
        if written and (size > REQUEST_BYTES or len(written) == 100):
            break
        written.append(named)
    return FireCountsBody.model_validate({"schedules": written, "hours": 48}, context=RULES)


def _count(body: FireCountsBody) -> None:
    _empty_caches()
    count_given(body, RULES, start=NOW)


def _fire_of(definition: Definition) -> tuple[float, float] | None:
    """Seconds of CPU for the next fire, with caches cold and warm; None for what is refused."""
    try:
        schedule = _read(definition)
        check_fires(schedule, now=NOW)
    except (InvalidInput, Misshapen):
        return None

    def cold() -> None:
        _empty_caches()
        next_fire(schedule, after=NOW)

    return _best(cold), _best(lambda: next_fire(schedule, after=NOW))


def _read(definition: Definition) -> Schedule:
    return read_schedule({**definition, "job": {"target": "handler:echo"}}, RULES).schedule("acme", "nasty")


def _best(act: Callable[[], object]) -> float:
    """The least of some tries: what the machine does beside it only adds."""
    best = float("inf")
    gc.collect()
    for _ in range(_TRIES):
        began = time.process_time()
        act()
        best = min(best, time.process_time() - began)
    return best


def _empty_caches() -> None:
    """As in a process that has just started, but for what it imports."""
    for name, module in list(sys.modules.items()):
        if name.startswith("functions."):
            for member in list(vars(module).values()):
                if callable(clear := getattr(member, "cache_clear", None)):
                    clear()


def _drawn_rrule(pick: random.Random) -> Definition:
    freq = pick.choice(("YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"))
    parts = [f"FREQ={freq}", f"INTERVAL={pick.choice((1, 1, 2, 7, 60, 1440, 1441, 99991))}"]
    if pick.random() < 0.5:
        parts.append(f"BYMONTH={pick.randint(1, 12)}")
    if freq != "WEEKLY" and pick.random() < 0.5:
        parts.append(f"BYMONTHDAY={pick.choice((1, 13, 29, 30, 31, -1, -31))}")
    if pick.random() < 0.5:
        parts.append(f"BYDAY={pick.choice(('MO', 'SA,SU', 'TU,TH', 'MO,TU,WE,TH,FR'))}")
    if pick.random() < 0.5:
        parts.append(f"BYHOUR={pick.randint(0, 23)}")
    if pick.random() < 0.5:
        parts.append(f"BYMINUTE={pick.randint(0, 59)}")
    if pick.random() < 0.3:
        parts.append(f"BYSECOND={pick.choice(('30', '0,20,40', SECONDS))}")
    if pick.random() < 0.3 and len(parts) > 2:
        parts.append(f"BYSETPOS={pick.choice((1, -1, 2, 366))}")
    if pick.random() < 0.4:
        parts.append(f"COUNT={pick.choice((1, 400, 5000))}")
    definition = rrule(";".join(parts), f"2027-01-0{pick.randint(1, 9)}T0{pick.randint(0, 9)}:00:00")
    if pick.random() < 0.4:
        definition |= {"gap": pick.choice(("skip", "next_valid")), "fold": pick.choice(("first", "second", "both"))}
    return definition


def _drawn_cron(pick: random.Random) -> Definition:
    minute, hour = pick.choice(("*", "0", "*/7", "59")), pick.choice(("*", "3", "*/5", "23"))
    day, month = pick.choice(("*", "L", "31", "29", "15W", "*/2")), pick.choice(("*", "2", "11", "*/5"))
    return {"cron": f"{minute} {hour} {day} {month} {pick.choice(('*', 'mon', 'mon#5', 'sat,sun', 'friL'))}"}


def _drawn_interval(pick: random.Random) -> Definition:
    interval = pick.choice((1, 60, 1_000, 86_400, 86_460, 604_860, 10_000_019))
    return {"every": {"interval": interval, "phase": pick.randrange(interval)}}


def _drawn_events(pick: random.Random) -> Definition:
    return {"poisson": {"per_day": pick.choice((0.01, 1, 24, 240, 1440))}}


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _worst(seconds: Mapping[str, float]) -> dict[str, Any]:
    name = max(seconds, key=lambda name: seconds[name])
    return {"of": name, "ms": round(1_000 * seconds[name], 2)}


def _over(what: str, seconds: Mapping[str, float], budget: timedelta) -> list[str]:
    return [
        f"{name}: {what} takes {1_000 * found:.1f} ms of CPU, above the budget of {budget / timedelta(milliseconds=1):g}"
        for name, found in seconds.items()
        if found > budget.total_seconds()
    ]


def _print(
    console: Console,
    taken: Mapping[str, tuple[float, float]],
    asked: Mapping[str, float],
    sparse: Mapping[str, float],
    *,
    refused: int,
) -> None:
    table = Table(title=f"Nasty definitions: {len(taken)} taken, {refused} refused; ms of CPU", box=SIMPLE)
    for heading in ("definition", "next fire, cold", "warm", "a request full of it"):
        table.add_column(heading, justify="left" if heading == "definition" else "right")
    for name in dict.fromkeys((*(name for name in NASTY), *asked)):
        cold, warm = taken.get(name, (None, None))
        times = (cold, warm, asked.get(name))
        table.add_row(name, *("" if found is None else f"{1_000 * found:.2f}" for found in times))
    console.print(table)
    for name, rate in sparse.items():
        console.print(f"{name}: {rate:,.0f} next fires a CPU second")
