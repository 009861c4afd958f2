"""Which trace a job belongs to, from its submission to its target."""

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import decode_envelope, decode_timer, encode_envelope, encode_timer
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import fingerprint_of, job_of
from functions.domain.trace import SAMPLED, Trace, attempt_trace, parse_traceparent
from functions.ports.targets import Failed
from testkit.builders import LOCAL_WHEEL, a_submission, a_timer
from testkit.scheduler import World
from tests.unit.test_execute import a_message

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{SPAN_ID}-01"
BROUGHT = Trace(trace_id=TRACE_ID, span_id=SPAN_ID, flags=SAMPLED)


def test_a_valid_traceparent_is_read_and_written_as_it_was():
    assert parse_traceparent(TRACEPARENT) == BROUGHT
    assert str(BROUGHT) == TRACEPARENT


@pytest.mark.parametrize(
    ("header", "flags"),
    [
        (f"00-{TRACE_ID}-{SPAN_ID}-00", 0),
        (f"00-{TRACE_ID}-{SPAN_ID}-03", 3),
        # What nobody has defined is not passed on.
        (f"00-{TRACE_ID}-{SPAN_ID}-ff", 3),
        # A later version is read as far as this one goes.
        (f"01-{TRACE_ID}-{SPAN_ID}-01", 1),
        (f"cc-{TRACE_ID}-{SPAN_ID}-01-what-the-future-will-be-like", 1),
        (f"  {TRACEPARENT}\t", 1),
    ],
)
def test_what_a_later_version_adds_does_not_hinder(header: str, flags: int):
    assert parse_traceparent(header) == replace(BROUGHT, flags=flags)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "hello",
        f"00-{TRACE_ID}-{SPAN_ID}",
        f"00-{TRACE_ID}-{SPAN_ID}-1",
        f"00-{TRACE_ID}-{SPAN_ID}-01-",
        f"00-{TRACE_ID}-{SPAN_ID}-01-more",
        f"00-{TRACE_ID}-{SPAN_ID}-01.",
        f"cc-{TRACE_ID}-{SPAN_ID}-01.what-the-future-will-not-be-like",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"0-{TRACE_ID}-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"00-{TRACE_ID[:-1]}-{SPAN_ID}-01",
        f"00-{TRACE_ID}0-{SPAN_ID}-01",
        f"00-{TRACE_ID[:-1]}g-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-0x",
        f"00_{TRACE_ID}_{SPAN_ID}_01",
        # Two headers, as the gateway joins them.
        f"{TRACEPARENT},{TRACEPARENT}",
        f"00-{TRACE_ID}-{SPAN_ID}-\u0661\u0661",
    ],
)
def test_an_invalid_traceparent_is_ignored(header: str | None):
    assert parse_traceparent(header) is None


def test_xray_has_the_same_trace_cut_in_two_and_is_only_told_what_not_to_sample():
    assert BROUGHT.xray == "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7"
    assert replace(BROUGHT, flags=2).xray.endswith(";Sampled=0")


def test_all_attempts_of_a_job_share_its_trace_and_each_is_a_span_of_its_own():
    traces = [
        attempt_trace(None, key="acme#x", attempt=1, fence=1),
        attempt_trace(None, key="acme#x", attempt=2, fence=2),
        attempt_trace(None, key="acme#x", attempt=2, fence=3),
    ]

    assert len({trace.trace_id for trace in traces}) == 1
    assert len({trace.span_id for trace in traces}) == 3
    assert all(parse_traceparent(str(trace)) == trace for trace in traces)
    assert {trace.flags for trace in traces} == {SAMPLED}


def test_other_jobs_have_other_traces():
    traces = {attempt_trace(None, key=f"acme#{number}", attempt=1, fence=1).trace_id for number in range(100)}
    assert len(traces) == 100


def test_a_trace_that_was_brought_goes_on_with_the_attempt_as_its_parent():
    trace = attempt_trace(replace(BROUGHT, flags=0), key="acme#x", attempt=1, fence=1)

    assert (trace.trace_id, trace.flags) == (TRACE_ID, 0)
    assert trace.span_id != SPAN_ID


def test_a_job_keeps_the_trace_that_its_submission_brought():
    job = job_of(a_submission(trace=BROUGHT), identity="x", wheel=LOCAL_WHEEL)

    assert job.trace == BROUGHT
    timer = a_timer(trace=BROUGHT)
    assert decode_timer(encode_timer(timer), tenant="acme") == timer
    assert decode_envelope(encode_envelope([timer])) == [timer]


def test_a_job_without_a_trace_is_written_as_before_there_were_any():
    plain, traced = (encode_timer(a_timer(identity="x", trace=trace)) for trace in (None, BROUGHT))

    assert '"t"' not in plain
    assert len(traced) - len(plain) == 62


def test_a_record_with_a_forged_trace_is_refused():
    record = encode_timer(a_timer(trace=BROUGHT)).replace(TRACE_ID, "0" * 32)

    with pytest.raises(Undecodable, match="is not a trace"):
        decode_timer(record, tenant="acme")


def test_the_same_job_in_another_trace_is_the_same_job():
    assert fingerprint_of(a_submission(trace=BROUGHT)) == fingerprint_of(a_submission())


def test_a_target_is_reported_the_trace_in_each_attempt():
    world = World()
    world.targets.answer = lambda *_: Failed("no", "http_500")
    twice = RetryPolicy(strategy=Strategy.FIXED, attempts=2)
    brought, own = a_timer(trace=BROUGHT, retry=twice), a_timer(retry=twice)

    for timer in (brought, own):
        world.work(a_message(timer))
        world.clock.tick(timedelta(minutes=1))
        assert world.receive_and_work() == []

    traces = [parse_traceparent(call.traceparent) for call in world.calls]
    ids = [trace.trace_id for trace in traces if trace]
    assert ids == [TRACE_ID, TRACE_ID, ids[2], ids[2]]
    assert ids[2] != TRACE_ID
    assert len({trace.span_id for trace in traces if trace}) == 4
