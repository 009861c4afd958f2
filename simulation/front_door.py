"""How jobs come in from outside: the gateway with its throttle, and the API function with its admission, in requests of many jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from functions.api.admission.admission import Admission
from functions.api.admission.quota import Quota
from functions.api.jobs.intake import Intake
from functions.api.jobs.submit import Accepted, Submitter
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.submission import Submission
from simulation.event_source import Function
from simulation.limits import Latency, Limits
from simulation.network import Line
from simulation.virtual_time import Dice, InvocationClock, World
from simulation.wiring import Surroundings, container_of, flush

PARTS = {"admission": Admission, "quota": Quota, "submitter": Submitter}


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
    """One environment of the API function. answer: called with what becomes of each job of a request."""

    def __init__(self, around: Surroundings, limits: Limits, answer: Callable[[Sequence[str | None]], None]) -> None:
        self._clock = InvocationClock(speed=min(1.0, around.size.stage.api.memory_mb / limits.vcpu_mb))
        self._line = Line(self._clock, around.dice, limits)
        self._container = container_of(around, self._clock, self._line, parts=PARTS)
        self._intake = self._container.build(Intake)
        self._counts = around.counts
        self._limits = limits
        self._answer = answer

    def run(self, parcels: Sequence[Submission], *, at: float) -> tuple[float, list[str]]:
        """One request."""
        self._clock.start(at)
        self._clock.spend(0.0, cpu=self._limits.request_cpu + len(parcels) * self._limits.submission_cpu)
        answers = self._intake.submit(parcels)
        self._answer([_key_of(answer) if isinstance(answer, Accepted) else None for answer in answers])
        flush(self._container, self._line, self._counts)
        return self._clock.at, []


class FrontDoor:
    """The gateway and the function of a stage. refused: jobs; throttled: requests. answers: how long each took, s."""

    def __init__(self, around: Surroundings, world: World, dice: Dice, limits: Limits) -> None:
        share = around.sample.share
        self._world = world
        self._dice = dice
        self._limits = limits
        self.gateway = Gateway(limits.gateway_rate * share, max(1.0, limits.gateway_burst * share))
        self.function = Function(world, limits, dice, partial(ApiProcess, around, limits, self._note), share=share)
        self.requests = 0
        self.throttled = 0
        self.refused = 0
        self.accepted: list[tuple[str, Submission]] = []
        self.answers: list[float] = []
        self._asked: Sequence[Submission] = ()

    def ask(self, submissions: Sequence[Submission]) -> None:
        """One request, now."""
        asked_at = self._world.now
        self.requests += 1
        if not self.gateway.takes(at=asked_at):
            self.throttled += 1
            self.refused += len(submissions)
            return
        self._asked = submissions
        passed = self._dice.duration(Latency(self._limits.gateway_p50, self._limits.gateway_p99))
        self.function.invoke(submissions, lambda _: self.answers.append(self._world.now - asked_at + passed))

    def _note(self, keys: Sequence[str | None]) -> None:
        for key, submission in zip(keys, self._asked, strict=True):
            if key is None:
                self.refused += 1
            else:
                self.accepted.append((key, submission))


def _key_of(answer: Accepted) -> str:
    job_id = parse_job_id(answer.job_id)
    return f"{job_id.tenant}#{job_id.identity}"
