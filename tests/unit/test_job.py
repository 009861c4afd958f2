from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.delays import delay_seconds
from functions.domain.errors import InvalidInput, InvalidJob
from functions.domain.job import Precision, check_target, check_tenant
from tests.builders import NOON, a_job


@pytest.mark.parametrize("tenant", ["a", "A-1_b.c", "x" * 64, ".", "-"])
def test_a_tenant_is_a_short_plain_name(tenant: str):
    assert check_tenant(tenant) == tenant


@pytest.mark.parametrize("tenant", ["", "a#b", "a~b", "a/b", "x" * 65, "é", "a b", "a\n", "?"])
def test_a_tenant_that_could_be_taken_apart_wrongly_in_a_key_is_refused(tenant: str):
    with pytest.raises(InvalidJob):
        check_tenant(tenant)


@pytest.mark.parametrize("identity", ["", "a#b", "a~b", "x" * 201, "é", "a\n"])
def test_a_job_with_a_bad_identity_is_not_born(identity: str):
    with pytest.raises(InvalidJob) as refused:
        a_job(identity=identity)

    assert refused.value.field == "identity"


def test_a_job_with_a_naive_time_is_not_born():
    with pytest.raises(InvalidInput, match="has no offset from UTC"):
        replace(a_job(), scheduled_at=datetime(2027, 3, 1))  # noqa: DTZ001  the point


@pytest.mark.parametrize(
    "target",
    [
        "https://example.com",
        "https://example.com:8443/a?b=c#d",
        "https://[::1]/x",
        "handler:echo",
        "handler:billing.close-month_2",
    ],
)
def test_a_target_that_can_be_called_is_taken(target: str):
    assert check_target(target, allow_plain_http=False) == target


@pytest.mark.parametrize("target", ["HTTPS://example.com", "http://x", "file:///etc/passwd", "//x", "handler", "x"])
def test_a_target_that_cannot_be_called_is_refused(target: str):
    with pytest.raises(InvalidJob) as refused:
        check_target(target, allow_plain_http=False)

    assert refused.value.field == "target"


def test_a_refused_password_is_not_repeated():
    with pytest.raises(InvalidJob) as refused:
        check_target("https://me:secret@example.com/x", allow_plain_http=False)

    assert refused.value.value == "https://…@example.com"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("left", "default", "exact"),
    [
        (-5.0, 0, 0),
        (0.0, 0, 0),
        (0.001, 0, 0),
        (0.002, 1, 0),
        (1.0, 1, 0),
        (1.001, 1, 0),
        (1.002, 2, 0),
        (2.0, 2, 1),
        (2.999, 3, 1),
        (899.5, 900, 898),
        (900.0, 900, 899),
        (901.5, 900, 900),
        (86_400.0, 900, 900),
    ],
)
def test_a_delay_is_rounded_up_but_for_the_last_millisecond_or_for_exact_down_and_a_second_less_and_never_beyond_sqs(
    left: float, default: int, exact: int
):
    due_at = NOON + timedelta(seconds=left)

    assert delay_seconds(due_at, now=NOON, precision=Precision.DEFAULT) == default
    assert delay_seconds(due_at, now=NOON, precision=Precision.EXACT) == exact
