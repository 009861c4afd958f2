"""Work behind the answer of an invocation: whoever asked does not wait for it.

Lambda freezes a process once it has answered, unless an extension of it is still at work. This is an internal one, a thread,
which says when it is done; only then does the process get another invocation
(https://aws.amazon.com/blogs/compute/running-code-after-returning-a-response-from-an-aws-lambda-function/,
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from functions.domain.faults import fault_of
from functions.runtime.observability import logger

RUNTIME_API = "AWS_LAMBDA_RUNTIME_API"
"""The variable with the host and port where Lambda talks to a process."""

_EXTENSIONS = "/2020-01-01/extension"
_IDENTIFIER = "Lambda-Extension-Identifier"


class AfterAnswer:
    """Does a work once for each invocation: behind its answer where that is possible, before it elsewhere.

    Made while a process starts, because Lambda takes extensions on only then. What an answer promises must not be left to it: a
    process that dies in between has answered, and has not done it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._answers = threading.Semaphore(0)
        self._lambda = _Lambda.here()
        if self._lambda is not None:
            threading.Thread(target=self._serve, args=(self._lambda,), daemon=True, name="after-answer").start()

    def answered(self) -> None:
        """Say once an invocation, at its very end, that its answer is ready."""
        if self._lambda is None:
            self._work()
        else:
            self._answers.release()

    def _serve(self, service: _Lambda) -> None:
        while service.next():
            self._answers.acquire()
            try:
                self._work()
            except Exception as error:  # noqa: BLE001  Lambda waits for the thread: it has to come back
                logger.error("flush_failed", extra={"error": fault_of(error)})
        # Whoever is not heard of is waited for until the timeout: rather begin anew.
        os._exit(1)


class _Lambda:
    """The place where an extension reports to Lambda."""

    def __init__(self, connection: HTTPConnection, identifier: str) -> None:
        self._connection = connection
        self._identifier = identifier

    @classmethod
    def here(cls) -> _Lambda | None:
        """Registered with the Lambda that the process runs in; None where there is none, or one that takes no extensions."""
        if RUNTIME_API not in os.environ:
            return None
        connection = HTTPConnection(os.environ[RUNTIME_API])
        body = json.dumps({"events": ["INVOKE"]})
        headers = {"Lambda-Extension-Name": "after-answer", "Content-Type": "application/json"}
        # Whoever has no answer here is no Lambda that could invoke: it may begin anew.
        connection.request("POST", f"{_EXTENSIONS}/register", body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        identifier = answer.headers.get(_IDENTIFIER)
        if answer.status != HTTPStatus.OK or not identifier:
            connection.close()
            return None
        return cls(connection, identifier)

    def next(self) -> bool:
        """Say that all is done, and wait for the next invocation; whether there is one."""
        try:
            self._connection.request("GET", f"{_EXTENSIONS}/event/next", headers={_IDENTIFIER: self._identifier})
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, HTTPException):
            return False
        return answer.status == HTTPStatus.OK
