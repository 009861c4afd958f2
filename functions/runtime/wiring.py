"""The composition root: what each Lambda is made of, built once a cold start."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Protocol

from functions.adapters import clients
from functions.adapters.clients import TRIES
from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.deletions import DynamoDBDeletionStore
from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.operations import DynamoDBOperationStore
from functions.adapters.dynamodb.pending import DynamoDBPendingStore
from functions.adapters.dynamodb.pulses import SPREAD, DynamoDBPulseStore
from functions.adapters.dynamodb.rates import DynamoDBRateStore
from functions.adapters.dynamodb.schedules import TRIES_OF_SUMS, DynamoDBScheduleStore
from functions.adapters.dynamodb.seats import DynamoDBSeatStore
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.tenant_data import StoredRemains, Tables
from functions.adapters.dynamodb.tenants import DynamoDBTenantStore
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.adapters.dynamodb.usage import DynamoDBUsageStore
from functions.adapters.firehose import FirehoseAuditStream
from functions.adapters.lambda_waker import LambdaWaker
from functions.adapters.s3.exports import S3ExportStore
from functions.adapters.s3.payloads import S3PayloadStore
from functions.adapters.sqs import SqsReadyQueue
from functions.adapters.system_clock import SystemClock
from functions.adapters.targets.allowed import AllowedCaller
from functions.adapters.targets.caller import TargetCaller
from functions.adapters.targets.guard import Guard
from functions.adapters.targets.handlers import Handler
from functions.adapters.webhook_keys import SecretsManagerWebhookKeys
from functions.domain.wheel import Ring, Wheel
from functions.ports.recorder import Audit, Journal
from functions.runtime.container import Built, Container
from functions.runtime.observability import PowertoolsJournal
from functions.runtime.settings import ScannerSettings, Settings, SweeperSettings
from functions.services.stage.conditions import KnownConditions
from functions.services.targets.breakers import Breakers
from functions.services.targets.seating import Usher
from functions.services.telemetry.audit_trail import UNAUDITED, Trail
from functions.services.telemetry.pulse import PulseTally
from functions.services.telemetry.usage import Tally
from functions.services.tenants.plans import KnownPlans

_SENDERS = 8
_BATCH = 10
_JOB_IDENTITY_BYTES = 8
"""Their checks distinguish jobs, too, unless they are due in the same millisecond: of those, 2^32 of a tenant have two alike."""


class FlushedJournal(Journal, Protocol):
    """A journal that keeps metrics until the end of an invocation."""

    def flush(self) -> None:
        """Hand over what was collected."""
        ...


class Wiring:
    """One Lambda: its adapters, each made when it is first asked for, and only where its setting exists; and its parts.

    parts: what it has beside the services. clock, journal: others than those of a Lambda.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        parts: Mapping[str, type] = MappingProxyType({}),
        clock: SystemClock | None = None,
        journal: FlushedJournal | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.journal: FlushedJournal = journal or PowertoolsJournal()
        self._container = Container(_Given(self), parts=parts)

    def build(self, wanted: type[Built], **special: Any) -> Built:
        """Something of its parts. special: what it is given in place of what has the name of its field."""
        return self._container.build(wanted, **special)

    def part(self, name: str, wanted: type[Built]) -> Built:
        """The one part of this name, as all have it that are built."""
        part = self._container[name]
        assert isinstance(part, wanted)
        return part

    @cached_property
    def wheel(self) -> Wheel:
        """The constants of the stage."""
        return self.settings.wheel()

    @cached_property
    def shards(self) -> DynamoDBShardStore:
        """Leases, cursors and recorded constants."""
        return DynamoDBShardStore(self._dynamodb, self._setting("SHARDS_TABLE"))

    @cached_property
    def timers(self) -> DynamoDBTimerStore:
        """The far ring."""
        return DynamoDBTimerStore(
            self._dynamodb,
            self._setting("TIMERS_TABLE"),
            writer=self._writer,
            wheel=self.wheel,
            clock=self.clock,
            pool=self._senders,
            marks=self._marks,
            ledger_table=getattr(self.settings, "LEDGER_TABLE", ""),
        )

    @cached_property
    def ready(self) -> SqsReadyQueue:
        """The near ring."""
        return self._queues(Ring.NEAR)

    @cached_property
    def promoted(self) -> SqsReadyQueue:
        """The ready queues, for what comes from the far ring."""
        return self._queues(Ring.FAR)

    @cached_property
    def _sqs(self) -> Any:
        return clients.sqs(attempts=1)

    def _queues(self, ring: Ring) -> SqsReadyQueue:
        urls = self._setting("READY_QUEUE_URLS")
        return SqsReadyQueue(self._sqs, urls, clock=self.clock, pool=self._senders, ring=ring)

    @cached_property
    def ledger(self) -> DynamoDBLedger:
        """The conditional-write table."""
        return DynamoDBLedger(
            self._dynamodb,
            self._setting("LEDGER_TABLE"),
            skew=self.wheel.skew,
            dead_letters=self.dead_letters if hasattr(self.settings, "DEAD_LETTERS_TABLE") else None,
            timers=self.timers,
        )

    @cached_property
    def dead_letters(self) -> DynamoDBDeadLetters:
        """What failed for good."""
        return DynamoDBDeadLetters(self._dynamodb, self._setting("DEAD_LETTERS_TABLE"))

    @cached_property
    def breaker_store(self) -> DynamoDBBreakerStore:
        """The breakers that are not closed."""
        return DynamoDBBreakerStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def tenants(self) -> DynamoDBTenantStore:
        """The rows of tenants."""
        return DynamoDBTenantStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def plans(self) -> KnownPlans:
        """What each tenant may do."""
        return KnownPlans(clock=self.clock, store=self.tenants, journal=self.journal, stage=self._setting("PLANS"))

    @cached_property
    def usage_store(self) -> DynamoDBUsageStore:
        """What tenants have used."""
        return DynamoDBUsageStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def pending_store(self) -> DynamoDBPendingStore:
        """How many jobs of tenants wait."""
        return DynamoDBPendingStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def tally(self) -> Tally:
        """Counts what tenants use."""
        return Tally(
            clock=self.clock,
            plans=self.plans,
            usage=self.usage_store,
            pending=self.pending_store,
            journal=self.journal,
        )

    @cached_property
    def pulses(self) -> DynamoDBPulseStore:
        """What goes on in the stage."""
        slot = random.randrange(SPREAD)  # noqa: S311  it spreads, and keeps no secret
        return DynamoDBPulseStore(self._dynamodb, self._setting("TENANTS_TABLE"), slot=slot)

    @cached_property
    def pulse(self) -> PulseTally:
        """Counts what goes on in this process."""
        return PulseTally(clock=self.clock, store=self.pulses, journal=self.journal)

    @cached_property
    def audit(self) -> Audit:
        """Keeps what has happened; nothing where a function settles nothing."""
        if not hasattr(self.settings, "AUDIT_STREAM"):
            return UNAUDITED
        stream = FirehoseAuditStream(clients.firehose(), self._setting("AUDIT_STREAM"), clock=self.clock)
        return Trail(clock=self.clock, stream=stream, journal=self.journal, identity=identity)

    @cached_property
    def breakers(self) -> Breakers:
        """Which destinations may be called."""
        return Breakers(
            clock=self.clock,
            store=self.breaker_store,
            journal=self.journal,
            token=token,
            jitter=jitter,
            skew=self.wheel.skew,
        )

    @cached_property
    def usher(self) -> Usher:
        """Seats for the calls of tenants whose concurrency is capped."""
        return Usher(
            wheel=self.wheel,
            clock=self.clock,
            seats=DynamoDBSeatStore(self._dynamodb, self._setting("TENANTS_TABLE")),
            journal=self.journal,
            token=token,
            jitter=jitter,
        )

    @cached_property
    def payloads(self) -> S3PayloadStore:
        """Payloads too large for a row."""
        return S3PayloadStore(self._s3, self._setting("PAYLOAD_BUCKET"))

    @cached_property
    def operations(self) -> DynamoDBOperationStore:
        """Work on many jobs at once."""
        return DynamoDBOperationStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def deletions(self) -> DynamoDBDeletionStore:
        """Deletions of tenants."""
        return DynamoDBDeletionStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def remains(self) -> StoredRemains:
        """All that is stored of tenants."""
        names = ("timers", "ledger", "schedules", "schedule_state", "tenants", "dead_letters")
        return StoredRemains(
            self._dynamodb,
            self._s3,
            tables=Tables(**{name: self._setting(f"{name.upper()}_TABLE") for name in names}),
            bucket=self._setting("PAYLOAD_BUCKET"),
            wheel=self.wheel,
            clock=self.clock,
            plans=self.plans,
            marks=self._marks,
        )

    @cached_property
    def exports(self) -> S3ExportStore:
        """The files of exports."""
        return S3ExportStore(self._s3, self._setting("PAYLOAD_BUCKET"))

    @cached_property
    def waker(self) -> LambdaWaker:
        """Wakes whoever carries operations on."""
        return LambdaWaker(clients.functions(), self._setting("OPERATIONS_FUNCTION"))

    @cached_property
    def conditions(self) -> KnownConditions:
        """How the stage stands."""
        return KnownConditions(clock=self.clock, shards=self.shards, journal=self.journal)

    @cached_property
    def rates(self) -> DynamoDBRateStore:
        """Until when the rates of tenants are used up."""
        return DynamoDBRateStore(self._dynamodb, self._setting("TENANTS_TABLE"))

    @cached_property
    def schedules(self) -> DynamoDBScheduleStore:
        """Definitions and states of schedules."""
        return DynamoDBScheduleStore(
            self._dynamodb,
            definitions=self._setting("SCHEDULES_TABLE"),
            states=self._setting("SCHEDULE_STATE_TABLE"),
            # A tick and a sweep are everybody's: nobody's changes may hold them up for seconds.
            tries_of_sums=TRIES if isinstance(self.settings, ScannerSettings | SweeperSettings) else TRIES_OF_SUMS,
        )

    def targets(self, handlers: Mapping[str, Handler]) -> AllowedCaller:
        """What jobs call."""
        guard = Guard(self._setting("ALLOWED_NETWORKS"))
        caller = TargetCaller(handlers, clock=self.clock, guard=guard, keys=self.webhook_keys)
        return AllowedCaller(caller, allowed=self._setting("ALLOWED_TARGETS"))

    @cached_property
    def webhook_keys(self) -> SecretsManagerWebhookKeys:
        """The master keys of signatures, read when they are first asked for."""
        client = clients.secrets_manager()
        return SecretsManagerWebhookKeys(client, self._setting("WEBHOOK_SECRET"), clock=self.clock)

    def confirm(self) -> None:
        """Check the constants against those recorded at the first deploy. Raises WheelChanged."""
        self.shards.confirm(self.wheel)

    def run_side_by_side(self, jobs: Sequence[Callable[[], None]]) -> None:
        """Run the jobs of a batch at the same time, and wait for all."""
        for done in [self._runners.submit(job) for job in jobs]:
            done.result()

    def map_side_by_side(self, rule: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Map a function that waits for the network; the answers in order."""
        return list(self._senders.map(rule, items)) if len(items) > 1 else [rule(item) for item in items]

    @cached_property
    def _dynamodb(self) -> Any:
        return clients.dynamodb(self.clock)

    @cached_property
    def _writer(self) -> Any:
        return clients.dynamodb(self.clock, attempts=1)

    @cached_property
    def _marks(self) -> DynamoDBDayMarks:
        return DynamoDBDayMarks(self._dynamodb, self._setting("TENANTS_TABLE"), writer=self._writer, pool=self._senders)

    @cached_property
    def _s3(self) -> Any:
        return clients.s3()

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_SENDERS, thread_name_prefix="send")

    @cached_property
    def _runners(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_BATCH, thread_name_prefix="run")

    def _setting(self, name: str) -> Any:
        return getattr(self.settings, name)


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
    "breakers",
    "clock",
    "conditions",
    "dead_letters",
    "deletions",
    "exports",
    "journal",
    "ledger",
    "operations",
    "payloads",
    "plans",
    "pulse",
    "pulses",
    "rates",
    "ready",
    "remains",
    "schedules",
    "shards",
    "tenants",
    "timers",
    "usher",
    "waker",
    "wheel",
)

_GIVEN: Mapping[str, Callable[[Wiring], Any]] = {
    **{name: attrgetter(name) for name in _SAME},
    "classes": attrgetter("conditions"),
    "id_secret": attrgetter("plans.id_secret"),
    "identity": lambda _: job_identity,
    "jitter": lambda _: jitter,
    "marked_since": attrgetter("conditions.marked_since"),
    "pending": attrgetter("tally"),
    "pending_store": attrgetter("pending_store"),
    "side_by_side": attrgetter("map_side_by_side"),
    "skew": attrgetter("wheel.skew"),
    "token": lambda _: token,
    "usage": attrgetter("tally"),
}
"""By the names of fields."""
