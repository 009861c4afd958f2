"""The composition root: what each Lambda is made of, built once a cold start."""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol

from functions.adapters.dynamodb.tenant_data import StoredTenantData
from functions.adapters.system_clock import SystemClock
from functions.adapters.targets.address_check import AddressCheck
from functions.adapters.targets.allowed import AllowedCaller
from functions.adapters.targets.caller import TargetCaller
from functions.adapters.targets.handlers import Handler
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.targets import Targets
from functions.runtime.adapters import Adapters
from functions.runtime.container import Built, Container
from functions.runtime.observability import PowertoolsJournal
from functions.runtime.settings import FunctionSettings
from functions.services.stage.conditions import KnownConditions
from functions.services.telemetry.audit_trail import Trail
from functions.services.telemetry.pulse import PulseTally
from functions.services.telemetry.usage import UsageTally
from functions.services.tenants.plans import KnownPlans

_BATCH = 10
_ENDERS = 16
_JOB_IDENTITY_BYTES = 8
"""Their checks distinguish jobs, too, unless they are due in the same millisecond: of those, 2^32 of a tenant have two alike."""


def _shared(name: str, wanted: type[Built]) -> cached_property[Built]:
    """The part of this name, as all have it that are built."""
    return cached_property(lambda wiring: wiring.part(name, wanted))


class FlushedJournal(Journal, Protocol):
    """A journal that keeps metrics until the end of an invocation."""

    def flush(self) -> None:
        """Hand over what was collected."""
        ...


class Wiring(Adapters):
    """One Lambda: its adapters and its parts.

    parts: what it has beside the services. handlers: Python functions that jobs of a worker call. clock, journal: others
    than those of a Lambda. around_targets: what stands between jobs and all that they call.
    """

    plans = _shared("plans", KnownPlans)
    conditions = _shared("conditions", KnownConditions)
    tally = _shared("tally", UsageTally)
    pulse = _shared("pulse", PulseTally)

    def __init__(
        self,
        settings: FunctionSettings,
        *,
        parts: Mapping[str, type] = MappingProxyType({}),
        handlers: Mapping[str, Handler] = MappingProxyType({}),
        clock: SystemClock | None = None,
        journal: FlushedJournal | None = None,
        around_targets: Callable[[Targets], Targets] | None = None,
    ) -> None:
        super().__init__(settings, clock=clock)
        self.journal: FlushedJournal = journal or PowertoolsJournal(settings.WATCHING)
        self._handlers = handlers
        self._around_targets = around_targets
        self._container = Container(_Given(self), parts=parts)

    def build(self, wanted: type[Built], **special: Any) -> Built:
        """Something of its parts. special: what it is given in place of what has the name of its field."""
        return self._container.build(wanted, **special)

    def __getitem__(self, name: str) -> Any:
        """The one part of this name, as all have it that are built. Raises KeyError."""
        return self._container[name]

    def part(self, name: str, wanted: type[Built]) -> Built:
        """The one part of this name, as all have it that are built."""
        part = self._container[name]
        assert isinstance(part, wanted)
        return part

    @cached_property
    def audit(self) -> AuditTrail:
        """Keeps what has happened."""
        return Trail(clock=self.clock, stream=self.audit_stream, journal=self.journal, identity=identity)

    @cached_property
    def tenant_data(self) -> StoredTenantData:
        """All that is stored of tenants."""
        return StoredTenantData(
            s3=self._s3,
            bucket=self.setting("PAYLOAD_BUCKET"),
            timer_rows=self.table("TIMERS"),
            ledger_rows=self.table("LEDGER"),
            schedule_rows=self.table("SCHEDULES"),
            state_rows=self.table("SCHEDULE_STATE"),
            tenant_rows=self.table("TENANTS"),
            dead_letter_rows=self.table("DEAD_LETTERS"),
            wheel=self.wheel,
            clock=self.clock,
            plans=self.plans,
            marks=self.marks,
        )

    @cached_property
    def targets(self) -> Targets:
        """What jobs call."""
        addresses = AddressCheck(self.setting("ALLOWED_NETWORKS"))
        caller = TargetCaller(self._handlers, clock=self.clock, addresses=addresses, keys=self.webhook_keys)
        targets = AllowedCaller(caller, allowed=self.setting("ALLOWED_TARGETS"))
        return targets if self._around_targets is None else self._around_targets(targets)

    def confirm(self) -> None:
        """Check the constants against those recorded at the first deploy. Raises WheelChanged."""
        self.shards.confirm(self.wheel, clock=self.clock)

    def flush(self) -> None:
        """Hand over what an invocation has collected, before it is acknowledged: audit lines and counts, and then metrics."""
        self._at_once(self.audit.flush, self.tally.flush, self.pulse.flush)
        self.journal.flush()

    def write_counts(self) -> None:
        """Hand over counts."""
        self._at_once(self.tally.flush, self.pulse.flush)

    def _at_once(self, *flushes: Callable[[], None]) -> None:
        # Each may wait for another service, and an invocation waits for all of them.
        self.map_side_by_side(lambda flush: flush(), flushes)

    def run_side_by_side(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run the jobs of a batch at the same time, and wait for all."""
        for done in [self._runners.submit(job) for job in jobs]:
            done.result()

    @contextmanager
    def repeats(self, act: Callable[[], None], /, *, first_after: timedelta, period: timedelta) -> Iterator[None]:
        """Call a function again and again while this is entered, in a thread of its own."""
        is_over = threading.Event()

        def repeat() -> None:
            wait = first_after
            while not is_over.wait(wait.total_seconds()):
                act()
                wait = period

        threading.Thread(target=repeat, name="repeat", daemon=True).start()
        try:
            yield
        finally:
            # Not waited for: a call that has begun is of no more use, and does no harm.
            is_over.set()

    def map_side_by_side(self, rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Map a function that waits for the network; the answers in order."""
        return list(self._senders.map(rule, items)) if len(items) > 1 else [rule(item) for item in items]

    def end_side_by_side(self, end: Callable[[Any], Any], members: Sequence[Any]) -> list[Any]:
        """Map what ends a job over those of a release. In threads of its own: each of them may wait for the others."""
        return list(self._enders.map(end, members)) if len(members) > 1 else [end(member) for member in members]

    @cached_property
    def _enders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_ENDERS, thread_name_prefix="end")

    @cached_property
    def _runners(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_BATCH, thread_name_prefix="run")


class _Given:
    """What a wiring gives to fields, by their names."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    def __contains__(self, name: object) -> bool:
        return name in _GIVEN

    def __getitem__(self, name: str) -> Any:
        return _GIVEN[name](self._wiring)


def token() -> str:
    """A fresh owner token: unique, and short because it stands in every ledger row."""
    return uuid.uuid4().hex[:16]


def identity() -> str:
    """A fresh random identity."""
    return uuid.uuid4().hex


def job_identity() -> str:
    """A fresh random identity of a job: with its check behind it as long as any other."""
    return os.urandom(_JOB_IDENTITY_BYTES).hex()


jitter = random.random
"""A random number from 0 up to 1."""

_SAME = (
    "audit",
    "breaker_store",
    "clock",
    "collections",
    "dead_letters",
    "deletions",
    "exports",
    "flows",
    "journal",
    "ledger",
    "operations",
    "payloads",
    "pending_store",
    "permits",
    "pulses",
    "rates",
    "ready",
    "results",
    "tenant_data",
    "schedules",
    "shards",
    "targets",
    "tenants",
    "timers",
    "usage_store",
    "waker",
    "wheel",
)

_GIVEN: Mapping[str, Callable[[Wiring], Any]] = {
    **{name: attrgetter(name) for name in _SAME},
    "capacity": attrgetter("settings.READY_CAPACITY"),
    "id_secret": attrgetter("plans.id_secret"),
    "identity": lambda _: job_identity,
    "end_side_by_side": attrgetter("end_side_by_side"),
    "jitter": lambda _: jitter,
    "lag_objective": lambda wiring: timedelta(milliseconds=wiring.setting("LAG_OBJECTIVE_MS")),
    "marked_since": attrgetter("conditions.marked_since"),
    "pending": attrgetter("tally"),
    "side_by_side": attrgetter("map_side_by_side"),
    "skew": attrgetter("wheel.skew"),
    "stage_plans": attrgetter("settings.PLANS"),
    "repeats": attrgetter("repeats"),
    "token": lambda _: token,
    "usage": attrgetter("tally"),
}
"""By the names of fields."""
