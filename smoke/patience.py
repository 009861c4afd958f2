"""What takes its time: a stage that was idle, and one that is taken down and deployed again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from smoke.check import Check, Phase
from smoke.executions import lags_of
from smoke.faults import Wrong
from smoke.ground import ECHO, Ground
from tickwheel.client.jobs import NewJob
from tickwheel.local.checkout import find_checkout

_IDLE_MINUTES = 20
_MOST_COLD_LAG = 6.0
"""Seconds: a cold worker is 1.5 to 2.5 s late, and SQS delays by whole seconds."""

_MOST_DEPLOYMENT_SECONDS = 1_200
_FAR = timedelta(minutes=40)


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


def redeployed(ground: Ground) -> str:
    """A far job from before fires, although its scheduler was deployed over, destroyed and deployed again."""
    run_at = datetime.now(UTC) + _FAR
    jobs = ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=run_at))
    name = ground.stage.name
    deploy = ["deploy", "--all", "--require-approval", "never"]
    _cdk(ground, deploy)
    _cdk(ground, ["destroy", f"{name}/Scheduler", "--force"])
    _cdk(ground, deploy)
    ground.connect()  # the API has another address
    left = (run_at - datetime.now(UTC)).total_seconds()
    if left < 0:
        raise Wrong(f"deployed again {-left:.0f} s after its time", expected=f"within {_FAR}")
    ground.await_ends(jobs, within=120)
    return f"a job of {_FAR} before fired on the scheduler that was deployed again"


def _cdk(ground: Ground, arguments: Sequence[str]) -> None:
    checkout = find_checkout()
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


CHECKS = (
    Check(
        name="lag, idle",
        proves="after twenty idle minutes a job is late by a cold start",
        run=idle,
        phase=Phase.LONG,
        seconds=_IDLE_MINUTES * 60 + 80,
        jobs=1,
        needs_aws="the local cloud never ends a worker that is idle",
    ),
    Check(
        name="redeploy",
        proves="a far job survives its scheduler",
        run=redeployed,
        phase=Phase.LONG,
        seconds=_FAR.total_seconds() + _MOST_DEPLOYMENT_SECONDS,
        jobs=1,
        needs_aws="tests/e2e does it on a local cloud of its own",
    ),
)
