"""Who is let in, and by which routes."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from urllib.parse import quote

import httpx
from botocore.credentials import Credentials

from functions.api.http.route import Route
from functions.api.route_table import ROUTES
from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import ECHO, Ground
from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import ApiProblem

ODD_ID = "smoke:a+b"
"""With what signers encode twice, and gateways decode."""

NO_JSON = b"{"
"""A body that no route takes, so that none of them does anything."""

_VARIABLE = re.compile(r"{\w+}")
_NOTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}],
}
_REFUSED = 403
_FAULTS = 500


@partial(Check, name="routes", phase=Phase.DOOR, is_quick=True)
def routes(ground: Ground) -> str:
    """Every route reaches the function: what it has not been given, it answers with a problem of its own."""
    with ground.http() as http:
        signed = ground.signed_by(ground.operator)

        def ask(route: Route) -> str | None:
            answer = _ask(http, route, auth=signed)
            is_ours = answer.headers.get("content-type", "").startswith("application/") and (
                answer.is_success or "code" in _json_of(answer)
            )
            said = f"{route.method} {route.path}: {answer.status_code} {answer.text[:80]}"
            return said if answer.status_code in (_REFUSED, *range(_FAULTS, 600)) or not is_ours else None

        wrong = [said for said in ground.side_by_side(ask, ROUTES) if said]
    if wrong:
        raise Wrong("; ".join(wrong), expected="an answer of the API's function from every route")
    return f"{len(ROUTES)} routes answered, ids with `:` and `+`"


@partial(Check, name="unsigned", phase=Phase.DOOR, is_quick=True)
def unsigned(ground: Ground) -> str:
    """No route answers a request without a signature."""
    with ground.http() as http:
        answers = ground.side_by_side(lambda route: (route, _ask(http, route).status_code), ROUTES)
    wrong = [f"{route.method} {route.path}: {status}" for route, status in answers if status != _REFUSED]
    if wrong:
        raise Wrong("; ".join(wrong), expected="403")
    return f"403 from {len(answers)} routes"


@partial(Check, name="strangers", phase=Phase.DOOR, is_quick=True)
def stranger(ground: Ground) -> str:
    """A caller of the account without a policy for the API is refused, and so is a wrong secret; an operator is let in."""
    role = ground.resources.outputs["OperatorRoleArn"]
    statuses = {
        "a wrong secret": _status(ground, Credentials(ground.caller.access_key, "not-the-secret")),
        "a caller without a policy": _status(ground, _session(ground, role, Policy=json.dumps(_NOTHING))),
        "an operator": _status(ground, _session(ground, role)),
    }
    if ground.stage.emulated:
        del statuses["a wrong secret"]  # the key of the account's root, whose signature the local cloud does not check
    expected = {name: 200 if name == "an operator" else _REFUSED for name in statuses}
    if statuses != expected:
        raise Wrong(statuses, expected=str(expected))
    return ", ".join(f"{name}: {status}" for name, status in statuses.items())


@partial(Check, name="odd ids", phase=Phase.JOBS, jobs=1, is_quick=True)
def odd_ids(ground: Ground) -> str:
    """Ids with `:` and `+`, as runs of schedules have them, come through client, signature, gateway and verbs of a path."""
    tenant, schedule = ground.tenant(), "odd"
    ground.client.schedules.put(NewSchedule(schedule, tenant=tenant, every=timedelta(days=30), target=ECHO))
    job_id = ground.client.schedules.trigger(schedule, tenant=tenant, idempotency_key="a+b")
    ground.eventually(
        lambda: ground.client.get(job_id).state,
        lambda state: state == "succeeded",
        within=60,
        expected="the run succeeds",
    )
    explained = ground.client.explain(job_id).state
    if ":" not in job_id or explained != "succeeded":
        raise Wrong(f"{job_id} is explained as {explained}", expected="succeeded, of an id with `:`")
    return f"{job_id} read and explained"


def _ask(http: httpx.Client, route: Route, *, auth: httpx.Auth | None = None) -> httpx.Response:
    path = _VARIABLE.sub(quote(ODD_ID, safe=":"), route.path)
    content = None if route.method in ("GET", "DELETE") else NO_JSON
    headers = {} if content is None else {"Content-Type": "application/json"}
    return http.request(route.method, path, content=content, headers=headers, auth=auth)


def _json_of(answer: httpx.Response) -> dict[str, object]:
    try:
        found = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _session(ground: Ground, role: str, **options: str) -> Credentials:
    found = ground.aws("sts").assume_role(RoleArn=role, RoleSessionName=f"smoke-{ground.run}", **options)["Credentials"]
    return Credentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])


def _status(ground: Ground, credentials: Credentials) -> int:
    with Client(ground.endpoint.url, region=ground.region, credentials=credentials) as client:
        try:
            client.health()
        except ApiProblem as problem:
            return problem.status
        return 200


CHECKS = (routes, unsigned, stranger, odd_ids)
