"""The CPU of calls of targets: measured on a target of this machine, and held to a ratio."""

import pytest
from rich.console import Console

from bench import calls


def test_a_kept_connection_a_new_one_and_a_line_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALLS", 3)

    found = calls.measure()

    assert found.keys() == {"call_kept", "call_new", "log_line"}
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.parametrize(("new", "broken"), [(7.9, 0), (8.1, 1)])
def test_a_new_connection_that_takes_too_much_is_told(new: float, broken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "measure", lambda: {"call_kept": 1.0, "call_new": new, "log_line": 0.1})
    monkeypatch.setattr(calls, "write_result", lambda *_: None)

    assert len(calls.run(Console(quiet=True))) == broken
