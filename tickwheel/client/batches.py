"""Many jobs in requests that the scheduler takes, and one result for each of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tickwheel.client.fields import encode
from tickwheel.client.jobs import NewJob, Refused, Submission, Submitted, Unanswered
from tickwheel.errors import ApiProblem, TickwheelError, Unreachable

MOST_JOBS_A_REQUEST = 500
MOST_BYTES_A_REQUEST = 5_000_000  # Lambda takes 6 MB, API Gateway's envelope and escapes included
NOT_APPLIED = frozenset({429})
MAY_HAVE_BEEN_APPLIED = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class Encoded:
    """A job with its body, encoded once for measuring and for sending."""

    job: NewJob
    body: bytes


def batches_of(jobs: Iterable[NewJob], most_jobs: int) -> Iterator[list[Encoded]]:
    """The jobs in requests of at most so many, and below the size that one may have."""
    batch: list[Encoded] = []
    size = 0
    for job in jobs:
        encoded = Encoded(job, encode(job.as_json()))
        if batch and (len(batch) == most_jobs or size + len(encoded.body) > MOST_BYTES_A_REQUEST):
            yield batch
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded.body) + 1
    if batch:
        yield batch


def is_worth_repeating(encoded: Encoded, result: Submission) -> bool:
    """Whether sending that job again cannot make two of it, and may have another result."""
    if isinstance(result, Refused):
        return result.problem.status in NOT_APPLIED
    return isinstance(result, Unanswered) and encoded.job.idempotency_key is not None


def as_submission(job: NewJob, answer: Submitted | ApiProblem | Unreachable) -> Submission:
    """What an answer means for its job."""
    if isinstance(answer, Submitted):
        return answer
    if isinstance(answer, Unreachable) or answer.status in MAY_HAVE_BEEN_APPLIED:
        return Unanswered(job=job, error=answer)
    return Refused(job=job, problem=answer)


def failure_of(result: Submission) -> TickwheelError:
    """What a job that was not submitted failed with."""
    match result:
        case Refused():
            return result.problem
        case Unanswered():
            return result.error
        case Submitted():
            raise ValueError("a submitted job has not failed")


def read_results(body: Any, *, count: int) -> list[Submitted | ApiProblem]:
    """One result for each of so many jobs."""
    answers = [_read_result(item) for item in body["results"]]
    if len(answers) != count:
        raise ValueError(f"{len(answers)} results to {count} jobs")
    return answers


def _read_result(item: Any) -> Submitted | ApiProblem:
    if "job" in item:
        return Submitted.from_json(item["job"])
    return ApiProblem.from_json(item["problem"], status=int(item["status"]))
