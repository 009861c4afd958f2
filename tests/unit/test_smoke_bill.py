"""What the smoke test tells of the bill: a day of an account, beside what `tickwheel cost` assumes."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from moto import mock_aws

from bench.cost_inputs import model_of
from bench.cost_terms import Assumed
from infra.stage import Stage
from smoke import billed
from smoke.billed import Day, Reported, told
from smoke.faults import Wrong
from smoke.ground import Ground
from testkit.resources import Resources
from tests import command_line
from tests.api_server import ApiServer

DEV = Stage.named("dev")
MODEL = model_of(DEV, Assumed())
WORKER = Reported(invocations=50_000, billed_ms=151.4, starts=400, start_ms=640)
SCANNER = Reported(invocations=5_760, billed_ms=42, starts=100, start_ms=1_140)
DAY = Day(received=120_000, empty=172_800, reported={"Worker": WORKER, "Scanner": SCANNER})


def test_each_figure_of_a_day_is_beside_what_is_assumed():
    text = told(DAY, MODEL)

    assert "2.4 messages a batch (assumed 1.0)" in text
    # 2.4 jobs of 0.7 + 2 * 0.379 ms at 512 of 1,769 MB, two calls, an invocation, targets of 100 ms
    assert "a batch billed 151 ms (assumed 127)" in text
    assert "7,200 receives of nothing an hour (assumed 4,500 of an idle stage)" in text
    # 500 of 55,760, in (400 * 640 + 100 * 1,140) / 500 ms
    assert "0.90% of invocations started anew, in 740 ms (assumed 1.00%, 1,000 ms)" in text
    assert "a tick billed 42 ms (assumed 50 of an idle one)" in text


def test_the_command_that_it_ends_with_is_taken():
    command = told(DAY, MODEL).partition(": tickwheel ")[2]

    assert command.endswith("--fill 2.4 --target-ms 0 --batch-ms 151 --cold 0.0090 --start-ms 740 --tick-ms 42")
    result = command_line.run(*command.split(), "--json")
    assert result.exit_code == 0, result.output


def test_a_stage_without_jobs_knows_no_batches_and_offers_none():
    text = told(Day(received=0, empty=100, reported={}), MODEL)

    assert "no job has run in the last day" in text
    assert "--fill" not in text


class Account:
    """An account with these resources, whose logs and metrics answer the same to whoever asks."""

    def __init__(self, reports: Sequence[dict[str, str]], *, costs: dict[str, str]) -> None:
        self._reports, self._costs = reports, costs
        self.asked: list[dict[str, Any]] = []

    def get_paginator(self, _: str) -> "Account":
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        groups = [("AWS::Logs::LogGroup", f"{name}FunctionLogs01234567", name.lower()) for name in billed.FUNCTIONS]
        queues = [
            ("AWS::SQS::Queue", name, f"https://sqs/{name}")
            for name in ("ReadyNormal0A", "ReadyNormalDead0B", "Other0C")
        ]
        yield {
            "StackResourceSummaries": [
                {"ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical}
                for kind, logical, physical in (*groups, *queues)
            ]
        }

    def get_metric_statistics(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return {"Datapoints": [{"Sum": 1_000.0}, {"Sum": 200.0}]}

    def start_query(self, **asked: Any) -> dict[str, str]:
        self.asked.append(asked)
        return {"queryId": "q"}

    def get_query_results(self, **_: Any) -> dict[str, Any]:
        rows = [[{"field": field, "value": value} for field, value in row.items()] for row in self._reports]
        return {"status": "Complete", "results": rows}

    def get_cost_and_usage(self, **_: Any) -> dict[str, Any]:
        groups = [{"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": usd}}} for name, usd in self._costs.items()]
        return {"ResultsByTime": [{"Groups": groups}]}


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    with ApiServer() as server, mock_aws():
        ground = Ground(DEV, {"region_name": "eu-west-1"}, endpoint=server.url)
        yield ground
        ground.close()


def on(ground: Ground, account: Account, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ground, "aws", lambda _: account)
    ground.resources = Resources(account, ["Tickwheel-dev-Scheduler"])
    return billed.bill(ground)


def test_an_account_is_asked_for_a_day_of_its_queues_logs_and_costs(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = {"@log": "123456789012:worker", "invocations": "600", "billed_ms": "130.2", "starts": "0"}
    account = Account([report], costs={"USE1-Requests": "0.4", "USE1-Alarm": "0.2"})

    seen = on(ground, account, monkeypatch)

    assert seen.startswith("0.60 USD yesterday: USE1-Requests 0.400, USE1-Alarm 0.200; the last 24 hours of dev: ")
    # 1,200 of the one ready queue in 600 batches; nothing of three queues, 3,600 times in 24 hours
    assert "2.0 messages a batch" in seen
    assert "150 receives of nothing an hour" in seen
    assert "started anew" not in seen
    received = [each for each in account.asked if each.get("MetricName") == "NumberOfMessagesReceived"]
    assert [each["Dimensions"][0]["Value"] for each in received] == ["ReadyNormal0A"]


def test_without_a_bill_it_is_wrong_and_tells_the_figures_all_the_same(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Wrong, match=r"no usage of yesterday; the last 24 hours of dev: .* Cost Explorer has them"):
        on(ground, Account([], costs={}), monkeypatch)
