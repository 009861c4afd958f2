import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from infra.stage import PRIORITIES, Stage
from scripts.synthesis import Templates

FOURTEEN_DAYS = 14 * 24 * 3600


def dead_letter_queue_of(queue: dict[str, Any]) -> str | None:
    policy = queue["Properties"].get("RedrivePolicy")
    return policy["deadLetterTargetArn"]["Fn::GetAtt"][0] if policy else None


def test_the_ready_queues_have_one_dead_letter_queue_between_them(templates: Templates) -> None:
    queues = templates.of_type("AWS::SQS::Queue")
    targets = [target for queue in queues.values() if (target := dead_letter_queue_of(queue))]
    assert len(targets) == len(PRIORITIES)
    assert len(set(targets)) == 1
    assert set(queues) - set(targets) == {name for name, queue in queues.items() if dead_letter_queue_of(queue)}


def test_the_dead_letter_queue_is_one_that_the_release_before_had(dev: Templates) -> None:
    """Its logical id stays, and so do the messages that are in it while a stage is upgraded."""
    (target,) = {dead_letter_queue_of(queue) for queue in dev.of_type("AWS::SQS::Queue").values()} - {None}
    assert target == "ReadyNormalDead880C3B9B"


def test_a_message_is_received_ten_times_before_it_is_given_up(templates: Templates) -> None:
    for queue in templates.of_type("AWS::SQS::Queue").values():
        if dead_letter_queue_of(queue):
            assert queue["Properties"]["RedrivePolicy"]["maxReceiveCount"] == 10


def test_every_dead_letter_queue_has_an_alarm_above_zero(templates: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in templates.of_type("AWS::CloudWatch::Alarm").values()]
    for queue in templates.of_type("AWS::SQS::Queue").values():
        if target := dead_letter_queue_of(queue):
            assert any(
                alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
                and alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [target, "QueueName"]}}]
                and (alarm["Threshold"], alarm["ComparisonOperator"]) == (0, "GreaterThanThreshold")
                for alarm in alarms
            )


def test_every_queue_keeps_messages_for_fourteen_days_encrypted_and_over_tls(templates: Templates) -> None:
    queues = templates.of_type("AWS::SQS::Queue")
    for queue in queues.values():
        assert queue["Properties"]["MessageRetentionPeriod"] == FOURTEEN_DAYS
        assert queue["Properties"]["SqsManagedSseEnabled"] is True
        assert "QueueName" not in queue["Properties"]
    refused = [
        queue["Ref"]
        for policy in templates.of_type("AWS::SQS::QueuePolicy").values()
        for queue in policy["Properties"]["Queues"]
        if policy["Properties"]["PolicyDocument"]["Statement"][0]["Condition"]
        == {"Bool": {"aws:SecureTransport": "false"}}
    ]
    assert sorted(refused) == sorted(queues)


def test_a_message_stays_hidden_longer_than_its_worker_can_run_and_its_claim_can_last(
    any_stage: Stage, templates: Templates
) -> None:
    timeout = templates.functions()["worker"]["Properties"]["Timeout"]
    skew = any_stage.wheel.lease_skew.total_seconds()
    for queue in templates.of_type("AWS::SQS::Queue").values():
        if dead_letter_queue_of(queue):
            visibility = queue["Properties"]["VisibilityTimeout"]
            assert visibility == timeout + 25
            assert any_stage.lease.total_seconds() <= visibility - skew


def test_every_queue_feeds_exactly_one_function_with_partial_failures_reported(
    any_stage: Stage, templates: Templates
) -> None:
    sources = [source["Properties"] for source in templates.of_type("AWS::Lambda::EventSourceMapping").values()]
    fed = sorted(source["EventSourceArn"]["Fn::GetAtt"][0] for source in sources)
    assert fed == sorted(templates.of_type("AWS::SQS::Queue"))
    for source in sources:
        assert source["BatchSize"] == 10
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert "MaximumBatchingWindowInSeconds" not in source


def test_workers_kept_started_serve_critical_jobs_and_no_others(templates_of: Callable[[Stage], Templates]) -> None:
    templates = templates_of(replace(Stage.named("dev"), ready_critical=2))
    ((alias, resource),) = templates.of_type("AWS::Lambda::Alias").items()
    targets = {
        name: json.dumps(source["Properties"]["FunctionName"])
        for name, source in templates.of_type("AWS::Lambda::EventSourceMapping").items()
    }

    assert resource["Properties"]["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": 2}
    assert [name for name, target in targets.items() if alias in target] == [
        name for name in targets if name.startswith("WorkerFromCritical")
    ]
    (version,) = templates.of_type("AWS::Lambda::Version").values()
    assert version["DeletionPolicy"] == "Delete"


def test_each_priority_has_its_own_share_of_the_workers(any_stage: Stage, templates: Templates) -> None:
    sources = [source["Properties"] for source in templates.of_type("AWS::Lambda::EventSourceMapping").values()]
    shares = {
        source["EventSourceArn"]["Fn::GetAtt"][0]: (source.get("ScalingConfig"), source.get("ProvisionedPollerConfig"))
        for source in sources
    }
    queues = templates.of_type("AWS::SQS::Queue")
    for priority, limit, pollers in zip(PRIORITIES, any_stage.max_concurrency, any_stage.pollers, strict=True):
        (queue,) = (name for name in queues if priority.capitalize() in name and dead_letter_queue_of(queues[name]))
        assert shares[queue] == (
            None if limit is None else {"MaximumConcurrency": limit},
            None if pollers is None else {"MinimumPollers": pollers.minimum, "MaximumPollers": pollers.maximum},
        )
    (dead,) = set(queues) - {queue for queue in queues if dead_letter_queue_of(queues[queue])}
    is_limited = any(any_stage.max_concurrency) or any(any_stage.pollers)
    assert shares[dead] == ({"MaximumConcurrency": 2} if is_limited else None, None)
