"""A DynamoDB whose rows are in the transactions of others, which moto and DynamoDB Local do not show."""

from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError


@dataclass
class ConflictingDynamoDB:
    """Meets other transactions so many times, or raises an error of its own. attributes: of the row that is changed."""

    attributes: dict[str, Any]
    conflicts: int = 0
    error: ClientError | None = None
    calls: list[str] = field(default_factory=list)

    def update_item(self, **_: Any) -> dict[str, Any]:
        self._meet("update_item", a_client_error("TransactionConflictException"))
        return {"Attributes": self.attributes}

    def put_item(self, **_: Any) -> dict[str, Any]:
        self._meet("put_item", a_client_error("TransactionConflictException"))
        return {}

    def delete_item(self, **_: Any) -> dict[str, Any]:
        self._meet("delete_item", a_client_error("TransactionConflictException"))
        return {}

    def transact_write_items(self, **_: Any) -> dict[str, Any]:
        self._meet("transact_write_items", a_cancelled_transaction("None", "TransactionConflict"))
        return {}

    def transact_get_items(self, **_: Any) -> dict[str, Any]:
        self._meet("transact_get_items", a_cancelled_transaction("TransactionConflict", "None"))
        return {"Responses": [{}, {}]}

    def _meet(self, call: str, conflict: ClientError) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        if len(self.calls) <= self.conflicts:
            raise conflict


def a_client_error(code: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": ""}, **more}
    return ClientError(response, "Any")


def a_cancelled_transaction(*reasons: str) -> ClientError:
    return a_client_error("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in reasons])
