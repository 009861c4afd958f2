"""How requests come in from outside: the gateway with its throttle, and the API function, which takes many jobs at once or a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from functions.api.admission.admission import Admission
from functions.api.admission.gate import Gate
from functions.api.admission.quota import Quota
from functions.api.jobs.intake import Intake
from functions.api.jobs.submit import Accepted, Submitter
from functions.api.schedules.asked_fires import AskedFires
from functions.api.schedules.extra_runs import ExtraRuns
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from simulation.event_source import Function
from simulation.limits import Latency, Limits
from simulation.network import Line
from simulation.schedule_requests import Put, PutCounts, PutRoute
from simulation.virtual_time import Dice, InvocationClock, World
from simulation.wiring import Surroundings, container_of, flush

PARTS = {
    "admission": Admission,
    "asked": AskedFires,
    "extra_runs": ExtraRuns,
    "gate": Gate,
    "quota": Quota,
    "submitter": Submitter,
}


@dataclass(slots=True)
class Gateway:
    """Takes so many requests a second, and so many at once: a token bucket, of the sample's share."""

    rate: float
    burst: float
    _left: float = field(init=False)
    _seen_at: float = 0.0

    def __post_init__(self) -> None:
        self._left = self.burst

    def takes(self, *, at: float) -> bool:
        """Whether a request is handed on."""
        self._left = min(self.burst, self._left + self.rate * max(0.0, at - self._seen_at))
        self._seen_at = max(self._seen_at, at)
        if self._left < 1:
            return False
        self._left -= 1
        return True


class ApiProcess:
    """One environment of the API function. answer: called with what becomes of each job of a request; puts: gets that of schedules."""

    def __init__(
        self, around: Surroundings, limits: Limits, answer: Callable[[Sequence[str | None]], None], puts: PutCounts
    ) -> None:
        self._clock = InvocationClock(speed=min(1.0, around.size.stage.api.memory_mb / limits.vcpu_mb))
        self._line = Line(self._clock, around.dice, limits)
        self._container = container_of(around, self._clock, self._line, parts=PARTS)
        self._intake = self._container.build(Intake)
        self._route = PutRoute(around, self._container)
        self._around = around
        self._limits = limits
        self._answer = answer
        self._puts = puts

    def run(self, parcels: Sequence[Submission] | Put, *, at: float) -> tuple[float, list[str]]:
        """One request."""
        self._clock.start(at)
        self._clock.spend(0.0, cpu=self._limits.request_cpu)
        if isinstance(parcels, Put):
            self._put(parcels)
        else:
            self._submit(parcels)
        return self._clock.at, []

    def _submit(self, submissions: Sequence[Submission]) -> None:
        self._clock.spend(0.0, cpu=len(submissions) * self._limits.submission_cpu)
        answers = self._intake.submit(submissions)
        self._answer([_key_of(answer) if isinstance(answer, Accepted) else None for answer in answers])
        flush(self._container, self._line, self._around.counts)

    def _put(self, put: Put) -> None:
        """Nothing else happens meanwhile: an invocation runs in one event, so what is used is used by this request."""
        tables, stream, puts = self._around.tables.by_name().values(), self._around.stream, self._puts
        writes, reads = (sum(use) for use in zip(*((t.writes.total, t.reads.total) for t in tables), strict=True))
        steps = stream.steps
        error = self._route.answer(put)
        flush(self._container, self._line, self._around.counts)
        puts.writes += sum(table.writes.total for table in tables) - writes
        puts.reads += sum(table.reads.total for table in tables) - reads
        puts.steps += stream.steps - steps
        if error is None:
            puts.created[put.key] = self._clock.at
        else:
            puts.refused[error] += 1


class FrontDoor:
    """The gateway and the function of a stage. refused: jobs; throttled: requests. answers: how long each took, s."""

    def __init__(self, around: Surroundings, world: World, dice: Dice, limits: Limits) -> None:
        share = around.sample.share
        self._world = world
        self._dice = dice
        self._limits = limits
        self.gateway = Gateway(limits.gateway_rate * share, max(1.0, limits.gateway_burst * share))
        self.puts = PutCounts()
        self.function = Function(
            world, limits, dice, partial(ApiProcess, around, limits, self._note, self.puts), share=share
        )
        self.requests = 0
        self.throttled = 0
        self.refused = 0
        self.accepted: list[tuple[str, Submission]] = []
        self.answers: list[float] = []
        self._asked: Sequence[Submission] = ()

    def ask(self, submissions: Sequence[Submission]) -> None:
        """A request of jobs, now."""
        self._asked = submissions
        if not self._hand_on(submissions):
            self.refused += len(submissions)

    def put(self, put: Put) -> None:
        """A request that puts a schedule, now."""
        self.puts.asked += 1
        if not self._hand_on(put):
            self.puts.refused[_BY_GATEWAY] += 1

    def _hand_on(self, asked: Sequence[Submission] | Put) -> bool:
        asked_at = self._world.now
        self.requests += 1
        if not self.gateway.takes(at=asked_at):
            self.throttled += 1
            return False
        passed = self._dice.duration(Latency(self._limits.gateway_p50, self._limits.gateway_p99))
        self.function.invoke(asked, lambda _: self.answers.append(self._world.now - asked_at + passed))
        return True

    def _note(self, keys: Sequence[str | None]) -> None:
        for key, submission in zip(keys, self._asked, strict=True):
            if key is None:
                self.refused += 1
            else:
                self.accepted.append((key, submission))


_BY_GATEWAY = "too many requests"


def _key_of(answer: Accepted) -> str:
    job_id = parse_job_id(answer.job_id)
    return f"{job_id.tenant}#{job_id.identity}"
