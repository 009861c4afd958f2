"""One run of the demo from the empty machine to the verdict; whatever it starts has ended when it returns or raises."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tickwheel.client import Client
from tickwheel.client.jobs import Job, NewJob, Priority, Refused, Submission, Submitted
from tickwheel.demo.dead_letters import DeadLetterTable
from tickwheel.demo.deployment import following
from tickwheel.demo.fires import FiresVerdict, judge_fires
from tickwheel.demo.judge import SETTLED, Verdict, judge
from tickwheel.demo.narrator import Narrator
from tickwheel.demo.schedule_steps import await_fires, count_herd, import_schedules
from tickwheel.demo.schedules import plan_schedules, schedule_names
from tickwheel.demo.sink import Sink
from tickwheel.demo.workload import Fate, PlannedJob, plan, read_rows
from tickwheel.errors import TickwheelError
from tickwheel.local import local_stack
from tickwheel.local.installation import find_home

_EXAMPLE = "kubernetes-periodics.jsonl"

# Small requests, so that the first jobs of a request are not due before its last one has been taken.
_JOBS_A_REQUEST = 100

# How long after the last job was due a job may still come, and then how long its state may take to settle. A run that
# is well needs seconds, but the message of a worker that died on a busy machine is hidden for 95 s before it comes back.
_PATIENCE = timedelta(seconds=120)

_LOOK_SECONDS = 0.25
_PARALLEL_LOOKUPS = 4


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What became of the jobs that were submitted, and of the schedules that were imported."""

    jobs: Verdict
    schedules: FiresVerdict

    @property
    def faults(self) -> Sequence[str]:
        """A sentence for each thing that must not have happened."""
        return [*self.jobs.faults, *self.schedules.faults]


def run(narrator: Narrator) -> Judgement:
    """Deploys, imports, submits, watches, looks everything up, and judges. Raises TickwheelError, and OSError."""
    home = find_home()
    rows = read_rows(home.examples / _EXAMPLE)
    jobs = plan(rows)
    fates = {job.name: job.fate for job in jobs if job.calls_sink}
    with (
        local_stack(progress=following(narrator), home=home) as stack,
        Sink(fates) as sink,
        Sink(dict.fromkeys(schedule_names(rows), Fate.SUCCEEDS)) as sink_of_schedules,
    ):
        narrator.end(stack.api_endpoint)
        table = DeadLetterTable(stack.aws, stack.outputs)
        with Client(stack.api_endpoint) as client:
            _warm_up(client, narrator)
            # Those of the far ring first: they wait while the schedules are counted and imported.
            far = [job for job in jobs if job.is_far]
            submissions = _submit(client, far, sink, narrator, title="Submit the far jobs")
            schedules = plan_schedules(rows, sink=sink_of_schedules.url)
            load = count_herd(client, schedules, narrator)
            imported = import_schedules(client, schedules, narrator)
            near = [job for job in jobs if not job.is_far]
            submissions |= _submit(client, near, sink, narrator, title="Submit the near jobs")
            _watch(near, submissions, sink, table, narrator, title="Watch the near ones")
            # Between those and the far ones, so that it competes with neither; a second effect has time to show.
            states = _look_up(client, _taken(submissions, of=near), narrator)
            _watch(jobs, submissions, sink, table, narrator, title="Watch the far ones")
            watched = await_fires(imported, load, sink_of_schedules, narrator)
            states |= _look_up(client, _taken(submissions, of=far), narrator)
        judgement = Judgement(
            jobs=judge(
                jobs,
                submissions=submissions,
                arrivals=sink.arrivals,
                states=states,
                dead_letters=table.job_ids(),
            ),
            schedules=judge_fires(imported, watched, sink_of_schedules.arrivals),
        )
        narrator.begin("Stop everything")
    narrator.end()
    return judgement


def _warm_up(client: Client, narrator: Narrator) -> None:
    """Fires a job of each priority and waits for them, so that the first real ones find functions that are started.

    In an account a cold start costs one job half a second. Here a dozen at once would share two cores for many.
    """
    narrator.begin("Start the functions")
    jobs = [NewJob("handler:echo", tenant="warm-up", priority=priority) for priority in Priority]
    results = client.submit_many(jobs)
    _refuse_hopeless(results)
    until = time.monotonic() + _PATIENCE.total_seconds()
    for result in results:
        while isinstance(result, Submitted) and client.get(result.id).state not in SETTLED and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)


def _submit(
    client: Client, jobs: Sequence[PlannedJob], sink: Sink, narrator: Narrator, *, title: str
) -> dict[str, Submission]:
    narrator.begin(title, total=len(jobs))
    rings = {"near": 0, "far": 0}
    done = 0

    def account(results: Sequence[Submission]) -> None:
        nonlocal done
        _refuse_hopeless(results)
        done += len(results)
        for result in results:
            if isinstance(result, Submitted) and result.ring in rings:
                rings[result.ring] += 1
        narrator.tell(_rings_text(rings), done=done)

    results = client.submit_many(
        (job.new_job(sink=sink.url) for job in jobs), batch_size=_JOBS_A_REQUEST, on_progress=account
    )
    tenant_count = len({job.tenant for job in jobs})
    narrator.end(f"{done:,} jobs of {tenant_count} tenants: {_rings_text(rings)}")
    return {job.name: result for job, result in zip(jobs, results, strict=True)}


def _refuse_hopeless(results: Sequence[Submission]) -> None:
    """Raises what the scheduler said when it took no job of a request: it would say so for every other one."""
    errors = [
        result.problem if isinstance(result, Refused) else result.error
        for result in results
        if not isinstance(result, Submitted)
    ]
    if len(errors) == len(results):
        raise errors[0]


def _rings_text(rings: Mapping[str, int]) -> str:
    return f"{rings['near']:,} near ring, {rings['far']:,} far ring"


def _taken(submissions: Mapping[str, Submission], *, of: Sequence[PlannedJob]) -> dict[str, Submitted]:
    return {job.name: answer for job in of if isinstance(answer := submissions[job.name], Submitted)}


def _watch(
    jobs: Sequence[PlannedJob],
    submissions: Mapping[str, Submission],
    sink: Sink,
    table: DeadLetterTable,
    narrator: Narrator,
    *,
    title: str,
) -> None:
    """Returns when all that can be seen from outside has happened, or when it is overdue."""
    taken = _taken(submissions, of=jobs)
    due = sorted(answer.due_at for answer in taken.values())
    for_sink = [job for job in jobs if job.calls_sink and job.name in taken]
    doomed_count = sum(job.fate is Fate.DOOMED for job in for_sink)
    last_due_at = max(due, default=datetime.now(UTC))
    narrator.begin(title, total=len(for_sink))
    while (now := datetime.now(UTC)) < last_due_at + _PATIENCE:
        tally = sink.tally
        done = tally.delivered + tally.given_up
        left = max(timedelta(0), last_due_at - now)
        narrator.tell(
            f"{tally.retried:,} retries, {tally.given_up} dead, {_clock(left)} to go",
            done=done,
        )
        if done >= len(for_sink) and now > last_due_at and len(table.job_ids()) >= doomed_count:
            break
        time.sleep(_LOOK_SECONDS)
    tally = sink.tally
    narrator.end(f"{tally.delivered:,} delivered to the sink, {tally.retried:,} retries, {tally.given_up} dead")


def _clock(duration: timedelta) -> str:
    minutes, seconds = divmod(round(duration.total_seconds()), 60)
    return f"{minutes}:{seconds:02}"


def _look_up(client: Client, taken: Mapping[str, Submitted], narrator: Narrator) -> dict[str, Job]:
    """The state of each job, asked for again until it is settled or overdue; one that nobody answered is left out."""
    narrator.begin("Look up each job", total=len(taken))
    until = time.monotonic() + _PATIENCE.total_seconds()
    states: dict[str, Job] = {}
    settled: set[str] = set()

    def look_up(name: str) -> Job | None:
        try:
            return client.get(taken[name].id)
        except TickwheelError:
            return None  # asked again in the next round

    pool = ThreadPoolExecutor(_PARALLEL_LOOKUPS, thread_name_prefix="look-up")
    try:
        while (unsettled := [name for name in taken if name not in settled]) and time.monotonic() < until:
            for name, state in zip(unsettled, pool.map(look_up, unsettled), strict=True):
                if state is not None:
                    states[name] = state
                    if state.state in SETTLED:
                        settled.add(name)
                narrator.tell("settled", done=len(settled))
                if time.monotonic() > until:
                    break
            time.sleep(_LOOK_SECONDS)
    finally:
        # Not waited for: when the look-up is cut short, those under way end with the cloud.
        pool.shutdown(wait=False, cancel_futures=True)
    narrator.end(f"{len(settled):,} of {len(taken):,} are settled")
    return states
