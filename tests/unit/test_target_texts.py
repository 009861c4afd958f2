from pathlib import Path

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.targets.kinds import SERVICES, Kind
from functions.domain.targets.targets import AllowedTargets, check_asynchronous, check_target, parse_target

ANYTHING = AllowedTargets(("https://*", "http://*", "handler:*", "arn:aws:sqs:*:*:*"))
PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:billing"


@pytest.mark.parametrize(
    ("text", "kind", "destination"),
    [
        ("https://example.com", Kind.HTTP, "https://example.com"),
        ("https://Example.COM:443/a/b?c=d#e", Kind.HTTP, "https://example.com"),
        ("https://example.com.:8443/a", Kind.HTTP, "https://example.com:8443"),
        ("http://example.com:80/a", Kind.HTTP, "http://example.com"),
        ("http://example.com:443/a", Kind.HTTP, "http://example.com:443"),
        ("https://[2001:DB8:0:0:0:0:0:1]/x", Kind.HTTP, "https://[2001:db8::1]"),
        ("https://my_host-1.example.com", Kind.HTTP, "https://my_host-1.example.com"),
        ("handler:billing.close-month_2", Kind.HANDLER, "handler:billing.close-month_2"),
        (FUNCTION, Kind.LAMBDA, FUNCTION),
        (f"{FUNCTION}:live", Kind.LAMBDA, FUNCTION),
        (f"{FUNCTION}:7", Kind.LAMBDA, FUNCTION),
        (f"{FUNCTION}:$LATEST", Kind.LAMBDA, FUNCTION),
        (
            "arn:aws-cn:sqs:cn-north-1:123456789012:orders",
            Kind.SQS,
            "arn:aws-cn:sqs:cn-north-1:123456789012:orders",
        ),
        (
            "arn:aws:sqs:eu-west-1:123456789012:orders.fifo",
            Kind.SQS,
            "arn:aws:sqs:eu-west-1:123456789012:orders.fifo",
        ),
        (
            "arn:aws-us-gov:sns:us-gov-west-1:123456789012:news",
            Kind.SNS,
            "arn:aws-us-gov:sns:us-gov-west-1:123456789012:news",
        ),
        (
            "arn:aws:events:eu-west-1:123456789012:event-bus/default",
            Kind.EVENTS,
            "arn:aws:events:eu-west-1:123456789012:event-bus/default",
        ),
        (
            "arn:aws:states:eu-west-1:123456789012:stateMachine:month-end:live",
            Kind.STATES,
            "arn:aws:states:eu-west-1:123456789012:stateMachine:month-end",
        ),
    ],
)
def test_a_target_names_its_kind_and_what_it_fails_together_with(text: str, kind: Kind, destination: str):
    target = parse_target(text)

    assert (target.text, target.kind, target.destination) == (text, kind, destination)


def test_an_arn_is_taken_apart():
    target = parse_target("arn:aws:sqs:eu-west-1:123456789012:orders.fifo")

    assert (target.region, target.account, target.name) == ("eu-west-1", "123456789012", "orders.fifo")
    assert target.is_fifo
    assert parse_target(f"{FUNCTION}:live").name == "billing"


@pytest.mark.parametrize(
    "text", ["HTTPS://example.com", "file:///etc/passwd", "//x", "handle", "x", "ftp://x", "ARN:x"]
)
def test_an_unknown_scheme_is_refused_with_those_there_are(text: str):
    with pytest.raises(InvalidJob, match="has an unknown scheme: known are https://, handler: and arn:") as refused:
        parse_target(text)

    assert (refused.value.field, refused.value.value) == ("target", text)


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example\\.example.com/",
        "https://evil.example\\@example.com",
        "https://ex%61mple.com",
        "https://example.com:",
        "https://[::1%25eth0]/",
        "https://-",
        "https://.example.com",
        "https://exa+mple.com",
        "https:///example.com",
        "https:example.com",
        "https://example.com\t.evil.example",
    ],
)
def test_a_host_that_parsers_may_disagree_about_is_refused(text: str):
    with pytest.raises(InvalidJob):
        parse_target(text)


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:sqs:eu-west-1:123456789012:",
        "arn:aws:sqs:eu-west-1:12345678901:orders",
        "arn:aws:sqs:eu-west-1:٣23456789012:orders",
        "arn:aws:sqs:EU-WEST-1:123456789012:orders",
        "arn:aws:sqs::123456789012:orders",
        "arn:aws:sqs:eu-west-1:123456789012:orders.first",
        "arn:aws:sqs:eu-west-1:123456789012:orders:x",
        "arn:aws-iso:sqs:eu-west-1:123456789012:orders",
        "arn:aws:sns:eu-west-1:123456789012:news:0f1e-subscription",
        "arn:aws:lambda:eu-west-1:123456789012:billing",
        f"{FUNCTION}:",
        f"{FUNCTION}:live:x",
        f"{FUNCTION}:$OLDEST",
        "arn:aws:lambda:eu-west-1:123456789012:function:",
        "arn:aws:lambda:eu-west-1:123456789012:layer:x:1",
        "arn:aws:events:eu-west-1:123456789012:rule/x",
        "arn:aws:events:eu-west-1:123456789012:event-bus/aws.partner/x/y",
        "arn:aws:states:eu-west-1:123456789012:execution:x:y",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:x:",
    ],
)
def test_a_malformed_arn_is_refused_with_what_one_looks_like(text: str):
    with pytest.raises(InvalidJob, match=r"is not an ARN of (\w+): it looks like arn:aws:\1:REGION:ACCOUNT:"):
        parse_target(text)


@pytest.mark.parametrize(
    "text", ["arn:aws:ecs:eu-west-1:123456789012:cluster/x", "arn:aws:iam::123456789012:role/x", "arn:", "arn:aws:sqs"]
)
def test_an_arn_of_another_service_is_refused_with_those_there_are(text: str):
    with pytest.raises(InvalidJob, match="does not call: known are lambda, sqs, sns, events, states"):
        parse_target(text)


@pytest.mark.parametrize("text", ["arn:aws:sqs:*:123456789012:orders", f"{FUNCTION[:-1]}?", "arn:*"])
def test_a_target_is_one_resource(text: str):
    with pytest.raises(InvalidJob, match="must name one resource: wildcards are for the stage's `targets`"):
        parse_target(text)


def test_plain_http_needs_a_stage_that_allows_it_whatever_its_list_says():
    with pytest.raises(InvalidJob, match="http:// is not allowed in this stage: use https://"):
        check_target("http://example.com", allowed=ANYTHING, allow_plain_http=False)

    assert check_target("http://example.com", allowed=ANYTHING, allow_plain_http=True) == "http://example.com"


def test_a_refused_password_is_not_repeated():
    with pytest.raises(InvalidJob) as refused:
        parse_target("https://me:secret@example.com/x")

    assert refused.value.value == "https://…@example.com"
    assert "secret" not in str(refused.value)


def test_only_a_function_is_called_asynchronously():
    assert check_asynchronous(True, target=FUNCTION)  # noqa: FBT003  one subject by position
    assert not check_asynchronous(False, target="handler:echo")  # noqa: FBT003

    with pytest.raises(InvalidJob, match="is for Lambda functions only: leave it out") as refused:
        check_asynchronous(True, target="https://example.com")  # noqa: FBT003
    assert refused.value.field == "asynchronous"


@pytest.mark.parametrize("kind", SERVICES)
def test_the_page_says_how_a_service_is_named_and_what_the_worker_may_do(kind: Kind):
    page, service = PAGE.read_text(), SERVICES[kind]

    assert f"`arn:aws:{kind}:REGION:ACCOUNT:{service.prefix}NAME" in page
    assert ", ".join(f"`{action}`" for action in (service.calls, *service.looks_up)) in page
