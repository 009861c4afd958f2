"""A timer that goes on as its record stands: as it would be sent, and as it would be written, if it were decoded."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import Undecodable
from functions.domain.far_ring.sealed_timer import envelope_of, id_of, opened, seal
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.far_ring.timer_record import decode_envelope, decode_timer, encode_envelope, encode_timer
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery, Payload, Precision, Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.trace import Trace
from functions.ports.timers import sealed_row
from testkit.builders import NOON, a_timer

TIMERS: dict[str, Timer] = {
    "usual": a_timer(),
    "a retry": replace(a_timer(attempt=3), due_at=NOON + 90 * SECOND),
    "exact, of a class, without a row": a_timer(
        priority=Priority.CRITICAL, delivery=Delivery.AT_LEAST_ONCE, precision=Precision.EXACT
    ),
    "waiting": replace(a_timer(), not_before=NOON + timedelta(hours=1)),
    "waiting for what has passed": replace(a_timer(), not_before=NOON - timedelta(hours=1)),
    "in a trace": a_timer(trace=Trace(trace_id="0123456789abcdef" * 2, span_id="0123456789abcdef", flags=0)),
    "packed": a_timer(payload=Payload(text=json.dumps(["x" * 1_000]))),
    "of odd letters": a_timer(payload=Payload(text=json.dumps("é \ufffe \uffff \u2028 😀", ensure_ascii=False))),
}


@pytest.mark.parametrize("timer", TIMERS.values(), ids=TIMERS)
def test_a_sealed_timer_is_sent_as_the_timer_is(timer: Timer) -> None:
    sealed = seal(encode_timer(timer), tenant=timer.job.tenant)

    assert sealed is not None
    assert envelope_of(sealed) == envelope_of(timer) == encode_envelope([timer])
    assert id_of(sealed) == id_of(timer) == str(job_id_of(timer.job))
    assert opened(sealed) == decode_timer(encode_timer(timer), tenant=timer.job.tenant)
    job = timer.job
    asked = (timer.wakes_at, job.tenant, job.priority, job.precision, job.trace)
    found = sealed.job
    assert (sealed.wakes_at, found.tenant, found.priority, found.precision, found.trace) == asked


def test_what_a_newer_release_has_written_into_a_record_goes_on_with_it() -> None:
    record = json.dumps(json.loads(encode_timer(a_timer())) | {"new": 7})
    sealed = seal(record, tenant="acme")

    assert sealed is not None
    assert '"new": 7' in envelope_of(sealed)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: record | {"d": "noon"},
        lambda record: record | {"d": -1},
        lambda record: record | {"d": 10**18},
        lambda record: record | {"w": 1.5},
        lambda record: record | {"s": True},
        lambda record: record | {"c": 9},
        lambda record: record | {"i": "a#b"},
        lambda record: record | {"i": 7},
        lambda record: record | {"b": None},
        lambda record: record | {"h": -1},
        lambda record: record | {"t": "nonsense"},
        lambda record: {name: value for name, value in record.items() if name != "d"},
        lambda record: [record],
        lambda record: "text",
    ],
)
def test_a_record_that_lacks_what_is_asked_is_decoded_by_who_reads_it(spoil: Callable[[Any], Any]) -> None:
    timer = a_timer()
    record = json.dumps(spoil(json.loads(encode_timer(timer))))

    assert seal(record, tenant="acme") is None
    assert sealed_row(timer_key(timer.job, due_at=NOON), record) is None


def test_a_record_with_a_character_that_sqs_refuses_is_written_anew() -> None:
    record = encode_timer(a_timer(payload=Payload(text='"\uffff"'))).replace("\\uffff", "\uffff")

    assert seal(record, tenant="acme") is None


@pytest.mark.parametrize("tenant", ["", 'a"b', "?"])
def test_nothing_is_sealed_for_what_is_no_tenant(tenant: str) -> None:
    assert seal(encode_timer(a_timer()), tenant=tenant) is None


def test_a_row_is_opened_when_its_timer_is_asked_for() -> None:
    timer = a_timer()
    key = timer_key(timer.job, due_at=NOON)
    row = sealed_row(key, encode_timer(timer))
    spoiled = sealed_row(key, json.dumps(json.loads(encode_timer(timer)) | {"o": "x"}))

    assert row is not None
    assert spoiled is not None
    assert (row.key, row.timer, row.raw, row.fault, row.written_at, row.alarm) == (key, timer, "", "", None, None)
    assert row.timer is row.timer
    assert spoiled.timer is None
    assert spoiled.raw == spoiled.sealed.record
    assert spoiled.fault


def test_what_only_its_worker_reads_goes_to_it_and_is_unreadable_there() -> None:
    sealed = seal(json.dumps(json.loads(encode_timer(a_timer())) | {"o": "x"}), tenant="acme")

    assert sealed is not None
    with pytest.raises(Undecodable):
        decode_envelope(envelope_of(sealed))
