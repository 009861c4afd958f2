"""Who may send jobs to which queue, and that nobody else may."""

import dataclasses
import json
from typing import Any

import pytest

from functions.domain.jobs.submission_queues import LIFE, MOST_BYTES, queue_name, refused_name, tenant_of
from infra.stage import Stage
from infra.stage_parts import InvalidStage, Watching
from infra.submission_rules import MOST_QUEUES, MOST_SENDERS
from scripts.check_templates import lint
from scripts.check_templates import synthesise as synthesise_and_check
from scripts.least_privilege.calls import kept
from scripts.least_privilege.report import reports_of
from scripts.synthesis import Templates, synthesise

ORDERS = "arn:aws:iam::111122223333:role/orders"
BILLING = "arn:aws:iam::111122223333:user/teams/billing"


def a_stage(**queues: Any) -> Stage:
    return dataclasses.replace(Stage.named("dev"), watching=Watching.FULL, submission_queues=queues)


@pytest.fixture(scope="module")
def sending() -> Templates:
    return synthesise(a_stage(acme=(ORDERS, BILLING), globex=("*",)))


def queues(templates: Templates) -> dict[str, dict[str, Any]]:
    named = [queue["Properties"] for queue in templates.of_type("AWS::SQS::Queue").values()]
    return {queue["QueueName"]: queue for queue in named if "QueueName" in queue}


def denials(templates: Templates) -> dict[str, dict[str, Any]]:
    """The statements that say who may not send, by the queue."""
    found = {}
    names = {name: queue["Properties"].get("QueueName") for name, queue in templates.of_type("AWS::SQS::Queue").items()}
    for policy in templates.of_type("AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement.get("Sid") == "OnlyItsSenders":
                found[names[statement["Resource"]["Fn::GetAtt"][0]]] = statement
    return found


def test_a_stage_that_names_no_tenant_has_no_queue_and_no_poller_more(dev: Templates) -> None:
    assert queues(dev) == {}
    assert len(dev.of_type("AWS::Lambda::EventSourceMapping")) == 5
    assert json.loads(dev.environment("api")["SUBMISSION_QUEUE_URLS"]) == []


def test_each_tenant_has_a_queue_and_one_for_what_was_refused(sending: Templates) -> None:
    found = queues(sending)

    assert set(found) == {
        f"Tickwheel-dev-{kind}-{tenant}" for kind in ("submissions", "refused") for tenant in ("acme", "globex")
    }
    submissions, refused = found["Tickwheel-dev-submissions-acme"], found["Tickwheel-dev-refused-acme"]
    assert submissions["MaximumMessageSize"] == MOST_BYTES
    # A message keeps its age when SQS itself moves it: it must not be forgotten on its way.
    assert submissions["MessageRetentionPeriod"] == LIFE.total_seconds() < refused["MessageRetentionPeriod"]
    assert submissions["VisibilityTimeout"] >= 6 * Stage.named("dev").api.timeout.total_seconds()
    assert "RedrivePolicy" not in refused


def test_only_the_senders_of_a_tenant_and_who_sends_on_may_send_and_services_need_leave_of_their_own(
    sending: Templates,
) -> None:
    (statement,) = denials(sending).values()

    assert list(denials(sending)) == ["Tickwheel-dev-submissions-acme"]
    assert (statement["Effect"], statement["Action"], statement["Principal"]) == (
        "Deny",
        "sqs:SendMessage",
        {"AWS": "*"},
    )
    *senders, api = statement["Condition"]["ArnNotLike"]["aws:PrincipalArn"]
    assert senders == [ORDERS, "arn:aws:iam::111122223333:role/*/orders", BILLING]
    assert api == {"Fn::GetAtt": sending.functions()["api"]["Properties"]["Role"]["Fn::GetAtt"]}
    assert statement["Condition"]["Bool"] == {"aws:PrincipalIsAWSService": "false"}


def test_no_statement_lets_anybody_send_whom_iam_does_not(sending: Templates) -> None:
    for policy in sending.of_type("AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Deny"


def test_nobody_is_paged_for_what_a_tenant_sends(sending: Templates, full: Templates) -> None:
    watched = json.dumps([*sending.of_type("AWS::CloudWatch::Alarm").values()])

    assert not any(name in watched for name in ("SubmissionsQueue", "SubmissionsRefused", "-submissions-", "-refused-"))
    alarms = set(sending.of_type("AWS::CloudWatch::Alarm")) - set(full.of_type("AWS::CloudWatch::Alarm"))
    # Of Lambda itself, which would hold all messages back.
    assert [name.startswith("AlarmsDroppedApi") for name in alarms] == [True]


def test_each_source_is_bounded_by_itself(sending: Templates) -> None:
    sources = sending.of_type("AWS::Lambda::EventSourceMapping").items()
    added = [source["Properties"] for name, source in sources if name.startswith("Submissions")]

    assert [source["ScalingConfig"]["MaximumConcurrency"] for source in added] == [2, 2]
    assert all(source["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for source in added)
    assert a_stage(acme=("*",)).concurrency == Stage.named("dev").concurrency + 2


def test_the_function_may_do_what_it_does_with_all_the_queues_and_no_more(sending: Templates) -> None:
    assert [finding for report in reports_of(sending, kept()) for finding in report.findings] == []


def length(value: Any) -> int:
    """Characters of a value of a template, as it is deployed, at most."""
    match value:
        case str():
            return len(value)
        case {"Fn::Join": [separator, parts]}:
            return sum(length(part) + len(separator) for part in parts)
        case _:  # a name, an ARN or an address of the stack's
            return 130


def test_as_many_queues_as_a_stage_may_have_are_clean_and_fit_into_an_environment(tmp_path: Any) -> None:
    tenants = {f"tenant-{number}-{'x' * 39}": (ORDERS,) for number in range(MOST_QUEUES)}
    stage = a_stage(**tenants)
    lint(synthesise_and_check(stage, into=tmp_path))

    address = "https://sqs.ap-southeast-1.amazonaws.com/111122223333/"
    assert max(len(address + queue_name(stage.name, tenant)) for tenant in tenants) <= length({"Ref": "Queue"})
    environment = synthesise(stage).environment("api")
    # Targets and plans of a stage need room, too.
    assert sum(len(name) + length(value) for name, value in environment.items()) < 4_096


@pytest.mark.parametrize(
    ("queues", "reason"),
    [
        ({"a.b": (ORDERS,)}, "the name of a queue cannot hold this id"),
        ({"x" * 49: (ORDERS,)}, "the name of a queue cannot hold this id"),
        ({"acme": ()}, "has 0 senders"),
        ({"acme": (ORDERS,) * (MOST_SENDERS + 1)}, "has 21 senders"),
        ({"acme": ("arn:aws:iam::111122223333:root",)}, "is no pattern of a role or a user"),
        ({"acme": ("arn:aws:iam::111122223333:role/orders-*",)}, "write whole names"),
        ({f"tenant-{number}": (ORDERS,) for number in range(MOST_QUEUES + 1)}, "use at most 5"),
    ],
)
def test_queues_that_could_not_be_or_would_let_in_too_many_are_refused(queues: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidStage, match=reason):
        a_stage(**queues)


def test_a_queue_is_of_the_tenant_that_its_name_ends_with() -> None:
    assert tenant_of("dev", queue_name("dev", "acme-refused")) == "acme-refused"
    assert queue_name("dev", "x") != refused_name("dev", "x")
    for name in (refused_name("dev", "acme"), queue_name("prod", "acme"), "ready"):
        with pytest.raises(ValueError, match="is no submission queue of dev"):
            tenant_of("dev", name)
