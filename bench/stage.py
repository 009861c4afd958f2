"""The stage that is measured: the constants of a stage on AWS, and the composition root that is deployed."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from bench.clock import SettableClock
from bench.journal import SilentJournal
from bench.queues import QUEUE_URLS
from functions.adapters.dynamodb.tables import ALL_TABLES
from functions.adapters.system_clock import SystemClock
from functions.adapters.targets.handlers import Handler
from functions.api.admission.gate import Gate
from functions.domain.targets.targets import DEFAULT_TARGETS
from functions.runtime.settings import ApiSettings, ScannerSettings, SweeperSettings, WorkerSettings
from functions.runtime.wiring import Wiring
from testkit.fakes import DiscardingAudit
from testkit.parts import PARTS


class _Settings(ApiSettings, ScannerSettings, WorkerSettings, SweeperSettings):
    """What all Lambdas get."""


def wiring(clock: SystemClock | None = None, *, handlers: Mapping[str, Handler] = MappingProxyType({})) -> Wiring:
    """The adapters as the Lambdas have them. handlers: Python functions that jobs call."""
    tables = {f"{table.name.upper()}_TABLE": table.name for table in ALL_TABLES}
    settings = {
        "STAGE": "bench",
        "BUCKET_SECONDS": 60,
        "LOOKAHEAD_SECONDS": 120,
        "SKEW_SECONDS": 60,
        "GUARD_SECONDS": 240,
        "WRITE_SHARDS": 4,
        "SCAN_SHARDS": 4,
        "PLANS": {},
        "READY_QUEUE_URLS": QUEUE_URLS,
        "PAYLOAD_BUCKET": "payloads",
        "WEBHOOK_SECRET": "webhooks",
        "ALLOWED_NETWORKS": "[]",
        "LAG_OBJECTIVE_MS": 2_000,
        "ALLOW_PLAIN_HTTP": False,
        "ALLOWED_TARGETS": json.dumps(DEFAULT_TARGETS),
        "MAX_TIMEOUT_SECONDS": 50,
        "OPERATIONS_FUNCTION": "operations",
        "OPERATORS": '["*"]',
        "JWT_TENANT_CLAIM": "",
        "AUDIT_SAMPLE": 1.0,
        "READY_CAPACITY": 1_000_000,
        "SHED_AFTER_SECONDS": 300,
        "AUDIT_STREAM": "audit",
        "SUBMISSION_QUEUE_URLS": "[]",
        "REFUSED_QUEUE_URLS": "[]",
        **tables,
    }
    made = Wiring(
        _Settings.model_validate(settings),
        parts={**PARTS, "gate": Gate},
        handlers=handlers,
        clock=clock or SettableClock(),
        journal=SilentJournal(),
    )
    # Its lines are sent by batches of invocations, and Firehose is paid by their bytes.
    made.audit = DiscardingAudit()
    return made
