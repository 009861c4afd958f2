from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from functions.api import openapi
from tests.integration.stage import Stage

ROOT = Path(__file__).parents[2]

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}
"""A session reads what it knows of each service once: anew for each test, that is most of its time."""


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A whole stage on moto, empty."""
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        yield Stage(monkeypatch)


@pytest.fixture(scope="session", autouse=True)
def description() -> None:
    """What a synthesis puts beside the handler."""
    openapi.write(ROOT / "functions")
