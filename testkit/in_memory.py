"""A whole scheduler in one process and in memory, on time that a test moves on, behind the client that its users have.

Every decision is made by the code that a deployment runs: the API with its routes and refusals, the scanner, the worker,
the sweeper, operations. In place of AWS stand the fakes that pass the same contract tests as its adapters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import Any, Self

from botocore.credentials import Credentials

from functions.api.app import app_of
from functions.dead_letters.dead_message import DeadMessageHandler
from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.far_ring.timer_record import decode_envelope, decode_timer
from functions.domain.instants import MINUTE, SECOND, from_seconds
from functions.domain.jobs.claims import MESSAGE_LIFE
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import TERMINAL
from functions.domain.targets.handler_names import BUILT_IN, HandlerNames
from functions.domain.tenants.plan import DEFAULT_PLAN, Limits
from functions.domain.wheel import Wheel
from functions.operations.executor import OperationExecutor
from functions.runtime.container import Container
from functions.runtime.settings import ApiSettings
from functions.scanner.scan import Scanner
from functions.sweeper.collections import CollectionOpener
from functions.sweeper.heal import Healer
from functions.sweeper.publish import Publisher
from functions.sweeper.rooms import RoomOpener
from functions.sweeper.sweep import Sweeper
from functions.worker.execute import Worker
from functions.worker.handlers import HANDLERS as OWN_HANDLERS
from functions.worker.user_handlers import as_registered
from testkit import fakes
from testkit.fakes.ready_queue import received
from testkit.in_process_api import InProcess, api_settings
from testkit.parts import PARTS
from testkit.virtual_targets import Answer, Call, Respond, VirtualTargets
from tickwheel.client import AsyncClient, Client
from tickwheel.client.backoff import Backoff
from tickwheel.handlers import HANDLERS
from tickwheel.handlers import Invocation as RegisteredInvocation

__all__ = ["Answer", "Call", "Scheduler", "Waiting"]

_ENDPOINT = "https://scheduler.invalid"
_REGION = "us-east-1"
_KEY = Credentials("test", "test")
_CAPACITY = 1_000_000
_NEVER_SHED = timedelta(days=3650)

WHEEL = Wheel(bucket=MINUTE, lookahead=2 * MINUTE, skew=5 * SECOND, guard=4 * MINUTE, write_shards=1, scan_shards=1)
_AHEAD = WHEEL.lookahead + MINUTE
"""Before the next thing that is due: time passes minute by minute from there."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job that has not run to its end yet. attempt: the one that comes next, from 1."""

    job_id: str
    tenant: str
    target: str
    due_at: datetime
    attempt: int


class Scheduler:
    """Use it as a context manager, or close it.

    now: the time at which it begins; the present second if it is None. plans: limits of tenants by the names of plans, as a stage has
    them. Time stands still but for `advance`, and while the client waits for a retry of its own.

    Jobs run what is registered with `tickwheel.handlers.handler` in the process of the test. From the first of those on, a job that
    names another handler is refused, as a deployment refuses it.

    What it does not have: signatures and roles (every caller is an operator), the deletion of a tenant's data, files and queues
    that bring jobs, and the log lines and metrics of a deployment.
    """

    def __init__(
        self, *, now: datetime | None = None, plans: Mapping[str, Limits] = MappingProxyType({DEFAULT_PLAN: {}})
    ) -> None:
        self._clock = fakes.FakeClock((now or datetime.now(UTC).replace(microsecond=0)).astimezone(UTC))
        self._targets = VirtualTargets(self._clock, registered=_registered)
        self._ready = fakes.InMemoryReadyQueue(self._clock)
        letters = fakes.InMemoryDeadLetters()
        self._ledger = fakes.InMemoryLedger(skew=WHEEL.lease_skew, dead_letters=letters)
        self._timers = fakes.InMemoryTimerStore(wheel=WHEEL, ledger=self._ledger, clock=self._clock)
        self._operations = fakes.InMemoryOperationStore()
        self._tokens = itertools.count(1)
        self._failures: list[Exception] = []
        settings = api_settings(WHEEL, plans)
        given = _Given(self._given(letters, settings))
        self._parts = parts = given.parts = Container(given, parts=PARTS)
        self._scanner = parts.build(Scanner)
        self._worker = parts.build(Worker, side_by_side=lambda jobs: [job() for job in jobs])
        self._burier = parts.build(DeadMessageHandler)
        self._executor = parts.build(OperationExecutor)
        healer, sweeper = parts.build(Healer), parts.build(Sweeper, sample=1.0)
        self._sweeps: tuple[Callable[[], object], ...] = (
            parts.build(Publisher, shed_after=_NEVER_SHED).publish,
            parts.build(RoomOpener).sweep,
            parts.build(CollectionOpener).sweep,
            lambda: healer.heal(time_limit=MINUTE),
            lambda: sweeper.sweep(time_limit=MINUTE),
            parts["tally"].flush,
            parts["pulse"].flush,
        )
        app = app_of(
            parts,
            settings,
            webhook_keys=fakes.GivenWebhookKeys(),
            handlers=self._handler_names,
            document=lambda: "{}",
            report=self._failures.append,
        )
        self._transport = InProcess(app.resolver.resolve, self._failures, parts["plans"].one_revision)
        self.client = Client(
            _ENDPOINT, region=_REGION, credentials=_KEY, transport=self._transport, backoff=self._backoff
        )
        """The client, as of any deployment."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client."""
        self.client.close()

    def async_client(self) -> AsyncClient:
        """A client for code on an event loop, which closes it."""
        return AsyncClient(
            _ENDPOINT, region=_REGION, credentials=_KEY, transport=self._transport, backoff=self._backoff
        )

    @property
    def now(self) -> datetime:
        """What time it is."""
        return self._clock.instant

    @property
    def calls(self) -> Sequence[Call]:
        """All calls of targets, in the order in which they were made."""
        return tuple(self._targets.calls)

    def calls_of(self, target: str) -> list[Call]:
        """Those of one target."""
        return [call for call in self._targets.calls if call.target == target]

    def waiting(self, *, tenant: str | None = None) -> list[Waiting]:
        """The jobs that are still to run, those of one tenant or all, by the time at which they are due.

        Without what waits inside of a flow or a collection.
        """
        found: dict[str, Timer] = {}
        for timer in self._timers_ahead():
            known = found.get(timer.job.key)
            if known is None or known.attempt < timer.attempt:
                found[timer.job.key] = timer
        listed = [
            Waiting(
                job_id=str(job_id_of(timer.job)),
                tenant=timer.job.tenant,
                target=timer.job.target,
                due_at=timer.due_at,
                attempt=timer.attempt,
            )
            for timer in found.values()
            if tenant in (None, timer.job.tenant) and not self._has_ended(timer)
        ]
        return sorted(listed, key=lambda each: (each.due_at, each.job_id))

    def answer(self, target: str, respond: Respond | Answer) -> None:
        """What a target answers from now on: an Answer, or a function of the Call, whose value is answered with 200.

        A function may return an Answer, and fails the attempt by raising; a failed assertion in it fails the test.
        """
        self._targets.responds[target] = (lambda _: respond) if isinstance(respond, Answer) else respond

    def handler(self, name: str) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
        """Register a function for `handler:NAME`: it takes the payload and the invocation, as in a worker."""

        def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
            self._targets.handlers[name] = function
            return function

        return register

    def advance(self, duration: timedelta = timedelta(0), /, **units: float) -> list[Call]:
        """Let time pass, a timedelta or its units (`advance(days=30)`); the calls that were made meanwhile, in their order.

        Raises what was wrong in an assertion of a target's function, and what the scheduler itself failed with.
        """
        return self.advance_to(self.now + duration + timedelta(**units))

    def advance_to(self, instant: datetime) -> list[Call]:
        """Let time pass up to an instant. As `advance`; ValueError for one that is over."""
        if instant < self.now:
            raise ValueError(f"it is {self.now.isoformat()}: time does not go back to {instant.isoformat()}")
        seen = len(self._targets.calls)
        self._pass(instant - self.now)
        return self._targets.calls[seen:]

    def _handler_names(self) -> HandlerNames | None:
        """What jobs may name: unknown where the test has registered nothing, and so neither has a deployment."""
        if not HANDLERS:
            return None
        answered = {name for target in self._targets.responds if (name := target.removeprefix("handler:")) != target}
        return HandlerNames({*BUILT_IN, *HANDLERS, *self._targets.handlers, *answered})

    def _pass(self, duration: timedelta) -> None:
        end = self.now + duration
        while self.now < end:
            if (idle := self._next_at(end) - _AHEAD) > self.now:
                self._clock.tick(min(idle, end) - self.now)
                continue
            self._tick()
            self._work_until(min(self.now + MINUTE, end))
            if self._targets.broken:
                raise self._targets.broken.pop(0)

    @property
    def _backoff(self) -> Backoff:
        def sleep(seconds: float) -> None:
            self._pass(timedelta(seconds=seconds))

        async def async_sleep(seconds: float) -> None:
            sleep(seconds)

        return Backoff(sleep=sleep, async_sleep=async_sleep)

    def _next_at(self, end: datetime) -> datetime:
        """Before which there is nothing to do."""
        if self._operations.open(limit=1):
            return self.now
        ahead = [message.visible_at for message in self._ready.messages.values()]
        ahead += [from_seconds(bucket) for bucket, _ in self._timers.rows if from_seconds(bucket + 60) > self.now]
        return min(ahead, default=end + _AHEAD)

    def _tick(self) -> None:
        """What is called each minute."""
        for shard in range(WHEEL.scan_shards):
            self._scanner.scan(shard, time_limit=MINUTE)
        for sweep in self._sweeps:
            sweep()
        self._executor.carry_on(time_limit=MINUTE)
        self._ledger.expire(self.now)
        self._timers.expire(self.now)

    def _work_until(self, instant: datetime) -> None:
        """Each message at the instant at which it becomes visible."""
        while self._ready.messages:
            visible_at = min(message.visible_at for message in self._ready.messages.values())
            if visible_at > instant:
                break
            self._clock.tick(max(timedelta(0), visible_at - self.now))
            messages = [received(message) for message in self._ready.receive()]
            returned = self._worker.execute(messages, ends_at=self.now + MINUTE)
            for message in messages:
                if message.message_id not in returned:
                    self._ready.delete(message.message_id)
            self._bury()
        self._clock.tick(instant - self.now)

    def _bury(self) -> None:
        while self._ready.dead:
            dead = self._ready.dead.pop()
            self._burier.bury(
                dead.body, message_id=dead.message_id, seen_at=dead.sent_at, receive_count=dead.receive_count
            )
        for message in list(self._ready.messages.values()):
            if message.sent_at + MESSAGE_LIFE <= self.now:
                self._ready.delete(message.message_id)

    def _timers_ahead(self) -> Iterator[Timer]:
        for message in self._ready.messages.values():
            yield from decode_envelope(message.body)
        for (bucket, _), rows in self._timers.rows.items():
            if from_seconds(bucket) + MINUTE > self.now:
                for key, record in rows.items():
                    if not is_alarm_key(key):
                        yield decode_timer(record, tenant=key.split("#")[1])

    def _has_ended(self, timer: Timer) -> bool:
        row = self._ledger.get(timer.job.key)
        return row is not None and row.state in TERMINAL

    def _given(self, letters: fakes.InMemoryDeadLetters, settings: ApiSettings) -> dict[str, Any]:
        """By the names of the fields that ask for them."""
        return {
            "audit": fakes.DiscardingAudit(),
            "breaker_store": fakes.InMemoryBreakerStore(),
            "capacity": _CAPACITY,
            "clock": self._clock,
            "collections": fakes.InMemoryCollectionStore(),
            "dead_letters": letters,
            "deletions": fakes.InMemoryDeletionStore(),
            "end_side_by_side": _one_after_another,
            "exports": fakes.InMemoryExportStore(),
            "flows": fakes.InMemoryFlowStore(),
            "identity": lambda: f"{next(self._tokens):016x}",
            "jitter": lambda: 0.5,
            "journal": fakes.RecordingJournal(),
            "lag_objective": SECOND,
            "ledger": self._ledger,
            "operations": self._operations,
            "payloads": fakes.InMemoryPayloadStore(),
            "pending_store": fakes.InMemoryPendingStore(),
            "permits": fakes.InMemoryPermitStore(),
            "pulses": fakes.InMemoryPulseStore(),
            "rates": fakes.InMemoryRateStore(),
            "ready": self._ready,
            "results": fakes.InMemoryResultStore(),
            "schedules": fakes.InMemoryScheduleStore(),
            "shards": fakes.InMemoryShardStore(),
            "side_by_side": _one_after_another,
            "skew": WHEEL.skew,
            "stage_plans": settings.PLANS,
            "targets": self._targets,
            "tenants": fakes.InMemoryTenantStore(),
            "timers": self._timers,
            "token": lambda: f"token-{next(self._tokens)}",
            "usage_store": fakes.InMemoryUsageStore(),
            "waker": fakes.CountingWaker(),
            "wheel": WHEEL,
        }


class _Given(dict[str, Any]):
    """What parts are given; some of it is of other parts."""

    parts: Container

    def __contains__(self, name: object) -> bool:
        return name in _OF_PARTS or super().__contains__(name)

    def __getitem__(self, name: str) -> Any:
        return _OF_PARTS[name](self.parts) if name in _OF_PARTS else super().__getitem__(name)


_OF_PARTS: Mapping[str, Callable[[Container], Any]] = {
    "id_secret": lambda parts: parts["plans"].id_secret,
    "marked_since": lambda parts: parts["conditions"].marked_since,
    "pending": lambda parts: parts["tally"],
    "usage": lambda parts: parts["tally"],
}


def _registered() -> dict[str, Any]:
    """The functions that a deployment of this process's code would have."""
    users = {name: as_registered(handler, RegisteredInvocation) for name, handler in HANDLERS.items()}
    return {**OWN_HANDLERS, **users}


def _one_after_another(rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [rule(item) for item in items]
