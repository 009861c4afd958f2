from collections.abc import Callable
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from functions.adapters.dynamodb.table import Table, attributes, plain
from functions.domain.errors import Busy
from functions.domain.instants import to_ms
from functions.domain.lifecycle import State
from testkit.builders import NOON
from tests.unit.conflicts import ConflictingDynamoDB, a_client_error

VALUES = {"text": "a", "count": -3, "bytes": b"\0", "yes": True, "set": frozenset({"b", "a"}), "map": {"0": 7}}
KEY = {"k": "acme#1"}


def test_what_is_written_as_plain_values_is_read_as_plain_values():
    assert plain(attributes(VALUES)) == VALUES


def test_an_instant_is_kept_in_milliseconds_and_a_state_as_its_text():
    assert attributes({"at": NOON, "state": State.RUNNING}) == {
        "at": {"N": str(to_ms(NOON))},
        "state": {"S": "running"},
    }


def test_what_only_a_newer_version_writes_spoils_nothing_that_stands_beside_it():
    item = {"count": {"N": "3"}, "share": {"N": "0.5"}, "list": {"L": [{"S": "a"}]}, "none": {"NULL": True}}

    assert plain(item)["count"] == 3


def test_a_value_that_no_attribute_can_be_is_refused():
    with pytest.raises(TypeError, match="float"):
        attributes({"share": 0.5})


def test_a_write_that_is_refused_returns_what_it_found():
    met = a_client_error("ConditionalCheckFailedException", Item={"k": {"S": "acme#1"}, "n": {"N": "4"}})
    write = a_table(error=met).update(KEY, update="SET n = :n", condition="n = :seen", n=2, seen=1)

    assert (write.is_done, write.item) == (False, {"k": "acme#1", "n": 4})


def test_a_transaction_that_is_refused_returns_what_each_of_its_parts_found():
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": {"n": {"N": "4"}}}]
    table = a_table(error=a_client_error("TransactionCanceledException", CancellationReasons=reasons))
    write = table.transact({"Put": table.put_request(KEY)}, {"Put": table.put_request(KEY, condition="n = :n", n=3)})

    assert (write.is_done, write.item, list(write.found)) == (False, {"n": 4}, [None, {"n": 4}])


def test_a_write_that_meets_one_transaction_after_the_other_finds_its_row_busy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("time.sleep", lambda _: None)

    assert a_table(conflicts=4).put(KEY, tries=5).is_done
    with pytest.raises(Busy):
        a_table(conflicts=5).put(KEY, tries=5)


@pytest.mark.parametrize(
    "write",
    [
        lambda table: table.put(KEY),
        lambda table: table.delete(KEY),
        lambda table: table.update(KEY, update="SET n = :n", n=1),
        lambda table: table.transact({"Delete": table.delete_request(KEY)}),
    ],
    ids=["put", "delete", "update", "transact"],
)
def test_a_write_that_is_not_asked_to_wait_raises_the_conflict_that_it_meets(write: Callable[[Table], Any]):
    """Not Busy: to a caller that is his own mistake, and to an operation a job that it could not place."""
    with pytest.raises(ClientError, match="Transaction"):
        write(a_table(conflicts=1))


def a_table(**faults: Any) -> Table:
    return Table(cast("Any", ConflictingDynamoDB({}, **faults)), "rows")
