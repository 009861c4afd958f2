"""What a request that looks something up reads, by DynamoDB Local's own count: a job and its callbacks, a schedule, its figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from rich.console import Console

from bench.boundary import hearing
from bench.budgets import Units, over_budget
from bench.results import print_table, write_result
from bench.runs import CALLBACKS, KEPT, NEAR, ROUNDS, TENANT, RunRig
from functions.api.http.problems import Refusals
from functions.api.http.requests import Rules
from functions.api.jobs.asked import AskedFor
from functions.api.jobs.called_back import CalledBack
from functions.api.jobs.explain import Explainer
from functions.api.jobs.find import Finder
from functions.api.jobs.report_outcome import OutcomeReports
from functions.api.jobs.routes import JobServices, get_job
from functions.api.jobs.submit import Accepted
from functions.api.jobs.whole_results import WholeResults
from functions.domain.instants import SECOND
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets
from testkit.dynamodb_local import DynamoDBLocal

_JOBS = 100
_A_JOB, _FIGURES = "a job that has ended", "the figures of such a schedule"
_SCHEDULE = f"a schedule with {KEPT} last fires"
_LIMIT = timedelta(minutes=1)

BUDGETS: Mapping[str, Units] = {
    # Its row.
    _A_JOB: Units(0, 1, 0),
    # The rows of its callbacks' jobs: those of them that its end calls, together.
    f"{_A_JOB}, on_end": Units(0, 1.5, 0),
    f"{_A_JOB}, on_success and on_end": Units(0, 2, 0),
    # Definition and state, of one version; the rows of its last runs, together.
    _SCHEDULE: Units(0, 4 + KEPT / 2, 0),
    _FIGURES: Units(0, 4 + KEPT / 2, 0),
}


def run(console: Console) -> list[str]:
    """Measure, print, write lookups.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        measured = measure(engine.endpoint_url)
    rows = {name: f"{used.reads:.2f}" for name, used in measured.items()}
    print_table(console, "What a request reads", of="of", figure="read units", rows=rows)
    found = {name: {"reads": used.reads, "budget": asdict(BUDGETS[name])} for name, used in measured.items()}
    write_result("lookups.json", found)
    return [sentence for name, used in measured.items() for sentence in over_budget(name, used, BUDGETS[name])]


def measure(endpoint_url: str) -> dict[str, Units]:
    """Units of one of each, against the engine at that address."""
    rig = _LookupRig()
    with hearing(rig.handlers, endpoints={"dynamodb": endpoint_url}):
        rig.build()
        return {
            **{
                f"{_A_JOB}, {name}" if callbacks else _A_JOB: rig.measure_jobs(callbacks)
                for name, callbacks in CALLBACKS.items()
            },
            **rig.measure_schedules(),
        }


class _LookupRig(RunRig):
    def measure_jobs(self, callbacks: Callbacks) -> Units:
        """Units of a look at a job that has succeeded, and so have the jobs of its callbacks."""
        submission = replace(self._submission(NEAR, self.clock.now() + SECOND), callbacks=callbacks)
        job_ids = [
            outcome.job_id for outcome in self._submitter.submit([submission] * _JOBS) if isinstance(outcome, Accepted)
        ]
        assert len(job_ids) == _JOBS
        for _ in range(ROUNDS):
            self._execute()
            self.clock.sleep(SECOND)
        services = self._job_services()
        return self._each(job_ids, lambda job_id: get_job(services, _NO_REQUEST, job_id))

    def measure_schedules(self) -> dict[str, Units]:
        """Units of a look at a schedule that has fired, and at its figures."""
        schedule_ids, _ = self.fire(0)
        return {
            _SCHEDULE: self._each(schedule_ids, lambda schedule_id: self._schedules.get(TENANT, schedule_id)),
            _FIGURES: self._each(schedule_ids, lambda schedule_id: self._schedules.stats(TENANT, schedule_id)),
        }

    def _each(self, ids: Sequence[str], look: Callable[[str], object]) -> Units:
        self._know()
        self._spent()
        for each in ids:
            look(each)
        return self._spent() / len(ids)

    def _job_services(self) -> JobServices:
        """What the route of a job works with."""
        wiring = self._wiring
        build, finder = wiring.build, wiring.build(Finder)
        allowed = AllowedTargets(DEFAULT_TARGETS)
        return build(
            JobServices,
            finder=finder,
            asked_for=build(AskedFor),
            called_back=build(CalledBack),
            whole_results=build(WholeResults),
            outcome_reports=build(OutcomeReports),
            explainer=build(Explainer, finder=finder, breakers=wiring.breaker_store, backlogs=lambda _: 0),
            refusals=build(Refusals),
            rules=lambda: Rules(now=self.clock.now(), allow_plain_http=False, allowed=allowed, max_timeout=_LIMIT),
        )


_NO_REQUEST: Any = None
"""The route of a job reads nothing of it but the id."""
