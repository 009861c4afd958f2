"""A user's handlers in a local cloud that runs: replaced while it runs, and followed run by run.

Worker and API get a layer once, in which nothing stands but where the handlers are on this machine. From then on they look there before
each invocation: nothing is deployed, no process starts anew, and a run that is under way goes on.
"""

import io
import json
import re
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.session import Session

from tickwheel.errors import LocalCloudError
from tickwheel.local.settings import AwsSettings

RUN = "tickwheel_run"
"""The member of a log line that tells of a run."""

_STAGE = "local"
_LAYER_NAME = "tickwheel-dev"

LAYER = "python/tickwheel_handlers/live"
"""In the layer: the file that says where to look."""

_UNPACKED = re.compile(r"[^\"\s]*/(?:tickwheel_handlers|handlers/v[0-9]+)/")
_NOTHING: Mapping[str, Any] = {"Records": []}


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a worker tells of a run, or of a module that it could not import.

    what: `began`, `said`, `ended` or `not_loaded`. at: seconds since 1970. members: the rest, by name.
    """

    what: str
    at: float
    job_id: str
    attempt: int
    members: Mapping[str, Any]

    @property
    def text(self) -> str:
        """What it printed or raised, with paths as they are in the user's folder."""
        return _UNPACKED.sub("", str(self.members.get("text", "")))


def read_line(line: str) -> Told | None:
    """A line of the worker's log; None for one that tells of no run."""
    if RUN not in line:
        return None
    try:
        told = json.loads(line)[RUN]
        members = dict(told)
        return Told(
            what=members.pop("what"),
            at=members.pop("at"),
            job_id=members.pop("job_id", ""),
            attempt=members.pop("attempt", 0),
            members=members,
        )
    except (ValueError, KeyError, TypeError):
        return None


class LiveHandlers:
    """The worker and the API of the stage on a local cloud. Raises LocalCloudError where they are not deployed.

    current: the file that says where the handlers are.
    """

    def __init__(self, aws: AwsSettings, *, current: Path) -> None:
        self._current = current
        settings: dict[str, Any] = aws.as_kwargs()
        config = Config(proxies={}, retries={"total_max_attempts": 1}, read_timeout=120)
        self._lambda: Any = Session().create_client("lambda", config=config, **settings)
        self._logs: Any = Session().create_client("logs", config=config, **settings)
        self._worker = self._function("worker")
        self._api = self._function("api")
        self._group = self._worker["LoggingConfig"]["LogGroup"]
        self._since = int(time.time() * 1000)
        self._seen: set[tuple[str, str]] = set()

    def replace(self, folders: Sequence[Path]) -> None:
        """Let the modules and names in the first of these folders be the handlers from now on, with the libraries in the others."""
        part = self._current.with_suffix(".part")
        part.write_text("".join(f"{folder}\n" for folder in folders))
        part.replace(self._current)
        for function in (self._api, self._worker):
            self._give(function["FunctionName"])
        # It loads them now, and says what it cannot import before a job finds out.
        self._lambda.invoke(FunctionName=self._worker["FunctionName"], Payload=json.dumps(_NOTHING))

    def told(self) -> Iterator[Told]:
        """What was told since it was last asked, in order."""
        events = self._logs.filter_log_events(logGroupName=self._group, startTime=self._since)["events"]
        for event in events:
            mark = (event["logStreamName"], event["message"])
            if mark not in self._seen:
                self._seen.add(mark)
                if (told := read_line(event["message"])) is not None:
                    yield told
        if events:
            newest = max(event["timestamp"] for event in events)
            if newest > self._since:
                self._since = newest
                self._seen = {
                    (each["logStreamName"], each["message"]) for each in events if each["timestamp"] == newest
                }

    def _give(self, function: str) -> None:
        """The layer, where it does not have it: a deployment of the stacks may have taken it away."""
        layers = self._lambda.get_function_configuration(FunctionName=function).get("Layers", ())
        arns = [layer["Arn"] for layer in layers]
        if not any(f":{_LAYER_NAME}:" in arn for arn in arns):
            published = self._lambda.publish_layer_version(
                LayerName=_LAYER_NAME, Content={"ZipFile": _zip_of(LAYER, str(self._current))}
            )
            self._lambda.update_function_configuration(
                FunctionName=function, Layers=[*arns, published["LayerVersionArn"]]
            )

    def _function(self, service: str) -> Mapping[str, Any]:
        for page in self._lambda.get_paginator("list_functions").paginate():
            for found in page["Functions"]:
                variables = found.get("Environment", {}).get("Variables", {})
                if (variables.get("STAGE"), variables.get("POWERTOOLS_SERVICE_NAME")) == (_STAGE, service):
                    return found
        raise LocalCloudError(f"the local cloud has no function {service!r}: deploy to it with `tickwheel local up`")


def _zip_of(name: str, text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, text)
    return out.getvalue()
