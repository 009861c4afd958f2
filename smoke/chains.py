"""Chains of invocations that Lambda would stop after about 16, if it took them for a loop.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from functions.domain.targets.targets import parse_target
from smoke.check import Check, Phase
from smoke.faults import NotPossible, Wrong
from smoke.ground import ECHO, TRIAL, Ground
from testkit.lambda_target import make_function, make_role
from testkit.long_chains import ATTEMPTS, CROWD, END_TO_START, FIRES, Called, begin_crowd, begin_fires, failing_job
from tickwheel.client.jobs import NewJob, Submitted

FAILS = 20
"""Of a job; its next attempt succeeds."""

_SECOND = timedelta(seconds=1)
_COMPANY_SECONDS = 75
_COMPANY_A_SECOND = 4
_FRESH = 10
_SLOW_SECONDS = 10
_FUNCTION = """\
def handler(event, context):
    if event["fails"]:
        raise RuntimeError("it was asked to fail")
"""

_CROWD_SECONDS = 3 * CROWD * _SLOW_SECONDS
_COMPANY = _COMPANY_SECONDS * _COMPANY_A_SECOND + _FRESH


@partial(Check, name="chain of fires", phase=Phase.JOBS, seconds=170, jobs=2 * FIRES)
def fires(ground: Ground) -> str:
    """A schedule fires again and again, each time a second after its run has ended."""
    tenant = ground.tenant("fires")
    begin_fires(ground.client, Called(ECHO), tenant=tenant)
    seen = ground.eventually(
        lambda: ground.client.schedules.get(END_TO_START, tenant=tenant),
        lambda schedule: schedule.fires >= FIRES,
        within=150,
        expected=f"{FIRES} fires from end to start",
    )
    ground.client.schedules.delete(END_TO_START, tenant=tenant)
    wrong = [run for run in seen.runs[1:] if run.attempt > 1 or run.state != "succeeded"]
    if wrong:
        raise Wrong(
            f"{wrong[0].state} with attempt {wrong[0].attempt}", expected="each fire succeeds with its first attempt"
        )
    return f"{seen.fires} fires, each with one attempt"


@partial(Check, name="chain of retries", phase=Phase.JOBS, seconds=320, jobs=FAILS + 1 + _COMPANY)
def retries(ground: Ground) -> str:
    """A job fails twenty times, a second apart, and succeeds; fresh jobs beside it are not stopped with it."""
    called = Called(TRIAL, {"succeeds_at": FAILS + 1})
    tenant = ground.tenant("retries")
    (job,) = ground.submit(failing_job(called, tenant=tenant, between=_SECOND, attempts=FAILS + 1))
    fresh = _keep_company(ground, tenant, Called(TRIAL, {}))
    ground.await_ends([job, *fresh], within=300)
    attempt = ground.client.get(job.id).attempt
    if attempt != FAILS + 1:
        raise Wrong(f"succeeded with attempt {attempt}", expected=f"with attempt {FAILS + 1}")
    return f"succeeded with attempt {attempt}; {len(fresh)} fresh jobs among them succeeded"


@partial(Check, name="chain of retries, Lambda", phase=Phase.JOBS, seconds=450, jobs=ATTEMPTS + _COMPANY)
def lambda_retries(ground: Ground) -> str:
    """A job for a Lambda function, which is in the chain itself, fails and succeeds like that of a handler."""
    name = f"smoke-{ground.run}"
    caller = ground.aws("sts").get_caller_identity()
    partition = caller["Arn"].split(":")[1]
    arn = f"arn:{partition}:lambda:{ground.region}:{caller['Account']}:function:{name}"
    if not ground.stage.allowed_targets.is_allowed(parse_target(arn)):
        raise NotPossible(
            f"{ground.stage.name} allows no function {name}: its targets are {', '.join(ground.stage.targets)}"
        )
    role = make_role(ground.aws("iam"), name, service="lambda.amazonaws.com")
    ground.at_the_end(f"role {name}", lambda: ground.aws("iam").delete_role(RoleName=name))
    client = ground.aws("lambda")
    make_function(client, name, source=_FUNCTION, role=role)
    ground.at_the_end(f"function {name}", lambda: client.delete_function(FunctionName=name))
    tenant = ground.tenant("lambda")
    (job,) = ground.submit(failing_job(Called(arn, {"fails": True}), tenant=tenant, between=_SECOND))
    fresh = _keep_company(ground, tenant, Called(arn, {"fails": False}))
    ground.await_ends([job], states=["failed"], within=300)
    ground.await_ends(fresh, within=60)
    attempt = ground.client.get(job.id).attempt
    if attempt != ATTEMPTS:
        raise Wrong(f"failed with attempt {attempt}", expected=f"with attempt {ATTEMPTS}")
    return f"failed for good with attempt {attempt}, as it was asked to; {len(fresh)} fresh jobs among them succeeded"


@partial(
    Check,
    name="crowd",
    phase=Phase.LOAD,
    seconds=_CROWD_SECONDS + 60,
    jobs=CROWD,
    worker_seconds=CROWD * _SLOW_SECONDS * 10,
)
def crowd(ground: Ground) -> str:
    """Jobs of a tenant with one permit wait for each other, and all of them run."""
    jobs = begin_crowd(ground.client, Called(TRIAL, {"seconds": _SLOW_SECONDS}), tenant=ground.tenant("crowd"))
    accepted = [job for job in jobs if isinstance(job, Submitted)]
    if len(accepted) != CROWD:
        raise Wrong(f"{len(accepted)} of {CROWD} accepted", expected="all")
    ground.await_ends(accepted, within=_CROWD_SECONDS)
    return f"{CROWD} jobs of {_SLOW_SECONDS} s each, one at a time"


def _keep_company(ground: Ground, tenant: str, called: Called) -> list[Submitted]:
    """Jobs of the same destination that succeed, so that its breaker stays closed; ten of them are looked at."""
    begin = datetime.now(UTC)
    times = [begin + _SECOND * number / _COMPANY_A_SECOND for number in range(_COMPANY_SECONDS * _COMPANY_A_SECOND)]
    company = [
        NewJob(called.target, tenant=tenant, payload=called.payload, run_at=at, delivery="at_least_once")
        for at in times
    ]
    fresh = [
        NewJob(called.target, tenant=tenant, payload=called.payload, run_at=at) for at in times[:: len(times) // _FRESH]
    ]
    ground.submit(*company)
    return ground.submit(*fresh[:_FRESH])


CHECKS = (fires, retries, lambda_retries, crowd)
