"""Alarms for gaps in the audit trail. No job waits for it, so it is work for office hours."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.audit_trail import BUFFER_SECONDS
from infra.metrics import AUDITED, emitted
from infra.runbook import alarm
from infra.stage import Stage
from infra.topics import Topics

SECTION = "audit-lines-are-lost"

LATE_SECONDS = 3 * BUFFER_SECONDS
"""The age of a line from which on the stream does not come to deliver."""


class AuditAlarms(Construct):
    """Tickets for lines that the stream did not take, and for a stream that does not come to deliver."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, stream_name: str, topics: Topics) -> None:
        super().__init__(scope, construct_id)
        lost = [
            alarm(
                self,
                f"LostBy{service.title().replace('_', '')}",
                metric=emitted("audit_lines_lost", service=service, stage=stage),
                threshold=0,
                meaning=f"Lines of the audit trail are only in the log of the {service}",
                section=SECTION,
            )
            for service in AUDITED
        ]
        late = alarm(
            self,
            "Late",
            metric=cloudwatch.Metric(
                namespace="AWS/Firehose",
                metric_name="DeliveryToS3.DataFreshness",
                dimensions_map={"DeliveryStreamName": stream_name},
                statistic="Maximum",
                period=cdk.Duration.minutes(5),
            ),
            threshold=LATE_SECONDS,
            periods=3,
            meaning="The audit stream holds lines back and does not deliver them: it drops what is a day old",
            section=SECTION,
        )
        topics.ticket(*lost, late)
