"""What whoever watches the stage sees: metrics, saved queries, and an alarm on its way."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import REFUSES, TRIAL, Ground
from tickwheel.client.jobs import NewJob

_LATE_METRICS_SECONDS = 180
"""Metrics of a minute are complete some minutes later; one that must stay away is waited for so long."""

_NO_METRICS = "the local cloud makes no metrics of what functions print, and keeps no alarms on expressions"


@partial(Check, name="nothing dropped", phase=Phase.SETTLED, seconds=_LATE_METRICS_SECONDS + 30, is_quick=True)
def nothing_dropped(ground: Ground) -> str:
    """Lambda has stopped no chain of this run."""
    if not ground.stage.emulated:
        time.sleep(_LATE_METRICS_SECONDS)
    names = [ground.function(name) for name in ("Worker", "DeadLetters")]
    dropped = {name: _sum(ground, "AWS/Lambda", "RecursiveInvocationsDropped", FunctionName=name) for name in names}
    if any(dropped.values()):
        raise Wrong(dropped, expected="RecursiveInvocationsDropped is 0")
    return f"RecursiveInvocationsDropped 0 since {ground.began_at:%H:%M:%S}"


@partial(Check, name="metrics", phase=Phase.SETTLED, seconds=320, is_quick=True, needs_aws=_NO_METRICS)
def metrics(ground: Ground) -> str:
    """The stage's own metrics are there, in its own namespace."""
    namespace = ground.stage.metrics_namespace
    seen = ground.eventually(
        lambda: {name: _sum(ground, namespace, name, service="worker") for name in ("attempts", "dead_lettered")},
        lambda sums: sums["attempts"] > 0,
        within=300,
        expected=f"attempts of the worker in {namespace}",
    )
    return f"{namespace}: {seen}"


@partial(
    Check,
    name="saved queries",
    phase=Phase.SETTLED,
    seconds=260,
    usd=0.01,
    is_quick=True,
    needs_aws="the local cloud keeps no saved queries",
)
def saved_queries(ground: Ground) -> str:
    """A saved query of the logs and one of the audit trail run."""
    logs, athena = ground.aws("logs"), ground.aws("athena")
    prefix = f"Tickwheel {ground.stage.name}/"
    found = logs.describe_query_definitions(queryDefinitionNamePrefix=prefix)["queryDefinitions"]
    workgroup = f"tickwheel-{ground.stage.name}"
    ids = athena.list_named_queries(WorkGroup=workgroup)["NamedQueryIds"]
    if not found or not ids:
        raise Wrong(f"{len(found)} of the logs, {len(ids)} of the audit trail", expected="some of both")
    ours = next(each for each in found if each.get("logGroupNames"))
    now = int(time.time())
    query = logs.start_query(
        logGroupNames=ours["logGroupNames"], startTime=now - 3_600, endTime=now, queryString=ours["queryString"]
    )["queryId"]
    of_logs = ground.eventually(
        lambda: logs.get_query_results(queryId=query)["status"], _has_ended, within=120, expected="an end of the query"
    )
    queries = [athena.get_named_query(NamedQueryId=each)["NamedQuery"] for each in ids]
    plain = next(each for each in queries if "?" not in each["QueryString"])
    run = athena.start_query_execution(
        QueryString=plain["QueryString"],
        QueryExecutionContext={"Database": plain["Database"]},
        WorkGroup=workgroup,
    )["QueryExecutionId"]
    of_trail = ground.eventually(
        lambda: athena.get_query_execution(QueryExecutionId=run)["QueryExecution"]["Status"]["State"],
        _has_ended,
        within=120,
        expected="an end of the query",
    )
    if (of_logs, of_trail) != ("Complete", "SUCCEEDED"):
        raise Wrong(f"{ours['name']}: {of_logs}; {plain['Name']}: {of_trail}", expected="Complete and SUCCEEDED")
    return f"{len(found)} and {len(ids)} saved; {ours['name']}: {of_logs}; {plain['Name']}: {of_trail}"


@partial(Check, name="alarm", phase=Phase.JOBS, seconds=700, jobs=1, is_quick=True, needs_aws=_NO_METRICS)
def alarm(ground: Ground) -> str:
    """A dead letter pages: its alarm reaches the topic, and whoever is subscribed to it has consented."""
    topic, name = ground.resources.outputs["AlarmTopicArn"], f"smoke-{ground.run}"
    sqs, sns = ground.aws("sqs"), ground.aws("sns")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    ground.at_the_end(f"queue {name}", lambda: sqs.delete_queue(QueueUrl=url))
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(_for_topic(arn, topic))})
    subscription = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, ReturnSubscriptionArn=True)[
        "SubscriptionArn"
    ]
    ground.at_the_end(f"subscription of {name}", lambda: sns.unsubscribe(SubscriptionArn=subscription))
    ground.submit(NewJob(TRIAL, tenant=ground.tenant(), payload=REFUSES))

    def receive() -> str:
        received = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=10).get("Messages", [])
        subjects = [json.loads(message["Body"]).get("Subject", "") for message in received]
        return next((subject for subject in subjects if "DeadLetter" in subject), "")

    subject = ground.eventually(receive, bool, within=600, expected="an alarm of dead letters arrives")
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    mails = {
        found["Endpoint"]: found["SubscriptionArn"] != "PendingConfirmation"
        for page in pages
        for found in page["Subscriptions"]
        if found["Protocol"] == "email"
    }
    if ground.stage.alarm_email is not None and not mails.get(ground.stage.alarm_email):
        raise Wrong(f"{subject}; mail to {mails}", expected=f"{ground.stage.alarm_email} has consented")
    return f"{subject}; {len(mails)} addresses are mailed"


def _has_ended(state: str) -> bool:
    return state.upper() not in ("QUEUED", "RUNNING", "SCHEDULED")


def _for_topic(queue: str, topic: str) -> dict[str, Any]:
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    return {"Version": "2012-10-17", "Statement": [allowed]}


def _sum(ground: Ground, namespace: str, name: str, **dimensions: str) -> float:
    found = ground.aws("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=ground.began_at - timedelta(minutes=1),
        EndTime=datetime.now(UTC) + timedelta(minutes=1),
        Period=60,
        Statistics=["Sum"],
    )
    return sum(point["Sum"] for point in found["Datapoints"])


CHECKS = (alarm, nothing_dropped, metrics, saved_queries)
