"""What a ledger row keeps of what was asked for."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.far_ring.asked_record import decode_asked, encode_asked, room_for_attempts, room_of
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority
from functions.domain.jobs.job_id import job_id_of
from functions.domain.targets.options import Method, TargetOptions
from testkit.builders import NOON, a_job, an_occurrence_timer

ROW = 1_024
_WITHOUT_PATTERN = json.dumps("".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(12)))
"""Too long for a row, and no shorter when it is packed."""


def test_a_job_of_usual_size_is_kept_whole():
    job = a_job(
        priority=Priority.HIGH,
        delivery=Delivery.AT_MOST_ONCE,
        precision=Precision.EXACT,
        expires_at=NOON + timedelta(hours=1),
        tags=("invoice:7",),
        submitted_at=NOON - timedelta(days=3),
    )

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert kept.job == job
    assert kept.has_payload


def test_a_run_of_a_schedule_is_kept_with_its_fire():
    job = an_occurrence_timer().job

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert kept.job == job


def test_of_headers_only_the_names_are_kept():
    options = TargetOptions(method=Method.PUT, headers=(("Authorization", "Bearer secret"),))

    text = encode_asked(a_job(options=options))

    assert "Authorization" in text
    assert "secret" not in text


@pytest.mark.parametrize("payload", [Payload(text=_WITHOUT_PATTERN), Payload(packed="x" * 8_000)])
def test_a_payload_that_does_not_fit_is_left_out_and_that_is_known(payload: Payload):
    job = a_job(payload=payload)

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert (kept.job, kept.has_payload) == (replace(job, payload=Payload()), False)


def test_the_pointer_to_a_large_payload_is_kept():
    job = a_job(payload=Payload(pointer="jobs/acme/job-1"))

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert (kept.job.payload, kept.has_payload) == (job.payload, True)


def test_a_job_without_a_payload_is_known_to_have_none():
    job = a_job(payload=Payload())

    kept = decode_asked(encode_asked(job), job_id_of(job))

    assert kept is not None
    assert (kept.job.payload, kept.has_payload) == (Payload(), True)


@pytest.mark.parametrize("length", [100, 250, 2_000])
@pytest.mark.parametrize("name", ["a" * 4, "a" * 64])
def test_it_leaves_room_for_the_longest_error_and_an_attempt_in_a_row_of_one_write_unit(name: str, length: int):
    job = a_job(tenant=name, target="https://e.example/" + "p" * length, tags=("t" * 64, "u" * 64))

    text = encode_asked(job)

    assert len(text.encode()) + room_for_attempts(job) <= room_of(job)
    assert room_for_attempts(job) >= 100
    assert room_of(job) + 400 + len(job.key) + len(str(job_id_of(job))) < ROW


def test_of_a_target_that_does_not_fit_nothing_is_kept():
    assert encode_asked(a_job(target="https://example.com/" + "p" * 2_000)) == ""


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"g":7}', '{"l":["x"]}', '{"g":"handler:x","S":"soon"}'])
def test_what_is_no_such_record_is_none(text: str):
    assert decode_asked(text, job_id_of(a_job())) is None


def test_what_its_id_says_is_not_kept_twice():
    job: Job = a_job(
        target="handler:echo", payload=Payload(), retry=replace(a_job().retry), timeout=timedelta(seconds=30)
    )

    assert encode_asked(job) == '{"g":"handler:echo","r":[1,3,10000,600000]}'
