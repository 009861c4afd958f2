import json
import re
import threading
from datetime import timedelta

import pytest

from functions.domain.audit import LINE_LIMIT, Action, ActionName, Ending, encode_ending
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.runtime.deadline import OutOfTime
from functions.services.telemetry.audit_trail import REST, Trail
from testkit.builders import NOON, a_job
from testkit.fakes import FakeClock, InMemoryAuditStream, RecordingJournal


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stream(clock: FakeClock) -> InMemoryAuditStream:
    return InMemoryAuditStream(clock)


@pytest.fixture
def journal() -> RecordingJournal:
    return RecordingJournal()


@pytest.fixture
def trail(clock: FakeClock, stream: InMemoryAuditStream, journal: RecordingJournal) -> Trail:
    names = iter(f"line-{number}" for number in range(1, 10_000))
    return Trail(clock=clock, stream=stream, journal=journal, identity=lambda: next(names))


def an_ending(number: int = 1) -> Ending:
    return Ending(job_id=job_id_of(a_job(identity=f"i-{number}")), outcome=State.SUCCEEDED, attempt=1, ended_at=NOON)


def an_action(note: str = "") -> Action:
    return Action(action=ActionName.TENANT_PAUSE, caller="ann", tenant="acme", after={"note": note})


def lost(journal: RecordingJournal) -> list[object]:
    """The lines that the log has, as they are read from it."""
    events = [json.loads(json.dumps(keys)) for name, keys in journal.events if name == "audit_lines_lost"]
    return [line for event in events for line in event["lines"]]


def test_all_lines_of_an_invocation_are_one_record_of_one_request(trail: Trail, stream: InMemoryAuditStream):
    for number in range(10):
        trail.note(an_ending(number))

    trail.flush()

    assert stream.calls == 1
    assert stream.taken == [tuple(encode_ending(an_ending(number)) for number in range(10))]


def test_where_nothing_has_happened_nothing_is_asked(trail: Trail, stream: InMemoryAuditStream):
    trail.flush()
    trail.note(an_ending())
    trail.flush()
    trail.flush()

    assert stream.calls == 1


def test_an_action_is_stamped_and_named_when_it_is_noted(trail: Trail, stream: InMemoryAuditStream, clock: FakeClock):
    trail.note(an_action())
    clock.tick(timedelta(seconds=5))
    trail.note(an_action())
    trail.flush()

    lines = [json.loads(line) for line in stream.lines]
    assert [(line["line_id"], line["happened_at"]) for line in lines] == [
        ("line-1", "2027-03-01T12:00:00.000Z"),
        ("line-2", "2027-03-01T12:00:05.000Z"),
    ]


def test_lines_of_many_threads_are_all_kept(trail: Trail, stream: InMemoryAuditStream):
    threads = [
        threading.Thread(target=lambda: [trail.note(an_ending(number)) for number in range(100)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    trail.flush()

    assert len(stream.lines) == 800


def test_what_the_stream_refuses_is_in_the_log_with_all_that_is_needed_to_load_it(
    trail: Trail, stream: InMemoryAuditStream, journal: RecordingJournal
):
    stream.refuses = True
    trail.note(an_ending())
    trail.note(an_action())

    trail.flush()

    sent = [encode_ending(an_ending())]
    assert [json.dumps(line, separators=(",", ":")) for line in lost(journal)][:1] == sent
    assert lost(journal)[1] == json.loads(
        '{"v":1,"kind":"action","line_id":"line-1","happened_at":"2027-03-01T12:00:00.000Z","tenant":"acme",'
        '"again":false,"action":"tenant.pause","caller":"ann","after":"{\\"note\\":\\"\\"}"}'
    )
    assert journal.counts == {"audit_lines_lost": 2}
    assert journal.events[0][1]["reason"] == "ServiceUnavailableException: Slow down."


def test_a_stream_that_breaks_holds_no_job_up(trail: Trail, stream: InMemoryAuditStream, journal: RecordingJournal):
    stream.fails = OSError("no route to host")
    trail.note(an_ending())

    trail.flush()

    assert len(lost(journal)) == 1
    assert re.fullmatch(
        r"OSError at functions\.services\.telemetry\.audit_trail:\d+", str(journal.events[0][1]["reason"])
    )


def test_lines_that_are_not_taken_in_the_time_of_an_invocation_are_in_the_log(
    trail: Trail, stream: InMemoryAuditStream, journal: RecordingJournal
):
    stream.fails = OutOfTime()  # type: ignore[assignment]  # no Exception, on purpose
    trail.note(an_ending())

    with pytest.raises(OutOfTime):
        trail.flush()

    assert len(lost(journal)) == 1
    assert journal.counts == {"audit_lines_lost": 1}


def test_what_was_lost_once_is_not_sent_later(trail: Trail, stream: InMemoryAuditStream):
    stream.refuses = True
    trail.note(an_ending(1))
    trail.flush()
    stream.refuses = False
    trail.note(an_ending(2))

    trail.flush()

    assert stream.lines == [encode_ending(an_ending(2))]


def test_a_stream_that_is_slow_to_fail_is_left_alone_for_a_while(
    trail: Trail, stream: InMemoryAuditStream, journal: RecordingJournal, clock: FakeClock
):
    stream.refuses, stream.takes = True, timedelta(seconds=2)
    for number in (1, 2):
        trail.note(an_ending(number))
        trail.flush()
    assert (stream.calls, len(lost(journal))) == (1, 2)

    stream.refuses, stream.takes = False, timedelta(0)
    clock.tick(REST)
    trail.note(an_ending(3))
    trail.flush()

    assert stream.lines == [encode_ending(an_ending(3))]


def test_a_stream_that_refuses_at_once_is_asked_again_with_the_next_invocation(
    trail: Trail, stream: InMemoryAuditStream
):
    stream.refuses = True
    for number in (1, 2):
        trail.note(an_ending(number))
        trail.flush()

    assert stream.calls == 2


def test_a_stream_that_is_slow_and_takes_everything_goes_on_being_asked(trail: Trail, stream: InMemoryAuditStream):
    stream.takes = timedelta(seconds=2)
    for number in (1, 2):
        trail.note(an_ending(number))
        trail.flush()

    assert len(stream.lines) == 2


def test_lost_lines_are_logged_in_events_of_a_size_that_the_log_takes(
    trail: Trail, stream: InMemoryAuditStream, journal: RecordingJournal
):
    stream.refuses = True
    for _ in range(40):
        trail.note(an_action(note="x" * 10_000))

    trail.flush()

    sizes = [len(json.dumps(keys)) for _, keys in journal.events]
    assert len(sizes) > 3
    assert max(sizes) < 1.1 * LINE_LIMIT
    assert len(lost(journal)) == 40
    assert journal.counts == {"audit_lines_lost": 40}
