import dataclasses
from typing import Any

import pytest

from infra.stage import OWN_KEY, Stage
from scripts.least_privilege.calls import Call, kept
from scripts.least_privilege.policies import Grant, Role, role_of
from scripts.least_privilege.recording import OPERATIONS, TARGETS
from scripts.least_privilege.report import report_of, reports_of
from scripts.synthesis import FUNCTIONS, Templates, synthesise


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_does_and_no_more(function: str, templates: Templates) -> None:
    assert report_of(function, templates, kept()).findings == []


def test_every_recorded_call_is_of_a_function_and_of_an_action_that_is_understood() -> None:
    assert {call.function for call in kept()} == set(FUNCTIONS)
    assert not [call for call in kept() if "?" in f"{call.action}{call.resource}"]


def test_only_the_actions_of_known_operations_are_recorded() -> None:
    services = {operation.split(".")[0] for operation in OPERATIONS} | {"states"}
    assert {call.action.split(":")[0] for call in kept()} <= services


def test_a_call_that_no_statement_allows_is_missing(dev: Templates) -> None:
    forbidden = Call("sweeper", "dynamodb:DeleteItem", "LEDGER_TABLE")
    elsewhere = Call("sweeper", "dynamodb:GetItem", "DEAD_LETTERS_TABLE")
    report = report_of("sweeper", dev, kept() | {forbidden, elsewhere})
    assert report.missing == (str(forbidden), str(elsewhere))


def test_a_grant_that_no_call_uses_is_unused(dev: Templates) -> None:
    grant = Call("scanner", "dynamodb:PutItem", "DEAD_LETTERS_TABLE")
    assert report_of("scanner", dev, kept() - {grant}).unused == (str(grant),)


def test_a_reason_for_what_is_used_is_needless(dev: Templates) -> None:
    polls_itself = Call("worker", "sqs:ReceiveMessage", "READY_QUEUE_URLS")
    assert report_of("worker", dev, kept() | {polls_itself}).needless == ("worker: sqs:ReceiveMessage",)


def test_a_function_that_lacks_a_queue_of_its_list_may_not_send() -> None:
    call = Call("worker", "sqs:SendMessage", "READY_QUEUE_URLS")
    role = Role("worker", frozenset({Grant("sqs:SendMessage", "A")}), {"READY_QUEUE_URLS": ("A", "B")})
    assert role.refuses(call)
    assert not dataclasses.replace(role, grants=role.grants | {Grant("sqs:SendMessage", "B")}).refuses(call)


def test_a_wildcard_covers_what_is_below_it_and_nothing_beside_it() -> None:
    grant = Grant("s3:GetObject", "Bucket/jobs/*")
    assert grant.covers("s3:GetObject", "Bucket/jobs/*")
    assert not grant.covers("s3:GetObject", "Bucket/exports/*")
    assert not grant.covers("s3:PutObject", "Bucket/jobs/*")
    assert not grant.covers("s3:GetObject", "Bucket/*")


def test_what_a_stage_does_not_allow_as_a_target_needs_no_grant(dev: Templates) -> None:
    call = Call("worker", "sns:Publish", TARGETS)
    assert not role_of("worker", dev).refuses(call)

    allowing = synthesise(dataclasses.replace(Stage.named("dev"), targets=("arn:aws:sns:*:*:billing-*",)))

    assert role_of("worker", allowing).users(call) == {Grant("sns:Publish", "arn:aws:sns:*:*:billing-*")}


VIA_A_SERVICE = {"StringEquals": {"kms:ViaService": "dynamodb.us-east-1.amazonaws.com"}}


@pytest.mark.parametrize(
    "changes",
    [
        {"Effect": "Deny"},
        {"Condition": {}},
        {"Condition": VIA_A_SERVICE},
        {"Action": "kms:Decrypt", "Condition": {"StringEquals": {"aws:SourceAccount": "111122223333"}}},
        {"NotResource": "*"},
    ],
)
def test_a_statement_that_is_not_understood_is_not_passed_over(changes: dict[str, Any], dev: Templates) -> None:
    (logs, *_) = dev.statements("api")
    before = dict(logs)
    logs.update(changes)
    try:
        with pytest.raises(ValueError, match="does not understand"):
            role_of("api", dev)
    finally:
        logs.clear()
        logs.update(before)


def test_the_use_of_a_customers_key_through_a_service_is_justified() -> None:
    former = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    stage = dataclasses.replace(Stage.named("dev"), customer_key=OWN_KEY, former_keys=(former,))
    reports = reports_of(synthesise(stage), kept())
    assert [finding for report in reports for finding in report.findings] == []


def test_every_function_has_a_report(dev: Templates) -> None:
    reports = reports_of(dev, kept())
    assert [report.function for report in reports] == list(FUNCTIONS)
    assert all(0 < report.used < report.allowed == report.used + report.justified for report in reports)
