import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from functions.domain.errors import ClockSkewed, InvalidJob, NotPlaced, TickwheelError, Undecodable
from functions.domain.far_ring.timer_record import decode_envelope, decode_timer
from functions.domain.faults import fault_of, places_of
from functions.domain.instants import SECOND, parse_instant
from functions.domain.targets.targets import parse_target
from functions.domain.targets.webhooks import parse_master_keys

SECRET = "hunter2"


def raised(call: Any, *arguments: Any, **options: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        call(*arguments, **options)
    return caught.value


def from_aws(code: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": SECRET}, **more}
    return ClientError(response, "UpdateItem")


def open_header(value: str) -> None:
    raise ValueError(f"Invalid header value {value!r}")


ERRORS = {
    "no json": raised(json.loads, f'{{"token": "{SECRET}'),
    "no field": raised(lambda: {}[SECRET]),
    "header": raised(open_header, SECRET),
    "aws": from_aws("ValidationException"),
    "aws transaction": from_aws(
        "TransactionCanceledException", CancellationReasons=[{"Message": SECRET, "Code": "None"}]
    ),
    "aws parameters": ParamValidationError(report=f"Invalid type for parameter Item, value: {SECRET}"),
    "envelope": raised(decode_envelope, json.dumps({"v": 1, "t": "acme", "j": [{"i": SECRET}]})),
    "a version": raised(decode_envelope, json.dumps({"v": SECRET, "t": "acme", "j": []})),
    "record": raised(decode_timer, f'"{SECRET}"', tenant="acme"),
    "instant": raised(parse_instant, SECRET),
    "target": raised(parse_target, f"ftp://{SECRET}"),
    "job": InvalidJob(f"{SECRET} is refused", field=SECRET, value=SECRET),
    "keys": raised(parse_master_keys, f'{{"current": "{SECRET}"}}'),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_nothing_that_an_error_quotes_is_reported(error: Exception) -> None:
    assert SECRET not in fault_of(error)
    assert SECRET not in "\n".join(places_of(error))


@pytest.mark.parametrize("name", ["no json", "header", "aws", "aws parameters"])
def test_the_texts_of_those_errors_do_hold_it(name: str) -> None:
    error = ERRORS[name]
    assert SECRET in f"{error} {getattr(error, 'doc', '')}"


def test_an_error_of_aws_is_reported_by_its_codes_and_its_call() -> None:
    assert fault_of(from_aws("ThrottlingException")) == "ClientError ThrottlingException of UpdateItem"
    cancelled = from_aws("TransactionCanceledException", CancellationReasons=[{"Code": "ConditionalCheckFailed"}])
    assert fault_of(cancelled) == "ClientError TransactionCanceledException ConditionalCheckFailed of UpdateItem"


def test_an_error_is_reported_with_the_place_of_ours_that_it_came_through() -> None:
    assert re.fullmatch(r"Undecodable at functions\.domain\.far_ring\.timer_record:\d+", fault_of(ERRORS["record"]))


def test_an_error_of_our_own_that_quotes_nothing_keeps_its_text() -> None:
    skewed = ClockSkewed(offset=40 * SECOND, limit=30 * SECOND)
    assert fault_of(skewed) == f"ClockSkewed: {skewed}"
    assert fault_of(NotPlaced(["RequestThrottled"])).endswith("the first because: RequestThrottled")


def test_a_trace_says_every_call_and_what_an_error_was_raised_because_of() -> None:
    lines = places_of(ERRORS["envelope"])
    assert lines[0] == "Undecodable"
    assert any(re.fullmatch(r"functions\.domain\.far_ring\.timer_record:\d+ decode_envelope", line) for line in lines)
    assert "KeyError" in lines


def test_a_trace_of_a_ring_of_causes_ends() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert places_of(first) == ["ValueError", "KeyError"]


def test_a_deep_trace_is_cut() -> None:
    def fall(depth: int) -> None:
        if not depth:
            raise Undecodable
        fall(depth - 1)

    assert len(places_of(raised(fall, 200))) == 50


def test_only_errors_of_our_own_are_reported_by_their_text() -> None:
    class Foreign(Exception):
        pass

    class Own(TickwheelError):
        pass

    assert (fault_of(Foreign(SECRET)), fault_of(Own("late"))) == ("Foreign", "Own: late")
