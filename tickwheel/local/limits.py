"""Limits of AWS that ministack does not know: of bodies, of what an invocation takes and gives, and of where a function may write.

An HTTP API takes 10 MB (https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html), a synchronous
invocation 6 MB each way (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html). A function may write to `/tmp`
and nowhere else.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ministack.core import lambda_runtime

MOST_OF_A_BODY = 10_000_000
MOST_OF_AN_INVOCATION = 6 * 1024 * 1024

Serve = Callable[..., Awaitable[None]]

_API = b".execute-api."

_READ_ONLY = """
def _keep_code_read_only():
    import errno, os, sys
    folders = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "code")]
    folders += [each for each in os.environ.get("_LAMBDA_LAYERS_DIRS", "").split(os.pathsep) if each]
    changes = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.symlink", "os.link"}
    def refuse(event, arguments):
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event in changes:
            path = arguments[0]
        else:
            return
        if isinstance(path, (str, bytes)):
            whole = os.path.abspath(os.fsdecode(path))
            if any(whole.startswith(folder + os.sep) for folder in folders):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), whole)
    sys.addaudithook(refuse)
_keep_code_read_only()
"""
"""Comes before what a process of a function runs. File permissions would not do: whoever runs tests may be root."""


def install() -> None:
    """Let ministack's functions keep these limits."""
    detect = lambda_runtime._detect_runtime_binary  # noqa: SLF001

    def detect_read_only(runtime: str) -> tuple[str, str]:
        binary, script = detect(runtime)
        return binary, _READ_ONLY + script if runtime.startswith("python") else script

    lambda_runtime._detect_runtime_binary = detect_read_only  # noqa: SLF001
    lambda_runtime.Worker.invoke = within_invocation(lambda_runtime.Worker.invoke)


def within_body(serve: Serve) -> Serve:
    """An ASGI application before another: an API gets no body that is larger than a gateway takes."""

    async def within(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.lower(): value for name, value in scope["headers"]}
            if _API in headers.get(b"host", b"") and int(headers.get(b"content-length", b"0")) > MOST_OF_A_BODY:
                await _refuse(send)
                return
        await serve(scope, receive, send)

    return within


def within_invocation(invoke: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """An invocation of which neither the event nor the answer is larger than Lambda takes."""

    def within(worker: Any, event: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        if _size_of(event) > MOST_OF_AN_INVOCATION:
            return _failed(
                "RequestEntityTooLargeException", f"Request must be smaller than {MOST_OF_AN_INVOCATION} bytes"
            )
        outcome = invoke(worker, event, *arguments, **named)
        if _size_of(outcome.get("result")) > MOST_OF_AN_INVOCATION:
            text = f"Response payload size exceeded maximum allowed payload size ({MOST_OF_AN_INVOCATION} bytes)."
            return _failed("Function.ResponseSizeTooLarge", text)
        return outcome

    return within


def _size_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _failed(kind: str, text: str) -> dict[str, Any]:
    return {"status": "error", "error": f"{kind}: {text}"}


async def _refuse(send: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"message": "Request Entity Too Large"}).encode()})
