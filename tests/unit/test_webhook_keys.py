import json
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from functions.adapters.webhook_keys import KEPT, SecretsManagerWebhookKeys
from functions.domain.errors import MalformedWebhookSecret
from functions.domain.targets.webhooks import first_use_name, name_to_make
from testkit.fakes import FakeClock

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}
"""A session reads what it knows of each service once."""


class Store:
    """A secret, those who read it, and how often they did."""

    def __init__(self) -> None:
        self.client: SecretsManagerClient = boto3.client("secretsmanager")
        self.clock = FakeClock()
        self.reads = 0
        self.arn = self.client.create_secret(Name="keys", SecretString=secret("k1"))["ARN"]
        self.keys = SecretsManagerWebhookKeys(self.client, self.arn, clock=self.clock)
        self.client.meta.events.register("before-call.secretsmanager.GetSecretValue", self._count)

    def put(self, text: str) -> None:
        self.client.put_secret_value(SecretId=self.arn, SecretString=text)

    def delete(self) -> None:
        self.client.delete_secret(SecretId=self.arn)

    def ids(self) -> list[str]:
        return [key.id for key in self.keys.masters()]

    def _count(self, **_: object) -> None:
        self.reads += 1


def secret(current: str, previous: str | None = None) -> str:
    fields = {"current_id": current, "current": current * 32}
    return json.dumps(fields | ({"previous_id": previous, "previous": previous * 32} if previous else {}))


@pytest.fixture
def store() -> Iterator[Store]:
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        yield Store()


def test_nothing_is_read_before_a_key_is_asked_for(store: Store):
    assert store.reads == 0
    assert store.ids() == ["k1"]
    assert store.reads == 1


def test_keys_are_used_for_five_minutes_and_then_read_again(store: Store):
    store.ids()
    store.put(secret("k2", "k1"))

    store.clock.tick(KEPT - timedelta(seconds=1))
    assert store.ids() == ["k1"]
    store.clock.tick(timedelta(seconds=1))
    assert store.ids() == ["k2", "k1"]
    assert (store.reads, timedelta(minutes=5)) == (2, KEPT)


def test_who_shows_keys_reads_them_anew(store: Store):
    store.ids()
    store.put(secret("k2"))

    assert [key.id for key in store.keys.read()] == ["k2"]
    assert store.ids() == ["k2"]


def test_while_the_store_fails_calls_go_on_with_the_keys_of_before(store: Store):
    store.ids()
    store.delete()
    store.clock.tick(KEPT)

    assert [store.ids() for _ in range(3)] == [["k1"]] * 3
    assert store.reads == 2  # a store that fails is not asked by every call

    store.client.restore_secret(SecretId=store.arn)
    store.put(secret("k2"))
    store.clock.tick(timedelta(seconds=30))
    assert store.ids() == ["k2"]


def test_a_rotation_that_went_wrong_leaves_the_keys_of_before_in_use(store: Store):
    store.ids()
    store.put("oops")
    store.clock.tick(KEPT)

    assert store.ids() == ["k1"]
    with pytest.raises(MalformedWebhookSecret):
        store.keys.read()


def test_without_any_key_nothing_can_be_signed(store: Store):
    store.delete()

    with pytest.raises(ClientError):
        store.ids()


FIRST_USE = "arn:aws:secretsmanager:us-east-1:123456789012:secret:Tickwheel-small-WebhookKeys"


class TestFirstUse:
    """Of a stage whose secret is made by the first function that needs it."""

    def keys(self, store: Store, secret_id: str = FIRST_USE) -> SecretsManagerWebhookKeys:
        return SecretsManagerWebhookKeys(store.client, secret_id, clock=store.clock)

    def test_the_first_who_asks_makes_the_secret_and_all_others_read_it(self, store: Store):
        first, second = self.keys(store).masters(), self.keys(store).masters()

        assert first == second
        assert [key.id for key in first] == ["k1"]
        assert len(first[0].secret) >= 32
        named = [each.get("Name") for each in store.client.list_secrets()["SecretList"]]
        assert sorted(map(str, named)) == ["Tickwheel-small-WebhookKeys", "keys"]

    def test_of_two_who_make_it_at_once_both_sign_with_what_stands_there(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ):
        made, other = self.keys(store), self.keys(store)
        create = store.client.create_secret
        found: list[Any] = []

        def create_behind_another(**request: Any) -> Any:
            monkeypatch.setattr(store.client, "create_secret", create)
            found.append(other.masters())
            return create(**request)

        monkeypatch.setattr(store.client, "create_secret", create_behind_another)

        assert [made.masters()] == found

    def test_one_that_came_with_its_stage_is_never_made_anew(self, store: Store):
        store.client.delete_secret(SecretId=store.arn, ForceDeleteWithoutRecovery=True)

        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            store.ids()

        assert store.client.list_secrets()["SecretList"] == []

    def test_one_that_waits_for_its_deletion_is_not_replaced(self, store: Store):
        self.keys(store).masters()
        store.client.delete_secret(SecretId="Tickwheel-small-WebhookKeys")

        with pytest.raises(ClientError, match="InvalidRequestException"):
            self.keys(store).masters()

    def test_what_may_be_made_is_told_by_the_name(self):
        assert name_to_make(FIRST_USE) == "Tickwheel-small-WebhookKeys" == first_use_name("small")
        assert name_to_make(f"{FIRST_USE}-AbCdEf") is None
        assert name_to_make("arn:aws:secretsmanager:us-east-1:123456789012:secret:WebhookKeys6C9D-AbCdEf") is None
