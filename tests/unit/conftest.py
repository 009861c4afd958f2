import pytest

from functions.adapters import clients
from tests.either_client import KINDS, Chosen


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between the tries of a call: none takes its time."""
    made: list[float] = []
    monkeypatch.setattr(clients.time, "sleep", made.append)
    return made


@pytest.fixture(autouse=True)
def kind_of_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client that `made_client` makes."""
    monkeypatch.setattr(Chosen, "kind", getattr(request, "param", KINDS[0]))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of the client run for both, where they make theirs by `made_client`, or by what another module makes of it."""
    module = metafunc.module
    name = "" if module is None else module.__name__
    if name.rpartition(".")[2].startswith("test_client") and {"a_client", "made_client"} & set(vars(module)):
        metafunc.parametrize("kind_of_client", KINDS, indirect=True)
