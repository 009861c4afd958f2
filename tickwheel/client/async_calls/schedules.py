"""Operations on schedules, as `client.schedules`.

All of them are sent again by themselves when an answer was lost: putting, changing and asking twice is the same as once,
and what starts jobs carries an idempotency key, with which a repeat is the same run.
"""

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

from tickwheel.client.answers import read_answer
from tickwheel.client.async_calls.call import AsyncCall, listed
from tickwheel.client.blocking import async_do_all
from tickwheel.client.fields import encode, said, without_none
from tickwheel.client.fires import Backfill, Difference, Fire, FireCount
from tickwheel.client.instants import format_instant
from tickwheel.client.schedule_batches import (
    MOST_SCHEDULES_A_REQUEST,
    EncodedSchedule,
    content_of,
    may_be_taken_later,
    read_puts,
    refuses_all,
    schedule_batches,
)
from tickwheel.client.schedule_stats import ScheduleStats
from tickwheel.client.schedules import NewSchedule, NotStored, Overlap, Put, Schedule, Stored
from tickwheel.errors import ApiProblem, FieldProblem, InvalidSchedule, Unreachable

MOST_COUNTED_A_REQUEST = 100
_PATH = "/v1/schedules"


class AsyncSchedules:
    """Creates, updates, gets and runs schedules. Every call raises ApiProblem if the scheduler refuses it, and Unreachable."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def put(self, schedule: NewSchedule, *, create_only: bool = False, if_version: int | None = None) -> Schedule:
        """Creates or replaces a schedule. The same definition again changes nothing.

        create_only: raises ApiProblem (412 `schedule_exists`) if the tenant has a schedule with this id, unless this call has created
        it. if_version: raises ApiProblem (412 `schedule_changed`) if the schedule does not have this version. The `version` of
        either error is that of the schedule.
        """
        condition = _condition(create_only=create_only, if_version=if_version)
        body = await self._ask("PUT", schedule.id, schedule.tenant, schedule.as_json(), condition=condition)
        return read_answer(Schedule.from_json, body)

    async def put_many(
        self,
        schedules: Iterable[NewSchedule],
        *,
        threads: int = 4,
        batch_size: int = MOST_SCHEDULES_A_REQUEST,
        on_progress: Callable[[Put], None] | None = None,
    ) -> Sequence[Put]:
        """Creates or replaces any number of schedules, in requests of up to 25 and several at a time; one result each, in order.

        None raises: each result is Stored or NotStored. The schedules are read as they are sent, and `on_progress` is called with
        each result in their order, on the thread that called this.
        """

        def tell(results: Sequence[Put]) -> None:
            if on_progress is not None:
                for result in results:
                    on_progress(result)

        batches = schedule_batches(schedules, max(1, min(batch_size, MOST_SCHEDULES_A_REQUEST)))
        put = await async_do_all(self._put_batch, batches, most=threads, on_result=tell)
        return [result for results in put for result in results]

    async def patch(
        self, schedule_id: str, *, tenant: str, changes: Mapping[str, Any], if_version: int | None = None
    ) -> Schedule:
        """Updates a definition with a merge patch of its JSON (RFC 7396). None removes a field. if_version: as for `put`."""
        condition = _condition(if_version=if_version)
        return read_answer(
            Schedule.from_json, await self._ask("PATCH", schedule_id, tenant, changes, condition=condition)
        )

    async def compare(
        self,
        schedule: NewSchedule,
        *,
        count: int = 10,
        create_only: bool = False,
        if_version: int | None = None,
    ) -> Difference:
        """Previews the next fires before and after `put`. Changes nothing."""
        condition = _condition(create_only=create_only, if_version=if_version)
        query = {"dry_run": "true", "count": count}
        body = await self._ask("PUT", schedule.id, schedule.tenant, schedule.as_json(), condition=condition, **query)
        return read_answer(Difference.from_json, body)

    async def compare_patch(
        self,
        schedule_id: str,
        *,
        tenant: str,
        changes: Mapping[str, Any],
        count: int = 10,
        if_version: int | None = None,
    ) -> Difference:
        """Previews the next fires before and after `patch`. Changes nothing."""
        query = {"dry_run": "true", "count": count}
        body = await self._ask(
            "PATCH", schedule_id, tenant, changes, condition=_condition(if_version=if_version), **query
        )
        return read_answer(Difference.from_json, body)

    async def get(self, schedule_id: str, *, tenant: str) -> Schedule:
        """Gets a schedule with its last runs. Raises ApiProblem (404) if the tenant has none with this id."""
        return read_answer(Schedule.from_json, await self._ask("GET", schedule_id, tenant))

    async def stats(self, schedule_id: str, *, tenant: str) -> ScheduleStats:
        """Gets the figures of a schedule: its gaps beside those that its definition expects, waits, outcomes and lag.

        Raises ApiProblem (404) if the tenant has none with this id.
        """
        return read_answer(ScheduleStats.from_json, await self._ask("GET", schedule_id, tenant, verb="stats"))

    def list(self, *, tenant: str, page_size: int = 100) -> AsyncIterator[Schedule]:
        """Lists the schedules of a tenant in the order of their ids, without runs; one request per page."""
        return listed(self._call, _PATH, "schedules", Schedule, tenant=tenant, limit=page_size)

    async def delete(self, schedule_id: str, *, tenant: str, if_version: int | None = None) -> None:
        """Deletes a schedule: it no longer fires. Deleting it again is not an error. if_version: as for `put`."""
        await self._ask("DELETE", schedule_id, tenant, condition=_condition(if_version=if_version))

    async def pause(self, schedule_id: str, *, tenant: str, note: str = "", if_version: int | None = None) -> Schedule:
        """Pauses a schedule. Fires that it misses while paused are not run later. if_version: as for `put`."""
        return await self._turn("pause", schedule_id, tenant, note, if_version)

    async def resume(self, schedule_id: str, *, tenant: str, note: str = "", if_version: int | None = None) -> Schedule:
        """Resumes a paused schedule, starting from now. if_version: as for `put`."""
        return await self._turn("resume", schedule_id, tenant, note, if_version)

    async def trigger(
        self, schedule_id: str, *, tenant: str, overlap: Overlap | None = None, idempotency_key: str | None = None
    ) -> str:
        """Triggers one run of a schedule now, even while it is paused. Returns the id of the job.

        The same key again is the same run; without one, each call is a run of its own.
        """
        body = without_none({"overlap": overlap})
        key = idempotency_key or uuid.uuid4().hex
        return read_answer(
            lambda answer: answer["job"], await self._ask("POST", schedule_id, tenant, body, verb="trigger", key=key)
        )

    async def backfill(
        self,
        schedule_id: str,
        *,
        tenant: str,
        start: datetime,
        end: datetime,
        overlap: Overlap | None = None,
        per_minute: float | None = None,
        dry_run: bool = False,
        after: str | None = None,
        idempotency_key: str | None = None,
    ) -> Backfill:
        """Backfills a schedule: runs its fires from `start` to `end`, both in the past and aware, at a rate per minute from now on.

        As many come in as the tenant may hand in now; `after`, the `next` of the answer before, goes on behind them at the
        same pace. The same key again is the same backfill. With `dry_run` nothing runs, and the answer says what would.
        """
        asked = {"start": start, "end": end, "overlap": overlap, "per_minute": per_minute}
        body = said({**asked, "dry_run": dry_run or None, "after": after})
        key = idempotency_key or uuid.uuid4().hex
        return read_answer(
            Backfill.from_json, await self._ask("POST", schedule_id, tenant, body, verb="backfill", key=key)
        )

    async def preview(
        self, schedule_id: str, *, tenant: str, count: int = 10, after: datetime | None = None
    ) -> Sequence[Fire]:
        """Previews the next fires, at most 100, from now or from an aware instant on. Sends further requests if necessary."""
        found: list[Fire] = []
        goes_on_after = after and format_instant(after)
        while True:
            query = without_none({"count": count - len(found), "after": goes_on_after})
            body = await self._ask("GET", schedule_id, tenant, verb="preview", **query)
            fires, goes_on_after = read_answer(_read_fires, body)
            found += fires
            if len(found) >= count or goes_on_after is None:
                return found

    async def count_fires(
        self,
        schedules: Sequence[NewSchedule],
        *,
        start: datetime | None = None,
        hours: int = 24,
        spread: timedelta | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Sequence[FireCount]:
        """Counts the fires of each schedule in each minute, from `start` or now on; in order, up to 100 schedules per request.

        spread: as if those had it that have none of their own. `on_progress` is called with how many were counted.
        """
        counted: list[FireCount] = []
        for first in range(0, len(schedules), MOST_COUNTED_A_REQUEST):
            chunk = [_countable(schedule) for schedule in schedules[first : first + MOST_COUNTED_A_REQUEST]]
            counted += await self._count_all({"schedules": chunk}, start, hours, spread, on_progress)
        return counted

    async def count_fires_of(
        self,
        tenant: str,
        *,
        start: datetime | None = None,
        hours: int = 24,
        spread: timedelta | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Sequence[FireCount]:
        """Like `count_fires`, for the active schedules of a tenant."""
        return await self._count_all({"tenant": tenant}, start, hours, spread, on_progress)

    async def _count_all(
        self,
        asked: dict[str, Any],
        start: datetime | None,
        hours: int,
        spread: timedelta | None,
        on_progress: Callable[[int], None] | None,
    ) -> Sequence[FireCount]:
        """Page by page, each with as many as can be counted at once, and all from one start."""
        counted: list[FireCount] = []
        body = said({**asked, "start": start, "hours": hours, "spread": spread})
        while True:
            answer = await self._call("POST", f"{_PATH}:fires", repeatable=True, content=encode(body))
            page = read_answer(lambda answer: [FireCount.from_json(result) for result in answer["results"]], answer)
            counted += page
            if on_progress is not None:
                on_progress(len(page))
            if answer["next"] is None:
                return counted
            body |= {"start": answer["start"], "after": answer["next"]}

    async def _turn(self, verb: str, schedule_id: str, tenant: str, note: str, if_version: int | None) -> Schedule:
        condition = _condition(if_version=if_version)
        body = await self._ask("POST", schedule_id, tenant, {"note": note}, verb=verb, condition=condition)
        return read_answer(Schedule.from_json, body)

    async def _put_batch(self, batch: Sequence[EncodedSchedule]) -> Sequence[Put]:
        """One result each. What the scheduler was too busy for is asked for again, the first of it alone: that waits as it is told."""
        results = [*await self._send_batch(batch)]
        while waiting := [number for number, result in enumerate(results) if may_be_taken_later(result)]:
            first, *others = waiting
            results[first] = await self._put_safely(batch[first].schedule)
            if may_be_taken_later(results[first]):
                break
            again = await self._send_batch([batch[number] for number in others]) if others else []
            for number, result in zip(others, again, strict=True):
                results[number] = result
        return results

    async def _send_batch(self, batch: Sequence[EncodedSchedule]) -> Sequence[Put]:
        try:
            body = await self._call("POST", f"{_PATH}:batch", repeatable=True, content=content_of(batch))
            return read_answer(lambda answer: read_puts(batch, answer), body)
        except (ApiProblem, Unreachable) as error:
            if isinstance(error, ApiProblem) and refuses_all(error) and len(batch) > 1:
                # For what may be the fault of one of them, or because it is an older scheduler: each gets its own answer.
                return [await self._put_safely(each.schedule) for each in batch]
            return [NotStored(asked=each.schedule, error=error) for each in batch]

    async def _put_safely(self, schedule: NewSchedule) -> Put:
        try:
            return Stored(asked=schedule, schedule=await self.put(schedule))
        except (ApiProblem, Unreachable) as error:
            return NotStored(asked=schedule, error=error)

    async def _ask(
        self,
        method: str,
        schedule_id: str,
        tenant: str,
        body: Any = None,
        *,
        verb: str = "",
        key: str | None = None,
        condition: Mapping[str, str] = MappingProxyType({}),
        **query: Any,
    ) -> Any:
        """condition: its headers. The request then has a key: sent again after a lost answer, it is known for the same."""
        path = quote(schedule_id, safe="") + (f":{verb}" if verb else "")
        target = f"{_PATH}/{path}?{urlencode({'tenant': tenant, **query})}"
        content = None if body is None else encode(body)
        key = key or (uuid.uuid4().hex if condition else None)
        return await self._call(method, target, repeatable=True, content=content, key=key, headers=condition)


def _condition(*, create_only: bool = False, if_version: int | None = None) -> dict[str, str]:
    if create_only and if_version is not None:
        raise InvalidSchedule(
            [FieldProblem("if_version", "contradicts create_only: a new schedule has none", if_version)]
        )
    if create_only:
        return {"If-None-Match": "*"}
    return {} if if_version is None else {"If-Match": f'"{if_version}"'}


def _read_fires(answer: Any) -> tuple[list[Fire], str | None]:
    return [Fire.from_json(fire) for fire in answer["fires"]], answer.get("next")


def _countable(schedule: NewSchedule) -> dict[str, Any]:
    """When it fires does not depend on its payload, which may be large."""
    definition = {**schedule.as_json(), "job": {"target": schedule.target}}
    return {"tenant": schedule.tenant, "id": schedule.id, **definition}
