"""The audit: what promotion should have sent and did not; and the schedules that nothing carries on."""

from __future__ import annotations

from constructs import Construct

from infra.package import Function, Package
from infra.ready_queues import ReadyQueues
from infra.stage import Stage
from infra.storage import StorageStack
from infra.ticks import MAX_AGE, MinuteTicks


class Sweeper(Construct):
    """The function that re-reads closed buckets, called once a minute."""

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
        timers, ledger, shards, dead_letters, schedules, schedule_state, tenants = (
            storage.tables[name]
            for name in ("timers", "ledger", "shards", "dead_letters", "schedules", "schedule_state", "tenants")
        )
        self.function = Function(
            self,
            "Function",
            name="sweeper",
            description="Publishes budgets, re-reads closed buckets, and carries broken chains of schedules on",
            stage=stage,
            package=package,
            size=stage.sweeper,
            max_event_age=MAX_AGE,
            environment={
                "TIMERS_TABLE": timers.table_name,
                "LEDGER_TABLE": ledger.table_name,
                "SHARDS_TABLE": shards.table_name,
                "DEAD_LETTERS_TABLE": dead_letters.table_name,
                "SCHEDULES_TABLE": schedules.table_name,
                "SCHEDULE_STATE_TABLE": schedule_state.table_name,
                "TENANTS_TABLE": tenants.table_name,
                "READY_QUEUE_URLS": ready_queues.urls,
                "AUDIT_SAMPLE": str(stage.audit_sample),
                "READY_CAPACITY": str(stage.ready_capacity),
                "SHED_AFTER_SECONDS": str(int(stage.shed_after.total_seconds())),
                "AUDIT_STREAM": storage.audit.stream_name,
            },
        )
        self.function.grant("dynamodb:Query", "dynamodb:PutItem", "dynamodb:BatchWriteItem", on=[timers.table_arn])
        self.function.grant_placing(storage=storage)
        self.function.grant_audit(storage=storage)
        # PutItem: it pauses those whose runs fail, or whose next fire takes too much to find.
        self.function.grant("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", on=[schedules.table_arn])
        self.function.grant("dynamodb:Scan", "dynamodb:GetItem", "dynamodb:UpdateItem", on=[schedule_state.table_arn])
        self.function.grant("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem", on=[ledger.table_arn])
        self.function.grant("dynamodb:PutItem", on=[dead_letters.table_arn])
        self.function.grant(
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            on=[shards.table_arn],
        )
        self.function.grant("sqs:SendMessage", "sqs:GetQueueAttributes", on=ready_queues.arns)
        MinuteTicks(self, "Ticks", function=self.function, inputs=[{}])
