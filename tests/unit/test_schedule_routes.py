"""The routes of schedules on fakes: what they answer, and how they tell requests apart."""

import json
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.admission.quota import KNOWN_FOR
from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, Refusals, problem_of
from functions.api.http.requests import Rules
from functions.api.http.router import serve
from functions.api.schedules.batch import ScheduleBatch
from functions.api.schedules.extra_runs import ExtraRuns
from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.routes import ScheduleServices, routes
from functions.domain.errors import ScheduleBusy, TickwheelError
from functions.domain.instants import SECOND, format_instant
from functions.domain.jobs.job import Job
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import State
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits
from functions.domain.schedules.rrules import parse_rrule
from functions.domain.schedules.rules import CronRule
from functions.domain.schedules.schedule import JobTemplate
from functions.domain.tenants.plan import TenantPlan
from functions.ports.ready_queue import Rejected
from functions.ports.schedules import ScheduleStore
from testkit.builders import NOON, a_schedule
from testkit.events import Context, a_request
from testkit.fakes import InMemoryScheduleStore
from testkit.scheduler import World, pass_time

JOB = {"target": "https://example.com/hook"}
HOURLY = {"every": 3_600, "job": JOB}


class Api(World):
    """The routes over the whole scheduler on fakes."""

    def __init__(self, schedules: InMemoryScheduleStore | None = None) -> None:
        super().__init__()
        self.schedules = schedules or self.schedules
        self.limits = NO_LIMITS

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        tenant: str | None = "acme",
        query: dict[str, Any] | None = None,
        **options: Any,
    ) -> tuple[int, Any]:
        answer = self.ask(method, path, body, tenant=tenant, query=query, **options)
        return answer["statusCode"], json.loads(answer["body"])

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        tenant: str | None = "acme",
        query: dict[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        asked = {**({"tenant": tenant} if tenant is not None else {}), **(query or {})}
        manager = self.manager
        services = self.build(
            ScheduleServices,
            manager=manager,
            puts=self.build(ScheduleBatch, manager=manager),
            extra_runs=self.build(ExtraRuns, gate=self.gate),
            refusals=Refusals(journal=self.journal),
            rules=self.rules,
        )
        app = APIGatewayHttpResolver()
        serve(app, routes, services, checks=())
        app.exception_handler([Misshapen, TickwheelError])(_refuse)
        context: Any = Context()
        return app.resolve(a_request(method, path, body, query=asked, **options), context)

    def put(self, schedule_id: str = "nightly", **definition: Any) -> dict[str, Any]:
        status, answer = self.call("PUT", f"/v1/schedules/{schedule_id}", {**HOURLY, **definition})
        assert status in (200, 201), answer
        return answer

    def get(self, schedule_id: str = "nightly") -> dict[str, Any]:
        status, answer = self.call("GET", f"/v1/schedules/{schedule_id}")
        assert status == 200, answer
        return answer

    def rules(self) -> Rules:
        return Rules(now=self.clock.now(), allow_plain_http=False, max_timeout=timedelta(seconds=50))

    @property
    def manager(self) -> ScheduleManager:
        return self.build(ScheduleManager, gate=self.gate, limits=lambda _: self.limits)


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


def test_a_new_schedule_is_created_and_reported_with_its_next_fire():
    api = Api()

    status, answer = api.call("PUT", "/v1/schedules/nightly", HOURLY)

    assert status == 201
    assert answer == {
        "id": "nightly",
        "tenant": "acme",
        "version": answer["version"],
        "status": "active",
        "note": "",
        "every": {"interval": "PT1H"},
        "job": JOB,
        "created_at": "2027-03-01T12:00:00.000Z",
        "changed_at": "2027-03-01T12:00:00.000Z",
        "next_fire": {"at": "2027-03-01T13:00:00.000Z", "nominal_at": "2027-03-01T13:00:00.000Z"},
        "fires": 0,
        "misfires": 0,
        "skips": {},
        "failures_in_a_row": 0,
        "runs": [],
    }


def test_the_same_definition_again_changes_nothing():
    api = Api()
    first = api.put()
    api.clock.tick(timedelta(minutes=1))

    assert api.call("PUT", "/v1/schedules/nightly", HOURLY) == (200, first)


def test_another_definition_is_a_new_version():
    api = Api()
    first = api.put()

    status, answer = api.call("PUT", "/v1/schedules/nightly", {**HOURLY, "every": 1_800})

    assert (status, answer["version"], answer["every"]) == (200, first["version"] + 1, {"interval": "PT30M"})
    assert answer["next_fire"]["at"] == "2027-03-01T12:30:00.000Z"


def with_a_stored(expression: str) -> Api:
    """A schedule that was taken when its expression still was."""
    api = Api()
    api.store(a_schedule(rule=CronRule(expression), job=JobTemplate(target=JOB["target"])))
    api.call("PATCH", "/v1/schedules/nightly", {"history": 9})
    return api


@pytest.mark.parametrize("expression", ["*/90 * * * *", "0 022-002 * * *", "0 0 31W * *"])
def test_an_expression_that_is_taken_no_more_is_refused_unless_it_is_stored_already(expression: str):
    body = {"cron": expression, "job": JOB}
    refusals = [Api().call("PUT", "/v1/schedules/nightly", body, query={"dry_run": flag}) for flag in ("false", "true")]
    old = with_a_stored(expression)
    stored = old.get()
    refusals = [
        *refusals,
        old.call("PATCH", "/v1/schedules/nightly", {"cron": f"{expression} "}),
    ]
    answers = [
        old.call("GET", "/v1/schedules/nightly:preview"),
        old.call("PUT", "/v1/schedules/nightly", {**body, "history": 9}),
        old.call("PUT", "/v1/schedules/nightly", {**body, "history": 3}, query={"dry_run": "true"}),
        old.call("PATCH", "/v1/schedules/nightly", {"history": 3}),
        old.call("PUT", "/v1/schedules/nightly", {**body, "history": 4}),
        old.call("POST", "/v1/schedules/nightly:pause"),
        old.call("POST", "/v1/schedules/nightly:resume"),
    ]

    assert [(status, answer["code"]) for status, answer in refusals] == [(422, "invalid_schedule")] * 3
    assert all(answer["errors"][0]["field"] == "cron" and answer["errors"][0]["instead"] for _, answer in refusals)
    assert [status for status, _ in answers] == [200] * 7
    assert answers[1][1] == stored
    assert (answers[-1][1]["cron"], answers[-1][1]["history"]) == (expression, 4)
    assert answers[-1][1]["next_fire"] == stored["next_fire"]


def test_an_expression_that_is_taken_no_more_goes_on_firing_where_it_is_stored():
    api = with_a_stored("*/90 * * * *")

    pass_time(api, until=NOON + timedelta(hours=2, minutes=30))

    assert [run["fire_at"] for run in api.get()["runs"]] == ["2027-03-01T14:00:00.000Z", "2027-03-01T13:00:00.000Z"]


def test_a_dry_run_of_a_put_says_the_fires_before_and_after_and_writes_nothing():
    api = Api()
    before = api.put()

    status, answer = api.call(
        "PUT", "/v1/schedules/nightly", {**HOURLY, "every": 1_800}, query={"dry_run": "true", "count": 2}
    )

    assert status == 200
    assert [fire["at"][11:16] for fire in answer["before"]] == ["13:00", "14:00"]
    assert [fire["at"][11:16] for fire in answer["after"]] == ["12:30", "13:00"]
    assert api.get() == before


def test_a_dry_run_of_a_change_of_a_paused_schedule_says_what_it_does_once_it_is_resumed():
    api = Api()
    api.put()
    api.call("POST", "/v1/schedules/nightly:pause")

    _, answer = api.call("PATCH", "/v1/schedules/nightly", {"every": 1_800}, query={"dry_run": "true", "count": 1})

    assert [fire["at"][11:16] for fire in (*answer["before"], *answer["after"])] == ["13:00", "12:30"]


def test_a_dry_run_of_a_new_schedule_has_no_fires_before():
    api = Api()

    status, answer = api.call("PUT", "/v1/schedules/nightly", HOURLY, query={"dry_run": "true"})

    assert (status, answer["before"], len(answer["after"])) == (200, [], 10)
    assert api.call("GET", "/v1/schedules/nightly")[0] == 404


def test_a_patch_changes_what_it_names():
    api = Api()
    api.put(spread="PT5M", max_runs=9)

    status, answer = api.call("PATCH", "/v1/schedules/nightly", {"cron": "30 * * * *", "spread": None})

    assert (status, answer["cron"], answer["max_runs"]) == (200, "30 * * * *", 9)
    assert "every" not in answer
    assert "spread" not in answer


def test_a_dry_run_of_a_patch_says_the_fires_before_and_after_and_writes_nothing():
    api = Api()
    before = api.put()

    status, answer = api.call("PATCH", "/v1/schedules/nightly", {"every": 1_800}, query={"dry_run": "true", "count": 1})

    assert (status, answer["before"][0]["at"], answer["after"][0]["at"]) == (
        200,
        "2027-03-01T13:00:00.000Z",
        "2027-03-01T12:30:00.000Z",
    )
    assert api.get() == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/schedules/nightly", None),
        ("PATCH", "/v1/schedules/nightly", {}),
        ("DELETE", "/v1/schedules/nightly", None),
        ("GET", "/v1/schedules/nightly:preview", None),
        ("GET", "/v1/schedules/nightly:stats", None),
        ("POST", "/v1/schedules/nightly:pause", {}),
        ("POST", "/v1/schedules/nightly:resume", {}),
        ("POST", "/v1/schedules/nightly:trigger", {}),
        ("POST", "/v1/schedules/nightly:backfill", {"start": "2027-01-01T00:00:00Z", "end": "2027-01-02T00:00:00Z"}),
    ],
)
def test_what_a_tenant_does_not_have_is_not_found(method: str, path: str, body: Any):
    api = Api()
    api.call("PUT", "/v1/schedules/nightly", HOURLY, tenant="globex")

    status, problem = api.call(method, path, body)

    assert (status, problem["code"]) == (404, "schedule_not_found")
    assert "acme" in problem["detail"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/schedules", None),
        ("PUT", "/v1/schedules/nightly", HOURLY),
        ("PATCH", "/v1/schedules/nightly", {}),
        ("GET", "/v1/schedules/nightly", None),
        ("GET", "/v1/schedules/nightly:preview", None),
        ("GET", "/v1/schedules/nightly:stats", None),
        ("DELETE", "/v1/schedules/nightly", None),
        ("POST", "/v1/schedules/nightly:pause", None),
        ("POST", "/v1/schedules/nightly:resume", None),
        ("POST", "/v1/schedules/nightly:trigger", None),
        ("POST", "/v1/schedules/nightly:backfill", None),
    ],
)
def test_every_request_names_its_tenant(method: str, path: str, body: Any):
    status, problem = Api().call(method, path, body, tenant=None)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert problem["errors"] == [{"field": "tenant", "message": "is required"}]


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("/v1/schedules", {"limit": 0}, "limit"),
        ("/v1/schedules", {"limit": 501}, "limit"),
        ("/v1/schedules", {"limit": "all"}, "limit"),
        ("/v1/schedules", {"page": 2}, "page"),
        ("/v1/schedules", {"tenant": "a#b"}, "tenant"),
        ("/v1/schedules/nightly", {"verbose": "1"}, "verbose"),
        ("/v1/schedules/nightly:stats", {"count": 10}, "count"),
        ("/v1/schedules/nightly:preview", {"count": 101}, "count"),
        ("/v1/schedules/nightly:preview", {"after": "2027-03-01T12:00:00"}, "after"),
        ("/v1/schedules/nightly:preview", {"after": "2027-03-01T12:00:00~3"}, "after"),
        ("/v1/schedules/nightly:preview", {"after": "2027-03-01T12:00:00Z~"}, "after"),
        ("/v1/schedules/nightly:preview", {"after": "2027-03-01T12:00:00Z~-1"}, "after"),
    ],
)
def test_a_bad_query_is_refused_with_its_field(path: str, query: dict[str, Any], field: str):
    status, problem = Api().call("GET", path, query=query)

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_input", field)


def test_a_misspelt_dry_run_does_not_write():
    api = Api()

    status, problem = api.call("PUT", "/v1/schedules/nightly", HOURLY, query={"dryrun": "true"})

    assert (status, problem["errors"][0]["field"]) == (422, "dryrun")
    assert api.call("GET", "/v1/schedules/nightly")[0] == 404


@pytest.mark.parametrize("schedule_id", ["a b", "a:b", "é", "x" * 129])
def test_a_bad_id_is_refused(schedule_id: str):
    status, problem = Api().call("PUT", f"/v1/schedules/{schedule_id}", HOURLY)

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_schedule", "id")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/schedules/nightly"),
        ("POST", "/v1/schedules/nightly:"),
        ("POST", "/v1/schedules/nightly:preview"),
        ("POST", "/v1/schedules/nightly:stats"),
        ("POST", "/v1/schedules/nightly:explode"),
        ("GET", "/v1/schedules/nightly:pause"),
    ],
)
def test_an_unknown_verb_is_not_found_and_the_known_ones_are_named(method: str, path: str):
    status, problem = Api().call(method, path)

    assert (status, problem["code"]) == (404, "no_such_route")
    assert (":pause, :resume, :trigger, :backfill" if method == "POST" else ":preview") in problem["detail"]


def test_a_schedule_that_keeps_changing_is_busy():
    class Contended(InMemoryScheduleStore):
        def change(self, *_: Any, **__: Any) -> bool:
            return False

    contended: ScheduleStore = Contended()
    status, problem = Api(contended).call("PUT", "/v1/schedules/nightly", HOURLY)

    assert (status, problem["code"], problem["detail"]) == (409, "schedule_busy", str(ScheduleBusy("nightly")))


def test_a_paused_schedule_says_why_and_has_no_next_fire():
    api = Api()
    api.put()

    status, answer = api.call("POST", "/v1/schedules/nightly:pause", {"note": "the target moves"})

    assert (status, answer["status"], answer["note"]) == (200, "paused", "the target moves")
    assert "next_fire" not in answer


def test_a_resumed_schedule_goes_on_from_now():
    api = Api()
    api.put()
    api.call("POST", "/v1/schedules/nightly:pause", {"note": "the target moves"})
    api.clock.tick(timedelta(hours=3, minutes=1))

    status, answer = api.call("POST", "/v1/schedules/nightly:resume")

    assert (status, answer["status"], answer["note"]) == (200, "active", "")
    assert answer["next_fire"]["at"] == "2027-03-01T16:00:00.000Z"


@pytest.mark.parametrize("body", [None, {}])
def test_a_pause_needs_no_body(body: Any):
    api = Api()
    api.put()

    assert api.call("POST", "/v1/schedules/nightly:pause", body)[1]["status"] == "paused"


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("pause", {"note": 7}, "note"),
        ("pause", {"note": "x" * 501}, "note"),
        ("pause", {"reason": "x"}, "reason"),
        ("resume", [], "body"),
        ("trigger", {"overlap": "queue"}, "overlap"),
        ("trigger", {"at": "now"}, "at"),
        ("backfill", {"start": "2027-01-01T00:00:00Z"}, "end"),
        ("backfill", {"start": "yesterday", "end": "2027-01-02T00:00:00Z"}, "start"),
        ("backfill", {"start": "2027-01-01T00:00:00Z", "end": "2027-01-02T00:00:00Z", "per_minute": 0}, "per_minute"),
        ("backfill", {"start": "2027-01-01T00:00:00Z", "end": "2027-01-02T00:00:00Z", "dry_run": "no"}, "dry_run"),
    ],
)
def test_a_bad_body_of_a_verb_is_refused_with_its_field(verb: str, body: Any, field: str):
    api = Api()
    api.put()

    status, problem = api.call("POST", f"/v1/schedules/nightly:{verb}", body)

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_input", field)


def test_a_deleted_schedule_is_gone_and_deleting_it_again_is_no_error():
    api = Api()
    api.put()

    for _ in range(2):
        assert api.call("DELETE", "/v1/schedules/nightly") == (
            200,
            {"id": "nightly", "tenant": "acme", "status": "deleted"},
        )
    assert api.call("GET", "/v1/schedules/nightly")[0] == 404
    assert api.call("GET", "/v1/schedules") == (200, {"schedules": [], "next": None})


def test_schedules_are_reported_page_by_page_and_for_one_tenant_only():
    api = Api()
    for schedule_id in ("b", "a", "d", "c"):
        api.put(schedule_id)
    api.call("PUT", "/v1/schedules/aa", HOURLY, tenant="globex")

    _, first = api.call("GET", "/v1/schedules", query={"limit": 3})
    _, second = api.call("GET", "/v1/schedules", query={"limit": 3, "after": first["next"]})

    assert [schedule["id"] for schedule in first["schedules"]] == ["a", "b", "c"]
    assert ([schedule["id"] for schedule in second["schedules"]], second["next"]) == (["d"], None)


def test_pages_of_a_preview_show_no_more_fires_than_a_schedule_has():
    api = Api()
    api.put(every=60, max_runs=15)
    shown, query = [], {"count": 6}
    while True:
        _, answer = api.call("GET", "/v1/schedules/nightly:preview", query=query)
        shown += [fire["at"] for fire in answer["fires"]]
        if answer["next"] is None:
            break
        query = {"count": 6, "after": answer["next"]}
        api.clock.tick(timedelta(seconds=100))  # what fires between two pages was shown on the first

    assert len(shown) == len(set(shown)) == 15
    assert shown == sorted(shown)


def test_a_preview_that_shows_the_last_fire_is_the_last_page():
    api = Api()
    api.put(every=60, max_runs=10)

    _, answer = api.call("GET", "/v1/schedules/nightly:preview", query={"count": 10})

    assert (len(answer["fires"]), answer["next"]) == (10, None)


def test_a_preview_says_both_clocks_and_why_a_fire_is_moved():
    api = Api()
    api.put(every=None, cron="30 2 * * *", timezone="Europe/Berlin")

    status, answer = api.call(
        "GET", "/v1/schedules/nightly:preview", query={"count": 2, "after": "2027-03-27T12:00:00+01:00"}
    )

    assert status == 200
    assert answer["fires"][0] == {
        "at": "2027-03-28T01:00:00.000Z",
        "local": "2027-03-28T03:00:00+02:00",
        "offset": "+02:00",
        "marks": [
            {
                "by": "gap",
                "reason": "02:30 does not exist on 2027-03-28 in Europe/Berlin: the first valid time after it",
            }
        ],
    }
    assert answer["fires"][1]["marks"] == []


def test_a_trigger_answers_with_the_job_that_runs_now():
    api = Api()
    api.put()

    status, answer = api.call("POST", "/v1/schedules/nightly:trigger")

    assert status == 202
    assert parse_job_id(answer["job"]).due_at == NOON
    assert [timer.job.identity for timer in api.ready.sent] == ["nightly:trigger:token-1"]


def test_triggers_with_the_same_key_are_one_run():
    api = Api()
    api.put()
    for key in ("deploy 7", "deploy 7", "deploy 8"):
        api.call("POST", "/v1/schedules/nightly:trigger", headers={"idempotency-key": key})

    identities = [timer.job.identity for timer in api.ready.sent]

    assert identities[0] == identities[1] != identities[2]
    assert all(identity.startswith("nightly:trigger:k") for identity in identities)


def test_a_key_that_is_used_again_days_later_runs_nothing_again_whatever_the_delivery():
    api = Api()
    api.put(job={**JOB, "delivery": "at_least_once"})

    answers = []
    for _ in range(3):
        answers.append(
            api.call("POST", "/v1/schedules/nightly:trigger", headers={"idempotency-key": "deploy 7"})[1]["job"]
        )
        api.receive_and_work()
        api.clock.tick(timedelta(days=3))

    assert answers == [answers[0]] * 3
    assert len(api.calls) == 1


def test_a_trigger_that_died_before_its_message_is_placed_by_its_repeat():
    api = Api()
    api.put(job={**JOB, "delivery": "at_least_once"})
    headers = {"idempotency-key": "deploy 7"}
    api.ready.refuses = lambda timer: Rejected(timer, "it is down", is_permanent=False)
    assert api.call("POST", "/v1/schedules/nightly:trigger", headers=headers)[0] == 503
    api.ready.refuses = lambda _: None
    api.clock.tick(timedelta(minutes=4))

    assert api.call("POST", "/v1/schedules/nightly:trigger", headers=headers)[0] == 202

    api.receive_and_work()
    assert len(api.calls) == 1


def test_a_fire_that_is_cancelled_while_its_backfill_is_repeated_does_not_run(monkeypatch: pytest.MonkeyPatch):
    api = Api()
    api.put(job={**JOB, "delivery": "at_least_once"})
    body = {"start": "2027-03-01T09:00:00Z", "end": "2027-03-01T12:00:00Z", "per_minute": 0.05}
    jobs = api.call("POST", "/v1/schedules/nightly:backfill", body, headers={"idempotency-key": "k"})[1]["jobs"]
    api.clock.tick(timedelta(minutes=5))
    last = parse_job_id(jobs[-1])
    register = api.ledger.register

    def register_and_cancel(job: Job, **options: Any) -> Any:
        answer = register(job, **options)
        if job.identity == last.identity:
            assert api.canceller().cancel(last)
        return answer

    monkeypatch.setattr(api.ledger, "register", register_and_cancel)

    status, reported = api.call("POST", "/v1/schedules/nightly:backfill", body, headers={"idempotency-key": "k"})

    assert (status, reported["jobs"]) == (202, jobs)
    assert api.timers.stored(last) is None
    others = [parse_job_id(job_id) for job_id in jobs[1:-1]]
    assert all(api.timers.stored(job_id) is not None for job_id in others)


def test_a_backfill_runs_the_fires_of_its_range_so_many_a_minute():
    api = Api()
    api.put()
    body = {"start": "2027-02-28T00:00:00Z", "end": "2027-02-28T03:00:00Z", "per_minute": 2, "overlap": "forbid"}

    status, answer = api.call("POST", "/v1/schedules/nightly:backfill", body, headers={"idempotency-key": "again"})

    assert (status, answer["count"], len(answer["jobs"])) == (202, 3, 3)
    assert (answer["first"], answer["last"]) == ("2027-02-28T00:00:00.000Z", "2027-02-28T02:00:00.000Z")
    assert answer["ends_at"] == "2027-03-01T12:01:00.000Z"
    assert [parse_job_id(job_id).due_at - NOON for job_id in answer["jobs"]] == [
        timedelta(seconds=s) for s in (0, 30, 60)
    ]


class TestWhatATenantMayHandIn:
    RANGE: ClassVar = {"start": "2027-02-28T00:00:00Z", "end": "2027-02-28T10:00:00Z", "per_minute": 6}

    def test_triggers_take_from_its_rate(self):
        api = Api()
        api.put()
        api.plans.plans["acme"] = TenantPlan(submission_rate=0.01, submission_burst=1)

        answers = [api.call("POST", "/v1/schedules/nightly:trigger") for _ in range(20)]

        assert [status for status, _ in answers] == [202] + [429] * 19
        assert (answers[1][1]["code"], answers[1][1]["retry_after"]) == ("rate_exceeded", 100)
        assert len(api.ready.sent) == 1

    def test_each_first_fire_that_a_change_sets_takes_from_its_rate(self):
        api = Api()
        api.plans.plans["acme"] = TenantPlan(submission_rate=0.01, submission_burst=1)
        statuses: list[int] = []
        for _ in range(60):
            at = format_instant(api.clock.now() + timedelta(milliseconds=200))
            statuses.append(api.call("PUT", "/v1/schedules/one", {"at": at, "job": JOB})[0])
            api.clock.tick(SECOND)
            api.receive_and_work()

        assert statuses == [201] + [429] * 59
        assert len(api.calls) == 1

        api.clock.tick(timedelta(seconds=100))
        at = format_instant(api.clock.now() + timedelta(minutes=1))
        assert api.call("PATCH", "/v1/schedules/one", {"at": at})[0] == 200
        status, problem = api.call("PATCH", "/v1/schedules/one", {"at": format_instant(NOON + timedelta(hours=1))})
        assert (status, problem["code"], problem["retry_after"]) == (429, "rate_exceeded", 100)

    def test_what_fires_as_before_takes_nothing_from_it(self):
        api = Api()
        api.plans.plans["acme"] = TenantPlan(submission_rate=0.01, submission_burst=1)
        api.put()

        api.put()
        assert api.call("PATCH", "/v1/schedules/nightly", {"job": {"timeout": 7}})[0] == 200
        assert api.call("POST", "/v1/schedules/nightly:pause")[0] == 200
        assert api.call("PATCH", "/v1/schedules/nightly", {"cron": "5 * * * *"})[0] == 200
        assert api.call("POST", "/v1/schedules/nightly:resume")[0] == 429

        api.clock.tick(timedelta(seconds=100))
        assert api.call("POST", "/v1/schedules/nightly:resume")[0] == 200
        assert api.call("DELETE", "/v1/schedules/nightly")[0] == 200

    @pytest.mark.parametrize("change", [{"max_runs": 3}, {"job": {"timeout": 7}}])
    def test_what_lets_it_fire_once_more_takes_from_it(self, change: dict[str, Any]):
        api = Api()
        from_end = {"every": {"interval": 3600, "from": "end"}} if "job" in change else {"every": 3600}
        api.call("PUT", "/v1/schedules/one", {**from_end, "max_runs": 2, "job": JOB})
        api.plans.plans["acme"] = TenantPlan(submission_rate=0.01, submission_burst=1)

        statuses = [api.call("PATCH", "/v1/schedules/one", change)[0]]
        statuses += [api.call("PATCH", "/v1/schedules/one", {"max_runs": 4, "job": {"timeout": 8}})[0]]
        assert statuses == [200, 429]

    def test_a_tenant_without_a_rate_puts_any_number_without_a_write_for_it(self):
        api = Api()
        for number in range(200):
            api.put(f"s{number}")

        assert api.rates.writes == 0

    def test_triggers_wait_within_its_quota_until_they_have_run(self):
        api = Api()
        api.put()
        api.plans.plans["acme"] = TenantPlan(max_pending=1)

        assert api.call("POST", "/v1/schedules/nightly:trigger")[0] == 202
        status, problem = api.call("POST", "/v1/schedules/nightly:trigger")
        assert (status, problem["code"], problem["count"]) == (429, "quota_exceeded", 1)

        api.receive_and_work()
        api.tally.flush()
        api.clock.tick(KNOWN_FOR)
        assert api.call("POST", "/v1/schedules/nightly:trigger")[0] == 202

    def test_a_backfill_comes_in_by_parts_that_keep_its_pace_and_each_fire_runs_once(self):
        api = Api()
        api.put()
        api.plans.plans["acme"] = TenantPlan(submission_rate=1, submission_burst=4)
        parts, after = [], ""
        while after is not None:
            status, answer = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE | {"after": after})
            if status == 429:
                assert answer["code"] == "rate_exceeded"
                api.clock.tick(timedelta(seconds=answer["retry_after"]))
                continue
            assert status == 202, answer
            parts.append(answer)
            after = answer.get("next")

        assert sum(part["count"] for part in parts) == 10
        assert {part["backfill"] for part in parts} == {"token-1"}
        due_ats = [parse_job_id(job_id).due_at - NOON for part in parts for job_id in part["jobs"]]
        assert due_ats == [timedelta(seconds=10 * number) for number in range(10)]
        assert len({timer.job.identity for timer in api.ready.sent}) == len(api.ready.sent) == 10

    def test_fires_of_a_backfill_are_counted_over_all_its_parts(self):
        api = Api()
        api.put(job={**JOB, "payload": "{{tickwheel.index}}"})
        api.plans.plans["acme"] = TenantPlan(max_pending=4)
        _, answer = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE)
        api.plans.plans["acme"] = TenantPlan()
        _, rest = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE | {"after": answer["next"]})

        assert (answer["count"], rest["count"]) == (4, 6)
        occurrences = [timer.job.occurrence for timer in api.ready.sent]
        assert sorted(each.index for each in occurrences if each is not None) == list(range(10))
        # Of a release whose bookmarks had no index.
        _, again = api.call(
            "POST", "/v1/schedules/nightly:backfill", self.RANGE | {"after": answer["next"].rpartition("~")[0]}
        )
        assert again["count"] == 6

    def test_a_backfill_is_taken_as_far_as_its_quota_goes(self):
        api = Api()
        api.put()
        api.plans.plans["acme"] = TenantPlan(max_pending=3)

        status, answer = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE)
        assert (status, answer["count"], len(api.ready.sent)) == (202, 3, 3)

        status, problem = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE | {"after": answer["next"]})
        assert (status, problem["code"]) == (429, "quota_exceeded")
        assert len(api.ready.sent) == 3

    @pytest.mark.parametrize(
        "after", ["x", "1~2", "9999999999999999~1~t", "1~1~a#b", "1~99999999999999~t", "1~1~\u0660"]
    )
    def test_what_no_backfill_has_answered_is_no_place_to_go_on_at(self, after: str):
        api = Api()
        api.put()

        status, problem = api.call("POST", "/v1/schedules/nightly:backfill", self.RANGE | {"after": after})

        assert (status, problem["code"]) == (422, "invalid_input")
        assert "after is" in problem["detail"]


def test_a_dry_run_of_a_backfill_says_what_would_run_and_runs_nothing():
    api = Api()
    api.put()
    body = {"start": "2027-02-28T00:00:00Z", "end": "2027-02-28T03:00:00Z", "dry_run": True}

    status, answer = api.call("POST", "/v1/schedules/nightly:backfill", body)

    assert (status, answer["count"], answer["jobs"]) == (200, 3, [])
    assert api.ready.sent == []


def test_a_backfill_of_an_empty_range_runs_nothing():
    api = Api()
    api.put()
    body = {"start": "2027-02-28T00:10:00Z", "end": "2027-02-28T00:20:00Z"}

    status, answer = api.call("POST", "/v1/schedules/nightly:backfill", body)

    assert (status, answer) == (202, {"backfill": "token-1", "count": 0, "jobs": []})


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2027-03-01T00:00:00Z", "2027-03-01T12:00:01Z", "must be after start and not in the future"),
        ("2027-02-28T03:00:00Z", "2027-02-28T00:00:00Z", "must be after start and not in the future"),
        ("2020-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "leaves more than 1000 fires"),
    ],
)
def test_a_range_that_cannot_be_backfilled_is_refused(start: str, end: str, message: str):
    api = Api()
    api.put()

    status, problem = api.call("POST", "/v1/schedules/nightly:backfill", {"start": start, "end": end})

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_schedule", "end")
    assert problem["errors"][0]["message"].startswith(message)


def test_runs_are_reported_newest_first_with_their_outcome():
    api = Api()
    api.put(every=60)
    for _ in range(3):
        api.clock.tick(timedelta(minutes=1))
        api.receive_and_work()
        api.materialiser.revive("acme#nightly")

    answer = api.get()

    assert answer["fires"] >= 3
    assert answer["last_fire"] == format_instant(NOON + timedelta(minutes=3))
    assert [run["fire_at"] for run in answer["runs"]] == [
        format_instant(NOON + timedelta(minutes=minutes)) for minutes in (3, 2, 1)
    ]
    newest = answer["runs"][0]
    assert answer["last_outcome"] == newest["state"] == State.SUCCEEDED
    assert (newest["attempt"], newest["settled_at"]) == (1, format_instant(NOON + timedelta(minutes=3)))


def test_the_last_successes_and_failures_are_reported_beside_the_history():
    api = Api()
    api.put(every=60, success_history=2)
    for _ in range(3):
        api.clock.tick(timedelta(minutes=1))
        api.receive_and_work()
        api.materialiser.revive("acme#nightly")

    answer = api.get()

    assert [run["fire_at"] for run in answer["last_successes"]] == [
        format_instant(NOON + timedelta(minutes=minutes)) for minutes in (3, 2)
    ]
    newest = answer["last_successes"][0]
    assert newest["job_id"] == answer["runs"][0]["job_id"]
    assert (newest["state"], newest["attempt"], newest["settled_at"]) == (
        State.SUCCEEDED,
        1,
        format_instant(NOON + timedelta(minutes=3)),
    )
    assert "last_failures" not in answer
    _, listed = api.call("GET", "/v1/schedules")
    assert "last_successes" not in listed["schedules"][0]
    api.put(every=60, success_history=1)
    assert len(api.get()["last_successes"]) == 1


def test_a_large_payload_is_reported_by_itself_and_pointed_at_in_a_list():
    api = Api()
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(3_000)}

    answer = api.put(job={**JOB, "payload": payload})
    _, listed = api.call("GET", "/v1/schedules")

    assert answer["job"] == api.get()["job"] == {**JOB, "payload": payload}
    assert set(listed["schedules"][0]["job"]) == {"target", "payload_pointer"}


def test_a_patch_leaves_a_large_payload_alone_or_merges_into_it():
    api = Api()
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(3_000)}
    api.put(job={**JOB, "payload": payload})

    _, kept = api.call("PATCH", "/v1/schedules/nightly", {"spread": "PT5M"})
    _, merged = api.call("PATCH", "/v1/schedules/nightly", {"job": {"payload": {"0": None, "new": 1}}})

    assert kept["job"]["payload"] == payload
    del payload["0"]
    assert merged["job"]["payload"] == {**payload, "new": 1}


def test_an_id_may_come_percent_encoded():
    api = Api()
    api.put("night.ly")

    assert api.call("GET", "/v1/schedules/night%2Ely")[1]["id"] == "night.ly"
    assert api.call("POST", "/v1/schedules/night.ly%3Apause")[1]["status"] == "paused"


class TestFireCounts:
    def test_definitions_are_counted_by_the_minute(self):
        status, answer = Api().call(
            "POST",
            "/v1/schedules:fires",
            {
                "schedules": [{"tenant": "acme", "id": "a", **HOURLY}, {"tenant": "globex", "id": "b", **HOURLY}],
                "start": "2027-03-01T00:00:30Z",
                "hours": 2,
            },
            tenant=None,
        )

        assert status == 200
        assert answer == {
            "start": "2027-03-01T00:00:00.000Z",
            "results": [
                {"tenant": "acme", "id": "a", "minutes": {"0": 1, "60": 1}},
                {"tenant": "globex", "id": "b", "minutes": {"0": 1, "60": 1}},
            ],
            "next": None,
        }

    def test_an_expression_that_is_taken_no_more_has_a_problem_of_its_own(self):
        definition = {"tenant": "acme", "id": "a", "cron": "*/90 * * * *", "job": JOB}

        _, answer = Api().call("POST", "/v1/schedules:fires", {"schedules": [definition]}, tenant=None)

        (found,) = answer["results"]
        assert found["problem"]["errors"][0]["instead"] == [{"every": "PT1H30M"}, {"cron": "0 * * * *"}]

    def test_a_bad_definition_has_a_problem_of_its_own(self):
        good = {"tenant": "acme", "id": "a", **HOURLY}
        bad = [{**good, "every": 0}, {**good, "id": "a b"}, {"id": "a", **HOURLY}, {**good, "status": "paused"}]

        _, answer = Api().call("POST", "/v1/schedules:fires", {"schedules": [*bad, good]}, tenant=None)

        assert [result["problem"]["errors"][0]["field"] for result in answer["results"][:-1]] == [
            "every.interval",
            "id",
            "tenant",
            "status",
        ]
        assert "minutes" in answer["results"][-1]

    def test_the_schedules_of_a_tenant_are_counted_page_by_page_without_the_paused(self):
        api = Api()
        for number in range(102):
            api.put(f"s{number:03d}")
        api.call("POST", "/v1/schedules/s000:pause")

        _, first = api.call("POST", "/v1/schedules:fires", {"tenant": "acme"}, tenant=None)
        _, second = api.call("POST", "/v1/schedules:fires", {"tenant": "acme", "after": first["next"]}, tenant=None)

        assert (len(first["results"]), first["next"], first["start"]) == (99, "s099", "2027-03-01T12:00:00.000Z")
        assert [result["id"] for result in second["results"]] == ["s100", "s101"]
        assert second["next"] is None

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "schedules"),
            ({"tenant": "acme", "schedules": [{}]}, "schedules"),
            ({"schedules": []}, "schedules"),
            ({"schedules": [{}] * 101}, "schedules"),
            ({"schedules": ["nightly"]}, "schedules.0"),
            ({"tenant": "acme", "hours": 49}, "hours"),
            ({"tenant": "acme", "hours": 0}, "hours"),
            ({"tenant": "acme", "start": "today"}, "start"),
            ({"tenant": "acme", "spread": "wide"}, "spread"),
            ({"tenant": "a b"}, "tenant"),
        ],
    )
    def test_a_bad_body_is_refused_with_its_field(self, body: Any, field: str):
        status, problem = Api().call("POST", "/v1/schedules:fires", body, tenant=None)

        assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_input", field)


class TestLimits:
    """Of what all schedules of a tenant come to."""

    def put(self, api: Api, schedule_id: str = "nightly", **definition: Any) -> tuple[int, Any]:
        return api.call("PUT", f"/v1/schedules/{schedule_id}", {**HOURLY, **definition})

    def test_one_schedule_too_many_is_refused_with_the_figures_and_a_deleted_one_makes_room(self):
        api = Api()
        api.limits = LoadLimits(schedules=2)
        assert [self.put(api, name)[0] for name in ("a", "b")] == [201, 201]

        status, answer = self.put(api, "c")
        assert (status, answer["code"], answer["count"], answer["limit"]) == (409, "schedules_exceeded", 2, 2)
        assert "retry_after" not in answer
        assert self.put(api, "a", every=1_800)[0] == 200

        assert api.call("DELETE", "/v1/schedules/a")[0] == 200
        assert self.put(api, "c")[0] == 201

    def test_schedules_that_would_fire_too_often_together_are_refused_whatever_their_class(self):
        """Sixty each second, critical, were taken."""
        api = Api()
        api.limits = LoadLimits(fires_per_minute=600)

        answers = [self.put(api, f"s{number}", every=1, job={**JOB, "priority": "critical"}) for number in range(60)]

        assert [status for status, _ in answers] == [201] * 10 + [409] * 50
        answer = answers[-1][1]
        assert answer["code"] == "fires_exceeded"
        assert (answer["fires_per_minute"], answer["added"], answer["limit"]) == (600, 60, 600)
        assert "pause or delete some" in answer["detail"]
        assert api.schedules.load("acme") == Load(10, 36_000)

    def test_what_lets_a_schedule_fire_more_often_is_refused_and_what_does_not_is_taken(self):
        api = Api()
        self.put(api, every=60)
        self.put(api, "other", every=60)
        api.limits = LoadLimits(schedules=1, fires_per_minute=1)

        assert api.call("PATCH", "/v1/schedules/nightly", {"every": 30})[1]["code"] == "fires_exceeded"
        assert api.get()["every"] == {"interval": "PT1M"}
        assert api.call("PATCH", "/v1/schedules/nightly", {"job": {"priority": "low"}})[0] == 200
        assert api.call("PATCH", "/v1/schedules/nightly", {"every": 120})[0] == 200
        assert api.call("POST", "/v1/schedules/nightly:pause")[0] == 200
        assert api.schedules.load("acme") == Load(2, 60)

    def test_a_paused_schedule_gives_its_fires_back_and_is_resumed_where_there_is_room(self):
        api = Api()
        api.limits = LoadLimits(fires_per_minute=60)
        self.put(api, every=1)
        api.call("POST", "/v1/schedules/nightly:pause")
        assert api.schedules.load("acme") == Load(1, 0)
        # A paused one may be changed to anything: it fires when it is resumed.
        assert self.put(api, every=2)[0] == 200
        assert self.put(api, "other", every=2)[0] == 201

        api.clock.tick(timedelta(minutes=1))
        assert api.call("POST", "/v1/schedules/nightly:resume")[0] == 200
        assert self.put(api, "third", every=3_600)[1]["code"] == "fires_exceeded"

        api.call("POST", "/v1/schedules/other:pause")
        api.limits = LoadLimits(fires_per_minute=30)
        assert api.call("POST", "/v1/schedules/other:resume")[1]["code"] == "fires_exceeded"
        assert api.get("other")["status"] == "paused"

    def test_a_dry_run_counts_for_nothing(self):
        api = Api()

        api.call("PUT", "/v1/schedules/nightly", HOURLY, query={"dry_run": "true"})

        assert api.schedules.load("acme") == Load()

    def test_the_same_definition_again_adds_nothing(self):
        api = Api()
        self.put(api)
        self.put(api)

        assert api.schedules.load("acme") == Load(1, 1)


COUNTED = {
    "rrule": {"rule": "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;COUNT=1700", "starts_at": "2027-01-01T00:00"},
    "job": {"target": "https://example.com/hook"},
}


def test_a_rule_with_a_count_is_answered_alike_by_a_process_that_has_counted_it_and_one_that_has_not():
    api = Api()

    answers: list[tuple[int, Any]] = []
    for number in range(3):
        status, answer = api.call("PUT", f"/v1/schedules/c{number}", {**COUNTED, "jitter": "PT10M"})
        answers.append((status, answer["code"]))

    assert set(answers) == {(422, "too_costly")}


def test_a_count_that_is_stored_is_not_paid_for_again_by_whoever_changes_something_else():
    api = Api()
    assert api.call("PUT", "/v1/schedules/c", COUNTED)[0] == 201
    parse_rrule.cache_clear()

    # What it takes besides leaves no room for a count.
    assert api.call("PATCH", "/v1/schedules/c", {"jitter": "PT10M"})[0] == 200
    parse_rrule.cache_clear()
    assert api.call("PUT", "/v1/schedules/c", {**COUNTED, "jitter": "PT5M"})[0] == 200
    assert (
        api.call("PATCH", "/v1/schedules/c", {"rrule": {**COUNTED["rrule"], "starts_at": "2027-01-01T00:01"}})[0] == 422
    )
