"""Many schedules in requests that the scheduler takes, and one result for each of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tickwheel.client.batches import MOST_BYTES_A_REQUEST
from tickwheel.client.fields import encode
from tickwheel.client.schedules import NewSchedule, NotStored, Put, Schedule, Stored
from tickwheel.errors import ApiProblem

MOST_SCHEDULES_A_REQUEST = 25

_MAY_BE_TAKEN_LATER = frozenset({429, 503})
_OF_THE_REQUEST = frozenset({400, 403, 404, 405, 409, 413, 422})
_BUSY = frozenset({"schedule_busy", "busy"})


@dataclass(frozen=True)
class EncodedSchedule:
    """A schedule with its body, encoded once for measuring and for sending."""

    schedule: NewSchedule
    body: bytes


def schedule_batches(schedules: Iterable[NewSchedule], most: int) -> Iterator[list[EncodedSchedule]]:
    """The schedules in requests of at most so many, and below the size that one may have. They are read as that goes."""
    batch: list[EncodedSchedule] = []
    size = 0
    for schedule in schedules:
        named = {"tenant": schedule.tenant, "id": schedule.id, **schedule.as_json()}
        encoded = EncodedSchedule(schedule, encode(named))
        if batch and (len(batch) >= most or size + len(encoded.body) > MOST_BYTES_A_REQUEST):
            yield batch
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded.body) + 1
    if batch:
        yield batch


def content_of(batch: Sequence[EncodedSchedule]) -> bytes:
    """The body of the request."""
    return b'{"schedules":[' + b",".join(each.body for each in batch) + b"]}"


def read_puts(batch: Sequence[EncodedSchedule], body: Any) -> list[Put]:
    """One result for each schedule of a request."""
    return [_read_put(each.schedule, item) for each, item in zip(batch, body["results"], strict=True)]


def may_be_taken_later(result: Put) -> bool:
    """Whether putting it again may have another result."""
    if not isinstance(result, NotStored) or not isinstance(result.error, ApiProblem):
        return False
    return result.error.status in _MAY_BE_TAKEN_LATER or result.error.code in _BUSY


def refuses_all(error: ApiProblem) -> bool:
    """Whether a request was refused as a whole, for what it is."""
    return error.status in _OF_THE_REQUEST


def _read_put(asked: NewSchedule, item: Any) -> Put:
    if "problem" in item:
        return NotStored(asked=asked, error=ApiProblem.from_json(item["problem"], status=int(item["status"])))
    # What is stored is what was asked for: the answer repeats none of it.
    schedule = Schedule.from_json({**asked.as_json(), **item["schedule"]})
    return Stored(asked=asked, schedule=schedule, change=item["change"])
