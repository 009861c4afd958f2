"""Tickwheel as a construct among others of a user's app."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from functions.api.schedules.bodies import ScheduleBody
from infra import package
from infra.environment_room import MOST, longest
from infra.metrics import EMITTED, UnknownMetric
from infra.schedule import Definition, InvalidDefinition, Schedule
from infra.scheduler import Tickwheel
from infra.scheduler_access import DeployedTickwheel
from infra.stage import Stage
from infra.stage_parts import InvalidStage, Watching
from infra.surroundings import Domain, Tables
from infra.throughput import WarmThroughput
from scripts import check_example
from scripts.check_example import synthesise_example
from tests.infra.golden import FOLDER, rendered
from tests.pages import DOCS

DEV = Stage.named("dev")
FULL = dataclasses.replace(DEV, watching=Watching.FULL)
KEPT = json.loads((Path(__file__).parents[2] / "cdk.json").read_text())["context"]


class App:
    """A user's app with one stack, `user`."""

    def __init__(self, folder: Path, **env: str) -> None:
        context = {**KEPT, "aws:cdk:bundling-stacks": []}
        self.app = cdk.App(context=context, analytics_reporting=False, outdir=str(folder))
        self.stack = cdk.Stack(self.app, "User", env=cdk.Environment(**env) if env else None)

    def tickwheel(self, stage: Stage = DEV, **arguments: Any) -> Tickwheel:
        return Tickwheel(self.stack, "Scheduler", stage=stage, **arguments)

    def function(self, name: str = "Orders", **arguments: Any) -> lambda_.Function:
        return lambda_.Function(
            self.stack,
            name,
            runtime=lambda_.Runtime.PYTHON_3_13,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): pass"),
            **arguments,
        )

    def templates(self) -> dict[str, dict[str, Any]]:
        """By the names of stacks."""
        return {stack.stack_name: stack.template for stack in self.app.synth().stacks}


@pytest.fixture
def user(tmp_path: Path) -> App:
    return App(tmp_path)


def of_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: each for name, each in template.get("Resources", {}).items() if each["Type"] == kind}


def function_of(template: dict[str, Any], handler: str) -> dict[str, Any]:
    (found,) = (
        each["Properties"]
        for each in of_type(template, "AWS::Lambda::Function").values()
        if f"{handler}.handler" in each["Properties"]["Handler"]
    )
    return found


def statements_of(template: dict[str, Any], function: dict[str, Any]) -> list[dict[str, Any]]:
    role = function["Role"]["Fn::GetAtt"][0]
    return [
        statement
        for policy in of_type(template, "AWS::IAM::Policy").values()
        if {"Ref": role} in policy["Properties"]["Roles"]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    ]


def flat(value: Any) -> str:
    """A value of a template as one text, references in angle brackets."""
    match value:
        case {"Fn::Join": [separator, list() as parts]}:
            return str(separator).join(map(flat, parts))
        case {"Ref": name}:
            return f"<{name}>"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"<{name}.{attribute}>"
        case {"Fn::ImportValue": name}:
            return f"<{flat(name)}>"
        case _:
            return str(value)


def test_an_app_without_arguments_has_the_stacks_of_a_checkout(user: App, tmp_path: Path) -> None:
    user.tickwheel()

    templates = user.templates()

    assert rendered(templates["Tickwheel-dev-Storage"]) == (FOLDER / "dev-storage.json").read_text()
    assert not templates["User"].get("Resources")


class TestTargets:
    def test_constructs_with_names_are_targets_and_need_nothing_of_the_stack_that_they_are_in(self, user: App) -> None:
        stack = user.stack
        targets = [
            sqs.Queue(stack, "Queue", queue_name="reports"),
            user.function("Report", function_name="report"),
            sns.Topic(stack, "Topic", topic_name="reports"),
            events.EventBus(stack, "Bus", event_bus_name="reports"),
            sfn.StateMachine(
                stack,
                "Machine",
                state_machine_name="report",
                definition_body=sfn.DefinitionBody.from_string("{}"),
            ),
        ]
        scheduler = user.tickwheel(targets=targets)

        templates = user.templates()

        scheduler_template = templates["Tickwheel-dev-Scheduler"]
        prefix = "arn:<AWS::Partition>:{}:<AWS::Region>:<AWS::AccountId>:"
        arns = [
            prefix.format("sqs") + "reports",
            prefix.format("lambda") + "function:report",
            prefix.format("sns") + "reports",
            prefix.format("events") + "event-bus/reports",
            prefix.format("states") + "stateMachine:report",
        ]
        worker = function_of(scheduler_template, "worker")
        for function in (worker, function_of(scheduler_template, "api")):
            allowed = flat(function["Environment"]["Variables"]["ALLOWED_TARGETS"])
            assert json.loads(allowed) == [*DEV.targets, *arns]
        granted = {
            (action, flat(resource))
            for statement in statements_of(scheduler_template, worker)
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }
        assert {
            ("sqs:SendMessage", arns[0]),
            ("lambda:InvokeFunction", arns[1]),
            ("lambda:InvokeFunction", f"{arns[1]}:*"),
            ("sns:Publish", arns[2]),
            ("events:PutEvents", arns[3]),
            ("states:StartExecution", arns[4]),
        } <= granted
        assert "User:" not in json.dumps(scheduler_template)
        assert stack.stack_name not in [each.stack_name for each in scheduler.scheduler.dependencies]

    def test_a_construct_without_a_name_has_its_stack_deployed_before(self, user: App) -> None:
        targets = cdk.Stack(user.app, "Targets")
        user.tickwheel(targets=[sqs.Queue(targets, "Queue")])

        worker = function_of(user.templates()["Tickwheel-dev-Scheduler"], "worker")

        assert "<Targets:ExportsOutputFnGetAttQueue" in flat(worker["Environment"]["Variables"]["ALLOWED_TARGETS"])

    @pytest.mark.long
    def test_an_encrypted_queue_brings_what_its_key_needs(self, user: App) -> None:
        key = kms.Key(cdk.Stack(user.app, "Targets"), "Key")
        queue = sqs.Queue(key, "Queue", queue_name="reports", encryption_master_key=cast("kms.IKey", key))
        user.tickwheel(targets=[queue])

        template = user.templates()["Tickwheel-dev-Scheduler"]

        (statement,) = (
            each for each in statements_of(template, function_of(template, "worker")) if "kms:Decrypt" in each["Action"]
        )
        assert statement["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
        assert "ExportsOutputFnGetAttKey" in flat(statement["Resource"])

    def test_patterns_stand_among_those_of_the_stage(self, user: App) -> None:
        scheduler = user.tickwheel(targets=["arn:aws:sqs:*:123456789012:orders-*"])

        assert scheduler.stage.targets == (*DEV.targets, "arn:aws:sqs:*:123456789012:orders-*")

    def test_a_pattern_that_is_none_is_refused_and_so_is_a_construct_that_nobody_can_call(self, user: App) -> None:
        with pytest.raises(InvalidStage, match=r"dev: .*ftp"):
            user.tickwheel(targets=["ftp://host"])
        with pytest.raises(InvalidStage, match="use a queue, a function, a topic, a bus or a state machine"):
            user.tickwheel(targets=[kms.Key(user.stack, "Key")])

    def test_more_than_functions_have_room_for_are_refused(self, user: App) -> None:
        queues = [sqs.Queue(user.stack, f"Queue{number}", queue_name=f"{number:x<64}") for number in range(25)]

        with pytest.raises(InvalidStage, match=r"Api/Function: its environment may have \d+ bytes with these targets"):
            user.tickwheel(targets=queues)


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class TestNetwork:
    def test_functions_run_in_the_vpc_by_one_group_without_a_way_in(self, user: App) -> None:
        vpc = ec2.Vpc.from_vpc_attributes(
            user.stack,
            "Vpc",
            vpc_id="vpc-1",
            availability_zones=["a"],
            private_subnet_ids=["subnet-1"],
            private_subnet_route_table_ids=["table-1"],
        )
        scheduler = user.tickwheel(vpc=vpc)
        scheduler.resources_arn  # noqa: B018

        template = user.templates()["Tickwheel-dev-Scheduler"]

        (group,) = of_type(template, "AWS::EC2::SecurityGroup")
        assert not of_type(template, "AWS::EC2::SecurityGroupIngress")
        for handler in ("api", "scanner", "worker", "sweeper", "operations", "dead_letters"):
            function = function_of(template, handler)
            assert function["VpcConfig"] == {
                "SecurityGroupIds": [{"Fn::GetAtt": [group, "GroupId"]}],
                "SubnetIds": ["subnet-1"],
            }
            actions = {action for each in statements_of(template, function) for action in listed(each["Action"])}
            assert "ec2:CreateNetworkInterface" in actions
            assert function["Role"]["Fn::GetAtt"][0] in of_type(template, "AWS::IAM::Role")
        assert "VpcConfig" not in function_of(template, "resources")

    @pytest.mark.long
    def test_groups_that_are_given_take_the_place_of_ours(self, user: App) -> None:
        vpc = ec2.Vpc.from_vpc_attributes(
            user.stack, "Vpc", vpc_id="vpc-1", availability_zones=["a"], private_subnet_ids=["subnet-1"]
        )
        group = ec2.SecurityGroup.from_security_group_id(user.stack, "Group", "sg-1")
        user.tickwheel(vpc=vpc, security_groups=[group])

        template = user.templates()["Tickwheel-dev-Scheduler"]

        assert not of_type(template, "AWS::EC2::SecurityGroup")
        assert function_of(template, "worker")["VpcConfig"]["SecurityGroupIds"] == ["sg-1"]

    def test_subnets_without_a_vpc_are_refused(self, user: App) -> None:
        with pytest.raises(InvalidStage, match="without a vpc"):
            user.tickwheel(vpc_subnets=ec2.SubnetSelection(one_per_az=True))


def test_the_api_has_a_name_of_its_own(user: App) -> None:
    certificate = acm.Certificate.from_certificate_arn(
        user.stack, "Certificate", "arn:aws:acm:us-east-1:123456789012:certificate/1"
    )
    zone = route53.HostedZone.from_hosted_zone_attributes(
        user.stack, "Zone", hosted_zone_id="Z1", zone_name="example.com"
    )
    scheduler = user.tickwheel(domain=Domain(name="jobs.example.com", certificate=certificate, zone=zone))
    scheduler.resources_arn  # noqa: B018

    template = user.templates()["Tickwheel-dev-Scheduler"]

    assert scheduler.endpoint == "https://jobs.example.com"
    assert template["Outputs"]["ApiEndpoint"]["Value"] == "https://jobs.example.com"
    (name,) = of_type(template, "AWS::ApiGatewayV2::DomainName").values()
    (configuration,) = name["Properties"]["DomainNameConfigurations"]
    assert (configuration["SecurityPolicy"], configuration["EndpointType"]) == ("TLS_1_2", "REGIONAL")
    (mapping,) = of_type(template, "AWS::ApiGatewayV2::ApiMapping").values()
    assert mapping["Properties"]["Stage"] == "$default"
    assert set(mapping["DependsOn"]) == set(of_type(template, "AWS::ApiGatewayV2::Stage"))
    (record,) = of_type(template, "AWS::Route53::RecordSet").values()
    assert (record["Properties"]["Name"], record["Properties"]["Type"]) == ("jobs.example.com.", "A")
    # It signs for the API's own address, which goes on.
    asked = flat(function_of(template, "resources")["Environment"]["Variables"]["API_ENDPOINT"])
    assert asked in [f"<{name}.ApiEndpoint>" for name in of_type(template, "AWS::ApiGatewayV2::Api")]


@pytest.mark.long
def test_all_alarms_go_to_the_topic_that_is_given(user: App) -> None:
    topic = sns.Topic.from_topic_arn(user.stack, "Topic", "arn:aws:sns:us-east-1:123456789012:on-call")
    user.tickwheel(alarms_to=topic)

    template = user.templates()["Tickwheel-dev-Scheduler"]

    assert not of_type(template, "AWS::SNS::Topic")
    assert not of_type(template, "AWS::KMS::Key")
    told = [
        each["Properties"]["AlarmActions"]
        for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
        for each in of_type(template, kind).values()
        if "AlarmActions" in each["Properties"]
    ]
    assert len(told) > 10
    assert all(actions == ["arn:aws:sns:us-east-1:123456789012:on-call"] for actions in told)


def test_a_topic_and_an_address_for_alarms_exclude_each_other(user: App) -> None:
    topic = sns.Topic.from_topic_arn(user.stack, "Topic", "arn:aws:sns:us-east-1:123456789012:on-call")

    with pytest.raises(InvalidStage, match=r"alarms_to is given, and alarm_email is 'ann@example\.com'"):
        user.tickwheel(dataclasses.replace(DEV, alarm_email="ann@example.com"), alarms_to=topic)


@pytest.mark.long
def test_tables_are_those_of_the_stage_but_for_what_is_said(user: App) -> None:
    tables = Tables(
        retained=False,
        existing={"ledger": "ledger-of-last-week"},
        warm_throughput={"timers": WarmThroughput(reads=20_000, writes=10_000)},
    )
    user.tickwheel(tables=tables)

    templates = user.templates()

    made = of_type(templates["Tickwheel-dev-Storage"], "AWS::DynamoDB::Table")
    assert {each["DeletionPolicy"] for each in made.values()} == {"Delete"}
    (timers,) = (each for name, each in made.items() if name.startswith("Timers"))
    assert timers["Properties"]["WarmThroughput"] == {"ReadUnitsPerSecond": 20_000, "WriteUnitsPerSecond": 10_000}
    worker = function_of(templates["Tickwheel-dev-Scheduler"], "worker")
    assert worker["Environment"]["Variables"]["LEDGER_TABLE"] == "ledger-of-last-week"


@pytest.mark.parametrize("tables", [Tables(existing={"ledgers": "x-1"}), Tables(existing={"ledger": "?"})])
def test_a_table_that_there_is_not_is_refused(user: App, tables: Tables) -> None:
    with pytest.raises(InvalidStage, match="restored_tables"):
        user.tickwheel(tables=tables)


class TestPlaces:
    @pytest.mark.long
    def test_both_stacks_are_where_the_stack_around_them_is(self, tmp_path: Path) -> None:
        user = App(tmp_path, account="111122223333", region="eu-central-1")
        scheduler = user.tickwheel()

        for stack in (scheduler.storage, scheduler.scheduler):
            assert (stack.account, stack.region) == ("111122223333", "eu-central-1")

    @pytest.mark.long
    def test_or_where_the_app_says(self, user: App) -> None:
        env = cdk.Environment(account="111122223333", region="ap-southeast-2")
        scheduler = Tickwheel(user.app, "Elsewhere", stage=DEV, env=env)

        assert (scheduler.scheduler.account, scheduler.storage.region) == ("111122223333", "ap-southeast-2")

    @pytest.mark.long
    def test_in_another_region_and_partition_nothing_names_the_usual_ones(self, tmp_path: Path) -> None:
        """A literal of a region or a partition would deploy, and fail when it is used."""
        user = App(tmp_path, account="111122223333", region="cn-north-1")
        function = user.function()
        queue = sqs.Queue(user.stack, "Queue", queue_name="reports")
        scheduler = user.tickwheel(targets=[queue])
        scheduler.grant_submit(function, tenant="acme")
        Schedule(user.stack, "Nightly", scheduler=scheduler, tenant="acme", target=queue, cron="0 3 * * *")

        for name, template in user.templates().items():
            text = json.dumps(template)
            assert not re.findall(r"us-east-1|us-west-2|eu-west-1", text), name
            assert not re.findall(r"arn:aws:(?!iam::aws:policy)", text), name


class TestAspects:
    """What the CDK has for every construct works on these too, and needs no argument."""

    def test_a_boundary_is_on_every_role(self, user: App) -> None:
        scheduler = user.tickwheel(resources=True)
        boundary = iam.ManagedPolicy.from_managed_policy_name(user.stack, "Boundary", "developers")
        iam.PermissionsBoundary.of(scheduler).apply(boundary)

        templates = user.templates()

        roles = [role for template in templates.values() for role in of_type(template, "AWS::IAM::Role").values()]
        assert len(roles) > 6
        for role in roles:
            assert flat(role["Properties"]["PermissionsBoundary"]).endswith(":policy/developers")

    @pytest.mark.long
    def test_tags_are_on_all_that_can_have_them(self, user: App) -> None:
        cdk.Tags.of(user.tickwheel(resources=True)).add("team", "orders")

        templates = user.templates()

        for name in ("Tickwheel-dev-Storage", "Tickwheel-dev-Scheduler"):
            for kind in ("AWS::DynamoDB::Table", "AWS::Lambda::Function", "AWS::SQS::Queue", "AWS::S3::Bucket"):
                for each in of_type(templates[name], kind).values():
                    assert {"Key": "team", "Value": "orders"} in each["Properties"]["Tags"]

    @pytest.mark.long
    def test_a_key_that_exists_encrypts_what_resources_log_too(self, user: App) -> None:
        arn = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        user.tickwheel(dataclasses.replace(DEV, customer_key=arn), resources=True)

        template = user.templates()["Tickwheel-dev-Scheduler"]

        groups = of_type(template, "AWS::Logs::LogGroup")
        assert any(name.startswith("Resources") for name in groups)
        assert {each["Properties"]["KmsKeyId"] for each in groups.values()} == {arn}


class TestGrants:
    @pytest.mark.parametrize(
        ("grant", "routes"),
        [
            ("grant_submit", ["*/POST/v1/jobs", "*/POST/v1/jobs:batch"]),
            ("grant_read", ["*/GET/v1/*"]),
            ("grant_manage", ["*/*/v1/*"]),
        ],
    )
    def test_a_role_may_call_these_routes_and_is_a_principal_of_the_tenant(
        self, user: App, grant: str, routes: list[str]
    ) -> None:
        scheduler, function = user.tickwheel(), user.function()

        getattr(scheduler, grant)(function, tenant="acme")

        templates = user.templates()
        template = templates["User"]
        (statement,) = statements_of(template, function_of(template, "index"))
        assert statement["Action"] == "execute-api:Invoke"
        api = "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:<Tickwheel-dev-ApiId>/"
        assert [flat(each) for each in listed(statement["Resource"])] == [f"{api}{route}" for route in routes]
        (principal,) = of_type(template, "Custom::TickwheelPrincipal").values()
        role = function_of(template, "index")["Role"]["Fn::GetAtt"][0]
        properties = principal["Properties"]
        assert (properties["Tenant"], flat(properties["Principal"])) == ("acme", f"<{role}.Arn>")
        assert properties["ServiceTimeout"] == "600"
        assert "ExportsOutputFnGetAttResourcesFunction" in flat(properties["ServiceToken"])
        exported = templates["Tickwheel-dev-Scheduler"]["Outputs"]
        assert exported["ApiId"]["Export"] == {"Name": "Tickwheel-dev-ApiId"}
        assert exported["ResourcesFunctionArn"]["Export"] == {"Name": "Tickwheel-dev-Resources"}

    @pytest.mark.long
    def test_two_grants_of_a_role_are_one_principal_and_another_tenant_is_another(self, user: App) -> None:
        scheduler, function = user.tickwheel(), user.function()
        scheduler.grant_submit(function, tenant="acme")
        scheduler.grant_read(function, tenant="acme")
        scheduler.grant_read(function, tenant="globex")

        template = user.templates()["User"]

        principals = of_type(template, "Custom::TickwheelPrincipal").values()
        assert sorted(each["Properties"]["Tenant"] for each in principals) == ["acme", "globex"]

    @pytest.mark.long
    def test_a_function_is_deployed_when_its_role_may_act(self, user: App) -> None:
        scheduler, function = user.tickwheel(), user.function()
        scheduler.grant_submit(function, tenant="acme")

        template = user.templates()["User"]

        (deployed,) = of_type(template, "AWS::Lambda::Function").values()
        assert set(of_type(template, "Custom::TickwheelPrincipal")) <= set(deployed["DependsOn"])

    @pytest.mark.long
    def test_a_function_with_a_name_may_be_a_target_and_submit(self, user: App) -> None:
        function = user.function(function_name="orders")
        scheduler = user.tickwheel(targets=[function])
        scheduler.grant_submit(function, tenant="acme")

        user.templates()

    def test_who_is_no_role_and_what_is_no_tenant_are_refused(self, user: App) -> None:
        scheduler = user.tickwheel()
        service: Any = iam.ServicePrincipal("lambda.amazonaws.com")

        with pytest.raises(InvalidStage, match="is neither a role nor a user"):
            scheduler.grant_submit(service, tenant="acme")
        with pytest.raises(InvalidStage, match="tenant is 'a b'"):
            scheduler.grant_submit(user.function(), tenant="a b")

    @pytest.mark.long
    def test_what_carries_resources_out_may_become_an_operator_and_nothing_else(self, user: App) -> None:
        user.tickwheel(resources=True)

        template = user.templates()["Tickwheel-dev-Scheduler"]

        function = function_of(template, "resources")
        actions = {action for each in statements_of(template, function) for action in listed(each["Action"])}
        assert actions == {"logs:CreateLogStream", "logs:PutLogEvents", "sts:AssumeRole"}
        (assumes,) = (each for each in statements_of(template, function) if each["Action"] == "sts:AssumeRole")
        assert assumes["Resource"] == template["Outputs"]["OperatorRoleArn"]["Value"]
        assert set(function["Environment"]["Variables"]) >= {"API_ENDPOINT", "OPERATOR_ROLE"}
        assert {"ResourcesFunctionArn", "ApiId"} <= set(template["Outputs"])

    def test_without_a_use_of_it_there_is_no_such_function(self, user: App) -> None:
        user.tickwheel()

        template = user.templates()["Tickwheel-dev-Scheduler"]

        assert "ResourcesFunctionArn" not in template["Outputs"]
        assert not [name for name in template["Resources"] if name.startswith("Resources")]

    @pytest.mark.long
    def test_another_app_uses_a_scheduler_by_its_outputs(self, user: App) -> None:
        scheduler = DeployedTickwheel(
            user.stack,
            "Scheduler",
            stage=DEV,
            endpoint="https://a1.execute-api.us-east-1.amazonaws.com",
            api_id="a1",
            resources_arn="arn:aws:lambda:us-east-1:123456789012:function:resources",
        )
        scheduler.grant_submit(user.function(), tenant="acme")
        Schedule(user.stack, "Nightly", scheduler=scheduler, tenant="acme", target="https://a.example", every=3_600)

        (template,) = user.templates().values()

        (schedule,) = of_type(template, "Custom::TickwheelSchedule").values()
        assert schedule["Properties"]["ServiceToken"].endswith(":function:resources")


class TestSchedules:
    def schedule(self, user: App, scheduler: Tickwheel | None = None, **fields: Any) -> Schedule:
        given = {"tenant": "acme", "target": "https://example.com/hook", "cron": "0 3 * * *", **fields}
        given = {name: value for name, value in given.items() if value is not None}
        return Schedule(user.stack, "Nightly", scheduler=scheduler or user.tickwheel(), **given)

    def resource(self, user: App) -> dict[str, Any]:
        (found,) = of_type(user.templates()["User"], "Custom::TickwheelSchedule").values()
        return found["Properties"]

    def test_its_resource_has_the_definition_as_the_api_takes_it(self, user: App) -> None:
        self.schedule(
            user,
            schedule_id="nightly",
            timezone="Europe/Berlin",
            jitter=timedelta(seconds=90),
            start=datetime(2027, 1, 1, tzinfo=UTC),
            payload={"n": 1.5, "on": True},
            job={"retry": {"attempts": 3}, "timeout": timedelta(seconds=20)},
        )

        properties = self.resource(user)

        assert (properties["Tenant"], properties["ScheduleId"]) == ("acme", "nightly")
        assert json.loads(properties["Definition"]) == {
            "cron": "0 3 * * *",
            "timezone": "Europe/Berlin",
            "jitter": 90,
            "start": "2027-01-01T00:00:00+00:00",
            "job": {
                "target": "https://example.com/hook",
                "payload": {"n": 1.5, "on": True},
                "retry": {"attempts": 3},
                "timeout": 20,
            },
        }

    def test_without_an_id_it_is_called_by_its_place(self, user: App) -> None:
        assert re.fullmatch("User-Nightly-[0-9A-F]{8}", self.schedule(user).schedule_id)

    @pytest.mark.long
    def test_its_target_and_those_of_its_callbacks_may_be_constructs(self, user: App) -> None:
        queue = sqs.Queue(user.stack, "Queue", queue_name="reports")
        self.schedule(user, user.tickwheel(targets=[queue]), target=queue, job={"on_failure": queue})

        definition = json.loads(flat(self.resource(user)["Definition"]))

        arn = "arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:reports"
        assert definition["job"] == {"target": arn, "on_failure": arn}

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({"cron": "0 25 * * *"}, "User/Nightly: cron "),
            ({"cron": None}, "give exactly one of at, cron, every, rrule, poisson, not none"),
            ({"every": 60}, "not cron and every"),
            ({"timezone": "Mars/Olympus"}, "timezone "),
            ({"target": "http://example.com"}, "job.target "),
            ({"target": "arn:aws:sqs:us-east-1:123456789012:orders"}, "job.target is not among the targets"),
            ({"tenant": "a b"}, "tenant is 'a b'"),
            ({"schedule_id": "a/b"}, "schedule_id is 'a/b'"),
            ({"job": {"retries": 3}}, "job.retries"),
            ({"misfires": "skip"}, "misfires"),
            ({"payload": {1, 2}}, "is neither a value of JSON"),
        ],
    )
    def test_what_the_scheduler_would_refuse_is_refused_at_synthesis(
        self, user: App, fields: dict[str, Any], told: str
    ) -> None:
        with pytest.raises(InvalidDefinition) as refused:
            self.schedule(user, **fields)

        assert told in str(refused.value)

    def test_a_construct_that_the_scheduler_may_not_call_is_refused(self, user: App) -> None:
        with pytest.raises(InvalidDefinition, match="is not among the scheduler's `targets`"):
            self.schedule(user, target=sqs.Queue(user.stack, "Queue", queue_name="reports"))

    def test_its_fields_are_those_of_the_api(self) -> None:
        assert Definition.__annotations__.keys() == ScheduleBody.model_fields.keys() - {"job"}


class TestMetrics:
    def test_each_is_one_that_is_emitted(self, user: App) -> None:
        scheduler = user.tickwheel(FULL)
        found = {name: getattr(scheduler, name)() for name in dir(scheduler) if name.startswith("metric_")}

        assert len(found) == 9
        for metric in found.values():
            assert metric.namespace == "Tickwheel/dev"
            assert metric.metric_name in EMITTED[metric.dimensions["service"]]

    @pytest.mark.long
    def test_lag_is_told_of_a_priority_too(self, user: App) -> None:
        metric = user.tickwheel(FULL).metric_lag(priority="critical", statistic="p50", period=cdk.Duration.minutes(5))

        assert metric.dimensions == {"service": "worker", "priority": "critical"}
        assert (metric.statistic, metric.period.to_minutes()) == ("p50", 5)

    def test_what_nothing_emits_is_refused_and_what_several_do_wants_a_name(self, user: App) -> None:
        scheduler = user.tickwheel(FULL)

        assert scheduler.metric("failed", service="api" if "failed" in EMITTED["api"] else "worker")
        with pytest.raises(UnknownMetric, match="nothing emits a metric 'lags'"):
            scheduler.metric("lags")
        with pytest.raises(UnknownMetric, match="'failed' is emitted by api, scanner, worker"):
            scheduler.metric("failed")
        with pytest.raises(UnknownMetric, match="priority"):
            scheduler.metric_lag(priority="urgent")

    def test_one_that_a_stage_does_not_emit_is_refused_and_told_what_to_do(self, user: App) -> None:
        scheduler = user.tickwheel(DEV)

        assert scheduler.metric_late().metric_name == "late"
        with pytest.raises(UnknownMetric, match=r"'lag_ms' is no metric of dev, .*watching=Watching.FULL"):
            scheduler.metric_lag()


@pytest.mark.long
def test_a_scheduler_may_stand_below_an_app_as_before(user: App, templates_of: Callable[..., Any]) -> None:
    Tickwheel(user.app, "dev", stage=DEV)

    assert user.templates()["Tickwheel-dev-Scheduler"] == templates_of(DEV).scheduler


class TestTheExample:
    def test_it_has_no_findings_and_all_that_it_shows(self, tmp_path: Path) -> None:
        templates = {path.name: json.loads(path.read_text()) for path in synthesise_example(tmp_path)}

        (shop,) = (template for name, template in templates.items() if of_type(template, "Custom::TickwheelSchedule"))
        assert len(of_type(shop, "Custom::TickwheelPrincipal")) == 1
        assert len(of_type(shop, "AWS::CloudWatch::Alarm")) == 1
        assert len(templates) == 3

    @pytest.mark.long
    def test_a_finding_would_be_seen(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(check_example, "OF_ITS_OWN", ())

        with pytest.raises(RuntimeError, match="ValidationFailed"):
            synthesise_example(tmp_path)


class TestThePage:
    PAGE = (DOCS / "construct.md").read_text()

    def test_it_has_every_argument(self) -> None:
        arguments = set(inspect.signature(Tickwheel.__init__).parameters) - {"self", "scope", "construct_id"}

        assert [name for name in arguments if f"`{name}`" not in self.PAGE.partition("### Targets")[0]] == []

    def test_it_has_every_grant_and_metric(self) -> None:
        methods = [name for name in dir(Tickwheel) if name.startswith(("grant_", "metric_"))]

        assert len(methods) == 12
        assert [name for name in methods if f"`{name}" not in self.PAGE] == []

    @pytest.mark.long
    def test_it_says_how_many_bytes_are_left_for_targets(self, user: App, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes: dict[str, int] = {}

        def note(scope: Construct, environment: dict[str, str]) -> None:
            stack = cdk.Stack.of(scope)
            sizes[scope.node.path] = sum(
                len(name) + longest(stack.resolve(value)) for name, value in environment.items()
            )

        monkeypatch.setattr(package, "check_room", note)
        user.tickwheel(targets=[sqs.Queue(user.stack, "Queue", queue_name="shop")])

        assert f"{MOST - max(sizes.values()):,} bytes are left" in self.PAGE
