"""How much processor time a write to the ledger takes, by the client that is deployed and by boto3, which other workers have.

Another process answers each at once, over a socket of this machine: TLS is in neither.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

import boto3
from rich.console import Console

from bench.boundary import hearing
from bench.results import print_table, write_result
from functions.adapters import clients
from functions.adapters.system_clock import SystemClock

ROUNDS = 60
CALLS = 20

_CLAIM: Mapping[str, Any] = {
    "TableName": "ledger",
    "Key": {"pk": {"S": "acme#01J0000000000000000000000"}},
    "UpdateExpression": "SET #s = :running, #o = :owner, #f = :fence, #l = :lease, #t = :ttl",
    "ConditionExpression": "attribute_not_exists(pk) OR #s = :waiting AND #f < :fence",
    "ExpressionAttributeNames": {"#s": "s", "#o": "o", "#f": "f", "#l": "l", "#t": "t"},
    "ExpressionAttributeValues": {
        ":running": {"S": "running"},
        ":waiting": {"S": "waiting"},
        ":owner": {"S": "0123456789abcdef0123456789abcdef"},
        ":fence": {"N": "1"},
        ":lease": {"N": "1803902580000"},
        ":ttl": {"N": "1805802580"},
    },
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}


def run(console: Console) -> list[str]:
    """Measure, print, write requests.json; nothing is held to a budget."""
    found = measure()
    rows = {name: f"{ms:.3f} ms" for name, ms in found.items()}
    print_table(console, "Processor time of a write to the ledger, over a socket", of="by", figure="CPU", rows=rows)
    write_result("requests.json", {"calls": CALLS, "processor_ms": {name: round(ms, 3) for name, ms in found.items()}})
    return []


def measure() -> Mapping[str, float]:
    """Milliseconds of a request, of the fastest round."""
    with _answering() as url, hearing({}, endpoints={"dynamodb": url}):
        makers: Mapping[str, Any] = {
            "this scheduler": clients.dynamodb(SystemClock()),
            "boto3": boto3.client("dynamodb"),
        }
        return {name: _fastest(client.update_item) for name, client in makers.items()}


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: 2\r\n\r\n{}")


def _serve(port: Connection) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        port.send(server.server_port)
        server.serve_forever()


@contextmanager
def _answering() -> Iterator[str]:
    """The address of a process that answers, until the end."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _fastest(call: Callable[..., Any]) -> float:
    rounds: list[float] = []
    for _ in range(ROUNDS + 1):
        began = time.process_time()
        for _ in range(CALLS):
            call(**_CLAIM)
        rounds.append((time.process_time() - began) / CALLS * 1_000)
    return min(rounds[1:])  # the first has read the credentials
