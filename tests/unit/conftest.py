import pytest

from functions.adapters import clients


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between the tries of a call: none takes its time."""
    made: list[float] = []
    monkeypatch.setattr(clients.time, "sleep", made.append)
    return made
