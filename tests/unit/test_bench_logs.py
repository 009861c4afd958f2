"""What an execution writes to the log, counted where CloudWatch counts it."""

import pytest

from bench import logs
from functions.services.jobs.ends import Ends


def test_an_execution_writes_its_line_and_its_share_of_its_batch() -> None:
    found = logs.measure()

    assert found["near"] == pytest.approx(found["far"], rel=0.1)
    assert 200 < found["near"] < logs.BUDGETS["near"]
    assert found["tick"] == 0


def test_whoever_asks_for_every_line_gets_those_of_idle_ticks() -> None:
    assert logs.measure("DEBUG")["tick"] > 100


def test_a_longer_line_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = logs.measure()["near"]
    noted = Ends.succeeded

    def noting_twice(self: Ends, *arguments, **named) -> None:
        noted(self, *arguments, **named)
        self.journal.event("parked", job_id="x" * 100, until="", reason="")

    monkeypatch.setattr(Ends, "succeeded", noting_twice)

    assert logs.measure()["near"] > before + 100
