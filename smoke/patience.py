"""What takes its time: a stage that was idle, and one that is taken down and deployed again."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from smoke.check import Check, Phase
from smoke.executions import lags_of
from smoke.faults import NotPossible, Wrong
from smoke.ground import ECHO, Ground
from testkit.releases import check_out
from tickwheel.client.jobs import NewJob, Submitted
from tickwheel.errors import NotACheckout
from tickwheel.local.checkout import Checkout, find_checkout

_IDLE_MINUTES = 20
_MOST_COLD_LAG = 6.0
"""Seconds: a cold worker is 1.5 to 2.5 s late, and SQS delays by whole seconds."""

_MOST_DEPLOYMENT_SECONDS = 1_200
_FAR = timedelta(minutes=40)


@partial(
    Check,
    name="lag, idle",
    phase=Phase.LONG,
    seconds=_IDLE_MINUTES * 60 + 80,
    jobs=1,
    needs_aws="the local cloud never ends a worker that is idle",
)
def idle(ground: Ground) -> str:
    """After twenty minutes without a job, the first one finds no warm worker, and is late by a cold start."""
    time.sleep(_IDLE_MINUTES * 60)
    run_at = datetime.now(UTC) + timedelta(seconds=5)
    jobs = ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=run_at))
    ground.await_ends(jobs, within=60)
    (lag,) = lags_of(ground, jobs)
    if not 0 <= lag <= _MOST_COLD_LAG:
        raise Wrong(f"{lag:.2f} s late", expected=f"at most {_MOST_COLD_LAG} s, and not early")
    return f"{lag:.2f} s late after {_IDLE_MINUTES} idle minutes"


@partial(
    Check,
    name="redeploy",
    phase=Phase.LONG,
    seconds=_FAR.total_seconds() + _MOST_DEPLOYMENT_SECONDS,
    jobs=1,
    needs_aws="tests/e2e does it on a local cloud of its own",
)
def redeployed(ground: Ground) -> str:
    """A far job from before fires, although its scheduler was deployed over, destroyed and deployed again."""
    _own_checkout()
    run_at = datetime.now(UTC) + _FAR
    jobs = ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=run_at))
    name = ground.stage.name
    deploy = ["deploy", "--all", "--require-approval", "never"]
    _cdk(ground, deploy)
    _cdk(ground, ["destroy", f"{name}/Scheduler", "--force"])
    _cdk(ground, deploy)
    ground.connect()  # the API has another address
    _fire(ground, jobs, at=run_at)
    return f"a job of {_FAR} before fired on the scheduler that was deployed again"


@partial(
    Check,
    name="roll back",
    phase=Phase.LONG,
    seconds=_FAR.total_seconds() + _MOST_DEPLOYMENT_SECONDS,
    jobs=3,
    needs_aws="tests/e2e does it on a local cloud of its own",
)
def rolled_back(ground: Ground) -> str:
    """The release before is deployed over this one, and this one over that: what waits meanwhile fires, whoever wrote it."""
    with _release_before(ground) as before:
        run_at = datetime.now(UTC) + _FAR
        jobs = ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=run_at))
        scheduler = ["deploy", f"{ground.stage.name}/Scheduler", "--exclusively", "--require-approval", "never"]
        ground.at_the_end("this release", lambda: _cdk(ground, scheduler))
        _cdk(ground, scheduler, of=before)
        jobs += ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=run_at))
        ground.await_ends(ground.submit(NewJob(ECHO, tenant=ground.tenant())), within=60)
        _cdk(ground, scheduler)
    _fire(ground, jobs, at=run_at)
    return (
        f"a job of this release and one of {ground.previous_release[:12]}, both far, fired after the way back and forth"
    )


@contextmanager
def _release_before(ground: Ground) -> Iterator[Checkout]:
    """A checkout of it, which knows this stage; NotPossible says why there is none."""
    ours = _own_checkout()
    with tempfile.TemporaryDirectory(prefix="tickwheel-") as folder:
        before = Checkout(Path(folder))
        if why_not := check_out(ground.previous_release, before.root, ours=ours):
            raise NotPossible(f"{why_not}: fetch it, or name another with --previous")
        try:
            _cdk(ground, ["list"], of=before)
        except Wrong as error:
            raise NotPossible(
                f"{ground.previous_release[:12]} cannot deploy {ground.stage.name}: {error.seen}"
            ) from None
        yield before


def _fire(ground: Ground, jobs: Sequence[Submitted], *, at: datetime) -> None:
    """They were to wait for longer than it took to deploy."""
    left = (at - datetime.now(UTC)).total_seconds()
    if left < 0:
        raise Wrong(f"deployed again {-left:.0f} s after its time", expected=f"within {_FAR}")
    ground.await_ends(jobs, within=120)


def _own_checkout() -> Checkout:
    try:
        return find_checkout()
    except NotACheckout:
        raise NotPossible("it deploys from a checkout, and this is none") from None


def _cdk(ground: Ground, arguments: Sequence[str], *, of: Checkout | None = None) -> None:
    checkout = of or _own_checkout()
    command = [str(checkout.cdk), *arguments, "--context", f"stage={ground.stage.name}", "--no-notices"]
    environment = {**os.environ, "PATH": checkout.search_path}
    done = subprocess.run(  # noqa: S603
        command,
        cwd=checkout.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_MOST_DEPLOYMENT_SECONDS,
    )
    if done.returncode:
        raise Wrong(f"`cdk {arguments[0]}`: {done.stderr[-400:]}", expected="it succeeds")


CHECKS = (idle, rolled_back, redeployed)
