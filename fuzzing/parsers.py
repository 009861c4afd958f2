"""Everything that reads what somebody else wrote: how it is called, what it may refuse with, and inputs to begin from."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from pydantic import ValidationError

from bench.nasty import NASTY
from functions.adapters.wire.bodies import decode, decode_error
from functions.api.dead_letters import requests as dead_letter_requests
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.reading import read_as
from functions.api.http.requests import Rules, check_key, parse_body
from functions.api.jobs import requests as job_requests
from functions.api.jobs.bodies import BatchBody, JobBody
from functions.api.operations import requests as operation_requests
from functions.api.schedules import fire_counts
from functions.api.schedules import requests as schedule_requests
from functions.api.schedules.batch import ScheduleBatchBody
from functions.api.schedules.bodies import read_schedule
from functions.api.targets import flow_requests
from functions.api.targets import requests as breaker_requests
from functions.api.tenants import requests as tenant_requests
from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.errors import InvalidPattern, InvalidSchedule, MalformedWebhookSecret, TickwheelError, Undecodable
from functions.domain.far_ring.cursor import decode_cursors
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.far_ring.timer_record import decode_alarm, decode_envelope, encode_envelope
from functions.domain.instants import parse_duration, parse_instant, to_ms
from functions.domain.jobs.job import check_tags, check_tenant
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.cron_checks import check_new_cron
from functions.domain.schedules.cron_dialects import check_cron
from functions.domain.schedules.firing import check_fires
from functions.domain.schedules.preview import preview
from functions.domain.schedules.rrules import parse_rrule
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from functions.domain.schedules.zones import zone_of
from functions.domain.targets.addresses import parse_networks, why_refused
from functions.domain.targets.http_answers import parse_retry_after, result_of
from functions.domain.targets.options import check_header
from functions.domain.targets.targets import AllowedTargets, check_target, parse_target
from functions.domain.targets.webhooks import parse_master_keys
from functions.domain.tenants.access import check_pattern
from functions.domain.tenants.plan import decode_tenant

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
RULES = Rules(
    now=NOW,
    allow_plain_http=False,
    allowed=AllowedTargets(("https://*", "handler:*", "arn:aws:sqs:*:*:*")),
    max_timeout=timedelta(seconds=50),
)
REFUSALS = (TickwheelError, ValidationError, Misshapen)

JOB = {
    "tenant": "acme",
    "target": "https://example.com/hook?x=1",
    "payload": {"n": [1, 2.5, "x"]},
    "delay": "PT5M",
    "priority": "high",
    "delivery": "exactly_once",
    "precision": "exact",
    "retry": {"strategy": "fixed", "attempts": 3, "base": 2, "cap": "PT1M", "max_age": 3600},
    "timeout": 10,
    "expires_after": "PT1H",
    "tags": ["team:billing", "eu"],
    "http": {"method": "PUT", "headers": {"X-A": "b"}, "success": [200], "retry_on": [404]},
}
TEMPLATE = {"target": "handler:echo", "payload": {"at": "{{tickwheel.fire_time}}"}, "tags": ["x"]}
SCHEDULES = (
    {"cron": "*/5 8-18 * * mon-fri", "timezone": "Europe/Berlin", "job": TEMPLATE, "spread": "PT15M", "jitter": 30},
    {"every": {"interval": "PT1H", "anchor": "end"}, "job": TEMPLATE, "start": "2027-03-01T00:00:00Z", "max_runs": 5},
    {"rrule": {"rule": "FREQ=MONTHLY;BYDAY=-1FR;BYSETPOS=1", "starts_at": "2027-03-01T09:00"}, "job": TEMPLATE},
    {"poisson": {"per_day": 12}, "job": TEMPLATE, "overlap": "forbid", "pause_after_failures": 3},
    {"at": "2027-04-01T09:00:00Z", "job": TEMPLATE},
    {
        "every": "PT10M",
        "job": TEMPLATE,
        "windows": [{"days": ["mon"], "start": "22:00", "end": "06:00"}],
        "window_mode": "defer",
        "calendar": {"exclude": ["2027-12-24"], "holidays": ["DE"], "weekends": True, "roll": "skip"},
        "misfire": "coalesce",
        "max_lateness": "PT1H",
    },
)
NASTY_SCHEDULES = tuple({**definition, "job": TEMPLATE} for definition in NASTY.values())
ENVELOPE = (
    (
        '{"v":1,"t":"acme","j":[{"i":"x","g":"handler:echo","d":1803902400000,"b":1803902400,"h":1,"s":1803902399000,"c":1,'
        '"m":2,"q":1,"r":[1,3,1000,60000,5000],"o":5000,"e":1803902500000,"x":{"m":"PUT","h":{"x":"y"},"s":[201],"r":[409]},'
        '"l":["eu"],"a":2,"k":1000,"f":[1,1803902400000],"y":1,"w":1803902450000,"p":"{}"}]}'
    ),
    (
        '{"v":1,"t":"acme","j":[{"i":"s:2027-03-01T12:00:00.000Z","g":"https://example.com","d":1803902400000,"b":1803902400,'
        '"h":0,"n":["s",1803902400000,3,7,1803902300000,0,1,3,1],"z":"c$_8"}]}'
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """read: takes a text, or a JSON value where `seeds` are none; raises one of `refusals`, and nothing else."""

    name: str
    read: Callable[[Any], Any]
    seeds: Sequence[Any]
    refusals: tuple[type[Exception], ...] = REFUSALS

    @property
    def is_of_text(self) -> bool:
        """Whether it takes a text."""
        return isinstance(self.seeds[0], str)


def _envelope(body: str) -> None:
    """What is read is what can be worked with: written again, named, kept under a key, tried again, told of."""
    for timer in decode_envelope(body):
        written = encode_envelope([timer])
        written.encode()
        assert encode_envelope(decode_envelope(written)) == written, "it is not what was written"
        str(job_id_of(timer.job)).encode()
        timer_key(timer.job, due_at=timer.wakes_at).encode()
        repr(timer)
        timer.next_attempt(failed_at=NOW, jitter=0.5)
        timer.watchdog(due_at=NOW)
        to_ms(timer.due_at + timer.job.timeout)


def _answer(text: str) -> None:
    """What AWS says to a call, or what is between: of a refusal everything is an error with a code."""
    body = text.encode(errors="surrogatepass")
    for status in (400, 503):
        error: Any = decode_error(body, status=status, headers={"x-amzn-query-error": text[:40]}, has_blobs=True)
        assert isinstance(ClientError(error, "GetItem").response.get("Error", {}).get("Code"), str), "it has no code"
    decode(body, has_blobs=True)


def _told(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A refusal of the API is told as a problem, which is JSON."""

    def run(value: Any) -> None:
        try:
            read(value)
        except REFUSALS as error:
            json.dumps(problem_of(error), allow_nan=False).encode()
            raise

    return run


def _job(value: Any) -> Any:
    return JobBody.model_validate(value, context=RULES).submission(now=NOW)


def _schedule(value: Any) -> Any:
    """A definition is read, checked for a first fire, and its next ones are shown, as for a dry run."""
    budget = Budget(STEPS_OF_A_REQUEST)
    schedule = read_schedule(value, RULES).schedule("acme", "nightly")
    check_fires(schedule, now=NOW, budget=budget)
    return preview(schedule, after=NOW, count=10, budget=budget)


def _modelled(model: Any) -> Callable[[Any], Any]:
    return _told(lambda value: read_as(model, value))


def _cron(text: str) -> None:
    """What is taken has a next fire, and what is refused is told with definitions that are taken."""
    try:
        check_cron(text, timezone="Europe/Berlin")
        check_new_cron(text)
    except InvalidSchedule as error:
        for definition in error.instead:
            read_schedule({**definition, "job": TEMPLATE}, RULES)
            check_new_cron(definition.get("cron", "@daily"))
        raise
    parse_cron(text)


def _host(text: str) -> None:
    try:
        why_refused(text, allowed=())
    except ValueError:
        return


BODIES = {
    dead_letter_requests.ListQuery: {"tenant": "acme", "since": "2027-03-01T00:00:00Z", "limit": "50", "after": "x"},
    dead_letter_requests.PurgeBody: {"tenant": "?", "error_class": "x", "until": "2027-03-01T00:00:00Z", "after": "d"},
    dead_letter_requests.ReplayBody: {
        "tenant": "acme",
        "target": "https://x.com",
        "rate": 5,
        "dry_run": True,
        "tag": "a",
    },
    breaker_requests.BreakersQuery: {"tenant": "acme"},
    flow_requests.FlowQuery: {"tenant": "acme"},
    flow_requests.FlowsQuery: {"tenant": "acme", "limit": "5", "after": "a"},
    flow_requests.FlowPath: {"key": "stripe"},
    flow_requests.FlowLimitsBody: {"rate": "60/min", "burst": 10, "concurrency": 5},
    breaker_requests.ResetBody: {"tenant": "acme", "destination": "https://example.com"},
    tenant_requests.TenantsQuery: {"limit": "5", "after": "acme"},
    tenant_requests.UsageQuery: {"from": "2027-03-01", "until": "2027-03-02"},
    tenant_requests.DeletionQuery: {"confirm": "acme", "ledger": "ttl"},
    tenant_requests.TenantBody: {
        "plan": "small",
        "limits": {"weight": 2, "execution_rate": 10, "spread": "PT4M"},
        "principals": ["*"],
    },
    tenant_requests.TenantPatchBody: {"limits": {"weight": None}, "version": 3, "note": "why"},
    tenant_requests.TurnBody: {"note": "why", "version": 3},
    schedule_requests.PauseBody: {"note": "why"},
    schedule_requests.TriggerBody: {"overlap": "forbid"},
    schedule_requests.BackfillBody: {
        "start": "2027-02-01T00:00:00Z",
        "end": "2027-02-02T00:00:00Z",
        "per_minute": 5,
        "dry_run": True,
    },
    schedule_requests.PreviewQuery: {"tenant": "acme", "count": "5", "after": "2027-03-01T00:00:00Z"},
    schedule_requests.PageQuery: {"tenant": "acme", "limit": "5", "after": "s"},
    schedule_requests.ChangeQuery: {"tenant": "acme", "dry_run": "true", "count": "5"},
    operation_requests.OperationBody: {
        "tenant": "acme",
        "action": "reschedule",
        "by": "PT1H",
        "tag": "eu",
    },
    operation_requests.OperationsQuery: {"tenant": "acme", "limit": "5", "after": "o0000000000000000000002102"},
    fire_counts.FireCountsBody: {"tenant": "acme", "start": "2027-03-01T00:00:00Z", "hours": 1, "spread": "PT1M"},
    job_requests.HeartbeatBody: {"fence": 1, "lease": "PT1M"},
    job_requests.CompleteBody: {"fence": 1, "result": {"n": 1}},
    job_requests.FailBody: {"fence": 1, "error": "x", "permanent": True, "retry_after": 5},
}

TEXTS = (
    ("instants", parse_instant, ("2027-03-01T12:00:00Z", "2027-03-01T12:00:00.123+05:30")),
    ("durations", parse_duration, ("PT1H30M", "P1DT0.5S", "15m", "1.5")),
    ("crons", _cron, ("*/5 8-18 * * mon-fri", "0 9 L-3,15W * ?", "@daily", "1,2-9/3 20-4/2 1 jan,feb 5#2", "0 0 12 ? * 6L 2027-2028",
        "cron(0 18 ? * 2-6 *)", "rate(5 minutes)", "at(2027-03-01T12:00:00)", "@every 1h30m", "CRON_TZ=Europe/Berlin 0 9 * * friL",
        "H(0-29)/10 H * * *", "0 5 * * * root /x # y", "Mon..Fri *-*-* 09:05:00")),
    ("rrules", lambda text: parse_rrule(text, datetime(2027, 3, 1, 9)), (  # noqa: DTZ001  a rule is of local time
        "FREQ=MONTHLY;BYDAY=-1FR;BYSETPOS=1", "FREQ=YEARLY;BYMONTH=1,2;BYMONTHDAY=-1;COUNT=5", "FREQ=DAILY;UNTIL=20270401T000000Z")),
    ("time zones", zone_of, ("Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires")),
    ("job ids", parse_job_id, ("j1~acme~2e~tu0uc0~1~jh8r8a0w~x-1",)),
    ("letter ids", parse_dead_letter_id, ("d1~acme~jh8r8a0w~x-1", "d1~~jh8r8a0w~x")),
    ("targets", parse_target, ("https://example.com:8443/a?b=c", "handler:echo", "arn:aws:sqs:eu-west-1:123456789012:q.fifo",
        "arn:aws:lambda:eu-west-1:123456789012:function:f:live")),
    ("allowed targets", lambda text: check_target(text, allowed=RULES.allowed, allow_plain_http=False), ("https://example.com", "handler:x")),
    ("target patterns", lambda text: AllowedTargets((text,)), ("https://*.example.com/*", "arn:aws:sqs:*:123456789012:a-*")),
    ("principals", check_pattern, ("arn:aws:iam::123456789012:role/billing-*", "*")),
    ("networks", lambda text: parse_networks((text,)), ("10.20.0.0/16", "fd12::/32")),
    ("addresses", _host, ("10.0.0.1", "::ffff:127.0.0.1", "fe80::1%eth0")),
    ("headers", lambda text: check_header(*text.partition(": ")[::2]), ("X-Api-Key: abc", "Accept: */*")),
    ("idempotency keys", check_key, ("order-7", "a.b:c")),
    ("tenants", check_tenant, ("acme", "a.b-c_1")),
    ("tags", lambda text: check_tags(tuple(text.split(","))), ("team:billing,eu", "a=b")),
    ("Retry-After", lambda text: parse_retry_after(text, now=NOW), ("120", "Fri, 31 Dec 2027 23:59:59 GMT", "Sunday, 06-Nov-94 08:49:37 GMT")),
    ("answers of targets", lambda text: result_of(200, text.encode(errors="surrogatepass"), is_whole=True), ('{"a":[1,2]}', "ok")),
    ("answers of AWS", _answer, ('{"Item":{"b":{"B":"AAE="},"m":{"M":{"s":{"BS":["AA=="]}}}}}', '{"__type":"a#B:c","message":"x","Item":{"n":{"N":"1"}}}')),
    ("bodies as JSON", parse_body, ('{"tenant":"acme","delay":5}', "[1,2,{}]")),
    ("bodies in base 64", lambda text: parse_body(text, is_base64=True), ("eyJhIjoxfQ==",)),
    ("envelopes", _envelope, ENVELOPE),
    ("alarm rows", lambda text: decode_alarm(text, tenant="acme"), ('{"i":"s","v":1,"h":0,"c":2,"d":1803902400000,"f":1803902400000,"n":7,"m":1,"p":2}',)),
    ("cursors", decode_cursors, ('{"0":{"at":[1803902400,""],"own":{}},"1":{"at":[1803902400,"k"],"own":{}},"2":{"at":[1803902400,""],"own":{}},"3":{"at":[1803902400,""],"own":{}}}',)),
    ("tenants' rows", decode_tenant, ('{"plan":"small","limits":{"weight":2}}', "{}")),
    ("master keys", parse_master_keys, ('{"current_id":"k1","current":"' + "m" * 64 + '"}',)),
)  # fmt: skip

REFUSED_WITH: dict[str, tuple[type[Exception], ...]] = {
    "envelopes": (Undecodable,),
    "alarm rows": (Undecodable,),
    "cursors": (Undecodable,),
    "tenants' rows": (Undecodable,),
    "target patterns": (InvalidPattern,),
    "master keys": (MalformedWebhookSecret,),
    "answers of targets": (),
    "answers of AWS": (HTTPClientError,),
    "Retry-After": (),
    "addresses": (),
}

PARSERS = (
    *(
        Parser(name=name, read=read, seeds=seeds, refusals=REFUSED_WITH.get(name, REFUSALS))
        for name, read, seeds in TEXTS
    ),
    Parser(name="POST /v1/jobs", read=_told(_job), seeds=(JOB,)),
    Parser(name="POST /v1/jobs:batch", read=_modelled(BatchBody), seeds=({"jobs": [JOB]},)),
    Parser(
        name="POST /v1/schedules:batch",
        read=_modelled(ScheduleBatchBody),
        seeds=({"schedules": [{"tenant": "acme", "id": "nightly", **each} for each in SCHEDULES]},),
    ),
    Parser(name="PUT /v1/schedules", read=_told(_schedule), seeds=(*SCHEDULES, *NASTY_SCHEDULES)),
    *(Parser(name=model.__name__, read=_modelled(model), seeds=(seed,)) for model, seed in BODIES.items()),
)
