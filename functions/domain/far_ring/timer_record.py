"""How a timer is written down: one compact record, the same in a far row and in a ready queue.

A message body is an envelope, `{"v": 1, "t": tenant, "j": [record, …]}`: a list of jobs of one tenant, one job today.
Keys are single letters because a row of up to 1,024 bytes costs one write unit, names included.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from functions.domain.errors import InvalidInput, NewerVersion, Undecodable
from functions.domain.far_ring.run_terms import read_keeps, read_run_terms, write_run_terms
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.jobs.job import Job, Payload, Precision, Priority, Timer
from functions.domain.jobs.occurrence import Keeps, Occurrence
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.jobs.stored_codes import DELIVERIES, JITTERS, OVERLAPS, STRATEGIES
from functions.domain.schedules.defaults import STORED
from functions.domain.schedules.schedule import check_schedule_id
from functions.domain.schedules.state import Link
from functions.domain.targets.options import Method, TargetOptions
from functions.domain.trace import Trace, parse_traceparent

VERSION = 1
INLINE_LIMIT = 8_192
"""Bytes of a written payload above which it goes to the payload store: dearer inline from about there on."""

PAYLOAD_LIMIT = 262_144
"""Bytes of a payload, as compact JSON."""

_COMPRESSION_WORTH = 256
PACKED = "z"
_OCCURRENCE_PARTS = 9
_STORED_OPTIONS = TargetOptions(method=STORED.method)
_MOST = 2**53
_MOST_MS = 24 * 3_600_000
LAST_MS = to_ms(datetime(9999, 1, 1, tzinfo=UTC))


def encode_timer(timer: Timer) -> str:
    """A timer as a compact JSON record. What has its usual value is left out."""
    job = timer.job
    record: dict[str, Any] = {
        "i": job.identity,
        "g": job.target,
        "d": to_ms(timer.due_at),
        "b": job.bucket,
        "h": job.shard,
    }
    if job.scheduled_at != timer.due_at:
        record["s"] = to_ms(job.scheduled_at)
    if job.priority is not STORED.priority:
        record["c"] = job.priority.value
    if job.delivery is not STORED.delivery:
        record["m"] = DELIVERIES.code_of(job.delivery)
    if job.precision is Precision.EXACT:
        record["q"] = 1
    record |= _write_terms(job) | write_run_terms(job)
    if timer.attempt != 1:
        record["a"] = timer.attempt
        record["k"] = timer.backoff // MILLISECOND
    if timer.counted_from is not None:
        record["f"] = [timer.spent, to_ms(timer.counted_from)]
    if timer.counted_on is not None:
        record["v"] = to_ms(timer.counted_on)
    if not timer.is_granted:
        record["y"] = 1
    if timer.not_before is not None and timer.not_before > timer.due_at:
        record["w"] = to_ms(timer.not_before)
    if timer.turns:
        record["G"] = sorted(timer.turns)
    record |= _payload_of(job.payload)
    # SQS refuses the two non-characters; inside a JSON text they can only stand in a string, where an escape is the same.
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def decode_timer(record: str, *, tenant: str) -> Timer:
    """The timer that `encode_timer` wrote. Raises Undecodable for anything else."""
    try:
        return _read_record(json.loads(record), tenant=tenant)
    except _UNREADABLE as error:
        raise Undecodable(f"not a timer record: {type(error).__name__}") from error


def encode_alarm(alarm: ScheduleAlarm) -> str:
    """An alarm as a compact JSON record."""
    link = alarm.link
    record: dict[str, Any] = {
        "i": alarm.schedule_id,
        "v": alarm.version,
        "h": alarm.shard,
        "c": alarm.priority.value,
        "d": to_ms(alarm.alarm_at),
        "f": to_ms(link.at),
        "n": link.index,
    }
    if link.nominal_at != link.at:
        record["m"] = to_ms(link.nominal_at)
    if link.previous_at is not None:
        record["p"] = to_ms(link.previous_at)
    if link.is_awaited:
        record["w"] = 1
    if link.merged_count:
        record["g"] = link.merged_count
    return json.dumps(record, separators=(",", ":"))


def decode_alarm(text: str, *, tenant: str) -> ScheduleAlarm:
    """The alarm that `encode_alarm` wrote. Raises Undecodable for anything else."""
    try:
        record = json.loads(text)
        fire_at = from_ms(record["f"])
        return ScheduleAlarm(
            tenant=tenant,
            schedule_id=record["i"],
            version=record["v"],
            shard=record["h"],
            priority=Priority(record["c"]),
            alarm_at=from_ms(record["d"]),
            link=Link(
                at=fire_at,
                nominal_at=from_ms(record["m"]) if "m" in record else fire_at,
                index=record["n"],
                previous_at=from_ms(record["p"]) if "p" in record else None,
                is_awaited=bool(record.get("w")),
                merged_count=record.get("g", 0),
            ),
        )
    except _UNREADABLE as error:
        raise Undecodable(f"not an alarm record: {type(error).__name__}") from error


def encode_envelope(timers: Sequence[Timer]) -> str:
    """The message body for timers of one tenant."""
    records = ",".join(encode_timer(timer) for timer in timers)
    return f'{{"v":{VERSION},"t":"{timers[0].job.tenant}","j":[{records}]}}'


def decode_envelope(body: str) -> list[Timer]:
    """The timers of a message body, at least one. Raises Undecodable for a body that Tickwheel did not write."""
    try:
        envelope = json.loads(body)
        if envelope["v"] != VERSION:
            raise _unknown_version(envelope["v"])
        tenant = envelope["t"]
        timers = [_read_record(record, tenant=tenant) for record in envelope["j"]]
    except _UNREADABLE as error:
        raise Undecodable(f"not an envelope: {type(error).__name__}") from error
    if not timers:
        raise Undecodable("not an envelope: it holds no job")
    return timers


def _unknown_version(version: object) -> Undecodable:
    if isinstance(version, int) and version > VERSION:
        return NewerVersion(f"an envelope of a newer Tickwheel: this one reads version {VERSION}")
    return Undecodable(f"not an envelope: its version is not {VERSION}")


def unpack(payload: Payload) -> str | None:
    """The JSON text of a payload that is not in the payload store. Raises Undecodable."""
    if payload.packed is None:
        return payload.text
    try:
        inflater = zlib.decompressobj()
        # Bounded: a forged record cannot blow up the worker's memory.
        text = inflater.decompress(base64.b85decode(payload.packed), PAYLOAD_LIMIT + 1)
        if len(text) > PAYLOAD_LIMIT:
            raise Undecodable("a packed payload is larger than the limit")
        if not inflater.eof:
            raise Undecodable("a packed payload is cut off")
        return text.decode()
    except (ValueError, zlib.error) as error:
        raise Undecodable(f"not a packed payload: {type(error).__name__}") from error


def written_size(payload: str) -> int:
    """Bytes that a payload takes in a record."""
    return len(write_payload(payload)[1].encode())


_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    InvalidInput,
    zlib.error,
    RecursionError,
)


def _read_record(record: dict[str, Any], *, tenant: str) -> Timer:
    due_at = _instant(record["d"])
    scheduled_at = _instant(record["s"]) if "s" in record else due_at
    retry = STORED.retry
    if "r" in record:
        strategy, attempts, base, cap, *max_age = record["r"]
        jitter, *intervals = record.get("j", [0])
        retry = RetryPolicy(
            strategy=STRATEGIES.member_of(strategy),
            attempts=attempts,
            base=base * MILLISECOND,
            cap=cap * MILLISECOND,
            max_age=max_age[0] * MILLISECOND if max_age else None,
            intervals=tuple(_whole(interval, most=_MOST_MS) * MILLISECOND for interval in intervals),
            jitter=JITTERS.member_of(jitter) if jitter != 0 else STORED.retry.jitter,
        )
    job = Job(
        tenant=tenant,
        identity=record["i"],
        bucket=_whole(record["b"]),
        shard=_whole(record["h"]),
        target=_written(record["g"]),
        payload=Payload(text=_text(record, "p"), packed=_text(record, "z"), pointer=_text(record, "u")),
        scheduled_at=scheduled_at,
        priority=Priority(record["c"]) if "c" in record else STORED.priority,
        delivery=DELIVERIES.member_of(record["m"]) if "m" in record else STORED.delivery,
        precision=Precision.EXACT if record.get("q") else STORED.precision,
        retry=retry,
        timeout=_whole(record["o"], most=_MOST_MS) * MILLISECOND if "o" in record else STORED.timeout,
        expires_at=_instant(record["e"]) if "e" in record else None,
        occurrence=_read_occurrence(record["n"], read_keeps(record)) if "n" in record else None,
        options=_read_options(record["x"]) if "x" in record else _STORED_OPTIONS,
        tags=tuple(record.get("l", ())),
        trace=_read_trace(record["t"]) if "t" in record else None,
        **read_run_terms(record, scheduled_at=scheduled_at),
    )
    spent, counted_from = record.get("f", (0, None))
    return Timer(
        job=job,
        due_at=due_at,
        attempt=_whole(record.get("a", 1)),
        backoff=_whole(record.get("k", 0), most=_MOST_MS) * MILLISECOND,
        spent=_whole(spent),
        counted_from=_instant(counted_from) if counted_from is not None else None,
        is_granted=not record.get("y"),
        not_before=_instant(record["w"]) if "w" in record else None,
        counted_on=_instant(record["v"]) if "v" in record else None,
        turns=frozenset(map(_whole, record.get("G", ()))),
    )


def _write_terms(job: Job) -> dict[str, Any]:
    """How it is called and tried, where that is not as usual."""
    record: dict[str, Any] = {}
    if job.retry != STORED.retry:
        retry = job.retry
        record["r"] = [
            STRATEGIES.code_of(retry.strategy),
            retry.attempts,
            retry.base // MILLISECOND,
            retry.cap // MILLISECOND,
            *([retry.max_age // MILLISECOND] if retry.max_age is not None else []),
        ]
        # Beside it, where a release that knows neither finds what it can do instead.
        if retry.jitter or retry.intervals:
            record["j"] = [
                JITTERS.code_of(retry.jitter) if retry.jitter else 0,
                *(each // MILLISECOND for each in retry.intervals),
            ]
    if job.timeout != STORED.timeout:
        record["o"] = job.timeout // MILLISECOND
    if job.expires_at is not None:
        record["e"] = to_ms(job.expires_at)
    if job.occurrence is not None:
        record["n"] = _write_occurrence(job.occurrence)
    if job.options != _STORED_OPTIONS:
        record["x"] = _write_options(job.options)
    if job.tags:
        record["l"] = job.tags
    if job.trace is not None:
        record["t"] = str(job.trace)
    return record


def _write_options(options: TargetOptions) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if options.method is not STORED.method:
        record["m"] = options.method
    if options.headers:
        record["h"] = dict(options.headers)
    if options.success_codes:
        record["s"] = options.success_codes
    if options.retry_codes:
        record["r"] = options.retry_codes
    if options.is_async:
        record["a"] = 1
    return record


def _read_options(record: dict[str, Any]) -> TargetOptions:
    return TargetOptions(
        method=Method(record["m"]) if "m" in record else STORED.method,
        headers=tuple(record.get("h", {}).items()),
        success_codes=tuple(record.get("s", ())),
        retry_codes=tuple(record.get("r", ())),
        is_async=bool(record.get("a")),
    )


def _read_trace(text: str) -> Trace:
    trace = parse_traceparent(text)
    if trace is None:
        raise Undecodable("'t' is not a trace")
    return trace


def _write_occurrence(fire: Occurrence) -> list[Any]:
    # What is usual stands at the end, and is left out there.
    values = [
        fire.schedule_id,
        to_ms(fire.fire_at),
        fire.version,
        fire.index,
        to_ms(fire.previous_at) if fire.previous_at else 0,
        to_ms(fire.nominal_at) - to_ms(fire.fire_at),
        OVERLAPS.code_of(fire.overlap),
        fire.pause_after,
        int(fire.is_end_to_start),
    ]
    while not values[-1]:
        values.pop()
    return values


def _read_occurrence(values: list[Any], keeps: Keeps | None) -> Occurrence:
    schedule_id, fire_ms, version, index, previous, moved, overlap, pause_after, is_end_to_start = values + [0] * (
        _OCCURRENCE_PARTS - len(values)
    )
    return Occurrence(
        schedule_id=check_schedule_id(schedule_id),
        fire_at=_instant(fire_ms),
        nominal_at=_instant(fire_ms + moved),
        version=_integer(version),
        index=_whole(index),
        previous_at=_instant(previous) if previous else None,
        overlap=OVERLAPS.member_of(overlap),
        pause_after=_whole(pause_after),
        is_end_to_start=bool(is_end_to_start),
        keeps=keeps,
    )


def _payload_of(payload: Payload) -> dict[str, str]:
    if payload.pointer is not None:
        return {"u": payload.pointer}
    if payload.packed is not None:
        return {"z": payload.packed}
    return dict([write_payload(payload.text)]) if payload.text is not None else {}


def write_payload(text: str) -> tuple[str, str]:
    """The name of its part of a record, PACKED or another, and what that holds."""
    if len(text) >= _COMPRESSION_WORTH:
        packed = base64.b85encode(zlib.compress(text.encode(), 6)).decode()
        # Counted as it will stand in the record, where quotes inside the text are escaped.
        if len(packed) < len(json.dumps(text, ensure_ascii=False).encode()) - 2:
            return PACKED, packed
    return "p", text


def _text(record: dict[str, Any], name: str) -> str | None:
    text = record.get(name)
    if text is not None and not isinstance(text, str):
        raise Undecodable(f"{name!r} is not a text")
    return text if text is None else _written(text)


def _written(text: str) -> str:
    """The text, if it can be written again: half of a surrogate pair can be read from JSON, and stored nowhere."""
    text.encode()
    return text


def _whole(number: object, *, most: int = _MOST) -> int:
    """A count or a place: of another kind it could be read, and would stop whoever works with it."""
    if 0 <= _integer(number) <= most:
        return _integer(number)
    raise Undecodable("a number is out of its range")


def _integer(number: object) -> int:
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    raise Undecodable("what has to be a whole number is none")


def _instant(milliseconds: object) -> datetime:
    """Before the last year of the calendar, so that a wait after it is an instant too."""
    return from_ms(_whole(milliseconds, most=LAST_MS))
