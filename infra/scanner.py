"""The minute ring's hand: one tick per shard and minute."""

from __future__ import annotations

import json

from constructs import Construct

from infra.package import Deployment, Function
from infra.queue_sources import warm_messages
from infra.ticks import MAX_AGE, MinuteTicks


class Scanner(Construct):
    """The function that promotes timers, called for each shard."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        super().__init__(scope, construct_id)
        self.function = Function(
            self,
            "Function",
            name="scanner",
            description="Promotes the timers of one shard to the ready queues",
            deployment=deployment,
            size=deployment.stage.scanner,
            max_event_age=MAX_AGE,
            environment={
                "READY_CAPACITY": str(deployment.stage.ready_capacity),
                "WARM_MESSAGES": json.dumps(warm_messages(deployment.stage)),
            },
        )
        self.function.grant_tables("timers", "Query", "PutItem", "BatchWriteItem")
        self.function.grant_placing()
        # GetItem, PutItem: it pauses those whose runs fail, or whose next fire takes too much to find.
        self.function.grant_tables("schedules", "BatchGetItem", "GetItem", "PutItem")
        self.function.grant_tables("schedule_state", "BatchGetItem", "GetItem", "UpdateItem")
        self.function.grant_tables("shards", "GetItem", "UpdateItem")
        self.function.grant_tables("ledger", "GetItem", "BatchGetItem", "UpdateItem")
        self.function.grant_tables("dead_letters", "PutItem")
        self.function.grant("sqs:SendMessage", on=deployment.ready_queues.arns)
        MinuteTicks(
            self,
            "Ticks",
            function=self.function,
            inputs=[{"shard": shard} for shard in range(deployment.stage.wheel.scan_shards)],
        )
