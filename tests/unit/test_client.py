"""The client against a real server: what it sends, what it makes of the answers, and when it asks again."""

import inspect
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.credentials import Credentials
from botocore.exceptions import UnauthorizedSSOTokenError

from functions.api.http.call_body import HttpBody, RetryBody
from functions.api.http.flow_body import FlowBody
from functions.api.jobs.bodies import JobBody
from tests.api_server import LOST, Answer, ApiServer, Request, accept_all, job_json
from tests.either_client import made_client
from tickwheel.client import Client
from tickwheel.client.backoff import Backoff, Wait
from tickwheel.client.flows import Flow
from tickwheel.client.jobs import Http, NewJob, Refused, RetryPolicy, Submitted, Unanswered
from tickwheel.errors import ApiProblem, InvalidJob, NoCredentials, NoEndpoint, Unreachable

BUSY = Answer(429, {"status": 429, "code": "throttled", "title": "Too many requests"}, (("Retry-After", "7"),))
DOWN = Answer(503, {"message": "Service Unavailable"})


class Waits(list[float]):
    """A sleep that only remembers."""

    def backoff(self, attempts: int = 3) -> Backoff:
        return Backoff(attempts=attempts, base_seconds=0, sleep=self.append)


def a_client(server: ApiServer, waits: Waits | None = None, credentials: Credentials | None = None) -> Client:
    backoff = (Waits() if waits is None else waits).backoff()
    credentials = credentials or Credentials("key", "secret")
    return made_client(server.url, region="us-east-1", credentials=credentials, backoff=backoff)


def a_job(target: str = "handler:echo", **changes) -> NewJob:
    return NewJob(target, **{"tenant": "acme", **changes})


def test_a_submission_sends_only_what_was_said() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.submit("https://example.com", tenant="acme")

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/jobs")
    assert request.json == {"tenant": "acme", "target": "https://example.com"}


def test_a_submission_sends_every_field_in_the_units_of_the_api() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.submit(
            "handler:echo",
            tenant="acme",
            payload=["any", 1],
            run_at=datetime(2030, 1, 31, 10, tzinfo=timezone(timedelta(hours=1))),
            idempotency_key="k",
            priority="high",
            delivery="at_least_once",
            precision="exact",
            retry=RetryPolicy(
                strategy="fixed",
                attempts=2,
                base=timedelta(seconds=1.5),
                cap=timedelta(minutes=1),
                max_age=timedelta(hours=6),
            ),
            timeout=timedelta(seconds=10),
            expires_after=timedelta(hours=1),
            http=Http(method="PUT", headers={"X-Key": "hush"}, success=[200, 409], retry_on=[404]),
            asynchronous=True,
            tags=["team:billing"],
            flow=[Flow("stripe", rate="60/min", burst=10, concurrency=5), Flow("smtp", scope="stage")],
            on_success="handler:well",
            on_failure="https://example.com/failed",
            on_end="handler:over",
        )

    assert server.requests[0].json == {
        "tenant": "acme",
        "target": "handler:echo",
        "payload": ["any", 1],
        "run_at": "2030-01-31T09:00:00Z",
        "idempotency_key": "k",
        "priority": "high",
        "delivery": "at_least_once",
        "precision": "exact",
        "retry": {"strategy": "fixed", "attempts": 2, "base": 1.5, "cap": 60, "max_age": 21600},
        "timeout": 10,
        "expires_after": 3600,
        "http": {"method": "PUT", "headers": {"X-Key": "hush"}, "success": [200, 409], "retry_on": [404]},
        "asynchronous": True,
        "tags": ["team:billing"],
        "flow": [
            {"key": "stripe", "rate": "60/min", "burst": 10, "concurrency": 5},
            {"key": "smtp", "scope": "stage"},
        ],
        "on_success": "handler:well",
        "on_failure": "https://example.com/failed",
        "on_end": "handler:over",
    }
    assert NewJob.from_json(server.requests[0].json).as_json() == server.requests[0].json


def test_the_client_has_a_field_for_each_of_the_apis() -> None:
    assert set(NewJob.__dataclass_fields__) - {"_"} == set(JobBody.model_fields)
    assert set(RetryPolicy.__dataclass_fields__) == set(RetryBody.model_fields)
    assert set(Http.__dataclass_fields__) == set(HttpBody.model_fields)
    assert set(Flow.__dataclass_fields__) - {"_"} == set(FlowBody.model_fields)
    assert set(inspect.signature(Client.submit).parameters) - {"self", "traceparent"} == set(JobBody.model_fields)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"http": "hush"}, "http: is a JSON object"),
        ({"http": {"header": {"X-Key": "hush"}}}, "http.header: is not a field of a job"),
        ({"http": {"headers": ["hush"]}}, "http.headers: is a mapping of names to texts"),
        ({"http": {"headers": {"X-Key": ["hush"]}}}, "http.headers: is a mapping of names to texts"),
        ({"http": {"method": "HEAD"}}, "http.method: is one of POST, PUT, PATCH, DELETE, GET"),
        ({"http": {"success": 200}}, "http.success: is a list of statuses such as 200"),
        ({"http": {"success": ["200"]}}, "http.success: is a list of statuses such as 200"),
        ({"http": {"retry_on": [True]}}, "http.retry_on: is a list of statuses such as 404"),
        ({"asynchronous": "yes"}, "asynchronous: is true or false"),
        ({"tags": "billing"}, "tags: is a list of texts"),
        ({"tags": [7]}, "tags: is a list of texts"),
        ({"on_end": 7}, "on_end: is a string"),
        ({"flow": "stripe"}, "flow: is a list of flows"),
        ({"flow": ["stripe"]}, "flow.0: is a JSON object"),
        ({"flow": [{"rate": "1/s"}]}, "flow.0.key: is required"),
        ({"flow": [{"key": "a"}, {"key": "b", "burst": "many"}]}, "flow.1.burst: is a whole number"),
        ({"flow": [{"key": "a", "concurrency": True}]}, "flow.0.concurrency: is a whole number"),
        ({"flow": [{"key": "a", "rate": 60}]}, "flow.0.rate: is a string"),
        ({"flow": [{"key": "a", "scope": "world"}]}, "flow.0.scope: is one of tenant, stage"),
        ({"flow": [{"key": "a", "limit": 7}]}, "flow.0.limit: is not a field of a flow"),
        ({"retry": {"max_age": "soon"}}, "retry.max_age: 'soon' is not a duration"),
        ({"retry": {"intervals": 60}}, "retry.intervals: is a list of timedeltas"),
        ({"retry": {"intervals": [60, "soon"]}}, "retry.intervals: 'soon' is not a duration"),
        ({"retry": {"jitter": "some"}}, "retry.jitter: is one of none, full, equal"),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_sent_is_refused_with_its_field(body: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        NewJob.from_json({"tenant": "acme", "target": "https://example.com", **body})

    assert said in str(refused.value)
    assert "hush" not in str(refused.value)


def test_what_headers_hold_is_in_no_text_of_a_job() -> None:
    job = a_job(http=Http(headers={"Authorization": "hush"}))

    assert "hush" not in repr(job) + str(job)


def test_an_accepted_job_is_read_with_an_aware_time() -> None:
    with ApiServer(Answer(202, job_json(replayed=True))) as server, a_client(server) as client:
        job = client.submit("handler:echo", tenant="acme")

    assert job.due_at == datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert job.replayed


def test_a_naive_time_is_refused_before_anything_is_sent() -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidJob, match="no time zone"):
        client.submit("handler:echo", tenant="acme", run_at=datetime(2030, 1, 31))  # noqa: DTZ001

    assert server.requests == []


def test_a_refusal_carries_every_field_that_was_wrong() -> None:
    problem = {
        "type": "urn:tickwheel:error:invalid",
        "title": "Invalid job",
        "status": 422,
        "detail": "2 fields are wrong",
        "code": "invalid",
        "errors": [{"field": "tenant", "message": "has a #", "value": "a#b"}, {"field": "delay", "message": "is late"}],
    }
    with ApiServer(Answer(422, problem)) as server, a_client(server) as client, pytest.raises(ApiProblem) as refused:
        client.submit("handler:echo", tenant="a#b")

    assert (refused.value.status, refused.value.code) == (422, "invalid")
    assert str(refused.value) == "2 fields are wrong [422 invalid]: tenant: has a # (got 'a#b'); delay: is late"


def test_the_gateways_own_refusal_is_understood() -> None:
    forbidden = pytest.raises(ApiProblem, match=r"Forbidden \[403 http_403\]")
    with ApiServer(Answer(403, {"message": "Forbidden"})) as server, a_client(server) as client, forbidden:
        client.get("j1~acme~x")

    assert len(server.requests) == 1


def test_an_id_is_percent_encoded_in_the_path() -> None:
    answer = Answer(200, {"id": "x", "tenant": "acme", "state": "running", "due_at": "2030-01-31T09:00:00Z"})
    with ApiServer(answer) as server, a_client(server) as client:
        job = client.get("j1~acme/../x y")

    assert server.requests[0].path == "/v1/jobs/j1~acme%2F..%2Fx%20y"
    assert job.attempt is None


@pytest.mark.parametrize("state", ["cancelled", "cancel_requested"])
def test_a_cancellation_says_whether_an_attempt_still_runs(state: str) -> None:
    with ApiServer(Answer(200, {"id": "x", "state": state})) as server, a_client(server) as client:
        assert client.cancel("x").state == state

    assert server.requests[0].method == "DELETE"


def test_a_throttled_submission_is_sent_again_after_retry_after() -> None:
    waits = Waits()
    with ApiServer(BUSY) as server, a_client(server, waits) as client:
        client.submit("handler:echo", tenant="acme")

    assert len(server.requests) == 2
    assert waits == [7.0]


def test_a_wait_that_is_longer_than_allowed_is_left_to_the_caller() -> None:
    busy = Answer(429, {"code": "throttled"}, (("Retry-After", "3600"),))
    with ApiServer(busy) as server, a_client(server) as client, pytest.raises(ApiProblem, match="throttled"):
        client.submit("handler:echo", tenant="acme")

    assert len(server.requests) == 1


@pytest.mark.parametrize("failure", [LOST, DOWN])
def test_a_submission_without_a_key_is_not_repeated_when_it_may_have_been_taken(failure: Answer) -> None:
    with ApiServer(failure) as server, a_client(server) as client, pytest.raises((Unreachable, ApiProblem)):
        client.submit("handler:echo", tenant="acme")

    assert len(server.requests) == 1


@pytest.mark.parametrize("failure", [LOST, DOWN])
def test_a_submission_with_a_key_is_repeated(failure: Answer) -> None:
    with ApiServer(failure) as server, a_client(server) as client:
        client.submit("handler:echo", tenant="acme", idempotency_key="k")

    assert len(server.requests) == 2


@pytest.mark.parametrize("failure", [LOST, DOWN, BUSY])
def test_a_question_is_repeated(failure: Answer) -> None:
    job = Answer(200, {"id": "x", "tenant": "acme", "state": "running", "due_at": "2030-01-31T09:00:00Z"})
    with ApiServer(failure, job) as server, a_client(server) as client:
        assert client.get("x").state == "running"


def test_a_request_that_never_left_is_repeated_and_says_so_in_the_end() -> None:
    with ApiServer() as gone:
        pass
    waits = Waits()

    with a_client(gone, waits) as client, pytest.raises(Unreachable, match="tickwheel local up") as unreachable:
        client.submit("handler:echo", tenant="acme")

    assert not unreachable.value.may_have_been_applied
    assert len(waits) == 2


def test_an_answer_that_makes_no_sense_may_have_been_applied() -> None:
    not_understood = pytest.raises(Unreachable, match="surprise")
    with ApiServer(Answer(202, {"surprise": 1})) as server, a_client(server) as client, not_understood as unreachable:
        client.submit("handler:echo", tenant="acme")

    assert unreachable.value.may_have_been_applied


def test_many_jobs_go_in_chunks_and_come_back_in_order() -> None:
    progress: list[int] = []
    with ApiServer() as server, a_client(server) as client:
        jobs = (a_job(f"handler:{number}") for number in range(1201))
        results = client.submit_many(jobs, on_progress=lambda done: progress.append(len(done)))

    assert progress == [500, 500, 201]
    assert [result.id for result in results if isinstance(result, Submitted)] == [
        f"j1~handler:{number}" for number in range(1201)
    ]


def test_a_request_stays_below_five_megabytes() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.submit_many(a_job(payload="x" * 200_000) for _ in range(60))

    assert len(server.requests) == 3
    assert all(len(request.body) < 5_000_100 for request in server.requests)


def test_a_refused_job_of_a_batch_leaves_its_neighbours_alone() -> None:
    problem = {"status": 422, "code": "invalid", "title": "Invalid job"}
    answer = {"results": [{"status": 202, "job": job_json()}, {"status": 422, "problem": problem}]}
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        first, second = client.submit_many([a_job(), bad := a_job("nonsense")])

    assert isinstance(first, Submitted)
    assert isinstance(second, Refused)
    assert second.job is bad
    assert second.problem.status == 422


def test_only_the_jobs_that_the_scheduler_was_too_busy_for_are_sent_again() -> None:
    answer = {"results": [{"status": 202, "job": job_json()}, {"status": 429, "problem": {"code": "throttled"}}]}
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        results = client.submit_many([a_job("handler:a"), a_job("handler:b")])

    assert all(isinstance(result, Submitted) for result in results)
    assert [job["target"] for job in server.requests[1].json["jobs"]] == ["handler:b"]


def test_a_batch_in_which_one_job_has_no_key_is_not_repeated_when_it_may_have_been_taken() -> None:
    with ApiServer(LOST) as server, a_client(server) as client:
        results = client.submit_many([a_job(idempotency_key="k"), a_job()])

    assert len(server.requests) == 1
    assert all(isinstance(result, Unanswered) for result in results)


def test_a_batch_in_which_every_job_has_a_key_is_repeated() -> None:
    with ApiServer(LOST, DOWN) as server, a_client(server) as client:
        results = client.submit_many([a_job(idempotency_key="k"), a_job(idempotency_key="l")])

    assert len(server.requests) == 3
    assert all(isinstance(result, Submitted) for result in results)


def test_a_batch_that_is_refused_as_a_whole_does_not_stop_the_next_one() -> None:
    with ApiServer(Answer(413, {"code": "too_large"})) as server, a_client(server) as client:
        results = client.submit_many([a_job(), a_job()], batch_size=1)

    assert [type(result) for result in results] == [Refused, Submitted]


def test_a_batch_with_the_wrong_number_of_results_is_not_believed() -> None:
    with ApiServer(Answer(200, {"results": []})) as server, a_client(server) as client:
        (result,) = client.submit_many([a_job()])

    assert isinstance(result, Unanswered)


def test_no_jobs_make_no_request() -> None:
    with ApiServer() as server, a_client(server) as client:
        assert client.submit_many([]) == []

    assert server.requests == []


def test_the_endpoint_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWHEEL_ENDPOINT", "https://abc.execute-api.eu-central-1.amazonaws.com/")

    with made_client(credentials=Credentials("key", "secret")) as client:
        assert client.endpoint == "https://abc.execute-api.eu-central-1.amazonaws.com"


def test_no_endpoint_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwheel.client.endpoint.read_running", lambda: None)

    with pytest.raises(NoEndpoint, match="TICKWHEEL_ENDPOINT"):
        made_client()


def test_no_credentials_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", "/nonexistent")

    with (
        pytest.raises(NoCredentials, match="AWS_PROFILE"),
        made_client("https://abc.execute-api.eu-central-1.amazonaws.com") as client,
    ):
        client.get("x")


@pytest.mark.parametrize("endpoint", ["https://abc.execute-api.eu-west-1.amazonaws.com", "https://jobs.example.com"])
def test_a_profile_that_there_is_not_is_a_sentence(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")

    with pytest.raises(NoCredentials, match=r"nope.*check AWS_PROFILE"), made_client(endpoint) as client:
        client.get("x")


def test_a_login_that_has_ended_is_a_sentence() -> None:
    class Ended(Credentials):
        def get_frozen_credentials(self):
            raise UnauthorizedSSOTokenError

    with (
        ApiServer() as server,
        a_client(server, credentials=Ended("key", "secret")) as client,
        pytest.raises(NoCredentials, match="aws sso login"),
    ):
        client.get("x")


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(NoEndpoint, match=r"'abc\.example\.com'"):
        made_client("abc.example.com")


def test_a_request_is_signed_afresh_each_time_it_is_sent() -> None:
    class Rotating(Credentials):
        def __init__(self) -> None:
            super().__init__("key", "secret")
            self.reads = 0

        def get_frozen_credentials(self):
            self.reads += 1
            return super().get_frozen_credentials()

    credentials = Rotating()
    with ApiServer(BUSY) as server, a_client(server, credentials=credentials) as client:
        client.submit("handler:echo", tenant="acme")

    assert credentials.reads == 2


def test_a_local_name_is_reached_on_the_loopback_with_its_own_host_header() -> None:
    with ApiServer() as server:
        host = f"abc123.execute-api.localhost:{server.port}"
        with made_client(f"http://{host}", backoff=Waits().backoff()) as client:
            client.submit("handler:echo", tenant="acme")

    assert server.requests[0].headers["host"] == host
    assert "Credential=test/" in server.requests[0].headers["authorization"]


def test_a_retry_after_that_is_a_date_is_understood() -> None:
    waits = Waits()
    past = Answer(429, {"code": "throttled"}, (("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"),))
    with ApiServer(past) as server, a_client(server, waits) as client:
        client.submit("handler:echo", tenant="acme")

    assert waits == [0.0]


def test_all_waits_of_a_request_together_have_a_bound() -> None:
    waits = Waits()
    slow = Answer(429, {"code": "shed", "title": "Too many"}, (("Retry-After", "25"),))
    with (
        ApiServer(*[slow] * 6) as server,
        made_client(server.url, region="us-east-1", backoff=waits.backoff(attempts=6)) as client,
        pytest.raises(ApiProblem, match="shed"),
    ):
        client.submit("handler:echo", tenant="acme")

    assert waits == [25.0, 25.0]


def test_each_wait_is_told_before_it_begins() -> None:
    told: list[str] = []
    backoff = Backoff(attempts=3, base_seconds=0, sleep=lambda seconds: told.append(f"slept {seconds:g}"))

    def tell(wait: Wait) -> None:
        told.append(f"waits {wait.seconds:g} after {wait.attempt}: {wait.reason}")

    with (
        ApiServer(BUSY, Answer(503, {"code": "shed", "title": "Behind"}, (("Retry-After", "7"),))) as server,
        made_client(server.url, region="us-east-1", backoff=backoff, on_wait=tell) as client,
    ):
        client.submit("handler:echo", tenant="acme", idempotency_key="k")

    assert told[1::2] == ["slept 7", "slept 7"]
    assert told[0].startswith("waits 7 after 1: ")
    assert told[2] == "waits 7 after 2: Behind [503 shed]"


def test_a_wait_for_single_jobs_of_a_batch_is_told_with_their_problem() -> None:
    told: list[str] = []

    def refuse(request: Request) -> Answer:
        answer = accept_all(request)
        answer.body["results"][0] = {"status": 429, "problem": {"code": "rate_exceeded", "title": "Too fast"}}
        return answer

    with (
        ApiServer(otherwise=refuse) as server,
        made_client(
            server.url,
            region="us-east-1",
            backoff=Waits().backoff(2),
            on_wait=lambda wait: told.append(str(wait.reason)),
        ) as client,
    ):
        client.submit_many([a_job(), a_job()])

    assert told == ["Too fast [429 rate_exceeded]"]
