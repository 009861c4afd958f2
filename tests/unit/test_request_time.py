"""What a request takes of a processor, by this client and by boto3."""

import pytest

from bench import request_time


def test_this_client_takes_less_of_a_processor_than_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_time, "ROUNDS", 5)

    found = request_time.measure()

    assert 0 < found["this scheduler"] < found["boto3"]
