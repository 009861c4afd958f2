import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from functions.api.http.problems import problem_of
from functions.api.http.requests import MAX_DEPTH, Rules, check_key, compact_json, parse_body
from functions.api.jobs.bodies import BATCH_LIMIT, BatchBody, JobBody
from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_record import PAYLOAD_LIMIT
from functions.domain.instants import MINUTE
from functions.domain.jobs.job import Delivery, Precision, Priority
from functions.domain.jobs.retry import Jitter, RetryPolicy, Strategy
from functions.domain.targets.flows import FlowLimits, FlowScope, NamedFlow, Rate
from functions.domain.targets.options import USUAL, Method, TargetOptions
from functions.domain.targets.targets import AllowedTargets
from testkit.builders import NOON

RULES = Rules(now=NOON, allow_plain_http=False, max_timeout=timedelta(seconds=50))
INSTANT = "must be an RFC 3339 instant such as 2027-01-31T09:00:00+01:00"
NOT_A_RATE = "must be a whole number up to 1000 and a unit of time, such as 10/s, 60/min, 500/h or 1000/d"
SECONDS = "must be seconds, or an ISO 8601 duration such as PT90S or P1DT2H, without years or months"


def test_a_job_is_asked_for_when_its_request_comes_in_whatever_time_it_asks_for():
    assert a_body(run_at="2027-03-01T11:59:30Z").submission(now=NOON).asked_at == NOON


def test_a_job_needs_only_a_tenant_and_a_target_and_is_due_now():
    submission = a_body().submission(now=NOON)

    assert (submission.tenant, submission.target, submission.payload) == ("acme", "https://example.com/hook", None)
    assert (submission.due_at, submission.idempotency_key, submission.expires_after) == (NOON, None, None)
    assert (submission.priority, submission.delivery, submission.precision) == (
        Priority.NORMAL,
        Delivery.EXACTLY_ONCE,
        Precision.DEFAULT,
    )
    assert (submission.retry, submission.timeout) == (RetryPolicy(), timedelta(seconds=30))
    assert (submission.options, submission.tags) == (USUAL, ())


def test_a_job_may_say_everything():
    submission = a_body(
        payload={"b": [1, "é"], "a": None},
        run_at="2027-03-01T14:00:00+01:00",
        idempotency_key="order-7",
        priority="critical",
        delivery="at_most_once",
        precision="exact",
        retry={"strategy": "linear", "attempts": 9, "base": 1.5, "cap": "PT1M", "max_age": "PT6H"},
        timeout="PT45S",
        expires_after=3600,
        http={"method": "PUT", "headers": {"X-Key": "hush"}, "success": [200, 409], "retry_on": [404]},
        tags=["team:billing", "eu"],
        flow=[{"key": "stripe", "rate": "60/min", "burst": 10, "concurrency": 5}, {"key": "smtp", "scope": "stage"}],
    ).submission(now=NOON)

    assert submission.payload == '{"b":[1,"é"],"a":null}'
    assert submission.due_at == NOON + timedelta(hours=1)
    assert (submission.idempotency_key, submission.priority) == ("order-7", Priority.CRITICAL)
    assert (submission.delivery, submission.precision) == (Delivery.AT_MOST_ONCE, Precision.EXACT)
    assert submission.retry == RetryPolicy(
        strategy=Strategy.LINEAR,
        attempts=9,
        base=timedelta(seconds=1.5),
        cap=timedelta(minutes=1),
        max_age=timedelta(hours=6),
    )
    assert (submission.timeout, submission.expires_after) == (timedelta(seconds=45), timedelta(hours=1))
    assert submission.options == TargetOptions(
        method=Method.PUT,
        headers=(("X-Key", "hush"),),
        success_codes=(200, 409),
        retry_codes=(404,),
    )
    assert submission.tags == ("team:billing", "eu")
    assert submission.flows == (
        NamedFlow(key="stripe", limits=FlowLimits(rate=Rate(60, "min"), burst=10, concurrency=5)),
        NamedFlow(key="smtp", scope=FlowScope.STAGE),
    )


def test_options_that_mean_the_same_are_the_same():
    one = a_body(http={"headers": {"A": "1", "B": "2"}, "success": [409, 200], "retry_on": [404, 404]})
    other = a_body(http={"headers": {"B": "2", "A": "1"}, "success": [200, 409], "retry_on": [404]})

    assert one.options() == other.options()


@pytest.mark.parametrize("max_age", [1, "P30D"])
def test_a_retry_may_go_on_for_a_second_or_for_a_month(max_age: Any):
    assert a_body(retry={"max_age": max_age}).submission(now=NOON).retry.max_age is not None


@pytest.mark.parametrize("delay", [90, 90.0, "PT90S", "PT1M30S"])
def test_a_delay_counts_from_the_request(delay: Any):
    assert a_body(delay=delay).submission(now=NOON).due_at == NOON + timedelta(seconds=90)


def test_a_key_in_the_body_goes_before_one_in_the_header():
    assert a_body(idempotency_key="body").submission(now=NOON, idempotency_key="header").idempotency_key == "body"
    assert a_body().submission(now=NOON, idempotency_key="header").idempotency_key == "header"


def test_a_job_may_be_due_up_to_a_minute_ago():
    assert a_body(run_at="2027-03-01T11:59:00Z").submission(now=NOON).due_at == NOON - timedelta(minutes=1)


@pytest.mark.parametrize("run_at", ["2027-03-01T11:58:59Z", "1999-12-31T23:59:59Z"])
def test_a_keyed_job_may_be_due_at_any_time_because_it_may_repeat_a_used_key(run_at: str):
    assert a_body(run_at=run_at, idempotency_key="order-7").submission(now=NOON).due_at < NOON

    rules = RULES.model_copy(update={"has_key": True})
    assert JobBody.model_validate({"tenant": "acme", "target": "handler:x", "run_at": run_at}, context=rules)


def test_a_base_of_a_second_is_taken():
    assert a_body(retry={"base": 1}).submission(now=NOON).retry.base == timedelta(seconds=1)


@pytest.mark.parametrize(
    ("attempts", "found"), [({}, 4), ({"attempts": 2}, 2), ({"attempts": 5}, 5), ({"attempts": 9}, 9)]
)
def test_intervals_are_durations_and_grant_an_attempt_more_unless_the_job_says_how_many(
    attempts: dict[str, int], found: int
):
    retry = {"intervals": [60, "PT5M", "PT30M"], "jitter": "equal", "max_age": "P1D", **attempts}

    assert a_body(retry=retry).submission(now=NOON).retry == RetryPolicy.of_intervals(
        [MINUTE, 5 * MINUTE, 30 * MINUTE], attempts=found, jitter=Jitter.EQUAL, max_age=timedelta(days=1)
    )


@pytest.mark.parametrize(("jitter", "found"), [("none", None), ("full", Jitter.FULL), ("equal", Jitter.EQUAL)])
@pytest.mark.parametrize("strategy", Strategy)
def test_every_strategy_takes_every_jitter(strategy: Strategy, jitter: str, found: Jitter | None):
    retry = a_body(retry={"strategy": strategy, "jitter": jitter}).submission(now=NOON).retry

    assert retry == RetryPolicy(strategy=strategy, jitter=found)


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ({"strategy": "decorrelated_jitter"}, "strategy"),
        ({"base": 2}, "base"),
        ({"cap": 600, "base": 60}, "base and cap"),
    ],
    ids=str,
)
def test_intervals_beside_what_they_take_the_place_of_are_refused_with_what_to_do(beside: dict[str, Any], named: str):
    with pytest.raises(ValidationError) as refused:
        a_body(retry={"intervals": [60], **beside})

    message = f"intervals take the place of {named}: leave one of the two out"
    assert problem_of(refused.value)["errors"] == [{"field": "retry", "message": message}]


def test_a_null_payload_is_none():
    assert a_body(payload=None).submission(now=NOON).payload is None


def test_a_default_cap_makes_way_for_a_longer_base():
    assert a_body(retry={"base": "PT1H"}).submission(now=NOON).retry.cap == timedelta(hours=1)


def test_a_payload_of_256_kb_is_taken():
    body = a_body(payload="x" * (PAYLOAD_LIMIT - 2))

    assert len(body.submission(now=NOON).payload or "") == PAYLOAD_LIMIT


def test_plain_http_is_taken_where_a_stage_allows_it():
    rules = RULES.model_copy(update={"allow_plain_http": True, "allowed": AllowedTargets(("http://*",))})

    assert JobBody.model_validate({"tenant": "a", "target": "http://localhost:8000/x"}, context=rules)


def test_a_target_outside_the_list_is_refused_with_the_list():
    rules = RULES.model_copy(update={"allowed": AllowedTargets(("https://*.example.com",))})

    with pytest.raises(ValidationError) as refused:
        JobBody.model_validate({"tenant": "a", "target": "https://example.org"}, context=rules)

    (error,) = problem_of(refused.value)["errors"]
    assert (error["field"], error["value"]) == ("target", "https://example.org")
    assert "this stage allows, which are https://*.example.com: use one of them" in error["message"]


def test_only_a_lambda_function_is_called_asynchronously():
    rules = RULES.model_copy(update={"allowed": AllowedTargets(("arn:aws:lambda:*:*:function:*",))})
    function = "arn:aws:lambda:eu-west-1:123456789012:function:billing"
    body = JobBody.model_validate({"tenant": "a", "target": function, "asynchronous": True}, context=rules)

    assert body.options().is_async
    assert problems_in({"tenant": "a", "target": "handler:echo", "asynchronous": True}) == [
        {
            "field": "asynchronous",
            "message": "is for Lambda functions only: leave it out, or give the ARN of a function as the target",
            "value": True,
        }
    ]


def test_a_refused_target_is_one_problem_however_it_was_to_be_called():
    assert [error["field"] for error in problems_in({"tenant": "a", "target": "x", "asynchronous": True})] == ["target"]


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("tenant", "", "must match [A-Za-z0-9._-]{1,64}"),
        ("tenant", "a#b", "must match [A-Za-z0-9._-]{1,64}"),
        ("tenant", "é", "must match [A-Za-z0-9._-]{1,64}"),
        ("tenant", "acme\n", "must match [A-Za-z0-9._-]{1,64}"),
        ("tenant", "a" * 65, "must match [A-Za-z0-9._-]{1,64}"),
        ("tenant", 7, "Input should be a valid string"),
        ("tenant", None, "Input should be a valid string"),
        ("target", "", "has an unknown scheme: known are https://, handler: and arn:"),
        ("target", "ftp://example.com", "has an unknown scheme: known are https://, handler: and arn:"),
        ("target", "http://example.com", "http:// is not allowed in this stage: use https://"),
        ("target", "https:example.com", "is not a URL with a host"),
        ("target", "https://", "is not a URL with a host"),
        ("target", "https://exa mple.com", "is not a URL with a host"),
        ("target", "https://example.com/\r\nX: y", "is not a URL with a host"),
        ("target", "https://münchen.example", "is not a URL with a host"),
        ("target", "https://example.com:99999", "is not a URL: Port out of range 0-65535"),
        ("target", "https://[::1", "is not a URL: Invalid IPv6 URL"),
        ("target", "https://me:secret@example.com", "must not carry a user name or password"),
        ("target", "https://example.com\\.evil", "is not a URL with a plain host: use letters, digits, dots"),
        ("target", "arn:aws:ecs:eu-west-1:123456789012:x", "has an ARN of a service that Tickwheel does not call"),
        (
            "target",
            "arn:aws:sqs:eu-west-1:123:x",
            "is not an ARN of sqs: it looks like arn:aws:sqs:REGION:ACCOUNT:NAME",
        ),
        ("target", "arn:aws:sqs:eu-west-1:123456789012:x", "is not among the targets that this stage allows"),
        ("target", "handler:", "handler: must be followed by a name of [A-Za-z0-9_.-]{1,64}"),
        ("target", "handler:a/b", "handler: must be followed by a name of [A-Za-z0-9_.-]{1,64}"),
        ("target", "https://example.com/" + "a" * 2_030, "is longer than 2048 characters"),
        ("run_at", "tomorrow", INSTANT),
        ("run_at", 1_803_902_400, "must be an RFC 3339 text such as 2027-01-31T09:00:00+01:00"),
        (
            "run_at",
            "2027-03-02T09:00:00",
            "has no offset from UTC: append Z or one such as +01:00, a naive time means nothing here",
        ),
        ("run_at", "2027-02-30T09:00:00Z", "is not a time that exists: day is out of range for month"),
        ("run_at", "2027-03-01T23:59:60Z", "is not a time that exists: second must be in 0..59"),
        (
            "run_at",
            "2027-03-01T11:58:59.999Z",
            "is in the past by more than 60 s: it is now 2027-03-01T12:00:00.000Z",
        ),
        ("run_at", "2037-03-02T12:00:00Z", "is more than ten years ahead"),
        ("run_at", "9999-12-31T23:59:59.999Z", "is later than 2200-01-01T00:00:00.000Z"),
        ("run_at", "0001-01-01T00:00:00Z", "is earlier than 1900-01-01T00:00:00.000Z"),
        ("delay", -1, "must be a number of seconds from 0 up"),
        ("delay", "soon", SECONDS),
        ("delay", "P1Y", SECONDS),
        ("delay", "P1M", SECONDS),
        ("delay", "PT", SECONDS),
        ("delay", "", SECONDS),
        ("delay", "-PT1S", SECONDS),
        ("delay", True, "must be seconds, or an ISO 8601 duration such as PT90S"),
        ("delay", [1], "must be seconds, or an ISO 8601 duration such as PT90S"),
        ("delay", float("nan"), "must be a number of seconds from 0 up"),
        ("delay", float("inf"), "must be a number of seconds that a calendar can hold"),
        ("delay", 10**400, "must be a number of seconds that a calendar can hold"),
        ("delay", "P3654D", "is more than ten years"),
        ("idempotency_key", "", "String should have at least 1 character"),
        ("idempotency_key", "k" * 256, "String should have at most 255 characters"),
        ("idempotency_key", "a\nb", "must be printable characters"),
        ("priority", "urgent", "must be one of critical, high, normal, low"),
        ("priority", "NORMAL", "must be one of critical, high, normal, low"),
        ("delivery", "twice", "Input should be 'exactly_once', 'at_least_once' or 'at_most_once'"),
        ("precision", "vague", "Input should be 'default' or 'exact'"),
        ("timeout", 0, "must be at least a millisecond and at most 50 s in this stage"),
        ("timeout", 0.0009, "must be at least a millisecond and at most 50 s in this stage"),
        ("timeout", 50.001, "must be at least a millisecond and at most 50 s in this stage"),
        ("expires_after", 0, "must be above 0 and at most 14 days"),
        ("expires_after", "P14DT1S", "must be above 0 and at most 14 days"),
        ("payload", float("inf"), "is not JSON: Out of range float values are not JSON compliant"),
        ("payload", {"a": "x" * PAYLOAD_LIMIT}, f"is {PAYLOAD_LIMIT + 8} bytes as compact JSON, but at most"),
        ("payload", "é" * (PAYLOAD_LIMIT // 2), f"is {PAYLOAD_LIMIT + 2} bytes as compact JSON, but at most"),
        ("payload", "\ud800", "is not JSON: 'utf-8' codec can't encode character"),
        ("payload", {"\udfff": 1}, "is not JSON: 'utf-8' codec can't encode character"),
        ("run_att", "2027-03-01T12:00:00Z", "is not a field here: leave it out, or look at its name again"),
        ("retry", "often", "must be a JSON object"),
        ("retry.strategy", "hope", "Input should be 'exponential', 'fixed', 'linear' or 'decorrelated_jitter'"),
        ("retry.attempts", 0, "Input should be greater than or equal to 1"),
        ("retry.attempts", 101, "Input should be less than or equal to 100"),
        ("retry.attempts", "3", "Input should be a valid integer"),
        ("retry.attempts", True, "Input should be a valid integer"),
        ("retry.base", -1, "must be a number of seconds from 0 up"),
        ("retry.base", 0, "must be from 1 second to 12 hours"),
        ("retry.base", 0.999, "must be from 1 second to 12 hours"),
        ("retry.base", "PT12H1S", "must be from 1 second to 12 hours"),
        ("retry.cap", "PT13H", "must be from 1 second to 12 hours"),
        ("retry.cap", 1, "must not be smaller than base"),
        ("retry.intervals", 60, "must be a list"),
        ("retry.intervals", [1] * 21, "must have at most 20 entries, but has 21"),
        ("retry.jitter", "some", "Input should be 'none', 'full' or 'equal'"),
        ("retry.pause", 1, "is not a field here: leave it out, or look at its name again"),
        ("retry.max_age", 0.5, "must be from 1 second to 30 days"),
        ("retry.max_age", "P30DT1S", "must be from 1 second to 30 days"),
        ("http", [], "must be a JSON object"),
        ("http.verb", "PUT", "is not a field here: leave it out, or look at its name again"),
        ("http.method", "HEAD", "Input should be 'POST', 'PUT', 'PATCH', 'DELETE' or 'GET'"),
        ("http.headers", {"Host": "x"}, "is a header that Tickwheel or the connection sets itself: Host"),
        ("http.headers", {"Tickwheel-Fence": "9"}, "is a header that Tickwheel or the connection sets itself: Tick"),
        ("http.headers", {"X-Key: 1": "x"}, "is not the name of a header: X-Key…"),
        ("http.headers", {"X-Key": "a\nb"}, "must have a value of 1 to 512 printable ASCII characters, without space"),
        ("http.headers", {"X-Key": "1", "x-key": "2"}, "has a header twice: x-key"),
        ("http.headers", {f"H{number}": "x" for number in range(21)}, "has more than 20 headers: 21"),
        ("http.success", 200, "must be a list"),
        ("http.retry_on", "404", "must be a list"),
        ("asynchronous", "yes", "Input should be a valid boolean"),
        ("asynchronous", 1, "Input should be a valid boolean"),
        ("tags", "billing", "must be a list"),
        ("tags", ["a", "b", "a"], "must differ from each other"),
        ("tags", [f"t{number}" for number in range(11)], "must have at most 10 entries, but has 11"),
        ("flow", "stripe", "must be a list"),
        ("flow", [{"key": "a"}, {"key": "a", "rate": "1/s"}], "must differ from each other"),
        ("flow", [{"key": f"f{number}"} for number in range(4)], "must have at most 3 entries, but has 4"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_bad_value_is_refused_with_its_field_and_what_is_wrong(field: str, given: Any, message: str):
    body: dict[str, Any] = {"tenant": "acme", "target": "https://example.com/hook"}
    part, _, inner = field.partition(".")
    body[part] = {inner: given} if inner else given

    errors = problems_in(body)

    assert [error["field"] for error in errors] == [field]
    assert errors[0]["message"].startswith(message)


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        ({"http": {"success": [200, 199]}}, "http.success.1", "Input should be greater than or equal to 200"),
        ({"retry": {"intervals": [60, 0.5]}}, "retry.intervals.1", "must be from 1 second to 12 hours"),
        (
            {"retry": {"intervals": ["soon"]}},
            "retry.intervals.0",
            "must be seconds, or an ISO 8601 duration such as PT90S or P1DT2H, without years or months",
        ),
        ({"http": {"retry_on": [600]}}, "http.retry_on.0", "Input should be less than or equal to 599"),
        ({"http": {"retry_on": ["404"]}}, "http.retry_on.0", "Input should be a valid integer"),
        (
            {"http": {"success": [404], "retry_on": [404]}},
            "http.retry_on",
            "is a success: leave it out, or name the successes without it",
        ),
        ({"tags": ["a b"]}, "tags.0", "must match [A-Za-z0-9._:/=+-]{1,64}"),
        ({"tags": ["a", ""]}, "tags.1", "must match [A-Za-z0-9._:/=+-]{1,64}"),
        ({"tags": ["a" * 65]}, "tags.0", "must match [A-Za-z0-9._:/=+-]{1,64}"),
        ({"flow": ["stripe"]}, "flow.0", "must be a JSON object"),
        ({"flow": [{"rate": "1/s"}]}, "flow.0.key", "is required"),
        ({"flow": [{"key": "a#b"}]}, "flow.0.key", "must match [A-Za-z0-9._:-]{1,64}"),
        (
            {"flow": [{"key": "a", "limit": 3}]},
            "flow.0.limit",
            "is not a field here: leave it out, or look at its name again",
        ),
        ({"flow": [{"key": "a"}, {"key": "b", "rate": "60"}]}, "flow.1.rate", NOT_A_RATE),
        ({"flow": [{"key": "a", "rate": "1001/s"}]}, "flow.0.rate", NOT_A_RATE),
        ({"flow": [{"key": "a", "rate": "0/s"}]}, "flow.0.rate", NOT_A_RATE),
        ({"flow": [{"key": "a", "rate": "60/week"}]}, "flow.0.rate", NOT_A_RATE),
        ({"flow": [{"key": "a", "rate": 60}]}, "flow.0.rate", "Input should be a valid string"),
        ({"flow": [{"key": "a", "ordered": "yes"}]}, "flow.0.ordered", "Input should be a valid boolean"),
        (
            {"flow": [{"key": "a", "ordered": True}, {"key": "b"}, {"key": "c", "ordered": True}]},
            "flow",
            "may have one ordered flow among them, not more",
        ),
        (
            {"flow": [{"key": "a", "ordered": True}], "delivery": "at_least_once"},
            "flow",
            "has an order, which only exactly_once jobs keep: leave delivery out, or ordered",
        ),
        (
            {"flow": [{"key": "a", "ordered": True, "scope": "stage"}]},
            "flow.0.scope",
            "excludes ordered: the limits of the stage's flows are set by an operator",
        ),
        ({"flow": [{"key": "a", "burst": 5}]}, "flow.0.burst", "needs a rate"),
        (
            {"flow": [{"key": "a", "rate": "1/s", "burst": 0}]},
            "flow.0.burst",
            "Input should be greater than or equal to 1",
        ),
        (
            {"flow": [{"key": "a", "concurrency": 1_001}]},
            "flow.0.concurrency",
            "Input should be less than or equal to 1000",
        ),
        ({"flow": [{"key": "a", "concurrency": True}]}, "flow.0.concurrency", "Input should be a valid integer"),
        ({"flow": [{"key": "a", "scope": "world"}]}, "flow.0.scope", "Input should be 'tenant' or 'stage'"),
        (
            {"flow": [{"key": "a", "scope": "stage", "rate": "1/s", "concurrency": 2}]},
            "flow.0.scope",
            "excludes rate and concurrency: the limits of the stage's flows are set by an operator",
        ),
    ],
    ids=str,
)
def test_a_bad_part_of_a_list_is_named_with_its_place(body: dict[str, Any], field: str, message: str):
    [error] = problems_in({"tenant": "acme", "target": "https://example.com/hook", **body})

    assert (error["field"], error["message"]) == (field, message)


def test_every_mistake_of_every_flow_is_named_at_once():
    flows = [{"key": "", "rate": "often"}, {"key": "b", "concurrency": 0}]

    fields = [error["field"] for error in problems_in({"tenant": "acme", "target": "handler:x", "flow": flows})]

    assert fields == ["flow.0.rate", "flow.0.key", "flow.1.concurrency"]


def test_a_flow_of_the_tenant_and_one_of_the_stage_may_have_the_same_key():
    flows = a_body(flow=[{"key": "a"}, {"key": "a", "scope": "stage"}]).submission(now=NOON).flows

    assert [flow.owner_of("acme") for flow in flows] == ["acme", "~"]


@pytest.mark.parametrize(
    "http", [{"method": "PUT"}, {"headers": {"X-Key": "x"}}, {"success": [200]}, {"retry_on": [404]}], ids=str
)
def test_what_is_for_http_targets_is_refused_for_any_other(http: dict[str, Any]):
    message = "is for HTTP targets only: leave it out, or give a URL as the target"

    assert problems_in({"tenant": "acme", "target": "handler:echo", "http": http}) == [
        {"field": "http", "message": message}
    ]


def test_an_option_of_a_refused_target_is_no_problem_of_its_own():
    body = {"tenant": "acme", "target": "gopher://x", "http": {"method": "PUT"}, "asynchronous": True}

    assert [error["field"] for error in problems_in(body)] == ["target"]


@pytest.mark.parametrize("missing", ["tenant", "target"])
def test_a_missing_field_is_named(missing: str):
    body = {"tenant": "acme", "target": "https://example.com/hook"}
    del body[missing]

    assert problems_in(body) == [{"field": missing, "message": "is required"}]


def test_run_at_and_delay_exclude_each_other():
    errors = problems_in({"tenant": "acme", "target": "handler:x", "run_at": "2027-03-01T12:00:00Z", "delay": 5})

    assert errors == [
        {"field": "delay", "message": "excludes run_at: give one of them, or neither for now", "value": 5}
    ]


def test_several_problems_of_one_body_are_all_named():
    errors = problems_in(
        {
            "tenant": "a b",
            "target": "gopher://x",
            "run_at": "now",
            "priority": "asap",
            "timeout": -1,
            "retry": {"attempts": 0, "base": "x"},
            "colour": "red",
        }
    )

    assert [error["field"] for error in errors] == [
        "target",
        "priority",
        "retry.attempts",
        "retry.base",
        "timeout",
        "tenant",
        "run_at",
        "colour",
    ]


@pytest.mark.parametrize("body", [None, 7, "text", [], [{"tenant": "acme"}]])
def test_a_body_that_is_no_object_is_refused_as_a_whole(body: Any):
    errors = problems_in(body)

    assert [error["field"] for error in errors] == ["body"]


@pytest.mark.parametrize(
    "body", [None, "", "{", "{'a': 1}", "\x00", "[" * 100_000, '{"a":1}x'], ids=lambda value: str(value)[:24]
)
def test_a_body_that_is_not_json_is_refused(body: str | None):
    with pytest.raises(InvalidInput, match="the body is not JSON"):
        parse_body(body)


def test_a_body_that_came_as_base64_is_read():
    assert parse_body("eyJhIjoxfQ==", is_base64=True) == {"a": 1}


@pytest.mark.parametrize("body", ["!", "/w==", "eyJh"])
def test_a_body_that_is_not_json_behind_its_base64_is_refused(body: str):
    with pytest.raises(InvalidInput, match="the body is not JSON"):
        parse_body(body, is_base64=True)


@pytest.mark.parametrize("jobs", [[], [{}] * (BATCH_LIMIT + 1), "jobs", [1]])
def test_a_batch_takes_from_1_to_500_objects(jobs: Any):
    with pytest.raises(ValidationError):
        BatchBody.model_validate({"jobs": jobs})


def test_a_batch_leaves_the_check_of_each_job_to_itself():
    assert BatchBody.model_validate({"jobs": [{}] * BATCH_LIMIT}).jobs == [{}] * BATCH_LIMIT


@pytest.mark.parametrize("key", ["", "k" * 256, "a\tb"])
def test_a_key_in_the_header_is_under_the_rules_of_the_body_s(key: str):
    with pytest.raises(ValidationError):
        check_key(key)


def test_a_request_without_a_key_has_none():
    assert check_key(None) is None
    assert check_key("order 7") == "order 7"


def test_a_payload_is_kept_without_spaces_and_without_escapes():
    assert compact_json({"a": [1, 2.5, "é"], "b": {"c": None}}) == '{"a":[1,2.5,"é"],"b":{"c":null}}'


def test_a_payload_that_is_nested_too_deeply_is_refused():
    payload: list[Any] = []
    for _ in range(100_000):
        payload = [payload]

    errors = problems_in({"tenant": "acme", "target": "handler:x", "payload": payload})

    assert errors[0]["message"].startswith("is not JSON: ")


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_body_may_be_a_hundred_deep_whoever_reads_it(opening: str, closing: str):
    assert parse_body(opening * (MAX_DEPTH - 1) + "[1, 2]" + closing * (MAX_DEPTH - 1))
    for depth in (MAX_DEPTH + 1, 900, 980, 100_000):
        with pytest.raises(InvalidInput, match=r"inside each other|is not JSON that can be read"):
            parse_body(opening * (depth - 1) + "[]" + closing * (depth - 1))


def a_body(**fields: Any) -> JobBody:
    return JobBody.model_validate({"tenant": "acme", "target": "https://example.com/hook", **fields}, context=RULES)


def problems_in(body: Any) -> list[dict[str, Any]]:
    """What the API answers to a body, after its way through JSON."""
    with pytest.raises(ValidationError) as refused:
        JobBody.model_validate(body, context=RULES)
    problem = json.loads(json.dumps(problem_of(refused.value), allow_nan=False))
    assert problem["status"] == 422
    for error in problem["errors"]:
        assert f"{error['field']} {error['message']}" in problem["detail"]
    return problem["errors"]
