"""A stage on moto under the eyes of CloudWatch: what its real handlers emit, how they end, and what its queues hold."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from moto import mock_aws

from functions.domain.instants import SECOND
from functions.domain.metrics import DIMENSIONS
from infra.metrics import EMITTED
from testkit.cloudwatch.alarms import Alarms
from testkit.cloudwatch.datapoints import Datapoints, Metric, metric
from tests.integration.stage import NAMESPACE, QUEUES, Stage, TravellingClock


@dataclass
class Watched:
    """The hands of a test. Metrics are counted at the time of the stage, which travels."""

    stage: Stage
    alarms: Alarms
    patch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    data: Datapoints = field(default_factory=Datapoints)
    went_off: set[str] = field(default_factory=set)
    _running: dict[str, ModuleType] = field(default_factory=dict)

    def run(self, name: str, act: Callable[[], Any]) -> Any:
        """Whatever a function does, under its own name; as Lambda does, it is counted, and an error of it, too."""
        self._start(name)
        self.capsys.readouterr()
        at, error, answer = self.now, 1.0, None
        with contextlib.suppress(Exception):
            answer, error = act(), 0.0
        lines = self.capsys.readouterr().out.splitlines()
        self.data.read((json.loads(line) for line in lines if line.startswith("{")), at=at)
        function = "".join(word.capitalize() for word in name.split("_"))
        self.data.put(metric("AWS/Lambda", "Errors", FunctionName=f"{function}Function"), error, at=at)
        self.data.put(metric("AWS/Lambda", "Invocations", FunctionName=f"{function}Function"), 1.0, at=at)
        return answer

    def handle(self, name: str, event: dict[str, Any], context: Any) -> Any:
        """An invocation of a function."""
        return self.run(name, lambda: self.stage.module(name).handler(event, context))

    def scan(self) -> None:
        """One tick of every shard."""
        self.run("scanner", self.stage.scan)

    def work(self, queue: str = "normal", **how: Any) -> None:
        """A batch of a ready queue."""
        self.run("worker", lambda: self.stage.work(queue, **how))

    def look_at_queues(self) -> None:
        """What SQS tells CloudWatch of each queue, each minute: those that there are."""
        for url in self.stage.sqs.list_queues().get("QueueUrls", ()):
            name = url.rsplit("/", 1)[-1]
            first, _, dead = name.partition("-")
            if first in QUEUES:
                self._look_at(url, f"Ready{first.capitalize()}{dead.capitalize()}")

    def stop_functions(self) -> None:
        """Each of them starts anew when it is asked for again."""
        self._running.clear()

    @property
    def now(self) -> float:
        """The stage's time, in seconds."""
        return self.stage.now().timestamp()

    def next_minute(self) -> None:
        """To just after the minute, so that it counts and what follows is in the next; what is off by then is noted."""
        self.stage.travel((60 - self.now % 60) * SECOND + 50 * SECOND / 1000)
        self.went_off |= self.alarms.in_alarm(self.data, at=self.now)

    def undeclared(self) -> set[Metric]:
        """What was emitted and is not declared, so that no page documents it and no graph shows it."""
        return self.data.undeclared(NAMESPACE, emitted=EMITTED, dimensions=DIMENSIONS)

    def in_alarm(self) -> set[str]:
        """The names of all alarms that are off, once this minute is over."""
        self.next_minute()
        return self.alarms.in_alarm(self.data, at=self.now)

    def _start(self, name: str) -> None:
        """Under its own name, which is read when a function starts; what runs already goes on."""
        self.stage.forget_modules()
        self.patch.setenv("POWERTOOLS_SERVICE_NAME", name)
        if name not in self._running:
            with contextlib.suppress(Exception):  # then its invocation fails in the same way, and is counted
                self._running[name] = self.stage.module(name)
        for each, module in self._running.items():
            self.patch.setitem(sys.modules, f"functions.{each}.handler", module)

    def _look_at(self, url: str, name: str) -> None:
        asked = self.stage.sqs.get_queue_attributes(
            QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        )
        visible = int(asked["Attributes"]["ApproximateNumberOfMessages"])
        self.data.put(metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", QueueName=name), visible, at=self.now)
        if not visible:
            return
        peeked = self.stage.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageSystemAttributeNames=["SentTimestamp"]
        )
        sent = [int(message.get("Attributes", {})["SentTimestamp"]) / 1000 for message in peeked["Messages"]]
        age = self.now - min(sent)
        self.data.put(metric("AWS/SQS", "ApproximateAgeOfOldestMessage", QueueName=name), age, at=self.now)


@contextlib.contextmanager
def watched_stage(alarms: Alarms, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Watched]:
    """A stage on moto. Its clock stands still but for what a test travels, or a slow machine would make jobs late."""
    config: Any = {"core": {"reset_boto3_session": False}}
    with mock_aws(config=config):
        begun_at = datetime.now(UTC)
        patch.setattr(TravellingClock, "now", lambda _: begun_at + TravellingClock.ahead)
        yield Watched(Stage(patch), alarms, patch, capsys)
