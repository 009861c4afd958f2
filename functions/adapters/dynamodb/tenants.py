"""The rows of tenants on DynamoDB: all in one partition of the tenants table, with the number of their changes.

A tenant without a row costs nothing, and a process that asks for the number need not read the rows again.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.adapters.dynamodb.table import Item, Table
from functions.domain.tenants.plan import Tenant, decode_tenant, encode_tenant
from functions.ports.tenants import EVERYBODY, Revision

PLANS = "~plans"
"""The partition: no tenant can be called so."""

_REVISION = "~revision"
"""Its item that counts the changes, and has the secret of job ids: behind all tenants."""


@dataclass
class DynamoDBTenantStore:
    """{t: `~plans`, i: tenant or `~everybody`, j: record, n: version}, and {t: `~plans`, i: `~revision`, n: changes, k: secret}."""

    table: Table

    def revision(self) -> Revision:
        """Half a read unit."""
        return _revision(self.table.get(_key(_REVISION), is_consistent=False))

    def keep_id_secret(self, secret: bytes) -> bytes:
        """One write unit, once in the life of a stage. Of several that come at once the first is kept, and all get it."""
        first = "SET k = if_not_exists(k, :secret)"
        kept = self.table.update(_key(_REVISION), update=first, returns="ALL_NEW", secret=secret.hex())
        return _revision(kept.item).id_secret

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        """A read unit for each 4 KB of rows, and two more."""
        revision = _revision(self.table.get(_key(_REVISION)))
        everybody = self.get(EVERYBODY)
        tenants: dict[str, Tenant] = {EVERYBODY: everybody} if everybody else {}
        found = self.table.query_all(_BEHIND, limit=1_000, is_consistent=True, **_names_behind(""))
        return revision, tenants | {item["i"]: _read(item) for item in found}

    def get(self, tenant: str) -> Tenant | None:
        """One read unit. Raises Undecodable."""
        item = self.table.get(_key(tenant))
        return _read(item) if item else None

    def page(self, *, after: str, limit: int) -> tuple[dict[str, Tenant], bool]:
        """One Query. Raises Undecodable."""
        found = self.table.query(_BEHIND, limit=limit, is_consistent=True, **_names_behind(after))
        return {item["i"]: _read(item) for item in found.items}, bool(found.last)

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        """Four write units: a transaction of two rows. Repeating it changes nothing but the number."""
        record = encode_tenant(tenant)
        put = self.table.put_request(
            {**_key(name), "j": record, "n": tenant.version},
            condition=("n = :seen" if seen else "attribute_not_exists(t)") + " OR j = :record",
            record=record,
            **({"seen": seen} if seen else {}),
        )
        count = self.table.update_request(_key(_REVISION), update="ADD n :one", one=1)
        return self.table.transact({"Put": put}, {"Update": count}).is_done


_BEHIND = "t = :t AND i BETWEEN :first AND :last"


def _names_behind(after: str) -> Item:
    # The first text behind it.
    return {"t": PLANS, "first": f"{after}\0", "last": "~"}


def _revision(item: Item) -> Revision:
    return Revision(changes=item.get("n", 0), id_secret=bytes.fromhex(item.get("k", "")))


def _read(item: Item) -> Tenant:
    return decode_tenant(item["j"])


def _key(item: str) -> Item:
    return {"t": PLANS, "i": item}
