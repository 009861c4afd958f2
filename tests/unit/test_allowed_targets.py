import pytest

from functions.domain.errors import InvalidJob, InvalidPattern
from functions.domain.targets.kinds import Kind
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets, check_target, parse_target

BILLING = "arn:aws:sqs:*:123456789012:billing-*"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:billing"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("https://*", "https://example.com:8443/any/path"),
        ("https://*", "https://[2001:db8::1]/"),
        ("http://*", "http://127.0.0.1:54321/x"),
        ("https://example.com", "https://EXAMPLE.com./a"),
        ("https://example.com", "https://example.com:8443/a"),
        ("https://Example.com:8443", "https://example.com:8443/a"),
        ("https://example.com:443", "https://example.com/a"),
        ("https://*:8443", "https://example.com:8443"),
        ("https://*.example.com", "https://a.example.com"),
        ("https://*.example.com", "https://a.b.c.example.com"),
        ("https://[2001:db8:0::1]", "https://[2001:DB8::1]"),
        ("handler:*", "handler:echo"),
        ("handler:billing.*", "handler:billing.close"),
        ("handler:close-?", "handler:close-1"),
        (BILLING, "arn:aws:sqs:eu-west-1:123456789012:billing-orders"),
        (BILLING, "arn:aws:sqs:us-east-1:123456789012:billing-x.fifo"),
        ("arn:*:sqs:eu-*:*:*", "arn:aws:sqs:eu-west-1:123456789012:orders"),
        (FUNCTION, f"{FUNCTION}:live"),
        (f"{FUNCTION}:live", f"{FUNCTION}:live"),
        (f"{FUNCTION}:*", f"{FUNCTION}:7"),
        ("arn:aws:lambda:*:*:function:*", f"{FUNCTION}:$LATEST"),
        ("arn:aws:events:*:*:event-bus/*", "arn:aws:events:eu-west-1:123456789012:event-bus/default"),
        ("arn:aws:states:*:*:stateMachine:x", "arn:aws:states:eu-west-1:123456789012:stateMachine:x:live"),
        ("arn:aws:sns:eu-west-1:12345678901?:news", "arn:aws:sns:eu-west-1:123456789012:news"),
    ],
)
def test_a_pattern_allows(pattern: str, text: str):
    assert AllowedTargets((pattern,)).is_allowed(parse_target(text))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("https://*", "http://example.com"),
        ("http://*", "https://example.com"),
        ("https://*", "handler:echo"),
        ("https://example.com", "https://a.example.com"),
        ("https://example.com", "https://example.com.evil.example"),
        ("https://example.com", "https://evil.example/https://example.com"),
        ("https://example.com", "https://examplescom"),
        ("https://example.com:8443", "https://example.com"),
        ("https://*.example.com", "https://example.com"),
        ("https://*.example.com", "https://evilexample.com"),
        ("https://*.example.com", "https://evil.example/?a.example.com"),
        ("handler:billing", "handler:billing.close"),
        ("handler:a.c", "handler:abc"),
        (BILLING, "arn:aws:sqs:eu-west-1:999999999999:billing-orders"),
        (BILLING, "arn:aws:sqs:eu-west-1:123456789012:orders"),
        (BILLING, "arn:aws:sns:eu-west-1:123456789012:billing-orders"),
        (BILLING, "arn:aws-cn:sqs:cn-north-1:123456789012:billing-orders"),
        ("arn:aws:sqs:*:*:orders", "arn:aws:sqs:eu-west-1:123456789012:Orders"),
        (f"{FUNCTION}:live", FUNCTION),
        (f"{FUNCTION}:live", f"{FUNCTION}:7"),
        (f"{FUNCTION[:-7]}*ing", f"{FUNCTION[:-7]}x:loading"),
    ],
)
def test_a_pattern_does_not_allow(pattern: str, text: str):
    assert not AllowedTargets((pattern,)).is_allowed(parse_target(text))


def test_a_pattern_of_many_stars_is_decided_at_once():
    queue = f"arn:aws:sqs:eu-west-1:123456789012:{'a' * 80}"
    stars = "*a" * 30

    assert AllowedTargets((f"arn:aws:sqs:*:*:{stars}*",)).is_allowed(parse_target(queue))
    assert not AllowedTargets((f"arn:aws:sqs:*:*:{stars}*b",)).is_allowed(parse_target(queue))


def test_brackets_of_a_pattern_are_no_set_of_characters():
    with pytest.raises(InvalidPattern):
        AllowedTargets(("arn:[a]ws:sqs:*:*:*",))


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:sqs:eu-west-1:123456789012:Tickwheel-prod-Scheduler-ReadyNormal1A2B",
        "arn:aws:lambda:eu-west-1:123456789012:function:Tickwheel-prod-Scheduler-WorkerFunction-1A2B",
    ],
)
def test_nothing_of_tickwheel_s_own_is_a_target_whatever_the_list_says(text: str):
    allowed = AllowedTargets(("arn:aws:sqs:*:*:*", "arn:aws:lambda:*:*:function:*"))

    with pytest.raises(InvalidJob, match="names a resource of Tickwheel itself"):
        check_target(text, allowed=allowed, allow_plain_http=False)


def test_a_refusal_names_the_patterns_and_where_they_are_changed():
    with pytest.raises(InvalidJob) as refused:
        check_target(FUNCTION, allowed=AllowedTargets(DEFAULT_TARGETS), allow_plain_http=False)

    assert (refused.value.field, refused.value.value) == ("target", FUNCTION)
    assert str(refused.value) == (
        "is not among the targets that this stage allows, which are https://*, handler:*: use one of them, or have it "
        "added to the stage's `targets` in infra/stage.py and deployed"
    )


def test_a_stage_may_allow_nothing():
    allowed = AllowedTargets(())

    assert not allowed.is_allowed(parse_target("handler:echo"))
    assert "which are none" in allowed.objection(parse_target("handler:echo"))


def test_the_patterns_of_a_service_are_found():
    allowed = AllowedTargets(("https://*", BILLING, FUNCTION, "arn:aws:sqs:*:*:orders"))

    assert allowed.arns(Kind.SQS) == (BILLING, "arn:aws:sqs:*:*:orders")
    assert allowed.arns(Kind.SNS) == ()


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "ftp://*",
        "https:*",
        "https://",
        "https://*/",
        "https://example.com/path",
        "https://api-*.example.com",
        "https://*.*.example.com",
        "https://*example.com",
        "https://example.com:0",
        "https://example.com:65536",
        "https://example.com:*",
        "https://me@example.com",
        "handler:",
        "handler:a/b",
        "handler:" + "x" * 65,
        "arn:*",
        "arn:aws:*:*:*:*",
        "arn:aws:sqs:*",
        "arn:aws:sqs:*:*",
        "arn:aws:ecs:*:*:*",
        "arn:aws:s?s:*:*:x",
        "arn:aws-iso:sqs:*:*:*",
        "arn:aws:sqs:EU-*:*:*",
        "arn:aws:sqs:europe:*:*",
        "arn:aws:sqs::*:*",
        "arn:aws:sqs:*:12345:*",
        "arn:aws:sqs:*:1234567890123*:*",
        "arn:aws:sqs:*:12345678901??:*",
        "arn:aws:sqs:*:12345678901x:*",
        "arn:aws:sqs:*:*:",
        "arn:aws:sqs:*:*:a b*",
        "arn:aws:sqs:*:*:orders.first",
        "arn:aws:sqs:*:*:orders:*",
        "arn:aws:sqs:*:*:Tickwheel-*",
        "arn:aws:lambda:*:*:*",
        "arn:aws:lambda:*:*:layer:*",
        "arn:aws:lambda:*:*:function:a:b:c",
        "arn:aws:lambda:*:*:function:a:",
        "arn:aws:events:*:*:*",
        "arn:aws:events:*:*:rule/*",
        "arn:aws:states:*:*:execution:*",
    ],
)
def test_a_pattern_that_allows_everything_by_accident_or_nothing_at_all_is_refused_by_name(pattern: str):
    with pytest.raises(InvalidPattern) as refused:
        AllowedTargets((*DEFAULT_TARGETS, pattern))

    assert refused.value.pattern == pattern
    assert str(refused.value).startswith(f"targets has {pattern!r}: ")
