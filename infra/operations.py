"""What carries operations on: work on many jobs at once, in turns of some minutes."""

from __future__ import annotations

from constructs import Construct

from infra.package import Function, Package
from infra.ready_queues import ReadyQueues
from infra.stage import Stage
from infra.storage import StorageStack
from infra.ticks import MAX_AGE, MinuteTicks


class Operations(Construct):
    """The function that does to many jobs what the API does to one, called once a minute and for each new operation."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        package: Package,
        storage: StorageStack,
        ready_queues: ReadyQueues,
    ) -> None:
        super().__init__(scope, construct_id)
        timers, ledger, shards, tenants, schedules, schedule_state, dead_letters = (
            storage.tables[name]
            for name in ("timers", "ledger", "shards", "tenants", "schedules", "schedule_state", "dead_letters")
        )
        self.function = Function(
            self,
            "Function",
            name="operations",
            description="Cancels, reschedules, hastens and exports the jobs of a filter",
            stage=stage,
            package=package,
            size=stage.operations,
            max_event_age=MAX_AGE,
            environment={
                "TIMERS_TABLE": timers.table_name,
                "LEDGER_TABLE": ledger.table_name,
                "SHARDS_TABLE": shards.table_name,
                "TENANTS_TABLE": tenants.table_name,
                "SCHEDULES_TABLE": schedules.table_name,
                "SCHEDULE_STATE_TABLE": schedule_state.table_name,
                "DEAD_LETTERS_TABLE": dead_letters.table_name,
                "LONGEST_TIMEOUT_SECONDS": str(int(stage.longest_timeout.total_seconds())),
                "PAYLOAD_BUCKET": storage.payloads.bucket_name,
                "READY_QUEUE_URLS": ready_queues.urls,
                "AUDIT_STREAM": storage.audit.stream_name,
            },
        )
        self.function.grant(
            "dynamodb:Query", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", on=[timers.table_arn]
        )
        self.function.grant_placing(storage=storage)
        self.function.grant_audit(storage=storage)
        self.function.grant("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem", on=[ledger.table_arn])
        self.function.grant("dynamodb:GetItem", "dynamodb:UpdateItem", on=[shards.table_arn])
        self.function.grant(
            "dynamodb:Query", "dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", on=[tenants.table_arn]
        )
        # A fire that is cancelled may be what the next one of its schedule waits for; PutItem: a schedule is paused whose next
        # fire takes too much to find.
        self.function.grant("dynamodb:GetItem", "dynamodb:PutItem", on=[schedules.table_arn])
        self.function.grant("dynamodb:UpdateItem", on=[schedule_state.table_arn])
        self._grant_deletions(storage)
        self.function.grant_objects("s3:PutObject", below=["jobs", "exports"], storage=storage)
        self.function.grant_objects("s3:GetObject", below=["jobs", "schedules"], storage=storage)
        self.function.grant_objects("s3:DeleteObject", below=["jobs", "schedules", "exports"], storage=storage)
        # Without it S3 answers 403 for an object that is gone, and an ended job could not be distinguished from a forbidden one.
        self.function.grant("s3:ListBucket", on=[storage.payload_bucket_arn])
        self.function.grant("sqs:SendMessage", on=ready_queues.arns)
        MinuteTicks(self, "Ticks", function=self.function, inputs=[{}])

    def _grant_deletions(self, storage: StorageStack) -> None:
        """All that there is of a tenant is found and deleted, and its row says so."""
        tables = storage.tables
        everywhere = ("timers", "ledger", "schedules", "schedule_state", "tenants", "dead_letters")
        self.function.grant("dynamodb:BatchWriteItem", on=[tables[name].table_arn for name in everywhere])
        self.function.grant("dynamodb:Query", on=[tables[name].table_arn for name in ("schedules", "dead_letters")])
        self.function.grant("dynamodb:Scan", on=[tables[name].table_arn for name in ("ledger", "schedule_state")])
        self.function.grant("dynamodb:GetItem", "dynamodb:DeleteItem", on=[tables["schedule_state"].table_arn])
        self.function.grant("dynamodb:PutItem", on=[tables["tenants"].table_arn])
