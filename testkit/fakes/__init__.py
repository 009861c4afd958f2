"""The ports in memory, small enough to be read, and held to the same contract suites as the adapters.

They hold rows, not references: what is written is encoded and decoded as the real stores would.
"""

from testkit.fakes.audit import InMemoryAuditStream, RecordingAudit
from testkit.fakes.breakers import InMemoryBreakerStore
from testkit.fakes.clock import FakeClock
from testkit.fakes.collections import InMemoryCollectionStore
from testkit.fakes.dead_letters import InMemoryDeadLetters
from testkit.fakes.deletions import InMemoryDeletionStore, InMemoryTenantData
from testkit.fakes.discarding import DiscardingAudit, DiscardingCounter
from testkit.fakes.flows import InMemoryFlowStore
from testkit.fakes.gate import OpenGate
from testkit.fakes.journal import RecordingJournal
from testkit.fakes.ledger import InMemoryLedger
from testkit.fakes.operations import CountingWaker, InMemoryExportStore, InMemoryOperationStore
from testkit.fakes.payloads import InMemoryPayloadStore
from testkit.fakes.pending import InMemoryPendingStore
from testkit.fakes.permits import InMemoryPermitStore
from testkit.fakes.pulses import InMemoryPulseStore, RecordingPulse
from testkit.fakes.rates import InMemoryRateStore
from testkit.fakes.ready_queue import InMemoryReadyQueue, QueuedMessage
from testkit.fakes.results import InMemoryResultStore
from testkit.fakes.schedules import InMemoryScheduleStore
from testkit.fakes.shards import InMemoryShardStore
from testkit.fakes.targets import RecordingTargets
from testkit.fakes.tenants import GivenPlans, InMemoryTenantStore
from testkit.fakes.timers import InMemoryTimerStore
from testkit.fakes.usage import InMemoryUsageStore
from testkit.fakes.webhook_keys import GivenWebhookKeys

__all__ = [
    "CountingWaker",
    "DiscardingAudit",
    "DiscardingCounter",
    "FakeClock",
    "GivenPlans",
    "GivenWebhookKeys",
    "InMemoryAuditStream",
    "InMemoryBreakerStore",
    "InMemoryCollectionStore",
    "InMemoryDeadLetters",
    "InMemoryDeletionStore",
    "InMemoryExportStore",
    "InMemoryFlowStore",
    "InMemoryLedger",
    "InMemoryOperationStore",
    "InMemoryPayloadStore",
    "InMemoryPendingStore",
    "InMemoryPermitStore",
    "InMemoryPulseStore",
    "InMemoryRateStore",
    "InMemoryReadyQueue",
    "InMemoryResultStore",
    "InMemoryScheduleStore",
    "InMemoryShardStore",
    "InMemoryTenantData",
    "InMemoryTenantStore",
    "InMemoryTimerStore",
    "InMemoryUsageStore",
    "OpenGate",
    "QueuedMessage",
    "RecordingAudit",
    "RecordingJournal",
    "RecordingPulse",
    "RecordingTargets",
]
