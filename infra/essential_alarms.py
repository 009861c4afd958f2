"""What wakes somebody on a stage that is watched for the essential: fifteen alarms, each of which pages by itself.

CloudWatch bills an alarm by the metrics that it looks at, and a composite by five times as much
(https://aws.amazon.com/cloudwatch/pricing/), so a fault may page more than once here.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.burn_rates import late_within_an_hour
from infra.function_alarms import MINUTE, api_throttles, errors, no_tick_ends_well, worker_throttles
from infra.metrics import incidents
from infra.package import Function
from infra.ready_queues import ReadyQueues
from infra.runbook import alarm
from infra.single_alarms import failed_requests, held_too_long, promotion_lag, queue_age, unconsumed_dead_letters
from infra.stage import PRIORITIES, Stage
from infra.topics import Topics

PROMPT = PRIORITIES[:3]
"""`low` waits by design when there is no room for all."""

INCIDENT_MINUTES = 15
"""How long an incident keeps its alarm on: jobs that fail every few minutes page once."""


class EssentialAlarms(Construct):
    """Late jobs, anything lost or dead, scanner or sweeper without a tick that ends well, the API's failures, throttles."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        ready_queues: ReadyQueues,
        functions: Sequence[Function],
        topics: Topics,
    ) -> None:
        super().__init__(scope, construct_id)
        by_name = {function.name: function for function in functions}
        queues = dict(zip(PRIORITIES, ready_queues.queues, strict=True))
        topics.page(
            promotion_lag(self, stage=stage),
            *(queue_age(self, priority, queue=queues[priority], stage=stage) for priority in PROMPT),
            *(() if stage.emulated else (late_within_an_hour(self, stage=stage),)),  # it knows no expressions
            self._incidents(stage),
            held_too_long(self, stage=stage),
            unconsumed_dead_letters(self, ready_queues),
            *(no_tick_ends_well(self, by_name[name]) for name in ("scanner", "sweeper")),
            errors(self, by_name["api"]),
            failed_requests(self, stage=stage),
            api_throttles(self, by_name["api"]),
            worker_throttles(self, by_name["worker"]),
        )

    def _incidents(self, stage: Stage) -> cloudwatch.Alarm:
        return alarm(
            self,
            "Incidents",
            metric=incidents(stage, period=MINUTE),
            threshold=0,
            periods=INCIDENT_MINUTES,
            breaching=1,
            meaning="Something was lost or has died, or happened that must never happen",
            section="an-incident-was-counted",
        )
