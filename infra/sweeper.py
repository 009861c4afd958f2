"""The audit: what promotion should have sent and did not; and the schedules that nothing carries on."""

from __future__ import annotations

from constructs import Construct

from infra.package import Deployment, Function
from infra.ticks import MAX_AGE, MinuteTicks


class Sweeper(Construct):
    """The function that re-reads closed buckets, called once a minute."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, construct_id)
        stage = deployment.stage
        self.function = Function(
            self,
            "Function",
            name="sweeper",
            description="Publishes budgets, re-reads closed buckets, and carries broken chains of schedules on",
            deployment=deployment,
            size=stage.sweeper,
            max_event_age=MAX_AGE,
            environment={
                "AUDIT_SAMPLE": str(stage.audit_sample),
                "READY_CAPACITY": str(stage.ready_capacity),
                "SHED_AFTER_SECONDS": str(int(stage.shed_after.total_seconds())),
            },
        )
        self.function.grant_tables("timers", "Query", "PutItem", "BatchWriteItem")
        self.function.grant_placing()
        # Scan: rooms of flows whose turn is overdue.
        self.function.grant_tables("tenants", "Scan")
        # PutItem: it pauses those whose runs fail, or whose next fire takes too much to find.
        self.function.grant_tables("schedules", "GetItem", "BatchGetItem", "PutItem")
        self.function.grant_tables("schedule_state", "Scan", "GetItem", "UpdateItem")
        self.function.grant_tables("ledger", "GetItem", "BatchGetItem", "UpdateItem")
        self.function.grant_tables("dead_letters", "PutItem")
        self.function.grant_tables("shards", "GetItem", "BatchGetItem", "PutItem", "UpdateItem")
        self.function.grant("sqs:SendMessage", "sqs:GetQueueAttributes", on=deployment.ready_queues.arns)
        MinuteTicks(self, "Ticks", function=self.function, inputs=[{}])
