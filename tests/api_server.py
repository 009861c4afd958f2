"""A small real HTTP server on the loopback that plays the scheduler's API from a script of answers."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer


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
    """`body` None closes the connection after the request was read: an answer that was lost. Bytes are sent as they are."""

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


class ApiServer(LoopbackServer):
    """Answers with `answers`, one a request, then with `otherwise`; remembers the requests."""

    def __init__(self, *answers: Answer, otherwise: Callable[[Request], Answer] = accept_all) -> None:
        self.requests: list[Request] = []
        script = self._script = list(answers)
        seen = self.requests

        class Handler(KeptAliveRequest):
            def handle_request(self) -> None:
                body = self.read_body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                seen.append(request)
                answer = script.pop(0) if script else otherwise(request)
                if answer.body is None:
                    self.close_connection = True
                    return
                content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in (*answer.headers, ("Content-Length", str(len(content)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_request  # noqa: N815

        super().__init__(Handler, poll_seconds=0.01)

    def answer_with(self, *answers: Answer) -> None:
        """These come next: for those that name the server itself."""
        self._script.extend(answers)

    @property
    def port(self) -> int:
        return self.server_port
