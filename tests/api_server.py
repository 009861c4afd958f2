"""A small real HTTP server on the loopback that plays the scheduler's API from a script of answers."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """`body` None closes the connection after the request was read: an answer that was lost."""

    status: int
    body: Any
    headers: tuple[tuple[str, str], ...] = ()


LOST = Answer(0, None)


def job_json(**changes: Any) -> dict[str, Any]:
    """A submission's answer."""
    return {
        "id": "j1~acme~x",
        "tenant": "acme",
        "due_at": "2030-01-31T09:00:00Z",
        "state": "scheduled",
        "ring": "far",
        "replayed": False,
        **changes,
    }


def accept_all(request: Request) -> Answer:
    """Takes every job, each with an id made of its target."""
    if request.path == "/v1/jobs:batch":
        jobs = [job_json(id=f"j1~{job['target']}") for job in request.json["jobs"]]
        return Answer(200, {"results": [{"status": 202, "job": job} for job in jobs]})
    return Answer(202, job_json())


class ApiServer:
    """Answers with `answers`, one a request, then with `otherwise`; remembers the requests."""

    def __init__(self, *answers: Answer, otherwise: Callable[[Request], Answer] = accept_all) -> None:
        self.requests: list[Request] = []
        script = list(answers)
        seen = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_request(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                seen.append(request)
                answer = script.pop(0) if script else otherwise(request)
                if answer.body is None:
                    self.close_connection = True
                    return
                content = json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in (*answer.headers, ("Content-Length", str(len(content)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
