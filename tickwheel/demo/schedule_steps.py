"""The steps of the demo that are about schedules: the herd that they would be, the import, and the wait for their fires."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from rich.text import Text

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, NotStored, Put
from tickwheel.demo.fires import Watched
from tickwheel.demo.narrator import Narrator
from tickwheel.demo.schedules import HOURS, OWN_TENANT, SPREAD, Import, count_loads, import_all
from tickwheel.demo.sink import Sink
from tickwheel.screens.herd import Load, plot

_PATIENCE = timedelta(seconds=120)
_LOOK_SECONDS = 0.25

_ON_ITS_WAY = timedelta(seconds=5)
"""What was due so short a time ago is not expected to have arrived."""

_HOPELESS = 20
"""Schedules in a row that are not taken: then none will be."""

_WIDEST_PLOT = 110


def count_herd(client: Client, schedules: Sequence[NewSchedule], narrator: Narrator) -> Load:
    """Shows how many would fire in each minute without the spread and with it; returns the load with it."""
    narrator.begin("Count their fires", total=2 * len(schedules))
    done = 0

    def account(count: int) -> None:
        nonlocal done
        done += count
        narrator.tell("", done=done)

    before, after = count_loads(client, schedules, on_progress=account)
    narrator.end(f"{after.total:,} in the next {HOURS} hours, {after.mean:.1f} a minute")
    narrator.show(_herd_picture(before, after, width=min(narrator.width, _WIDEST_PLOT)))
    return after


def import_schedules(client: Client, schedules: Sequence[NewSchedule], narrator: Narrator) -> Import:
    """Puts every schedule, and reports why those that never fire are refused. Raises the refusal when none is accepted."""
    narrator.begin("Import the schedules", total=len(schedules))
    done = refused = 0

    def account(result: Put) -> None:
        nonlocal done, refused
        done += 1
        if isinstance(result, NotStored):
            refused += 1
            if refused == done >= _HOPELESS:
                raise result.error
        narrator.tell(f"{refused} refused", done=done)

    imported = import_all(client, schedules, on_progress=account)
    tenant_count = len({schedule.tenant for schedule in imported.stored} - {OWN_TENANT})
    refused_count = len(imported.switched_off)
    narrator.end(
        f"{len(imported.stored):,} schedules of {tenant_count} tenants; {refused_count} refused, as they never fire"
    )
    narrator.show(Text(f"{name}: {reason}", style="dim") for name, reason in imported.switched_off.items())
    return imported


def await_fires(imported: Import, load: Load, sink: Sink, narrator: Narrator) -> Watched:
    """The minutes since the import, once what is expected in them has arrived, or is overdue."""
    watched = Watched.between(imported.ended_at, datetime.now(UTC) - _ON_ITS_WAY, load)
    narrator.begin("Watch the schedules", total=watched.count)
    until = time.monotonic() + _PATIENCE.total_seconds()
    while (arrived := watched.arrived(sink.arrivals)) < watched.count and time.monotonic() < until:
        narrator.tell("fires", done=arrived)
        time.sleep(_LOOK_SECONDS)
    minutes = (watched.until - watched.since) // timedelta(minutes=1)
    narrator.end(f"{arrived:,} of {watched.count:,} fires from {watched.since:%H:%M} UTC on, in {minutes} minutes")
    return watched


def _herd_picture(before: Load, after: Load, *, width: int) -> Iterator[Text]:
    # One height for both, so that the two can be compared.
    peak, minutes = before.peak, SPREAD // timedelta(minutes=1)
    yield Text(f"without a spread: up to {peak:,} in a minute")
    yield from (Text(line, style="red") for line in plot(before, peak=peak, width=width))
    yield Text(f"with a spread of {minutes} minutes, as imported: up to {after.peak:,}")
    yield from (Text(line, style="green") for line in plot(after, peak=peak, width=width))
