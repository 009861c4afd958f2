"""The adapters of one Lambda: each is made when it is first asked for, and only where its setting exists."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

from functions.adapters import clients
from functions.adapters.clients import TRIES, Late
from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.collections import DynamoDBCollectionStore
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.deletions import DynamoDBDeletionStore
from functions.adapters.dynamodb.flows import DynamoDBFlowStore
from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.operations import DynamoDBOperationStore
from functions.adapters.dynamodb.pending import DynamoDBPendingStore
from functions.adapters.dynamodb.permits import DynamoDBPermitStore
from functions.adapters.dynamodb.pulses import SPREAD, DynamoDBPulseStore
from functions.adapters.dynamodb.rates import DynamoDBRateStore
from functions.adapters.dynamodb.schedules import TRIES_OF_SUMS, DynamoDBScheduleStore
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tenants import DynamoDBTenantStore
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.adapters.dynamodb.usage import DynamoDBUsageStore
from functions.adapters.firehose import FirehoseAuditStream
from functions.adapters.lambda_waker import LambdaWaker
from functions.adapters.s3.exports import S3ExportStore
from functions.adapters.s3.payloads import S3PayloadStore
from functions.adapters.s3.results import S3ResultStore
from functions.adapters.s3.submission_files import S3SubmissionFiles
from functions.adapters.sqs import SqsReadyQueue
from functions.adapters.submission_queues import SqsSubmissionQueues
from functions.adapters.system_clock import SystemClock
from functions.adapters.webhook_keys import SecretsManagerWebhookKeys
from functions.domain.jobs.submission_queues import files_name
from functions.domain.wheel import Ring, Wheel
from functions.runtime.settings import FunctionSettings, ScannerSettings, SweeperSettings

_SENDERS = 8


Store = TypeVar("Store")


def _stored_in(table: str, make: Callable[[Table], Store]) -> cached_property[Store]:
    """A store that is nothing but one table."""
    return cached_property(lambda adapters: make(adapters.table(table)))


class Adapters:
    """clock: another than that of a Lambda."""

    def __init__(self, settings: FunctionSettings, *, clock: SystemClock | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()

    _sqs = cached_property(lambda adapters: clients.sqs(attempts=1, patience=adapters.settings.PATIENCE))
    _s3: Any = cached_property(lambda adapters: Late(lambda: clients.s3(patience=adapters.settings.PATIENCE)))
    _dynamodb = cached_property(lambda adapters: clients.dynamodb(adapters.clock, patience=adapters.settings.PATIENCE))
    _writer = cached_property(
        lambda adapters: clients.dynamodb(adapters.clock, attempts=1, patience=adapters.settings.PATIENCE)
    )

    shards = _stored_in("SHARDS", DynamoDBShardStore)
    dead_letters = _stored_in("DEAD_LETTERS", DynamoDBDeadLetters)
    breaker_store = _stored_in("TENANTS", DynamoDBBreakerStore)
    tenants = _stored_in("TENANTS", DynamoDBTenantStore)
    usage_store = _stored_in("TENANTS", DynamoDBUsageStore)
    pending_store = _stored_in("TENANTS", DynamoDBPendingStore)
    permits = _stored_in("TENANTS", DynamoDBPermitStore)
    operations = _stored_in("TENANTS", DynamoDBOperationStore)
    deletions = _stored_in("TENANTS", DynamoDBDeletionStore)
    rates = _stored_in("TENANTS", DynamoDBRateStore)
    flows = _stored_in("TENANTS", DynamoDBFlowStore)
    collections = _stored_in("TENANTS", DynamoDBCollectionStore)

    @cached_property
    def wheel(self) -> Wheel:
        """The constants of the stage."""
        return self.settings.wheel()

    @cached_property
    def timers(self) -> DynamoDBTimerStore:
        """The far ring."""
        return DynamoDBTimerStore(
            table=self.table("TIMERS"),
            writer=self.table("TIMERS", client=self._writer),
            wheel=self.wheel,
            clock=self.clock,
            pool=self._senders,
            marks=self.marks,
            ledger_table=self.settings.LEDGER_TABLE,
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
    def submission_queues(self) -> SqsSubmissionQueues:
        """Where jobs are sent to, beside the API."""
        return SqsSubmissionQueues(
            self._sqs,
            stage=self.settings.STAGE,
            urls=self.setting("SUBMISSION_QUEUE_URLS"),
            refused_urls=self.setting("REFUSED_QUEUE_URLS"),
        )

    @cached_property
    def submission_files(self) -> S3SubmissionFiles:
        """Where files of jobs are."""
        name = files_name(self.settings.STAGE)
        return S3SubmissionFiles(
            self._s3,
            self._sqs,
            bucket=self.setting("FILES_BUCKET"),
            queue_url=[url for url in self.setting("SUBMISSION_QUEUE_URLS") if url.endswith(f"/{name}")],
        )

    def _queues(self, ring: Ring) -> SqsReadyQueue:
        urls = self.settings.READY_QUEUE_URLS
        return SqsReadyQueue(self._sqs, urls, clock=self.clock, pool=self._senders, ring=ring)

    @cached_property
    def ledger(self) -> DynamoDBLedger:
        """The conditional-write table."""
        return DynamoDBLedger(
            self.table("LEDGER"), skew=self.wheel.lease_skew, dead_letters=self.dead_letters, timers=self.timers
        )

    @cached_property
    def pulses(self) -> DynamoDBPulseStore:
        """What happens in the stage."""
        slot = random.randrange(SPREAD)  # noqa: S311  it spreads, and keeps no secret
        return DynamoDBPulseStore(self.table("TENANTS"), slot=slot)

    @cached_property
    def audit_stream(self) -> FirehoseAuditStream:
        """Where lines of the audit trail go."""
        return FirehoseAuditStream(
            clients.firehose(patience=self.settings.PATIENCE), self.settings.AUDIT_STREAM, clock=self.clock
        )

    @cached_property
    def payloads(self) -> S3PayloadStore:
        """Payloads too large for a row."""
        return S3PayloadStore(self._s3, self.setting("PAYLOAD_BUCKET"))

    @cached_property
    def results(self) -> S3ResultStore:
        """Results too large for a row."""
        writer: Any = Late(lambda: clients.s3_in_haste(patience=self.settings.PATIENCE))
        return S3ResultStore(self._s3, self.setting("PAYLOAD_BUCKET"), writer=writer)

    @cached_property
    def exports(self) -> S3ExportStore:
        """The files of exports."""
        return S3ExportStore(self._s3, self.setting("PAYLOAD_BUCKET"))

    @cached_property
    def waker(self) -> LambdaWaker:
        """Wakes whoever continues operations."""
        client = Late(lambda: clients.functions(patience=self.settings.PATIENCE))
        return LambdaWaker(client, self.setting("OPERATIONS_FUNCTION"))

    @cached_property
    def schedules(self) -> DynamoDBScheduleStore:
        """Definitions and states of schedules."""
        return DynamoDBScheduleStore(
            definition_table=self.table("SCHEDULES"),
            state_table=self.table("SCHEDULE_STATE"),
            # A tick and a sweep are everybody's: nobody's changes may hold them up for seconds.
            tries_of_sums=TRIES if isinstance(self.settings, ScannerSettings | SweeperSettings) else TRIES_OF_SUMS,
        )

    @cached_property
    def webhook_keys(self) -> SecretsManagerWebhookKeys:
        """The master keys of signatures, read when they are first asked for."""
        client: Any = Late(lambda: clients.secrets_manager(patience=self.settings.PATIENCE))
        return SecretsManagerWebhookKeys(client, self.setting("WEBHOOK_SECRET"), clock=self.clock)

    @cached_property
    def marks(self) -> DynamoDBDayMarks:
        """Which days are a tenant's."""
        writer = self.table("TENANTS", client=self._writer)
        return DynamoDBDayMarks(self.table("TENANTS"), writer=writer, pool=self._senders)

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(_SENDERS, thread_name_prefix="send")

    def table(self, name: str, *, client: Any = None) -> Table:
        """A table of the stage, by the beginning of its setting's name."""
        return Table(client or self._dynamodb, self.setting(f"{name}_TABLE"))

    def setting(self, name: str) -> Any:
        """A setting of the function, by its name."""
        return getattr(self.settings, name)
