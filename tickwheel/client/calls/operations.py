# Written by `make format` (`scripts/sync_client.py`) from async_calls/operations.py: change it there.
"""Operations on many jobs at once, as `client.operations`.

All of them are sent again by themselves when an answer was lost: what starts an operation carries an idempotency key, with
which a repeat is the same operation.
"""

import uuid
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tickwheel.client.answers import read_answer
from tickwheel.client.backoff import Sleep
from tickwheel.client.blocking import off_loop
from tickwheel.client.calls.call import Call, listed
from tickwheel.client.fields import duration_problems, encode, instant_problems, said, without_none
from tickwheel.client.operations import JobFilter, Operation
from tickwheel.errors import ApiProblem, FieldProblem, InvalidRequest, Unreachable

_PATH = "/v1/operations"
_EXPIRED = 403
_FIRST_POLL = 0.5
_LONGEST_POLL = 5.0
_GZIP = 16 + zlib.MAX_WBITS


class Download(Protocol):
    """The bytes behind an address, asked for without a signature; raises ApiProblem and Unreachable."""

    def __call__(self, url: str) -> bytes:
        """See Client."""
        ...


class Operations:
    """Starts, gets and stops operations. Every call raises ApiProblem if the scheduler refuses it, and Unreachable.

    What starts one returns at once: `wait` follows it to its end. With `dry_run` the jobs are counted, the first of them
    shown, and nothing changes. The same `idempotency_key` again answers with the same operation.
    """

    def __init__(self, call: Call, download: Download, *, sleep: Sleep) -> None:
        self._call = call
        self._download = download
        self._sleep = sleep

    def cancel(self, matching: JobFilter, *, dry_run: bool = False, idempotency_key: str | None = None) -> Operation:
        """Cancels all matching jobs. A running attempt continues, and is not retried."""
        return self._start({**matching.as_json(), "action": "cancel"}, dry_run, idempotency_key)

    def reschedule(
        self,
        matching: JobFilter,
        *,
        by: timedelta | None = None,
        to: datetime | None = None,
        spread: timedelta | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Reschedules all matching jobs: later or earlier by a duration; or to an instant, optionally spread from it on.

        One of `by` and `to`, which is aware; `spread` goes with `to`. Raises InvalidRequest.
        """
        problems = [
            *([] if by is None or isinstance(by, timedelta) else [FieldProblem("by", "is a timedelta", by)]),
            *instant_problems("to", to),
            *duration_problems("spread", spread),
        ]
        if (by is None) == (to is None):
            problems.append(FieldProblem("to", "give by or to, and not both"))
        if problems:
            raise InvalidRequest(problems)
        shift = said({"by": by, "to": to, "spread": spread})
        return self._start({**matching.as_json(), "action": "reschedule", **shift}, dry_run, idempotency_key)

    def run_now(
        self,
        matching: JobFilter,
        *,
        rate: float | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Operation:
        """Runs all matching jobs now, at a rate per second. Default: 50."""
        body = without_none({**matching.as_json(), "action": "run_now", "rate": rate})
        return self._start(body, dry_run, idempotency_key)

    def export(self, matching: JobFilter, *, dry_run: bool = False, idempotency_key: str | None = None) -> Operation:
        """Exports all matching jobs, with their payloads, to files that `download` can fetch for 7 days."""
        return self._start({**matching.as_json(), "action": "export"}, dry_run, idempotency_key)

    def get(self, operation_id: str, *, tenant: str) -> Operation:
        """Gets an operation. Raises ApiProblem (404) if the tenant has none with this id, or no longer."""
        return self._read(self._call("GET", _path_of(operation_id, tenant), repeatable=True))

    def list(self, *, tenant: str, page_size: int = 100) -> Iterator[Operation]:
        """Lists the operations of a tenant in the order of their ids, which are random; one request per page."""
        return listed(self._call, _PATH, "operations", Operation, tenant=tenant, limit=page_size)

    def stop(self, operation_id: str, *, tenant: str) -> Operation:
        """Stops an operation at its next step. Changes already made are kept. An operation that has ended is not changed."""
        path = f"{_path_of(operation_id, tenant)}:stop"
        return self._read(self._call("POST", path, repeatable=True, content=b"{}"))

    def wait(self, operation: Operation, *, on_progress: Callable[[Operation], None] | None = None) -> Operation:
        """Waits for the end of an operation: done, stopped or failed. `on_progress` is called with each status."""
        pause = _FIRST_POLL
        while True:
            if on_progress is not None:
                on_progress(operation)
            if operation.is_over:
                return operation
            self._sleep(pause)
            pause = min(2 * pause, _LONGEST_POLL)
            operation = self.get(operation.id, tenant=operation.tenant)

    def download(self, operation: Operation, file: Path) -> int:
        """Writes the jobs of a finished export to a file, one JSON object per line. Returns their number.

        The file appears when it is whole. Raises InvalidRequest for any other operation, and OSError.
        """
        urls = self._parts(operation)
        beside = file.with_name(f"{file.name}.part")
        count = 0
        try:
            with beside.open("wb") as whole:
                for number in range(len(urls)):
                    lines, urls = self._part(operation, urls, number)
                    count += lines.count(b"\n")
                    off_loop(whole.write, lines)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
        return count

    def _part(self, operation: Operation, urls: tuple[str, ...], number: int) -> tuple[bytes, tuple[str, ...]]:
        """A part, and the addresses to go on with: they are good for some minutes, and the parts before took a while."""
        try:
            return off_loop(_unpacked, self._download(urls[number])), urls
        except ApiProblem as problem:
            if problem.status != _EXPIRED:
                raise _missing(problem) from None
        urls = self._parts(operation)
        try:
            return off_loop(_unpacked, self._download(urls[number])), urls
        except ApiProblem as problem:
            raise _missing(problem) from None

    def _parts(self, operation: Operation) -> tuple[str, ...]:
        found = self.get(operation.id, tenant=operation.tenant)
        if found.parts is None:
            raise InvalidRequest([FieldProblem("operation", "is no export that is done", operation.id)])
        return found.parts

    def _start(self, body: dict[str, Any], dry_run: bool, key: str | None) -> Operation:
        asked = {**body, **({"dry_run": True} if dry_run else {})}
        key = key or uuid.uuid4().hex
        return self._read(self._call("POST", _PATH, repeatable=True, content=encode(asked), key=key))

    def _read(self, answer: Any) -> Operation:
        return read_answer(Operation.from_json, answer, is_secret=True)


def _path_of(operation_id: str, tenant: str) -> str:
    return f"{_PATH}/{quote(tenant, safe='')}/{quote(operation_id, safe='')}"


def _missing(problem: ApiProblem) -> ApiProblem:
    detail = "a file of the export cannot be downloaded: files are kept for 7 days"
    return ApiProblem(status=problem.status, code=problem.code, title=problem.title, detail=detail)


def _unpacked(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        lines = unpacker.decompress(packed) + unpacker.flush()
    except zlib.error as error:
        raise Unreachable(f"a file of the export is damaged: {error}", may_have_been_applied=False) from None
    if not unpacker.eof:
        raise Unreachable("a file of the export is cut off: download it again", may_have_been_applied=False)
    return lines
