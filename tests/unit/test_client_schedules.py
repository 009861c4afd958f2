"""The client's calls about schedules against a real server: what they send, and what they make of the answers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.credentials import Credentials

from tests.api_server import LOST, Answer, ApiServer, Request
from tests.either_client import made_client
from tickwheel.client import Client
from tickwheel.client.backoff import Backoff
from tickwheel.client.fires import FireCount, Run
from tickwheel.client.schedules import DefaultSpread, NewSchedule, NotStored, Put, Stored
from tickwheel.client.words import JobState, SpreadSource
from tickwheel.errors import ApiProblem, InvalidSchedule, Unreachable

DOWN = Answer(503, {"message": "Service Unavailable"})
NO_SUCH = Answer(404, {"status": 404, "code": "schedule_not_found", "title": "There is no such schedule"})
FIRE = {
    "at": "2030-03-31T01:00:00.000Z",
    "local": "2030-03-31T03:00:00+02:00",
    "offset": "+02:00",
    "marks": [{"by": "gap", "reason": "02:30 does not exist"}],
}


class Interrupted(BaseException):
    """As Ctrl-C, which an event loop has ways of its own with."""


def a_client(server: ApiServer, *, sleep: Callable[[float], None] = lambda _: None) -> Client:
    backoff = Backoff(attempts=3, base_seconds=0, sleep=sleep)
    return made_client(server.url, region="us-east-1", credentials=Credentials("key", "secret"), backoff=backoff)


def a_schedule(schedule_id: str = "nightly", **changes: Any) -> NewSchedule:
    return NewSchedule(
        schedule_id, **{"tenant": "acme", "cron": "0 3 * * *", "target": "https://example.com", **changes}
    )


def schedule_json(**changes: Any) -> dict[str, Any]:
    return {
        "id": "nightly",
        "tenant": "acme",
        "version": 1,
        "status": "active",
        "note": "",
        "cron": "0 3 * * *",
        "job": {"target": "https://example.com"},
        "created_at": "2030-01-31T09:00:00.000Z",
        "changed_at": "2030-01-31T09:00:00.000Z",
        "next_fire": {"at": "2030-02-01T03:00:00.000Z", "nominal_at": "2030-02-01T03:00:00.000Z"},
        "fires": 0,
        "misfires": 0,
        "skips": {},
        "failures_in_a_row": 0,
        "runs": [],
        **changes,
    }


def take(request: Request) -> Answer:
    """Puts whatever is asked for."""
    schedule_id = request.path.removeprefix("/v1/schedules/").partition("?")[0]
    return Answer(201, schedule_json(id=schedule_id))


STORED = Answer(200, schedule_json())
RAN: dict[str, Any] = {
    "last_fire": "2030-01-31T03:00:00.000Z",
    "last_outcome": "failed",
    "skips": {"overlap": 2},
    "last_skip": {"reason": "overlap", "at": "2030-01-30T03:00:00.000Z"},
    "failures_in_a_row": 3,
    "misfires": 1,
}
"""What is reported of a schedule that has run."""


def test_a_schedule_is_put_under_its_id_and_tenant() -> None:
    with ApiServer(STORED) as server, a_client(server) as client:
        schedule = client.schedules.put(a_schedule())

    (request,) = server.requests
    assert (request.method, request.path) == ("PUT", "/v1/schedules/nightly?tenant=acme")
    assert request.json == {"cron": "0 3 * * *", "job": {"target": "https://example.com"}}
    assert schedule.next_fire == datetime(2030, 2, 1, 3, tzinfo=UTC)
    assert schedule.definition == request.json


def test_all_that_learns_of_a_schedule_is_read() -> None:
    run = {"fire_at": "2030-01-31T03:00:00Z", "job_id": "j1~x", "state": "failed", "attempt": 5, "error": "HTTP 500"}
    answer = schedule_json(
        status="paused",
        note="why",
        **RAN,
        fires=7,
        runs=[{**run, "settled_at": "2030-01-31T03:00:05Z"}],
    )
    del answer["next_fire"]
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        schedule = client.schedules.get("nightly", tenant="acme")

    assert (schedule.status, schedule.note, schedule.next_fire) == ("paused", "why", None)
    assert (schedule.last_fire, schedule.last_outcome) == (datetime(2030, 1, 31, 3, tzinfo=UTC), "failed")
    assert (schedule.fires, schedule.misfires, schedule.failures_in_a_row) == (7, 1, 3)
    assert (schedule.skips, schedule.last_skip) == ({"overlap": 2}, ("overlap", datetime(2030, 1, 30, 3, tzinfo=UTC)))
    assert schedule.runs == (
        Run(
            fire_at=datetime(2030, 1, 31, 3, tzinfo=UTC),
            job_id="j1~x",
            state=JobState.FAILED,
            attempt=5,
            error="HTTP 500",
            settled_at=datetime(2030, 1, 31, 3, 0, 5, tzinfo=UTC),
        ),
    )
    assert schedule.body == answer


def test_a_spread_of_none_is_sent_and_a_default_that_was_taken_is_read() -> None:
    answer = schedule_json(default_spread={"spread": "PT4M", "from": "tenant"})
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        schedule = client.schedules.put(a_schedule(spread=timedelta(0)))

    assert server.requests[0].json["spread"] == 0
    assert schedule.default_spread == DefaultSpread(spread=timedelta(minutes=4), source=SpreadSource.TENANT)
    # What was taken is no part of the definition: put elsewhere, it takes the default there.
    assert "default_spread" not in schedule.definition
    assert NewSchedule.from_json({**answer, "status": "active"}).spread is None


def test_a_patch_sends_null_for_what_is_removed() -> None:
    with ApiServer(STORED) as server, a_client(server) as client:
        client.schedules.patch("nightly", tenant="acme", changes={"spread": None, "every": 60})

    (request,) = server.requests
    assert (request.method, request.path) == ("PATCH", "/v1/schedules/nightly?tenant=acme")
    assert request.json == {"spread": None, "every": 60}


@pytest.mark.parametrize("patches", [True, False])
def test_a_comparison_is_a_dry_run(patches: bool) -> None:
    with ApiServer(Answer(200, {"before": [], "after": [FIRE]})) as server, a_client(server) as client:
        difference = (
            client.schedules.compare_patch("nightly", tenant="acme", changes={"every": 60}, count=5)
            if patches
            else client.schedules.compare(a_schedule(), count=5)
        )

    (request,) = server.requests
    assert request.method == ("PATCH" if patches else "PUT")
    assert request.path == "/v1/schedules/nightly?tenant=acme&dry_run=true&count=5"
    assert difference.before == ()
    (fire,) = difference.after
    assert fire.local == datetime(2030, 3, 31, 3, tzinfo=timezone(timedelta(hours=2)))
    assert fire.at == fire.local
    assert [(mark.by, mark.reason) for mark in fire.marks] == [("gap", "02:30 does not exist")]


def test_a_list_asks_for_page_after_page() -> None:
    pages = [
        Answer(200, {"schedules": [schedule_json(id="a"), schedule_json(id="b")], "next": "b"}),
        Answer(200, {"schedules": [schedule_json(id="c")], "next": None}),
    ]
    with ApiServer(*pages) as server, a_client(server) as client:
        listed = client.schedules.list(tenant="acme", page_size=2)
        assert server.requests == []
        assert [schedule.id for schedule in listed] == ["a", "b", "c"]

    assert [request.path for request in server.requests] == [
        "/v1/schedules?tenant=acme&limit=2",
        "/v1/schedules?tenant=acme&limit=2&after=b",
    ]


def test_a_pause_and_a_resume_send_their_notes() -> None:
    with ApiServer(STORED, STORED) as server, a_client(server) as client:
        client.schedules.pause("nightly", tenant="acme", note="why")
        client.schedules.resume("nightly", tenant="acme")

    assert [(request.path, request.json) for request in server.requests] == [
        ("/v1/schedules/nightly:pause?tenant=acme", {"note": "why"}),
        ("/v1/schedules/nightly:resume?tenant=acme", {"note": ""}),
    ]


def test_a_deletion_says_whose_it_is() -> None:
    with ApiServer(Answer(200, {"status": "deleted"})) as server, a_client(server) as client:
        client.schedules.delete("nightly", tenant="acme")

    assert (server.requests[0].method, server.requests[0].path) == ("DELETE", "/v1/schedules/nightly?tenant=acme")


def test_a_trigger_has_a_key_of_its_own_that_stays_when_it_is_sent_again() -> None:
    run = Answer(202, {"job": "j1~x"})
    with ApiServer(LOST, run, run) as server, a_client(server) as client:
        assert client.schedules.trigger("nightly", tenant="acme", overlap="forbid") == "j1~x"
        client.schedules.trigger("nightly", tenant="acme")

    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert keys[0] == keys[1] != keys[2]
    assert server.requests[0].json == {"overlap": "forbid"}
    assert "idempotency-key" in server.requests[0].headers["authorization"]


def test_a_trigger_may_be_given_its_key() -> None:
    with ApiServer(Answer(202, {"job": "j1~x"})) as server, a_client(server) as client:
        client.schedules.trigger("nightly", tenant="acme", idempotency_key="deploy 7")

    assert server.requests[0].headers["idempotency-key"] == "deploy 7"


def test_a_backfill_sends_its_range_and_is_read() -> None:
    answer = {
        "backfill": "k1",
        "count": 2,
        "first": "2030-01-01T03:00:00.000Z",
        "last": "2030-01-02T03:00:00.000Z",
        "ends_at": "2030-01-31T09:00:01.000Z",
        "jobs": ["j1~x", "j1~y"],
    }
    with ApiServer(Answer(202, answer)) as server, a_client(server) as client:
        backfill = client.schedules.backfill(
            "nightly",
            tenant="acme",
            start=datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            end=datetime(2030, 1, 3, tzinfo=UTC),
            per_minute=30,
        )

    (request,) = server.requests
    assert request.path == "/v1/schedules/nightly:backfill?tenant=acme"
    assert request.json == {"start": "2030-01-01T00:00:00Z", "end": "2030-01-03T00:00:00Z", "per_minute": 30}
    assert request.headers["idempotency-key"]
    assert (backfill.id, backfill.count, backfill.jobs) == ("k1", 2, ("j1~x", "j1~y"))
    assert backfill.ends_at == datetime(2030, 1, 31, 9, 0, 1, tzinfo=UTC)


def test_a_dry_run_of_a_backfill_of_nothing_has_no_instants() -> None:
    with (
        ApiServer(Answer(200, {"backfill": "x", "count": 0, "jobs": []})) as server,
        a_client(server) as client,
    ):
        start = datetime(2030, 1, 1, tzinfo=UTC)
        backfill = client.schedules.backfill("nightly", tenant="acme", start=start, end=start, dry_run=True)

    assert server.requests[0].json["dry_run"] is True
    assert (backfill.first, backfill.last, backfill.ends_at) == (None, None, None)


def test_a_preview_is_asked_for_from_an_instant_on() -> None:
    with ApiServer(Answer(200, {"fires": [FIRE]})) as server, a_client(server) as client:
        (fire,) = client.schedules.preview("nightly", tenant="acme", count=1, after=datetime(2030, 1, 1, tzinfo=UTC))

    assert server.requests[0].path == (
        "/v1/schedules/nightly:preview?tenant=acme&count=1&after=2030-01-01T00%3A00%3A00Z"
    )
    assert fire.at == datetime(2030, 3, 31, 1, tzinfo=UTC)


def test_a_preview_is_asked_for_until_it_is_as_long_as_wanted() -> None:
    pages = [
        Answer(200, {"fires": [FIRE, FIRE], "next": "2030-03-31T01:00:00Z"}),
        Answer(200, {"fires": [FIRE], "next": "2030-04-01T01:00:00Z"}),
    ]
    with ApiServer(*pages) as server, a_client(server) as client:
        assert len(client.schedules.preview("nightly", tenant="acme", count=3)) == 3

    assert [request.path.partition("&")[2] for request in server.requests] == [
        "count=3",
        "count=1&after=2030-03-31T01%3A00%3A00Z",
    ]


def test_names_are_percent_encoded() -> None:
    with (
        ApiServer(NO_SUCH) as server,
        a_client(server) as client,
        pytest.raises(ApiProblem, match="schedule_not_found"),
    ):
        client.schedules.get("../a b:c", tenant="a&b")

    assert server.requests[0].path == "/v1/schedules/..%2Fa%20b%3Ac?tenant=a%26b"


@pytest.mark.parametrize("failure", [LOST, DOWN])
def test_every_call_is_sent_again_when_its_answer_was_lost(failure: Answer) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    counts = Answer(200, {"start": "2030-01-01T00:00:00Z", "results": [], "next": None})
    calls: list[tuple[Answer, Any]] = [
        (STORED, lambda calls: calls.put(a_schedule())),
        (STORED, lambda calls: calls.patch("nightly", tenant="acme", changes={})),
        (STORED, lambda calls: calls.get("nightly", tenant="acme")),
        (STORED, lambda calls: calls.pause("nightly", tenant="acme")),
        (STORED, lambda calls: calls.resume("nightly", tenant="acme")),
        (Answer(200, {}), lambda calls: calls.delete("nightly", tenant="acme")),
        (Answer(202, {"job": "x"}), lambda calls: calls.trigger("nightly", tenant="acme")),
        (
            Answer(202, {"backfill": "x", "count": 0}),
            lambda calls: calls.backfill("nightly", tenant="acme", start=start, end=start),
        ),
        (counts, lambda calls: calls.count_fires_of("acme")),
    ]
    for answer, call in calls:
        with ApiServer(failure, answer) as server, a_client(server) as client:
            call(client.schedules)

        assert len(server.requests) == 2


def test_an_answer_that_makes_no_sense_is_not_believed() -> None:
    with (
        ApiServer(Answer(200, {"surprise": 1})) as server,
        a_client(server) as client,
        pytest.raises(Unreachable, match="surprise"),
    ):
        client.schedules.get("nightly", tenant="acme")


def take_batch(request: Request) -> Answer:
    """Puts whatever is asked for, one or many."""
    if request.path != "/v1/schedules:batch":
        return take(request)
    return Answer(200, {"results": [put_result(each["id"]) for each in request.json["schedules"]]})


def put_result(schedule_id: str) -> dict[str, Any]:
    standing = {name: value for name, value in schedule_json(id=schedule_id).items() if name not in ("cron", "job")}
    return {"status": 201, "change": "created", "schedule": standing}


def refused(status: int, code: str, **members: Any) -> dict[str, Any]:
    problem = {"status": status, "code": code, "title": "The schedule is refused", **members}
    return {"status": status, "problem": problem}


def ids_of(request: Request) -> list[str]:
    return [each["id"] for each in request.json["schedules"]]


class TestManySchedules:
    def test_they_come_back_in_order_and_are_reported_as_they_are_stored(self) -> None:
        puts: list[Put] = []
        asked = [a_schedule(f"s{number}") for number in range(60)]
        with ApiServer(otherwise=take_batch) as server, a_client(server) as client:
            results = client.schedules.put_many(asked, on_progress=puts.append)

        assert [result.schedule.id for result in results if isinstance(result, Stored)] == [s.id for s in asked]
        assert puts == results
        assert sorted(len(ids_of(request)) for request in server.requests) == [10, 25, 25]
        first = server.requests[0].json["schedules"][0]
        assert NewSchedule.from_json(first) in asked

    def test_what_is_stored_is_what_was_asked_for(self) -> None:
        asked = a_schedule("a", payload={"a": 1})
        with ApiServer(otherwise=take_batch) as server, a_client(server) as client:
            (result,) = client.schedules.put_many([asked])

        assert isinstance(result, Stored)
        assert (result.change, result.schedule.version) == ("created", schedule_json()["version"])
        assert NewSchedule.from_json({**result.schedule.definition, "id": "a", "tenant": "acme"}) == asked

    def test_they_are_read_as_they_are_sent(self) -> None:
        settled: list[Put] = []

        def endless() -> Iterator[NewSchedule]:
            for number in range(10_000):
                assert number - len(settled) <= 4 * 5, "read far ahead of what is sent"
                yield a_schedule(f"s{number}")
                if number == 200:
                    return

        with ApiServer(otherwise=take_batch) as server, a_client(server) as client:
            client.schedules.put_many(endless(), threads=3, batch_size=4, on_progress=settled.append)

        assert len(settled) == 201

    def test_some_are_put_at_the_same_time(self) -> None:
        both_are_here = threading.Barrier(2, timeout=10)

        def meet(request: Request) -> Answer:
            both_are_here.wait()
            return take_batch(request)

        with ApiServer(otherwise=meet) as server, a_client(server) as client:
            results = client.schedules.put_many([a_schedule("a"), a_schedule("b")], threads=2, batch_size=1)

        assert all(isinstance(result, Stored) for result in results)

    def test_one_that_is_refused_does_not_hold_up_the_others(self) -> None:
        answers = [put_result("a"), refused(422, "invalid_schedule"), put_result("c")]
        with ApiServer(Answer(200, {"results": answers})) as server, a_client(server) as client:
            first, second, third = client.schedules.put_many([a_schedule("a"), a_schedule("b"), a_schedule("c")])

        assert isinstance(first, Stored)
        assert isinstance(third, Stored)
        assert isinstance(second, NotStored)
        assert isinstance(second.error, ApiProblem)
        assert second.error.code == "invalid_schedule"

    @pytest.mark.parametrize(("status", "code"), [(409, "schedule_busy"), (429, "rate_exceeded"), (503, "not_placed")])
    def test_those_that_come_too_soon_are_put_again_behind_the_first_of_them(self, status: int, code: str) -> None:
        early = refused(status, code, retry_after=1)
        with (
            ApiServer(Answer(200, {"results": [put_result("a"), early, early, early]}), otherwise=take_batch) as server,
            a_client(server) as client,
        ):
            results = client.schedules.put_many([a_schedule(name) for name in "abcd"])

        assert all(isinstance(result, Stored) for result in results)
        first, alone, rest = server.requests
        assert (ids_of(first), alone.path, ids_of(rest)) == (list("abcd"), "/v1/schedules/b?tenant=acme", ["c", "d"])

    def test_one_that_stays_too_early_ends_the_attempts_of_those_behind_it(self) -> None:
        early = refused(429, "rate_exceeded", retry_after=90)
        busy = Answer(429, early["problem"], headers=(("Retry-After", "90"),))
        with (
            ApiServer(Answer(200, {"results": [early, early]}), otherwise=lambda _: busy) as server,
            a_client(server) as client,
        ):
            results = client.schedules.put_many([a_schedule("a"), a_schedule("b")])

        assert all(isinstance(result, NotStored) for result in results)
        assert len(server.requests) == 2

    @pytest.mark.parametrize(("status", "code"), [(403, "forbidden"), (404, "no_such_route")])
    def test_where_a_request_is_refused_as_a_whole_each_is_put_alone(self, status: int, code: str) -> None:
        def refuse_b(request: Request) -> Answer:
            if request.path == "/v1/schedules:batch" or "/b?" in request.path:
                return Answer(status, {"status": status, "code": code, "title": "No"})
            return take(request)

        with ApiServer(otherwise=refuse_b) as server, a_client(server) as client:
            first, second, third = client.schedules.put_many([a_schedule("a"), a_schedule("b"), a_schedule("c")])

        assert (isinstance(first, Stored), isinstance(second, NotStored), isinstance(third, Stored)) == (True,) * 3
        assert len(server.requests) == 4

    def test_what_has_not_been_sent_when_it_is_interrupted_is_not_sent(self) -> None:
        def interrupt(_: Put) -> None:
            raise Interrupted

        asked = [a_schedule(f"s{number}") for number in range(200)]
        with ApiServer(otherwise=take_batch) as server, a_client(server) as client, pytest.raises(Interrupted):
            client.schedules.put_many(asked, threads=2, batch_size=4, on_progress=interrupt)

        assert len(server.requests) < len(asked) / 4


class TestFireCounts:
    def test_definitions_are_counted_a_hundred_a_request_without_their_payloads(self) -> None:
        def count(request: Request) -> Answer:
            results = [{"tenant": s["tenant"], "id": s["id"], "minutes": {"0": 2}} for s in request.json["schedules"]]
            return Answer(200, {"start": request.json["start"], "results": results, "next": None})

        progress: list[int] = []
        asked = [a_schedule(f"s{number}", payload={"secret": 1}) for number in range(250)]
        with ApiServer(otherwise=count) as server, a_client(server) as client:
            results = client.schedules.count_fires(
                asked,
                start=datetime(2030, 1, 1, tzinfo=UTC),
                hours=12,
                spread=timedelta(minutes=5),
                on_progress=progress.append,
            )

        assert [len(request.json["schedules"]) for request in server.requests] == progress == [100, 100, 50]
        assert results[0] == FireCount(tenant="acme", id="s0", minutes={0: 2})
        assert [result.id for result in results] == [schedule.id for schedule in asked]
        request = server.requests[0].json
        assert (request["start"], request["hours"], request["spread"]) == ("2030-01-01T00:00:00Z", 12, 300)
        assert request["schedules"][0] == {
            "tenant": "acme",
            "id": "s0",
            "cron": "0 3 * * *",
            "job": {"target": "https://example.com"},
        }

    def test_the_schedules_of_a_tenant_are_counted_page_by_page(self) -> None:
        problem = {"status": 422, "code": "invalid_schedule", "title": "The schedule is refused", "detail": "no"}
        minute = "2030-01-01T00:00:00Z"
        pages = [
            Answer(200, {"start": minute, "results": [{"tenant": "acme", "id": "a", "minutes": {}}], "next": "a"}),
            Answer(
                200, {"start": minute, "results": [{"tenant": "acme", "id": "b", "problem": problem}], "next": None}
            ),
        ]
        with ApiServer(*pages) as server, a_client(server) as client:
            results = client.schedules.count_fires_of("acme")

        asked = [(request.json.get("after"), request.json.get("start")) for request in server.requests]
        assert asked == [(None, None), ("a", minute)]
        assert [(result.id, result.problem and result.problem.detail) for result in results] == [
            ("a", None),
            ("b", "no"),
        ]

    def test_nothing_to_count_makes_no_request(self) -> None:
        with ApiServer() as server, a_client(server) as client:
            assert client.schedules.count_fires([]) == []

        assert Counter(request.path for request in server.requests) == {}


CONDITIONAL: list[tuple[Callable[[Client], object], dict[str, str]]] = [
    (lambda client: client.schedules.put(a_schedule(), create_only=True), {"if-none-match": "*"}),
    (lambda client: client.schedules.put(a_schedule(), if_version=7), {"if-match": '"7"'}),
    (lambda client: client.schedules.patch("nightly", tenant="acme", changes={}, if_version=7), {"if-match": '"7"'}),
    (lambda client: client.schedules.pause("nightly", tenant="acme", if_version=7), {"if-match": '"7"'}),
    (lambda client: client.schedules.resume("nightly", tenant="acme", if_version=7), {"if-match": '"7"'}),
    (lambda client: client.schedules.delete("nightly", tenant="acme", if_version=7), {"if-match": '"7"'}),
]


@pytest.mark.parametrize(("change", "condition"), CONDITIONAL)
def test_a_conditional_change_is_sent_again_with_the_key_by_which_it_is_known(
    change: Callable[[Client], object], condition: dict[str, str]
) -> None:
    with ApiServer(LOST, STORED) as server, a_client(server) as client:
        change(client)

    lost, again = server.requests
    assert {name: again.headers[name] for name in condition} == condition
    assert lost.headers["idempotency-key"] == again.headers["idempotency-key"] != ""


@pytest.mark.parametrize("condition", [{"create_only": True}, {"if_version": 7}])
def test_a_dry_run_has_the_condition_too(condition: dict[str, Any]) -> None:
    with ApiServer(Answer(200, {"before": [], "after": []})) as server, a_client(server) as client:
        client.schedules.compare(a_schedule(), **condition)

    (request,) = server.requests
    assert ("if-none-match" in request.headers) is ("create_only" in condition)
    assert ("if-match" in request.headers) is ("if_version" in condition)


def test_a_change_without_a_condition_has_neither_a_key_nor_a_condition() -> None:
    with ApiServer(STORED) as server, a_client(server) as client:
        client.schedules.put(a_schedule())

    assert not {"if-match", "if-none-match", "idempotency-key"} & set(server.requests[0].headers)


def test_a_condition_that_is_not_met_is_an_error_with_the_version_there_is() -> None:
    problem = {"status": 412, "code": "schedule_exists", "title": "There is such a schedule already", "version": 7}
    with ApiServer(Answer(412, problem)) as server, a_client(server) as client, pytest.raises(ApiProblem) as refused:
        client.schedules.put(a_schedule(), create_only=True)

    assert (refused.value.status, refused.value.code, refused.value.version) == (412, "schedule_exists", 7)
    assert refused.value.as_json()["version"] == 7
    assert len(server.requests) == 1


def test_a_new_schedule_has_no_version_to_ask_for() -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidSchedule, match="if_version"):
        client.schedules.put(a_schedule(), create_only=True, if_version=7)

    assert server.requests == []
