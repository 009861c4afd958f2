# Written by `make format` (`scripts/sync_client.py`) from async_api.py: change it there.
"""Tickwheel's API as typed calls.

with Client() as client:
    job = client.submit("https://example.com/hook", tenant="acme", delay=timedelta(minutes=5))
    job = client.get(job.id)
    nightly = NewSchedule("nightly", tenant="acme", cron="0 3 * * *", target="https://example.com/hook")
    client.schedules.put(nightly)
    for schedule in client.schedules.list(tenant="acme"):
        print(schedule.next_fire)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType, TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx
from botocore.credentials import Credentials
from botocore.session import Session

from tickwheel.client.answers import read_answer
from tickwheel.client.backoff import Backoff, Repeats, Wait
from tickwheel.client.batches import (
    MOST_JOBS_A_REQUEST,
    Encoded,
    as_submission,
    batches_of,
    failure_of,
    is_worth_repeating,
    read_results,
)
from tickwheel.client.breakers import Breaker
from tickwheel.client.calls.call import listed
from tickwheel.client.calls.dead_letters import DeadLetters
from tickwheel.client.calls.flows import FlowCalls
from tickwheel.client.calls.jobs import JobCalls, path_of
from tickwheel.client.calls.operations import Operations
from tickwheel.client.calls.schedules import Schedules
from tickwheel.client.calls.tenants import Tenants, turn_stage
from tickwheel.client.collect import Collect
from tickwheel.client.connection import connection_to
from tickwheel.client.endpoint import LoopbackTransport
from tickwheel.client.fields import encode
from tickwheel.client.flows import Flow
from tickwheel.client.health import Health
from tickwheel.client.jobs import (
    Cancellation,
    DeliveryText,
    Http,
    Job,
    NewJob,
    Precision,
    PriorityText,
    RetryPolicy,
    Submission,
    Submitted,
)
from tickwheel.client.responses import json_of, problem_of, trace_headers, unreachable
from tickwheel.client.tenants import StageStatus
from tickwheel.client.timeouts import Deadline, Timeouts
from tickwheel.client.webhook_keys import WebhookKey
from tickwheel.client.words import Delivery, Priority
from tickwheel.errors import ApiProblem, Unreachable


class Client(JobCalls, FlowCalls):
    """A client of one deployed scheduler. Use it as a context manager, or call `close`. Threads may share it.

    The endpoint is the argument, or that of a `context` (`tickwheel context add`; `local` is the local cloud), or
    `TICKWHEEL_ENDPOINT`, or the local cloud (of this checkout or, where Tickwheel is installed as a package, of this user)
    unless the environment names an account of AWS. The context that is in use on the command line is not taken. Requests
    are signed with `credentials`, or with those of the context's profile, or of botocore's default chain. The region is the
    argument, or the one in the endpoint's name, or that of the session. Requests to the local cloud are signed with its test
    credentials.

    A failed request is retried, with backoff and after any `Retry-After`, when that is safe: see `submit`. The waits of a
    request are a minute at most, and `on_wait` is told of each before it begins. timeout: of each attempt, to connect and for
    each silence; or `Timeouts`, which also has a total.
    A call that is interrupted on the way may have been applied.
    Raises NoEndpoint, NoCredentials or InvalidRequest.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        context: str | None = None,
        region: str | None = None,
        credentials: Credentials | None = None,
        session: Session | None = None,
        timeout: timedelta | Timeouts = timedelta(seconds=30),
        transport: httpx.BaseTransport | None = None,
        backoff: Backoff | None = None,
        on_wait: Callable[[Wait], None] | None = None,
    ) -> None:
        connection = connection_to(endpoint, context=context, region=region, credentials=credentials, session=session)
        self._endpoint = connection.endpoint
        self._backoff = backoff or Backoff()
        self._on_wait = on_wait
        self._timeouts = Timeouts.of(timeout)
        if transport is None and self._endpoint.is_on_this_machine:
            transport = LoopbackTransport(
                httpx.HTTPTransport(verify=self._endpoint.verify)
            )  # otherwise httpx's own, which honours a proxy
        self._http = httpx.Client(auth=connection.auth, transport=transport)
        self.schedules = Schedules(self._call)
        """Operations on schedules."""
        self.dead_letters = DeadLetters(self._call)
        """Operations on dead letters."""
        self.operations = Operations(self._call, self._download, sleep=self._backoff.sleep)
        """Operations on many jobs at once."""
        self.tenants = Tenants(self._call)
        """Operations on tenants."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    @property
    def endpoint(self) -> str:
        """The address in use."""
        return self._endpoint.url

    def submit(
        self,
        target: str,
        *,
        tenant: str,
        payload: Any = None,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        idempotency_key: str | None = None,
        priority: Priority | PriorityText | None = None,
        delivery: Delivery | DeliveryText | None = None,
        precision: Precision | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | None = None,
        expires_after: timedelta | None = None,
        run_deadline: timedelta | None = None,
        http: Http | None = None,
        asynchronous: bool | None = None,
        tags: Sequence[str] = (),
        flow: Sequence[Flow] = (),
        collect: Collect | None = None,
        on_success: str | None = None,
        on_failure: str | None = None,
        on_end: str | None = None,
        traceparent: str | None = None,
    ) -> Submitted:
        """Submits one job; see NewJob for the fields, and `submit_job` for the traceparent.

        The request is retried only if that cannot create two jobs: if it was never sent, or was refused with 429.
        After a lost answer (a time-out, 500, 502, 503, 504) the scheduler may have accepted the job, so the request
        is retried only with an idempotency key, with which the retry returns the first job.

        Raises InvalidJob before anything is sent, ApiProblem if the scheduler refuses the job, and Unreachable, which
        states whether the job may have been accepted.
        """
        return self.submit_job(
            NewJob(
                target,
                tenant=tenant,
                payload=payload,
                run_at=run_at,
                delay=delay,
                idempotency_key=idempotency_key,
                priority=priority,
                delivery=delivery,
                precision=precision,
                retry=retry,
                timeout=timeout,
                expires_after=expires_after,
                run_deadline=run_deadline,
                http=http,
                asynchronous=asynchronous,
                tags=tags,
                flow=flow,
                collect=collect,
                on_success=on_success,
                on_failure=on_failure,
                on_end=on_end,
            ),
            traceparent=traceparent,
        )

    def submit_job(self, job: NewJob, *, traceparent: str | None = None) -> Submitted:
        """Submits a `NewJob`, with the guarantees and errors of `submit`.

        traceparent: the trace that the job belongs to (W3C Trace Context). Its target receives it. The client does not detect it.
        """
        repeatable, headers = job.idempotency_key is not None, trace_headers(traceparent)
        body = self._call("POST", "/v1/jobs", content=encode(job.as_json()), repeatable=repeatable, headers=headers)
        return read_answer(Submitted.from_json, body)

    def submit_many(
        self,
        jobs: Iterable[NewJob],
        *,
        batch_size: int = MOST_JOBS_A_REQUEST,
        traceparent: str | None = None,
        on_progress: Callable[[Sequence[Submission]], None] | None = None,
    ) -> list[Submission]:
        """Submits any number of jobs in requests of up to 500 and below 5 MB; one result per job, in order.

        No job is lost, and no job raises an error: each result is Submitted, Refused (the scheduler did not accept it),
        or Unanswered (it may have). `on_progress` is called with the results of each request. traceparent: the trace
        of all jobs; raises InvalidJob if it is invalid.

        A request that may have been applied is retried only if every job in it has an idempotency key: a job without a
        key would be duplicated. Single jobs that the scheduler was too busy for are retried by the same rule.
        """
        results: list[Submission] = []
        headers = trace_headers(traceparent)
        for batch in batches_of(jobs, max(1, min(batch_size, MOST_JOBS_A_REQUEST))):
            settled = self._submit_batch(batch, headers)
            results += settled
            if on_progress is not None:
                on_progress(settled)
        return results

    def get(self, job_id: str) -> Job:
        """Gets a job. Raises ApiProblem (404) if no job has this id."""
        return read_answer(Job.from_json, self._call("GET", path_of(job_id), repeatable=True))

    def cancel(self, job_id: str) -> Cancellation:
        """Cancels a job, or asks a running attempt to stop.

        Raises ApiProblem: 409 with code `already_settled` or `too_late`, 404 if no job has this id.
        """
        return read_answer(Cancellation.from_json, self._call("DELETE", path_of(job_id), repeatable=True))

    def breakers(self, tenant: str, *, page_size: int = 100) -> Iterator[Breaker]:
        """Lists the destinations of a tenant whose breaker is not closed, in order; one request per page."""
        return listed(self._call, "/v1/breakers", "breakers", Breaker, tenant=tenant, limit=page_size)

    def reset_breaker(self, tenant: str, destination: str) -> bool:
        """Resets a breaker: closes it now. Returns whether it was open. destination: or any target at that destination.

        The request is retried after a lost answer. A breaker that the first request closed then counts as closed before.
        """
        content = encode({"tenant": tenant, "destination": destination})
        body = self._call("POST", "/v1/breakers:reset", content=content, repeatable=True)
        return read_answer(lambda answer: not answer["was_closed"], body)

    def pause(self, *, note: str = "", version: int | None = None) -> StageStatus:
        """Pauses the stage: no job of any tenant is promoted or called until `resume`. For operators."""
        return turn_stage(self._call, "pause", note=note, version=version)

    def resume(self, *, note: str = "", version: int | None = None) -> StageStatus:
        """Resumes the stage. Tenants that are paused individually stay paused. For operators."""
        return turn_stage(self._call, "resume", note=note, version=version)

    def health(self) -> Health:
        """Gets the health of the stage. For operators."""
        return read_answer(Health.from_json, self._call("GET", "/v1/health", repeatable=True))

    def webhook_keys(self, tenant: str) -> list[WebhookKey]:
        """Gets the keys that sign a tenant's requests to HTTP targets, the current one first."""
        path = f"/v1/tenants/{quote(tenant, safe='')}/webhook-keys"
        body = self._call("GET", path, repeatable=True)
        return read_answer(lambda answer: [WebhookKey.from_json(key) for key in answer["keys"]], body, is_secret=True)

    def _submit_batch(self, batch: Sequence[Encoded], headers: Mapping[str, str]) -> list[Submission]:
        results: dict[int, Submission] = {}
        waiting = dict(enumerate(batch))
        repeats = self._repeats()
        while True:
            answers, itemised = self._send_batch(list(waiting.values()), headers)
            results.update(zip(waiting, answers, strict=True))
            waiting = {position: job for position, job in waiting.items() if is_worth_repeating(job, results[position])}
            # A request that failed as a whole was repeated as often as is safe, and its jobs share that fate.
            seconds = None
            if waiting and itemised:
                seconds = repeats.seconds_to_wait(failure_of(results[next(iter(waiting))]))
            if seconds is None:
                return [results[position] for position in range(len(batch))]
            self._backoff.sleep(seconds)

    def _send_batch(self, batch: Sequence[Encoded], headers: Mapping[str, str]) -> tuple[list[Submission], bool]:
        """One result per job, and whether the scheduler gave each its own."""
        content = b'{"jobs":[' + b",".join(job.body for job in batch) + b"]}"
        repeatable = all(job.job.idempotency_key is not None for job in batch)
        try:
            body = self._call("POST", "/v1/jobs:batch", content=content, repeatable=repeatable, headers=headers)
            answers = read_answer(lambda answer: read_results(answer, count=len(batch)), body)
        except (Unreachable, ApiProblem) as failure:
            return [as_submission(job.job, failure) for job in batch], False
        return [as_submission(job.job, answer) for job, answer in zip(batch, answers, strict=True)], True

    def _call(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool,
        content: bytes | None = None,
        key: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:
        headers = {**headers, **({"Content-Type": "application/json"} if content is not None else {})}
        if key is not None:
            headers["Idempotency-Key"] = key
        url = self._endpoint.url + path
        return json_of(self._insist(method, url, repeatable=repeatable, content=content, headers=headers))

    def _download(self, url: str) -> bytes:
        """What an address holds that has a signature of its own, which is repeated nowhere."""
        host = f"{httpx.URL(url).scheme}://{httpx.URL(url).host}"
        response = self._insist("GET", url, repeatable=True, auth=None, address=host)
        return response.content

    def _insist(
        self, method: str, url: str, *, repeatable: bool, address: str | None = None, **request: Any
    ) -> httpx.Response:
        """A successful answer, after as many attempts as are safe. address: what errors name; the endpoint if None."""
        repeats, deadline = self._repeats(), Deadline(self._timeouts)
        while True:
            response: httpx.Response | None = None
            failure: Unreachable | ApiProblem
            try:
                response = self._http.request(method, url, timeout=deadline.of_attempt(), **request)
            except httpx.TransportError as error:
                failure = unreachable(address or self._endpoint.url, error)
                safe = repeatable or not failure.may_have_been_applied
            else:
                if response.is_success:
                    return response
                failure, safe = problem_of(response, repeatable=repeatable)
            seconds = repeats.seconds_to_wait(failure, response, deadline) if safe else None
            if seconds is None:
                raise failure
            self._backoff.sleep(seconds)

    def _repeats(self) -> Repeats:
        return Repeats(backoff=self._backoff, on_wait=self._on_wait)
