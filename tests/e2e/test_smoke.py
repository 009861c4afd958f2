"""The short list of `make smoke`, on a stage of the local cloud: what passes in AWS passes here, or is named as not possible."""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from infra.stage import Stage
from smoke import deployed, front_door, watching
from smoke.__main__ import chosen
from smoke.catalogue import CHECKS
from smoke.check import Outcome, Result
from smoke.faults import Wrong
from smoke.ground import Ground
from smoke.run import CLEAN_UP, Run, run_all
from testkit.deployment import Deployment
from testkit.polling import PATIENCE, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

NOT_HERE = {"recursion config", "audit stream", "lag, warm", "alarm", "metrics", "saved queries"}


@pytest.fixture(scope="module")
def ground(deployment: Deployment) -> Iterator[Ground]:
    ground = Ground(Stage.named("local"), deployment.stack.aws.as_kwargs())
    yield ground
    ground.close()


@pytest.fixture(scope="module")
def run(ground: Ground) -> Run:
    told: list[Result] = []
    run = run_all(ground, chosen(quick=True), told.append)
    assert told == run.results
    return run


def test_everything_that_is_possible_here_passes(run: Run) -> None:
    assert [str(result) for result in run.results if result.outcome is Outcome.FAILED] == []
    assert run.is_passed


def test_each_check_of_the_short_list_has_a_result_and_so_has_the_cleaning(run: Run) -> None:
    assert sorted(result.of for result in run.results) == sorted(
        [*(check.name for check in CHECKS if check.is_quick), CLEAN_UP]
    )


def test_what_the_local_cloud_cannot_do_is_named_with_a_reason_and_did_not_pass(run: Run) -> None:
    not_here = {result.of: result.seen for result in run.results if result.outcome is Outcome.NOT_POSSIBLE}

    assert not_here.keys() == NOT_HERE
    assert all("local cloud" in reason or "machine" in reason for reason in not_here.values())


def test_what_a_run_made_is_gone(run: Run, ground: Ground) -> None:
    mine = [tenant for tenant in ground.client.tenants.list() if ground.run in tenant.tenant]

    assert len(mine) == 1
    assert {tenant.status for tenant in mine} <= {"deleting", "deleted"}


def test_where_not_everybody_is_an_operator_it_acts_in_their_role(ground: Ground) -> None:
    other = Ground(dataclasses.replace(ground.stage, operators=()), ground.options)

    seen = front_door.stranger(other)

    other.close()
    assert other.operator.access_key != ground.caller.access_key
    assert seen == "a caller without a policy: 403, an operator: 200"


def test_a_disabled_event_source_is_seen(deployment: Deployment, ground: Ground) -> None:
    client = deployment.client("lambda")
    function = deployment.function("DeadLetters")
    source = client.list_event_source_mappings(FunctionName=function)["EventSourceMappings"][0]
    client.update_event_source_mapping(UUID=source["UUID"], Enabled=False)
    try:
        with pytest.raises(Wrong) as wrong:
            deployed.event_sources(ground)
    finally:
        client.update_event_source_mapping(UUID=source["UUID"], Enabled=True)

    queue = source["EventSourceArn"].rpartition(":")[2]
    assert wrong.value.seen == f"{queue}: Disabled"
    assert wrong.value.expected == "a source each, Enabled"
    eventually(lambda: deployed.event_sources(ground), bool, what="all sources are enabled again")


def test_a_disabled_rule_and_one_that_its_function_does_not_let_in_are_seen(
    deployment: Deployment, ground: Ground
) -> None:
    events = deployment.client("events")
    name, stranger = "Tickwheel-local-Scheduler-sweeper-0", f"smoke-{ground.run}"
    events.disable_rule(Name=name)
    try:
        with pytest.raises(Wrong, match=f"{name} is DISABLED; expected: ENABLED"):
            deployed.rules(ground)
    finally:
        events.enable_rule(Name=name)

    (target,) = events.list_targets_by_rule(Rule=name)["Targets"]
    assert deployed.is_let_in(ground, events.describe_rule(Name=name)["Arn"], target["Arn"])
    assert not deployed.is_let_in(ground, f"arn:aws:events:us-east-1:000000000000:rule/{stranger}", target["Arn"])


def test_functions_that_may_not_send_themselves_messages_are_seen(deployment: Deployment, ground: Ground) -> None:
    client = deployment.client("lambda")
    names = [deployment.function(name) for name in ("Worker", "DeadLetters")]

    with pytest.raises(Wrong, match="'Worker': 'Terminate'") as wrong:  # what the local cloud makes of the template
        deployed.recursion(ground)
    for name in names:
        client.put_function_recursion_config(FunctionName=name, RecursiveLoop="Allow")
    try:
        assert deployed.recursion(ground) == "Allow, of Worker and DeadLetters"
    finally:
        for name in names:
            client.put_function_recursion_config(FunctionName=name, RecursiveLoop="Terminate")

    assert wrong.value.expected == "Allow"


def test_the_stream_of_the_audit_trail_is_looked_at(ground: Ground) -> None:
    assert deployed.audit_stream(ground) == "ACTIVE"


def test_metrics_are_looked_for_in_the_namespace_of_the_stage(deployment: Deployment, ground: Ground) -> None:
    attempts = {"MetricName": "attempts", "Dimensions": [{"Name": "service", "Value": "worker"}], "Value": 3}
    deployment.client("cloudwatch").put_metric_data(Namespace=ground.stage.metrics_namespace, MetricData=[attempts])

    assert watching.metrics(ground) == "Tickwheel/local: {'attempts': 3.0, 'dead_lettered': 0}"


def test_an_alarm_is_received_and_what_received_it_is_removed(deployment: Deployment) -> None:
    ground = Ground(Stage.named("local"), deployment.stack.aws.as_kwargs())
    sns, topic = deployment.client("sns"), ground.resources.outputs["AlarmTopicArn"]

    def subscribed() -> list[str]:
        found = sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
        return [each["Endpoint"] for each in found if ground.run in each["Endpoint"]]

    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(watching.alarm, ground)
        eventually(subscribed, bool, what="the check has subscribed to the topic")
        sns.publish(TopicArn=topic, Subject="OK: something else", Message="{}")
        sns.publish(TopicArn=topic, Subject="ALARM: DeadLetteredByWorker", Message="{}")
        assert seen.result(timeout=PATIENCE) == "ALARM: DeadLetteredByWorker; 0 addresses are mailed"
    ground.clean_up()

    assert subscribed() == []
    assert [url for url in deployment.client("sqs").list_queues()["QueueUrls"] if ground.run in url] == []
    ground.close()
