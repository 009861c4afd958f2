"""What carries operations on: work on many jobs at once, in turns of some minutes."""

from __future__ import annotations

from constructs import Construct

from infra.package import Deployment, Function
from infra.ticks import MAX_AGE, MinuteTicks


class Operations(Construct):
    """The function that does to many jobs what the API does to one, called once a minute and for each new operation."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, construct_id)
        self.function = Function(
            self,
            "Function",
            name="operations",
            description="Cancels, reschedules, hastens and exports the jobs of a filter",
            deployment=deployment,
            size=deployment.stage.operations,
            max_event_age=MAX_AGE,
            environment={
                "LONGEST_TIMEOUT_SECONDS": str(int(deployment.stage.longest_timeout.total_seconds())),
                "PAYLOAD_BUCKET": deployment.storage.payloads.bucket_name,
            },
        )
        self.function.grant_tables("timers", "Query", "GetItem", "PutItem", "DeleteItem")
        self.function.grant_placing()
        self.function.grant_tables("ledger", "GetItem", "BatchGetItem", "UpdateItem")
        self.function.grant_tables("shards", "GetItem", "UpdateItem")
        self.function.grant_tables("tenants", "Query", "GetItem", "UpdateItem", "DeleteItem")
        # A fire that is cancelled may be what the next one of its schedule waits for; PutItem: a schedule is paused whose next
        # fire takes too much to find.
        self.function.grant_tables("schedules", "GetItem", "PutItem")
        self.function.grant_tables("schedule_state", "UpdateItem")
        self._grant_deletions()
        self.function.grant_objects("s3:PutObject", below=["jobs", "exports"])
        self.function.grant_objects("s3:GetObject", below=["jobs", "schedules"])
        self.function.grant_objects("s3:DeleteObject", below=["jobs", "schedules", "exports", "results"])
        self.function.grant_missing_objects()
        self.function.grant("sqs:SendMessage", on=deployment.ready_queues.arns)
        MinuteTicks(self, "Ticks", function=self.function, inputs=[{}])

    def _grant_deletions(self) -> None:
        """All that there is of a tenant is found and deleted, and its row says so."""
        self.function.grant_tables("timers ledger schedules schedule_state tenants dead_letters", "BatchWriteItem")
        self.function.grant_tables("schedules dead_letters", "Query")
        self.function.grant_tables("ledger schedule_state tenants", "Scan")
        self.function.grant_tables("schedule_state", "GetItem", "DeleteItem")
        self.function.grant_tables("tenants", "PutItem")
