"""The stage that is looked at: its API, its account, and what has to be removed again."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

import boto3
import httpx
from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, DeferredRefreshableCredentials
from botocore.session import Session

from functions.domain.tenants.access import ANYBODY
from infra.stage import Stage
from smoke.faults import Wrong
from testkit.polling import NotInTime, eventually
from testkit.releases import previous_release
from testkit.resources import Resources
from tickwheel.client import Client
from tickwheel.client.endpoint import Endpoint, LoopbackTransport
from tickwheel.client.jobs import NewJob, Submitted
from tickwheel.client.signing import DefaultCredentials, SigV4
from tickwheel.errors import TickwheelError
from tickwheel.local.checkout import find_checkout
from tickwheel.local.settings import LOCAL_REGION

T = TypeVar("T")
R = TypeVar("R")

ECHO = "handler:echo"
TRIAL = "handler:trial"
REFUSES = {"refuses": True}
"""The payload of a trial that fails for good."""
"""No stage has a handler of this name: its job is a dead letter at once, which is seen of untracked jobs too."""

_SIDE_BY_SIDE = 8
_SIDE_BY_SIDE_LOCALLY = 2
"""Requests. The local cloud starts a process for each at once, on the same cores as all else."""

_PATIENCE = timedelta(seconds=60)
_MOST_SHOWN = 300


class Ground:
    """stage: as it is described in infra/stage.py. run: what the names of this run's tenants have in common."""

    def __init__(
        self,
        stage: Stage,
        aws: Mapping[str, str] | None = None,
        *,
        endpoint: str | None = None,
        previous: str | None = None,
    ) -> None:
        """Take the options of boto3's clients, and the address of the API, where they are not those of the account.

        previous: a revision, where it is not the release before.
        """
        self.stage = stage
        self._previous = previous
        self.run = secrets.token_hex(4)
        self.began_at = datetime.now(UTC)
        self.options = dict(aws or {})
        self._session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._tenants: list[str] = []
        self._closers: list[tuple[str, Callable[[], object]]] = []
        self.connect(endpoint)

    def connect(self, endpoint: str | None = None) -> None:
        """Find the stage as it is deployed now."""
        stacks = [f"Tickwheel-{self.stage.name}-{part}" for part in ("Storage", "Scheduler")]
        self.resources = Resources(self.aws("cloudformation"), stacks)
        self.__dict__.pop("operator", None)
        self.endpoint = Endpoint(endpoint or self.resources.outputs["ApiEndpoint"])
        self.client = Client(
            self.endpoint.url,
            region=self.region,
            credentials=self.operator,
            transport=self._transport(),
            timeout=_PATIENCE,
        )

    @property
    def previous_release(self) -> str:
        """The revision that `roll back` deploys. Raises NotACheckout where only a checkout could tell."""
        return self._previous or previous_release(find_checkout())

    @property
    def _most(self) -> int:
        return _SIDE_BY_SIDE_LOCALLY if self.stage.emulated else _SIDE_BY_SIDE

    def _transport(self) -> httpx.BaseTransport | None:
        """None for httpx's own, which honours a proxy."""
        if not self.endpoint.is_on_this_machine:
            return None
        return LoopbackTransport(httpx.HTTPTransport(limits=httpx.Limits(max_connections=self._most)))

    @property
    def region(self) -> str:
        """That the stage is in."""
        return self.options.get("region_name") or self._session.region_name or LOCAL_REGION

    @property
    def caller(self) -> Credentials:
        """The credentials of whoever runs this."""
        if "aws_access_key_id" in self.options:
            return Credentials(self.options["aws_access_key_id"], self.options["aws_secret_access_key"])
        return DefaultCredentials(Session()).find()

    @cached_property
    def operator(self) -> Credentials:
        """Credentials that may act for every tenant: where not everybody may, those of the role for it, renewed as they expire."""
        if ANYBODY in self.stage.operators:
            return self.caller
        fetcher = AssumeRoleCredentialFetcher(
            client_creator=lambda service, **keys: boto3.client(service, **{**self.options, **keys}),
            source_credentials=self.caller,
            role_arn=self.resources.outputs["OperatorRoleArn"],
            extra_args={"RoleSessionName": f"smoke-{self.run}"},
        )
        return DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method="assume-role")

    def aws(self, service: str) -> Any:
        """A client of the account; threads may share it."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._session.client(service, **self.options)  # pyright: ignore[reportCallIssue, reportArgumentType]
            return self._clients[service]

    def http(self) -> httpx.Client:
        """Requests to the API without a signature; whoever asks closes it."""
        return httpx.Client(base_url=self.endpoint.url, transport=self._transport(), timeout=_PATIENCE.total_seconds())

    def signed_by(self, credentials: Credentials) -> SigV4:
        """What signs such a request."""
        return SigV4(credentials, region=self.region)

    def function(self, name: str) -> str:
        """The name of a function: Worker, Scanner and so on."""
        return self.resources.one("AWS::Lambda::Function", f"{name}Function")

    def queue(self, name: str) -> str:
        """The address of a ready queue, or of the dead letters of one."""
        return self.resources.one("AWS::SQS::Queue", f"Ready{name}")

    def tenant(self, name: str = "jobs") -> str:
        """A tenant of this run, which is deleted at its end; checks that need none of their own share one."""
        tenant = f"smoke-{self.run}-{name}"
        with self._lock:
            if tenant not in self._tenants:
                self._tenants.append(tenant)
        return tenant

    def at_the_end(self, what: str, close: Callable[[], object]) -> None:
        """Something to remove or to restore, whatever becomes of the check."""
        with self._lock:
            self._closers.append((what, close))

    def submit(self, *jobs: NewJob) -> list[Submitted]:
        """All of them are accepted, or it is wrong. Each has a key, so that a request without an answer can be repeated."""
        keyed = [replace(job, idempotency_key=f"{self.run}-{secrets.token_hex(8)}") for job in jobs]
        answers = self.client.submit_many(keyed)
        refused = [answer for answer in answers if not isinstance(answer, Submitted)]
        if refused:
            raise Wrong(f"{len(refused)} of {len(jobs)} jobs were not accepted: {refused[0]}", expected="all are")
        return [answer for answer in answers if isinstance(answer, Submitted)]

    def next_far(self, *, margin: timedelta = timedelta(seconds=10)) -> datetime:
        """The start of the first bucket into which a job that is submitted now goes by the far ring."""
        wheel = self.stage.wheel
        return datetime.fromtimestamp(wheel.bucket_of(datetime.now(UTC) + wheel.guard + margin), UTC) + wheel.bucket

    def await_ends(self, jobs: Iterable[Submitted], *, states: Iterable[str] = ("succeeded",), within: float) -> None:
        """Every job reaches one of these states, so many seconds after the first of them is due, or it is wrong."""
        awaited, ends = list(jobs), tuple(states)
        waiting, count = {job.id for job in awaited}, len(awaited)
        _sleep_until(min(job.due_at for job in awaited))  # each look costs a request

        def look() -> list[str]:
            seen = self.side_by_side(lambda job_id: (job_id, self.client.get(job_id).state), waiting)
            waiting.difference_update(job_id for job_id, state in seen if state in ends)
            return sorted(f"{job_id}: {state}" for job_id, state in seen if job_id in waiting)

        self.eventually(
            look, lambda left: not left, within=within, expected=f"all {count} jobs are {' or '.join(ends)}"
        )

    def eventually(self, read: Callable[[], T], holds: Callable[[T], object], *, within: float, expected: str) -> T:
        """The first reading that holds; Wrong if there is none in time."""
        try:
            return eventually(read, holds, within=within, what=expected, pause=0.5)
        except NotInTime as failure:
            raise Wrong(_short(failure.seen), expected=f"{expected}, within {within:g} s") from None

    def side_by_side(self, do: Callable[[T], R], each: Iterable[T]) -> list[R]:
        """The answers in their order."""
        with ThreadPoolExecutor(self._most) as pool:
            return list(pool.map(do, each))

    def clean_up(self) -> str:
        """Undo, remove and restore everything, also after something could not be; then raise Wrong with what could not."""
        failed: list[str] = []
        for what, close in reversed(self._closers):
            try:
                close()
            except Exception as error:  # noqa: BLE001  the others are removed all the same, and this is told below
                failed.append(f"{what}: {error}")
        for tenant in self._tenants:
            try:
                self.client.tenants.delete(tenant, confirm=tenant, ledger="ttl")
            except TickwheelError as error:
                failed.append(f"tenant {tenant}: {error}")
        if failed:
            raise Wrong("; ".join(failed), expected="all that this run has made is removed")
        return f"{len(self._tenants)} tenants with all they have, {len(self._closers)} other things"

    def close(self) -> None:
        """Close all connections."""
        self.client.close()
        for client in self._clients.values():
            client.close()


def _sleep_until(instant: datetime) -> None:
    time.sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def _short(seen: object) -> str:
    text = str(seen)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
