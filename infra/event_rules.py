"""Rules of EventBridge that make jobs of events: each sends to the queue of its tenant what a body of the API would be."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.stage import Stage
from infra.submission_queues import SubmissionQueues


class EventRules(Construct):
    """Nothing, where the stage names none. What cannot be delivered is in the queue of the refused."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, submissions: SubmissionQueues) -> None:
        super().__init__(scope, construct_id)
        rules: dict[str, list[str]] = {}
        for name, rule in stage.event_rules.items():
            queue, refused = submissions.queues[rule.tenant], submissions.refused[rule.tenant]
            made = events.CfnRule(
                self,
                f"Rule-{name}",
                name=rule_name(stage.name, name),
                description=f"Makes jobs of {rule.tenant}",
                event_bus_name=rule.bus,
                event_pattern=rule.pattern,
                targets=[
                    events.CfnRule.TargetProperty(
                        id="Queue",
                        arn=queue.queue_arn,
                        dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=refused.queue_arn),
                        input_transformer=events.CfnRule.InputTransformerProperty(
                            input_paths_map=rule.input_paths(), input_template=rule.template(name)
                        ),
                    )
                ],
            )
            rules.setdefault(rule.tenant, []).append(made.attr_arn)
        for tenant, arns in rules.items():
            for queue in (submissions.queues[tenant], submissions.refused[tenant]):
                _let_rules_send(queue, arns)


def rule_name(stage: str, name: str) -> str:
    """What EventBridge calls it."""
    return f"Tickwheel-{stage}-{name}"


def _let_rules_send(queue: sqs.Queue, arns: list[str]) -> None:
    """As https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html says, and for these rules alone."""
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid="ItsEventRules",
            principals=[cast("iam.IPrincipal", iam.ServicePrincipal("events.amazonaws.com"))],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions={
                "ArnEquals": {"aws:SourceArn": arns},
                "StringEquals": {"aws:SourceAccount": cdk.Stack.of(queue).account},
            },
        )
    )
