"""Operations on a submitted job, for its owner and for its target."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from tickwheel.client.answers import read_answer
from tickwheel.client.async_calls.call import RAW_IN_IDS
from tickwheel.client.fields import duration_problems, encode, instant_problems, said, without_none
from tickwheel.client.job_control import Ended, Explanation, Heartbeat, Waiting
from tickwheel.errors import FieldProblem, InvalidJob


class AsyncJobCalls(ABC):
    """A part of the client. Every call is retried when an answer was lost: twice is the same as once.

    Each raises Unreachable, and ApiProblem when the scheduler refuses: 409 says why, 404 that there is no such job.
    """

    async def run_now(self, job_id: str) -> Waiting:
        """Runs a job in the far ring, or its next attempt, now. It keeps its id."""
        return read_answer(Waiting.from_json, await self._call("POST", f"{path_of(job_id)}:run-now", repeatable=True))

    async def reschedule(
        self, job_id: str, *, run_at: datetime | None = None, delay: timedelta | None = None
    ) -> Waiting:
        """Reschedules a job in the far ring. It continues under a new id; the old id stays valid.

        One of `run_at`, which is aware, and `delay`. Raises InvalidJob.
        """
        problems = [*instant_problems("run_at", run_at), *duration_problems("delay", delay)]
        if (run_at is None) == (delay is None):
            problems.append(FieldProblem("run_at", "give run_at or delay, and not both"))
        if problems:
            raise InvalidJob(problems)
        return await self.edit(job_id, said({"run_at": run_at, "delay": delay}))

    async def edit(self, job_id: str, changes: Mapping[str, Any]) -> Waiting:
        """Updates a waiting job with a merge patch of its JSON (RFC 7396). None resets a field to its default."""
        body = await self._call("PATCH", path_of(job_id), content=encode(changes), repeatable=True)
        return read_answer(Waiting.from_json, body)

    async def explain(self, job_id: str) -> Explanation:
        """Explains why a job has not run yet, or how it ended."""
        return read_answer(
            Explanation.from_json, await self._call("GET", f"{path_of(job_id)}/explain", repeatable=True)
        )

    async def payload(self, job_id: str) -> Any:
        """Gets the payload of a job as its target receives it. ApiProblem (404) with the code `not_kept` if it is not kept."""
        body = await self._call("GET", f"{path_of(job_id)}/payload", repeatable=True)
        return read_answer(itemgetter("payload"), body)

    async def heartbeat(self, job_id: str, *, fence: int, lease: timedelta | None = None) -> Heartbeat:
        """Renews the lease of an attempt whose target answered 202. lease: the longest time until the next heartbeat.

        The lease is 1 s to 12 h, and without one the timeout of the job and 5 s. ApiProblem (409) with the code
        `stale_fence` or `already_settled`: the attempt is over, so stop.
        """
        asked = said({"fence": fence, "lease": lease})
        return read_answer(Heartbeat.from_json, await self._tell(job_id, "heartbeat", asked))

    async def complete(self, job_id: str, *, fence: int, result: Any = None) -> Ended:
        """Completes an attempt: reports that its target has succeeded, with any JSON as its result."""
        asked = without_none({"fence": fence, "result": result})
        return read_answer(Ended.from_json, await self._tell(job_id, "complete", asked))

    async def fail(
        self,
        job_id: str,
        *,
        fence: int,
        error: str,
        permanent: bool = False,
        retry_after: timedelta | None = None,
    ) -> Ended:
        """Fails an attempt: reports that its target has failed. The job is retried according to its policy, unless `permanent`."""
        asked = said({"fence": fence, "error": error, "permanent": permanent or None, "retry_after": retry_after})
        return read_answer(Ended.from_json, await self._tell(job_id, "fail", asked))

    async def _tell(self, job_id: str, verb: str, body: Mapping[str, Any]) -> Any:
        return await self._call("POST", f"{path_of(job_id)}/{verb}", content=encode(body), repeatable=True)

    @abstractmethod
    async def _call(
        self, method: str, path: str, *, repeatable: bool, content: bytes | None = None, key: str | None = None
    ) -> Any:
        """Sends a request and gives the JSON of its answer; see Client."""


def path_of(job_id: str) -> str:
    """The path of a job."""
    return f"/v1/jobs/{quote(job_id, safe=RAW_IN_IDS)}"
