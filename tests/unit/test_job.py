from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.errors import InvalidInput, InvalidJob
from functions.domain.far_ring.delays import delay_seconds
from functions.domain.jobs.job import MAX_TAGS, Precision, check_new_tenant, check_tags, check_tenant
from testkit.builders import NOON, a_job, a_template


@pytest.mark.parametrize("tenant", ["a", "A-1_b.c", "x" * 64, ".", "-"])
def test_a_tenant_is_a_short_plain_name(tenant: str):
    assert check_tenant(tenant) == tenant


def test_a_new_tenant_can_stand_in_a_path():
    assert [check_new_tenant(tenant) for tenant in ("...", "a.", ".a")] == ["...", "a.", ".a"]
    for tenant in (".", "..", "a/b", ""):
        with pytest.raises(InvalidJob) as refused:
            check_new_tenant(tenant)
        assert (refused.value.field, refused.value.value) == ("tenant", tenant)


@pytest.mark.parametrize("tenant", ["", "a#b", "a~b", "a/b", "x" * 65, "é", "a b", "a\n", "?"])
def test_a_tenant_that_could_be_taken_apart_wrongly_in_a_key_is_refused(tenant: str):
    with pytest.raises(InvalidJob):
        check_tenant(tenant)


@pytest.mark.parametrize("identity", ["", "a#b", "a~b", "x" * 201, "é", "a\n"])
def test_a_job_with_a_bad_identity_is_not_born(identity: str):
    with pytest.raises(InvalidJob) as refused:
        a_job(identity=identity)

    assert refused.value.field == "identity"


@pytest.mark.parametrize("tag", ["a", "team:billing", "env=prod", "a/b.c_d-e+9", "x" * 64])
def test_a_tag_is_a_short_plain_text(tag: str):
    assert check_tags((tag,)) == (tag,)


@pytest.mark.parametrize("tag", ["", "a b", "a,b", "é", "a\n", "x" * 65, "#"])
def test_a_job_or_a_template_with_a_bad_tag_is_not_born(tag: str):
    for build in (a_job, a_template):
        with pytest.raises(InvalidJob, match="must match") as refused:
            build(tags=("good", tag))

        assert (refused.value.field, refused.value.value) == ("tags", tag)


def test_tags_keep_their_order_and_differ_from_each_other():
    assert a_job(tags=("b", "a")).tags == ("b", "a")
    with pytest.raises(InvalidJob, match="must differ from each other"):
        a_job(tags=("a", "b", "a"))


def test_there_are_at_most_ten_tags():
    tags = tuple(f"t{number}" for number in range(MAX_TAGS + 1))

    assert a_job(tags=tags[:-1]).tags == tags[:-1]
    with pytest.raises(InvalidJob, match="must be at most 10"):
        a_job(tags=tags)


def test_a_job_with_a_naive_time_is_not_born():
    with pytest.raises(InvalidInput, match="has no offset from UTC"):
        replace(a_job(), scheduled_at=datetime(2027, 3, 1))  # noqa: DTZ001  the point


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
