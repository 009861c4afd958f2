import asyncio
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ministack.core import lambda_runtime

from tickwheel.local import limits
from tickwheel.local.limits import MOST_OF_A_BODY, MOST_OF_AN_INVOCATION

SOURCE = """
import os, tempfile
from pathlib import Path
HERE = Path(__file__).parent

def handler(event, context):
    if "answer" in event:
        return "x" * event["answer"]
    if "write" in event:
        place = {"code": HERE, "layer": Path(os.environ["_LAMBDA_LAYERS_DIRS"]), "tmp": Path(tempfile.mkdtemp())}[event["write"]]
        try:
            {"file": lambda: (place / "made").write_text("x"), "folder": lambda: (place / "folder").mkdir(),
             "remove": lambda: (HERE / "f.py").unlink(), "read": (HERE / "f.py").read_text}[event["as"]]()
        except OSError as error:
            return error.strerror
        return "done"
"""

Invoke = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Invoke]:
    """A function on ministack's own runtime, with our limits around it."""
    for owner, name in ((lambda_runtime, "_detect_runtime_binary"), (lambda_runtime.Worker, "invoke")):
        monkeypatch.setattr(owner, name, getattr(owner, name))  # put back at the end
    monkeypatch.setenv("_LAMBDA_LAYERS_DIRS", str(tmp_path))
    limits.install()
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("f.py", SOURCE)
    arn = "arn:aws:lambda:us-east-1:000000000000:function:f"
    config = {"Runtime": "python3.13", "Handler": "f.handler", "FunctionName": "f", "FunctionArn": arn, "Timeout": 60}
    worker = lambda_runtime.Worker("f", config, code.getvalue())
    yield lambda event: worker.invoke(event, "r1")
    process, reads = worker._proc, worker._stderr_thread
    worker.kill()
    if process is not None and reads is not None:
        reads.join()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize("place", ["code", "layer"])
@pytest.mark.parametrize("how", ["file", "folder"])
def test_a_function_cannot_write_where_its_code_is(invoke: Invoke, place: str, how: str) -> None:
    assert invoke({"write": place, "as": how})["result"] == "Read-only file system"


def test_a_function_cannot_remove_its_code(invoke: Invoke) -> None:
    assert invoke({"write": "code", "as": "remove"})["result"] == "Read-only file system"


@pytest.mark.parametrize(("place", "how"), [("tmp", "file"), ("tmp", "folder"), ("code", "read")])
def test_a_function_reads_its_code_and_writes_elsewhere(invoke: Invoke, place: str, how: str) -> None:
    assert invoke({"write": place, "as": how})["result"] == "done"


def test_an_event_and_an_answer_may_be_as_large_as_lambda_takes_them(invoke: Invoke) -> None:
    assert invoke({"pad": "x" * (MOST_OF_AN_INVOCATION - 10)})["status"] == "ok"
    assert "RequestEntityTooLarge" in invoke({"pad": "x" * (MOST_OF_AN_INVOCATION - 9)})["error"]
    assert invoke({"answer": MOST_OF_AN_INVOCATION - 2})["status"] == "ok"
    assert "ResponseSizeTooLarge" in invoke({"answer": MOST_OF_AN_INVOCATION - 1})["error"]


@pytest.mark.parametrize(
    ("host", "size", "is_served"),
    [
        (b"0a1b2c3d.execute-api.localhost:4566", MOST_OF_A_BODY, True),
        (b"0a1b2c3d.execute-api.localhost:4566", MOST_OF_A_BODY + 1, False),
        (b"localhost:4566", MOST_OF_A_BODY + 1, True),
    ],
)
def test_the_gateway_of_an_api_refuses_a_body_that_is_too_large(host: bytes, size: int, is_served: bool) -> None:
    served: list[dict[str, Any]] = []
    sent: list[dict[str, Any]] = []

    async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
        served.append(scope)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"Host", host), (b"Content-Length", str(size).encode())]}
    asyncio.run(limits.within_body(serve)(scope, None, send))  # pyright: ignore[reportArgumentType]

    assert bool(served) is is_served
    if not is_served:
        assert sent[0]["status"] == 413
        assert json.loads(sent[1]["body"]) == {"message": "Request Entity Too Large"}
