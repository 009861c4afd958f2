import asyncio
from typing import Any

import pytest
from ministack.services import lambda_svc, sqs

from tickwheel.local import recursion
from tickwheel.local.recursion import MOST_INVOCATIONS, format_lineage, next_lineage, parse_lineage

TRACE = "Root=1-6740f0a1-0123456789abcdef01234567;Parent=0123456789abcdef;Sampled=1"


@pytest.mark.parametrize(
    ("header", "lineage"),
    [
        (f"{TRACE};Lineage=1:43e12f0f:15", {"43e12f0f": 15}),
        (f"Lineage=43e12f0f:5|a87bd80c:1;{TRACE}", {"43e12f0f": 5, "a87bd80c": 1}),
        (TRACE, {}),
        ("", {}),
        ("Lineage=;Lineage", {}),
        ("Lineage=1:x:many", {}),
    ],
)
def test_the_counts_of_a_trace_header_are_read(header: str, lineage: dict[str, int]) -> None:
    assert parse_lineage(header) == lineage


def test_what_is_written_is_read_again() -> None:
    lineage = {"43e12f0f": 15, "a87bd80c": 1}
    assert parse_lineage(format_lineage(lineage)) == lineage


def test_an_invocation_counts_itself_in_the_longest_of_its_chains() -> None:
    once = next_lineage([TRACE, ""], function="worker")
    twice = next_lineage([TRACE, f"{TRACE};{format_lineage(once)}"], function="worker")

    assert list(once.values()) == [1]
    assert list(twice.values()) == [2]


def test_functions_of_one_chain_are_counted_apart() -> None:
    worker = next_lineage([], function="worker")
    both = next_lineage([format_lineage(worker)], function="dead_letters")

    assert sorted(both.values()) == [1, 1]


class Cloud:
    """ministack's own functions with ours around them: a function that sends, each time it is invoked, the next message."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, strips: bool = False) -> None:
        self.invocations: list[str] = []
        self.strips = strips
        for module, name in (
            (sqs, "_build_send_sys_attrs"),
            (lambda_svc, "_run_sqs_batch"),
            (lambda_svc, "_xray_trace_id_for_invocation"),
        ):
            monkeypatch.setattr(module, name, getattr(module, name))  # put back at the end
        monkeypatch.setattr(lambda_svc, "_run_sqs_batch", self._invoke)
        recursion.install()

    def _invoke(self, esm: dict[str, Any], function: dict[str, Any], event: dict[str, Any], *_: Any) -> None:
        trace = lambda_svc._xray_trace_id_for_invocation({"TracingConfig": {"Mode": "Active"}})
        assert trace is not None
        self.invocations.append(trace)

    def send(self, header: str) -> dict[str, Any]:
        """What SQS keeps of a message that is sent with a trace header."""
        kept: dict[str, Any] = {}

        async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
            kept.update(sqs._build_send_sys_attrs(0.0, {}))

        scope = {"type": "http", "headers": [(b"X-Amzn-Trace-Id", header.encode())]}
        asyncio.run(recursion.hearing_traces(serve)(scope, None, None))  # pyright: ignore[reportArgumentType]
        return {"attributes": kept}

    def receive(self, *records: dict[str, Any]) -> None:
        lambda_svc._run_sqs_batch({"FunctionName": "f", "UUID": "u"}, {}, {"Records": records}, [], "", "")

    def loop(self, times: int) -> None:
        header = TRACE
        for _ in range(times):
            self.receive(self.send(header))
            header = self.invocations[-1].partition(";Lineage=")[0] if self.strips else self.invocations[-1]


def test_a_loop_through_a_queue_is_invoked_sixteen_times_and_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(monkeypatch)

    cloud.loop(30)

    assert len(cloud.invocations) == MOST_INVOCATIONS


def test_a_loop_whose_messages_do_not_say_so_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(monkeypatch, strips=True)

    cloud.loop(30)

    assert len(cloud.invocations) == 30


def test_one_message_of_a_long_chain_stops_its_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(monkeypatch)
    cloud.loop(MOST_INVOCATIONS)

    cloud.receive(cloud.send(TRACE), cloud.send(cloud.invocations[-1]))

    assert len(cloud.invocations) == MOST_INVOCATIONS


def test_a_message_that_brings_its_own_trace_keeps_that(monkeypatch: pytest.MonkeyPatch) -> None:
    Cloud(monkeypatch)
    own = {"AWSTraceHeader": {"StringValue": "Root=its-own", "DataType": "String"}}

    assert sqs._build_send_sys_attrs(0.0, own)["AWSTraceHeader"] == "Root=its-own"
