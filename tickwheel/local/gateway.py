"""The process that is the local cloud: ministack, with what a child of ours and a faithful cloud need.

Run as `python -m tickwheel.local.gateway [--lifeline]`; its settings come from the environment (see cloud.py).

It tells ministack that requests arrived over TLS, as they do in AWS: our buckets and queues refuse plain HTTP by
policy, ministack enforces that, and a certificate for the loopback would have to be trusted by every tool.

It authorises SQS batches as AWS does: there is no action `sqs:SendMessageBatch` in IAM, and a policy that is right for
AWS does not name one.

It looks for messages whose delay has passed as promptly as SQS delivers them; ministack alone would look once a second,
and a second is what our lag is measured against.

It lets the process of a function die alone. ministack alone would then end all processes of that function, in the middle
of whatever they do, those included that are about to start in its place.

It throttles DynamoDB on request (throttling.py), stops recursive loops of functions (recursion.py), and keeps limits of bodies,
invocations and folders (limits.py).

It lets queries of Athena read thousands of small files (athena.py).

With `--lifeline` it ends when its standard input does. The kernel closes that pipe when the parent dies, however it
dies, so no cloud and no Lambda outlives a demo, benchmark or test that was killed.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import ministack.app as ministack
from ministack.core import iam_actions, lambda_runtime
from ministack.core.concurrency import esm_wake

from tickwheel.local import athena, limits, recursion
from tickwheel.local.throttling import Throttling

_TLS = (b"x-forwarded-proto", b"https")
_POLL_SECONDS = 0.05
_ACTION_OF_BATCH = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}


def main() -> None:
    """Serves until it is stopped."""
    if "--lifeline" in sys.argv[1:]:
        threading.Thread(target=_end_with_parent, name="lifeline", daemon=True).start()
    threading.Thread(target=_poll_queues, name="poll-queues", daemon=True).start()
    # Every Lambda unpacks a layer of its own: what it compiled would never be read again, only deleted.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.argv = sys.argv[:1]  # ministack reads the arguments too
    athena.install()
    recursion.install()
    limits.install()
    ministack.app = Throttling(limits.within_body(_behind_tls(recursion.hearing_traces(ministack.app))))  # pyright: ignore[reportAttributeAccessIssue]
    iam_actions.extract_iam_action = _as_aws_names_it(iam_actions.extract_iam_action)
    lambda_runtime.Worker.invoke = _dying_alone(lambda_runtime.Worker.invoke)
    ministack.main()


def _behind_tls(serve: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def behind_tls(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], _TLS]}
        await serve(scope, receive, send)

    return behind_tls


def _as_aws_names_it(extract: Callable[..., str | None]) -> Callable[..., str | None]:
    def action_of(*arguments: Any, **named: Any) -> str | None:
        action = extract(*arguments, **named)
        return _ACTION_OF_BATCH.get(action or "", action)

    return action_of


def _dying_alone(invoke: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def invoke_alone(worker: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return invoke(worker, *arguments, **named)
        except Exception as error:  # noqa: BLE001  however it died, its invocation has failed, and the next starts another
            process, worker._proc = worker._proc, None  # noqa: SLF001
            if process is not None:
                process.kill()
                process.wait()
            return {"status": "error", "error": f"{type(error).__name__}: {error}"}

    return invoke_alone


def _poll_queues() -> None:
    while True:
        time.sleep(_POLL_SECONDS)
        esm_wake.set()


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    # The group is ours alone: the parent started it, and the Lambdas are in it. Their state goes with the cloud.
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
