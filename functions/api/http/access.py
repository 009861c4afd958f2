"""Who may ask for what: where in a request tenants are named, and what a route asks of its caller.

What does not parse names no tenant: its route refuses it, with the same functions, before it does anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from functions.api.http.reading import Request
from functions.domain.dead_letters.dead_letter_id import parse_dead_letter_id
from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.jobs.job import TENANT
from functions.domain.jobs.job_id import parse_job_id

TenantSource = Callable[[Request], Iterable[Any]]
"""Where a request names tenants: whatever is written there, be it a tenant's id or not."""


def in_query(request: Request) -> Iterable[Any]:
    """`?tenant=`."""
    yield request.query.get("tenant")


def in_body(request: Request) -> Iterable[Any]:
    """`{"tenant": ...}`, and those of lists of jobs and schedules in it."""
    body = _object_of(request)
    yield body.get("tenant")
    for name in ("jobs", "schedules"):
        listed = body.get(name)
        if isinstance(listed, list):
            yield from (each.get("tenant") for each in listed if isinstance(each, dict))


def in_path(request: Request) -> Iterable[Any]:
    """The part of the path that is a tenant's id, beside the id of something of his."""
    yield request.arguments.get("tenant")


def in_tenant_id(request: Request) -> Iterable[Any]:
    """The id of the path, which is a tenant's."""
    yield request.arguments.get("id")


def in_job_id(request: Request) -> Iterable[Any]:
    """The id of a job, which names its tenant."""
    with suppress(InvalidInput):
        yield parse_job_id(request.arguments.get("id", "")).tenant


def in_dead_letter_id(request: Request) -> Iterable[Any]:
    """The id of a dead letter, which names its tenant."""
    with suppress(InvalidInput):
        yield parse_dead_letter_id(request.arguments.get("id", "")).tenant


@dataclass(frozen=True, slots=True)
class Access:
    """What a route asks of its caller: to act for each tenant that is named. is_open: nothing; for_operators: that he is one.

    is_stages_without: without a tenant it is about the whole stage, and for operators.
    """

    sources: tuple[TenantSource, ...] = ()
    is_open: bool = False
    for_operators: bool = False
    is_stages_without: bool = False

    def tenants_of(self, request: Request) -> list[str]:
        """The tenants that a request names, in order: whatever could be the id of one."""
        found = {name for source in self.sources for name in source(request) if isinstance(name, str)}
        return sorted(name for name in found if name == NO_TENANT or TENANT.fullmatch(name))


OPEN = Access(is_open=True)
OPERATORS = Access(for_operators=True)
QUERY = Access((in_query,))
QUERY_OR_STAGE = Access((in_query,), is_stages_without=True)
BODY = Access((in_query, in_body))
JOB = Access((in_job_id, in_query, in_body))
DEAD_LETTER = Access((in_dead_letter_id, in_query, in_body))
PATH = Access((in_path, in_query, in_body))
TENANT_ID = Access((in_tenant_id, in_query, in_body))


def _object_of(request: Request) -> dict[str, Any]:
    if not request.has_body:
        return {}
    try:
        body = request.body
    except InvalidInput:
        return {}
    return body if isinstance(body, dict) else {}
