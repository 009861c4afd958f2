"""Take in the jobs of messages: whoever sends to a tenant's submission queue sends what the API takes as a body.

Nothing is answered, so nothing may be lost: a message is done once its jobs are in the wheel, and those that are refused are in the
queue of the refused, with the problem that the API would have answered.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from functions.api.http.problems import RETRY_AFTER, Misshapen, Refusals
from functions.api.http.requests import Rules, check_key, parse_body
from functions.api.http.shapes import Problem
from functions.api.jobs.batch_intake import AskedJob, BatchIntake
from functions.api.jobs.bodies import BATCH_LIMIT, BatchBody
from functions.api.jobs.submit import Accepted
from functions.domain.batches import batches
from functions.domain.errors import Busy, InvalidInput
from functions.domain.faults import fault_of
from functions.domain.instants import SECOND, from_ms, to_ms
from functions.domain.jobs.submission_queues import GIVE_UP_AFTER, wait_before_next
from functions.domain.trace import parse_traceparent
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.submission_queues import SentMessage, SubmissionQueues, TooLarge

KEY, SENT_AT, TRACEPARENT, CODE, PROBLEMS = "idempotency_key", "sent_at", "traceparent", "code", "problems"
"""Attributes of a message. The first and the third may be the sender's; those that Tickwheel sends itself have the others, too."""

MOST_PROBLEMS = 10
_LONGEST_KEY = 250
"""Characters: as in a body, less the number of a job in its batch."""

_MOST_OF_A_PROBLEM = 2_000

_TOO_FAR_BACK = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message that was read. jobs: of its body; is_batch: that lists them. fault: why it has none that can be looked at."""

    sent: SentMessage
    key: str
    sent_at: datetime
    jobs: tuple[Any, ...] = ()
    is_batch: bool = False
    fault: Exception | None = None

    def keyed(self, index: int) -> str:
        """The idempotency key of a job that names none."""
        return f"{self.key}:{index}" if self.is_batch else self.key

    def asked(self) -> list[AskedJob]:
        """Its jobs, as the intake takes them."""
        trace = parse_traceparent(self.sent.attributes.get(TRACEPARENT))
        members: dict[str, Any] = {"tenant": self.sent.tenant, "trace": trace, "sent_at": self.sent_at}
        return [AskedJob(body=job, key=self.keyed(index), **members) for index, job in enumerate(self.jobs)]


@dataclass(frozen=True, slots=True)
class _Left:
    """A job that did not come in: the number that it has in its message, and why."""

    index: int
    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageIntake:
    """Takes jobs of messages in. rules: of this moment."""

    batch: BatchIntake
    refusals: Refusals
    queues: SubmissionQueues
    rules: Callable[[], Rules]
    clock: Clock
    journal: Journal

    def take(self, messages: Sequence[SentMessage]) -> Iterator[str]:
        """The ids of messages that are done, each as soon as it is: the others must come back."""
        read = [_read(message, now=self.clock.now()) for message in messages]
        for group in batches(read, size_of=lambda message: len(message.jobs), most_size=BATCH_LIMIT):
            asked = [job for message in group for job in message.asked()]
            answers = iter(self.batch.take(asked, self.rules()) if asked else ())
            for message in group:
                mine = [next(answers) for _ in message.jobs]
                try:
                    is_done = self._finish(message, mine)
                except Exception as error:  # noqa: BLE001  one message must not send the others of its batch back
                    self.journal.event("message_failed", **_names(message), error=fault_of(error))
                    is_done = False
                if is_done:
                    self.journal.event("message_taken", **_names(message), count=len(message.jobs))
                    yield message.sent.message_id

    def _finish(self, message: _Message, answers: Sequence[Accepted | Exception]) -> bool:
        """Do with a message what its answers ask for; False when it must come back."""
        if message.fault is not None:
            self._refuse(message, [_Left(0, self.refusals.problem(message.fault))])
            return True
        waiting: list[_Left] = []
        refused: list[_Left] = []
        is_given_up = self.clock.now() - message.sent_at >= GIVE_UP_AFTER
        for index, answer in enumerate(answers):
            if not isinstance(answer, Accepted):
                problem = self.refusals.problem(answer)
                is_waiting = not is_given_up and (isinstance(answer, Busy) or _may_come_in_later(problem))
                (waiting if is_waiting else refused).append(_Left(index, problem))
        if refused:
            self._refuse(message, refused)
        if not waiting:
            return True
        if len(waiting) == len(answers):
            self._hide(message, waiting)
            return False
        # Those that came in would take from the rate again: the others would never have their turn.
        self._send(self.queues.send_on, message, waiting, {SENT_AT: str(to_ms(message.sent_at))})
        return True

    def _hide(self, message: _Message, waiting: Sequence[_Left]) -> None:
        retry_after = max(each.problem.get(RETRY_AFTER, 0) for each in waiting) * SECOND
        self.queues.hide(message.sent, wait_before_next(message.sent.receive_count, retry_after))

    def _refuse(self, message: _Message, refused: Sequence[_Left]) -> None:
        shown = [
            {"index": number, "problem": _cut(each.problem)} for number, each in enumerate(refused[:MOST_PROBLEMS])
        ]
        attributes = {CODE: refused[0].problem["code"], PROBLEMS: json.dumps(shown)}
        self._send(self.queues.refuse, message, refused, attributes)
        codes = Counter(each.problem["code"] for each in refused)
        self.journal.event("message_refused", **_names(message), refused=dict(codes))

    def _send(
        self,
        send: Callable[[str, str, Mapping[str, str]], None],
        message: _Message,
        left: Sequence[_Left],
        attributes: Mapping[str, str],
    ) -> None:
        """Send what is left of a message. With the keys of its jobs, so that none becomes a second one, however often it is sent."""
        sent = message.sent
        attributes = {**attributes, KEY: message.key, TRACEPARENT: sent.attributes.get(TRACEPARENT, "")}
        if message.fault is not None or not message.is_batch or len(left) == len(message.jobs):
            send(sent.tenant, sent.body, attributes)
            return
        jobs = [_with_key(message.jobs[each.index], message.keyed(each.index)) for each in left]
        try:
            send(sent.tenant, json.dumps({"jobs": jobs}, separators=(",", ":"), ensure_ascii=False), attributes)
        except (TooLarge, UnicodeEncodeError):
            # Written anew it is longer than it was. As a whole, its jobs have the same keys.
            send(sent.tenant, sent.body, attributes)


def _read(sent: SentMessage, *, now: datetime) -> _Message:
    message = _Message(sent, key=f"sqs:{sent.message_id}", sent_at=_first_sent(sent, now=now))
    try:
        message = replace(message, key=_key_of(sent) or message.key)
        body = parse_body(sent.body)
        if not isinstance(body, dict):
            return replace(message, fault=InvalidInput('the body must be a JSON object: a job, or {"jobs": [...]}'))
        if "jobs" not in body:
            return replace(message, jobs=(body,))
        return replace(message, jobs=tuple(BatchBody.model_validate(body).jobs), is_batch=True)
    except (InvalidInput, Misshapen) as error:
        return replace(message, fault=error)
    except ValidationError as error:
        return replace(message, fault=Misshapen(InvalidInput, error))


def _key_of(sent: SentMessage) -> str | None:
    key = check_key(sent.attributes.get(KEY))
    if key is not None and len(key) > _LONGEST_KEY:
        raise InvalidInput(f"the attribute {KEY} has {len(key)} characters: use at most {_LONGEST_KEY}")
    return key


def _first_sent(sent: SentMessage, *, now: datetime) -> datetime:
    """When its jobs were sent first, where this is what was left of a message."""
    told = sent.attributes.get(SENT_AT, "")
    if not (told.isascii() and told.isdigit() and len(told) <= len("1234567890123")):
        return sent.sent_at
    first = from_ms(int(told))
    return first if now - _TOO_FAR_BACK < first < sent.sent_at else sent.sent_at


def _may_come_in_later(problem: Problem) -> bool:
    status = problem["status"]
    return status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR


def _with_key(job: Any, key: str) -> Any:
    return {**job, "idempotency_key": job.get("idempotency_key") or key}


def _cut(problem: Problem) -> Mapping[str, Any]:
    """A problem that leaves room for others: its fields, with their values, only where they are short."""
    if len(json.dumps(problem)) <= _MOST_OF_A_PROBLEM:
        return problem
    few = {name: value for name, value in problem.items() if name != "errors"}
    return {**few, "detail": problem.get("detail", "")[:_MOST_OF_A_PROBLEM]}


def _names(message: _Message) -> dict[str, object]:
    sent = message.sent
    return {"tenant": sent.tenant, "message_id": sent.message_id, "sender": sent.sender}
