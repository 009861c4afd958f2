"""Which events become jobs, and that their rules may send to the queues of their tenants and do nothing else."""

import dataclasses
import json
from typing import Any

import pytest

from infra.encryption import OWN_KEY
from infra.event_templates import (
    MOST_OF_A_PATTERN,
    MOST_OF_A_TEMPLATE,
    MOST_PATHS,
    MOST_RULES,
    EventRule,
)
from infra.stage import Stage
from infra.stage_parts import InvalidStage
from scripts.check_templates import lint
from scripts.check_templates import synthesise as synthesise_and_check
from scripts.synthesis import Templates, synthesise

ORDERS = "arn:aws:iam::111122223333:role/orders"
PATTERN = {"source": ["shop"], "detail-type": ["OrderPlaced"]}
REMIND = EventRule(
    tenant="acme",
    bus="shop",
    pattern=PATTERN,
    paths={"order": "$.detail.order"},
    job={"target": "https://example.com/hook", "payload": {"order": "<order>"}, "delay": "P1D"},
)


def a_stage(queues: Any = None, **rules: EventRule) -> Stage:
    queues = {"acme": (ORDERS,)} if queues is None else queues
    return dataclasses.replace(Stage.named("dev"), submission_queues=queues, event_rules=rules)


def a_rule(**changed: Any) -> EventRule:
    return dataclasses.replace(REMIND, **changed)


@pytest.fixture(scope="module")
def listening() -> Templates:
    return synthesise(
        a_stage({"acme": (ORDERS,), "globex": ()}, remind=REMIND, archive=a_rule(tenant="globex", bus="default"))
    )


def statements(templates: Templates) -> dict[str, list[dict[str, Any]]]:
    """What lets rules send, by the queue."""
    queues = {name: queue["Properties"]["QueueName"] for name, queue in named_queues(templates).items()}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in queues.values()}
    for policy in templates.of_type("AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement.get("Sid") == "ItsEventRules":
                found[queues[statement["Resource"]["Fn::GetAtt"][0]]].append(statement)
    return found


def named_queues(templates: Templates) -> dict[str, Any]:
    return {
        name: queue
        for name, queue in templates.of_type("AWS::SQS::Queue").items()
        if "QueueName" in queue["Properties"]
    }


def test_a_stage_that_names_no_rule_has_none(dev: Templates) -> None:
    assert not [rule for rule in dev.of_type("AWS::Events::Rule").values() if "EventPattern" in rule["Properties"]]


def test_a_rule_sends_a_body_to_the_queue_of_its_tenant_and_what_is_not_delivered_to_that_of_the_refused(
    listening: Templates,
) -> None:
    names = {
        rule["Properties"].get("Name"): rule["Properties"] for rule in listening.of_type("AWS::Events::Rule").values()
    }
    rule = names["Tickwheel-dev-remind"]
    (target,) = rule["Targets"]
    queues = named_queues(listening)

    assert (rule["EventBusName"], rule["EventPattern"]) == ("shop", PATTERN)
    assert queues[target["Arn"]["Fn::GetAtt"][0]]["Properties"]["QueueName"] == "Tickwheel-dev-submissions-acme"
    dead = queues[target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]]
    assert dead["Properties"]["QueueName"] == "Tickwheel-dev-refused-acme"
    assert target["InputTransformer"] == {
        "InputPathsMap": {"order": "$.detail.order", "tickwheel-event-id": "$.id"},
        "InputTemplate": '{"payload": {"order": <order>}, "target": "https://example.com/hook", "delay": "P1D", '
        '"idempotency_key": "remind:<tickwheel-event-id>"}',
    }


def test_a_rule_may_send_to_the_two_queues_of_its_tenant_and_to_no_other(listening: Templates) -> None:
    rules = {rule["Properties"].get("Name"): name for name, rule in listening.of_type("AWS::Events::Rule").items()}

    for tenant, name in (("acme", "remind"), ("globex", "archive")):
        arn = {"Fn::GetAtt": [rules[f"Tickwheel-dev-{name}"], "Arn"]}
        for kind in ("submissions", "refused"):
            (statement,) = statements(listening)[f"Tickwheel-dev-{kind}-{tenant}"]
            assert (statement["Effect"], statement["Action"]) == ("Allow", "sqs:SendMessage")
            assert statement["Principal"] == {"Service": "events.amazonaws.com"}
            assert statement["Condition"] == {
                "ArnEquals": {"aws:SourceArn": [arn]},
                "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
            }


def test_nobody_but_rules_may_send_to_a_queue_without_senders(listening: Templates) -> None:
    for policy in listening.of_type("AWS::SQS::QueuePolicy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            if statement.get("Sid") == "OnlyItsSenders" and "globex" in json.dumps(statement["Resource"]).lower():
                assert len(statement["Condition"]["ArnNotLike"]["aws:PrincipalArn"]) > 0
                assert ORDERS not in json.dumps(statement)
                return
    raise AssertionError("no statement denies anybody the queue of globex")


def test_rules_may_use_a_key_of_the_stage_for_its_queues_alone() -> None:
    for rules, sids in (({}, ["Logs"]), ({"remind": REMIND}, ["Logs", "EventRules"])):
        stage = dataclasses.replace(a_stage({"acme": (ORDERS,)}, **rules), customer_key=OWN_KEY)
        (key,) = (
            key
            for key in synthesise(stage).of_type("AWS::KMS::Key").values()
            if "all that it keeps" in key["Properties"]["Description"]
        )
        services = [each for each in key["Properties"]["KeyPolicy"]["Statement"] if "Service" in each["Principal"]]
        assert [each["Sid"] for each in services] == sids
    assert services[1]["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert "Tickwheel-dev-*" in json.dumps(services[1]["Condition"]["ArnLike"]["kms:EncryptionContext:aws:sqs:arn"])


def test_a_stage_with_rules_is_clean(tmp_path: Any) -> None:
    lint(synthesise_and_check(a_stage(remind=REMIND), into=tmp_path))


def test_a_batch_has_a_key_for_each_of_its_jobs_and_one_that_is_given_stays() -> None:
    rule = a_rule(job={"jobs": [{"target": "handler:echo"}, {"target": "handler:echo", "idempotency_key": "k<order>"}]})
    a_stage(two=rule)

    keys = [job["idempotency_key"] for job in json.loads(rule.template("two"))["jobs"]]

    assert keys == ["two:<tickwheel-event-id>:0", "k<order>"]


def test_what_no_event_decides_stands_behind_what_one_does() -> None:
    """So that a value that EventBridge does not escape cannot take its place: of two members of a name the last counts."""
    rule = a_rule(job={"target": "handler:echo", "payload": "<order>", "priority": "low"})

    assert [*json.loads(rule.template("x").replace("<order>", "1"))] == [
        "payload",
        "target",
        "priority",
        "idempotency_key",
    ]


def job(**members: Any) -> dict[str, Any]:
    return {"target": "handler:echo", "payload": "<order>", **members}


@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        ({"tenant": "initech"}, ["tenant 'initech' has no queue: name it in submission_queues"]),
        ({"bus": "arn:aws:events:eu-west-1:111122223333:event-bus/shop"}, ["use the name of a bus"]),
        ({"pattern": {}}, ["pattern is empty"]),
        ({"pattern": {"source": ["x" * MOST_OF_A_PATTERN]}}, [f"EventBridge takes {MOST_OF_A_PATTERN}"]),
        ({"paths": {}}, ["has <order> at /payload/order, which paths does not name"]),
        ({"paths": {"order": "$.detail.order", "more": "$.x"}}, ["'more', which the job does not use"]),
        ({"paths": {"order": "detail.order"}}, ["use a path such as"]),
        ({"paths": {"order": "$.detail['order']"}}, ["use a path such as"]),
        ({"paths": {"order": "$." + "x" * 256}}, ["of at most 256 characters"]),
        ({"paths": {"order": "$.x", "aws-x": "$.x"}, "job": job(tags=["<aws-x>"])}, ["the variable 'aws-x'"]),
        ({"paths": {f"v{number}": "$.x" for number in range(MOST_PATHS + 1)}}, [f"use at most {MOST_PATHS}"]),
        ({"job": job(tags=["a <"])}, ["has a < or > at /tags/0"]),
        ({"job": job(payload={"<order>": 1})}, ["in the name of a member at /payload/<order>"]),
        ({"job": job(tags=["it is <aws.events.event.json>"])}, ["must be the whole value"]),
        ({"job": job(payload={"text": "x" * MOST_OF_A_TEMPLATE, "order": "<order>"})}, ["characters as a template"]),
        ({"job": job(tenant="globex")}, ["job.tenant is not 'acme'"]),
        ({"job": job(delay="soon")}, ["job.delay: "]),
        ({"job": job(prioriti="low")}, ["job.prioriti: "]),
        ({"job": job(target="http://10.0.0.1/x")}, ["job.target: "]),
        ({"job": {"payload": "<order>"}}, ["job.target: Field required"]),
        ({"job": {"jobs": [job(), job(priority="x")]}}, ["job.jobs.1.priority: "]),
        ({"job": {"jobs": [job(), 7]}}, ["job.jobs.1 must be a job"]),
        ({"job": {"jobs": []}}, ["a list of 1 to 500 jobs"]),
        ({"job": {"jobs": [job()], "more": "<order>"}}, ["job has more than its jobs"]),
        ({"bus": "", "pattern": {}, "job": job(delay=-1)}, ["bus is ''", "pattern is empty", "job.delay: "]),
    ],
)
def test_a_rule_that_could_not_work_is_refused_with_all_that_is_wrong_with_it(
    changed: dict[str, Any], reasons: list[str]
) -> None:
    with pytest.raises(InvalidStage) as refused:
        a_stage(remind=a_rule(**changed))
    for reason in reasons:
        assert reason in str(refused.value)


def test_names_and_numbers_of_rules_have_limits() -> None:
    with pytest.raises(InvalidStage, match="the name must match"):
        a_stage(**{"x" * 41: REMIND})
    with pytest.raises(InvalidStage, match=f"use at most {MOST_RULES}"):
        a_stage(**{f"r{number}": REMIND for number in range(MOST_RULES + 1)})
    with pytest.raises(InvalidStage, match="has 0 senders"):
        a_stage({"acme": (), "globex": ()}, remind=REMIND)


def test_members_that_an_event_decides_are_not_looked_at_before_it_is_there() -> None:
    a_stage(any=a_rule(job={"target": "<order>", "delay": "<order>", "retry": {"attempts": "<order>"}}))
