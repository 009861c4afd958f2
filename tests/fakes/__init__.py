"""The ports in memory, small enough to be read, and held to the same contract suites as the adapters.

They hold rows, not references: what is written is encoded and decoded as the real stores would.
"""

from tests.fakes.audit import InMemoryAuditStream, RecordingAudit
from tests.fakes.breakers import InMemoryBreakerStore
from tests.fakes.clock import FakeClock
from tests.fakes.dead_letters import InMemoryDeadLetters
from tests.fakes.deletions import InMemoryDeletionStore, InMemoryRemains
from tests.fakes.journal import RecordingJournal
from tests.fakes.ledger import InMemoryLedger
from tests.fakes.operations import CountingWaker, InMemoryExportStore, InMemoryOperationStore
from tests.fakes.payloads import InMemoryPayloadStore
from tests.fakes.pending import InMemoryPendingStore
from tests.fakes.pulses import InMemoryPulseStore, RecordingPulse
from tests.fakes.rates import InMemoryRateStore
from tests.fakes.ready_queue import InMemoryReadyQueue, QueuedMessage
from tests.fakes.schedules import InMemoryScheduleStore
from tests.fakes.seats import InMemorySeatStore
from tests.fakes.shards import InMemoryShardStore
from tests.fakes.targets import RecordingTargets
from tests.fakes.tenants import GivenPlans, InMemoryTenantStore
from tests.fakes.timers import InMemoryTimerStore
from tests.fakes.usage import InMemoryUsageStore
from tests.fakes.webhook_keys import GivenWebhookKeys

__all__ = [
    "CountingWaker",
    "FakeClock",
    "GivenPlans",
    "GivenWebhookKeys",
    "InMemoryAuditStream",
    "InMemoryBreakerStore",
    "InMemoryDeadLetters",
    "InMemoryDeletionStore",
    "InMemoryExportStore",
    "InMemoryLedger",
    "InMemoryOperationStore",
    "InMemoryPayloadStore",
    "InMemoryPendingStore",
    "InMemoryPulseStore",
    "InMemoryRateStore",
    "InMemoryReadyQueue",
    "InMemoryRemains",
    "InMemoryScheduleStore",
    "InMemorySeatStore",
    "InMemoryShardStore",
    "InMemoryTenantStore",
    "InMemoryTimerStore",
    "InMemoryUsageStore",
    "QueuedMessage",
    "RecordingAudit",
    "RecordingJournal",
    "RecordingPulse",
    "RecordingTargets",
]
