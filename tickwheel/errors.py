"""Everything that Tickwheel's client raises on purpose.

    TickwheelError
    ├── InvalidRequest      what was asked for cannot be sent as it is (also a ValueError)
    │   ├── InvalidJob
    │   └── InvalidSchedule
    ├── NoEndpoint          nothing says where the scheduler is
    ├── NoCredentials       the default credential chain found nothing to sign with, or nothing that can be used
    ├── Unreachable         no usable answer; knows whether the request may have been applied
    ├── ApiProblem          the scheduler answered with a problem (RFC 9457)
    ├── InvalidSignature    a request that a target received is not from Tickwheel, or not as it was sent
    ├── NoPicture           a picture was asked for, and matplotlib is not installed
    └── LocalCloudError     the local cloud
        ├── NotACheckout    not inside a checkout of the repository
        ├── MissingTool     a tool that `make setup` or an extra of the package installs is not there
        ├── CloudDidNotStart
        ├── DeployFailed
        └── NotLoopback     refused: the deployment could have left this machine

The text of an error says what was wrong, with which value, and what to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class TickwheelError(Exception):
    """The root of the tree: catch it to catch everything below."""


@dataclass(frozen=True)
class FieldProblem:
    """One field of a request and what is wrong with it.

    instead: parts of a schedule's definition, one of which to write in its place; the message says what each means.
    """

    field: str
    message: str
    value: Any = None
    instead: tuple[Mapping[str, Any], ...] = ()

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.field}: {self.message}"
        return f"{self.field}: {self.message} (got {self.value!r})"

    def as_json(self) -> dict[str, Any]:
        """For a script to read."""
        instead = {"instead": [dict(each) for each in self.instead]} if self.instead else {}
        return {"field": self.field, "message": self.message, "value": self.value, **instead}


class InvalidRequest(TickwheelError, ValueError):
    """A request that cannot be sent. `problems` has every invalid field."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(str(problem) for problem in problems))


class InvalidJob(InvalidRequest):
    """A job that cannot be sent."""


class InvalidSchedule(InvalidRequest):
    """A schedule that cannot be sent."""


class NoEndpoint(TickwheelError):
    """Neither an argument, nor the environment, nor a running local cloud names an endpoint."""


class NoCredentials(TickwheelError):
    """The default credential chain found nothing to sign with, or what it found cannot be used."""


class Unreachable(TickwheelError):
    """No usable answer came back.

    `may_have_been_applied` is False only when the request provably never reached the scheduler.
    """

    def __init__(self, message: str, *, may_have_been_applied: bool) -> None:
        self.may_have_been_applied = may_have_been_applied
        super().__init__(message)


class ApiProblem(TickwheelError):
    """The scheduler refused a request, or failed. The problem details are those of RFC 9457.

    version: that of the schedule, where it is not the one that a change was for (412); else None.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        title: str,
        detail: str = "",
        errors: Sequence[FieldProblem] = (),
        version: int | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.errors = tuple(errors)
        self.version = version
        super().__init__(self._text())

    def _text(self) -> str:
        named = "; ".join(str(error) for error in self.errors)
        # A detail that only repeats what is wrong with the fields is not said twice.
        is_repeated = bool(named) and all(error.message in self.detail for error in self.errors)
        said = self.title if is_repeated else self.detail or self.title
        # Nor is the status of an answer that said nothing else.
        code = (
            ""
            if said == f"HTTP {self.status}" and self.code == f"http_{self.status}"
            else f" [{self.status} {self.code}]"
        )
        return f"{said}{code}" + (f": {named}" if named else "")

    @classmethod
    def from_json(cls, body: Any, *, status: int) -> "ApiProblem":
        """Reads problem details, and the errors of a gateway in front of the scheduler (`{"message": ...}`)."""
        body = body if isinstance(body, dict) else {}
        listed = body.get("errors")
        errors = [
            FieldProblem(
                str(error.get("field", "")),
                str(error.get("message", "")),
                error.get("value"),
                tuple(each for each in error.get("instead") or () if isinstance(each, dict)),
            )
            for error in (listed if isinstance(listed, list) else [])
            if isinstance(error, dict)
        ]
        title = str(
            body.get("title")
            or body.get("message")
            or body.get("Message")
            or body.get("errorMessage")
            or f"HTTP {status}"
        )
        return cls(
            status=int(body.get("status") or status),
            code=str(body.get("code") or f"http_{status}"),
            title=title,
            detail=str(body.get("detail") or ""),
            errors=errors,
            version=version if isinstance(version := body.get("version"), int) else None,
        )

    def as_json(self) -> dict[str, Any]:
        """The JSON of the problem."""
        members = {name: getattr(self, name) for name in ("status", "code", "title", "detail")}
        version = {} if self.version is None else {"version": self.version}
        return {**members, **version, "errors": [error.as_json() for error in self.errors]}


class InvalidSignature(TickwheelError):
    """A request that is not signed, not by this tenant's key, or too old: answer it with 401."""


class NoPicture(TickwheelError):
    """A picture was requested, but the extra `picture` is not installed."""


class LocalCloudError(TickwheelError):
    """An error of the local cloud."""


class NotACheckout(LocalCloudError):
    """A checkout of the repository is needed, and none was found."""


class MissingTool(LocalCloudError):
    """A tool that `make setup` or an extra of the package installs is missing."""


class CloudDidNotStart(LocalCloudError):
    """The process ended or did not answer in time. `log` has the reason."""

    def __init__(self, message: str, *, log: Path) -> None:
        self.log = log
        super().__init__(f"{message}; its log is {log}")


class DeployFailed(LocalCloudError):
    """The CDK CLI failed. `lines` are the last lines of its output."""

    def __init__(self, message: str, *, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join([message, *(f"  {line}" for line in lines)]))


class NotLoopback(LocalCloudError):
    """Refused before anything ran: the endpoint is not this machine's loopback."""
