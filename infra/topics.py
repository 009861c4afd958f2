"""Where alarms go: what pages and what makes a ticket are apart, so that each can be sent elsewhere."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.acknowledge import acknowledge
from infra.stage import Stage


class Topics(Construct):
    """`pages` wake somebody; `tickets` wait for office hours. The stage's address is subscribed to both.

    paging, ticketing: the alarms that are sent to each.

    They are on disks that SNS encrypts (https://docs.aws.amazon.com/sns/latest/dg/sns-data-encryption.html). Where a customer's key
    encrypts all else they have a key of their own, not that one: they must work when that is gone, and what they carry are names
    and states of alarms.

    given: a topic in place of both, whose policy and key are its owner's.
    """

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage, given: sns.ITopic | None = None) -> None:
        super().__init__(scope, construct_id)
        if given is not None:
            self.pages = self.tickets = given
        else:
            key = None if stage.customer_key is None else _key(self, stage=stage)
            self.pages = _topic(self, "Pages", title=f"Tickwheel {stage.name}: page", key=key, stage=stage)
            self.tickets = _topic(self, "Tickets", title=f"Tickwheel {stage.name}: ticket", key=key, stage=stage)
        self.paging: list[cloudwatch.AlarmBase] = []
        self.ticketing: list[cloudwatch.AlarmBase] = []

    def page(self, *alarms: cloudwatch.AlarmBase) -> None:
        """Page when one of them is in alarm, and report when it has cleared."""
        self.paging += alarms
        _send(alarms, to=self.pages)

    def ticket(self, *alarms: cloudwatch.AlarmBase) -> None:
        """Leave somebody a note."""
        self.ticketing += alarms
        _send(alarms, to=self.tickets)


def _key(scope: Construct, *, stage: Stage) -> kms.IKey:
    key = kms.Key(
        scope,
        "Key",
        description=f"Tickwheel {stage.name}: alarms on their way",
        enable_key_rotation=True,
        removal_policy=cdk.RemovalPolicy.DESTROY,
    )
    # CloudWatch may not use the key that AWS manages for SNS, and alarms would be lost without a word.
    key.add_to_resource_policy(_for_alarms("kms:Decrypt", "kms:GenerateDataKey*", on="*", scope=scope, sid="Alarms"))
    return cast("kms.IKey", key)


def _topic(scope: Construct, construct_id: str, *, title: str, key: kms.IKey | None, stage: Stage) -> sns.ITopic:
    topic = sns.Topic(scope, construct_id, display_name=title, master_key=key, enforce_ssl=True)
    # A policy of its own takes the place of the one by which SNS lets the account's alarms in.
    topic.add_to_resource_policy(_for_alarms("sns:Publish", on=topic.topic_arn, scope=scope))
    if stage.alarm_email is not None:
        mail = cast("sns.ITopicSubscription", subscriptions.EmailSubscription(stage.alarm_email))
        acknowledge(
            topic.add_subscription(mail),
            "Serverless-SNSRedrivePolicy",
            because="What cannot be mailed is not tried again by a queue: the alarm itself stays to be seen.",
        )
    return cast("sns.ITopic", topic)


def _for_alarms(*allowed: str, on: str, scope: Construct, sid: str | None = None) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid,
        principals=[cast("iam.IPrincipal", iam.ServicePrincipal("cloudwatch.amazonaws.com"))],
        actions=list(allowed),
        resources=[on],
        conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(scope).account}},
    )


def _send(alarms: tuple[cloudwatch.AlarmBase, ...], *, to: sns.ITopic) -> None:
    action = cast("cloudwatch.IAlarmAction", actions.SnsAction(to))
    for each in alarms:
        each.add_alarm_action(action)
        each.add_ok_action(action)
