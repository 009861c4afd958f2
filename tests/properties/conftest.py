import pytest
from hypothesis import settings

from functions.domain.far_ring import fairness

# A busy machine must not fail a test: what a property may cost is a matter of the benchmarks.
settings.register_profile("tickwheel", deadline=None)
settings.load_profile("tickwheel")


@pytest.fixture(autouse=True)
def _small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a job a turn, the few jobs of a history are many."""
    monkeypatch.setattr(fairness, "MIN_QUANTUM", 1)
