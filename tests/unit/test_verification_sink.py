"""The target of a run on the local stack: what it does with a call, and what it remembers."""

import socket
from http import HTTPStatus

from functions.domain.instants import SECOND
from testkit.builders import NOON
from verification.history import Answer
from verification.sink import SLOW_TIMEOUT, Manner, Sink


def headers(*, attempt: int = 1, fence: int = 1) -> dict[str, str]:
    return {
        "Idempotency-Key": "acme#invoice",
        "Tickwheel-Tenant": "acme",
        "Tickwheel-Attempt": str(attempt),
        "Tickwheel-Fence": str(fence),
        "Tickwheel-Scheduled-At": "2027-03-01T12:00:00.000Z",
    }


def call(sink: Sink, manner: Manner = Manner.FINE, *, attempt: int = 1, fence: int = 1) -> tuple[HTTPStatus, bool]:
    return sink.take(manner, headers(attempt=attempt, fence=fence), '{"n":1}', at=NOON + SECOND)


def answers(sink: Sink) -> list[Answer]:
    return [call.answer for call in sink.calls]


def test_what_it_has_done_it_does_not_do_again() -> None:
    with Sink() as sink:
        statuses = [call(sink, fence=fence)[0] for fence in (1, 2)]

    assert statuses == [HTTPStatus.OK, HTTPStatus.OK]
    assert answers(sink) == [Answer.EFFECT, Answer.KNOWN]


def test_a_smaller_fence_than_it_has_seen_is_refused() -> None:
    with Sink() as sink:
        statuses = [call(sink, fence=fence)[0] for fence in (2, 1)]

    assert statuses == [HTTPStatus.OK, HTTPStatus.CONFLICT]
    assert answers(sink) == [Answer.EFFECT, Answer.STALE]


def test_what_is_flaky_fails_at_the_first_attempt_and_what_is_broken_at_each() -> None:
    with Sink() as flaky, Sink() as broken:
        for sink, manner in ((flaky, Manner.FLAKY), (broken, Manner.BROKEN)):
            for attempt in (1, 2):
                call(sink, manner, attempt=attempt, fence=attempt)

    assert answers(flaky) == [Answer.FAILED, Answer.EFFECT]
    assert answers(broken) == [Answer.FAILED, Answer.FAILED]


def test_only_the_first_call_of_a_job_is_held() -> None:
    with Sink() as sink:
        held = [call(sink, Manner.HELD, fence=fence)[1] for fence in (1, 2)]

    assert held == [True, False]
    assert sink.held_count == 1


def test_a_call_is_remembered_as_it_came() -> None:
    with Sink() as sink:
        call(sink, Manner.SLOW, attempt=3, fence=7)

    (seen,) = sink.calls
    assert (seen.key, seen.tenant, seen.attempt, seen.fence) == ("acme#invoice", "acme", 3, 7)
    assert (seen.scheduled_at, seen.called_at, seen.until) == (NOON, NOON + SECOND, NOON + SECOND + SLOW_TIMEOUT)
    assert seen.payload == '{"n":1}'


def test_a_request_whose_caller_died_while_it_wrote_is_no_call() -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers().items())
    with Sink() as sink:
        with socket.create_connection(("127.0.0.1", sink.server_port)) as connection:
            connection.sendall(f"POST /fine HTTP/1.1\r\n{head}Content-Length: 20\r\n\r\n{{".encode())
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""

        assert sink.calls == []
