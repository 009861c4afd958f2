"""One deployment for all tests of this folder: the real CDK CLI, a real HTTP sink, real time.

The release before this one is deployed first, and gets jobs for both rings and a schedule; then this one is deployed over
it, and the other tests run against that. The far ring needs minutes, and so do schedules: what became of them is asserted
last. `LAST` sees to that, whatever order the tests were shuffled into.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from functions.domain.instants import MINUTE
from scripts.least_privilege import recording
from testkit.builders import LOCAL_WHEEL
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.long_chains import LongChains, begin_long_chains
from tests.e2e.releases import Releases, check_out_releases
from tests.e2e.returning import Return, Rollback, destroy_and_deploy, roll_back
from tests.e2e.schedules import Lives
from tests.e2e.sink import Sink
from tests.e2e.waiting import CancelledFar, FarJobs, Neighbours, Sent, Ticking, Update, runs_to_its_end, send
from tests.least_privilege.plugin import FOLDER
from tickwheel.client import Client
from tickwheel.client.endpoint import LoopbackTransport
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted
from tickwheel.client.schedules import NewSchedule
from tickwheel.local import local_stack
from tickwheel.local.checkout import Checkout

HERE = Path(__file__).parent
LAST = (
    "test_far_ring",
    "test_update",
    "test_long_chains",
    "test_rescue",
    "test_schedules",
    "test_noisy_neighbour",
    "test_whole_run",
    "test_audit",
    "test_alarms",
    "test_rollback",
    "test_scheduler_destroyed",
    "test_verify",
    "test_recovery",
    "test_kept_data",
    "test_destroy",
)

HEARD = """
import os
import shutil
from pathlib import Path

from functions.recording import Recorder

if "POWERTOOLS_SERVICE_NAME" in os.environ:  # in a function: what deploys imports the package too
    Recorder(Path({folder!r}), function=os.environ["POWERTOOLS_SERVICE_NAME"]).install()
"""

NEW_HANDLER = '''
"""A handler that the deployed code does not have yet."""

from functions.worker.handlers.registry import handler


@handler("new")
def new(payload, invocation):
    return {"said by": "the updated code", "payload": payload}
'''


USERS_HANDLERS = """
from pydantic import BaseModel
from tickwheel.handlers import Invocation, handler


class Greeting(BaseModel):
    name: str


@handler("greet")
async def greet(greeting: Greeting, invocation: Invocation) -> dict[str, str]:
    return {"said": f"hello {greeting.name}", "to": invocation.tenant}
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    names = ["", *LAST]

    def position(item: pytest.Item) -> int:
        return names.index(item.path.stem if item.path.stem in names else "")

    # Together, and at the end: between others, the deployment would be taken down and made again.
    items[:] = [item for item in items if item not in ours] + sorted(ours, key=position)


@pytest.fixture(scope="package")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    """This one tells what it asks of AWS."""
    releases = check_out_releases(tmp_path_factory.mktemp("releases"))
    functions = releases.this.root / "functions"
    shutil.copy(recording.__file__, functions / "recording.py")
    (functions / "__init__.py").write_text(HEARD.format(folder=os.environ[FOLDER]))
    return releases


@pytest.fixture(scope="package")
def sink() -> Iterator[Sink]:
    with Sink() as sink:
        yield sink


@pytest.fixture(scope="package")
def deployment(releases: Releases, sink: Sink) -> Iterator[Deployment]:
    with local_stack(home=releases.previous) as stack:
        deployment = Deployment(stack)
        yield deployment
        deployment.close()
    # Its files are removed behind it, by a process of its own.
    eventually(
        lambda: _processes_of(releases.previous), lambda left: not left, within=300, what="nothing is left of it"
    )
    assert not stack.folder.exists()


@pytest.fixture(scope="package")
def client(deployment: Deployment) -> Iterator[Client]:
    with Client(deployment.stack.api_endpoint) as client:
        yield client


@pytest.fixture(scope="package")
def http(deployment: Deployment) -> Iterator[httpx.Client]:
    """Requests without a signature."""
    transport = LoopbackTransport(httpx.HTTPTransport())
    with httpx.Client(base_url=deployment.stack.api_endpoint, transport=transport, timeout=30) as http:
        yield http


@pytest.fixture(scope="package", autouse=True)
def far_jobs(deployment: Deployment, client: Client, sink: Sink) -> FarJobs:
    """Submitted before anything else, so that nothing else is on the queues."""
    # The first request starts a Lambda, and must not eat into the seconds that make the others far.
    client.submit_many([NewJob("no-such-scheme:", tenant="acme")])
    now = datetime.now(UTC)
    margin = timedelta(seconds=30)  # for the request, on a busy machine
    due_at = datetime.fromtimestamp(LOCAL_WHEEL.bucket_of(now + LOCAL_WHEEL.guard + margin) + 60, UTC)
    opens_at = due_at - LOCAL_WHEEL.lookahead
    targets = [sink.target() for _ in range(4)] + [sink.target(fails=1)]
    quickly = RetryPolicy(strategy="fixed", attempts=3, base=timedelta(seconds=1), cap=timedelta(seconds=1))
    offsets = [timedelta(milliseconds=137 * number) for number in range(6)]
    jobs = [
        NewJob(targets[0].url, tenant="acme", run_at=due_at + offsets[0], payload={"far": True}),
        NewJob(targets[1].url, tenant="globex", run_at=due_at + offsets[1], precision="exact"),
        NewJob(targets[2].url, tenant="initech", run_at=due_at + offsets[2], delivery="at_least_once"),
        NewJob(targets[3].url, tenant="acme", run_at=due_at + offsets[3], priority="critical"),
        NewJob(targets[4].url, tenant="acme", run_at=due_at + offsets[4], priority="low", retry=quickly),
        NewJob("handler:new", tenant="acme", run_at=due_at + offsets[5], payload="far"),
    ]
    submitted = [answer for answer in client.submit_many(jobs) if isinstance(answer, Submitted)]
    assert len(submitted) == len(jobs)
    sent = [Sent(job, target) for job, target in zip(submitted, targets, strict=False)]
    return FarJobs(opens_at, *sent, for_new_handler=submitted[-1], queued=deployment.messages(delayed=True))


@pytest.fixture(scope="package", autouse=True)
def killed(client: Client, sink: Sink, releases: Releases, far_jobs: FarJobs) -> Sent:
    """A job whose worker is killed while its target is called; no other job is with a worker then."""
    sent = send(client, sink.target(holds=True), seconds=0)
    sent.target.wait()
    workers = [pid for pid, command in _processes_of(releases.previous) if "WorkerFunction" in command]
    assert workers, "no worker runs, and yet its target was called"
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    sent.target.released.set()
    return sent


@pytest.fixture(scope="package", autouse=True)
def ticking(client: Client, sink: Sink, killed: Sent) -> Ticking:
    """A schedule of the release before, that fires each minute from then on."""
    name, target = "ticking", sink.target()
    client.schedules.put(NewSchedule(name, tenant=name, cron="* * * * *", target=target.url))
    return Ticking(name, target, created_at=datetime.now(UTC))


@pytest.fixture(scope="package", autouse=True)
def update(deployment: Deployment, client: Client, sink: Sink, releases: Releases, ticking: Ticking) -> Update:
    """Deploys this release, with a handler of its own, while jobs of the one before wait in both rings."""
    near = [send(client, sink.target(), seconds=seconds) for seconds in (1, 3, 5, 7, 9, 12, 20, 30)]
    began_at = datetime.now(UTC)
    before = deployment.identity
    (releases.this.root / "functions" / "worker" / "handlers" / "new.py").write_text(NEW_HANDLER)
    _add_handlers(releases.this)
    deployment.deploy(releases.this)
    return Update(began_at, datetime.now(UTC), near, before=before, after=deployment.identity)


@pytest.fixture(scope="package", autouse=True)
def lives(deployment: Deployment, sink: Sink, update: Update) -> Iterator[Lives]:
    """Schedules that fire while the other tests run."""
    with Lives(deployment, sink) as lives:
        yield lives


@pytest.fixture(scope="package", autouse=True)
def neighbours(client: Client, sink: Sink, update: Update) -> Neighbours:
    """Submitted to the far ring while the other tests run; of a class that has workers of its own."""
    noisy = "a-noisy"
    names = (f"quiet-{number}" for number in itertools.count())
    quiet = next(name for name in names if LOCAL_WHEEL.shard_of(name, "") == LOCAL_WHEEL.shard_of(noisy, ""))
    # On a busy machine shards may be behind after an update, and jobs refused. So this waits until the sweeper has published that
    # they are not; the API knows it up to 20 s later.
    eventually(
        lambda: [
            (found.priority, found.lag)
            for found in client.health().classes
            if found.is_shed or found.lag is None or found.lag > MINUTE
        ],
        lambda behind: not behind,
        within=400,
        what="no class is behind",
    )
    margin = timedelta(seconds=60)  # for the requests, on a busy machine
    due_at = datetime.fromtimestamp(LOCAL_WHEEL.bucket_of(datetime.now(UTC) + LOCAL_WHEEL.guard + margin) + 60, UTC)
    waiting = Neighbours(sink.target(), sink.target(), noise_count=2_000, quiet_count=10)
    jobs = [NewJob(waiting.noise.url, tenant=noisy, run_at=due_at, priority="low")] * waiting.noise_count
    jobs += [NewJob(waiting.quiet.url, tenant=quiet, run_at=due_at, priority="low")] * waiting.quiet_count
    rings: set[str] = set()

    def hand_in() -> list[str]:
        answers = list(zip(jobs, client.submit_many(jobs), strict=True))
        rings.update(str(answer.ring) for _, answer in answers if isinstance(answer, Submitted))
        jobs[:] = [job for job, answer in answers if not isinstance(answer, Submitted)]
        return [str(answer) for _, answer in answers if not isinstance(answer, Submitted)][:3]

    eventually(hand_in, lambda refused: not refused, what="all are accepted")
    assert rings == {"far"}
    return waiting


@pytest.fixture(scope="package", autouse=True)
def long_chains(client: Client, sink: Sink, neighbours: Neighbours) -> LongChains:
    """Begun before all tests: they take minutes."""
    return begin_long_chains(client, sink)


@pytest.fixture(scope="package")
def rollback(deployment: Deployment, client: Client, sink: Sink, releases: Releases, update: Update) -> Rollback:
    """When all that needs this release alone is over."""
    if releases.why_not is not None:
        pytest.skip(releases.why_not)
    return roll_back(deployment, client, sink, releases)


@pytest.fixture(scope="package")
def returned(
    deployment: Deployment, client: Client, sink: Sink, releases: Releases, rollback: Rollback, ticking: Ticking
) -> Return:
    """When the release before has promoted something."""
    runs_to_its_end(client, rollback.running)
    rollback.promoted_after[0].target.wait(within=300)
    return destroy_and_deploy(deployment, client, sink, releases, rollback, ticking)


@pytest.fixture(scope="package", autouse=True)
def cancelled_far(deployment: Deployment, client: Client, far_jobs: FarJobs, update: Update) -> CancelledFar:
    """Right after the update: what comes then may take until it would run."""
    job_id = far_jobs.cancelled.job.id
    had_row = deployment.timer_row(job_id) is not None
    state = client.cancel(job_id).state
    return CancelledFar(state, had_row=had_row, has_row=deployment.timer_row(job_id) is not None)


def _add_handlers(checkout: Checkout) -> None:
    """A user's folder, beside the application that deploys."""
    folder, application = checkout.root / "users_jobs", checkout.root / "cdk.json"
    folder.mkdir()
    (folder / "greetings.py").write_text(USERS_HANDLERS)
    described = json.loads(application.read_text())
    described["context"]["handlers"] = f"./{folder.name}"
    application.write_text(json.dumps(described))


def _processes_of(checkout: Checkout) -> list[tuple[int, str]]:
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
    split = [line.strip().partition(" ") for line in listed.stdout.splitlines()]
    return [(int(pid), command) for pid, _, command in split if str(checkout.root) in command]
