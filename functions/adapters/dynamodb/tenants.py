"""The rows of tenants on DynamoDB: all in one partition of the tenants table, with the number of their changes.

A tenant without a row costs nothing, and a process that asks for the number need not read the rows again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import is_refused
from functions.domain.tenants.plan import Tenant, decode_tenant, encode_tenant
from functions.ports.tenants import EVERYBODY, Revision

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PLANS = "~plans"
"""The partition: no tenant can be called so."""

_REVISION = "~revision"
"""Its item that counts the changes, and has the secret of job ids: behind all tenants."""


class DynamoDBTenantStore:
    """{t: `~plans`, i: tenant or `~everybody`, j: record, n: version}, and {t: `~plans`, i: `~revision`, n: changes, k: secret}."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def revision(self) -> Revision:
        """Half a read unit."""
        return _revision(self._client.get_item(TableName=self._table, Key=_key(_REVISION)).get("Item"))

    def keep_id_secret(self, secret: bytes) -> bytes:
        """One write unit, once in the life of a stage. Of several that come at once the first is kept, and all get it."""
        answer = self._client.update_item(
            TableName=self._table,
            Key=_key(_REVISION),
            UpdateExpression="SET k = if_not_exists(k, :secret)",
            ExpressionAttributeValues={":secret": {"S": secret.hex()}},
            ReturnValues="ALL_NEW",
        )
        return _revision(answer.get("Attributes")).id_secret

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        """A read unit for each 4 KB of rows, and two more."""
        item = self._client.get_item(TableName=self._table, Key=_key(_REVISION), ConsistentRead=True).get("Item")
        everybody = self.get(EVERYBODY)
        tenants: dict[str, Tenant] = {EVERYBODY: everybody} if everybody else {}
        after, has_more = "", True
        while has_more:
            found, has_more = self.page(after=after, limit=1_000)
            tenants |= found
            after = next(reversed(found), after)
        return _revision(item), tenants

    def get(self, tenant: str) -> Tenant | None:
        """One read unit. Raises Undecodable."""
        item = self._client.get_item(TableName=self._table, Key=_key(tenant), ConsistentRead=True).get("Item")
        return decode_tenant(item["j"]["S"]) if item else None

    def page(self, *, after: str, limit: int) -> tuple[dict[str, Tenant], bool]:
        """One Query. Raises Undecodable."""
        answer = self._client.query(
            TableName=self._table,
            KeyConditionExpression="t = :t AND i BETWEEN :after AND :last",
            ExpressionAttributeValues={
                ":t": {"S": PLANS},
                # The first text behind `after`.
                ":after": {"S": f"{after}\0" if after else "\0"},
                ":last": {"S": "~"},
            },
            Limit=limit,
            ConsistentRead=True,
        )
        return {item["i"]["S"]: decode_tenant(item["j"]["S"]) for item in answer["Items"]}, "LastEvaluatedKey" in answer

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        """Four write units: a transaction of two rows. Repeating it changes nothing but the number."""
        condition, values = "attribute_not_exists(t)", {}
        if seen:
            condition, values = "n = :seen", {":seen": {"N": str(seen)}}
        put: Any = {
            "TableName": self._table,
            "Item": {**_key(name), "j": {"S": encode_tenant(tenant)}, "n": {"N": str(tenant.version)}},
            "ConditionExpression": f"{condition} OR j = :record",
            "ExpressionAttributeValues": {**values, ":record": {"S": encode_tenant(tenant)}},
        }
        count: Any = {
            "TableName": self._table,
            "Key": _key(_REVISION),
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
        try:
            self._client.transact_write_items(TransactItems=[{"Put": put}, {"Update": count}])
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True


def _revision(item: Mapping[str, Any] | None) -> Revision:
    found = item or {}
    return Revision(
        changes=int(found["n"]["N"]) if "n" in found else 0,
        id_secret=bytes.fromhex(found["k"]["S"]) if "k" in found else b"",
    )


def _key(item: str) -> Mapping[str, Any]:
    return {"t": {"S": PLANS}, "i": {"S": item}}
